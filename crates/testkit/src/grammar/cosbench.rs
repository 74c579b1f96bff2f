//! The files of COSBench's archive (0.4.2): its tables, its histogram, its logs and the workload as
//! it was run.

use super::{Node, lines, refusal};
use Node::{Line, Many, Maybe};

/// Counts, bytes, times, rates and the ratio of successes: what stands in each table.
const FIGURES: &str = "<int>,<int>,<cosna>,<cosna>";
const RATES: &str = "<cos>,<cos>,<cos%na>";
/// In whole steps of 10 ms.
const PERCENTILES: &str = "<tens>,<tens>,<tens>,<tens>,<tens>,<tens>";
const WORKLOAD_STATES: [&str; 6] =
    ["queuing", "processing", "finished", "failed", "terminated", "cancelled"];
const STATES: [&str; 13] = [
    "waiting",
    "booting",
    "submitting",
    "authing",
    "launching",
    "running",
    "closing",
    "sleeping",
    "completed",
    "failed",
    "terminated",
    "cancelled",
    "aborted",
];

/// Returns the model of `<id>-<name>.csv`.
pub fn cosbench_summary() -> Vec<Node> {
    let states = "<cosstate>,<cosstates>";
    let nothing = ",N/A".repeat(15);
    let row = format!("<cell>,<cell>,<cosop>,{FIGURES},{PERCENTILES},{RATES},{states}");
    let rows = [vec![Node::Made(row)], vec![Node::Made(format!("<cell>{nothing},{states}"))]];
    vec![
        Line(
            "Stage,Op-Name,Op-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,\
             80%-ResTime,90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,\
             Succ-Ratio,Status,Detailed Status",
        ),
        Many(vec![Node::Either(rows.to_vec())]),
    ]
}

/// Returns the model of `run-history.csv`.
pub fn cosbench_history() -> Vec<Node> {
    let of = |began: &str| {
        vec![Node::Made(format!("<cosid>,<cell>,<date>,{began},<cell>,<cosend>,<cosends>"))]
    };
    let row = Node::Either(["<date>,<date>", "<date>,", ",<date>", ","].map(of).to_vec());
    vec![
        Line("Id,Name,Submitted-At,Started-At,Stopped-At,Op-Info,State,Detailed State"),
        Maybe(vec![Many(vec![row])]),
    ]
}

/// Returns the model of `workloads.csv`.
pub fn cosbench_workloads() -> Vec<Node> {
    let row = format!(
        "<cell>,<cell>,<int>,<int>,<int>,<cosna>,<cosna>,{PERCENTILES},{RATES},\
                       <int>% <cell>"
    );
    vec![
        Line(
            "Id,Op-Name,Op-Count,Byte-Count,Worker-Count,Avg-ResTime,Avg-ProcTime,60%-ResTime,\
             80%-ResTime,90%-ResTime,95%-ResTime,99%-ResTime,100%-ResTime,Throughput,Bandwidth,\
             Succ-Ratio,Config-Info",
        ),
        Maybe(vec![Many(vec![Node::Made(row)])]),
    ]
}

/// Returns the model of `s<N>-<stage>.csv` of a stage with these operations, as they are shown.
pub fn cosbench_time_line(operations: &[&str]) -> Vec<Node> {
    let groups = [
        "Op-Count",
        "Byte-Count",
        "Avg-ResTime",
        "Avg-ProcTime",
        "Throughput",
        "Bandwidth",
        "Succ-Ratio",
    ];
    let forms = ["<int>", "<int>", "<cosna>", "<cosna>", "<cos>", "<cos>", "<cos%na>"];
    let more = ",".repeat(operations.len() - 1);
    let head: String = groups.iter().map(|group| format!(",{group}{more}")).collect();
    let names: String = operations.iter().map(|name| format!(",{name}")).collect();
    let row: String =
        forms.iter().map(|form| format!(",{form}").repeat(operations.len())).collect();
    vec![
        Node::Made(format!("Timestamp{head},Version-Info,,")),
        Node::Made(format!("{},Min-Version,Version,Max-Version", names.repeat(groups.len()))),
        Many(vec![Node::Made(format!("<clock>{row},<int>,<int>,<int>"))]),
    ]
}

/// Returns the model of `s<N>-<stage>-worker.csv`.
pub fn cosbench_worker_table() -> Vec<Node> {
    vec![
        Line(
            "Op-Type,Sample-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,Throughput,\
             Bandwidth,Succ-Ratio",
        ),
        Many(vec![Node::Made(format!("<cosop>,<cell>,{FIGURES},{RATES}"))]),
    ]
}

/// Returns the model of so many rows of `<id>-<name>-rt-histogram.csv` with these columns; whole it
/// has 50,001.
pub fn cosbench_histogram(columns: &[&str], rows: usize) -> Vec<Node> {
    let names: String = columns.iter().map(|name| format!(",{name},(%)")).collect();
    let cells = ",<int>,<cos%>".repeat(columns.len());
    let row = |row: usize| match row {
        50_000 => Node::Made(format!("500000~+INF{cells}")),
        row => Node::Made(format!("{}~{}{cells}", row * 10, row * 10 + 10)),
    };
    let head = Node::Made(format!("ResTime{names}"));
    [head].into_iter().chain((0..rows).map(row)).collect()
}

/// Returns the model of `scripts.log` where no script is run.
pub fn cosbench_scripts_log() -> Vec<Node> {
    let rule = "=".repeat(50);
    vec![
        Node::Made(format!("{rule} workload level {rule}")),
        Many(vec![Node::Made(format!("{rule} stage: <word> {rule}"))]),
    ]
}

/// Tells whether a state is one of a workload's, or of a stage's.
pub(super) fn is_state(of_workload: bool, text: &str) -> bool {
    let known = if of_workload { &WORKLOAD_STATES[..] } else { &STATES[..] };
    known.contains(&text)
}

/// Says where a `workload-config.xml` is not laid out as COSBench lays it out: a line for each tag,
/// four blanks a level, attributes in their order, a new line from column 72 on.
pub fn cosbench_config_refusal(text: &str) -> Option<String> {
    let mut tags: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(end) = tag_end(rest) {
        tags.push(rest[..end].to_owned());
        let Some(behind) = rest[end..].strip_prefix('\n') else {
            return Some(format!("{} does not end its line", &rest[..end]));
        };
        rest = behind;
    }
    if let Some(tag) = tags.iter().find(|tag| laid_out(tag) != **tag) {
        return Some(format!("COSBench breaks elsewhere: {tag}"));
    }
    let joined: Vec<String> = tags.iter().map(|tag| joined(tag)).collect();
    let refused = refusal(&config(), &(joined.join("\n") + "\n"));
    refused.or_else(|| (!rest.is_empty()).then(|| rest.to_owned()))
}

/// Returns where the first tag ends: no value has a `>` that is outside of quotes.
fn tag_end(text: &str) -> Option<usize> {
    let mut is_quoted = false;
    text.char_indices().find_map(|(at, letter)| {
        is_quoted ^= letter == '"';
        (letter == '>' && !is_quoted).then_some(at + 1)
    })
}

/// Returns a tag on one line.
fn joined(tag: &str) -> String {
    let lines: Vec<&str> = tag.split('\n').collect();
    let rest = lines[1..].iter().map(|line| format!(" {}", line.trim_start()));
    lines[0].to_owned() + &rest.collect::<String>()
}

/// Returns a tag with its lines broken anew.
fn laid_out(tag: &str) -> String {
    let line = joined(tag);
    let depth = line.len() - line.trim_start().len();
    let mut starts: Vec<usize> = Vec::new();
    let mut is_quoted = false;
    for (at, letter) in line.char_indices().skip(depth) {
        is_quoted ^= letter == '"';
        if letter == ' ' && !is_quoted {
            starts.push(at);
        }
    }
    let ends = starts.iter().skip(1).copied().chain([line.len()]);
    let spans = starts.iter().zip(ends);
    let attributes: Vec<&str> = spans.map(|(&from, to)| &line[from..to]).collect();
    let mut out = line[..starts.first().copied().unwrap_or(line.len())].to_owned();
    let mut column = out.chars().count();
    for (index, attribute) in attributes.iter().enumerate() {
        let length = attribute.chars().count();
        if index + 1 < attributes.len() && column + length > 72 {
            let indent = depth + 4;
            out.push_str(&format!("\n{}{}", " ".repeat(indent), attribute.trim_start()));
            column = indent + length - 1;
        } else {
            out.push_str(attribute);
            column += length;
        }
    }
    out
}

/// Returns the model of the tags.
fn config() -> Vec<Node> {
    let access = |depth: usize| {
        let indent = " ".repeat(depth * 4);
        let of = |name: &str| {
            let one = |more: &str| vec![Node::Made(format!("{indent}<lt>{name} type=<q>{more}/>"))];
            Node::Either(vec![one(""), one(" config=<q>")])
        };
        [of("auth"), of("storage")]
    };
    let mut work = vec![with_some(
        "            <lt>work name=<q> type=<q> workers=<qint> interval=<qint> division=<q> \
         runtime=<qint> rampup=<qint> rampdown=<qint> afr=<qint> totalOps=<qint> \
         totalBytes=<qint>",
        &[" driver=<q>", " maxIOPS=<qint>", " maxBW=<qint>"],
    )];
    work.extend(access(4));
    work.push(Many(vec![Line(
        "                <lt>operation type=<q> ratio=<qint> division=<q> config=<q> id=<q>/>",
    )]));
    work.push(Line("            <lt>/work>"));
    let stage = "        <lt>workstage name=<q> closuredelay=<qint>";
    let mut stage = vec![with_some(stage, &[" trigger=<q>"])];
    stage.extend(access(3));
    stage.push(Many(work));
    stage.push(Line("        <lt>/workstage>"));
    let mut all = vec![
        Line("<lt>?xml version=\"1.0\" encoding=\"UTF-8\"?>"),
        with_some("<lt>workload name=<q>", &[" description=<q>", " trigger=<q>"]),
    ];
    all.extend(access(1));
    all.extend([Line("    <lt>workflow config=<q>>"), Many(stage)]);
    all.extend(lines(&["    <lt>/workflow>", "<lt>/workload>"]));
    all
}

/// Returns a tag that has some more attributes before the last one.
fn with_some(tag: &str, more: &[&str]) -> Node {
    let subset = |of: usize| {
        let some = more.iter().enumerate().filter(|(bit, _)| of >> bit & 1 == 1);
        let some: String = some.map(|(_, attribute)| *attribute).collect();
        vec![Node::Made(format!("{tag}{some} config=<q>>"))]
    };
    Node::Either((0..1 << more.len()).map(subset).collect())
}

//! A strict model of what another program prints: which lines there may be, in which order, and
//! what stands in each. What it does not know it refuses.

mod others;

use std::collections::BTreeSet;

pub use others::{mdtest_report, s3_benchmark_report, weed_benchmark_report};

/// One part of what is printed.
#[derive(Clone, Debug)]
pub enum Node {
    /// A line. `<int>` stands for digits, `<f1>` to `<f3>` for a number with so many decimals,
    /// `<num>` for a number with or without them, `<time>` for a duration as Go prints it,
    /// `<speed>` for bytes per second with a binary unit, `<size>` for a letter of s3-benchmark's
    /// units, `<label>` for what mdtest calls a step, `<date>` for `mm/dd/yyyy`, `<clock>` for
    /// `hh:mm:ss`, `<word>` for what has no blank, `<gap>` for blanks, and `<text>` for anything
    /// but nothing.
    Line(&'static str),
    /// May be missing.
    Maybe(Vec<Node>),
    /// Is there once or several times.
    Many(Vec<Node>),
    /// Is one of these.
    Either(Vec<Vec<Node>>),
}

/// Says where a text leaves the model, or nothing where it is all of it.
pub fn refusal(model: &[Node], text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut farthest = 0;
    let ends = sequence(model, &lines, BTreeSet::from([0]), &mut farthest);
    if ends.contains(&lines.len()) {
        return None;
    }
    let line = lines.get(farthest).map_or("the end".to_owned(), |line| format!("{line:?}"));
    Some(format!("line {}: {line}", farthest + 1))
}

/// Refuses a text that the model does not know.
#[track_caller]
pub fn accept(model: &[Node], text: &str) {
    if let Some(refusal) = refusal(model, text) {
        panic!("{refusal}\nin\n{text}");
    }
}

/// Returns texts that differ from one in a single line each: a letter in the other case, a digit
/// that is none, the line left out, the line twice. Lines of which `is_free` holds are passed over.
pub fn mutants(text: &str, is_free: impl Fn(&str) -> bool) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let with = |at: usize, new: &[String]| {
        let (before, after) = (&lines[..at], &lines[at + 1..]);
        let new = new.iter().map(String::as_str);
        before
            .iter()
            .copied()
            .chain(new)
            .chain(after.iter().copied())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !is_free(line)) {
        if let Some(letter) = line.chars().find(char::is_ascii_alphabetic) {
            let other = match letter.is_ascii_lowercase() {
                true => letter.to_ascii_uppercase(),
                false => letter.to_ascii_lowercase(),
            };
            all.push(with(at, &[line.replacen(letter, &other.to_string(), 1)]));
        }
        if let Some(digit) = line.chars().rev().find(char::is_ascii_digit) {
            let place = line.rfind(digit).expect("it is there");
            all.push(with(at, &[format!("{}x{}", &line[..place], &line[place + 1..])]));
        }
        all.push(with(at, &[]));
        all.push(with(at, &[(*line).to_owned(), (*line).to_owned()]));
    }
    all
}

fn sequence(
    nodes: &[Node],
    lines: &[&str],
    from: BTreeSet<usize>,
    farthest: &mut usize,
) -> BTreeSet<usize> {
    nodes.iter().fold(from, |from, node| {
        from.into_iter().flat_map(|at| ends(node, lines, at, farthest)).collect()
    })
}

/// Returns where a part that begins at a line may end.
fn ends(node: &Node, lines: &[&str], at: usize, farthest: &mut usize) -> BTreeSet<usize> {
    *farthest = at.max(*farthest);
    match node {
        Node::Line(pattern) => {
            let is_it = lines.get(at).is_some_and(|line| is_like(pattern, line));
            is_it.then_some(at + 1).into_iter().collect()
        }
        Node::Maybe(nodes) => {
            let mut all = sequence(nodes, lines, BTreeSet::from([at]), farthest);
            all.insert(at);
            all
        }
        Node::Many(nodes) => {
            let mut all = BTreeSet::new();
            let mut new = sequence(nodes, lines, BTreeSet::from([at]), farthest);
            while !new.is_subset(&all) {
                all.extend(new.iter().copied());
                new = sequence(nodes, lines, new, farthest);
            }
            all
        }
        Node::Either(each) => each
            .iter()
            .flat_map(|nodes| sequence(nodes, lines, BTreeSet::from([at]), farthest))
            .collect(),
    }
}

/// Tells whether a line is what a pattern says.
pub fn is_like(pattern: &str, line: &str) -> bool {
    let Some((before, rest)) = pattern.split_once('<') else { return pattern == line };
    let Some((name, after)) = rest.split_once('>') else { return pattern == line };
    let Some(line) = line.strip_prefix(before) else { return false };
    let cuts = line.char_indices().map(|(at, _)| at).chain([line.len()]).skip(1);
    cuts.into_iter().any(|cut| is_a(name, &line[..cut]) && is_like(after, &line[cut..]))
}

fn is_a(name: &str, text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let decimals = |text: &str, of: usize| {
        let split = text.split_once('.');
        split.is_some_and(|(whole, rest)| digits(whole) && digits(rest) && rest.len() == of)
    };
    let number = |text: &str| {
        let parts = text.split_once('.').map_or((text, "0"), |parts| parts);
        digits(parts.0) && digits(parts.1)
    };
    match name {
        "int" => digits(text),
        "f1" => decimals(text, 1),
        "f2" => decimals(text, 2),
        "f3" => decimals(text, 3),
        "size" => text.len() == 1 && "BKMGTPE".contains(text),
        "date" => {
            let lens: Vec<usize> = text.split('/').map(str::len).collect();
            lens == [2, 2, 4] && text.split('/').all(digits)
        }
        "label" => {
            let parts = text.split_once(' ');
            let of = |first: &str| ["Directory", "File", "Tree"].contains(&first);
            parts.is_some_and(|(first, rest)| {
                let steps = ["creation", "stat", "rename", "read", "removal"];
                of(first) && steps.contains(&rest)
            })
        }
        "num" => number(text),
        "word" => !text.contains(char::is_whitespace),
        "gap" => text.chars().all(|c| c == ' '),
        "text" => !text.is_empty(),
        "clock" => text.len() == 8 && text.split(':').all(|part| part.len() == 2 && digits(part)),
        "time" => {
            let unit = ["ns", "µs", "ms", "s"].iter().find_map(|unit| text.strip_suffix(unit));
            let minutes = |text: &str| {
                let parts = text.rsplit_once('m').map_or(("0", text), |parts| parts);
                let hours = parts.0.split_once('h').map_or(("0", parts.0), |parts| parts);
                digits(hours.0) && digits(hours.1) && number(parts.1)
            };
            unit.is_some_and(minutes)
        }
        "speed" => {
            let units = ["TiB/s", "GiB/s", "MiB/s", "KiB/s", "B/s"];
            units.iter().find_map(|unit| text.strip_suffix(unit)).is_some_and(number)
        }
        other => panic!("a pattern knows no <{other}>"),
    }
}

/// Returns the model of warp's default report, as a benchmark prints it (`details`: with
/// `--analyze.v`), without the empty lines around it.
pub fn warp_report(details: bool) -> Vec<Node> {
    use Node::{Either, Line, Many, Maybe};
    let rule = || ["", "──────────────────────────────────", ""].map(Line);
    let block = Either(vec![warp_figures(details), warp_skipped()]);
    let more = rule().into_iter().chain([block.clone()]).collect();
    let total = [Line("")].into_iter().chain(rule()).chain([block.clone()]).collect();
    vec![block, Maybe(vec![Many(more)]), Either(vec![total, vec![Line("")]])]
}

fn one_of(lines: &[&'static str]) -> Node {
    Node::Either(lines.iter().map(|line| vec![Node::Line(line)]).collect())
}

fn warp_skipped() -> Vec<Node> {
    use Node::{Line, Many, Maybe};
    let first = Maybe(vec![Line("- First Errors:"), Many(vec![Line(" * <text>")])]);
    vec![
        Line(
            "Skipping <word> too few samples. Longer benchmark run required for reliable results.",
        ),
        Line(""),
        Maybe(vec![Line("Errors: <int>"), first, Line("")]),
    ]
}

fn warp_figures(details: bool) -> Vec<Node> {
    use Node::{Either, Line, Many, Maybe};
    let first = Maybe(vec![Line(" - First Errors:"), Many(vec![Line("   * <text>")])]);
    let requests = || vec![Line(WARP_REQUESTS), Maybe(vec![Line(WARP_TTFB)])];
    let class = vec![Line(""), Line(WARP_CLASS), Line(WARP_SPEEDS), Maybe(vec![Line(WARP_TTFB)])];
    let client = |lines: Vec<Node>| {
        let more = Maybe(requests().into_iter().chain([Line("")]).collect());
        Many(lines.into_iter().chain([more]).collect())
    };
    let at = usize::from(details);
    let mut all = match details {
        false => vec![Line("Report: <word>. Concurrency: <int>. Ran: <time>")],
        true => vec![
            Line("Report: <word> (<int> reqs). Ran Duration: <time>, starting <clock> <word>"),
            one_of(&WARP_OBJECTS),
        ],
    };
    all.extend([
        one_of(&WARP_AVERAGE[at]),
        Maybe(vec![Line(" * Errors: <int>"), first]),
        Maybe(vec![Either(vec![requests(), vec![Many(class)]])]),
        Line(""),
        Maybe(vec![Line("Throughput by host:"), Many(vec![one_of(&WARP_HOST[at])]), Line("")]),
        Maybe(vec![
            Line("Throughput by client:"),
            client(vec![one_of(&WARP_CLIENT[at])]),
            Line(""),
        ]),
        Line("Throughput, split into <int> x 1s:"),
    ]);
    all.extend(WARP_SEGMENTS[at].iter().map(|lines| one_of(lines)));
    all
}

const WARP_REQUESTS: &str = " * Reqs: Avg: <f1>ms, 50%: <f1>ms, 90%: <f1>ms, 99%: <f1>ms, \
                             Fastest: <f1>ms, Slowest: <f1>ms, StdDev: <f1>ms";
const WARP_TTFB: &str = " * TTFB: Avg: <time>, Best: <time>, 25th: <time>, Median: <time>, 75th: \
                         <time>, 90th: <time>, 99th: <time>, Worst: <time> StdDev: <time>";
const WARP_CLASS: &str = "Request size <int><word> -> <int><word> . Requests: <int>";
const WARP_SPEEDS: &str = " * Reqs: Avg: <speed>, 50%: <speed>, 90%: <speed>, 99%: <speed>, \
                           Fastest: <speed>, Slowest: <speed> ";
const WARP_OBJECTS: [&str; 4] = [
    " * Objects per request: <int>. Size: <int> bytes. Concurrency: <int>.",
    " * Objects per request: <int>. Concurrency: <int>.",
    " * Objects per request: <int>. Size: <int> bytes. Concurrency: <int>. <text>: <int>.",
    " * Objects per request: <int>. Concurrency: <int>. <text>: <int>.",
];
/// Without details, and with them; so in what follows.
const WARP_AVERAGE: [[&str; 4]; 2] = [
    [
        " * Average: <f2> MiB/s, <f2> obj/s",
        " * Average: <f2> obj/s",
        " * Average: <f2> MiB/s, <f2> obj/s, <int> errors",
        " * Average: <f2> obj/s, <int> errors",
    ],
    [
        " * Average: <f2> MiB/s, <f2> obj/s (<int>s)",
        " * Average: <f2> obj/s (<int>s)",
        " * Average: <f2> MiB/s, <f2> obj/s, <int> errors (<int>s)",
        " * Average: <f2> obj/s, <int> errors (<int>s)",
    ],
];
const WARP_HOST: [[&str; 4]; 2] = [
    [
        " * <word>: Avg: <f2> MiB/s, <f2> obj/s",
        " * <word>: Avg: <f2> obj/s",
        " * <word>: Avg: <f2> MiB/s, <f2> obj/s, <int> errors - Errors: <int>",
        " * <word>: Avg: <f2> obj/s, <int> errors - Errors: <int>",
    ],
    [
        " * <word>: Avg: <f2> MiB/s, <f2> obj/s (<int>s)",
        " * <word>: Avg: <f2> obj/s (<int>s)",
        " * <word>: Avg: <f2> MiB/s, <f2> obj/s, <int> errors (<int>s) - Errors: <int>",
        " * <word>: Avg: <f2> obj/s, <int> errors (<int>s) - Errors: <int>",
    ],
];
const WARP_CLIENT: [[&str; 4]; 2] = [
    [
        "Client <int> throughput: <f2> MiB/s, <f2> obj/s",
        "Client <int> throughput: <f2> obj/s",
        "Client <int> throughput: <f2> MiB/s, <f2> obj/s, <int> errors",
        "Client <int> throughput: <f2> obj/s, <int> errors",
    ],
    [
        "Client <int> throughput: <f2> MiB/s, <f2> obj/s (<int>s)",
        "Client <int> throughput: <f2> obj/s (<int>s)",
        "Client <int> throughput: <f2> MiB/s, <f2> obj/s, <int> errors (<int>s)",
        "Client <int> throughput: <f2> obj/s, <int> errors (<int>s)",
    ],
];
const WARP_SEGMENTS: [[[&str; 2]; 3]; 2] = [
    [
        [" * Fastest: <speed>, <f2> obj/s", " * Fastest: <f2> obj/s"],
        [" * 50% Median: <speed>, <f2> obj/s", " * 50% Median: <f2> obj/s"],
        [" * Slowest: <speed>, <f2> obj/s", " * Slowest: <f2> obj/s"],
    ],
    [
        [
            " * Fastest: <speed>, <f2> obj/s (1s, starting <clock> <word>)",
            " * Fastest: <f2> obj/s (1s, starting <clock> <word>)",
        ],
        [
            " * 50% Median: <speed>, <f2> obj/s (1s, starting <clock> <word>)",
            " * 50% Median: <f2> obj/s (1s, starting <clock> <word>)",
        ],
        [
            " * Slowest: <speed>, <f2> obj/s (1s, starting <clock> <word>)",
            " * Slowest: <f2> obj/s (1s, starting <clock> <word>)",
        ],
    ],
];

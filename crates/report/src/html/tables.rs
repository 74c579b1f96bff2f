//! The tables of a report: every figure that the text report has, and the ones by size, client
//! and access.

use std::time::Duration;

use plimsoll_analysis::{Figures, Rates, RowAnalysis, SegmentRate, StepFigures, Times};
use plimsoll_model::{ByteRate, Moment};

use super::limits::{
    CELL_CHARS_MAX, LINES_MAX, Limits, ROWS_MAX, TEXT_CHARS_MAX, chosen, cut_name, more, sentence,
};
use super::sizes::size;
use super::{Environment, escaped};
use crate::agents::{AgentReport, HEADINGS};
use crate::format::{
    UNKNOWN, byte_rate, bytes, count, duration, known, object_rate, op_rate, percent, plural,
};
use crate::report::RowView;
use crate::{ErrorSample, Report, words};

/// What of many hosts or clients is shown.
const SLOWEST: &str = "the slowest and those with the most failures";
/// How many texts of one class of error are shown.
const MESSAGES_PER_CLASS_MAX: usize = 5;
/// How many texts of errors of a row are shown in all.
const MESSAGES_MAX: usize = 40;

/// How a row stands out.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Tone {
    Plain,
    /// The sum of others.
    Total,
    /// A part of the row above.
    Part,
}

/// A table under construction; all text is escaped here.
pub(super) struct Table {
    html: String,
    rows: usize,
}

impl Table {
    pub(super) fn new(headings: &[&str]) -> Self {
        let cells = headings.iter().map(|text| format!("<th scope=\"col\">{}</th>", escaped(text)));
        let html = format!(
            "<div class=\"table\"><table><thead><tr>{}</tr></thead><tbody>\n",
            cells.collect::<String>()
        );
        Self { html, rows: 0 }
    }

    pub(super) fn row(&mut self, tone: Tone, head: &str, cells: impl IntoIterator<Item = String>) {
        let class = match tone {
            Tone::Plain => "",
            Tone::Total => " class=\"total\"",
            Tone::Part => " class=\"part\"",
        };
        self.rows += 1;
        if self.rows > ROWS_MAX {
            return;
        }
        let head = cut_name(head, CELL_CHARS_MAX);
        let cells = cells.into_iter();
        let cells = cells.map(|text| format!("<td>{}</td>", cut_name(&text, CELL_CHARS_MAX)));
        let cells: String = cells.collect();
        self.html += &format!("<tr{class}><th scope=\"row\">{head}</th>{cells}</tr>\n");
    }

    /// Returns the table with a remark below about those that it leaves out, if there are any.
    fn end_without(self, left_out: usize, which: &str) -> String {
        let is_empty = self.rows == 0;
        match left_out {
            0 => self.end(),
            _ if is_empty => String::new(),
            _ => {
                let remark = format!("{}: these are {which}.", more(left_out));
                format!("{}<p class=\"caption\">{}</p>\n", self.end(), escaped(&remark))
            }
        }
    }

    /// Returns the table, or nothing without a row.
    pub(super) fn end(self) -> String {
        let more = match self.rows.saturating_sub(ROWS_MAX) {
            0 => String::new(),
            rows => format!("<p class=\"caption\">{}</p>\n", more(rows)),
        };
        if self.rows == 0 {
            return String::new();
        }
        self.html + "</tbody></table></div>\n" + &more
    }
}

/// A set of operations: how it stands out, its name, its part of the mix, its figures.
type Set<'a> = (Tone, &'static str, Option<f64>, &'a Figures);

/// Returns the kinds, and their total when there are several.
fn sets(analysis: &RowAnalysis) -> Vec<Set<'_>> {
    let kinds = analysis.kinds.iter();
    let mut sets: Vec<_> = kinds
        .map(|kind| (Tone::Plain, kind.kind.name(), kind.mix_percent, &kind.figures))
        .collect();
    if sets.len() > 1 {
        let mix = (analysis.total.counts.started > 0).then_some(100.0);
        sets.push((Tone::Total, "total", mix, &analysis.total));
    }
    sets
}

/// Returns what each kind did, in counts of the whole stage.
pub(super) fn operations(analysis: &RowAnalysis) -> String {
    let headings = [
        "whole stage",
        "mix",
        "succeeded",
        "failed",
        "error rate",
        "objects",
        "content",
        "samples",
    ];
    let mut table = Table::new(&headings);
    for (tone, name, mix_percent, figures) in sets(analysis) {
        let stage = &figures.stage;
        let failed = stage.failed.count();
        let ended = stage.ops_ok + failed;
        let rate = (ended > 0).then(|| failed as f64 / ended as f64 * 100.0);
        let content = if figures.moves_bytes { bytes(stage.bytes) } else { UNKNOWN.to_owned() };
        let cells = [
            known(mix_percent, |mix| format!("{mix:.1} %")),
            count(stage.ops_ok),
            count(failed),
            known(rate, percent),
            count(stage.objects),
            content,
            count(figures.latency.samples),
        ];
        table.row(tone, name, cells);
    }
    table.end()
}

/// Returns average, fastest, median and slowest segment of each kind.
pub(super) fn rates(analysis: &RowAnalysis) -> String {
    let segment = duration(analysis.segment).replace(".00", "");
    let [fastest, median, slowest] =
        ["fastest", "median", "slowest"].map(|name| format!("{name} {segment}"));
    let mut table = Table::new(&["rate", "average", &fastest, &median, &slowest]);
    for (tone, name, _, figures) in sets(analysis) {
        let picked = figures.segments.map(|all| [all.fastest, all.median, all.slowest]);
        let cells = |text: &dyn Fn(&Rates) -> String| -> Vec<String> {
            let each = |of: SegmentRate| text(&of.rates);
            let picked = picked.map_or([(); 3].map(|()| UNKNOWN.to_owned()), |all| all.map(each));
            std::iter::once(known(figures.rates, |rates| text(&rates))).chain(picked).collect()
        };
        table.row(tone, name, cells(&|rates| op_rate(rates.ops)));
        if figures.stage.objects != figures.stage.ops_ok {
            table.row(Tone::Part, "", cells(&|rates| object_rate(rates.objects)));
        }
        if figures.moves_bytes {
            table.row(Tone::Part, "", cells(&|rates| byte_rate(rates.bytes)));
        }
        let Some(picked) = picked else { continue };
        let from = |of: SegmentRate| offset(analysis, of.start);
        let over = format!("over {}", duration(analysis.span.length()));
        table.row(Tone::Part, "", std::iter::once(over).chain(picked.map(from)));
    }
    table.end()
}

fn offset(analysis: &RowAnalysis, moment: Moment) -> String {
    match moment.since(analysis.span.start) {
        Duration::ZERO => "from the start".to_owned(),
        offset => format!("from +{}", duration(offset)),
    }
}

const TIMES: [&str; 8] = ["p50", "p90", "p99", "p99.9", "min", "max", "mean", "deviation"];

fn times_of(times: &Times) -> Vec<String> {
    let figures = [
        times.p50,
        times.p90,
        times.p99,
        times.p99_9,
        times.min,
        times.max,
        times.mean,
        times.std_dev,
    ];
    figures.into_iter().map(|time| known(time, duration)).collect()
}

fn times_headings(first: &str) -> Vec<&str> {
    std::iter::once(first).chain(TIMES).collect()
}

/// Returns latency and service time beside each other, and the delay that lies between them.
fn open_times(sets: &[Set<'_>]) -> String {
    let mut table = Table::new(&times_headings("latency and service time"));
    for (tone, kind, _, figures) in sets {
        table.row(*tone, &format!("{kind} latency"), times_of(&figures.latency));
        table.row(Tone::Part, "service time", times_of(figures.service()));
        if let Some(delay) = &figures.schedule_delay {
            table.row(Tone::Part, "schedule delay", times_of(delay));
        }
    }
    format!("{}<p class=\"caption\">{}</p>\n", table.end(), words::OPEN_TIMES)
}

/// Returns the tables of latency, with service time where it differs, and of TTFB where there is
/// one.
pub(super) fn times(analysis: &RowAnalysis) -> String {
    let sets = sets(analysis);
    let table = |name: &str, of: &dyn Fn(&Figures) -> &Times| {
        let mut table = Table::new(&times_headings(name));
        for (tone, kind, _, figures) in &sets {
            table.row(*tone, kind, times_of(of(figures)));
        }
        table.end()
    };
    let mut html = if sets.iter().any(|(.., figures)| words::has_delays(figures)) {
        open_times(&sets)
    } else {
        table("latency", &|figures| &figures.latency)
    };
    if sets.iter().any(|(.., figures)| figures.ttfb.samples > 0) {
        html += &table("TTFB", &|figures| &figures.ttfb);
    }
    let mut table = Table::new(&times_headings("parts"));
    for (tone, kind, _, figures) in &sets {
        if let Some(parts) = &figures.parts {
            table.row(*tone, &format!("{kind}, assign"), times_of(&parts.assign));
            table.row(*tone, &format!("{kind}, upload"), times_of(&parts.upload));
        }
    }
    if sets.iter().any(|(.., figures)| figures.parts.is_some()) {
        html += &table.end();
    }
    html
}

/// Returns the cells by which hosts and clients are told apart.
fn shares(figures: &Figures) -> Vec<String> {
    let content = known(figures.rates, |rates| byte_rate(rates.bytes));
    let latency = &figures.latency;
    vec![
        count(figures.stage.ops_ok),
        count(figures.stage.failed.count()),
        known(figures.rates, |rates| op_rate(rates.ops)),
        if figures.moves_bytes { content } else { UNKNOWN.to_owned() },
        known(latency.p50, duration),
        known(latency.p99, duration),
        known(figures.ttfb.p50, duration),
    ]
}

fn shares_headings(first: &str) -> [&str; 8] {
    [first, "succeeded", "failed", "rate", "throughput", "p50", "p99", "TTFB p50"]
}

/// Returns what came of each step of a rate.
pub(super) fn steps(steps: &[StepFigures]) -> String {
    let mut table = Table::new(&crate::steps::HEADINGS);
    for step in steps {
        let [from, rest @ ..] = crate::steps::cells(step);
        table.row(Tone::Plain, &from, rest);
    }
    table.end()
}

/// Returns what each host did, in all and by kind; nothing when there is only one.
pub(super) fn hosts(report: &RowView<'_>, limits: Limits) -> String {
    let analysis = &report.row.analysis;
    if report.endpoints.len().max(analysis.endpoints.len()) < 2 {
        return String::new();
    }
    let mut table = Table::new(&shares_headings("host"));
    let shown = limits.of_many(&analysis.endpoints, |at| &at.figures);
    let are_all = shown.len() == analysis.endpoints.len();
    for at in &shown {
        table.row(Tone::Plain, &report.endpoint(at.endpoint), shares(&at.figures));
        for kind in analysis.kinds.iter().filter(|_| analysis.kinds.len() > 1 && are_all) {
            let of_host = kind.endpoints.iter().find(|of| of.endpoint == at.endpoint);
            if let Some(of_host) = of_host {
                table.row(Tone::Part, kind.kind.name(), shares(&of_host.figures));
            }
        }
    }
    table.end_without(analysis.endpoints.len() - shown.len(), SLOWEST)
}

/// Returns what each agent of a fleet was and did; nothing when there is only one.
pub(super) fn agents(agents: &[AgentReport], limits: Limits) -> String {
    if agents.len() < 2 {
        return String::new();
    }
    let mut table = Table::new(&HEADINGS);
    let shown = chosen(agents, limits.hosts, |agent| {
        (agent.lost.is_some(), !agent.losses.is_empty(), std::cmp::Reverse(agent.rows))
    });
    for agent in &shown {
        let [weight, threads, rows, cpu, clock, lost] = agent.cells();
        let lost = if lost.is_empty() { UNKNOWN.to_owned() } else { lost };
        table.row(Tone::Plain, &agent.name, [weight, threads, rows, cpu, clock, lost]);
    }
    let which = "those that were lost and those with the fewest operations";
    table.end_without(agents.len() - shown.len(), which)
}

/// Returns what each client did, in all and by kind; nothing when there is only one.
pub(super) fn clients(report: &RowView<'_>, limits: Limits) -> String {
    let mut table = Table::new(&shares_headings("client"));
    let details = report.row.analysis.details.as_ref();
    let clients = details.map_or(&[][..], |details| &details.clients);
    let shown = limits.of_many(clients, |client| &client.total);
    let are_all = shown.len() == clients.len();
    for client in &shown {
        let name = report.clients.get(usize::from(client.client)).cloned();
        let name = name.unwrap_or_else(|| format!("client {}", client.client));
        table.row(Tone::Plain, &name, shares(&client.total));
        for of in client.kinds.iter().filter(|_| client.kinds.len() > 1 && are_all) {
            table.row(Tone::Part, of.kind.name(), shares(&of.figures));
        }
    }
    table.end_without(clients.len() - shown.len(), SLOWEST)
}

/// Returns the figures of each class of size.
pub(super) fn sizes(report: &RowView<'_>) -> String {
    let headings = [
        "size",
        "samples",
        "content",
        "latency p50",
        "p90",
        "p99",
        "TTFB p50",
        "throughput",
        "median",
        "slowest 1 %",
    ];
    let mut table = Table::new(&headings);
    let details = report.row.analysis.details.as_ref();
    for kind in details.into_iter().flat_map(|details| &details.kinds) {
        for class in &kind.sizes {
            let whole = |rate: u64| byte_rate(ByteRate(rate as f64));
            let cells = [
                count(class.latency.samples),
                bytes(class.bytes),
                known(class.latency.p50, duration),
                known(class.latency.p90, duration),
                known(class.latency.p99, duration),
                known(class.ttfb.p50, duration),
                known(class.rate.average, |rate| byte_rate(ByteRate(rate))),
                known(class.rate.p50, whole),
                known(class.rate.p99_slow, whole),
            ];
            let range = match class.bytes_max {
                0 => "0 B".to_owned(),
                _ => format!("≥ {}", size(class.bytes_min)),
            };
            table.row(Tone::Plain, &format!("{} {range}", kind.kind.name()), cells);
        }
    }
    table.end()
}

/// Returns the times of first and last accesses; nothing where no object was accessed twice.
pub(super) fn accesses(report: &RowView<'_>) -> String {
    let mut table = Table::new(&times_headings("access"));
    let mut remarks = String::new();
    let details = report.row.analysis.details.as_ref();
    for kind in details.into_iter().flat_map(|details| &details.kinds) {
        let Some(access) = &kind.access else { continue };
        let name = kind.kind.name();
        table.row(Tone::Plain, &format!("{name}, first"), times_of(&access.first));
        table.row(Tone::Plain, &format!("{name}, last"), times_of(&access.last));
        for (which, times) in [("first", &access.first_ttfb), ("last", &access.last_ttfb)] {
            if times.samples > 0 {
                table.row(Tone::Plain, &format!("{name}, TTFB of {which}"), times_of(times));
            }
        }
        let objects = plural(access.objects_count, "object");
        let part = match access.sampled_one_in {
            1 => String::new(),
            one_in => format!(", one in {one_in}, chosen by hash"),
        };
        remarks += &format!("<p class=\"caption\">{name}: {objects}{part}.</p>");
    }
    match table.end() {
        table if table.is_empty() => String::new(),
        table => table + &remarks,
    }
}

/// Returns how many failed by kind and class, with the first texts of each.
pub(super) fn errors(report: &RowView<'_>) -> String {
    let mut table = Table::new(&["whole stage", "class", "failed", "of its kind"]);
    let (mut texts, mut told) = (String::new(), 0);
    for kind in &report.row.analysis.kinds {
        let stage = &kind.figures.stage;
        let ended = stage.ops_ok + stage.failed.count();
        for (class, failed) in stage.failed.classes() {
            let share = percent(failed as f64 / ended as f64 * 100.0);
            let cells = [class.name().to_owned(), count(failed), share];
            table.row(Tone::Plain, kind.kind.name(), cells);
            let most = MESSAGES_PER_CLASS_MAX.min(MESSAGES_MAX - told);
            let limits = (most, 2 * TEXT_CHARS_MAX);
            let text = |error: &ErrorSample| words::said(report, error);
            let first = words::messages(&report.stage.errors, (kind.kind, class), limits, text);
            let lines: String =
                first.iter().map(|text| format!("<li>{}</li>\n", sentence(text))).collect();
            told += first.len();
            if !lines.is_empty() {
                let name = format!("{} {}, first texts", kind.kind.name(), class.name());
                texts += &format!("<h3>{name}</h3>\n<ul class=\"errors\">\n{lines}</ul>\n");
            }
        }
    }
    table.end() + &texts
}

/// Returns named texts, one a line.
pub(super) fn facts<N: AsRef<str>>(facts: impl IntoIterator<Item = (N, String)>) -> String {
    let facts: Vec<(N, String)> = facts.into_iter().collect();
    let line = |(name, text): &(N, String)| {
        let name = cut_name(name.as_ref(), CELL_CHARS_MAX);
        format!("<dt>{name}</dt><dd>{}</dd>\n", sentence(text))
    };
    let mut lines: String = facts.iter().take(LINES_MAX).map(line).collect();
    if facts.len() > LINES_MAX {
        lines += &format!("<dt></dt><dd>{}</dd>\n", more(facts.len() - LINES_MAX));
    }
    format!("<dl>\n{lines}</dl>\n")
}

/// Returns what the run ran on, and how it can be told from others.
pub(super) fn environment(report: &Report, environment: &Environment) -> String {
    let mut all = environment.facts.clone();
    let mut add = |name: &str, text: Option<String>| {
        all.extend(text.map(|text| (name.to_owned(), text)));
    };
    add("plimsoll", report.tool_version.clone());
    add("read from", report.foreign.clone());
    add("run", report.run_id.as_ref().map(ToString::to_string));
    add("kept in", report.run_directory.clone());
    facts(all)
}

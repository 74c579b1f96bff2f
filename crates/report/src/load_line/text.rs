//! The load line for people: the line, what it rests on, the curve, the probes.

use std::time::Duration;

use plimsoll_analysis::Failures;
use plimsoll_model::{OpRate, ProbeOutcome};

use super::{LoadLineReport, plot};
use crate::format::{count, duration, known, number, op_rate};
use crate::ledger;
use crate::report::{Report, RowView, StageReport};
use crate::stage_words;
use crate::table::{Cell, Paint, Table, Tone, harmless, paragraph};

/// Writes what was found as a headline after a title, in the colour of how good it is.
pub(crate) fn headline(
    load_line: &LoadLineReport,
    (title, title_tone): (&str, Tone),
    (width, paint): (usize, Paint),
    out: &mut String,
) {
    let tone = match (&load_line.line, &load_line.metastable) {
        (Some(_), None) => Tone::Good,
        (Some(_), Some(_)) => Tone::Warn,
        (None, _) => Tone::Bad,
    };
    let mut lines = String::new();
    let lead = if title.is_empty() { "  " } else { title };
    paragraph("", &harmless(&format!("{lead} {}", load_line.headline())), width, &mut lines);
    let lines: Vec<&str> = lines.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        match (at, line.strip_prefix(title)) {
            (0, Some(rest)) => {
                out.push_str(&paint.apply(title_tone, title));
                out.push_str(&paint.apply(tone, rest));
            }
            _ => {
                out.push_str("  ");
                out.push_str(&paint.apply(tone, line));
            }
        }
        out.push('\n');
    }
}

/// Writes the line, what it rests on and the curve; with all figures also the probes.
pub(crate) fn write(
    report: &Report,
    load_line: &LoadLineReport,
    (width, paint): (usize, Paint),
    out: &mut String,
) {
    out.push_str(&format!("\n{}\n", paint.apply(Tone::Bold, &harmless(&load_line.name))));
    // At a glance it is the same of each search.
    let shows = |(name, _): &(&str, String)| report.is_detailed() || *name != "load";
    for (name, text) in facts(report, load_line).into_iter().filter(shows) {
        paragraph(&format!("  {name:<10}"), &harmless(&text), width, out);
    }
    let curve = plot::plot(load_line, width);
    if !curve.is_empty() {
        out.push('\n');
        out.push_str(&curve);
        let line = if load_line.line.is_some() { ", | line" } else { "" };
        paragraph("  ", &format!(". p50, o p99, 9 p99.9{line}; {LATENCY}"), width, out);
    }
    if report.is_detailed() && !load_line.probes.is_empty() {
        out.push('\n');
        probes(load_line).write(paint, out);
    }
}

/// From which instant to which latencies are measured.
pub(crate) const LATENCY: &str = "latency of successes, from the intended start";

/// How many outages and commands of the user's are told one by one.
const HAPPENED_MAX: usize = 8;

/// Returns what is known of the line, by name.
pub(crate) fn facts(report: &Report, load_line: &LoadLineReport) -> Vec<(&'static str, String)> {
    let rate = |rate: f64| op_rate(OpRate(rate));
    let mut facts = vec![("load", "open loop, Poisson arrivals, one probe a stage".to_owned())];
    let line = load_line
        .basis()
        .or_else(|| load_line.no_line_because.as_ref().map(|because| format!("none: {because}")));
    facts.extend(line.map(|text| ("line", text)));
    facts.extend(load_line.excluded().map(|text| ("excluded", text)));
    facts.extend(load_line.theory().map(|text| ("theory", text)));
    if let Some(verdict) = load_line.verdict.as_ref().filter(|verdict| !verdict.is_client) {
        facts.push(("verdict", verdict.sentence.clone()));
    }
    if let Some(verdict) = &load_line.verdict {
        facts.push(("to check", verdict.experiment.clone()));
    }
    let is_client = load_line.verdict.as_ref().is_some_and(|verdict| verdict.is_client);
    let caveat = if is_client { "; the client was a limit: the store may carry more" } else { "" };
    facts.extend(load_line.knee_words().map(|text| ("knee", text + caveat)));
    let capacity = load_line.capacity_ops_per_sec;
    let succeeded = |of| format!("{} succeeded at most{caveat}", rate(of));
    facts.extend(capacity.map(|of| ("capacity", succeeded(of))));
    facts.extend(load_line.recovery().map(|text| ("overload", text)));
    let probes: Vec<&StageReport> = report.probes_of(load_line).collect();
    facts.extend(failed(&probes).map(|text| ("failed", text)));
    facts.extend(happened(report, &probes));
    facts
}

/// Returns what failed in all probes by class, with the first of it.
fn failed(probes: &[&StageReport]) -> Option<String> {
    let kinds = probes.iter().flat_map(|stage| stage.kinds());
    let all: Failures = kinds.flat_map(|(_, of)| of.figures.stage.failed.classes()).collect();
    if all.count() == 0 {
        return None;
    }
    let first = probes.iter().find_map(|stage| Some((stage, stage.errors.first()?)));
    let first = first.map_or(String::new(), |(stage, error)| {
        let name = stage_words::name(stage);
        format!("; the first, in {name}: {} {}", error.kind.name(), error.message)
    });
    Some(format!("{}{first}", ledger::by_class(&all)))
}

/// Returns what the user had done while probes went on, and where the store was away.
fn happened(report: &Report, probes: &[&StageReport]) -> Vec<(&'static str, String)> {
    let of_stage = |stage: &&StageReport| -> Vec<(&'static str, String)> {
        let stage = *stage;
        let rows = stage.rows.iter().flat_map(|row| ledger::lines(&RowView { report, stage, row }));
        let told = rows.filter(|(name, _)| ["event", "outage"].contains(name));
        told.map(|(name, text)| (name, format!("{}: {text}", stage_words::name(stage)))).collect()
    };
    let mut all: Vec<_> = probes.iter().flat_map(of_stage).collect();
    if all.len() > HAPPENED_MAX {
        let more = all.len() - HAPPENED_MAX;
        all.truncate(HAPPENED_MAX);
        all.push(("more", format!("{more} events and outages, which the JSON tells")));
    }
    all
}

/// Returns the table of the probes.
fn probes(load_line: &LoadLineReport) -> Table {
    // What 80 columns have no room for beside the other.
    let has_failed = load_line.probes.iter().any(|probe| probe.ops_failed_count > 0);
    let either = if has_failed { "failed" } else { "for" };
    let mut table =
        Table::new(&["probes", "offered/s", "achieved", either, "p50", "p99", "p99.9", "outcome"]);
    let time = |ns: Option<u64>| Cell::from(known(ns, |ns| duration(Duration::from_nanos(ns))));
    for probe in &load_line.probes {
        let tone = match probe.outcome {
            Some(ProbeOutcome::Kept) => Tone::Good,
            Some(ProbeOutcome::Missed) => Tone::Warn,
            Some(ProbeOutcome::Overloaded) => Tone::Bad,
            Some(ProbeOutcome::Cut | ProbeOutcome::Disturbed) | None => Tone::Dim,
        };
        let failed = if probe.ops_failed_count > 0 { Tone::Bad } else { Tone::Plain };
        let either = match has_failed {
            true => Cell::new(count(probe.ops_failed_count), failed),
            false => duration(Duration::from_nanos(probe.duration_ns)).into(),
        };
        let cells = [
            known(probe.offered_ops_per_sec, number).into(),
            known(probe.achieved_ops_per_sec, number).into(),
            either,
            time(probe.latency_ns_p50),
            time(probe.latency_ns_p99),
            time(probe.latency_ns_p99_9),
            Cell::new(known(probe.outcome, |outcome| outcome.to_string()), tone),
        ];
        table.row(probe.name(), Tone::Plain, cells);
    }
    table
}

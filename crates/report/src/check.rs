//! What a consistency check found: as text with the shortest proofs, and as JSON.

mod document;

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use plimsoll_analysis::history::{
    Event, HistoryOp, HistoryReport, KeyNumber, Saw, Violation, ViolationKind,
};
use plimsoll_model::{Moment, OpKind};
use serde::Serialize;

use crate::format::{UNKNOWN, bytes, count, duration, hosts};
use crate::table::{Cell, Paint, Table, Tone, harmless, paragraph};

#[cfg(feature = "schema")]
pub use document::schema;
pub use document::{SCHEMA, json};

/// The columns of a text.
const WIDTH: usize = 100;

/// A check that has ended.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// The version of the program.
    pub tool_version: String,
    /// The store's addresses.
    pub endpoints: Vec<String>,
    /// Where in the store.
    pub root: CheckRoot,
    /// What all keys began with, where they were chosen here.
    pub prefix: Option<String>,
    /// Whether it was the embedded store.
    pub embedded: bool,
    /// What fixed the choices.
    pub seed: u64,
    /// Loops that did one operation at a time.
    pub workers: u32,
    /// Threads that drove them.
    pub threads: usize,
    /// Keys in use at one time.
    pub keys: u32,
    /// Keys used in all.
    pub keys_used: u32,
    /// When the check began.
    pub started: Moment,
    /// When its last operation had ended.
    pub ended: Moment,
    /// Whether the user ended it.
    pub interrupted: bool,
    /// Whether keys were listed.
    pub lists: bool,
    /// What the history came to.
    pub history: HistoryReport,
}

/// The part of a store that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CheckRoot {
    /// A bucket.
    Bucket(String),
    /// A collection of SeaweedFS.
    Collection(String),
    /// A directory of a filer of SeaweedFS.
    Directory(String),
}

impl fmt::Display for CheckRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bucket(name) => write!(f, "bucket {name}"),
            Self::Collection(name) => write!(f, "collection {name}"),
            Self::Directory(path) => write!(f, "directory {path}"),
        }
    }
}

impl CheckReport {
    /// Returns how many operations were done, whatever came of them.
    pub fn ops_count(&self) -> u64 {
        let of = |it: &plimsoll_analysis::history::Tally| it.done + it.failed + it.out_of_range;
        self.history.ops.values().map(of).sum()
    }

    /// Returns how long the check ran.
    pub fn took(&self) -> Duration {
        self.ended.since(self.started)
    }

    /// Returns how many violations there were.
    pub fn violations_count(&self) -> u64 {
        self.history.counts.values().sum()
    }
}

/// Returns the check as text.
pub fn text(report: &CheckReport, color: bool) -> String {
    let paint = Paint { color };
    let mut out = headline(report, paint);
    out.push('\n');
    paragraph("target      ", &target(report), WIDTH, &mut out);
    paragraph("load        ", &load(report), WIDTH, &mut out);
    let kept = count(report.history.kept_count_max as u64);
    let judged = count(report.history.judged_count);
    let listings = if report.lists { ", each key of a listing as one" } else { "" };
    let note = format!("{judged} answers of reads{listings}; at most {kept} operations kept");
    paragraph("judged      ", &note, WIDTH, &mut out);
    out.push('\n');
    operations(report, paint, &mut out);
    violations(report, paint, &mut out);
    out
}

fn headline(report: &CheckReport, paint: Paint) -> String {
    let found = match report.violations_count() {
        0 => paint.apply(Tone::Good, "no violation found"),
        1 => paint.apply(Tone::Bad, "1 VIOLATION"),
        many => paint.apply(Tone::Bad, &format!("{} VIOLATIONS", count(many))),
    };
    let took = report.took();
    let stopped = if report.interrupted { ", stopped by the user" } else { "" };
    let ops = count(report.ops_count());
    format!("check: {found} in {ops} operations in {}{stopped}\n", duration(took))
}

fn target(report: &CheckReport) -> String {
    let hosts = hosts(&report.endpoints);
    let embedded = if report.embedded { " (embedded store)" } else { "" };
    let CheckReport { root, prefix, .. } = report;
    let prefix = prefix.as_ref().map(|prefix| format!(", prefix {prefix}")).unwrap_or_default();
    harmless(&format!("{hosts}{embedded}, {root}{prefix}"))
}

fn load(report: &CheckReport) -> String {
    let CheckReport { workers, threads, keys, keys_used, seed, .. } = report;
    let plural = if *threads == 1 { "" } else { "s" };
    let replaced = match keys_used - keys {
        0 => String::new(),
        some => format!(" ({some} replaced, as too many of their writes had an unknown outcome)"),
    };
    format!("{workers} workers on {threads} thread{plural}, {keys} keys{replaced}, seed {seed}")
}

fn operations(report: &CheckReport, paint: Paint, out: &mut String) {
    let mut table = Table::new(&["operations", "done", "out of range", "failed"]);
    for (kind, tally) in &report.history.ops {
        let tone = if tally.failed > 0 { Tone::Warn } else { Tone::Plain };
        let cells = [count(tally.done), count(tally.out_of_range), count(tally.failed)];
        let [done, out_of_range, failed] = cells;
        let cells = [done.into(), out_of_range.into(), Cell::new(failed, tone)];
        table.row(kind.name(), Tone::Plain, cells);
    }
    table.write(paint, out);
    for (class, failures) in &report.history.failures {
        let name = class.name();
        out.push_str(&format!("  failed      {} × {name}\n", count(*failures)));
    }
}

fn violations(report: &CheckReport, paint: Paint, out: &mut String) {
    if report.violations_count() == 0 {
        return;
    }
    out.push('\n');
    let mut table = Table::new(&["violations", "count"]);
    for (kind, number) in &report.history.counts {
        table.row(kind.name(), Tone::Bad, [count(*number).into()]);
    }
    table.write(paint, out);
    for (number, violation) in (1..).zip(&report.history.violations) {
        out.push('\n');
        one(number, violation, report.started, paint, out);
    }
    let shown = report.history.violations.len() as u64;
    if shown < report.violations_count() {
        let rest = count(report.violations_count() - shown);
        out.push_str(&format!("\nand {rest} more; `show` sets how many are shown\n"));
    }
}

fn one(number: u64, violation: &Violation, started: Moment, paint: Paint, out: &mut String) {
    let Violation { kind, key, proof, repeats_count } = violation;
    let name = paint.apply(Tone::Bad, kind.name());
    let key_name = match key {
        Ok(key) => key.to_string(),
        Err(name) => format!("`{}`", harmless(name)),
    };
    let base = proof.first().map_or(started, |event| event.begin);
    let after = duration(base.since(started));
    out.push_str(&format!("{number}. {name} of {key_name}, {after} after the start\n"));
    paragraph("   ", sentence(violation), WIDTH, out);
    let rows: Vec<[String; 4]> = proof
        .iter()
        .map(|event| {
            let end = event.end.map(|end| millis(end, base));
            let moments = format!(
                "{} to {} ms",
                millis(event.begin, base),
                end.unwrap_or_else(|| UNKNOWN.to_owned())
            );
            let asked = asked(event);
            [moments, format!("w{}", event.worker.0), asked, told(event, key.as_ref().ok())]
        })
        .collect();
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let (moments, worker, op) = (width(0), width(1), width(2));
    for [when, who, what, answer] in &rows {
        let line = format!("   {when:>moments$}  {who:<worker$}  {what:<op$}  {answer}");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    if *repeats_count > 0 {
        out.push_str(&format!("   and {} more reads showed the same\n", count(*repeats_count)));
    }
}

/// Returns what is wrong, in words.
fn sentence(violation: &Violation) -> &'static str {
    match violation.kind {
        ViolationKind::ListGhost if violation.key.is_err() => {
            "the listing holds a key that was never written"
        }
        ViolationKind::Content(_) => "a read returned content that was never written to the key",
        ViolationKind::StaleRead => "the last read returned an older state than was certain",
        ViolationKind::LostWrite => "a write was acknowledged, and no read found it again",
        ViolationKind::ResurrectedDelete => {
            "a removal was acknowledged, and the object still exists"
        }
        ViolationKind::ListOmission => "the listing lacks a key that was certainly there",
        ViolationKind::ListGhost => "the listing holds a key that was certainly not there",
        ViolationKind::ListStale => "the listing gives the size of an older version",
        ViolationKind::WrongSize => "a size is stated that no version of the key had",
    }
}

/// Returns milliseconds after `base`.
fn millis(moment: Moment, base: Moment) -> String {
    let after = |early: Moment, late: Moment| late.since(early).as_secs_f64() * 1_000.0;
    let signed = if moment < base { -after(moment, base) } else { after(base, moment) };
    format!("{signed:.3}")
}

fn asked(event: &Event) -> String {
    let name = event.op.kind().name();
    match event.op {
        HistoryOp::Put(value, size) => {
            format!("{name} w{}#{} ({})", value.writer.0, value.number, bytes(size))
        }
        HistoryOp::Get(_, Some((offset, len))) => {
            format!("{name} bytes {offset} to {}", offset + len - 1)
        }
        _ => name.to_owned(),
    }
}

/// Returns what was told; a value of another key than `key` is named with its key.
fn told(event: &Event, key: Option<&KeyNumber>) -> String {
    let named = |value: plimsoll_analysis::history::ValueId| match key {
        Some(key) if *key == value.key => format!("w{}#{}", value.writer.0, value.number),
        _ => value.to_string(),
    };
    let is_list = event.op.kind() == OpKind::List;
    match event.saw {
        Saw::Pending => "not yet answered".to_owned(),
        Saw::Done => "done".to_owned(),
        Saw::Failed(class) => format!("failed ({}), outcome unknown", class.name()),
        Saw::Value(value) => format!("gave {}", named(value)),
        Saw::Present(Some(size)) if is_list => format!("listed it with {size} B"),
        Saw::Present(Some(size)) => format!("gave {size} B"),
        Saw::Present(None) if is_list => "listed it".to_owned(),
        Saw::Present(None) => "found it".to_owned(),
        Saw::Absent if is_list => "did not list it".to_owned(),
        Saw::Absent => "found nothing (404)".to_owned(),
        Saw::Wrong(wrong) => {
            let of = wrong.value.map(|value| format!(", traces of {}", named(value)));
            let of = of.unwrap_or_default();
            format!("gave {} content from byte {}{of}", wrong.kind.name(), wrong.at)
        }
    }
}

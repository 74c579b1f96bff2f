//! The figures of a stage for tools that print one report of each, and the table below these
//! reports with what such a tool leaves out.

use std::time::Duration;

use plimsoll_model::{ErrorClass, OpKind, SeriesKey};
use plimsoll_report::format::{count, duration, known};
use plimsoll_report::table::{Cell, Paint, Table};
use plimsoll_stats::{Histogram, Total, Totals};

/// The percentiles of the table, in percent.
const PERCENTS: [f64; 4] = [50.0, 90.0, 99.0, 99.9];

/// The sums of a stage.
pub(crate) struct Sums {
    /// Operations that succeeded.
    pub(crate) ops_ok: u64,
    /// Content bytes that these moved.
    pub(crate) bytes: u64,
    /// Entries that these listed.
    pub(crate) rows: u64,
    /// Operations that failed, by class, without zeros.
    pub(crate) failed: Vec<(ErrorClass, u64)>,
    /// Latencies of the operations that succeeded, in nanoseconds.
    pub(crate) latency: Histogram,
}

impl Sums {
    /// Returns those of the operations of some kinds.
    pub(crate) fn of(totals: &Totals<SeriesKey>, takes: impl Fn(OpKind) -> bool) -> Self {
        let (mut bytes, mut rows_micro, mut latency) = (0, 0, Histogram::new());
        let mut ended = [0; ErrorClass::ALL.len()];
        for (key, Total { cell, times }) in totals.iter().filter(|(key, _)| takes(key.kind)) {
            bytes += cell.bytes;
            rows_micro += if key.kind == OpKind::List { cell.objects_micro } else { 0 };
            ended.iter_mut().zip(cell.ended).for_each(|(sum, count)| *sum += count);
            latency.merge_compact(&times.latency);
        }
        let is_failure = |(class, count): &(ErrorClass, u64)| !class.is_ok() && *count > 0;
        let failed = ErrorClass::ALL.map(|class| (class, ended[class as usize]));
        Self {
            ops_ok: ended[ErrorClass::Ok as usize],
            bytes,
            rows: rows_micro / 1_000_000,
            failed: failed.into_iter().filter(is_failure).collect(),
            latency,
        }
    }
}

/// Returns how many operations failed.
pub(crate) fn failed_count(failed: &[(ErrorClass, u64)]) -> u64 {
    failed.iter().map(|(_, count)| count).sum()
}

/// Returns the cells of a row: these counts, then percentiles and the largest of the latencies.
pub(crate) fn cells(counts: &[u64], latency: &Histogram) -> Vec<Cell> {
    let times = plimsoll_analysis::Times::of(latency, false);
    let time = |time: Option<Duration>| known(time, duration);
    let mut cells: Vec<String> = counts.iter().copied().map(count).collect();
    cells.extend(PERCENTS.map(|percent| time(times.percentile(percent))));
    cells.push(time(latency.max().map(Duration::from_nanos)));
    cells.into_iter().map(Cell::from).collect()
}

/// Returns the line that says what failed of a stage; empty where nothing did.
pub(crate) fn failed_line(label: &str, failed: &[(ErrorClass, u64)]) -> String {
    if failed.is_empty() {
        return String::new();
    }
    let class = |(class, times): &(ErrorClass, u64)| format!("{} {}", count(*times), class.name());
    let classes: Vec<String> = failed.iter().map(class).collect();
    format!("failed    {label}: {}\n", classes.join(", "))
}

/// Returns the table with the lines of what failed below it, behind an empty line.
pub(crate) fn below(table: &Table, failed_lines: &str) -> String {
    let mut out = String::from("\n");
    table.write(Paint { color: false }, &mut out);
    if !failed_lines.is_empty() {
        out.push('\n');
        out.push_str(failed_lines);
    }
    out
}

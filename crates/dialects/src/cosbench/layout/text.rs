//! The table that COSBench's pages show of a workload, as text.

use plimsoll_report::table::{Cell, Paint, Table, Tone, harmless};

use super::Archive;
use super::number::{NOTHING, number, ratio};

/// Returns the general report as two tables, each narrow enough for a terminal: what was done, a
/// row for each operation of each stage, and how fast, where anything was.
pub fn summary_table(archive: &Archive) -> String {
    let mut done =
        Table::new(&["Stage", "Op-Type", "Op-Count", "Byte-Count", "Succ-Ratio", "State"]);
    let mut fast =
        Table::new(&["Stage", "Op-Type", "Avg-ResTime", "Avg-ProcTime", "Throughput", "Bandwidth"]);
    let mut is_fast_empty = true;
    for stage in &archive.stages {
        let state = stage.state();
        if stage.metrics.is_empty() {
            let cells = [NOTHING, NOTHING, NOTHING, NOTHING, state].map(Cell::from);
            done.row(&harmless(&stage.name), Tone::Plain, cells);
        }
        for metric in &stage.metrics {
            let (id, op, of) = (harmless(&stage.id), harmless(&metric.shown()), &metric.figures);
            let counts = [
                scaled(of.ops as f64, ["ops", "kops", "Mops", "Gops"]),
                scaled(of.bytes as f64, ["B", "KB", "MB", "GB"]),
                ratio(of.ops, of.samples),
                state.to_owned(),
            ];
            done.row(&id, Tone::Plain, [op.clone()].into_iter().chain(counts).map(Cell::from));
            if of.ops > 0 {
                is_fast_empty = false;
                let speeds = [
                    time(of.response_ms),
                    time(of.processing_ms),
                    scaled(of.throughput, ["op/s", "kop/s", "Mop/s", "Gop/s"]),
                    scaled(of.bandwidth, ["B/S", "KB/S", "MB/S", "GB/S"]),
                ];
                fast.row(&id, Tone::Plain, [op].into_iter().chain(speeds).map(Cell::from));
            }
        }
    }
    let mut out = String::new();
    done.write(Paint { color: false }, &mut out);
    if !is_fast_empty {
        out.push('\n');
        fast.write(Paint { color: false }, &mut out);
    }
    out
}

/// Returns a time in ms, or in µs where two digits behind the point would say little.
fn time(ms: Option<f64>) -> String {
    match ms.filter(|ms| *ms > 0.0) {
        Some(ms) if ms < 1.0 => format!("{} µs", number(ms * 1_000.0)),
        Some(ms) => format!("{} ms", number(ms)),
        None => NOTHING.to_owned(),
    }
}

/// Returns a number in the largest unit that leaves 1 before the point; each has 1,000 of the one
/// before.
fn scaled(value: f64, units: [&str; 4]) -> String {
    let (mut value, mut unit) = (value, 0);
    while value >= 1_000.0 && unit + 1 < units.len() {
        value /= 1_000.0;
        unit += 1;
    }
    format!("{} {}", number(value), units[unit])
}

//! The table that COSBench's pages show of a workload, as text.

use plimsoll_report::table::{Cell, Paint, Table, Tone, harmless};

use super::number::{NOTHING, number, ratio};
use super::{Archive, Figures};

/// Returns the general report: a row for each operation of each stage.
pub fn summary_table(archive: &Archive) -> String {
    let heading = [
        "Stage",
        "Op-Type",
        "Op-Count",
        "Byte-Count",
        "Avg-ResTime",
        "Avg-ProcTime",
        "Throughput",
        "Bandwidth",
        "Succ-Ratio",
        "State",
    ];
    let mut table = Table::new(&heading);
    for stage in &archive.stages {
        if stage.metrics.is_empty() {
            let nothing = [NOTHING; 8].map(Cell::from).into_iter();
            let cells = nothing.chain([Cell::from(stage.state())]);
            table.row(&harmless(&stage.name), Tone::Plain, cells);
        }
        for metric in &stage.metrics {
            let mut cells = vec![Cell::from(harmless(&metric.shown()))];
            cells.extend(figures(&metric.figures).map(Cell::from));
            cells.push(Cell::from(stage.state()));
            table.row(&harmless(&stage.id), Tone::Plain, cells);
        }
    }
    let mut out = String::new();
    table.write(Paint { color: false }, &mut out);
    out
}

fn figures(of: &Figures) -> [String; 7] {
    let ms = |time: Option<f64>| match time.filter(|ms| *ms > 0.0) {
        Some(time) => format!("{} ms", number(time)),
        None => NOTHING.to_owned(),
    };
    [
        scaled(of.ops as f64, ["ops", "kops", "Mops", "Gops"]),
        scaled(of.bytes as f64, ["B", "KB", "MB", "GB"]),
        ms(of.response_ms),
        ms(of.processing_ms),
        format!("{} op/s", number(of.throughput)),
        scaled(of.bandwidth, ["B/S", "KB/S", "MB/S", "GB/S"]),
        ratio(of.ops, of.samples),
    ]
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

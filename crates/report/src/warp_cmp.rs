//! A comparison in the layout of warp's own `cmp`, with right values.
//!
//! warp subtracts the median before from the average after; here averages go with averages.

use std::fmt::Write;
use std::time::Duration;

use plimsoll_analysis::compare::{
    Comparison, Difference, KindComparison, Metric, Presence, Row, Unit,
};

use crate::compare::kind_name;
use crate::format::UNKNOWN;
use crate::table::harmless;
use crate::warp::words::go_duration;

const MIB: f64 = (1u64 << 20) as f64;

/// Returns the comparison as text that ends with a line feed; `differences` stand below each
/// operation.
pub fn text(comparison: &Comparison, differences: &[Difference]) -> String {
    let mut out = String::new();
    for kind in &comparison.kinds {
        out.push_str("-------------------\n");
        out.push_str(&format!("Operation: {}\n", kind_name(kind.kind)));
        match kind.presence {
            Presence::Both => write_kind(kind, differences, &mut out),
            Presence::BeforeOnly => out.push_str("Only in the first recording\n"),
            Presence::AfterOnly => out.push_str("Only in the second recording\n"),
        }
    }
    out
}

fn write_kind(kind: &KindComparison, differences: &[Difference], out: &mut String) {
    let count = |operations: Option<u64>| {
        operations.map_or_else(|| UNKNOWN.to_owned(), |count| count.to_string())
    };
    let (before, after) = (count(kind.operations_before), count(kind.operations_after));
    if before != after {
        out.push_str(&format!("Operations: {before} -> {after}\n"));
    }
    for difference in differences {
        let side = |values: &[String]| {
            let text = if values.is_empty() { UNKNOWN.to_owned() } else { values.join(", ") };
            harmless(&text)
        };
        let (before, after) = (side(&difference.before), side(&difference.after));
        out.push_str(&format!("{}: {before} -> {after}\n", harmless(&difference.name)));
    }
    rate_line("Average", [Metric::Throughput, Metric::Objects], kind, out);
    let latency =
        [Metric::Mean, Metric::P50, Metric::P99, Metric::Min, Metric::Max, Metric::StdDev];
    time_line("Requests", latency, kind, out);
    let ttfb = [
        Metric::TtfbMean,
        Metric::TtfbP50,
        Metric::TtfbP99,
        Metric::TtfbMin,
        Metric::TtfbMax,
        Metric::TtfbStdDev,
    ];
    time_line("TTFB", ttfb, kind, out);
    rate_line("Fastest", [Metric::Fastest, Metric::FastestObjects], kind, out);
    rate_line("50% Median", [Metric::Median, Metric::MedianObjects], kind, out);
    rate_line("Slowest", [Metric::Slowest, Metric::SlowestObjects], kind, out);
}

/// Writes how bytes, where they move, and objects per second changed.
fn rate_line(name: &str, metrics: [Metric; 2], kind: &KindComparison, out: &mut String) {
    let rows = metrics.iter().filter_map(|metric| kind.row(*metric));
    let parts: Vec<String> = rows.filter_map(rate_change).collect();
    if !parts.is_empty() {
        out.push_str(&format!("* {name}: {}\n", parts.join(", ")));
    }
}

fn rate_change(row: &Row) -> Option<String> {
    let change = row.absolute?;
    let percent =
        row.percent.map_or_else(|| UNKNOWN.to_owned(), |percent| format!("{percent:+.2}%"));
    Some(match row.metric.unit() {
        Unit::BytesPerSec => format!("{percent} ({:+.1} MiB/s) throughput", change / MIB),
        _ => format!("{percent} ({change:+.1}) obj/s"),
    })
}

/// Writes how average, median, 99th percentile, extremes and deviation of a time changed.
fn time_line(name: &str, metrics: [Metric; 6], kind: &KindComparison, out: &mut String) {
    if metrics.iter().all(|metric| kind.row(*metric).is_none()) {
        return;
    }
    let [avg, p50, p99, best, worst, std_dev] = metrics.map(|metric| time_change(kind.row(metric)));
    // warp has no comma before the last.
    writeln!(
        out,
        "* {name}: Avg: {avg}, P50: {p50}, P99: {p99}, Best: {best}, Worst: {worst} StdDev: \
         {std_dev}"
    )
    .expect("text takes what is written to it");
}

fn time_change(row: Option<&Row>) -> String {
    let Some((row, change)) = row.and_then(|row| Some((row, row.absolute?))) else {
        return UNKNOWN.to_owned();
    };
    let ns = change.round();
    let sign = |value: f64| match value {
        0.0 => "",
        value if value < 0.0 => "-",
        _ => "+",
    };
    let time = go_duration(Duration::from_nanos(ns.abs() as u64), 1);
    let percent = row
        .percent
        .map_or_else(|| UNKNOWN.to_owned(), |percent| format!("{}{:.0}%", sign(ns), percent.abs()));
    format!("{}{time} ({percent})", sign(ns))
}

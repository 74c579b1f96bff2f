//! A comparison in the layout of warp's own `cmp`, with right values.
//!
//! warp subtracts the median before from the average after; here averages go with averages.

use std::fmt::Write;
use std::time::Duration;

use plimsoll_analysis::compare::{
    Comparison, Difference, KindComparison, Metric, Presence, Row, Unit,
};
use plimsoll_report::compare::kind_name;
use plimsoll_report::format::UNKNOWN;
use plimsoll_report::table::harmless;

use super::layout::words::go_duration;

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

#[cfg(test)]
mod tests {
    use plimsoll_analysis::compare::{KindFigures, RunFigures, compare, differing};
    use plimsoll_model::OpKind;

    use super::*;

    const MS: f64 = 1e6;

    #[test]
    fn the_layout_of_warp() {
        // The figures of warp's own reports on get-default and get-default-b, whose `cmp` is in
        // testdata/warp/cmp-samples.txt; the average before is put so that 24 % are lost, as
        // printed.
        let figures = |after: bool| {
            let pick = |before: f64, change: f64| if after { before + change } else { before };
            let mut of = KindFigures::new(Some(OpKind::Get), true);
            of.operations = Some(if after { 19_253 } else { 9_277 });
            for (metric, value) in [
                (Metric::Throughput, pick(14.48 * MIB, 15.6 * MIB)),
                (Metric::Objects, pick(926.5, 998.1)),
                (Metric::Mean, pick(8.5 * MS, -2.0 * MS)),
                (Metric::P50, pick(4.2 * MS, 0.3 * MS)),
                (Metric::P99, pick(84.1 * MS, -22.7 * MS)),
                (Metric::Min, 0.3 * MS),
                (Metric::Max, pick(172.0 * MS, -70.5 * MS)),
                (Metric::StdDev, pick(15.2 * MS, -4.7 * MS)),
                (Metric::TtfbP50, pick(3_796_835.0, 645_462.0)),
                (Metric::TtfbMin, pick(300_000.0, 260.0)),
                (Metric::SlowestObjects, pick(511.2, 737.7)),
            ] {
                of.set(metric, Some(value));
            }
            RunFigures { name: String::new(), kinds: vec![of] }
        };
        let side = |concurrency: &str| vec![("concurrency".to_owned(), concurrency.to_owned())];
        let differences = differing(&[side("8")], &[side("16")]);
        let text = text(&compare(&[figures(false)], &[figures(true)]), &differences);
        let expected = [
            "-------------------",
            "Operation: GET",
            "Operations: 9277 -> 19253",
            "concurrency: 8 -> 16",
            "* Average: +107.73% (+15.6 MiB/s) throughput, +107.73% (+998.1) obj/s",
            "* Requests: Avg: -2ms (-24%), P50: +300µs (+7%), P99: -22.7ms (-27%), Best: 0s (0%), \
             Worst: -70.5ms (-41%) StdDev: -4.7ms (-31%)",
            "* TTFB: Avg: –, P50: +645.462µs (+17%), P99: –, Best: +260ns (+0%), Worst: – StdDev: –",
            "* Slowest: +144.31% (+737.7) obj/s",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }
}

//! A comparison in the layout of warp's own `cmp`, with right values.
//!
//! warp subtracts the median before from the average after; here averages go with averages. And it
//! compares averages over the whole run; here they are those of its reports.

use std::time::Duration;

use plimsoll_analysis::compare::{
    Comparison, Difference, KindComparison, KindFigures, Metric, Presence, Row, RunFigures, Unit,
};
use plimsoll_foreign::warp::aggregated::{Aggregate, Aggregated};
use plimsoll_model::OpKind;
use plimsoll_report::compare::kind_name;
use plimsoll_report::format::UNKNOWN;
use plimsoll_report::table::harmless;

use super::layout::words::{PICKS, figures, go_duration};
use super::report::{Requests, per_second, segments};

const MIB: f64 = (1u64 << 20) as f64;

/// The average, and what is picked of the segments: bytes and objects per second.
const AVERAGE: [Metric; 2] = [Metric::Throughput, Metric::Objects];
const PICKED: [[Metric; 2]; 3] = [
    [Metric::Fastest, Metric::FastestObjects],
    [Metric::Median, Metric::MedianObjects],
    [Metric::Slowest, Metric::SlowestObjects],
];
/// Average, median, 99th percentile, extremes and deviation of times.
const REQUESTS: [Metric; 6] =
    [Metric::Mean, Metric::P50, Metric::P99, Metric::Min, Metric::Max, Metric::StdDev];
const TTFB: [Metric; 6] = [
    Metric::TtfbMean,
    Metric::TtfbP50,
    Metric::TtfbP99,
    Metric::TtfbMin,
    Metric::TtfbMax,
    Metric::TtfbStdDev,
];

/// Returns the figures that warp's report has of a document, or of one type of operation in it.
/// Where operations failed, warp compares nothing: they are in all its figures.
pub fn of_document(name: &str, document: &Aggregated, only: Option<OpKind>) -> RunFigures {
    let kinds = document.by_op_type.iter();
    let kinds = kinds.filter_map(|(name, of)| Some((OpKind::from_name(name)?, of)));
    let kinds = kinds.filter(|(kind, _)| only.is_none_or(|only| *kind == only));
    RunFigures { name: name.to_owned(), kinds: kinds.map(|(kind, of)| of_kind(kind, of)).collect() }
}

fn of_kind(kind: OpKind, of: &Aggregate) -> KindFigures {
    let mut figures = KindFigures::new(Some(kind), kind.moves_bytes());
    figures.operations = of.total_requests;
    if of.total_errors != Some(0) {
        return figures;
    }
    if let Some((throughput, segmented)) = segments(of) {
        let mut set = |metrics: [Metric; 2], bytes: Option<f64>, objects| {
            figures.set(metrics[0], bytes.filter(|_| kind.moves_bytes()));
            figures.set(metrics[1], objects);
        };
        let [bytes, objects] = per_second(throughput).map(Some);
        set(AVERAGE, bytes, objects);
        let [fastest, median, slowest] = PICKED;
        set(fastest, segmented.fastest_bps, segmented.fastest_ops);
        set(median, segmented.median_bps, segmented.median_ops);
        set(slowest, segmented.slowest_bps, segmented.slowest_ops);
    }
    let mut set = |metrics: [Metric; 6], millis: [f64; 6]| {
        for (metric, millis) in metrics.into_iter().zip(millis) {
            // In whole nanoseconds, as warp has them.
            figures.set(metric, Some((millis * 1e6).trunc()));
        }
    };
    if let Some(requests) = Requests::of(of.requests_by_client.values().flatten()) {
        let [mean, p50, _, p99, least, greatest, std_dev] = requests.times;
        set(REQUESTS, [mean, p50, p99, least, greatest, std_dev]);
        if let Some([mean, least, _, p50, _, _, p99, greatest, std_dev]) = requests.first_byte {
            set(TTFB, [mean, p50, p99, least, greatest, std_dev]);
        }
    }
    figures
}

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
    rate_line("Average", AVERAGE, kind, out);
    time_line("Requests", REQUESTS, kind, out);
    time_line("TTFB", TTFB, kind, out);
    for (name, metrics) in PICKS.into_iter().zip(PICKED) {
        rate_line(name, metrics, kind, out);
    }
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
    // warp has no comma before the last.
    let heads = ["Avg: ", ", P50: ", ", P99: ", ", Best: ", ", Worst: ", " StdDev: "];
    let changes = figures(&heads, metrics, |metric| time_change(kind.row(metric)));
    out.push_str(&format!("* {name}: {changes}\n"));
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
    #![allow(clippy::disallowed_methods, reason = "tests read committed files")]

    use plimsoll_analysis::compare::{compare, differing};
    use plimsoll_foreign::warp::aggregated::read;

    use super::super::layout::tests::{path, printed};
    use super::*;

    #[test]
    fn two_documents_are_compared_as_warp_compared_them() {
        let side = |name: &str| {
            let file = std::fs::File::open(path(&format!("{name}.json.zst"))).unwrap();
            [of_document(name, &read(file).unwrap(), None)]
        };
        let flags = |concurrency: &str| vec![("concurrency".to_owned(), concurrency.to_owned())];
        let differences = differing(&[flags("8")], &[flags("16")]);
        let comparison = compare(&side("get-default"), &side("get-default-b"));
        let ours = text(&comparison, &differences);
        let samples = printed("cmp-samples");
        let (_, of_warp) = samples.split_once("get-default-b.json.zst\n").unwrap();
        let (of_warp, _) = of_warp.split_once("[exit status").unwrap();
        let line = |line: &str| match line.split_once(": ").unwrap_or_default().0 {
            "Operations" => format!("{line}\nconcurrency: 8 -> 16\n"),
            // warp's is over the whole run.
            "* Average" => {
                "* Average: +92.73% (+14.9 MiB/s) throughput, +92.73% (+952.5) obj/s\n".to_owned()
            }
            // warp rounds these to tenths of milliseconds, and takes the median before from the
            // average after. Cut to whole nanoseconds as in its `TTFB`, a median of 4.677812 ms
            // that is the mean of two windows' may be one less.
            "* Requests" => "* Requests: Avg: -2.513728ms (-24%), P50: +290.923µs (+7%), P99: \
                             -22.685185ms (-27%), Best: -471ns (-0%), Worst: -70.469605ms (-41%) \
                             StdDev: -4.743237ms (-31%)\n"
                .to_owned(),
            "* TTFB" => format!("{}\n", line.replace("Avg: -1.5ms", "Avg: -1.522223ms")),
            _ => format!("{line}\n"),
        };
        assert_eq!(ours, of_warp.lines().map(line).collect::<String>());
    }

    #[test]
    fn what_is_not_known_has_a_dash() {
        let mut figures = KindFigures::new(Some(OpKind::Get), true);
        figures.set(Metric::Min, Some(3e5));
        let side = [RunFigures { name: String::new(), kinds: vec![figures] }];
        let expected = "-------------------\nOperation: GET\n* Requests: Avg: –, P50: –, P99: –, \
                        Best: 0s (0%), Worst: – StdDev: –\n";
        assert_eq!(text(&compare(&side, &side), &[]), expected);
    }
}

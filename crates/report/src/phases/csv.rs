//! One line for each kind of operation in each row of each stage, for tables and spreadsheets.

use std::time::Duration;

use plimsoll_analysis::phases::KindFigures;
use plimsoll_model::Interface;

use super::{PhaseReport, PhaseRow, PhasesReport};
use crate::format::inert_cell;
use crate::segments::quoted;
use crate::table::harmless;

/// The names of the columns, in their order.
pub const COLUMNS: [&str; 35] = [
    "phase",
    "iteration_index",
    "is_result",
    "row",
    "work",
    "block",
    "workers_count",
    "depth",
    "direct",
    "interface",
    "caches",
    "kind",
    "ops_ok_count",
    "ops_failed_count",
    "bytes",
    "measured_ns",
    "ops_per_sec",
    "bytes_per_sec",
    "latency_ns_min",
    "latency_ns_mean",
    "latency_ns_p50",
    "latency_ns_p90",
    "latency_ns_p95",
    "latency_ns_p99",
    "latency_ns_p99_5",
    "latency_ns_p99_9",
    "latency_ns_p99_95",
    "latency_ns_p99_99",
    "latency_ns_max",
    "latency_ns_std_dev",
    "first_done_ns",
    "first_done_ops_per_sec",
    "last_done_ns",
    "client_cpu_ns",
    "clients_count",
];

/// Returns the lines, the columns' names first; unknown is empty.
pub fn render(report: &PhasesReport) -> String {
    let mut out = COLUMNS.join(",") + "\n";
    for phase in &report.phases {
        for (row, kind) in phase.kinds() {
            out += &fields(phase, row, kind).map(quoted).join(",");
            out.push('\n');
        }
    }
    out
}

fn fields(phase: &PhaseReport, row: &PhaseRow, kind: &KindFigures) -> [String; COLUMNS.len()] {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let time =
        |time: Option<Duration>| time.map_or(String::new(), |time| time.as_nanos().to_string());
    let latency = &kind.latency;
    let percentile = |percent: f64| time(latency.percentile(percent));
    let cell = |text: &str| inert_cell(&harmless(text)).into_owned();
    let text = |text: Option<&str>| text.map(cell).unwrap_or_default();
    [
        cell(&phase.name),
        phase.iteration.to_string(),
        phase.is_result.to_string(),
        cell(&row.name),
        cell(&row.work),
        text(row.block.as_deref()),
        row.workers.to_string(),
        row.depth.map_or(String::new(), |depth| depth.to_string()),
        row.direct.to_string(),
        text(row.interface.map(Interface::name)),
        row.caches.name().to_owned(),
        kind.kind.name().to_owned(),
        kind.ops_ok.to_string(),
        kind.failed.count().to_string(),
        kind.bytes.to_string(),
        time(Some(kind.took)),
        number(kind.ops_per_sec),
        number(kind.bytes_per_sec),
        time(latency.min()),
        time(latency.mean()),
        percentile(50.0),
        percentile(90.0),
        percentile(95.0),
        percentile(99.0),
        percentile(99.5),
        percentile(99.9),
        percentile(99.95),
        percentile(99.99),
        time(latency.max()),
        time(latency.std_dev()),
        time(kind.first_done.map(|done| done.after)),
        number(kind.first_done.and_then(|done| done.ops_per_sec)),
        time(kind.last_done.map(|done| done.after)),
        time(phase.cpu),
        row.figures.clients_count().to_string(),
    ]
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;

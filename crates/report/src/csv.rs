//! One line for each kind of operation in each row of each stage, for tables and spreadsheets.

use std::time::Duration;

use plimsoll_analysis::KindAnalysis;
use plimsoll_model::{CacheState, Interface};

use crate::format::inert_cell;
use crate::segments::quoted;
use crate::stage_words::{bytes_per_sec, numbered_title, ops_per_sec};
use crate::table::harmless;
use crate::{Report, RowReport, StageReport};

/// The names of the columns, in their order.
pub const COLUMNS: [&str; 35] = [
    "stage",
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
pub fn render(report: &Report) -> String {
    let mut out = COLUMNS.join(",") + "\n";
    for stage in &report.stages {
        for (row, kind) in stage.kinds() {
            out += &fields(stage, row, kind).map(quoted).join(",");
            out.push('\n');
        }
    }
    out
}

fn fields(stage: &StageReport, row: &RowReport, kind: &KindAnalysis) -> [String; COLUMNS.len()] {
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let time =
        |time: Option<Duration>| time.map_or(String::new(), |time| time.as_nanos().to_string());
    let latency = &kind.figures.latency;
    let percentile = |percent: f64| time(latency.percentile(percent));
    let cell = |text: &str| inert_cell(&harmless(text)).into_owned();
    let text = |text: Option<&str>| text.map(cell).unwrap_or_default();
    [
        cell(&numbered_title(&stage.name, stage.number_of_title)),
        stage.iteration.to_string(),
        stage.is_result.to_string(),
        cell(&row.name),
        text(row.work().as_deref()),
        text(row.block.as_deref()),
        row.analysis.workers_count.to_string(),
        row.depth.map_or(String::new(), |depth| depth.to_string()),
        row.direct.to_string(),
        text(row.interface.map(Interface::name)),
        text(row.caches.map(CacheState::name)),
        kind.kind.name().to_owned(),
        kind.figures.stage.ops_ok.to_string(),
        kind.figures.stage.failed.count().to_string(),
        kind.figures.stage.bytes.to_string(),
        time(row.analysis.took()),
        number(ops_per_sec(kind)),
        number(bytes_per_sec(kind)),
        time(latency.min),
        time(latency.mean),
        percentile(50.0),
        percentile(90.0),
        percentile(95.0),
        percentile(99.0),
        percentile(99.5),
        percentile(99.9),
        percentile(99.95),
        percentile(99.99),
        time(latency.max),
        time(latency.std_dev),
        time(kind.figures.first_done.map(|done| done.after)),
        number(kind.figures.first_done.and_then(|done| done.ops_per_sec)),
        time(kind.figures.last_done.map(|done| done.after)),
        time(stage.cpu),
        row.analysis.clients.len().to_string(),
    ]
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;

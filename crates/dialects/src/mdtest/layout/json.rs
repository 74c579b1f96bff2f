//! The report for programs: one JSON object, `plimsoll.mdtest/1`. Times are integers of
//! nanoseconds, unknown is null.

use std::time::Duration;

use plimsoll_stats::Histogram;
#[cfg(feature = "schema")]
use schemars::generate::SchemaSettings;
use serde::Serialize;

use super::{MdtestReport, MdtestRow, MdtestStep, Summary};

/// The name and version of the format; a field that changes its meaning gets a new one.
pub const SCHEMA: &str = "plimsoll.mdtest/1";

/// A run of mdtest's steps.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Document<'a> {
    /// Always `plimsoll.mdtest/1`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The version of the program.
    tool_version: &'a str,
    run_id: Option<&'a str>,
    /// The words of the command line.
    command: &'a [String],
    /// When the run began, in words.
    started: &'a str,
    /// When it had ended, in words.
    ended: &'a str,
    ranks_count: u32,
    /// The clients that the ranks ran on.
    clients: &'a [String],
    /// Where the entries were.
    path: &'a str,
    /// As it was before the run.
    file_system: Option<FileSystem>,
    /// By how many ranks each step was moved on (`-N`).
    shift: u32,
    /// How many entries each iteration made, in words.
    entries: &'a str,
    iterations_count: u32,
    failed_count: u64,
    /// Whether it is excluded that what a client kept of the entries answered; null where no step
    /// worked on what another had made, or where it is not known.
    caching_excluded: Option<bool>,
    rows: Vec<Row<'a>>,
    /// What differs from mdtest, and other remarks.
    notes: &'a [String],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FileSystem {
    size_bytes: u64,
    free_bytes: u64,
    inodes_count: u64,
    inodes_free_count: u64,
}

/// A step in all iterations.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Row<'a> {
    /// mdtest's label, such as `File creation`.
    label: &'a str,
    /// The name of its stages, such as `file-creation`.
    name: &'a str,
    /// Rank r worked on what rank r + shift made, counted round.
    shift: u32,
    /// Whether it worked on entries that another step made.
    looks_back: bool,
    /// The clients that did it.
    clients: &'a [String],
    /// Over the iterations.
    ops_per_sec: Option<Figures>,
    /// Seconds of the step, over the iterations.
    duration_seconds: Option<Figures>,
    iterations: Vec<Iteration>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Figures {
    max: f64,
    min: f64,
    mean: f64,
    /// Of the sample (n − 1); 0 of one iteration.
    std_dev: f64,
}

/// One step of one iteration.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Iteration {
    /// 0-based.
    index: usize,
    ops_ok_count: u64,
    failed_count: u64,
    /// From the moment at which the first rank began to the end of the last operation of any rank.
    duration_ns: Option<u64>,
    /// Successes over `duration_ns`.
    ops_per_sec: Option<f64>,
    /// From the step's start to when the first rank had no operation left.
    first_done_ns: Option<u64>,
    /// From the step's start to when the last rank had none left.
    last_done_ns: Option<u64>,
    /// Latencies of successes.
    latency_ns: Times,
    /// What each rank reached for itself; empty where that was not asked for.
    ranks_ops_per_sec: Vec<Option<f64>>,
}

/// Nanoseconds; null for want of samples.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Latencies"))]
struct Times {
    samples_count: u64,
    min: Option<u64>,
    mean: Option<f64>,
    std_dev: Option<f64>,
    max: Option<u64>,
    /// Pairs of percent and the time that so many percent do not exceed.
    percentiles: Vec<(f64, Option<u64>)>,
}

/// Returns the report as one JSON object.
pub fn render(report: &MdtestReport) -> serde_json::Value {
    let document = Document {
        schema: SCHEMA,
        tool_version: &report.tool_version,
        run_id: report.run_id.as_deref(),
        command: &report.command,
        started: &report.started,
        ended: &report.ended,
        ranks_count: report.ranks,
        clients: &report.clients,
        path: &report.path,
        file_system: report.file_system.map(|of| FileSystem {
            size_bytes: of.size_bytes,
            free_bytes: of.free_bytes,
            inodes_count: of.inodes_count,
            inodes_free_count: of.inodes_free_count,
        }),
        shift: report.shift,
        entries: &report.entries,
        iterations_count: report.iterations,
        failed_count: report.failed_count(),
        caching_excluded: report.caching().map(|(is_excluded, _)| is_excluded),
        rows: report.rows.iter().map(row).collect(),
        notes: &report.notes,
    };
    serde_json::to_value(document).expect("the document has text keys and finite numbers")
}

/// Returns the JSON Schema of the report, as it stands in `docs/formats/mdtest.schema.json`.
#[cfg(feature = "schema")]
pub fn schema() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Document<'_>>().to_value()
}

fn row(row: &MdtestRow) -> Row<'_> {
    Row {
        label: &row.label,
        name: &row.name,
        shift: row.shift,
        looks_back: row.looks_back,
        clients: &row.clients,
        ops_per_sec: row.rates().map(figures),
        duration_seconds: row.times().map(figures),
        iterations: row.iterations.iter().enumerate().map(iteration).collect(),
    }
}

fn figures(of: Summary) -> Figures {
    Figures { max: of.max, min: of.min, mean: of.mean, std_dev: of.std_dev }
}

fn iteration((index, step): (usize, &MdtestStep)) -> Iteration {
    Iteration {
        index,
        ops_ok_count: step.ops_ok,
        failed_count: step.failed,
        duration_ns: step.took.map(ns),
        ops_per_sec: step.rate(),
        first_done_ns: step.first_done.map(ns),
        last_done_ns: step.last_done.map(ns),
        latency_ns: times(&step.latency),
        ranks_ops_per_sec: step.rank_rates.clone(),
    }
}

fn times(of: &Histogram) -> Times {
    let all = plimsoll_analysis::Times::of(of, false);
    let percents = plimsoll_analysis::Times::PERCENTS;
    let percentiles = percents.map(|percent| (percent, all.percentile(percent)));
    Times {
        samples_count: of.count(),
        min: of.min(),
        mean: of.mean(),
        std_dev: of.std_dev(),
        max: of.max(),
        percentiles: percentiles
            .into_iter()
            .map(|(percent, time)| (percent, time.map(ns)))
            .collect(),
    }
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

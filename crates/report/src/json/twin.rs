//! The fields of the JSON report, as they are written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::SCHEMA;

/// The result of a plimsoll run.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "plimsoll.report/1")]
pub(super) struct Document {
    /// Always `plimsoll.report/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub(super) schema: &'static str,
    pub(super) tool_version: String,
    pub(super) run_id: String,
    /// What ran, such as `s3 get`.
    pub(super) what: String,
    /// The command line, secrets removed.
    pub(super) command: String,
    /// `complete`, or `interrupted` when the user ended it early.
    pub(super) state: &'static str,
    /// Where the run directory lies; null when nothing was kept.
    pub(super) run_directory: Option<String>,
    /// When the measured stage began, RFC 3339 in UTC.
    pub(super) started: String,
    pub(super) target: String,
    pub(super) loop_model: LoopModel,
    /// A 64-bit number in decimal digits, as text: many readers hold only 53 bits.
    pub(super) seed: String,
    pub(super) concurrency: u32,
    pub(super) threads_count: u32,
    /// Failed over all operations of the measured stage, 0 to 1; null when there was none.
    pub(super) error_rate: Option<f64>,
    /// The whole measured stage, nothing trimmed.
    pub(super) stage_total: Totals,
    pub(super) stage: Stage,
    pub(super) span: Span,
    pub(super) segments: Segments,
    /// Each kind of operation that occurred.
    pub(super) kinds: Vec<Kind>,
    /// All kinds together.
    pub(super) total: Figures,
    /// All kinds together, at each endpoint, over the same span.
    pub(super) endpoints: Vec<Endpoint>,
    /// First errors, a few of each class.
    pub(super) errors: Vec<Error>,
    /// User and system CPU time of the client during the measured stage.
    pub(super) client_cpu_seconds: Option<f64>,
    /// How often a worker had to wait for the recorder.
    pub(super) recorder_waits_count: u64,
    /// The op log against the workers' counters; null when no log was kept.
    pub(super) op_log: Option<OpLog>,
    /// Null when the workload reads nothing.
    pub(super) verification: Option<Verification>,
    pub(super) prepare: Option<StageWork>,
    pub(super) cleanup: Option<StageWork>,
    /// Warnings about the trust of the result.
    pub(super) advice: Vec<Advice>,
    pub(super) notes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LoopModel {
    /// `closed`, `capped` or `open`.
    pub(super) model: &'static str,
    /// The cap or the offered rate over all workers; null in a closed loop.
    pub(super) ops_per_sec: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Totals {
    pub(super) ops_ok_count: u64,
    pub(super) ops_failed_count: u64,
    /// How many failed by class; classes that did not occur are absent.
    pub(super) failed_by_class: BTreeMap<&'static str, u64>,
    /// Bytes moved by the successes.
    pub(super) bytes: u64,
    /// Objects handled by the successes.
    pub(super) objects_count: u64,
    /// The longest latency of a success.
    pub(super) latency_ns_max: Option<u64>,
}

/// The measured stage; moments are nanoseconds since the run's epoch.
#[derive(Serialize, JsonSchema)]
pub(super) struct Stage {
    pub(super) started_ns: u64,
    pub(super) ended_ns: u64,
    pub(super) duration_ns: u64,
    /// When the first worker ended its last operation.
    pub(super) first_done_ns: Option<u64>,
    /// When the last worker ended its last operation.
    pub(super) last_done_ns: Option<u64>,
    /// Workers that ended at least one operation.
    pub(super) workers_active_count: u32,
}

/// The stretch that rates and times are taken from.
#[derive(Serialize, JsonSchema)]
pub(super) struct Span {
    pub(super) started_ns: u64,
    pub(super) ended_ns: u64,
    pub(super) duration_ns: u64,
    /// `all-workers`, `full-asked` or `full-too-short`.
    pub(super) rule: &'static str,
}

/// The equal parts of the span, from its start on.
#[derive(Serialize, JsonSchema)]
pub(super) struct Segments {
    pub(super) duration_ns: u64,
    /// Whole ones only.
    pub(super) count: u64,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Kind {
    /// `PUT`, `GET`, `DELETE`, `LIST` or `STAT`.
    pub(super) kind: &'static str,
    /// Its part of all operations started in the span.
    pub(super) mix_percent: Option<f64>,
    #[serde(flatten)]
    pub(super) figures: Figures,
    /// This kind at each endpoint, over the same span.
    pub(super) endpoints: Vec<Endpoint>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Endpoint {
    pub(super) endpoint: String,
    #[serde(flatten)]
    pub(super) figures: Figures,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Figures {
    pub(super) span_counts: SpanCounts,
    pub(super) stage_total: Totals,
    /// Averages over the span; null when it has no length.
    pub(super) rates: Option<Rates>,
    /// Null when the span holds no whole segment.
    pub(super) segments: Option<PickedSegments>,
    /// Intended start to end, of the successes wholly inside the span.
    pub(super) latency_ns: Times,
    /// Start to end, of the same.
    pub(super) service_time_ns: Times,
    /// Time to first byte, of those of the same that have one.
    pub(super) ttfb_ns: Times,
}

/// Operations counted within the span.
#[derive(Serialize, JsonSchema)]
pub(super) struct SpanCounts {
    pub(super) ops_started_count: u64,
    pub(super) ops_ok_count: u64,
    pub(super) ops_failed_count: u64,
    pub(super) failed_by_class: BTreeMap<&'static str, u64>,
}

/// What successes got done, each with its share by time.
#[derive(Serialize, JsonSchema)]
pub(super) struct Rates {
    pub(super) ops_per_sec: f64,
    pub(super) objects_per_sec: f64,
    pub(super) bytes_per_sec: f64,
}

/// In the order of bytes per second where bytes are moved, otherwise of objects per second.
#[derive(Serialize, JsonSchema)]
pub(super) struct PickedSegments {
    pub(super) fastest: Segment,
    pub(super) median: Segment,
    pub(super) slowest: Segment,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Segment {
    pub(super) started_ns: u64,
    #[serde(flatten)]
    pub(super) rates: Rates,
}

/// Nanoseconds; null for want of samples.
#[derive(Serialize, JsonSchema)]
pub(super) struct Times {
    pub(super) samples_count: u64,
    pub(super) min: Option<u64>,
    /// From 2 samples on.
    pub(super) p50: Option<u64>,
    /// From 10 samples on.
    pub(super) p90: Option<u64>,
    /// From 100 samples on.
    pub(super) p99: Option<u64>,
    /// From 1,000 samples on.
    pub(super) p99_9: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) mean: Option<u64>,
    /// The sample standard deviation, from 2 samples on.
    pub(super) std_dev: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Error {
    pub(super) class: &'static str,
    pub(super) kind: &'static str,
    pub(super) endpoint: Option<String>,
    pub(super) message: String,
}

/// Both counts are of the measured stage and should be equal.
#[derive(Serialize, JsonSchema)]
pub(super) struct OpLog {
    pub(super) rows_count: u64,
    pub(super) ops_counted_count: u64,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Verification {
    /// `every-byte`, `length-only` or `off`.
    pub(super) mode: &'static str,
    pub(super) bytes: u64,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct StageWork {
    pub(super) objects_count: u64,
    pub(super) bytes: u64,
    pub(super) duration_ns: u64,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Advice {
    pub(super) code: &'static str,
    pub(super) text: String,
}

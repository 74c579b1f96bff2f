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
    /// The version of plimsoll that made the run; null for a record made elsewhere.
    pub(super) tool_version: Option<String>,
    /// Null for a record made elsewhere.
    pub(super) run_id: Option<String>,
    /// What ran, such as `s3 get`.
    pub(super) what: String,
    /// The command line, secrets removed.
    pub(super) command: String,
    /// `complete`; `interrupted` when the user ended it early; `killed` when it never said that it
    /// ended; `failed` when it could not go on.
    pub(super) state: &'static str,
    /// Why a stop rule ended the measured stage before its time was up, in words and figures; null
    /// where none did.
    pub(super) ended_because: Option<String>,
    /// Where the run directory lies; null when nothing was kept.
    pub(super) run_directory: Option<String>,
    /// When the measured stage began, RFC 3339 in UTC.
    pub(super) started: String,
    /// The kind of record that was read when it is not plimsoll's own, such as `warp raw file`.
    pub(super) foreign: Option<String>,
    pub(super) target: String,
    pub(super) loop_model: LoopModel,
    /// Null but in an open loop.
    pub(super) schedule: Option<Schedule>,
    /// A 64-bit number in decimal digits, as text: many readers hold only 53 bits; null when
    /// unknown.
    pub(super) seed: Option<String>,
    pub(super) concurrency: u32,
    /// Null when unknown.
    pub(super) threads_count: Option<u32>,
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
    /// User and system CPU time of the client during the measured stage; null in virtual time.
    pub(super) client_cpu_seconds: Option<f64>,
    /// How long workers waited for the recorder, all added up; null in virtual time.
    pub(super) recorder_wait_ns: Option<u64>,
    /// The op log against the workers' counters; null when no log was kept.
    pub(super) op_log: Option<OpLog>,
    /// Null when the workload reads nothing.
    pub(super) verification: Option<Verification>,
    pub(super) prepare: Option<StageWork>,
    pub(super) cleanup: Option<StageWork>,
    /// Warnings about the trust of the result.
    pub(super) advice: Vec<Advice>,
    /// Everything beyond the figures; null unless it was asked for.
    pub(super) details: Option<Details>,
    /// What of the record could not be read or used.
    pub(super) losses: Vec<String>,
    pub(super) notes: Vec<String>,
    /// Whether time was that of a simulation.
    pub(super) virtual_time: bool,
    /// The hash of all operations of the stage as they were planned, 16 hexadecimal digits.
    pub(super) stream_hash: Option<String>,
    /// How many contents that were read were wrong, by what was wrong with them, such as `torn`.
    pub(super) wrong_by_kind: BTreeMap<String, u64>,
    /// What the proofs said of the instrument; null where the run was given no certificate.
    pub(super) certificate: Option<Certificate>,
}

/// The schedule of an open loop, and what came of it.
#[derive(Serialize, JsonSchema)]
pub(super) struct Schedule {
    /// As it was asked for, such as `100/s..5000/s over 2m`.
    pub(super) rate: String,
    /// `constant` or `poisson`.
    pub(super) arrivals: String,
    /// How many operations may have been under way at once.
    pub(super) in_flight_count_max: u32,
    /// How long operations arrived.
    pub(super) duration_ns: Option<u64>,
    /// Arrivals over that time.
    pub(super) rate_offered_ops_per_sec: Option<f64>,
    /// Successes over the span.
    pub(super) rate_achieved_ops_per_sec: Option<f64>,
    /// How many arrived.
    pub(super) offered_count: Option<u64>,
    /// Issued more than 1 ms after their intended start.
    pub(super) late_count: Option<u64>,
    /// Never issued.
    pub(super) skipped_count: Option<u64>,
    /// From the intended start to the start.
    pub(super) delay_ns_max: Option<u64>,
    /// Whether at most 1 % were late or skipped; null when unknown.
    pub(super) kept: Option<bool>,
    /// By how much it was not kept, and what to change; null if it was.
    pub(super) warning: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Certificate {
    pub(super) tool_version: Option<String>,
    pub(super) machine: Option<String>,
    /// Decimal digits.
    pub(super) seed: Option<String>,
    pub(super) passed_count: u64,
    pub(super) failed_count: u64,
    pub(super) when: Option<String>,
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
    /// Issued more than 1 ms after their intended start, failed ones included.
    pub(super) ops_late_count: u64,
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
    /// `all-workers`, `full-asked`, `full-too-short`, or `schedule` in an open loop.
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
    /// Averages over the span, of whole and right answers only (goodput): 0 when all failed; null
    /// when it has no length.
    pub(super) rates: Option<Rates>,
    /// Null when the span holds no whole segment.
    pub(super) segments: Option<PickedSegments>,
    /// Intended start to end, of the successes wholly inside the span.
    pub(super) latency_ns: Times,
    /// Start to end, of the same.
    pub(super) service_time_ns: Times,
    /// Intended start to start, of the same; null but in an open loop.
    pub(super) schedule_delay_ns: Option<Times>,
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

/// Everything beyond the figures.
#[derive(Serialize, JsonSchema)]
pub(super) struct Details {
    /// Each kind of operation that occurred.
    pub(super) kinds: Vec<KindDetails>,
    /// Every segment, all kinds together; without percentiles.
    pub(super) series: Vec<SeriesSegment>,
    /// Each client that ended an operation; empty when there is only one.
    pub(super) clients: Vec<Client>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct KindDetails {
    pub(super) kind: &'static str,
    /// Every segment; percentiles are null when there are more than a thousand.
    pub(super) series: Vec<SeriesSegment>,
    /// The same at each endpoint; without percentiles.
    pub(super) endpoints: Vec<EndpointSeries>,
    /// Pairs of percent and nanoseconds of the successes wholly inside the span; null for want of
    /// samples beyond it.
    pub(super) latency_ns_percentiles: Vec<(f64, Option<u64>)>,
    /// The same of the service time; null but in an open loop.
    pub(super) service_time_ns_percentiles: Option<Vec<(f64, Option<u64>)>>,
    /// The same of the time to first byte.
    pub(super) ttfb_ns_percentiles: Vec<(f64, Option<u64>)>,
    /// Pairs of the smallest nanoseconds of a bin and how many latencies lie in it, smallest first;
    /// bins without any are absent.
    pub(super) latency_ns_bins: Vec<(u64, u64)>,
    /// By size, smallest first; empty for kinds that move no content.
    pub(super) sizes: Vec<SizeClass>,
    /// Null when no object was accessed twice.
    pub(super) access: Option<Access>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct EndpointSeries {
    pub(super) endpoint: String,
    pub(super) series: Vec<SeriesSegment>,
}

/// One segment, as long as `segments.duration_ns` says; counts are of successes but for the failed.
#[derive(Serialize, JsonSchema)]
pub(super) struct SeriesSegment {
    /// Nanoseconds since the run's epoch.
    pub(super) started_ns: u64,
    /// Bytes moved, by share of time.
    pub(super) bytes: u64,
    /// Operations done, by share of time: not whole.
    pub(super) ops: f64,
    /// Objects handled, by share of time: not whole.
    pub(super) objects: f64,
    pub(super) ops_started_count: u64,
    pub(super) ops_ended_count: u64,
    /// Wholly inside.
    pub(super) ops_full_count: u64,
    /// Touch it and reach beyond.
    pub(super) ops_partial_count: u64,
    pub(super) ops_failed_count: u64,
    /// Classes that did not occur are absent.
    pub(super) failed_by_class: BTreeMap<&'static str, u64>,
    /// Of those ended in it and begun in the span.
    pub(super) latency_ns_mean: Option<u64>,
    /// To 1 %; from 2 samples on.
    pub(super) latency_ns_p50: Option<u64>,
    /// To 1 %; from 100 samples on.
    pub(super) latency_ns_p99: Option<u64>,
}

/// The successes wholly inside the span of one class of size; no two classes share a size.
#[derive(Serialize, JsonSchema)]
pub(super) struct SizeClass {
    /// The smallest size that belongs here: a power of two, or 0.
    pub(super) size_bytes_min: u64,
    /// The largest size that belongs here.
    pub(super) size_bytes_max: u64,
    /// The smallest that occurred.
    pub(super) size_bytes_smallest: u64,
    /// The largest that occurred.
    pub(super) size_bytes_largest: u64,
    /// Bytes moved.
    pub(super) bytes: u64,
    pub(super) latency_ns: Times,
    pub(super) ttfb_ns: Times,
    /// The throughput of single operations: bytes over latency.
    pub(super) bytes_per_sec: OpRates,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct OpRates {
    /// All bytes over all latencies.
    pub(super) average: Option<f64>,
    /// The slowest.
    pub(super) min: Option<u64>,
    /// 99 of 100 are faster; from 100 samples on.
    pub(super) p99_slow: Option<u64>,
    /// 90 of 100 are faster; from 10 samples on.
    pub(super) p90_slow: Option<u64>,
    /// From 2 samples on.
    pub(super) p50: Option<u64>,
    /// The fastest.
    pub(super) max: Option<u64>,
}

/// The first and the last access of each object, over the whole stage.
#[derive(Serialize, JsonSchema)]
pub(super) struct Access {
    /// Objects that the figures are of.
    pub(super) objects_count: u64,
    /// One object in this many was followed; 1 is all.
    pub(super) sampled_one_in: u64,
    pub(super) first_latency_ns: Times,
    pub(super) first_ttfb_ns: Times,
    pub(super) last_latency_ns: Times,
    pub(super) last_ttfb_ns: Times,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Client {
    pub(super) client: String,
    /// All kinds together, over the same span as all clients.
    pub(super) total: Figures,
    /// Each kind that it ended.
    pub(super) kinds: Vec<ClientKind>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ClientKind {
    pub(super) kind: &'static str,
    #[serde(flatten)]
    pub(super) figures: Figures,
}

//! The fields of the JSON report of a run on files, as they are written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::SCHEMA;

/// The result of a plimsoll run on files.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "plimsoll.phases/1")]
pub(super) struct Document {
    /// Always `plimsoll.phases/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub(super) schema: &'static str,
    /// The version of plimsoll that made the run.
    pub(super) tool_version: Option<String>,
    pub(super) run_id: Option<String>,
    /// What ran, such as `file suite`.
    pub(super) what: String,
    /// The command line, secrets removed.
    pub(super) command: String,
    /// `complete`; `interrupted` when the user ended it early; `killed` when it never said that it
    /// ended; `failed` when it could not go on.
    pub(super) state: &'static str,
    /// Where the run directory lies; null when nothing was kept.
    pub(super) run_directory: Option<String>,
    /// When the first stage began, RFC 3339 in UTC.
    pub(super) started: String,
    pub(super) target: Target,
    /// The machine in one line.
    pub(super) machine: Option<String>,
    /// A 64-bit number in decimal digits, as text: many readers hold only 53 bits.
    pub(super) seed: Option<String>,
    /// `io_uring`, `libaio` or `psync`; null where rows differ.
    pub(super) interface: Option<&'static str>,
    /// Over all stages, those that are no result and ramps included.
    pub(super) ops_failed_count: u64,
    /// The stages in the order in which they ran.
    pub(super) phases: Vec<Phase>,
    /// Null when nothing is read.
    pub(super) verification: Option<Verification>,
    /// The op log against the workers' counters; null when no log was kept.
    pub(super) op_log: Option<OpLog>,
    /// How long workers waited for the recorder, all added up.
    pub(super) recorder_wait_ns: u64,
    /// What was removed at the end, or left.
    pub(super) cleanup: Option<String>,
    /// What keeps the figures from being trusted.
    pub(super) warnings: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// Where the files lie.
#[derive(Serialize, JsonSchema)]
pub(super) struct Target {
    pub(super) directory: String,
    pub(super) file_system: Option<String>,
    pub(super) device: Option<String>,
    /// Before the run.
    pub(super) free_bytes: Option<u64>,
}

/// One stage: jobs that ran at once.
#[derive(Serialize, JsonSchema)]
pub(super) struct Phase {
    /// Such as `read-iops`; of repeated stages the same each time.
    pub(super) name: String,
    /// Which repetition it is, from 0.
    pub(super) iteration_index: u32,
    /// Whether it is a result, and not only makes what others need.
    pub(super) is_result: bool,
    /// From the start of the first stage to the start of this one.
    pub(super) started_after_ns: u64,
    /// From its start to the end of its last worker.
    pub(super) duration_ns: u64,
    /// The length of a window.
    pub(super) window_ns: u64,
    /// Successes, without those in ramps.
    pub(super) ops_ok_count: u64,
    /// Failures, also those in ramps.
    pub(super) ops_failed_count: u64,
    /// User and system CPU time of this program while it ran.
    pub(super) client_cpu_ns: Option<u64>,
    /// The same over all operations that ended, those in ramps included.
    pub(super) client_cpu_per_op_ns: Option<u64>,
    /// What ran at once, each job or group by itself.
    pub(super) rows: Vec<Row>,
    /// First errors, a few of each class.
    pub(super) errors: Vec<Error>,
    /// How many contents that were read were wrong, by what was wrong with them.
    pub(super) wrong_by_kind: BTreeMap<String, u64>,
    /// Of the one job that has a schedule; null where none has one, or several have.
    pub(super) schedule: Option<Schedule>,
    /// Of each job that has a schedule.
    pub(super) schedules: Vec<Schedule>,
    /// The longest time in which a thread with operations under way did not look at what had ended:
    /// no end is stamped later than it was by more. Null where nothing was waited for.
    pub(super) look_gap_ns_max: Option<u64>,
    /// Operations that were seen to end after a gap of more than half of their service time.
    pub(super) ops_uncertain_count: Option<u64>,
}

/// A job, or a group of jobs.
#[derive(Serialize, JsonSchema)]
pub(super) struct Row {
    pub(super) name: String,
    /// What was done, such as `randread` or `create`.
    pub(super) work: String,
    /// Bytes of one operation, such as `4 KiB`; null where none are moved, or where merged runs
    /// differ in it.
    pub(super) block: Option<String>,
    pub(super) workers_count: u32,
    /// Those that ended an operation that counts.
    pub(super) workers_active_count: u32,
    /// Operations that each worker keeps in flight; null where merged runs differ in it.
    pub(super) depth: Option<u32>,
    /// Whether the page cache was passed by.
    pub(super) direct: bool,
    /// `io_uring`, `libaio` or `psync`.
    pub(super) interface: Option<&'static str>,
    /// `dropped` before the stage, `bypassed` by O_DIRECT, `cached`: in use, or `not-known`.
    pub(super) caches: &'static str,
    /// Files or names of all workers.
    pub(super) files_count: Option<u64>,
    /// Such as `4 GiB`; null where merged runs differ in it.
    pub(super) file_size: Option<String>,
    /// How long it was to last, of merged runs the longest; null where it ended when all was done.
    pub(super) duration_asked_ns: Option<u64>,
    /// The clients that served it.
    pub(super) served_by: Vec<String>,
    pub(super) clients_count: u32,
    /// From the stage's start to where the measuring began; null without an operation that counts.
    pub(super) measured_from_ns: Option<u64>,
    /// From there to the end of the last operation that counts. Rates are taken over it.
    pub(super) measured_ns: Option<u64>,
    /// Successes that started before the measuring began; they are in no other figure.
    pub(super) ramp_ops_ok_count: u64,
    /// Failures that did.
    pub(super) ramp_ops_failed_count: u64,
    /// Each kind of operation that occurred.
    pub(super) kinds: Vec<Kind>,
}

/// One kind of operation. But for those named so, all figures are of successes.
#[derive(Serialize, JsonSchema)]
pub(super) struct Kind {
    /// Such as `READ` or `CREATE`.
    pub(super) kind: &'static str,
    pub(super) ops_ok_count: u64,
    pub(super) ops_failed_count: u64,
    pub(super) failed_by_class: BTreeMap<&'static str, u64>,
    pub(super) bytes: u64,
    /// Null where the measuring took no time.
    pub(super) ops_per_sec: Option<f64>,
    /// Null also for kinds that move none.
    pub(super) bytes_per_sec: Option<f64>,
    /// From the intended start to the end.
    pub(super) latency_ns: Times,
    /// From the start to the end.
    pub(super) service_time_ns: Times,
    /// How far it was when the first of the row's workers had ended its last operation.
    pub(super) first_done: Option<Done>,
    /// How far it was when the last of them had.
    pub(super) last_done: Option<Done>,
    /// What ended when, from the beginning of the measuring on.
    pub(super) windows: Vec<Window>,
}

/// A distribution in nanoseconds; null is unknown for want of samples.
#[derive(Serialize, JsonSchema)]
pub(super) struct Times {
    pub(super) samples_count: u64,
    pub(super) min: Option<u64>,
    pub(super) mean: Option<u64>,
    pub(super) max: Option<u64>,
    /// Of a sample (n − 1).
    pub(super) std_dev: Option<u64>,
    /// Pairs of a percentile in percent and its time.
    pub(super) percentiles: Vec<(f64, Option<u64>)>,
}

/// How far a row was at a moment.
#[derive(Serialize, JsonSchema)]
pub(super) struct Done {
    /// From the stage's start.
    pub(super) after_ns: u64,
    pub(super) ops_count: u64,
    pub(super) bytes: u64,
    /// Over the time from the beginning of the measuring to that moment.
    pub(super) ops_per_sec: Option<f64>,
    pub(super) bytes_per_sec: Option<f64>,
}

/// What ended in one window.
#[derive(Serialize, JsonSchema)]
pub(super) struct Window {
    /// From the stage's start to where the window begins.
    pub(super) started_ns: u64,
    /// How much of the window was measured: of the first and the last a part.
    pub(super) duration_ns: u64,
    pub(super) ops_count: u64,
    pub(super) bytes: u64,
    pub(super) latency_ns_mean: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Error {
    pub(super) class: &'static str,
    pub(super) kind: &'static str,
    pub(super) message: String,
}

/// The schedule of an open loop, and what came of it.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct Schedule {
    /// The job that has it.
    pub(super) job: String,
    /// As it was asked for, such as `1000/s`.
    pub(super) rate: String,
    /// `constant` or `poisson`.
    pub(super) arrivals: String,
    /// How many operations may have been under way at once.
    pub(super) in_flight_count_max: u32,
    /// How long operations arrived.
    pub(super) duration_ns: Option<u64>,
    /// Arrivals over that time.
    pub(super) rate_offered_ops_per_sec: Option<f64>,
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
pub(super) struct Verification {
    /// `every-byte`, `partial`, `length-only` or `off`.
    pub(super) mode: &'static str,
    /// Bytes compared; where only lengths are, bytes read.
    pub(super) bytes: u64,
    /// Bytes read and, with `partial`, not compared, as the run never wrote them; else 0.
    pub(super) unverified_bytes: u64,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct OpLog {
    pub(super) rows_count: u64,
    pub(super) ops_counted_count: u64,
}

//! What comes of a stage and of each of its jobs, and where operations are recorded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::{DriverError, Settled};
use plimsoll_model::{
    DisturbedSeen, EndReason, EndpointId, ErrorClass, JobId, Moment, OpKind, OpRecord, PackedOp,
    SeriesKey, SocketsSeen, StandstillsSeen, ThreadUsage, WrongKind,
};
use plimsoll_stats::{ProbeCounts, Timeline, Totals};
use plimsoll_workload::objects::Change;
use plimsoll_workload::plan::SetIndex;
use thiserror::Error;

use crate::server_names::ServerNames;

/// An operation that starts later than this after its intended moment is late.
const LATE_ABOVE: Duration = Duration::from_millis(1);
/// First error texts kept per class, of each thread and of all.
pub(crate) const ERRORS_KEPT_PER_CLASS: usize = 10;

/// Takes finished operations off the engine's hands, such as the op log.
pub trait OpSink {
    /// Called before the first operations of a stage, with the moment at which its workers were let
    /// go.
    fn begun(&mut self, at: Moment) {
        let _ = at;
    }

    /// Takes the next operations.
    fn append(&mut self, ops: &[PackedOp]) -> Result<(), OpSinkError>;

    /// Called now and then, so that what is due by time can happen.
    fn tick(&mut self, now: Moment) -> Result<(), OpSinkError>;

    /// Returns who keeps the past of the time line. Where nobody does all of it stays in memory,
    /// which it fills the more the longer a stage goes on.
    fn past(&mut self) -> Option<&mut dyn PastSink>;
}

/// Keeps the past of a time line.
pub trait PastSink {
    /// Keeps minutes that are over. What comes late for one of them comes in another call, to be
    /// added to what was kept.
    fn keep(&mut self, past: &Timeline<SeriesKey>) -> Result<(), OpSinkError>;
}

/// Keeps every operation, for who looks at them right after.
#[derive(Debug, Default)]
pub struct KeptOps(pub Vec<OpRecord>);

impl OpSink for KeptOps {
    fn append(&mut self, ops: &[PackedOp]) -> Result<(), OpSinkError> {
        self.0.extend(ops.iter().map(OpRecord::from));
        Ok(())
    }

    fn tick(&mut self, _: Moment) -> Result<(), OpSinkError> {
        Ok(())
    }

    fn past(&mut self) -> Option<&mut dyn PastSink> {
        None
    }
}

/// The sink could not take what was recorded.
#[derive(Debug, Error)]
#[error("cannot record operations")]
pub struct OpSinkError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// Why a stage could not be run to its end.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The record is incomplete, so the run is void.
    #[error(transparent)]
    Sink(#[from] OpSinkError),
    /// A thread or its runtime could not be made.
    #[error("cannot start a worker thread")]
    Thread(#[source] std::io::Error),
    /// The target could not be used before the first operation.
    #[error("{0}")]
    Target(DriverError),
    /// Those who were to carry it out could not.
    #[error(transparent)]
    Elsewhere(Box<dyn std::error::Error + Send + Sync>),
}

/// The first text of a failure, for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorSample {
    /// Its class.
    pub class: ErrorClass,
    /// The job that it is of.
    pub job: JobId,
    /// The kind of operation.
    pub kind: OpKind,
    /// Where it went.
    pub endpoint: EndpointId,
    /// When it ended.
    pub at: Moment,
    /// The protocol's own number (HTTP status, errno), where there is one.
    pub status: Option<u16>,
    /// What happened.
    pub message: String,
}

/// What came of a stage.
#[derive(Debug)]
pub struct StageOutcome {
    /// When the workers were let go.
    pub started: Moment,
    /// By how much that was later than the moment it was to begin at; zero where none was set.
    pub began_late_by: Duration,
    /// When the last worker ended; what the recorder did afterwards is not in it.
    pub ended: Moment,
    /// Why it ended: the least regular reason of all workers.
    pub ended_by: EndReason,
    /// In words and figures which stop rule held, where one ended it.
    pub ended_because: Option<String>,
    /// What came of each job, in the order of their ids.
    pub jobs: Vec<JobOutcome>,
    /// Counts and shares per second, histograms per minute, but for what the sink keeps.
    pub timeline: Timeline<SeriesKey>,
    /// The sums of what the sink keeps of the time line.
    pub kept: Totals<SeriesKey>,
    /// First texts per class, in order of time.
    pub errors: Vec<ErrorSample>,
    /// Operations ended.
    pub ops_count: u64,
    /// Of these, failed.
    pub failed_count: u64,
    /// How well the schedules of all jobs that have one were kept; `None` where there is none.
    pub schedule: Option<ScheduleOutcome>,
    /// How ends were stamped where operations were waited for on a ring; `None` where none was.
    pub looks: Option<LooksOutcome>,
    /// The sum of the hashes of all operations as planned: the same for the same stream, however
    /// many threads there are.
    pub stream_hash: u64,
    /// What was cleaned up behind failed operations, outside of the time of any.
    pub settled: Settled,
    /// How often which kind of wrong content was read.
    pub wrong: BTreeMap<WrongKind, u64>,
    /// How often which number of the protocol's own (HTTP status, errno) came with a failure.
    pub failed_statuses: BTreeMap<u16, u64>,
    /// How often a thread rested because the recorder was behind.
    pub recorder_waits: u64,
    /// Time that threads rested because the recorder was behind.
    pub recorder_wait: Duration,
    /// Processor time of the worker threads and the recorder during the stage.
    pub cpu_time: Duration,
    /// What was counted of it, where it is a probe of a search.
    pub probe: Option<ProbeCounts>,
    /// What each worker thread used from when it was let go; empty in virtual time, and of parts
    /// that others carried out.
    pub threads: Vec<ThreadUsage>,
    /// What the connections of all worker threads told.
    pub sockets: SocketsSeen,
    /// When this process stood still; empty in virtual time, and of parts that others carried out.
    pub standstills: StandstillsSeen,
    /// When it was disturbed, likewise.
    pub disturbed: DisturbedSeen,
}

impl StageOutcome {
    /// Returns the sums of the whole time line.
    pub fn totals(&self) -> Totals<SeriesKey> {
        let mut totals = self.kept.clone();
        totals.add(&self.timeline);
        totals
    }

    /// Adds what came of another part of the same stage, whose moments are of the same clock.
    pub fn merge(&mut self, other: Self) {
        self.started = self.started.min(other.started);
        self.began_late_by = self.began_late_by.max(other.began_late_by);
        self.ended = self.ended.max(other.ended);
        if other.ended_by > self.ended_by {
            self.ended_because = None;
        }
        if other.ended_by >= self.ended_by {
            self.ended_because = self.ended_because.take().or(other.ended_because);
        }
        self.ended_by = self.ended_by.max(other.ended_by);
        for job in other.jobs {
            match self.jobs.iter_mut().find(|own| own.job == job.job) {
                Some(own) => own.merge(job),
                None => self.jobs.push(job),
            }
        }
        self.jobs.sort_by_key(|job| job.job);
        self.timeline.merge(&other.timeline);
        self.kept.merge(&other.kept);
        self.errors.extend(other.errors);
        keep_first_errors(&mut self.errors);
        self.ops_count += other.ops_count;
        self.failed_count += other.failed_count;
        let schedules = [self.schedule, other.schedule].into_iter().flatten();
        self.schedule = schedules.reduce(ScheduleOutcome::merge);
        self.looks = [self.looks, other.looks].into_iter().flatten().reduce(LooksOutcome::merge);
        self.stream_hash = self.stream_hash.wrapping_add(other.stream_hash);
        self.settled.add(other.settled);
        other.wrong.iter().for_each(|(kind, n)| *self.wrong.entry(*kind).or_default() += n);
        for (status, n) in &other.failed_statuses {
            *self.failed_statuses.entry(*status).or_default() += n;
        }
        self.recorder_waits += other.recorder_waits;
        self.recorder_wait += other.recorder_wait;
        self.cpu_time += other.cpu_time;
        match (&mut self.probe, other.probe) {
            (Some(own), Some(other)) => own.merge(&other),
            (own, other) => *own = own.take().or(other),
        }
        self.threads.extend(other.threads);
        self.sockets.merge(other.sockets);
        self.standstills.merge(other.standstills);
    }
}

impl JobOutcome {
    /// Adds what came of another part of the same job.
    fn merge(&mut self, mut other: Self) {
        self.ops_count += other.ops_count;
        self.failed_count += other.failed_count;
        self.measured_count += other.measured_count;
        self.measured_failed_count += other.measured_failed_count;
        self.measured_bytes += other.measured_bytes;
        // A part without workers of the job has none.
        let measured = [self.measured, other.measured].into_iter().flatten();
        self.measured = measured.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        self.bytes += other.bytes;
        self.unchecked.add(other.unchecked);
        let schedules = [self.schedule, other.schedule].into_iter().flatten();
        self.schedule = schedules.reduce(ScheduleOutcome::merge);
        self.ended_by = self.ended_by.max(other.ended_by);
        self.stream_hash = self.stream_hash.wrapping_add(other.stream_hash);
        if let Some(names) = other.server_names {
            let own = self.server_names.get_or_insert_default();
            Arc::make_mut(own).append(Arc::unwrap_or_clone(names));
        }
        self.changes.append(&mut other.changes);
    }
}

/// What came of one job of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOutcome {
    /// Which one.
    pub job: JobId,
    /// Operations ended.
    pub ops_count: u64,
    /// Of these, failed.
    pub failed_count: u64,
    /// Of all, measured: not in a ramp.
    pub measured_count: u64,
    /// Of these, failed.
    pub measured_failed_count: u64,
    /// Content bytes of those that succeeded.
    pub measured_bytes: u64,
    /// Content bytes of all that succeeded.
    pub bytes: u64,
    /// What was read of shared sets and could not be checked, as this run does not write it.
    pub unchecked: Unchecked,
    /// What of it is measured, since the start of the stage: from the end of the first worker's
    /// ramp to the end of the last worker's duration, where workers go on after that; `None`
    /// where all is.
    pub measured: Option<(Duration, Option<Duration>)>,
    /// How well its schedule was kept; `None` where it has none.
    pub schedule: Option<ScheduleOutcome>,
    /// Why it ended: the least regular reason of its workers.
    pub ended_by: EndReason,
    /// The sum of the hashes of its operations as planned.
    pub stream_hash: u64,
    /// What the store calls that which the job wrote, where later stages need it.
    pub server_names: Option<Arc<ServerNames>>,
    /// What its workers have changed about who is in its sets.
    pub changes: Vec<(SetIndex, Change)>,
}

/// What was read and could not be checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unchecked {
    /// How many reads.
    pub count: u64,
    /// How many bytes they gave.
    pub bytes: u64,
}

impl Unchecked {
    /// Adds what others read.
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// How close together the looks at what has ended on a ring were. An end is stamped when it is
/// seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LooksOutcome {
    /// The longest time between two looks of one thread with an operation waited for: no stamp is
    /// later than the end by more.
    pub gap_max: Duration,
    /// Operations seen after a gap of more than half of their service time.
    pub uncertain_count: u64,
}

impl LooksOutcome {
    /// Returns what came of two threads.
    pub(crate) fn merge(self, other: Self) -> Self {
        Self {
            gap_max: self.gap_max.max(other.gap_max),
            uncertain_count: self.uncertain_count + other.uncertain_count,
        }
    }
}

/// How well the schedule of an open loop was kept in its measured span: outside of ramps, and until
/// operations were due no longer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleOutcome {
    /// From when on operations of the first worker counted, and until when those of the last were
    /// due, since the start of the stage; `None` without a worker.
    pub span: Option<(Duration, Duration)>,
    /// Operations that were due in that time.
    pub offered_count: u64,
    /// Of these, started more than a millisecond after they were due, but for what was held back.
    pub late_count: u64,
    /// Of these, never issued.
    pub skipped_count: u64,
    /// Of these, held back when they were due, as an operation on the same object had not ended.
    pub held_count: u64,
    /// The longest time from when an operation was due to its start, but for what was held back.
    pub delay_max: Duration,
}

impl ScheduleOutcome {
    /// Adds an operation that was issued and is measured.
    #[inline]
    pub fn add(&mut self, op: &OpRecord) {
        let delay = op.start.since(op.intended);
        self.offered_count += 1;
        self.late_count += u64::from(delay > LATE_ABOVE);
        self.delay_max = self.delay_max.max(delay);
    }

    /// Returns what came of two schedules.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self {
            span: joined(self.span, other.span),
            offered_count: self.offered_count + other.offered_count,
            late_count: self.late_count + other.late_count,
            skipped_count: self.skipped_count + other.skipped_count,
            held_count: self.held_count + other.held_count,
            delay_max: self.delay_max.max(other.delay_max),
        }
    }
}

/// Returns a stretch of time from the beginning of the first of two to the end of the last.
pub(crate) fn joined<T: Ord + Copy>(one: Option<(T, T)>, other: Option<(T, T)>) -> Option<(T, T)> {
    let both = one.into_iter().chain(other);
    both.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// Sorts by time and keeps the first few of each class.
pub(crate) fn keep_first_errors(errors: &mut Vec<ErrorSample>) {
    errors.sort_by_key(|error| error.at);
    let mut kept = [0; ErrorClass::ALL.len()];
    errors.retain(|error| {
        kept[error.class as usize] += 1;
        kept[error.class as usize] <= ERRORS_KEPT_PER_CLASS
    });
}

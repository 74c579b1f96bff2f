//! What one thread of a stage keeps of its operations: the records on their way to the recorder,
//! the counts of each job, the first errors.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use plimsoll_driver::{DriverError, Settled};
use plimsoll_model::{
    EndReason, JobId, Moment, OpKind, OpRecord, PackedOp, SeriesKey, SocketsSeen, WorkerId,
    WrongKind,
};
use plimsoll_stats::{Sample, Timeline};
use plimsoll_workload::mix64;
use plimsoll_workload::objects::Change;
use plimsoll_workload::plan::SetIndex;
use rtrb::Producer;

use crate::clock::block_for;
use crate::live::ThreadCounters;
use crate::outcome::{
    ERRORS_KEPT_PER_CLASS, ErrorSample, LooksOutcome, ScheduleOutcome, Unchecked, joined,
};
use crate::past::PastSender;
use crate::server_names::{NamedVersion, ServerNames};
use crate::timing::{MeasuredSpan, Stops, Verdict};
use crate::watch::WatchedJob;

/// How long a thread rests when its record buffer is full.
const BUFFER_FULL_REST: Duration = Duration::from_micros(200);

/// A finished operation with the error it ended in, if it did.
pub(crate) struct Finished {
    pub(crate) record: OpRecord,
    pub(crate) error: Option<DriverError>,
    /// What wrong content that was read is.
    pub(crate) wrong: Option<WrongKind>,
    /// Whether content was read that could not be checked.
    pub(crate) is_unchecked: bool,
    /// How the store names what came of it.
    pub(crate) server_name: Option<Box<str>>,
}

/// What one thread did for one job.
#[derive(Debug, Default)]
pub(crate) struct JobTally {
    pub(crate) ops_count: u64,
    pub(crate) failed_count: u64,
    pub(crate) measured_failed_count: u64,
    pub(crate) measured_bytes: u64,
    pub(crate) bytes: u64,
    pub(crate) unchecked: Unchecked,
    /// How operations that are measured kept to the moments at which they were due; those that were
    /// skipped are not among the offered ones.
    pub(crate) kept: ScheduleOutcome,
    pub(crate) ended_by: EndReason,
    /// The sum of all planned operations' hashes.
    pub(crate) stream_hash: u64,
    /// What the store calls that which was written.
    pub(crate) server_names: ServerNames,
    /// What was changed about who is in sets.
    pub(crate) changes: Vec<(SetIndex, Change)>,
}

impl JobTally {
    /// Adds what another thread did.
    pub(crate) fn add(&mut self, mut other: Self) {
        self.ops_count += other.ops_count;
        self.failed_count += other.failed_count;
        self.measured_failed_count += other.measured_failed_count;
        self.measured_bytes += other.measured_bytes;
        self.bytes += other.bytes;
        self.unchecked.add(other.unchecked);
        self.kept = self.kept.merge(other.kept);
        self.ended_by = self.ended_by.max(other.ended_by);
        self.stream_hash = self.stream_hash.wrapping_add(other.stream_hash);
        self.server_names.append(other.server_names);
        self.changes.append(&mut other.changes);
    }
}

/// Which operations of a job are measured.
#[derive(Debug, Default)]
pub(crate) struct MeasuredJob {
    /// The number in the stage of the first worker that records.
    number_first: u32,
    /// By number from there on, in a stage that begins at moment 0; empty where all count.
    spans: Vec<MeasuredSpan>,
}

impl MeasuredJob {
    /// Returns those of a job of a stage that lasts so long at most.
    pub(crate) fn of(job: &WatchedJob<'_>, stage_duration: Option<Duration>) -> Self {
        let timing = job.timing;
        let span = |number| timing.measured_span(job.begins(number), stage_duration);
        let delay = timing.start_delay.end();
        let is_whole = [timing.ramp, timing.ramp_down, *delay].iter().all(Duration::is_zero);
        let spans = (0..job.numbers).filter(|_| !is_whole).map(span).collect();
        Self { number_first: job.number_first, spans }
    }

    /// Returns from when to when one of its workers is measured, since the start of the stage;
    /// `None` where that is the whole of it.
    pub(crate) fn span(&self) -> Option<(Duration, Option<Duration>)> {
        let since = |at: Moment| at.since(Moment::EPOCH);
        let from = self.spans.iter().map(|span| span.from).min()?;
        let until = self.spans.iter().filter_map(|span| span.until).max();
        Some((since(from), until.map(since)))
    }

    /// Tells whether an operation is measured that was due so long after the start of the stage.
    fn holds(&self, worker: WorkerId, due: Duration) -> bool {
        let span = worker.0.checked_sub(self.number_first);
        let span = span.and_then(|at| self.spans.get(at as usize));
        span.is_none_or(|span| span.holds(Moment::EPOCH.after(due)))
    }
}

/// What one thread hands in at the end of a stage.
#[derive(Debug)]
pub(crate) struct ThreadOutcome {
    pub(crate) timeline: Timeline<SeriesKey>,
    pub(crate) errors: Vec<ErrorSample>,
    /// When its last worker ended.
    pub(crate) ended: Moment,
    pub(crate) recorder_waits: u64,
    pub(crate) recorder_wait: Duration,
    /// How ends were stamped, where operations were waited for on a ring.
    pub(crate) looks: Option<LooksOutcome>,
    /// What was cleaned up behind failed operations.
    pub(crate) settled: Settled,
    /// How often which kind of wrong content was read.
    pub(crate) wrong: BTreeMap<WrongKind, u64>,
    /// How often which number of the protocol's own came with a failure.
    pub(crate) failed_statuses: BTreeMap<u16, u64>,
    /// What its connections told.
    pub(crate) sockets: SocketsSeen,
    /// By [`JobId`]; the last is that of the last job that the thread works for.
    pub(crate) jobs: Vec<JobTally>,
}

impl Default for ThreadOutcome {
    fn default() -> Self {
        Self {
            timeline: Timeline::of_seconds(),
            errors: Vec::new(),
            ended: Moment::EPOCH,
            recorder_waits: 0,
            recorder_wait: Duration::ZERO,
            looks: None,
            settled: Settled::default(),
            wrong: BTreeMap::new(),
            failed_statuses: BTreeMap::new(),
            sockets: SocketsSeen::default(),
            jobs: Vec::new(),
        }
    }
}

/// Where a thread's records go.
pub(crate) enum Outlet<'a> {
    /// To the recorder's thread, which is woken where there is no more room.
    Ring(Producer<PackedOp>, Thread),
    /// To a list that the same thread empties between events.
    List(&'a Mutex<Vec<PackedOp>>),
}

impl Outlet<'_> {
    /// Hands a record over. Never drops: while the buffer is full the thread rests, and returns how
    /// long it did.
    fn push(&mut self, mut packed: PackedOp) -> Duration {
        let (producer, recorder) = match self {
            Self::Ring(producer, recorder) => (producer, recorder),
            Self::List(list) => {
                list.lock().unwrap_or_else(PoisonError::into_inner).push(packed);
                return Duration::ZERO;
            }
        };
        let mut rested = Duration::ZERO;
        while let Err(rtrb::PushError::Full(back)) = producer.push(packed) {
            if producer.is_abandoned() {
                break;
            }
            packed = back;
            recorder.unpark();
            block_for(BUFFER_FULL_REST);
            rested += BUFFER_FULL_REST;
        }
        rested
    }
}

/// The part of a thread's state that all its workers write to.
pub(crate) struct ThreadRecords<'a> {
    outlet: Outlet<'a>,
    /// Where the past of the time line goes; `None` where it stays.
    past: Option<PastSender>,
    counters: &'a ThreadCounters,
    stops: Stops<'a>,
    /// By [`JobId`].
    measured: &'a [MeasuredJob],
    /// When the stage began.
    started: Moment,
    outcome: ThreadOutcome,
}

impl<'a> ThreadRecords<'a> {
    pub(crate) fn new(
        outlet: Outlet<'a>,
        past: Option<PastSender>,
        counters: &'a ThreadCounters,
        stops: Stops<'a>,
        measured: &'a [MeasuredJob],
    ) -> Self {
        let jobs = measured.iter().map(|_| JobTally::default()).collect();
        let outcome = ThreadOutcome { jobs, ..ThreadOutcome::default() };
        Self { outlet, past, counters, stops, measured, started: Moment::EPOCH, outcome }
    }

    /// Takes note that the stage begins.
    pub(crate) fn begin(&mut self, started: Moment) {
        self.started = started;
    }

    /// Returns what the thread hands in, whose last worker ended at `ended`.
    pub(crate) fn finish(self, ended: Moment) -> ThreadOutcome {
        let mut outcome = self.outcome;
        outcome.ended = ended;
        outcome.timeline.close();
        outcome
    }

    #[inline]
    fn job(&mut self, job: JobId) -> &mut JobTally {
        &mut self.outcome.jobs[usize::from(job.0)]
    }

    /// Takes note that operation `number` of `worker`, whose kind and plan's hash these are, goes
    /// out; `intended` is since the stage's start.
    #[inline]
    pub(crate) fn note_planned(
        &mut self,
        job: JobId,
        worker: WorkerId,
        number: u64,
        (kind, fingerprint): (OpKind, u64),
        intended: Option<Duration>,
    ) {
        let at = intended.map_or(0, |intended| intended.as_nanos() as u64);
        let place = mix64(mix64(u64::from(worker.0)) ^ number);
        // A sum does not depend on the order in which workers and threads come.
        let hash = mix64(place ^ mix64(at).wrapping_add(fingerprint));
        self.counters.begin(job, kind);
        let tally = self.job(job);
        tally.stream_hash = tally.stream_hash.wrapping_add(hash);
    }

    /// Takes note that a worker of the job ended.
    pub(crate) fn note_ended(&mut self, job: JobId, reason: EndReason) {
        let tally = self.job(job);
        tally.ended_by = tally.ended_by.max(reason);
    }

    /// Takes note of operations that were due and never issued.
    pub(crate) fn note_skipped(&mut self, job: JobId, count: u64) {
        self.job(job).kept.skipped_count += count;
    }

    /// Takes note from when to when operations of a worker were due in its measured span.
    pub(crate) fn note_offered(&mut self, job: JobId, offered: Option<(Moment, Moment)>) {
        let Some((from, until)) = offered else { return };
        let offered = Some((from.since(self.started), until.since(self.started)));
        let span = &mut self.job(job).kept.span;
        *span = joined(*span, offered);
    }

    /// Takes note of how ends were stamped.
    pub(crate) fn note_looks(&mut self, looks: Option<LooksOutcome>) {
        self.outcome.looks = looks;
    }

    /// Takes note of what was cleaned up behind failed operations.
    pub(crate) fn note_settled(&mut self, settled: Settled) {
        self.outcome.settled.add(settled);
    }

    /// Takes note of what the store calls a version that was written.
    pub(crate) fn note_name(&mut self, job: JobId, name: NamedVersion) {
        self.job(job).server_names.add(name);
    }

    /// Takes note of what was changed about who is in sets.
    pub(crate) fn note_changes(&mut self, job: JobId, mut changes: Vec<(SetIndex, Change)>) {
        self.job(job).changes.append(&mut changes);
    }

    /// Keeps an operation that may have been held back when it was due.
    #[inline]
    pub(crate) fn keep_held(&mut self, finished: &Finished, is_held: bool) {
        if !is_held {
            return self.keep(finished);
        }
        let job = finished.record.job;
        let kept = self.job(job).kept;
        self.keep(finished);
        // How late it was says nothing of the schedule; nor does it count at all in a ramp.
        let counted = self.job(job).kept.offered_count - kept.offered_count;
        let (held_count, offered_count) = (kept.held_count + counted, kept.offered_count + counted);
        self.job(job).kept = ScheduleOutcome { held_count, offered_count, ..kept };
    }

    #[inline]
    pub(crate) fn keep(&mut self, finished: &Finished) {
        let Finished { record, error, wrong, is_unchecked, server_name: _ } = finished;
        if *is_unchecked {
            let unchecked = Unchecked { count: 1, bytes: record.bytes };
            self.job(record.job).unchecked.add(unchecked);
        }
        if let Some(error) = error {
            self.note_failure(record, *wrong, error);
        }
        self.count(record);
    }

    /// Counts an operation and hands its record over.
    #[inline]
    pub(crate) fn count(&mut self, record: &OpRecord) {
        let OpRecord { stage, job, kind, endpoint, .. } = *record;
        let sample = sample(record);
        let due = record.intended.since(self.started);
        let is_measured = self.measured[usize::from(job.0)].holds(record.worker, due);
        let tally = self.job(job);
        let bytes = if record.outcome.is_ok() { record.bytes } else { 0 };
        if is_measured {
            tally.measured_failed_count += u64::from(!record.outcome.is_ok());
            tally.measured_bytes += bytes;
            tally.kept.add(record);
        }
        tally.ops_count += 1;
        tally.bytes += bytes;
        let series = SeriesKey { stage, kind, endpoint };
        self.counters.end(job, series, &sample);
        let past = &self.past;
        self.outcome.timeline.record_and(series, &sample, |timeline| {
            if let Some(past) = past {
                past.send(timeline);
            }
        });
        if record.outcome.is_ok()
            && let Some(alike) = self.stops.alike.take()
        {
            alike.succeeded();
        }
        let mut packed = PackedOp::from(record);
        if !is_measured {
            packed.leave_out();
        }
        self.push(packed);
    }

    /// Counts a failure, keeps its text if it is one of the first of its class, and ends the stage
    /// where the first one is to do so.
    #[cold]
    fn note_failure(&mut self, record: &OpRecord, wrong: Option<WrongKind>, error: &DriverError) {
        let OpRecord { job, kind, endpoint, end, outcome, .. } = *record;
        self.job(job).failed_count += 1;
        if let Some(wrong) = wrong {
            *self.outcome.wrong.entry(wrong).or_default() += 1;
        }
        if let Some(status) = error.status {
            *self.outcome.failed_statuses.entry(status).or_default() += 1;
        }
        if self.stops.end_on_failure {
            let because = format!("{} failed: {error}", kind.name());
            self.stops.rule.get_or_init(|| Verdict { reason: EndReason::Failure, because });
        }
        let after = end.since(self.started);
        if let Some(count) = self.stops.alike.and_then(|alike| alike.failed(outcome, after)) {
            let because = format!("all {count} operations so far failed alike: {error}");
            self.stops.rule.get_or_init(|| Verdict { reason: EndReason::Failure, because });
        }
        let failure = || ErrorSample {
            class: outcome,
            job,
            kind,
            endpoint,
            at: end,
            status: error.status,
            message: error.to_string(),
        };
        self.counters.failures.note(outcome, end, failure);
        let same = |kept: &&ErrorSample| kept.class == outcome;
        if self.outcome.errors.iter().filter(same).count() < ERRORS_KEPT_PER_CLASS {
            self.outcome.errors.push(failure());
        }
    }

    /// Hands the record over.
    fn push(&mut self, packed: PackedOp) {
        let rested = self.outlet.push(packed);
        if !rested.is_zero() {
            self.outcome.recorder_waits += 1;
            self.outcome.recorder_wait += rested;
        }
    }
}

#[inline]
fn sample(record: &OpRecord) -> Sample {
    Sample {
        start_ns: record.start.as_ns(),
        end_ns: record.end.as_ns(),
        latency_ns: record.end.as_ns().saturating_sub(record.intended.as_ns()),
        ttfb_ns: record.ttfb().map(|ttfb| ttfb.as_nanos() as u64),
        bytes: record.bytes,
        objects: u64::from(record.objects_count),
        outcome: record.outcome as u8,
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rtrb::RingBuffer;

    use super::*;

    fn op(end: u64) -> PackedOp {
        PackedOp::from(&OpRecord::plain(OpKind::Stat, Moment::EPOCH, Moment::from_ns(end)))
    }

    #[test]
    fn who_finds_the_buffer_full_wakes_the_recorder() {
        let (producer, mut consumer) = RingBuffer::new(1);
        let mut outlet = Outlet::Ring(producer, thread::current());
        thread::scope(|scope| {
            let worker = scope.spawn(move || [1, 2].map(|end| outlet.push(op(end))));
            // Nobody else ends this.
            thread::park();
            let first = consumer.pop().unwrap();
            let rested = worker.join().unwrap();
            assert_eq!(rested[0], Duration::ZERO);
            assert_eq!([first, consumer.pop().unwrap()], [1, 2].map(op));
        });
    }
}

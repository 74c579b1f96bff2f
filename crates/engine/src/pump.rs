//! The async pump: the workers of one thread on a runtime of their own, with their own counters and
//! record buffer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use plimsoll_driver::{Driver, Session, Settled};
use plimsoll_model::{
    ErrorClass, JobId, Moment, OpRecord, PackedOp, SeriesKey, StageKind, WorkerId,
};
use plimsoll_stats::{Sample, Timeline};
use plimsoll_workload::data::WrongKind;
use plimsoll_workload::{Pacing, PlannedOp, Target, mix64};
use rtrb::Producer;
use tokio::runtime::Runtime;

use crate::clock::{Timer, block_for};
use crate::live::ThreadCounters;
use crate::open::{LATE_ABOVE, run_open};
use crate::planner::{EndReason, Planner, Step};
use crate::server_names::{OwnerNames, VersionNames};
use crate::stage::{ErrorSample, LooksOutcome, ScheduleOutcome};
use crate::uploads::{Bench, InParts, upload_objects, upload_share};
use crate::watch::Stops;
use crate::worker::{Executor, Finished, Listed, Names, Patience, StageFacts};

/// Who waits looks whether to stop at least this often.
pub(crate) const STOP_CHECK: Duration = Duration::from_millis(50);
/// How long a thread rests when its record buffer is full.
const BUFFER_FULL_REST: Duration = Duration::from_micros(200);
/// Operations that never suspend are interrupted after this many, so that other workers get their
/// turn.
pub(crate) const BURST_MAX: u32 = 64;
/// First error texts kept per class and thread.
pub(crate) const ERRORS_KEPT_PER_CLASS: usize = 10;

/// What one thread hands in at the end of a stage.
#[derive(Debug)]
pub(crate) struct ThreadOutcome {
    pub(crate) timeline: Timeline<SeriesKey>,
    pub(crate) errors: Vec<ErrorSample>,
    pub(crate) reasons: Vec<EndReason>,
    /// When its last worker ended.
    pub(crate) ended: Moment,
    pub(crate) recorder_waits: u64,
    pub(crate) recorder_wait: Duration,
    pub(crate) ops_count: u64,
    pub(crate) failed_count: u64,
    /// Operations of an open loop that started late.
    pub(crate) late_count: u64,
    /// Operations of an open loop that were due and never issued.
    pub(crate) skipped_count: u64,
    /// The longest time from an intended moment to the start.
    pub(crate) delay_max: Duration,
    /// How each job on files kept its schedule, of those that have one.
    pub(crate) job_schedules: BTreeMap<JobId, ScheduleOutcome>,
    /// How ends were stamped, where operations were waited for on a ring.
    pub(crate) looks: Option<LooksOutcome>,
    /// The sum of all planned operations' hashes.
    pub(crate) stream_hash: u64,
    /// What was cleaned up behind failed operations.
    pub(crate) settled: Settled,
    /// How often which kind of wrong content was read.
    pub(crate) wrong: BTreeMap<WrongKind, u64>,
    /// What the versions are called that each worker wrote in a prepare stage.
    pub(crate) server_names: BTreeMap<WorkerId, OwnerNames>,
}

impl Default for ThreadOutcome {
    fn default() -> Self {
        Self {
            timeline: Timeline::new(0, 1_000_000_000),
            errors: Vec::new(),
            reasons: Vec::new(),
            ended: Moment::EPOCH,
            recorder_waits: 0,
            recorder_wait: Duration::ZERO,
            ops_count: 0,
            failed_count: 0,
            late_count: 0,
            skipped_count: 0,
            delay_max: Duration::ZERO,
            job_schedules: BTreeMap::new(),
            looks: None,
            stream_hash: 0,
            settled: Settled::default(),
            wrong: BTreeMap::new(),
            server_names: BTreeMap::new(),
        }
    }
}

/// Where a thread's records go.
pub(crate) enum Outlet<'a> {
    /// To the recorder's thread.
    Ring(Producer<PackedOp>),
    /// To a list that the same thread empties between events.
    List(&'a Mutex<Vec<PackedOp>>),
}

/// The part of a thread's state that all its workers write to.
pub(crate) struct Shared<'a> {
    outlet: Outlet<'a>,
    counters: &'a ThreadCounters,
    outcome: ThreadOutcome,
}

impl<'a> Shared<'a> {
    pub(crate) fn new(outlet: Outlet<'a>, counters: &'a ThreadCounters) -> Self {
        Self { outlet, counters, outcome: ThreadOutcome::default() }
    }

    /// Returns what the thread hands in, whose last worker ended at `ended`.
    pub(crate) fn finish(self, reasons: Vec<EndReason>, ended: Moment) -> ThreadOutcome {
        let mut outcome = self.outcome;
        outcome.ended = ended;
        outcome.reasons = reasons;
        outcome.timeline.close();
        outcome
    }

    /// Takes note that operation `number` of `worker`, whose plan has this hash, goes out;
    /// `intended` is since the stage's start.
    pub(crate) fn note_planned(
        &mut self,
        worker: WorkerId,
        number: u64,
        fingerprint: u64,
        intended: Option<Duration>,
    ) {
        let at = intended.map_or(0, |intended| intended.as_nanos() as u64);
        let place = mix64(mix64(u64::from(worker.0)) ^ number);
        // A sum does not depend on the order in which workers and threads come.
        let hash = mix64(place ^ mix64(at).wrapping_add(fingerprint));
        self.outcome.stream_hash = self.outcome.stream_hash.wrapping_add(hash);
    }

    /// Takes note of operations that were due and never issued.
    pub(crate) fn note_skipped(&mut self, count: u64) {
        self.outcome.skipped_count += count;
    }

    /// Takes note of how a clone of a job on files kept its schedule.
    pub(crate) fn note_schedule(&mut self, job: JobId, kept: ScheduleOutcome) {
        let of_job = self.outcome.job_schedules.entry(job).or_default();
        *of_job = of_job.merge(kept);
    }

    /// Takes note of how ends were stamped.
    pub(crate) fn note_looks(&mut self, looks: Option<LooksOutcome>) {
        self.outcome.looks = looks;
    }

    /// Takes note of what was cleaned up behind failed operations.
    pub(crate) fn note_settled(&mut self, settled: Settled) {
        self.outcome.settled.add(settled);
    }

    /// Takes note of what the store calls the next version that `worker` wrote.
    fn note_name(&mut self, worker: WorkerId, server_name: Option<&str>) {
        self.outcome.server_names.entry(worker).or_default().push(server_name);
    }

    pub(crate) fn keep(&mut self, finished: Finished) {
        let Finished { record, error, wrong, server_name: _ } = finished;
        if let Some(wrong) = wrong {
            *self.outcome.wrong.entry(wrong).or_default() += 1;
        }
        if let Some(error) = error {
            self.outcome.failed_count += 1;
            self.keep_error(&record, error.status, error.to_string());
        }
        self.count(&record);
    }

    /// Counts an operation and hands its record over.
    #[inline]
    pub(crate) fn count(&mut self, record: &OpRecord) {
        if record.start > record.intended {
            let delay = record.start.since(record.intended);
            self.outcome.late_count += u64::from(delay > LATE_ABOVE);
            self.outcome.delay_max = self.outcome.delay_max.max(delay);
        }
        self.outcome.ops_count += 1;
        let OpRecord { stage, kind, endpoint, .. } = *record;
        let sample = sample(record);
        self.counters.count(kind, &sample);
        self.outcome.timeline.record(SeriesKey { stage, kind, endpoint }, &sample);
        self.push(PackedOp::from(record));
    }

    fn keep_error(&mut self, record: &OpRecord, status: Option<u16>, message: String) {
        let same = |kept: &&ErrorSample| kept.class == record.outcome;
        if self.outcome.errors.iter().filter(same).count() < ERRORS_KEPT_PER_CLASS {
            let OpRecord { kind, endpoint, end, outcome, .. } = *record;
            self.outcome.errors.push(ErrorSample {
                class: outcome,
                kind,
                endpoint,
                at: end,
                status,
                message,
            });
        }
    }

    /// Hands the record over. Never drops: while the buffer is full the thread rests, and says how
    /// long.
    fn push(&mut self, mut packed: PackedOp) {
        let producer = match &mut self.outlet {
            Outlet::Ring(producer) => producer,
            Outlet::List(list) => {
                return list.lock().unwrap_or_else(PoisonError::into_inner).push(packed);
            }
        };
        let mut full = false;
        while let Err(rtrb::PushError::Full(back)) = producer.push(packed) {
            if producer.is_abandoned() {
                return;
            }
            packed = back;
            block_for(BUFFER_FULL_REST);
            self.outcome.recorder_wait += BUFFER_FULL_REST;
            full = true;
        }
        self.outcome.recorder_waits += u64::from(full);
    }
}

/// Returns a hash of what is planned.
pub(crate) fn fingerprint(op: &PlannedOp) -> u64 {
    let words = match op.target {
        Target::Object(object, range) => {
            let (offset, len) = range.map_or((0, u64::MAX), |range| range);
            [object.id.as_u64(), object.size ^ u64::from(object.version) << 48, offset, len]
        }
        Target::Batch { from, count } => [from, u64::from(count), 1, 0],
        Target::Listing => [2, 0, 0, 0],
        Target::Part { object, number, bytes } => [object.as_u64(), u64::from(number), bytes, 3],
        Target::Member(object) => [object.id.as_u64(), object.size, 4, 0],
        Target::Archive(id) => [id.as_u64(), 5, 0, 0],
        Target::Copies(object) => [object.id.as_u64(), object.size, 6, 0],
    };
    words.into_iter().fold(op.kind as u64 + 1, |hash, word| mix64(hash ^ mix64(word)))
}

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

/// What one thread needs to run its workers.
pub(crate) struct ThreadPlan<'a, D> {
    pub(crate) driver: &'a D,
    pub(crate) facts: &'a StageFacts,
    pub(crate) kind: StageKind,
    pub(crate) workers: Vec<WorkerId>,
    /// How many operations may be under way at once.
    pub(crate) in_flight_max: usize,
    pub(crate) timer: Timer,
    pub(crate) outlet: Outlet<'a>,
    pub(crate) counters: &'a ThreadCounters,
    pub(crate) stops: Stops<'a>,
}

/// Returns the runtime of one thread.
pub(crate) fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Runs the workers of one thread to their end. `ready` is called when the sessions are open and
/// returns when the stage begins.
pub(crate) async fn run_thread<D: Driver>(
    plan: ThreadPlan<'_, D>,
    ready: impl FnOnce() -> Moment,
) -> ThreadOutcome {
    let ThreadPlan { driver, facts, kind, workers, in_flight_max, mut timer, .. } = plan;
    let ThreadPlan { outlet, counters, stops, .. } = plan;
    let shared = RefCell::new(Shared::new(outlet, counters));
    let sessions = driver.open_sessions(&facts.clock, in_flight_max);
    let started = ready();
    let listed = RefCell::new(Listed::default());
    let deadline = (kind == StageKind::Measure).then(|| started.after(facts.workload.duration));
    let bench = Bench { facts, shared: &shared, listed: &listed, stops, deadline };
    let planner = |worker| Planner::new(&facts.workload, kind, worker, started);
    let reasons = match (InParts::of(&facts.workload, kind), &facts.workload.pacing, kind) {
        (Some(InParts::Each(count)), ..) => {
            let mut sessions = sessions.into_iter();
            let loops = workers.iter().map(|&worker| {
                let own = sessions.by_ref().take(count).collect();
                upload_objects(bench, worker, planner(worker), own)
            });
            loops.collect::<FuturesUnordered<_>>().collect().await
        }
        (Some(InParts::Together), ..) => {
            let loops = workers
                .iter()
                .zip(sessions)
                .map(|(&worker, session)| upload_share(bench, worker, planner(worker), session));
            loops.collect::<FuturesUnordered<_>>().collect().await
        }
        (None, Pacing::Open(open), StageKind::Measure) => {
            let by = (&mut timer, stops);
            vec![run_open(facts, open, &workers, sessions, started, by, &shared).await]
        }
        _ => {
            let loops = workers.iter().zip(sessions).map(|(&worker, session)| {
                let executor = Executor::new(facts, &listed, Patience { stops, deadline });
                work(facts, worker, planner(worker), (session, executor), &shared, stops)
            });
            // Only the workers whose sockets are ready are polled, so that cost does not grow with
            // their number.
            loops.collect::<FuturesUnordered<_>>().collect().await
        }
    };
    shared.into_inner().finish(reasons, facts.clock.now())
}

async fn work<S: Session>(
    facts: &StageFacts,
    worker: WorkerId,
    mut planner: Planner,
    (mut session, mut executor): (S, Executor<'_>),
    shared: &RefCell<Shared<'_>>,
    stops: Stops<'_>,
) -> EndReason {
    let mut now = facts.clock.now();
    let mut burst = 0;
    let mut number = 0;
    let mut versions = VersionNames::new(facts);
    loop {
        if let Some(reason) = stops.reason() {
            return reason;
        }
        match planner.next(now) {
            Step::Done(reason) => return reason,
            Step::WaitUntil(until) => {
                facts.waiting.suspend_for(until.since(now).min(STOP_CHECK)).await;
                now = facts.clock.now();
            }
            Step::Start(op) => {
                shared.borrow_mut().note_planned(worker, number, fingerprint(&op), None);
                number += 1;
                let name = versions.as_ref().and_then(|versions| versions.of(&op));
                let names = Names::version(name);
                let mut finished = executor.run(&mut session, worker, &op, names, None).await;
                if let Some(versions) = &mut versions {
                    versions.completed(&op, finished.server_name.take());
                } else if facts.keeps_names {
                    shared.borrow_mut().note_name(worker, finished.server_name.as_deref());
                }
                let (outcome, end): (ErrorClass, Moment) =
                    (finished.record.outcome, finished.record.end);
                planner.completed(&op, outcome, end);
                shared.borrow_mut().keep(finished);
                now = end;
                if !outcome.is_ok() {
                    // The operation has ended and the next one has not started, so that this is in
                    // the time of neither.
                    let settled = session.settle().await;
                    shared.borrow_mut().note_settled(settled);
                    now = facts.clock.now();
                }
                burst += 1;
                if burst == BURST_MAX {
                    burst = 0;
                    tokio::task::yield_now().await;
                    now = facts.clock.now();
                }
            }
        }
    }
}

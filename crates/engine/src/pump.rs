//! The async pump: the workers of one thread on a runtime of their own, with their own counters and
//! record buffer.

use std::cell::RefCell;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use plimsoll_driver::{Driver, Session};
use plimsoll_model::{ErrorClass, Moment, OpRecord, PackedOp, SeriesKey, StageKind, WorkerId};
use plimsoll_stats::{Sample, Timeline};
use rtrb::Producer;
use tokio::runtime::Runtime;

use crate::clock::{block_for, suspend_for};
use crate::live::ThreadCounters;
use crate::planner::{EndReason, Planner, Step};
use crate::stage::ErrorSample;
use crate::watch::Stops;
use crate::worker::{Doer, Finished, StageFacts};

/// A waiting worker looks whether it is to stop at least this often.
const STOP_CHECK: Duration = Duration::from_millis(50);
/// How long a thread rests when its record buffer is full.
const BUFFER_FULL_REST: Duration = Duration::from_micros(200);
/// Operations that never suspend are interrupted after this many, so that other workers get their
/// turn.
const BURST_MAX: u32 = 64;
/// First error texts kept per class and thread.
pub(crate) const ERRORS_KEPT_PER_CLASS: usize = 10;

/// What one thread hands in at the end of a stage.
pub(crate) struct ThreadOutcome {
    pub(crate) timeline: Timeline<SeriesKey>,
    pub(crate) errors: Vec<ErrorSample>,
    pub(crate) reasons: Vec<EndReason>,
    pub(crate) recorder_waits: u64,
    pub(crate) recorder_wait: Duration,
    pub(crate) ops_count: u64,
    pub(crate) failed_count: u64,
}

/// The part of a thread's state that all its workers write to.
struct Shared<'a> {
    producer: Producer<PackedOp>,
    counters: &'a ThreadCounters,
    outcome: ThreadOutcome,
}

impl Shared<'_> {
    fn keep(&mut self, finished: Finished) {
        let Finished { record, error } = finished;
        let ok = record.outcome.is_ok();
        self.outcome.ops_count += 1;
        self.counters.count(record.kind, ok, record.bytes, record.latency());
        let OpRecord { stage, kind, endpoint, .. } = record;
        self.outcome.timeline.record(SeriesKey { stage, kind, endpoint }, &sample(&record));
        if let Some(error) = error {
            self.outcome.failed_count += 1;
            self.keep_error(&record, error.to_string());
        }
        self.push(PackedOp::from(&record));
    }

    fn keep_error(&mut self, record: &OpRecord, message: String) {
        let same = |kept: &&ErrorSample| kept.class == record.outcome;
        if self.outcome.errors.iter().filter(same).count() < ERRORS_KEPT_PER_CLASS {
            let OpRecord { kind, endpoint, end, outcome, .. } = *record;
            self.outcome.errors.push(ErrorSample {
                class: outcome,
                kind,
                endpoint,
                at: end,
                message,
            });
        }
    }

    /// Hands the record over. Never drops: while the buffer is full the thread rests, and says how
    /// long.
    fn push(&mut self, mut packed: PackedOp) {
        let mut full = false;
        while let Err(rtrb::PushError::Full(back)) = self.producer.push(packed) {
            if self.producer.is_abandoned() {
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

fn sample(record: &OpRecord) -> Sample {
    Sample {
        start_ns: record.start.as_ns(),
        end_ns: record.end.as_ns(),
        latency_ns: record.latency().as_nanos() as u64,
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
    pub(crate) producer: Producer<PackedOp>,
    pub(crate) counters: &'a ThreadCounters,
    pub(crate) stops: Stops<'a>,
}

/// Returns the runtime of one thread.
pub(crate) fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Runs the workers of one thread to their end. `ready` is called when the sessions are open and
/// returns when the stage begins.
pub(crate) fn run_thread<D: Driver>(
    runtime: Runtime,
    plan: ThreadPlan<'_, D>,
    ready: impl FnOnce() -> Moment,
) -> ThreadOutcome {
    let ThreadPlan { driver, facts, kind, workers, producer, counters, stops } = plan;
    let outcome = ThreadOutcome {
        timeline: Timeline::new(0, 1_000_000_000),
        errors: Vec::new(),
        reasons: Vec::new(),
        recorder_waits: 0,
        recorder_wait: Duration::ZERO,
        ops_count: 0,
        failed_count: 0,
    };
    let shared = RefCell::new(Shared { producer, counters, outcome });
    runtime.block_on(async {
        let sessions = driver.open_sessions(&facts.clock, workers.len());
        let started = ready();
        let loops = workers.iter().zip(sessions).map(|(&worker, session)| {
            let planner = Planner::new(&facts.workload, kind, worker, started);
            work(facts, worker, planner, session, &shared, stops)
        });
        // Only the workers whose sockets are ready are polled, so that cost does not grow with
        // their number.
        let reasons = loops.collect::<FuturesUnordered<_>>().collect().await;
        shared.borrow_mut().outcome.reasons = reasons;
    });
    let mut outcome = shared.into_inner().outcome;
    outcome.timeline.close();
    outcome
}

async fn work<S: Session>(
    facts: &StageFacts,
    worker: WorkerId,
    mut planner: Planner,
    mut session: S,
    shared: &RefCell<Shared<'_>>,
    stops: Stops<'_>,
) -> EndReason {
    let mut doer = Doer::new(facts, worker);
    let mut now = facts.clock.now();
    let mut burst = 0;
    loop {
        if let Some(reason) = stops.reason() {
            return reason;
        }
        match planner.next(now) {
            Step::Done(reason) => return reason,
            Step::WaitUntil(until) => {
                suspend_for(until.since(now).min(STOP_CHECK)).await;
                now = facts.clock.now();
            }
            Step::Start(op, intended) => {
                let finished = doer.run(&mut session, &op, intended).await;
                let (outcome, end): (ErrorClass, Moment) =
                    (finished.record.outcome, finished.record.end);
                planner.completed(&op, outcome, end);
                shared.borrow_mut().keep(finished);
                now = end;
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

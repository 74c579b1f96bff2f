//! A consistency check: workers that write, read, remove and list a few keys at the same time, and
//! tell a witness what they asked and what they got.

mod config;
mod content;
mod session;
mod state;

use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use plimsoll_driver::{Completion, DELETE_BATCH_MAX, Driver, Operation, Session};
use plimsoll_model::{EndReason, ErrorClass, Moment, PackedOp, SharedClock, WorkerId};
use plimsoll_stats::Sample;
use plimsoll_workload::history::{Answer, KeyNumber, ValueId, Witness};

pub use self::config::{CheckConfig, CheckContext, CheckOutcome};
use self::session::{CheckSession, Checked};
use self::state::{CheckOp, CheckState, Choices};
use crate::clock::Waiting;
use crate::live::{Live, ThreadCounters};
use crate::outcome::{EngineError, OpSink, OpSinkError, PastSink, StageOutcome};
use crate::past::Past;
use crate::pump::{LoopTime, runtime, serve};
use crate::records::ThreadOutcome;
use crate::source::{OpSource, Step};
use crate::threads::{Body, Gate, StageThreads};
use crate::timing::Stops;

/// The pause after a failure; it doubles up to [`PAUSE_MAX`] while failures go on.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(640);

/// Does what `config` asks for, tells `witness`, and removes the keys again.
pub fn run_check<D: Driver, W: Witness + Send>(
    driver: &D,
    config: &CheckConfig,
    context: &CheckContext<'_>,
    witness: &mut W,
) -> Result<CheckOutcome, EngineError> {
    assert!((1..=ValueId::WRITERS_MAX).contains(&config.workers), "the workers have numbers");
    let threads = config.threads.clamp(1, config.workers as usize);
    let state = Mutex::new(CheckState::new(config, witness));
    let rule = OnceLock::new();
    let CheckContext { clock, stop, live } = *context;
    let stops = Stops { user: stop, rule: &rule, end_on_failure: false, alike: None };
    let body = |index: usize| -> Body<'_> {
        let workers = (index as u32..config.workers).step_by(threads).map(WorkerId);
        let facts = CheckFacts { config, clock, stops, state: &state, live, index };
        Box::new(move |_, gate: &Gate| {
            let runtime = runtime().map_err(EngineError::Thread)?;
            runtime.block_on(facts.run(driver, workers, || gate.wait(stop)));
            Ok(ThreadOutcome { ended: clock.now(), ..ThreadOutcome::default() })
        })
    };
    let stage = StageThreads {
        clock,
        stop,
        begins_at: None,
        stops,
        tells: None,
        past: Past::of(&mut Unrecorded).1,
        sink: &mut Unrecorded,
        jobs: &[],
    };
    let outcome = stage.run((0..threads).map(body).collect(), |_| None)?;
    let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (ops_count, keys_count, errors) = state.into_parts();
    let runtime = runtime().map_err(EngineError::Thread)?;
    runtime.block_on(remove(driver, config, clock, keys_count));
    let StageOutcome { started, ended, .. } = outcome;
    Ok(CheckOutcome { started, ended, ops_count, keys_count, errors })
}

/// The witness keeps what there is to be kept.
struct Unrecorded;

impl OpSink for Unrecorded {
    fn append(&mut self, _: &[PackedOp]) -> Result<(), OpSinkError> {
        Ok(())
    }

    fn tick(&mut self, _: Moment) -> Result<(), OpSinkError> {
        Ok(())
    }

    fn past(&mut self) -> Option<&mut dyn PastSink> {
        None
    }
}

/// Removes every key by name: a store that is being checked may leave some out of its listings.
async fn remove<D: Driver>(driver: &D, config: &CheckConfig, clock: &SharedClock, keys: u32) {
    let mut session = driver.open_sessions(clock, 1).remove(0);
    let names: Vec<String> =
        (0..keys).map(|key| format!("{}{}", config.prefix, KeyNumber(key))).collect();
    for keys in names.chunks(DELETE_BATCH_MAX) {
        // What is left over is found by whoever sweeps the prefix afterwards.
        let delete = session.execute(None, Operation::Delete { keys });
        let _ = tokio::time::timeout(config.op_timeout, delete).await;
    }
}

/// What the workers of one thread share.
struct CheckFacts<'a, 'd, W> {
    config: &'a CheckConfig,
    clock: &'a SharedClock,
    stops: Stops<'a>,
    state: &'a Mutex<CheckState<'d, W>>,
    live: &'a Live,
    /// Which thread it is.
    index: usize,
}

impl<W: Witness> CheckFacts<'_, '_, W> {
    /// Runs the workers of the thread to their end.
    async fn run<D: Driver>(
        &self,
        driver: &D,
        workers: impl ExactSizeIterator<Item = WorkerId>,
        ready: impl FnOnce() -> Moment,
    ) {
        let sessions = driver.open_sessions(self.clock, workers.len());
        let started = ready();
        let time = LoopTime { clock: self.clock, waiting: &Waiting::Machine };
        let work = |(worker, session)| {
            let source = CheckWorker {
                facts: self,
                counters: self.live.thread(self.index),
                worker,
                choices: Choices::new(self.config.seed, worker),
                deadline: self.config.duration.map(|duration| started.after(duration)),
                pause: PAUSE_FIRST,
                not_before: started,
            };
            serve(time, source, CheckSession::new(self.config, self.clock, session), |_| {})
        };
        let loops: FuturesUnordered<_> = workers.zip(sessions).map(work).collect();
        loops.collect::<Vec<EndReason>>().await;
    }
}

/// What one worker asks for.
struct CheckWorker<'a, 'd, W> {
    facts: &'a CheckFacts<'a, 'd, W>,
    counters: &'a ThreadCounters,
    worker: WorkerId,
    choices: Choices,
    deadline: Option<Moment>,
    /// The pause after the next failure.
    pause: Duration,
    not_before: Moment,
}

impl<W: Witness> OpSource for CheckWorker<'_, '_, W> {
    type Op = CheckOp;
    type Done = Checked;

    fn next(&mut self, now: Moment, _: &Waker) -> Step<CheckOp> {
        let Self { facts, worker, choices, .. } = self;
        let mut state = state::lock(facts.state);
        let is_over = self.deadline.is_some_and(|deadline| now >= deadline);
        let over = facts.stops.reason().or(is_over.then_some(EndReason::Duration));
        if over.is_none() && self.not_before > now {
            return Step::WaitUntil(self.not_before);
        }
        let begun =
            if over.is_none() { state.begin(*worker, choices, &**facts.clock) } else { None };
        begun.map_or_else(
            || {
                state.leave(choices);
                Step::Done(over.unwrap_or_default())
            },
            Step::Start,
        )
    }

    fn ended(&mut self, op: &CheckOp, done: &mut Checked) {
        let Checked { completion, answer, end } = done;
        let ok = !matches!(answer, Answer::Failed(_));
        self.counters.count(op.op.kind(), &sample(completion, ok, op.begin, *end));
        let error = completion.result.as_ref().err().filter(|_| !ok).cloned();
        let mut state = state::lock(self.facts.state);
        state.end(self.worker, &mut self.choices, op.op, answer, *end, error);
        if ok {
            self.pause = PAUSE_FIRST;
        } else {
            self.not_before = end.after(self.pause);
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
    }
}

/// Returns one operation as the live counters take it.
fn sample(completion: &Completion, ok: bool, begin: Moment, end: Moment) -> Sample {
    let class = completion.result.as_ref().err().map(|error| error.class);
    let failed_as = class.filter(|class| !class.is_ok()).unwrap_or(ErrorClass::Unknown);
    Sample {
        start_ns: begin.as_ns(),
        end_ns: end.as_ns(),
        latency_ns: end.since(begin).as_nanos() as u64,
        ttfb_ns: None,
        bytes: completion.bytes,
        objects: 1,
        outcome: if ok { ErrorClass::Ok } else { failed_as } as u8,
    }
}

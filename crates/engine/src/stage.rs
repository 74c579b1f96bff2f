//! One stage: a thread per core for the workers, the calling thread for the recorder, and what came
//! of it.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use plimsoll_driver::Driver;
use plimsoll_model::{
    EndpointId, ErrorClass, Moment, OpKind, PackedOp, SeriesKey, SharedClock, StageId, StageKind,
    WorkerId,
};
use plimsoll_stats::Timeline;
use plimsoll_workload::Workload;
use plimsoll_workload::data::Generator;
use rtrb::{Consumer, RingBuffer};
use thiserror::Error;

use crate::clock::{block_for, thread_cpu_time};
use crate::live::{Live, StopFlag};
use crate::planner::EndReason;
use crate::pump::{ERRORS_KEPT_PER_CLASS, ThreadOutcome, ThreadPlan, run_thread, runtime};
use crate::watch::{Stops, Verdict, Watch};
use crate::worker::StageFacts;

/// Records that one thread can be ahead of the recorder: 1 MiB. Larger ones are touched for the
/// first time over minutes, which looks like a leak.
const BUFFER_OPS: usize = 1 << 14;
/// How long the recorder rests when little has come in.
const RECORDER_REST: Duration = Duration::from_millis(2);
/// Below this many records a round the recorder rests.
const RECORDER_BATCH_MIN: usize = 1_024;

/// How the engine drives a stage.
#[derive(Clone, Copy, Debug)]
pub struct EngineConfig {
    /// Threads that drive workers; never more than there are workers.
    pub threads: usize,
    /// An operation that takes longer is given up and counted as `timeout`.
    pub op_timeout: Duration,
    /// Further attempts after a transient failure; their time is inside the latency.
    pub retries: u8,
}

/// Takes finished operations off the engine's hands, such as the op log.
pub trait OpSink {
    /// Takes the next operations.
    fn append(&mut self, ops: &[PackedOp]) -> Result<(), OpSinkError>;

    /// Called now and then, so that what is due by time can happen.
    fn tick(&mut self, now: Moment) -> Result<(), OpSinkError>;
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
}

/// What a stage runs with.
pub struct StageContext<'a> {
    /// The run's clock.
    pub clock: &'a SharedClock,
    /// Ends the stage early.
    pub stop: &'a StopFlag,
    /// Where to count for a display; made for at least as many threads as the configuration has.
    pub live: &'a Live,
    /// The run's content generator.
    pub generator: &'a Arc<Generator>,
}

/// The first text of a failure, for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorSample {
    /// Its class.
    pub class: ErrorClass,
    /// The kind of operation.
    pub kind: OpKind,
    /// Where it went.
    pub endpoint: EndpointId,
    /// When it ended.
    pub at: Moment,
    /// What happened.
    pub message: String,
}

/// What came of a stage.
#[derive(Debug)]
pub struct StageOutcome {
    /// When the workers were let go.
    pub started: Moment,
    /// When the last worker had ended.
    pub ended: Moment,
    /// Why it ended: the least regular reason of all workers.
    pub ended_by: EndReason,
    /// In words and figures which stop rule held, where one ended it.
    pub ended_because: Option<String>,
    /// Counts, shares and histograms per second.
    pub timeline: Timeline<SeriesKey>,
    /// First texts per class, in order of time.
    pub errors: Vec<ErrorSample>,
    /// Operations ended.
    pub ops_count: u64,
    /// Of these, failed.
    pub failed_count: u64,
    /// How often a thread rested because the recorder was behind.
    pub recorder_waits: u64,
    /// Time that threads rested because the recorder was behind.
    pub recorder_wait: Duration,
    /// Processor time of the worker threads and the recorder during the stage.
    pub cpu_time: Duration,
}

/// Runs one stage of `workload` against `driver`, recording into `sink`.
pub fn run_stage<D: Driver>(
    driver: &D,
    workload: &Arc<Workload>,
    (stage, kind): (StageId, StageKind),
    config: &EngineConfig,
    context: &StageContext<'_>,
    sink: &mut dyn OpSink,
) -> Result<StageOutcome, EngineError> {
    let workers = workload.concurrency.get();
    let threads = config.threads.clamp(1, workers as usize);
    let facts = StageFacts {
        workload: Arc::clone(workload),
        generator: Arc::clone(context.generator),
        stage,
        op_timeout: config.op_timeout,
        retries: config.retries,
        clock: Arc::clone(context.clock),
    };
    let gate = Gate::default();
    let rule = OnceLock::new();
    let stops = Stops { user: context.stop, rule: &rule };
    let recorder_cpu = thread_cpu_time();
    std::thread::scope(|scope| {
        let (facts, gate) = (&facts, &gate);
        let mut consumers = Vec::new();
        let mut handles = Vec::new();
        for index in 0..threads {
            let (producer, consumer) = RingBuffer::new(BUFFER_OPS);
            consumers.push(consumer);
            let plan = ThreadPlan {
                driver,
                facts,
                kind,
                workers: (index as u32..workers).step_by(threads).map(WorkerId).collect(),
                producer,
                counters: context.live.thread(index),
                stops,
            };
            let spawned = runtime().and_then(|runtime| {
                let body = move || {
                    let outcome = run_thread(runtime, plan, || gate.wait());
                    (outcome, thread_cpu_time())
                };
                std::thread::Builder::new()
                    .name(format!("worker-{index}"))
                    .spawn_scoped(scope, body)
            });
            match spawned {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    // The threads that are there wait at the gate; they must see the flag and go
                    // home.
                    context.stop.set();
                    gate.open(0, &handles, context.clock);
                    return Err(EngineError::Thread(error));
                }
            }
        }
        let started = gate.open(threads, &handles, context.clock);
        let watch = Watch::new(workload, kind, started);
        let drained = drain(&mut consumers, &handles, context, sink, watch, &rule);
        // Threads whose records nobody takes any more must not wait for room.
        drop(consumers);
        let mut outcome = join(handles, started, context.clock, rule.get());
        outcome.cpu_time += thread_cpu_time() - recorder_cpu;
        drained?;
        Ok(outcome)
    })
}

/// Lets all threads begin at one moment.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    ready: usize,
    started: Option<Moment>,
}

impl Gate {
    /// A thread that dies before it is ready is noticed after at most this long.
    const LOOK: Duration = Duration::from_millis(100);

    /// Waits, as a thread that is ready, for the stage to begin.
    fn wait(&self) -> Moment {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ready += 1;
        self.changed.notify_all();
        loop {
            if let Some(started) = state.started {
                return started;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until `threads` threads are ready, or one has died, and lets them go.
    fn open(&self, threads: usize, handles: &[Handle<'_>], clock: &SharedClock) -> Moment {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.ready < threads && !handles.iter().any(ScopedJoinHandle::is_finished) {
            let waited = self.changed.wait_timeout(state, Self::LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let started = clock.now();
        state.started = Some(started);
        self.changed.notify_all();
        started
    }
}

type Handle<'scope> = ScopedJoinHandle<'scope, (ThreadOutcome, Duration)>;

/// Hands records to the sink until all threads have ended and nothing is left. Sets `rule` when one
/// under `watch` holds, which ends the stage.
fn drain(
    consumers: &mut [Consumer<PackedOp>],
    handles: &[Handle<'_>],
    context: &StageContext<'_>,
    sink: &mut dyn OpSink,
    mut watch: Option<Watch>,
    rule: &OnceLock<Verdict>,
) -> Result<(), OpSinkError> {
    loop {
        let all_ended = handles.iter().all(ScopedJoinHandle::is_finished);
        let mut taken = 0;
        for consumer in consumers.iter_mut() {
            let chunk = consumer.read_chunk(consumer.slots()).expect("these slots are filled");
            taken += chunk.len();
            let (first, second) = chunk.as_slices();
            let appended = sink.append(first).and_then(|()| sink.append(second));
            if let Some(watch) = &mut watch {
                watch.observe(first);
                watch.observe(second);
            }
            chunk.commit_all();
            if let Err(error) = appended.and_then(|()| sink.tick(context.clock.now())) {
                context.stop.set();
                return Err(error);
            }
        }
        if let Some(verdict) = watch.as_mut().and_then(|watch| watch.check(context.clock.now())) {
            rule.get_or_init(|| verdict);
            watch = None;
        }
        if all_ended && taken == 0 {
            return Ok(());
        }
        if !all_ended && taken < RECORDER_BATCH_MIN {
            block_for(RECORDER_REST);
        }
    }
}

/// Waits for the threads and adds up what they hand in.
fn join(
    handles: Vec<Handle<'_>>,
    started: Moment,
    clock: &SharedClock,
    rule: Option<&Verdict>,
) -> StageOutcome {
    let mut sum = StageOutcome {
        started,
        ended: started,
        ended_by: EndReason::OutOfWork,
        ended_because: None,
        timeline: Timeline::new(0, 1_000_000_000),
        errors: Vec::new(),
        ops_count: 0,
        failed_count: 0,
        recorder_waits: 0,
        recorder_wait: Duration::ZERO,
        cpu_time: Duration::ZERO,
    };
    for handle in handles {
        let (outcome, cpu_time) =
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sum.timeline.merge(&outcome.timeline);
        sum.errors.extend(outcome.errors);
        sum.ended_by = outcome.reasons.into_iter().fold(sum.ended_by, EndReason::max);
        sum.ops_count += outcome.ops_count;
        sum.failed_count += outcome.failed_count;
        sum.recorder_waits += outcome.recorder_waits;
        sum.recorder_wait += outcome.recorder_wait;
        sum.cpu_time += cpu_time;
    }
    sum.ended = clock.now();
    // A rule may hold in the moment in which the time is up, or the user has had enough.
    let held = rule.filter(|rule| rule.reason == sum.ended_by);
    sum.ended_because = held.map(|rule| rule.because.clone());
    keep_first_errors(&mut sum.errors);
    sum
}

/// Sorts by time and keeps the first few of each class.
fn keep_first_errors(errors: &mut Vec<ErrorSample>) {
    errors.sort_by_key(|error| error.at);
    let mut kept = [0; ErrorClass::ALL.len()];
    errors.retain(|error| {
        kept[error.class as usize] += 1;
        kept[error.class as usize] <= ERRORS_KEPT_PER_CLASS
    });
}

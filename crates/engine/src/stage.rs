//! One stage: a thread per core for the workers, the calling thread for the recorder, and what came
//! of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use plimsoll_driver::Driver;
use plimsoll_model::{
    Clock, EndpointId, ErrorClass, Moment, OpKind, PackedOp, SeriesKey, SharedClock, StageId,
    StageKind, WorkerId,
};
use plimsoll_stats::Timeline;
use plimsoll_workload::data::{Generator, WrongKind};
use plimsoll_workload::{OpenLoop, Pacing, Workload};
use rtrb::{Consumer, RingBuffer};
use thiserror::Error;

use crate::clock::{Timer, Waiting, block_for, thread_cpu_time};
use crate::live::{Live, StopFlag};
use crate::planner::EndReason;
use crate::pump::{ERRORS_KEPT_PER_CLASS, Outlet, ThreadOutcome, ThreadPlan, run_thread, runtime};
use crate::virtual_time::VirtualTime;
use crate::watch::{Stops, Verdict, Watch};
use crate::worker::StageFacts;

/// Records that one thread can be ahead of the recorder: 1 MiB. Larger ones are touched for the
/// first time over minutes, which looks like a leak.
const BUFFER_OPS: usize = 1 << 14;
/// How long the recorder rests when little has come in.
const RECORDER_REST: Duration = Duration::from_millis(2);
/// Below this many records a round the recorder rests.
const RECORDER_BATCH_MIN: usize = 1_024;

/// How often the stop rules are looked at in virtual time.
const VIRTUAL_LOOK: Duration = Duration::from_millis(5);

/// How many events of virtual time pass until the recorder looks whether enough has come together.
const VIRTUAL_ROUNDS: u64 = 64;

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
    /// The same clock where time is virtual: then everything runs on the calling thread.
    pub virtual_time: Option<&'a Arc<VirtualTime>>,
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
    /// How well the schedule was kept; `None` where there is none.
    pub schedule: Option<ScheduleOutcome>,
    /// The sum of the hashes of all operations as planned: the same for the same stream, however
    /// many threads there are.
    pub stream_hash: u64,
    /// How often which kind of wrong content was read.
    pub wrong: BTreeMap<WrongKind, u64>,
    /// How often a thread rested because the recorder was behind.
    pub recorder_waits: u64,
    /// Time that threads rested because the recorder was behind.
    pub recorder_wait: Duration,
    /// Processor time of the worker threads and the recorder during the stage.
    pub cpu_time: Duration,
}

/// How well the schedule of an open loop was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleOutcome {
    /// Operations that were due before the stage ended.
    pub offered_count: u64,
    /// Of these, started more than a millisecond after they were due.
    pub late_count: u64,
    /// Of these, never issued.
    pub skipped_count: u64,
    /// The longest time from when an operation was due to its start.
    pub delay_max: Duration,
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
    let facts = StageFacts {
        workload: Arc::clone(workload),
        generator: Arc::clone(context.generator),
        stage,
        op_timeout: config.op_timeout,
        retries: config.retries,
        clock: Arc::clone(context.clock),
        waiting: context
            .virtual_time
            .map_or(Waiting::Machine, |time| Waiting::Virtual(Arc::clone(time))),
    };
    let rule = OnceLock::new();
    let stops = Stops { user: context.stop, rule: &rule };
    let stage = Staged { driver, facts: &facts, kind, context, stops };
    match context.virtual_time {
        Some(time) => stage.run_virtual(time, sink),
        None => stage.run_threads(config.threads, sink),
    }
}

/// A stage about to run.
struct Staged<'a, D> {
    driver: &'a D,
    facts: &'a StageFacts,
    kind: StageKind,
    context: &'a StageContext<'a>,
    stops: Stops<'a>,
}

impl<'a, D: Driver> Staged<'a, D> {
    /// Returns the loop of an open stage.
    fn open_loop(&self) -> Option<&'a OpenLoop> {
        match &self.facts.workload.pacing {
            Pacing::Open(open) if self.kind == StageKind::Measure => Some(open),
            _ => None,
        }
    }

    /// Returns how many operations may be under way at once.
    fn in_flight_max(&self) -> usize {
        let workers = self.facts.workload.concurrency;
        self.open_loop().map_or(workers, |open| open.max_in_flight).get() as usize
    }

    /// Returns what thread `index` of `threads` does.
    fn plan(
        &self,
        (index, threads): (usize, usize),
        timer: Timer,
        outlet: Outlet<'a>,
    ) -> ThreadPlan<'a, D> {
        let workers = index as u32..self.facts.workload.concurrency.get();
        ThreadPlan {
            driver: self.driver,
            facts: self.facts,
            kind: self.kind,
            workers: workers.step_by(threads).map(WorkerId).collect(),
            in_flight_max: (index..self.in_flight_max()).step_by(threads).count(),
            timer,
            outlet,
            counters: self.context.live.thread(index),
            stops: self.stops,
        }
    }

    /// Runs the stage on threads of its own; the calling one records.
    fn run_threads(
        self,
        threads: usize,
        sink: &mut dyn OpSink,
    ) -> Result<StageOutcome, EngineError> {
        let (context, workload) = (self.context, &self.facts.workload);
        let workers = workload.concurrency.get() as usize;
        let threads = threads.clamp(1, workers.min(self.in_flight_max()));
        let gate = Gate::default();
        let recorder_cpu = thread_cpu_time();
        std::thread::scope(|scope| {
            let gate = &gate;
            let mut consumers = Vec::new();
            let mut handles = Vec::new();
            for index in 0..threads {
                let (producer, consumer) = RingBuffer::new(BUFFER_OPS);
                consumers.push(consumer);
                let spawned = runtime().and_then(|runtime| {
                    let entered = runtime.enter();
                    let timer = self.facts.waiting.timer()?;
                    drop(entered);
                    let plan = self.plan((index, threads), timer, Outlet::Ring(producer));
                    let body = move || {
                        let outcome = runtime.block_on(run_thread(plan, || gate.wait()));
                        (outcome, thread_cpu_time())
                    };
                    std::thread::Builder::new()
                        .name(format!("worker-{index}"))
                        .spawn_scoped(scope, body)
                });
                match spawned {
                    Ok(handle) => handles.push(handle),
                    Err(error) => {
                        // The threads that are there wait at the gate; they must see the flag and
                        // go home.
                        context.stop.set();
                        gate.open(0, &handles, context.clock);
                        return Err(EngineError::Thread(error));
                    }
                }
            }
            let started = gate.open(threads, &handles, context.clock);
            let watch = Watch::new(workload, self.kind, started);
            let mut recorder = Recorder { context, sink, watch, rule: self.stops.rule };
            let drained = recorder.drain(&mut consumers, &handles);
            // Threads whose records nobody takes any more must not wait for room.
            drop(consumers);
            let joined = handles.into_iter().map(|handle| {
                handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            let mut outcome = self.sum(started, joined);
            outcome.cpu_time += thread_cpu_time() - recorder_cpu;
            drained?;
            Ok(outcome)
        })
    }

    /// Runs the stage on the calling thread in virtual time.
    fn run_virtual(
        self,
        time: &VirtualTime,
        sink: &mut dyn OpSink,
    ) -> Result<StageOutcome, EngineError> {
        let cpu = thread_cpu_time();
        let started = time.now();
        let records = Mutex::new(Vec::new());
        let lock = || records.lock().unwrap_or_else(PoisonError::into_inner);
        let timer = self.facts.waiting.timer().map_err(EngineError::Thread)?;
        let plan = self.plan((0, 1), timer, Outlet::List(&records));
        let watch = Watch::new(&self.facts.workload, self.kind, started);
        let mut recorder = Recorder { context: self.context, sink, watch, rule: self.stops.rule };
        let mut recorded = Ok(());
        let mut look = started.after(VIRTUAL_LOOK);
        let mut rounds = 0u64;
        let thread = time.run(run_thread(plan, || started), || {
            rounds += 1;
            let looks = recorder.watch.is_some() && time.now() >= look;
            if !looks && !rounds.is_multiple_of(VIRTUAL_ROUNDS) {
                return;
            }
            let mut records = lock();
            if recorded.is_ok() && (looks || records.len() >= BUFFER_OPS) {
                recorded = recorder.take(&records, &[]);
                records.clear();
            }
            if looks {
                look = time.now().after(VIRTUAL_LOOK);
                recorder.check_rules();
            }
        });
        recorded.and_then(|()| recorder.take(&lock(), &[]))?;
        let mut outcome = self.sum(started, [(thread, Duration::ZERO)].into_iter());
        outcome.cpu_time = thread_cpu_time() - cpu;
        Ok(outcome)
    }

    /// Adds up what the threads hand in.
    fn sum(
        &self,
        started: Moment,
        threads: impl Iterator<Item = (ThreadOutcome, Duration)>,
    ) -> StageOutcome {
        let mut all = ThreadOutcome::default();
        let mut cpu_time = Duration::ZERO;
        let (mut recorder_waits, mut recorder_wait) = (0, Duration::ZERO);
        for (mut thread, cpu) in threads {
            all.timeline.merge(&thread.timeline);
            all.errors.append(&mut thread.errors);
            all.reasons.append(&mut thread.reasons);
            all.ops_count += thread.ops_count;
            all.failed_count += thread.failed_count;
            all.late_count += thread.late_count;
            all.skipped_count += thread.skipped_count;
            all.delay_max = all.delay_max.max(thread.delay_max);
            all.stream_hash = all.stream_hash.wrapping_add(thread.stream_hash);
            thread.wrong.iter().for_each(|(kind, n)| *all.wrong.entry(*kind).or_default() += n);
            recorder_waits += thread.recorder_waits;
            recorder_wait += thread.recorder_wait;
            cpu_time += cpu;
        }
        let ended_by = all.reasons.into_iter().fold(EndReason::OutOfWork, EndReason::max);
        // A rule may hold in the moment in which the time is up, or the user has had enough.
        let held = self.stops.rule.get().filter(|rule| rule.reason == ended_by);
        keep_first_errors(&mut all.errors);
        let schedule = self.open_loop().map(|_| ScheduleOutcome {
            offered_count: all.ops_count + all.skipped_count,
            late_count: all.late_count,
            skipped_count: all.skipped_count,
            delay_max: all.delay_max,
        });
        StageOutcome {
            started,
            ended: self.context.clock.now(),
            ended_by,
            ended_because: held.map(|rule| rule.because.clone()),
            timeline: all.timeline,
            errors: all.errors,
            ops_count: all.ops_count,
            failed_count: all.failed_count,
            schedule,
            stream_hash: all.stream_hash,
            wrong: all.wrong,
            recorder_waits,
            recorder_wait,
            cpu_time,
        }
    }
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

/// Takes the records off the threads, and watches them for a rule that ends the stage.
struct Recorder<'a> {
    context: &'a StageContext<'a>,
    sink: &'a mut dyn OpSink,
    watch: Option<Watch>,
    rule: &'a OnceLock<Verdict>,
}

impl Recorder<'_> {
    /// Hands records to the sink until all threads have ended and nothing is left.
    fn drain(
        &mut self,
        consumers: &mut [Consumer<PackedOp>],
        handles: &[Handle<'_>],
    ) -> Result<(), OpSinkError> {
        loop {
            let all_ended = handles.iter().all(ScopedJoinHandle::is_finished);
            let mut taken = 0;
            for consumer in consumers.iter_mut() {
                let chunk = consumer.read_chunk(consumer.slots()).expect("these slots are filled");
                taken += chunk.len();
                let (first, second) = chunk.as_slices();
                self.take(first, second)?;
                chunk.commit_all();
            }
            self.tick()?;
            self.check_rules();
            if all_ended && taken == 0 {
                return Ok(());
            }
            if !all_ended && taken < RECORDER_BATCH_MIN {
                block_for(RECORDER_REST);
            }
        }
    }

    /// Hands records to the sink; one that cannot take them ends the stage.
    fn take(&mut self, first: &[PackedOp], second: &[PackedOp]) -> Result<(), OpSinkError> {
        if let Some(watch) = &mut self.watch {
            watch.observe(first);
            watch.observe(second);
        }
        let appended = self.sink.append(first).and_then(|()| self.sink.append(second));
        appended.inspect_err(|_| self.context.stop.set())
    }

    /// Lets the sink do what is due by time.
    fn tick(&mut self) -> Result<(), OpSinkError> {
        let ticked = self.sink.tick(self.context.clock.now());
        ticked.inspect_err(|_| self.context.stop.set())
    }

    /// Ends the stage when a rule holds.
    fn check_rules(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        if let Some(verdict) = watch.check(self.context.clock.now()) {
            self.rule.get_or_init(|| verdict);
            self.watch = None;
        }
    }
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

//! One stage: a thread per core for the workers, the calling thread for the recorder, and what came
//! of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use plimsoll_driver::{Driver, DriverError, Settled};
use plimsoll_model::{
    Clock, EndpointId, ErrorClass, JobId, Moment, OpKind, PackedOp, SeriesKey, SharedClock,
    StageId, StageKind, WallTime, WorkerId,
};
use plimsoll_stats::Timeline;
use plimsoll_workload::data::{Generator, WrongKind};
use plimsoll_workload::{OpenLoop, Pacing, Workload};
use thiserror::Error;

use crate::clock::{Timer, Waiting, thread_cpu_time};
use crate::crew::{BUFFER_OPS, Crew, Gate, Recorder, sum};
use crate::live::{Live, StopFlag};
use crate::open::LATE_ABOVE;
use crate::planner::EndReason;
use crate::pump::{Outlet, ThreadPlan, run_thread, runtime};
use crate::server_names::ServerNames;
use crate::uploads::{InParts, UploadDesk};
use crate::virtual_time::VirtualTime;
use crate::watch::{Stops, Watch};
use crate::worker::StageFacts;

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
    /// Further attempts after a transient failure, at most 254; their time is inside the latency.
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
    /// The target could not be used before the first operation.
    #[error("{0}")]
    Target(DriverError),
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
    /// The wall time at the clock's epoch.
    pub wall_epoch: WallTime,
    /// What the versions are called that the prepare stage wrote, as its outcome says.
    pub server_names: Option<&'a Arc<ServerNames>>,
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
    /// When the last worker ended; what the recorder did afterwards is not in it.
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
    /// The same of each job on files that has a schedule, in the order of the jobs.
    pub job_schedules: Vec<(JobId, ScheduleOutcome)>,
    /// How ends were stamped where operations were waited for on a ring; `None` where none was.
    pub looks: Option<LooksOutcome>,
    /// The sum of the hashes of all operations as planned: the same for the same stream, however
    /// many threads there are.
    pub stream_hash: u64,
    /// What was cleaned up behind failed operations, outside of the time of any.
    pub settled: Settled,
    /// How often which kind of wrong content was read.
    pub wrong: BTreeMap<WrongKind, u64>,
    /// What the store calls the versions that a prepare stage wrote, where later stages need it.
    pub server_names: Option<Arc<ServerNames>>,
    /// How often a thread rested because the recorder was behind.
    pub recorder_waits: u64,
    /// Time that threads rested because the recorder was behind.
    pub recorder_wait: Duration,
    /// Processor time of the worker threads and the recorder during the stage.
    pub cpu_time: Duration,
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

/// How well the schedule of an open loop was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

impl ScheduleOutcome {
    /// Takes note of an operation that was due at `intended` and starts at `start`.
    #[inline]
    pub(crate) fn note_start(&mut self, intended: Moment, start: Moment) {
        let delay = start.since(intended);
        self.offered_count += 1;
        self.late_count += u64::from(delay > LATE_ABOVE);
        self.delay_max = self.delay_max.max(delay);
    }

    /// Takes note of operations that were due and never issued.
    pub(crate) fn note_skipped(&mut self, count: u64) {
        self.offered_count += count;
        self.skipped_count += count;
    }

    /// Returns what came of two schedules.
    pub(crate) fn merge(self, other: Self) -> Self {
        Self {
            offered_count: self.offered_count + other.offered_count,
            late_count: self.late_count + other.late_count,
            skipped_count: self.skipped_count + other.skipped_count,
            delay_max: self.delay_max.max(other.delay_max),
        }
    }
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
    let names = workload.names_versions();
    assert!(
        !names || kind != StageKind::Measure || context.server_names.is_some(),
        "the names of the versions that were prepared are handed over"
    );
    let facts = StageFacts {
        workload: Arc::clone(workload),
        generator: Arc::clone(context.generator),
        stage,
        op_timeout: config.op_timeout,
        retries: config.retries,
        clock: Arc::clone(context.clock),
        wall_epoch: context.wall_epoch,
        server_names: context
            .server_names
            .filter(|_| names && kind == StageKind::Measure)
            .map(Arc::clone),
        keeps_names: names && kind == StageKind::Prepare,
        upload: UploadDesk::default(),
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
        let workers: Vec<WorkerId> = workers.step_by(threads).map(WorkerId).collect();
        let in_flight_max = match InParts::of(&self.facts.workload, self.kind) {
            Some(InParts::Each(lanes)) => workers.len() * lanes,
            _ => (index..self.in_flight_max()).step_by(threads).count(),
        };
        ThreadPlan {
            driver: self.driver,
            facts: self.facts,
            kind: self.kind,
            workers,
            in_flight_max,
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
        sink: &'a mut dyn OpSink,
    ) -> Result<StageOutcome, EngineError> {
        let workload = &self.facts.workload;
        let workers = workload.concurrency.get() as usize;
        let threads = threads.clamp(1, workers.min(self.in_flight_max()));
        let is_open = self.open_loop().is_some();
        let crew = Crew { context: self.context, stops: self.stops, sink, is_open };
        let body = |index, outlet| {
            let runtime = runtime()?;
            let entered = runtime.enter();
            let timer = self.facts.waiting.timer()?;
            drop(entered);
            let plan = self.plan((index, threads), timer, outlet);
            Ok(move |gate: &Gate| Ok(runtime.block_on(run_thread(plan, || gate.wait()))))
        };
        crew.run(threads, body, |started| Watch::new(workload, self.kind, started))
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
        let threads = [(thread, Duration::ZERO)];
        let is_open = self.open_loop().is_some();
        let mut outcome = sum(self.stops, is_open, started, threads);
        outcome.cpu_time = thread_cpu_time() - cpu;
        Ok(outcome)
    }
}

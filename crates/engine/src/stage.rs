//! One stage: its jobs on objects and on files run at once, the calling thread records, and what
//! came of it.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures::future::LocalBoxFuture;
use plimsoll_driver::null::NullDriver;
use plimsoll_driver::{Driver, NullRings, RingDriver};
use plimsoll_model::{Clock, JobId, Moment, PackedOp, StageId};
use plimsoll_workload::data::Generator;
use plimsoll_workload::files::FilePlan;
use plimsoll_workload::{PrefixHash, objects};

use crate::clock::{Waiting, thread_cpu_time};
use crate::context::{EngineConfig, StageContext};
use crate::job::{JobFacts, sessions_each};
use crate::live::Live;
use crate::objects::{ObjectsRun, deal, run_thread};
use crate::outcome::{EngineError, OpSink, OpSinkError, StageOutcome};
use crate::past::{Past, PastSender};
use crate::pump::runtime;
use crate::records::{MeasuredJob, Outlet, ThreadOutcome, ThreadRecords};
use crate::ring::{FilesJob, RingConfig, RingFacts, RingThread, teams, virtual_teams};
use crate::server_names::ServerNames;
use crate::sources::shared_upload::SharedUpload;
use crate::threads::{BUFFER_OPS, Begun, Body, Gate, Recorder, RunJob, StageThreads, sum};
use crate::timing::{Alike, JobTiming, OpsLeft, StageLimits, Stops};
use crate::virtual_time::VirtualTime;
use crate::watch::{StageRules, Watch, WatchedJob};

/// How often the stop rules are looked at in virtual time.
const VIRTUAL_LOOK: Duration = Duration::from_millis(5);

/// How many events of virtual time pass until the recorder looks whether enough has come together.
const VIRTUAL_ROUNDS: u64 = 64;

/// Everything that a stage does. Its workers are numbered once over all jobs.
pub struct StageWork<'a, D, R> {
    /// Which stage of the run it is.
    pub stage: StageId,
    /// Its jobs on whole objects.
    pub objects: Vec<ObjectsJob<'a, D>>,
    /// Its jobs on files.
    pub files: Option<FilesJobs<'a, R>>,
    /// What ends it, whatever its jobs say.
    pub limits: StageLimits,
}

/// A job on whole objects.
pub struct ObjectsJob<'a, D> {
    /// Which job of the stage it is.
    pub id: JobId,
    /// What it is called where a stop rule gives its reasons.
    pub name: &'a str,
    /// The way to its target.
    pub driver: &'a D,
    /// What it does.
    pub work: &'a Arc<objects::ObjectsJob>,
    /// By set: what its content is made by.
    pub generators: &'a Arc<[Arc<Generator>]>,
    /// When its operations start and what ends it.
    pub timing: JobTiming,
    /// Those of its workers that run here; the work says how many there are in all.
    pub workers: Range<u32>,
    /// The number in the stage that the first worker of all has. Where each worker has several
    /// sessions of its own, each session has a number.
    pub number_first: u32,
    /// The number in the record that the first address of its target has.
    pub endpoint_first: u16,
    /// What the store calls that which earlier stages wrote, as their outcomes say.
    pub server_names: Option<&'a Arc<ServerNames>>,
}

/// The jobs on files of a stage.
pub struct FilesJobs<'a, R> {
    /// The way to the files.
    pub driver: &'a R,
    /// What they do.
    pub plan: &'a FilePlan,
    /// Which stage of the plan.
    pub stage: usize,
    /// Which draw of its operations, where it is made again and again.
    pub draw: u8,
    /// How they are driven.
    pub config: RingConfig,
    /// Each job of the stage of the plan, in order.
    pub jobs: Vec<FilesJob>,
    /// The number in the stage that the plan's first worker has.
    pub number_first: u32,
}

impl<'a, D> ObjectsJob<'a, D> {
    /// Returns the job of all workers, as the only one of its stage, which nothing limits.
    pub fn alone(
        driver: &'a D,
        work: &'a Arc<objects::ObjectsJob>,
        generators: &'a Arc<[Arc<Generator>]>,
    ) -> Self {
        Self {
            id: JobId::default(),
            name: "",
            driver,
            work,
            generators,
            timing: JobTiming::default(),
            workers: 0..work.workers.get(),
            number_first: 0,
            endpoint_first: 0,
            server_names: None,
        }
    }
}

impl<'a, R> FilesJobs<'a, R> {
    /// Returns the jobs of a stage of a plan with all their workers, as the only ones.
    pub fn alone(driver: &'a R, plan: &'a FilePlan, stage: usize, config: RingConfig) -> Self {
        let jobs = FilesJob::all(plan, stage);
        Self { driver, plan, stage, config, jobs, number_first: 0, draw: 0 }
    }
}

impl<R> FilesJobs<'_, R> {
    /// Returns the jobs as far as rules watch them.
    fn watched(&self) -> Vec<WatchedJob<'_>> {
        let mut first = self.number_first;
        let watched = self.plan.jobs(self.stage).zip(&self.jobs).map(|((of, _), job)| {
            let number_first = first + job.workers.start;
            first += of.workers.get();
            WatchedJob {
                id: job.id,
                name: &of.name,
                kinds: self.plan.kinds_of(of),
                number_first,
                numbers: job.workers.len() as u32,
                numbers_each: 1,
                timing: &job.timing,
                seed: self.plan.seed.0,
            }
        });
        watched.collect()
    }
}

impl<'a, D> StageWork<'a, D, NullRings> {
    /// Returns a stage of one job on objects.
    pub fn of_objects(stage: StageId, job: ObjectsJob<'a, D>) -> Self {
        Self { stage, objects: vec![job], files: None, limits: StageLimits::default() }
    }
}

impl<'a, R> StageWork<'a, NullDriver, R> {
    /// Returns a stage of jobs on files.
    pub fn of_files(stage: StageId, files: FilesJobs<'a, R>) -> Self {
        let end_on_failure = files.plan.plan.stages[files.stage].end_on_failure;
        let limits = StageLimits { end_on_failure, ..StageLimits::default() };
        Self { stage, objects: Vec::new(), files: Some(files), limits }
    }
}

/// Runs a stage, recording into `sink`.
pub fn run_stage<D: Driver, R: RingDriver>(
    work: &StageWork<'_, D, R>,
    config: &EngineConfig,
    context: &StageContext<'_>,
    sink: &mut dyn OpSink,
) -> Result<StageOutcome, EngineError> {
    let rule = OnceLock::new();
    let StageLimits { end_on_failure, ends_if_alike, .. } = work.limits;
    let watched = Alike::default();
    let alike = ends_if_alike.then_some(&watched);
    let stops = Stops { user: context.stop, rule: &rule, end_on_failure, alike };
    let ops_left = work.limits.ops_max.map(|max| Arc::new(OpsLeft::new(max)));
    let objects: Vec<_> = work
        .objects
        .iter()
        .map(|job| work.run_of(job, config, context, stops, &ops_left))
        .collect();
    let files = work.files.as_ref().map(|files| RingFacts {
        plan: files.plan,
        stage: files.stage,
        draw: files.draw,
        stage_id: work.stage,
        jobs: &files.jobs,
        number_first: files.number_first,
        context,
        stops,
        stage_duration: work.limits.duration,
        stage_ops_left: ops_left.as_ref(),
    });
    let measured = &*work.measured();
    let (objects, files, jobs) = (&*objects, files.as_ref(), &*work.run_jobs(measured));
    let (sender, past) = Past::of(sink);
    let staged = Staged { work, objects, files, jobs, context, stops, past: sender, measured };
    match context.virtual_time {
        Some(time) => staged.run_virtual(time, sink, past),
        None => staged.run_threads(config.threads, sink, past),
    }
}

/// Returns how many threads a stage takes, for as many of which the live counters are to be made.
pub fn stage_threads<D: Driver, R: RingDriver>(
    work: &StageWork<'_, D, R>,
    config: &EngineConfig,
) -> usize {
    let of_objects: usize = work.objects.iter().map(|job| job.workers.len()).sum();
    let rings =
        |files: &FilesJobs<'_, R>| teams(files.plan, files.stage, &files.jobs, &files.config).len();
    of_objects.min(config.threads.max(1)) + work.files.as_ref().map_or(0, rings)
}

impl<D: Driver, R: RingDriver> StageWork<'_, D, R> {
    fn run_of<'r>(
        &self,
        job: &'r ObjectsJob<'_, D>,
        config: &EngineConfig,
        context: &StageContext<'_>,
        stops: Stops<'r>,
        ops_left: &Option<Arc<OpsLeft>>,
    ) -> ObjectsRun<'r, D> {
        let facts = JobFacts {
            key_hashes: key_hashes(job.work),
            work: Arc::clone(job.work),
            generators: Arc::clone(job.generators),
            stage: self.stage,
            job: job.id,
            timing: job.timing.clone(),
            workers: job.workers.clone(),
            number_first: job.number_first,
            endpoint_first: job.endpoint_first,
            op_timeout: config.op_timeout,
            retries: config.retries,
            clock: Arc::clone(context.clock),
            wall_epoch: context.wall_epoch,
            waiting: context
                .virtual_time
                .map_or(Waiting::Machine, |time| Waiting::Virtual(Arc::clone(time))),
            server_names: job.server_names.map(Arc::clone),
            stops,
            stage_duration: self.limits.duration,
            stage_ops_left: ops_left.clone(),
        };
        ObjectsRun { driver: job.driver, upload: SharedUpload::new(&facts), facts }
    }

    fn watched(&self) -> Vec<WatchedJob<'_>> {
        let mut jobs: Vec<WatchedJob<'_>> = self.objects.iter().map(watched).collect();
        if let Some(files) = &self.files {
            jobs.extend(files.watched());
        }
        jobs
    }

    /// Returns which operations of each job are measured, by the job's id.
    fn measured(&self) -> Vec<MeasuredJob> {
        let mut measured = Vec::new();
        for job in self.watched() {
            let at = usize::from(job.id.0);
            measured.resize_with(measured.len().max(at + 1), MeasuredJob::default);
            measured[at] = MeasuredJob::of(&job, self.limits.duration);
        }
        measured
    }

    fn watch(&self, started: Moment) -> Option<Watch> {
        Watch::new(&self.watched(), &self.limits.stop_rules, started)
    }

    /// Returns the stop rules, for who judges them over all parts of the stage; `None` where there
    /// is none.
    pub fn rules(&self) -> Option<StageRules> {
        StageRules::new(&self.watched(), &self.limits.stop_rules)
    }

    fn run_jobs(&self, measured: &[MeasuredJob]) -> Vec<RunJob> {
        let run_job = |id: JobId, timing: &JobTiming| RunJob {
            id,
            is_open: timing.open_loop().is_some(),
            measured: measured[usize::from(id.0)].span(),
        };
        let objects = self.objects.iter().map(|job| run_job(job.id, &job.timing));
        let files = self.files.iter().flat_map(|files| &files.jobs);
        objects.chain(files.map(|job| run_job(job.id, &job.timing))).collect()
    }
}

fn watched<'j, D>(job: &'j ObjectsJob<'_, D>) -> WatchedJob<'j> {
    let numbers_each = sessions_each(job.work);
    WatchedJob {
        id: job.id,
        name: job.name,
        kinds: job.work.kinds(),
        number_first: job.number_first + job.workers.start * numbers_each,
        numbers: job.workers.len() as u32 * numbers_each,
        numbers_each,
        timing: &job.timing,
        seed: job.work.seed.0,
    }
}

/// Returns what hashes the keys of each set.
fn key_hashes(work: &objects::ObjectsJob) -> Vec<PrefixHash> {
    let of_set = |set: &Option<Arc<objects::ObjectSet>>| {
        PrefixHash::new(set.as_ref().map_or("", |set| set.keys.base()))
    };
    work.sets.iter().map(of_set).collect()
}

/// A stage about to run.
struct Staged<'a, D, R> {
    work: &'a StageWork<'a, D, R>,
    objects: &'a [ObjectsRun<'a, D>],
    files: Option<&'a RingFacts<'a>>,
    jobs: &'a [RunJob],
    context: &'a StageContext<'a>,
    stops: Stops<'a>,
    past: Option<PastSender>,
    measured: &'a [MeasuredJob],
}

impl<'a, D: Driver, R: RingDriver> Staged<'a, D, R> {
    /// Returns where thread `index` keeps what it does.
    fn records(&self, index: usize, outlet: Outlet<'a>) -> ThreadRecords<'a> {
        let counters = self.context.live.thread(index);
        ThreadRecords::new(outlet, self.past.clone(), counters, self.stops, self.measured)
    }

    /// Returns who is told what stop rules see, where somebody else judges them.
    fn tells(&self) -> Option<&'a Live> {
        self.work.limits.is_judged_elsewhere.then_some(self.context.live)
    }

    /// Runs the stage on threads of its own; the calling one records.
    fn run_threads(
        &'a self,
        threads: usize,
        sink: &'a mut dyn OpSink,
        past: Past,
    ) -> Result<StageOutcome, EngineError> {
        let mut bodies: Vec<Body<'a>> = Vec::new();
        if !self.objects.is_empty() {
            for (index, shares) in deal(self.objects, threads).into_iter().enumerate() {
                bodies.push(Box::new(move |outlet, gate: &Gate| {
                    let runtime = runtime().map_err(EngineError::Thread)?;
                    let records = self.records(index, outlet);
                    let ready = async || gate.wait(self.context.stop);
                    let run = run_thread(self.objects, shares, records, ready);
                    runtime.block_on(run).map_err(EngineError::Thread)
                }));
            }
        }
        if let (Some(files), Some(facts)) = (&self.work.files, self.files) {
            for team in teams(files.plan, files.stage, &files.jobs, &files.config) {
                let index = bodies.len();
                bodies.push(Box::new(move |outlet, gate: &Gate| {
                    let records = self.records(index, outlet);
                    let thread = RingThread::open(files.driver, facts, &team, records)?;
                    Ok(thread.run(gate.wait(self.context.stop)))
                }));
            }
        }
        let Self { stops, jobs, .. } = *self;
        let StageContext { clock, stop, begins_at, .. } = *self.context;
        let tells = self.tells();
        let threads = StageThreads { clock, stop, begins_at, stops, tells, sink, past, jobs };
        threads.run(bodies, |started| {
            self.context.live.begin(started);
            self.work.watch(started)
        })
    }

    /// Runs the stage on the calling thread in virtual time.
    fn run_virtual(
        &self,
        time: &VirtualTime,
        sink: &mut dyn OpSink,
        past: Past,
    ) -> Result<StageOutcome, EngineError> {
        let cpu = thread_cpu_time();
        let begun = Begun::from(self.context.begins_at, self.context.clock.now());
        let records = Mutex::new(Vec::new());
        sink.begun(begun.at);
        let mut recorder = VirtualRecorder {
            recorder: Recorder {
                clock: self.context.clock,
                stop: self.context.stop,
                sink,
                past,
                watch: self.work.watch(begun.at),
                tells: self.tells(),
                rule: self.stops.rule,
            },
            records: &records,
            recorded: Ok(()),
            look: begun.at.after(VIRTUAL_LOOK),
            rounds: 0,
        };
        let ran = time.run(self.run_all(time, begun.at, &records), || recorder.between(time));
        let past = recorder.finish()?;
        let threads = ran?.into_iter().map(|thread| (thread, Duration::ZERO));
        let mut outcome = sum(self.stops, self.jobs, begun, threads, past);
        outcome.cpu_time = thread_cpu_time() - cpu;
        Ok(outcome)
    }

    /// Runs all jobs in virtual time, each kind as one thread.
    async fn run_all(
        &self,
        time: &VirtualTime,
        begins: Moment,
        list: &'a Mutex<Vec<PackedOp>>,
    ) -> Result<Vec<ThreadOutcome>, EngineError> {
        let mut threads: Vec<LocalBoxFuture<'_, Result<ThreadOutcome, EngineError>>> = Vec::new();
        if !self.objects.is_empty() {
            let shares = deal(self.objects, 1).remove(0);
            let records = self.records(0, Outlet::List(list));
            let ready = async || {
                time.sleep_until(begins).await;
                begins
            };
            let run = run_thread(self.objects, shares, records, ready);
            threads.push(Box::pin(async { run.await.map_err(EngineError::Thread) }));
        }
        if let (Some(files), Some(facts)) = (&self.work.files, self.files) {
            for team in virtual_teams(files.plan, files.stage, &files.jobs, &files.config) {
                let records = self.records(threads.len(), Outlet::List(list));
                let thread = RingThread::open(files.driver, facts, &team, records)?;
                threads.push(Box::pin(async move { Ok(thread.run_virtual(begins, time).await) }));
            }
        }
        futures::future::try_join_all(threads).await
    }
}

/// The recorder of a stage in virtual time.
struct VirtualRecorder<'a, 'r> {
    recorder: Recorder<'a>,
    records: &'r Mutex<Vec<PackedOp>>,
    recorded: Result<(), OpSinkError>,
    /// When the stop rules are looked at next.
    look: Moment,
    rounds: u64,
}

impl VirtualRecorder<'_, '_> {
    /// Takes what has come together between two moments.
    fn between(&mut self, time: &VirtualTime) {
        self.rounds += 1;
        let now = time.now();
        let looks = self.recorder.watch.is_some() && now >= self.look;
        if !looks && !self.rounds.is_multiple_of(VIRTUAL_ROUNDS) {
            return;
        }
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if self.recorded.is_ok() && (looks || records.len() >= BUFFER_OPS) {
            self.recorded = self.recorder.take(&records, &[]);
            records.clear();
        }
        if self.recorded.is_ok() {
            self.recorded = self.recorder.hand_past_on();
        }
        if looks {
            self.look = now.after(VIRTUAL_LOOK);
            self.recorder.check_rules();
        }
    }

    /// Takes what is left, and returns what is not kept of the past.
    fn finish(mut self) -> Result<Past, OpSinkError> {
        self.recorded?;
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        self.recorder.take(&records, &[])?;
        self.recorder.hand_past_on()?;
        Ok(self.recorder.past)
    }
}

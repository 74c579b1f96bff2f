//! The work of a run: the stages of a plan, each with all of its jobs at once.
//!
//! Long: what a stage needs of the plan, of its sets and of its files is borrowed together.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::NullRings;
use plimsoll_engine::{
    EngineConfig, EngineError, FilesJob, FilesJobs, JobTiming, ObjectsJob, OpSink, ServerNames,
    StageContext, StageLimits, StageOutcome, StageWork, run_stage, stage_threads,
};
use plimsoll_model::{EndReason, EndpointId, JobId, StageId, StageKind};
use plimsoll_record::schema::{self, LoopModel, StageJob};
use plimsoll_workload::objects::{self, Members};
use plimsoll_workload::plan::{self, Amount, JobPacing, Placed};
use plimsoll_workload::{Pacing, Verify};

use crate::bucket_work::{BucketsDone, OnBuckets};
use crate::chosen::{Chooser, Chosen, ChosenProbe};
use crate::content::Generators;
use crate::crew::{Agents, Alone, Changes, Crew, DirectedStage, FilesReady};
use crate::error::refused;
use crate::files::FilesRun;
use crate::in_order::in_order;
use crate::probes::Counting;
use crate::read_back::{Named, Noting, asking, await_stores, is_read_back};
use crate::targets::AnyDriver;
use crate::time::rest;
use crate::work::why_over;
use crate::{
    Announced, CallerError, ConductError, Done, FilesOn, Goal, NextStage, Recording, Target, Work,
};

/// Is called before the first stage that measures; its time is in no stage.
pub type BeforeMeasuring<'a> = Box<dyn FnOnce(&Recording) -> Result<(), CallerError> + 'a>;

/// The stages of a plan.
pub struct PlanWork<'a> {
    placed: Arc<Placed>,
    targets: &'a [Target],
    files: Option<&'a mut FilesRun>,
    config: EngineConfig,
    choose: Chooser<'a>,
    crew: Box<dyn Crew + 'a>,
    /// Who carries the stages out, where not this process.
    agents: Option<&'a mut (dyn Agents + 'static)>,
    /// What the last stage has changed, where others carried it out.
    changed: Changes,
    before_measuring: Option<BeforeMeasuring<'a>>,
    /// By set: what its content is made by.
    generators: Generators,
    /// By target: the number in the record of its first address, and how many it has.
    endpoints: Vec<Range<u16>>,
    /// Who is in each set.
    members: Arc<[Members]>,
    /// What stores call the versions that stages so far have written.
    names: Arc<ServerNames>,
    /// What making and removing buckets needs to know of the run.
    on_buckets: Option<OnBuckets>,
    /// Why buckets of the last stage could not be made or removed.
    failed: Option<ConductError>,
    /// The stage that comes next, or goes on.
    now: Now,
}

/// A stage as it is carried out.
#[derive(Default)]
struct Now {
    /// Which stage of the plan it is made after.
    stage: usize,
    /// Tells what a probe asks for from what other probes of its search do; 0 where it is none.
    draw: u8,
    /// The same, with what is not as in the plan.
    chosen: Option<Chosen>,
    timings: Vec<JobTiming>,
    /// Its jobs on objects, with who is in their sets.
    objects: Vec<Arc<objects::ObjectsJob>>,
    /// What the target calls objects that were not as it had acknowledged them.
    server_names: BTreeMap<String, String>,
}

impl Now {
    /// Returns what the stage is to a search, where it is a probe of one.
    fn probe(&self) -> Option<&ChosenProbe> {
        self.chosen.as_ref().and_then(|chosen| chosen.probe.as_ref())
    }
}

impl<'a> PlanWork<'a> {
    /// Returns the work of a plan on these targets, in the order of its stages.
    pub(crate) fn new(
        placed: &Arc<Placed>,
        generators: Generators,
        targets: &'a [Target],
        files: Option<&'a mut FilesRun>,
        config: EngineConfig,
    ) -> Self {
        let mut first = 0;
        let of_target = |target: &Target| {
            // The files of a target are one address.
            let count = target.store().map_or(1, |store| store.record.endpoints.len() as u16);
            let of_target = first..first + count;
            first = of_target.end;
            of_target
        };
        let endpoints = targets.iter().map(of_target).collect();
        Self {
            generators,
            members: Arc::clone(&placed.members),
            placed: Arc::clone(placed),
            targets,
            files,
            config,
            choose: in_order(&[]),
            crew: Box::new(Alone),
            agents: None,
            changed: Changes::default(),
            before_measuring: None,
            endpoints,
            names: Arc::default(),
            on_buckets: None,
            failed: None,
            now: Now::default(),
        }
    }

    /// Has something done before the first stage that measures.
    #[must_use]
    pub fn before_measuring(self, call: BeforeMeasuring<'a>) -> Self {
        Self { before_measuring: Some(call), ..self }
    }

    /// Has somebody decide which stage comes next.
    #[must_use]
    pub fn choosing(self, choose: Chooser<'a>) -> Self {
        Self { choose, ..self }
    }

    /// Has others carry it out as well.
    #[must_use]
    pub fn with_crew(self, crew: Box<dyn Crew + 'a>) -> Self {
        Self { crew, ..self }
    }

    /// Has others carry it out, and this process direct them.
    #[must_use]
    pub fn by_agents(self, agents: &'a mut (dyn Agents + 'static)) -> Self {
        Self { agents: Some(agents), ..self }
    }

    /// Learns from the stage that has ended who is in the sets, and refuses to go on where that
    /// means nothing.
    fn learn(&mut self, recording: &Recording, last: &Done) -> Result<(), ConductError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if let Some(told) = self.now.probe().and_then(|probe| probe.told(&last.outcome)) {
            recording.observer.note(&told);
        }
        let stage = &self.placed.plan.stages[self.now.stage];
        if let Some(error) = why_over(stage, &last.outcome) {
            return Err(error);
        }
        let changed = match self.agents.is_some() {
            true => self.changed.clone(),
            false => {
                let entry = &recording.manifest.stages[usize::from(last.stage.0)];
                let changes = self.changes(&last.outcome);
                let changed = self.crew.exchange(last, changes, entry);
                changed.map_err(ConductError::Caller)?
            }
        };
        let Changes { members, names, files: of_files } = changed;
        if let (Some(files), false) = (&self.files, of_files.is_empty())
            && !files.learn(self.now.stage, &of_files)
        {
            return refused("what others did to the files means nothing here".to_owned());
        }
        let after = self.placed.after(&self.members, members);
        self.members = after.map_err(|reason| ConductError::Caller(reason.into()))?;
        let mut all: Option<ServerNames> = None;
        for names in names {
            all.get_or_insert_with(|| (*self.names).clone()).append((*names).clone());
        }
        self.names = all.map_or_else(|| Arc::clone(&self.names), Arc::new);
        Ok(())
    }

    /// Returns what a stage that was carried out here has changed.
    fn changes(&self, outcome: &StageOutcome) -> Changes {
        let mut changes = Changes::of(outcome);
        // Who is alone knows it already.
        if let (Some(files), true) = (&self.files, self.crew.is_directed()) {
            let is_whole = |job: usize| {
                let of_job = outcome.jobs.iter().find(|of| usize::from(of.job.0) == job);
                of_job.is_some_and(|of| of.ended_by == EndReason::OutOfWork && of.failed_count == 0)
            };
            changes.files = files.changes(self.now.stage, is_whole);
        }
        changes
    }

    /// Returns stage `number` of the record as it is to be carried out.
    fn prepare(&mut self, number: StageId, chosen: &Chosen) -> Now {
        let stage = &self.placed.plan.stages[chosen.stage];
        let timing = |(index, job): (usize, &plan::Job)| {
            let mut timing = JobTiming::of_job(job, stage.duration);
            if let Some((of, pacing)) = &chosen.pacing
                && *of == index
            {
                timing.pacing = pacing.clone();
            }
            if let Some(probe) = &chosen.probe {
                timing.duration = Some(probe.asked.lasts);
            }
            if let Some((of, ops)) = chosen.ops
                && of == index
            {
                timing.ops_max = Some(Amount::All(ops));
            }
            timing
        };
        // A cache would answer what a probe asks for that the one before asked for as well.
        let draw = if chosen.probe.is_some() { number.0 } else { 0 };
        let with_members = |placed: &plan::PlacedJob| {
            Arc::new(placed.work.drawn_anew(draw).with_members(Arc::clone(&self.members)))
        };
        let placed = &self.placed.stages[chosen.stage];
        Now {
            stage: chosen.stage,
            draw,
            chosen: Some(chosen.clone()),
            timings: stage.jobs.iter().enumerate().map(timing).collect(),
            objects: placed.objects.iter().map(with_members).collect(),
            server_names: BTreeMap::new(),
        }
    }

    /// Waits for the stores that the next stage reads back from, has agents make it ready, where
    /// some carry it out, and returns what they know of its files. Refuses files that they need in
    /// common and have not.
    fn prepare_agents(
        &mut self,
        number: StageId,
        chosen: &Chosen,
        recording: &Recording,
    ) -> Result<Option<FilesReady>, ConductError> {
        let stage = &self.placed.plan.stages[chosen.stage];
        if is_read_back(stage) && !self.crew.is_directed() {
            let placed = &self.placed.stages[chosen.stage].objects;
            let asking = asking(self.targets, placed, &self.now.objects, &self.names);
            await_stores(recording, &asking)?;
        }
        let Some(agents) = &mut self.agents else { return Ok(None) };
        let sets_count = self.placed.plan.sets.len();
        let name = chosen.name.as_ref().unwrap_or(&self.placed.plan.stages[chosen.stage].name);
        let directed = DirectedStage { number, name, chosen, before: &self.changed, sets_count };
        let prepared = agents.prepare(&directed, recording.stop.flag());
        let prepared = prepared.map_err(ConductError::Caller)?;
        if let (Some(files), Some(FilesReady { unseen, .. })) = (&self.files, &prepared)
            && let Some(first) = unseen.first()
        {
            let place = files.endpoints();
            if files.crosses(&agents.shares()) {
                return refused(format!(
                    "not all agents see the files that agent {} makes in {place}, and workers of \
                    one agent use files that another makes: mount the same file \
                     system there on all of them, or give each worker its own files",
                    agents.names()[*first],
                ));
            }
            if number == StageId(0) {
                let each = "each fills and uses its own files";
                recording
                    .observer
                    .note(&format!("agents do not see each other's files in {place}: {each}"));
            }
        }
        Ok(prepared)
    }

    /// Returns the jobs of the stage as the record begins with them, each with the workers that it
    /// has here.
    fn recorded_jobs(&self) -> Vec<StageJob> {
        let stage = &self.placed.plan.stages[self.now.stage];
        let placed = &self.placed.stages[self.now.stage];
        let mut file_worker = placed.files_worker_first;
        let of_job = |(index, job): (usize, &plan::Job)| {
            let on_objects = placed.objects.iter().zip(&self.now.objects);
            let on_objects = on_objects.into_iter().find(|(placed, _)| placed.job == index);
            let (worker_first, workers_count) = match on_objects {
                Some((placed, work)) => (placed.worker_first, work.loops_count().get()),
                None => {
                    let first = file_worker;
                    file_worker += job.workers.get();
                    (first, job.workers.get())
                }
            };
            let own = job.workers_of(self.crew.share());
            let loops = workers_count / job.workers;
            let timing = &self.now.timings[index];
            let (loop_model, schedule) = match &timing.pacing {
                JobPacing::Shared(Pacing::Closed) => (LoopModel::Closed, None),
                JobPacing::Shared(Pacing::Open(open)) => {
                    (LoopModel::Open, Some(schema::Schedule::of(open)))
                }
                JobPacing::Shared(Pacing::Capped { .. }) | JobPacing::CappedEach { .. } => {
                    (LoopModel::Capped, None)
                }
            };
            let endpoints = self.endpoints[job.target.0].clone();
            // Nobody waits for the end of a closed loop whose work is done before.
            let lasts = loop_model == LoopModel::Open || !stage.may_end_early(job);
            let planned_until = timing.duration.filter(|_| lasts).map(|duration| {
                let until = *timing.start_delay.end() + timing.ramp + duration;
                u64::try_from(until.as_nanos()).unwrap_or(u64::MAX)
            });
            StageJob {
                group: job.group,
                worker_first: worker_first + own.start * loops,
                schedule,
                planned_until_ns: planned_until,
                endpoint_first: endpoints.start,
                endpoints_count: endpoints.len() as u16,
                ..StageJob::of(&job.name, own.len() as u32 * loops, loop_model)
            }
        };
        stage.jobs.iter().enumerate().map(of_job).collect()
    }

    /// Returns the stage as the engine carries it out.
    fn stage_work<'w, R>(&'w self, stage: StageId, rings: &'w R) -> StageWork<'w, AnyDriver, R> {
        let of = &self.placed.plan.stages[self.now.stage];
        let placed = &self.placed.stages[self.now.stage];
        let share = self.crew.share();
        let objects = placed.objects.iter().zip(&self.now.objects).map(|(placed, work)| {
            let store = self.targets[placed.target.0].store();
            ObjectsJob {
                id: JobId(placed.job as u8),
                name: &of.jobs[placed.job].name,
                driver: &store.expect("jobs on objects work on stores").driver,
                work,
                generators: &self.generators,
                timing: self.now.timings[placed.job].clone(),
                workers: of.jobs[placed.job].workers_of(share),
                number_first: placed.worker_first,
                endpoint_first: self.endpoints[placed.target.0].start,
                server_names: Some(&self.names),
            }
        });
        let files = self.files.as_ref().filter(|_| !placed.files.is_empty()).map(|files| {
            let job = |&index: &usize| FilesJob {
                id: JobId(index as u8),
                // Of these the streams of files give no more than they are to.
                timing: JobTiming {
                    ops_max: None,
                    bytes_max: None,
                    ..self.now.timings[index].clone()
                },
                workers: of.jobs[index].workers_of(share),
                endpoint: EndpointId(self.endpoints[of.jobs[index].target.0].start),
            };
            FilesJobs {
                driver: rings,
                plan: &files.plan,
                stage: self.now.stage,
                draw: self.now.draw,
                config: files.config,
                jobs: placed.files.iter().map(job).collect(),
                number_first: placed.files_worker_first,
            }
        });
        let is_measured = of.kind == StageKind::Measure;
        let stop_rules = if is_measured { of.stop_rules.clone() } else { Vec::new() };
        let limits = StageLimits {
            duration: None,
            ops_max: of
                .ops_max
                .map(|max| of.share_of(share).of(max))
                .map(|ops| ops.end - ops.start),
            stop_rules,
            is_judged_elsewhere: self.crew.is_directed(),
            end_on_failure: of.end_on_failure,
            ends_if_alike: is_measured
                && !self.placed.plan.file.keep_going
                && !of.jobs.iter().any(|job| job.error_percent_max == Some(100.0)),
        };
        StageWork { stage, objects: objects.collect(), files, limits }
    }

    /// Returns how far the stage has to go.
    fn goal(&self) -> Goal {
        let stage = &self.placed.plan.stages[self.now.stage];
        let on_objects: Option<u64> = self.now.objects.iter().map(|job| job.ops_count()).sum();
        let on_files = self.files.as_ref().map_or(0, |files| files.ops_expected(self.now.stage));
        let lasts = self.now.probe().map(|probe| probe.asked.lasts);
        match (lasts.or(stage.duration_max()), on_objects) {
            (Some(time), _) if !time.is_zero() => Goal::Time(time),
            (_, Some(ops)) => Goal::Ops(stage.ops_max.unwrap_or(ops + on_files).max(1)),
            (_, None) => Goal::Ops(stage.ops_max.unwrap_or(u64::MAX)),
        }
    }

    /// Makes and removes the buckets of the stage, where it does that and this process leads the
    /// run.
    fn work_on_buckets(&mut self, context: &StageContext<'_>) -> Option<BucketsDone> {
        let on = self.on_buckets.take().filter(|_| !self.crew.is_directed())?;
        let stage = &self.placed.plan.stages[self.now.stage];
        let (done, failed) = on.carry_out(&self.placed.plan, self.targets, stage, context);
        self.failed = failed;
        Some(done)
    }

    /// Returns what is said of the stage when it begins, after those that are done.
    fn announced(&self, name: &str, done: &[Done]) -> Announced {
        let plan = &self.placed.plan;
        match self.now.probe() {
            Some(_) => {
                let is_first = done.last().is_none_or(|last| last.outcome.probe.is_none());
                Announced::probe(name, is_first)
            }
            None => {
                let stage = &plan.stages[self.now.stage];
                Announced::stage(plan, stage, name, self.files.is_some())
            }
        }
    }
}

impl Work for PlanWork<'_> {
    fn next(
        &mut self,
        recording: &Recording,
        done: &[Done],
    ) -> Result<Option<NextStage>, ConductError> {
        if let Some(last) = done.last() {
            self.learn(recording, last)?;
            // Of what only prepared, whoever conducts the run says that nothing was measured.
            if last.outcome.ended_by == EndReason::Stopped && !self.crew.is_directed() {
                return Ok(None);
            }
        }
        let Some(chosen) = (self.choose)(&self.placed.plan, done) else { return Ok(None) };
        self.now = self.prepare(StageId(done.len() as u8), &chosen);
        let plan = Arc::clone(&self.placed.plan);
        let stage = &plan.stages[chosen.stage];
        if stage.is_on_buckets() {
            self.on_buckets = Some(OnBuckets::of(recording, self.config.retries));
        }
        if stage.kind == StageKind::Measure
            && let Some(call) = self.before_measuring.take()
        {
            call(recording).map_err(ConductError::Caller)?;
        }
        let mut jobs = self.recorded_jobs();
        let on_files = &self.placed.stages[chosen.stage].files;
        let mut facts = None;
        if let Some(files) = self.files.as_mut().filter(|_| !on_files.is_empty()) {
            let mut of_files: Vec<&mut StageJob> = jobs
                .iter_mut()
                .enumerate()
                .filter(|(index, _)| on_files.contains(index))
                .map(|(_, job)| job)
                .collect();
            facts = Some(files.begin_stage(chosen.stage, &mut of_files)?);
        }
        let any = |model| jobs.iter().any(|job| job.loop_model == model);
        let loop_model = match (any(LoopModel::Open), any(LoopModel::Capped)) {
            (true, _) => LoopModel::Open,
            (false, true) => LoopModel::Capped,
            (false, false) => LoopModel::Closed,
        };
        let ready = self.files.as_ref().zip(facts.as_ref());
        let ready = ready.map(|(files, facts)| files.ready(facts, &jobs));
        let begins_at = self.crew.await_start(ready).map_err(ConductError::Caller)?;
        if let Some(ready) = self.prepare_agents(StageId(done.len() as u8), &chosen, recording)? {
            facts = Some(ready.stage);
            jobs.iter_mut().zip(ready.interfaces).for_each(|(job, told)| job.interface = told);
        }
        let name = chosen.name.unwrap_or_else(|| stage.name.clone());
        let threads_count = match &self.agents {
            Some(agents) => agents.threads_count(),
            None => stage_threads(&self.stage_work(StageId(0), &NullRings), &self.config),
        };
        Ok(Some(NextStage {
            announced: self.announced(&name, done),
            name,
            kind: stage.kind,
            loop_model,
            iteration: stage.iteration,
            planned: Some(chosen.stage),
            workers_count: jobs.iter().map(|job| job.workers_count).sum(),
            threads_count,
            jobs,
            files: facts,
            probe: self.now.probe().map(|probe| probe.noted(chosen.stage)),
            goal: self.goal(),
            begins_at,
        }))
    }

    // Long: one borrow of the plan, its sets and its files, for agents or for this machine.
    fn run(
        &mut self,
        stage: StageId,
        context: &StageContext<'_>,
        sink: &mut dyn OpSink,
    ) -> Result<StageOutcome, EngineError> {
        let rules = self.agents.as_ref().and_then(|_| self.stage_work(stage, &NullRings).rules());
        let on_buckets = self.work_on_buckets(context);
        if let (Some(agents), Some(chosen)) = (&mut self.agents, &self.now.chosen) {
            let sets_count = self.placed.plan.sets.len();
            let name = chosen.name.as_ref().unwrap_or(&self.placed.plan.stages[chosen.stage].name);
            let before = &self.changed;
            let directed = DirectedStage { number: stage, name, chosen, before, sets_count };
            let (placed, members, files) = (&self.placed, &self.members, self.files.as_deref());
            let is_possible = |Changes { members: of_sets, names, files: of_files }: &Changes,
                               ops_max| {
                let named: usize = names.iter().map(|names| names.count()).sum();
                let mut sets = names.iter().flat_map(|names| names.sets());
                placed.can_change((chosen.stage, ops_max), members, of_sets)
                    && named as u64 <= ops_max
                    && sets.all(|set| placed.keeps_names(set))
                    && match files {
                        Some(files) => files.can_change(chosen.stage, of_files),
                        None => of_files.is_empty(),
                    }
            };
            let done = agents.run(&directed, context, rules.as_ref(), &is_possible);
            let (mut outcome, changed) = done.map_err(EngineError::Elsewhere)?;
            self.changed = changed;
            if let Some(done) = on_buckets {
                done.note(&mut outcome);
            }
            return Ok(outcome);
        }
        let of = &self.placed.plan.stages[self.now.stage];
        let now = context.clock.now();
        let begun = context.begins_at.map_or(now, |at| at.max(now));
        if let (true, Some(pause)) = (of.jobs.is_empty(), of.duration) {
            rest(context, begun.after(pause));
        }
        let on = self.files.as_ref().map(|files| (files.on().clone(), files.driver()));
        let config = &self.config;
        let jobs = &of.jobs;
        let named = is_read_back(of).then_some(Named { names: &self.names, jobs });
        let mut noting = Noting::new(sink, named);
        let mut counting = Counting::new(&mut noting, self.now.probe());
        let sink = &mut counting;
        let mut outcome = match on {
            None | Some((FilesOn::Null | FilesOn::Agents, _)) => {
                run_stage(&self.stage_work(stage, &NullRings), config, context, sink)?
            }
            Some((FilesOn::Scripted(files), _)) => {
                run_stage(&self.stage_work(stage, &files), config, context, sink)?
            }
            Some((FilesOn::Machine, driver)) => {
                run_stage(&self.stage_work(stage, &driver), config, context, sink)?
            }
        };
        outcome.probe = counting.finish(&outcome);
        let server_names = noting.noted();
        if let Some(done) = on_buckets {
            done.note(&mut outcome);
        }
        if of.jobs.is_empty() {
            outcome.started = begun;
            outcome.began_late_by = context.begins_at.map_or(Duration::ZERO, |at| begun.since(at));
            outcome.ended_by = match context.stop.is_set() {
                true => EndReason::Stopped,
                false => EndReason::Duration,
            };
        }
        self.now.server_names = server_names;
        Ok(outcome)
    }

    fn is_directed(&self) -> bool {
        self.crew.is_directed()
    }

    fn note_begin(&self, manifest: &mut schema::Manifest) {
        if let Some(agents) = &self.agents {
            agents.note(manifest);
        }
    }

    fn gather(
        &mut self,
        recording: &mut Recording,
        sink: &mut dyn OpSink,
        done: &mut [Done],
    ) -> Result<(), ConductError> {
        let Some(agents) = &mut self.agents else { return Ok(()) };
        agents.gather(recording, sink, done).map_err(ConductError::Caller)
    }

    fn note_end(&mut self, entry: &mut schema::Stage) {
        let placed = &self.placed.stages[self.now.stage];
        if let Some(agents) = &self.agents {
            agents.note_end(entry);
        } else if let Some(files) = self.files.as_mut().filter(|_| !placed.files.is_empty()) {
            files.note_end(entry);
        }
        entry.server_names = self.now.server_names.clone();
        for (placed, work) in placed.objects.iter().zip(&self.now.objects) {
            let sets = work.work.sets();
            let unknown = sets.iter().filter(|set| work.verify(**set) == Verify::Nothing).count();
            let job = &mut entry.jobs[placed.job];
            let is_partly = sets.iter().any(|set| work.verify(*set) == Verify::IfOurs);
            if is_partly && job.verification == Some(schema::Verification::EveryByte) {
                job.verification = Some(schema::Verification::Partial);
            }
            if unknown > 0 && job.verification == Some(schema::Verification::EveryByte) {
                let is_all = unknown == sets.len();
                job.verification = Some(match is_all {
                    true => schema::Verification::Off,
                    false => schema::Verification::Partial,
                });
            }
        }
    }
}

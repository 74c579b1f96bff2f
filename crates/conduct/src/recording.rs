//! The record of a run under way: its directory, its manifest, its stages, and how it ends.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::{
    Live, OpSink, OpSinkError, PastSink, ScheduleOutcome, StageContext, StageOutcome,
};
use plimsoll_model::{
    EndReason, JobId, Moment, PackedOp, RunId, SeriesKey, StageId, StageKind, TargetKind, WrongKind,
};
use plimsoll_record::schema::{self, Cleanup, Manifest, RunState};
use plimsoll_record::{
    OpLogTotals, OpLogWriter, RecordError, RunDirectory, SAVE_AGE, SummaryWriter,
};
use plimsoll_stats::Timeline;
use plimsoll_workload::RateProfile;
use plimsoll_workload::data::Generator;
use plimsoll_workload::plan::{Plan, TargetIndex};

use crate::{
    ConductError, Events, GRACE, NextStage, Observer, Permit, RunTime, StageView, Stop, Work,
    machine,
};

/// The record of a run under way, and who has a say in it.
pub struct Recording {
    /// Leave to change what the run changes.
    permit: Permit,
    /// The run's time.
    pub time: RunTime,
    /// Where it is recorded.
    pub directory: RunDirectory,
    /// What is known of it so far.
    pub manifest: Manifest,
    /// What the workload means, where it is known.
    plan: Option<Plan>,
    /// Who is told of it.
    pub observer: Arc<dyn Observer>,
    /// What ends it.
    pub stop: Stop,
    /// What the user has run at instants of it.
    pub events: Events,
}

/// A stage that has ended.
#[derive(Debug)]
pub struct Done {
    /// Its number.
    pub stage: StageId,
    /// What it was for.
    pub kind: StageKind,
    /// What came of it.
    pub outcome: StageOutcome,
}

/// What the stages gave.
pub struct Recorded {
    /// Those that ended, in order.
    pub stages: Vec<Done>,
    /// What the op log holds.
    pub totals: OpLogTotals,
    /// What is over of their time lines; `None` where some of that is missing.
    summary: Option<SummaryWriter>,
}

impl Recorded {
    /// Returns the first stage of that kind.
    pub fn stage(&self, kind: StageKind) -> Option<&Done> {
        self.stages.iter().find(|done| done.kind == kind)
    }
}

/// Removes what a run wrote.
pub trait Cleaning {
    /// Removes it, unless it is to stay, and returns what became of it and whether nothing is left
    /// that should not be.
    fn clean(&mut self, recording: &Recording) -> (Cleanup, bool);
}

/// Hands operations to the op log, and what is over of the time line to the summary.
struct RunSink {
    log: OpLogWriter,
    summary: SummaryWriter,
}

impl OpSink for RunSink {
    fn append(&mut self, ops: &[PackedOp]) -> Result<(), OpSinkError> {
        self.log.append_packed(ops).map_err(refused)
    }

    fn tick(&mut self, now: Moment) -> Result<(), OpSinkError> {
        self.log.tick(now).map_err(refused)
    }

    fn past(&mut self) -> Option<&mut dyn PastSink> {
        Some(self)
    }
}

impl PastSink for RunSink {
    fn keep(&mut self, past: &Timeline<SeriesKey>) -> Result<(), OpSinkError> {
        self.summary.keep(past).map_err(refused)
    }
}

fn refused(error: RecordError) -> OpSinkError {
    OpSinkError(Box::new(error))
}

impl Drop for Recording {
    /// A panic is a defect of this program. The record says that it was one, and what to do.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let path = self.directory.path().display();
        let advice = format!("`plimsoll clean {path}` removes what the run left");
        self.observer.warn(&format!("the record in {path} is incomplete; {advice}"));
        self.manifest.state = RunState::Failed;
        self.manifest.state_reason =
            Some(format!("plimsoll crashed (a panic, please report it); {advice}"));
        // There is nothing else left to tell whom.
        let _ = self.directory.write_manifest(&self.manifest);
    }
}

impl Recording {
    /// Begins the record of a run in its directory.
    pub fn new(
        directory: RunDirectory,
        manifest: Manifest,
        time: RunTime,
        permit: Permit,
        observer: Arc<dyn Observer>,
        stop: Stop,
    ) -> Self {
        let plan = manifest.workload.plan();
        let events = Events::default();
        Self { permit, time, directory, manifest, plan, observer, stop, events }
    }

    /// Runs the stages of `work` until there is no further one, and records them. Where the run
    /// cannot go on, what the stages so far gave is recorded, and the error says why.
    pub fn run(&mut self, work: &mut dyn Work) -> Result<Recorded, ConductError> {
        let generator = &Arc::new(Generator::new(self.manifest.seed));
        let run = RunId::parse(&self.manifest.run_id).expect("a run has an id");
        let endpoints: Vec<String> = self.manifest.endpoints().cloned().collect();
        let log = OpLogWriter::new(&self.directory, &run, self.time.wall_epoch, &endpoints);
        let mut sink = RunSink { log, summary: SummaryWriter::new(&self.directory) };
        let mut stages = Vec::new();
        let ended = self.stages(work, generator, &mut sink, &mut stages);
        if self.events.is_running() {
            let seconds = GRACE.as_secs();
            self.observer.note(&format!(
                "a command of `event` is still running; it gets {seconds} s, and Ctrl-C kills it"
            ));
        }
        self.manifest.events = self.events.await_all(&self.stop, &self.time.clock);
        let gathered = work.gather(self, &mut sink, &mut stages);
        let RunSink { log, summary } = sink;
        // The log has what was done in a stage that did not come to its end: without that a summary
        // would look like the whole.
        let is_whole = gathered.is_ok() && stages.len() == self.manifest.stages.len();
        let summary = is_whole.then_some(summary);
        let ended = ended.and(gathered);
        let totals = log.finish();
        match (ended, totals) {
            (Ok(()), totals) => Ok(Recorded { stages, totals: totals?, summary }),
            (Err(error), Ok(totals)) => {
                let reason = Some(in_one_line(&error));
                // The disk may be what failed; the first error is the one to tell.
                let recorded = Recorded { stages, totals, summary };
                let _ = self.settle(&recorded, RunState::Failed, reason);
                Err(error)
            }
            (Err(error), Err(_)) => Err(error),
        }
    }

    fn stages(
        &mut self,
        work: &mut dyn Work,
        generator: &Arc<Generator>,
        sink: &mut RunSink,
        done: &mut Vec<Done>,
    ) -> Result<(), ConductError> {
        while let Some(next) = work.next(self, done)? {
            let stage = StageId(done.len() as u8);
            let kind = next.kind;
            if next.probe.is_none() {
                self.events.stage_ended(false);
            }
            let outcome = self.stage(stage, &next, work, generator, sink)?;
            done.push(Done { stage, kind, outcome });
            // Asked of the flag, as a stage may have ended by itself in the moment of the request.
            let only_prepared = || done.iter().all(|done| done.kind == StageKind::Prepare);
            if self.stop.flag().is_set() && !work.is_directed() && only_prepared() {
                return Err(ConductError::StoppedWhilePreparing);
            }
        }
        if done.is_empty() {
            return Err(ConductError::StoppedBefore);
        }
        Ok(())
    }

    /// Notes in the manifest that a stage begins, and returns the rates that its jobs offer.
    fn note_begin(
        &mut self,
        stage: StageId,
        next: &NextStage,
        work: &mut dyn Work,
    ) -> Result<Vec<RateProfile>, ConductError> {
        let carried = (next.workers_count, next.threads_count.max(1) as u32);
        let begun = schema::Stage::begun(stage.0, next.kind, &next.name, next.loop_model, carried);
        let mut entry = schema::Stage {
            iteration: next.iteration,
            planned_index: next.planned.and_then(|at| u16::try_from(at).ok()),
            jobs: next.jobs.clone(),
            files: next.files.clone(),
            probe: next.probe.clone(),
            ..begun
        };
        entry.describe(self.plan.as_ref());
        // Where nothing stands in for every target, nothing comes back that could be checked; the
        // plan does not say so.
        if self.manifest.targets().all(|target| target.kind == Some(TargetKind::Null)) {
            entry.jobs.iter_mut().for_each(|job| job.verification = None);
        }
        let endpoints_count = self.manifest.target.endpoints.len() as u16;
        for job in entry.jobs.iter_mut().filter(|job| job.endpoints_count == 0) {
            job.endpoints_count = endpoints_count;
        }
        let schedules = entry.jobs.iter().filter_map(|job| job.schedule.as_ref());
        let rates = schedules.flat_map(|schedule| schedule.rates.clone()).collect();
        self.manifest.stages.push(entry);
        work.note_begin(&mut self.manifest);
        self.directory.write_manifest(&self.manifest)?;
        Ok(rates)
    }

    /// Runs one stage and notes it in the manifest before and after.
    fn stage(
        &mut self,
        stage: StageId,
        next: &NextStage,
        work: &mut dyn Work,
        generator: &Arc<Generator>,
        sink: &mut RunSink,
    ) -> Result<StageOutcome, ConductError> {
        let rates = self.note_begin(stage, next, work)?;
        let threads = next.threads_count.max(1);
        let endpoints: Vec<String> = self.manifest.endpoints().cloned().collect();
        let live = Arc::new(Live::telling(threads, next.jobs.len(), endpoints.len()));
        let context = StageContext {
            clock: &self.time.clock,
            virtual_time: self.time.virtual_time.as_ref(),
            stop: self.stop.flag(),
            live: &live,
            generator,
            wall_epoch: self.time.wall_epoch,
            begins_at: next.begins_at,
        };
        let view = StageView {
            name: &next.name,
            announced: &next.announced,
            goal: next.goal,
            live: &live,
            clock: &self.time.clock,
            rates: &rates,
            endpoints: &endpoints,
        };
        let before = self.readings();
        if next.kind == StageKind::Measure {
            self.events.begin(stage.0, &live, &self.time.clock);
        }
        let mut outcome = None;
        self.observer.during(&view, &mut || outcome = Some(work.run(stage, &context, sink)));
        self.events.stage_ended(next.probe.is_some());
        let outcome = outcome.expect("the observer calls the work")?;
        let seen = before.zip(self.readings());
        let seen = seen.and_then(|(before, now)| before.until(&now, &outcome));
        self.manifest.stages[usize::from(stage.0)].evidence = seen.into_iter().collect();
        if self.time.virtual_time.is_none() {
            // What comes next may be a pause of hours, and a kill in it.
            sink.log.tick(self.time.clock.now().after(SAVE_AGE))?;
        }
        if let Some(because) = &outcome.ended_because {
            self.observer.note(&format!("ended before its time was up: {because}"));
        }
        self.observer.stage_ended(&outcome);
        self.note_end(stage, &outcome);
        work.note_end(&mut self.manifest.stages[usize::from(stage.0)]);
        self.directory.write_manifest(&self.manifest)?;
        Ok(outcome)
    }

    /// Returns what the machine tells of itself now; nothing in virtual time.
    fn readings(&self) -> Option<machine::Readings> {
        let files = self.manifest.targets().filter(|of| of.files.is_some());
        let files: Vec<String> = files.flat_map(|of| of.endpoints.clone()).collect();
        self.time.virtual_time.is_none().then(|| machine::Readings::now(&files))
    }

    /// Notes what came of a stage.
    fn note_end(&mut self, stage: StageId, outcome: &StageOutcome) {
        let endpoints: Vec<String> = self.manifest.endpoints().cloned().collect();
        let is_only_job = self.manifest.stages[usize::from(stage.0)].jobs.len() == 1;
        let first_errors = outcome.errors.iter().map(|error| schema::FirstError {
            class: error.class,
            kind: error.kind,
            endpoint: endpoints.get(usize::from(error.endpoint.0)).cloned(),
            at_ns: Some(error.at.as_ns()),
            stage_index: Some(stage.0),
            job_index: is_only_job.then_some(0),
            status: error.status,
            message: error.message.clone(),
        });
        self.manifest.first_errors.extend(first_errors);
        let entry = &mut self.manifest.stages[usize::from(stage.0)];
        note_outcome(entry, outcome);
        // In virtual time nothing that is written depends on the machine.
        let is_real = self.time.virtual_time.is_none();
        entry.cpu_ns = is_real.then_some(outcome.cpu_time.as_nanos() as u64);
    }

    /// Writes the summary and the manifest with the state the run has come to.
    fn settle(
        &mut self,
        recorded: &Recorded,
        state: RunState,
        reason: Option<String>,
    ) -> Result<(), ConductError> {
        let mut timeline: Timeline<SeriesKey> = Timeline::of_seconds();
        let mut wait = Duration::ZERO;
        for Done { outcome, .. } in &recorded.stages {
            timeline.merge(&outcome.timeline);
            wait += outcome.recorder_wait;
        }
        self.manifest.recorder = Some(schema::Recorder {
            rows_count: recorded.totals.rows,
            parts_count: recorded.totals.parts,
            wait_ns: wait.as_nanos() as u64,
        });
        if let Some(summary) = &recorded.summary {
            summary.write(&mut timeline)?;
        }
        self.manifest.state = state;
        self.manifest.state_reason = reason;
        self.directory.write_manifest(&self.manifest)?;
        Ok(())
    }

    /// Completes the record of a run that measured: complete, unless the user ended it early.
    pub fn settle_measured(&mut self, recorded: &Recorded) -> Result<(), ConductError> {
        let measured = recorded.stages.iter().filter(|done| done.kind == StageKind::Measure);
        let measured = measured.map(|done| (done.stage, done.outcome.totals()));
        self.observer.stages_ended(measured.collect());
        let stopped =
            recorded.stages.iter().any(|done| done.outcome.ended_by == EndReason::Stopped);
        let (state, reason) = if stopped {
            (RunState::Interrupted, Some("stopped by the user before its time was up".to_owned()))
        } else {
            (RunState::Complete, None)
        };
        self.settle(recorded, state, reason)
    }

    /// Ends a run: completes its record, has it shown, and removes what it wrote, in this order, as
    /// cleaning may take long or never end. `show` tells whether what was measured is good; so does
    /// what is returned, and whether everything is clean.
    pub fn finish<E: From<ConductError> + fmt::Display>(
        mut self,
        done: Result<Recorded, E>,
        show: impl FnOnce(&mut Self, &Recorded) -> Result<bool, E>,
        cleaning: &mut dyn Cleaning,
    ) -> Result<bool, E> {
        let shown = done.and_then(|recorded| {
            self.settle_measured(&recorded)?;
            show(&mut self, &recorded)
        });
        if let Err(error) = &shown
            && self.manifest.state == RunState::Running
        {
            self.manifest.state = RunState::Failed;
            self.manifest.state_reason = Some(format!("{error:#}"));
        }
        if shown.is_err() && self.directory.holds_operations() {
            let path = self.directory.path().display();
            self.observer.note(&format!(
                "what was measured until then is in {path}; `plimsoll analyze {path}` shows it"
            ));
        }
        let (cleanup, is_clean) = cleaning.clean(&self);
        // Not before: what is cleaned may be served by what a command has started.
        self.events.end();
        self.manifest.cleanup = cleanup;
        let written = self.directory.write_manifest(&self.manifest);
        // The disk may be what failed; the first error is the one to tell.
        let good = shown?;
        written.map_err(ConductError::from)?;
        Ok(good && is_clean)
    }

    /// Returns the buckets that may be changed only because the run makes them itself.
    pub(crate) fn promised(&self) -> &BTreeSet<(TargetIndex, String)> {
        self.permit.promised()
    }

    /// Returns how long the run has lasted so far.
    pub fn now(&self) -> Moment {
        self.time.clock.now()
    }
}

/// Returns an error with its causes.
pub fn in_one_line(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Notes in a stage's entry what came of it, but for what the machine used.
pub fn note_outcome(entry: &mut schema::Stage, outcome: &StageOutcome) {
    entry.started_ns = Some(outcome.started.as_ns());
    entry.ended_ns = Some(outcome.ended.as_ns());
    entry.ended_by = Some(outcome.ended_by);
    entry.ended_because = outcome.ended_because.clone();
    entry.ops_count = Some(outcome.ops_count);
    entry.ops_failed_count = Some(outcome.failed_count);
    entry.bytes = Some(outcome.jobs.iter().map(|job| job.bytes).sum());
    entry.stream_hash = Some(format!("{:016x}", outcome.stream_hash));
    entry.uploads_given_up_count = outcome.settled.given_up_count;
    entry.uploads_left_count = outcome.settled.left_count;
    let count =
        |(kind, count): (&WrongKind, &u64)| schema::WrongCount { kind: *kind, count: *count };
    entry.wrong = outcome.wrong.iter().map(count).collect();
    for (job, of) in entry.jobs.iter_mut().enumerate() {
        let id = JobId(job as u8);
        let Some(own) = outcome.jobs.iter().find(|each| each.job == id) else { continue };
        of.ops_count = Some(own.ops_count);
        of.ops_failed_count = Some(own.failed_count);
        of.bytes = Some(own.bytes);
        of.unchecked_count = own.unchecked.count;
        if own.unchecked.count > 0 {
            of.unverified_bytes = Some(own.unchecked.bytes);
        }
        let ns = |since: Duration| since.as_nanos() as u64;
        of.measured_from_ns = own.measured.map(|(from, _)| ns(from));
        of.measured_until_ns = own.measured.and_then(|(_, until)| until).map(ns);
        if let (Some(schedule), Some(kept)) = (&mut of.schedule, &own.schedule) {
            note_kept(schedule, kept);
        }
    }
    let Some(files) = &mut entry.files else { return };
    files.look_gap_max_ns = outcome.looks.map(|looks| looks.gap_max.as_nanos() as u64);
    files.uncertain_count = outcome.looks.map(|looks| looks.uncertain_count);
}

/// Notes how a schedule was kept.
fn note_kept(schedule: &mut schema::Schedule, kept: &ScheduleOutcome) {
    let span = kept.span.map(|(from, until)| (from.as_nanos() as u64, until.as_nanos() as u64));
    (schedule.offered_from_ns, schedule.offered_until_ns) = span.unzip();
    schedule.offered_count = Some(kept.offered_count);
    schedule.late_count = Some(kept.late_count);
    schedule.skipped_count = Some(kept.skipped_count);
    schedule.held_count = kept.held_count;
    schedule.delay_max_ns = Some(kept.delay_max.as_nanos() as u64);
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::Path;

    use plimsoll_engine::EngineError;
    use plimsoll_record::schema::Target;

    use super::*;
    use crate::{Announced, Goal, Opening, of_workload};

    /// Tells nobody.
    struct Silent;

    impl Observer for Silent {
        fn note(&self, _line: &str) {}

        fn warn(&self, _line: &str) {}
    }

    /// Returns the record of a run at that path which has done nothing yet.
    fn new_record(path: &Path) -> Recording {
        let time = RunTime::simulated();
        let id = RunId::new("test", time.wall_epoch, 1);
        let target = Target::bare(TargetKind::Null, Vec::new());
        let opening = Opening::of_nobody(&id, target, &time);
        let manifest = of_workload(opening, serde_json::Value::Null, 1);
        let directory = RunDirectory::create(path, &manifest).unwrap();
        let permit = Permit::for_nothing_real();
        Recording::new(directory, manifest, time, permit, Arc::new(Silent), Stop::default())
    }

    /// A stage whose minutes find no room.
    struct Refused;

    impl Work for Refused {
        fn next(&mut self, _: &Recording, _: &[Done]) -> Result<Option<NextStage>, ConductError> {
            Ok(Some(NextStage {
                name: "measure".to_owned(),
                announced: Announced::default(),
                kind: StageKind::Measure,
                loop_model: schema::LoopModel::Closed,
                iteration: 0,
                planned: None,
                jobs: Vec::new(),
                workers_count: 1,
                threads_count: 1,
                files: None,
                probe: None,
                goal: Goal::Ops(1),
                begins_at: None,
            }))
        }

        fn run(
            &mut self,
            _: StageId,
            _: &StageContext<'_>,
            _: &mut dyn OpSink,
        ) -> Result<StageOutcome, EngineError> {
            Err(OpSinkError("no room".into()).into())
        }
    }

    #[test]
    fn a_run_that_fails_within_a_stage_has_no_summary_without_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("run");
        assert!(new_record(&path).run(&mut Refused).is_err());
        let directory = RunDirectory::open(&path).unwrap();
        let left = directory.read_manifest().unwrap();
        assert_eq!(left.state, RunState::Failed);
        assert!(left.state_reason.unwrap().contains("no room"));
        assert!(!path.join("summary.json").exists());
    }

    #[test]
    fn a_panic_is_in_the_record_with_what_to_do() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("run");
        let record = new_record(&path);
        let panicked = catch_unwind(AssertUnwindSafe(move || {
            let _record = record;
            panic!("a defect");
        }));
        assert!(panicked.is_err());
        let left = RunDirectory::open(&path).unwrap().read_manifest().unwrap();
        assert_eq!(left.state, RunState::Failed);
        let reason = left.state_reason.unwrap();
        assert!(reason.contains("panic") && reason.contains("plimsoll clean"), "{reason}");
    }
}

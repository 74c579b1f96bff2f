//! One run from its directory to its report, whatever the driver: stages, record, analysis.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use plimsoll_analysis::{OpSource, Question};
use plimsoll_driver::Driver;
use plimsoll_engine::{
    EndReason, EngineConfig, EngineError, Live, OpSink, OpSinkError, RunClock, StageContext,
    StageOutcome, VirtualTime, run_stage,
};
use plimsoll_model::{
    Moment, OpRecord, PackedOp, RunId, SeriesKey, SharedClock, StageId, StageKind, WallTime,
};
use plimsoll_record::schema::{self, Manifest, RunState};
use plimsoll_record::{OpLog, OpLogTotals, OpLogWriter, RecordError, RunDirectory};
use plimsoll_report::RunReport;
use plimsoll_stats::Timeline;
use plimsoll_workload::data::{Generator, WrongKind};
use plimsoll_workload::{OpenLoop, Pacing, Population, Workload};

use crate::present;
use crate::signals::Interrupts;
use crate::ui::{Goal, Ui, Watched};

/// What is asked of a record.
#[derive(Clone, Copy, Default)]
pub(crate) struct Asked {
    pub(crate) full_span: bool,
    pub(crate) details: bool,
}

/// The time of a run.
#[derive(Clone)]
pub(crate) struct RunTime {
    pub(crate) clock: SharedClock,
    /// The wall time at the clock's epoch.
    pub(crate) wall_epoch: WallTime,
    /// The same clock where time is virtual.
    pub(crate) virtual_time: Option<Arc<VirtualTime>>,
}

impl RunTime {
    /// Returns the machine's time, from now on.
    pub(crate) fn machine() -> Self {
        let clock = RunClock::start();
        Self { wall_epoch: clock.wall_epoch(), clock: Arc::new(clock), virtual_time: None }
    }

    /// Returns virtual time, which begins in 1970: nothing in it depends on when it was run.
    pub(crate) fn simulated() -> Self {
        let time = Arc::new(VirtualTime::new());
        let clock = Arc::clone(&time) as SharedClock;
        Self { clock, wall_epoch: WallTime::from_unix_ns(0), virtual_time: Some(time) }
    }

    /// Names the source of time for the record.
    pub(crate) fn describe(&self) -> &'static str {
        match self.virtual_time {
            Some(_) => "virtual: passes from event to event",
            None => RunClock::DESCRIPTION,
        }
    }
}

/// A run under way.
pub(crate) struct Run<'a, D> {
    pub(crate) driver: &'a D,
    pub(crate) workload: Arc<Workload>,
    pub(crate) time: RunTime,
    pub(crate) config: EngineConfig,
    pub(crate) directory: RunDirectory,
    pub(crate) manifest: Manifest,
    pub(crate) ui: Ui,
    pub(crate) interrupts: Interrupts,
}

/// What the stages gave.
pub(crate) struct Recorded {
    /// Outcomes with their stages, in order.
    pub(crate) stages: Vec<(StageId, StageKind, StageOutcome)>,
    /// What the op log holds.
    pub(crate) totals: OpLogTotals,
}

impl Recorded {
    /// Returns the outcome of the stage of that kind.
    pub(crate) fn stage(&self, kind: StageKind) -> Option<(StageId, &StageOutcome)> {
        self.stages.iter().find(|(_, each, _)| *each == kind).map(|(id, _, outcome)| (*id, outcome))
    }
}

/// Hands operations to the op log.
struct LogSink(OpLogWriter);

impl OpSink for LogSink {
    fn append(&mut self, ops: &[PackedOp]) -> Result<(), OpSinkError> {
        self.0.append_packed(ops).map_err(|error| OpSinkError(Box::new(error)))
    }

    fn tick(&mut self, now: Moment) -> Result<(), OpSinkError> {
        self.0.tick(now).map_err(|error| OpSinkError(Box::new(error)))
    }
}

/// The op log as the analysis reads it.
struct LogSource(OpLog);

impl OpSource for LogSource {
    type Error = RecordError;

    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), RecordError> {
        self.0.scan(visit).map(|_| ())
    }
}

/// Returns the schedule of an open loop that has not begun.
fn schedule(open: &OpenLoop) -> schema::Schedule {
    schema::Schedule {
        rate: open.profile.to_string(),
        arrivals: open.arrivals.to_string(),
        max_in_flight: open.max_in_flight.get(),
        offered_count: None,
        late_count: None,
        skipped_count: None,
        delay_max_ns: None,
    }
}

/// Returns where the record of a run lies.
pub(crate) fn directory_for(asked: Option<&Path>, run: &RunId) -> PathBuf {
    asked.map_or_else(|| PathBuf::from(format!("plimsoll-{run}")), Path::to_path_buf)
}

impl<D: Driver> Run<'_, D> {
    /// Runs prepare, if there is something to upload, and measure; `before_measure` is called in
    /// between.
    ///
    /// A prepare stage in which something failed or that was stopped ends the run there.
    pub(crate) fn stages(
        &mut self,
        before_measure: impl FnOnce(&Ui, &Interrupts) -> Result<()>,
    ) -> Result<Recorded> {
        let run = RunId::parse(&self.manifest.run_id).context("the run's own id")?;
        let epoch = self.time.wall_epoch;
        let endpoints = &self.manifest.target.endpoints;
        let mut sink = LogSink(OpLogWriter::new(&self.directory, &run, epoch, endpoints));
        let generator = Arc::new(Generator::new(self.workload.seed.0));
        let mut stages = Vec::new();
        let uploads = matches!(self.workload.population, Population::Uploaded(1..));
        let mut whole = true;
        if uploads {
            let outcome = self.stage(StageKind::Prepare, &generator, &mut sink)?;
            whole = outcome.failed_count == 0 && !self.interrupts.stop_flag().is_set();
            stages.push((StageId(0), StageKind::Prepare, outcome));
        }
        if whole {
            before_measure(&self.ui, &self.interrupts)?;
            let id = StageId(u8::from(uploads));
            let outcome = self.stage(StageKind::Measure, &generator, &mut sink)?;
            stages.push((id, StageKind::Measure, outcome));
        }
        let totals = sink.0.finish().context("cannot complete the op log")?;
        Ok(Recorded { stages, totals })
    }

    fn stage(
        &mut self,
        kind: StageKind,
        generator: &Arc<Generator>,
        sink: &mut LogSink,
    ) -> Result<StageOutcome> {
        let index = self.manifest.stages.len() as u8;
        self.manifest.stages.push(self.stage_entry(index, kind));
        self.directory.write_manifest(&self.manifest)?;
        let live = Live::new(self.config.threads.max(1));
        let context = StageContext {
            clock: &self.time.clock,
            virtual_time: self.time.virtual_time.as_ref(),
            stop: self.interrupts.stop_flag(),
            live: &live,
            generator,
        };
        let goal = match kind {
            StageKind::Measure => Goal::Time(self.workload.duration),
            StageKind::Prepare | StageKind::Cleanup => Goal::Ops(self.workload.population_count()),
        };
        let doing = match kind {
            StageKind::Prepare => "preparing",
            StageKind::Measure => "measuring; q or Ctrl-C ends it early, with a report",
            StageKind::Cleanup => "cleaning up",
        };
        let watched =
            Watched { name: kind.name(), doing, goal, live: &live, clock: &*self.time.clock };
        let outcome = self.ui.watch(&watched, &self.interrupts, || {
            let stage = (StageId(index), kind);
            run_stage(self.driver, &self.workload, stage, &self.config, &context, sink)
        });
        let outcome = outcome.map_err(|error| match error {
            // The sink's own sentence says what to change; ours would only stand before it.
            EngineError::Sink(OpSinkError(source)) => anyhow::Error::from_boxed(source),
            other => other.into(),
        })?;
        if let Some(because) = &outcome.ended_because {
            self.ui.note(&format!("ended before its time was up: {because}"));
        }
        self.note_end(index, &outcome);
        self.directory.write_manifest(&self.manifest)?;
        Ok(outcome)
    }

    fn stage_entry(&self, index: u8, kind: StageKind) -> schema::Stage {
        let (loop_model, schedule) = match (kind, &self.workload.pacing) {
            (StageKind::Measure, Pacing::Capped { .. }) => (schema::LoopModel::Capped, None),
            (StageKind::Measure, Pacing::Open(open)) => {
                (schema::LoopModel::Open, Some(schedule(open)))
            }
            _ => (schema::LoopModel::Closed, None),
        };
        let workers_count = self.workload.concurrency.get();
        schema::Stage {
            index,
            kind: kind.into(),
            name: kind.name().to_owned(),
            loop_model,
            workers_count,
            threads_count: (self.config.threads as u32).clamp(1, workers_count),
            started_ns: None,
            ended_ns: None,
            ended_by: None,
            ended_because: None,
            ops_count: None,
            ops_failed_count: None,
            bytes: None,
            cpu_ns: None,
            schedule,
            stream_hash: None,
            wrong: Vec::new(),
        }
    }

    fn note_end(&mut self, index: u8, outcome: &StageOutcome) {
        let endpoints = &self.manifest.target.endpoints;
        let first_errors = outcome.errors.iter().map(|error| schema::FirstError {
            class: error.class.name().to_owned(),
            kind: error.kind.name().to_owned(),
            endpoint: endpoints.get(usize::from(error.endpoint.0)).cloned(),
            at_ns: Some(error.at.as_ns()),
            message: error.message.clone(),
        });
        self.manifest.first_errors.extend(first_errors);
        let stage = &mut self.manifest.stages[usize::from(index)];
        stage.started_ns = Some(outcome.started.as_ns());
        stage.ended_ns = Some(outcome.ended.as_ns());
        stage.ended_by = Some(outcome.ended_by.name().to_owned());
        stage.ended_because = outcome.ended_because.clone();
        stage.ops_count = Some(outcome.ops_count);
        stage.ops_failed_count = Some(outcome.failed_count);
        let cells = outcome.timeline.lanes().flat_map(|(_, lane)| lane.cells);
        stage.bytes = Some(cells.map(|cell| cell.bytes).sum());
        // In virtual time nothing that is written depends on the machine.
        let is_real = self.time.virtual_time.is_none();
        stage.cpu_ns = is_real.then_some(outcome.cpu_time.as_nanos() as u64);
        stage.stream_hash = Some(format!("{:016x}", outcome.stream_hash));
        if let (Some(schedule), Some(kept)) = (&mut stage.schedule, &outcome.schedule) {
            schedule.offered_count = Some(kept.offered_count);
            schedule.late_count = Some(kept.late_count);
            schedule.skipped_count = Some(kept.skipped_count);
            schedule.delay_max_ns = Some(kept.delay_max.as_nanos() as u64);
        }
        let count = |(kind, count): (&WrongKind, &u64)| schema::WrongCount {
            kind: kind.name().to_owned(),
            count: *count,
        };
        stage.wrong = outcome.wrong.iter().map(count).collect();
    }

    /// Writes the summary and the manifest with the state the run has come to.
    pub(crate) fn settle(
        &mut self,
        recorded: &Recorded,
        state: RunState,
        reason: Option<String>,
    ) -> Result<()> {
        let mut timeline: Timeline<SeriesKey> = Timeline::new(0, 1_000_000_000);
        let mut wait = Duration::ZERO;
        for (_, _, outcome) in &recorded.stages {
            timeline.merge(&outcome.timeline);
            wait += outcome.recorder_wait;
        }
        self.directory.write_summary(&mut timeline)?;
        self.manifest.recorder = Some(schema::Recorder {
            rows_count: recorded.totals.rows,
            parts_count: recorded.totals.parts,
            wait_ns: wait.as_nanos() as u64,
        });
        self.manifest.state = state;
        self.manifest.state_reason = reason;
        self.directory.write_manifest(&self.manifest)?;
        Ok(())
    }

    /// Settles a run that measured: complete, unless the user ended it early.
    pub(crate) fn settle_measured(&mut self, recorded: &Recorded) -> Result<()> {
        let stopped =
            recorded.stages.iter().any(|(_, _, outcome)| outcome.ended_by == EndReason::Stopped);
        let (state, reason) = if stopped {
            (RunState::Interrupted, Some("stopped by the user before its time was up".to_owned()))
        } else {
            (RunState::Complete, None)
        };
        self.settle(recorded, state, reason)
    }

    /// Reads the op log back, works the measured stage's figures out of it and notes what they
    /// advise.
    pub(crate) fn report(
        &mut self,
        recorded: &Recorded,
        asked: Asked,
        embedded: bool,
    ) -> Result<RunReport> {
        let (stage, outcome) =
            recorded.stage(StageKind::Measure).context("nothing was measured")?;
        let log = LogSource(OpLog::open(&self.directory)?);
        let workers = self.workload.concurrency.get();
        let question = Question {
            full_span: asked.full_span,
            details: asked.details,
            open: matches!(self.workload.pacing, Pacing::Open(_)),
            ..Question::about(stage, outcome.started, outcome.ended, workers)
        };
        let analysis = plimsoll_analysis::analyze(&log, &question);
        let analysis = analysis.context("cannot read the op log back")?;
        self.manifest.advice = present::advice_texts(&analysis);
        self.manifest.notes = present::notes(&self.workload, &self.manifest, embedded);
        self.directory.write_manifest(&self.manifest)?;
        present::of_run(&self.manifest, self.directory.path(), usize::from(stage.0), analysis)
    }

    /// Returns how long the run has lasted so far.
    pub(crate) fn now(&self) -> Moment {
        self.time.clock.now()
    }
}

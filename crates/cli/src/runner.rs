//! One run from its directory to its report, whatever the driver: stages, record, analysis.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use plimsoll_analysis::{OpSource, Question, StageAnalysis};
use plimsoll_driver::Driver;
use plimsoll_engine::{
    EngineConfig, EngineError, Live, OpSink, OpSinkError, RunClock, StageContext, StageOutcome,
    run_stage,
};
use plimsoll_model::{
    Clock, Moment, OpRecord, PackedOp, RunId, SeriesKey, SharedClock, StageId, StageKind,
};
use plimsoll_record::schema::{self, Manifest, RunState};
use plimsoll_record::{OpLog, OpLogTotals, OpLogWriter, RecordError, RunDirectory};
use plimsoll_stats::Timeline;
use plimsoll_workload::data::Generator;
use plimsoll_workload::{Pacing, Population, Workload};

use crate::signals::Interrupts;
use crate::ui::{Goal, Ui, Watched};

/// A run under way.
pub(crate) struct Run<'a, D> {
    pub(crate) driver: &'a D,
    pub(crate) workload: Arc<Workload>,
    pub(crate) clock: Arc<RunClock>,
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
        let epoch = self.clock.wall_epoch();
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
        let shared: SharedClock = Arc::clone(&self.clock) as SharedClock;
        let live = Live::new(self.config.threads.max(1));
        let context = StageContext {
            clock: &shared,
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
        let watched = Watched { name: kind.name(), doing, goal, live: &live, clock: &*shared };
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
        let capped = matches!(self.workload.pacing, Pacing::Capped { .. });
        let loop_model = match (kind, capped) {
            (StageKind::Measure, true) => schema::LoopModel::Capped,
            _ => schema::LoopModel::Closed,
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
        stage.cpu_ns = Some(outcome.cpu_time.as_nanos() as u64);
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

    /// Reads the op log back and works the measured stage's figures out of it.
    pub(crate) fn analyze(
        &self,
        stage: StageId,
        outcome: &StageOutcome,
        full_span: bool,
    ) -> Result<StageAnalysis> {
        let log = LogSource(OpLog::open(&self.directory)?);
        let workers = self.workload.concurrency.get();
        let question = Question {
            full_span,
            ..Question::about(stage, outcome.started, outcome.ended, workers)
        };
        plimsoll_analysis::analyze(&log, &question).context("cannot read the op log back")
    }

    /// Returns how long the run has lasted so far.
    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }
}

//! One run from its directory to its report, whatever the driver: stages, record, analysis.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use plimsoll_analysis::{OpSource, Question};
use plimsoll_driver::Driver;
use plimsoll_engine::{
    EngineConfig, EngineError, OpSinkError, RunClock, StageContext, StageOutcome, Tags,
    VirtualTime, run_stage,
};
use plimsoll_model::{OpRecord, RunId, SharedClock, StageId, StageKind, WallTime};
use plimsoll_record::schema;
use plimsoll_record::{OpLog, OpLogWriter, RecordError};
use plimsoll_report::RunReport;
use plimsoll_workload::data::Generator;
use plimsoll_workload::{DataFileSpec, GeneratorSpec, OpenLoop, Pacing, Population, Workload};

use crate::run_record::{LogSink, Recorded, RunRecord};
use crate::signals::Interrupts;
use crate::ui::{Goal, Ui, Watched};
use crate::{input, present};

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
    pub(crate) config: EngineConfig,
    pub(crate) record: RunRecord,
}

/// The op log as the analysis reads it.
pub(crate) struct LogSource(pub(crate) OpLog);

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

/// Returns what the files hold that objects are made of; nothing where they are made of others.
fn content_files(manifest: &schema::Manifest) -> Result<Vec<u8>> {
    let generator = serde_json::from_value(manifest.workload["objects"]["generator"].clone());
    let Ok(GeneratorSpec::Files(files)) = generator else { return Ok(Vec::new()) };
    let mut bytes = Vec::new();
    for DataFileSpec { path, bytes: size } in files {
        let held = input::read_bounded(Path::new(&path), size.saturating_add(1))
            .with_context(|| format!("cannot read {path}"))?;
        if held.len() as u64 != size {
            bail!("{path} does not hold the {size} bytes that the workload says");
        }
        bytes.extend(held);
    }
    Ok(bytes)
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
        let run = RunId::parse(&self.record.manifest.run_id).context("the run's own id")?;
        let epoch = self.record.time.wall_epoch;
        let endpoints = &self.record.manifest.target.endpoints;
        let mut sink = LogSink(OpLogWriter::new(&self.record.directory, &run, epoch, endpoints));
        let files = content_files(&self.record.manifest)?;
        let generator = Generator::with_rule(self.workload.seed.0, &self.workload.data, files);
        let generator = Arc::new(generator);
        let mut stages = Vec::new();
        let uploads = matches!(self.workload.population, Population::Uploaded(1..));
        let mut whole = true;
        if uploads {
            let outcome = self.stage(StageKind::Prepare, &generator, None, &mut sink)?;
            whole = outcome.failed_count == 0 && !self.record.interrupts.stop_flag().is_set();
            stages.push((StageId(0), StageKind::Prepare, outcome));
        }
        if whole {
            before_measure(&self.record.ui, &self.record.interrupts)?;
            let id = StageId(u8::from(uploads));
            let tags =
                stages.last().and_then(|(.., outcome): &(_, _, StageOutcome)| outcome.tags.clone());
            let outcome = self.stage(StageKind::Measure, &generator, tags.as_ref(), &mut sink)?;
            stages.push((id, StageKind::Measure, outcome));
        }
        let totals = sink.0.finish().context("cannot complete the op log")?;
        Ok(Recorded { stages, totals })
    }

    fn stage(
        &mut self,
        kind: StageKind,
        generator: &Arc<Generator>,
        tags: Option<&Arc<Tags>>,
        sink: &mut LogSink,
    ) -> Result<StageOutcome> {
        let index = self.record.manifest.stages.len() as u8;
        self.record.manifest.stages.push(self.stage_entry(index, kind));
        self.record.directory.write_manifest(&self.record.manifest)?;
        let live = self.record.begin_counting(kind.name(), self.config.threads.max(1));
        let context = StageContext {
            clock: &self.record.time.clock,
            virtual_time: self.record.time.virtual_time.as_ref(),
            stop: self.record.interrupts.stop_flag(),
            live: &live,
            generator,
            wall_epoch: self.record.time.wall_epoch,
            tags,
        };
        let goal = match kind {
            StageKind::Measure => Goal::Time(self.workload.duration),
            StageKind::Prepare | StageKind::Cleanup => Goal::Ops(self.workload.prepare_ops_count()),
        };
        let doing = match kind {
            StageKind::Prepare => "preparing",
            StageKind::Measure => "measuring; q or Ctrl-C ends it early, with a report",
            StageKind::Cleanup => "cleaning up",
        };
        let watched = Watched {
            name: kind.name(),
            doing,
            goal,
            live: &live,
            clock: &*self.record.time.clock,
        };
        let outcome = self.record.ui.watch(&watched, &self.record.interrupts, || {
            let stage = (StageId(index), kind);
            run_stage(self.driver, &self.workload, stage, &self.config, &context, sink)
        });
        let outcome = outcome.map_err(|error| match error {
            // The sink's own sentence says what to change; ours would only stand before it.
            EngineError::Sink(OpSinkError(source)) => anyhow::Error::from_boxed(source),
            other => other.into(),
        })?;
        if let Some(because) = &outcome.ended_because {
            self.record.ui.note(&format!("ended before its time was up: {because}"));
        }
        self.record.note_end(index, &outcome);
        self.record.directory.write_manifest(&self.record.manifest)?;
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
        let workers_count = self.workload.lanes_count(kind).get();
        let most = self.workload.concurrency.get();
        let threads = (self.config.threads as u32).clamp(1, most);
        let workers = (workers_count, threads);
        schema::Stage {
            schedule,
            ..schema::Stage::begun(index, kind.into(), kind.name(), loop_model, workers)
        }
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
        let log = LogSource(OpLog::open(&self.record.directory)?);
        let workers = self.workload.lanes_count(StageKind::Measure).get();
        let question = Question {
            full_span: asked.full_span,
            details: asked.details,
            open: matches!(self.workload.pacing, Pacing::Open(_)),
            ..Question::about(stage, outcome.started, outcome.ended, workers)
        };
        let analysis = plimsoll_analysis::analyze(&log, &question);
        let analysis = analysis.context("cannot read the op log back")?;
        self.record.manifest.advice = present::advice_texts(&analysis);
        self.record.manifest.notes =
            present::notes(&self.workload, &self.record.manifest, embedded);
        self.record.directory.write_manifest(&self.record.manifest)?;
        present::of_run(
            &self.record.manifest,
            self.record.directory.path(),
            usize::from(stage.0),
            analysis,
        )
    }
}

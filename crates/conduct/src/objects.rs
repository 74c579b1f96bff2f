//! The work of a run on objects: a stage that prepares, where there is something to upload, and the
//! measured one.

use std::path::Path;
use std::sync::Arc;

use plimsoll_driver::Driver;
use plimsoll_engine::{
    EngineConfig, EngineError, ObjectsJob, OpSink, ServerNames, StageContext, StageOutcome,
    StageWork, run_stage,
};
use plimsoll_model::{StageId, StageKind};
use plimsoll_record::schema::{LoopModel, Schedule, StageJob};
use plimsoll_workload::data::Generator;
use plimsoll_workload::{DataFileSpec, GeneratorSpec, Pacing, Population, Workload, WorkloadSpec};

use crate::error::refused;
use crate::{ConductError, Done, Goal, NextStage, Recording, Work, input};

/// Why what the caller had to do failed.
pub type CallerError = Box<dyn std::error::Error + Send + Sync>;

/// Is called between preparing and measuring; its time is in no stage.
pub type BeforeMeasuring<'a> = Box<dyn FnOnce(&Recording) -> Result<(), CallerError> + 'a>;

/// A workload on objects.
pub struct ObjectsWork<'a, D> {
    driver: &'a D,
    workload: Arc<Workload>,
    config: EngineConfig,
    before_measuring: Option<BeforeMeasuring<'a>>,
    /// What the store calls the versions that were prepared.
    server_names: Option<Arc<ServerNames>>,
    kind: StageKind,
}

impl<'a, D: Driver> ObjectsWork<'a, D> {
    /// Returns the work of that workload against the driver's store.
    pub fn new(driver: &'a D, workload: &Arc<Workload>, config: EngineConfig) -> Self {
        let kind = StageKind::Prepare;
        let workload = Arc::clone(workload);
        Self { driver, workload, config, before_measuring: None, server_names: None, kind }
    }

    /// Has something done before the measured stage begins.
    #[must_use]
    pub fn before_measuring(
        self,
        call: impl FnOnce(&Recording) -> Result<(), CallerError> + 'a,
    ) -> Self {
        Self { before_measuring: Some(Box::new(call)), ..self }
    }

    /// Returns the generator of what a workload writes, with the files that it is made of.
    pub fn generator(
        spec: &WorkloadSpec,
        workload: &Workload,
    ) -> Result<Arc<Generator>, ConductError> {
        let files = content_files(&spec.objects.generator)?;
        Ok(Arc::new(Generator::with_rule(workload.seed.0, &workload.data, files)))
    }

    fn entry(&self) -> NextStage {
        let (workload, kind) = (&*self.workload, self.kind);
        let (loop_model, schedule) = match (kind, &workload.pacing) {
            (StageKind::Measure, Pacing::Capped { .. }) => (LoopModel::Capped, None),
            (StageKind::Measure, Pacing::Open(open)) => (LoopModel::Open, Some(Schedule::of(open))),
            _ => (LoopModel::Closed, None),
        };
        let workers_count = workload.lanes_count(kind).get();
        let job = StageJob { schedule, ..StageJob::of(kind.name(), workers_count, loop_model) };
        let (doing, goal) = match kind {
            StageKind::Measure => (
                "measuring; q or Ctrl-C ends it early, with a report",
                Goal::Time(workload.duration),
            ),
            StageKind::Prepare | StageKind::Cleanup => {
                ("preparing", Goal::Ops(workload.prepare_ops_count()))
            }
        };
        NextStage {
            name: kind.name().to_owned(),
            doing: doing.to_owned(),
            kind,
            iteration: 0,
            loop_model,
            jobs: vec![job],
            workers_count,
            threads_count: self.config.threads.clamp(1, workload.concurrency.get() as usize),
            files: None,
            goal,
        }
    }
}

impl<D: Driver> Work for ObjectsWork<'_, D> {
    fn next(
        &mut self,
        recording: &Recording,
        done: &[Done],
    ) -> Result<Option<NextStage>, ConductError> {
        let uploads = matches!(self.workload.population, Population::Uploaded(1..));
        match done.last() {
            None if uploads => self.kind = StageKind::Prepare,
            Some(done) if done.kind == StageKind::Measure => return Ok(None),
            prepared => {
                if let Some(Done { outcome, .. }) = prepared {
                    whole(outcome)?;
                    self.server_names =
                        outcome.jobs.iter().find_map(|job| job.server_names.clone());
                }
                let call = self.before_measuring.take();
                call.map_or(Ok(()), |call| call(recording)).map_err(ConductError::Caller)?;
                self.kind = StageKind::Measure;
            }
        }
        Ok(Some(self.entry()))
    }

    fn run(
        &mut self,
        stage: StageId,
        context: &StageContext<'_>,
        sink: &mut dyn OpSink,
    ) -> Result<StageOutcome, EngineError> {
        let server_names = self.server_names.as_ref();
        let job = ObjectsJob::alone(self.driver, &self.workload, self.kind);
        let work = StageWork::of_objects(stage, ObjectsJob { server_names, ..job });
        run_stage(&work, &self.config, context, sink)
    }
}

/// Refuses to measure after a stage that prepared and in which something failed.
fn whole(prepare: &StageOutcome) -> Result<(), ConductError> {
    let Some(first) = prepare.errors.first() else { return Ok(()) };
    Err(ConductError::Prepare {
        ops_count: prepare.ops_count,
        failed_count: prepare.failed_count,
        class: first.class,
        message: first.message.clone(),
    })
}

/// Returns what the files hold that objects are made of; nothing where they are made of others.
fn content_files(generator: &GeneratorSpec) -> Result<Vec<u8>, ConductError> {
    let GeneratorSpec::Files(files) = generator else { return Ok(Vec::new()) };
    let mut bytes = Vec::new();
    for DataFileSpec { path, bytes: size } in files {
        let held = input::read_bounded(Path::new(path), size.saturating_add(1));
        let held = held.map_err(|source| ConductError::Content { path: path.into(), source })?;
        if held.len() as u64 != *size {
            return refused(format!(
                "{path} does not hold the {size} bytes that the workload says"
            ));
        }
        bytes.extend(held);
    }
    Ok(bytes)
}

//! What a run does: which stage comes next, and how it is run.

use plimsoll_engine::{EngineError, OpSink, StageContext, StageOutcome};
use plimsoll_model::{EndReason, Moment, StageId, StageKind};
use plimsoll_record::schema;
use plimsoll_workload::plan;

use crate::read_back::is_read_back;
use crate::{Announced, ConductError, Done, Goal, Recording};

/// A stage about to run.
#[derive(Clone, Debug)]
pub struct NextStage {
    /// What it is called in the record.
    pub name: String,
    /// What is said when it begins.
    pub announced: Announced,
    /// What it is for.
    pub kind: StageKind,
    /// What decides when its operations start.
    pub loop_model: schema::LoopModel,
    /// Which repetition of it it is, 0-based.
    pub iteration: u32,
    /// Which stage of the workload it is, where it is one of them.
    pub planned: Option<usize>,
    /// Its jobs; none: those that the workload says, or all of it is one.
    pub jobs: Vec<schema::StageJob>,
    /// How many loops issue its operations.
    pub workers_count: u32,
    /// How many threads carry them.
    pub threads_count: usize,
    /// What is known of a stage on files.
    pub files: Option<schema::FilesStage>,
    /// What it is to a search, where it is a probe of one.
    pub probe: Option<schema::StageProbe>,
    /// How far it has to go.
    pub goal: Goal,
    /// When it begins; `None`: as soon as its threads are ready.
    pub begins_at: Option<Moment>,
}

/// What a run does.
///
/// After each stage it is asked what comes next, so that a search can decide by what the stages so
/// far have shown; a list of stages gives the next one of it.
pub trait Work {
    /// Makes ready for the stage after those that are `done`, and returns it; `None` ends the run.
    /// An error says why the run cannot go on.
    fn next(
        &mut self,
        recording: &Recording,
        done: &[Done],
    ) -> Result<Option<NextStage>, ConductError>;

    /// Runs that stage.
    fn run(
        &mut self,
        stage: StageId,
        context: &StageContext<'_>,
        sink: &mut dyn OpSink,
    ) -> Result<StageOutcome, EngineError>;

    /// Adds to the record what is known before a stage begins.
    fn note_begin(&self, manifest: &mut schema::Manifest) {
        let _ = manifest;
    }

    /// Fetches what others have recorded of the stages so far, once no further one comes.
    fn gather(
        &mut self,
        recording: &mut Recording,
        sink: &mut dyn OpSink,
        done: &mut [Done],
    ) -> Result<(), ConductError> {
        let _ = (recording, sink, done);
        Ok(())
    }

    /// Tells whether others say when the run is over, so that a stage that was ended early is not
    /// its end.
    fn is_directed(&self) -> bool {
        false
    }

    /// Adds to the record of a stage that has ended what only the work knows.
    fn note_end(&mut self, entry: &mut schema::Stage) {
        let _ = entry;
    }
}

/// Returns why the run cannot go on after a stage.
pub(crate) fn why_over(stage: &plan::Stage, outcome: &StageOutcome) -> Option<ConductError> {
    let prepares = stage.kind == StageKind::Prepare && !is_read_back(stage);
    let first = outcome.errors.first()?;
    let is_over = outcome.ended_by == EndReason::Failure || (prepares && outcome.failed_count > 0);
    is_over.then(|| ConductError::Stage {
        stage: stage.name.clone(),
        class: first.class,
        ops_count: outcome.ops_count,
        failed_count: outcome.failed_count,
        message: first.message.clone(),
    })
}

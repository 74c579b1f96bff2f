//! Who carries a run out: this process alone, or others with it.

use std::sync::Arc;

use plimsoll_engine::{OpSink, ServerNames, StageContext, StageOutcome, StopFlag};
use plimsoll_model::{Moment, StageId};
use plimsoll_record::Manifest;
use plimsoll_workload::Share;
use plimsoll_workload::objects::Change;
use plimsoll_workload::plan::SetIndex;

use crate::{CallerError, Chosen, Done, Recording};

/// What a stage has changed.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Who is in the sets.
    pub members: Vec<(SetIndex, Change)>,
    /// What the stores call what was written.
    pub names: Vec<Arc<ServerNames>>,
}

/// The part that this process has in a run, and its way to the others.
///
/// The workers of a job are numbered once for all parts, and what each does is a function of seed
/// and number; so all parts together do what one process alone would.
pub trait Crew {
    /// Returns which part of all workers, and of what is limited for all of them, is here.
    fn share(&self) -> Share;

    /// Waits until all parts are ready for a stage of the plan, and returns when it begins, by the
    /// clock of this run; `None` is at once.
    fn await_start(&mut self, stage: usize) -> Result<Option<Moment>, CallerError>;

    /// Tells the others what came of a stage here, and returns what it has changed in all parts, in
    /// the same order for all of them.
    fn exchange(&mut self, own: &Done) -> Result<Changes, CallerError>;

    /// Tells whether others say when the run is over, so that a stage that was ended early is not
    /// its end.
    fn is_directed(&self) -> bool;
}

/// A stage that others carry out.
#[derive(Clone, Copy, Debug)]
pub struct DirectedStage<'a> {
    /// Which stage of the run it is.
    pub number: StageId,
    /// What is done.
    pub chosen: &'a Chosen,
    /// What the stage before has changed, in all parts.
    pub before: &'a Changes,
    /// How many sets the run has.
    pub sets_count: usize,
}

/// Others who carry out a run that this process directs: together they have all of its workers.
pub trait Agents {
    /// Returns how many threads drive the operations, for as many of which there are counters.
    fn threads_count(&self) -> usize;

    /// Has a stage made ready everywhere.
    fn prepare(&mut self, stage: &DirectedStage<'_>, stop: &StopFlag) -> Result<(), CallerError>;

    /// Notes in the record what is known of the agents so far.
    fn note(&self, manifest: &mut Manifest);

    /// Has the stage that is ready carried out, and returns what came of it in all parts, by the
    /// clock of this run. Its time line comes when all is gathered.
    fn run(
        &mut self,
        stage: &DirectedStage<'_>,
        context: &StageContext<'_>,
    ) -> Result<StageOutcome, CallerError>;

    /// Fetches what was recorded, by the clock of this run, and completes what came of the stages.
    /// It is called once, also where the run could not go on.
    fn gather(
        &mut self,
        recording: &mut Recording,
        sink: &mut dyn OpSink,
        done: &mut [Done],
    ) -> Result<(), CallerError>;
}

/// Nobody else.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Crew for Alone {
    fn share(&self) -> Share {
        Share::WHOLE
    }

    fn await_start(&mut self, _stage: usize) -> Result<Option<Moment>, CallerError> {
        Ok(None)
    }

    fn exchange(&mut self, own: &Done) -> Result<Changes, CallerError> {
        Ok(Changes::of(&own.outcome))
    }

    fn is_directed(&self) -> bool {
        false
    }
}

impl Changes {
    /// Returns those of a stage that has ended.
    pub fn of(outcome: &StageOutcome) -> Self {
        let members = outcome.jobs.iter().flat_map(|job| job.changes.iter().cloned());
        let names = outcome.jobs.iter().filter_map(|job| job.server_names.clone());
        Self { members: members.collect(), names: names.collect() }
    }

    /// Adds those of another part.
    pub fn append(&mut self, other: Self) {
        self.members.extend(other.members);
        self.names.extend(other.names);
    }
}

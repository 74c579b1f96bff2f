//! Who carries a run out: this process alone, or others with it.

use std::sync::Arc;

use plimsoll_engine::{OpSink, ServerNames, StageContext, StageOutcome, StageRules, StopFlag};
use plimsoll_model::{Interface, Moment, StageId};
use plimsoll_record::Manifest;
use plimsoll_record::schema::{self, Cleanup, FilesStage};
use plimsoll_workload::Share;
use plimsoll_workload::files::FileChanges;
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
    /// Which files were filled, and which names were made or removed.
    pub files: FileChanges,
}

/// What agents tell of a stage on files that they have made ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilesReady {
    /// What is known of it before it begins.
    pub stage: FilesStage,
    /// By job of the stage: how its operations reach the kernel.
    pub interfaces: Vec<Option<Interface>>,
    /// The numbers of the parts whose files do not show here.
    pub unseen: Vec<usize>,
}

/// The part that this process has in a run, and its way to the others.
///
/// The workers of a job are numbered once for all parts, and what each does is a function of seed
/// and number; so all parts together do what one process alone would.
pub trait Crew {
    /// Returns which part of all workers, and of what is limited for all of them, is here.
    fn share(&self) -> Share;

    /// Waits until all parts are ready for a stage, and returns when it begins, by the clock of
    /// this run; `None` is at once. `files` is what is known here of its files.
    fn await_start(&mut self, files: Option<FilesReady>) -> Result<Option<Moment>, CallerError>;

    /// Tells the others what came of a stage here and what it has changed, and returns what it has
    /// changed in all parts, in the same order for all of them. `entry` is what the record here
    /// says of the stage.
    fn exchange(
        &mut self,
        own: &Done,
        changes: Changes,
        entry: &schema::Stage,
    ) -> Result<Changes, CallerError>;

    /// Tells whether others say when the run is over, so that a stage that was ended early is not
    /// its end.
    fn is_directed(&self) -> bool;
}

/// A stage that others carry out.
#[derive(Clone, Copy, Debug)]
pub struct DirectedStage<'a> {
    /// Which stage of the run it is.
    pub number: StageId,
    /// What it is called.
    pub name: &'a str,
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

    /// Returns which part of the workers each has.
    fn shares(&self) -> Vec<Share>;

    /// Returns what people call them.
    fn names(&self) -> Vec<String>;

    /// Has a stage made ready everywhere, and returns what is known of its files.
    fn prepare(
        &mut self,
        stage: &DirectedStage<'_>,
        stop: &StopFlag,
    ) -> Result<Option<FilesReady>, CallerError>;

    /// Notes in the record what is known of the agents so far.
    fn note(&self, manifest: &mut Manifest);

    /// Has the stage that is ready carried out, and returns what came of it and what it has changed
    /// in all parts, by the clock of this run. Its time line comes when all is gathered. `rules`
    /// end it where they hold for all parts together; `is_possible` tells whether one part can have
    /// changed that by so many operations.
    fn run(
        &mut self,
        stage: &DirectedStage<'_>,
        context: &StageContext<'_>,
        rules: Option<&StageRules>,
        is_possible: &dyn Fn(&Changes, u64) -> bool,
    ) -> Result<(StageOutcome, Changes), CallerError>;

    /// Adds to the record of the stage that has ended what the agents know of its files.
    fn note_end(&self, entry: &mut schema::Stage);

    /// Fetches what was recorded, by the clock of this run, and completes what came of the stages.
    /// It is called once, also where the run could not go on.
    fn gather(
        &mut self,
        recording: &mut Recording,
        sink: &mut dyn OpSink,
        done: &mut [Done],
    ) -> Result<(), CallerError>;

    /// Has the agents remove the files that they wrote, and returns what became of them and whether
    /// nothing is left that should not be.
    fn clean_files(&mut self, recording: &Recording) -> (Cleanup, bool);
}

/// Nobody else.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Crew for Alone {
    fn share(&self) -> Share {
        Share::WHOLE
    }

    fn await_start(&mut self, _: Option<FilesReady>) -> Result<Option<Moment>, CallerError> {
        Ok(None)
    }

    fn exchange(
        &mut self,
        _: &Done,
        changes: Changes,
        _: &schema::Stage,
    ) -> Result<Changes, CallerError> {
        Ok(changes)
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
        let files = FileChanges::default();
        Self { members: members.collect(), names: names.collect(), files }
    }

    /// Adds those of another part.
    pub fn append(&mut self, other: Self) {
        self.members.extend(other.members);
        self.names.extend(other.names);
        self.files.append(other.files);
    }
}

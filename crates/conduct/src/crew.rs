//! Who carries a run out: this process alone, or others with it.

use std::sync::Arc;

use plimsoll_engine::{ServerNames, StageOutcome};
use plimsoll_model::Moment;
use plimsoll_workload::Share;
use plimsoll_workload::objects::Change;
use plimsoll_workload::plan::SetIndex;

use crate::CallerError;

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

    /// Tells the others what a stage has changed here, and returns what it has changed in all
    /// parts, in the same order for all of them.
    fn exchange(&mut self, own: Changes) -> Result<Changes, CallerError>;
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

    fn exchange(&mut self, own: Changes) -> Result<Changes, CallerError> {
        Ok(own)
    }
}

impl Changes {
    /// Returns those of a stage that has ended.
    pub(crate) fn of(outcome: &StageOutcome) -> Self {
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

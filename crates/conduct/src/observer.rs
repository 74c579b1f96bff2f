//! Who is told of a run while it goes on.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::{Live, StageOutcome};
use plimsoll_model::{SeriesKey, SharedClock, StageId};
use plimsoll_stats::Totals;
use plimsoll_workload::RateProfile;

use crate::Announced;

/// Is told of a run while it goes on. No stage waits for what it does.
pub trait Observer: Send + Sync {
    /// A remark about what goes on.
    fn note(&self, line: &str);

    /// Something that whoever reads the figures must know.
    fn warn(&self, line: &str);

    /// A stage goes on while `work` runs, which is called once and returns when the stage has
    /// ended.
    fn during(&self, stage: &StageView<'_>, work: &mut dyn FnMut()) {
        let _ = stage;
        work();
    }

    /// What came of the stage that has ended, once it is known; nothing is said of one that could
    /// not be carried out.
    fn stage_ended(&self, outcome: &StageOutcome) {
        let _ = outcome;
    }

    /// No further stage comes. `measured` are the measured stages, with what was done in them; all
    /// stages count in the order in which they went on.
    fn stages_ended(&self, measured: Vec<(StageId, Totals<SeriesKey>)>) {
        let _ = measured;
    }
}

/// A stage that goes on.
pub struct StageView<'a> {
    /// What it is called.
    pub name: &'a str,
    /// What is said when it begins.
    pub announced: &'a Announced,
    /// How far it has to go.
    pub goal: Goal,
    /// Its counters.
    pub live: &'a Arc<Live>,
    /// The run's clock.
    pub clock: &'a SharedClock,
    /// What is offered over its time by those of its jobs that have a schedule of a rate.
    pub rates: &'a [RateProfile],
    /// The addresses of its targets, as they are numbered in the counters and in the record.
    pub endpoints: &'a [String],
}

/// How far a stage has to go.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// Until this many operations have ended.
    Ops(u64),
    /// For this long.
    Time(Duration),
}

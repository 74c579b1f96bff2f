//! All counters at one moment, as every receiver is told of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_engine::{Live, LiveCounts, LiveDetail, LivePart};
use plimsoll_model::{Moment, OpKind, SharedClock, StageId, WallTime};

use crate::RunFacts;

/// Of how many stages the counters are kept; of more, the oldest are no longer told of.
const STAGES_KEPT_MAX: usize = 64;

/// A run as its receivers see it.
pub(super) struct Board {
    pub(super) run_id: String,
    /// What the run does, such as `s3-get`.
    pub(super) what: String,
    pub(super) endpoints: Vec<String>,
    clock: SharedClock,
    wall_epoch: WallTime,
    cpu: fn() -> Duration,
    stages: Mutex<Stages>,
}

/// The stages that have begun.
#[derive(Default)]
struct Stages {
    /// What they are called, in the order in which they began.
    names: Vec<String>,
    /// The last ones.
    kept: Vec<BoardStage>,
}

#[derive(Clone)]
struct BoardStage {
    name: String,
    began: WallTime,
    live: Arc<Live>,
}

/// All counters at one moment.
pub(super) struct Snapshot {
    pub(super) at: WallTime,
    /// What the whole process has used so far, all cores.
    pub(super) cpu: Duration,
    /// In the order in which they began; the last one is under way.
    pub(super) stages: Vec<StageSnapshot>,
}

/// The counters of one stage at one moment.
pub(super) struct StageSnapshot {
    pub(super) name: String,
    pub(super) began: WallTime,
    /// Kinds of which an operation has ended.
    pub(super) kinds: Vec<(OpKind, LiveDetail)>,
    /// Of these kinds and of those of which an operation is under way: how many are.
    pub(super) in_flight: Vec<(OpKind, u64)>,
    /// Who else carries it out, where others do, and what each has counted.
    pub(super) parts: Vec<(LivePart, LiveCounts)>,
}

impl Board {
    pub(super) fn new(facts: &RunFacts<'_>) -> Self {
        Self {
            run_id: facts.run_id.to_owned(),
            what: facts.what.to_owned(),
            endpoints: facts.endpoints.to_vec(),
            clock: Arc::clone(facts.clock),
            wall_epoch: facts.wall_epoch,
            cpu: facts.cpu,
            stages: Mutex::default(),
        }
    }

    /// Returns what time it is.
    pub(super) fn now(&self) -> WallTime {
        self.wall_epoch.after(self.clock.now().since(Moment::EPOCH))
    }

    fn stages(&self) -> MutexGuard<'_, Stages> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a stage. One of a name that was there before gets a number from 2 on: of two series
    /// with the same labels the second would replace the first.
    pub(super) fn begin(&self, name: &str, live: Arc<Live>) {
        let began = self.now();
        let mut stages = self.stages();
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let name = names.find(|name| !stages.names.contains(name));
        let name = name.expect("there is always another number");
        if stages.kept.len() == STAGES_KEPT_MAX {
            stages.kept.remove(0);
        }
        stages.names.push(name.clone());
        stages.kept.push(BoardStage { name, began, live });
    }

    /// Returns what a stage is called that has begun; they count in this order.
    pub(super) fn name_of(&self, stage: StageId) -> String {
        self.stages().names[usize::from(stage.0)].clone()
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let stages = self.stages().kept.clone();
        let detail = |live: &Live, kind| live.detail(kind).map(|detail| (kind, detail));
        let kinds = |live: &Live| {
            OpKind::ALL.into_iter().filter_map(|kind| detail(live, kind)).collect::<Vec<_>>()
        };
        let in_flight = |live: &Live, kinds: &[(OpKind, LiveDetail)]| {
            let all = OpKind::ALL.into_iter().map(|kind| (kind, live.in_flight(kind)));
            let has_ended = |kind| kinds.iter().any(|(known, _)| *known == kind);
            all.filter(|(kind, count)| *count > 0 || has_ended(*kind)).collect()
        };
        let parts = |live: &Live| {
            let parts = live.parts().into_iter().enumerate();
            parts.map(|(slot, part)| (part, live.counts_of(slot))).collect()
        };
        Snapshot {
            at: self.now(),
            cpu: (self.cpu)(),
            stages: stages
                .into_iter()
                .map(|BoardStage { name, began, live }| {
                    let kinds = kinds(&live);
                    let in_flight = in_flight(&live, &kinds);
                    StageSnapshot { name, began, kinds, in_flight, parts: parts(&live) }
                })
                .collect(),
        }
    }
}

/// Returns nanoseconds as seconds.
pub(super) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

//! What the script does to requests for file ids, and who leads.

use std::collections::BTreeMap;

use plimsoll_model::Moment;
use plimsoll_oracle::{AssignFault, Growth, LeaderChange, SeaweedPlan, When};
use plimsoll_workload::Random;

use crate::placing::Layout;

const FATE_DOMAIN: u64 = 0x6173_6661;
const TIME_DOMAIN: u64 = 0x6173_7469;

/// The script's part in giving file ids.
#[derive(Debug)]
pub(crate) struct Assigning {
    plan: SeaweedPlan,
    fates: Random,
    times: Random,
    asked: u64,
    /// So many requests at the beginning are answered as they should be.
    grace: u64,
    /// Changes of who leads that are due after so many requests.
    changes: Vec<LeaderChange>,
    growing: BTreeMap<Layout, Growing>,
}

/// How long volumes are still being made.
#[derive(Clone, Copy, Debug)]
enum Growing {
    Refusals(u64),
    Until(u64),
}

impl Assigning {
    pub(crate) fn new(plan: SeaweedPlan, grace: u64, seed: u64) -> Self {
        let by_count = |change: &&LeaderChange| matches!(change.when, When::AfterAssigns(_));
        Self {
            fates: Random::new(seed, FATE_DOMAIN, 0),
            times: Random::new(seed, TIME_DOMAIN, 0),
            asked: 0,
            grace,
            changes: plan.leaders.iter().filter(by_count).copied().collect(),
            growing: BTreeMap::new(),
            plan,
        }
    }

    /// Counts a request, and returns who leads from now on where that changes with it.
    pub(crate) fn begin(&mut self) -> Option<Option<usize>> {
        let asked = self.asked;
        self.asked += 1;
        let is_due =
            |change: &LeaderChange| matches!(change.when, When::AfterAssigns(n) if n <= asked);
        let due = self.changes.iter().rev().find(|change| is_due(change)).map(|due| due.master);
        self.changes.retain(|change| !is_due(change));
        due
    }

    /// Returns when a request that came at `now` is answered.
    pub(crate) fn answered_at(&mut self, now: Moment) -> Moment {
        let Some(ns) = self.plan.assign_ns(self.times.unit()) else { return now };
        let ns = ns.round().clamp(0.0, i64::MAX as f64);
        Moment::from_ns(now.as_ns().saturating_add(ns as u64))
    }

    /// Returns what goes wrong with a request.
    pub(crate) fn fault(&mut self) -> Option<AssignFault> {
        if self.plan.assign_mix.is_empty() || self.asked <= self.grace {
            return None;
        }
        let unit = self.fates.unit();
        let mut mix = self.plan.assign_mix.iter();
        mix.find(|(up_to, _)| unit < *up_to).map(|(_, fault)| *fault)
    }

    /// Tells whether volumes are still being made of a layout that has none; the first time this is
    /// asked begins to make them.
    pub(crate) fn is_growing(&mut self, layout: &Layout, now: Moment) -> bool {
        let Some(growth) = self.plan.growth else { return false };
        let growing = self.growing.entry(layout.clone()).or_insert(match growth {
            Growth::Assigns(count) => Growing::Refusals(count),
            Growth::Lasting(ns) => Growing::Until(now.as_ns().saturating_add(ns)),
        });
        match growing {
            Growing::Refusals(0) => false,
            Growing::Refusals(left) => {
                *left -= 1;
                true
            }
            Growing::Until(end) => now.as_ns() < *end,
        }
    }

    /// Forgets what was made, so that it is made again.
    pub(crate) fn forget(&mut self, collection: &str) {
        self.growing.retain(|layout, _| layout.collection != collection);
    }
}

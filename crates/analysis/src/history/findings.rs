//! Where violations are counted, and the first of them kept.

use std::collections::BTreeMap;

use plimsoll_workload::history::KeyNumber;

use super::{Event, Violation, ViolationKind};

/// All violations by count, the first with their proofs.
#[derive(Debug)]
pub(super) struct Findings {
    counts: BTreeMap<ViolationKind, u64>,
    kept: Vec<Violation>,
    kept_max: usize,
}

impl Findings {
    pub(super) fn new(kept_max: usize) -> Self {
        Self { counts: BTreeMap::new(), kept: Vec::new(), kept_max }
    }

    /// Adds one violation; `proof` in any order, an operation in it more than once counts once.
    pub(super) fn add(
        &mut self,
        kind: ViolationKind,
        key: Result<KeyNumber, String>,
        mut proof: Vec<Event>,
        repeats_count: u64,
    ) {
        self.count(kind, 1);
        if self.kept.len() < self.kept_max {
            proof.sort_by_key(|event| (event.number, event.end.is_none()));
            proof.dedup_by_key(|event| event.number);
            self.kept.push(Violation { kind, key, proof, repeats_count });
        }
    }

    /// Counts violations whose proofs are not kept.
    pub(super) fn count(&mut self, kind: ViolationKind, count: u64) {
        if count > 0 {
            *self.counts.entry(kind).or_default() += count;
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(super) fn into_parts(self) -> (BTreeMap<ViolationKind, u64>, Vec<Violation>) {
        (self.counts, self.kept)
    }
}

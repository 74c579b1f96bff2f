//! What to call it when a state is missed that was certain: a stale read if it comes to light
//! later, a lost write if it never does.

use plimsoll_model::Moment;
use plimsoll_workload::history::{HistoryOp, KeyNumber, ValueId};

use super::findings::Findings;
use super::{Event, Saw, ViolationKind};

/// Misses of one state whose proofs are kept until it has a name.
const MISSES_KEPT_MAX: usize = 4;
/// States that already have a name and are remembered, for operations that were under way.
const NAMED_KEPT_MAX: usize = 4;

/// A state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Value(ValueId),
    Absent,
}

/// Why a read does not fit: it missed a state that was certain.
#[derive(Debug)]
pub(super) struct Miss {
    pub(super) state: State,
    /// When the state was certain.
    pub(super) since: Moment,
    /// Whether a write or a removal was acknowledged, so that the state does not rest on another
    /// read's word.
    pub(super) acknowledged: bool,
    /// What proves that the state was certain.
    pub(super) proof: Vec<Event>,
}

/// A certain state that was missed.
#[derive(Debug)]
struct Suspect {
    state: State,
    since: Moment,
    acknowledged: bool,
    misses: Vec<(ViolationKind, Vec<Event>)>,
    /// Misses beyond those that are kept.
    further: u64,
    reads_count: u64,
    name: Option<ViolationKind>,
}

/// The missed states of one key.
#[derive(Debug)]
pub(super) struct Suspects {
    key: KeyNumber,
    all: Vec<Suspect>,
}

impl Suspects {
    pub(super) fn new(key: KeyNumber) -> Self {
        Self { key, all: Vec::new() }
    }

    /// Tells whether a state was missed that has no name yet.
    pub(super) fn any_open(&self) -> bool {
        self.all.iter().any(|suspect| suspect.name.is_none())
    }

    /// Notes that `by` missed a state.
    pub(super) fn miss(&mut self, miss: Miss, by: Event, findings: &mut Findings) {
        let Miss { state, since, acknowledged, mut proof } = miss;
        proof.push(by);
        let kind = kind_of_miss(state, &by);
        let known = self.all.iter_mut().rev().find(|suspect| suspect.state == state);
        match known {
            Some(suspect) if suspect.name == Some(lost(state)) => {}
            Some(suspect) if suspect.name.is_some() => findings.add(kind, Ok(self.key), proof, 0),
            Some(suspect) => {
                suspect.acknowledged |= acknowledged;
                suspect.add(kind, &by, proof);
            }
            None => {
                let mut suspect = Suspect {
                    state,
                    since,
                    acknowledged,
                    misses: Vec::new(),
                    further: 0,
                    reads_count: 0,
                    name: None,
                };
                suspect.add(kind, &by, proof);
                self.all.push(suspect);
            }
        }
    }

    /// Notes that `state` was seen: what missed it was stale.
    pub(super) fn observed(&mut self, state: State, findings: &mut Findings) {
        let open = |suspect: &&mut Suspect| suspect.name.is_none() && suspect.state == state;
        for suspect in self.all.iter_mut().filter(open) {
            suspect.was_stale(self.key, findings);
        }
        if state == State::Absent {
            // Another absence is another matter.
            self.all.retain(|suspect| suspect.state != state);
        }
        self.trim();
    }

    /// Notes that a write or a removal that began at `begin` is done: of the states that were
    /// certain before, nothing more will be learned.
    pub(super) fn replaced(&mut self, begin: Moment, findings: &mut Findings) {
        let key = self.key;
        // What is missed of an absence from now on is missed of another one.
        self.all.retain(|suspect| {
            suspect.state != State::Absent || suspect.name.is_none() || suspect.since >= begin
        });
        for suspect in self.all.iter_mut().filter(|suspect| suspect.since < begin) {
            suspect.settle(key, findings);
        }
        self.trim();
    }

    /// Gives every state its name.
    pub(super) fn settle_all(&mut self, findings: &mut Findings) {
        for suspect in &mut self.all {
            suspect.settle(self.key, findings);
        }
        self.all.clear();
    }

    fn trim(&mut self) {
        let named = self.all.iter().filter(|suspect| suspect.name.is_some()).count();
        let mut surplus = named.saturating_sub(NAMED_KEPT_MAX);
        self.all.retain(|suspect| {
            let goes = suspect.name.is_some() && surplus > 0;
            surplus -= usize::from(goes);
            !goes
        });
    }
}

impl Suspect {
    fn add(&mut self, kind: ViolationKind, by: &Event, proof: Vec<Event>) {
        self.reads_count += u64::from(by.op != HistoryOp::List);
        if self.misses.len() < MISSES_KEPT_MAX {
            self.misses.push((kind, proof));
        } else {
            self.further += 1;
        }
    }

    fn settle(&mut self, key: KeyNumber, findings: &mut Findings) {
        if self.name.is_some() {
            return;
        }
        let count = self.misses.len() as u64 + self.further;
        // The word of a listing against that of one read, which brought content with it.
        let doubt_listing = !self.acknowledged && self.reads_count > 0;
        if (count < 2 && !doubt_listing) || self.reads_count == 0 {
            return self.was_stale(key, findings);
        }
        // A listing that lacks what is lost is right; the read proves it better.
        let best = self.misses.iter().position(|(kind, _)| *kind == ViolationKind::StaleRead);
        let (_, proof) = self.misses.swap_remove(best.unwrap_or(0));
        let kind = match self.acknowledged {
            true => lost(self.state),
            // All say otherwise than the one operation that told of the state.
            false => kind_of_doubt(self.state, &proof),
        };
        self.name = Some(kind);
        findings.add(kind, Ok(key), proof, count - 1);
        self.misses.clear();
    }

    /// Every miss is a violation of its own.
    fn was_stale(&mut self, key: KeyNumber, findings: &mut Findings) {
        self.name = Some(ViolationKind::StaleRead);
        for (kind, proof) in self.misses.drain(..) {
            findings.add(kind, Ok(key), proof, 0);
        }
        findings.count(ViolationKind::StaleRead, self.further);
    }
}

/// What it is called when `state` is gone for good.
fn lost(state: State) -> ViolationKind {
    match state {
        State::Value(_) => ViolationKind::LostWrite,
        State::Absent => ViolationKind::ResurrectedDelete,
    }
}

fn kind_of_miss(state: State, by: &Event) -> ViolationKind {
    match (by.op, by.saw, state) {
        (HistoryOp::List, Saw::Absent, _) => ViolationKind::ListOmission,
        (HistoryOp::List, _, State::Absent) => ViolationKind::ListGhost,
        (HistoryOp::List, ..) => ViolationKind::ListStale,
        _ => ViolationKind::StaleRead,
    }
}

/// Names what it is when a state was told of once and denied ever after.
fn kind_of_doubt(state: State, proof: &[Event]) -> ViolationKind {
    match (proof.iter().any(|event| event.op == HistoryOp::List), state) {
        (false, _) => ViolationKind::StaleRead,
        (true, State::Absent) => ViolationKind::ListOmission,
        (true, State::Value(_)) => ViolationKind::ListGhost,
    }
}

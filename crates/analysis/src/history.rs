//! Whether the answers of a store can be those of one that keeps its promises: a history of
//! operations with their moments is judged while it happens, and only what can still matter is
//! kept.
//!
//! What is judged, how, and what is not found stands in `docs/checking.md`. The rule for values is
//! the one of zones (Gibbons and Korach: Testing shared memories, SIAM J. Comput. 26, 1997), which
//! decides linearizability (Herlihy and Wing, ACM TOPLAS 12, 1990) of a register whose written
//! values are all different.

mod findings;
mod register;
mod suspects;

#[cfg(test)]
mod linearize;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use plimsoll_model::{ErrorClass, Moment, OpKind, WorkerId};
use plimsoll_workload::history::{Answer, Witness};

pub use plimsoll_model::WrongKind;
pub use plimsoll_workload::history::{HistoryOp, KeyNumber, ValueId, WrongContent};

use findings::Findings;
use register::Register;

/// What a store did that it must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ViolationKind {
    /// A read gave content that nobody wrote to that key.
    Content(WrongKind),
    /// A read told of an older state than was certain, and the newer one came to light later, or
    /// was not looked for again.
    StaleRead,
    /// A write was acknowledged and is gone: two looks or more missed it and none found it again.
    LostWrite,
    /// A delete was acknowledged and the object still exists: two looks or more found it.
    ResurrectedDelete,
    /// A listing lacks a key that was certainly there.
    ListOmission,
    /// A listing holds a key that was certainly not there.
    ListGhost,
    /// A listing gives the size of an older version.
    ListStale,
    /// A size that no write of the key had.
    WrongSize,
}

impl ViolationKind {
    /// Returns the name used in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Content(kind) => kind.name(),
            Self::StaleRead => "stale-read",
            Self::LostWrite => "lost-write",
            Self::ResurrectedDelete => "resurrected-delete",
            Self::ListOmission => "list-omission",
            Self::ListGhost => "list-ghost",
            Self::ListStale => "list-stale",
            Self::WrongSize => "wrong-size",
        }
    }
}

/// What one operation told about one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saw {
    /// It is still under way.
    Pending,
    /// The write or the removal is done.
    Done,
    /// It failed, so that nothing is known.
    Failed(ErrorClass),
    /// This value.
    Value(ValueId),
    /// An object, of that size where it was stated.
    Present(Option<u64>),
    /// Nothing there.
    Absent,
    /// Content that is no value of the key.
    Wrong(WrongContent),
}

/// One operation in the proof of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Which one of the history's operations it is, in the order in which they began, 0-based.
    pub number: u64,
    /// Who did it.
    pub worker: WorkerId,
    /// What was asked.
    pub op: HistoryOp,
    /// When it began.
    pub begin: Moment,
    /// When it ended; `None` when that was not known yet, or never became known.
    pub end: Option<Moment>,
    /// What it told.
    pub saw: Saw,
}

/// A violation with the fewest operations that prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What it is.
    pub kind: ViolationKind,
    /// The key, or the name that a listing gave though nobody wrote it.
    pub key: Result<KeyNumber, String>,
    /// The operations, in the order in which they began.
    pub proof: Vec<Event>,
    /// Further operations that told the same.
    pub repeats_count: u64,
}

/// How the operations of one kind ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// They told something, or did what was asked.
    pub done: u64,
    /// A range that was not in the object of that moment: they tell nothing.
    pub out_of_range: u64,
    /// They failed.
    pub failed: u64,
}

/// What came of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryReport {
    /// How many violations of each kind.
    pub counts: BTreeMap<ViolationKind, u64>,
    /// The first of them.
    pub violations: Vec<Violation>,
    /// How the operations ended.
    pub ops: BTreeMap<OpKind, Tally>,
    /// Why operations failed.
    pub failures: BTreeMap<ErrorClass, u64>,
    /// Judgements: one for each read, and one for each key of a listing.
    pub judged_count: u64,
    /// The most operations that were kept at one time.
    pub kept_count_max: usize,
}

/// A history that is judged while it happens.
#[derive(Debug)]
pub struct History {
    registers: BTreeMap<KeyNumber, Register>,
    /// Keys below this one were there at some time.
    keys_end: u32,
    under_way: BTreeMap<WorkerId, Event>,
    next_number: u64,
    findings: Findings,
    ops: BTreeMap<OpKind, Tally>,
    failures: BTreeMap<ErrorClass, u64>,
    judged_count: u64,
    kept_count: usize,
    kept_count_max: usize,
}

impl History {
    /// Returns an empty history that keeps the proofs of the first `violations_max` violations.
    pub fn new(violations_max: usize) -> Self {
        Self {
            registers: BTreeMap::new(),
            keys_end: 0,
            under_way: BTreeMap::new(),
            next_number: 0,
            findings: Findings::new(violations_max),
            ops: BTreeMap::new(),
            failures: BTreeMap::new(),
            judged_count: 0,
            kept_count: 0,
            kept_count_max: 0,
        }
    }

    /// Ends the history and returns what came of it.
    pub fn finish(mut self) -> HistoryReport {
        for register in self.registers.values_mut() {
            register.suspects.settle_all(&mut self.findings);
        }
        let (counts, violations) = self.findings.into_parts();
        HistoryReport {
            counts,
            violations,
            ops: self.ops,
            failures: self.failures,
            judged_count: self.judged_count,
            kept_count_max: self.kept_count_max,
        }
    }

    /// Returns how many violations are certain so far.
    pub fn violations_count(&self) -> u64 {
        self.findings.total()
    }

    fn tally(&mut self, kind: OpKind, answer: &Answer) {
        let tally = self.ops.entry(kind).or_default();
        match answer {
            Answer::OutOfRange => tally.out_of_range += 1,
            Answer::Failed(class) => {
                tally.failed += 1;
                *self.failures.entry(*class).or_default() += 1;
            }
            _ => tally.done += 1,
        }
    }

    fn judge_listing(&mut self, list: Event, entries: &[(KeyNumber, u64)], strange: &[String]) {
        for name in strange {
            let seen = Event { saw: Saw::Present(None), ..list };
            self.findings.add(ViolationKind::ListGhost, Err(name.clone()), vec![seen], 0);
        }
        let mut sizes = BTreeMap::new();
        for &(key, size) in entries {
            if key.0 >= self.keys_end {
                let seen = Event { saw: Saw::Present(Some(size)), ..list };
                self.findings.add(ViolationKind::ListGhost, Ok(key), vec![seen], 0);
            }
            sizes.insert(key, size);
        }
        for (key, register) in &mut self.registers {
            let saw = sizes.get(key).map_or(Saw::Absent, |size| Saw::Present(Some(*size)));
            register.seen(Event { saw, ..list }, &mut self.findings);
            self.judged_count += 1;
        }
    }

    /// Reports content that is no value of its key, with the write of the value that left traces.
    fn wrong_content(&mut self, read: Event, mut wrong: WrongContent) {
        let Some(key) = read.op.key() else { return };
        let register_of = |key| self.registers.get(&key);
        // The beginning of one version that is as long as another one.
        if wrong.kind == WrongKind::Short
            && let Some(value) = wrong.value
            && register_of(key).is_some_and(|register| register.has_other(value, wrong.at))
        {
            wrong.kind = WrongKind::OldVersion;
        }
        let source = wrong.value.and_then(|value| register_of(value.key)?.write_of(value));
        let read = Event { saw: Saw::Wrong(wrong), ..read };
        let proof = source.into_iter().chain([read]).collect();
        self.findings.add(ViolationKind::Content(wrong.kind), Ok(key), proof, 0);
        self.judged_count += 1;
    }

    /// Forgets what can no longer matter, of one key or, after a listing, of all.
    fn forget(&mut self, only: Option<KeyNumber>, now: Moment) {
        let is_list = |event: &&Event| event.op == HistoryOp::List;
        let listing = self.under_way.values().filter(is_list).map(|event| event.begin).min();
        let now = listing.map_or(now, |listing| listing.min(now));
        let (from, to) = only.map_or((0, u32::MAX), |key| (key.0, key.0));
        let mut over = Vec::new();
        for (key, register) in self.registers.range_mut(KeyNumber(from)..=KeyNumber(to)) {
            self.kept_count -= register.kept_count_before;
            register.forget(now);
            register.kept_count_before = register.kept_count();
            self.kept_count += register.kept_count_before;
            if register.is_over() {
                over.push(*key);
            }
        }
        self.kept_count_max = self.kept_count_max.max(self.kept_count);
        for mut register in over.into_iter().filter_map(|key| self.registers.remove(&key)) {
            register.suspects.settle_all(&mut self.findings);
            self.kept_count -= register.kept_count_before;
        }
    }
}

impl Witness for History {
    fn add_key(&mut self, key: KeyNumber) {
        assert!(key.0 >= self.keys_end, "a key number is used once");
        self.keys_end = key.0 + 1;
        self.registers.insert(key, Register::new(key));
    }

    fn retire_key(&mut self, key: KeyNumber) {
        if let Some(register) = self.registers.get_mut(&key) {
            register.retire();
        }
    }

    fn begin(&mut self, worker: WorkerId, op: HistoryOp, at: Moment) {
        let number = self.next_number;
        self.next_number += 1;
        let event = Event { number, worker, op, begin: at, end: None, saw: Saw::Pending };
        let before = self.under_way.insert(worker, event);
        assert!(before.is_none(), "a worker does one operation at a time");
        if let Some(register) = op.key().and_then(|key| self.registers.get_mut(&key)) {
            register.begin(event);
        }
    }

    fn end(&mut self, worker: WorkerId, answer: &Answer, at: Moment) -> Option<KeyNumber> {
        let begun = self.under_way.remove(&worker).expect("what ends was begun");
        self.tally(begun.op.kind(), answer);
        let mut event = Event { end: Some(at.max(begun.begin)), ..begun };
        event.saw = match *answer {
            Answer::Done => Saw::Done,
            Answer::Value(value) => Saw::Value(value),
            Answer::Wrong(wrong) => Saw::Wrong(wrong),
            Answer::Present(size) => Saw::Present(size),
            Answer::Absent => Saw::Absent,
            Answer::Failed(class) => Saw::Failed(class),
            Answer::Listed(..) | Answer::OutOfRange => Saw::Pending,
        };
        if let Answer::Listed(entries, strange) = answer {
            self.judge_listing(event, entries, strange);
        }
        let key = begun.op.key();
        if let Some(register) = key.and_then(|key| self.registers.get_mut(&key)) {
            register.ended(worker);
            self.judged_count += u64::from(register.seen(event, &mut self.findings));
        }
        if let Saw::Wrong(wrong) = event.saw {
            self.wrong_content(event, wrong);
        }
        self.forget(key, event.end.unwrap_or(at));
        let doubtful = |(_, register): &(&KeyNumber, &Register)| register.suspects.any_open();
        match key {
            Some(key) => self.registers.get_key_value(&key).filter(doubtful),
            None => self.registers.iter().find(doubtful),
        }
        .map(|(key, _)| *key)
    }

    fn unsettled_count(&self, key: KeyNumber) -> usize {
        self.registers.get(&key).map_or(0, Register::unsettled_count)
    }
}

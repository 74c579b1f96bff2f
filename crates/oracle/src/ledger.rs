//! What a scripted store truly did: the truth that a measurement is held against.

use std::collections::BTreeMap;

use plimsoll_model::{ErrorClass, Moment, OpKind};
use serde_json::{Map, Value, json};

use crate::behaviour::{Act, Lie};

/// The schema of its document: its name and version.
const SCHEMA: &str = "plimsoll.ledger/1";

/// What a scripted store truly did, by kind of operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    kinds: [Entry; OpKind::ALL.len()],
    /// The keys of writes that were acknowledged and not done.
    lost_keys: Vec<String>,
    /// When operations ended that a right client must see succeed, where that is kept.
    pub(crate) ended: Vec<Moment>,
}

/// What was done with operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    classes: [u64; ErrorClass::ALL.len()],
    /// By [`Act::name`], all but what was served as it should.
    acts: BTreeMap<&'static str, u64>,
    pub(crate) content_bytes: u64,
    pub(crate) latencies_ns: Vec<u64>,
}

impl Entry {
    fn forget(&mut self, before: &Self) {
        self.classes.iter_mut().zip(before.classes).for_each(|(count, old)| *count -= old);
        for (name, old) in &before.acts {
            self.acts.entry(name).and_modify(|count| *count -= old);
        }
        self.acts.retain(|_, count| *count > 0);
        self.content_bytes -= before.content_bytes;
        self.latencies_ns.drain(..before.latencies_ns.len());
    }

    pub(crate) fn count(&mut self, class: ErrorClass, act: Act) {
        self.classes[class as usize] += 1;
        if act != Act::Serve {
            *self.acts.entry(act.name()).or_default() += 1;
        }
    }
}

impl Ledger {
    /// Returns what was done after `before`, which is an earlier state of the same ledger.
    pub fn since(&self, before: &Self) -> Self {
        let mut since = self.clone();
        for (entry, before) in since.kinds.iter_mut().zip(&before.kinds) {
            entry.forget(before);
        }
        since.lost_keys.drain(..before.lost_keys.len());
        since.ended.drain(..before.ended.len());
        since
    }

    /// Returns the same without the operations of a kind.
    pub fn without(mut self, kind: OpKind) -> Self {
        *self.of_mut(kind) = Entry::default();
        self
    }

    /// Counts an operation of that kind.
    pub fn add(&mut self, kind: OpKind, class: ErrorClass, act: Act) {
        self.of_mut(kind).count(class, act);
    }

    pub(crate) fn of_mut(&mut self, kind: OpKind) -> &mut Entry {
        &mut self.kinds[kind as usize]
    }

    fn of(&self, kind: OpKind) -> &Entry {
        &self.kinds[kind as usize]
    }

    /// Returns how many operations of `kind` there were.
    pub fn operations_count(&self, kind: OpKind) -> u64 {
        self.of(kind).classes.iter().sum()
    }

    /// Returns how many operations of `kind` a right client must see end with `class`.
    pub fn count(&self, kind: OpKind, class: ErrorClass) -> u64 {
        self.of(kind).classes[class as usize]
    }

    /// Returns how many operations of all kinds a right client must see end with `class`.
    pub fn class_count(&self, class: ErrorClass) -> u64 {
        OpKind::ALL.into_iter().map(|kind| self.count(kind, class)).sum()
    }

    /// Returns the content bytes of the operations of `kind` that a right client must see succeed:
    /// of get the right and whole contents or ranges, of put what was acknowledged.
    pub fn content_bytes(&self, kind: OpKind) -> u64 {
        self.of(kind).content_bytes
    }

    /// Returns how often `lie` was told.
    pub fn lie_count(&self, lie: Lie) -> u64 {
        let of_kind = |kind| self.of(kind).acts.get(lie.name()).copied().unwrap_or(0);
        OpKind::ALL.into_iter().map(of_kind).sum()
    }

    /// Returns how often each thing was done to operations of `kind` that is not right, by its name
    /// in scripts; `slow_down` counts those turned away too.
    pub fn acts(&self, kind: OpKind) -> &BTreeMap<&'static str, u64> {
        &self.of(kind).acts
    }

    /// Returns the latencies, from arrival to the last byte, of the operations of `kind` that a
    /// right client must see succeed, in order of arrival; empty unless they are kept.
    pub fn latencies_ns(&self, kind: OpKind) -> &[u64] {
        &self.of(kind).latencies_ns
    }

    pub(crate) fn lose(&mut self, key: &str) {
        self.lost_keys.push(key.to_owned());
    }

    /// Returns the keys of writes that were acknowledged and not done, in the order of their
    /// arrival.
    pub fn lost_keys(&self) -> &[String] {
        &self.lost_keys
    }

    /// Returns when operations ended that a right client must see succeed, of any kind and in the
    /// order of their arrival; empty unless latencies are kept.
    pub fn ended(&self) -> &[Moment] {
        &self.ended
    }

    /// Returns all of it as one document.
    pub fn to_json(&self) -> Value {
        let done = OpKind::ALL.into_iter().filter(|kind| self.operations_count(*kind) > 0);
        let kinds = done.map(|kind| {
            let counts = ErrorClass::ALL.map(|class| (class.name(), self.count(kind, class)));
            let classes = counts.into_iter().filter(|(_, count)| *count > 0);
            let classes: Map<String, Value> =
                classes.map(|(name, count)| (name.to_owned(), count.into())).collect();
            json!({
                "kind": kind.name(),
                "operations_count": self.operations_count(kind),
                "classes": classes,
                "content_bytes": self.content_bytes(kind),
                "acts": self.acts(kind),
            })
        });
        json!({ "schema": SCHEMA, "kinds": kinds.collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_before_is_left_out() {
        let mut ledger = Ledger::default();
        let put = ledger.of_mut(OpKind::Put);
        put.count(ErrorClass::Ok, Act::Serve);
        (put.content_bytes, put.latencies_ns) = (100, vec![7]);
        ledger.of_mut(OpKind::Get).count(ErrorClass::Truncated, Act::HalfBody);
        let before = ledger.clone();
        assert_eq!(ledger.since(&before), Ledger::default());

        let put = ledger.of_mut(OpKind::Put);
        put.count(ErrorClass::Throttled, Act::SLOW_DOWN);
        put.count(ErrorClass::Ok, Act::Serve);
        put.content_bytes += 50;
        put.latencies_ns.push(9);
        let since = ledger.since(&before);
        assert_eq!(
            (since.operations_count(OpKind::Put), since.class_count(ErrorClass::Ok)),
            (2, 1)
        );
        assert_eq!(since.operations_count(OpKind::Get), 0);
        assert_eq!(
            (since.content_bytes(OpKind::Put), since.latencies_ns(OpKind::Put)),
            (50, &[9][..])
        );
        assert_eq!(since.acts(OpKind::Put), &BTreeMap::from([("slow_down", 1)]));
        assert!(since.acts(OpKind::Get).is_empty());
        assert_eq!(since.clone().without(OpKind::Put), Ledger::default());
        assert_eq!(since.clone().without(OpKind::Get), since);
    }
}

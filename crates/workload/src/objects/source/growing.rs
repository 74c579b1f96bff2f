//! Members that come one after the other: uploads in parts, archives, copies, and objects that are
//! added to.

use std::collections::BTreeSet;

use plimsoll_model::{ObjectId, OpKind, WorkerId};

use super::part_of;
use crate::SizeDist;
use crate::objects::{Change, ObjectRef, ObjectSet, ObjectsJob, PlannedOp, Subject};
use crate::plan::{SetIndex, Work};
use crate::sizes::PARTS_MAX;

/// New members one after the other, or the parts of them.
pub(super) struct NewObjects {
    set: SetIndex,
    owner: u32,
    law: u16,
    first: u64,
    next: u64,
    /// Parts of the next one that were come to.
    parts_done: u64,
    failed: BTreeSet<u64>,
}

impl NewObjects {
    pub(super) fn new(job: &ObjectsJob, at: SetIndex, worker: WorkerId) -> Self {
        let (set, members) = job.population(at);
        let owner = job.owner(worker);
        let law = job.law_of(0);
        let first = members.next_number(set, owner, law);
        Self { set: at, owner, law, first, next: first, parts_done: 0, failed: BTreeSet::new() }
    }

    pub(super) fn next_op(&mut self, job: &ObjectsJob) -> PlannedOp {
        let set = job.set(self.set);
        let id = set.new_id(self.owner, self.law, self.next);
        let (kind, subject) = match &job.work {
            Work::PutParts { part_bytes, .. } => {
                let (size, parts) = job.upload_of(self.set, id);
                let part = part_of(id, size, *part_bytes, self.parts_done);
                self.parts_done += 1;
                if self.parts_done < parts {
                    return PlannedOp { kind: OpKind::PutPart, set: self.set, subject: part };
                }
                self.parts_done = 0;
                (OpKind::PutPart, part)
            }
            Work::Fanout { .. } => {
                let object = ObjectRef::newest(id, set.size_of(id), 0);
                (OpKind::Post, Subject::Copies(object))
            }
            _ => (OpKind::Put, Subject::Archive(id)),
        };
        self.next += 1;
        PlannedOp { kind, set: self.set, subject }
    }

    /// Takes note of what became of an operation: the rest of an upload that failed is left out.
    pub(super) fn completed(&mut self, op: &PlannedOp, ok: bool) {
        let (false, Some(id)) = (ok, op.subject.object_id()) else { return };
        let (_, number) = ObjectSet::split(id);
        self.failed.insert(number);
        if number == self.next && self.parts_done > 0 {
            (self.next, self.parts_done) = (self.next + 1, 0);
        }
    }

    pub(super) fn changes(&self, job: &ObjectsJob) -> Vec<(SetIndex, Change)> {
        let (owner, law, from, mut to) = (self.owner, self.law, self.first, self.next);
        let mut failed: Vec<u64> = self.failed.iter().copied().collect();
        // Of the last upload parts are missing.
        if self.parts_done > 0 {
            failed.push(to);
            to += 1;
        }
        let change = match job.work {
            Work::PutParts { .. } => Change::Put { owner, law, from, to, failed },
            // What a store makes of an archive or of copies has other names than members have.
            _ => Change::Numbered { owner, law, next: to },
        };
        vec![(self.set, change)]
    }
}

/// An object that more can be added to.
#[derive(Clone, Copy, Debug)]
struct Open {
    id: ObjectId,
    parts: u32,
    len: u64,
}

/// The objects that a worker adds to: each has at most one operation under way, as the place where
/// the next part goes depends on the one before. A closed loop has one of them.
pub(super) struct Appends {
    set: SetIndex,
    owner: u32,
    parts: u32,
    sizes: SizeDist,
    next_number: u64,
    /// Those without an operation under way; the one used last is used next.
    free: Vec<Open>,
    under_way: Vec<Open>,
}

impl Appends {
    pub(super) fn new(job: &ObjectsJob, at: SetIndex, worker: WorkerId) -> Self {
        let Work::Append { parts, sizes, .. } = &job.work else {
            unreachable!("parts are added by work that appends")
        };
        let (set, members) = job.population(at);
        let owner = job.owner(worker);
        Self {
            set: at,
            owner,
            parts: parts.get(),
            sizes: sizes.clone(),
            next_number: members.next_number(set, owner, 0),
            free: Vec::new(),
            under_way: Vec::new(),
        }
    }

    /// Returns the PUT of a new object, or what adds the next part to one.
    pub(super) fn next_op(&mut self, job: &ObjectsJob) -> PlannedOp {
        let set = job.set(self.set);
        let mut new = || {
            self.next_number += 1;
            Open { id: set.new_id(self.owner, 0, self.next_number - 1), parts: 0, len: 0 }
        };
        let open = self.free.pop().unwrap_or_else(&mut new);
        // Every part of every object has a number of its own, from which its size comes.
        let number = open.id.number() * u64::from(PARTS_MAX) + u64::from(open.parts);
        let number = number & ObjectId::NUMBER_MAX;
        let bytes = self.sizes.size(set.seed, ObjectId::new(WorkerId(self.owner), number));
        let object = ObjectRef::newest(open.id, Some(open.len + bytes), 0);
        let (kind, range) = match open.parts {
            0 => (OpKind::Put, None),
            _ => (OpKind::Append, Some((open.len, bytes))),
        };
        let parts = (open.parts + 1) % self.parts;
        self.under_way.push(Open { parts, len: open.len + bytes, ..open });
        PlannedOp { kind, set: self.set, subject: Subject::Object(object, range) }
    }

    /// Takes note of what became of an operation: nothing more is added where it failed, or where
    /// the object has all its parts.
    pub(super) fn completed(&mut self, op: &PlannedOp, ok: bool) {
        let of = |open: &Open| Some(open.id) == op.subject.object_id();
        let Some(index) = self.under_way.iter().position(of) else { return };
        let open = self.under_way.swap_remove(index);
        if ok && open.parts > 0 {
            self.free.push(open);
        }
    }

    /// Returns what was changed; how long each object became is not kept, so that they are no
    /// members for later work.
    pub(super) fn changes(&self) -> Vec<(SetIndex, Change)> {
        let change = Change::Numbered { owner: self.owner, law: 0, next: self.next_number };
        vec![(self.set, change)]
    }
}

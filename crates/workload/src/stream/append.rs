//! The objects that a worker adds to: each has at most one operation under way, as the place where
//! the next part goes depends on the one before.

use plimsoll_model::{ObjectId, OpKind, WorkerId};

use super::{ObjectRef, PlannedOp, Target};
use crate::spec::PARTS_MAX;
use crate::{Activity, Workload};

/// An object that more can be added to.
#[derive(Clone, Copy, Debug)]
struct Open {
    id: ObjectId,
    parts: u32,
    len: u64,
}

/// The worker's objects, of which a closed loop has one.
#[derive(Default)]
pub(super) struct Appends {
    next_number: u64,
    /// Those without an operation under way; the one used last is used next.
    free: Vec<Open>,
    under_way: Vec<Open>,
}

impl Appends {
    /// Returns the PUT of a new object, or what adds the next part to one.
    pub(super) fn next_op(&mut self, workload: &Workload, worker: WorkerId) -> PlannedOp {
        let mut new = || {
            self.next_number += 1;
            Open { id: ObjectId::new(worker, self.next_number - 1), parts: 0, len: 0 }
        };
        let open = self.free.pop().unwrap_or_else(&mut new);
        // Every part of every object has a number of its own, from which its size comes.
        let number = open.id.number() * u64::from(PARTS_MAX) + u64::from(open.parts);
        let bytes = workload.sizes.size(workload.seed.0, ObjectId::new(worker, number));
        let object = ObjectRef { id: open.id, size: open.len + bytes, version: 0 };
        let (kind, range) = match open.parts {
            0 => (OpKind::Put, None),
            _ => (OpKind::Append, Some((open.len, bytes))),
        };
        let Activity::Append { parts } = workload.activity else {
            unreachable!("parts are added in an append workload")
        };
        self.under_way.push(Open { parts: (open.parts + 1) % parts, len: object.size, ..open });
        PlannedOp { kind, target: Target::Object(object, range) }
    }

    /// Takes note of what became of an operation: nothing more is added where it failed, or where
    /// the object has all its parts.
    pub(super) fn completed(&mut self, op: &PlannedOp, ok: bool) {
        let of = |open: &Open| Some(open.id) == op.target.object_id();
        let Some(index) = self.under_way.iter().position(of) else { return };
        let open = self.under_way.swap_remove(index);
        if ok && open.parts > 0 {
            self.free.push(open);
        }
    }
}

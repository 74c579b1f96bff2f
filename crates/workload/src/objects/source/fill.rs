//! Making all members of sets, each by the worker that it is dealt to.

use std::collections::BTreeSet;

use plimsoll_model::{ObjectId, OpKind, WorkerId};

use super::part_of;
use crate::objects::members::{filled_at, share_len};
use crate::objects::slices::Slice;
use crate::objects::{Change, Held, ObjectRef, ObjectSet, ObjectsJob, PlannedOp, Subject};
use crate::plan::{SetIndex, Work};

/// What a worker makes of each set.
pub(super) struct Fill {
    sets: Vec<Share>,
    at: usize,
}

struct Share {
    set: SetIndex,
    /// The part of the set that it is, where that is contiguous.
    slice: Option<Slice>,
    /// Positions of the share that were come to, or parts of what all workers make together.
    done: u64,
    /// Parts of the present member that were come to.
    parts_done: u64,
    failed: BTreeSet<u64>,
}

impl Fill {
    pub(super) fn new(job: &ObjectsJob, worker: WorkerId) -> Self {
        let Work::Fill { sets, .. } = &job.work else { unreachable!("a fill fills sets") };
        let share = |set: &SetIndex| {
            let slice = Slice::of(job.set(*set), job.deal, (worker, job.workers.get()));
            Share { set: *set, slice, done: 0, parts_done: 0, failed: BTreeSet::new() }
        };
        Self { sets: sets.iter().map(share).collect(), at: 0 }
    }

    pub(super) fn next_op(&mut self, job: &ObjectsJob, worker: WorkerId) -> Option<PlannedOp> {
        loop {
            let share = self.sets.get_mut(self.at)?;
            match share.next_op(job, worker) {
                Some(op) => return Some(op),
                None => self.at += 1,
            }
        }
    }

    pub(super) fn completed(
        &mut self,
        job: &ObjectsJob,
        worker: WorkerId,
        op: &PlannedOp,
        ok: bool,
    ) {
        let (false, Some(id)) = (ok, op.subject.object_id()) else { return };
        let Some(share) = self.sets.iter_mut().find(|share| share.set == op.set) else { return };
        let set = job.set(op.set);
        if set.shared.is_some() {
            // All of its names stay members, whatever is there.
            return;
        }
        let version = match op.subject {
            Subject::Object(object, _) => object.version,
            _ => 0,
        };
        // The rest of an upload that failed is left out.
        if let (Subject::Part { number, .. }, Some(_)) = (op.subject, set.part_bytes)
            && set.count > 1
            && share.parts_done == u64::from(number)
        {
            (share.done, share.parts_done) = (share.done + 1, 0);
        }
        let index = match set.is_own() {
            true => id.number() * u64::from(set.owners.get()) + u64::from(id.owner().0),
            false => id.number(),
        };
        let turn = (index - u64::from(worker.0).min(index)) / u64::from(job.workers.get());
        let position = turn * u64::from(set.versions) + u64::from(version);
        share.failed.insert(position);
    }

    pub(super) fn changes(&self, job: &ObjectsJob, worker: WorkerId) -> Vec<(SetIndex, Change)> {
        let of = |share: &Share| {
            let workers = job.workers.get();
            let set = job.set(share.set);
            if set.shared.is_some() {
                let next = share.member(set, (worker.0, workers));
                return (share.set, Change::Doubtful(next.into_iter().collect()));
            }
            let all = share_len(set.count, worker.0, workers) * u64::from(set.versions);
            // What is made by all together is there for all.
            let done = if is_common(set) && share.failed.is_empty() { all } else { share.done };
            let (worker, failed) = (worker.0, share.failed.iter().copied().collect());
            let change = Change::Filled { worker, workers, done, failed };
            (share.set, change)
        };
        self.sets.iter().map(of).collect()
    }
}

/// Tells whether all workers make one thing together, or one of them makes it for all.
fn is_common(set: &ObjectSet) -> bool {
    set.is_zip || (set.part_bytes.is_some() && set.count == 1)
}

impl Share {
    fn next_op(&mut self, job: &ObjectsJob, worker: WorkerId) -> Option<PlannedOp> {
        let set = job.set(self.set);
        let workers = job.workers.get();
        if set.is_zip {
            let is_mine = worker.0 == 0 && self.done == 0 && set.count > 0;
            self.done = 1;
            let subject = Subject::Archive(zip_id(set));
            return is_mine.then_some(PlannedOp { kind: OpKind::Put, set: self.set, subject });
        }
        if let Some(part_bytes) = set.part_bytes {
            return self.next_part(job, (worker.0, workers), part_bytes);
        }
        let held = match set.shared {
            Some(_) => Held::new(self.member(set, (worker.0, workers))?),
            None => {
                let all = share_len(set.count, worker.0, workers) * u64::from(set.versions);
                if self.done == all {
                    return None;
                }
                filled_at(set, (worker.0, workers), self.done)
            }
        };
        self.done += 1;
        let object = ObjectRef::newest(held.id, set.size_of(held.id), held.version);
        let subject = Subject::Object(object, None);
        Some(PlannedOp { kind: OpKind::Put, set: self.set, subject })
    }

    /// Returns the next member of a shared set that it comes to.
    fn member(&self, set: &ObjectSet, (worker, workers): (u32, u32)) -> Option<ObjectId> {
        let index = match &self.slice {
            Some(slice) => (self.done < slice.len()).then(|| slice.at(self.done)),
            None => {
                let index = self.done * u64::from(workers) + u64::from(worker);
                (index < set.count).then_some(index)
            }
        };
        index.map(|index| set.id(index))
    }

    /// Returns the next part: of the only member, which all workers upload together, or of the next
    /// of the worker's own.
    fn next_part(
        &mut self,
        job: &ObjectsJob,
        (worker, workers): (u32, u32),
        part_bytes: u64,
    ) -> Option<PlannedOp> {
        let set = job.set(self.set);
        let is_common = set.count == 1;
        let id = match is_common {
            true => set.id(0),
            false if self.done == share_len(set.count, worker, workers) => return None,
            false => filled_at(set, (worker, workers), self.done * u64::from(set.versions)).id,
        };
        let size = set.size_of(id).expect("a set with parts has sizes");
        let parts = size.div_ceil(part_bytes);
        let part = match is_common {
            true => self.done * u64::from(workers) + u64::from(worker),
            false => self.parts_done,
        };
        if part >= parts {
            return None;
        }
        match is_common {
            true => self.done += 1,
            false => {
                self.parts_done += 1;
                if self.parts_done == parts {
                    (self.done, self.parts_done) = (self.done + 1, 0);
                }
            }
        }
        let subject = part_of(id, size, part_bytes, part);
        Some(PlannedOp { kind: OpKind::PutPart, set: self.set, subject })
    }
}

/// Returns the id of a zip archive, whose files have the numbers before.
pub(in crate::objects) fn zip_id(set: &ObjectSet) -> plimsoll_model::ObjectId {
    plimsoll_model::ObjectId::new(WorkerId(0), set.share_of(0))
}

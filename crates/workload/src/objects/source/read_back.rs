//! Reading back what was written: each member once, dealt to the workers in turn.

use plimsoll_model::{OpKind, WorkerId};

use crate::objects::{ObjectRef, ObjectsJob, PlannedOp, Subject};
use crate::plan::SetIndex;

/// What a worker reads of each set.
pub(super) struct ReadBack {
    sets: Vec<SetIndex>,
    at: usize,
    worker: WorkerId,
    /// The place of the next member of the present set.
    next: u64,
}

impl ReadBack {
    pub(super) fn new(sets: Vec<SetIndex>, worker: WorkerId) -> Self {
        Self { sets, at: 0, worker, next: u64::from(worker.0) }
    }

    /// Returns the next read. What nobody knows the fate of was not acknowledged, and is passed
    /// over.
    pub(super) fn next_op(&mut self, job: &ObjectsJob) -> Option<PlannedOp> {
        loop {
            let index = *self.sets.get(self.at)?;
            let (set, members) = job.population(index);
            if self.next >= members.count(set) {
                (self.at, self.next) = (self.at + 1, u64::from(self.worker.0));
                continue;
            }
            let held = members.newest(set, self.next);
            self.next += u64::from(job.workers.get());
            if members.doubtful().binary_search(&held.id).is_ok() {
                continue;
            }
            let object = ObjectRef::newest(held.id, set.size_of(held.id), held.version);
            let subject = Subject::Object(object, None);
            return Some(PlannedOp { kind: OpKind::Get, set: index, subject });
        }
    }
}

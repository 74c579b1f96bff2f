//! The operations that one worker has of a trace, in the order of the trace for each object.
//!
//! An operation that writes or removes an object waits for all before it on the same object, and
//! those after it wait for it; reads may overlap. So what a read finds is what the last write left.

use std::collections::{HashMap, VecDeque};

use plimsoll_model::{Moment, ObjectId, OpKind, WorkerId};

use crate::objects::{Below, ObjectRef, ObjectSet, ObjectsJob, PlannedOp, Subject};
use crate::plan::SetIndex;
use crate::trace::{NO_OBJECT, TraceOp, TracePlaces};

/// The operations of one worker, and what is known of its objects.
pub(super) struct Replay {
    set: SetIndex,
    /// The places of its operations in the trace.
    places: TracePlaces,
    /// That of the operation that was drawn last.
    drawn: u32,
    workers: u32,
    /// By object, of those that are its own.
    objects: Vec<State>,
    /// By object: operations that wait for others on it, with the instants at which they were due.
    waiting: HashMap<u32, VecDeque<(u32, Moment)>>,
    waiting_count: u64,
    /// What need not wait any more.
    freed: VecDeque<(PlannedOp, Moment)>,
}

/// What is known of an object.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// How large it is.
    size: u64,
    /// The version that was written last.
    version: u32,
    /// Reads of it that are under way.
    reads: u32,
    /// Whether it is being written or removed.
    is_written: bool,
    /// Whether writing it failed, so that nobody knows what it holds.
    is_doubtful: bool,
}

impl Replay {
    pub(super) fn new(job: &ObjectsJob, set: SetIndex, worker: WorkerId) -> Self {
        let places = job.traced.as_ref().expect("the trace was dealt").places(worker);
        let (workers, trace) = (job.workers.get(), places.trace());
        let count = (trace.objects_count().saturating_sub(worker.0)).div_ceil(workers);
        let state = |index: u32| {
            let object = (index * workers + worker.0) as usize;
            State { size: trace.made_first().get(object).copied().unwrap_or(0), ..State::default() }
        };
        let objects = (0..count).map(state).collect();
        let (waiting, freed) = (HashMap::new(), VecDeque::new());
        Self { set, places, drawn: 0, workers, objects, waiting, waiting_count: 0, freed }
    }

    /// Returns the next operation as the trace has it.
    pub(super) fn next_op(&mut self, job: &ObjectsJob) -> Option<PlannedOp> {
        let at = self.places.next()?;
        self.drawn = at;
        let op = self.op(at);
        Some(self.planned(job, at, ObjectRef::newest(self.id(job, op), Some(op.object_bytes), 0)))
    }

    /// Returns the operation that was drawn last as it is to be done now, or nothing where it has
    /// to wait for others on its object.
    pub(super) fn admit(&mut self, job: &ObjectsJob, due: Moment) -> Option<PlannedOp> {
        let at = self.drawn;
        let object = self.op(at).object;
        if object == NO_OBJECT {
            return Some(self.begin(job, at));
        }
        if self.waiting.contains_key(&object) || !self.may_begin(at) {
            self.waiting.entry(object).or_default().push_back((at, due));
            self.waiting_count += 1;
            return None;
        }
        Some(self.begin(job, at))
    }

    /// Takes an operation that was held back and may begin now, with the instant at which it was
    /// due.
    pub(super) fn take_freed(&mut self) -> Option<(PlannedOp, Moment)> {
        self.freed.pop_front()
    }

    /// Returns how many operations wait for others, or are free to begin and have not.
    pub(super) fn held_count(&self) -> u64 {
        self.waiting_count + self.freed.len() as u64
    }

    /// Takes note of what became of an operation.
    pub(super) fn completed(&mut self, job: &ObjectsJob, op: &PlannedOp, ok: bool) {
        let Subject::Object(of, _) = op.subject else { return };
        let object = number_of(job.set(self.set), of.id);
        let state = &mut self.objects[(object / self.workers) as usize];
        match op.kind {
            OpKind::Put => {
                state.is_written = false;
                state.is_doubtful = !ok;
                state.size = of.size.unwrap_or(0);
            }
            OpKind::Delete => {
                state.is_written = false;
                state.is_doubtful |= !ok;
            }
            _ => state.reads = state.reads.saturating_sub(1),
        }
        self.free(job, object);
    }

    /// Lets those go that wait for nothing any more.
    fn free(&mut self, job: &ObjectsJob, object: u32) {
        while let Some(&(at, due)) = self.waiting.get(&object).and_then(VecDeque::front) {
            if !self.may_begin(at) {
                return;
            }
            let queue = self.waiting.get_mut(&object).expect("it has a first");
            queue.pop_front();
            if queue.is_empty() {
                self.waiting.remove(&object);
            }
            self.waiting_count -= 1;
            let op = self.begin(job, at);
            self.freed.push_back((op, due));
        }
    }

    fn op(&self, at: u32) -> &TraceOp {
        &self.places.trace().ops()[at as usize]
    }

    fn may_begin(&self, at: u32) -> bool {
        let op = self.op(at);
        let state = &self.objects[(op.object / self.workers) as usize];
        !state.is_written && (!is_write(op.kind) || state.reads == 0)
    }

    /// Returns an operation as it is to be done now, and counts it as under way.
    fn begin(&mut self, job: &ObjectsJob, at: u32) -> PlannedOp {
        let op = *self.op(at);
        let id = self.id(job, &op);
        if op.object == NO_OBJECT {
            return self.planned(job, at, ObjectRef::newest(id, None, 0));
        }
        let state = &mut self.objects[(op.object / self.workers) as usize];
        let object = match op.kind {
            OpKind::Put => {
                // Also where it fails: no two writes have one content.
                state.version += 1;
                ObjectRef::newest(id, Some(op.len), state.version)
            }
            _ if state.is_doubtful => ObjectRef::doubtful(id),
            _ => ObjectRef::newest(id, Some(state.size), state.version),
        };
        match is_write(op.kind) {
            true => state.is_written = true,
            false => state.reads += 1,
        }
        self.planned(job, at, object)
    }

    fn planned(&self, job: &ObjectsJob, at: u32, object: ObjectRef) -> PlannedOp {
        let op = self.op(at);
        let subject = match op.kind {
            OpKind::List => {
                let owner = WorkerId(at % job.set(self.set).owners.get());
                Subject::Listing { below: Below::Owner(owner), bucket: 0, op: 0 }
            }
            OpKind::Get if op.is_range => Subject::Object(object, Some((op.offset, op.len))),
            _ => Subject::Object(object, None),
        };
        PlannedOp { kind: op.kind, set: self.set, subject }
    }

    fn id(&self, job: &ObjectsJob, op: &TraceOp) -> ObjectId {
        job.set(self.set).id(if op.object == NO_OBJECT { 0 } else { op.object.into() })
    }
}

const fn is_write(kind: OpKind) -> bool {
    matches!(kind, OpKind::Put | OpKind::Delete)
}

/// Returns which object of the trace a member is.
fn number_of(set: &ObjectSet, id: ObjectId) -> u32 {
    (id.number() * u64::from(set.owners.get()) + u64::from(id.owner().0)) as u32
}

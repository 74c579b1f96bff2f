//! The operations of one worker, in order.

mod fill;
mod growing;
mod mix;
mod read_back;
mod replay;

use std::num::NonZeroU32;
use std::sync::Arc;

use plimsoll_model::{Moment, ObjectId, OpKind, WorkerId};

use self::fill::Fill;
pub(super) use self::fill::zip_id;
use self::growing::{Appends, NewObjects};
use self::mix::Mix;
use self::read_back::ReadBack;
use self::replay::Replay;
use super::pick::Picker;
use super::slices::Slice;
use super::{Change, Held, ObjectRef, ObjectsJob, PlannedOp, Subject};
use crate::Random;
use crate::plan::{OpAct, SetIndex, Work};

/// How members are uploaded in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadPlan {
    /// Each worker one member after the other.
    Each {
        /// How many of its parts are under way at a time.
        at_once: NonZeroU32,
    },
    /// All workers one member.
    Together,
}

/// The operations of one worker in one stage.
pub struct ObjectSource {
    job: Arc<ObjectsJob>,
    worker: WorkerId,
    kind: Kind,
    /// Members that it failed to write or to remove.
    doubtful: Vec<(SetIndex, ObjectId)>,
}

/// Where the next operation comes from.
enum Kind {
    Fill(Fill),
    Mix(Box<Mix>),
    Removal(Removal),
    ReadBack(ReadBack),
    /// One thing chosen out of a set that stays as it is.
    Picked {
        random: Random,
        picker: Picker,
    },
    New(NewObjects),
    Appends(Appends),
    Replay(Box<Replay>),
}

impl ObjectSource {
    pub(super) fn new(job: &Arc<ObjectsJob>, worker: WorkerId) -> Self {
        let of = (worker, job.workers.get());
        let kind = match &job.work {
            Work::Fill { .. } => Kind::Fill(Fill::new(job, worker)),
            Work::Remove { sets, batch } => {
                Kind::Removal(Removal::new(job, sets.clone(), *batch, worker))
            }
            Work::Objects(ops) => match all_removed(ops) {
                Some((sets, batch)) => Kind::Removal(Removal::new(job, sets, batch, worker)),
                None => Kind::Mix(Box::new(Mix::new(job, ops, worker))),
            },
            Work::ReadBack(sets) => Kind::ReadBack(ReadBack::new(sets.clone(), worker)),
            Work::GetPart { set, pick, part_bytes } => {
                let (set, members) = job.population(*set);
                let parts = match set.laws.first() {
                    Some(Some(crate::SizeDist::Fixed(size))) => size.div_ceil(*part_bytes),
                    // The part is drawn apart from the member.
                    _ => 1,
                };
                let picker = Picker::new(pick, members.count(set) * parts, job.seed.0, of);
                Kind::Picked { random: job.choices(worker), picker }
            }
            Work::GetFromZip { set, pick } => {
                let picker = Picker::new(pick, job.set(*set).count, job.seed.0, of);
                Kind::Picked { random: job.choices(worker), picker }
            }
            Work::Retention { set, pick, .. } => {
                let (set, members) = job.population(*set);
                let picker = Picker::new(pick, members.count(set), job.seed.0, of);
                Kind::Picked { random: job.choices(worker), picker }
            }
            Work::PutParts { set, .. } | Work::PutTar { set, .. } | Work::Fanout { set, .. } => {
                Kind::New(NewObjects::new(job, *set, worker))
            }
            Work::Append { set, .. } => Kind::Appends(Appends::new(job, *set, worker)),
            Work::Replay { set, .. } => Kind::Replay(Box::new(Replay::new(job, *set, worker))),
            other => unreachable!("{other:?} is no work on objects"),
        };
        Self { job: Arc::clone(job), worker, kind, doubtful: Vec::new() }
    }

    /// Returns the removal of what was put for a time that is over at `now`, if there is any: it
    /// goes before the next operation.
    #[inline]
    pub fn due(&mut self, now: Moment) -> Option<PlannedOp> {
        match &mut self.kind {
            Kind::Mix(mix) => mix.due(&self.job, now),
            _ => None,
        }
    }

    /// Returns the next operation, or `None` when there is nothing left to do.
    pub fn next_op(&mut self) -> Option<PlannedOp> {
        let (job, worker) = (&*self.job, self.worker);
        match &mut self.kind {
            Kind::Fill(fill) => fill.next_op(job, worker),
            Kind::Mix(mix) => mix.next_op(job, worker),
            Kind::Removal(removal) => removal.next_op(job),
            Kind::ReadBack(read) => read.next_op(job),
            Kind::Picked { random, picker } => Some(picked(job, picker.draw(random), random)),
            Kind::New(new) => Some(new.next_op(job)),
            Kind::Appends(appends) => Some(appends.next_op(job)),
            Kind::Replay(replay) => replay.next_op(job),
        }
    }

    /// Tells whether there may be nothing left to do some time.
    pub fn may_end(&self) -> bool {
        match &self.kind {
            Kind::Fill(_) | Kind::Removal(_) | Kind::ReadBack(_) => true,
            Kind::Mix(mix) => mix.may_end(&self.job),
            // Of a trace as much is due as it has.
            Kind::Picked { .. } | Kind::New(_) | Kind::Appends(_) | Kind::Replay(_) => false,
        }
    }

    /// Takes note of what became of an operation that ended at `now`, which may have begun before
    /// others that are still under way: what was written joins the members or stays out, what was
    /// read may be changed again.
    pub fn completed(&mut self, op: &PlannedOp, ok: bool, now: Moment) {
        let (job, worker) = (&*self.job, self.worker);
        if !ok && job.keeps_members {
            self.doubtful.extend(changed_by(job, op).map(|id| (op.set, id)));
        }
        match &mut self.kind {
            Kind::Fill(fill) => fill.completed(job, worker, op, ok),
            Kind::Mix(mix) => mix.completed(job, op, ok, now),
            Kind::Removal(removal) => removal.completed(job, op, ok),
            Kind::ReadBack(_) | Kind::Picked { .. } => {}
            Kind::New(new) => new.completed(op, ok),
            Kind::Appends(appends) => appends.completed(op, ok),
            Kind::Replay(replay) => replay.completed(job, op, ok),
        }
    }

    /// Returns the operation that was drawn last as it is to be done now, which was due then, or
    /// nothing where it has to wait for others: [`Self::take_freed`] gives it later.
    #[inline]
    pub fn admit(&mut self, op: PlannedOp, due: Moment) -> Option<PlannedOp> {
        match &mut self.kind {
            Kind::Replay(replay) => replay.admit(&self.job, due),
            _ => Some(op),
        }
    }

    /// Takes an operation that was held back and may begin now, with the instant at which it was
    /// due.
    #[inline]
    pub fn take_freed(&mut self) -> Option<(PlannedOp, Moment)> {
        match &mut self.kind {
            Kind::Replay(replay) => replay.take_freed(),
            _ => None,
        }
    }

    /// Returns how many operations are held back.
    pub fn held_count(&self) -> u64 {
        match &self.kind {
            Kind::Replay(replay) => replay.held_count(),
            _ => 0,
        }
    }

    /// Takes note that the operation drawn last never begins, so that nothing became of it.
    pub fn withdrawn(&mut self, op: &PlannedOp) {
        let (job, worker) = (&*self.job, self.worker);
        match &mut self.kind {
            Kind::Fill(fill) => fill.completed(job, worker, op, false),
            Kind::Mix(mix) => mix.withdrawn(op),
            // What is not begun of a trace ends it.
            Kind::Removal(_) | Kind::ReadBack(_) | Kind::Picked { .. } | Kind::Replay(_) => {}
            Kind::New(new) => new.completed(op, false),
            Kind::Appends(appends) => appends.completed(op, false),
        }
    }

    /// Returns what it has changed about its sets.
    pub fn changes(&self) -> Vec<(SetIndex, Change)> {
        let mut changes = match &self.kind {
            Kind::Fill(fill) => fill.changes(&self.job, self.worker),
            Kind::Mix(mix) => mix.changes(&self.job, self.worker),
            Kind::Removal(removal) => removal.changes(&self.job),
            // Nothing else works on the objects of a trace.
            Kind::ReadBack(_) | Kind::Picked { .. } | Kind::Replay(_) => Vec::new(),
            Kind::New(new) => new.changes(&self.job),
            Kind::Appends(appends) => appends.changes(),
        };
        for of_set in self.doubtful.chunk_by(|(a, _), (b, _)| a == b) {
            let ids = of_set.iter().map(|(_, id)| *id).collect();
            changes.push((of_set[0].0, Change::Doubtful(ids)));
        }
        changes
    }
}

/// Returns the members that an operation writes or removes.
fn changed_by<'a>(job: &'a ObjectsJob, op: &PlannedOp) -> Box<dyn Iterator<Item = ObjectId> + 'a> {
    let set = op.set;
    match (op.kind, op.subject) {
        (OpKind::Delete, Subject::Batch { from, count }) => {
            let order = job.removal_order(set);
            Box::new((from..).take(count as usize).map(move |at| job.removed(set, &order, at)))
        }
        (OpKind::Put | OpKind::Post | OpKind::PutPart | OpKind::Delete, subject) => {
            Box::new(subject.object_id().into_iter())
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// Returns the sets that are removed altogether, where that is all that is done, and how many
/// members go with one call.
fn all_removed(ops: &[crate::plan::Op]) -> Option<(Vec<SetIndex>, NonZeroU32)> {
    let mut sets = Vec::new();
    let mut size = None;
    for op in ops {
        let OpAct::Delete { batch, is_all: true, .. } = op.act else { return None };
        size.get_or_insert(batch);
        sets.push(op.set);
    }
    Some((sets, size?))
}

/// Returns the operation on what stands at `index` of a set that stays as it is.
fn picked(job: &ObjectsJob, index: u64, random: &mut Random) -> PlannedOp {
    match job.work {
        Work::Retention { set: at, .. } => {
            let (set, members) = job.population(at);
            let held = match members.is_as_filled() {
                true => {
                    let version = random.below(u64::from(set.versions)) as u32;
                    Held { id: set.id(index), version }
                }
                false => members.listed(set, index),
            };
            let size = set.size_of(held.id);
            let object = ObjectRef { id: held.id, size, version: held.version, is_by_name: true };
            let subject = Subject::Object(object, None);
            PlannedOp { kind: OpKind::Retention, set: at, subject }
        }
        Work::GetFromZip { set: at, .. } => {
            let set = job.set(at);
            let id = set.id(index);
            let subject = Subject::Member(ObjectRef::newest(id, set.size_of(id), 0));
            PlannedOp { kind: OpKind::Get, set: at, subject }
        }
        Work::GetPart { set: at, part_bytes, .. } => {
            let (set, members) = job.population(at);
            let (member, part) = match set.laws.first() {
                Some(Some(crate::SizeDist::Fixed(size))) => {
                    let parts = size.div_ceil(part_bytes);
                    (index / parts, Some(index % parts))
                }
                _ => (index, None),
            };
            let id = members.newest(set, member).id;
            let size = set.size_of(id).expect("a set with parts has sizes");
            let part = part.unwrap_or_else(|| random.below(size.div_ceil(part_bytes)));
            PlannedOp { kind: OpKind::Get, set: at, subject: part_of(id, size, part_bytes, part) }
        }
        _ => unreachable!("only these pick one thing after the other"),
    }
}

/// Returns part `index`, 0-based, of a member.
fn part_of(object: ObjectId, size: u64, part_bytes: u64, index: u64) -> Subject {
    let offset = index * part_bytes;
    let len = part_bytes.min(size - offset);
    Subject::Part { object, number: index as u32 + 1, offset, len }
}

/// Removing all members of sets, each once: batches of the order in which a set is removed, dealt
/// to the workers in turn.
struct Removal {
    sets: Vec<SetIndex>,
    batch: NonZeroU32,
    /// The present set and the next batch of it; of a slice the next position.
    at: usize,
    next: u64,
    worker: WorkerId,
    /// By set: the batches of this worker's that are gone for certain.
    gone: Vec<Vec<u64>>,
}

impl Removal {
    fn new(job: &ObjectsJob, sets: Vec<SetIndex>, batch: NonZeroU32, worker: WorkerId) -> Self {
        let gone = vec![Vec::new(); sets.len()];
        let next = if job.deal.is_sliced() { 0 } else { u64::from(worker.0) };
        Self { sets, batch, at: 0, next, worker, gone }
    }

    fn next_op(&mut self, job: &ObjectsJob) -> Option<PlannedOp> {
        let batch = u64::from(self.batch.get());
        loop {
            let index = *self.sets.get(self.at)?;
            let (set, members) = job.population(index);
            if let Some(slice) = Slice::of(set, job.deal, (self.worker, job.workers.get())) {
                let Some(subject) = self.next_of(&slice) else { continue };
                return Some(PlannedOp { kind: OpKind::Delete, set: index, subject });
            }
            let from = self.next * batch;
            let left = members.count(set).saturating_sub(from);
            if left == 0 {
                self.at += 1;
                self.next = u64::from(self.worker.0);
                continue;
            }
            self.next += u64::from(job.workers.get());
            let subject = Subject::Batch { from, count: left.min(batch) as u32 };
            return Some(PlannedOp { kind: OpKind::Delete, set: index, subject });
        }
    }

    /// Returns the next batch of a slice, and goes on to the next set where there is none.
    fn next_of(&mut self, slice: &Slice) -> Option<Subject> {
        let at = self.next;
        if at >= slice.len() {
            (self.at, self.next) = (self.at + 1, 0);
            return None;
        }
        let count = slice.run_len(at).min(self.batch.get().into());
        self.next += count;
        Some(Subject::Batch { from: slice.at(at), count: count as u32 })
    }

    fn completed(&mut self, job: &ObjectsJob, op: &PlannedOp, ok: bool) {
        if job.set(op.set).shared.is_some() {
            // All of its names stay members, whatever is there.
            return;
        }
        let Subject::Batch { from, .. } = op.subject else { return };
        let at = self.sets.iter().position(|set| *set == op.set);
        if let (true, Some(at)) = (ok, at) {
            self.gone[at].push(from);
        }
    }

    fn changes(&self, job: &ObjectsJob) -> Vec<(SetIndex, Change)> {
        if !job.keeps_members {
            return Vec::new();
        }
        let (batch, workers) = (u64::from(self.batch.get()), u64::from(job.workers.get()));
        let of_set = |(at, gone): (&SetIndex, &Vec<u64>)| {
            let mut gone = gone.clone();
            gone.sort_unstable();
            let (set, members) = job.population(*at);
            let (order, count) = (job.removal_order(*at), members.count(set));
            let mut left = Vec::new();
            let mine = (u64::from(self.worker.0)..).step_by(workers as usize).map(|n| n * batch);
            for from in mine.take_while(|from| *from < count) {
                if gone.binary_search(&from).is_err() {
                    let positions = from..count.min(from + batch);
                    left.extend(positions.map(|at| members.listed(set, order.at(at))));
                }
            }
            (*at, Change::Holds(left))
        };
        let own = |(set, _): &(&SetIndex, &Vec<u64>)| job.set(**set).shared.is_none();
        self.sets.iter().zip(&self.gone).filter(own).map(of_set).collect()
    }
}

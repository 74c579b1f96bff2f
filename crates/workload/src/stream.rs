//! The operations of one worker, in order: a function of the seed, the worker and what became of
//! its own operations before, whatever thread it runs on.

mod pool;

use std::sync::Arc;

use plimsoll_model::{ObjectId, OpKind, StageKind, WorkerId};

use self::pool::{Held, Pool, Use};
use crate::sizes::log_uniform;
use crate::{Activity, Permutation, Population, Random, RangeRule, Workload};

const MEASURE_DOMAIN: u64 = 0x6d65_6173;
const DELETE_DOMAIN: u64 = 0x6465_6c65;
/// Without a length given, a range is at least this part of its object.
const RANGE_SPAN: u64 = 256;

/// An object by id, size and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectRef {
    /// Its id.
    pub id: ObjectId,
    /// Its size.
    pub size: u64,
    /// Which of its contents a PUT writes or a GET expects: 0 until it is overwritten.
    pub version: u32,
}

/// What an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// One object, or the part of it given as offset and length.
    Object(ObjectRef, Option<(u64, u64)>),
    /// Positions of the delete order.
    Batch {
        /// The first position.
        from: u64,
        /// How many.
        count: u32,
    },
    /// The worker's own prefix.
    Listing,
}

/// The next operation of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlannedOp {
    /// What to do.
    pub kind: OpKind,
    /// What to do it to.
    pub target: Target,
}

/// The operations of one worker in one stage.
pub struct OpStream {
    workload: Arc<Workload>,
    worker: WorkerId,
    source: Source,
}

/// Where the next operation comes from.
enum Source {
    /// Uploads of the worker's share, then nothing.
    Uploads { next: u64, end: u64 },
    /// Draws from the deck.
    Mix(MixState),
    /// The same listing again and again.
    Listing,
    /// Batches `next`, `next + step`, ... of the delete order.
    Batches { next: u64, step: u64 },
}

struct MixState {
    random: Random,
    deck: Vec<OpKind>,
    drawn: usize,
    range: RangeRule,
    overwrite: bool,
    /// The worker's own objects when operations change the population; `None`: all objects of the
    /// population.
    pool: Option<Pool>,
    /// The number that the next new object gets.
    next_number: u64,
}

impl OpStream {
    /// Returns the stream of `worker` in the stage; a cleanup stage has none.
    pub fn new(workload: &Arc<Workload>, stage: StageKind, worker: WorkerId) -> Self {
        let share = workload.share_of(worker);
        let source = match (stage, &workload.activity) {
            (StageKind::Prepare, _) => {
                let uploads = matches!(workload.population, Population::Uploaded(_));
                Source::Uploads { next: 0, end: if uploads { share } else { 0 } }
            }
            (StageKind::Cleanup, _) => Source::Uploads { next: 0, end: 0 },
            (StageKind::Measure, Activity::List { .. }) => Source::Listing,
            (StageKind::Measure, Activity::Delete { .. }) => Source::Batches {
                next: u64::from(worker.0),
                step: u64::from(workload.concurrency.get()),
            },
            (StageKind::Measure, Activity::Mix { mix, range, overwrite }) => {
                let own_pool =
                    || Pool::new((0..share).map(|number| workload.share_id(worker, number)));
                let index = u64::from(worker.0);
                let deck = mix.deck();
                Source::Mix(MixState {
                    random: Random::new(workload.seed.0, MEASURE_DOMAIN, index),
                    drawn: deck.len(),
                    deck,
                    range: *range,
                    overwrite: *overwrite,
                    pool: (*overwrite || mix.changes_population()).then(own_pool),
                    next_number: share,
                })
            }
        };
        Self { workload: Arc::clone(workload), worker, source }
    }

    /// Returns the next operation, or `None` when there is nothing left to do.
    pub fn next_op(&mut self) -> Option<PlannedOp> {
        let (workload, worker) = (&*self.workload, self.worker);
        match &mut self.source {
            Source::Uploads { next, end } => {
                if next == end {
                    return None;
                }
                let object = object_ref(workload, ObjectId::new(worker, *next), 0);
                *next += 1;
                Some(PlannedOp { kind: OpKind::Put, target: Target::Object(object, None) })
            }
            Source::Listing => Some(PlannedOp { kind: OpKind::List, target: Target::Listing }),
            Source::Batches { next, step } => {
                let Activity::Delete { batch } = workload.activity else {
                    unreachable!("batches come from a delete workload")
                };
                let from = *next * u64::from(batch);
                let left =
                    workload.population_count().checked_sub(from).filter(|left| *left > 0)?;
                *next += *step;
                let count = left.min(u64::from(batch)) as u32;
                Some(PlannedOp { kind: OpKind::Delete, target: Target::Batch { from, count } })
            }
            Source::Mix(state) => state.draw(workload, worker),
        }
    }

    /// Takes note of what became of an operation, which may have begun before others that are still
    /// under way: what was written joins the pool or stays out, what was read may be changed again.
    pub fn completed(&mut self, op: &PlannedOp, ok: bool) {
        let Source::Mix(MixState { pool: Some(pool), .. }) = &mut self.source else { return };
        let Target::Object(object, _) = op.target else { return };
        match op.kind {
            OpKind::Put => pool.written(object.id, ok.then_some(object.version)),
            // It left the pool when the operation was drawn, and ids do not come back.
            OpKind::Delete => {}
            _ => pool.was_read(object.id),
        }
    }
}

fn object_ref(workload: &Workload, id: ObjectId, version: u32) -> ObjectRef {
    ObjectRef { id, size: workload.size_of(id), version }
}

/// Returns the order in which a delete workload removes the population.
pub fn delete_order(workload: &Workload) -> Permutation {
    Permutation::new(workload.seed.0 ^ DELETE_DOMAIN, workload.population_count())
}

impl MixState {
    fn draw(&mut self, workload: &Workload, worker: WorkerId) -> Option<PlannedOp> {
        let kind = self.draw_kind(workload)?;
        let object = self.draw_object(kind, workload, worker);
        let range = if kind == OpKind::Get { self.draw_range(object.size) } else { None };
        Some(PlannedOp { kind, target: Target::Object(object, range) })
    }

    /// Takes the next kind off the deck. If there is no object for it, the next kind of the deck
    /// that there is one for comes first; if there is none for any, there is nothing left to do.
    fn draw_kind(&mut self, workload: &Workload) -> Option<OpKind> {
        if self.drawn == self.deck.len() {
            self.random.shuffle(&mut self.deck);
            self.drawn = 0;
        }
        let can = |kind: &OpKind| match (&self.pool, kind) {
            // A new object can always be written, also where none is free to be overwritten.
            (_, OpKind::Put) => true,
            (Some(pool), OpKind::Delete) => pool.any_free(Use::Changed),
            (Some(pool), _) => pool.any_free(Use::Read),
            (None, _) => workload.population_count() > 0,
        };
        if !can(&self.deck[self.drawn]) {
            match self.deck[self.drawn..].iter().position(can) {
                Some(ahead) => self.deck.swap(self.drawn, self.drawn + ahead),
                None if self.deck.iter().any(can) => {
                    // The rest of this deck cannot be done: it is dropped, and the next one begins
                    // with what can.
                    self.drawn = self.deck.len();
                    return self.draw_kind(workload);
                }
                None => return None,
            }
        }
        self.drawn += 1;
        Some(self.deck[self.drawn - 1])
    }

    fn draw_object(&mut self, kind: OpKind, workload: &Workload, worker: WorkerId) -> ObjectRef {
        let random = &mut self.random;
        let mut new_id = || {
            self.next_number += 1;
            ObjectId::new(worker, self.next_number - 1)
        };
        let Held { id, version } = match (kind, &mut self.pool) {
            (OpKind::Put, None) => Held::new(new_id()),
            (_, None) => {
                Held::new(workload.population_id(random.below(workload.population_count())))
            }
            (OpKind::Put, Some(pool)) if self.overwrite && pool.any_free(Use::Changed) => {
                pool.overwrite(random)
            }
            (OpKind::Put, Some(pool)) => pool.write_new(new_id()),
            (OpKind::Delete, Some(pool)) => pool.remove(random),
            (_, Some(pool)) => pool.read(random),
        };
        object_ref(workload, id, version)
    }

    fn draw_range(&mut self, size: u64) -> Option<(u64, u64)> {
        let len = match self.range {
            RangeRule::Whole => return None,
            RangeRule::Random if size == 0 => return None,
            RangeRule::Random => log_uniform(&mut self.random, (size / RANGE_SPAN).max(1), size),
            RangeRule::Fixed(len) => len.min(size),
        };
        Some((self.random.below(size - len + 1), len))
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;

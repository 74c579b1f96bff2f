//! The operations of one worker, in order: a function of the seed, the worker and what became of
//! its own operations before, whatever thread it runs on.

use std::sync::Arc;

use plimsoll_model::{ObjectId, OpKind, StageKind, WorkerId};

use crate::sizes::log_uniform;
use crate::{Activity, Permutation, Population, Random, RangeRule, Workload};

const MEASURE_DOMAIN: u64 = 0x6d65_6173;
const DELETE_DOMAIN: u64 = 0x6465_6c65;
/// Without a length given, a range is at least this part of its object.
const RANGE_SPAN: u64 = 256;

/// An object by id and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectRef {
    /// Its id.
    pub id: ObjectId,
    /// Its size.
    pub size: u64,
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
    /// The worker's own objects when operations change the population; `None`: all objects of the
    /// population.
    pool: Option<Vec<ObjectId>>,
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
            (StageKind::Measure, Activity::Mix { mix, range }) => {
                let own_pool =
                    || (0..share).map(|number| workload.share_id(worker, number)).collect();
                let index = u64::from(worker.0);
                let deck = mix.deck();
                Source::Mix(MixState {
                    random: Random::new(workload.seed.0, MEASURE_DOMAIN, index),
                    drawn: deck.len(),
                    deck,
                    range: *range,
                    pool: mix.changes_population().then(own_pool),
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
                let object = object_ref(workload, ObjectId::new(worker, *next));
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

    /// Takes note of what became of an operation: a new object joins the pool, or a failed one
    /// stays out.
    pub fn completed(&mut self, op: &PlannedOp, ok: bool) {
        let Source::Mix(MixState { pool: Some(pool), .. }) = &mut self.source else { return };
        let Target::Object(object, _) = op.target else { return };
        if op.kind == OpKind::Put && ok {
            pool.push(object.id);
        }
    }
}

fn object_ref(workload: &Workload, id: ObjectId) -> ObjectRef {
    ObjectRef { id, size: workload.size_of(id) }
}

/// Returns the order in which a delete workload removes the population.
pub fn delete_order(workload: &Workload) -> Permutation {
    Permutation::new(workload.seed.0 ^ DELETE_DOMAIN, workload.population_count())
}

impl MixState {
    fn draw(&mut self, workload: &Workload, worker: WorkerId) -> Option<PlannedOp> {
        let kind = self.draw_kind(workload)?;
        let id = match kind {
            OpKind::Put => {
                self.next_number += 1;
                ObjectId::new(worker, self.next_number - 1)
            }
            OpKind::Delete => {
                let pool = self.pool.as_mut().expect("a mix with DELETE has a pool");
                let index = self.random.below(pool.len() as u64) as usize;
                pool.swap_remove(index)
            }
            OpKind::Get | OpKind::Stat | OpKind::List => match &self.pool {
                Some(pool) => pool[self.random.below(pool.len() as u64) as usize],
                None => workload.population_id(self.random.below(workload.population_count())),
            },
            OpKind::Append | OpKind::Post | OpKind::PutPart | OpKind::Retention => {
                unreachable!("a mix is made of PUT, GET, STAT and DELETE")
            }
        };
        let object = object_ref(workload, id);
        let range = if kind == OpKind::Get { self.draw_range(object.size) } else { None };
        Some(PlannedOp { kind, target: Target::Object(object, range) })
    }

    /// Takes the next kind off the deck. With an empty pool the next PUT of the deck comes first;
    /// without one there is nothing left to do.
    fn draw_kind(&mut self, workload: &Workload) -> Option<OpKind> {
        if self.drawn == self.deck.len() {
            self.random.shuffle(&mut self.deck);
            self.drawn = 0;
        }
        let objects =
            self.pool.as_ref().map_or(workload.population_count(), |pool| pool.len() as u64);
        if objects == 0 && self.deck[self.drawn] != OpKind::Put {
            let ahead = self.deck[self.drawn..].iter().position(|kind| *kind == OpKind::Put);
            match ahead {
                Some(ahead) => self.deck.swap(self.drawn, self.drawn + ahead),
                None if self.deck.contains(&OpKind::Put) => {
                    // The rest of this deck cannot be done: it is dropped, and the next one begins
                    // with a PUT.
                    self.drawn = self.deck.len();
                    return self.draw_kind(workload);
                }
                None => return None,
            }
        }
        self.drawn += 1;
        Some(self.deck[self.drawn - 1])
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

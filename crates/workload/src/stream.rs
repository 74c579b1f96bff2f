//! The operations of one worker, in order: a function of the seed, the worker and what became of
//! its own operations before, whatever thread it runs on.

mod append;
mod pool;

use std::sync::Arc;

use plimsoll_model::{ObjectId, OpKind, StageKind, WorkerId};

use self::append::Appends;
use self::pool::{Held, Pool, Use};
use crate::pick::Picker;
use crate::sizes::log_uniform;
use crate::workload::posted;
use crate::{Activity, Mix, Permutation, Population, Random, RangeRule, Workload};

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
    /// Which of its contents a PUT writes or a GET expects: 0 until it is overwritten. Where the
    /// store keeps versions, the number of the version.
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
    /// One part of an object.
    Part {
        /// The object.
        object: ObjectId,
        /// The part's number, from 1 on.
        number: u32,
        /// How large it, and every other part of the object, is.
        bytes: u64,
    },
    /// One file of the zip archive.
    Member(ObjectRef),
    /// A whole archive: that of the population, or one of the worker's own.
    Archive(ObjectId),
    /// One content under several names.
    Copies(ObjectRef),
}

impl Target {
    /// Returns the one object that it is or is part of.
    pub const fn object_id(&self) -> Option<ObjectId> {
        match self {
            Self::Object(object, _) | Self::Member(object) | Self::Copies(object) => {
                Some(object.id)
            }
            Self::Part { object, .. } => Some(*object),
            Self::Archive(id) => Some(*id),
            Self::Batch { .. } | Self::Listing => None,
        }
    }
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
    Nothing,
    /// Uploads of the worker's share, each in so many versions, then nothing.
    Uploads {
        next: u64,
        end: u64,
    },
    /// The parts `next`, `next + step`, ... of the object whose parts are read.
    Parts {
        next: u64,
        step: u64,
    },
    /// The one zip archive.
    Zip,
    /// Draws from the deck.
    Mix(Box<MixState>),
    /// The same listing again and again.
    Listing,
    /// Batches `next`, `next + step`, ... of the delete order.
    Batches {
        next: u64,
        step: u64,
    },
    /// One thing chosen out of a population that stays as it is.
    Picked {
        random: Random,
        picker: Picker,
    },
    /// New objects one after the other; of uploads in parts the next part of object `next`.
    New {
        next: u64,
        parts_done: u32,
    },
    /// What is added to objects.
    Appends(Appends),
}

struct MixState {
    random: Random,
    deck: Vec<OpKind>,
    drawn: usize,
    range: RangeRule,
    overwrite: bool,
    post: bool,
    /// The worker's own objects when operations change the population; `None`: all objects of the
    /// population.
    pool: Option<Pool>,
    /// How objects of the population are chosen where there is no pool.
    picker: Picker,
    /// Where a PUT writes a version: the number of the next one of each object of the worker's.
    next_versions: Option<Vec<u32>>,
    /// The number that the next new object gets.
    next_number: u64,
}

impl OpStream {
    /// Returns the stream of `worker` in the stage; a cleanup stage has none.
    pub fn new(workload: &Arc<Workload>, stage: StageKind, worker: WorkerId) -> Self {
        let source = match stage {
            StageKind::Prepare => Self::prepare(workload, worker),
            StageKind::Measure => Self::measure(workload, worker),
            StageKind::Cleanup => Source::Nothing,
        };
        Self { workload: Arc::clone(workload), worker, source }
    }

    fn prepare(workload: &Workload, worker: WorkerId) -> Source {
        match (&workload.population, &workload.activity) {
            (Population::Existing(_), _) => Source::Nothing,
            (Population::Uploaded(_), Activity::Multipart { .. }) => Source::Parts {
                next: u64::from(worker.0),
                step: u64::from(workload.concurrency.get()),
            },
            (Population::Uploaded(count), Activity::Zip) => {
                if worker.0 == 0 && *count > 0 {
                    Source::Zip
                } else {
                    Source::Nothing
                }
            }
            (Population::Uploaded(_), _) => {
                let end = workload.share_of(worker) * u64::from(workload.versions);
                Source::Uploads { next: 0, end }
            }
        }
    }

    fn measure(workload: &Workload, worker: WorkerId) -> Source {
        match &workload.activity {
            Activity::List { .. } => Source::Listing,
            Activity::Delete { .. } => Source::Batches {
                next: u64::from(worker.0),
                step: u64::from(workload.concurrency.get()),
            },
            Activity::Mix { mix, .. } => {
                Source::Mix(Box::new(MixState::new(workload, mix, worker)))
            }
            Activity::Retention { .. } | Activity::Multipart { .. } | Activity::Zip => {
                Source::Picked {
                    random: choices(workload, worker),
                    picker: picker(workload, worker),
                }
            }
            Activity::MultipartPut { .. } | Activity::Snowball { .. } | Activity::Fanout { .. } => {
                Source::New { next: 0, parts_done: 0 }
            }
            Activity::Append { .. } => Source::Appends(Appends::default()),
        }
    }

    /// Returns the next operation, or `None` when there is nothing left to do.
    pub fn next_op(&mut self) -> Option<PlannedOp> {
        let (workload, worker) = (&*self.workload, self.worker);
        match &mut self.source {
            Source::Nothing => None,
            Source::Uploads { next, end } => {
                if next == end {
                    return None;
                }
                let versions = u64::from(workload.versions);
                let id = ObjectId::new(worker, *next / versions);
                let object = object_ref(workload, id, (*next % versions) as u32);
                *next += 1;
                Some(PlannedOp { kind: OpKind::Put, target: Target::Object(object, None) })
            }
            Source::Parts { next, step } => {
                let index = Some(*next).filter(|index| *index < workload.population_count())?;
                *next += *step;
                Some(PlannedOp { kind: OpKind::PutPart, target: part_of_whole(workload, index) })
            }
            Source::Zip => {
                self.source = Source::Nothing;
                let target = Target::Archive(workload.whole_id());
                Some(PlannedOp { kind: OpKind::Put, target })
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
            Source::Picked { random, picker } => {
                Some(picked(workload, picker.draw(random), random))
            }
            Source::New { next, parts_done } => {
                Some(new_object(workload, worker, next, parts_done))
            }
            Source::Appends(appends) => Some(appends.next_op(workload, worker)),
        }
    }

    /// Tells whether there may be nothing left to do some time.
    pub fn may_end(&self) -> bool {
        match &self.source {
            Source::Mix(state) => state.pool.is_some() || self.workload.population_count() == 0,
            Source::Listing | Source::Picked { .. } | Source::New { .. } | Source::Appends(_) => {
                false
            }
            Source::Nothing
            | Source::Uploads { .. }
            | Source::Parts { .. }
            | Source::Zip
            | Source::Batches { .. } => true,
        }
    }

    /// Takes note of what became of an operation, which may have begun before others that are still
    /// under way: what was written joins the pool or stays out, what was read may be changed again.
    pub fn completed(&mut self, op: &PlannedOp, ok: bool) {
        let pool = match &mut self.source {
            Source::Mix(state) => &mut state.pool,
            Source::Appends(appends) => return appends.completed(op, ok),
            // The rest of an upload that failed is left out.
            Source::New { next, parts_done } => {
                if !ok && op.target.object_id() == Some(ObjectId::new(self.worker, *next)) {
                    (*next, *parts_done) = (*next + 1, 0);
                }
                return;
            }
            _ => return,
        };
        let (Some(pool), Target::Object(object, _)) = (pool, op.target) else { return };
        let held = Held { id: object.id, version: object.version };
        match op.kind {
            OpKind::Put | OpKind::Post => pool.written(held, ok),
            // It left the pool when the operation was drawn, and ids do not come back.
            OpKind::Delete => {}
            _ => pool.was_read(held),
        }
    }
}

/// Returns the chance by which a worker chooses.
fn choices(workload: &Workload, worker: WorkerId) -> Random {
    Random::new(workload.seed.0, MEASURE_DOMAIN, u64::from(worker.0))
}

/// Returns what chooses out of the population for a worker.
fn picker(workload: &Workload, worker: WorkerId) -> Picker {
    let (count, workers) = (workload.population_count(), workload.concurrency.get());
    Picker::new(workload.pick, count, workload.seed.0, worker, workers)
}

/// Returns the part of the one object that stands at `index` of the population.
fn part_of_whole(workload: &Workload, index: u64) -> Target {
    let Activity::Multipart { part_bytes: bytes, .. } = workload.activity else {
        unreachable!("one object has parts in a multipart workload only")
    };
    Target::Part { object: workload.whole_id(), number: index as u32 + 1, bytes }
}

/// Returns the operation on what stands at `index` of a population that stays as it is.
fn picked(workload: &Workload, index: u64, random: &mut Random) -> PlannedOp {
    let id = workload.population_id(index);
    let (kind, target) = match workload.activity {
        Activity::Retention { .. } => {
            let version = random.below(u64::from(workload.versions)) as u32;
            (OpKind::Retention, Target::Object(object_ref(workload, id, version), None))
        }
        Activity::Zip => (OpKind::Get, Target::Member(object_ref(workload, id, 0))),
        _ => (OpKind::Get, part_of_whole(workload, index)),
    };
    PlannedOp { kind, target }
}

/// Returns the operation that writes the next new object, or the next part of it.
fn new_object(
    workload: &Workload,
    worker: WorkerId,
    next: &mut u64,
    parts_done: &mut u32,
) -> PlannedOp {
    let id = ObjectId::new(worker, *next);
    if let Activity::MultipartPut { parts, part_bytes: bytes, .. } = workload.activity {
        *parts_done += 1;
        let target = Target::Part { object: id, number: *parts_done, bytes };
        if *parts_done == parts.get() {
            (*next, *parts_done) = (*next + 1, 0);
        }
        return PlannedOp { kind: OpKind::PutPart, target };
    }
    *next += 1;
    match workload.activity {
        Activity::Fanout { .. } => {
            PlannedOp { kind: OpKind::Post, target: Target::Copies(object_ref(workload, id, 0)) }
        }
        _ => PlannedOp { kind: OpKind::Put, target: Target::Archive(id) },
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
    fn new(workload: &Workload, mix: &Mix, worker: WorkerId) -> Self {
        let Activity::Mix { range, overwrite, post, versioned, .. } = workload.activity else {
            unreachable!("a mix comes from a mix workload")
        };
        let share = workload.share_of(worker);
        let all = || {
            let versions = (0..share).flat_map(|number| {
                let id = workload.share_id(worker, number);
                (0..workload.versions).map(move |version| Held { id, version })
            });
            Pool::new(versions)
        };
        let deck = mix.deck();
        Self {
            random: choices(workload, worker),
            drawn: deck.len(),
            deck,
            range,
            overwrite,
            post,
            pool: (overwrite || versioned || mix.changes_population()).then(all),
            picker: picker(workload, worker),
            next_versions: versioned.then(|| vec![workload.versions; share as usize]),
            next_number: share,
        }
    }

    fn draw(&mut self, workload: &Workload, worker: WorkerId) -> Option<PlannedOp> {
        let kind = self.draw_kind(workload)?;
        let object = self.draw_object(kind, workload, worker);
        let range = if kind == OpKind::Get { self.draw_range(object.size) } else { None };
        let kind = if self.post { posted(kind) } else { kind };
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
                let id = workload.population_id(self.picker.draw(random));
                // One version is no choice, and takes no chance.
                let version = match workload.versions {
                    1 => 0,
                    versions => random.below(u64::from(versions)) as u32,
                };
                Held { id, version }
            }
            (OpKind::Put, Some(pool)) if let Some(next) = &mut self.next_versions => {
                let number = random.below(next.len() as u64);
                let version = next[number as usize];
                next[number as usize] += 1;
                pool.write_new(Held { id: workload.share_id(worker, number), version })
            }
            (OpKind::Put, Some(pool)) if self.overwrite && pool.any_free(Use::Changed) => {
                pool.overwrite(random)
            }
            (OpKind::Put, Some(pool)) => pool.write_new(Held::new(new_id())),
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

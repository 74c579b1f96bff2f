//! Operations on whole members, drawn by weight, on members chosen at random.

use std::collections::VecDeque;
use std::time::Duration;

use plimsoll_model::{Moment, ObjectId, OpKind, WorkerId};

use crate::objects::job::kind_of;
use crate::objects::pick::{MemberPicker, Picker, Picking};
use crate::objects::pool::{Pool, Use};
use crate::objects::{
    Below, Change, Held, ObjectRef, ObjectSet, ObjectsJob, Pages, PlannedOp, Subject,
};
use crate::plan::spec::{Choice, PickSpec, PutAs};
use crate::plan::{Length, Op, OpAct, SetIndex};
use crate::sizes::log_uniform;
use crate::{Keys, Random, SizeDist, Verify};

/// Without a length given, a range is at least this part of its member.
const RANGE_SPAN: u64 = 256;

/// What a worker draws from.
pub(super) struct Mix {
    random: Random,
    /// The operations, each as often as its weight says.
    deck: Vec<u16>,
    drawn: usize,
    ops: Vec<MixOp>,
    sets: Vec<UsedSet>,
    /// What is being put for a time, and for how long.
    for_a_time: Vec<(ObjectId, Duration)>,
    /// What is removed again, when, in order.
    due: VecDeque<(Moment, SetIndex, ObjectId)>,
    listings_count: u64,
}

/// An operation of the mix.
struct MixOp {
    op: Op,
    kind: OpKind,
    /// Which of the sets.
    set: usize,
    law: u16,
    picker: OpPicker,
    /// Where it lists page by page: how many pages there are.
    pages: Option<u64>,
}

/// How an operation chooses its member.
enum OpPicker {
    /// Out of the set as it was when the stage began.
    Still(MemberPicker),
    /// By the place among the worker's own.
    Own(Picker),
}

/// A set that operations of the mix are about.
struct UsedSet {
    index: SetIndex,
    /// How many members there were when the stage began.
    count: u64,
    /// The worker's own members, where operations change them.
    pool: Option<Pool>,
    /// Where operations put versions: by the worker's own members the next one.
    versions: Vec<(ObjectId, u32)>,
    /// By law of size: the first number that was free, and the one that is now.
    numbers: Vec<(u64, u64)>,
    /// What was not put although it has a number, or was removed again.
    missing: Vec<(u16, u64)>,
}

impl Mix {
    pub(super) fn new(job: &ObjectsJob, ops: &[Op], worker: WorkerId) -> Self {
        let mut sets: Vec<UsedSet> = Vec::new();
        let mut mix_ops = Vec::with_capacity(ops.len());
        for (at, op) in ops.iter().enumerate() {
            let known = sets.iter().position(|set| set.index == op.set);
            let set = known.unwrap_or_else(|| {
                sets.push(UsedSet::new(job, ops, op.set, worker));
                sets.len() - 1
            });
            let of = (worker, job.workers.get());
            let picker = match (&sets[set].pool, pick_of(&op.act)) {
                (Some(pool), PickSpec::Member(choice)) => {
                    OpPicker::Own(Picker::new(&choice, pool.len(), job.seed.0, of))
                }
                (Some(pool), PickSpec::InBucket { .. }) => {
                    OpPicker::Own(Picker::new(&Choice::Uniform, pool.len(), job.seed.0, of))
                }
                (None, pick) => {
                    let (set, members) = job.population(op.set);
                    let (deal, seed) = (job.deal, job.seed.0);
                    let picking = Picking { set, members, deal, seed, worker: of };
                    OpPicker::Still(MemberPicker::new(&pick, picking))
                }
            };
            let law = job.law_of(at);
            let numbers = &mut sets[set].numbers;
            while numbers.len() <= usize::from(law) {
                let (of, members) = job.population(op.set);
                let next = members.next_number(of, job.owner(worker), numbers.len() as u16);
                numbers.push((next, next));
            }
            let pages = job.pages(at).map(Pages::count);
            mix_ops.push(MixOp { op: op.clone(), kind: kind_of(&op.act), set, law, picker, pages });
        }
        let deck = deck(ops);
        let (random, drawn) = (job.choices(worker), deck.len());
        let (for_a_time, due) = (Vec::new(), VecDeque::new());
        Self { random, deck, drawn, ops: mix_ops, sets, for_a_time, due, listings_count: 0 }
    }

    /// Returns the removal of what was put for a time that is over at `now`.
    pub(super) fn due(&mut self, job: &ObjectsJob, now: Moment) -> Option<PlannedOp> {
        self.due.front().filter(|(at, ..)| *at <= now)?;
        let (_, set, id) = self.due.pop_front()?;
        let used = self.sets.iter_mut().find(|used| used.index == set);
        used.expect("it was put into one of them").missing.push(ObjectSet::split(id));
        Some(job.removal(set, id))
    }

    pub(super) fn next_op(&mut self, job: &ObjectsJob, worker: WorkerId) -> Option<PlannedOp> {
        let at = self.draw_op()?;
        let mut drawn = self.draw_subject(job, at, worker);
        if let (Subject::Object(object, None), OpAct::Get { range, .. }) =
            (drawn, &self.ops[at].op.act)
        {
            let set = job.set(self.ops[at].op.set);
            // Where it is not to be relied on, it still says within what to read.
            let size = object.size.or_else(|| set.size_of(object.id));
            let part = draw_range(*range, size, &mut self.random);
            drawn = Subject::Object(object, part);
        }
        let MixOp { op, kind, .. } = &self.ops[at];
        Some(PlannedOp { kind: *kind, set: op.set, subject: drawn })
    }

    /// Takes the next operation off the deck. If there is no member for it, the next one of the
    /// deck that there is one for comes first; if there is none for any, there is nothing left to
    /// do.
    fn draw_op(&mut self) -> Option<usize> {
        if self.drawn == self.deck.len() {
            self.random.shuffle(&mut self.deck);
            self.drawn = 0;
        }
        let (ops, sets) = (&self.ops, &self.sets);
        let can = |at: &u16| ops[usize::from(*at)].has_member(sets);
        if !can(&self.deck[self.drawn]) {
            match self.deck[self.drawn..].iter().position(can) {
                Some(ahead) => self.deck.swap(self.drawn, self.drawn + ahead),
                None if self.deck.iter().any(can) => {
                    // The rest of this deck cannot be done: it is dropped, and the next one begins
                    // with what can.
                    self.drawn = self.deck.len();
                    return self.draw_op();
                }
                None => return None,
            }
        }
        self.drawn += 1;
        Some(self.deck[self.drawn - 1].into())
    }

    fn draw_subject(&mut self, job: &ObjectsJob, at: usize, worker: WorkerId) -> Subject {
        let random = &mut self.random;
        let MixOp { op, set, law, picker, pages, .. } = &mut self.ops[at];
        let (of, members) = job.population(op.set);
        let used = &mut self.sets[*set];
        let by_name = op.act.is_by_name();
        let held = match (&op.act, &mut used.pool, picker) {
            (OpAct::List { by_page: true, .. }, ..) => {
                let count = pages.expect("the pages are known when the stage begins");
                let page = random.below(count) as u32;
                let bucket = job.pages(at).map_or(0, |pages| pages.bucket(page));
                return Subject::Listing { below: Below::Page(page), bucket, op: at as u16 };
            }
            (OpAct::List { bucket: Some(_), .. }, _, OpPicker::Still(picker)) => {
                let bucket = of.bucket_of(of.id(picker.draw(random)));
                let below = Below::Owner(WorkerId(0));
                return Subject::Listing { below, bucket, op: at as u16 };
            }
            (OpAct::List { .. }, ..) => {
                let buckets = u64::from(of.buckets.count());
                let bucket = (u64::from(worker.0) + self.listings_count) % buckets;
                self.listings_count += 1;
                let below = Below::Owner(WorkerId(job.owner(worker) % of.owners.get()));
                return Subject::Listing { below, bucket: bucket as u32, op: at as u16 };
            }
            (OpAct::Put { put_as: PutAs::New, .. }, None, _) => {
                Held::new(of.new_id(job.owner(worker), *law, used.next_number(*law)))
            }
            (OpAct::Put { put_as, .. }, Some(pool), OpPicker::Own(picker)) => match put_as {
                PutAs::Version => {
                    let place = picker.draw_place(used.versions.len() as u64, random);
                    let (id, next) = &mut used.versions[place as usize];
                    *next += 1;
                    pool.write_new(Held { id: *id, version: *next - 1 })
                }
                PutAs::Overwrite if pool.any_free(Use::Changed) => pool.overwrite((picker, random)),
                PutAs::Overwrite | PutAs::New => {
                    let (_, next) = &mut used.numbers[usize::from(*law)];
                    *next += 1;
                    pool.write_new(Held::new(of.new_id(job.owner(worker), *law, *next - 1)))
                }
            },
            (OpAct::Delete { .. }, Some(pool), OpPicker::Own(picker)) => {
                pool.remove((picker, random))
            }
            (_, Some(pool), OpPicker::Own(picker)) => pool.read((picker, random)),
            (_, _, OpPicker::Still(picker)) => {
                let id = |place| Held::new(of.id(place));
                let place = picker.draw(random);
                match (by_name, members.is_as_filled()) {
                    _ if picker.is_by_name() => id(place),
                    (false, _) => members.newest(of, place),
                    (true, false) => members.listed(of, place),
                    // One version is no choice, and takes no chance.
                    (true, true) if of.versions == 1 => id(place),
                    (true, true) => {
                        Held { version: random.below(of.versions.into()) as u32, ..id(place) }
                    }
                }
            }
            (_, None, OpPicker::Own(_)) => unreachable!("who has a pool draws from it"),
        };
        let size = size_of(job, op, held.id, random);
        if let OpAct::Put { remove_after: Some(time), .. } = op.act {
            self.for_a_time.push((held.id, time));
        }
        let version = if of.keys.are_given() { 0 } else { held.version };
        let object = ObjectRef { id: held.id, size, version, is_by_name: by_name };
        Subject::Object(object, None)
    }

    /// Tells whether there may be nothing left to do some time.
    pub(super) fn may_end(&self, job: &ObjectsJob) -> bool {
        let may = |used: &UsedSet| {
            used.pool.is_some() || used.count == 0 && !job.set(used.index).is_own()
        };
        self.sets.iter().any(may) || self.ops.iter().all(|op| !op.has_member(&self.sets))
    }

    pub(super) fn completed(&mut self, job: &ObjectsJob, op: &PlannedOp, ok: bool, now: Moment) {
        let Subject::Object(object, _) = op.subject else { return };
        let Some(used) = self.sets.iter_mut().find(|used| used.index == op.set) else { return };
        let held = Held { id: object.id, version: object.version };
        let is_put = matches!(op.kind, OpKind::Put | OpKind::Post);
        match (&mut used.pool, op.kind) {
            (Some(pool), OpKind::Put | OpKind::Post) => pool.written(held, ok),
            // It left the pool when the operation was drawn, and ids do not come back.
            (Some(_), OpKind::Delete) => {}
            (Some(pool), _) => pool.was_read(held),
            (None, _) if is_put && !ok && job.set(op.set).is_own() => {
                used.missing.push(ObjectSet::split(held.id));
            }
            (None, _) => {}
        }
        let put_for = self.for_a_time.iter().position(|(id, _)| is_put && *id == held.id);
        if let Some(at) = put_for {
            let (id, time) = self.for_a_time.swap_remove(at);
            if ok {
                let at = now.after(time);
                let place = self.due.partition_point(|(other, ..)| *other <= at);
                self.due.insert(place, (at, op.set, id));
            }
        }
    }

    pub(super) fn withdrawn(&mut self, op: &PlannedOp) {
        let Subject::Object(object, _) = op.subject else { return };
        let Some(used) = self.sets.iter_mut().find(|used| used.index == op.set) else { return };
        let held = Held { id: object.id, version: object.version };
        let is_put = matches!(op.kind, OpKind::Put | OpKind::Post);
        let is_version = used.versions.iter().any(|(id, _)| *id == held.id);
        match (&mut used.pool, op.kind) {
            (Some(pool), _) if is_put => {
                let before = held.version.checked_sub(1).filter(|_| !is_version);
                pool.unwritten(held, before);
            }
            (Some(pool), OpKind::Delete) => pool.put_back(held),
            (Some(pool), _) => pool.was_read(held),
            (None, _) if is_put => used.missing.push(ObjectSet::split(held.id)),
            // It was put for a time, and is there beyond it.
            (None, OpKind::Delete) => {
                let of = ObjectSet::split(held.id);
                used.missing.retain(|missing| *missing != of);
            }
            (None, _) => {}
        }
        if is_put {
            self.for_a_time.retain(|(id, _)| *id != held.id);
        }
    }

    pub(super) fn changes(&self, job: &ObjectsJob, worker: WorkerId) -> Vec<(SetIndex, Change)> {
        let owner = job.owner(worker);
        let mut changes = Vec::new();
        for used in &self.sets {
            let index = used.index;
            for (law, &(from, to)) in used.numbers.iter().enumerate() {
                let law = law as u16;
                let change = match &used.pool {
                    Some(_) => Change::Numbered { owner, law, next: to },
                    None if from == to || !job.keeps_members => continue,
                    None => {
                        let of_law = used.missing.iter().filter(|(each, _)| *each == law);
                        let failed = of_law.map(|(_, number)| *number).collect();
                        Change::Put { owner, law, from, to, failed }
                    }
                };
                changes.push((index, change));
            }
            if let (Some(pool), true) = (&used.pool, job.keeps_members) {
                changes.push((index, Change::Holds(pool.settled())));
            }
        }
        changes
    }
}

impl MixOp {
    /// Tells whether there is a member that it can be about.
    fn has_member(&self, sets: &[UsedSet]) -> bool {
        let used = &sets[self.set];
        match (&self.op.act, &used.pool) {
            (OpAct::List { by_page: true, .. }, _) => self.pages.is_some_and(|count| count > 0),
            (OpAct::List { .. }, _) => true,
            (OpAct::Put { put_as: PutAs::Version, .. }, _) => !used.versions.is_empty(),
            // A new one can always be written, also where none is free to be overwritten.
            (OpAct::Put { .. }, Some(_)) | (OpAct::Put { put_as: PutAs::New, .. }, None) => true,
            (OpAct::Delete { .. }, Some(pool)) => pool.any_free(Use::Changed),
            (_, Some(pool)) => pool.any_free(Use::Read),
            (_, None) => used.count > 0,
        }
    }
}

impl UsedSet {
    fn new(job: &ObjectsJob, ops: &[Op], index: SetIndex, worker: WorkerId) -> Self {
        let (set, members) = job.population(index);
        let dealt = || members.dealt(set, job.deal, (worker, job.workers.get()));
        let mut pool = None;
        let mut versions = Vec::new();
        if set.is_own() && has_pool(ops, index) {
            let copies = if members.is_as_filled() { set.versions } else { 1 };
            let each = dealt().flat_map(|at| {
                let Held { id, version } = members.listed(set, at);
                (0..copies).map(move |copy| Held { id, version: version + copy })
            });
            let puts_versions = |op: &Op| {
                op.set == index && matches!(op.act, OpAct::Put { put_as: PutAs::Version, .. })
            };
            if ops.iter().any(puts_versions) {
                for at in dealt() {
                    let Held { id, version } = members.newest(set, at);
                    match versions.last_mut() {
                        Some((last, next)) if *last == id => *next = version + 1,
                        _ => versions.push((id, version + 1)),
                    }
                }
            }
            pool = Some(Pool::new(each));
        }
        let count = members.count(set);
        Self { index, count, pool, versions, numbers: Vec::new(), missing: Vec::new() }
    }

    fn next_number(&mut self, law: u16) -> u64 {
        let (_, next) = &mut self.numbers[usize::from(law)];
        *next += 1;
        *next - 1
    }
}

/// Returns how large a member is that an operation is about, where that is to be relied on.
fn size_of(job: &ObjectsJob, op: &Op, id: ObjectId, random: &mut Random) -> Option<u64> {
    let set = job.set(op.set);
    match (&op.act, &set.shared) {
        (OpAct::Put { .. }, _) if matches!(set.keys, Keys::Files(_)) => set.size_of(id),
        (OpAct::Put { sizes: SizeDist::Fixed(size), .. }, Some(_)) => Some(*size),
        // Each write draws a length of its own.
        (OpAct::Put { sizes, .. }, Some(_)) => Some(sizes.size(random.next_u64(), id)),
        (OpAct::Put { .. }, None) => set.size_of(id),
        (_, Some(shared)) => {
            shared.only_length().filter(|_| job.verify(op.set) == Verify::EveryByte)
        }
        (_, None) => set.size_of(id).filter(|_| job.verify(op.set) != Verify::Nothing),
    }
}

/// Tells whether each worker needs members of its own: where any of them is changed, and where new
/// ones are read, each as likely as the old ones.
fn has_pool(ops: &[Op], set: SetIndex) -> bool {
    let of_set = || ops.iter().filter(move |op| op.set == set).map(|op| &op.act);
    let changes = |act: &OpAct| {
        let is_change = |put_as: &PutAs| *put_as != PutAs::New;
        matches!(act, OpAct::Delete { .. })
            || matches!(act, OpAct::Put { put_as, .. } if is_change(put_as))
    };
    let grows = of_set().any(|act| matches!(act, OpAct::Put { remove_after: None, .. }));
    let reads_alike = |act: &OpAct| {
        matches!(act, OpAct::Get { .. } | OpAct::Stat { .. })
            && pick_of(act) == PickSpec::Member(Choice::Uniform)
    };
    let mut reads = of_set().filter(|act| matches!(act, OpAct::Get { .. } | OpAct::Stat { .. }));
    of_set().any(changes) || (grows && reads.next().is_some() && of_set().any(reads_alike))
}

/// Returns how an act chooses its member.
fn pick_of(act: &OpAct) -> PickSpec {
    match act {
        OpAct::Get { pick, .. }
        | OpAct::Put { pick, .. }
        | OpAct::Stat { pick, .. }
        | OpAct::Delete { pick, .. } => pick.clone(),
        OpAct::List { bucket: Some(bucket), .. } => {
            PickSpec::InBucket { bucket: bucket.clone(), key: Choice::Uniform }
        }
        OpAct::List { bucket: None, .. } => PickSpec::Member(Choice::Uniform),
    }
}

/// Returns a deck in which each operation stands as often as its weight says.
fn deck(ops: &[Op]) -> Vec<u16> {
    let gcd = Op::common_weight(ops);
    // Equal decks of equal mixes: by kind, as version 1 had them.
    let mut order: Vec<usize> = (0..ops.len()).collect();
    order.sort_by_key(|&at| (kind_of(&ops[at].act), at));
    // Bound: a plan with a deck above `DECK_MAX` is refused.
    let repeat = |at: usize| std::iter::repeat_n(at as u16, (ops[at].weight / gcd) as usize);
    order.into_iter().flat_map(repeat).collect()
}

/// Returns offset and length of the part that is read; `None` for all of it.
fn draw_range(range: Length, size: Option<u64>, random: &mut Random) -> Option<(u64, u64)> {
    if let Length::Within { len, of } = range {
        return Some((random.below(of - len + 1), len));
    }
    let size = size?;
    let len = match range {
        Length::Whole | Length::Within { .. } => return None,
        Length::Random if size == 0 => return None,
        Length::Random => log_uniform(random, (size / RANGE_SPAN).max(1), size),
        Length::Fixed(len) => len.min(size),
        Length::Uniform(min, max) => (min + random.below(max - min + 1)).min(size),
        Length::LogUniform(min, max) => log_uniform(random, min, max).min(size),
    };
    Some((random.below(size - len + 1), len))
}

//! Who is in a set at a moment between two stages, and how members are dealt to workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_model::{ObjectId, WorkerId};

use super::ObjectSet;
use crate::plan::spec::{DealBy, DealSpec};

/// The most versions of objects that are kept track of one by one.
pub(crate) const TRACKED_MAX: u64 = 100_000_000;

/// A member, or a version of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Held {
    /// Its id.
    pub id: ObjectId,
    /// The version that is there or, where it is to be written, the one that will be.
    pub version: u32,
}

impl Held {
    /// Returns the first content of a member.
    pub const fn new(id: ObjectId) -> Self {
        Self { id, version: 0 }
    }
}

/// The members of a set at a moment between two stages.
#[derive(Clone, Debug, Default)]
pub struct Members {
    present: Present,
    /// By owner and law of size: the number of the next member that is put. The numbers of those
    /// that a fill makes come first.
    next_numbers: Arc<BTreeMap<(u32, u16), u64>>,
    /// Those that may be there or not, in order: writing or removing them has failed. They are
    /// among those above or not.
    doubtful: Arc<[ObjectId]>,
}

#[derive(Clone, Debug, Default)]
enum Present {
    /// None.
    #[default]
    Nobody,
    /// Those that a fill makes, were found, or names stand for, in all their versions.
    All,
    /// These, in order.
    Listed(Arc<[Held]>),
    /// Those of these runs, in order, each in one version.
    Runs(Arc<[Run]>),
}

/// Members whose numbers follow one another, all in the same version.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: Held,
    count: u64,
    /// How many stand in the runs before it.
    before: u64,
}

impl Run {
    /// Returns the id after its last one, as an integer.
    const fn end(&self) -> u64 {
        self.first.id.as_u64() + self.count
    }

    fn at(&self, index: u64) -> Held {
        let Held { id, version } = self.first;
        Held { id: ObjectId::new(id.owner(), id.number() + index), version }
    }

    fn each(&self) -> impl Iterator<Item = Held> {
        let run = *self;
        (0..run.count).map(move |index| run.at(index))
    }
}

/// Members that are added one after another. What makes a billion of them in a row takes no memory
/// for each.
#[derive(Default)]
struct Runs(Vec<Run>);

impl Runs {
    fn push(&mut self, first: Held, count: u64) {
        match self.0.last_mut() {
            Some(last)
                if last.first.version == first.version && last.end() == first.id.as_u64() =>
            {
                last.count += count;
            }
            _ if count > 0 => self.0.push(Run { first, count, before: 0 }),
            _ => {}
        }
    }
}

/// What a worker has changed about a set in a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has made its share of all members, up to position `done` of it, without these positions.
    Filled {
        /// The worker, 0-based.
        worker: u32,
        /// Of so many.
        workers: u32,
        /// How many of its share it has come to; versions count.
        done: u64,
        /// Those of them that are not there.
        failed: Vec<u64>,
    },
    /// Of the members that were dealt to it, and of those that it has put, these are there.
    Holds(Vec<Held>),
    /// The next member that it puts has this number.
    Numbered {
        /// Whose it is.
        owner: u32,
        /// The law of its size.
        law: u16,
        /// The number.
        next: u64,
    },
    /// It has put members with these numbers, but for those that are not there.
    Put {
        /// Whose they are.
        owner: u32,
        /// The law of their sizes.
        law: u16,
        /// The first number.
        from: u64,
        /// The number after the last.
        to: u64,
        /// Those that are not there.
        failed: Vec<u64>,
    },
    /// Writing or removing these has failed, so that nobody knows whether they are there.
    Doubtful(Vec<ObjectId>),
}

impl Members {
    /// Returns the members of a set all of which are there from the beginning.
    pub fn all() -> Self {
        Self { present: Present::All, ..Self::default() }
    }

    /// Returns how many there are; where members were listed one by one, versions count.
    pub fn count(&self, set: &ObjectSet) -> u64 {
        match &self.present {
            Present::Nobody => 0,
            Present::All => set.count,
            Present::Listed(held) => held.len() as u64,
            Present::Runs(runs) => runs.last().map_or(0, |run| run.before + run.count),
        }
    }

    /// Tells whether each has as many versions as a fill makes.
    pub(super) const fn is_as_filled(&self) -> bool {
        matches!(self.present, Present::Nobody | Present::All)
    }

    /// Returns the newest version of the member at `index`.
    pub fn newest(&self, set: &ObjectSet, index: u64) -> Held {
        match &self.present {
            Present::Listed(held) => {
                let at = index as usize;
                let id = held[at].id;
                let of_it = held[at..].iter().take_while(|each| each.id == id);
                *of_it.last().expect("it is one of them")
            }
            Present::Runs(runs) => in_runs(runs, index),
            _ => Held { id: set.id(index), version: set.versions.saturating_sub(1) },
        }
    }

    /// Returns what stands at `index` where versions were listed one by one.
    pub(super) fn listed(&self, set: &ObjectSet, index: u64) -> Held {
        match &self.present {
            Present::Listed(held) => held[index as usize],
            Present::Runs(runs) => in_runs(runs, index),
            _ => Held::new(set.id(index)),
        }
    }

    /// Returns the number that the next member gets that is put.
    pub(super) fn next_number(&self, set: &ObjectSet, owner: u32, law: u16) -> u64 {
        let first = if law == 0 { set.share_of(owner) } else { 0 };
        self.next_numbers.get(&(owner, law)).copied().unwrap_or(0).max(first)
    }

    /// Returns those of which nobody knows whether they are there, in order.
    pub fn doubtful(&self) -> &[ObjectId] {
        &self.doubtful
    }

    /// Returns what a listing finds: each in all its versions or once.
    pub(super) fn entries<'a>(
        &'a self,
        set: &'a ObjectSet,
        versions: bool,
    ) -> impl Iterator<Item = ObjectId> + 'a {
        let copies = if self.is_as_filled() && versions { set.versions } else { 1 };
        let mut last = None;
        (0..self.count(set))
            .map(|at| self.listed(set, at).id)
            .filter(move |id| last.replace(*id) != Some(*id) || versions)
            // Bound: none is needed, as nothing is kept.
            .flat_map(move |id| std::iter::repeat_n(id, copies as usize))
    }

    /// Returns what is there by bucket and in order, each in all its versions or once.
    pub(super) fn in_order(&self, set: &ObjectSet, versions: bool) -> Arc<[Held]> {
        let is_of_one = set.buckets.count() == 1;
        if let (Present::Listed(held), true, true) = (&self.present, is_of_one, versions) {
            return Arc::clone(held);
        }
        let mut held = self.each(set);
        held.sort_unstable_by_key(|held| (set.bucket_of(held.id), *held));
        if !versions {
            held.dedup_by_key(|held| held.id);
        }
        held.into()
    }

    /// Returns the positions that are dealt to a worker, in order.
    pub(super) fn dealt<'a>(
        &self,
        set: &'a ObjectSet,
        deal: DealSpec,
        (worker, workers): (WorkerId, u32),
    ) -> Box<dyn Iterator<Item = u64> + 'a> {
        let of = u64::from((worker.0 + deal.shift) % workers);
        let workers = u64::from(workers);
        let count = self.count(set);
        match deal.by {
            // Slices are of sets whose members nobody owns.
            DealBy::ByMember | DealBy::None | DealBy::BucketSlices | DealBy::MemberSlices => {
                Box::new((of..count).step_by(workers as usize))
            }
            DealBy::ByBucket => {
                let members = self.clone();
                Box::new((0..count).filter(move |&index| {
                    let id = members.listed(set, index).id;
                    u64::from(set.bucket_of(id)) % workers == of
                }))
            }
        }
    }

    /// Returns the members after a stage in which all of this was changed about them; how many they
    /// are where that is more than can be kept one by one.
    pub fn after(&self, set: &ObjectSet, changes: Vec<Change>) -> Result<Self, u64> {
        let mut next_numbers = (*self.next_numbers).clone();
        let (mut there, mut is_held) = (Runs::default(), false);
        let mut filled = Vec::new();
        let mut doubtful = self.doubtful.to_vec();
        for change in changes {
            match change {
                Change::Filled { worker, workers, done, mut failed } => {
                    failed.sort_unstable();
                    let all = share_len(set.count, worker, workers) * u64::from(set.versions);
                    filled.push((worker, workers, done, failed, done == all));
                }
                Change::Numbered { owner, law, next: to } => {
                    let next = next_numbers.entry((owner, law)).or_insert(0);
                    *next = to.max(*next);
                }
                Change::Doubtful(mut ids) => doubtful.append(&mut ids),
                Change::Holds(own) => {
                    is_held = true;
                    own.into_iter().for_each(|held| there.push(held, 1));
                }
                Change::Put { owner, law, from, to, mut failed } => {
                    let next = next_numbers.entry((owner, law)).or_insert(0);
                    *next = to.max(*next);
                    failed.sort_unstable();
                    let mut start = from;
                    for gap in failed.into_iter().filter(|gap| (from..to).contains(gap)).chain([to])
                    {
                        let first = Held::new(set.new_id(owner, law, start));
                        there.push(first, gap.saturating_sub(start));
                        start = gap + 1;
                    }
                }
            }
        }
        let is_whole = filled.iter().all(|(_, _, _, failed, is_all)| failed.is_empty() && *is_all);
        let present = match (filled.is_empty(), there.0.is_empty()) {
            (false, true) if is_whole => Present::All,
            (false, _) => {
                for (worker, workers, done, failed, _) in filled {
                    let share = share(set, (worker, workers), done, &failed);
                    share.for_each(|held| there.push(held, 1));
                }
                Present::of(there)?
            }
            (true, true) if !is_held => self.present.clone(),
            (true, _) => {
                if !is_held {
                    self.add_to(&mut there, set);
                }
                Present::of(there)?
            }
        };
        doubtful.sort_unstable();
        doubtful.dedup();
        Ok(Self { present, next_numbers: Arc::new(next_numbers), doubtful: doubtful.into() })
    }

    /// Tells whether one of many parts can have changed this about them, by so many operations of a
    /// stage that fills them so often at most. What passes neither fails when it is taken over nor
    /// takes more memory than there are members.
    pub(crate) fn can_change(
        &self,
        set: &ObjectSet,
        (fills_max, ops_max): (u64, u64),
        changes: &[&Change],
    ) -> bool {
        let of_share = |worker, workers| {
            share_len(set.count, worker, workers).saturating_mul(set.versions.into())
        };
        // Numbers are given one after the other, and there are always more of them.
        let is_next = |owner, law, to: u64| {
            to.saturating_sub(self.next_number(set, owner, law)) <= ops_max
                && ObjectSet::can_number(owner, law, to)
        };
        let (mut filled, mut tracked) = (0_u64, self.count(set));
        let mut is_possible = |change: &&Change| match change {
            Change::Filled { worker, workers, done, .. } => {
                filled = filled.saturating_add(*done);
                worker < workers && *done <= of_share(*worker, *workers)
            }
            Change::Numbered { owner, law, next } => is_next(*owner, *law, *next),
            Change::Put { owner, law, from, to, .. } => {
                tracked = tracked.saturating_add(to.saturating_sub(*from));
                let is_member = || set.is_own() && set.can_have(set.new_id(*owner, *law, to - 1));
                from <= to && is_next(*owner, *law, *to) && (from == to || is_member())
            }
            Change::Holds(held) => {
                tracked = tracked.saturating_add(held.len() as u64);
                held.iter().all(|held| set.can_have(held.id))
            }
            Change::Doubtful(ids) => ids.iter().all(|id| set.can_have(*id)),
        };
        if !changes.iter().all(&mut is_possible) {
            return false;
        }
        let is_other = |change: &&&Change| !matches!(change, Change::Filled { .. });
        let others = || changes.iter().filter(is_other).map(|change| (*change).clone()).collect();
        filled <= of_share(0, 1).saturating_mul(fills_max)
            && (tracked <= TRACKED_MAX || self.after(set, others()).is_ok())
    }

    /// Returns each version of each member.
    fn each(&self, set: &ObjectSet) -> Vec<Held> {
        let mut all = Runs::default();
        self.add_to(&mut all, set);
        all.0.iter().flat_map(Run::each).collect()
    }

    /// Adds each version of each member.
    fn add_to(&self, runs: &mut Runs, set: &ObjectSet) {
        match &self.present {
            Present::Nobody => {}
            Present::All if set.versions == 1 && set.is_own() => {
                for owner in 0..set.owners.get() {
                    let first = ObjectId::new(WorkerId(owner), 0);
                    runs.push(Held::new(first), set.share_of(owner));
                }
            }
            Present::All => {
                let all = share(set, (0, 1), set.count * u64::from(set.versions), &[]);
                all.for_each(|held| runs.push(held, 1));
            }
            Present::Listed(held) => held.iter().for_each(|held| runs.push(*held, 1)),
            Present::Runs(own) => own.iter().for_each(|run| runs.push(run.first, run.count)),
        }
    }
}

impl Present {
    fn of(Runs(mut runs): Runs) -> Result<Self, u64> {
        runs.sort_unstable_by_key(|run| run.first);
        let (mut merged, mut end, mut is_apart) = (Vec::<Run>::new(), 0, true);
        for run in runs {
            match merged.last_mut() {
                Some(last)
                    if last.first.version == run.first.version
                        && run.first.id.as_u64() <= last.end() =>
                {
                    last.count = last.count.max(run.end() - last.first.id.as_u64());
                }
                _ => {
                    is_apart &= merged.is_empty() || run.first.id.as_u64() >= end;
                    merged.push(run);
                }
            }
            end = end.max(run.end());
        }
        let mut count = 0;
        for run in &mut merged {
            run.before = count;
            count += run.count;
        }
        // A run takes twice the memory of a member.
        match count {
            0 => Ok(Self::Nobody),
            _ if is_apart && merged.len() as u64 <= count / 2 => Ok(Self::Runs(merged.into())),
            _ if count > TRACKED_MAX => Err(count),
            _ => {
                let mut held: Vec<Held> = merged.iter().flat_map(Run::each).collect();
                held.sort_unstable();
                held.dedup();
                Ok(Self::Listed(held.into()))
            }
        }
    }
}

/// Returns what stands at `index` of all that the runs hold.
fn in_runs(runs: &[Run], index: u64) -> Held {
    let run = &runs[runs.partition_point(|run| run.before <= index) - 1];
    run.at(index - run.before)
}

/// Returns how many of `count` are dealt to a worker of so many.
pub(super) const fn share_len(count: u64, worker: u32, workers: u32) -> u64 {
    let (each, rest) = (count / workers as u64, count % workers as u64);
    each + ((worker as u64) < rest) as u64
}

/// Returns the member and the version at a position of the share that a worker fills.
pub(super) fn filled_at(set: &ObjectSet, (worker, workers): (u32, u32), position: u64) -> Held {
    let versions = u64::from(set.versions);
    let index = position / versions * u64::from(workers) + u64::from(worker);
    Held { id: set.id(index), version: (position % versions) as u32 }
}

/// Returns what a worker has filled of its share; `failed` is in order.
fn share<'a>(
    set: &'a ObjectSet,
    worker: (u32, u32),
    done: u64,
    failed: &'a [u64],
) -> impl Iterator<Item = Held> + 'a {
    (0..done)
        .filter(move |position| failed.binary_search(position).is_err())
        .map(move |position| filled_at(set, worker, position))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyLayout, Keys};

    #[test]
    fn what_no_part_can_have_changed_is_told_from_what_it_can() {
        let layout = KeyLayout::for_run("", "r.1", false);
        let keys = Keys::Generated { layout, seed: 7 };
        let set = ObjectSet { count: 10, ..ObjectSet::plain("o", keys) };
        let members = Members::all();
        let can = |changes: &[&Change]| members.can_change(&set, (1, TRACKED_MAX * 3), changes);
        let filled =
            |worker, workers, done| Change::Filled { worker, workers, done, failed: Vec::new() };
        let put = |owner, law, from, to| Change::Put { owner, law, from, to, failed: Vec::new() };
        let holds = |raw| Change::Holds(vec![Held::new(ObjectId::from_u64(raw).unwrap())]);
        assert!(can(&[&filled(0, 2, 5), &filled(1, 2, 5)]));
        assert!(can(&[&put(3, 0, 5, 9), &holds(1), &Change::Doubtful(Vec::new())]));
        assert!(can(&[&Change::Numbered { owner: 0, law: 0, next: 10 }]));
        for changes in [
            // More than there is to fill, of a share, by all or of nobody.
            &[&filled(0, 2, 6)][..],
            &[&filled(0, 1, 10), &filled(0, 1, 1)],
            &[&filled(2, 2, 1)],
            &[&filled(0, 0, 0)],
            // Ids that no member has.
            &[&put(0, 1, 0, 2)],
            &[&put(0, 0, 0, 1 << 36)],
            &[&put(u32::MAX, 0, 0, 2)],
            &[&put(0, 0, 3, 2)],
            &[&holds(1 << 36)],
            &[&Change::Doubtful(vec![ObjectId::new(WorkerId(0), 1 << 36)])],
            &[&Change::Numbered { owner: 0, law: 99, next: 11 }],
            // More than were put.
            &[&put(0, 0, 0, TRACKED_MAX * 3 + 11)],
            &[&Change::Numbered { owner: 0, law: 0, next: TRACKED_MAX * 3 + 11 }],
            // More than can be kept track of one by one.
            &[&put(0, 0, 0, TRACKED_MAX * 3), &put(0, 0, 1, 2), &{
                Change::Holds(vec![Held { id: ObjectId::new(WorkerId(0), 1), version: 1 }])
            }],
        ] {
            assert!(!can(changes), "{changes:?}");
        }
        // As many as may be, which follow one another, take no memory for each.
        assert!(can(&[&put(0, 0, 10, TRACKED_MAX * 3)]));
        let given =
            ObjectSet { count: 10, ..ObjectSet::plain("f", Keys::Files(Vec::new().into())) };
        let can = |change: &Change| members.can_change(&given, (1, 9), &[change]);
        assert!(can(&holds(9)) && !can(&holds(10)) && !can(&put(0, 0, 0, 1)));
    }
}

//! Who is in a set at a moment between two stages, and how members are dealt to workers.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use plimsoll_model::{ObjectId, WorkerId};

use super::ObjectSet;
use crate::plan::spec::{DealBy, DealSpec};

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
        }
    }

    /// Tells whether each has as many versions as a fill makes.
    pub(super) const fn is_as_filled(&self) -> bool {
        !matches!(self.present, Present::Listed(_))
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
            _ => Held { id: set.id(index), version: set.versions.saturating_sub(1) },
        }
    }

    /// Returns what stands at `index` where versions were listed one by one.
    pub(super) fn listed(&self, set: &ObjectSet, index: u64) -> Held {
        match &self.present {
            Present::Listed(held) => held[index as usize],
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

    /// Returns the members after a stage in which all of this was changed about them.
    #[must_use]
    pub fn after(&self, set: &ObjectSet, changes: Vec<Change>) -> Self {
        let mut next_numbers = (*self.next_numbers).clone();
        let (mut added, mut held) = (Vec::new(), None);
        let mut is_filled = false;
        let mut filled = Vec::new();
        let mut doubtful = self.doubtful.to_vec();
        for change in changes {
            match change {
                Change::Filled { worker, workers, done, failed } => {
                    is_filled = true;
                    let all = share_len(set.count, worker, workers) * u64::from(set.versions);
                    filled.push((worker, workers, done, failed, done == all));
                }
                Change::Numbered { owner, law, next: to } => {
                    let next = next_numbers.entry((owner, law)).or_insert(0);
                    *next = to.max(*next);
                }
                Change::Doubtful(mut ids) => doubtful.append(&mut ids),
                Change::Holds(mut own) => held.get_or_insert_with(Vec::new).append(&mut own),
                Change::Put { owner, law, from, to, failed } => {
                    let next = next_numbers.entry((owner, law)).or_insert(0);
                    *next = to.max(*next);
                    let failed: HashSet<u64> = failed.into_iter().collect();
                    let there = (from..to).filter(|number| !failed.contains(number));
                    added.extend(there.map(|number| Held::new(set.new_id(owner, law, number))));
                }
            }
        }
        let is_whole = filled.iter().all(|(_, _, _, failed, is_all)| failed.is_empty() && *is_all);
        let present = match (is_filled, held) {
            (true, _) if is_whole && added.is_empty() => Present::All,
            (true, _) => {
                for (worker, workers, done, failed, _) in filled {
                    added.extend(share(set, (worker, workers), done, &failed));
                }
                Present::of(added)
            }
            (false, Some(mut held)) => {
                held.append(&mut added);
                Present::of(held)
            }
            (false, None) if added.is_empty() => self.present.clone(),
            (false, None) => {
                added.extend(self.each(set));
                Present::of(added)
            }
        };
        doubtful.sort_unstable();
        doubtful.dedup();
        Self { present, next_numbers: Arc::new(next_numbers), doubtful: doubtful.into() }
    }

    /// Returns each version of each member.
    fn each(&self, set: &ObjectSet) -> Vec<Held> {
        match &self.present {
            Present::Nobody => Vec::new(),
            Present::All => share(set, (0, 1), set.count * u64::from(set.versions), &[]).collect(),
            Present::Listed(held) => held.to_vec(),
        }
    }
}

impl Present {
    fn of(mut held: Vec<Held>) -> Self {
        if held.is_empty() {
            return Self::Nobody;
        }
        held.sort_unstable();
        held.dedup();
        Self::Listed(held.into())
    }
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

/// Returns what a worker has filled of its share.
fn share<'a>(
    set: &'a ObjectSet,
    worker: (u32, u32),
    done: u64,
    failed: &'a [u64],
) -> impl Iterator<Item = Held> + 'a {
    (0..done)
        .filter(move |position| !failed.contains(position))
        .map(move |position| filled_at(set, worker, position))
}

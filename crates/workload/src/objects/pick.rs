//! Which of several members an operation is about.

use std::sync::Arc;

use plimsoll_model::WorkerId;

use super::slices::SlicePicker;
use super::{Members, ObjectSet};
use crate::files::laws::Zipf;
use crate::plan::NumberRange;
use crate::plan::spec::{Choice, DealSpec, PickSpec, Shares};
use crate::{Permutation, Random};

const PICK_DOMAIN: u64 = 0x7069_636b;

/// Chooses one of several for one worker.
pub(super) enum Picker {
    Uniform {
        count: u64,
    },
    Zipf {
        law: Zipf,
        order: Permutation,
    },
    Sequential {
        next: u64,
        step: u64,
        count: u64,
    },
    /// Out of the `count` that are dealt to the worker: `first`, `first + step`, ...
    Own {
        first: u64,
        step: u64,
        count: u64,
    },
    Shares {
        ranges: Arc<[(u64, u64, u64)]>,
        weight: u64,
    },
}

impl Picker {
    /// Returns the picker of `worker` of `workers` for what is numbered up to `count`, which is at
    /// least 1.
    pub(super) fn new(
        choice: &Choice,
        count: u64,
        seed: u64,
        (worker, workers): (WorkerId, u32),
    ) -> Self {
        let count = count.max(1);
        match choice {
            Choice::Uniform => Self::Uniform { count },
            Choice::Zipf(theta) => Self::Zipf {
                law: Zipf::new(count, *theta),
                order: Permutation::new(seed ^ PICK_DOMAIN, count),
            },
            Choice::Sequential => {
                let step = u64::from(workers) % count;
                Self::Sequential { next: u64::from(worker.0) % count, step, count }
            }
            Choice::Own => {
                let (first, step) = (u64::from(worker.0) % count, u64::from(workers));
                Self::Own { first, step, count: (count - first).div_ceil(step) }
            }
            Choice::Shares(shares) => Self::shares(shares, count),
        }
    }

    /// Returns the picker by shares of what is numbered up to `count`; numbers beyond are cut off.
    fn shares(Shares(shares): &Shares<NumberRange>, count: u64) -> Self {
        let known = shares.iter().filter(|share| share.value.from <= count);
        let ranges: Arc<[(u64, u64, u64)]> = known
            .map(|share| (share.value.from - 1, share.value.to.min(count) - 1, share.weight))
            .collect();
        let weight = ranges.iter().map(|(_, _, weight)| weight).sum();
        match weight {
            0 => Self::Uniform { count },
            weight => Self::Shares { ranges, weight },
        }
    }

    /// Returns the number of the next one.
    pub(super) fn draw(&mut self, random: &mut Random) -> u64 {
        match self {
            Self::Uniform { count } => random.below(*count),
            Self::Zipf { law, order } => order.at(law.draw(random)),
            Self::Sequential { next, step, count } => {
                let now = *next;
                *next = (now + *step) % *count;
                now
            }
            Self::Own { first, step, count } => *first + *step * random.below(*count),
            Self::Shares { ranges, weight } => {
                let mut left = random.below(*weight);
                let range = ranges.iter().find(|(_, _, weight)| {
                    let is_it = left < *weight;
                    left = left.saturating_sub(*weight);
                    is_it
                });
                let (from, to, _) = range.expect("the weights add up to their sum");
                from + random.below(to - from + 1)
            }
        }
    }

    /// Returns the place that is drawn out of `count` of the worker's own, which come and go: by
    /// rank, so that what comes into a place is as popular as what was there.
    pub(super) fn draw_place(&mut self, count: u64, random: &mut Random) -> u64 {
        match self {
            Self::Uniform { .. } | Self::Own { .. } => random.below(count),
            Self::Zipf { law, .. } => law.draw(random) % count,
            Self::Sequential { next, .. } => {
                let now = *next % count;
                *next = now + 1;
                now
            }
            Self::Shares { .. } => self.draw(random) % count,
        }
    }
}

/// Who picks, and of what.
#[derive(Clone, Copy)]
pub(super) struct Picking<'a> {
    pub(super) set: &'a ObjectSet,
    pub(super) members: &'a Members,
    pub(super) deal: DealSpec,
    pub(super) seed: u64,
    pub(super) worker: (WorkerId, u32),
}

/// Chooses members out of a set that stays as it is.
pub(super) enum MemberPicker {
    /// By the name, whether or not there is a member of it.
    Name(SlicePicker),
    Member(Picker),
    /// The bucket first, then the key in it.
    InBucket {
        bucket: Picker,
        /// By bucket: its members, by their places in the set.
        keys: Vec<(Picker, Vec<u64>)>,
    },
}

impl MemberPicker {
    pub(super) fn new(pick: &PickSpec, picking: Picking<'_>) -> Self {
        let Picking { set, members, deal, seed, worker } = picking;
        match pick {
            pick if set.shared.is_some() => {
                Self::Name(SlicePicker::new(pick, (set, deal), seed, worker))
            }
            PickSpec::InBucket { .. } if !set.is_own() => {
                Self::Name(SlicePicker::new(pick, (set, deal), seed, worker))
            }
            PickSpec::Member(choice) => {
                Self::Member(Picker::new(choice, members.count(set), seed, worker))
            }
            PickSpec::InBucket { bucket, key } => {
                let buckets = u64::from(set.buckets.count());
                let bucket = Picker::new(bucket, buckets, seed, worker);
                Self::InBucket { bucket, keys: by_bucket(key, picking) }
            }
        }
    }

    /// Returns the place of the next member in the set.
    pub(super) fn draw(&mut self, random: &mut Random) -> u64 {
        match self {
            Self::Name(picker) => picker.draw(random),
            Self::Member(picker) => picker.draw(random),
            Self::InBucket { bucket, keys } => {
                let bucket = bucket.draw(random) as usize;
                let at = (bucket..keys.len()).chain(0..bucket);
                let mut some = at.filter(|&at| !keys[at].1.is_empty());
                let at = some.next().expect("the set has members");
                let (picker, places) = &mut keys[at];
                places[picker.draw(random) as usize]
            }
        }
    }

    /// Tells whether it chooses names, of which there may be no member.
    pub(super) const fn is_by_name(&self) -> bool {
        matches!(self, Self::Name(_))
    }
}

/// Returns, by bucket, what chooses its members, and these.
fn by_bucket(choice: &Choice, picking: Picking<'_>) -> Vec<(Picker, Vec<u64>)> {
    let Picking { set, members, seed, worker, .. } = picking;
    // Bound: a set has 10,000 buckets at most.
    let mut places = vec![Vec::new(); set.buckets.count() as usize];
    for place in 0..members.count(set) {
        let bucket = set.bucket_of(members.listed(set, place).id);
        places[bucket as usize].push(place);
    }
    let of = |places: Vec<u64>| (Picker::new(choice, places.len() as u64, seed, worker), places);
    places.into_iter().map(of).collect()
}

#[cfg(test)]
#[path = "pick_tests.rs"]
mod tests;

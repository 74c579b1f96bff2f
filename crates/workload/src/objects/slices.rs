//! Contiguous parts of a set with names of the user's own: some buckets, or some keys of each.

use std::ops::Range;

use plimsoll_model::WorkerId;

use super::ObjectSet;
use super::pick::Picker;
use crate::Random;
use crate::plan::spec::{Choice, DealBy, DealSpec, PickSpec};

/// The names that one worker keeps to: some buckets and, in each of them, some keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    buckets: Range<u64>,
    keys: Range<u64>,
    /// How many keys each bucket has in all.
    keys_count: u64,
}

impl Slice {
    /// Returns the slice of a worker; `None` where the deal is of something else.
    pub(super) fn of(
        set: &ObjectSet,
        deal: DealSpec,
        (worker, workers): (WorkerId, u32),
    ) -> Option<Self> {
        let buckets = u64::from(set.buckets.count());
        let keys_count = set.count / buckets;
        let cut = |count: u64| contiguous(count, (worker.0 + deal.shift) % workers, workers);
        match deal.by {
            DealBy::BucketSlices => {
                Some(Self { buckets: cut(buckets), keys: 0..keys_count, keys_count })
            }
            DealBy::MemberSlices => {
                Some(Self { buckets: 0..buckets, keys: cut(keys_count), keys_count })
            }
            DealBy::ByMember | DealBy::ByBucket | DealBy::None => None,
        }
    }

    /// Returns the slice that is all of a set.
    pub(super) fn whole(set: &ObjectSet) -> Self {
        let buckets = u64::from(set.buckets.count());
        let keys_count = set.count / buckets;
        Self { buckets: 0..buckets, keys: 0..keys_count, keys_count }
    }

    fn buckets_count(&self) -> u64 {
        self.buckets.end - self.buckets.start
    }

    fn keys_len(&self) -> u64 {
        self.keys.end - self.keys.start
    }

    /// Returns how many members it has.
    pub(super) fn len(&self) -> u64 {
        self.buckets_count() * self.keys_len()
    }

    /// Returns the place in the set of the member at a position of the slice: bucket by bucket, and
    /// in each of them key by key.
    pub(super) fn at(&self, position: u64) -> u64 {
        debug_assert!(position < self.len());
        let (bucket, key) = (position / self.keys_len(), position % self.keys_len());
        (self.buckets.start + bucket) * self.keys_count + self.keys.start + key
    }

    /// Returns how many members from a position on follow on one another in the set.
    pub(super) fn run_len(&self, position: u64) -> u64 {
        match self.keys_len() == self.keys_count {
            true => self.len() - position,
            false => self.keys_len() - position % self.keys_len(),
        }
    }

    /// Returns how many batches of at most so many take all of it, each of members that follow on
    /// one another.
    pub(super) fn batches(&self, batch: u64) -> u64 {
        match self.len() {
            0 => 0,
            len => len / self.run_len(0) * self.run_len(0).div_ceil(batch),
        }
    }
}

/// Returns the part of `count` that is a worker's of so many: contiguous, and of the first workers
/// one more where it does not come out even.
fn contiguous(count: u64, worker: u32, workers: u32) -> Range<u64> {
    let (worker, workers) = (u64::from(worker), u64::from(workers));
    let (each, more) = (count / workers, count % workers);
    let start = worker * each + worker.min(more);
    start..start + each + u64::from(worker < more)
}

/// Chooses names of a slice.
pub(super) struct SlicePicker {
    slice: Slice,
    how: How,
}

enum How {
    /// By the position in the slice.
    Position(Picker),
    /// The bucket first, then the key.
    Both { bucket: Picker, key: Picker },
}

impl SlicePicker {
    /// Returns the picker of a worker. In a slice of its own a worker counts by itself; otherwise
    /// all count together, over every key of every bucket where both are sequential.
    pub(super) fn new(
        pick: &PickSpec,
        (set, deal): (&ObjectSet, DealSpec),
        seed: u64,
        worker: (WorkerId, u32),
    ) -> Self {
        let own = Slice::of(set, deal, worker);
        let worker = if own.is_some() { (WorkerId(0), 1) } else { worker };
        let slice = own.unwrap_or_else(|| Slice::whole(set));
        let picker = |choice: &Choice, count: u64| Picker::new(choice, count, seed, worker);
        let how = match pick {
            PickSpec::Member(choice) => How::Position(picker(choice, slice.len())),
            PickSpec::InBucket { bucket: Choice::Sequential, key: Choice::Sequential } => {
                How::Position(picker(&Choice::Sequential, slice.len()))
            }
            PickSpec::InBucket { bucket, key } => How::Both {
                bucket: picker(bucket, slice.buckets_count()),
                key: picker(key, slice.keys_len()),
            },
        };
        Self { slice, how }
    }

    /// Returns the place of the next member in the set.
    #[inline]
    pub(super) fn draw(&mut self, random: &mut Random) -> u64 {
        match &mut self.how {
            How::Position(picker) => self.slice.at(picker.draw(random)),
            How::Both { bucket, key } => {
                let bucket = self.slice.buckets.start + bucket.draw(random);
                bucket * self.slice.keys_count + self.slice.keys.start + key.draw(random)
            }
        }
    }
}

#[cfg(test)]
#[path = "slices_tests.rs"]
mod tests;

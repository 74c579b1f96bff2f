//! The first and the last access of each object: whether a cache in between changes the figures.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use plimsoll_model::{Moment, ObjectId, OpRecord};
use plimsoll_stats::Histogram;
use serde::Serialize;

use crate::ns;
use crate::times::Times;

/// More objects than this are not followed: when there are more, every second one, by its hash, is
/// let go, as often as it takes.
const OBJECTS_MAX: usize = 1 << 17;

/// The times of the first and of the last access of the objects that were accessed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccessSummary {
    /// How many objects the figures are of.
    pub objects_count: u64,
    /// One object in this many was followed, chosen by hash; 1 is all.
    pub sampled_one_in: u64,
    /// Latency of each object's first access.
    #[serde(rename = "first_latency_ns")]
    pub first: Times,
    /// Time to first byte of each object's first access.
    #[serde(rename = "first_ttfb_ns")]
    pub first_ttfb: Times,
    /// Latency of each object's last access.
    #[serde(rename = "last_latency_ns")]
    pub last: Times,
    /// Time to first byte of each object's last access.
    #[serde(rename = "last_ttfb_ns")]
    pub last_ttfb: Times,
}

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Access {
    start: Moment,
    latency: Duration,
    ttfb: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Accesses {
    first: Access,
    last: Access,
    count: u64,
}

/// The accesses of each object, or of a part of the objects that depends on nothing but the
/// objects.
#[derive(Debug, Default)]
pub(crate) struct AccessTable {
    objects: HashMap<u64, Accesses, BuildHasherDefault<Mixed>>,
    /// An object is followed when this many low bits of its hash are 0.
    level: u32,
}

impl AccessTable {
    /// Counts a success.
    pub(crate) fn add(&mut self, op: &OpRecord) {
        let Some(object) = op.object else { return };
        let hash = mixed(object);
        if hash.trailing_zeros() < self.level {
            return;
        }
        let access = Access { start: op.start, latency: op.latency(), ttfb: op.ttfb() };
        let new = Accesses { first: access, last: access, count: 0 };
        let accesses = self.objects.entry(hash).or_insert(new);
        accesses.first = accesses.first.min(access);
        accesses.last = accesses.last.max(access);
        accesses.count += 1;
        self.let_go();
    }

    /// Adds what another table of the same kind counted.
    ///
    /// The level of all is that of the records in one table: what is let go depends on the objects
    /// alone, and what is not was followed from its first record on.
    pub(crate) fn merge(&mut self, other: Self) {
        self.level = self.level.max(other.level);
        let level = self.level;
        self.objects.retain(|hash, _| hash.trailing_zeros() >= level);
        for (hash, theirs) in other.objects {
            if hash.trailing_zeros() < self.level {
                continue;
            }
            let new = Accesses { count: 0, ..theirs };
            let mine = self.objects.entry(hash).or_insert(new);
            mine.first = mine.first.min(theirs.first);
            mine.last = mine.last.max(theirs.last);
            mine.count += theirs.count;
            self.let_go();
        }
    }

    /// Follows fewer objects where they are too many.
    fn let_go(&mut self) {
        while self.objects.len() > OBJECTS_MAX {
            self.level += 1;
            let level = self.level;
            self.objects.retain(|hash, _| hash.trailing_zeros() >= level);
        }
    }

    /// Returns the figures, unless every object was accessed only once.
    pub(crate) fn summary(&self) -> Option<AccessSummary> {
        if self.objects.values().all(|accesses| accesses.count < 2) {
            return None;
        }
        let times = |of: fn(&Accesses) -> Option<Duration>| {
            let mut histogram = Histogram::new();
            let known = self.objects.values().filter_map(of);
            known.for_each(|time| histogram.record(ns(time)));
            Times::of(&histogram, false)
        };
        Some(AccessSummary {
            objects_count: self.objects.len() as u64,
            sampled_one_in: 1 << self.level,
            first: times(|accesses| Some(accesses.first.latency)),
            first_ttfb: times(|accesses| accesses.first.ttfb),
            last: times(|accesses| Some(accesses.last.latency)),
            last_ttfb: times(|accesses| accesses.last.ttfb),
        })
    }
}

/// Returns a hash of which every bit depends on every bit of the id (the finalizer of SplitMix64;
/// Steele, Lea, Flood 2014). It is one to one, so two objects never share one.
fn mixed(object: ObjectId) -> u64 {
    let x = object.as_u64();
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Passes a hash on that is one already; its upper bits, as the lower ones may all be 0.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only whole hashes are looked up");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash.rotate_left(32);
    }
}

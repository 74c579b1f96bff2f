//! Sets whose members anybody may write at any time, also while others read them.

use crate::SizeDist;

/// What members of a shared set are held to. What they hold is a function of the bucket, the key
/// and the seed alone, up to a length that is drawn for each write.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedSet {
    /// Fixes content, whatever the seed of the run.
    pub seed: u64,
    /// Whether what is written ends in COSBench's guard.
    pub hash_check: bool,
    /// By these laws lengths are drawn of what the run writes under the set's names; none: any
    /// length is right.
    pub lengths: Vec<SizeDist>,
    /// The name of the target's own bucket, in which sets lie that name none.
    pub home: String,
    /// Uploads them in parts of so many bytes, one after the other.
    pub part_bytes: Option<u64>,
}

/// How long COSBench's guard is.
const GUARD_BYTES: u64 = 40;

impl SharedSet {
    /// Returns by how much a guard makes a file longer.
    pub(super) fn guard_bytes(&self) -> u64 {
        if self.hash_check { GUARD_BYTES } else { 0 }
    }

    /// Returns how large every member is that the run writes, where all are alike.
    pub fn only_length(&self) -> Option<u64> {
        match &*self.lengths {
            [SizeDist::Fixed(size)] => Some(*size),
            _ => None,
        }
    }

    /// Returns how long what is read may be, where it is none of the lengths that there are: the
    /// longest.
    pub fn wrong_length(&self, len: u64) -> Option<u64> {
        let is_wrong = !self.lengths.is_empty() && !self.lengths.iter().any(|law| law.allows(len));
        is_wrong.then(|| self.lengths.iter().map(SizeDist::max).max().unwrap_or(0))
    }

    /// Returns the length that every member has at least; 0 where that is not known.
    pub fn least(&self) -> u64 {
        self.lengths.iter().map(SizeDist::min).min().unwrap_or(0)
    }
}

//! Which names of a tree are there, as far as the operations of this process tell. What was never
//! begun, or failed, is no work for those that come later; names that another process makes are
//! taken as there.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::plan::spec::TreeOf;

/// Of more names in one place no account is kept; all are taken as there.
const KEPT_MAX: u64 = 1 << 32;

/// Names of one kind in the trees of a set: directories, of each tree in the order of their
/// numbers, or entries, of each worker's names, the spare name behind them.
#[derive(Debug)]
pub(super) struct Present(Box<[OnceLock<Kept>]>);

impl Present {
    /// Returns so many trees or workers' names, of which nothing is known yet.
    pub(super) fn of(count: u32) -> Self {
        Self((0..count).map(|_| OnceLock::new()).collect())
    }

    /// Returns how many trees or workers' names there are.
    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Has `count` names be made here from now on.
    pub(super) fn keep(&self, index: u64, count: u64) {
        if count <= KEPT_MAX {
            self.0[index as usize].get_or_init(|| Kept::new(count));
        }
    }

    /// Returns the names of a tree or worker.
    #[inline]
    pub(super) fn at(&self, index: u64) -> Names<'_> {
        Names(self.0[index as usize].get())
    }

    /// Has the names of a tree or worker, `count` of them, be those that others have told of, and
    /// forgets what was known.
    pub(super) fn replace(&self, index: u64, count: u64, told: &[&Told]) {
        self.keep(index, count);
        let Some(kept) = self.0[index as usize].get() else { return };
        kept.begun.iter().chain(&kept.made).for_each(|word| word.store(0, Ordering::Relaxed));
        for Told { made, begun } in told {
            made.iter().cloned().for_each(|names| set(&kept.made, names));
            begun.iter().cloned().for_each(|names| set(&kept.begun, names));
        }
    }
}

/// Which names of a tree or worker are there, in rows of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Names that are there.
    pub made: Vec<Range<u64>>,
    /// Names that may be there: the operation that makes them has begun.
    pub begun: Vec<Range<u64>>,
}

impl Told {
    /// Tells whether all of the names are among so many, each once and in order.
    pub(super) fn is_within(&self, count: u64) -> bool {
        let are_good = |rows: &[Range<u64>]| {
            let mut before = 0;
            rows.iter().all(|row| {
                let is_good = before <= row.start && row.start <= row.end && row.end <= count;
                before = row.end;
                is_good
            })
        };
        are_good(&self.made) && are_good(&self.begun)
    }
}

/// Entries that lie in the directories of a tree.
#[derive(Debug)]
pub(super) struct Inside {
    pub(super) shape: TreeOf,
    /// By how many workers a tree's number is ahead of that of the names in it.
    pub(super) tree_ahead: u32,
    pub(super) entries: Arc<Present>,
}

impl Inside {
    /// Tells whether an entry of a directory may be there.
    pub(super) fn may_be_in(&self, tree: u64, workers: u64, node: u64) -> bool {
        let Self { shape, tree_ahead, entries } = self;
        let first = shape.first_with_entries();
        let Some(number) = node.checked_sub(first) else { return false };
        let own = number * shape.entries..(number + 1) * shape.entries;
        let spare = shape.entries_count().unwrap_or(0);
        let spare = spare..spare + u64::from(number == 0);
        let names = match (shape.per_worker, shape.shared_names) {
            (_, true) => 0..1,
            (true, _) => {
                let names = (tree + workers - u64::from(*tree_ahead) % workers) % workers;
                names..names + 1
            }
            (false, _) => 0..entries.count(),
        };
        names
            .map(|names| entries.at(names))
            .any(|names| names.may_have(own.clone()) || names.may_have(spare.clone()))
    }
}

/// One bit for each name.
#[derive(Debug)]
struct Kept {
    /// Whether the name may be there: the operation that makes it has begun.
    begun: Box<[AtomicU64]>,
    /// Whether it is there: the operation succeeded.
    made: Box<[AtomicU64]>,
}

impl Kept {
    fn new(count: u64) -> Self {
        let words = count.div_ceil(64) as usize;
        // SAFETY: zero is a valid AtomicU64. Zeroed memory of this size is mapped when it is
        // touched, so that it costs what is used of it.
        let zeroed = || unsafe { Box::<[AtomicU64]>::new_zeroed_slice(words).assume_init() };
        Self { begun: zeroed(), made: zeroed() }
    }
}

/// The names in one place; nothing where other processes make them. Workers may share them, and one
/// stage sees what the one before left: its operations have all ended.
#[derive(Clone, Copy)]
pub(super) struct Names<'a>(Option<&'a Kept>);

impl Names<'_> {
    /// Takes note that a name is about to be made.
    pub(super) fn begin(self, name: u64) {
        if let Some(kept) = self.0 {
            kept.begun[word(name)].fetch_or(bit(name), Ordering::Relaxed);
        }
    }

    /// Takes note that a name is there, which had begun.
    pub(super) fn is_made(self, name: u64) {
        if let Some(kept) = self.0 {
            kept.made[word(name)].fetch_or(bit(name), Ordering::Relaxed);
        }
    }

    /// Takes note that a name is there no more.
    pub(super) fn is_gone(self, name: u64) {
        if let Some(kept) = self.0 {
            kept.begun[word(name)].fetch_and(!bit(name), Ordering::Relaxed);
            kept.made[word(name)].fetch_and(!bit(name), Ordering::Relaxed);
        }
    }

    /// Tells whether a name is there.
    #[inline]
    pub(super) fn has(self, name: u64) -> bool {
        self.0.is_none_or(|kept| kept.made[word(name)].load(Ordering::Relaxed) & bit(name) != 0)
    }

    /// Tells whether a name can be given to something: nothing is known to have it.
    pub(super) fn is_free(self, name: u64) -> bool {
        self.0.is_none() || !self.has(name)
    }

    /// Returns which are there, for others; `None` where no account is kept.
    pub(super) fn told(self) -> Option<Told> {
        self.0.map(|kept| Told { made: rows(&kept.made), begun: rows(&kept.begun) })
    }

    /// Tells whether one of the names may be there.
    pub(super) fn may_have(self, names: Range<u64>) -> bool {
        let Some(kept) = self.0 else { return false };
        names.clone().next().is_some_and(|first| {
            let words = &kept.begun[word(first)..=word(names.end - 1)];
            let last = words.len() - 1;
            words.iter().enumerate().any(|(index, word)| {
                let mut found = word.load(Ordering::Relaxed);
                if index == 0 {
                    found &= u64::MAX << (first % 64);
                }
                if index == last {
                    found &= u64::MAX >> (63 - (names.end - 1) % 64);
                }
                found != 0
            })
        })
    }
}

/// Returns the rows of bits that are set.
fn rows(words: &[AtomicU64]) -> Vec<Range<u64>> {
    let mut rows: Vec<Range<u64>> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let (mut left, first) = (word.load(Ordering::Relaxed), index as u64 * 64);
        while left != 0 {
            let start = u64::from(left.trailing_zeros());
            let len = u64::from((left >> start).trailing_ones());
            match rows.last_mut() {
                Some(last) if last.end == first + start => last.end += len,
                _ => rows.push(first + start..first + start + len),
            }
            // All 64 are no number of bits to shift by.
            left &= u64::MAX.checked_shl((start + len) as u32).unwrap_or(0);
        }
    }
    rows
}

/// Sets the bits of names.
fn set(words: &[AtomicU64], names: Range<u64>) {
    let mut name = names.start;
    while name < names.end {
        let end = ((name / 64 + 1) * 64).min(names.end);
        let bits = u64::MAX >> (64 - (end - name)) << (name % 64);
        words[word(name)].fetch_or(bits, Ordering::Relaxed);
        name = end;
    }
}

const fn word(name: u64) -> usize {
    (name / 64) as usize
}

const fn bit(name: u64) -> u64 {
    1 << (name % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_there_once_it_is_made_until_it_is_gone() {
        let present = Present::of(2);
        assert!(present.at(1).has(70), "another process may have made it");
        present.keep(1, 130);
        let names = present.at(1);
        assert!(!names.has(70) && names.is_free(70));
        names.begin(70);
        assert!(!names.has(70));
        assert!(names.may_have(70..71) && names.may_have(0..130));
        assert!(!names.may_have(0..70) && !names.may_have(71..130) && !names.may_have(70..70));
        names.is_made(70);
        assert!(present.at(1).has(70) && !names.is_free(70));
        names.is_gone(70);
        assert!(!names.has(70) && !names.may_have(0..130));
    }

    #[test]
    fn what_one_tells_another_knows() {
        let (here, there) = (Present::of(1), Present::of(1));
        here.keep(0, 300);
        assert!(there.at(0).told().is_none(), "nothing was made there");
        let made = [0..3, 63..65, 100..228, 299..300];
        for name in made.iter().cloned().flatten() {
            here.at(0).begin(name);
            here.at(0).is_made(name);
        }
        here.at(0).begin(250);
        let told = here.at(0).told().unwrap();
        assert_eq!(told.made, made);
        assert_eq!(told.begun, [0..3, 63..65, 100..228, 250..251, 299..300]);
        assert!(told.is_within(300) && !told.is_within(299));
        there.keep(0, 300);
        there.at(0).is_made(5);
        there.replace(0, 300, &[&told]);
        assert_eq!(there.at(0).told().unwrap(), told);
        // Of names that two have made, each has told a part.
        let other = Told { made: vec![5..6, 64..66], begun: Vec::new() };
        there.replace(0, 300, &[&told, &other]);
        let both = there.at(0).told().unwrap();
        assert_eq!(both.made, [0..3, 5..6, 63..66, 100..228, 299..300]);
    }

    #[test]
    fn of_more_names_than_there_is_room_for_all_are_there() {
        let present = Present::of(1);
        present.keep(0, KEPT_MAX + 1);
        let names = present.at(0);
        names.is_gone(5);
        assert!(names.has(5) && names.is_free(5) && !names.may_have(0..KEPT_MAX));
    }
}

//! The pages of a set: prefixes of its keys below which so little lies that one page of a listing
//! holds it.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_model::{ObjectId, WorkerId};

use super::{Held, Members, ObjectSet};

/// There are as many prefixes as this, unless each is of a single member: of a few large ones every
/// worker would list the same.
const PAGES_MIN: usize = 30;

/// The pages of a set as it is when a stage begins.
#[derive(Debug)]
pub struct Pages {
    /// What is there, page after page.
    held: Arc<[Held]>,
    pages: Vec<Page>,
    open: u32,
}

/// The members in one bucket whose keys begin alike.
#[derive(Clone, Debug)]
struct Page {
    group: Group,
    held: Range<usize>,
}

/// What members of one page have in common: the bucket, the owner, and the number without its last
/// digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    bucket: u32,
    owner: WorkerId,
    number: u64,
}

impl Group {
    fn of(set: &ObjectSet, id: ObjectId, open: u32) -> Self {
        let number = id.number() / 10u64.pow(open);
        Self { bucket: set.bucket_of(id), owner: id.owner(), number }
    }
}

impl Pages {
    /// Returns the pages of a set of the run's own, each of at most `page_size` entries: its
    /// prefixes leave open as many last digits of a member's number as they can.
    pub(super) fn new(
        set: &ObjectSet,
        members: &Members,
        (page_size, versions): (u32, bool),
    ) -> Self {
        let held = members.in_order(set, versions);
        let groups = |open: u32| {
            held.chunk_by(move |a, b| Group::of(set, a.id, open) == Group::of(set, b.id, open))
        };
        let is_apt = |open: &u32| {
            groups(*open).count() >= PAGES_MIN
                && groups(*open).all(|group| group.len() <= page_size as usize)
        };
        let open = (1..=page_size.ilog10()).rev().find(is_apt).unwrap_or(0);
        let mut from = 0;
        let page = |group: &[Held]| {
            let held = from..from + group.len();
            from = held.end;
            Page { group: Group::of(set, group[0].id, open), held }
        };
        Self { pages: groups(open).map(page).collect(), held: Arc::clone(&held), open }
    }

    /// Returns how many there are.
    pub fn count(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Returns the prefix of a page.
    pub fn prefix(&self, set: &ObjectSet, page: u32) -> String {
        let Group { owner, number, .. } = self.pages[page as usize].group;
        set.keys.prefix_of_numbers(owner, number, self.open)
    }

    /// Returns the bucket that a page is of.
    pub fn bucket(&self, page: u32) -> u32 {
        self.pages[page as usize].group.bucket
    }

    /// Returns what lies on a page.
    pub(super) fn held(&self, page: u32) -> &[Held] {
        &self.held[self.pages[page as usize].held.clone()]
    }

    /// Tells whether a member lies on a page, if it is there.
    pub(super) fn is_on(&self, set: &ObjectSet, page: u32, id: ObjectId) -> bool {
        Group::of(set, id, self.open) == self.pages[page as usize].group
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Change;
    use crate::{KeyLayout, Keys};

    fn set() -> ObjectSet {
        let layout = KeyLayout::for_run("", "r.1", false);
        ObjectSet::plain("o", Keys::Generated { layout, seed: 7 })
    }

    /// Returns members of which owner n has put `counts[n]`.
    fn put(set: &ObjectSet, counts: &[u64]) -> Members {
        let put = |(owner, count): (u32, &u64)| Change::Put {
            owner,
            law: 0,
            from: 0,
            to: *count,
            failed: Vec::new(),
        };
        Members::default().after(set, (0..).zip(counts).map(put).collect()).unwrap()
    }

    #[test]
    fn every_object_lies_on_one_page_of_at_most_1000() {
        for (counts, prefixes, largest) in [
            (vec![1], 1, 1),
            (vec![70, 70, 70, 69], 279, 1),
            (vec![1_000], 100, 10),
            (vec![1_835, 1_835, 1_834, 1_834, 1_834, 1_834, 1_834, 1_834], 152, 100),
            (vec![50_001, 49_999], 101, 1_000),
        ] {
            let set = set();
            let members = put(&set, &counts);
            let pages = Pages::new(&set, &members, (1_000, false));
            assert_eq!(pages.count(), prefixes, "{counts:?}");
            let sizes: Vec<usize> =
                (0..prefixes as u32).map(|page| pages.held(page).len()).collect();
            assert_eq!(sizes.iter().max(), Some(&largest), "{counts:?}");
            let written: Vec<ObjectId> = members.entries(&set, false).collect();
            assert_eq!(sizes.iter().sum::<usize>(), written.len());
            let mut key = String::new();
            for object in written.iter().step_by(97) {
                set.keys.write(*object, &mut key);
                let is_on = |page: &u32| key.starts_with(&pages.prefix(&set, *page));
                let on: Vec<u32> = (0..prefixes as u32).filter(is_on).collect();
                assert_eq!(on.len(), 1, "{key}");
                assert!(pages.held(on[0]).iter().any(|held| held.id == *object));
                assert!(pages.is_on(&set, on[0], *object));
            }
        }
    }

    #[test]
    fn a_page_has_room_for_all_versions_and_lies_in_one_bucket() {
        let names = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let buckets = crate::objects::SetBuckets::Several(names.into());
        let set = ObjectSet { count: 400, versions: 3, buckets, ..set() };
        // Each of 40 tens of numbers has some in each of the three buckets, four at most.
        let entries = |page_size: u32, versions: bool| {
            let pages = Pages::new(&set, &Members::all(), (page_size, versions));
            let sizes = (0..pages.count() as u32).map(|page| {
                let buckets: Vec<u32> =
                    pages.held(page).iter().map(|held| set.bucket_of(held.id)).collect();
                assert!(buckets.iter().all(|bucket| *bucket == pages.bucket(page)), "{buckets:?}");
                buckets.len()
            });
            let sizes: Vec<usize> = sizes.collect();
            (sizes.len(), sizes.iter().sum::<usize>(), sizes.into_iter().max().unwrap())
        };
        assert_eq!(entries(1_000, false), (120, 400, 4));
        assert_eq!(entries(1_000, true), (120, 1_200, 12));
        assert_eq!(entries(11, true), (400, 1_200, 3));
    }
}

//! The objects of one worker whose operations change them, and which of them have an operation
//! under way: what is being changed is neither read nor changed, what is being read is not changed.

use std::collections::BTreeMap;

use plimsoll_model::ObjectId;

use super::Held;
use super::pick::Picker;
use crate::Random;
use crate::data::VERSIONS;

/// What an operation does to its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Changed,
}

/// How a place in the pool is chosen.
pub(super) type Choosing<'a> = (&'a mut Picker, &'a mut Random);

/// What is under way on an object: so many reads, or [`CHANGING`].
type Readers = u32;

const CHANGING: Readers = Readers::MAX;

/// The worker's own objects, or versions of them. Which one is drawn depends on chance and on what
/// became of operations; on their order in time only where an object that is under way was hit.
///
/// A mix that writes more than it deletes makes it grow for as long as the run lasts, so an object
/// takes the eight bytes of its id, and what only some of them need is kept beside.
pub(super) struct Pool {
    /// Those that are there and those that are being written.
    ids: Vec<ObjectId>,
    /// Their versions, up to the last that is not 0.
    versions: Vec<u32>,
    /// The objects with an operation under way, by position. There are few: one in a closed loop,
    /// at most as many as may be in flight in an open one.
    busy: BTreeMap<usize, Readers>,
    /// Of these, objects that are being changed.
    changing_count: usize,
}

impl Pool {
    pub(super) fn new(all: impl Iterator<Item = Held>) -> Self {
        let (ids, versions) = (Vec::new(), Vec::new());
        let mut pool = Self { ids, versions, busy: BTreeMap::new(), changing_count: 0 };
        all.for_each(|held| pool.push(held));
        pool
    }

    /// Returns how many there are.
    pub(super) fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    /// Tells whether any object can be used in this way.
    pub(super) fn any_free(&self, how: Use) -> bool {
        match how {
            Use::Read => self.changing_count < self.ids.len(),
            Use::Changed => self.busy.len() < self.ids.len(),
        }
    }

    /// Draws an object that can be used in this way; there must be one. Where chance hits a busy
    /// one, the next free one is taken.
    fn draw(&self, (picker, random): Choosing<'_>, how: Use) -> usize {
        let hit = picker.draw_place(self.ids.len() as u64, random) as usize;
        let is_free = |index: &usize| match how {
            Use::Read => self.busy.get(index) != Some(&CHANGING),
            Use::Changed => !self.busy.contains_key(index),
        };
        let mut in_turn = (hit..self.ids.len()).chain(0..hit);
        in_turn.find(is_free).expect("the caller asked whether one is free")
    }

    /// Draws an object to read.
    pub(super) fn read(&mut self, choosing: Choosing<'_>) -> Held {
        let index = self.draw(choosing, Use::Read);
        *self.busy.entry(index).or_insert(0) += 1;
        self.held(index)
    }

    /// Draws an object to overwrite, with its next version.
    pub(super) fn overwrite(&mut self, choosing: Choosing<'_>) -> Held {
        let index = self.draw(choosing, Use::Changed);
        self.change(index);
        let Held { id, version } = self.held(index);
        let next = Held { id, version: (version + 1) % VERSIONS };
        self.set_version(index, next.version);
        next
    }

    /// Adds what is about to be written.
    pub(super) fn write_new(&mut self, held: Held) -> Held {
        self.push(held);
        self.change(self.ids.len() - 1);
        held
    }

    /// Draws an object to delete and drops it.
    pub(super) fn remove(&mut self, choosing: Choosing<'_>) -> Held {
        let index = self.draw(choosing, Use::Changed);
        self.drop_at(index)
    }

    /// Takes note that a read of `held` has ended.
    pub(super) fn was_read(&mut self, held: Held) {
        let Some((index, readers)) = self.under_way(held) else { return };
        match readers {
            1 => self.busy.remove(&index),
            _ => self.busy.insert(index, readers - 1),
        };
    }

    /// Takes note that writing `held` has ended. Where that failed it is not known what is there,
    /// and it is dropped.
    pub(super) fn written(&mut self, held: Held, ok: bool) {
        let Some((index, _)) = self.under_way(held) else { return };
        self.busy.remove(&index);
        self.changing_count -= 1;
        if !ok {
            self.drop_at(index);
        }
    }

    /// Takes note that `held` is not written after all: where it was to overwrite another content,
    /// that one, of version `before`, is still there.
    pub(super) fn unwritten(&mut self, held: Held, before: Option<u32>) {
        let Some((index, _)) = self.under_way(held) else { return };
        self.busy.remove(&index);
        self.changing_count -= 1;
        match before {
            Some(version) => self.set_version(index, version),
            None => _ = self.drop_at(index),
        }
    }

    /// Takes note that `held`, which was drawn to be deleted, is still there.
    pub(super) fn put_back(&mut self, held: Held) {
        self.push(held);
    }

    /// Returns what is there, without what is being changed.
    pub(super) fn settled(&self) -> Vec<Held> {
        let is_settled = |index: &usize| self.busy.get(index) != Some(&CHANGING);
        (0..self.ids.len()).filter(is_settled).map(|index| self.held(index)).collect()
    }

    fn held(&self, index: usize) -> Held {
        Held { id: self.ids[index], version: self.versions.get(index).copied().unwrap_or(0) }
    }

    fn push(&mut self, held: Held) {
        self.ids.push(held.id);
        self.set_version(self.ids.len() - 1, held.version);
    }

    fn set_version(&mut self, index: usize, version: u32) {
        if version > 0 && self.versions.len() <= index {
            // Bound: the ids, which are in memory.
            self.versions.resize(index + 1, 0);
        }
        if let Some(here) = self.versions.get_mut(index) {
            *here = version;
        }
    }

    fn change(&mut self, index: usize) {
        self.busy.insert(index, CHANGING);
        self.changing_count += 1;
    }

    /// Returns where `held` stands and what is under way on it.
    fn under_way(&self, held: Held) -> Option<(usize, Readers)> {
        let mut busy = self.busy.iter().map(|(index, readers)| (*index, *readers));
        busy.find(|(index, _)| self.held(*index) == held)
    }

    /// Drops the object at `index`, which has no operation under way; the last one takes its place.
    fn drop_at(&mut self, index: usize) -> Held {
        debug_assert!(!self.busy.contains_key(&index), "a busy object is never dropped");
        let dropped = self.held(index);
        let moved_from = self.ids.len() - 1;
        self.set_version(index, self.held(moved_from).version);
        self.versions.truncate(moved_from);
        self.ids.swap_remove(index);
        if let Some(readers) = self.busy.remove(&moved_from) {
            self.busy.insert(index, readers);
        }
        dropped
    }

    /// Returns how many bytes it holds beside itself.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.ids.capacity() * size_of::<ObjectId>() + self.versions.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;

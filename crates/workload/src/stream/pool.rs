//! The objects of one worker whose operations change them, and which of them have an operation
//! under way: what is being changed is neither read nor changed, what is being read is not changed.

use plimsoll_model::ObjectId;

use crate::Random;
use crate::data::VERSIONS;

/// An object as it is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) id: ObjectId,
    /// The version that is there or, where it is to be written, the one that will be.
    pub(super) version: u32,
}

impl Held {
    pub(super) const fn new(id: ObjectId) -> Self {
        Self { id, version: 0 }
    }
}

/// What an operation does to its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Changed,
}

/// An object of the pool and what is under way on it: so many reads, or [`CHANGING`].
#[derive(Clone, Copy)]
struct Slot {
    held: Held,
    readers: u32,
}

const CHANGING: u32 = u32::MAX;

/// The worker's own objects, or versions of them. Which one is drawn depends on chance and on what
/// became of operations; on their order in time only where an object that is under way was hit.
pub(super) struct Pool {
    /// Those that are there and those that are being written.
    slots: Vec<Slot>,
    /// The position of the object of each operation under way. It is short: one entry in a closed
    /// loop, at most as many as may be in flight in an open one.
    under_way: Vec<usize>,
    /// Objects with an operation under way.
    busy_count: usize,
    /// Of these, objects that are being changed.
    changing_count: usize,
}

impl Pool {
    pub(super) fn new(all: impl Iterator<Item = Held>) -> Self {
        let slots = all.map(|held| Slot { held, readers: 0 }).collect();
        Self { slots, under_way: Vec::new(), busy_count: 0, changing_count: 0 }
    }

    /// Tells whether any object can be used in this way.
    pub(super) fn any_free(&self, how: Use) -> bool {
        match how {
            Use::Read => self.changing_count < self.slots.len(),
            Use::Changed => self.busy_count < self.slots.len(),
        }
    }

    /// Draws an object that can be used in this way; there must be one. Where chance hits a busy
    /// one, the next free one is taken.
    fn draw(&self, random: &mut Random, how: Use) -> usize {
        let hit = random.below(self.slots.len() as u64) as usize;
        let is_free = |index: &usize| match how {
            Use::Read => self.slots[*index].readers != CHANGING,
            Use::Changed => self.slots[*index].readers == 0,
        };
        let mut in_turn = (hit..self.slots.len()).chain(0..hit);
        in_turn.find(is_free).expect("the caller asked whether one is free")
    }

    /// Draws an object to read.
    pub(super) fn read(&mut self, random: &mut Random) -> Held {
        let index = self.draw(random, Use::Read);
        self.under_way.push(index);
        let slot = &mut self.slots[index];
        self.busy_count += usize::from(slot.readers == 0);
        slot.readers += 1;
        slot.held
    }

    /// Draws an object to overwrite, with its next version.
    pub(super) fn overwrite(&mut self, random: &mut Random) -> Held {
        let index = self.draw(random, Use::Changed);
        self.change(index);
        let held = &mut self.slots[index].held;
        held.version = (held.version + 1) % VERSIONS;
        *held
    }

    /// Adds what is about to be written.
    pub(super) fn write_new(&mut self, held: Held) -> Held {
        self.slots.push(Slot { held, readers: 0 });
        self.change(self.slots.len() - 1);
        held
    }

    /// Draws an object to delete and drops it.
    pub(super) fn remove(&mut self, random: &mut Random) -> Held {
        let index = self.draw(random, Use::Changed);
        self.drop_at(index)
    }

    /// Takes note that a read of `held` has ended.
    pub(super) fn was_read(&mut self, held: Held) {
        let Some(index) = self.release(held) else { return };
        let slot = &mut self.slots[index];
        slot.readers -= 1;
        self.busy_count -= usize::from(slot.readers == 0);
    }

    /// Takes note that writing `held` has ended. Where that failed it is not known what is there,
    /// and it is dropped.
    pub(super) fn written(&mut self, held: Held, ok: bool) {
        let Some(index) = self.release(held) else { return };
        self.slots[index].readers = 0;
        self.busy_count -= 1;
        self.changing_count -= 1;
        if !ok {
            self.drop_at(index);
        }
    }

    fn change(&mut self, index: usize) {
        self.under_way.push(index);
        self.slots[index].readers = CHANGING;
        self.busy_count += 1;
        self.changing_count += 1;
    }

    /// Takes an operation on `held` off those under way and returns where it stands.
    fn release(&mut self, held: Held) -> Option<usize> {
        let entry = self.under_way.iter().position(|index| self.slots[*index].held == held)?;
        Some(self.under_way.swap_remove(entry))
    }

    /// Drops the object at `index`, which has no operation under way; the last one takes its place.
    fn drop_at(&mut self, index: usize) -> Held {
        let dropped = self.slots.swap_remove(index);
        debug_assert!(dropped.readers == 0, "a busy object is never dropped");
        let moved_from = self.slots.len();
        for busy in self.under_way.iter_mut().filter(|busy| **busy == moved_from) {
            *busy = index;
        }
        dropped.held
    }
}

//! Where the workers of a check meet: who asks for what next, and the witness that is told.

use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_driver::DriverError;
use plimsoll_model::{Clock, Moment, WorkerId};
use plimsoll_workload::Random;
use plimsoll_workload::history::{Answer, HistoryOp, KeyNumber, ValueId, Witness};

use super::config::CheckConfig;
use super::content::PIECE_BYTES_MIN;

/// The smallest value; each has at least one stamp of content in every range that is read.
const SIZE_MIN: u64 = PIECE_BYTES_MIN;
/// The largest value is this power of two larger.
const SIZE_SPAN_BITS: f64 = 10.0;
/// A key is given up when so many of its writes may still take effect: they would excuse too much.
const UNSETTLED_MAX: usize = 4;
/// How often a worker looks again at a key that looks wrong.
const LOOKS: u32 = 2;
/// How many entries a listing asks for at a time, where it does not ask for few.
const PAGE_SIZE: u32 = 1_000;
/// Tell the random streams of a check apart from those of a workload.
const CHOICE_DOMAIN: u64 = 0x6368_6563_6b00;
const SIZE_DOMAIN: u64 = CHOICE_DOMAIN + 1;

/// Returns the size of a value: log-uniform from 64 B to 64 KiB, a function of seed and value.
pub(super) fn size_of(seed: u64, value: ValueId) -> u64 {
    let unit = Random::new(seed, SIZE_DOMAIN, value.as_u64()).unit();
    (SIZE_MIN as f64 * (unit * SIZE_SPAN_BITS).exp2()) as u64
}

/// What one worker wants.
pub(super) struct Choices {
    random: Random,
    next_value: u32,
    /// What it wrote or removed last, to be looked at right away.
    fresh: Option<KeyNumber>,
    /// A key that looked wrong, and how often to look again.
    suspicion: Option<(KeyNumber, u32)>,
}

impl Choices {
    pub(super) fn new(seed: u64, worker: WorkerId) -> Self {
        let random = Random::new(seed, CHOICE_DOMAIN, u64::from(worker.0));
        Self { random, next_value: 0, fresh: None, suspicion: None }
    }
}

/// An operation that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckOp {
    pub(super) op: HistoryOp,
    /// How many entries a listing asks for at a time.
    pub(super) page_size: u32,
    pub(super) begin: Moment,
}

/// A key in use.
struct Slot {
    key: KeyNumber,
    /// The size of what was written to it last, as far as is known; ranges are chosen by it.
    size: u64,
    /// How many workers look at it again; until then nothing is written to it.
    looks: u32,
}

/// The state that all workers share.
pub(super) struct CheckState<'a, W> {
    config: &'a CheckConfig,
    witness: &'a mut W,
    slots: Vec<Slot>,
    keys_count: u32,
    ops_count: u64,
    errors: Vec<DriverError>,
}

/// Returns the state for one worker.
pub(super) fn lock<'a, 'd, W>(
    state: &'a Mutex<CheckState<'d, W>>,
) -> MutexGuard<'a, CheckState<'d, W>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a, W: Witness> CheckState<'a, W> {
    pub(super) fn new(config: &'a CheckConfig, witness: &'a mut W) -> Self {
        let mut state = Self {
            config,
            witness,
            slots: Vec::new(),
            keys_count: 0,
            ops_count: 0,
            errors: Vec::new(),
        };
        for _ in 0..config.keys.max(1) {
            let slot = state.new_slot();
            state.slots.push(slot);
        }
        state
    }

    /// Returns the operations begun, the keys used, and the first error of each class.
    pub(super) fn into_parts(self) -> (u64, u32, Vec<DriverError>) {
        (self.ops_count, self.keys_count, self.errors)
    }

    fn new_slot(&mut self) -> Slot {
        let key = KeyNumber(self.keys_count);
        self.keys_count += 1;
        self.witness.add_key(key);
        Slot { key, size: SIZE_MIN, looks: 0 }
    }

    /// Begins the next operation of a worker; `None` when there have been enough.
    pub(super) fn begin(
        &mut self,
        worker: WorkerId,
        choices: &mut Choices,
        clock: &dyn Clock,
    ) -> Option<CheckOp> {
        if self.config.ops_max.is_some_and(|max| self.ops_count >= max) {
            return None;
        }
        self.ops_count += 1;
        let op = self.choose(worker, choices);
        // Small pages show whether a listing loses keys from one to the next.
        let page_size = match op {
            HistoryOp::List if choices.random.below(2) == 0 => {
                (self.config.keys / 3).clamp(1, PAGE_SIZE)
            }
            _ => PAGE_SIZE,
        };
        // Read here, where no other worker can begin or end: moments and order agree.
        let begin = clock.now();
        self.witness.begin(worker, op, begin);
        Some(CheckOp { op, page_size, begin })
    }

    fn choose(&mut self, worker: WorkerId, choices: &mut Choices) -> HistoryOp {
        if let Some((key, _)) = choices.suspicion {
            return HistoryOp::Get(key, None);
        }
        if let Some(key) = choices.fresh.take()
            && choices.random.below(2) == 0
        {
            return match choices.random.below(6) {
                0..=2 => HistoryOp::Get(key, None),
                3 | 4 => HistoryOp::Stat(key),
                _ if !self.config.lists => HistoryOp::Get(key, None),
                _ => HistoryOp::List,
            };
        }
        let random = &mut choices.random;
        let at = random.below(self.slots.len() as u64) as usize;
        let Slot { key, size, looks } = self.slots[at];
        match random.below(100) {
            0..30 if looks == 0 => {
                let value = ValueId { key, writer: worker, number: choices.next_value };
                choices.next_value += 1;
                let size = size_of(self.config.seed, value);
                HistoryOp::Put(value, size)
            }
            30..46 if looks == 0 => HistoryOp::Delete(key),
            46..52 if self.config.lists => HistoryOp::List,
            52..68 => HistoryOp::Stat(key),
            68..80 => {
                let len = SIZE_MIN + random.below(size - SIZE_MIN + 1);
                HistoryOp::Get(key, Some((random.below(size - len + 1), len)))
            }
            _ => HistoryOp::Get(key, None),
        }
    }

    /// Ends the operation of a worker.
    pub(super) fn end(
        &mut self,
        worker: WorkerId,
        choices: &mut Choices,
        op: HistoryOp,
        answer: &Answer,
        at: Moment,
        error: Option<DriverError>,
    ) {
        let doubtful = self.witness.end(worker, answer, at);
        if let Some(error) = error
            && self.errors.iter().all(|known| known.class != error.class)
        {
            self.errors.push(error);
        }
        if let Some((_, left)) = &mut choices.suspicion {
            *left -= 1;
            if *left == 0 {
                self.leave(choices);
            }
        } else if let Some(doubtful) = doubtful
            && let Some(slot) = self.slot_of(doubtful)
        {
            slot.looks += 1;
            choices.suspicion = Some((doubtful, LOOKS));
        }
        let Some(key) = op.key() else { return };
        if *answer == Answer::Done {
            choices.fresh = Some(key);
        }
        if let (HistoryOp::Put(_, size), Some(slot)) = (op, self.slot_of(key)) {
            slot.size = size;
        }
        if self.witness.unsettled_count(key) >= UNSETTLED_MAX
            && self.keys_count < ValueId::KEYS_MAX
            && let Some(at) = self.slots.iter().position(|slot| slot.key == key)
        {
            self.witness.retire_key(key);
            self.slots[at] = self.new_slot();
        }
    }

    /// Ends what a worker has in mind beyond its next operation.
    pub(super) fn leave(&mut self, choices: &mut Choices) {
        if let Some((key, _)) = choices.suspicion.take()
            && let Some(slot) = self.slot_of(key)
        {
            slot.looks -= 1;
        }
    }

    fn slot_of(&mut self, key: KeyNumber) -> Option<&mut Slot> {
        self.slots.iter_mut().find(|slot| slot.key == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_spread_over_every_power_of_two() {
        let mut counts = [0u32; 10];
        for number in 0..10_000 {
            let value = ValueId { key: KeyNumber(1), writer: WorkerId(2), number };
            let size = size_of(9, value);
            assert!((64..65_536).contains(&size), "{size}");
            counts[(size / 64).ilog2() as usize] += 1;
        }
        // Each of ten equal shares has 1,000 on average with a deviation of 30.
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }
}

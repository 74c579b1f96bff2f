//! The cells of one lane: dense where operations end at present, a few bytes each before.

use super::{Cell, INTERVALS_PER_STRETCH, MICRO, OUTCOMES_MAX};
use crate::bits::{BitReader, BitWriter, apply, difference};

/// How many stretches are open at once. An operation mostly ends in the last of them, and one that
/// crossed its border began in the one before.
const STRETCHES_OPEN: usize = 2;

/// Cells from the origin on.
///
/// A run of days has many: of 144 bytes each for every lane of every thread they would fill the
/// memory. Only the last [`STRETCHES_OPEN`] stretches are kept as they are; what an older one gets
/// afterwards, which is rare, has it unpacked and packed again.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    /// The stretches before the open ones, as [`pack`] wrote them.
    packed: Vec<Box<[u8]>>,
    open: Vec<Cell>,
}

impl Cells {
    /// Returns the number of intervals up to the last one that was asked for.
    fn len(&self) -> usize {
        self.open_first() + self.open.len()
    }

    /// Returns the interval of the first open cell.
    fn open_first(&self) -> usize {
        self.packed.len() * INTERVALS_PER_STRETCH
    }

    /// Changes the cell of an interval.
    #[inline]
    pub(super) fn change(&mut self, interval: usize, change: impl FnOnce(&mut Cell)) {
        let open = interval.checked_sub(self.open_first());
        match open.and_then(|index| self.open.get_mut(index)) {
            Some(cell) => change(cell),
            None => self.change_elsewhere(interval, change),
        }
    }

    #[cold]
    fn change_elsewhere(&mut self, interval: usize, change: impl FnOnce(&mut Cell)) {
        let stretch = interval / INTERVALS_PER_STRETCH;
        if let Some(packed) = self.packed.get_mut(stretch) {
            let mut cells = unpack(packed);
            change(&mut cells[interval % INTERVALS_PER_STRETCH]);
            *packed = pack(&cells);
            return;
        }
        if stretch >= self.packed.len() + STRETCHES_OPEN {
            self.pack_until(stretch + 1 - STRETCHES_OPEN);
        }
        let index = interval - self.open_first();
        if self.open.len() <= index {
            self.open.resize_with(index + 1, Cell::default);
        }
        change(&mut self.open[index]);
    }

    /// Packs what lies before stretch `first`, which becomes the first that is open.
    fn pack_until(&mut self, first: usize) {
        let stretches = first - self.packed.len();
        let cells = self.open.len().min(stretches.saturating_mul(INTERVALS_PER_STRETCH));
        self.packed.extend(self.open[..cells].chunks(INTERVALS_PER_STRETCH).map(pack));
        self.packed.resize(first, Box::default());
        self.open.drain(..cells);
    }

    /// Adds all of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        for (stretch, packed) in other.packed.iter().enumerate() {
            let first = stretch * INTERVALS_PER_STRETCH;
            match self.packed.get_mut(stretch) {
                _ if packed.is_empty() => {}
                Some(mine) if mine.is_empty() => mine.clone_from(packed),
                Some(mine) => {
                    let mut sum = unpack(mine);
                    sum.iter_mut().zip(unpack(packed)).for_each(|(cell, more)| cell.merge(&more));
                    *mine = pack(&sum);
                }
                None => self.add(first, &unpack(packed)),
            }
        }
        self.add(other.open_first(), &other.open);
    }

    fn add(&mut self, first: usize, cells: &[Cell]) {
        for (index, cell) in cells.iter().enumerate() {
            self.change(first + index, |mine| mine.merge(cell));
        }
    }

    /// Returns the cells, of which one stretch at a time is unpacked.
    pub(super) fn iter(&self) -> impl Iterator<Item = Cell> + '_ {
        let packed = self.packed.iter().flat_map(|packed| unpack(packed));
        packed.chain(self.open.iter().copied())
    }

    /// Returns how many bytes it holds beside itself.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        let packed: usize = self.packed.iter().map(|packed| packed.len()).sum();
        self.packed.capacity() * size_of::<Box<[u8]>>()
            + packed
            + self.open.capacity() * size_of::<Cell>()
    }
}

impl PartialEq for Cells {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Cells {}

/// Returns the cells of a stretch, of which the last ones may be missing, as bits: which outcomes
/// there were, and a column for each of these, for bytes and for objects. A stretch in which
/// nothing happened takes none.
///
/// Neighbours are alike, so each number stands as the difference to the one before it; objects as
/// that to the successes, of which most handle one object.
fn pack(cells: &[Cell]) -> Box<[u8]> {
    let outcomes = cells.iter().flat_map(Cell::outcomes).fold(0, |all, which| all | 1 << which);
    let untouched = |cell: &Cell| cell.bytes == 0 && cell.objects_micro == 0;
    if outcomes == 0 && cells.iter().all(untouched) {
        return Box::default();
    }
    let missing = INTERVALS_PER_STRETCH - cells.len();
    let all = || cells.iter().copied().chain(std::iter::repeat_n(Cell::default(), missing));
    let mut writer = BitWriter::default();
    writer.bits(outcomes, OUTCOMES_MAX as u32);
    for outcome in in_mask(outcomes) {
        writer.column(differences(all().map(move |cell| cell.ended[outcome])));
    }
    writer.column(differences(all().map(|cell| cell.bytes)));
    writer.column(all().map(|cell| difference(usual_objects(&cell), cell.objects_micro)));
    writer.finish()
}

/// Returns the cells that [`pack`] packed, all of the stretch.
fn unpack(packed: &[u8]) -> Vec<Cell> {
    let mut cells = vec![Cell::default(); INTERVALS_PER_STRETCH];
    if packed.is_empty() {
        return cells;
    }
    let mut reader = BitReader::new(packed);
    let outcomes = reader.bits(OUTCOMES_MAX as u32);
    for outcome in in_mask(outcomes) {
        sums(&mut reader, &mut cells, |cell| &mut cell.ended[outcome]);
    }
    sums(&mut reader, &mut cells, |cell| &mut cell.bytes);
    let order = reader.order();
    for cell in &mut cells {
        cell.objects_micro = apply(usual_objects(cell), reader.number(order));
    }
    cells
}

/// Reads a column of differences.
fn sums(reader: &mut BitReader<'_>, cells: &mut [Cell], of: impl Fn(&mut Cell) -> &mut u64) {
    let order = reader.order();
    let mut previous = 0;
    for cell in cells {
        previous = apply(previous, reader.number(order));
        *of(cell) = previous;
    }
}

fn differences(numbers: impl Iterator<Item = u64> + Clone) -> impl Iterator<Item = u64> + Clone {
    numbers
        .scan(0, |previous, number| Some(difference(std::mem::replace(previous, number), number)))
}

/// Returns the objects of successes that lie wholly in the cell and handle one object each.
fn usual_objects(cell: &Cell) -> u64 {
    cell.ended[0].wrapping_mul(MICRO)
}

fn in_mask(outcomes: u64) -> impl Iterator<Item = usize> {
    (0..OUTCOMES_MAX).filter(move |outcome| outcomes >> outcome & 1 == 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_cell() -> impl Strategy<Value = Cell> {
        let number = || (any::<u64>(), 0u32..64).prop_map(|(number, shift)| number >> shift);
        let outcomes = prop::collection::vec((0..OUTCOMES_MAX, number()), 0..4);
        (outcomes, number(), number()).prop_map(|(outcomes, bytes, objects_micro)| {
            let mut cell = Cell { bytes, objects_micro, ..Cell::default() };
            outcomes.into_iter().for_each(|(outcome, count)| cell.ended[outcome] = count);
            cell
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn what_is_packed_comes_back(
            mut cells in prop::collection::vec(any_cell(), 0..=INTERVALS_PER_STRETCH),
        ) {
            let packed = pack(&cells);
            cells.resize(INTERVALS_PER_STRETCH, Cell::default());
            prop_assert_eq!(unpack(&packed), cells);
        }
    }

    #[test]
    fn a_stretch_in_which_nothing_happened_takes_no_byte() {
        assert_eq!(pack(&[Cell::default(); INTERVALS_PER_STRETCH]).len(), 0);
        // Cells of the end of time do not have those before them made.
        let mut cells = Cells::default();
        cells.change(7, |cell| cell.bytes = 1);
        cells.change(INTERVALS_PER_STRETCH << 20, |cell| cell.bytes = 2);
        assert!(cells.held_bytes() < 40 << 20, "{}", cells.held_bytes());
        assert_eq!(cells.len(), (INTERVALS_PER_STRETCH << 20) + 1);
        let mut other = Cells::default();
        other.change(7, |cell| cell.bytes = 3);
        cells.merge(&other);
        assert_eq!(cells.iter().take(9).map(|cell| cell.bytes).sum::<u64>(), 4);
    }
}

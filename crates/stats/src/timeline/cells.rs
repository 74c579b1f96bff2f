//! The cells of a stretch as bits: a few bytes for each.

use super::{Cell, INTERVALS_PER_STRETCH, MICRO, OUTCOMES_MAX};
use crate::bits::{BitReader, BitWriter, apply, difference};

/// The cells of one stretch at rest.
///
/// A run of days has many: of 144 bytes each for every lane of every thread they would fill the
/// memory. What a stretch at rest gets afterwards, which is rare, has it unpacked and packed again.
/// Equal cells are equal byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PackedCells(Box<[u8]>);

impl PackedCells {
    /// Returns the cells of a stretch, of which the last ones may be missing.
    pub(super) fn of(cells: &[Cell]) -> Self {
        Self(pack(cells))
    }

    /// Returns the cells whose [`Self::bytes`] these are.
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Tells whether nothing happened in any of them.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all cells of the stretch.
    pub(super) fn unpack(&self) -> Vec<Cell> {
        unpack(&self.0)
    }

    /// Changes one cell.
    pub(super) fn change(&mut self, index: usize, change: impl FnOnce(&mut Cell)) {
        let mut cells = self.unpack();
        change(&mut cells[index]);
        *self = Self::of(&cells);
    }

    /// Adds all of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            self.clone_from(other);
            return;
        }
        let mut sum = self.unpack();
        sum.iter_mut().zip(other.unpack()).for_each(|(cell, more)| cell.merge(&more));
        *self = Self::of(&sum);
    }
}

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
    // Bound: the intervals of one stretch.
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
            let packed = PackedCells::of(&cells);
            cells.resize(INTERVALS_PER_STRETCH, Cell::default());
            prop_assert_eq!(packed.unpack(), cells);
            prop_assert_eq!(PackedCells::from_bytes(packed.bytes()), packed);
        }
    }

    #[test]
    fn a_stretch_in_which_nothing_happened_takes_no_byte() {
        assert_eq!(PackedCells::of(&[Cell::default(); INTERVALS_PER_STRETCH]).bytes().len(), 0);
    }
}

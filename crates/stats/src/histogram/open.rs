//! The histogram of what ends at present: quick to count into, and no larger than its values are
//! wide apart.

use super::{BINS_PER_DOUBLING, CompactHistogram, Histogram, Moments, bin_number, pack};

const BLOCK: usize = BINS_PER_DOUBLING as usize;
/// The blocks up to that of [`Histogram::VALUE_MAX`].
const BLOCKS: usize = bin_number(Histogram::VALUE_MAX) as usize / BLOCK + 1;

/// Counts of the same bins as [`Histogram`] has, in blocks of a doubling each that are made when
/// they are needed.
///
/// A plain row of bins reaches from 0 to the largest value, 8 KiB for each doubling between, so one
/// slow operation would make that of every lane larger for good.
#[derive(Clone, Debug)]
pub(crate) struct OpenHistogram {
    blocks: [Option<Box<[u32; BLOCK]>>; BLOCKS],
    moments: Moments,
}

impl Default for OpenHistogram {
    fn default() -> Self {
        Self { blocks: [const { None }; BLOCKS], moments: Moments::EMPTY }
    }
}

impl OpenHistogram {
    /// Adds one value; there must be room for it.
    #[inline]
    pub(crate) fn record(&mut self, value: u64) {
        debug_assert!(!self.is_full());
        let value = value.min(Histogram::VALUE_MAX);
        let number = bin_number(value) as usize;
        let block = &mut self.blocks[number / BLOCK];
        block.get_or_insert_with(|| Box::new([0; BLOCK]))[number % BLOCK] += 1;
        self.moments.add(value);
    }

    /// Tells whether a bin may hold all that it can.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.moments.count >= u64::from(u32::MAX)
    }

    /// Removes all values. Blocks without any are given back, the others are kept for the next.
    pub(crate) fn clear(&mut self) {
        for place in &mut self.blocks {
            match place {
                Some(block) if block.iter().any(|count| *count > 0) => block.fill(0),
                unused => *unused = None,
            }
        }
        self.moments = Moments::EMPTY;
    }

    /// Returns the compact form.
    pub(crate) fn compact(&self) -> CompactHistogram {
        let mut bins = Vec::new();
        for (at, block) in self.blocks.iter().enumerate() {
            let counts = block.iter().flat_map(|block| block.iter()).enumerate();
            let used = counts.filter(|(_, count)| **count > 0);
            bins.extend(used.map(|(bin, count)| ((at * BLOCK + bin) as u64, u64::from(*count))));
        }
        CompactHistogram { bins: pack(&bins), moments: self.moments }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl OpenHistogram {
        fn blocks_count(&self) -> usize {
            self.blocks.iter().flatten().count()
        }
    }

    #[test]
    fn blocks_come_with_values_and_go_without() {
        let mut open = OpenHistogram::default();
        [0, 5, 3_000, 1 << 47, u64::MAX].into_iter().for_each(|value| open.record(value));
        assert_eq!(open.blocks_count(), 3);
        open.clear();
        assert_eq!((open.blocks_count(), open.compact()), (3, CompactHistogram::default()));
        open.record(5);
        open.clear();
        assert_eq!(open.blocks_count(), 1);
    }

    proptest! {
        #[test]
        fn its_compact_form_is_that_of_a_histogram(
            values in prop::collection::vec((any::<u64>(), 0u32..64), 0..60),
        ) {
            let (mut open, mut whole) = (OpenHistogram::default(), Histogram::new());
            for (value, shift) in values {
                open.record(value >> shift);
                whole.record(value >> shift);
            }
            prop_assert_eq!(open.compact(), whole.compact());
        }
    }
}

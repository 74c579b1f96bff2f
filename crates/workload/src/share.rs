//! Which part of something that is counted somebody is given.

use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;

/// A part of what several carry out: those between two marks of so many equal ones.
///
/// Parts that meet at their marks divide any amount without a gap and without an overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    from: u64,
    to: u64,
    of: NonZeroU64,
    /// Which of several parts it is, 0-based; `None`: there are no others.
    part: Option<u32>,
}

impl Share {
    /// All of it.
    pub const WHOLE: Self = Self { from: 0, to: 1, of: NonZeroU64::MIN, part: None };

    /// Cuts the whole into parts as large as their weights say, in their order. `None` where there
    /// is no weight at all.
    pub fn by_weight(weights: &[u32]) -> Option<Vec<Self>> {
        // There are no more than 2^32 parts.
        let of = NonZeroU64::new(weights.iter().map(|weight| u64::from(*weight)).sum())?;
        let mut end = 0;
        let part = |(part, weight): (u32, &u32)| {
            let from = end;
            end += u64::from(*weight);
            Self { from, to: end, of, part: Some(part) }
        };
        Some((0..).zip(weights).map(part).collect())
    }

    /// Returns what the same part has where these are the weights of all; the same as it is where
    /// there are none.
    #[must_use]
    pub fn among(self, weights: Option<&[u32]>) -> Self {
        let (Some(part), Some(weights)) = (self.part, weights) else { return self };
        let shares = Self::by_weight(weights).unwrap_or_default();
        // Who came later has nothing of it.
        let nothing = Self { from: 0, to: 0, of: NonZeroU64::MIN, part: Some(part) };
        shares.get(part as usize).copied().unwrap_or(nothing)
    }

    /// Returns which of so many are in it: each is in one part, and those of a part lie together.
    pub fn of(self, count: u64) -> Range<u64> {
        let at = |mark: u64| {
            let place = u128::from(count) * u128::from(mark) / u128::from(self.of.get());
            u64::try_from(place).expect("no mark lies behind the last")
        };
        at(self.from)..at(self.to)
    }

    /// The same of workers, which are numbered from 0 on.
    pub fn of_workers(self, workers: NonZeroU32) -> Range<u32> {
        let Range { start, end } = self.of(workers.get().into());
        start as u32..end as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_whole_is_all_and_nothing_cannot_be_cut() {
        assert_eq!(Share::WHOLE.of(7), 0..7);
        assert_eq!(Share::by_weight(&[]), None);
        assert_eq!(Share::by_weight(&[0, 0]), None);
        let shares = Share::by_weight(&[u32::MAX, u32::MAX]).unwrap();
        assert_eq!([shares[0].of(10), shares[1].of(u64::MAX)], [0..5, u64::MAX / 2..u64::MAX]);
        let shares = Share::by_weight(&[1, 2, 0, 1]).unwrap();
        let ranges: Vec<Range<u64>> = shares.iter().map(|share| share.of(10)).collect();
        assert_eq!(ranges, [0..2, 2..7, 7..7, 7..10]);
    }

    proptest! {
        #[test]
        fn each_is_in_one_part_and_parts_are_as_large_as_their_weights(
            weights in prop::collection::vec(0_u32..1_000, 1..60),
            count in prop_oneof![0_u64..200, any::<u64>()],
        ) {
            prop_assume!(weights.iter().any(|weight| *weight > 0));
            let sum: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
            let mut end = 0;
            for (share, weight) in Share::by_weight(&weights).unwrap().iter().zip(&weights) {
                let range = share.of(count);
                prop_assert_eq!(range.start, end);
                end = range.end;
                let exact = count as f64 * f64::from(*weight) / sum as f64;
                let len = (range.end - range.start) as f64;
                prop_assert!((len - exact).abs() <= 1.0 + exact * 1e-12, "{} {}", len, exact);
            }
            prop_assert_eq!(end, count);
        }
    }
}

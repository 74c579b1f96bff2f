//! A log-linear histogram of nanoseconds with a relative error of at most 0.1 %, and its compact
//! form.
//!
//! Count, sum, sum of squares, minimum and maximum are kept exactly beside the bins, all as
//! integers, so that merging in any order gives the same value bit for bit.

mod open;

use std::cmp::Ordering;

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::iterators::IterationValue;

pub(crate) use self::open::OpenHistogram;
use crate::bits::{BitReader, BitWriter, Order};

/// Three decimal digits: 2,048 bins per doubling pair, so a bin is at most 1/1,024 of its value
/// wide.
const SIGNIFICANT_DIGITS: u8 = 3;

/// A percentile between 0 and 100.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Percentile(f64);

impl Percentile {
    /// The median.
    pub const P50: Self = Self(50.0);
    /// 90 of 100 are not greater.
    pub const P90: Self = Self(90.0);
    /// 99 of 100 are not greater.
    pub const P99: Self = Self(99.0);
    /// 999 of 1,000 are not greater.
    pub const P99_9: Self = Self(99.9);
    /// None is greater.
    pub const MAX: Self = Self(100.0);

    /// Returns the percentile, or `None` outside 0 to 100.
    pub fn new(percent: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percent).then_some(Self(percent))
    }

    /// Returns it in percent.
    pub fn percent(self) -> f64 {
        self.0
    }

    /// Returns which of so many values in their order it is, counted from 1 (nearest rank).
    ///
    /// The rank is nudged down by less than any true fraction, so that 99.9 % of 1,000 is rank 999
    /// although 99.9 has no exact binary form.
    pub fn rank(self, count: u64) -> u64 {
        ((self.0 / 100.0 * count as f64 * (1.0 - 1e-12)).ceil() as u64).max(1)
    }
}

/// One bin that holds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// The smallest value that falls into it.
    pub lowest: u64,
    /// How many values it holds.
    pub count: u64,
}

/// The exact figures beside the bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moments {
    count: u64,
    sum: u128,
    sum_of_squares: u128,
    min: u64,
    max: u64,
}

impl Moments {
    const EMPTY: Self = Self { count: 0, sum: 0, sum_of_squares: 0, min: u64::MAX, max: 0 };

    fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.sum_of_squares += u128::from(value) * u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn merge(&mut self, other: &Self) {
        // They may be what others claim.
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// So many bins are kept in a list, in 1 KiB. All bins up to a millisecond take 90 KiB, and a run
/// on thousands of hosts has thousands of histograms of a few values each.
const LISTED_MAX: usize = 64;

/// A mergeable histogram of nanosecond values.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// The bins that hold something, lowest first, as long as they are few.
    listed: Vec<Bin>,
    /// All of them from then on.
    dense: Option<Box<Hdr<u64>>>,
    moments: Moments,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.moments == other.moments && self.bins().eq(other.bins())
    }
}

impl Histogram {
    /// Values above this, 78 hours, count as this (the longest time an operation record holds).
    pub const VALUE_MAX: u64 = (1 << 48) - 1;

    /// Returns an empty histogram.
    pub const fn new() -> Self {
        Self { listed: Vec::new(), dense: None, moments: Moments::EMPTY }
    }

    /// Adds one value.
    pub fn record(&mut self, value: u64) {
        let value = value.min(Self::VALUE_MAX);
        self.add(value, 1);
        self.moments.add(value);
    }

    /// Adds the same value so many times, but for the moments.
    fn add(&mut self, value: u64, count: u64) {
        if self.dense.is_none() {
            if count == 0 {
                return;
            }
            let lowest = bin_lowest(bin_number(value));
            match self.listed.binary_search_by_key(&lowest, |bin| bin.lowest) {
                Ok(at) => {
                    self.listed[at].count = self.listed[at].count.saturating_add(count);
                    return;
                }
                Err(at) if self.listed.len() < LISTED_MAX => {
                    self.listed.insert(at, Bin { lowest, count });
                    return;
                }
                Err(_) => {}
            }
        }
        let dense = self.dense();
        dense.record_n(value, count).expect("a resizing histogram takes any value");
    }

    /// Returns all bins; from then on they are kept like that.
    fn dense(&mut self) -> &mut Hdr<u64> {
        let listed = std::mem::take(&mut self.listed);
        self.dense.get_or_insert_with(|| {
            let mut dense =
                Hdr::new(SIGNIFICANT_DIGITS).expect("three digits are a valid precision");
            for Bin { lowest, count } in listed {
                dense.record_n(lowest, count).expect("a resizing histogram takes any value");
            }
            Box::new(dense)
        })
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        match &other.dense {
            Some(theirs) => {
                self.dense().add(&**theirs).expect("a resizing histogram takes any other");
            }
            None => other.listed.iter().for_each(|bin| self.add(bin.lowest, bin.count)),
        }
        self.moments.merge(&other.moments);
    }

    /// Removes all values, keeping the memory.
    pub fn clear(&mut self) {
        self.listed.clear();
        self.dense.iter_mut().for_each(|dense| dense.reset());
        self.moments = Moments::EMPTY;
    }

    /// Returns how many values there are.
    pub fn count(&self) -> u64 {
        self.moments.count
    }

    /// Tells whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.moments.count == 0
    }

    /// Returns the exact sum.
    pub fn sum(&self) -> u128 {
        self.moments.sum
    }

    /// Returns the exact smallest value.
    pub fn min(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.moments.min)
    }

    /// Returns the exact largest value.
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.moments.max)
    }

    /// Returns the exact mean.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.moments.sum as f64 / self.moments.count as f64)
    }

    /// Returns the sample standard deviation (n − 1), `None` for fewer than two values.
    pub fn std_dev(&self) -> Option<f64> {
        let n = self.moments.count;
        if n < 2 {
            return None;
        }
        // n·Σx² − (Σx)² in integers has no cancellation; only the last division rounds.
        let scaled = u128::from(n).checked_mul(self.moments.sum_of_squares);
        let square = self.moments.sum.checked_mul(self.moments.sum);
        let numerator = match (scaled, square) {
            (Some(scaled), Some(square)) => scaled.saturating_sub(square) as f64,
            _ => {
                let sum = self.moments.sum as f64;
                (n as f64 * self.moments.sum_of_squares as f64 - sum * sum).max(0.0)
            }
        };
        Some((numerator / (n as f64 * (n - 1) as f64)).sqrt())
    }

    /// Returns the value that `percentile` percent of the values do not exceed, to 0.1 %.
    pub fn percentile(&self, percentile: Percentile) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        let count = self.moments.count;
        let rank = percentile.rank(count);
        let value = match &self.dense {
            Some(dense) => dense.value_at_quantile((rank as f64 - 0.5) / count as f64),
            None => {
                let mut up_to = 0_u64;
                let holds = |bin: &&Bin| {
                    up_to = up_to.saturating_add(bin.count);
                    up_to >= rank
                };
                let bin = self.listed.iter().find(holds).or(self.listed.last())?;
                bin_lowest(bin_number(bin.lowest) + 1) - 1
            }
        };
        Some(value.clamp(self.moments.min, self.moments.max))
    }

    /// Returns the bins that hold something, lowest first.
    pub fn bins(&self) -> impl Iterator<Item = Bin> + '_ {
        let of_step = |step: IterationValue<u64>| Bin {
            lowest: bin_lowest(bin_number(step.value_iterated_to())),
            count: step.count_since_last_iteration(),
        };
        let dense = self.dense.iter().flat_map(|dense| dense.iter_recorded());
        self.listed.iter().copied().chain(dense.map(of_step))
    }

    /// Returns the compact form.
    pub fn compact(&self) -> CompactHistogram {
        let bins: Vec<_> = self.bins().map(|bin| (bin_number(bin.lowest), bin.count)).collect();
        CompactHistogram { bins: pack(&bins), moments: self.moments }
    }

    /// Adds all values of a compact histogram.
    pub fn merge_compact(&mut self, other: &CompactHistogram) {
        other.bins().for_each(|bin| self.add(bin.lowest, bin.count));
        self.moments.merge(&other.moments);
    }
}

/// A histogram at rest: only the bins that hold something, about a byte each.
///
/// Nothing is lost, and equal histograms are equal byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactHistogram {
    /// As [`pack`] wrote them.
    bins: Box<[u8]>,
    moments: Moments,
}

impl Default for CompactHistogram {
    fn default() -> Self {
        Self { bins: Box::default(), moments: Moments::EMPTY }
    }
}

impl CompactHistogram {
    /// Returns the histogram with these bins and exact figures, or `None` where they contradict
    /// each other.
    pub fn from_parts(
        bins: impl IntoIterator<Item = Bin>,
        sum: u128,
        sum_of_squares: u128,
        min_max: Option<(u64, u64)>,
    ) -> Option<Self> {
        let mut whole = Histogram::new();
        for bin in bins {
            if bin.lowest > Histogram::VALUE_MAX {
                return None;
            }
            whole.add(bin.lowest, bin.count);
            whole.moments.count = whole.moments.count.checked_add(bin.count)?;
        }
        let (min, max) = min_max.unwrap_or((u64::MAX, 0));
        if whole.is_empty() != min_max.is_none() || (min > max && min_max.is_some()) {
            return None;
        }
        whole.moments = Moments { sum, sum_of_squares, min, max, ..whole.moments };
        Some(whole.compact())
    }

    /// Returns the bins that hold something, lowest first.
    pub fn bins(&self) -> impl Iterator<Item = Bin> + '_ {
        self.numbered().map(|(number, count)| Bin { lowest: bin_lowest(number), count })
    }

    /// Returns the bins by number.
    fn numbered(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut reader = BitReader::new(&self.bins);
        let is_empty = self.bins.is_empty();
        let mut left = if is_empty { 0 } else { reader.number(BINS_COUNT_ORDER) };
        let orders = (reader.order(), reader.order());
        let mut next = 0;
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let number = next + reader.number(orders.0);
            next = number + 1;
            Some((number, reader.number(orders.1) + 1))
        })
    }

    /// Returns how many values there are.
    pub fn count(&self) -> u64 {
        self.moments.count
    }

    /// Returns the exact sum.
    pub fn sum(&self) -> u128 {
        self.moments.sum
    }

    /// Returns the exact sum of squares.
    pub fn sum_of_squares(&self) -> u128 {
        self.moments.sum_of_squares
    }

    /// Returns the exact smallest and largest value.
    pub fn min_max(&self) -> Option<(u64, u64)> {
        (self.moments.count > 0).then_some((self.moments.min, self.moments.max))
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        if *self == Self::default() {
            self.clone_from(other);
            return;
        }
        let mut bins = Vec::new();
        let (mut mine, mut theirs) = (self.numbered().peekable(), other.numbered().peekable());
        loop {
            let first = match (mine.peek(), theirs.peek()) {
                (Some((here, _)), Some((there, _))) => here.cmp(there),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let here = if first.is_le() { mine.next() } else { None };
            let there = if first.is_ge() { theirs.next() } else { None };
            let sum =
                here.into_iter().chain(there).reduce(|(at, a), (_, b)| (at, a.saturating_add(b)));
            bins.extend(sum);
        }
        drop((mine, theirs));
        self.bins = pack(&bins);
        self.moments.merge(&other.moments);
    }

    /// Writes it behind what is there.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        let Moments { count, sum, sum_of_squares, min, max } = self.moments;
        for number in [count, min, max, self.bins.len() as u64] {
            to.extend_from_slice(&number.to_le_bytes());
        }
        for number in [sum, sum_of_squares] {
            to.extend_from_slice(&number.to_le_bytes());
        }
        to.extend_from_slice(&self.bins);
    }

    /// Reads what [`Self::write`] wrote off the beginning of `from`; `None` where it is too short.
    pub(crate) fn read(from: &mut &[u8]) -> Option<Self> {
        let mut numbers = [0; 4];
        for number in &mut numbers {
            *number = u64::from_le_bytes(taken(from)?);
        }
        let mut sums = [0; 2];
        for sum in &mut sums {
            *sum = u128::from_le_bytes(taken(from)?);
        }
        let [count, min, max, bytes] = numbers;
        let [sum, sum_of_squares] = sums;
        let bins = from.split_off(..usize::try_from(bytes).ok()?)?.into();
        Some(Self { bins, moments: Moments { count, sum, sum_of_squares, min, max } })
    }

    /// Returns how many bytes it holds beside itself.
    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        self.bins.len()
    }
}

/// Takes the first bytes off.
fn taken<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*first)
}

/// Each doubling from this value on has this many bins; below twice of it every value has its own.
const BINS_PER_DOUBLING: u64 = 1 << BIN_BITS;
const BIN_BITS: u32 = 10;

/// The code of how many bins there are: mostly hundreds.
const BINS_COUNT_ORDER: Order = Order::new(8);

/// Returns bins, given by number and count in rising order, as bits: how many there are, the orders
/// of both columns, and for each bin how many empty ones lie before it and its count less one.
fn pack(bins: &[(u64, u64)]) -> Box<[u8]> {
    if bins.is_empty() {
        return Box::default();
    }
    let empty_before = || {
        let mut next = 0;
        bins.iter().map(move |(number, _)| {
            let empty = number - next;
            next = number + 1;
            empty
        })
    };
    let counts = || bins.iter().map(|(_, count)| count - 1);
    let orders = (Order::of(empty_before()), Order::of(counts()));
    let mut writer = BitWriter::default();
    writer.number(bins.len() as u64, BINS_COUNT_ORDER);
    writer.order(orders.0);
    writer.order(orders.1);
    for (empty, count) in empty_before().zip(counts()) {
        writer.number(empty, orders.0);
        writer.number(count, orders.1);
    }
    writer.finish()
}

/// Returns the number of the bin that `value` falls into, counted from 0.
///
/// Numbers of neighbouring bins differ by 1, so that the compact form takes few bits for most bins.
const fn bin_number(value: u64) -> u64 {
    let doublings = u64::BITS.saturating_sub(value.leading_zeros() + BIN_BITS + 1);
    doublings as u64 * BINS_PER_DOUBLING + (value >> doublings)
}

/// Returns the lowest value of bin `number`.
fn bin_lowest(number: u64) -> u64 {
    let doublings = (number / BINS_PER_DOUBLING).saturating_sub(1).min(63);
    (number - doublings * BINS_PER_DOUBLING) << doublings
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As long as bins are few they are a list, and nobody can tell.
        #[test]
        fn a_list_of_bins_says_the_same_as_all_of_them(
            values in prop::collection::vec(0_u64..=u64::MAX, 1..60),
            bits in 0_u32..64,
            other in prop::collection::vec(0_u64..9_000_000, 0..90),
            percent in 0.0_f64..=100.0,
        ) {
            let values: Vec<u64> = values.iter().map(|value| value >> bits).collect();
            let (listed, mut dense) = (of(&values), Histogram::new());
            dense.dense();
            values.iter().for_each(|value| dense.record(*value));
            prop_assert!(listed.dense.is_none() && dense.dense.is_some());
            let other = of(&other);
            let merged = [&listed, &dense].map(|first| {
                let mut merged = first.clone();
                merged.merge(&other);
                merged
            });
            for [list, all] in [[&listed, &dense], [&merged[0], &merged[1]]] {
                prop_assert_eq!(list, all);
                prop_assert_eq!(list.compact(), all.compact());
                for percent in [0.0, percent, 50.0, 99.9, 100.0] {
                    let percentile = Percentile::new(percent).unwrap();
                    prop_assert_eq!(list.percentile(percentile), all.percentile(percentile));
                }
            }
        }
    }

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|&value| histogram.record(value));
        histogram
    }

    #[test]
    fn an_empty_histogram_knows_nothing() {
        let empty = Histogram::new();
        assert_eq!((empty.min(), empty.max(), empty.mean()), (None, None, None));
        assert_eq!((empty.std_dev(), empty.percentile(Percentile::P50)), (None, None));
        assert_eq!(empty.bins().count(), 0);
    }

    #[test]
    fn figures_of_one_to_a_thousand_microseconds() {
        let values: Vec<u64> = (1..=1_000).map(|us| us * 1_000).collect();
        let histogram = of(&values);
        assert_eq!(histogram.mean(), Some(500_500.0));
        // The sample variance of 1..n is n(n+1)/12.
        let expected = (1_000.0 * 1_001.0 / 12.0_f64).sqrt() * 1_000.0;
        assert!((histogram.std_dev().unwrap() - expected).abs() < 1e-6);
        for (percentile, exact) in [
            (Percentile::P50, 500_000.0),
            (Percentile::P99, 990_000.0),
            (Percentile::P99_9, 999_000.0),
        ] {
            let got = histogram.percentile(percentile).unwrap() as f64;
            assert!((got / exact - 1.0).abs() <= 0.001, "{percentile:?}: {got}");
        }
        let everything = Percentile::new(100.0).unwrap();
        assert_eq!(histogram.percentile(everything), Some(1_000_000));
        assert_eq!(Percentile::new(100.1), None);
    }

    #[test]
    fn bins_are_numbered_without_a_gap() {
        // 1,024 bins a doubling: 2,048 is where bins begin to hold two values, 4,096 four.
        for (number, lowest) in
            [(0, 0), (2_047, 2_047), (2_048, 2_048), (2_049, 2_050), (3_072, 4_096), (3_073, 4_100)]
        {
            assert_eq!((bin_number(lowest), bin_lowest(number)), (number, lowest));
        }
        let histogram = of(&[0, 5, 2_050, 4_099, 1 << 40]);
        for bin in histogram.bins() {
            assert_eq!(bin_lowest(bin_number(bin.lowest)), bin.lowest);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn percentiles_are_within_a_thousandth_of_the_sample(
            mut values in prop::collection::vec(1u64..10_000_000_000, 1..100),
            percent in 0.0f64..=100.0,
        ) {
            let histogram = of(&values);
            values.sort_unstable();
            let rank = percent / 100.0 * values.len() as f64 * (1.0 - 1e-12);
            let rank = rank.ceil().max(1.0) as usize;
            let exact = values[rank - 1] as f64;
            let got = histogram.percentile(Percentile::new(percent).unwrap()).unwrap() as f64;
            prop_assert!((got - exact).abs() <= exact * 0.001 + 1.0, "{} for {}", got, exact);
        }

        #[test]
        fn merging_in_any_order_is_the_whole(
            values in prop::collection::vec(0u64..1 << 50, 0..60),
            shards in 1usize..6,
        ) {
            let whole = of(&values);
            let parts: Vec<Histogram> = (0..shards)
                .map(|shard| values.iter().copied().skip(shard).step_by(shards).collect::<Vec<_>>())
                .map(|values| of(&values))
                .collect();
            let mut forward = Histogram::new();
            parts.iter().for_each(|part| forward.merge(part));
            let mut backward = CompactHistogram::default();
            parts.iter().rev().for_each(|part| backward.merge(&part.compact()));
            prop_assert!(forward == whole);
            prop_assert_eq!(&backward, &whole.compact());
            let rebuilt = CompactHistogram::from_parts(
                backward.bins(), backward.sum(), backward.sum_of_squares(), backward.min_max());
            prop_assert_eq!(rebuilt, Some(backward));
        }
    }
}

//! What several of fio's layouts print, worked out once: rates, shares, spreads and short numbers.

use plimsoll_stats::{Histogram, Percentile};

use super::{FioDirection, FioRecord, FioRun, FioWhose};

/// The upper ends of the cells of latency within one unit.
pub(super) const CELLS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
/// The upper ends of the queue's cells; the last has none.
pub(super) const LEVELS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// The upper ends of the cells of one call; the last has none.
pub(super) const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

impl FioDirection<'_> {
    /// Returns bytes per second.
    pub(super) fn bytes_per_sec(&self) -> u64 {
        per_sec(self.bytes, self.runtime_ms)
    }

    /// Returns operations per second.
    pub(super) fn ops_per_sec(&self) -> f64 {
        if self.runtime_ms == 0 { 0.0 } else { self.ops as f64 * 1e3 / self.runtime_ms as f64 }
    }
}

/// Returns how many there are of `total` in each second, cut to a whole number.
fn per_sec(total: u64, runtime_ms: u64) -> u64 {
    let rate = u128::from(total) * 1000 / u128::from(runtime_ms.max(1));
    if runtime_ms == 0 { 0 } else { u64::try_from(rate).unwrap_or(u64::MAX) }
}

/// Which side of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Read,
    Write,
}

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Read, Self::Write];

    pub(super) fn of<'a, 'r>(self, record: &'r FioRecord<'a>) -> &'r FioDirection<'a> {
        match self {
            Self::Read => &record.read,
            Self::Write => &record.write,
        }
    }
}

/// What the rows of a group come to on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupFigures {
    pub(super) bytes: u64,
    pub(super) bytes_per_sec: u64,
    pub(super) slowest: u64,
    pub(super) fastest: u64,
    pub(super) shortest_ms: u64,
    pub(super) longest_ms: u64,
}

/// Returns the figures of the group that a row is in, `None` where nothing was moved.
pub(super) fn group(run: &FioRun<'_>, of: &FioRecord<'_>, side: Side) -> Option<GroupFigures> {
    // What all clients did is a group already.
    let is_in = |row: &&FioRecord<'_>| match of.whose {
        FioWhose::All => std::ptr::eq(*row, of),
        whose => row.whose == whose && row.group == of.group,
    };
    let rows = run.records.iter().filter(is_in);
    let moved: Vec<_> = rows.map(|row| side.of(row)).filter(|moved| moved.ops > 0).collect();
    let bytes = moved.iter().map(|one| one.bytes).sum();
    let longest_ms = moved.iter().map(|one| one.runtime_ms).max()?;
    let rates = || moved.iter().map(|one| one.bytes_per_sec());
    Some(GroupFigures {
        bytes,
        bytes_per_sec: per_sec(bytes, longest_ms),
        slowest: rates().min()?,
        fastest: rates().max()?,
        shortest_ms: moved.iter().map(|one| one.runtime_ms).min()?,
        longest_ms,
    })
}

/// The spread of some windows; all 0 without any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spread {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) mean: f64,
    /// Of the sample (n − 1).
    pub(super) deviation: f64,
    pub(super) count: usize,
}

impl Spread {
    pub(super) fn of(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self {
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean,
            deviation: if values.len() < 2 { 0.0 } else { (squares / (n - 1.0)).sqrt() },
            count: values.len(),
        }
    }

    /// Returns how much of its group's rate the mean of a row is, in percent, at most 100.
    pub(super) fn share_of(&self, group: Option<GroupFigures>) -> f64 {
        let whole = group.map_or(0.0, |group| group.bytes_per_sec as f64 / 1024.0);
        if whole == 0.0 || self.count == 0 { 0.0 } else { (self.mean * 100.0 / whole).min(100.0) }
    }
}

/// The exact figures of some times in ns; all 0 without any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Times {
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) count: u64,
}

impl Times {
    pub(super) fn of(histogram: Option<&Histogram>) -> Self {
        let Some(histogram) = histogram else { return Self::default() };
        Self {
            min: histogram.min().unwrap_or(0),
            max: histogram.max().unwrap_or(0),
            mean: histogram.mean().unwrap_or(0.0),
            deviation: histogram.std_dev().unwrap_or(0.0),
            count: histogram.count(),
        }
    }
}

/// Returns the percentiles that can be, lowest first, each with its time in ns; none of nothing.
pub(super) fn percentiles(histogram: Option<&Histogram>, wanted: &[f64]) -> Vec<(f64, u64)> {
    let Some(histogram) = histogram else { return Vec::new() };
    let mut wanted: Vec<_> = wanted.iter().filter_map(|&one| Percentile::new(one)).collect();
    wanted.sort_by(|a, b| a.percent().total_cmp(&b.percent()));
    let value = |one: Percentile| Some((one.percent(), histogram.percentile(one)?));
    wanted.into_iter().filter_map(value).collect()
}

/// How much of the latency of reads and writes lies in each cell, in percent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shares {
    pub(super) ns: [f64; 10],
    pub(super) us: [f64; 10],
    /// The last two: up to 2,000 and above.
    pub(super) ms: [f64; 12],
}

impl Shares {
    /// Returns the shares of both sides together.
    pub(super) fn of(record: &FioRecord<'_>) -> Self {
        let mut ends: Vec<u64> = Vec::with_capacity(31);
        for unit in [1, 1_000, 1_000_000] {
            ends.extend(CELLS.iter().map(|end| end * unit));
        }
        ends.push(2_000_000_000);
        let mut counts = [0_u64; 32];
        for histogram in Side::BOTH.iter().filter_map(|side| side.of(record).clat.as_deref()) {
            for bin in histogram.bins() {
                counts[ends.partition_point(|&end| end <= bin.lowest)] += bin.count;
            }
        }
        let share = percents(&counts);
        Self {
            ns: std::array::from_fn(|cell| share[cell]),
            us: std::array::from_fn(|cell| share[10 + cell]),
            ms: std::array::from_fn(|cell| share[20 + cell]),
        }
    }
}

/// Returns how much of the sum each is, in percent; all 0 of nothing.
pub(super) fn percents<const N: usize>(counts: &[u64; N]) -> [f64; N] {
    let total = counts.iter().sum::<u64>().max(1) as f64;
    counts.map(|count| count as f64 * 100.0 / total)
}

/// Returns a number of at most `width` characters without its unit: `5653.4k`, `59.1M`, `2048Ki`.
///
/// The number of decimals is what `width` leaves, and none before the first prefix.
pub(super) fn short(value: u64, width: usize, base: Base) -> String {
    let thousand: u64 = if base == Base::Binary { 1024 } else { 1000 };
    let mut divisor = 1_u64;
    let mut prefixes = base.prefixes().iter();
    let mut prefix = "";
    // A number that rounds up to one digit too many takes the next prefix.
    while digits((value as f64 / divisor as f64).round() as u64) > width {
        let Some(next) = prefixes.next() else { break };
        prefix = next;
        divisor = divisor.saturating_mul(thousand);
    }
    if divisor == 1 {
        return value.to_string();
    }
    let scaled = value as f64 / divisor as f64;
    let decimals = (width - 1).saturating_sub(digits(value / divisor));
    let mut text = format!("{scaled:.decimals$}");
    if decimals > 0 && text.len() > width {
        text = format!("{scaled:.*}", decimals - 1);
    }
    text + prefix
}

fn digits(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// What a prefix stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// Powers of 1,000.
    Decimal,
    /// Powers of 1,024.
    Binary,
}

impl Base {
    fn prefixes(self) -> &'static [&'static str] {
        match self {
            Self::Decimal => &["k", "M", "G", "T", "P", "E"],
            Self::Binary => &["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"],
        }
    }
}

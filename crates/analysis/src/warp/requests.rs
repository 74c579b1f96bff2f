//! Request times, times to first byte and, for several sizes, throughput per request.

use std::collections::HashSet;
use std::time::Duration;

use super::span::Span;
use super::{WarpOp, WarpSource};

/// The requests of one kind that lie wholly inside the span.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpRequests {
    /// How many there are.
    pub considered: usize,
    /// Their times, if all are of one size, or else their rates.
    pub sizes: WarpSizes,
    /// The requests of each source, nothing left out; empty with one source.
    pub by_host: Vec<WarpHostRequests>,
}

/// What is told about requests: it depends on whether all are of one size.
#[derive(Clone, Debug, PartialEq)]
pub enum WarpSizes {
    /// All successes moved the same number of bytes.
    Single(Box<WarpSingleSize>),
    /// They did not.
    Multi(WarpMultiSize),
}

/// Requests of several sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpMultiSize {
    /// The mean size.
    pub bytes_mean: u64,
    /// The classes that hold at least a twentieth of the requests.
    pub classes: Vec<WarpSizeClass>,
}

/// Requests that all moved the same number of bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpSingleSize {
    /// That number.
    pub bytes: u64,
    /// The times of all that are considered; `None` if there are none.
    pub times: Option<WarpAccess>,
    /// The first success per object; `None` unless an object occurs twice.
    pub first_access: Option<WarpAccess>,
    /// The last success per object; `None` unless an object occurs twice.
    pub last_access: Option<WarpAccess>,
}

/// Durations and times to first byte.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpAccess {
    /// Start to end.
    pub durations: WarpTimes,
    /// The times to first byte; `None` if none was recorded.
    pub ttfb: Option<WarpTimes>,
}

impl WarpAccess {
    /// Returns those of some operations; `None` if there are none.
    pub fn of<'a>(ops: impl Iterator<Item = &'a WarpOp<'a>> + Clone) -> Option<Self> {
        let durations = WarpTimes::of(ops.clone().map(WarpOp::duration))?;
        Some(Self { durations, ttfb: WarpTimes::of(ops.filter_map(ttfb)) })
    }
}

/// Sorted times, condensed.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpTimes {
    /// How many there were.
    pub samples: usize,
    /// The mean, rounded down to a nanosecond.
    pub average: Duration,
    /// The standard deviation of a sample.
    pub std_dev: Duration,
    /// The percentiles 0 to 100.
    percentiles: Vec<Duration>,
}

impl WarpTimes {
    fn of(times: impl Iterator<Item = u64>) -> Option<Self> {
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        let n = times.len();
        let sum: u128 = times.iter().map(|ns| u128::from(*ns)).sum();
        let average = (sum / (n > 0).then_some(n as u128)?) as u64;
        let squares: f64 = times.iter().map(|ns| (*ns as f64 - average as f64).powi(2)).sum();
        let variance = if n > 1 { squares / (n - 1) as f64 } else { 0.0 };
        let percentile = |percent| Duration::from_nanos(times[rank(n, percent)]);
        Some(Self {
            samples: n,
            average: Duration::from_nanos(average),
            std_dev: Duration::from_nanos(variance.sqrt() as u64),
            percentiles: (0..=100).map(percentile).collect(),
        })
    }

    /// Returns the value of rank round(n · p), counted from zero; 0 is the least, 100 the greatest.
    pub fn percentile(&self, percent: usize) -> Duration {
        self.percentiles[percent.min(100)]
    }

    /// Returns what is shown of request times: the mean, the percentiles 50, 90 and 99, the least,
    /// the greatest, the deviation.
    pub fn figures(&self) -> [Duration; 7] {
        let [p50, p90, p99, least, greatest] = [50, 90, 99, 0, 100].map(|of| self.percentile(of));
        [self.average, p50, p90, p99, least, greatest, self.std_dev]
    }

    /// Returns what is shown of times to first byte: the mean, the least, the percentiles 25, 50,
    /// 75, 90 and 99, the greatest, the deviation.
    pub fn first_byte_figures(&self) -> [Duration; 9] {
        let [least, p25, p50, p75, p90, p99, greatest] =
            [0, 25, 50, 75, 90, 99, 100].map(|of| self.percentile(of));
        [self.average, least, p25, p50, p75, p90, p99, greatest, self.std_dev]
    }
}

/// Requests of a range of sizes, as bytes per second each.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpSizeClass {
    /// The least size.
    pub bytes_from: u64,
    /// The first size that is too large.
    pub bytes_to: u64,
    /// How many requests, some counted twice when classes were joined.
    pub requests: usize,
    /// The mean size.
    pub bytes_mean: u64,
    /// The mean time of a request.
    pub duration_mean: Duration,
    /// The rates of all.
    pub rates: WarpRates,
    /// The times to first byte; `None` if none was recorded.
    pub ttfb: Option<WarpTimes>,
    /// The first request per object; `None` unless an object occurs twice.
    pub first_access: Option<WarpRates>,
}

/// Bytes per second of requests: all bytes by the sum of all durations, the median, what nine of
/// ten and 99 of 100 requests reach, the fastest, the slowest.
pub type WarpRates = [f64; 6];

fn rates<'a>(ops: impl Iterator<Item = &'a WarpOp<'a>>) -> Option<WarpRates> {
    let per_second = |bytes: f64, ns: u64| bytes / (ns.max(1) as f64 / 1e9);
    let (mut bytes, mut ns, mut rates) = (0.0, 0, Vec::new());
    for op in ops {
        bytes += op.record.bytes as f64;
        ns += op.duration();
        rates.push(per_second(op.record.bytes as f64, op.duration()));
    }
    rates.sort_by(|a, b| b.total_cmp(a));
    let at = |percent| rates[rank(rates.len(), percent)];
    (!rates.is_empty()).then(|| [per_second(bytes, ns), at(50), at(90), at(99), at(0), at(100)])
}

/// The requests of one source, of the whole recording.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpHostRequests {
    /// The source.
    pub source: WarpSource,
    /// How many requests, failed ones too.
    pub requests: usize,
    /// The times of the successes; `None` if there were none.
    pub times: Option<WarpAccess>,
}

impl WarpRequests {
    /// Returns what is told about `successes`, those inside `span` being considered.
    pub(super) fn of(
        successes: &[WarpOp<'_>],
        span: Option<Span>,
        sources: &[(WarpSource, Vec<WarpOp<'_>>)],
    ) -> Self {
        let inside = |op: &&WarpOp<'_>| span.is_some_and(|span| span.holds(op));
        let considered: Vec<WarpOp<'_>> = successes.iter().filter(inside).copied().collect();
        let bytes = successes.first().map_or(0, |op| op.record.bytes);
        let single = successes.iter().all(|op| op.record.bytes == bytes);
        let host = |(source, ops): &(WarpSource, Vec<WarpOp<'_>>)| WarpHostRequests {
            source: *source,
            requests: ops.len(),
            times: WarpAccess::of(ops.iter().filter(|op| op.ok())),
        };
        Self {
            considered: considered.len(),
            sizes: match single {
                true => single_size(successes, &considered, bytes),
                false => WarpSizes::Multi(WarpMultiSize::of(&considered)),
            },
            by_host: sources.iter().map(host).collect(),
        }
    }
}

fn single_size(successes: &[WarpOp<'_>], considered: &[WarpOp<'_>], bytes: u64) -> WarpSizes {
    let first = first_accesses(successes.iter());
    let last = first.as_ref().and_then(|_| first_accesses(successes.iter().rev()));
    WarpSizes::Single(Box::new(WarpSingleSize {
        bytes,
        times: WarpAccess::of(considered.iter()),
        first_access: first.and_then(|ops| WarpAccess::of(ops.into_iter())),
        last_access: last.and_then(|ops| WarpAccess::of(ops.into_iter())),
    }))
}

/// The borders of the size classes: powers of ten up to 100, then 1, 10 and 100 of each unit.
const BORDERS: [u64; 13] = [
    1,
    10,
    100,
    1 << 10,
    10 << 10,
    100 << 10,
    1 << 20,
    10 << 20,
    100 << 20,
    1 << 30,
    10 << 30,
    100 << 30,
    1 << 40,
];

impl WarpMultiSize {
    /// Joins classes until each holds a twentieth of the requests. Extending a class adds all of
    /// the longer range to what is already there, so that requests are counted again: that is how
    /// warp counts.
    pub fn of(considered: &[WarpOp<'_>]) -> Self {
        let sum: u128 = considered.iter().map(|op| u128::from(op.record.bytes)).sum();
        let least = considered.iter().map(|op| op.record.bytes).min().unwrap_or(0);
        let first = least.checked_ilog10().unwrap_or(0) as usize;
        let mut classes = Vec::new();
        let (mut from, mut class) = (BORDERS[first.min(BORDERS.len() - 1)], Vec::new());
        for to in BORDERS.into_iter().skip(first + 1) {
            let fits = |op: &&WarpOp<'_>| (from..to).contains(&op.record.bytes);
            class.extend(considered.iter().filter(fits).copied());
            if class.len() * 20 < considered.len() {
                continue;
            }
            class.sort_by_key(WarpOp::start);
            classes.extend(size_class(from, to, &class));
            (from, class) = (to, Vec::new());
        }
        Self { bytes_mean: (sum / considered.len().max(1) as u128) as u64, classes }
    }
}

fn size_class(from: u64, to: u64, ops: &[WarpOp<'_>]) -> Option<WarpSizeClass> {
    Some(WarpSizeClass {
        bytes_from: from,
        bytes_to: to,
        requests: ops.len(),
        bytes_mean: ops.iter().map(|op| op.record.bytes).sum::<u64>() / ops.len().max(1) as u64,
        duration_mean: WarpTimes::of(ops.iter().map(WarpOp::duration))?.average,
        rates: rates(ops.iter())?,
        ttfb: WarpTimes::of(ops.iter().filter_map(ttfb)),
        first_access: first_accesses(ops.iter()).and_then(|ops| rates(ops.into_iter())),
    })
}

/// Returns the first operation of each object; `None` unless an object occurs twice.
fn first_accesses<'a>(ops: impl Iterator<Item = &'a WarpOp<'a>>) -> Option<Vec<&'a WarpOp<'a>>> {
    let mut seen = HashSet::new();
    let (first, again): (Vec<_>, Vec<_>) = ops.partition(|op| seen.insert(op.record.object));
    (!again.is_empty()).then_some(first)
}

/// Returns the time to first byte as warp has it: an upload's from the last byte of the body on to
/// the end, any other's from the start to the first byte.
fn ttfb(op: &WarpOp<'_>) -> Option<u64> {
    let record = op.record;
    let since = match (record.last_byte_sent, record.first_byte) {
        (Some(sent), _) => record.end.since(sent),
        (None, first_byte) => first_byte?.since(record.start),
    };
    Some(super::ns(since))
}

/// Returns the index of a percentile among `n` sorted samples, of which there are some.
pub fn rank(n: usize, percent: usize) -> usize {
    ((n as f64 * (percent as f64 / 100.0)).round() as usize).min(n - 1)
}

//! The figures of a set of operations, as values for reports and comparisons.

use std::time::Duration;

use plimsoll_model::{ByteRate, ErrorClass, Moment, OpRate};
use plimsoll_stats::{Histogram, Percentile};

/// An operation that was issued later than this after its intended start is late.
pub const LATE_AFTER: Duration = Duration::from_millis(1);

/// How many operations failed, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures([u64; ErrorClass::ALL.len()]);

impl Failures {
    pub(crate) fn add(&mut self, class: ErrorClass) {
        debug_assert!(!class.is_ok());
        self.0[class as usize] += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }

    /// Returns how many failed in all.
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns how many failed with `class`.
    pub fn of(&self, class: ErrorClass) -> u64 {
        self.0[class as usize]
    }

    /// Returns the classes that occurred with their counts, in the order of [`ErrorClass::ALL`].
    pub fn classes(&self) -> impl Iterator<Item = (ErrorClass, u64)> + '_ {
        let all = ErrorClass::ALL.into_iter().map(|class| (class, self.of(class)));
        all.filter(|(_, count)| *count > 0)
    }
}

/// Operations as counted within the measured span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// Started from the span's start on and before its end.
    pub started: u64,
    /// Ended well after the span's start and not after its end.
    pub ok: u64,
    /// Failed after the span's start and not after its end.
    pub failed: Failures,
}

/// Operations of the whole stage, nothing trimmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTotals {
    /// How many did what was asked.
    pub ops_ok: u64,
    /// How many failed.
    pub failed: Failures,
    /// Bytes moved by the successes.
    pub bytes: u64,
    /// Objects handled by the successes.
    pub objects: u64,
    /// The longest latency of a success.
    pub latency_max: Option<Duration>,
    /// How many, failed ones included, were issued more than [`LATE_AFTER`] after their intended
    /// start.
    pub late: u64,
}

/// What successes got done per second; an operation across a border counts with its share by time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Operations.
    pub ops: OpRate,
    /// Objects handled.
    pub objects: OpRate,
    /// Bytes moved.
    pub bytes: ByteRate,
}

/// The rates of one segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentRate {
    /// Where the segment begins.
    pub start: Moment,
    /// Its rates.
    pub rates: Rates,
}

/// Three of the segments in the order of their rate: of bytes where bytes are moved, otherwise of
/// objects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentRates {
    /// The one with the highest rate.
    pub fastest: SegmentRate,
    /// The lower median.
    pub median: SegmentRate,
    /// The one with the lowest rate, 0 when nothing was done in it.
    pub slowest: SegmentRate,
}

/// The distribution of a time, in figures; `None` is unknown for want of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSummary {
    /// How many operations it is taken from.
    pub samples: u64,
    /// The smallest, exactly.
    pub min: Option<Duration>,
    /// The median, from 2 samples on.
    pub p50: Option<Duration>,
    /// From 10 samples on.
    pub p90: Option<Duration>,
    /// From 100 samples on.
    pub p99: Option<Duration>,
    /// From 1,000 samples on.
    pub p99_9: Option<Duration>,
    /// The largest, exactly.
    pub max: Option<Duration>,
    /// The mean, to the nanosecond.
    pub mean: Option<Duration>,
    /// The sample standard deviation (n − 1), from 2 samples on.
    pub std_dev: Option<Duration>,
}

impl TimeSummary {
    /// How many samples p99.9 needs.
    pub const P99_9_SAMPLES_MIN: u64 = 1_000;

    /// Returns the figures of a histogram of nanoseconds.
    pub(crate) fn of(histogram: &Histogram) -> Self {
        let samples = histogram.count();
        // At least one sample has to lie above a percentile, or it is the maximum by another name.
        let percentile = |percentile, samples_min| {
            let value = (samples >= samples_min).then(|| histogram.percentile(percentile));
            value.flatten().map(Duration::from_nanos)
        };
        let rounded = |ns: f64| Duration::from_nanos(ns.round() as u64);
        Self {
            samples,
            min: histogram.min().map(Duration::from_nanos),
            p50: percentile(Percentile::P50, 2),
            p90: percentile(Percentile::P90, 10),
            p99: percentile(Percentile::P99, 100),
            p99_9: percentile(Percentile::P99_9, Self::P99_9_SAMPLES_MIN),
            max: histogram.max().map(Duration::from_nanos),
            mean: histogram.mean().map(rounded),
            std_dev: histogram.std_dev().map(rounded),
        }
    }
}

/// All figures of a set of operations: of one kind, of one endpoint, or of all.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Whether bytes per second mean something here, because a kind among them moves object
    /// content.
    pub moves_bytes: bool,
    /// Counts within the span.
    pub counts: SpanCounts,
    /// Counts of the whole stage.
    pub stage: StageTotals,
    /// Average rates over the span; `None` when the span has no length.
    pub rates: Option<Rates>,
    /// The fastest, median and slowest segment; `None` when the span holds no whole one.
    pub segments: Option<SegmentRates>,
    /// Intended start to end, of the successes that lie wholly inside the span.
    pub latency: TimeSummary,
    /// Start to end, of the same.
    pub service_time: TimeSummary,
    /// Intended start to start, of the same; `None` unless the stage is an open loop.
    pub schedule_delay: Option<TimeSummary>,
    /// Time to first byte, of those of the same that have one.
    pub ttfb: TimeSummary,
}

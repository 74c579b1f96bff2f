//! How much the figures of one run scatter within it: the block bootstrap over its segments.

use std::collections::BTreeSet;
use std::ops::Range;

use plimsoll_stats::{CoarseHistogram, Interval, Percentile, Resamples};

use super::figures::KindFigures;
use super::metric::Metric;
use crate::{KindDetails, SegmentRow, SegmentTimes};

/// No interval is given from fewer segments.
const SEGMENTS_MIN: usize = 10;
/// Neighbouring segments are taken together before there are more cells than this.
const CELLS_MAX: usize = 60;
const RESAMPLES: usize = 1_000;
/// The same run gives the same intervals, always.
const SEED: u64 = 0x706c_696d_736f_6c6c;

/// What is drawn again: segments, or several neighbours together, in the order of time.
pub(crate) struct Noise {
    amounts: Vec<Amounts>,
    latency: Times,
    ttfb: Times,
}

/// What was done in one cell.
#[derive(Clone, Copy, Default)]
struct Amounts {
    seconds: f64,
    ops: f64,
    objects: f64,
    bytes: f64,
    failed: f64,
    ended: f64,
    /// The sum of the latencies whose number is `samples`.
    latency_ns: f64,
    samples: f64,
}

/// The distribution of a time in each cell.
struct Times {
    /// The bins that occur anywhere, lowest first.
    bins: Vec<u64>,
    /// Of each cell, which of the bins hold how many.
    cells: Vec<Vec<(usize, u64)>>,
}

impl Noise {
    /// Returns the cells of one kind, or of several together; `series` is of all of them.
    pub(super) fn of(series: &[SegmentRow], kinds: &[&KindDetails]) -> Option<Self> {
        if series.len() < SEGMENTS_MIN {
            return None;
        }
        let together = series.len().div_ceil(CELLS_MAX);
        let ranges: Vec<Range<usize>> = (0..series.len())
            .step_by(together)
            .map(|from| from..(from + together).min(series.len()))
            .collect();
        let amounts = |range: &Range<usize>| {
            let mut sum = Amounts::default();
            series[range.clone()].iter().for_each(|row| sum.add(row));
            kinds.iter().for_each(|kind| sum.add_times(kind, range));
            sum
        };
        Some(Self {
            amounts: ranges.iter().map(amounts).collect(),
            latency: Times::of(kinds, &ranges, |times| &times.latency),
            ttfb: Times::of(kinds, &ranges, |times| &times.ttfb),
        })
    }

    /// Sets the noise of the figures that are known.
    ///
    /// None is given of the extremes, which drawing again cannot exceed.
    pub(crate) fn fill(&self, figures: &mut KindFigures) {
        let resamples = Resamples::draw(self.amounts.len(), RESAMPLES, SEED);
        let mut set = |metrics: &[Metric], whole: &[Option<f64>], found: &[Option<Interval>]| {
            for ((metric, whole), found) in metrics.iter().zip(whole).zip(found) {
                let noise = found.zip(*whole).zip(figures.value(*metric));
                let noise = noise.and_then(|((found, whole), value)| around(value, whole, found));
                figures.set_noise(*metric, noise);
            }
        };
        let once = vec![1; self.amounts.len()];
        let metrics =
            [Metric::Rate, Metric::Objects, Metric::Throughput, Metric::Mean, Metric::Errors];
        let found = resamples.intervals(|weights| self.averages(weights));
        set(&metrics, &self.averages(&once), &found);

        let metrics = [Metric::P50, Metric::P90, Metric::P99, Metric::P99_9];
        let mut merged = Vec::new();
        let found = resamples.intervals(|weights| self.latency.percentiles(weights, &mut merged));
        set(&metrics, &self.latency.percentiles(&once, &mut merged), &found);

        let metrics = [Metric::TtfbP50, Metric::TtfbP90, Metric::TtfbP99];
        let found = resamples.intervals(|weights| self.ttfb.percentiles(weights, &mut merged));
        set(&metrics, &self.ttfb.percentiles(&once, &mut merged), &found);
    }

    /// Returns rate, objects, throughput, mean latency and errors of cells that count so often.
    fn averages(&self, weights: &[u32]) -> [Option<f64>; 5] {
        let mut sum = Amounts::default();
        for (cell, &times) in self.amounts.iter().zip(weights) {
            sum.merge(cell, f64::from(times));
        }
        let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        [
            ratio(sum.ops, sum.seconds),
            ratio(sum.objects, sum.seconds),
            ratio(sum.bytes, sum.seconds),
            ratio(sum.latency_ns, sum.samples),
            ratio(sum.failed, sum.failed + sum.ended),
        ]
    }
}

/// Returns the interval around a figure of which the cells together give `whole` and the resamples
/// `found`.
///
/// In proportion, as the cells are coarser than the figure: they lack what lies beyond the last
/// whole segment, and their bins are ten times as wide. A figure of 0 has no proportion.
fn around(value: f64, whole: f64, found: Interval) -> Option<Interval> {
    (whole > 0.0).then(|| Interval {
        low: value * (found.low / whole).min(1.0),
        high: value * (found.high / whole).max(1.0),
    })
}

impl Amounts {
    fn add(&mut self, row: &SegmentRow) {
        self.seconds += row.length.as_secs_f64();
        self.ops += row.ops;
        self.objects += row.objects;
        self.bytes += row.bytes as f64;
        self.failed += row.failed.count() as f64;
        self.ended += row.ended as f64;
    }

    fn add_times(&mut self, kind: &KindDetails, range: &Range<usize>) {
        let rows = kind.series.iter().zip(&kind.segment_times);
        for (row, times) in rows.skip(range.start).take(range.len()) {
            let samples = times.latency.count() as f64;
            let mean = row.latency_mean.unwrap_or_default();
            self.latency_ns += mean.as_nanos() as f64 * samples;
            self.samples += samples;
        }
    }

    fn merge(&mut self, other: &Self, times: f64) {
        self.seconds += other.seconds * times;
        self.ops += other.ops * times;
        self.objects += other.objects * times;
        self.bytes += other.bytes * times;
        self.failed += other.failed * times;
        self.ended += other.ended * times;
        self.latency_ns += other.latency_ns * times;
        self.samples += other.samples * times;
    }
}

impl Times {
    fn of(
        kinds: &[&KindDetails],
        ranges: &[Range<usize>],
        which: impl Fn(&SegmentTimes) -> &CoarseHistogram,
    ) -> Self {
        let merged = |range: &Range<usize>| {
            let mut sum = CoarseHistogram::default();
            for kind in kinds {
                let segments = kind.segment_times.iter().skip(range.start).take(range.len());
                segments.for_each(|times| sum.merge(which(times)));
            }
            sum
        };
        let merged: Vec<CoarseHistogram> = ranges.iter().map(merged).collect();
        let bins: BTreeSet<u64> =
            merged.iter().flat_map(CoarseHistogram::bins).map(|bin| bin.lowest).collect();
        let bins: Vec<u64> = bins.into_iter().collect();
        let cells = merged.iter().map(|cell| {
            let number = |lowest| bins.partition_point(|bin| *bin < lowest);
            cell.bins().map(|bin| (number(bin.lowest), bin.count)).collect()
        });
        Self { cells: cells.collect(), bins }
    }

    /// Returns p50, p90, p99 and p99.9 of cells that count so often; `merged` is scratch.
    fn percentiles(&self, weights: &[u32], merged: &mut Vec<u64>) -> [Option<f64>; 4] {
        const ASKED: [Percentile; 4] =
            [Percentile::P50, Percentile::P90, Percentile::P99, Percentile::P99_9];
        merged.clear();
        merged.resize(self.bins.len(), 0);
        for (cell, &times) in self.cells.iter().zip(weights).filter(|(_, times)| **times > 0) {
            cell.iter().for_each(|(bin, count)| merged[*bin] += count * u64::from(times));
        }
        let samples: u64 = merged.iter().sum();
        ASKED.map(|percentile| {
            // The rank is nudged down as in [`plimsoll_stats::Histogram::percentile`].
            let part = percentile.percent() / 100.0;
            let rank = (part * samples as f64 * (1.0 - 1e-12)).ceil().max(1.0) as u64;
            let mut below = 0;
            let found = merged.iter().position(|count| {
                below += count;
                below >= rank
            });
            found.map(|bin| self.bins[bin] as f64)
        })
    }
}

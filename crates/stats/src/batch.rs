//! Batch means: how well a figure of a run is known, although its operations hang together.

use crate::grid::{Grid, Mergeable};
use crate::share::share_by_time;
use crate::trend::{independent, student_t, trend};
use crate::{CompactHistogram, Histogram, Percentile};

/// No interval is given from fewer batches.
pub const BATCHES_MIN: usize = 10;
/// Batches are merged in pairs before there are more.
pub const BATCHES_MAX: usize = 64;
/// How long a batch is at first, and at least.
pub const BATCH_NS_MIN: u64 = 1_000_000_000;

/// An interval is to cover the truth with a probability of 95 %.
const SIGNIFICANCE: f64 = 0.05;
/// Batches whose figures lie no further apart than this are the same: a histogram cannot tell them
/// apart.
pub(crate) const RESOLUTION: f64 = 0.001;
/// Operations are shared between batches in millionths.
const MICRO: u64 = 1_000_000;
const NS_PER_SEC: f64 = 1e9;

/// A figure of which one can ask how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BatchMetric {
    /// Operations per second.
    Rate,
    /// Bytes per second.
    Throughput,
    /// The mean latency.
    MeanLatency,
    /// A percentile of the latency.
    Latency(Percentile),
}

/// What was done in one stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Batch {
    bytes: u64,
    ops_micro: u64,
    /// Latencies of the operations that ended in it.
    latency: CompactHistogram,
}

impl Mergeable for Batch {
    fn merge(&mut self, other: &Self) {
        // They may be what others claim.
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.ops_micro = self.ops_micro.saturating_add(other.ops_micro);
        if other.latency.count() > 0 {
            self.latency.merge(&other.latency);
        }
    }
}

/// Successful operations in batches of equal length that follow one another. Adds up exactly in
/// any order.
#[derive(Clone, Debug)]
pub struct Batches {
    grid: Grid<Batch>,
    /// The batch in which operations end at present keeps a dense histogram.
    open: usize,
    open_latency: Histogram,
}

/// What a batch holds.
#[derive(Clone, Copy, Debug)]
pub struct BatchParts<'a> {
    /// Bytes moved.
    pub bytes: u64,
    /// Operations, in millionths.
    pub ops_micro: u64,
    /// Latencies of those that ended in it.
    pub latency: &'a CompactHistogram,
}

/// A figure with how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceInterval {
    /// The figure of all batches together.
    pub centre: f64,
    /// How far to both sides of it the truth may lie.
    pub half_width: f64,
    /// How many batches it rests on.
    pub batches_count: usize,
    /// How long each of them is.
    pub batch_ns: u64,
}

impl ConfidenceInterval {
    /// Returns the half width in percent of the figure.
    pub fn percent(&self) -> f64 {
        self.half_width / self.centre * 100.0
    }
}

impl Default for Batches {
    fn default() -> Self {
        let grid = Grid::new(BATCH_NS_MIN, BATCHES_MAX);
        Self { grid, open: 0, open_latency: Histogram::new() }
    }
}

impl Batches {
    /// Adds a success from `start_ns` to `end_ns`, counted from the batches' origin.
    pub fn record(&mut self, start_ns: u64, end_ns: u64, latency_ns: u64, bytes: u64) {
        let start_ns = start_ns.min(end_ns);
        let doubled = self.grid.reach(end_ns);
        self.open >>= doubled;
        let batch_ns = self.grid.cell_ns();
        share_by_time(start_ns, end_ns, batch_ns, [bytes, MICRO], |index, [bytes, ops_micro]| {
            let batch = self.grid.cell_mut(index);
            batch.bytes += bytes;
            batch.ops_micro += ops_micro;
        });
        let index = (end_ns / batch_ns) as usize;
        if index != self.open {
            self.close();
            self.open = index;
        }
        self.open_latency.record(latency_ns);
    }

    /// Adds all of `other`, which must have the same origin.
    pub fn merge(&mut self, mut other: Self) {
        self.close();
        other.close();
        self.grid.merge(&other.grid);
        self.open = 0;
    }

    /// Returns the length of its batches, and what each holds.
    pub fn parts(&mut self) -> (u64, impl Iterator<Item = BatchParts<'_>>) {
        self.close();
        let batches = self.grid.cells().iter().map(|batch| BatchParts {
            bytes: batch.bytes,
            ops_micro: batch.ops_micro,
            latency: &batch.latency,
        });
        (self.grid.cell_ns(), batches)
    }

    /// Returns the batches with these parts: of each bytes, millionths of operations, latencies;
    /// `None` where there can be no such batches.
    pub fn from_parts(
        batch_ns: u64,
        batches: impl IntoIterator<Item = (u64, u64, CompactHistogram)>,
    ) -> Option<Self> {
        let batch = |(bytes, ops_micro, latency)| Batch { bytes, ops_micro, latency };
        let batches = batches.into_iter().take(BATCHES_MAX + 1).map(batch).collect();
        let grid = Grid::from_parts(BATCH_NS_MIN, BATCHES_MAX, batch_ns, batches)?;
        Some(Self { grid, ..Self::default() })
    }

    /// Puts the dense histogram at rest.
    fn close(&mut self) {
        if !self.open_latency.is_empty() {
            let latency = self.open_latency.compact();
            self.grid.cell_mut(self.open).latency.merge(&latency);
            self.open_latency.clear();
        }
    }

    /// Returns the 95 % interval of `metric` from the batches that lie wholly between `from_ns` and
    /// `to_ns`; `None` while it cannot be told.
    ///
    /// With m batches, the figure X of all of them together and the figures Xⱼ of each, the half
    /// width is t(97.5 %, m − 1) · √(Σ(Xⱼ − X)² / (m − 1) / m). This is the method of
    /// non-overlapping batch means (A. M. Law, W. D. Kelton, *Simulation Modeling and Analysis*,
    /// 3rd ed. 2000, section 9.5.3) in the form that is called sectioning, in which X is not the
    /// mean of the Xⱼ: no percentile is averaged (M. K. Nakayama, *Confidence Intervals
    /// for Quantiles Using Sectioning When Applying Variance-Reduction Techniques*, ACM TOMACS
    /// 24 (4), 2014).
    ///
    /// The formula holds for batches that are independent and do not drift. So batches are joined
    /// by twos, then by fours, as long as there are at least ten, until von Neumann's ratio finds
    /// them independent; if they rise or fall beyond chance, there is no interval. A batch must
    /// hold enough samples for its percentile to lie below its largest one.
    pub fn interval(
        &mut self,
        metric: BatchMetric,
        from_ns: u64,
        to_ns: u64,
    ) -> Option<ConfidenceInterval> {
        self.close();
        let batch_ns = self.grid.cell_ns();
        let cells = self.grid.cells();
        let last = usize::try_from(to_ns / batch_ns).unwrap_or(usize::MAX).min(cells.len());
        let first = usize::try_from(from_ns.div_ceil(batch_ns)).unwrap_or(usize::MAX).min(last);
        let whole = &cells[first..last];
        let mut scratch = Histogram::new();
        for joined in [1, 2, 4] {
            let count = whole.len() / joined;
            if count < BATCHES_MIN {
                return None;
            }
            // What does not fill a batch is left out at the start, where a run is least settled.
            let used = &whole[whole.len() - count * joined..];
            let joined_ns = batch_ns * joined as u64;
            let row: Option<Vec<f64>> = used
                .chunks_exact(joined)
                .map(|batches| figure(batches, metric, joined_ns, &mut scratch))
                .collect();
            let Some(row) = row else { continue };
            let centre = figure(used, metric, joined_ns * count as u64, &mut scratch)?;
            if centre <= 0.0 {
                return None;
            }
            if !alike(&row, centre) {
                if !independent(&row) {
                    continue;
                }
                if trend(&row) != 0.0 {
                    return None;
                }
            }
            let squares: f64 = row.iter().map(|each| (each - centre).powi(2)).sum();
            let deviation = (squares / (count - 1) as f64 / count as f64).sqrt();
            return Some(ConfidenceInterval {
                centre,
                half_width: student_t(SIGNIFICANCE, count - 1) * deviation,
                batches_count: count,
                batch_ns: joined_ns,
            });
        }
        None
    }
}

/// Tells whether all figures are the same as far as anybody can tell.
fn alike(row: &[f64], centre: f64) -> bool {
    row.iter().all(|each| (each - centre).abs() <= RESOLUTION / 2.0 * centre)
}

/// Returns the figure of some batches together, which last `length_ns`; `None` where there are too
/// few samples for it.
fn figure(
    batches: &[Batch],
    metric: BatchMetric,
    length_ns: u64,
    scratch: &mut Histogram,
) -> Option<f64> {
    let seconds = length_ns as f64 / NS_PER_SEC;
    let sum = |of: fn(&Batch) -> u64| batches.iter().map(of).fold(0, u64::saturating_add);
    let samples = sum(|batch| batch.latency.count());
    match metric {
        BatchMetric::Rate => {
            let micro = sum(|batch| batch.ops_micro);
            Some(micro as f64 / MICRO as f64 / seconds)
        }
        BatchMetric::Throughput => Some(sum(|batch| batch.bytes) as f64 / seconds),
        BatchMetric::MeanLatency => {
            let latencies = batches.iter().map(|batch| batch.latency.sum());
            let sum = latencies.fold(0, u128::saturating_add);
            (samples > 0).then(|| sum as f64 / samples as f64)
        }
        BatchMetric::Latency(percentile) => {
            // As many samples as a report needs to show it: one must be able to lie above it.
            let above = (100.0 - percentile.percent()) / 100.0 * samples as f64;
            if above < 1.0 - 1e-9 {
                return None;
            }
            scratch.clear();
            batches.iter().for_each(|batch| scratch.merge_compact(&batch.latency));
            scratch.percentile(percentile).map(|ns| ns as f64)
        }
    }
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;

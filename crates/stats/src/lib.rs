//! Numbers without a story: histograms, percentiles and time lines that merge exactly.
//!
//! Knows neither what an operation is nor any clock or file.

mod batch;
mod bits;
mod bootstrap;
mod coarse;
mod goodness;
mod grid;
mod histogram;
mod load_line;
mod mser;
mod queues;
mod share;
mod steady;
mod timeline;
mod trend;
mod welch;
mod zipf;

pub use batch::{
    BATCH_NS_MIN, BATCHES_MAX, BATCHES_MIN, BatchMetric, BatchParts, Batches, ConfidenceInterval,
};
pub use bootstrap::Resamples;
pub use coarse::CoarseHistogram;
pub use goodness::KolmogorovSmirnov;
pub use histogram::{Bin, CompactHistogram, Histogram, Percentile};
pub use load_line::{
    Basis, LoadLine, LoadLineGoal, LoadLineSearch, Metastable, PROBE_PARTS, Probe, ProbeCounts,
    ProbePart, ProbeStretch, Step,
};
pub use mser::{WarmUp, mser5};
pub use queues::{mdc_share_over, mg1_share_over, mmc_share_over, mmc_time_over, rate_carried};
pub use steady::{AmountSeries, STEADY_PARTS, STEADY_PARTS_COMPARED, Steady, SteadyRule};
pub use timeline::{
    Cell, INTERVALS_PER_STRETCH, OUTCOMES_MAX, Sample, SeriesView, Stretch, Timeline, Times, Total,
    Totals,
};
pub use welch::{
    Interval, Welch, mean, normal_quantile, runs_to_tell, std_dev, student_t_quantile,
};
pub use zipf::ZipfFit;

//! Numbers without a story: histograms, percentiles and time lines that merge exactly.
//!
//! Knows neither what an operation is nor any clock or file.

mod histogram;
mod timeline;

pub use histogram::{Bin, CompactHistogram, Histogram, Percentile};
pub use timeline::{Cell, INTERVALS_PER_STRETCH, LaneView, OUTCOMES_MAX, Sample, Timeline, Times};

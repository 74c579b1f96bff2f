//! Distributions of times as columns, outlines and curves of percentiles.

use plimsoll_stats::{Histogram, Percentile};

use super::axis::Axis;

/// Columns of a distribution over its axis.
const COLUMNS_MAX: f64 = 120.0;
/// No column is narrower, in decades: ten bins of the histogram, or their borders would show.
const COLUMN_DECADES_MIN: f64 = 0.004_3;
/// Points of a curve of percentiles.
const PERCENTILE_POINTS: u32 = 160;

/// Returns how wide columns over an axis of time are, in decades.
pub(super) fn column_width(x: &Axis) -> f64 {
    ((x.high - x.low) / COLUMNS_MAX).max(COLUMN_DECADES_MIN)
}

/// Returns the left border of each column, as a logarithm, with its share in percent: from the
/// first that holds something to the last.
pub(super) fn columns(histogram: &Histogram, x: &Axis, width: f64) -> Vec<(f64, f64)> {
    let count = ((x.high - x.low) / width).ceil() as usize;
    let mut counts = vec![0; count];
    for bin in histogram.bins() {
        let column = (x.place(bin.lowest as f64) - x.low) / width;
        counts[(column as usize).min(count - 1)] += bin.count;
    }
    let total = histogram.count() as f64;
    let share = |(at, n): (usize, &u64)| (x.low + at as f64 * width, *n as f64 / total * 100.0);
    let first = counts.iter().position(|n| *n > 0).unwrap_or(0);
    let last = counts.iter().rposition(|n| *n > 0).map_or(0, |last| last + 1);
    counts.iter().enumerate().map(share).take(last).skip(first).collect()
}

/// Returns the steps of columns, as values of the axis of time, from zero to zero.
pub(super) fn outline(columns: &[(f64, f64)], width: f64) -> Vec<(f64, Option<f64>)> {
    let value = |place: f64| 10f64.powf(place);
    let steps = columns.iter().flat_map(|(left, share)| {
        [(value(*left), Some(*share)), (value(left + width), Some(*share))]
    });
    let (first, last) = (columns.first(), columns.last());
    let start = first.map(|(left, _)| (value(*left), Some(0.0)));
    let end = last.map(|(left, _)| (value(left + width), Some(0.0)));
    start.into_iter().chain(steps).chain(end).collect()
}

/// Returns percentiles as far as at least one sample lies above, over the decades of the share
/// that lies above.
pub(super) fn curve(histogram: &Histogram) -> Vec<(f64, Option<f64>)> {
    let end = (histogram.count() as f64).log10();
    let point = |step: u32| {
        let place = end * f64::from(step) / f64::from(PERCENTILE_POINTS);
        let percentile = Percentile::new(100.0 * (1.0 - 10f64.powf(-place)))?;
        Some((place, histogram.percentile(percentile).map(|ns| ns as f64)))
    };
    (0..=PERCENTILE_POINTS).filter_map(point).collect()
}

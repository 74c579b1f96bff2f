//! A heat map: how many operations took how long, over time. Columns are stretches of time, rows
//! lie evenly on the logarithmic axis of latency.

use std::ops::Range;

use plimsoll_analysis::SegmentTimes;
use serde_json::{Value, json};

use super::axis::Axis;
use super::colour::SeriesColor;

/// More segments than this share columns.
const COLUMNS_MAX: usize = 150;
/// Rows of a map.
pub(super) const ROWS: usize = 40;
/// How many shades there are; the palest is one operation.
const LEVELS: usize = 8;

/// How often each latency occurred in each stretch of time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Heat {
    color: SeriesColor,
    /// Where the first column begins, and the length of each, in seconds.
    from: f64,
    width: f64,
    /// The counts of each column, the lowest latency first.
    columns: Vec<[u64; ROWS]>,
}

impl Heat {
    /// Returns the map of segments that are `seconds` long each and begin at `from`, in rows of the
    /// upright axis.
    pub(super) fn new(
        color: SeriesColor,
        segments: &[SegmentTimes],
        from: f64,
        seconds: f64,
        y: &Axis,
    ) -> Self {
        let each = segments.len().div_ceil(COLUMNS_MAX).max(1);
        let column = |segments: &[SegmentTimes]| {
            let mut counts = [0; ROWS];
            for bin in segments.iter().flat_map(|of| of.latency.bins()) {
                let part = (y.place(bin.lowest as f64) - y.low) / (y.high - y.low);
                counts[((part * ROWS as f64) as usize).min(ROWS - 1)] += bin.count;
            }
            counts
        };
        let columns = segments.chunks(each).map(column).collect();
        Self { color, from, width: seconds * each as f64, columns }
    }

    fn max(&self) -> u64 {
        self.columns.iter().flatten().copied().max().unwrap_or(0)
    }

    /// Returns the shade of a count, from 1 on; 0 for none.
    fn level(&self, count: u64) -> usize {
        if count == 0 {
            return 0;
        }
        let part = (count as f64).ln() / (self.max().max(2) as f64).ln();
        1 + (part * (LEVELS - 1) as f64).round() as usize
    }

    /// Returns it as an element for a drawing whose axes lie at these pixels.
    pub(super) fn svg(&self, x: &Axis, px: &Range<i32>, py: &Range<i32>) -> String {
        let mut paths = vec![String::new(); LEVELS];
        for (at, column) in self.columns.iter().enumerate() {
            let mut row = 0;
            while row < ROWS {
                let level = self.level(column[row]);
                let alike = column[row..].iter().take_while(|n| self.level(**n) == level).count();
                if level > 0 {
                    // Rows count from the top.
                    let top = ROWS - row - alike;
                    paths[level - 1] += &format!("M{at} {top}h1v{alike}h-1z");
                }
                row += alike;
            }
        }
        let unit = f64::from(px.end - px.start) / (x.high - x.low);
        let (left, length) = (f64::from(px.start) + unit * self.from, unit * self.width);
        let (columns, height) = (self.columns.len(), py.end - py.start);
        let drawn = paths.iter().enumerate().filter(|(_, path)| !path.is_empty());
        let drawn: String =
            drawn.map(|(at, path)| format!("<path class=\"h{}\" d=\"{path}\"/>", at + 1)).collect();
        format!(
            "<svg class=\"heat s{}\" x=\"{left:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{height}\" \
             viewBox=\"0 0 {columns} {ROWS}\" preserveAspectRatio=\"none\">{drawn}</svg>\n",
            self.color.number(),
            py.start,
            length * columns as f64
        )
    }

    /// Returns it for the script: of each column rows and counts by turns.
    pub(super) fn json(&self) -> Value {
        let cells = |column: &[u64; ROWS]| -> Vec<u64> {
            let known = column.iter().enumerate().filter(|(_, count)| **count > 0);
            known.flat_map(|(row, count)| [row as u64, *count]).collect()
        };
        let cells: Vec<_> = self.columns.iter().map(cells).collect();
        json!({
            "color": self.color.number(), "from": self.from, "width": self.width,
            "rows": ROWS, "max": self.max(),
            "cells": cells,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_in_a_cell_and_a_single_one_shows() {
        let mut segments = vec![SegmentTimes::default(); 300];
        for segment in &mut segments {
            (0..100).for_each(|_| segment.latency.record(2_100_000));
        }
        segments[151].latency.record(900_000_000);
        let axis = Axis::log_time(1e6, 1e9);
        let heat = Heat::new(SeriesColor::of_other(0), &segments, 0.0, 1.0, &axis);
        let sum: u64 = heat.columns.iter().flatten().sum();
        assert_eq!((sum, heat.columns.len(), heat.width), (30_001, 150, 2.0));
        // 1 ms to 1 s are three decades in 40 rows: 2.1 ms lie 0.32 decades up, in row 4, and
        // 900 ms 2.95, in the last.
        assert_eq!((heat.columns[75][4], heat.columns[75][ROWS - 1]), (200, 1));
        assert_eq!((heat.level(1), heat.level(200), heat.level(0)), (1, LEVELS, 0));
        let svg = heat.svg(&Axis::log_time(1e6, 1e9), &(0..300), &(0..100));
        assert!(svg.contains("class=\"h1\" d=\"M75 0h1v1h-1z\""), "{svg}");
        assert_eq!(heat.json()["cells"][75], serde_json::json!([4, 200, ROWS - 1, 1]));
    }
}

//! Charts of latency: over time, as heat maps, and by percentile.

use std::time::Duration;

use plimsoll_analysis::{Figures, KindDetails, SegmentRow, Times};
use plimsoll_model::OpKind;
use plimsoll_stats::{Histogram, Percentile};

use super::axis::{Axis, Reads};
use super::charts::{Chart, Charts, Entry, ends};
use super::colour::SeriesColor;
use super::distribution::{column_width, columns, curve, outline};
use super::heat::Heat;
use super::plot::{HALF, Mark, Plot, Stroke, WIDE};
use super::thin::{POINTS_MAX, thinned};
use crate::LoopModel;
use crate::format::{self, duration};

/// With fewer segments than this a map over time says no more than a histogram.
const HEAT_SEGMENTS_MIN: usize = 3;

/// Which percentile of a segment a line shows.
#[derive(Clone, Copy, PartialEq)]
enum Height {
    P50,
    P99,
}

impl<'a> Charts<'a> {
    /// Returns the charts of the latency of each segment.
    pub(super) fn latency_over_time(&self) -> Vec<Chart> {
        if !self.has_segments() {
            return Vec::new();
        }
        // Two lines for each kind are too many from the third kind on.
        if self.details.kinds.len() <= 2 {
            let heights = [Height::P50, Height::P99];
            return self.latency_chart("chart-latency", "Latency over time", &heights, WIDE);
        }
        let p50 = ("chart-latency", "Median latency over time", [Height::P50]);
        let p99 = ("chart-latency-p99", "99th percentile of the latency over time", [Height::P99]);
        let charts = [p50, p99].into_iter();
        charts
            .flat_map(|(id, title, heights)| self.latency_chart(id, title, &heights, HALF))
            .collect()
    }

    fn latency_chart(
        &self,
        id: &'static str,
        title: &str,
        heights: &[Height],
        size: (u32, u32),
    ) -> Vec<Chart> {
        let (mut marks, mut legend) = (Vec::new(), Vec::new());
        for (kind, height) in
            self.details.kinds.iter().flat_map(|kind| heights.iter().map(move |h| (kind, *h)))
        {
            let Some((of, what)) = line_of(kind, height) else { continue };
            let color = SeriesColor::of_kind(kind.kind);
            let stroke = Stroke::of_line(marks.len());
            let points = kind
                .series
                .iter()
                .enumerate()
                .map(|(at, row)| (self.middle(at), of(row).map(|time| time.as_nanos() as f64)));
            let points = thinned(points.collect(), POINTS_MAX);
            let name = format!("{} {what}", kind.kind.name());
            marks.push(Mark::line(color, stroke, points).named(name.clone()));
            legend.push(Entry::new(color, stroke, name));
        }
        let Some((min, max)) = ends(&marks) else { return Vec::new() };
        let y = Axis::log_time(min, max).titled("latency", Reads::Time);
        vec![self.happened(Chart {
            id: id.to_owned(),
            title: title.to_owned(),
            caption: format!(
                "{} Log axis, {}. A gap: too few operations ended.",
                self.latency_meaning(),
                self.by_segment()
            ),
            legend,
            plot: Plot::new(size, self.time_axis(size), y, marks),
        })]
    }

    /// Returns the heat maps of latency over time, a kind each.
    pub(super) fn heat_maps(&self) -> Vec<Chart> {
        let known = |kind: &&KindDetails| kind.segment_times.len() >= HEAT_SEGMENTS_MIN;
        let kinds: Vec<&KindDetails> = self.details.kinds.iter().filter(known).collect();
        let size = if kinds.len() == 1 { WIDE } else { HALF };
        kinds.into_iter().filter_map(|kind| self.heat_map(kind, size)).collect()
    }

    fn heat_map(&self, kind: &KindDetails, size: (u32, u32)) -> Option<Chart> {
        let bins = || kind.segment_times.iter().flat_map(|of| of.latency.bins());
        let min = bins().map(|bin| bin.lowest).min()?;
        let max = bins().map(|bin| bin.lowest).max()?;
        let y = Axis::log_time(min as f64, max as f64).titled("latency", Reads::Time);
        let color = SeriesColor::of_kind(kind.kind);
        let seconds = self.analysis().segment.as_secs_f64();
        let from = self.start(0);
        let heat = Heat::new(color, &kind.segment_times, from, seconds, &y);
        let plot = Plot::new(size, self.time_axis(size), y, Vec::new());
        Some(
            self.happened(Chart {
                id: format!("chart-heat-{}", kind.kind.name().to_lowercase()),
                title: format!("{} latency over time, each operation", kind.kind.name()),
                caption: "The darker, the more operations took so long then. Both scales are \
                      logarithmic; the palest cell is one operation."
                    .to_owned(),
                legend: vec![Entry::new(color, Stroke::Full, kind.kind.name().to_owned())],
                plot: Plot { heat: Some(heat), ..plot },
            }),
        )
    }

    pub(super) fn latency_meaning(&self) -> &'static str {
        match self.report.row.loop_model {
            LoopModel::Open => {
                "Latency: from the intended start of a success to its end, waiting included."
            }
            LoopModel::Closed | LoopModel::Capped { .. } => {
                "Latency: from the start of a success to its end."
            }
        }
    }

    /// Returns the charts of how latency and TTFB are distributed.
    pub(super) fn distributions(&self) -> Vec<Chart> {
        let latency = Timing {
            name: "Latency",
            axis: "latency",
            meaning: self.latency_meaning(),
            of: |figures| &figures.latency,
        };
        let ttfb = Timing {
            name: "TTFB",
            axis: "time to first byte",
            meaning: "Time to first byte: from the start of a success to the first byte of the \
                      answer; of an upload, from the last byte sent.",
            of: |figures| &figures.ttfb,
        };
        let service_time = Timing {
            name: "Service time",
            axis: "service time",
            meaning: "From the real start of a success to its end, waiting not included.",
            of: |figures| figures.service(),
        };
        let open = self.report.row.loop_model == LoopModel::Open;
        let service_time = Some(&service_time).filter(|_| open);
        let shares = ("chart-latency-distribution", "chart-service-percentiles");
        // Where a heat map shows it, over time too, a histogram says nothing more.
        let has_heat = !self.heat_maps().is_empty();
        let histogram = Some(&latency).filter(|_| !has_heat);
        [
            histogram.and_then(|timing| self.histogram(shares.0, timing)),
            self.percentiles("chart-latency-percentiles", &latency),
            service_time.and_then(|timing| self.percentiles(shares.1, timing)),
            self.percentiles("chart-ttfb-percentiles", &ttfb),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Returns the histogram of each kind that has samples enough.
    fn known(&self, timing: &Timing, samples_min: u64) -> Vec<(OpKind, &'a Histogram)> {
        let all = self.analysis().kinds.iter();
        let all = all
            .filter_map(|kind| Some((kind.kind, (timing.of)(&kind.figures).histogram.as_deref()?)));
        all.filter(|(_, histogram)| histogram.count() >= samples_min).collect()
    }

    fn histogram(&self, id: &'static str, timing: &Timing) -> Option<Chart> {
        let known = self.known(timing, 1);
        let min = known.iter().filter_map(|(_, histogram)| histogram.min()).min()?;
        let max = known.iter().filter_map(|(_, histogram)| histogram.max()).max()?;
        let x = Axis::log_time(min as f64, max as f64);
        let width = column_width(&x);
        let shares: Vec<_> =
            known.iter().map(|(kind, histogram)| (*kind, columns(histogram, &x, width))).collect();
        let highest = shares.iter().flat_map(|(_, shares)| shares).map(|(_, share)| *share);
        let y = Axis::from_zero(highest.fold(0.0, f64::max));
        let mut marks = Vec::new();
        for (index, (kind, columns)) in shares.iter().enumerate() {
            let (outline, color) = (outline(columns, width), SeriesColor::of_kind(*kind));
            for stroke in [Stroke::Shade, Stroke::of_line(index)] {
                marks.push(Mark::line(color, stroke, outline.iter().copied()));
            }
        }
        let entry = |(index, (kind, histogram)): (usize, &(OpKind, &Histogram))| {
            let p50 = percentile(histogram, Percentile::P50, 2);
            Entry::of_kind(*kind, index, format!("{}, p50 {p50}", kind.name()))
        };
        let percent = (10f64.powf(width) - 1.0) * 100.0;
        Some(Chart {
            id: id.to_owned(),
            title: format!("{} distribution, % of the operations", timing.name),
            caption: format!(
                "{} Share of the operations of each kind, in columns {percent:.1} % wide on a log \
                 axis.",
                timing.meaning
            ),
            legend: known.iter().enumerate().map(entry).collect(),
            plot: Plot::new(HALF, x.titled(timing.axis, Reads::Time), y, marks),
        })
    }

    fn percentiles(&self, id: &'static str, timing: &Timing) -> Option<Chart> {
        // Below ten samples there is hardly a curve.
        let known = self.known(timing, 10);
        let samples = known.iter().map(|(_, histogram)| histogram.count()).max()?;
        let line = |(index, (kind, histogram)): (usize, &(OpKind, &Histogram))| {
            let stroke = Stroke::of_line(index);
            Mark::line(SeriesColor::of_kind(*kind), stroke, curve(histogram)).named(kind.name())
        };
        let marks: Vec<_> = known.iter().enumerate().map(line).collect();
        let (min, max) = ends(&marks)?;
        let entry = |(index, (kind, histogram)): (usize, &(OpKind, &Histogram))| {
            let p99 = percentile(histogram, Percentile::P99, 100);
            Entry::of_kind(*kind, index, format!("{}, p99 {p99}", kind.name()))
        };
        let share = "operations that took no longer";
        let x = Axis::inverse_percentile(samples).titled(share, Reads::Share);
        let y = Axis::log_time(min, max).titled(timing.axis, Reads::Time);
        Some(Chart {
            id: id.to_owned(),
            title: format!("{} by percentile", timing.name),
            caption: format!(
                "{} So many percent of the operations took no longer. Log axes, the level one of \
                 the share above.",
                timing.meaning
            ),
            legend: known.iter().enumerate().map(entry).collect(),
            plot: Plot::new(HALF, x, y, marks),
        })
    }
}

/// A time of which there is a distribution.
struct Timing {
    name: &'static str,
    /// What stands beside its axis.
    axis: &'static str,
    meaning: &'static str,
    of: fn(&Figures) -> &Times,
}

/// Returns a percentile as text, unknown when there are too few samples.
fn percentile(histogram: &Histogram, percentile: Percentile, samples_min: u64) -> String {
    let enough = histogram.count() >= samples_min;
    let value = enough.then(|| histogram.percentile(percentile)).flatten();
    format::known(value, |ns| duration(Duration::from_nanos(ns)))
}

type TimeOf = fn(&SegmentRow) -> Option<Duration>;

/// Returns what shows a kind's latency at that height, and its name; the mean, once, where no
/// segment has a percentile.
fn line_of(kind: &KindDetails, height: Height) -> Option<(TimeOf, &'static str)> {
    let known = |of: TimeOf| kind.series.iter().any(|row| of(row).is_some());
    let p50: TimeOf = |row| row.latency_p50;
    let p99: TimeOf = |row| row.latency_p99;
    let mean: TimeOf = |row| row.latency_mean;
    match height {
        Height::P50 if known(p50) => Some((p50, "p50")),
        Height::P50 => known(mean).then_some((mean, "mean")),
        Height::P99 => known(p99).then_some((p99, "p99")),
    }
}

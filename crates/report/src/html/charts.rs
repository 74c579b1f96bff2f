//! The charts of a report: what is drawn, in which colour, and what its caption says.

use std::time::Duration;

use plimsoll_analysis::{
    EndpointSeries, Figures, KindDetails, RowAnalysis, RowDetails, SegmentRow, SizeClass, Times,
};
use plimsoll_model::{EndpointId, ErrorClass, OpKind};
use plimsoll_stats::{Histogram, Percentile};

use super::axis::{Axis, short};
use super::distribution::{column_width, columns, curve, outline};
use super::marks::Marks;
use super::plot::{HALF, Mark, OTHER_COLORS_COUNT, Plot, SeriesColor, Stroke, WIDE};
use crate::LoopModel;
use crate::format::{self, duration};
use crate::report::RowView;

const MIB: f64 = 1_048_576.0;

/// What a colour stands for.
pub(super) struct Entry {
    pub(super) color: SeriesColor,
    pub(super) stroke: Stroke,
    pub(super) name: String,
}

/// A chart with its words.
pub(super) struct Chart {
    pub(super) id: &'static str,
    pub(super) title: String,
    /// Units, and from which instant to which a time is measured.
    pub(super) caption: String,
    pub(super) legend: Vec<Entry>,
    pub(super) plot: Plot,
}

/// What all charts of a report are drawn from.
pub(super) struct Charts<'a> {
    pub(super) report: RowView<'a>,
    pub(super) details: &'a RowDetails,
}

/// What a segment's rate is of.
#[derive(Clone, Copy, PartialEq)]
enum Measure {
    Bytes,
    Objects,
    Ops,
}

impl Measure {
    fn unit(self) -> &'static str {
        match self {
            Self::Bytes => "MiB/s",
            Self::Objects => "objects/s",
            Self::Ops => "operations/s",
        }
    }

    /// Returns what a segment did per second, in the measure's unit.
    fn rate(self, row: &SegmentRow) -> f64 {
        let amount = match self {
            Self::Bytes => row.bytes as f64 / MIB,
            Self::Objects => row.objects,
            Self::Ops => row.ops,
        };
        amount / row.length.as_secs_f64()
    }

    fn average(self, figures: &Figures) -> Option<String> {
        let rates = figures.rates?;
        Some(match self {
            Self::Bytes => format::byte_rate(rates.bytes),
            Self::Objects => format::object_rate(rates.objects),
            Self::Ops => format::op_rate(rates.ops),
        })
    }
}

/// Which percentile of a segment a line shows.
#[derive(Clone, Copy, PartialEq)]
enum Height {
    P50,
    P99,
}

impl<'a> Charts<'a> {
    fn analysis(&self) -> &'a RowAnalysis {
        &self.report.row.analysis
    }

    fn has_segments(&self) -> bool {
        self.analysis().segments_count > 0 && !self.details.kinds.is_empty()
    }

    /// Returns the charts of rates over time.
    pub(super) fn rates(&self) -> Vec<Chart> {
        if !self.has_segments() {
            return Vec::new();
        }
        let measure = self.measure();
        let mut charts = vec![self.rate_of_kinds("chart-throughput", "Throughput", measure)];
        if measure != Measure::Ops {
            charts.push(self.rate_of_kinds("chart-operations", "Rate", Measure::Ops));
        }
        charts
    }

    /// Returns the chart of what each host did; none where there is only one.
    pub(super) fn hosts(&self) -> Vec<Chart> {
        let shown = self.has_segments().then(|| self.rate_of_hosts(self.measure()));
        shown.flatten().into_iter().collect()
    }

    /// Returns what throughput is counted in: bytes where they move.
    fn measure(&self) -> Measure {
        let differs = |figures: &Figures| figures.stage.objects != figures.stage.ops_ok;
        if self.analysis().total.moves_bytes {
            Measure::Bytes
        } else if self.analysis().kinds.iter().any(|kind| differs(&kind.figures)) {
            Measure::Objects
        } else {
            Measure::Ops
        }
    }

    fn rate_of_kinds(&self, id: &'static str, title: &str, measure: Measure) -> Chart {
        let shown = |kind: &&KindDetails| measure != Measure::Bytes || kind.kind.moves_bytes();
        let lines = self.details.kinds.iter().filter(shown).map(|kind| {
            let figures = self.analysis().kinds.iter().find(|of| of.kind == kind.kind);
            let average = figures.and_then(|of| measure.average(&of.figures));
            let average = average.map_or(String::new(), |rate| format!(", {rate} on average"));
            let name = format!("{}{average}", kind.kind.name());
            let rates = kind.series.iter().map(|row| measure.rate(row)).collect();
            (SeriesColor::of_kind(kind.kind), name, rates)
        });
        self.rate_chart(id, format!("{title} over time"), measure, lines.collect())
    }

    /// Returns the chart of what each host did; `None` where there is only one.
    fn rate_of_hosts(&self, measure: Measure) -> Option<Chart> {
        let mut hosts: Vec<(EndpointId, Vec<f64>)> = Vec::new();
        for EndpointSeries { endpoint, series } in
            self.details.kinds.iter().flat_map(|kind| &kind.endpoints)
        {
            let rates = series.iter().map(|row| measure.rate(row));
            match hosts.iter_mut().find(|(known, _)| known == endpoint) {
                Some((_, sums)) => sums.iter_mut().zip(rates).for_each(|(sum, rate)| *sum += rate),
                None => hosts.push((*endpoint, rates.collect())),
            }
        }
        if hosts.len() < 2 {
            return None;
        }
        let count = hosts.len();
        // With more hosts than colours the slowest and the fastest are worth seeing.
        hosts.sort_by(|(_, a), (_, b)| a.iter().sum::<f64>().total_cmp(&b.iter().sum::<f64>()));
        if count > OTHER_COLORS_COUNT {
            hosts.drain(OTHER_COLORS_COUNT / 2..count - OTHER_COLORS_COUNT / 2);
        }
        hosts.sort_by_key(|(endpoint, _)| *endpoint);
        let lines = hosts.into_iter().enumerate().map(|(index, (endpoint, rates))| {
            (SeriesColor::of_other(index), self.report.endpoint(endpoint), rates)
        });
        let title = match count {
            ..=OTHER_COLORS_COUNT => "Each host over time".to_owned(),
            _ => format!("The slowest and fastest of {count} hosts over time"),
        };
        Some(self.rate_chart("chart-hosts", title, measure, lines.collect()))
    }

    fn rate_chart(
        &self,
        id: &'static str,
        title: String,
        measure: Measure,
        lines: Vec<(SeriesColor, String, Vec<f64>)>,
    ) -> Chart {
        let max = lines.iter().flat_map(|(.., rates)| rates).copied().fold(0.0, f64::max);
        let mark = |(color, _, rates): &(SeriesColor, String, Vec<f64>)| {
            let points = rates.iter().enumerate().map(|(at, rate)| (self.middle(at), Some(*rate)));
            Mark::line(*color, Stroke::Solid, points)
        };
        let mut marks = lines.iter().map(mark).collect();
        let entry = |(color, name, _)| Entry { color, stroke: Stroke::Solid, name };
        let mut legend = lines.into_iter().map(entry).collect();
        self.happened().draw(&mut marks, &mut legend);
        Chart {
            id,
            title: format!("{title}, {}", measure.unit()),
            caption: format!(
                "Successes only, {}. An operation across a border gives each side its share by \
                 time.",
                self.by_segment()
            ),
            plot: Plot { size: WIDE, x: self.time_axis(WIDE), y: Axis::from_zero(max), marks },
            legend,
        }
    }

    /// Returns what is marked on charts over time.
    fn happened(&self) -> Marks {
        let analysis = self.analysis();
        let seconds = analysis.segment.as_secs_f64() * analysis.segments_count as f64;
        Marks::of(&self.report, analysis.span.start, seconds)
    }

    /// Returns the axis of the time since the span began, as far as whole segments go.
    fn time_axis(&self, size: (u32, u32)) -> Axis {
        let analysis = self.analysis();
        let steps_max = if size == WIDE { 10.0 } else { 5.0 };
        Axis::seconds(analysis.segment.mul_f64(analysis.segments_count as f64), steps_max)
    }

    /// Returns the middle of a segment in seconds since the span began.
    fn middle(&self, index: usize) -> f64 {
        self.analysis().segment.as_secs_f64() * (index as f64 + 0.5)
    }

    fn by_segment(&self) -> String {
        // Not broken between number and unit.
        let segment = short(&duration(self.analysis().segment)).replace(' ', "\u{a0}");
        format!("in segments of {segment}; the time is that since the measured span began")
    }

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
            let dashed = height == Height::P99 && heights.len() > 1;
            let stroke = if dashed { Stroke::Dashed } else { Stroke::Solid };
            let points = kind
                .series
                .iter()
                .enumerate()
                .map(|(at, row)| (self.middle(at), of(row).map(|time| time.as_nanos() as f64)));
            marks.push(Mark::line(color, stroke, points));
            legend.push(Entry { color, stroke, name: format!("{} {what}", kind.kind.name()) });
        }
        let Some((min, max)) = ends(&marks) else { return Vec::new() };
        self.happened().draw(&mut marks, &mut legend);
        vec![Chart {
            id,
            title: title.to_owned(),
            caption: format!(
                "{} Log axis, {}. A gap: too few operations ended.",
                self.latency_meaning(),
                self.by_segment()
            ),
            legend,
            plot: Plot { size, x: self.time_axis(size), y: Axis::log_time(min, max), marks },
        }]
    }

    fn latency_meaning(&self) -> &'static str {
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
            meaning: self.latency_meaning(),
            of: |figures| &figures.latency,
        };
        let ttfb = Timing {
            name: "TTFB",
            meaning: "Time to first byte: from the start of a success to the first byte of the \
                      answer; of an upload, from the last byte sent.",
            of: |figures| &figures.ttfb,
        };
        let service_time = Timing {
            name: "Service time",
            meaning: "From the real start of a success to its end, waiting not included.",
            of: |figures| figures.service(),
        };
        let open = self.report.row.loop_model == LoopModel::Open;
        let service_time = Some(&service_time).filter(|_| open);
        let (shares, levels) = ("chart-service-distribution", "chart-service-percentiles");
        [
            self.histogram("chart-latency-distribution", &latency),
            self.percentiles("chart-latency-percentiles", &latency),
            service_time.and_then(|timing| self.histogram(shares, timing)),
            service_time.and_then(|timing| self.percentiles(levels, timing)),
            self.histogram("chart-ttfb-distribution", &ttfb),
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
        let outline = |(kind, columns): &(OpKind, Vec<(f64, f64)>)| {
            let outline = outline(columns, width);
            [Stroke::Shade, Stroke::Solid].map(|stroke| {
                Mark::line(SeriesColor::of_kind(*kind), stroke, outline.iter().copied())
            })
        };
        let marks = shares.iter().flat_map(outline).collect();
        let entry = |(kind, histogram): &(OpKind, &Histogram)| {
            let p50 = percentile(histogram, Percentile::P50, 2);
            Entry::of_kind(*kind, format!("{}, p50 {p50}", kind.name()))
        };
        let percent = (10f64.powf(width) - 1.0) * 100.0;
        Some(Chart {
            id,
            title: format!("{} distribution, % of the operations", timing.name),
            caption: format!(
                "{} Share of the operations of each kind, in columns {percent:.1} % wide on a log \
                 axis.",
                timing.meaning
            ),
            legend: known.iter().map(entry).collect(),
            plot: Plot { size: HALF, x, y, marks },
        })
    }

    fn percentiles(&self, id: &'static str, timing: &Timing) -> Option<Chart> {
        // Below ten samples there is hardly a curve.
        let known = self.known(timing, 10);
        let samples = known.iter().map(|(_, histogram)| histogram.count()).max()?;
        let line = |(kind, histogram): &(OpKind, &Histogram)| {
            Mark::line(SeriesColor::of_kind(*kind), Stroke::Solid, curve(histogram))
        };
        let marks: Vec<_> = known.iter().map(line).collect();
        let (min, max) = ends(&marks)?;
        let entry = |(kind, histogram): &(OpKind, &Histogram)| {
            let p99 = percentile(histogram, Percentile::P99, 100);
            Entry::of_kind(*kind, format!("{}, p99 {p99}", kind.name()))
        };
        let x = Axis::inverse_percentile(samples);
        let y = Axis::log_time(min, max);
        Some(Chart {
            id,
            title: format!("{} by percentile", timing.name),
            caption: format!(
                "{} So many percent of the operations took no longer. Log axes, the level one of \
                 the share above.",
                timing.meaning
            ),
            legend: known.iter().map(entry).collect(),
            plot: Plot { size: HALF, x, y, marks },
        })
    }

    /// Returns the charts by class of size; none where all are of one class.
    pub(super) fn sizes(&self) -> Vec<Chart> {
        let mut classes: Vec<(u64, u64)> = Vec::new();
        for class in self.details.kinds.iter().flat_map(|kind| &kind.sizes) {
            classes.push((class.bytes_min, class.bytes_max));
        }
        classes.sort_unstable();
        classes.dedup();
        if classes.len() < 2 {
            return Vec::new();
        }
        let p50 = |class: &SizeClass| class.latency.p50.map(|time| time.as_nanos() as f64);
        let p99 = |class: &SizeClass| class.latency.p99.map(|time| time.as_nanos() as f64);
        let rate = |class: &SizeClass| class.rate.average.map(|rate| rate / MIB);
        let latency = SizeChart {
            id: "chart-size-latency",
            title: "Latency by size",
            caption: format!("{} Log axis.", self.latency_meaning()),
            lines: &[("p50", Stroke::Solid, &p50), ("p99", Stroke::Dashed, &p99)],
        };
        let throughput = SizeChart {
            id: "chart-size-throughput",
            title: "Throughput of an operation by size, MiB/s",
            caption:
                "While an operation runs: all bytes of a class over all its latencies. Log axis."
                    .to_owned(),
            lines: &[("", Stroke::Solid, &rate)],
        };
        let time_axis: &dyn Fn(f64, f64) -> Axis = &|min, max| Axis::log_time(min, max);
        let rate_axis: &dyn Fn(f64, f64) -> Axis =
            &|min, max| Axis::log(min, max, |value| short(&format::number(value)));
        [(latency, time_axis), (throughput, rate_axis)]
            .into_iter()
            .filter_map(|(chart, axis)| self.size_chart(&classes, chart, axis))
            .collect()
    }

    fn size_chart(
        &self,
        classes: &[(u64, u64)],
        chart: SizeChart<'_>,
        axis: impl Fn(f64, f64) -> Axis,
    ) -> Option<Chart> {
        let (mut marks, mut legend) = (Vec::new(), Vec::new());
        for kind in self.details.kinds.iter().filter(|kind| !kind.sizes.is_empty()) {
            for (name, stroke, of) in chart.lines {
                let color = SeriesColor::of_kind(kind.kind);
                let value = |(min, _): &(u64, u64)| {
                    let class = kind.sizes.iter().find(|class| class.bytes_min == *min);
                    class.and_then(of)
                };
                let points = classes.iter().enumerate();
                let points = points.map(|(at, class)| (at as f64, value(class)));
                marks.push(Mark { dots: true, ..Mark::line(color, *stroke, points) });
                let name = format!("{} {name}", kind.kind.name()).trim_end().to_owned();
                legend.push(Entry { color, stroke: *stroke, name });
            }
        }
        let (min, max) = ends(&marks)?;
        // About eight labels: with more classes every so many has one.
        let every = classes.len().div_ceil(8);
        let labels = classes.iter().enumerate().map(|(at, (min, _))| match at % every {
            0 => format!("≥ {}", size(*min)),
            _ => String::new(),
        });
        Some(Chart {
            id: chart.id,
            title: chart.title.to_owned(),
            caption: format!("{} Each class of size reaches to twice its smallest.", chart.caption),
            legend,
            plot: Plot { size: HALF, x: Axis::steps(labels), y: axis(min, max), marks },
        })
    }

    /// Returns the chart of failures over time by class; none without failures.
    pub(super) fn errors(&self) -> Vec<Chart> {
        let series = &self.details.series;
        let classes = ErrorClass::ALL.into_iter().filter(|class| !class.is_ok());
        let of = |class| series.iter().map(move |row| row.failed.of(class)).collect();
        let counts: Vec<(ErrorClass, Vec<u64>)> = classes.map(|class| (class, of(class))).collect();
        let counts: Vec<_> =
            counts.into_iter().filter(|(_, counts)| counts.iter().any(|n| *n > 0)).collect();
        if counts.is_empty() || !self.has_segments() {
            return Vec::new();
        }
        let seconds = self.analysis().segment.as_secs_f64();
        let mut base = vec![0.0; series.len()];
        let (mut marks, mut legend) = (Vec::new(), Vec::new());
        for (index, (class, counts)) in counts.iter().enumerate() {
            let top = base.iter().zip(counts).map(|(base, n)| base + *n as f64 / seconds);
            let top: Vec<f64> = top.collect();
            // Along the top, and back along the bottom.
            let corners = |heights: &[f64]| -> Vec<(f64, Option<f64>)> {
                let each = heights.iter().enumerate();
                let corners = each.flat_map(|(at, height)| {
                    let at = at as f64;
                    [(at * seconds, Some(*height)), ((at + 1.0) * seconds, Some(*height))]
                });
                corners.collect()
            };
            let points = corners(&top).into_iter().chain(corners(&base).into_iter().rev());
            // The first colour is that of the first host.
            let color = SeriesColor::of_other(index + 1);
            marks.push(Mark::line(color, Stroke::Full, points));
            legend.push(Entry { color, stroke: Stroke::Full, name: class.name().to_owned() });
            base = top;
        }
        let max = base.into_iter().fold(0.0, f64::max);
        self.happened().draw(&mut marks, &mut legend);
        vec![Chart {
            id: "chart-errors",
            title: "Failures over time by class, operations/s".to_owned(),
            caption: format!(
                "One class on the other, each failure where it was known, {}.",
                self.by_segment()
            ),
            legend,
            plot: Plot { size: WIDE, x: self.time_axis(WIDE), y: Axis::from_zero(max), marks },
        }]
    }
}

impl Entry {
    fn of_kind(kind: OpKind, name: String) -> Self {
        Self { color: SeriesColor::of_kind(kind), stroke: Stroke::Solid, name }
    }
}

/// A time of which there is a distribution.
struct Timing {
    name: &'static str,
    meaning: &'static str,
    of: fn(&Figures) -> &Times,
}

/// Returns a percentile as text, unknown when there are too few samples.
fn percentile(histogram: &Histogram, percentile: Percentile, samples_min: u64) -> String {
    let enough = histogram.count() >= samples_min;
    let value = enough.then(|| histogram.percentile(percentile)).flatten();
    format::known(value, |ns| duration(Duration::from_nanos(ns)))
}

/// A line by class of size: its name, its look, its value.
type SizeLine<'a> = (&'a str, Stroke, &'a dyn Fn(&SizeClass) -> Option<f64>);

/// What is special in a chart by class of size.
struct SizeChart<'a> {
    id: &'static str,
    title: &'static str,
    caption: String,
    lines: &'a [SizeLine<'a>],
}

/// Returns a size as short as it can be.
pub(super) fn size(bytes: u64) -> String {
    short(&format::bytes(bytes))
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

/// Returns the smallest and the largest value of all marks.
fn ends(marks: &[Mark]) -> Option<(f64, f64)> {
    let values = || marks.iter().flat_map(|mark| &mark.points).filter_map(|(_, value)| *value);
    let min = values().min_by(f64::total_cmp)?;
    Some((min, values().max_by(f64::total_cmp)?))
}

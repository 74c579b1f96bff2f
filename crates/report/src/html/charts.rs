//! The charts of a report: what is drawn, in which colour, and what its caption says.

use std::time::Duration;

use plimsoll_analysis::{
    EndpointSeries, Figures, KindDetails, RowAnalysis, RowDetails, SegmentRow,
};
use plimsoll_model::{EndpointId, ErrorClass, Moment, OpKind};

use super::axis::{Axis, Reads, short};
use super::colour::{OTHER_COLORS_COUNT, SeriesColor};
use super::marks::Marks;
use super::plot::{Mark, Plot, Stroke, WIDE};
use super::thin::{POINTS_MAX, Point, thinned};
use crate::format::{self, duration};
use crate::report::RowView;

pub(super) const MIB: f64 = 1_048_576.0;

/// What a colour stands for.
pub(super) struct Entry {
    pub(super) color: SeriesColor,
    pub(super) stroke: Stroke,
    pub(super) name: String,
    /// Whether it is of what is marked over the whole height, and not of a line.
    pub(super) is_mark: bool,
}

/// A chart with its words.
pub(super) struct Chart {
    pub(super) id: String,
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
    /// Where the axes of time begin.
    origin: Moment,
    /// How many seconds later they end.
    seconds: f64,
    /// What they are called.
    time: &'static str,
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

    /// Returns an axis from 0 of what is counted, in its unit.
    fn axis(self, max: f64) -> Axis {
        let title = match self {
            Self::Bytes => "throughput, MiB/s",
            Self::Objects => "objects/s",
            Self::Ops => "operations/s",
        };
        Axis::from_zero(max).titled(title, Reads::Number(self.unit()))
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

impl<'a> Charts<'a> {
    /// Returns those over the time since the measured span began, to its end.
    pub(super) fn of_span(report: RowView<'a>, details: &'a RowDetails) -> Self {
        let analysis = &report.row.analysis;
        let segments = analysis.segment.mul_f64(analysis.segments_count as f64);
        let seconds = analysis.span.length().max(segments).as_secs_f64();
        let time = "time since the measured span began";
        Self { report, details, origin: analysis.span.start, seconds, time }
    }

    /// Returns those over the time since the stage began, to its end.
    pub(super) fn of_stage(report: RowView<'a>, details: &'a RowDetails) -> Self {
        let origin = report.row.analysis.started;
        let seconds = report.stage.took.as_secs_f64().max(1e-3);
        Self { report, details, origin, seconds, time: "time since the stage began" }
    }

    pub(super) fn analysis(&self) -> &'a RowAnalysis {
        &self.report.row.analysis
    }

    pub(super) fn has_segments(&self) -> bool {
        !self.details.series.is_empty() && !self.details.kinds.is_empty()
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
        let kinds: Vec<&KindDetails> = self.details.kinds.iter().filter(shown).collect();
        let label = |name: &str, figures: Option<&Figures>| {
            let average = figures.and_then(|of| measure.average(of));
            let average = average.map_or(String::new(), |rate| format!(", {rate} on average"));
            format!("{name}{average}")
        };
        let line = |(index, kind): (usize, &&KindDetails)| {
            let figures = self.analysis().kinds.iter().find(|of| of.kind == kind.kind);
            Line {
                color: SeriesColor::of_kind(kind.kind),
                stroke: Stroke::of_line(index),
                name: kind.kind.name().to_owned(),
                label: label(kind.kind.name(), figures.map(|of| &of.figures)),
                points: self.rates_of(&kind.series, measure),
            }
        };
        let mut lines: Vec<Line> = kinds.iter().enumerate().map(line).collect();
        if kinds.len() > 1 {
            lines.push(Line {
                color: SeriesColor::TOTAL,
                stroke: Stroke::Bold,
                name: "total".to_owned(),
                label: label("total", Some(&self.analysis().total)),
                points: self.rates_of(&self.details.series, measure),
            });
        }
        let offered = self.offered().filter(|_| measure == Measure::Ops);
        lines.extend(offered.map(|points| Line {
            color: SeriesColor::OFFERED,
            stroke: Stroke::of_line(kinds.len()),
            name: "offered".to_owned(),
            label: "offered".to_owned(),
            points,
        }));
        self.rate_chart(id, format!("{title} over time"), measure, lines)
    }

    /// Returns the rate of each segment at its middle.
    fn rates_of(&self, series: &[SegmentRow], measure: Measure) -> Vec<Point> {
        let rates = series.iter().enumerate();
        rates.map(|(at, row)| (self.middle(at), Some(measure.rate(row)))).collect()
    }

    /// Returns the rate at which operations were due: of each step, or of a schedule that has but
    /// one rate; `None` where that is not known.
    fn offered(&self) -> Option<Vec<Point>> {
        let started = self.analysis().started;
        let at = |offset: Duration| self.at(started.after(offset)).clamp(0.0, self.seconds);
        // Lines over each other share their places, of which each has one value: a step ends a
        // little before the next begins, less than is seen and more than six digits hide.
        let gap = self.seconds * 2e-5;
        let level = |from: Duration, length: Duration, rate: f64| {
            let end = (at(from + length) - gap).max(at(from));
            [(at(from), Some(rate)), (end, Some(rate))]
        };
        if !self.report.row.steps.is_empty() {
            let steps = self.report.row.steps.iter();
            return Some(steps.flat_map(|of| level(of.from, of.length, of.offered.0)).collect());
        }
        let schedule = self.report.schedule().filter(|_| self.report.row.schedules.len() == 1)?;
        let rate = schedule.rate_offered()?.0;
        // The mean of a ramp is nothing that was offered at any time.
        let is_level = schedule.rate_peak.0 <= rate * 1.1;
        let lasted = schedule.lasted.unwrap_or_default();
        is_level.then(|| level(schedule.started_after, lasted, rate).to_vec())
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
        let line = |(index, (endpoint, rates)): (usize, (EndpointId, Vec<f64>))| {
            let name = self.report.endpoint(endpoint);
            let rates = rates.into_iter().enumerate();
            Line {
                color: SeriesColor::of_other(index),
                stroke: Stroke::of_line(index),
                label: name.clone(),
                name,
                points: rates.map(|(at, rate)| (self.middle(at), Some(rate))).collect(),
            }
        };
        let lines = hosts.into_iter().enumerate().map(line).collect();
        let title = match count {
            ..=OTHER_COLORS_COUNT => "Each host over time".to_owned(),
            _ => format!("The slowest and fastest of {count} hosts over time"),
        };
        Some(self.rate_chart("chart-hosts", title, measure, lines))
    }

    fn rate_chart(
        &self,
        id: &'static str,
        title: String,
        measure: Measure,
        lines: Vec<Line>,
    ) -> Chart {
        let values = lines.iter().flat_map(|line| &line.points).filter_map(|(_, rate)| *rate);
        let max = values.fold(0.0, f64::max);
        let (mut marks, mut legend) = (Vec::new(), Vec::new());
        for Line { color, stroke, name, label, points } in lines {
            marks.push(Mark::line(color, stroke, thinned(points, POINTS_MAX)).named(name));
            legend.push(Entry::new(color, stroke, label));
        }
        let plot = Plot::new(WIDE, self.time_axis(WIDE), measure.axis(max), marks);
        self.happened(Chart {
            id: id.to_owned(),
            title: format!("{title}, {}", measure.unit()),
            caption: format!(
                "Successes only, {}. An operation across a border gives each side its share by \
                 time.",
                self.by_segment()
            ),
            plot,
            legend,
        })
    }

    /// Returns a chart over time with what is marked on all of them.
    pub(super) fn happened(&self, mut chart: Chart) -> Chart {
        let marks = Marks::of(&self.report, self.origin, self.seconds);
        marks.put(&mut chart.plot, &mut chart.legend);
        chart
    }

    /// Returns the axis of time.
    pub(super) fn time_axis(&self, size: (u32, u32)) -> Axis {
        let steps_max = if size == WIDE { 10.0 } else { 5.0 };
        let axis = Axis::seconds(Duration::from_secs_f64(self.seconds), steps_max);
        axis.titled(self.time, Reads::Offset)
    }

    /// Returns the place of a moment on the axis of time.
    fn at(&self, moment: Moment) -> f64 {
        moment.since(self.origin).as_secs_f64() - self.origin.since(moment).as_secs_f64()
    }

    /// Returns where a segment begins.
    pub(super) fn start(&self, index: usize) -> f64 {
        let span = self.analysis().span.start;
        self.details.series.get(index).map_or(0.0, |row| self.at(row.start.max(span)))
    }

    /// Returns the middle of a segment.
    pub(super) fn middle(&self, index: usize) -> f64 {
        let length = self.details.series.get(index).map_or(Duration::ZERO, |row| row.length);
        self.start(index) + length.as_secs_f64() / 2.0
    }

    pub(super) fn by_segment(&self) -> String {
        // Not broken between number and unit.
        let segment = short(&duration(self.analysis().segment)).replace(' ', "\u{a0}");
        format!("in segments of {segment}")
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
        let counts_of_classes = counts.len();
        let mut base = vec![0.0; series.len()];
        let (mut marks, mut lines, mut legend) = (Vec::new(), Vec::new(), Vec::new());
        for (index, (class, counts)) in counts.iter().enumerate() {
            let top = base.iter().zip(counts).map(|(base, n)| base + *n as f64 / seconds);
            let top: Vec<f64> = top.collect();
            // Along the top, and back along the bottom.
            let corners = |heights: &[f64]| -> Vec<(f64, Option<f64>)> {
                let each = heights.iter().enumerate();
                let corners = each.flat_map(|(at, height)| {
                    let at = self.start(at);
                    [(at, Some(*height)), (at + seconds, Some(*height))]
                });
                corners.collect()
            };
            let points = corners(&top).into_iter().chain(corners(&base).into_iter().rev());
            let color = SeriesColor::of_failure(index);
            marks.push(Mark::line(color, Stroke::Full, points));
            // What is stacked is drawn; what is read out is the class by itself.
            let alone = counts.iter().enumerate();
            let alone = alone.map(|(at, n)| (self.middle(at), Some(*n as f64 / seconds)));
            let alone = thinned(alone.collect(), POINTS_MAX);
            let stroke = Stroke::of_line(index);
            lines.push(Mark::line(color, stroke, alone).named(class.name()));
            let sample = if counts_of_classes > 1 { stroke } else { Stroke::Full };
            legend.push(Entry::new(color, sample, class.name().to_owned()));
            base = top;
        }
        let max = base.into_iter().fold(0.0, f64::max);
        marks.extend(lines);
        let plot = Plot::new(WIDE, self.time_axis(WIDE), Measure::Ops.axis(max), marks);
        vec![self.happened(Chart {
            id: "chart-errors".to_owned(),
            title: "Failures over time by class, operations/s".to_owned(),
            caption: format!(
                "One class on the other, each failure where it was known, {}.",
                self.by_segment()
            ),
            legend,
            plot,
        })]
    }
}

impl Entry {
    pub(super) fn new(color: SeriesColor, stroke: Stroke, name: String) -> Self {
        Self { color, stroke, name, is_mark: false }
    }

    /// Returns that of bands or upright lines.
    pub(super) fn of_mark(color: SeriesColor, stroke: Stroke, name: String) -> Self {
        Self { is_mark: true, ..Self::new(color, stroke, name) }
    }

    /// Returns that of a kind's line by its place among those of the chart.
    pub(super) fn of_kind(kind: OpKind, index: usize, name: String) -> Self {
        Self::new(SeriesColor::of_kind(kind), Stroke::of_line(index), name)
    }
}

/// A line of a chart over time.
struct Line {
    color: SeriesColor,
    stroke: Stroke,
    /// What it is called where its values are read.
    name: String,
    /// What stands in the legend.
    label: String,
    points: Vec<Point>,
}

/// Returns the smallest and the largest value of all marks.
pub(super) fn ends(marks: &[Mark]) -> Option<(f64, f64)> {
    let values = || marks.iter().flat_map(|mark| &mark.points).filter_map(|(_, value)| *value);
    let min = values().min_by(f64::total_cmp)?;
    Some((min, values().max_by(f64::total_cmp)?))
}

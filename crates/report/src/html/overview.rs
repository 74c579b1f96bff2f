//! The whole run over time: what all of it did together, with its stages as named stretches.

use std::time::Duration;

use plimsoll_analysis::{RowAnalysis, SegmentRow};
use plimsoll_model::Moment;

use super::axis::{Axis, Reads};
use super::charts::{Chart, Entry, MIB};
use super::colour::SeriesColor;
use super::live::Live;
use super::marks::Marks;
use super::plot::{LOW, Mark, Plot, Stretch, Stroke};
use super::thin::{POINTS_MAX, Point, thinned};
use super::{figure_as, grouped, section};
use crate::report::{Report, StageReport};
use crate::stage_words;
use crate::table::elided;

/// How much of a stage's name is shown.
const NAME_CHARS_MAX: usize = 28;
/// Intervals that a stage is cut into at most.
const INTERVALS_MAX: usize = 1_000;
/// Points that each stage has, however short it is.
const POINTS_OF_STAGE_MIN: usize = 8;
/// A line ends so much before the next stage begins, as a part of the chart: three pixels, without
/// which it would seem to go on.
const GAP: f64 = 3e-3;
/// The axis is that of stages of at least this part of the run: a shorter one is a few pixels wide,
/// and may hide how much the others differ.
const PART_MIN: f64 = 0.01;
/// Of less than this part of an interval nothing is told.
const KNOWN_MIN: f64 = 0.25;
/// Room for the names above the highest value.
const HEADROOM: f64 = 1.15;

/// Returns the section of the whole run; nothing of a run of one stage, which has its own charts.
pub(super) fn section_of(report: &Report, live: &Live) -> String {
    let charts = charts(report);
    let figures: String = charts.iter().map(|of| figure_as(&of.id, "run", of, live)).collect();
    section("whole-run", "The whole run over time", &grouped(&figures))
}

/// A stage on the axis of the run.
struct Placed<'a> {
    stage: &'a StageReport,
    from: f64,
    until: f64,
    intervals: Vec<Interval>,
}

/// What all rows of a stage did in an interval of it, in seconds since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Interval {
    from: f64,
    length: f64,
    ops: f64,
    bytes: f64,
    /// How many seconds of it are known, of the row of which most is.
    known: f64,
}

/// What a chart shows of the run.
struct Measured {
    id: &'static str,
    title: &'static str,
    axis: &'static str,
    unit: &'static str,
    of: fn(&Interval) -> f64,
}

const BYTES: Measured = Measured {
    id: "chart-run-throughput",
    title: "Throughput of the whole run, MiB/s",
    axis: "MiB/s",
    unit: "MiB/s",
    of: |of| of.bytes / MIB,
};
const OPS: Measured = Measured {
    id: "chart-run-operations",
    title: "Rate of the whole run, operations/s",
    axis: "ops/s",
    unit: "operations/s",
    of: |of| of.ops,
};

fn charts(report: &Report) -> Vec<Chart> {
    let ran = || report.stages.iter().filter(|stage| stage.took > Duration::ZERO);
    let details = |stage: &StageReport| -> bool {
        let mut rows = stage.rows.iter().filter_map(|row| row.analysis.details.as_ref());
        rows.any(|details| !details.series.is_empty())
    };
    let is_known = ran().any(details);
    if ran().count() < 2 || !is_known {
        return Vec::new();
    }
    let first = ran().map(|stage| stage.started_after).min().unwrap_or_default();
    let placed = |stage| placed(stage, first);
    let mut stages: Vec<Placed<'_>> = ran().map(placed).collect();
    stages.sort_by(|a, b| a.from.total_cmp(&b.from));
    let seconds = stages.iter().map(|of| of.until).fold(1e-3, f64::max);
    let moves = stages.iter().flat_map(|of| &of.intervals).any(|of| of.bytes > 0.0);
    let drawn = [Some(&BYTES).filter(|_| moves), Some(&OPS)];
    let chart = |of: &Measured| {
        let mut chart = chart(of, &stages, seconds);
        Marks::of_run(report, first, seconds).put(&mut chart.plot, &mut chart.legend);
        chart
    };
    drawn.into_iter().flatten().map(chart).collect()
}

/// Returns the chart of one measure, without what happened.
fn chart(measured: &Measured, stages: &[Placed<'_>], seconds: f64) -> Chart {
    let &Measured { id, title, axis, unit, of } = measured;
    let max = highest(stages, seconds * PART_MIN, of);
    let x = Axis::seconds(Duration::from_secs_f64(seconds), 10.0);
    let x = x.titled("time since the first stage began", Reads::Offset);
    let y = Axis::from_zero(max * HEADROOM).titled(axis, Reads::Number(unit));
    let beyond = match highest(stages, 0.0, of) > y.high {
        true => " One of less than 1 % of the run goes beyond the axis.",
        false => "",
    };
    let (color, stroke, name) = (SeriesColor::TOTAL, Stroke::SOLID, "all together");
    let line = Mark::line(color, stroke, points(stages, seconds, of)).named(name);
    let stretches = stages.iter().map(stretch).collect();
    Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: format!(
            "Successes only, of all kinds and jobs that ran at once. A stage too short to be cut \
             into segments has its average.{beyond}"
        ),
        legend: vec![Entry::new(color, stroke, name.to_owned())],
        plot: Plot { stretches, ..Plot::new(LOW, x, y, vec![line]) },
    }
}

fn stretch(of: &Placed<'_>) -> Stretch {
    let title = stage_words::name(of.stage);
    Stretch { from: of.from, until: of.until, name: elided(&title, NAME_CHARS_MAX) }
}

fn placed(stage: &StageReport, first: Duration) -> Placed<'_> {
    let from = stage.started_after.saturating_sub(first).as_secs_f64();
    let took = stage.took.as_secs_f64();
    let rows = || stage.rows.iter().map(|row| &row.analysis);
    let segment = rows().map(|row| row.segment.as_secs_f64()).fold(0.0, f64::max);
    let count = (took / segment.max(took / INTERVALS_MAX as f64)).ceil().max(1.0);
    let length = if count > 1.0 { segment.max(took / INTERVALS_MAX as f64) } else { took };
    let interval = |at: usize| {
        let from = at as f64 * length;
        Interval { from, length: length.min(took - from), ..Interval::default() }
    };
    let mut intervals: Vec<Interval> = (0..count as usize).map(interval).collect();
    // What is left of one at the end is as good as none: a few operations end in it.
    if let Some(rest) = intervals.pop_if(|of| of.from > 0.0 && of.length < length / 2.0)
        && let Some(last) = intervals.last_mut()
    {
        last.length += rest.length;
    }
    for row in rows() {
        add(&mut intervals, row);
    }
    Placed { stage, from, until: from + took, intervals }
}

/// Adds what a row did: its segments, what ended before and after them, or else its average.
fn add(intervals: &mut [Interval], row: &RowAnalysis) {
    let mut alone: Vec<Interval> =
        intervals.iter().map(|of| Interval { known: 0.0, ..*of }).collect();
    let at = |moment: Moment| moment.since(row.started).as_secs_f64();
    let details = row.details.as_ref();
    let series = details.map_or(&[][..], |details| &details.series);
    let start = |of: &SegmentRow| of.start.max(row.span.start);
    let ends = series.first().zip(series.last());
    let ends = ends.map(|(first, last)| (at(start(first)), at(start(last).after(last.length))));
    for of in series {
        let ends = (at(start(of)), at(start(of).after(of.length)));
        spread(&mut alone, ends, (of.ops, of.bytes as f64));
        know(&mut alone, ends);
    }
    let total = &row.total.stage;
    let (ops, bytes) = (total.ops_ok as f64, total.bytes as f64);
    match ends {
        None => {
            spread(&mut alone, (0.0, at(row.ended)), (ops, bytes));
            know(&mut alone, (0.0, at(row.ended)));
        }
        Some((first, last)) => {
            let kinds = details.into_iter().flat_map(|of| &of.kinds);
            let mut is_known = false;
            for of in kinds.flat_map(|kind| &kind.ended) {
                is_known = true;
                let (from, until) = (at(of.start), at(of.start.after(of.length)));
                let each = (of.ok as f64 / (until - from), of.bytes as f64 / (until - from));
                for (from, until) in [(from, until.min(first)), (from.max(last), until)] {
                    let length = until - from;
                    spread(&mut alone, (from, until), (each.0 * length, each.1 * length));
                }
            }
            // Where nothing ended nothing was done, of any kind.
            let around = [(0.0, first), (last, at(row.ended))];
            around.iter().filter(|_| is_known).for_each(|ends| know(&mut alone, *ends));
        }
    }
    for (sum, of) in intervals.iter_mut().zip(alone) {
        // `alone` began as what was there.
        *sum = Interval { known: sum.known.max(of.known), ..of };
    }
}

/// Spreads an amount evenly over a stretch.
fn spread(intervals: &mut [Interval], (from, until): (f64, f64), (ops, bytes): (f64, f64)) {
    for of in intervals {
        let shared = of.shared((from, until));
        if shared > 0.0 {
            of.ops += ops * shared / (until - from);
            of.bytes += bytes * shared / (until - from);
        }
    }
}

/// Notes that it is known what was done in a stretch.
fn know(intervals: &mut [Interval], ends: (f64, f64)) {
    for of in intervals {
        of.known += of.shared(ends);
    }
}

impl Interval {
    /// Returns how much of a stretch lies in it.
    fn shared(&self, (from, until): (f64, f64)) -> f64 {
        (until.min(self.from + self.length) - from.max(self.from)).max(0.0)
    }

    /// Returns the rate in it; `None` where too little of it is known.
    fn rate(&self, of: fn(&Self) -> f64) -> Option<f64> {
        let is_known = self.known > 0.0 && self.known >= self.length * KNOWN_MIN;
        is_known.then(|| of(self) / self.known)
    }
}

/// Returns the highest rate of the stages that last so long at least, of all if none does.
fn highest(stages: &[Placed<'_>], seconds_min: f64, of: fn(&Interval) -> f64) -> f64 {
    let of_stages = |is_wanted: &dyn Fn(&&Placed<'_>) -> bool| {
        let intervals = stages.iter().filter(is_wanted).flat_map(|of| &of.intervals);
        intervals.filter_map(|each| each.rate(of)).fold(0.0, f64::max)
    };
    let max = of_stages(&|stage| stage.until - stage.from >= seconds_min);
    if max > 0.0 { max } else { of_stages(&|_| true) }
}

/// Returns the line of all stages, with a gap between any two of them.
fn points(stages: &[Placed<'_>], seconds: f64, of: fn(&Interval) -> f64) -> Vec<Point> {
    let gap = seconds * GAP;
    let mut points: Vec<Point> = Vec::new();
    for stage in stages {
        let took = stage.until - stage.from;
        let value = |each: &Interval| each.rate(of);
        let middle = |each: &Interval| stage.from + each.from + each.length / 2.0;
        let most = (POINTS_MAX as f64 * took / seconds) as usize;
        let inner = stage.intervals.iter().map(|each| (middle(each), value(each))).collect();
        let inner = thinned(inner, most.max(POINTS_OF_STAGE_MIN));
        let ends = stage.intervals.first().zip(stage.intervals.last());
        let Some((first, last)) = ends.map(|(a, b)| (value(a), value(b))) else { continue };
        let is_long = took > 4.0 * gap;
        let end = if is_long { stage.until - gap } else { stage.from + took / 2.0 };
        let ends = [(end, last), (end + gap / 2.0, None)];
        let start = Some((stage.from, first)).filter(|_| is_long);
        let all = start.into_iter().chain(inner).chain(ends);
        for point in all {
            // Values share their places with no others: what is too near is not seen either.
            if points.last().is_none_or(|last| point.0 > last.0 + gap / 4.0) {
                points.push(point);
            }
        }
    }
    points
}

#[cfg(test)]
#[path = "overview_tests.rs"]
mod tests;

//! The load line on the page: what was found, the curve, the probes.

use std::time::Duration;

use super::axis::{Axis, Reads};
use super::charts::{Chart, Entry};
use super::colour::SeriesColor;
use super::limits::{CELL_CHARS_MAX, TEXT_CHARS_MAX, cut, cut_name};
use super::live::Live;
use super::plot::{Mark, Plot, Stroke, Upright, WIDE};
use super::tables::{self, Table, Tone};
use super::{figure_as, section};
use crate::format::{count, duration, known, number};
use crate::load_line::text::{LATENCY, facts};
use crate::load_line::{LoadLineReport, ProbeFigure};
use crate::report::Report;

/// The percentiles of the curve, and how each is read from a probe.
type Percentile = (&'static str, fn(&ProbeFigure) -> Option<u64>);
const PERCENTILES: [Percentile; 3] = [
    ("p50", |probe| probe.latency_ns_p50),
    ("p99", |probe| probe.latency_ns_p99),
    ("p99.9", |probe| probe.latency_ns_p99_9),
];

/// Returns the section of a load line.
pub(super) fn section_of(report: &Report, found: &LoadLineReport, live: &Live) -> String {
    let mut content =
        format!("<p><strong>{}</strong></p>\n", cut(&found.headline(), TEXT_CHARS_MAX));
    content += &tables::facts(facts(report, found));
    let charts = [curve(found), failures(found)].into_iter().flatten();
    let figures: String = charts.map(|chart| figure_as(&chart.id, "", &chart, live)).collect();
    if !figures.is_empty() {
        content += &format!("<div class=\"charts\">{figures}</div>\n");
    }
    section(
        "load-line",
        &cut_name(&format!("The load line: {}", found.name), CELL_CHARS_MAX),
        &(content + &probes(found)),
    )
}

/// Returns the points of the curve, the lowest rate first.
fn points(found: &LoadLineReport) -> Vec<(f64, &ProbeFigure)> {
    let probes = found.probes.iter().filter(|probe| probe.is_of_curve());
    let mut points: Vec<(f64, &ProbeFigure)> =
        probes.filter_map(|probe| Some((probe.offered_ops_per_sec?, probe))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Returns the axis of the offered rate.
fn rates(points: &[(f64, &ProbeFigure)]) -> Axis {
    let axis = Axis::from_zero(points.iter().map(|(rate, _)| *rate).fold(0.0, f64::max));
    axis.titled("offered rate, operations/s", Reads::Number("ops/s offered"))
}

/// Draws the load line upright, and names it.
fn upright(found: &LoadLineReport, plot: &mut Plot, legend: &mut Vec<Entry>) {
    let Some(line) = found.line.as_ref() else { return };
    let text = format!("the load line, {} ops/s", number(line.ops_per_sec));
    let color = SeriesColor::TOTAL;
    legend.push(Entry::of_mark(color, Stroke::DASHED, text.clone()));
    plot.uprights.push(Upright { at: line.ops_per_sec, color, text, label: String::new() });
}

/// Returns the chart of latency over offered rate; none from less than two points.
fn curve(found: &LoadLineReport) -> Option<Chart> {
    let points = points(found);
    let values = points.iter().flat_map(|(_, probe)| PERCENTILES.map(|(_, of)| of(probe)));
    let values: Vec<f64> = values.flatten().map(|ns| ns as f64).collect();
    let low = values.iter().copied().min_by(f64::total_cmp)?;
    let high = values.iter().copied().max_by(f64::total_cmp)?;
    if points.len() < 2 {
        return None;
    }
    let (mut marks, mut legend) = (Vec::new(), Vec::new());
    for (index, (name, of)) in PERCENTILES.into_iter().enumerate() {
        let color = SeriesColor::of_other(index);
        let at = points.iter().map(|(rate, probe)| (*rate, of(probe).map(|ns| ns as f64)));
        let stroke = Stroke::of_line(index);
        let line = Mark::line(color, stroke, at).named(name);
        marks.push(Mark { dots: true, ..line });
        legend.push(Entry::new(color, stroke, name.to_owned()));
    }
    let y = Axis::log_time(low, high).titled("latency", Reads::Time);
    let mut plot = Plot::new(WIDE, rates(&points), y, marks);
    upright(found, &mut plot, &mut legend);
    Some(Chart {
        id: "chart-load-line".to_owned(),
        title: "Latency over offered rate, operations/s".to_owned(),
        caption: format!(
            "Each dot is one probe: Poisson arrivals at that rate, its first tenth left out; \
             {LATENCY}."
        ),
        legend,
        plot,
    })
}

/// Returns the chart of achieved over offered rate, and of what failed.
fn failures(found: &LoadLineReport) -> Option<Chart> {
    let points = points(found);
    if points.len() < 2 {
        return None;
    }
    let most =
        points.iter().map(|(rate, probe)| rate.max(probe.achieved_ops_per_sec.unwrap_or(0.0)));
    let most = most.fold(0.0, f64::max);
    let (achieved, failed) = (SeriesColor::of_other(0), SeriesColor::FAILED);
    let share = |probe: &ProbeFigure| probe.ops_failed_count as f64 / probe.due_count.max(1) as f64;
    let of_achieved = points.iter().map(|(rate, probe)| (*rate, probe.achieved_ops_per_sec));
    let of_failed = points.iter().map(|(rate, probe)| (*rate, Some(share(probe) * rate)));
    let marks = vec![
        Mark::line(achieved, Stroke::SOLID, of_achieved).named("succeeded"),
        Mark::line(failed, Stroke::DASHED, of_failed).named("failed"),
    ];
    let marks = marks.into_iter().map(|mark| Mark { dots: true, ..mark }).collect();
    let entry = |color, stroke, name: &str| Entry::new(color, stroke, name.to_owned());
    let mut legend =
        vec![entry(achieved, Stroke::SOLID, "succeeded"), entry(failed, Stroke::DASHED, "failed")];
    let y = Axis::from_zero(most).titled("operations/s", Reads::Number("ops/s"));
    let mut plot = Plot::new(WIDE, rates(&points), y, marks);
    upright(found, &mut plot, &mut legend);
    Some(Chart {
        id: "chart-achieved".to_owned(),
        title: "Achieved over offered rate, operations/s".to_owned(),
        caption: "Operations that ended in the stretch that counts and succeeded; those that were \
                  due in it and failed."
            .to_owned(),
        legend,
        plot,
    })
}

/// Returns the table of the probes.
fn probes(found: &LoadLineReport) -> String {
    let time = |ns: Option<u64>| known(ns, |ns| duration(Duration::from_nanos(ns)));
    let headings =
        ["probe", "offered/s", "achieved/s", "for", "p50", "p99", "p99.9", "failed", "outcome"];
    let mut table = Table::new(&headings);
    for probe in &found.probes {
        let cells = [
            known(probe.offered_ops_per_sec, number),
            known(probe.achieved_ops_per_sec, number),
            duration(Duration::from_nanos(probe.duration_ns)),
            time(probe.latency_ns_p50),
            time(probe.latency_ns_p99),
            time(probe.latency_ns_p99_9),
            count(probe.ops_failed_count),
            known(probe.outcome, |outcome| outcome.to_string()),
        ];
        table.row(Tone::Plain, probe.name(), cells);
    }
    table.end()
}

//! The load line on the page: what was found, the curve, the probes.

use std::time::Duration;

use super::axis::Axis;
use super::charts::{Chart, Entry};
use super::plot::{Mark, Plot, SeriesColor, Stroke, WIDE};
use super::{escaped, figure_as, section, tables};
use crate::format::{UNKNOWN, count, duration, known, number};
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
pub(super) fn section_of(report: &Report, found: &LoadLineReport) -> String {
    let mut content = format!("<p><strong>{}</strong></p>\n", escaped(&found.headline()));
    content += &tables::facts(facts(report, found));
    let charts = [curve(found), failures(found)].into_iter().flatten();
    let figures: String = charts.map(|chart| figure_as(chart.id, &chart)).collect();
    if !figures.is_empty() {
        content += &format!("<div class=\"charts\">{figures}</div>\n");
    }
    section(
        "load-line",
        &escaped(&format!("The load line: {}", found.name)),
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
    Axis::from_zero(points.iter().map(|(rate, _)| *rate).fold(0.0, f64::max))
}

/// Returns the load line as something drawn upright, with its name.
fn upright(found: &LoadLineReport, (low, high): (f64, f64)) -> Option<(Mark, Entry)> {
    let line = found.line.as_ref()?;
    let color = SeriesColor::of_other(3);
    let ends = [(line.ops_per_sec, Some(low)), (line.ops_per_sec, Some(high))];
    let name = format!("the load line, {} ops/s", number(line.ops_per_sec));
    let entry = Entry { color, stroke: Stroke::Dashed, name };
    Some((Mark::line(color, Stroke::Dashed, ends), entry))
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
        marks.push(Mark { dots: true, ..Mark::line(color, Stroke::Solid, at) });
        legend.push(Entry { color, stroke: Stroke::Solid, name: name.to_owned() });
    }
    if let Some((mark, entry)) = upright(found, (low, high)) {
        marks.push(mark);
        legend.push(entry);
    }
    Some(Chart {
        id: "chart-load-line",
        title: "Latency over offered rate, operations/s".to_owned(),
        caption: format!(
            "Each dot is one probe: Poisson arrivals at that rate, its first tenth left out; \
             {LATENCY}."
        ),
        legend,
        plot: Plot { size: WIDE, x: rates(&points), y: Axis::log_time(low, high), marks },
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
    let (achieved, failed) = (SeriesColor::of_other(0), SeriesColor::of_other(1));
    let share = |probe: &ProbeFigure| probe.ops_failed_count as f64 / probe.due_count.max(1) as f64;
    let of_achieved = points.iter().map(|(rate, probe)| (*rate, probe.achieved_ops_per_sec));
    let of_failed = points.iter().map(|(rate, probe)| (*rate, Some(share(probe) * rate)));
    let mut marks = vec![
        Mark { dots: true, ..Mark::line(achieved, Stroke::Solid, of_achieved) },
        Mark { dots: true, ..Mark::line(failed, Stroke::Solid, of_failed) },
    ];
    let entry = |color, name: &str| Entry { color, stroke: Stroke::Solid, name: name.to_owned() };
    let mut legend = vec![entry(achieved, "succeeded"), entry(failed, "failed")];
    if let Some((mark, line)) = upright(found, (0.0, most)) {
        marks.push(mark);
        legend.push(line);
    }
    Some(Chart {
        id: "chart-achieved",
        title: "Achieved over offered rate, operations/s".to_owned(),
        caption: "Operations that ended in the stretch that counts and succeeded; those that were \
                  due in it and failed."
            .to_owned(),
        legend,
        plot: Plot { size: WIDE, x: rates(&points), y: Axis::from_zero(most), marks },
    })
}

/// Returns the table of the probes.
fn probes(found: &LoadLineReport) -> String {
    let time = |ns: Option<u64>| known(ns, |ns| duration(Duration::from_nanos(ns)));
    let row = |probe: &ProbeFigure| {
        let cells = [
            known(probe.offered_ops_per_sec, number),
            known(probe.achieved_ops_per_sec, number),
            duration(Duration::from_nanos(probe.duration_ns)),
            time(probe.latency_ns_p50),
            time(probe.latency_ns_p99),
            time(probe.latency_ns_p99_9),
            count(probe.ops_failed_count),
            probe.outcome.clone().unwrap_or_else(|| UNKNOWN.to_owned()),
        ];
        let cells: String =
            cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        format!("<tr><th>{}</th>{cells}</tr>\n", escaped(&probe.role))
    };
    let rows: String = found.probes.iter().map(row).collect();
    format!(
        "<table>\n<thead><tr><th>probe</th><th>offered/s</th><th>achieved/s</th><th>for</th>\
         <th>p50</th><th>p99</th><th>p99.9</th><th>failed</th><th>outcome</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n"
    )
}

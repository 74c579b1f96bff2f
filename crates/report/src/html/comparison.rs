//! A comparison as a page: what it comes to, a table a kind, runs of both sides over each other.

use plimsoll_analysis::compare::{Comparison, Difference, KindComparison, Presence};
use plimsoll_analysis::{KindDetails, RowAnalysis};
use plimsoll_model::OpKind;

use super::axis::{Axis, Reads};
use super::charts::{Chart, Entry, ends};
use super::colour::SeriesColor;
use super::document::{Document, within_script};
use super::limits::Limits;
use super::live::Live;
use super::plot::{Mark, Plot, Stroke, WIDE};
use super::thin::{Point, thinned};
use super::{escaped, figure_as, grouped, section};
use crate::compare::{json, page};
use crate::report::{Report, StageReport};
use crate::stage_words;

/// More runs of a side than this are not drawn; the tables are of all.
const RUNS_DRAWN_MAX: usize = 6;
/// Points of each line; there are many lines.
const POINTS_MAX: usize = 300;

/// What one run did of one kind over time, from the start of its span.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The stage and the job.
    of: String,
    kind: OpKind,
    /// How long the span is, in seconds.
    seconds: f64,
    /// Operations a second.
    rate: Vec<Point>,
    /// The 99th percentile of the latency in nanoseconds, the median where there is none.
    latency: Vec<Point>,
}

/// Returns what a run did over time, of each kind in each row of its results.
pub fn curves(report: &Report) -> Vec<Curve> {
    let shown = report.results().filter(|stage| stage.probe_of.is_none());
    let of_stage = |stage: &StageReport| -> Vec<Curve> {
        let title = stage_words::name(stage);
        let several = stage.rows.len() > 1;
        let each = stage.rows.iter().flat_map(|row| {
            let job = if several { format!(", {}", row.name) } else { String::new() };
            let of = format!("{title}{job}");
            let kinds = row.analysis.details.iter().flat_map(|details| &details.kinds);
            kinds.map(move |kind| curve(of.clone(), &row.analysis, kind)).collect::<Vec<_>>()
        });
        each.collect()
    };
    shown.flat_map(of_stage).collect()
}

fn curve(of: String, analysis: &RowAnalysis, kind: &KindDetails) -> Curve {
    let start = analysis.span.start;
    let middle = |row: &plimsoll_analysis::SegmentRow| {
        (row.start.max(start).since(start) + row.length / 2).as_secs_f64()
    };
    let has_p99 = kind.series.iter().any(|row| row.latency_p99.is_some());
    let rate = kind.series.iter().map(|row| {
        let seconds = row.length.as_secs_f64();
        (middle(row), (seconds > 0.0).then(|| row.ops / seconds))
    });
    let latency = kind.series.iter().map(|row| {
        let time = if has_p99 { row.latency_p99 } else { row.latency_p50 };
        (middle(row), time.map(|time| time.as_nanos() as f64))
    });
    Curve {
        of,
        kind: kind.kind,
        seconds: analysis.span.length().as_secs_f64(),
        rate: thinned(rate.collect(), POINTS_MAX),
        latency: thinned(latency.collect(), POINTS_MAX),
    }
}

/// Returns the comparison as an HTML document. `before` and `after` hold the curves of each run of
/// a side, in its order; they may be empty where these are not known.
pub fn comparison(
    comparison: &Comparison,
    differences: &[Difference],
    before: &[Vec<Curve>],
    after: &[Vec<Curve>],
) -> String {
    let live = Live::new(Limits::USUAL);
    let mut body =
        format!("<header>\n<h1>What changed</h1>\n</header>\n{}", page::head(comparison));
    let both = comparison.kinds.iter().filter(|kind| kind.presence == Presence::Both);
    for (number, kind) in (1..).zip(both) {
        let id = format!("kind-{number}");
        let charts = charts(kind, [before, after]);
        let figure = |chart: &Chart| figure_as(&format!("{id}-{}", chart.id), &id, chart, &live);
        let figures: String = charts.iter().map(figure).collect();
        let content = page::table(kind) + &grouped(&figures);
        body += &section(&id, &escaped(&page::title(kind)), &content);
    }
    let parameters = page::parameters(comparison, differences);
    body += &section("parameters", "Parameters that differ", &parameters);
    let mut notes = page::notes(comparison);
    if live.is_full() {
        let note = "The charts of the last kinds are left out to keep the file small.";
        notes += &format!("<p class=\"caption\">{note}</p>\n");
    }
    let document = Document::new("What changed", body, live.into_json());
    let data = within_script(&json::json(comparison, differences, &[]));
    let room = super::SIZE_MAX.saturating_sub(document.len());
    let left_out = r#"{"notes":["left out here to keep the file small: everything"]}"#;
    let data = if data.len() > room { left_out.to_owned() } else { data };
    document.render(&notes, &data)
}

/// Returns the charts of a kind: the rate and the latency of each run over the time from its start.
fn charts(kind: &KindComparison, sides: [&[Vec<Curve>]; 2]) -> Vec<Chart> {
    let Some(of_kind) = kind.kind else { return Vec::new() };
    let is_of =
        |curve: &&Curve| curve.kind == of_kind && kind.of.as_ref().is_none_or(|of| *of == curve.of);
    let drawn = sides.map(|runs| {
        let curves = runs.iter().take(RUNS_DRAWN_MAX).map(|run| run.iter().find(is_of));
        curves.collect::<Vec<_>>()
    });
    let seconds = drawn.iter().flatten().flatten().map(|curve| curve.seconds).fold(0.0, f64::max);
    let lines = |of: fn(&Curve) -> &Vec<Point>| {
        let (mut marks, mut legend) = (Vec::new(), Vec::new());
        for (side, (name, runs)) in ["before", "after"].iter().zip(&drawn).enumerate() {
            for (number, curve) in (1..).zip(runs) {
                let Some(curve) = curve else { continue };
                // The sides differ in their colours, and all runs in their dashes.
                let stroke = Stroke::of_line(2 * (number - 1) + (1 - side));
                let name = match runs.len() {
                    1 => (*name).to_owned(),
                    _ => format!("{name} {number}"),
                };
                let color = SeriesColor::of_side(side);
                marks.push(Mark::line(color, stroke, of(curve).clone()).named(name.clone()));
                legend.push(Entry::new(color, stroke, name));
            }
        }
        (marks, legend)
    };
    let chart = |id: &str, title: &str, y: Axis, (marks, legend): (Vec<Mark>, Vec<Entry>)| {
        let length = std::time::Duration::from_secs_f64(seconds.max(1e-3));
        let x = Axis::seconds(length, 10.0)
            .titled("time since the span of each run began", Reads::Offset);
        Chart {
            id: id.to_owned(),
            title: title.to_owned(),
            caption: "Each run from the start of its own measured span.".to_owned(),
            legend,
            plot: Plot::new(WIDE, x, y, marks),
        }
    };
    let rates = lines(|curve| &curve.rate);
    let times = lines(|curve| &curve.latency);
    let rate_axis = ends(&rates.0)
        .map(|(_, max)| Axis::from_zero(max).titled("operations/s", Reads::Number("ops/s")));
    let time_axis =
        ends(&times.0).map(|(min, max)| Axis::log_time(min, max).titled("latency", Reads::Time));
    let rate = rate_axis.map(|y| chart("rate", "Rate over time, operations/s", y, rates));
    let title = "99th percentile of the latency over time";
    let time = time_axis.map(|y| chart("latency", title, y, times));
    rate.into_iter().chain(time).collect()
}

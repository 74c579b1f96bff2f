//! The sections of a page with several stages: one each, with what it did over time as charts.

use std::time::Duration;

use plimsoll_analysis::{Done, KindAnalysis, SegmentRow, Times};
use plimsoll_model::{ErrorClass, Interface};

use super::axis::{Axis, Reads};
use super::charts::{Chart, Charts, Entry};
use super::colour::{OTHER_COLORS_COUNT, SeriesColor};
use super::limits::{
    CELL_CHARS_MAX, COMMAND_CHARS_MAX, Drawn, LINES_MAX, TEXT_CHARS_MAX, cut, cut_name, more,
    sentence,
};
use super::live::Live;
use super::marks::Marks;
use super::plot::{Mark, Plot, Stroke, WIDE};
use super::tables::{self, Table, Tone};
use super::thin::{POINTS_MAX, thinned};
use super::{figure_as, section};
use crate::format::{bytes, count, duration, known};
use crate::report::{Report, RowReport, RowView, StageReport};
use crate::stage_words::{self as words, bytes_per_sec, ops_per_sec};
use crate::words as shared;

const MIB: f64 = 1_048_576.0;
/// Maps of latency over time that a stage shows at most.
const HEAT_MAPS_MAX: usize = 6;
/// Texts of errors of a stage on files that are shown at most.
const MESSAGES_MAX: usize = 20;
/// The percentiles shown, in percent, with their names.
const PERCENTILES: [(f64, &str); 7] = [
    (50.0, "p50"),
    (90.0, "p90"),
    (99.0, "p99"),
    (99.5, "p99.5"),
    (99.9, "p99.9"),
    (99.95, "p99.95"),
    (99.99, "p99.99"),
];

/// Returns where the figures come from and how to get them again.
pub(super) fn origin(report: &Report) -> String {
    let mut facts = Vec::new();
    for target in &report.targets {
        let name = if target.is_files { "directory" } else { "target" };
        facts.push((name, target.place()));
        facts.extend(target.file_system.clone().map(|text| ("file system", text)));
        facts.extend(target.device.clone().map(|text| ("device", text)));
        facts.extend(target.free_bytes.map(|free| ("free before", bytes(free))));
    }
    facts.extend(report.machine.clone().map(|text| ("machine", text)));
    facts.extend(report.interface().map(Interface::name).map(|name| ("interface", name.into())));
    facts.extend(report.seed.map(|seed| ("seed", seed.0.to_string())));
    facts.extend(shared::cleaned(report).map(|text| ("cleaned up", text)));
    let command = cut(&report.command, COMMAND_CHARS_MAX);
    tables::facts(facts) + &format!("<pre id=\"command\">{command}</pre>\n")
}

/// Returns the section of one stage.
pub(super) fn stage(report: &Report, number: usize, stage: &StageReport, live: &Live) -> String {
    let (id, name) = (format!("stage-{number}"), cut_name(&words::name(stage), CELL_CHARS_MAX));
    if !report.shows(stage) {
        let text = sentence(&words::prepared(stage));
        return section(&id, &name, &format!("<p>{text}</p>\n{}", errors(stage)));
    }
    let several = stage.rows.len() > 1;
    let limits = live.limits;
    let work = stage.rows.iter().take(limits.rows.min(LINES_MAX)).map(|row| {
        let lead = if several { format!("{}: ", row.name) } else { String::new() };
        let text = match row.is_on_files {
            true => words::work(row),
            false => shared::loop_model(&RowView { report, stage, row }),
        };
        format!("<p class=\"caption\">{}</p>\n", sentence(&(lead + &text)))
    });
    let mut html: String = work.collect();
    let told = words::schedules_told(stage);
    for warning in told.iter().filter_map(|told| told.warning.as_deref()) {
        html += &format!("<p class=\"bad\">{}</p>\n", sentence(warning));
    }
    let over_time = chart(report, stage).map(|chart| (format!("chart-{id}"), chart));
    let over_time = over_time.filter(|_| limits.drawn >= Drawn::First);
    let maps = stage.rows.iter().enumerate().filter(|(_, row)| row.is_on_files);
    let maps = maps.filter(|_| limits.drawn == Drawn::All);
    let maps = maps.flat_map(|(index, row)| {
        let details = row.analysis.details.as_ref();
        let charts =
            details.map(|details| Charts::of_stage(RowView { report, stage, row }, details));
        let maps = charts.map_or(Vec::new(), |charts| charts.heat_maps());
        maps.into_iter().map(move |map| (index, map))
    });
    let maps = maps.take(HEAT_MAPS_MAX).map(|(row, map)| (format!("{id}-{row}-{}", map.id), map));
    let figures = over_time.into_iter().chain(maps);
    let figures: String =
        figures.map(|(name, chart)| figure_as(&name, &id, &chart, live)).collect();
    if !figures.is_empty() {
        html += &format!("<div class=\"charts\">{figures}</div>");
    }
    html += &(operations(stage) + &latency(stage) + &done(stage));
    let on_objects = stage.rows.iter().enumerate().filter(|(_, row)| !row.is_on_files);
    for (index, row) in on_objects.clone().take(limits.rows) {
        let prefix = format!("{id}-{index}-");
        html += &super::body(RowView { report, stage, row }, &prefix, live);
    }
    let left_out = on_objects.count().saturating_sub(limits.rows);
    if left_out > 0 {
        html += &format!("<p class=\"caption\">{}</p>\n", more(left_out));
    }
    let mut facts = crate::verdict::facts(stage);
    facts.push(("ran", words::ran(stage)));
    for row in stage.rows.iter().filter(|row| row.is_on_files) {
        facts.extend(crate::ledger::lines(&RowView { report, stage, row }));
    }
    facts.extend(stage.ended_because.clone().map(|because| ("ended early", because)));
    facts.extend(told.into_iter().flat_map(|told| told.facts));
    facts.extend(stage.cpu.map(|cpu| {
        let each = known(stage.cpu_per_op(), duration);
        ("client CPU", format!("{}, {each} per operation", duration(cpu)))
    }));
    facts.extend(stage.look_gap_max.map(|gap| ("longest look gap", duration(gap))));
    facts.extend(words::ramp(stage).map(|text| (words::ramp_name(stage), text)));
    facts.extend(words::unchecked(stage).map(|text| ("unchecked", text)));
    facts.extend(words::wrong(stage).map(|text| ("wrong", text)));
    html += &tables::facts(facts);
    section(&id, &name, &(html + &errors(stage)))
}

/// Returns what stands before the figures of a kind.
fn label(stage: &StageReport, row: &RowReport, kind: &KindAnalysis) -> String {
    match stage.rows.len() {
        0 | 1 => kind.kind.name().to_owned(),
        _ => format!("{}, {}", row.name, kind.kind.name()),
    }
}

/// Returns each kind in each row on files.
fn on_files(stage: &StageReport) -> impl Iterator<Item = (&RowReport, &KindAnalysis)> {
    stage.kinds().filter(|(row, _)| row.is_on_files)
}

fn operations(stage: &StageReport) -> String {
    let mut table = Table::new(&["operations", "succeeded", "failed", "rate", "throughput"]);
    for (row, kind) in on_files(stage) {
        let cells = [
            count(kind.figures.stage.ops_ok),
            count(kind.figures.stage.failed.count()),
            known(ops_per_sec(kind), |rate| words::rate(kind.kind, rate)),
            words::throughput_of(kind, bytes_per_sec(kind)),
        ];
        table.row(Tone::Plain, &label(stage, row, kind), cells);
    }
    table.end()
}

fn latency(stage: &StageReport) -> String {
    let names = PERCENTILES.map(|(_, name)| name);
    let heading: Vec<&str> =
        ["latency", "average"].into_iter().chain(names).chain(["max"]).collect();
    let mut table = Table::new(&heading);
    let cells = |times: &Times| {
        let percentiles = PERCENTILES.map(|(percent, _)| times.percentile(percent));
        let all = [times.mean].into_iter().chain(percentiles).chain([times.max]);
        all.map(|time| known(time, duration)).collect::<Vec<_>>()
    };
    for (row, kind) in on_files(stage).filter(|(_, kind)| kind.figures.stage.ops_ok > 0) {
        table.row(Tone::Plain, &label(stage, row, kind), cells(&kind.figures.latency));
        if kind.figures.service_time.is_some() {
            table.row(Tone::Part, "service time", cells(kind.figures.service()));
        }
    }
    table.end()
}

fn done(stage: &StageReport) -> String {
    let mut table = Table::new(&["done", "after", "operations", "rate", "throughput"]);
    for (row, kind) in on_files(stage).filter(|(row, kind)| words::shows_done(row, kind)) {
        let cells = |done: Done| {
            [
                duration(done.after),
                count(done.ops),
                known(done.ops_per_sec, |rate| words::rate(kind.kind, rate)),
                words::throughput_of(kind, done.bytes_per_sec),
            ]
        };
        for (which, done) in [("first", kind.figures.first_done), ("last", kind.figures.last_done)]
        {
            let Some(done) = done else { continue };
            table.row(Tone::Plain, &format!("{}, {which}", label(stage, row, kind)), cells(done));
        }
    }
    table.end()
}

/// Returns how many failed by class, and the first texts.
fn errors(stage: &StageReport) -> String {
    let mut html = String::new();
    for (row, kind) in on_files(stage) {
        for class in ErrorClass::ALL.into_iter().filter(|class| !class.is_ok()) {
            let failed = kind.figures.stage.failed.of(class);
            if failed > 0 {
                let text =
                    format!("{}: {} {}", label(stage, row, kind), count(failed), class.name());
                html += &format!("<p class=\"bad\">{}</p>\n", cut(&text, TEXT_CHARS_MAX));
            }
        }
    }
    let line = |text: &str| format!("<li>{}</li>\n", sentence(text));
    let first = stage.errors.iter().take(MESSAGES_MAX);
    let mut texts: String = first.map(|error| line(&error.message)).collect();
    if stage.errors.len() > MESSAGES_MAX {
        texts += &line(&more(stage.errors.len() - MESSAGES_MAX));
    }
    if texts.is_empty() { html } else { html + "<ul class=\"errors\">\n" + &texts + "</ul>\n" }
}

/// Returns what a stage did over time; `None` with fewer than two whole windows.
fn chart(report: &Report, stage: &StageReport) -> Option<Chart> {
    let moves = on_files(stage).any(|(_, kind)| kind.figures.stage.bytes > 0);
    let drawn = on_files(stage).filter(|(_, kind)| {
        kind.figures.stage.ops_ok > 0 && (!moves || kind.figures.stage.bytes > 0)
    });
    let series = |row: &RowReport, kind: &KindAnalysis| {
        let details = row.analysis.details.as_ref();
        let of = details.and_then(|all| all.kinds.iter().find(|of| of.kind == kind.kind));
        of.map_or(Vec::new(), |of| of.series.clone())
    };
    let drawn = drawn.map(|(row, kind)| (row, kind, series(row, kind)));
    let whole = |row: &RowReport, series: &[SegmentRow]| {
        series.iter().filter(|segment| segment.length == row.analysis.segment).count()
    };
    let drawn: Vec<_> = drawn.filter(|(row, _, series)| whole(row, series) >= 2).collect();
    let mut marks = Vec::new();
    let mut legend = Vec::new();
    let mut highest = 0.0_f64;
    for (index, (row, kind, series)) in drawn.iter().take(OTHER_COLORS_COUNT).enumerate() {
        let color = SeriesColor::of_other(index);
        // What is left of a window at either end says little.
        let windows = series.iter().filter(|of| of.length * 4 >= row.analysis.segment);
        let points: Vec<(f64, Option<f64>)> = windows
            .map(|window| {
                let amount = if moves { window.bytes as f64 / MIB } else { window.ops };
                let start = window.start.max(row.analysis.span.start);
                let middle = start.since(row.analysis.started) + window.length / 2;
                let middle = middle.as_secs_f64();
                (middle, Some(amount / window.length.as_secs_f64()))
            })
            .collect();
        highest = points.iter().filter_map(|(_, rate)| *rate).fold(highest, f64::max);
        let stroke = Stroke::of_line(index);
        let name = label(stage, row, kind);
        let points = thinned(points, POINTS_MAX);
        marks.push(Mark::line(color, stroke, points).named(name.clone()));
        legend.push(Entry::new(color, stroke, name));
    }
    let left_out = match drawn.len().saturating_sub(OTHER_COLORS_COUNT) {
        0 => String::new(),
        more => format!(" {more} more are not drawn."),
    };
    let (title, unit) =
        if moves { ("Throughput", "MiB/s") } else { ("Operations", "operations/s") };
    if marks.is_empty() {
        return None;
    }
    let x = Axis::seconds(stage.took.max(Duration::from_millis(1)), 10.0);
    let x = x.titled("time since the stage began", Reads::Offset);
    let y = Axis::from_zero(highest).titled(unit, Reads::Number(unit));
    let mut plot = Plot::new(WIDE, x, y, marks);
    let mut rows: Vec<&RowReport> = drawn.iter().map(|(row, ..)| *row).collect();
    rows.dedup_by(|a, b| std::ptr::eq(*a, *b));
    for row in rows {
        let view = RowView { report, stage, row };
        let marks = Marks::of(&view, row.analysis.started, stage.took.as_secs_f64());
        marks.put(&mut plot, &mut legend);
    }
    Some(Chart {
        id: "chart-stage".to_owned(),
        title: format!("{title} over time"),
        caption: format!(
            "{unit}, of what was done in each window of {}, over the time from the start of the \
             stage.{left_out}",
            known(drawn.first().map(|(row, ..)| row.analysis.segment), duration)
        ),
        legend,
        plot,
    })
}

#[cfg(test)]
mod tests {
    use crate::fixture_files as fixture;
    use crate::html::{Environment, render};

    #[test]
    fn each_stage_has_its_section_and_its_chart() {
        let html = render(&fixture::suite_with_series(), &Environment::default());
        for id in ["stage-1", "stage-2", "stage-5", "summary", "run"] {
            assert!(html.contains(&format!("<section id=\"{id}\">")), "{id}");
        }
        // Only the reads of 2 s have windows enough for a chart; the whole run has two.
        assert_eq!(html.matches("<svg viewBox").count(), 3);
        assert!(html.contains("<td>1.95 GiB/s</td>"), "no throughput");
        assert!(html.contains("WEKA&#39;s summary"), "no summary");
        assert!(html.contains("<td>2,000 ops/s</td>"), "no first done");
    }

    #[test]
    fn what_comes_from_a_run_stays_text() {
        let mut report = fixture::mixed();
        let evil = "<script>alert(1)</script>\"'";
        report.notes.push(evil.to_owned());
        report.stages[0].name = evil.to_owned();
        report.stages[0].rows[0].name = evil.to_owned();
        report.stages[0].errors[0].message = evil.to_owned();
        report.command = evil.to_owned();
        let html = render(&report, &Environment::default());
        assert!(!html.contains("<script>alert"), "an element came in");
        assert_eq!(html.matches("</script>").count(), 3);
        assert!(html.contains("SCHEDULE NOT KEPT"), "no warning");
    }
}

//! The page of a run on files: a section for each stage, with what it did over time as a chart.

use std::time::Duration;

use plimsoll_analysis::phases::{Done, KindFigures, Times};
use plimsoll_model::{ErrorClass, Interface};

use super::axis::Axis;
use super::charts::{Chart, Entry};
use super::plot::{Ink, Mark, OTHER_INKS_COUNT, Plot, Stroke, WIDE};
use super::tables::{self, Table, Tone};
use super::{Environment, escaped, figure_as, head, section};
use crate::RunState;
use crate::format::{bytes, count, duration, known};
use crate::phases::{PhaseReport, PhaseRow, PhasesReport, json, text, weka, words};
use crate::words as shared;

const MIB: f64 = 1_048_576.0;
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

/// Returns the report as an HTML document that needs nothing else.
pub fn render(report: &PhasesReport, environment: &Environment) -> String {
    let state = match report.state {
        RunState::Complete => "",
        RunState::Interrupted => " (interrupted)",
        RunState::Killed => " (killed)",
        RunState::Failed => " (failed)",
    };
    let title = format!("{}{state}", report.what);
    let mut html = head(&title);
    html += &format!(
        "<header>\n<h1>{}</h1>\n<p class=\"caption\">{} · {}</p>\n</header>\n",
        escaped(&title),
        escaped(&report.target.directory),
        escaped(&shared::began(report.started, report.utc_offset_seconds))
    );
    html += &remarks(report);
    if let Some(table) = weka::table(report) {
        html += &section("summary", "Summary", &format!("<pre>{}</pre>\n", lines(&table)));
    }
    for (number, phase) in (1..).zip(&report.phases) {
        html += &stage(number, phase);
    }
    html += &section("run", "The run", &origin(report));
    if !environment.facts.is_empty() {
        html += &section("environment", "Environment", &tables::facts(environment.facts.clone()));
    }
    // A `<` occurs in texts only, where JSON has another way to write it.
    let data = json::render(report).to_string().replace('<', "\\u003c");
    html += &format!(
        "<p class=\"caption\">1 MiB = 1,048,576 bytes; – is unknown or from too few samples. The \
         figures stand in this file as JSON, in the element <code>data</code>.</p>\n</main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n</body>\n</html>\n"
    );
    html
}

/// Returns lines of text, each made safe.
fn lines(text: &str) -> String {
    text.lines().map(|line| escaped(line) + "\n").collect()
}

fn remarks(report: &PhasesReport) -> String {
    let line = |class: &str, text: &str| format!("<li class=\"{class}\">{}</li>\n", escaped(text));
    let failed = match report.failed_count() {
        0 => None,
        failed => Some(line("failure", &format!("{} failed", shared::plural(failed, "operation")))),
    };
    let warnings = text::warnings(report);
    let warnings = warnings.iter().map(|text| line("warning", text));
    let notes = report.notes.iter().map(|text| line("note", text));
    let lines: String = failed.into_iter().chain(warnings).chain(notes).collect();
    if lines.is_empty() { lines } else { format!("<ul id=\"warnings\">\n{lines}</ul>\n") }
}

fn origin(report: &PhasesReport) -> String {
    let target = &report.target;
    let mut facts = vec![("directory", target.directory.clone())];
    facts.extend(target.file_system.clone().map(|text| ("file system", text)));
    facts.extend(target.device.clone().map(|text| ("device", text)));
    facts.extend(target.free_bytes.map(|free| ("free before", bytes(free))));
    facts.extend(report.machine.clone().map(|text| ("machine", text)));
    facts.extend(report.interface.map(Interface::name).map(|name| ("interface", name.into())));
    facts.extend(report.seed.map(|seed| ("seed", seed.0.to_string())));
    facts.extend(report.cleanup.clone().map(|text| ("cleaned up", text)));
    facts.extend(report.tool_version.clone().map(|text| ("plimsoll", text)));
    facts.extend(report.run_id.as_ref().map(|id| ("run", id.to_string())));
    facts.extend(report.run_directory.clone().map(|text| ("kept in", text)));
    let command = escaped(&report.command);
    tables::facts(facts) + &format!("<pre id=\"command\">{command}</pre>\n")
}

/// Returns the section of one stage.
fn stage(number: usize, phase: &PhaseReport) -> String {
    let (id, name) = (format!("stage-{number}"), escaped(&words::name(phase)));
    if !phase.is_result {
        let text = escaped(&words::prepared(phase));
        return section(&id, &name, &format!("<p>{text}</p>\n{}", errors(phase)));
    }
    let several = phase.rows.len() > 1;
    let work = phase.rows.iter().map(|row| {
        let lead = if several { format!("{}: ", row.name) } else { String::new() };
        format!("<p class=\"caption\">{}</p>\n", escaped(&(lead + &words::work(row))))
    });
    let mut html: String = work.collect();
    let told = phase.schedules_told();
    for warning in told.iter().filter_map(|told| told.warning.as_deref()) {
        html += &format!("<p class=\"bad\">{}</p>\n", escaped(warning));
    }
    if let Some(chart) = chart(phase) {
        let chart = figure_as(&format!("chart-{id}"), &chart);
        html += &format!("<div class=\"charts\">{chart}</div>");
    }
    html += &(operations(phase) + &latency(phase) + &done(phase));
    let mut facts =
        vec![("ran", format!("{} from +{}", duration(phase.took), duration(phase.started_after)))];
    facts.extend(told.into_iter().flat_map(|told| told.facts));
    facts.extend(phase.cpu.map(|cpu| {
        let each = known(phase.cpu_per_op(), duration);
        ("client CPU", format!("{}, {each} per operation", duration(cpu)))
    }));
    facts.extend(phase.look_gap_max.map(|gap| ("longest look gap", duration(gap))));
    facts.extend(words::ramp(phase).map(|text| ("ramp", text)));
    facts.extend(words::wrong(phase).map(|text| ("wrong", text)));
    html += &tables::facts(facts);
    section(&id, &name, &(html + &errors(phase)))
}

/// Returns what stands before the figures of a kind.
fn label(phase: &PhaseReport, row: &PhaseRow, kind: &KindFigures) -> String {
    match phase.rows.len() {
        0 | 1 => kind.kind.name().to_owned(),
        _ => format!("{}, {}", row.name, kind.kind.name()),
    }
}

fn operations(phase: &PhaseReport) -> String {
    let mut table = Table::new(&["operations", "succeeded", "failed", "rate", "throughput"]);
    for (row, kind) in phase.kinds() {
        let cells = [
            count(kind.ops_ok),
            count(kind.failed.count()),
            known(kind.ops_per_sec, |rate| words::rate(kind.kind, rate)),
            words::throughput_of(kind, kind.bytes_per_sec),
        ];
        table.row(Tone::Plain, &label(phase, row, kind), cells);
    }
    table.end()
}

fn latency(phase: &PhaseReport) -> String {
    let names = PERCENTILES.map(|(_, name)| name);
    let heading: Vec<&str> =
        ["latency", "average"].into_iter().chain(names).chain(["max"]).collect();
    let mut table = Table::new(&heading);
    let cells = |times: &Times| {
        let percentiles = PERCENTILES.map(|(percent, _)| times.percentile(percent));
        let all = [times.mean()].into_iter().chain(percentiles).chain([times.max()]);
        all.map(|time| known(time, duration)).collect::<Vec<_>>()
    };
    for (row, kind) in phase.kinds().filter(|(_, kind)| kind.ops_ok > 0) {
        table.row(Tone::Plain, &label(phase, row, kind), cells(&kind.latency));
        if kind.service_time != kind.latency {
            table.row(Tone::Part, "service time", cells(&kind.service_time));
        }
    }
    table.end()
}

fn done(phase: &PhaseReport) -> String {
    let mut table = Table::new(&["done", "after", "operations", "rate", "throughput"]);
    for (row, kind) in phase.kinds().filter(|(row, kind)| words::shows_done(row, kind)) {
        let cells = |done: Done| {
            [
                duration(done.after),
                count(done.ops),
                known(done.ops_per_sec, |rate| words::rate(kind.kind, rate)),
                words::throughput_of(kind, done.bytes_per_sec),
            ]
        };
        for (which, done) in [("first", kind.first_done), ("last", kind.last_done)] {
            let Some(done) = done else { continue };
            table.row(Tone::Plain, &format!("{}, {which}", label(phase, row, kind)), cells(done));
        }
    }
    table.end()
}

/// Returns how many failed by class, and the first texts.
fn errors(phase: &PhaseReport) -> String {
    let mut html = String::new();
    for (row, kind) in phase.kinds() {
        for class in ErrorClass::ALL.into_iter().filter(|class| !class.is_ok()) {
            let failed = kind.failed.of(class);
            if failed > 0 {
                let text =
                    format!("{}: {} {}", label(phase, row, kind), count(failed), class.name());
                html += &format!("<p class=\"bad\">{}</p>\n", escaped(&text));
            }
        }
    }
    let line = |text: &str| format!("<li>{}</li>\n", escaped(text));
    let texts: String = phase.errors.iter().map(|error| line(&error.message)).collect();
    if texts.is_empty() { html } else { html + "<ul class=\"errors\">\n" + &texts + "</ul>\n" }
}

/// Returns what a stage did over time; `None` with fewer than two whole windows.
fn chart(phase: &PhaseReport) -> Option<Chart> {
    let moves = phase.kinds().any(|(_, kind)| kind.bytes > 0);
    let drawn = phase.kinds().filter(|(_, kind)| kind.ops_ok > 0 && (!moves || kind.bytes > 0));
    let whole = |kind: &KindFigures| {
        kind.windows.iter().filter(|window| window.length == phase.window).count()
    };
    let drawn: Vec<_> = drawn.filter(|(_, kind)| whole(kind) >= 2).collect();
    let mut marks = Vec::new();
    let mut legend = Vec::new();
    let mut highest = 0.0_f64;
    for (index, (row, kind)) in drawn.iter().take(OTHER_INKS_COUNT).enumerate() {
        let ink = Ink::of_other(index);
        // What is left of a window at either end says little.
        let windows = kind.windows.iter().filter(|window| window.length * 4 >= phase.window);
        let points: Vec<(f64, Option<f64>)> = windows
            .map(|window| {
                let amount = if moves { window.bytes as f64 / MIB } else { window.ops as f64 };
                let middle = (window.start + window.length / 2).as_secs_f64();
                (middle, Some(amount / window.length.as_secs_f64()))
            })
            .collect();
        highest = points.iter().filter_map(|(_, rate)| *rate).fold(highest, f64::max);
        marks.push(Mark::line(ink, Stroke::Solid, points));
        legend.push(Entry { ink, stroke: Stroke::Solid, name: label(phase, row, kind) });
    }
    let left_out = match drawn.len().saturating_sub(OTHER_INKS_COUNT) {
        0 => String::new(),
        more => format!(" {more} more are not drawn."),
    };
    let (title, unit) =
        if moves { ("Throughput", "MiB/s") } else { ("Operations", "operations/s") };
    (!marks.is_empty()).then(|| Chart {
        id: "chart-stage",
        title: format!("{title} over time"),
        caption: format!(
            "{unit}, of what ended in each window of {}, over the time from the start of the \
             stage.{left_out}",
            duration(phase.window)
        ),
        legend,
        plot: Plot {
            size: WIDE,
            x: Axis::seconds(phase.took.max(Duration::from_millis(1)), 10.0),
            y: Axis::from_zero(highest),
            marks,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phases::fixture;

    #[test]
    fn each_stage_has_its_section_and_its_chart() {
        let html = render(&fixture::suite(), &Environment::default());
        for id in ["stage-1", "stage-2", "stage-5", "summary", "run"] {
            assert!(html.contains(&format!("<section id=\"{id}\">")), "{id}");
        }
        // Only the reads of 2 s have windows enough for a chart.
        assert_eq!(html.matches("<svg").count(), 1);
        assert!(html.contains("<td>1.95 GiB/s</td>"), "no throughput");
        assert!(html.contains("WEKA&#39;s summary"), "no summary");
        assert!(html.contains("<td>2,000 ops/s</td>"), "no first done");
    }

    #[test]
    fn what_comes_from_a_run_stays_text() {
        let mut report = fixture::mixed();
        let evil = "<script>alert(1)</script>\"'";
        report.notes.push(evil.to_owned());
        report.phases[0].name = evil.to_owned();
        report.phases[0].rows[0].name = evil.to_owned();
        report.phases[0].errors[0].message = evil.to_owned();
        report.command = evil.to_owned();
        let html = render(&report, &Environment::default());
        assert!(!html.contains("<script>alert"), "an element came in");
        assert_eq!(html.matches("</script>").count(), 1);
        assert!(html.contains("SCHEDULE NOT KEPT"), "no warning");
    }
}

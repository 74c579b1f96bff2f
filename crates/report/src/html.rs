//! The report as one HTML file that needs nothing else: no request, charts as SVG for print, over
//! which the script in the page draws them again to be pointed at, the data inside.
//!
//! Whatever comes from a run is escaped; the policy in the head forbids requests besides, and every
//! script and style but those of the page.

mod axis;
mod charts;
mod colour;
mod comparison;
mod data;
mod distribution;
mod document;
mod heat;
mod limits;
mod live;
mod load_line;
mod marks;
mod overview;
mod plot;
mod scraped;
mod sizes;
mod stages;
mod tables;
mod thin;
mod times;

#[cfg(test)]
mod size_tests;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use plimsoll_analysis::Advice;

use crate::format::{byte_rate, count, duration, object_rate, op_rate, percent, plural};
use crate::report::{RowView, StageReport};
use crate::{Report, agents, stage_words, text, verdict, weka, words};
use charts::{Chart, Charts};
use document::Document;
use limits::{COMMAND_CHARS_MAX, Drawn, LINES_MAX, Limits, NAME_CHARS_MAX, more};
use live::Live;

pub use comparison::{Curve, comparison, curves};
pub(crate) use document::escaped;
pub use document::policy;
pub(crate) use limits::{CELL_CHARS_MAX, TEXT_CHARS_MAX, cut, cut_name, sentence};

/// What a run ran on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Names and values in the order in which they are shown: machine, kernel, cores, memory,
    /// clock, store, ….
    pub facts: Vec<(String, String)>,
}

/// The file is kept below this by leaving out what the JSON report has anyway.
const SIZE_MAX: usize = 880_000;
/// What of it is for the page without its data.
const PAGE_SIZE_MAX: usize = 840_000;

/// Returns the report as an HTML document. Charts need the details of the analysis.
pub fn render(report: &Report, environment: &Environment) -> String {
    let mut limits = Limits::USUAL;
    let mut page = page(report, environment, limits);
    for lower in Limits::steps().skip(1) {
        if page.as_ref().is_some_and(|page| page.len() <= PAGE_SIZE_MAX) {
            break;
        }
        (limits, page) = (lower, self::page(report, environment, lower));
    }
    let page = page.expect("the lowest limits leave the charts of the whole run");
    let (data, left_out) = data::data(report, SIZE_MAX.saturating_sub(page.len()));
    let left_out = left_out.map(|note| format!(" ({note})"));
    let of_page = limits.told().map_or(String::new(), |told| {
        format!(" Left out of the page to keep the file small: {told}.")
    });
    let note = format!(
        "<p class=\"caption\">1 MiB = 1,048,576 bytes; – is unknown or from too few samples.{} The \
         figures stand in this file as JSON, in the element <code>data</code>{}.</p>\n",
        of_page,
        escaped(&left_out.unwrap_or_default())
    );
    page.render(&note, &data)
}

/// Returns the page without its data; `None` where its charts do not fit into one.
fn page(report: &Report, environment: &Environment, limits: Limits) -> Option<Document> {
    let live = Live::new(limits);
    let mut html = match report.only_row() {
        Some(row) => {
            let judged = section("verdict", "Who was the limit", &judged(row.stage));
            headline(&row)
                + &warnings(&row)
                + &judged
                + &origin(&row)
                + &overview::section_of(report, &live)
                + &body(row, "", &live)
        }
        None => several(report, &live),
    };
    html += &scraped::section_of(report, &live);
    html += &section("agents", "The agents", &tables::agents(&report.agents, limits));
    let facts = tables::environment(report, environment);
    html += &section("environment", "Environment", &facts);
    let title = report.title();
    let has_room = !live.is_full();
    has_room.then(|| Document::new(&title, html, live.into_json()))
}

/// Returns a page of several stages.
fn several(report: &Report, live: &Live) -> String {
    let targets: Vec<String> = report.targets.iter().map(stage_words::target).collect();
    let mut html = format!(
        "<header>\n<h1>{}</h1>\n<p class=\"caption\">{} · {}</p>\n</header>\n",
        cut_name(&report.title(), CELL_CHARS_MAX),
        cut(&targets.join("; "), TEXT_CHARS_MAX),
        escaped(&words::began(report.started, report.utc_offset_seconds))
    );
    let failed = match report.failed_count() {
        0 => None,
        failed => Some(format!("{} failed", plural(failed, "operation"))),
    };
    let failures = failed
        .into_iter()
        .chain(verdict::headline(report).map(|_| verdict::line(report).unwrap_or_default()));
    let failures = agents::partial(&report.agents).into_iter().chain(failures);
    html += &lines(failures.collect(), &text::warnings(report), &remarked(report));
    html.extend(report.load_lines.iter().map(|of| load_line::section_of(report, of, live)));
    if let Some(table) = weka::table(report) {
        let lines = table.lines().take(LINES_MAX * 2);
        let table: String = lines.map(|line| cut(line, CELL_CHARS_MAX) + "\n").collect();
        html += &section("summary", "Summary", &format!("<pre>{table}</pre>\n"));
    }
    html += &overview::section_of(report, live);
    let whole = (1..).zip(&report.stages).filter(|(_, stage)| stage.probe_of.is_none());
    let whole: Vec<_> = whole.collect();
    let shown = live.limits.stages_of(&whole);
    for (number, stage) in &shown {
        html += &stages::stage(report, *number, stage, live);
    }
    if shown.len() < whole.len() {
        let more = more(whole.len() - shown.len());
        html += &section("more-stages", "More stages", &format!("<p>{more}</p>\n"));
    }
    html + &section("run", "The run", &stages::origin(report))
}

/// Returns failures, warnings and notes, one a line.
fn lines(failures: Vec<String>, warnings: &[String], notes: &[String]) -> String {
    let classes = [("failure", &failures[..]), ("warning", warnings), ("note", notes)];
    let all = || classes.iter().flat_map(|(of, texts)| texts.iter().map(move |text| (*of, text)));
    let line =
        |(class, text): (&str, &String)| format!("<li class=\"{class}\">{}</li>\n", sentence(text));
    let count = all().count();
    let mut lines: String = all().take(LINES_MAX).map(line).collect();
    if count > LINES_MAX {
        lines += &format!("<li class=\"note\">{}</li>\n", more(count - LINES_MAX));
    }
    if lines.is_empty() { lines } else { format!("<ul id=\"warnings\">\n{lines}</ul>\n") }
}

/// Returns a part of the page with its heading, or nothing without content.
fn section(id: &str, heading: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("<section id=\"{id}\">\n<h2>{heading}</h2>\n{content}</section>\n")
}

/// Returns the title and the figures that matter first.
fn headline(report: &RowView<'_>) -> String {
    let total = &report.row.analysis.total;
    let mut tiles: Vec<(Cow<'_, str>, String, bool)> = Vec::new();
    if let Some(rates) = total.rates.filter(|_| !report.row.analysis.kinds.is_empty()) {
        if total.moves_bytes {
            tiles.push(("throughput".into(), byte_rate(rates.bytes), false));
        }
        tiles.push(("operations".into(), op_rate(rates.ops), false));
        if report.row.analysis.kinds.len() == 1 && rates.objects > rates.ops {
            tiles.push(("objects".into(), object_rate(rates.objects), false));
        }
    }
    let latencies = stage_words::latencies(&report.row.analysis);
    tiles.extend(
        latencies.map(|(name, value)| (format!("latency {name}").into(), duration(value), false)),
    );
    let failed = total.stage.failed.count();
    tiles.push(match report.row.analysis.error_rate() {
        None => ("operations".into(), "none ended".to_owned(), true),
        Some(rate) if failed > 0 => {
            ("failed".into(), format!("{} ({})", count(failed), percent(rate * 100.0)), true)
        }
        Some(_) => ("failed".into(), "0".to_owned(), false),
    });
    let tile = |(name, value, is_bad): &(Cow<'_, str>, String, bool)| {
        let class = if *is_bad { " class=\"bad\"" } else { "" };
        // The unit is smaller than the figure.
        let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
        format!("<div{class}><dt>{name}</dt><dd>{number} <small>{unit}</small></dd></div>\n")
    };
    format!(
        "<header>\n<h1>{}</h1>\n<p class=\"caption\">{} · {}</p>\n<dl id=\"headline\">\n{}</dl>\n\
         </header>\n",
        cut_name(&report.title(), CELL_CHARS_MAX),
        cut(&report.target(), TEXT_CHARS_MAX),
        escaped(&words::began(report.began(), report.utc_offset_seconds)),
        tiles.iter().map(tile).collect::<String>()
    )
}

fn warnings(report: &RowView<'_>) -> String {
    let shed =
        report.row.analysis.advice.iter().filter(|of| matches!(of, Advice::Throttled { .. }));
    let wrong = words::wrong(report).into_iter().map(|(class, text)| format!("{class}: {text}"));
    let warnings = shed.map(words::advice).chain(wrong).chain(words::warnings(report, |_| true));
    let not_the_store = verdict::headline(report).and_then(|_| verdict::line(report));
    let partial = agents::partial(&report.agents).into_iter();
    let failures = partial.chain(not_the_store).chain(report.schedule_warning()).collect();
    lines(failures, &warnings.collect::<Vec<_>>(), &remarked(report))
}

/// Returns who was the limit of a stage, with all evidence; nothing where that is not known.
fn judged(stage: &StageReport) -> String {
    let facts = verdict::facts(stage);
    if facts.is_empty() { String::new() } else { tables::facts(facts) }
}

/// Returns what may mislead, and the notes.
fn remarked(report: &Report) -> Vec<String> {
    let crimes = report.crimes.iter().map(|of| of.text.clone());
    crimes.chain(report.notes.iter().cloned()).collect()
}

/// Returns where the figures come from and how to get them again.
fn origin(report: &RowView<'_>) -> String {
    let mut facts = vec![
        ("target", report.target().clone()),
        ("load", words::loop_model(report)),
        ("measured", words::span(report)),
    ];
    facts.extend(report.schedule_facts());
    facts.extend(words::goodput(report).map(|text| ("goodput", text)));
    facts.extend(words::remarks(report));
    let command = if report.command.is_empty() {
        String::new()
    } else {
        // Without the seed a repetition makes other choices.
        let seed = report.seed.filter(|_| !report.command.contains("--seed"));
        let seed = seed.map_or(String::new(), |seed| format!(" --seed {}", seed.0));
        let with_seed = if seed.is_empty() { "" } else { ", and with the seed that it took" };
        format!(
            "<h3>The command to repeat</h3>\n<pre id=\"command\">{}{seed}</pre>\n\
             <p class=\"caption\">As it was given, without secrets{with_seed}.</p>\n",
            cut(&report.command, COMMAND_CHARS_MAX)
        )
    };
    section("run", "The run", &(tables::facts(facts) + &command))
}

/// Returns tables and charts by subject; `prefix` tells those of one row from those of others.
fn body<'a>(report: RowView<'a>, prefix: &str, live: &Live) -> String {
    let analysis = &report.row.analysis;
    if analysis.kinds.is_empty() {
        return String::new();
    }
    let details = analysis.details.as_ref();
    let charts = details.map(|details| Charts::of_span(report, details));
    let draw = |drawn: Drawn, of: &dyn Fn(&Charts<'a>) -> Vec<Chart>| -> String {
        let most = match live.limits.drawn {
            Drawn::First if drawn == Drawn::First => 1,
            limit if drawn <= limit => usize::MAX,
            _ => return String::new(),
        };
        let charts = charts.as_ref().map(of).unwrap_or_default();
        let figure =
            |chart: &Chart| figure_as(&format!("{prefix}{}", chart.id), prefix, chart, live);
        let figures = charts.iter().take(most).map(figure).collect::<String>();
        grouped(&figures)
    };
    let section = |id: &str, heading: &str, content: &str| {
        section(&format!("{prefix}{id}"), heading, content)
    };
    let mut html = String::new();
    html += &section("operations", "Operations", &tables::operations(analysis));
    let rates = draw(Drawn::First, &Charts::rates) + &tables::rates(analysis);
    html += &section("rates", "Throughput", &rates);
    let times = draw(Drawn::Main, &Charts::latency_over_time)
        + &draw(Drawn::All, &Charts::heat_maps)
        + &draw(Drawn::All, &Charts::distributions);
    html += &section("times", "Latency", &(times + &tables::times(analysis)));
    html += &section("steps", "Steps of the rate", &tables::steps(&report.row.steps));
    let sizes = draw(Drawn::All, &Charts::sizes) + &tables::sizes(&report);
    html += &section("sizes", "By size", &sizes);
    html += &section(
        "hosts",
        "By host",
        &(draw(Drawn::All, &Charts::hosts) + &tables::hosts(&report, live.limits)),
    );
    html += &section("clients", "By client", &tables::clients(&report, live.limits));
    let ledger = crate::ledger::lines(&report);
    if !ledger.is_empty() {
        html += &section("outages", "Outages", &tables::facts(ledger));
    }
    html += &section("accesses", "First and last access of an object", &tables::accesses(&report));
    html + &section(
        "errors",
        "Errors",
        &(draw(Drawn::Main, &Charts::errors) + &tables::errors(&report)),
    )
}

/// Returns charts that stand beside each other where there is room; nothing without one.
fn grouped(figures: &str) -> String {
    if figures.is_empty() {
        return String::new();
    }
    format!("<div class=\"charts\">{figures}</div>\n")
}

/// Returns a chart under that name, if there is room for it, with its title, its legend and its
/// caption, and adds it to the charts of the script, where those over time of one group move
/// together.
fn figure_as(id: &str, group: &str, chart: &Chart, live: &Live) -> String {
    if live.is_full() {
        return String::new();
    }
    let title = cut(&chart.title, CELL_CHARS_MAX);
    let caption = cut(&chart.caption, TEXT_CHARS_MAX);
    let entry = |entry: &charts::Entry| {
        let (look, number) = (entry.stroke.class(), entry.color.number());
        let name = cut_name(&entry.name, NAME_CHARS_MAX);
        // What is marked over the whole height is switched by its colour and its name.
        let mark = if entry.is_mark { format!(" data-mark=\"{number}\"") } else { String::new() };
        format!("<li{mark}><i class=\"{look} s{number}\"></i>{name}</li>")
    };
    let legend: String = chart.legend.iter().map(entry).collect();
    let class = if chart.plot.size.0 == plot::WIDE.0 { "wide" } else { "half" };
    let label = format!("{title}. {caption}");
    let figure = format!(
        "<figure id=\"{id}\" class=\"{class}\" aria-label=\"{title}\">\n<figcaption>\
         <h3>{title}</h3><ul class=\"legend\">{legend}</ul></figcaption>\n{}\
         <p class=\"caption\">{caption}</p>\n</figure>\n",
        chart.plot.svg(&label),
    );
    if live.add(id, group, chart, &figure) { figure } else { String::new() }
}

//! Charts of what a store told of itself while the run lasted.

use std::time::Duration;

use super::axis::{Axis, Reads};
use super::charts::{Chart, Entry, MIB};
use super::colour::SeriesColor;
use super::limits::{Drawn, TEXT_CHARS_MAX, cut};
use super::live::Live;
use super::plot::{HALF, Mark, Plot, Stretch, Stroke};
use super::thin::{POINTS_MAX, thinned};
use super::{figure_as, grouped, section};
use crate::report::Report;
use crate::scraped::{ScrapedMetric, ScrapedReport};
use crate::stage_words;
use crate::table::elided;

/// How much of a stage's name is shown.
const NAME_CHARS_MAX: usize = 16;
/// Room for the names above the highest value.
const HEADROOM: f64 = 1.15;
/// With more stages than this their names would hide each other.
const STAGES_NAMED_MAX: usize = 6;

/// Returns the section of the store's own metrics; nothing where they were not kept.
pub(super) fn section_of(report: &Report, live: &Live) -> String {
    let Some(scraped) = &report.scraped else { return String::new() };
    let ends = report.stages.iter().map(|stage| stage.started_after + stage.took);
    let length = ends.max().unwrap_or_default().max(Duration::from_millis(1));
    let is_drawn = live.limits.drawn >= Drawn::Main;
    let metrics = scraped.metrics.iter().enumerate().filter(|_| is_drawn);
    let figure = |(index, metric): (usize, &ScrapedMetric)| {
        let chart = chart(report, scraped, metric, length);
        figure_as(&format!("chart-scraped-{index}"), "scraped", &chart, live)
    };
    let mut html = grouped(&metrics.map(figure).collect::<String>());
    for page in &scraped.pages {
        html += &format!("<p class=\"caption\">{}</p>\n", cut(&page.line(), TEXT_CHARS_MAX));
    }
    if let Some(left_out) = scraped.left_out() {
        html += &format!("<p class=\"caption\">{}.</p>\n", cut(&left_out, TEXT_CHARS_MAX));
    }
    section("scraped", "The store&#39;s own metrics", &html)
}

fn chart(
    report: &Report,
    scraped: &ScrapedReport,
    metric: &ScrapedMetric,
    length: Duration,
) -> Chart {
    let values = metric.series.iter().flat_map(|of| &of.points).filter_map(|(_, value)| *value);
    let (unit, scale) = unit(metric, values.fold(0.0, f64::max));
    let (mut marks, mut legend, mut highest) = (Vec::new(), Vec::new(), 0.0_f64);
    for (index, of) in metric.series.iter().enumerate() {
        let (color, stroke) = (SeriesColor::of_other(index), Stroke::of_line(index));
        let points: Vec<_> =
            of.points.iter().map(|(at, value)| (*at, value.map(|value| value / scale))).collect();
        highest = points.iter().filter_map(|(_, value)| *value).fold(highest, f64::max);
        let labels = metric.labels(of, &scraped.pages);
        let name = if labels.is_empty() { metric.name.clone() } else { labels };
        let points = thinned(points, POINTS_MAX);
        marks.push(Mark::line(color, stroke, points).named(name.clone()));
        legend.push(Entry::new(color, stroke, name));
    }
    let x = Axis::seconds(length, 5.0).titled("time since the first stage began", Reads::Offset);
    let y = Axis::from_zero(highest * HEADROOM).titled(unit, Reads::Number(unit));
    let stages = report.stages.iter();
    let stretches: Vec<Stretch> = stages
        .map(|stage| Stretch {
            from: stage.started_after.as_secs_f64(),
            until: (stage.started_after + stage.took).as_secs_f64(),
            name: match report.stages.len() <= STAGES_NAMED_MAX {
                true => elided(&stage_words::name(stage), NAME_CHARS_MAX),
                false => String::new(),
            },
        })
        .collect();
    let more = match metric.series_not_shown_count {
        0 => String::new(),
        more => format!(" {more} more of its series moved."),
    };
    let meaning = match metric.is_rate {
        true => "What the store counted from one reading to the next",
        false => "What the store told at each reading",
    };
    let title = if metric.is_rate { ", per second" } else { "" };
    Chart {
        id: "chart-scraped".to_owned(),
        title: format!("{}{title}", metric.name),
        caption: format!("{meaning}, {unit}.{more}"),
        legend,
        plot: Plot { stretches, ..Plot::new(HALF, x, y, marks) },
    }
}

/// Returns the unit that values up to `max` are shown in, and what they are divided by.
fn unit(metric: &ScrapedMetric, max: f64) -> (&'static str, f64) {
    let has = |word: &str| metric.name.split('_').any(|of| of == word);
    match (has("bytes"), has("seconds"), metric.is_rate) {
        (true, _, true) => ("MiB/s", MIB),
        (true, _, false) => ("MiB", MIB),
        (_, true, true) => ("s/s", 1.0),
        (_, true, false) => ("s", 1.0),
        (_, _, true) if max >= 1e6 => ("millions/s", 1e6),
        (_, _, true) => ("per second", 1.0),
        (_, _, false) if max >= 1e9 => ("thousand millions", 1e9),
        (_, _, false) if max >= 1e6 => ("millions", 1e6),
        (_, _, false) => ("value", 1.0),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a page is written for a browser")]
mod tests {
    use std::collections::BTreeMap;

    use plimsoll_testkit::browser::{Page, View};

    use super::*;
    use crate::fixture_files as fixture;
    use crate::html::{Environment, render};
    use crate::scraped::{ScrapedPageReport, ScrapedValues};

    fn values(api: &str, value: f64) -> ScrapedValues {
        ScrapedValues {
            page_index: 0,
            labels: BTreeMap::from([
                ("api".to_owned(), api.to_owned()),
                ("server".to_owned(), "s1".to_owned()),
            ]),
            min: 0.0,
            mean: value,
            max: value,
            points: vec![(0.5, Some(0.0)), (1.0, None), (1.5, Some(value))],
        }
    }

    #[test]
    fn each_metric_has_a_chart_and_what_is_left_out_is_said() {
        let mut report = fixture::mixed();
        let evil = "<script>alert(1)</script>";
        let metric = |name: &str, is_rate, series| ScrapedMetric {
            name: name.to_owned(),
            is_rate,
            series,
            series_not_shown_count: 3,
        };
        report.scraped = Some(ScrapedReport {
            pages: vec![ScrapedPageReport {
                url: "http://h:9000/metrics".to_owned(),
                interval_ns: 2_000_000_000,
                scrapes_count: 5,
                failed_count: 1,
                first_failure: Some(evil.to_owned()),
                series_count: 40,
                left_out_count: 7,
            }],
            metrics: vec![
                metric("x_bytes_total", true, vec![values("get", 3e6), values(evil, 1e6)]),
                metric("y", false, vec![values("get", 5.0)]),
            ],
            series_moved_not_shown_count: 9,
            series_still_count: 0,
        });
        let html = render(&report, &Environment::default());
        for text in [
            "<section id=\"scraped\">",
            "<figure id=\"chart-scraped-0\"",
            "<figure id=\"chart-scraped-1\"",
            "x_bytes_total, per second</h3>",
            "from one reading to the next, MiB/s. 3 more of its series moved.",
            ">api=get</li>",
            "read 5 times, 40 series kept, 7 left out, 1 failed: &lt;script&gt;",
            "9 more series moved: scraped.jsonl has them.",
        ] {
            assert!(html.contains(text), "{text}");
        }
        assert!(!html.contains("<script>alert"), "an element came in");
        // The label in which they do not differ is left out.
        assert!(!html.contains(">api=get, server=s1</li>"));
    }

    #[test]
    fn long_names_do_not_stick_out_on_a_phone() {
        let long = "a_name_without_any_place_to_break".repeat(4);
        let series = vec![values(&long, 3e6), values("get", 1e6)];
        let metric = ScrapedMetric { name: long, is_rate: true, series, series_not_shown_count: 0 };
        let mut report = fixture::mixed();
        report.scraped = Some(ScrapedReport {
            pages: Vec::new(),
            metrics: vec![metric],
            series_moved_not_shown_count: 0,
            series_still_count: 0,
        });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scraped.html");
        std::fs::write(&path, render(&report, &Environment::default())).unwrap();
        let view = View { width: 375, height: 800, is_dark: false };
        let Some(mut page) = Page::open(view) else { return };
        page.go(&format!("file://{}", path.display()));
        page.until("document.querySelectorAll('#scraped .legend button').length === 2");
        assert_eq!(page.eval("document.documentElement.scrollWidth"), 375, "nothing sticks out");
    }
}

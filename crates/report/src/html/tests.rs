//! The page against what it must be: whole, small, harmless, and as a browser sees it.
#![allow(clippy::disallowed_methods)]

use std::time::Duration;

use plimsoll_analysis::{Depth, Question, RowAnalysis, RowAsked, Rows, Span, StepFigures, analyze};
use plimsoll_model::{
    EndpointId, ErrorClass, Moment, ObjectId, OpKind, OpRate, OpRecord, StageId, WorkerId,
};
use plimsoll_testkit::browser;

use super::*;
use crate::{ErrorSample, fixture};

const SECOND: u64 = 1_000_000_000;
const SIZE_MAX: usize = 900_000;
/// The charts, the script and the data.
const SCRIPTS: usize = 3;

/// A sequence of numbers without a pattern that an eye sees (SplitMix64; Steele, Lea, Flood 2014).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Returns a number from 0 to 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Ten workers on two hosts mix four kinds for that long; the second host is slower, sheds load
/// in a stretch, and breaks off connections now and then.
fn mixed_ops(seconds: u64) -> Vec<OpRecord> {
    let mut ops = Vec::new();
    for worker in 0..10 {
        let mut noise = Noise(u64::from(worker));
        let mut now = 1_000_000 * u64::from(worker);
        while now < seconds * SECOND {
            let (kind, base_ms, bytes) = match noise.next() % 20 {
                0..=8 => (OpKind::Get, 12.0, 1 << (10 + noise.next() % 12)),
                9..=14 => (OpKind::Put, 40.0, 1 << (10 + noise.next() % 12)),
                15..=16 => (OpKind::Delete, 4.0, 0),
                _ => (OpKind::Stat, 1.5, 0),
            };
            let host = (noise.next() % 2) as u16;
            let slow = if host == 1 { 1.6 } else { 1.0 };
            // A long tail: one in a hundred takes five times as long.
            let tail = if noise.part() > 0.99 { 5.0 } else { 1.0 };
            let transfer_ms = bytes as f64 / 50_000.0;
            let took_ms = (base_ms * (0.6 + 0.8 * noise.part()) + transfer_ms) * slow * tail;
            let took = (took_ms * 1e6) as u64;
            let late = (seconds / 2 * SECOND..seconds * 11 / 20 * SECOND).contains(&now);
            let outcome = match (host, late, noise.next() % 10) {
                (1, true, 0..=3) => ErrorClass::Throttled,
                (1, _, 9) if noise.next().is_multiple_of(20) => ErrorClass::Reset,
                _ => ErrorClass::Ok,
            };
            let start = Moment::from_ns(now);
            ops.push(OpRecord {
                stage: StageId(1),
                endpoint: EndpointId(host),
                object: Some(ObjectId::new(WorkerId(worker), noise.next() % 500)),
                objects_count: 1,
                bytes,
                intended: start,
                start,
                first_byte: Some(Moment::from_ns(now + took / 3)),
                assigned: None,
                last_byte_sent: (kind == OpKind::Put).then(|| Moment::from_ns(now + took / 4)),
                end: Moment::from_ns(now + took),
                outcome,
                ..fixture::op(kind, worker, 0, 1)
            });
            now += took + 20_000;
        }
    }
    ops
}

fn detailed(ops: &[OpRecord], seconds: u64, workers: u32) -> RowAnalysis {
    let ended = Moment::from_ns(seconds * SECOND);
    let question = Question {
        depth: Depth::Details,
        ..Question::about(StageId(1), Moment::EPOCH, ended, workers)
    };
    let Ok(mut analysis) = analyze(ops, &question);
    analysis.rows.pop().unwrap()
}

fn mixed(seconds: u64) -> Report {
    let analysis = detailed(&mixed_ops(seconds), seconds, 10);
    let mut report = fixture::report("s3 mixed", analysis, 10);
    report.endpoints = vec!["http://a.example:9000".to_owned(), "http://b.example:9000".to_owned()];
    report.stages[1].errors = vec![ErrorSample {
        class: ErrorClass::Throttled,
        kind: OpKind::Put,
        endpoint: Some(EndpointId(1)),
        status: None,
        message: "SlowDown: please reduce your request rate".to_owned(),
    }];
    report
}

fn environment() -> Environment {
    let fact = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    Environment {
        facts: [("machine", "x86_64"), ("kernel", "Linux 6.18"), ("cores", "2")].map(fact).into(),
    }
}

/// Returns the ids of the charts of a page, and checks that each is drawn.
fn charts(html: &str) -> Vec<&str> {
    let figures = html.split("<figure id=\"").skip(1);
    let id = |figure: &'_ str| {
        let (figure, _) = figure.split_once("</figure>").expect("a figure ends");
        let (_, svg) = figure.split_once("<svg ").expect("a figure holds a drawing");
        assert!(svg.contains("<text") && svg.contains("</svg>"), "{figure}");
        let marks = ["<polyline", "<polygon", "<circle", "<path"];
        let has_mark = marks.iter().any(|mark| svg.contains(mark));
        assert!(has_mark, "{figure}");
        figure.find('"').expect("an id ends")
    };
    figures.map(|figure| &figure[..id(figure)]).collect()
}

const CHARTS_OF_A_MIX: [&str; 16] = [
    "chart-run-throughput",
    "chart-run-operations",
    "chart-throughput",
    "chart-operations",
    "chart-latency",
    "chart-latency-p99",
    "chart-heat-put",
    "chart-heat-get",
    "chart-heat-delete",
    "chart-heat-stat",
    "chart-latency-percentiles",
    "chart-ttfb-percentiles",
    "chart-size-latency",
    "chart-size-throughput",
    "chart-hosts",
    "chart-errors",
];

#[test]
fn ten_minutes_of_four_kinds_on_two_hosts_are_small() {
    let report = mixed(600);
    assert_eq!(report.stages[1].rows[0].analysis.kinds.len(), 4);
    assert_eq!(report.stages[1].rows[0].analysis.segments_count, 119, "segments of 5 s");
    let html = render(&report, &environment());
    assert!(html.len() <= SIZE_MAX, "{} bytes", html.len());
    assert_eq!(charts(&html), CHARTS_OF_A_MIX);
}

#[test]
fn the_most_segments_that_there_are_by_themselves_are_small_too() {
    let report = mixed(400);
    assert_eq!(report.stages[1].rows[0].analysis.segments_count, 399, "segments of 1 s");
    let html = render(&report, &environment());
    let parts: Vec<usize> = html.split("<script").map(str::len).collect();
    assert!(html.len() <= SIZE_MAX, "{} bytes: {parts:?}", html.len());
}

/// An hour in segments of a second, five kinds on two hosts: the most that is asked for by hand.
#[test]
fn an_hour_of_seconds_is_small_and_a_spike_and_a_stall_stay() {
    const HOUR: u64 = 3_600;
    let kinds = [OpKind::Get, OpKind::Put, OpKind::Stat, OpKind::Delete, OpKind::List];
    let mut ops = Vec::new();
    let mut noise = Noise(7);
    for (worker, kind) in (0..).zip(kinds) {
        let mut now = 0;
        while now < HOUR * 1_000 {
            // In second 1,000 nothing ends but what began before it; in second 2,000 all is fast.
            let took = match now {
                1_000_000..1_001_000 => 1_000,
                2_000_000..2_001_000 => 20,
                _ => 150 + noise.next() % 100,
            };
            let op = fixture::op(kind, worker, now, took);
            ops.push(OpRecord { endpoint: EndpointId((noise.next() % 2) as u16), ..op });
            now += took;
        }
    }
    let about = Question::about(StageId(1), Moment::EPOCH, Moment::from_ns(HOUR * SECOND), 5);
    let segment = Some(Duration::from_secs(1));
    let Ok(mut analysis) = analyze(&ops, &Question { depth: Depth::Details, segment, ..about });
    let analysis = analysis.rows.pop().unwrap();
    assert!(analysis.segments_count > 3_500, "{}", analysis.segments_count);
    let mut report = fixture::report("s3 mixed", analysis, 5);
    report.endpoints = vec!["http://a.example:9000".to_owned(), "http://b.example:9000".to_owned()];
    let html = render(&report, &environment());
    let parts: Vec<usize> = html.split("<script").map(str::len).collect();
    assert!(html.len() <= SIZE_MAX, "{} bytes: {parts:?}", html.len());
    let chart = &live(&html)["chart-operations"];
    for series in chart["series"].as_array().unwrap() {
        let values = series["y"].as_array().unwrap();
        assert!(values.len() <= 600, "{}", values.len());
        let of_each = if series["name"] == "total" { 5.0 } else { 1.0 };
        let values = || values.iter().filter_map(serde_json::Value::as_f64);
        let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(0.0, f64::max));
        assert!(low <= 3.0 * of_each, "{}: the stall, {low}", series["name"]);
        // 50 of 20 ms, but for what began in the second before; otherwise there are 4 to 7.
        assert!(high >= 35.0 * of_each, "{}: the spike, {high}", series["name"]);
    }
}

/// Returns the charts that the script of a page is given, by their names.
fn live(html: &str) -> std::collections::BTreeMap<String, serde_json::Value> {
    let (_, charts) = html.split_once("<script type=\"application/json\" id=\"charts\">").unwrap();
    let (charts, _) = charts.split_once("</script>").unwrap();
    assert!(!charts.contains('<'));
    let charts: Vec<serde_json::Value> = serde_json::from_str(charts).unwrap();
    let named = charts.into_iter().map(|chart| (chart["id"].as_str().unwrap().to_owned(), chart));
    named.collect()
}

#[test]
fn charts_over_time_reach_over_the_whole_span_and_mark_what_failed() {
    let report = mixed(30);
    let analysis = &report.stages[1].rows[0].analysis;
    let charts = live(&render(&report, &environment()));
    let length = analysis.span.length().as_secs_f64();
    let over_time: Vec<_> = charts.values().filter(|chart| chart["group"] == "time-").collect();
    assert_eq!(over_time.len(), 10, "rates, latencies, maps, hosts and errors: {charts:?}");
    for chart in over_time {
        let high = chart["x"]["high"].as_f64().unwrap();
        assert!((high - length).abs() < 1e-9, "{}: {high} of {length}", chart["id"]);
        // Half of the run sheds load for a twentieth of it, from 15 s on.
        let bands = chart["bands"].as_array().unwrap();
        let shed = |band: &&serde_json::Value| band[3].as_str().unwrap().contains("throttled");
        let shed = bands.iter().find(shed).unwrap_or_else(|| panic!("{bands:?}"));
        let (from, until) = (shed[0].as_f64().unwrap(), shed[1].as_f64().unwrap());
        assert!(from <= 16.0 && until >= 15.5 && from < until, "{shed}");
    }
    let names: Vec<&str> = charts["chart-operations"]["series"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|series| series["name"].as_str())
        .collect();
    assert_eq!(names, ["PUT", "GET", "DELETE", "STAT", "total"]);
}

#[test]
fn the_offered_rate_changes_at_once_where_a_step_ends() {
    let mut report = mixed(30);
    let step = |from: u64, offered: f64| StepFigures {
        from: Duration::from_secs(from),
        length: Duration::from_secs(15),
        offered: OpRate(offered),
        achieved: OpRate(offered),
        issued_count: 1_000,
        late_count: 0,
        failed_count: 0,
        latency_ns_p50: None,
        latency_ns_p99: None,
        is_kept: true,
    };
    report.stages[1].rows[0].steps = vec![step(0, 400.0), step(15, 1_600.0)];
    let charts = live(&render(&report, &environment()));
    let chart = &charts["chart-operations"];
    let series = chart["series"].as_array().unwrap();
    let offered = series.iter().find(|of| of["name"] == "offered").unwrap();
    let at = chart["xs"][offered["x"].as_u64().unwrap() as usize].clone();
    let at: Vec<f64> = serde_json::from_value(at).unwrap();
    let rates: Vec<f64> = serde_json::from_value(offered["y"].clone()).unwrap();
    assert_eq!(rates, [400.0, 400.0, 1_600.0, 1_600.0]);
    assert!(at.is_sorted_by(|a, b| a < b) && at[2] - at[1] < 0.001, "{at:?}");
}

#[test]
fn the_data_inside_is_the_json_report() {
    let mut report = mixed(5);
    report.command = "plimsoll s3 mixed --prefix '</script><!-- x'".to_owned();
    let html = render(&report, &environment());
    let (_, data) = html.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    let (data, rest) = data.split_once("</script>").unwrap();
    assert_eq!(rest, "\n</body>\n</html>\n");
    assert!(serde_json::from_str::<serde_json::Value>(data).is_ok() && !data.contains('<'));
    let whole = crate::json::value(&report).to_string();
    assert!(data.replace("\\u003c", "<") == whole);
}

/// Every text that comes from a run tries to become an element.
fn hostile() -> Report {
    let evil = |what: &str| format!("<script>throw '{what}'</script>\"'><img src=http://x/{what}>");
    let mut report = mixed(5);
    report.endpoints = vec![evil("host"), evil("other-host")];
    report.what = evil("what");
    report.command = evil("command");
    report.targets[0].address = evil("target");
    report.foreign = Some(evil("foreign"));
    report.tool_version = Some(evil("version"));
    report.run_directory = Some(evil("directory"));
    report.losses = vec![evil("loss")];
    report.notes = vec![evil("note")];
    report.stages[1].errors[0].class = ErrorClass::Reset;
    report.stages[1].errors[0].message = evil("error");
    let other = ErrorSample { endpoint: None, ..report.stages[1].errors[0].clone() };
    report.stages[1].errors.push(other);
    report
}

#[test]
fn nothing_of_a_run_becomes_an_element() {
    let fact = ("<script>".to_owned(), "</dd><img src=x>".to_owned());
    let html = render(&hostile(), &Environment { facts: vec![fact] });
    // The charts, the script and the data, and no picture.
    assert_eq!(html.matches("<script").count(), SCRIPTS);
    assert_eq!(html.matches("</script").count(), SCRIPTS);
    assert_eq!(html.matches("<img").count(), 0);
    for what in ["host", "what", "command", "target", "loss", "note", "error", "directory"] {
        assert!(html.contains(&format!("&lt;script&gt;throw &#39;{what}&#39;")), "{what}");
    }
}

#[test]
fn the_page_refers_to_nothing_outside() {
    let html = render(&mixed(5), &environment());
    let (page, _) = html.split_once("<script type=\"application/json\"").unwrap();
    // The drawings have no style of their own, which the policy would forbid.
    assert!(!page.contains(" style="));
    for outside in ["src=", "url(", "@import", "<object", "<embed", "<iframe", "xlink", "srcset"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let links: Vec<_> = page.match_indices("href=").map(|(at, _)| &page[at..at + 13]).collect();
    assert_eq!(links, ["href=\"data:,\""]);
    assert_eq!(page.matches("http-equiv").count(), 1);
}

#[test]
fn the_headline_says_what_the_text_report_says() {
    let html = render(&fixture::steady(), &Environment::default());
    // 800 operations of 10 KiB a second.
    for tile in [
        "<dt>throughput</dt><dd>7.81 <small>MiB/s</small>",
        "<dt>operations</dt><dd>800 <small>ops/s</small>",
        "<dt>latency p50</dt><dd>10.0 <small>ms</small>",
        "<dt>failed</dt><dd>0 ",
    ] {
        assert!(html.contains(tile), "{tile}");
    }
    assert!(html.contains("<pre id=\"command\">plimsoll s3 get --concurrent 8 --seed 7</pre>"));
    assert!(!html.contains("NaN") && !html.contains("inf,"));
}

#[test]
fn an_open_loop_that_was_held_back_says_so_first() {
    let report = fixture::stalled();
    let html = render(&report, &environment());
    let (head, _) = html.split_once("<section").unwrap();
    assert!(head.contains("<li class=\"failure\">SCHEDULE NOT KEPT: 89 of 2,000"), "{head}");
    for text in [
        "open loop, 1000/s constant, up to 20 in flight: latency from the intended start",
        "<th scope=\"row\">GET latency</th><td>2.00 ms</td><td>2.00 ms</td><td>83.0 ms</td>",
        "<th scope=\"row\">service time</th><td>2.00 ms</td><td>2.00 ms</td><td>2.00 ms</td>",
        "<th scope=\"row\">schedule delay</th><td>0 s</td><td>0 s</td><td>63.0 ms</td>",
        "1,000 ops/s (2,000 operations in 2.00 s); achieved 1,000 ops/s",
    ] {
        assert!(html.contains(text), "{text}");
    }
    let open = RowAsked { workers: 10, span: Span::Whole, open: true, ends: None };
    let Ok(mut analysis) = analyze(
        &mixed_ops(5),
        &Question {
            depth: Depth::Details,
            rows: Rows::One(open),
            ..Question::about(StageId(1), Moment::EPOCH, Moment::from_ns(6 * SECOND), 10)
        },
    );
    let mut report = report;
    fixture::row(&mut report).analysis = analysis.rows.pop().unwrap();
    let html = render(&report, &environment());
    let charts = charts(&html);
    assert!(charts.contains(&"chart-service-percentiles"), "{charts:?}");
}

#[test]
fn failures_and_wrong_content_stand_with_the_warnings_and_the_goodput_is_zero() {
    let html = render(&fixture::failing(), &environment());
    assert!(html.contains("corrupt: 2,400 (1,000 old-version, 1,400 torn)</li>"), "{html}");
    assert!(html.contains("<dt>goodput</dt><dd>0 MiB/s, 0 ops/s: failures"), "{html}");
    assert!(!html.contains("NaN"));
    assert!(html.contains("<h2>Outages</h2>\n<dl>\n<dt>outage</dt>"), "{html}");
}

#[test]
fn what_is_not_known_leaves_no_empty_chart_and_no_false_zero() {
    // Without details there are tables only.
    assert_eq!(charts(&render(&fixture::troubled(), &Environment::default())), [""; 0]);
    let nothing = fixture::report("s3 get", detailed(&[], 1, 8), 8);
    let html = render(&nothing, &Environment::default());
    assert!(html.contains("none <small>ended</small>"), "{html}");
    assert_eq!(charts(&html), [""; 0]);
    // One operation has a latency, but no distribution worth a curve.
    let single = [fixture::op(OpKind::Get, 0, 0, 2_500)];
    let html = render(&fixture::report("s3 get", detailed(&single, 3, 1), 1), &environment());
    assert!(charts(&html).contains(&"chart-throughput"), "{:?}", charts(&html));
    assert!(!charts(&html).contains(&"chart-latency-percentiles"));
    assert!(html.contains(crate::format::UNKNOWN) && !html.contains("NaN"));
    // Nor is there a heading with nothing under it.
    assert!(!html.contains("<h2>Outages</h2>") && !html.contains("<dl>\n</dl>"), "{html}");
}

#[test]
fn failures_alone_are_shown() {
    let failed = |op: OpRecord| OpRecord { outcome: ErrorClass::Connect, ..op };
    let ops: Vec<_> =
        fixture::back_to_back(OpKind::Stat, 0, 5_000, 50).into_iter().map(failed).collect();
    let report = fixture::report("s3 stat", detailed(&ops, 5, 1), 1);
    let html = render(&report, &Environment::default());
    let wanted =
        ["chart-run-throughput", "chart-run-operations", "chart-throughput", "chart-errors"];
    assert_eq!(charts(&html), wanted);
    assert!(html.contains("<div class=\"bad\"><dt>failed</dt><dd>100 <small>(100 %)"), "{html}");
}

#[test]
fn a_browser_shows_every_chart_asks_for_nothing_and_has_no_complaint() {
    let folder = tempfile::tempdir().unwrap();
    for (name, report, wanted) in [
        ("mixed", mixed(30), CHARTS_OF_A_MIX.to_vec()),
        ("hostile", hostile(), CHARTS_OF_A_MIX.to_vec()),
        ("no-details", fixture::troubled(), Vec::new()),
        ("open-loop", fixture::stalled(), Vec::new()),
    ] {
        let path = folder.path().join(format!("{name}.html"));
        std::fs::write(&path, render(&report, &environment())).unwrap();
        let Some(looked) = browser::look(&path) else { return };
        assert_eq!(looked.console, [""; 0], "{name}");
        assert_eq!(looked.requests, [""; 0], "{name}");
        assert_eq!(charts(&looked.dom), wanted, "{name}");
        assert_eq!(looked.dom.matches("<script").count(), SCRIPTS, "{name}");
        // Each chart that has values is drawn by the script, over its drawing.
        let drawn = looked.dom.matches("class=\"uplot").count();
        assert_eq!(drawn, wanted.len(), "{name}");
    }
}

/// What a test does with a finger, in the page.
const FINGER: &str = "
  const over = (id) => document.querySelector('#' + id + ' .u-over');
  // What a finger did `at` so many milliseconds after the page was opened, whenever that is told.
  const made = (id, type, part, at) => {
    const box = over(id).getBoundingClientRect();
    const place = { clientX: box.left + part * box.width, clientY: box.top + box.height / 2 };
    const finger = { pointerType: 'touch', isPrimary: true, bubbles: true, cancelable: true };
    const event = new PointerEvent(type, { ...place, ...finger });
    return Object.defineProperty(event, 'timeStamp', { value: at });
  };
  const send = (id, events) => events.forEach((event) => over(id).dispatchEvent(event));
  const touch = (id, type, part) => {
    const event = made(id, type, part, 5000);
    send(id, [event]);
    return event.defaultPrevented;
  };
  const tap = (id, part, at) =>
    send(id, ['pointerdown', 'pointerup'].map((type) => made(id, type, part, at)));
  const tip = (id) => document.querySelector('#' + id + ' .tip');
  const reset = (id) => document.querySelector('#' + id + ' .reset');
";

#[test]
fn a_finger_taps_for_values_drags_to_zoom_and_taps_twice_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mixed.html");
    std::fs::write(&path, render(&mixed(30), &environment())).unwrap();
    let Some(mut page) =
        browser::Page::open(browser::View { width: 420, height: 900, is_dark: false })
    else {
        return;
    };
    page.go(&format!("file://{}", path.display()));
    page.until("document.querySelectorAll('.uplot').length === 16");
    let mut run = |script: &str| page.eval(&format!("(() => {{{FINGER}{script}}})()"));
    // Up and down is left to the page, so that it can be scrolled with a chart under the finger.
    let action = "return getComputedStyle(over('chart-operations')).touchAction";
    assert_eq!(run(action), "pan-y");
    assert_eq!(run("return document.documentElement.scrollWidth"), 420, "nothing sticks out");
    // One tap, though the page has just been opened.
    run("tap('chart-operations', .5, 100)");
    assert_eq!(run("return tip('chart-operations').textContent.includes('total')"), true);
    assert_eq!(run("return tip('chart-latency').hidden"), false, "the others tell of it too");
    assert_eq!(run("return reset('chart-operations').hidden"), true);
    // No mouse events of the same touch.
    assert_eq!(run("return touch('chart-latency', 'pointerdown', .2)"), true);
    run("touch('chart-latency', 'pointermove', .4); touch('chart-latency', 'pointerup', .6)");
    for chart in ["chart-operations", "chart-latency", "chart-heat-get"] {
        assert_eq!(run(&format!("return reset('{chart}').hidden")), false, "{chart} is zoomed");
    }
    run("tap('chart-hosts', .5, 9000); tap('chart-hosts', .5, 9400)");
    assert_eq!(run("return reset('chart-latency').hidden"), false, "two taps, not one twice");
    run("tap('chart-hosts', .5, 9700)");
    assert_eq!(run("return reset('chart-latency').hidden"), true, "two taps show all");
    // What the browser takes over to scroll zooms nothing.
    run("touch('chart-latency', 'pointerdown', .2); touch('chart-latency', 'pointermove', .4);
         touch('chart-latency', 'pointercancel', .4); touch('chart-latency', 'pointerup', .6)");
    assert_eq!(run("return reset('chart-latency').hidden"), true);
    run("document.querySelector('h1').dispatchEvent(
             new PointerEvent('pointerdown', { pointerType: 'touch', bubbles: true }))");
    assert_eq!(run("return tip('chart-operations').hidden"), true, "a tap elsewhere");
    assert_eq!(page.complaints(), [""; 0]);
}

#[test]
fn of_many_hosts_the_slowest_and_the_fastest_are_drawn_and_all_are_listed() {
    // Twenty workers on a host each; every one takes a millisecond longer than the one before.
    let of_worker = |worker: u32| {
        let ops = fixture::back_to_back(OpKind::Get, worker, 5_000, 10 + u64::from(worker));
        ops.into_iter().map(move |op| OpRecord { endpoint: EndpointId(worker as u16), ..op })
    };
    let ops: Vec<_> = (0..20).flat_map(of_worker).collect();
    let client_of: Vec<u16> = (0..20).map(|worker| worker / 10).collect();
    let ended = Moment::from_ns(5 * SECOND);
    let about = Question::about(StageId(1), Moment::EPOCH, ended, 20);
    let asked = Question { depth: Depth::Details, client_of: &client_of, ..about };
    let Ok(mut analysis) = analyze(&ops, &asked);
    let mut report = fixture::report("s3 get", analysis.rows.pop().unwrap(), 20);
    report.endpoints = (0..20).map(|host| format!("http://host-{host}:9000")).collect();
    report.clients = vec!["client-east".to_owned(), "client-west".to_owned()];
    let html = render(&report, &environment());
    let (_, figure) = html.split_once("<figure id=\"chart-hosts\"").unwrap();
    let (figure, _) = figure.split_once("</figure>").unwrap();
    let drawn: Vec<u32> =
        (0..20).filter(|host| figure.contains(&format!("host-{host}:"))).collect();
    assert_eq!(drawn, [0, 1, 2, 3, 16, 17, 18, 19]);
    // No two lines have the same dashes.
    for pattern in 1..=8 {
        let stroke = format!("stroke=\"#0A{pattern:02X}");
        assert_eq!(figure.matches(&stroke).count(), 1, "{stroke}");
    }
    for host in 0..20 {
        let row = format!("<th scope=\"row\">http://host-{host}:9000</th>");
        assert_eq!(html.matches(&row).count(), 1);
    }
    assert!(html.contains("<th scope=\"row\">client-west</th>"));
}

/// What a test does with a mouse, in the page.
const MOUSE: &str = "
  const over = (id) => document.querySelector('#' + id + ' .u-over');
  const mouse = (id, type, part) => {
    const box = over(id).getBoundingClientRect();
    const place = { clientX: box.left + part * box.width, clientY: box.top + box.height / 2 };
    const moved = { movementX: 9, bubbles: true, button: 0, view: window };
    const event = new MouseEvent(type, { ...place, ...moved });
    (type === 'mouseup' ? document : over(id)).dispatchEvent(event);
  };
  const label = (id) => document.querySelector('#' + id + ' .tip b').textContent;
  const tip = (id) => document.querySelector('#' + id + ' .tip');
  const reset = (id) => document.querySelector('#' + id + ' .reset');
";

#[test]
fn one_points_at_charts_zooms_all_of_them_and_switches_series_by_keyboard() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mixed.html");
    std::fs::write(&path, render(&mixed(30), &environment())).unwrap();
    let Some(mut page) =
        browser::Page::open(browser::View { width: 1_200, height: 900, is_dark: false })
    else {
        return;
    };
    page.go(&format!("file://{}", path.display()));
    page.until("document.querySelectorAll('.uplot').length === 16");
    // A name in a legend has room beside its colour.
    let lines = "[...document.querySelectorAll('.legend button')].map((of) => of.offsetHeight)";
    assert_eq!(page.eval(&format!("Math.max(...{lines}) < 30")), true, "of one line");
    let mut run = |script: &str| page.eval(&format!("(() => {{{MOUSE}{script}}})()"));
    // Half of the span: 15 s, where the second host sheds load.
    run("mouse('chart-operations', 'mouseenter', .5); mouse('chart-operations', 'mousemove', .52)");
    let told = run("return tip('chart-operations').textContent");
    let told = told.as_str().unwrap();
    for text in ["15.", "PUT", "GET", "total", "operations/s", "throttled"] {
        assert!(told.contains(text), "{text}: {told}");
    }
    // The others tell of the same instant.
    assert_eq!(run("return tip('chart-latency').hidden"), false);
    assert_eq!(run("return label('chart-latency') === label('chart-operations')"), true);
    assert_eq!(run("return tip('chart-latency').textContent.includes('ms')"), true);
    // Dragged over a stretch, all charts over time show it, and all of them all again.
    assert_eq!(run("return reset('chart-heat-get').hidden"), true);
    run("mouse('chart-operations', 'mousedown', .25); mouse('chart-operations', 'mousemove', .5);
         mouse('chart-operations', 'mouseup', .5)");
    for chart in ["chart-operations", "chart-throughput", "chart-latency", "chart-heat-get"] {
        let zoomed = run(&format!("return reset('{chart}').hidden"));
        assert_eq!(zoomed, false, "{chart} is zoomed");
    }
    run("mouse('chart-latency', 'dblclick', .5)");
    for chart in ["chart-operations", "chart-throughput", "chart-latency", "chart-heat-get"] {
        assert_eq!(run(&format!("return reset('{chart}').hidden")), true, "{chart} is whole");
    }
    let button = "document.querySelector('#chart-operations .legend button')";
    run(&format!("{button}.focus()"));
    page.press("Enter");
    let pressed = page.eval(&format!("{button}.getAttribute('aria-pressed')"));
    assert_eq!(pressed, "false", "the first series is off");
    // Bands have a button too: without it nothing more is told of them.
    let mut run = |script: &str| page.eval(&format!("(() => {{{MOUSE}{script}}})()"));
    let told = "mouse('chart-operations', 'mousemove', .52);
                return tip('chart-operations').textContent.includes('throttled')";
    assert_eq!(run(told), true);
    let button = "document.querySelector('#chart-operations .legend [data-mark] button')";
    page.eval(&format!("{button}.focus()"));
    page.press(" ");
    let pressed = page.eval(&format!("{button}.getAttribute('aria-pressed')"));
    assert_eq!(pressed, "false", "failures are off");
    let mut run = |script: &str| page.eval(&format!("(() => {{{MOUSE}{script}}})()"));
    assert_eq!(run(told), false);
    page.press(" ");
    let mut run = |script: &str| page.eval(&format!("(() => {{{MOUSE}{script}}})()"));
    assert_eq!(run(told), true);
    // The whole run says of which stage it tells: the first 1.25 s of 31.25 s prepare.
    let stage = |at: &str| {
        format!(
            "mouse('chart-run-operations', 'mouseenter', {at});
             mouse('chart-run-operations', 'mousemove', {at});
             return document.querySelector('#chart-run-operations .tip p').textContent"
        )
    };
    assert_eq!(run(&stage(".01")), "stage: prepare");
    assert_eq!(run(&stage(".5")), "stage: measure");
    assert_eq!(page.complaints(), [""; 0]);
    // A file has no host.
    assert_eq!(page.hosts_asked(), [""]);
}

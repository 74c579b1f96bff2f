//! Comparisons as people and programs see them.

use plimsoll_analysis::compare::{Gate, KindFigures, RunFigures, compare, differing, judge};
use plimsoll_stats::Interval;
use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::{Value, json};

use super::*;

const PLAIN: Look = Look { width: 80, color: false };
const MIB: f64 = 1_048_576.0;
const MS: f64 = 1e6;

/// Returns a run of one kind.
fn run(name: &str, kind: Option<OpKind>, figures: &[(Metric, f64)]) -> RunFigures {
    let mut of = KindFigures::new(kind, kind.is_none_or(OpKind::moves_bytes));
    of.operations = Some(6_000);
    figures.iter().for_each(|(metric, value)| of.set(*metric, Some(*value)));
    RunFigures { name: name.to_owned(), kinds: vec![of] }
}

/// Returns a GET run at `load` times 1,000 operations of 16 KiB a second, with latencies as long as
/// `time` says of 8 ms.
fn get(name: &str, load: f64, time: f64) -> RunFigures {
    run(
        name,
        Some(OpKind::Get),
        &[
            (Metric::Rate, 1_000.0 * load),
            (Metric::Objects, 1_000.0 * load),
            (Metric::Throughput, 15.625 * MIB * load),
            (Metric::Fastest, 20.0 * MIB * load),
            (Metric::Median, 15.6 * MIB * load),
            (Metric::Slowest, 9.0 * MIB),
            (Metric::FastestObjects, 1_280.0 * load),
            (Metric::SlowestObjects, 576.0),
            (Metric::Mean, 8.0 * MS * time),
            (Metric::P50, 7.5 * MS * time),
            (Metric::P99, 30.0 * MS * time),
            (Metric::P99_9, 80.0 * MS),
            (Metric::Max, 120.0 * MS * time),
            (Metric::Min, 0.4 * MS),
            (Metric::StdDev, 5.0 * MS * time),
            (Metric::TtfbMean, 6.0 * MS * time),
            (Metric::TtfbP99, 25.0 * MS * time),
            (Metric::Errors, 0.0),
        ],
    )
}

fn several() -> Comparison {
    let before = [get("a-1", 1.0, 1.0), get("a-2", 1.02, 0.98), get("a-3", 0.98, 1.02)];
    let mut after = [get("b-1", 1.1, 0.99), get("b-2", 1.12, 1.03), get("b-3", 1.08, 1.01)];
    for (run, errors) in after.iter_mut().zip([0.012, 0.018, 0.015]) {
        run.kinds[0].set(Metric::Errors, Some(errors));
        run.kinds[0].set(Metric::P99, Some(46.0 * MS * (1.0 + errors)));
    }
    after[0].kinds.push(run("", Some(OpKind::Stat), &[(Metric::Rate, 5.0)]).kinds.remove(0));
    compare(&before, &after)
}

fn one_a_side() -> Comparison {
    let (mut before, mut after) = (get("run-a", 1.0, 1.0), get("run-b", 1.05, 1.2));
    for (run, rate) in [(&mut before, 1_000.0), (&mut after, 1_050.0)] {
        let noise = Interval { low: rate - 30.0, high: rate + 40.0 };
        run.kinds[0].set_noise(Metric::Rate, Some(noise));
    }
    compare(&[before], &[after])
}

fn differences() -> Vec<Difference> {
    let side = |concurrency: &str, bucket: &str| {
        vec![("concurrency".to_owned(), concurrency.to_owned()), ("target".into(), bucket.into())]
    };
    differing(
        &[side("8", "http://a.example:9000")],
        &[side("16", "http://b.with-a-very-long-name.example:9000")],
    )
}

fn gates(texts: &[&str], comparison: &Comparison) -> Vec<GateResult> {
    let gates: Vec<Gate> = texts.iter().map(|text| text.parse().unwrap()).collect();
    judge(&gates, comparison).unwrap()
}

#[track_caller]
fn fits(text: &str) {
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "\n{text}");
}

#[test]
fn several_runs_a_side() {
    let comparison = several();
    let texts = ["rate>=-3%", "get.p99<=+5%", "get.mean<=+1%", "get.p99<=50ms"];
    let gates = gates(&texts, &comparison);
    let text = text(&comparison, &differences(), &gates, &PLAIN);
    fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn one_run_a_side() {
    let comparison = one_a_side();
    let text = text(&comparison, &[], &gates(&["p99<=+5%"], &comparison), &PLAIN);
    fits(&text);
    assert!(text.lines().any(|line| line == "one run a side: not a verdict"));
    insta::assert_snapshot!(text);
}

#[test]
fn the_headline_begins_with_what_became_worse() {
    // p99: 55.63 % ± 4.66, as in the table. p50: 1 % ± 2 % between runs; by hand, 1 + (t(97.5 %, ν)
    // + t(90 %, ν)) · √(8 / n) ≤ 5 first holds at n = 7, where ν = 12: 1 + (2.179 + 1.356) · 1.069
    // = 4.78; at 6 it is 5.16.
    let expected = "GET: p99 worse by 55.6 % (51.0 to 60.3), errors worse by 1.50 pt, rate better \
                    by 10.0 % (5.47 to 14.5), p50 unclear: about 7 runs a side would tell";
    assert_eq!(headline(&several()), [expected]);
    let expected = "GET: p99 +20.0 %, p50 +20.0 %, rate +5.00 %; one run a side gives no verdict";
    assert_eq!(headline(&one_a_side()), [expected]);
    let two = [get("a", 1.0, 1.0), get("b", 1.0, 1.0)];
    let expected = "GET: p99 0 %, p50 0 %, rate 0 %; a verdict needs 3 runs a side";
    assert_eq!(headline(&compare(&two, &two)), [expected]);
    let three = [get("a", 1.0, 1.0), get("b", 1.0, 1.0), get("c", 1.0, 1.0)];
    let expected =
        "GET: p99 the same within 5.00 %, p50 the same within 5.00 %, rate the same within 5.00 %";
    assert_eq!(headline(&compare(&three, &three)), [expected]);
    assert_eq!(headline(&compare(&[], &[])), [""; 0]);
}

#[test]
fn more_runs_than_anybody_makes_are_not_counted() {
    // No change, a deviation of half the mean, a margin of 5 %: about 2 · 50² · (1.96 + 1.28)² / 5²
    // = 2,100 runs.
    let runs = [0.5, 1.0, 1.5].map(|time| get("r", 1.0, time));
    let comparison = compare(&runs, &runs);
    let line = &headline(&comparison)[0];
    assert!(line.contains("p99 unclear: more than 1,000 runs a side would be needed"), "{line}");
    let text = text(&comparison, &[], &[], &PLAIN);
    fits(&text);
    assert!(text.contains("p50 over 1,000"), "{text}");
}

#[test]
fn the_headline_has_the_kinds_that_changed_most_and_counts_the_others() {
    let side = |times: [f64; 3]| -> Vec<RunFigures> {
        let runs = [0.99, 1.0, 1.01].map(|spread| {
            let kinds = [OpKind::Put, OpKind::Get, OpKind::Stat].into_iter().zip(times);
            let of = |(kind, time): (OpKind, f64)| {
                run("r", Some(kind), &[(Metric::P99, 10.0 * MS * time * spread)]).kinds.remove(0)
            };
            RunFigures { name: "r".to_owned(), kinds: kinds.map(of).collect() }
        });
        runs.into()
    };
    let lines = headline(&compare(&side([1.0; 3]), &side([1.0, 0.5, 2.0])));
    assert!(lines[0].starts_with("STAT: p99 worse by 100 % ("), "{lines:?}");
    assert!(lines[1].starts_with("GET: p99 better by 50.0 % ("), "{lines:?}");
    assert!(lines[1].ends_with(" (and 1 more below)") && lines.len() == 2, "{lines:?}");
}

#[test]
fn one_screen_has_what_decides_with_the_total_first() {
    let side = |times: [f64; 3]| -> Vec<RunFigures> {
        let runs = [0.99, 1.0, 1.01].map(|spread| {
            let kinds = [None, Some(OpKind::Put), Some(OpKind::Stat)].into_iter().zip(times);
            let of = |(kind, time): (Option<OpKind>, f64)| {
                let figures = [
                    (Metric::Rate, 100.0 / time),
                    (Metric::Throughput, 50.0 * MIB / time),
                    (Metric::Fastest, 60.0 * MIB),
                    (Metric::P50, 5.0 * MS * time * spread),
                    (Metric::P99, 10.0 * MS * time * spread),
                    (Metric::Errors, if kind.is_some() { 0.0 } else { 0.01 * time }),
                ];
                run("r", kind, &figures).kinds.remove(0)
            };
            RunFigures { name: "r".to_owned(), kinds: kinds.map(of).rev().collect() }
        });
        runs.into()
    };
    let comparison = compare(&side([1.0; 3]), &side([2.0, 1.0, 2.0]));
    let text = brief(&comparison, &differences(), &gates(&["p99<=+5%"], &comparison), &PLAIN);
    fits(&text);
    let table = text.split("\n\n").find(|part| part.contains("  total")).unwrap();
    let labels: Vec<Vec<&str>> = table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().take_while(|word| !word.starts_with(char::is_numeric)))
        .map(Iterator::collect)
        .collect();
    // The throughput stands with the total alone, and errors where there are some.
    let expected: [&[&str]; 11] = [
        &["total", "ops/s"],
        &["MiB/s"],
        &["p50"],
        &["p99"],
        &["errors"],
        &["PUT", "ops/s"],
        &["p50"],
        &["p99"],
        &["STAT", "ops/s"],
        &["p50"],
        &["p99"],
    ];
    assert_eq!(labels, expected);
    assert!(text.contains("worse") && text.ends_with("-v prints all figures\n"), "{text}");
    // With one run a side and no noise there is no column of nothing.
    let one = brief(&one_a_side(), &[], &[], &PLAIN);
    assert!(one.contains("one run a side: not a verdict; 3 runs a side give one"), "{one}");
}

#[test]
fn markdown_for_a_pull_request() {
    let comparison = several();
    let texts = ["rate>=-3%", "get.p99<=+5%", "get.mean<=+1%"];
    let text = markdown(&comparison, &differences(), &gates(&texts, &comparison));
    insta::assert_snapshot!(text);
    // Every table has as many cells in each row as in its heading.
    for table in text.split("\n\n").filter(|part| part.starts_with('|')) {
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        assert!(table.lines().all(|line| cells(line) == cells(table.lines().next().unwrap())));
    }
    let mut one = one_a_side();
    one.before = vec!["a|b <i>*x*".to_owned()];
    let text = markdown(&one, &[], &[]);
    assert!(text.contains("Before: a\\|b &lt;i&gt;\\*x\\*."), "{text}");
    assert!(text.starts_with("**GET: p99 +20.0 %") && text.contains("no verdict**"), "{text}");
}

#[test]
fn json_has_the_headline_and_the_number_of_runs() {
    let document = json::json(&several(), &[], &[]);
    assert!(document["headline"][0].as_str().unwrap().starts_with("GET: p99 worse by 55.6 %"));
    let metrics = document["kinds"][0]["metrics"].as_array().unwrap();
    let of = |name: &str| metrics.iter().find(|metric| metric["metric"] == name).unwrap();
    assert_eq!((&of("p50")["verdict"], &of("p50")["runs_needed"]), (&json!("unclear"), &json!(7)));
    assert_eq!(of("p99")["runs_needed"], Value::Null);
}

#[test]
fn an_open_loop_against_a_closed_one_is_told() {
    let told = |is_open_on_one_side| {
        let comparison = Comparison { is_open_on_one_side, ..one_a_side() };
        text(&comparison, &differences(), &[], &PLAIN)
    };
    let remark = "one side is an open loop";
    let open_after = told(true);
    assert!(open_after.contains(remark), "{open_after}");
    fits(&open_after);
    assert!(!told(false).contains(remark));
}

#[test]
fn two_runs_are_too_few() {
    let runs = [get("a", 1.0, 1.0), get("b", 1.0, 1.0)];
    let text = text(&compare(&runs, &runs), &[], &[], &PLAIN);
    fits(&text);
    assert!(text.contains("\none or two runs on a side: too few for a verdict"), "\n{text}");
    assert!(!text.contains("verdict\n  ops/s") && !text.contains("same:"), "\n{text}");
}

#[test]
fn the_largest_figures_fit_into_80_columns() {
    let large = |name: &str, by: f64| {
        let mut run = get(name, 12_345.0 * by, 1_000.0 * by);
        let times = [Metric::P99_9, Metric::Max, Metric::TtfbP99];
        times.into_iter().for_each(|metric| run.kinds[0].set(metric, Some(59e9 * by)));
        run.kinds[0].set(Metric::Throughput, Some(1_234_567.0 * MIB * by));
        run
    };
    let before = [large("a", 0.5), large("b", 0.7), large("c", 0.3)];
    let after = [large("d", 5.0), large("e", 7.0), large("f", 3.0)];
    fits(&text(&compare(&before, &after), &differences(), &[], &PLAIN));
    fits(&text(&compare(&before[..1], &after[..1]), &differences(), &[], &PLAIN));
}

#[test]
fn no_control_character_without_colour_and_the_same_words_with_it() {
    let mut comparison = several();
    comparison.before[0] = "a\x1b[2J".to_owned();
    let gates = gates(&["p99<=+5%", "get.rate>=-3%", "mean<=+1%"], &comparison_of_get());
    let plain = text(&comparison, &differences(), &gates, &PLAIN);
    assert!(plain.chars().all(|c| c == '\n' || !c.is_control()), "\n{plain}");
    let mut colored = text(&comparison, &differences(), &gates, &Look { color: true, ..PLAIN });
    assert!(colored.contains("\x1b[32mbetter\x1b[0m") && colored.contains("\x1b[31mworse"));
    for code in ["0", "1", "2", "31", "32", "33"] {
        colored = colored.replace(&format!("\x1b[{code}m"), "");
    }
    assert_eq!(colored, plain);
}

/// The comparison of several runs, of GET only.
fn comparison_of_get() -> Comparison {
    let mut comparison = several();
    comparison.kinds.truncate(1);
    comparison
}

#[test]
fn the_committed_schema_is_the_schema() {
    let current = serde_json::to_string_pretty(&json::schema()).unwrap() + "\n";
    plimsoll_testkit::check_format("compare.schema.json", &current);
}

fn metric<'a>(document: &'a Value, name: &str) -> &'a Value {
    let metrics = document["kinds"][0]["metrics"].as_array().unwrap();
    metrics.iter().find(|metric| metric["metric"] == name).unwrap()
}

#[test]
fn several_runs_for_programs() {
    let comparison = several();
    let gates = gates(&["get.p99<=+5%", "get.rate>=900", "get.mean<=+1%"], &comparison);
    let document = json::json(&comparison, &differences(), &gates);
    assert_eq!(
        (&document["schema"], &document["exit_code"]),
        (&json!("plimsoll.compare/1"), &json!(1))
    );
    assert_eq!(document["after"], json!(["b-1", "b-2", "b-3"]));
    assert_eq!(
        document["parameters"][0],
        json!({ "name": "concurrency", "before": ["8"], "after": ["16"] })
    );
    assert_eq!(document["kinds"][1]["occurred"], "after");
    assert_eq!(document["kinds"][0]["ops_count_before"], 18_000);
    // Deviations of 20 around 1,000 and 1,100: ± 45.33, see the test of the comparison.
    let rate = metric(&document, "rate");
    assert_eq!((&rate["verdict"], &rate["unit"]), (&json!("better"), &json!("ops_per_sec")));
    assert_eq!(rate["before"]["values"], json!([1_000.0, 1_020.0, 980.0]));
    for (path, expected) in [
        ("/change", 100.0),
        ("/change_percent", 10.0),
        ("/before/std_dev", 20.0),
        ("/change_interval/low", 54.67),
        ("/change_percent_interval/high", 14.533),
        ("/effect", 4.0),
        ("/detectable", 60.70),
    ] {
        let got = rate.pointer(path).and_then(Value::as_f64).unwrap();
        assert!((got - expected).abs() < 0.01, "{path}: {got}");
    }
    assert_eq!(metric(&document, "errors")["change_percent"], Value::Null);
    assert_eq!(metric(&document, "slowest")["effect"], Value::Null);
    let outcomes: Vec<_> = document["gates"].as_array().unwrap().iter().collect();
    assert_eq!(outcomes[0]["outcome"], "worse");
    assert_eq!(
        (&outcomes[1]["outcome"], &outcomes[1]["limit_after"]),
        (&json!("pass"), &json!(900.0))
    );
    assert_eq!(
        (&outcomes[2]["reason"], &outcomes[2]["kind"]),
        (&json!("limit-in-interval"), &json!("GET"))
    );
}

#[test]
fn one_run_a_side_for_programs() {
    let document = json::json(&one_a_side(), &[], &[]);
    assert_eq!(document["exit_code"], Value::Null);
    let rate = metric(&document, "rate");
    assert_eq!((&rate["verdict"], &rate["effect"]), (&json!("one-run"), &Value::Null));
    assert_eq!(rate["before"]["noise"], json!({ "low": 970.0, "high": 1_040.0 }));
    // 50 − √(30² + 40²) to 50 + √(40² + 30²), of 1,000.
    assert_eq!(rate["change_percent_interval"], json!({ "low": 0.0, "high": 10.0 }));
    assert_eq!(metric(&document, "p99")["change_percent_interval"], Value::Null);
}

#[test]
fn gates_for_build_servers() {
    let mut gates = gates(&["p99<=+5%", "rate>=-3%", "mean<=+1%"], &comparison_of_get());
    gates[0].gate = "p99<=+5% \"&\" \x1b[31m".to_owned();
    let document = junit::junit(&gates);
    let mut reader = Reader::from_str(&document);
    let mut seen = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Eof => break,
            Event::Start(element) | Event::Empty(element) => {
                let attributes: Vec<String> = element
                    .attributes()
                    .map(|attribute| {
                        let attribute = attribute.unwrap();
                        let value = quick_xml::escape::unescape(
                            std::str::from_utf8(&attribute.value).unwrap(),
                        );
                        let key = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
                        format!("{key}={}", value.unwrap())
                    })
                    .collect();
                let name = String::from_utf8_lossy(element.name().as_ref()).into_owned();
                seen.push(format!("{name} {}", attributes.join(" ")));
            }
            _ => {}
        }
    }
    let counts = "name=plimsoll compare tests=3 failures=1 errors=1";
    assert_eq!(seen, [
        format!("testsuites {counts}"),
        format!("testsuite {counts}"),
        "testcase classname=GET name=p99<=+5% \"&\"  [31m".to_owned(),
        // 46 ms × 1.015 is 55.633 % over 30 ms. Deviations of 0.6 and 0.138 ms: standard error
        // 0.35546 ms, 2.2110 degrees of freedom, t = 3.9321 (integrated apart): 4.659 % of 30 ms.
        "failure type=worse message=p99<=+5% \"&\"  [31m is broken: +55.6 ± 4.66 %".to_owned(),
        "testcase classname=GET name=rate>=-3%".to_owned(),
        "testcase classname=GET name=mean<=+1%".to_owned(),
        "error type=inconclusive message=too noisy to decide: the limit lies within the interval \
        of the change; more runs decide, unless the change is about as large as the limit"
            .to_owned(),
    ]);
    assert!(document.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites "));
}

#[test]
fn what_is_known_of_several_runs_alike_is_said_once() {
    let mut comparison = several();
    let said = |run: &str, text: &str| (run.to_owned(), text.to_owned());
    comparison.client_limits = vec![said("a-1", "busy"), said("b-2", "busy"), said("b-3", "full")];
    comparison.remarks = vec![said("b-3", "part is missing")];
    assert_eq!(warnings(&comparison), ["a-1, b-2: busy", "b-3: full", "b-3: part is missing"]);
    comparison.client_limits =
        ["a-1", "a-2", "a-3", "b-1", "b-2", "b-3"].map(|run| said(run, "busy")).into();
    comparison.remarks.clear();
    assert_eq!(warnings(&comparison), ["all 6 runs: busy"]);
}

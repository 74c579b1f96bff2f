//! Stop rules: `--autoterm` and `--until` from the flags to the record.

use std::collections::BTreeMap;

use plimsoll_foreign::warp::raw;
use plimsoll_model::OpKind;
use plimsoll_stats::{AmountSeries, SteadyRule};
use serde_json::Value;

use crate::bad_input;
use crate::harness::{measured_stage, plimsoll, run, run_directory, stderr};

const SECOND: u64 = 1_000_000_000;

/// Runs `line` on the embedded store and returns its report, its messages and its manifest.
fn ran(line: &str) -> (Value, String, Value) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = plimsoll(directory.path());
    command.args(line.split_whitespace()).arg("--json");
    let output = run(command);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{line}: {told}");
    let manifest = std::fs::read(run_directory(directory.path()).join("run.json")).unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap();
    (report, told, serde_json::from_slice(&manifest).unwrap())
}

/// Checks that the stage ended by `rule` before its time, and that all say why.
fn check_ended(line: &str, rule: &str, because: &str) {
    let (report, told, manifest) = ran(line);
    let measure = manifest["stages"].as_array().unwrap().last().unwrap();
    assert_eq!(measure["kind"], "measure");
    assert_eq!(measure["ended_by"], rule, "{line}: {told}");
    let text = measure["ended_because"].as_str().unwrap();
    assert!(text.contains(because), "{text}");
    assert_eq!(measured_stage(&report)["ended_because"], text);
    assert!(told.contains(&format!("ended before its time was up: {text}")), "{told}");
    // Ending by a rule is ending as planned.
    assert_eq!((&manifest["state"], &report["state"]), (&"complete".into(), &"complete".into()));
    assert!(measured_stage(&report)["duration_ns"].as_u64().unwrap() < 300_000_000_000, "{line}");
}

#[test]
fn figures_known_well_enough_end_it() {
    let line = "s3 stat --objects 20 --concurrent 2 --rps-limit 200/s --duration 5m \
                --until ci(rate)<=50% --until ci(mean)<=100%";
    check_ended(line, "until", "at most 50 % was asked");
}

#[test]
fn without_a_rule_nothing_is_said_of_one() {
    let (report, told, manifest) = ran("s3 stat --objects 20 --concurrent 2 --duration 1s");
    let measure = manifest["stages"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&measure["ended_by"], &measure["ended_because"]),
        (&"duration".into(), &Value::Null)
    );
    assert_eq!(measured_stage(&report)["ended_because"], Value::Null);
    assert!(!told.contains("before its time"), "{told}");
    let measure = manifest["workload"]["stages"].as_array().unwrap().last().unwrap();
    assert!(measure.get("until").is_none());
}

#[test]
fn a_rule_that_cannot_hold_in_time_is_warned_of_and_the_run_goes_on() {
    let line = "s3 stat --objects 20 --concurrent 2 --duration 1s --autoterm --until ci(p50)<=5%";
    let (_, told, manifest) = ran(line);
    assert!(told.contains("warning: the stop rule steady cannot end this run"), "{told}");
    assert!(told.contains("warning: the stop rule ci(p50)<=5% cannot end this run"), "{told}");
    assert_eq!(manifest["stages"].as_array().unwrap().last().unwrap()["ended_by"], "duration");
    let measure = manifest["workload"]["stages"].as_array().unwrap().last().unwrap();
    // Over its usual window, 15 s.
    assert_eq!(measure["until"][0], "steady");
    assert_eq!(measure["until"][1], "ci(p50)<=5%");
}

#[test]
fn what_makes_no_sense_is_refused_with_the_flag_to_change() {
    for (line, words) in [
        ("s3 get --autoterm --autoterm.dur 0", &["--autoterm.dur", "above 0"] as &[&str]),
        ("s3 get --autoterm --autoterm.pct 0", &["--autoterm.pct", "above 0"]),
        ("s3 get --autoterm.dur 0", &["--autoterm.dur", "--autoterm;"]),
        ("s3 get --until ci(foo)<=5%", &["--until", "`foo`", "p99.9"]),
        ("s3 get --until p99<=5%", &["--until", "ci(p99)<=5%"]),
        ("s3 list --until ci(throughput)<=5%", &["--until", "ci(rate)"]),
    ] {
        bad_input::check(line, words);
    }
}

#[test]
fn explain_shows_the_rules() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = plimsoll(directory.path());
    let line = "s3 get --explain --autoterm --autoterm.dur=7s --until ci(p99)<=5%";
    command.args(line.split(' '));
    let text = String::from_utf8(run(command).stdout).unwrap();
    for part in ["steady(7s, 7.5%)", "ci(p99)<=5%"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn the_rule_ends_a_recorded_run_of_warps_when_warp_ended_it() {
    // `warp stat --rps-limit=200 --autoterm --autoterm.dur=5s --autoterm.pct=10 --full` said
    // "Throughput 199.1 objects/s within 10.000000% for 5.026s", which is 7/25 of 17.95 s.
    let path = "/../../testdata/warp/autoterm-full-rps-stat.csv.zst";
    let file = std::fs::File::open(format!("{}{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut ops = Vec::new();
    raw::scan(file, &mut raw::Names::default(), &mut |op, _| {
        ops.extend((op.kind == OpKind::Stat).then_some(*op));
    })
    .unwrap();
    let started = ops.iter().map(|op| op.start.as_ns()).min().unwrap();
    let mut series = AmountSeries::default();
    let mut ends: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for op in &ops {
        let end_ns = op.end.as_ns() - started;
        series.record(op.start.as_ns() - started, end_ns, op.bytes, 1);
        ends.entry(op.worker.0).or_default().push(end_ns);
    }
    assert_eq!(ends.len(), 8);
    ends.values_mut().for_each(|ends| ends.sort_unstable());
    let from_ns = ends.values().map(|ends| ends[0]).max().unwrap();
    let rule = SteadyRule { window_ns: 5 * SECOND, percent: 10.0 };
    let held = (1..=60).find_map(|second| {
        let last = |ends: &Vec<u64>| ends.iter().copied().rfind(|end| *end <= second * SECOND);
        let to_ns = ends.values().map(last).min().unwrap()?;
        Some((second, series.steady(&rule, from_ns, to_ns)?))
    });
    let (second, steady) = held.expect("warp found it steady");
    assert_eq!((second, steady.by_bytes), (18, false));
    assert!((5_000_000_000..5_040_000_000).contains(&steady.window_ns), "{steady:?}");
    let last = ops.iter().map(|op| op.end.as_ns() - started).max().unwrap();
    assert!((17 * SECOND..19 * SECOND).contains(&last), "warp itself ended after {last} ns");
}

mod nightly {
    use super::*;

    #[test]
    fn a_generous_rule_ends_every_command_before_its_time() {
        let rule =
            "--autoterm --autoterm.dur 100ms --autoterm.pct 100 --duration 5m --concurrent 2";
        for (command, what) in [
            ("get --objects 20 --obj.size 64KiB", "throughput"),
            ("put --obj.size 1KiB --rps-limit 500/s", "throughput"),
            ("list --objects 100", "rate"),
            ("stat --objects 20", "rate"),
            ("mixed --objects 40 --obj.size 10KiB --rps-limit 500/s", "throughput"),
            ("delete --objects 20000 --batch 1 --rps-limit 500/s", "rate"),
        ] {
            let because = format!("{what} within 100 % over the last 7 of 25 parts");
            check_ended(&format!("s3 {command} {rule}"), "steady", &because);
        }
    }
}

//! `plimsoll loadline` and searches in workload files, as their users meet them. Nothing here is
//! held to a time: a machine that is busy names no line, which is right as well.

use std::fs;

use serde_json::Value;

use crate::harness::{plimsoll, printed, refused, run, run_line};

fn json(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn probes_of_a_mix_know_what_earlier_ones_removed() {
    let place = tempfile::tempdir().unwrap();
    let line = "loadline s3 mixed --obj.size 1KiB --objects 400 --rates 50/s..400/s --budget 6s \
                --json --quiet";
    let report = json(&run_line(place.path(), line));
    let probes = report["load_lines"][0]["probes"].as_array().unwrap();
    assert!(probes.len() >= 3, "{report:#}");
    for probe in probes {
        assert_eq!(probe["ops_failed_count"], 0, "{probe:#}");
    }
}

/// A workload in which a store that takes 1 ms for each operation is searched between these rates.
fn search(rates: &str, slo: &str) -> String {
    format!(
        "schema: plimsoll.workload/2\nname: line\nsets: {{o: {{count: 10, size: 1KiB}}}}\nstages:\n\
         - {{prepares: true, jobs: [{{work: {{fill: o}}}}]}}\n- name: line\n  search:\n    \
         rate: {rates}\n    slo: ['{slo}']\n    budget: 20s\n    \
         stage: {{jobs: [{{workers: 4, work: {{objects: [{{get: o}}]}}}}]}}\n"
    )
}

#[test]
fn what_keeps_all_or_nothing_has_no_line() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let script = "schema: plimsoll.oracle/1\nservice: {time: {constant: 1ms}}\n";
    fs::write(here.join("script.yaml"), script).unwrap();
    let judged = |rates: &str, slo: &str| {
        fs::write(here.join("w.yaml"), search(rates, slo)).unwrap();
        let output = run_line(here, "run w.yaml --virtual --script script.yaml --json --quiet");
        assert_eq!(output.status.code(), Some(1));
        let line = json(&output)["load_lines"][0].clone();
        assert_eq!(line["line"], Value::Null, "{line:#}");
        line
    };
    // A few operations of which none is slow are no miss.
    let kept = judged("5/s..40/s", "p99.9<=20ms");
    assert_eq!(kept["carried_ops_per_sec_max"], 40.0, "{kept:#}");
    let because = kept["no_line_because"].as_str().unwrap();
    assert!(because.contains("kept up to 40"), "{because}");
    assert!(kept["probes"].as_array().unwrap().iter().all(|probe| probe["outcome"] == "kept"));
    // Below the lowest rate nothing is looked for.
    let missed = judged("100/s..400/s", "p99<=500us");
    let because = missed["no_line_because"].as_str().unwrap();
    assert!(because.contains("not even 100 ops/s was carried"), "{because}");
    let offered = |probe: &Value| probe["offered_ops_per_sec"].as_f64().unwrap();
    let probes = missed["probes"].as_array().unwrap();
    assert!(probes.iter().all(|probe| offered(probe) >= 100.0), "{missed:#}");
}

#[test]
fn without_a_store_it_is_a_queue_of_theory() {
    let place = tempfile::tempdir().unwrap();
    let workload = printed(place.path(), "loadline --explain --max-in-flight 77");
    assert!(workload.contains("queue: {servers: 4, time: 1ms}"), "{workload}");
    assert!(workload.contains("max_in_flight: 77"), "{workload}");
    assert!(!printed(place.path(), "s3 get --explain").contains("queue"));
    let output = run_line(place.path(), "loadline --budget 3s --json --quiet");
    let theory = json(&output)["load_lines"][0]["theory_ops_per_sec"].as_f64().unwrap();
    // M/M/4, 1 ms each: 1 % take longer than 10 ms at 3,501/s by Erlang's formula.
    assert!((theory - 3_501.0).abs() < 1.0, "{theory}");
}

#[test]
fn a_client_that_is_short_has_an_exit_code_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let mut command = plimsoll(place.path());
    command.args(["loadline", "--budget", "3s", "--json", "--quiet", "--fail-on-client-limit"]);
    let output = run(command);
    let line = json(&output)["load_lines"][0].clone();
    let is_named = !line["line"].is_null();
    let expected = match line["verdict"]["is_client_limit"].as_bool() {
        _ if is_named => 0,
        Some(true) => 3,
        _ => 1,
    };
    assert_eq!(output.status.code(), Some(expected), "{line:#}");
}

#[test]
fn names_that_are_not_there_are_told_with_those_that_are() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let text = "
schema: plimsoll.workload/2
sets: {o: {count: 10, size: 1KiB}}
stages:
- {prepares: true, jobs: [{work: {fill: o}}]}
- name: main
  duration: 1s
  jobs:
  - {name: readers, work: {objects: [get: o]}}
  - {name: lookers, work: {objects: [stat: o]}}
";
    fs::write(here.join("w.yaml"), text).unwrap();
    let said = refused(here, "loadline run w.yaml --job writers");
    assert!(said.contains("--job writers") && said.contains("readers, lookers"), "{said}");
    let said = refused(here, "loadline run w.yaml --stage other --job readers");
    assert!(said.contains("--stage other") && said.contains("main"), "{said}");
}

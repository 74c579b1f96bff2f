//! `plimsoll loadline` and searches in workload files, as their users meet them. What is held to
//! figures is searched in virtual time; of a search in real time only that is judged which no load
//! on this machine can change.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{measured, plimsoll, printed, refused, run, run_line, stderr};

fn json(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn probes_of_a_mix_know_what_earlier_ones_removed() {
    let place = tempfile::tempdir().unwrap();
    let line = "loadline s3 mixed --virtual --obj.size 1KiB --objects 400 --rates 50/s..400/s \
                --budget 6s --json --quiet";
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
    let output = run_line(place.path(), "loadline --virtual --budget 3s --json --quiet");
    let theory = json(&output)["load_lines"][0]["theory_ops_per_sec"].as_f64().unwrap();
    // M/M/4, 1 ms each: 1 % take longer than 10 ms at 3,501/s by Erlang's formula.
    assert!((theory - 3_501.0).abs() < 1.0, "{theory}");
}

#[test]
fn a_client_that_is_short_has_an_exit_code_of_its_own() {
    let place = tempfile::tempdir().unwrap();
    let mut command = plimsoll(place.path());
    let line = "loadline --real --budget 3s --json --quiet --fail-on-client-limit";
    command.args(line.split(' '));
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

#[test]
fn the_rate_of_a_file_gives_way_to_the_search_and_that_of_a_flag_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let text = "
schema: plimsoll.workload/2
sets: {o: {count: 10, size: 1KiB}}
stages:
- {prepares: true, jobs: [{work: {fill: o}}]}
- {name: main, duration: 1s, jobs: [{pacing: {open: 100/s}, work: {objects: [get: o]}}]}
";
    fs::write(here.join("w.yaml"), text).unwrap();
    let explained = printed(here, "loadline run w.yaml --rates 50/s..400/s --explain");
    assert!(explained.contains("search:") && !explained.contains("100/s"), "{explained}");
    let said = refused(here, "loadline s3 get --rate 100/s");
    assert!(said.contains("--rate: the search chooses the rate; leave it out"), "{said}");
}

/// Searches the line of M/M/1 in virtual time, with operations that take so long on average.
fn searched(here: &Path, name: &str, mean: &str) {
    let script = format!(
        "schema: plimsoll.oracle/1\nservers: 1\nservice: {{time: {{exponential: {{mean: {mean}}}}}}}\n"
    );
    fs::write(here.join("script.yaml"), script).unwrap();
    let work = search("20/s..2000/s", "p99<=20ms").replace("budget: 20s", "budget: 60s");
    fs::write(here.join("w.yaml"), work).unwrap();
    let line = format!(
        "run w.yaml --virtual --script script.yaml --seed 7 --run-dir {name} --json --quiet"
    );
    let output = run_line(here, &line);
    let found = json(&output)["load_lines"][0].clone();
    assert!(!found["line"].is_null(), "{found:#}");
}

/// Returns the figures of a metric of the only kind in a comparison.
fn metric<'a>(comparison: &'a Value, name: &str) -> &'a Value {
    let [kind] = &comparison["kinds"].as_array().unwrap()[..] else { panic!("{comparison:#}") };
    let mut metrics = kind["metrics"].as_array().unwrap().iter();
    metrics.find(|metric| metric["metric"] == name).unwrap()
}

#[test]
fn lines_are_compared_and_told_by_other_conditions_and_not_merged() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    searched(here, "before", "1ms");
    searched(here, "after", "1250us");
    let comparison = json(&run_line(here, "compare before after --json"));
    let line = metric(&comparison, "load-line");
    // M/M/1 keeps p99<=20ms up to mu - ln(100) / 20 ms: 769.7/s of 1,000/s and 569.7/s of 800/s.
    let change = (569.74 / 769.74 - 1.0) * 100.0;
    let noise = &line["change_percent_interval"];
    let [low, high] = ["low", "high"].map(|end| noise[end].as_f64().unwrap());
    assert!(low < change && change < high && high < 0.0, "{line:#}");
    assert!(metric(&comparison, "capacity")["before"]["mean"].is_f64());
    let gated = run_line(here, "compare before after --gate load-line>=700/s --json");
    assert_eq!(json(&gated)["gates"][0]["metric"], "load-line");

    let told = |slo: &str| json(&run_line(here, &format!("analyze before --slo {slo} --json")));
    let other = told("p99<=10ms");
    let line = &other["load_lines"][0];
    assert_eq!(line["slo"], serde_json::json!(["p99<=10ms"]));
    let rate = line["line"]["ops_per_sec"].as_f64().unwrap();
    // 1,000 - ln(100) / 10 ms = 539.5/s; its probes were made to find another line.
    assert!((rate / 539.5 - 1.0).abs() < 0.1, "{line:#}");

    let said = refused(here, "merge before after -o both");
    assert!(said.contains("is a search for a load line"), "{said}");
}

#[test]
fn conditions_that_nothing_can_miss_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    for (line, says) in [
        ("s3 get --slo put.p99<=3ms", "--slo: put.p99<=3ms: the job"),
        ("file iops --dir . --op read --slo write.p99<=3ms", "it does read"),
        ("s3 get --budget 0s", "--budget: must be longer than 0s"),
        ("s3 get --precision 0%", "--precision: 0% is out of range"),
        ("s3 get --duration 3s", "--duration: the search says"),
        ("s3 get --autoterm", "--autoterm: the search says"),
    ] {
        let said = refused(here, &format!("loadline {line} --explain"));
        assert!(said.contains(says), "{line}: {said}");
    }
    searched(here, "run", "1ms");
    let work = "schema: plimsoll.workload/2\nsets: {o: {count: 10, size: 1KiB}}\nstages:\n\
                - {duration: 1s, jobs: [{work: {objects: [put: o]}}]}\n";
    fs::write(here.join("plain.yaml"), work).unwrap();
    let plain = run_line(here, "run plain.yaml --virtual --run-dir plain --quiet");
    assert!(plain.status.success());
    let said = refused(here, "analyze plain --slo errors<=1%");
    assert!(said.contains("--slo: this is not a load-line search"), "{said}");
}

#[test]
fn commands_run_in_whichever_probe_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let line = "loadline --real --budget 8s --json --quiet --event 3s:true --event 100s:true";
    let report = json(&run_line(place.path(), line));
    let events: Vec<(&str, &Value)> = report["stages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|stage| stage["search_index"].is_u64())
        .flat_map(|stage| {
            let name = stage["name"].as_str().unwrap();
            stage["events"].as_array().into_iter().flatten().map(move |event| (name, event))
        })
        .collect();
    let [never, ran] = &events[..] else { panic!("{events:#?}") };
    assert_eq!(never.1["reason"], "not run: the stage had ended before");
    assert_eq!(ran.1["exit_code"], 0);
    let gauge = report["stages"].as_array().unwrap().iter().find(|stage| stage["name"] == "gauge");
    // It is to last 2 s, but where nothing of this process ran meanwhile.
    if gauge.unwrap()["duration_ns"].as_u64().unwrap() < 3_000_000_000 {
        assert_ne!(ran.0, "gauge");
    }
}

#[test]
fn a_search_in_which_the_work_runs_out_says_so() {
    let place = tempfile::tempdir().unwrap();
    let line = "loadline s3 delete --virtual --objects 400 --batch 5 --obj.size 1KiB --budget 9s \
                --json --concurrent 4 --quiet";
    let report = json(&run_line(place.path(), line));
    let because = report["load_lines"][0]["no_line_because"].as_str().unwrap();
    assert!(because.contains("nothing left to do in gauge"), "{because}");
}

/// The line of M/M/4, 1 ms each, at p99<=10ms (Erlang's formula).
const THEORY: f64 = 3_501.0;

/// Returns how far the line of a report is from theory, as a part of it.
fn off(report: &Value) -> f64 {
    let line = report["load_lines"][0]["line"]["ops_per_sec"].as_f64();
    (line.unwrap_or_else(|| panic!("no line: {:#}", report["load_lines"])) / THEORY - 1.0).abs()
}

/// Issue 42: on a machine that was busy the first command of the README named no line.
#[test]
fn without_a_target_it_always_answers() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let output = run_line(here, "loadline --json --quiet --run-dir line");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    assert!(off(&report) < 0.1, "{:#}", report["load_lines"]);
    let loopback = &report["loopback"];
    let row = measured(loopback);
    let line = report["load_lines"][0]["line"]["ops_per_sec"].as_f64().unwrap();
    let offered = row["schedules"][0]["rate_peak_ops_per_sec"].as_f64().unwrap();
    assert!((offered - line / 2.0).abs() <= 0.5, "{offered} of {line}");
    assert_eq!(row["total"]["stage_total"]["ops_failed_count"], 0, "{row:#}");
    assert_eq!(loopback["verification"]["mode"], "every-byte", "{loopback:#}");
    // M/M/4 at half of the line: p50 and p99 by the formula.
    let theory = ["latency_ns_p50", "latency_ns_p99"].map(|of| row["theory"][of].as_u64().unwrap());
    assert!((700_000..900_000).contains(&theory[0]), "{theory:?}");
    assert!((4_600_000..5_200_000).contains(&theory[1]), "{theory:?}");
    // Each is a run like any other.
    for (name, of) in [("line", &report), ("line-loopback", loopback)] {
        let again = json(&run_line(here, &format!("analyze {name} --json")));
        assert_eq!(again["stages"], of["stages"], "{name}");
    }
}

#[test]
fn a_search_in_virtual_time_is_the_same_for_the_same_seed() {
    let place = tempfile::tempdir().unwrap();
    let found = |line: &str| {
        let line = format!("loadline --virtual --budget 30s --json --quiet{line}");
        let output = run_line(place.path(), &line);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let mut report = json(&output);
        assert!(off(&report) < 0.1, "{:#}", report["load_lines"]);
        report["command"].take();
        report
    };
    let first = found("");
    assert!(first == found(" --seed 1"), "the first seed is 1");
    assert!(first["stages"] != found(" --seed 2")["stages"], "another seed is another search");
    // A run that nobody keeps leaves nothing.
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    // A host in the environment is where other runs go.
    let mut command = plimsoll(place.path());
    command.args("loadline --virtual --budget 30s --json --quiet".split(' '));
    command.env("PLIMSOLL_HOST", "gone:1");
    assert!(off(&json(&run(command))) < 0.1);
}

#[test]
fn a_workload_file_is_searched_in_virtual_time_as_well() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let explained = printed(here, "loadline --virtual --budget 30s --explain");
    fs::write(here.join("queue.yaml"), explained).unwrap();
    let script =
        "schema: plimsoll.oracle/1\nservers: 4\nservice: {time: {exponential: {mean: 1ms}}}\n";
    fs::write(here.join("script.yaml"), script).unwrap();
    // An oracle does in virtual time what the workload says of it.
    let own = json(&run_line(here, "run queue.yaml --virtual --json --quiet"));
    assert!(off(&own) < 0.1, "{:#}", own["load_lines"]);
    let said = refused(here, "run queue.yaml --virtual --script script.yaml");
    assert!(said.contains("so does the script for all targets; leave one out"), "{said}");
    let plain = "
schema: plimsoll.workload/2
seed: 1
sets: {o: {count: 20, size: 1KiB}}
stages:
- {prepares: true, jobs: [{work: {fill: o}}]}
- {duration: 1s, jobs: [{workers: 20, work: {objects: [get: o]}}]}
";
    fs::write(here.join("plain.yaml"), plain).unwrap();
    let line =
        "loadline run plain.yaml --virtual --script script.yaml --slo p99<=10ms --budget 30s";
    // Without a script it is the same queue: one that serves everything at once has no line.
    for line in [line, &line.replace(" --script script.yaml", "")] {
        let found = run_line(here, &format!("{line} --json --quiet"));
        assert_eq!(found.status.code(), Some(0), "{}", stderr(&found));
        assert!(off(&json(&found)) < 0.1);
    }
    let said = refused(here, "loadline run plain.yaml --virtual --stage main");
    let sentence = "--stage main: no measured stage has that name; there is stage-2";
    assert!(said.contains(sentence), "{said}");
}

#[test]
fn a_search_of_the_built_in_store_refuses_what_it_has_not() {
    let place = tempfile::tempdir().unwrap();
    for (line, says) in [
        ("--virtual --host 127.0.0.1:1", "--virtual asks no store, so --host means nothing"),
        ("s3 get --virtual --host 127.0.0.1:1", "--virtual asks no store, so --host"),
        ("weed read --virtual", "--virtual: this benchmark works on a real target"),
        ("file iops --dir . --op read --virtual", "--virtual: this benchmark works on a real"),
        ("--fleet", "--fleet: agents cannot reach the built-in store; name yours with --host"),
        ("--virtual --fleet", "--fleet: agents cannot reach the built-in store"),
        ("--event 1s:true", "--event runs commands at instants of real time: add --real"),
        ("s3 multipart", "`multipart` in virtual time; --real searches it over loopback"),
    ] {
        let said = refused(place.path(), &format!("loadline {line}"));
        assert!(said.contains(says), "{line}: {said}");
    }
    let both = run_line(place.path(), "loadline --virtual --real");
    assert_eq!(both.status.code(), Some(2));
    assert!(
        stderr(&both).contains("'--virtual' cannot be used with '--real'"),
        "{}",
        stderr(&both)
    );
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

/// Two searches of one name, at rates that both probe.
const SEARCHED_TWICE: &str = "schema: plimsoll.workload/2
name: twice
sets: {o: {count: 1000, size: 1KiB}}
stages:
- {prepares: true, jobs: [{work: {fill: o}}]}
- name: line
  search:
    rate: 50/s..100/s
    slo: ['p99<=20ms']
    budget: 6s
    stage: {jobs: [{workers: 4, work: {objects: [{get: o}]}}]}
- name: line
  search:
    rate: 50/s..100/s
    slo: ['p99<=20ms']
    budget: 6s
    stage: {jobs: [{workers: 4, work: {objects: [{get: o}]}}]}
";

#[test]
fn searches_of_one_name_are_told_apart_and_no_probe_asks_for_what_another_did() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let script = "schema: plimsoll.oracle/1\nservice: {time: {constant: 1ms}}\n";
    fs::write(here.join("script.yaml"), script).unwrap();
    fs::write(here.join("w.yaml"), SEARCHED_TWICE).unwrap();
    let line = "run w.yaml --virtual --script script.yaml --json --quiet --run-dir run";
    let report = json(&run_line(here, line));
    let lines = report["load_lines"].as_array().unwrap();
    let names: Vec<&Value> = lines.iter().map(|line| &line["name"]).collect();
    assert_eq!(names, ["line", "line #2"]);
    let tracked: Value =
        serde_json::from_str(&printed(here, "export run --format bencher -o -")).unwrap();
    let tracked: Vec<&String> = tracked.as_object().unwrap().keys().collect();
    assert!(tracked.iter().any(|name| name.contains("line #2")), "{tracked:?}");
    // By stage, what its first worker read.
    let mut read: std::collections::BTreeMap<u64, Vec<String>> = Default::default();
    for op in printed(here, "export run -o - --format jsonl").lines() {
        let op: Value = serde_json::from_str(op).unwrap();
        if op["kind"] == "GET" && op["worker"] == 0 {
            let of_stage = read.entry(op["stage_index"].as_u64().unwrap()).or_default();
            of_stage.push(op["key"].as_str().unwrap().to_owned());
        }
    }
    let probes = read.len();
    let beginnings = read.into_values().map(|mut keys| {
        keys.truncate(5);
        keys
    });
    let apart: std::collections::BTreeSet<Vec<String>> = beginnings.collect();
    assert!(probes >= 4 && apart.len() == probes, "{} of {probes}", apart.len());
}

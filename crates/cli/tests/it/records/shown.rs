//! What is asked of a record in the words that its report uses.

use std::fs;
use std::path::Path;

use crate::harness::{plimsoll, printed};

/// Two stages that are repeated, after one that prepares, on a store and on files.
const STORE_AND_FILES: &str = "\
schema: plimsoll.workload/2
name: both
targets: {store: {s3: {}}, scratch: {files: {directory: scratch}}}
sets: {o: {on: store, count: 8, size: 1KiB}, f: {on: scratch, files: 2, size: 64KiB}}
stages:
- name: load
  prepares: true
  jobs: [{name: objects, work: {fill: o}}, {name: files, work: {fill: f}}]
- repeat:
    times: 2
    stages:
    - name: main
      jobs:
      - {name: users, workers: 2, ops: 40, work: {objects: [{get: o}]}}
      - name: scan
        pacing: {capped: 1000/s}
        ops: 40
        work: &read {blocks: {on: f, read: {block: 4KiB}}}
      - {name: probe, pacing: {open: 1000/s}, ops: 40, work: *read}
";

fn run_both(place: &Path) {
    fs::create_dir(place.join("scratch")).unwrap();
    fs::write(place.join("both.yaml"), STORE_AND_FILES).unwrap();
    let output = plimsoll(place).args(["run", "both.yaml", "--run-dir", "run"]).output().unwrap();
    assert!(output.status.code().is_some_and(|code| code < 2), "{output:?}");
}

/// Returns what `analyze` prints or, where it refuses, says.
fn analyzed(place: &Path, args: &[&str]) -> String {
    let output = plimsoll(place).args(["analyze", "run", "-v"]).args(args).output().unwrap();
    let said = if output.status.success() { output.stdout } else { output.stderr };
    String::from_utf8(said).unwrap()
}

#[test]
fn stages_and_jobs_are_asked_for_as_the_report_names_them() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    run_both(place);
    let whole = analyzed(place, &[]);
    let words = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(whole.contains("\nmain (2) · ") && whole.contains(", all work done\n"), "{whole}");
    for sentence in [
        "users: closed loop, 2 workers",
        "closed loop capped at 1,000 ops/s: latency = service time, waiting for the cap is not in",
        "open loop, 1000/s constant, up to 1,024 in flight: latency from the intended start",
    ] {
        assert!(words.contains(sentence), "{sentence}: {whole}");
    }
    let second = analyzed(place, &["--stage", "main (2)"]);
    assert!(second.contains("\nmain (2) · ") && !second.contains("\nmain · "), "{second}");
    let both = analyzed(place, &["--stage", "main"]);
    assert!(both.contains("\nmain (2) · ") && both.contains("\nmain · "), "{both}");
    let load = analyzed(place, &["--stage", "load"]);
    assert!(load.starts_with("both: load "), "{load}");
    assert!(load.contains("PUT") && load.contains("WRITE") && load.contains(" IOPS"), "{load}");
    let users = analyzed(place, &["--stage", "main (2)", "--job", "users"]);
    assert!(users.starts_with("both, stage main (2), job users: "), "{users}");
    for (args, said) in [
        (&["--stage", "nosuch"][..], "run has load, main, main (2)\n"),
        (&["--stage", "main", "--job", "files"], "run has users, scan, probe\n"),
        (&["--stage", "load", "--job", "users"], "run has objects, files\n"),
    ] {
        let refused = analyzed(place, args);
        assert!(refused.ends_with(said), "{refused}");
    }
}

#[test]
fn every_row_of_an_export_says_its_stage_and_its_job() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    run_both(place);
    let lines = printed(place, "export run -o - --format jsonl");
    let ops = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut places: Vec<String> = ops
        .map(|op| {
            let is_key = op["key"].as_str().unwrap().starts_with("plimsoll/");
            assert_eq!(is_key, op["job"] == "users" || op["job"] == "objects", "{op}");
            format!("{} {} {}", op["stage"], op["iteration_index"], op["job"]).replace('"', "")
        })
        .collect();
    places.sort();
    places.dedup();
    let of_main = [0, 1].map(|i| ["probe", "scan", "users"].map(|job| format!("main {i} {job}")));
    let of_load = ["load 0 files".to_owned(), "load 0 objects".to_owned()];
    assert_eq!(places, [&of_load[..], &of_main.concat()].concat());
    let csv = printed(place, "export run -o - --format csv");
    assert!(csv.starts_with("stage,stage_index,iteration_index,job,worker,"), "{csv}");
}

#[test]
fn clients_that_took_turns_are_told_once() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let one = "schema: plimsoll.workload/2\nname: one\nsets: {o: {size: 1KiB}}\nstages:\n\
               - {name: put, ops: 300, jobs: [{workers: 4, work: {objects: [{put: o}]}}]}\n";
    fs::write(place.join("one.yaml"), one).unwrap();
    for run in ["earlier", "later"] {
        printed(place, &format!("run one.yaml --run-dir {run}"));
    }
    let text = printed(place, "merge earlier later -o whole");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let measured = ", as the clients were not all at it at the same time";
    assert!(words.contains(measured), "{text}");
    let told = "so its rates, over the time from the first beginning to the last end, are not";
    assert_eq!(words.matches(told).count(), 1, "{text}");
    for other in ["hardly", "all workers ran", "longer run", "the first worker was done"] {
        assert!(!text.contains(other), "{other}: {text}");
    }
}

//! Virtual time and the proofs, as their users meet them.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{printed, refused, run_line};

/// Writes the workload that a command line of `s3` means to `workload.yaml`.
fn workload(directory: &Path, line: &str) {
    let yaml = printed(directory, &format!("s3 {line} --explain"));
    fs::write(directory.join("workload.yaml"), yaml).unwrap();
}

#[test]
fn two_runs_in_virtual_time_are_alike_whatever_the_threads() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    workload(here, "mixed --rate 500/s --arrivals poisson --duration 20s --objects 100 --seed 3");
    let line = "run workload.yaml --virtual --seed 7 --quiet";
    let one = printed(here, line);
    assert_eq!(one, printed(here, line));
    let threads = format!("{line} --threads 5");
    assert_eq!(one, printed(here, &threads));
    let hash = one.lines().find(|line| line.starts_with("time ")).unwrap();
    assert!(hash.contains("virtual, seed 7, stream hash "), "{hash}");
    assert!(!printed(here, "run workload.yaml --virtual --seed 8 --quiet").contains(hash));
    // Nothing is left where it was run.
    assert_eq!(fs::read_dir(here).unwrap().count(), 1);
    printed(here, &format!("{line} --run-dir kept"));
    let again = printed(here, "analyze kept");
    let rate = |text: &str| text.lines().find(|line| line.contains("ops/s")).map(str::to_owned);
    assert_eq!(rate(&again), rate(&one));
}

#[test]
fn a_script_is_what_is_measured() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    workload(here, "stat --rate 100/s --duration 10s --objects 100 --max-in-flight 1 --seed 3");
    let script = "schema: plimsoll.oracle/1\nservice: {time: {constant: 20ms}}\n";
    fs::write(here.join("slow.yaml"), script).unwrap();
    let output = run_line(here, "run workload.yaml --virtual --script slow.yaml --quiet --json");
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // One at a time and 20 ms each: half of what is due is issued.
    assert_eq!(report["schedule"]["offered_count"], 1_000);
    assert_eq!(report["schedule"]["skipped_count"], 500);
    assert_eq!(report["schedule"]["kept"], false);
    assert!(String::from_utf8_lossy(&output.stderr).contains("SCHEDULE NOT KEPT"));
}

#[test]
fn what_cannot_be_is_refused_by_the_name_of_its_field() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    for (line, named) in [
        ("s3 get --rate 0/s", "--rate"),
        ("s3 get --rate 100/s..-5/s", "--rate"),
        ("s3 get --rate 10/s --max-in-flight 0", "--max-in-flight"),
        ("s3 get --rate 10/s --rps-limit 5", "--rps-limit"),
        ("s3 get --arrivals poisson", "--rate"),
        ("run nowhere.yaml", "nowhere.yaml"),
        ("prove magic", "no proof is called `magic`; there are quantiles"),
        ("null --certificate nowhere.json", "nowhere.json"),
    ] {
        let said = refused(here, line);
        assert!(said.contains(named), "{line}: {said}");
    }
    workload(here, "stat --duration 1s --objects 100");
    for (script, named) in [
        ("service: {time: {exponential: {mean: -2ms}}}", "service.time"),
        ("service: {time: {constant: 1ms}}\nstalls: {every: 1s, lasting: 2s}", "stalls"),
        ("service: {time: {constant: 1ms}}\nlies: {torn: 1.5}", "lies"),
    ] {
        let yaml = format!("schema: plimsoll.oracle/1\n{script}\n");
        fs::write(here.join("script.yaml"), yaml).unwrap();
        let said = refused(here, "run workload.yaml --virtual --script script.yaml");
        assert!(said.contains("script.yaml") && said.contains(named), "{script}: {said}");
    }
    let said = refused(here, "run workload.yaml --virtual --host 127.0.0.1:1");
    assert!(said.contains("--host"), "{said}");
}

#[test]
fn every_proof_holds_and_its_certificate_goes_into_a_run() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let found = printed(here, "prove --all --json --quiet --certificate proved.json");
    let found: Value = serde_json::from_str(&found).unwrap();
    let proofs = found["proofs"].as_array().unwrap();
    let names: Vec<&str> = proofs.iter().map(|proof| proof["name"].as_str().unwrap()).collect();
    let expected = ["quantiles", "stall", "errors", "bytes", "merge", "poisson", "schedule"];
    assert_eq!(names, expected);
    assert!(proofs.iter().all(|proof| proof["verdict"] == "pass"), "{found:#}");
    let written = fs::read_to_string(here.join("proved.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), found);

    let line = "null --duration 100ms --quiet --run-dir run --certificate proved.json";
    let report = printed(here, line);
    let certified = report.lines().find(|line| line.starts_with("certificate")).unwrap();
    assert!(certified.contains("7 proofs"), "{certified}");
    assert!(printed(here, "analyze run").contains(certified));
}

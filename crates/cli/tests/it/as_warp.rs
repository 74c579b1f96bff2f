//! `plimsoll as warp`: what a run prints is what warp's report of its exported file says.

use std::fs;
use std::path::Path;

use plimsoll_oracle::Script;

use crate::harness::{Target, oracle, printed, refused, run_line, scripted, stderr};

/// Benchmarks, how they are shown, and what stands in that.
const LINES: [(&str, &str, &str); 4] = [
    ("get --objects 40 --obj.size 4KiB", "--analyze.dur=100ms", "Operation: GET"),
    ("mixed --objects 60 --obj.size 1KiB", "--analyze.v", "Operation: STAT"),
    ("delete --objects 200 --batch 10 --obj.size 100", "", "Operation: DELETE"),
    ("put --obj.size 1KiB", "--analyze.op=put --analyze.skip=100ms", "Operation: PUT"),
];
/// A third of the GETs is refused.
const FAULTS: &str = "schema: plimsoll.oracle/1\nservice: {time: {constant: 1ms}}\n\
                      faults: {get: {slow_down: 0.33}}\n";

/// Runs a benchmark into `run` and returns what it printed.
fn benchmark(target: &Target, directory: &Path, line: &str) -> (Option<i32>, String) {
    let Target { host, bucket, access_key, secret_key, .. } = target;
    let output = run_line(
        directory,
        &format!(
            "as warp {line} --duration 1s --concurrent 2 --host {host} --bucket {bucket} \
             --access-key {access_key} --secret-key {secret_key} --benchdata run"
        ),
    );
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(!text.is_empty(), "{line}: {}", stderr(&output));
    (output.status.code(), text)
}

fn exported(directory: &Path, shown: &str) -> String {
    printed(directory, "export run -o run.csv.zst");
    printed(directory, &format!("as warp analyze {shown} run.csv.zst"))
}

#[test]
fn a_run_prints_what_its_exported_file_is_analysed_to() {
    let target = oracle();
    for (line, shown, part) in LINES {
        let place = tempfile::tempdir().unwrap();
        let line = format!("{line} {shown}");
        let (code, text) = benchmark(&target, place.path(), &line);
        assert_eq!(code, Some(0), "{line}");
        assert!(text.contains(part), "{line}: {text}");
        assert_eq!(text, exported(place.path(), shown), "{line}");
    }
}

#[test]
fn failures_and_segments_are_the_same_too() {
    let target = scripted(Some(Script::from_yaml(FAULTS).unwrap()));
    let place = tempfile::tempdir().unwrap();
    let shown = "--analyze.dur=100ms --analyze.v --analyze.out";
    let line = format!("get --objects 40 --obj.size 4KiB {shown} own.tsv");
    let (code, text) = benchmark(&target, place.path(), &line);
    assert_eq!(code, Some(1), "a third of the operations failed: {text}");
    assert!(text.contains("throttled"), "{text}");
    let again = exported(place.path(), &format!("{shown} again.tsv"));
    assert_eq!(text, again);
    let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    assert!(read("own.tsv").lines().count() > 2);
    assert_eq!(read("own.tsv"), read("again.tsv"));
}

#[test]
fn what_is_explained_is_a_workload_that_runs_below_the_line_as_typed_here() {
    let target = oracle();
    let place = tempfile::tempdir().unwrap();
    let line = "as warp stat --host h --objects 20 --obj.size 1KiB --duration 200ms --concurrent 2";
    let text = printed(place.path(), &format!("{line} --explain"));
    assert!(text.starts_with("# plimsoll s3 stat "), "{text}");
    assert!(text.contains("\nschema: plimsoll.workload/2\n"), "{text}");
    fs::write(place.path().join("w.yaml"), text).unwrap();
    let mut run = target.command(place.path(), "run w.yaml -q");
    assert!(run.status().unwrap().success());
}

#[test]
fn what_the_report_cannot_show_is_refused_before_the_run() {
    let place = tempfile::tempdir().unwrap();
    let said = refused(place.path(), "as warp get --host 127.0.0.1:1 --analyze.op=gets");
    assert!(said.starts_with("plimsoll: `--analyze.op=gets`: choose one of "), "{said}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

//! Results in other hands: the recipes in `docs/recipes`, the reader in `python`, exports for other
//! tools and the published JSON Schemas, each on runs made here and held against
//! `plimsoll analyze --json`. What is asked of them stands in `python/tests`.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::Command;

use plimsoll_oracle::Script;
use serde_json::Value;

use crate::harness::{Target, oracle, plimsoll, printed, refused, run, scripted, stderr};
use crate::workloads::repository;

/// A fifth of the reads is refused, and some answers are cut off.
const FAULTS: &str = "schema: plimsoll.oracle/1\nservice: {time: {constant: 300us}}\n\
                      faults: {get: {slow_down: 0.2, half_body: 0.05}}\n";

/// Two measured stages, one of them with two jobs at once.
const STAGES: &str = "schema: plimsoll.workload/2
name: stages
sets: {a: {count: 40, size: 2KiB}, b: {size: 1KiB}}
stages:
- {name: load, prepares: true, jobs: [{workers: 2, work: {fill: a}}]}
- name: both
  duration: 700ms
  jobs:
  - {name: readers, workers: 3, work: {objects: [{get: a, weight: 3}, {stat: a, weight: 1}]}}
  - {name: writers, workers: 2, work: {objects: [{put: b}]}}
- {name: again, ops: 300, jobs: [{workers: 2, work: {objects: [{get: a}]}}]}
";

/// Jobs that end long before their stage does, and stages of one name.
const APART: &str = "schema: plimsoll.workload/2
name: apart
sets: {a: {count: 40, size: 2KiB}}
stages:
- {name: load, prepares: true, jobs: [{workers: 2, work: {fill: a}}]}
- name: apart
  jobs:
  - name: open
    workers: 2
    duration: 200ms
    pacing: {open: {rate: 200/s, arrivals: constant, max_in_flight: 16}}
    work: {objects: [{get: a}]}
  - {name: brief, workers: 2, duration: 100ms, work: {objects: [{get: a}]}}
  - {name: rare, workers: 2, duration: 400ms, pacing: {capped: 4/s}, work: {objects: [{get: a}]}}
  - {name: long, workers: 1, duration: 2s, pacing: {capped: 100/s}, work: {objects: [{stat: a}]}}
- {name: main, ops: 200, jobs: [{workers: 2, work: {objects: [{get: a}]}}]}
- {name: main, ops: 300, jobs: [{workers: 2, work: {objects: [{get: a}]}}]}
";

/// Stages whose jobs have ramps, which are in no figure.
const RAMPS: &str = "schema: plimsoll.workload/2
name: ramps
sets: {a: {count: 40, size: 2KiB}}
stages:
- {name: load, prepares: true, jobs: [{workers: 2, work: {fill: a}}]}
- name: closed
  duration: 500ms
  jobs: [{workers: 3, ramp: 300ms, ramp_down: 200ms, work: {objects: [{get: a}]}}]
- name: both
  duration: 500ms
  jobs:
  - name: asked
    workers: 2
    ramp: 200ms
    ramp_down: 300ms
    pacing: {open: {rate: 300/s, arrivals: constant, max_in_flight: 16}}
    work: {objects: [{get: a}]}
  - {name: late, workers: 2, start_delay: 100ms..200ms, work: {objects: [{stat: a}]}}
";

/// Makes a run of that name.
fn made(target: &Target, place: &Path, name: &str, line: &str) {
    let output = run(target.command(place, &format!("{line} -q --run-dir {name}")));
    assert!(matches!(output.status.code(), Some(0 | 1)), "{line}: {}", stderr(&output));
    assert!(place.join(name).join("run.json").exists(), "{line}");
}

/// Writes what the program says of a run beside it.
fn reported(place: &Path, name: &str) {
    for (which, flag) in [("report", ""), ("full", "--full-span")] {
        let report = printed(place, &format!("analyze {name} --json {flag}"));
        fs::write(place.join(format!("{name}.{which}.json")), report).unwrap();
    }
}

/// Makes all runs that the tests in Python ask for.
fn runs(place: &Path) {
    let target = oracle();
    let mixed = "s3 mixed --objects 40 --obj.size 1KiB --concurrent 4 --duration 1s";
    made(&target, place, "mixed", mixed);
    made(&target, place, "after", mixed);
    let open = "s3 get --objects 40 --obj.size 10KiB --concurrent 4 --rate 300/s --duration 1s";
    made(&target, place, "open", open);
    // Ends when nothing is left, so that the merged stage lasts from the first beginning on.
    for part in ["part-1", "part-2"] {
        made(&target, place, part, "s3 delete --objects 400 --batch 10 --concurrent 4");
    }
    printed(place, "merge part-1 part-2 -o merged -q");
    fs::write(place.join("stages.yaml"), STAGES).unwrap();
    made(&target, place, "stages", "run stages.yaml");
    fs::write(place.join("ramps.yaml"), RAMPS).unwrap();
    made(&target, place, "ramps", "run ramps.yaml");
    fs::write(place.join("apart.yaml"), APART).unwrap();
    made(&target, place, "apart", "run apart.yaml");
    made(&target, place, "apart-after", "run apart.yaml");
    printed(place, "file iops --dir . --jobs 2 --file-size 1MiB --ops 500 -q --run-dir files");
    let failing = scripted(Some(Script::from_yaml(FAULTS).unwrap()));
    let errors = "s3 get --objects 40 --obj.size 4KiB --concurrent 4 --duration 1s";
    made(&failing, place, "errors", errors);
    let refusing = FAULTS.replace("slow_down: 0.2, half_body: 0.05", "slow_down: 1.0");
    let refusing = scripted(Some(Script::from_yaml(&refusing).unwrap()));
    made(&refusing, place, "failing", errors);
    for name in [
        "mixed", "after", "open", "merged", "stages", "ramps", "apart", "files", "errors",
        "failing",
    ] {
        reported(place, name);
    }
    for name in ["mixed", "open", "errors"] {
        printed(place, &format!("export {name} -o {name}.hlog"));
        printed(place, &format!("export {name} -o {name}.trace.json"));
    }
    let window = "--analyze.op get --analyze.skip 100ms --trace.dur 200ms --analyze.limit 50";
    printed(place, &format!("export mixed -o window.trace.json {window}"));
}

#[test]
fn recipes_reader_exports_and_schemas_say_what_the_report_says() {
    let Some(site) = plimsoll_testkit::python_site() else { return };
    let place = tempfile::tempdir().unwrap();
    runs(place.path());
    let python = repository().join("python").canonicalize().unwrap();
    let path = std::env::join_paths([python.join("src"), site]).unwrap();
    let mut command = Command::new("python3");
    command.args(["-W", "error::DeprecationWarning:tests", "-m", "unittest", "discover"]);
    command.args(["-s", "tests", "-t", "."]).current_dir(&python);
    command.env("PYTHONPATH", path).env("PYTHONDONTWRITEBYTECODE", "1");
    // Jupyter keeps its things below the home directory.
    command.env("HOME", place.path()).env("PLIMSOLL_TEST_RUNS", place.path());
    let output = run(command);
    let told = stderr(&output);
    assert!(output.status.success(), "{told}");
    let ran = told.lines().find_map(|line| line.strip_prefix("Ran ")).expect("a count of tests");
    let count: u32 = ran.split(' ').next().unwrap().parse().unwrap();
    assert!(count >= 30 && told.trim_end().ends_with("OK"), "{told}");
}

#[test]
fn the_views_in_the_package_are_those_in_the_docs() {
    let read = |path: &str| fs::read_to_string(repository().join(path)).unwrap();
    assert_eq!(read("docs/recipes/views.sql"), read("python/src/plimsoll_bench/views.sql"));
    let page = read("docs/recipes/README.md");
    for entry in fs::read_dir(repository().join("docs/recipes/sql")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(page.contains(&format!("(sql/{name})")), "{name} is not on the page");
    }
}

#[test]
fn exports_go_to_stdout_and_are_refused_in_a_sentence() {
    let place = tempfile::tempdir().unwrap();
    crate::analysis::null_run(place.path(), "run");
    let log = printed(place.path(), "export run --format hlog -o -");
    assert!(log.lines().any(|line| line.starts_with("Tag=measure/")), "{log}");
    let trace = printed(place.path(), "export run --format trace -o - --analyze.limit 3");
    let trace: Value = serde_json::from_str(&trace).unwrap();
    assert_eq!(trace["otherData"]["operations_count"], 3);
    for (line, part) in [
        ("export run -o x.csv --trace.dur 1s", "--trace.dur is for traces"),
        ("export run -o x.hlog --analyze.limit 1", "--analyze.limit is for traces"),
        ("export run -o x.trace.json --stage nosuch", "--stage nosuch: run has measure"),
        ("export run -o x.trace.json --analyze.host nosuch", "--analyze.host nosuch: "),
        ("export run -o x.trace.json --analyze.op nosuch", "--analyze.op nosuch: choose one"),
        ("export run -o x.parquet", "the op log is Parquet already"),
        ("report run -o x.pdf", "-o x.pdf: a report is a page of HTML, not .pdf"),
        (
            "export run -o x.json",
            "end it in one of .csv.zst, .csv, .jsonl, .om, .hlog, .trace.json",
        ),
    ] {
        let said = refused(place.path(), line);
        assert!(said.contains(part), "{line}: {said}");
    }
    assert!(
        !["x.csv", "x.hlog", "x.trace.json", "x.pdf"]
            .iter()
            .any(|name| place.path().join(name).exists())
    );
    for format in ["hlog", "trace"] {
        let mut command = plimsoll(place.path());
        command.args(["export", "run", "--format", format, "-o", "-"]);
        command.stdout(OpenOptions::new().write(true).open("/dev/full").unwrap());
        let output = run(command);
        assert_eq!(output.status.code(), Some(2), "{format}");
        assert!(stderr(&output).contains("No space left on device"), "{}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{format}: {}", stderr(&output));
    }
}

#[test]
fn a_trace_says_how_much_of_the_run_it_holds() {
    let place = tempfile::tempdir().unwrap();
    crate::analysis::null_run(place.path(), "run");
    let mut command = plimsoll(place.path());
    command.args("export run -o some.trace.json --analyze.offset 2 --analyze.limit 5".split(' '));
    let output = run(command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let trace = fs::read_to_string(place.path().join("some.trace.json")).unwrap();
    let trace: Value = serde_json::from_str(&trace).unwrap();
    let about = &trace["otherData"];
    let (of, beyond) =
        (&about["operations_of_stages_count"], &about["operations_beyond_limit_count"]);
    assert_eq!(beyond.as_u64().unwrap(), of.as_u64().unwrap() - 7);
    let expected = format!("the trace holds 5 of {of} operations; {beyond} more match");
    assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
}

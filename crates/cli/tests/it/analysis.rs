//! Records read again: analyze, compare, merge, export, report; and warp's files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::harness::plimsoll;

const WARP_FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/warp");

fn run(directory: &Path, line: &str) -> Output {
    plimsoll(directory).args(line.split_whitespace()).output().unwrap()
}

/// Returns what a command that must succeed printed.
#[track_caller]
fn printed(directory: &Path, line: &str) -> String {
    let output = run(directory, line);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{line}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns what a command that cannot be run said, which must be one line.
#[track_caller]
fn refused(directory: &Path, line: &str) -> String {
    let output = run(directory, line);
    assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

/// Makes a short run of the null driver.
fn null_run(directory: &Path, name: &str) -> String {
    let line = format!("null --duration 300ms --concurrent 4 --threads 1 -q --run-dir {name}");
    printed(directory, &line)
}

#[test]
fn a_run_read_again_gives_the_report_it_gave() {
    let place = tempfile::tempdir().unwrap();
    let first = null_run(place.path(), "run");
    assert_eq!(printed(place.path(), "analyze run"), first);
    let detailed = printed(place.path(), "analyze run --analyze.v --json");
    let detailed: serde_json::Value = serde_json::from_str(&detailed).unwrap();
    assert_eq!(detailed["schema"], "plimsoll.report/1");
    assert!(detailed["details"].is_object());
}

#[test]
fn a_killed_run_and_a_damaged_part_are_analysed_as_far_as_whole() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    let manifest = place.path().join("run/run.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("\"complete\"", "\"running\"")).unwrap();
    fs::write(place.path().join("run/ops/part-000001.parquet.open"), "PAR1").unwrap();
    let said = printed(place.path(), "analyze run");
    assert!(said.contains("(killed)") && said.contains("part-000001.parquet was never closed"));
    let part = place.path().join("run/ops/part-000000.parquet");
    let bytes = fs::read(&part).unwrap();
    fs::write(&part, &bytes[..bytes.len() / 2]).unwrap();
    let said = printed(place.path(), "analyze run");
    assert!(said.contains("part-000000.parquet is damaged"), "{said}");
    assert!(said.contains("no operation ended"), "{said}");
}

#[test]
fn a_newer_record_is_refused() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    let manifest = place.path().join("run/run.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace("plimsoll.run/1", "plimsoll.run/2")).unwrap();
    let said = refused(place.path(), "analyze run");
    assert!(said.contains("plimsoll.run/2") && said.contains("plimsoll.run/1"), "{said}");
}

#[test]
fn flags_that_ask_for_what_is_not_there_are_refused() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    for (line, named) in [
        ("analyze run --analyze.op foo", "choose one of put, get"),
        ("analyze run --analyze.op get", "no such operation"),
        ("analyze run --analyze.host nowhere:1", "--analyze.host nowhere:1"),
        ("analyze run --stage prepare", "--stage prepare"),
        ("analyze run --method warp", "plimsoll export"),
        ("analyze nothing", "nothing"),
        ("export run -o ops.txt", ".csv.zst, .csv or .jsonl"),
        ("compare run run --gate p99", "--gate"),
        ("compare run run --gate speed<=1%", "speed"),
        ("compare run run --junit x.xml", "--gate"),
        ("merge run run -o both", "given twice"),
    ] {
        let said = refused(place.path(), line);
        assert!(said.contains(named), "{line}: {said}");
    }
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn one_run_a_side_is_no_verdict_and_three_may_be() {
    let place = tempfile::tempdir().unwrap();
    // Three copies of one run: how far runs differ on a busy machine is not what is tested.
    null_run(place.path(), "before/1");
    for copy in ["before/2", "before/3"] {
        copy_tree(&place.path().join("before/1"), &place.path().join(copy));
    }
    let said = printed(place.path(), "compare before/1 before/2");
    assert!(said.contains("one run a side: not a verdict"), "{said}");
    let gate = run(place.path(), "compare before/1 before/2 --gate rate>=-90%");
    assert_eq!(gate.status.code(), Some(3));
    // A side against itself does not differ, whatever the machine does.
    let line = "compare before before --gate rate>=-90% --gate p50<=+900% --junit gates.xml --json";
    let same: serde_json::Value = serde_json::from_str(&printed(place.path(), line)).unwrap();
    assert_eq!(same["schema"], "plimsoll.compare/1");
    let junit = fs::read_to_string(place.path().join("gates.xml")).unwrap();
    assert_eq!(junit.matches("<testcase").count(), 2, "{junit}");
    let worse = run(place.path(), "compare before before --gate p50<=1ns");
    assert_eq!(worse.status.code(), Some(1), "{worse:?}");
}

#[test]
fn every_file_of_warps_is_analysed() {
    let place = tempfile::tempdir().unwrap();
    let mut files: Vec<PathBuf> =
        fs::read_dir(WARP_FILES).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "zst"));
    files.sort();
    assert_eq!(files.len(), 28);
    for file in &files {
        let raw = file.to_str().unwrap().ends_with(".csv.zst");
        let methods: &[&str] = if raw { &["plimsoll", "warp"] } else { &["plimsoll"] };
        for method in methods {
            let line = format!("analyze --method {method} {}", file.display());
            assert!(printed(place.path(), &line).lines().count() > 3, "{line}");
        }
    }
}

#[test]
fn what_warp_wrote_can_be_merged_and_compared() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| format!("{WARP_FILES}/{name}");
    let (get, hosts) = (file("get-full.csv.zst"), file("get-2hosts-full-v.csv.zst"));
    // They ran one after the other, minutes apart.
    let said = refused(place.path(), &format!("merge {get} {hosts} -o merged"));
    assert!(said.contains("nothing overlaps"), "{said}");
    let said = refused(place.path(), &format!("merge {get} {get} -o merged"));
    assert!(said.contains("given twice"), "{said}");
    let mixed_kinds = format!("merge {get} {} -o merged", file("get-default.json.zst"));
    let said = refused(place.path(), &mixed_kinds);
    assert!(said.contains("sums and figures"), "{said}");
    let sums = file("get-default.json.zst");
    for command in [format!("analyze {sums}"), format!("compare {sums} {sums}")] {
        let said = refused(place.path(), &format!("{command} --analyze.dur 5s"));
        assert!(said.contains("--analyze.dur") && said.contains("sums and figures"), "{said}");
    }
    let said = printed(place.path(), &format!("as warp cmp {get} {hosts}"));
    // As warp prints the two files' numbers of operations.
    assert!(said.contains("Operation: GET\nOperations: 6529 -> 16649\n"), "{said}");
}

#[test]
fn an_export_reads_like_the_run() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    for name in ["ops.csv.zst", "ops.csv", "ops.jsonl"] {
        printed(place.path(), &format!("export run -o {name}"));
    }
    let figures = |line: &str| -> serde_json::Value {
        serde_json::from_str(&printed(place.path(), line)).unwrap()
    };
    let (own, back) = (figures("analyze run --json"), figures("analyze ops.csv.zst --json"));
    for field in ["stage_total", "kinds"] {
        assert!(own[field].is_array() || own[field].is_object());
    }
    assert_eq!(own["stage_total"], back["stage_total"]);
    assert_eq!(own["total"]["latency"], back["total"]["latency"]);
    let rows = own["stage_total"]["ops_ok_count"].as_u64().unwrap() as usize;
    let lines = |name: &str| fs::read_to_string(place.path().join(name)).unwrap().lines().count();
    assert_eq!((lines("ops.csv"), lines("ops.jsonl")), (rows + 1, rows));
}

#[test]
fn segments_go_to_a_file_by_its_ending() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    for name in ["segments.tsv", "segments.csv", "segments.parquet"] {
        printed(place.path(), &format!("analyze run --analyze.dur 50ms --analyze.out {name}"));
    }
    let read = |name: &str| fs::read(place.path().join(name)).unwrap();
    assert!(read("segments.tsv").starts_with(b"index\top\thost\tduration_s\tobjects_per_op\t"));
    assert!(read("segments.csv").starts_with(b"index,op,host,duration_s,objects_per_op,"));
    assert!(read("segments.parquet").starts_with(b"PAR1"));
}

#[test]
fn the_html_report_is_written() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    printed(place.path(), "report run -o run.html");
    let page = fs::read_to_string(place.path().join("run.html")).unwrap();
    assert!(page.contains("plimsoll.report/1") && page.contains("<svg"));
}

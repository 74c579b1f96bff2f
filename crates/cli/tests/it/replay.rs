//! `plimsoll replay` and `plimsoll fit`: traces from their files to a report and a workload.

use serde_json::Value;

use crate::harness::{measured_stage, plimsoll, printed, refused, run, stderr};

/// Half a second of operations on twelve objects, in CSV.
fn trace() -> String {
    let mut text = String::from("time_ms,op,key,size,offset,length\n");
    for number in 0..240 {
        let key = number % 12;
        let rest = match number % 4 {
            0 => format!("get,../k{key},{},,", 1_000 + key),
            1 => format!("get,../k{key},{},10,100", 1_000 + key),
            2 => format!("put,new{number},500,,"),
            _ => format!("head,../k{key},,,"),
        };
        text.push_str(&format!("{},{rest}\n", number * 2));
    }
    text.push_str("481,copy,k,,,\n");
    text
}

/// Returns how many operations were measured.
fn rows(report: &Value) -> u64 {
    measured_stage(report)["op_log"]["rows_count"].as_u64().unwrap()
}

fn replayed(directory: &std::path::Path, line: &str) -> (Value, String) {
    let mut command = plimsoll(directory);
    command.args(line.split_whitespace()).args(["--json", "--max-error-rate", "0%"]);
    let output = run(command);
    // A busy machine may not keep the schedule, which is no failure of the replay.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{line}: {}", stderr(&output));
    (serde_json::from_slice(&output.stdout).unwrap(), stderr(&output))
}

#[test]
fn a_trace_becomes_a_run_that_is_analysed_and_replayed_again() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    std::fs::write(at.join("t.csv"), trace()).unwrap();
    let (report, told) = replayed(at, "replay t.csv --run-dir r --seed 7");
    assert_eq!(rows(&report), 240);
    assert!(told.contains("1 operation is of a kind that is not replayed: 1 copy"), "{told}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("not replayed: 1 copy"), "{notes}");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(at.join("r/run.json")).unwrap()).unwrap();
    let stages = manifest["stages"].as_array().unwrap();
    assert_eq!(
        (stages[0]["ops_count"].as_u64(), stages[1]["ops_count"].as_u64()),
        (Some(9), Some(240))
    );
    assert_eq!(stages[1]["jobs"][0]["schedule"]["arrivals"][0], "trace");
    assert_eq!(manifest["cleanup"]["state"], "complete");
    assert!(printed(at, "analyze r").contains("trace, up to 1,024 in flight"));
    // The record is a trace itself, and so is what it exports for warp.
    let (again, _) = replayed(at, "replay r --closed --run-dir again");
    assert_eq!(rows(&again), 240);
    printed(at, "export r --format warp -o w.csv.zst");
    let (warp, _) = replayed(at, "replay w.csv.zst --speed 4 --run-dir warp");
    assert!(rows(&warp) >= 240);
    // What --explain prints is a workload that does the same.
    let explained = printed(at, "replay t.csv --explain --seed 7");
    std::fs::write(at.join("w.yaml"), explained).unwrap();
    assert!(printed(at, "run w.yaml --check").contains("sound"));
    let (same, _) = replayed(at, "run w.yaml --virtual");
    assert_eq!(rows(&same), 240);
}

#[test]
fn a_replay_on_nothing_verifies_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let two = "time_ms,op,key,size\n0,get,a,5000000000\n1,get,b,5000000000\n";
    std::fs::write(at.join("two.csv"), two).unwrap();
    std::fs::write(at.join("io.log"), "fio version 3 iolog\n0 /d/a add\n5 /d/a read 0 4096\n")
        .unwrap();
    for line in ["replay two.csv --null", "replay io.log --null"] {
        let (report, _) = replayed(at, line);
        assert!(report["verification"].is_null(), "{line}: {}", report["verification"]);
    }
}

#[test]
fn an_iolog_goes_to_files_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let mut text = String::from("fio version 3 iolog\n0 /dev/x add\n0 /dev/x open\n");
    for number in 0..200u64 {
        let action = if number % 3 == 0 { "write" } else { "read" };
        text.push_str(&format!("{} /dev/x {action} {} 4096\n", number * 500, number % 50 * 4_096));
    }
    text.push_str("100000 /dev/x sync 0 0\n");
    std::fs::write(at.join("io.log"), text).unwrap();
    std::fs::create_dir(at.join("d")).unwrap();
    assert!(refused(at, "replay io.log").contains("name a directory for them (--dir)"));
    let (report, _) = replayed(at, "replay io.log --dir d --run-dir r");
    let stages = report["stages"].as_array().unwrap();
    let all = stages.last().unwrap().to_string();
    assert!(all.contains("READ") && all.contains("WRITE") && all.contains("SYNC"), "{all}");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(at.join("r/run.json")).unwrap()).unwrap();
    assert_eq!(manifest["stages"][1]["ops_count"], 201);
    assert_eq!(manifest["stages"][1]["ops_failed_count"], 0);
    assert_eq!(std::fs::read_dir(at.join("d")).unwrap().count(), 0);
}

#[test]
fn a_fitted_workload_is_written_and_sound() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    std::fs::write(at.join("t.csv"), trace()).unwrap();
    let said = printed(at, "fit t.csv -o w.yml");
    assert!(said.contains("50.0000 % of 240 operations"), "{said}");
    assert!(said.contains("not distinguishable from uniform"), "{said}");
    assert!(printed(at, "run w.yml --explain").contains("range: 100B"));
    assert!(refused(at, "fit t.csv -o w.yml").contains("--overwrite"));
    let found: Value = serde_json::from_str(&printed(at, "fit t.csv --json")).unwrap();
    assert_eq!((&found["ops_count"], &found["reads_percent"]), (&240.into(), &50.0.into()));
    assert_eq!(found["workload"]["schema"], "plimsoll.workload/2");
    assert_eq!(found["popularity"]["zipf_exponent"], 0.0);
    assert_eq!(found["arrivals"]["is_assumed"], true);
    assert_eq!(found["arrivals"]["resolution_ns"], 1_000_000);
}

#[test]
fn what_cannot_be_replayed_is_refused_in_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    for (name, content) in [
        ("empty", &b""[..]),
        ("zip", &[0x1f, 0x8b, 8, 0][..]),
        ("cut", &[0x28, 0xb5, 0x2f, 0xfd, 4, 0, 1][..]),
        ("odd", b"hello\nworld\n"),
        ("bad.csv", b"time,op,key\nNaN,get,a\n"),
        ("t.csv", b"time,op,key,size\n1,put,a,5\n2,get,a,5\n"),
    ] {
        std::fs::write(at.join(name), content).unwrap();
    }
    for (line, said) in [
        ("replay empty", "empty: it is empty"),
        ("replay zip", "zip: it is compressed with gzip"),
        ("replay cut", "damaged or cut off"),
        ("replay odd", "odd: line 1: its format is not recognised"),
        ("replay bad.csv", "bad.csv, line 2: `NaN` is not a time"),
        ("replay nothing", "cannot read nothing"),
        ("replay .", "holds no run.json"),
        ("replay t.csv --dir .", "--dir: t.csv is about objects of a store"),
        ("replay t.csv --speed 0", "speed: 0.0 is out of range"),
        ("replay t.csv --speed 1e300", "speed: 1e300 is out of range"),
        ("fit t.csv", "2 operations are too few"),
    ] {
        let told = refused(at, line);
        assert!(told.contains(said), "{line}: {told}");
    }
    assert!(
        std::fs::read_dir(at).unwrap().all(|entry| entry.unwrap().file_type().unwrap().is_file())
    );
}

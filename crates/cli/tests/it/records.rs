//! Records that were damaged, killed or merged, read again.

use std::fs;
use std::path::Path;

use crate::analysis::null_run;
use crate::harness::{
    ACCESS_KEY, SECRET_KEY, Target, oracle, plimsoll, printed, refused, run, run_line, stderr,
    without_checksum,
};

/// Has the run in `name` measure from the same moment on as that in `other`.
fn move_beside(place: &Path, name: &str, other: &str) {
    let manifest = |name: &str| {
        let text = fs::read(place.join(name).join("run.json")).unwrap();
        serde_json::from_slice::<serde_json::Value>(&text).unwrap()
    };
    let measured_ns = |manifest: &serde_json::Value| {
        let stages = manifest["stages"].as_array().unwrap();
        let measured = stages.iter().find(|stage| stage["kind"] == "measure").unwrap();
        measured["started_ns"].as_u64().unwrap()
    };
    let (mut moved, other) = (manifest(name), manifest(other));
    let began = other["started_unix_ns"].as_u64().unwrap() + measured_ns(&other);
    moved["started_unix_ns"] = (began - measured_ns(&moved)).into();
    moved.as_object_mut().unwrap().remove("checksum");
    fs::write(place.join(name).join("run.json"), moved.to_string()).unwrap();
}

/// Returns operations and bytes of the measured stage of each run.
fn totals(place: &Path, runs: &[&str]) -> Vec<(u64, u64, u64)> {
    let of_run = |run: &&str| {
        let report = printed(place, &format!("analyze {run} --json"));
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let count = |field: &str| report["stage_total"][field].as_u64().unwrap();
        (count("ops_ok_count"), count("ops_failed_count"), count("bytes"))
    };
    runs.iter().map(of_run).collect()
}

#[test]
fn every_kind_of_run_is_merged_to_the_sum_of_its_parts_or_refused() {
    let target = oracle();
    let place = tempfile::tempdir().unwrap();
    let s3 = "--objects 20 --obj.size 10KiB --concurrent 2 --duration 200ms -q";
    let parts = "s3 multipart --parts 3 --part.size 5MiB --concurrent 2 --duration 200ms -q";
    for (number, kind) in ["get", "put", "stat", "mixed", "list", "delete"].iter().enumerate() {
        let line = match *kind {
            "delete" => "s3 delete --objects 800 --obj.size 1KiB --concurrent 2 -q".to_owned(),
            "put" => format!("s3 put {}", s3.replace("--objects 20 ", "")),
            kind => format!("s3 {kind} {s3}"),
        };
        merges_to_the_sum(&target, place.path(), number, &line);
    }
    merges_to_the_sum(&target, place.path(), 6, parts);
    let loops = "-d 1 -t 2 -z 1K -l 2";
    for (line, sentence) in [
        ("file iops --dir . --jobs 1 --file-size 64KiB --ops 20 -q", "is a run on files"),
        ("file metadata --dir . --jobs 1 --files 5 -q", "is a run on files"),
        (loops, "measured 8 stages (loop-1-put, loop-1-get, loop-1-list2, loop-1-delete, …)"),
    ] {
        for name in ["one", "two"] {
            let _ = fs::remove_dir_all(place.path().join(name));
            let output = match line == loops {
                true => {
                    let mut command = plimsoll(place.path());
                    command.args(["as", "s3-benchmark", "--run-dir", name]);
                    command.args(["-u", &format!("http://{}", target.host), "-b", "loops"]);
                    command.args(["-a", ACCESS_KEY, "-s", SECRET_KEY]);
                    command.args(line.split_whitespace());
                    run(command)
                }
                false => run_line(place.path(), &format!("{line} --run-dir {name}")),
            };
            assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        }
        move_beside(place.path(), "two", "one");
        let said = refused(place.path(), "merge one two -o whole");
        assert!(said.contains(sentence) && said.contains("--stage NAME"), "{said}");
        assert!(!place.path().join("whole").exists());
    }
}

fn merges_to_the_sum(target: &Target, place: &Path, number: usize, line: &str) {
    let name = |part: &str| format!("{part}-{number}");
    let names = ["one", "two"].map(name);
    for name in &names {
        let output = run(target.command(place, &format!("{line} --run-dir {name}")));
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    }
    let [one, two] = &names;
    move_beside(place, two, one);
    printed(place, &format!("merge {one} {two} -o whole-{number}"));
    let of_parts = totals(place, &[one, two]);
    let sum = of_parts
        .iter()
        .fold((0, 0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1, sum.2 + part.2));
    assert!(of_parts.iter().all(|(ops, ..)| *ops > 0), "{line}: {of_parts:?}");
    assert_eq!(totals(place, &[&format!("whole-{number}")]), [sum], "{line}");
}

#[test]
fn a_flipped_bit_is_said_of_runs_on_files_and_others() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "null");
    let files = "file iops --dir . --jobs 1 --file-size 64KiB --ops 20 -q --run-dir files";
    printed(place.path(), files);
    for name in ["null", "files"] {
        let part = place.path().join(name).join("ops/part-000000.parquet");
        let mut bytes = fs::read(&part).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        fs::write(&part, bytes).unwrap();
        let output = run_line(place.path(), &format!("analyze {name}"));
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
        let sentence = "part-000000.parquet is damaged (its checksum does not fit";
        assert!(said.contains(sentence), "{name}: {said}");
    }
}

#[test]
fn a_run_of_which_nothing_was_saved_says_so() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    let manifest = place.path().join("run/run.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let mut killed: serde_json::Value = serde_json::from_str(&text).unwrap();
    killed.as_object_mut().unwrap().remove("checksum");
    killed["state"] = "running".into();
    killed["recorder"] = serde_json::Value::Null;
    for stage in killed["stages"].as_array_mut().unwrap() {
        (stage["started_ns"], stage["ended_ns"]) = Default::default();
    }
    fs::write(&manifest, killed.to_string()).unwrap();
    fs::remove_file(place.path().join("run/ops/part-000000.parquet")).unwrap();
    let said = refused(place.path(), "analyze run");
    let sentence = "and was killed or is still under way; no operation of it was saved";
    assert!(said.contains(sentence) && said.contains("plimsoll clean run"), "{said}");
}

#[test]
fn a_record_without_checksums_is_analysed_and_said_to_have_none() {
    let place = tempfile::tempdir().unwrap();
    null_run(place.path(), "run");
    let manifest = place.path().join("run/run.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, without_checksum(&text)).unwrap();
    let part = place.path().join("run/ops/part-000000.parquet");
    let mut bytes = fs::read(&part).unwrap();
    let mark = b"crc64-nvme:";
    let at = bytes.windows(mark.len()).rposition(|window| window == mark).unwrap();
    bytes[at] = b'-';
    fs::write(&part, bytes).unwrap();
    let said = printed(place.path(), "analyze run");
    assert!(said.contains("run.json has no checksum"), "{said}");
    assert!(said.contains("1 of 1 parts of the op log have no checksum"), "{said}");
}

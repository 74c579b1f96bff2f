//! Every kind of run merged with another of its kind.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{
    ACCESS_KEY, SECRET_KEY, Target, oracle, plimsoll, printed, refused, run, run_directory,
    run_line, stderr,
};

/// A job file with two groups, of which one has jobs of two names.
const JOBS: &str = "\
[global]
directory=.
size=64k
bs=4k
ioengine=psync

[writers]
rw=write
numjobs=2

[readers]
rw=randread
stonewall
number_ios=9

[more-readers]
rw=randread
numjobs=3
number_ios=7
";

fn manifest(place: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(place.join(name).join("run.json")).unwrap()).unwrap()
}

fn write_manifest(place: &Path, name: &str, mut manifest: Value) {
    manifest.as_object_mut().unwrap().remove("checksum");
    fs::write(place.join(name).join("run.json"), manifest.to_string()).unwrap();
}

/// Has the run in `name` measure from the same moment on as that in `other`.
fn move_beside(place: &Path, name: &str, other: &str) {
    let measured_ns = |manifest: &Value| {
        let stages = manifest["stages"].as_array().unwrap();
        let measured = stages.iter().find(|stage| stage["kind"] == "measure").unwrap();
        measured["started_ns"].as_u64().unwrap()
    };
    let (mut moved, other) = (manifest(place, name), manifest(place, other));
    let began = other["started_unix_ns"].as_u64().unwrap() + measured_ns(&other);
    moved["started_unix_ns"] = (began - measured_ns(&moved)).into();
    write_manifest(place, name, moved);
}

/// What a record says of one kind of operation in one place.
#[derive(Clone, Debug, Default, PartialEq)]
struct Part {
    ok: u64,
    failed: u64,
    bytes: u64,
    /// Of how many operations the latencies are.
    latencies: u64,
    least: Option<u64>,
    greatest: Option<u64>,
}

impl Part {
    fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.bytes += other.bytes;
        self.latencies += other.latencies;
        self.least = self.least.into_iter().chain(other.least).min();
        self.greatest = self.greatest.max(other.greatest);
    }
}

/// The places are named by stage, job and kind.
type Parts = BTreeMap<String, Part>;

fn sum(runs: &[Parts]) -> Parts {
    let mut sum = Parts::new();
    for (name, part) in runs.iter().flatten() {
        sum.entry(name.clone()).or_default().add(part);
    }
    sum
}

/// Returns what the op log of a run holds of each stage and kind.
fn logged(place: &Path, run: &str) -> Parts {
    let mut parts = Parts::new();
    for line in printed(place, &format!("export {run} -o - --format jsonl")).lines() {
        let op: Value = serde_json::from_str(line).unwrap();
        let is_ok = op["outcome"] == "ok";
        let latency = op["latency_ns"].as_u64();
        let own = Part {
            ok: is_ok.into(),
            failed: (!is_ok).into(),
            bytes: op["bytes"].as_u64().unwrap_or_default(),
            latencies: 1,
            least: latency,
            greatest: latency,
        };
        let name = format!("{} {}", op["stage"], op["kind"]);
        parts.entry(name).or_default().add(&own);
    }
    parts
}

/// Returns what the figures of a run say: of each kind in each row.
fn figures(place: &Path, run: &str) -> Parts {
    let report: Value =
        serde_json::from_str(&printed(place, &format!("analyze {run} --json"))).unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    let mut parts = Parts::new();
    for stage in report["stages"].as_array().unwrap() {
        for row in stage["rows"].as_array().unwrap() {
            for kind in row["kinds"].as_array().unwrap() {
                let (latency, total) = (&kind["latency_ns"], &kind["stage_total"]);
                let part = Part {
                    ok: number(&total["ops_ok_count"]),
                    failed: number(&total["ops_failed_count"]),
                    bytes: number(&total["bytes"]),
                    ..Part::default()
                };
                // On objects times are those of the span in which all workers ran.
                let part = match row["is_on_files"] == true {
                    false => part,
                    true => Part {
                        latencies: number(&latency["samples_count"]),
                        least: latency["min"].as_u64(),
                        greatest: latency["max"].as_u64(),
                        ..part
                    },
                };
                let name = format!(
                    "{} {} {} {}",
                    stage["name"], stage["iteration_index"], row["name"], kind["kind"]
                );
                assert!(parts.insert(name, part).is_none(), "a row is shown once");
            }
        }
    }
    parts
}

/// Makes two runs with a command each, merges them, and holds the whole against them.
fn merges_to_the_sum(place: &Path, name: &str, make: impl Fn(&str) -> std::process::Command) {
    let [one, two, whole] = ["one", "two", "whole"].map(|part| format!("{name}-{part}"));
    for part in [&one, &two] {
        let output = run(make(part));
        assert_eq!(output.status.code(), Some(0), "{part}: {}", stderr(&output));
        let own = place.join(format!("{part}.d"));
        if own.exists() {
            fs::rename(run_directory(&own), place.join(part)).unwrap();
        }
    }
    move_beside(place, &two, &one);
    let said = printed(place, &format!("merge {one} {two} -o {whole}"));
    let parts = [&one, &two];
    assert_eq!(logged(place, &whole), sum(&parts.map(|part| logged(place, part))), "{name}");
    let of_parts = parts.map(|part| figures(place, part));
    for part in &of_parts {
        assert!(part.values().any(|part| part.ok > 0), "{name}: {part:?}");
    }
    assert_eq!(figures(place, &whole), sum(&of_parts), "{name}");
    // Both clients are named.
    for part in parts {
        let run_id = manifest(place, part)["run_id"].as_str().unwrap().to_owned();
        let csv = printed(place, &format!("export {whole} -o - --format csv"));
        assert!(csv.contains(&run_id), "{name}");
    }
    assert!(said.contains("of 2 clients"), "{said}");

    let stages = manifest(place, &whole)["stages"].as_array().unwrap().clone();
    let last = stages.iter().rfind(|stage| stage["kind"] == "measure").unwrap();
    let last = last["name"].as_str().unwrap();
    printed(place, &format!("analyze {whole} --stage {last}"));
    printed(place, &format!("compare {one} {whole} --stage {last}"));
    printed(place, &format!("report {whole} -o {whole}.html"));
    let page = fs::read_to_string(place.join(format!("{whole}.html"))).unwrap();
    assert!(page.contains("of 2 clients"), "{name}");
}

#[test]
fn every_kind_of_run_on_a_store_is_merged_to_the_sum_of_its_parts() {
    let target = oracle();
    let place = tempfile::tempdir().unwrap();
    let s3 = "--objects 20 --obj.size 10KiB --concurrent 2 --duration 200ms -q";
    for kind in ["get", "put", "stat", "mixed", "list", "delete", "multipart"] {
        let line = match kind {
            "delete" => "s3 delete --objects 800 --obj.size 1KiB --concurrent 2 -q".to_owned(),
            "put" => format!("s3 put {}", s3.replace("--objects 20 ", "")),
            "multipart" => {
                "s3 multipart --parts 3 --part.size 5MiB --concurrent 2 --duration 200ms -q"
                    .to_owned()
            }
            kind => format!("s3 {kind} {s3}"),
        };
        merges_to_the_sum(place.path(), kind, |name| {
            target.command(place.path(), &format!("{line} --run-dir {name}"))
        });
    }
    merges_to_the_sum(place.path(), "loops", |name| loops(&target, place.path(), name));
}

/// Returns the command for a run of several measured stages.
fn loops(target: &Target, place: &Path, name: &str) -> std::process::Command {
    let mut command = plimsoll(place);
    command.args(["as", "s3-benchmark", "--run-dir", name]);
    command.args(["-u", &format!("http://{}", target.host), "-b", "loops"]);
    command.args(["-a", ACCESS_KEY, "-s", SECRET_KEY]);
    command.args("-d 1 -t 2 -z 1K -l 1".split_whitespace());
    command
}

#[test]
fn every_kind_of_run_on_files_is_merged_to_the_sum_of_its_parts() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("jobs.fio"), JOBS).unwrap();
    for (name, line) in [
        ("iops", "file iops --dir . --jobs 2 --file-size 64KiB --ops 20 -q"),
        ("names", "file metadata --dir . --jobs 2 --files 5 -q"),
        (
            "suite",
            "file suite --dir . --scale 1/1048576 --duration 100ms --jobs 2 --iterations 2 -q",
        ),
        ("job-file", "run jobs.fio --dir . -q"),
    ] {
        merges_to_the_sum(place.path(), name, |name| {
            let mut command = plimsoll(place.path());
            command.args(line.split_whitespace()).args(["--run-dir", name]);
            command
        });
    }
    for (name, line) in
        [("fio", "as fio ../jobs.fio"), ("mdtest", "as mdtest -np 3 -F -n 20 -i 2 -d .")]
    {
        // Other tools' command lines have no flag for where the record goes.
        merges_to_the_sum(place.path(), name, |name| {
            let own = place.path().join(format!("{name}.d"));
            fs::create_dir(&own).unwrap();
            let mut command = plimsoll(&own);
            command.args(line.split_whitespace());
            command
        });
    }
}

/// The workers of a client are those of its own workload, as many as it has, and what they did is
/// found again however the runs are put together.
#[test]
fn clients_of_different_sizes_are_put_together_in_any_grouping() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    for (name, jobs, depth) in [("a", 1, 1), ("b", 3, 2), ("c", 2, 1)] {
        let shape = format!("--jobs {jobs} --depth {depth} --file-size 64KiB --ops 20 --threads 1");
        printed(place, &format!("file iops --dir . {shape} -q --run-dir {name}"));
    }
    for name in ["b", "c"] {
        move_beside(place, name, "a");
    }
    let parts = ["a", "b", "c"].map(|name| figures(place, name));
    printed(place, "merge a b c -o flat");
    printed(place, "merge c a -o two");
    printed(place, "merge b two -o nested");
    for whole in ["flat", "nested"] {
        assert_eq!(figures(place, whole), sum(&parts), "{whole}");
    }
    let [flat, nested] = ["flat", "nested"].map(|whole| manifest(place, whole));
    assert_eq!(flat["merged"], nested["merged"]);
    assert_eq!(flat["stages"], nested["stages"]);
    let stages = |whole: &str| {
        let report: Value =
            serde_json::from_str(&printed(place, &format!("analyze {whole} --json"))).unwrap();
        report["stages"].clone()
    };
    let of_flat = stages("flat");
    assert_eq!(of_flat, stages("nested"));
    let row = &of_flat.as_array().unwrap().last().unwrap()["rows"][0];
    assert_eq!((row["workers_count"].as_u64(), &row["depth"]), (Some(6), &Value::Null));
    assert_eq!(
        (row["client_ids"].as_array().map(Vec::len), row["files_count"].as_u64()),
        (Some(3), Some(6))
    );
    let said = refused(place, "merge two a -o again");
    assert!(said.contains("is given twice"), "{said}");
    assert!(!place.join("again").exists());
}

#[test]
fn runs_that_do_not_belong_together_are_refused_before_anything_is_written() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let small = "--dir . --jobs 1 --file-size 64KiB --ops 5 -q";
    printed(place, &format!("file iops {small} --run-dir reads"));
    printed(place, &format!("file iops {small} --op write --run-dir writes"));
    printed(place, "file metadata --dir . --jobs 1 --files 5 -q --run-dir names");
    printed(place, &format!("file iops {small} --run-dir later"));
    for name in ["writes", "names"] {
        move_beside(place, name, "reads");
    }
    for (line, sentence) in [
        ("merge reads writes -o whole", "-iops (on files) where run file-"),
        ("merge reads names -o whole", "only runs with the same stages in the same order"),
        ("merge reads reads -o whole", "is given twice"),
        ("merge reads later -o whole --analyze.op nosuch", "choose one of"),
    ] {
        let said = refused(place, line);
        assert!(said.contains(sentence), "{said}");
        assert!(!place.join("whole").exists());
    }
    // They took turns, which is said and not refused.
    let mut later = manifest(place, "later");
    later["started_unix_ns"] = (later["started_unix_ns"].as_u64().unwrap() + 60_000_000_000).into();
    write_manifest(place, "later", later);
    let said = run_line(place, "merge reads later -o whole");
    assert_eq!(said.status.code(), Some(0), "{}", stderr(&said));
    let text = String::from_utf8(said.stdout).unwrap().replace('\n', " ");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("never all ran it at the same time"), "{text}");
}

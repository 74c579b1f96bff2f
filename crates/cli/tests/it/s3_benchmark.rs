//! `plimsoll as s3-benchmark`: its lines, its log, and what is left in the bucket.

use std::path::Path;
use std::process::{Command, Output};

use plimsoll_oracle::Script;
use plimsoll_testkit::golden::assert_like;
use plimsoll_workload::plan::WorkloadFile;
use serde_json::Value;

use crate::harness::{
    ACCESS_KEY, SECRET_KEY, Target, oracle, plimsoll, printed, refused, run, run_directory,
    scripted, stderr,
};

/// What the program itself printed of several runs.
const PRINTED: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/s3-benchmark/s3b-fakes3.txt"
));

/// Returns the command against a store; `ours` stands before s3-benchmark's own words.
fn command(target: &Target, directory: &Path, ours: &str, words: &str) -> Command {
    let mut command = plimsoll(directory);
    command.args(["as", "s3-benchmark"]).args(ours.split_whitespace());
    command.args(["-u", &format!("http://{}", target.host), "-b", &target.bucket]);
    command.args(["-a", &target.access_key, "-s", &target.secret_key]);
    command.args(words.split_whitespace());
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the number that stands behind `name` in a line.
fn figure(line: &str, name: &str) -> f64 {
    let (_, rest) = line.split_once(name).unwrap_or_else(|| panic!("no `{name}` in `{line}`"));
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].trim_end_matches('.').parse().unwrap()
}

/// Returns operations and failures of each stage, as the record has them.
fn stages(directory: &Path) -> (Value, Vec<(String, u64, u64)>) {
    let manifest = std::fs::read(run_directory(directory).join("run.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let of = |stage: &Value| {
        let count = |field: &str| stage[field].as_u64().unwrap();
        let name = stage["name"].as_str().unwrap().to_owned();
        (name, count("ops_count"), count("ops_failed_count"))
    };
    let stages = manifest["stages"].as_array().unwrap().iter().map(of).collect();
    (manifest, stages)
}

#[test]
fn two_loops_each_with_its_own_counters() {
    let target = oracle();
    target.plant(40);
    let directory = tempfile::tempdir().unwrap();
    let words = "-l 2 -d 1 -t 4 -z 1K";
    let output = run(command(&target, directory.path(), "-q --seed 5", words));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(lines[0], "Wasabi benchmark program v2.0");
    let url = format!("http://{}", target.host);
    // Each loop with the lines of the program's one.
    let program: Vec<&str> = PRINTED.lines().skip(1).take(7).collect();
    for tests in lines[2..].chunks(5) {
        let ours = [&lines[..2], tests].concat().join("\n");
        let names = [&*url, "http://127.0.0.1:17999", "bench", "bb"];
        assert_like(&program.join("\n"), &ours, &names);
    }
    let parameters = format!(
        "Parameters: url={url}, bucket=bench, region=us-east-1, duration=1, threads=4, loops=2, size=1K"
    );
    assert_eq!(lines[1], parameters);

    // Every line but the first is in the log, behind its date; what is below is not.
    let log = std::fs::read_to_string(directory.path().join("benchmark.log")).unwrap();
    let logged: Vec<&str> = log.lines().map(|line| line.split_once(" GMT: ").unwrap().1).collect();
    assert_eq!(logged, lines[1..]);

    let (manifest, stages) = stages(directory.path());
    let mut stage = stages.iter();
    let mut line = lines[2..].iter();
    for number in [1, 2] {
        let mut written = 0;
        for test in ["PUT", "GET", "LIST2", "LISTver", "DELETE"] {
            let line = line.next().unwrap();
            assert!(line.starts_with(&format!("Loop {number}: {test} ")), "{line}");
            let (name, ops, failed) = stage.next().unwrap();
            assert_eq!(*name, format!("loop-{number}-{}", test.to_lowercase()));
            assert!(*ops > 0 && *failed == 0, "{name}: {failed} of {ops}");
            assert!(line.ends_with("Slowdowns = 0"), "{line}");
            match test {
                "PUT" => {
                    assert_eq!(figure(line, "objects = "), *ops as f64, "{line}");
                    written = *ops;
                }
                "GET" => assert_eq!(figure(line, "objects = "), *ops as f64, "{line}"),
                "LIST2" | "LISTver" => assert_eq!(figure(line, "ops = "), *ops as f64, "{line}"),
                _ => assert_eq!(*ops, written, "each object is deleted once"),
            }
        }
    }
    assert_eq!((stage.next(), line.next()), (None, None));
    assert_eq!(manifest["state"], "complete");
    assert_eq!(manifest["workload"]["keep_going"], true, "the program does not end on failures");
    assert_eq!(manifest["cleanup"]["state"], "complete");
    assert_eq!(manifest["cleanup"]["objects_removed_count"], 0, "DELETE removed them all");
    target.assert_only_planted(40);

    // Our own lines below: a row of latencies for each test.
    let below: Vec<&str> = text.lines().skip(lines.len()).collect();
    for row in ["latency", "loop 1 PUT", "loop 2 DELETE", "loop 2 LISTver"] {
        assert!(below.iter().any(|line| line.trim().starts_with(row)), "{row} in {text}");
    }
    keys_of_the_record_are_the_real_ones(directory.path());
    no_secret_is_kept(directory.path(), &[output.stdout, output.stderr]);
}

/// What GET read has the names under which PUT wrote it.
fn keys_of_the_record_are_the_real_ones(directory: &Path) {
    let run = run_directory(directory);
    let line = format!("export {} --format csv --output ops.csv", run.display());
    printed(directory, &line);
    let table = std::fs::read_to_string(directory.join("ops.csv")).unwrap();
    let mut rows = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heading = rows.next().unwrap();
    let column = |name: &str| heading.iter().position(|each| *each == name).unwrap();
    let (kind, key) = (column("kind"), column("key"));
    let (mut put, mut got) = (std::collections::HashSet::new(), 0);
    for row in rows {
        match row[kind] {
            "PUT" => {
                put.insert(row[key].to_owned());
            }
            "GET" => {
                assert!(put.contains(row[key]), "{} was never written", row[key]);
                got += 1;
            }
            _ => {}
        }
    }
    assert!(got > 0);
}

fn no_secret_is_kept(directory: &Path, printed: &[Vec<u8>]) {
    let mut texts = printed.to_vec();
    texts.push(std::fs::read(directory.join("benchmark.log")).unwrap());
    texts.push(std::fs::read(run_directory(directory).join("run.json")).unwrap());
    for text in texts.iter().map(|text| String::from_utf8_lossy(text)) {
        assert!(!text.contains(ACCESS_KEY) && !text.contains(SECRET_KEY), "{text}");
    }
}

#[test]
fn the_log_grows_and_a_second_run_leaves_the_first_alone() {
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    for (run_dir, signature) in [("one", "S3V4"), ("two", "S3V2")] {
        let ours = format!("-q --run-dir {run_dir} --signature {signature}");
        let output = run(command(&target, directory.path(), &ours, "-d=1 --z 100B"));
        assert_eq!(output.status.code(), Some(0), "{signature}: {}", stderr(&output));
    }
    let log = std::fs::read_to_string(directory.path().join("benchmark.log")).unwrap();
    assert_eq!(log.lines().count(), 2 * 6, "{log}");
    assert_eq!(target.listed(), Vec::<String>::new());
}

#[test]
fn explain_lists_each_correction_and_does_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let text =
        printed(directory.path(), "as s3-benchmark --explain -a hush-a -s hush-s -z 4K -l 3");
    let mut lines = text.lines();
    let first = lines.next().unwrap();
    assert!(first.starts_with("# Parameters: ") && first.ends_with("loops=3, size=4K"), "{first}");
    let corrections = plimsoll_dialects::s3_benchmark::CORRECTIONS;
    for (line, correction) in lines.by_ref().zip(corrections) {
        assert_eq!(line, format!("# {correction}"));
    }
    // The parameters above them, and what sizes mean below.
    assert_eq!(text.lines().filter(|line| line.starts_with('#')).count(), corrections.len() + 2);
    assert!(text.contains("\n# 4M is 4,194,304 bytes, as in s3-benchmark\n"), "{text}");
    // All of it is a workload file.
    let plan = WorkloadFile::from_yaml("explained", &text).unwrap().check().unwrap();
    let names: Vec<&str> = plan.stages.iter().map(|stage| &*stage.name).collect();
    assert_eq!((names.len(), names[0], names[8]), (15, "loop-1-put", "loop-2-listver"));
    assert!(!text.contains("hush"));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_is_refused_in_its_own_flags() {
    let directory = tempfile::tempdir().unwrap();
    for (words, part) in [
        ("", "no access key (-a)"),
        ("-a A -s S -z 1024", "`-z=1024`"),
        ("-a A -s S -l 52", "at most 51 loops"),
        ("-a A -s S -b a/b -u http://127.0.0.1:9", "(-b)"),
        ("-a A -s S -u http://127.0.0.1:9", "-u"),
        ("--insecure -a A -s S -u http://127.0.0.1:9", "-u with https://"),
        ("--json -a A -s S", "--json"),
    ] {
        let said = refused(directory.path(), &format!("as s3-benchmark -q {words}"));
        assert!(said.contains(part), "`{words}`: {said}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Every answer of these kinds fails now and then; the store never says that it is another failure.
const SHEDDING: &str = "schema: plimsoll.oracle/1\n\
                        service: {time: {constant: 100us}}\n\
                        faults: {put: {slow_down: 0.05}, get: {status: {404: 0.05}},\n\
                        list: {status: {503: 0.05}}, delete: {status: {500: 0.05}}}\n";

#[test]
fn what_fails_is_no_object_no_get_and_no_delete() {
    let target = scripted(Some(Script::from_yaml(SHEDDING).unwrap()));
    let directory = tempfile::tempdir().unwrap();
    let output = run(command(&target, directory.path(), "-q --seed 5", "-d 1 -t 4 -z 1K"));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("more than --max-error-rate 1% allows; the first: "), "{said}");
    let text = stdout(&output);
    let line = |test: &str| {
        let start = format!("Loop 1: {test} ");
        text.lines().find(|line| line.starts_with(&start)).unwrap()
    };
    let (manifest, stages) = stages(directory.path());
    for (index, (test, counted, is_slowdown)) in [
        ("PUT", Some("objects = "), true),
        ("GET", Some("objects = "), false),
        ("LIST2", Some("ops = "), true),
        ("LISTver", Some("ops = "), true),
        ("DELETE", None, false),
    ]
    .into_iter()
    .enumerate()
    {
        let (_, ops, failed) = stages[index];
        let line = line(test);
        assert!(failed > 0 && failed < ops / 2, "{test}: {failed} of {ops}");
        if let Some(counted) = counted {
            assert_eq!(figure(line, counted), (ops - failed) as f64, "{line}");
        }
        let slowdowns = if is_slowdown { failed } else { 0 };
        assert_eq!(figure(line, "Slowdowns = "), slowdowns as f64, "{line}");
    }
    let (put, delete) = (&stages[0], &stages[4]);
    assert_eq!(delete.1, put.1 - put.2, "only what was written is deleted, once each");
    // What DELETE could not remove is removed all the same.
    // How many is not known where a try to do so was refused in the middle.
    let removed = &manifest["cleanup"]["objects_removed_count"];
    assert!(removed.is_null() || *removed == delete.2, "{removed}");
    assert_eq!(target.listed(), Vec::<String>::new());
    let class = |test: &str, class: &str, count: u64| {
        let count = plimsoll_report::format::count(count);
        assert!(text.contains(&format!("failed    loop 1 {test}: {count} {class}\n")), "{text}");
    };
    class("PUT", "throttled", put.2);
    class("GET", "not-found", stages[1].2);
    class("DELETE", "server", delete.2);
}

/// What is explained is a workload that `plimsoll run` does the same with.
#[test]
fn the_explained_workload_does_the_same() {
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    let words = "-d 1 -t 2 -z 1K";
    let explained = run(command(&target, directory.path(), "-q --explain --seed 5", words));
    std::fs::write(directory.path().join("w.yaml"), &explained.stdout).unwrap();
    let output = run(target.command(directory.path(), "run w.yaml -q"));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let (_, stages) = stages(directory.path());
    let names: Vec<&str> = stages.iter().map(|(name, ..)| &**name).collect();
    let tests = ["put", "get", "list2", "listver", "delete"];
    assert_eq!(names, tests.map(|test| format!("loop-1-{test}")));
    assert!(stages.iter().all(|(_, ops, failed)| *ops > 0 && *failed == 0), "{stages:?}");

    // The figures of each test can be read back.
    let record = run_directory(directory.path());
    for (name, ops, _) in &stages {
        let line = format!("analyze {} --stage {name} --json", record.display());
        let figures: Value = serde_json::from_str(&printed(directory.path(), &line)).unwrap();
        assert!(figures.to_string().contains(name.as_str()), "{figures}");
        assert!(*ops > 0 && figures.to_string().contains(&ops.to_string()), "{name}: {figures}");
    }
}

//! What a run prints and what it leaves in its directory.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::analysis::null_run;
use crate::harness::{
    ACCESS_KEY, Background, SECRET_KEY, counts, measured, measured_stage, oracle, plimsoll,
    printed, refused, run, run_directory, run_json, run_line, stderr, without_checksum,
};

/// Where nobody listens: a port that only the superuser may have, and nobody asked for.
pub(crate) const NOBODY: &str = "127.0.0.1:1";

/// The six commands, small enough for a second.
pub(crate) const COMMANDS: [(&str, &[&str]); 6] = [
    ("s3 get --objects 40 --obj.size 10KiB --range", &["GET"]),
    ("s3 put --obj.size 1KiB,64KiB", &["PUT"]),
    ("s3 delete --objects 2000 --batch 20", &["DELETE"]),
    ("s3 list --objects 200 --max-keys 7", &["LIST"]),
    ("s3 stat --objects 40", &["STAT"]),
    ("s3 mixed --objects 40 --obj.size 20KB --obj.randsize", &["PUT", "GET", "DELETE", "STAT"]),
];

pub(crate) fn kinds(report: &Value) -> Vec<&str> {
    let kinds = measured(report)["kinds"].as_array().unwrap();
    kinds.iter().map(|kind| kind["kind"].as_str().unwrap()).collect()
}

/// Checks that a run measured these kinds, all without a failure.
#[track_caller]
pub(crate) fn assert_measured(report: &Value, line: &str, expected: &[&str]) {
    let total = counts(report);
    assert_eq!(total["ops_failed_count"], 0, "{line}: {total:#}");
    // What the end of the measuring leaves unfinished is given up.
    let found: Vec<&str> =
        kinds(report).into_iter().filter(|kind| *kind != "ABORTUPLOAD").collect();
    assert_eq!(found, expected, "{line}");
    for kind in measured(report)["kinds"].as_array().unwrap() {
        assert!(kind["stage_total"]["ops_ok_count"].as_u64() > Some(0), "{line}: {kind:#}");
    }
}

#[test]
fn every_command_runs_clean_against_a_store() {
    let target = oracle();
    for (line, expected) in COMMANDS {
        let directory = tempfile::tempdir().unwrap();
        let line = format!("{line} --duration 1s --concurrent 4");
        let report = run_json(target.command(directory.path(), &line), 0);
        assert_eq!(counts(&report)["ops_failed_count"], 0, "{line}");
        assert!(counts(&report)["ops_ok_count"].as_u64().unwrap() > 0, "{line}");
        assert_eq!(report["state"], "complete", "{line}");
        assert_eq!(kinds(&report), expected, "{line}");
        let stats = target.oracle.as_ref().unwrap().stats();
        assert_eq!(stats.objects_count, 0, "{line} leaves objects");
        let manifest: Value = serde_json::from_slice(
            &std::fs::read(run_directory(directory.path()).join("run.json")).unwrap(),
        )
        .unwrap();
        assert_eq!(manifest["state"], "complete", "{line}");
        assert_eq!(manifest["cleanup"]["state"], "complete", "{line}");
        assert!(run_directory(directory.path()).join("summary.json").exists());
    }
}

#[test]
fn what_comes_piece_by_piece_leaves_nothing_in_a_store_in_memory() {
    let target = oracle();
    for (line, expected) in [
        ("s3 multipart --parts 3", &["GET"][..]),
        ("s3 multipart-put --parts 2", &["PUTPART", "CREATEUPLOAD", "COMPLETEUPLOAD"]),
        ("s3 put --obj.size 11MiB --part.size 5MiB", &["PUT"]),
        ("s3 append --obj.size 10KiB", &["PUT", "APPEND"]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        // Few enough for the store's memory; long enough for a whole upload on a busy machine.
        let line = format!("{line} --duration 3s --concurrent 4 --rps-limit 10/s");
        let report = run_json(target.command(directory.path(), &line), 0);
        assert_eq!(counts(&report)["ops_failed_count"], 0, "{line}");
        assert!(counts(&report)["ops_ok_count"].as_u64().unwrap() > 0, "{line}");
        // What the end of the stage cuts short is given up, which is an operation too.
        let kinds = kinds(&report).into_iter().filter(|kind| *kind != "ABORTUPLOAD");
        assert_eq!(kinds.collect::<Vec<_>>(), expected, "{line}");
        let stats = target.oracle.as_ref().unwrap().stats();
        assert_eq!((stats.objects_count, stats.held_bytes), (0, 0), "{line}: objects or uploads");
        // Three parts make one object.
        if line.contains("multipart --") {
            let kinds = report["stages"][0]["rows"][0]["kinds"].as_array().unwrap();
            let whole = kinds.iter().find(|kind| kind["kind"] == "COMPLETEUPLOAD").unwrap();
            assert_eq!(whole["stage_total"]["ops_ok_count"], 1, "{line}");
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 multipart-put --duration 60s --concurrent 2 --rps-limit 20/s";
    let mut running = Background::start(target.command(directory.path(), line));
    running.await_line("measure: ");
    running.signal(Signal::INT);
    let (code, _, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
    assert_eq!(target.oracle.as_ref().unwrap().stats().held_bytes, 0, "uploads are given up");
}

#[test]
fn the_embedded_store_needs_no_flags_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = plimsoll(directory.path());
    command.args("s3 stat --objects 50 --duration 1s --no-color".split(' '));
    let output = run(command);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("embedded in-memory store"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("closed loop, 20 workers"), "{text}");
    assert!(!text.contains('\u{1b}'), "no control characters in a pipe");
}

#[test]
fn secrets_are_in_no_file_and_no_output() {
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    let line = format!(
        "s3 stat --objects 30 --duration 1s --access-key {ACCESS_KEY} --secret-key={SECRET_KEY}"
    );
    let output = run(target.command(directory.path(), &line));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let mut texts = vec![output.stdout, output.stderr];
    let run = run_directory(directory.path());
    for place in [run.clone(), run.join("ops")] {
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                texts.push(std::fs::read(path).unwrap());
            }
        }
    }
    assert!(texts.len() >= 5);
    for text in texts {
        for secret in [ACCESS_KEY, SECRET_KEY] {
            let found = text.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
            assert!(!found, "{secret} in {}", String::from_utf8_lossy(&text));
        }
    }
}

#[test]
fn explain_prints_the_workload_and_does_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = plimsoll(directory.path());
    command.args("s3 mixed --explain --seed 5 --obj.size 1KB --rps-limit 10/s".split(' '));
    let output = run(command);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["schema: plimsoll.workload/2", "seed: 5", "size: 1000B", "capped: 10/s"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn existing_objects_are_read_and_left_alone() {
    let target = oracle();
    target.plant(60);
    for line in ["s3 get", "s3 stat --objects 30", "s3 get --prefix data/ --range-size 5"] {
        let directory = tempfile::tempdir().unwrap();
        let line = format!("{line} --list-existing --duration 1s --concurrent 3");
        let report = run_json(target.command(directory.path(), &line), 0);
        assert_eq!(counts(&report)["ops_failed_count"], 0, "{line}");
        target.assert_only_planted(60);
    }
    let directory = tempfile::tempdir().unwrap();
    let nothing = "s3 get --list-existing --prefix nothing/";
    let output = run(target.command(directory.path(), nothing));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--prefix"), "{}", stderr(&output));
}

#[test]
fn the_cap_is_kept_and_named() {
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 stat --objects 20 --concurrent 4 --rps-limit 100/s --duration 2s";
    let report = run_json(target.command(directory.path(), line), 0);
    let ops = counts(&report)["ops_ok_count"].as_u64().unwrap();
    assert!(ops <= 204, "{ops} operations in 2 s at 100 a second");
    assert_eq!(measured(&report)["loop_model"]["model"], "capped", "{report:#}");
}

#[test]
fn kept_data_stays_and_clean_removes_it() {
    let target = oracle();
    target.plant(5);
    for flag in ["--noclear", "--keep-data"] {
        let directory = tempfile::tempdir().unwrap();
        let line = format!("s3 stat --objects 20 --duration 1s {flag}");
        run_json(target.command(directory.path(), &line), 0);
        assert_eq!(target.listed().len(), 25, "{flag}");
        let mut clean = plimsoll(directory.path());
        clean.args(["clean", "--yes"]).arg(run_directory(directory.path()));
        target.credentials(&mut clean);
        let output = run(clean);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("removed 20 objects"));
        target.assert_only_planted(5);
    }
}

#[test]
fn clean_speaks_to_the_store_as_its_flags_say() {
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    let line = "s3 stat --objects 20 --duration 200ms --concurrent 2 --keep-data";
    run_json(target.command(directory.path(), line), 0);
    let clean = |flags: &str| {
        let mut clean = plimsoll(directory.path());
        clean
            .args(["clean", "--yes"])
            .arg(run_directory(directory.path()))
            .args(flags.split_whitespace());
        clean
    };
    // The store speaks HTTP/1.1 only.
    let mut http2 = clean("--http2");
    target.credentials(&mut http2);
    let output = run(http2);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("HTTP/2"), "{}", stderr(&output));
    assert_eq!(target.listed().len(), 20);
    // What is on this machine is reached without a proxy, so the record names another.
    let path = run_directory(directory.path()).join("run.json");
    let record = std::fs::read_to_string(&path).unwrap();
    let elsewhere = without_checksum(&record).replace(&target.host, "store.invalid");
    std::fs::write(&path, elsewhere).unwrap();
    let mut proxy = clean("--proxy env");
    proxy.env("HTTP_PROXY", format!("http://{NOBODY}"));
    proxy.env_remove("NO_PROXY").env_remove("no_proxy");
    target.credentials(&mut proxy);
    proxy.env("AWS_ENDPOINT_URL", "http://store.invalid");
    let output = run(proxy);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("it is the proxy for store.invalid"), "{}", stderr(&output));
    std::fs::write(&path, record).unwrap();

    let mut found = clean("--signature IAM");
    found.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
    found.env("AWS_ENDPOINT_URL", format!("http://{}", target.host));
    let output = run(found);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(target.listed().len(), 0);
}

#[test]
fn amazons_variables_speak_where_no_flag_does_and_nobody_is_told_apart() {
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    let stat = |keys: &str| {
        let mut stat = plimsoll(directory.path());
        let host = format!("--host http://{} --bucket {}", target.host, target.bucket);
        let line = format!("s3 stat --objects 20 --duration 1s --concurrent 2 {host} {keys}");
        let line = format!("{line} --create-bucket");
        stat.args(line.split_whitespace());
        stat
    };
    let output = run(stat(""));
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("without credentials") && text.contains("AWS_ACCESS_KEY_ID"), "{text}");
    let mut found = stat("");
    found.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
    let output = run(found);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("credentials from the environment (AWS_ACCESS_KEY_ID)"), "{text}");
    let mut nobody = stat("--access-key=");
    nobody.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
    assert!(stderr(&run(nobody)).contains("without credentials"));
}

#[test]
fn help_states_the_units() {
    for command in ["get", "put", "delete", "list", "stat", "mixed"] {
        let directory = tempfile::tempdir().unwrap();
        let mut help = plimsoll(directory.path());
        help.args(["s3", command, "--help"]);
        let output = run(help);
        assert_eq!(output.status.code(), Some(0));
        let text = String::from_utf8(output.stdout).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("KB is 1000, KiB and k are 1024"), "{text}");
    }
}

#[test]
fn a_file_that_is_there_is_replaced_only_if_that_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    null_run(here, "run");
    for (line, name, flag) in [
        ("export run -o ops.csv", "ops.csv", "-o"),
        ("export run -o ops.jsonl", "ops.jsonl", "-o"),
        ("report run -o run.html", "run.html", "-o"),
        ("analyze run --analyze.out segments.tsv", "segments.tsv", "--analyze.out"),
        ("analyze run --analyze.out segments.parquet", "segments.parquet", "--analyze.out"),
        ("compare run run --gate errors<=1% --junit gates.xml", "gates.xml", "--junit"),
        ("prove merge --certificate proved.json", "proved.json", "--certificate"),
    ] {
        fs::write(here.join(name), "of somebody").unwrap();
        let said = refused(here, line);
        assert!(said.contains(&format!("{flag}: ")), "{line}: {said}");
        assert!(said.contains(&format!("{name} already exists; --overwrite replaces it")));
        assert_eq!(fs::read(here.join(name)).unwrap(), b"of somebody", "{line}");
        printed(here, &format!("{line} --overwrite"));
        assert_ne!(fs::read(here.join(name)).unwrap(), b"of somebody", "{line}");
        fs::remove_file(here.join(name)).unwrap();
    }
    // Nothing half done is left beside them, and what is no file is written to.
    assert_eq!(fs::read_dir(here).unwrap().count(), 1);
    let piped = printed(here, "export run --format csv -o /dev/stdout");
    assert_eq!(piped, printed(here, "export run --format csv -o -"));
    let columns = "stage,stage_index,iteration_index,job,worker,client,kind,";
    assert!(piped.starts_with(columns), "{piped}");
}

#[test]
fn a_dash_is_the_standard_output_and_nothing_else_is_there() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    null_run(here, "run");
    let trace = "get,a,1000\nput,b,2000\n".repeat(50);
    fs::write(here.join("t.csv"), format!("op,key,size\n{trace}")).unwrap();
    for (line, file, begin) in [
        ("report run -o", "run.html", "<!DOCTYPE html>\n"),
        ("report run run -o", "compared.html", "<!DOCTYPE html>\n"),
        ("export run --format jsonl -o", "ops.jsonl", "{\"stage\":"),
        ("compare run run --gate errors<=1% --junit", "gates.xml", "<?xml "),
        ("prove merge --certificate", "proved.json", "{\n  \"schema\""),
    ] {
        let piped = printed(here, &format!("{line} -"));
        printed(here, &format!("{line} {file}"));
        let written = fs::read_to_string(here.join(file)).unwrap();
        assert!(piped.starts_with(begin) && written.starts_with(begin), "{line}: {piped:.200}");
        // A certificate says when it was made.
        assert!(piped == written || file == "proved.json", "{line}: what is piped is the file");
        let kept = piped.lines().last() == written.lines().last();
        assert!(kept && !here.join("-").exists(), "{line}");
    }
    for (line, flag) in [
        ("compare run run --gate errors<=1% --json --junit -", "--junit"),
        ("fit t.csv --json -o -", "-o"),
    ] {
        assert!(refused(here, line).contains(&format!("give {flag} a file")), "{line}");
    }
    // With no other place to go to, that is what it does anyway; the seed of a fit is a new one.
    let begin = |text: String| text.lines().next().unwrap().to_owned();
    assert_eq!(begin(printed(here, "fit t.csv -o -")), begin(printed(here, "fit t.csv")));
}

#[test]
fn names_in_a_run_are_no_formulas_in_its_csv() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    null_run(here, "run");
    let manifest = here.join("run/run.json");
    let mut run: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    run.as_object_mut().unwrap().remove("checksum");
    run["stages"][0]["name"] = "=HYPERLINK(\"http://a.example\")".into();
    fs::write(&manifest, run.to_string()).unwrap();
    let exported = printed(here, "export run --format csv -o -");
    let first = exported.lines().nth(1).unwrap();
    assert!(first.starts_with("\"'=HYPERLINK("), "{first}");
    // JSON is for programs, which take a text for a text.
    let lines = printed(here, "export run --format jsonl -o -");
    assert!(lines.starts_with("{\"stage\":\"=HYPERLINK("), "{lines}");
}

#[test]
fn each_step_of_a_rate_has_a_row() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let work = "schema: plimsoll.workload/2\nsets: {o: {count: 10, size: 1KiB}}\nstages:\n\
                - {prepares: true, jobs: [{work: {fill: o}}]}\n\
                - duration: 6s\n  jobs:\n  - pacing: {open: {rate: '200/s for 2s, 600/s for 2s, \
                2000/s', max_in_flight: 4}}\n    work: {objects: [get: o]}\n";
    std::fs::write(here.join("w.yaml"), work).unwrap();
    // Four at once, 4 ms each: 1,000 a second at most.
    let script = "schema: plimsoll.oracle/1\nservice: {time: {constant: 4ms}}\n";
    std::fs::write(here.join("script.yaml"), script).unwrap();
    let line = "run w.yaml --virtual --script script.yaml --run-dir run --json";
    let report: Value = serde_json::from_slice(&run_line(here, line).stdout).unwrap();
    let steps = measured_stage(&report)["rows"][0]["steps"].as_array().unwrap();
    let of = |name: &str| -> Vec<&Value> { steps.iter().map(|step| &step[name]).collect() };
    assert_eq!(of("offered_ops_per_sec"), [200.0, 600.0, 2000.0], "{report:#}");
    assert_eq!(of("is_schedule_kept"), [true, true, false]);
    assert_eq!(of("latency_ns_p50")[..2], [4_000_000, 4_000_000]);
    let achieved = steps[2]["achieved_ops_per_sec"].as_f64().unwrap();
    assert!((achieved - 1_000.0).abs() < 5.0, "{steps:#?}");
    let text = printed(here, "analyze run");
    assert!(text.contains("NOT KEPT\n") && text.contains("offered/s  achieved"), "{text}");
    // A part of the operations has no steps of its own.
    let part: Value =
        serde_json::from_slice(&run_line(here, "analyze run --analyze.op get --json").stdout)
            .unwrap();
    assert!(measured_stage(&part)["rows"][0].get("steps").is_none(), "{part:#}");
}

#[test]
fn exports_tell_stages_of_one_name_apart_and_what_the_report_counts() {
    let place = tempfile::tempdir().unwrap();
    let here = place.path();
    let script = "schema: plimsoll.oracle/1\nservice: {time: {constant: 1ms}}\n";
    fs::write(here.join("script.yaml"), script).unwrap();
    let workload = "schema: plimsoll.workload/2\nname: twice\nsets: {o: {count: 9, size: 1KiB}}\n\
                    stages:\n- {prepares: true, jobs: [{work: {fill: o}}]}\n\
                    - {name: main, duration: 1s, jobs: [{workers: 2, ramp: 300ms, ramp_down: \
                    200ms, work: {objects: [{get: o}]}}]}\n\
                    - {name: main, ops: 100, jobs: [{workers: 2, work: {objects: [{get: o}]}}]}\n";
    fs::write(here.join("w.yaml"), workload).unwrap();
    printed(here, "run w.yaml --virtual --script script.yaml -q --run-dir run");
    let report: Value = serde_json::from_str(&printed(here, "analyze run --json")).unwrap();
    let stages = report["stages"].as_array().unwrap().iter();
    let results: Vec<&Value> = stages.filter(|of| of["is_result"] == true).collect();
    let counted = |stage: &Value| {
        let total = &stage["rows"][0]["total"]["stage_total"];
        ["ops_ok_count", "ops_failed_count"]
            .map(|of| total[of].as_u64().unwrap())
            .iter()
            .sum::<u64>()
    };
    let counted: Vec<u64> = results.iter().map(|stage| counted(stage)).collect();
    let [with_ramps, without] = counted[..] else { panic!("{report}") };
    assert_eq!((results[0].get("title_number"), &results[1]["title_number"]), (None, &2.into()));
    let lines = printed(here, "export run -o - --format jsonl");
    let ops = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ops: Vec<Value> = ops.collect();
    let of = |stage: u64, is_measured: bool| {
        let own = |op: &&Value| op["stage_index"] == stage && op["measured"] == is_measured;
        ops.iter().filter(own).count() as u64
    };
    assert_eq!((of(1, true), of(2, true), of(2, false)), (with_ramps, without, 0));
    // Half a second of two workers, 1 ms each.
    assert!((990..=1_010).contains(&of(1, false)), "{}", of(1, false));
    let csv = printed(here, "export run -o - --format csv");
    assert!(csv.lines().next().unwrap().ends_with(",outcome,attempts,measured"), "{csv:.300}");
    let log = printed(here, "export run -o - --format hlog");
    for tag in ["Tag=main/GET,", "Tag=main_#2/GET,"] {
        assert!(log.contains(tag), "{tag}: {log:.600}");
    }
    let trace: Value =
        serde_json::from_str(&printed(here, "export run -o - --format trace")).unwrap();
    let stages = trace["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|event| event["args"]["stage"].as_str());
    let stages: std::collections::BTreeSet<&str> = stages.collect();
    assert_eq!(stages.into_iter().collect::<Vec<_>>(), ["main", "main #2"]);
    let tracked = printed(here, "export run -o - --format bencher");
    assert!(tracked.contains("main #2"), "{tracked}");
}

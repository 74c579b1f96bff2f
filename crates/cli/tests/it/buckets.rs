//! Buckets that users name: made, marked, filled, emptied and removed; and nobody else's is touched
//! without leave.

use std::path::Path;

use plimsoll_driver::Admin as _;
use plimsoll_testkit::LiveKind;
use rustix::process::Signal;
use serde_json::Value;

use crate::fleet::{Fleet, json_of};
use crate::harness::{Background, Target, block_on, clock, live, oracle, run, run_line, stderr};

const FOREIGN: u64 = 12;

/// A workload as COSBench has them, in the buckets that a pattern names.
fn workload(buckets: &str) -> String {
    format!(
        "schema: plimsoll.workload/2\nname: cos\nsets:\n  o: {{touch: true, size: 1KiB, named: \
         {{bucket: '{buckets}', key: 'o{{1..5}}'}}}}\nstages:\n\
         - {{name: init, prepares: true, jobs: [{{work: {{buckets: {{make: o}}}}}}]}}\n\
         - {{name: prepare, prepares: true, jobs: [{{work: {{fill: o}}}}]}}\n\
         - {{name: main, duration: 200ms, jobs: [{{work: {{objects: [{{get: o}}]}}}}]}}\n\
         - {{name: cleanup, jobs: [{{work: {{remove: o}}}}]}}\n\
         - {{name: dispose, jobs: [{{work: {{buckets: {{remove: o}}}}}}]}}\n"
    )
}

/// The stages of [`workload`] from one to another.
fn stages(text: &str, from: usize, to: usize) -> String {
    let (head, stages) = text.split_once("stages:\n").unwrap();
    let lines: Vec<&str> = stages.lines().skip(from).take(to - from).collect();
    format!("{head}stages:\n{}\n", lines.join("\n"))
}

/// Runs a workload, and returns its exit code, and what it said.
fn said(target: &Target, place: &Path, text: &str, flags: &str) -> (Option<i32>, String) {
    std::fs::write(place.join("w.yaml"), text).unwrap();
    let output = run(target.command(place, &format!("run w.yaml {flags}")));
    (output.status.code(), stderr(&output))
}

/// Returns whether a bucket is there, and whether it is marked.
fn mark_of(target: &Target, bucket: &str) -> Option<bool> {
    let of = Target {
        host: target.host.clone(),
        access_key: target.access_key.clone(),
        secret_key: target.secret_key.clone(),
        tls_ca: target.tls_ca.clone(),
        bucket: bucket.to_owned(),
        oracle: None,
    };
    block_on(async { of.driver().admin(&clock()).is_marked().await.unwrap() })
}

fn check(target: &Target) {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    target.plant(FOREIGN);
    let foreign = target.bucket.clone();
    // Own buckets are made, marked and gone again, without any leave.
    let all = workload("cosbench{1..3}");
    let (code, text) = said(target, place, &stages(&all, 0, 3), "--run-dir r1");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("this run is about to write objects `o{1..5}` in buckets"), "{text}");
    assert!(text.contains("(made by this run)"), "{text}");
    assert_eq!(mark_of(target, "cosbench2"), Some(true));
    // Another run may go on with what one has made, and remove it.
    let (code, text) = said(target, place, &stages(&all, 1, 5), "--run-dir r2");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("(made by a run of plimsoll)"), "{text}");
    assert_eq!(mark_of(target, "cosbench2"), None);

    // What is there and nobody's is not touched, though the workload makes it.
    let others = workload(&foreign);
    let (code, text) = said(target, place, &others, "--run-dir r3");
    assert_eq!(code, Some(2), "{text}");
    let hint = format!("add --touch '{foreign}' to allow it");
    assert!(text.contains(&hint) && text.contains("which no run of plimsoll made"), "{text}");
    assert!(!place.join("r3").exists());
    target.assert_only_planted(FOREIGN);
    // Another pattern gives no leave, and reading needs none.
    let (code, text) = said(target, place, &others, "--touch xyz-*");
    assert_eq!(code, Some(2), "{text}");
    let only = stages(&others, 0, 1).replace("prepares: true, ", "");
    let (code, text) = said(target, place, &only, "--run-dir r4");
    assert_eq!(code, Some(0), "{text}");
    target.assert_only_planted(FOREIGN);
    assert_eq!(mark_of(target, &foreign), Some(false));
    // With leave its own objects come and go, and the bucket stays, as it holds others.
    let flags = format!("--run-dir r5 --touch {foreign}");
    let (code, text) = said(target, place, &others, &flags);
    assert_eq!(code, Some(2), "{text}");
    let told = format!("bucket `{foreign}` is not removed: it holds other objects");
    assert!(text.contains(&told) && text.contains(&format!("(--touch '{foreign}')")), "{text}");
    target.assert_only_planted(FOREIGN);
    let record = std::fs::read_to_string(place.join("r5/run.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["state"], "failed");
    let dispose = &record["stages"][4];
    assert_eq!(
        (&dispose["ended_by"], &dispose["jobs"][0]["ops_count"]),
        (&"failure".into(), &0.into())
    );

    // A bucket that nobody makes is named, too.
    let (code, text) = said(target, place, &stages(&workload("nowhere1"), 1, 3), "");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("`nowhere1`, which is not there and which no stage before"), "{text}");
    assert_eq!(mark_of(target, "nowhere1"), None);
    // Nor are names that can be none.
    let (code, text) = said(target, place, &workload("no/name"), "--yes");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("`no/name` is not a bucket name"), "{text}");
}

#[test]
fn buckets_are_made_and_removed_and_those_of_others_left_alone() {
    check(&oracle());
}

#[test]
fn the_same_on_live_servers() {
    let Some(server) = plimsoll_testkit::live(LiveKind::Minio) else { return };
    check(&live(&server, "foreign-bucket"));
}

#[test]
fn killed_and_stopped_runs_leave_foreign_buckets_as_they_are() {
    let target = oracle();
    target.plant(FOREIGN);
    let place = tempfile::tempdir().unwrap();
    let all = workload("cosbench{1..3}").replace("200ms", "60s");
    for signal in [Signal::INT, Signal::KILL] {
        std::fs::write(place.path().join("w.yaml"), &all).unwrap();
        let mut running = Background::start(target.command(place.path(), "run w.yaml"));
        running.await_line("main: ");
        running.signal(signal);
        running.end();
        target.assert_only_planted(FOREIGN);
        // What is left is the run's, and says so.
        assert_eq!(mark_of(&target, "cosbench1"), Some(true));
        let (code, text) = said(&target, place.path(), &stages(&all, 3, 5), "");
        assert_eq!(code, Some(0), "{text}");
        assert_eq!(mark_of(&target, "cosbench1"), None);
    }
}

#[test]
fn a_stage_on_buckets_is_no_result_wherever_a_run_is_shown() {
    let target = oracle();
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let (code, text) = said(&target, place, &workload("cosbench{1..2}"), "--run-dir run");
    assert_eq!(code, Some(0), "{text}");
    let words = |line: &str| {
        let output = run_line(place, line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = words("analyze run -v");
    for part in ["init\n  made buckets in ", "dispose\n  removed buckets in "] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let report: Value = serde_json::from_str(&words("analyze run --json")).unwrap();
    let stages = report["stages"].as_array().unwrap();
    let of =
        |stage: &Value| (stage["is_result"].clone(), stage["duration_ns"].as_u64().unwrap() > 0);
    assert_eq!(of(&stages[0]), (false.into(), true));
    assert_eq!(of(&stages[4]), (false.into(), true));
    words("report run -o r.html");
    words("export run -o ops.csv --format csv");
    words("compare run run");
    // Runs that are merged may have such stages.
    let begin = |name: &str| {
        let text = workload(&format!("{name}-{{1..2}}")).replace("200ms", "2s");
        std::fs::write(place.join(format!("{name}.yaml")), text).unwrap();
        let line = format!("run {name}.yaml --run-dir {name}");
        Background::start(target.command(place, &line))
    };
    for running in [begin("one"), begin("two")] {
        let (code, _, heard) = running.end();
        assert_eq!(code, Some(0), "{heard}");
    }
    words("merge one two -o merged");
    assert!(words("analyze merged -v").contains("made buckets in "));
    // In virtual time there is nothing to make.
    words("run w.yaml --virtual");
    let output = run_line(place, "run w.yaml --check");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn pinned_jobs_run_on_their_agents_and_do_the_same() {
    let Some(fleet) = Fleet::start(&["driver1", "driver2"], &[]) else { return };
    let (target, other) = (oracle(), oracle());
    let place = fleet.place.path();
    let text = "schema: plimsoll.workload/2\nname: pins\nseed: 5\nsets:\n  o: {touch: true, size: \
                1KiB, named: {bucket: 'pins{1..2}', key: 'o{1..20}'}}\nstages:\n\
                - {name: init, prepares: true, jobs: [{work: {buckets: {make: o}}}]}\n\
                - {name: fill, prepares: true, jobs: [{workers: 4, work: {fill: o}}]}\n\
                - name: main\n  jobs:\n  \
                - {name: a, workers: 3, ops: 60, agent: driver2, work: {objects: [{get: o}]}}\n  \
                - {name: b, workers: 2, ops: 40, agent: driver1, work: {objects: [{stat: o}]}}\n\
                - {name: free, jobs: [{workers: 2, ops: 10, agent: nobody, work: {objects: [{get: \
                o}]}}]}\n\
                - {name: rest, jobs: [{workers: 2, work: {remove: o}}]}\n\
                - {name: dispose, jobs: [{work: {buckets: {remove: o}}}]}\n";
    std::fs::write(place.join("pins.yaml"), text).unwrap();
    let output = fleet.run(&target, "run pins.yaml --json --run-dir run");
    assert!(output.status.success(), "{}", stderr(&output));
    let warned = "no agent of the run is called nobody, so all share the workers of free/free";
    assert!(stderr(&output).contains(warned), "{}", stderr(&output));
    assert_eq!(mark_of(&target, "pins1"), None);
    let here = other.command(place, "run pins.yaml --json --run-dir here").output().unwrap();
    let noted = "there is no fleet, so jobs that name an agent run here: main/a (driver2)";
    assert!(here.status.success() && stderr(&here).contains(noted), "{}", stderr(&here));
    let hashes = |report: &Value| -> Vec<String> {
        let stages = report["stages"].as_array().unwrap();
        stages.iter().map(|stage| stage["stream_hash"].to_string()).collect()
    };
    assert_eq!(hashes(&json_of(&output)), hashes(&json_of(&here)));
    let rows = |index: usize| json_of(&output)["agents"][index]["rows_count"].as_u64().unwrap();
    // 20 of 40 fills, 60 gets or 40 stats, 5 of 10 gets, 20 of 40 removals.
    assert_eq!((rows(0), rows(1)), (20 + 40 + 5 + 20, 20 + 60 + 5 + 20));
    // Nobody is left for a job without a name.
    let refused = text.replace("agent: driver1, ", "").replace("driver2", "driver1");
    std::fs::write(place.join("none.yaml"), refused).unwrap();
    let output = fleet.run(&target, "run none.yaml --agents driver1");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("no agent is left for it"), "{}", stderr(&output));
}

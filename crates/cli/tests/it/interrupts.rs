//! A signal ends the runs of other tools' command lines, of traces and of the console as it ends
//! any other: with a record of what ran and with 128 and its number; a second one ends at once.

use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_testkit::{LiveKind, live};
use rustix::process::Signal;
use serde_json::Value;

use crate::console::{self, Served};
use crate::harness::{self, Background, Target, oracle, plimsoll, run_directory};
use crate::signals::Frozen;

const SIGNALS: [(Signal, i32); 2] = [(Signal::TERM, 143), (Signal::HUP, 129)];

/// Returns run.json of a run.
fn manifest(run: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(run.join("run.json")).unwrap()).unwrap()
}

/// Returns what the run in `directory` has saved of its operations, once it has begun `stage`.
fn saved(directory: &Path, stage: &str) -> Option<Vec<(PathBuf, u64)>> {
    let mut entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let run = entries.find(|entry| entry.join("ops").is_dir())?;
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(run.join("run.json")).ok()?).ok()?;
    manifest["stages"].as_array()?.iter().find(|each| each["name"] == stage)?;
    let parts = run.join("ops").read_dir().ok()?.map(|part| part.unwrap());
    let mut parts: Vec<_> =
        parts.filter_map(|part| Some((part.path(), part.metadata().ok()?.len()))).collect();
    parts.sort();
    Some(parts)
}

/// Waits until a run in `directory` has begun `stage` and saved operations of it, which runs do
/// once a second: what is saved first may be the last of the stage before.
#[track_caller]
fn await_rows(running: &mut Background, directory: &Path, stage: &str) {
    let mut last = None;
    for _ in 0..3 {
        let before = last;
        last = loop {
            match saved(directory, stage) {
                Some(now) if before.as_ref() != Some(&now) => break Some(now),
                _ => {
                    assert!(!running.has_ended(), "it ended before it saved operations of {stage}");
                    harness::pause();
                }
            }
        };
    }
}

/// Starts what `command` makes of a directory, signals it when it has saved operations of `stage`,
/// and checks its exit code and its record, once for each signal.
#[track_caller]
fn assert_interrupted(stage: &str, command: impl Fn(&Path) -> Command) {
    for (signal, expected) in SIGNALS {
        let directory = tempfile::tempdir().unwrap();
        let mut running = Background::start(command(directory.path()));
        await_rows(&mut running, directory.path(), stage);
        running.signal(signal);
        let (code, stdout, stderr) = running.end();
        assert_eq!(code, Some(expected), "{stderr}");
        assert!(!stdout.is_empty(), "what ran is reported: {stderr}");
        let manifest = manifest(&run_directory(directory.path()));
        assert_eq!(manifest["state"], "interrupted", "{stderr}");
        let stages = manifest["stages"].as_array().unwrap();
        let found = stages.iter().find(|each| each["name"] == stage).unwrap();
        assert!(found["ops_count"].as_u64().unwrap() > 0, "{found}");
    }
}

/// A trace of so many objects and operations, 100 of them a second.
fn trace(objects: u32, ops: u32) -> String {
    let mut text = String::from("time_ms,op,key,size,offset,length\n");
    for number in 0..ops {
        let op = if number % 2 == 0 { "get" } else { "put" };
        text.push_str(&format!("{},{op},../k{},1000,,\n", number * 10, number % objects));
    }
    text
}

#[test]
fn a_replay_ends_with_its_record_and_removes_what_it_wrote() {
    let target = oracle();
    target.plant(8);
    assert_interrupted("replay", |directory| {
        std::fs::write(directory.join("t.csv"), trace(100, 6_000)).unwrap();
        target.command(directory, "replay t.csv")
    });
    target.assert_only_planted(8);
}

#[test]
fn a_benchmark_of_s3_benchmark_ends_with_its_lines_and_removes_what_it_wrote() {
    let target = oracle();
    target.plant(8);
    assert_interrupted("loop-1-put", |directory| {
        let mut command = plimsoll(directory);
        command.args(["as", "s3-benchmark", "-u", &format!("http://{}", target.host)]);
        command.args(["-b", &target.bucket, "-a", &target.access_key]);
        command.args(["-s", &target.secret_key]);
        command.args("-d 60 -t 2 -z 1K".split_whitespace());
        command
    });
    target.assert_only_planted(8);
}

#[test]
fn a_benchmark_of_warp_ends_with_its_report_and_removes_what_it_wrote() {
    let target = oracle();
    target.plant(8);
    assert_interrupted("measure", |directory| {
        let line = "as warp get --objects 20 --obj.size 1KiB --duration 60s --concurrent 2";
        target.command(directory, line)
    });
    target.assert_only_planted(8);
}

/// A workload of COSBench's with a main stage of a minute, on the containers `cosb1` and `cosb2`.
fn cosbench(target: &Target) -> String {
    let Target { host, access_key, secret_key, .. } = target;
    let of = |objects: &str| format!("cprefix=cosb;containers=r(1,2){objects}");
    format!(
        "<workload name=\"w\" description=\"d\"><storage type=\"s3\" config=\"accesskey=\
         {access_key};secretkey={secret_key};endpoint=http://{host}\"/><workflow>\
         <workstage name=\"init\"><work type=\"init\" workers=\"1\" config=\"{}\"/></workstage>\
         <workstage name=\"main\"><work name=\"main\" workers=\"2\" runtime=\"60\">\
         <operation type=\"write\" ratio=\"100\" config=\"cprefix=cosb;containers=u(1,2);\
         objects=u(1,50);sizes=c(1)KB\"/></work></workstage></workflow></workload>",
        of("")
    )
}

#[test]
fn a_workload_of_cosbench_ends_with_its_summary_and_its_archive() {
    let target = oracle();
    assert_interrupted("s2-main", |directory| {
        std::fs::write(directory.join("w.xml"), cosbench(&target)).unwrap();
        let mut command = plimsoll(directory);
        command.args("as cosbench w.xml --yes --archive archive".split_whitespace());
        command
    });
}

#[test]
fn a_second_signal_ends_at_once_what_hangs_after_the_first() {
    let store = oracle();
    let frozen = Frozen::before(&store);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("t.csv"), trace(20, 200_000)).unwrap();
    let line = "replay t.csv --closed --concurrent 4 --op-timeout 1h";
    let mut running = Background::start(frozen.target.command(directory.path(), line));
    await_rows(&mut running, directory.path(), "replay");
    frozen.freeze();
    running.signal(Signal::TERM);
    running.await_line("cleaning up");
    running.signal_until_end(Signal::HUP);
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(129), "{stderr}");
    assert!(!stdout.is_empty(), "{stderr}");
    let manifest = manifest(&run_directory(directory.path()));
    assert_eq!(
        (&manifest["state"], &manifest["cleanup"]["state"]),
        (&"interrupted".into(), &"pending".into())
    );
}

#[test]
fn a_console_ends_its_run_with_a_record_and_is_no_success_then() {
    for (signal, expected) in SIGNALS {
        let directory = tempfile::tempdir().unwrap();
        let served = Served::start(directory.path(), "");
        served.submit(&console::workload("long", "1h"));
        while served.json("/runs/w1/series")["seq"].as_u64().unwrap_or(0) < 3 {
            harness::pause();
        }
        assert_eq!(served.end(signal), Some(expected));
        let served = Served::start(directory.path(), "");
        let run = served.json("/runs/w1");
        assert_eq!(run["state"], "terminated", "{run}");
        assert_eq!(served.json("/runs/w1/report.json")["state"], "interrupted");
        // Where nothing runs, a signal is how a server ends.
        assert_eq!(served.end(signal), Some(0));
    }
}

mod nightly {
    use super::*;

    #[test]
    fn a_benchmark_of_weed_ends_with_its_report_and_its_list() {
        let Some(server) = live(LiveKind::SeaweedFs) else { return };
        let line = "as weed-benchmark -n 100000000 -c 2 -list l.txt -collection cli-signals";
        assert_interrupted("write", |directory| {
            let mut command = plimsoll(directory);
            command.args(line.split_whitespace()).arg(format!("-master={}", server.host()));
            command
        });
    }
}

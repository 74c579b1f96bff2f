//! `plimsoll weed` and workloads on SeaweedFS against the real one: what is reported, and that
//! nothing of others is touched, however a run ends. Run by `cargo xtask test`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::{Driver, Operation, Session};
use plimsoll_driver_seaweed::{SeaweedConfig, SeaweedDriver, read_list};
use plimsoll_engine::RunClock;
use plimsoll_model::{ErrorClass, SharedClock};
use plimsoll_testkit::{LiveKind, live};
use rustix::process::Signal;
use serde_json::Value;

use crate::foreign::{Numbered, Same};
use crate::harness::{
    Background, block_on, counts, measured, oracle, pause, plimsoll, refused, run, run_json, stderr,
};

const FOREIGN: u64 = 1_000;

/// A collection of the real SeaweedFS with files of somebody else in it.
struct Collection {
    master: String,
    name: String,
    /// The ids of the files.
    foreign: Vec<String>,
}

impl Collection {
    fn plant(name: &str, count: u64) -> Option<Self> {
        let server = live(LiveKind::SeaweedFs)?;
        // Of its own each time, also on a server that is kept.
        let name = format!("{name}-{}", std::process::id());
        let mut planted = Self { master: server.host().to_owned(), name, foreign: Vec::new() };
        let driver = planted.driver();
        block_on(async {
            let mut session = driver.open_sessions(&clock(), 1).pop().unwrap();
            while (planted.foreign.len() as u64) < count {
                let content = &mut Numbered(planted.foreign.len() as u64);
                let put = Operation::Put { key: "", content };
                let done = session.execute(None, put).await;
                match done.result {
                    Ok(()) => planted.foreign.push(done.server_name.unwrap().into()),
                    // Volumes are being made.
                    Err(_) => drop(session.settle().await),
                }
            }
        });
        Some(planted)
    }

    fn driver(&self) -> SeaweedDriver {
        let config = SeaweedConfig::new(vec![self.master.parse().unwrap()], &*self.name);
        let clock = RunClock::start();
        let wall_epoch = clock.wall_epoch();
        let clock = Arc::new(clock) as SharedClock;
        block_on(SeaweedDriver::open(config, &clock, wall_epoch)).unwrap()
    }

    /// Returns how many files the collection holds, by the word of its volume server.
    fn files_count(&self) -> u64 {
        let server = &self.driver().endpoints()[1];
        let status: Value = serde_json::from_str(&get(server, "/status")).unwrap();
        let volumes = status["Volumes"].as_array().unwrap().iter();
        let of_it = volumes.filter(|volume| volume["Collection"] == self.name);
        let files = |volume: &Value| {
            volume["FileCount"].as_u64().unwrap() - volume["DeleteCount"].as_u64().unwrap()
        };
        of_it.map(files).sum()
    }

    /// Every foreign file is as it was, and nothing else is there.
    #[track_caller]
    fn assert_untouched(&self) {
        assert_eq!(self.files_count(), self.foreign.len() as u64, "files are left or gone");
        let driver = self.driver();
        block_on(async {
            let mut session = driver.open_sessions(&clock(), 1).pop().unwrap();
            for (number, id) in self.foreign.iter().enumerate() {
                let mut away = 0;
                let same = loop {
                    let sink = &mut Same::of(number as u64);
                    let get = Operation::Get { key: id, range: None, version: None, sink };
                    match session.execute(None, get).await.result {
                        Ok(()) => break sink.is_whole(),
                        // A busy machine's master takes a volume server for dead for a moment.
                        Err(error) if error.class == ErrorClass::Server && away < 300 => away += 1,
                        Err(error) => panic!("{id}: {error:?}"),
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                };
                assert!(same, "{id}");
            }
        });
    }

    fn command(&self, directory: &Path, line: &str) -> Command {
        let mut command = plimsoll(directory);
        command.arg("weed").args(line.split_whitespace());
        command.args(["--master", &self.master, "--collection", &self.name, "--create-bucket"]);
        command
    }
}

fn clock() -> SharedClock {
    Arc::new(RunClock::start())
}

/// Returns the body of the answer to a GET.
fn get(server: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut socket = std::net::TcpStream::connect(server).unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nHost: {server}\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

const COMMANDS: [(&str, &[&str]); 8] = [
    ("write", &["PUT"]),
    ("write --assign stream --ids-per-assign 50 --upload put --fsync --grow 1", &["PUT"]),
    ("read --objects 200", &["GET"]),
    ("read --objects 200 --range", &["GET"]),
    ("stat --objects 200 --assign http", &["STAT"]),
    ("delete --objects 3000", &["DELETE"]),
    ("delete --objects 3000 --batch 20", &["DELETE"]),
    ("mixed --objects 300", &["DELETE", "GET", "PUT", "STAT"]),
];

#[test]
fn a_thousand_foreign_files_survive_every_command() {
    let Some(collection) = Collection::plant("weed-commands", FOREIGN) else { return };
    for (line, kinds) in COMMANDS {
        for more in ["", " --drop-collection"] {
            let directory = tempfile::tempdir().unwrap();
            let line = format!("{line}{more} --duration 1s --concurrent 4");
            let report = run_json(collection.command(directory.path(), &line), 0);
            assert_eq!(counts(&report)["ops_failed_count"], 0, "{line}: {report:#}");
            let mut found: Vec<&str> = measured(&report)["kinds"]
                .as_array()
                .unwrap()
                .iter()
                .map(|kind| kind["kind"].as_str().unwrap())
                .collect();
            found.sort_unstable();
            assert_eq!(found, kinds, "{line}");
        }
    }
    collection.assert_untouched();
}

/// Waits until the run has asked for so many ids.
fn await_names(running: &mut Background, list: &Path, count: usize) {
    loop {
        let text = std::fs::read_to_string(list).unwrap_or_default();
        if text.lines().count() >= count {
            return;
        }
        assert!(!running.has_ended(), "it ended before {count} ids");
        pause();
    }
}

#[test]
fn a_thousand_foreign_files_survive_signals_at_twenty_moments() {
    let Some(collection) = Collection::plant("weed-signals", FOREIGN) else { return };
    for moment in 0..20usize {
        let directory = tempfile::tempdir().unwrap();
        let line = "mixed --objects 300 --duration 60s --concurrent 8 --run-dir record";
        let command = collection.command(directory.path(), line);
        let mut running = Background::start(command);
        let record = directory.path().join("record");
        // Within the preparation and within the measured stage.
        await_names(&mut running, &record.join("names-0.txt"), 1 + moment * 37);
        let signal = if moment % 2 == 0 { Signal::INT } else { Signal::KILL };
        running.signal(signal);
        let (code, _, said) = running.end();
        if signal == Signal::KILL {
            assert_eq!(code, None);
            let mut clean = plimsoll(directory.path());
            clean.args(["clean", "record", "--yes"]);
            let output = run(clean);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        } else {
            assert_eq!(code, Some(130), "{said}");
        }
        assert_eq!(collection.files_count(), FOREIGN, "moment {moment}: {said}");
    }
    collection.assert_untouched();
}

#[test]
fn the_report_shows_both_parts_of_a_write_and_the_record_keeps_them() {
    let Some(collection) = Collection::plant("weed-parts", 0) else { return };
    let directory = tempfile::tempdir().unwrap();
    let line = "write --duration 1s --concurrent 4 --run-dir record";
    let report = run_json(collection.command(directory.path(), line), 0);
    let put = &measured(&report)["kinds"][0];
    let median = |times: &Value| times["p50"].as_f64().unwrap();
    let (assign, upload) = (&put["parts_ns"]["assign"], &put["parts_ns"]["upload"]);
    assert!(median(assign) > 0.0 && median(upload) > 0.0, "{put:#}");
    let mean = |times: &Value| times["mean"].as_f64().unwrap();
    let sum = mean(assign) + mean(upload);
    let latency = mean(&put["latency_ns"]);
    // Means are summed exactly but for the width of bins.
    assert!((sum - latency).abs() < latency / 50.0, "{sum} {latency}");
    let output = run({
        let mut export = plimsoll(directory.path());
        export.args(["export", "record", "--format", "csv", "-o", "-"]);
        export
    });
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let at = lines.next().unwrap().split(',').position(|name| name == "assigned_ns").unwrap();
    assert!(lines.all(|line| !line.split(',').nth(at).unwrap().is_empty()), "{text}");
    let text = run(collection.command(directory.path(), "write --duration 1s -v")).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("PUT assign") && text.contains("collection weed-parts"), "{text}");
}

#[test]
fn files_that_stay_are_read_and_removed_by_their_list() {
    let Some(collection) = Collection::plant("weed-lists", 0) else { return };
    let directory = tempfile::tempdir().unwrap();
    let line = "write --duration 1s --concurrent 4 --keep-data --run-dir record --obj.size 3000";
    assert_eq!(run(collection.command(directory.path(), line)).status.code(), Some(0));
    let list = directory.path().join("record/names-0.txt");
    let text = std::fs::read_to_string(&list).unwrap();
    let count = read_list(&text).unwrap().len() as u64;
    assert_eq!(collection.files_count(), count);
    std::fs::write(directory.path().join("list"), format!("# mine\n\n{text}")).unwrap();
    let read = "read --list list --duration 1s --concurrent 4";
    let report = run_json(collection.command(directory.path(), read), 0);
    assert_eq!(report["verification"]["mode"], "checksum");
    assert_eq!(counts(&report)["ops_failed_count"], 0);
    // Nothing is removed without leave.
    let delete = "delete --list list --duration 60s --concurrent 4";
    let output = run(collection.command(directory.path(), delete));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains(&format!("remove {}", thousands(count))), "{output:?}");
    assert_eq!(collection.files_count(), count);
    let report = run_json(collection.command(directory.path(), &format!("{delete} --yes")), 0);
    assert_eq!(counts(&report)["ops_ok_count"].as_u64(), Some(count), "{report:#}");
    assert_eq!(collection.files_count(), 0);
    // What is gone is told as such, in its class.
    let report = run_json(collection.command(directory.path(), read), 1);
    let failed = &measured(&report)["total"]["stage_total"]["failed_by_class"];
    assert!(failed["not-found"].as_u64() > Some(0), "{report:#}");
}

fn thousands(count: u64) -> String {
    plimsoll_report::format::count(count)
}

#[test]
fn lists_and_clusters_that_cannot_be_are_refused_in_a_line() {
    let Some(collection) = Collection::plant("weed-refused", 0) else { return };
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("bad"), "3,01637037d6\nnonsense\n").unwrap();
    std::fs::write(directory.path().join("none"), "# nothing\n").unwrap();
    let master = &collection.master;
    for (line, said) in [
        (
            "read --list bad",
            "--list: bad, line 2: `nonsense` is not a file id such as 3,01637037d6",
        ),
        ("read --list none", "--list: none names nothing"),
        ("read --list missing", "--list: cannot read missing: No such file or directory"),
        ("read --list bad --range", "the sizes of listed files are unknown"),
        ("write --ttl 61s", "--ttl: must be a number of whole minutes"),
        ("write --grow 0", "--grow: 0 is out of range"),
        ("write --grow 9999 --create-bucket", "9999 volumes (--grow) were not made: only "),
        ("write --ids-per-assign 0", "--ids-per-assign: 0 is out of range"),
        (
            "write --drop-collection --collection=",
            "--drop-collection: only a collection with a name",
        ),
        ("write --master nowhere:99999", "--master: "),
        ("write --disk floppy --create-bucket", "No writable volumes"),
        ("mixed --put-distrib 5", "--delete-distrib: "),
    ] {
        let named = if line.contains("--master") { "" } else { &*format!(" --master {master}") };
        let said_of = refused(directory.path(), &format!("weed {line}{named} --duration 1s"));
        assert!(said_of.contains(said), "{line}: {said_of}");
    }
    // Nobody keeps a record of what never began.
    let left: Vec<PathBuf> =
        std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn a_store_and_a_cluster_are_loaded_in_one_stage() {
    let Some(collection) = Collection::plant("weed-both", 10) else { return };
    let target = oracle();
    let directory = tempfile::tempdir().unwrap();
    let workload = format!(
        "schema: plimsoll.workload/2\nname: both\ntargets:\n  \
         a: {{s3: {{hosts: '{}', bucket: {}, create_bucket: true}}}}\n  \
         b: {{seaweedfs: {{master: '{}', collection: {}}}}}\nsets:\n  \
         x: {{on: a, count: 50, size: 1KiB}}\n  y: {{on: b, count: 50, size: 1KiB}}\nstages:\n\
         - {{prepares: true, jobs: [{{name: a, workers: 2, work: {{fill: [x]}}}}, \
         {{name: b, workers: 2, work: {{fill: [y]}}}}]}}\n\
         - {{name: main, jobs: [\
         {{name: s3, ops: 200, workers: 2, work: {{objects: [{{get: x}}, {{put: x}}]}}}}, \
         {{name: weed, ops: 200, workers: 2, work: {{objects: [{{get: y}}, {{put: y}}, \
         {{delete: y}}]}}}}]}}\n",
        target.host, target.bucket, collection.master, collection.name
    );
    std::fs::write(directory.path().join("both.yaml"), workload).unwrap();
    let check = run(target.command(directory.path(), "run both.yaml --check"));
    assert_eq!(check.status.code(), Some(0), "{}", stderr(&check));
    for record in ["one", "two"] {
        let line = format!("run both.yaml --run-dir {record}");
        let output = run(target.command(directory.path(), &line));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    collection.assert_untouched();
    for line in
        ["merge one two -o both", "analyze one", "compare one two", "report one -o one.html"]
    {
        let output = run({
            let mut command = plimsoll(directory.path());
            command.args(line.split_whitespace());
            command
        });
        assert!(matches!(output.status.code(), Some(0 | 1)), "{line}: {}", stderr(&output));
    }
    // The same in virtual time, where nobody is asked.
    let output = run(target.command(directory.path(), "run both.yaml --virtual"));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--virtual asks no store"), "{said}");
    let mut alone = plimsoll(directory.path());
    alone.args(["run", "both.yaml", "--virtual"]);
    let output = run(alone);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_collection_that_the_run_made_is_dropped_unless_somebody_else_wrote_to_it() {
    let Some(collection) = Collection::plant("weed-drop", 0) else { return };
    let server = collection.driver().endpoints()[0].clone();
    let info = || get(&server, &format!("/collection/info?collection={}", collection.name));
    let directory = tempfile::tempdir().unwrap();
    let line = "write --duration 500ms --concurrent 2 --drop-collection";
    let output = run(collection.command(directory.path(), line));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(info().contains("does not exist"), "{}", info());
    // Killed; meanwhile somebody else writes.
    let line = "write --duration 60s --concurrent 2 --drop-collection --run-dir killed";
    let mut running = Background::start(collection.command(directory.path(), line));
    await_names(&mut running, &directory.path().join("killed/names-0.txt"), 50);
    running.signal(Signal::KILL);
    assert_eq!(running.end().0, None);
    let foreign = Collection::plant("weed-drop", 5).unwrap();
    let mut clean = plimsoll(directory.path());
    clean.args(["clean", "killed", "--yes"]);
    let output = run(clean);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("holds 5 files that are not the run's"), "{output:?}");
    foreign.assert_untouched();
}

#[test]
fn a_check_finds_no_violation_and_leaves_nothing() {
    let Some(collection) = Collection::plant("weed-check", 20) else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut check = plimsoll(directory.path());
    let url = format!("weed://{}/{}", collection.master, collection.name);
    check.args(["check", &url, "--ops", "3000"]);
    let report = run_json(check, 0);
    assert_eq!(report["violations_count"], 0, "{report:#}");
    collection.assert_untouched();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    let said = refused(directory.path(), "check weed://127.0.0.1:1/x");
    assert!(said.contains("connection refused by 127.0.0.1:1"), "{said}");
}

/// An embedded store ends with the run, and one that is away keeps nothing else from being cleaned.
#[test]
fn what_can_be_reached_is_cleaned_whatever_else_cannot() {
    let Some(collection) = Collection::plant("weed-reached", 10) else { return };
    let away = oracle();
    let hosts =
        format!("{{s3: {{hosts: '{}', bucket: {}, create_bucket: true}}}}", away.host, away.bucket);
    for (store, code) in [("{s3: {}}".to_owned(), 0), (hosts, 2)] {
        let directory = tempfile::tempdir().unwrap();
        let workload = format!(
            "schema: plimsoll.workload/2\nname: both\ntargets:\n  a: {store}\n  \
             b: {{seaweedfs: {{master: '{}', collection: {}}}}}\nsets:\n  \
             x: {{on: a, size: 1KiB}}\n  y: {{on: b, size: 1KiB}}\nstages:\n\
             - {{name: main, duration: 60s, jobs: [\
             {{name: s3, workers: 2, work: {{objects: [{{put: x}}]}}}}, \
             {{name: weed, workers: 2, work: {{objects: [{{put: y}}]}}}}]}}\n",
            collection.master, collection.name
        );
        std::fs::write(directory.path().join("both.yaml"), workload).unwrap();
        let line = "run both.yaml --run-dir record";
        let mut command = plimsoll(directory.path());
        command.args(line.split(' '));
        let is_embedded = code == 0;
        let command = if is_embedded { command } else { away.command(directory.path(), line) };
        let mut running = Background::start(command);
        await_names(&mut running, &directory.path().join("record/names-1.txt"), 30);
        running.signal(Signal::KILL);
        assert_eq!(running.end().0, None);
        assert!(collection.files_count() > 10);
        let mut clean = plimsoll(directory.path());
        clean.args(["clean", "record", "--yes"]);
        if !is_embedded {
            clean.args(["--host", "127.0.0.1:1"]);
        }
        let output = run(clean);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert_eq!(collection.files_count(), 10, "{}", stderr(&output));
    }
    collection.assert_untouched();
}

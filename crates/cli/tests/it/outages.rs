//! Outages made on purpose: commands at instants of a run, and what the ledger says of them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::harness::{measured, measured_stage, plimsoll, refused, run, run_json, stderr};

const SECRET: &str = "SECRET-THAT-IS-KNOWN";

/// A store in a process of its own, which may be stopped and killed.
struct Store {
    child: Child,
    host: String,
}

impl Store {
    fn start(directory: &Path) -> Self {
        let mut command = plimsoll(directory);
        command.args("oracle --listen 127.0.0.1:0 --threads 1".split(' '));
        command.args(["--access-key", "an-access-key", "--secret-key", SECRET]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let host = line.trim().strip_prefix("listening on http://").unwrap().to_owned();
        Self { child, host }
    }

    fn command(&self, directory: &Path, line: &str) -> Command {
        let mut command = plimsoll(directory);
        command.args(line.split_whitespace()).args(["--host", &self.host, "--create-bucket"]);
        command.env("PLIMSOLL_ACCESS_KEY", "an-access-key").env("PLIMSOLL_SECRET_KEY", SECRET);
        command
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ns(of: &Value) -> u64 {
    of.as_u64().unwrap_or_else(|| panic!("{of} is no time"))
}

#[test]
fn a_store_that_is_stopped_has_an_outage_as_long_as_the_command_that_stops_it() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::start(directory.path());
    let pid = store.child.id();
    let mut command = store.command(
        directory.path(),
        "s3 get --concurrent 4 --objects 50 --obj.size 1KiB --duration 6s --run-dir run",
    );
    let event = format!("2s:kill -STOP {pid}; sleep 2; kill -CONT {pid}; echo went on");
    command.args(["--event", &event]);
    let report = run_json(command, 0);
    let [event] = &measured_stage(&report)["events"].as_array().unwrap()[..] else { panic!() };
    assert_eq!((&event["exit_code"], &event["output"]), (&0.into(), &"went on\n".into()));
    let (began, ended) = (ns(&event["began_ns"]), ns(&event["ended_ns"]));
    let row = measured(&report);
    assert!(began >= ns(&row["stage_started_ns"]) + 2_000_000_000);
    let outages = row["ledger"]["outages"].as_array().unwrap();
    let outage = outages.iter().max_by_key(|outage| ns(&outage["gap_ns"])).unwrap();
    // It cannot end before the command lets the store go on, 2 s after it was stopped; what it had
    // sent by then may still have come.
    assert!(ns(&outage["gap_ns"]) >= 1_900_000_000, "{outage}");
    assert!(ns(&outage["last_success_ns"]) < ended && ns(&outage["next_success_ns"]) > began);
    assert_eq!(outage["ops_failed_count"], 0);
    let text = run(plimsoll_line(directory.path(), "analyze run"));
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("\noutage      no success for ") && text.contains("\nevent       +2.00 s")
    );
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let html = run(plimsoll_line(directory.path(), "report run --output run.html"));
    assert!(html.status.success(), "{}", stderr(&html));
    let html = std::fs::read_to_string(directory.path().join("run.html")).unwrap();
    assert!(html.contains("</i>outage</li>") && html.contains("</i>event: kill -STOP"));
}

#[test]
fn a_client_that_is_stopped_charges_nothing_to_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::start(directory.path());
    let mut command = store.command(
        directory.path(),
        "s3 get --concurrent 4 --objects 50 --obj.size 1KiB --duration 6s --run-dir run",
    );
    // The shell that an event runs in is a child of plimsoll.
    command.args(["--event", "2s:kill -STOP $PPID; sleep 2; kill -CONT $PPID"]);
    let report = run_json(command, 0);
    let stage = measured_stage(&report);
    let row = measured(&report);
    let standstills = row["ledger"]["standstills"].as_array().unwrap();
    let longest = standstills.iter().max_by_key(|of| ns(&of["length_ns"])).unwrap();
    assert!(ns(&longest["length_ns"]) >= 1_800_000_000, "{standstills:?}");
    let (began, ended) = {
        let event = &stage["events"][0];
        (ns(&event["began_ns"]), ns(&event["ended_ns"]))
    };
    assert!(ns(&longest["from_ns"]) >= began && ns(&longest["from_ns"]) < ended);
    // The store answered all the time.
    let touches = |outage: &&Value| {
        let from = ns(&outage["last_success_ns"]);
        from < ended && from + ns(&outage["gap_ns"]) > began
    };
    let outages = row["ledger"]["outages"].as_array().unwrap();
    assert_eq!(outages.iter().find(touches), None);
    let verdict = &stage["verdict"];
    assert_eq!(verdict["class"], "client-cpu", "{verdict}");
    assert!(verdict["sentence"].as_str().unwrap().starts_with("the client itself stood still"));
    let text = run(plimsoll_line(directory.path(), "analyze run"));
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("\nclient      plimsoll itself stood still"), "{text}");
}

#[test]
fn what_was_acknowledged_is_read_back_when_the_store_is_there_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::start(directory.path());
    let pid = store.child.id();
    // The measured stage ends while the store stands still, which it does for 6 s.
    let mut command = store.command(
        directory.path(),
        "s3 put --concurrent 4 --obj.size 1KiB --duration 2s --op-timeout 2s --max-error-rate 100% \
         --verify-acked --run-dir run",
    );
    command.args(["--event", &format!("1s:kill -STOP {pid}; sleep 6; kill -CONT {pid}")]);
    let output = run({
        command.arg("--json");
        command
    });
    let told = stderr(&output);
    assert!(output.status.success(), "{told}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let read = &report["read_back"];
    assert!(ns(&read["objects_count"]) > 0, "{read}");
    let bad = ["lost_count", "wrong_count", "unread_count"].map(|name| ns(&read[name]));
    assert_eq!(bad, [0; 3], "{read}");
}

fn plimsoll_line(directory: &Path, line: &str) -> Command {
    let mut command = plimsoll(directory);
    command.args(line.split_whitespace());
    command
}

#[test]
fn the_record_holds_no_secret_of_a_command_that_the_run_knows() {
    let directory = tempfile::tempdir().unwrap();
    let secret = SECRET;
    let line = "null --duration 1s --concurrent 1 --run-dir run";
    let mut command = plimsoll_line(directory.path(), line);
    command.args(["--event", "0s:echo http://me:word@host/; exit 4"]);
    let output = run(command);
    assert!(output.status.success(), "{}", stderr(&output));
    let store = Store::start(directory.path());
    let mut command = store.command(
        directory.path(),
        "s3 get --objects 5 --concurrent 2 --obj.size 1KiB --duration 1s --run-dir keys",
    );
    command.args(["--secret-key", secret]);
    command.args(["--event", &format!("0s:echo {secret}")]);
    let output = run(command);
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    assert!(!said.contains(secret), "{said}");
    for (run, hidden, kept) in
        [("run", "me:word", "http://*REDACTED*@host/"), ("keys", secret, "echo *REDACTED*")]
    {
        let path = directory.path().join(run).join("run.json");
        let manifest = std::fs::read_to_string(path).unwrap();
        assert!(!manifest.contains(hidden) && manifest.contains(kept), "{manifest}");
    }
}

#[test]
fn only_a_command_line_gives_commands() {
    let directory = tempfile::tempdir().unwrap();
    let workload = "schema: plimsoll.workload/2\nevents: ['1s:true']\n\
                    sets: {o: {count: 1, size: 1KiB}}\nstages: []\n";
    std::fs::write(directory.path().join("w.yaml"), workload).unwrap();
    assert!(refused(directory.path(), "run w.yaml --check").contains("events"));
    for line in ["agent --join-file x --event 1s:true", "console --event 1s:true"] {
        let output = run(plimsoll_line(directory.path(), line));
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(stderr(&output).contains("--event"), "{line}: {}", stderr(&output));
    }
    // The environment is none, either.
    let mut command = plimsoll_line(directory.path(), "null --duration 200ms --run-dir run");
    command.env("PLIMSOLL_EVENT", "0s:touch made").env("WARP_EVENT", "0s:touch made");
    assert!(run(command).status.success());
    assert!(!directory.path().join("made").exists());
    let line = "run w.yaml --virtual --event 1s:true";
    let workload = workload.replace("events: ['1s:true']\n", "").replace(
        "stages: []",
        "stages: [{prepares: true, jobs: [{work: {fill: o}}]}, {duration: 1s, jobs: [{work: \
         {objects: [{get: o}]}}]}]",
    );
    std::fs::write(directory.path().join("w.yaml"), workload).unwrap();
    assert!(refused(directory.path(), line).contains("--virtual has none"));
}

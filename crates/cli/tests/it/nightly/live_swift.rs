//! Workloads on a real OpenStack Swift: what is recorded and reported, that nothing of others is
//! touched, however a run ends, and that no key is shown. Run by `cargo xtask test`.

use std::path::Path;
use std::process::Command;

use plimsoll_driver::{Admin, Driver, MissingRoot, Operation, Session};
use plimsoll_driver_swift::{Address, SignIn, SwiftConfig, SwiftDriver};
use plimsoll_testkit::{LiveKind, LiveServer, live};
use rustix::process::Signal;
use serde_json::Value;

use crate::fleet::Fleet;
use crate::foreign::{Numbered, Same};
use crate::harness::{Background, block_on, clock, plimsoll, refused, run, run_json, stderr};

/// A container of the real Swift with objects of somebody else in it.
struct Container {
    server: LiveServer,
    name: &'static str,
    driver: SwiftDriver,
    keys: Vec<String>,
}

impl Container {
    fn plant(name: &'static str, count: u64) -> Option<Self> {
        let server = live(LiveKind::Swift)?;
        let auth = Address::parse(&format!("{}/auth/v1.0", server.url)).unwrap();
        let (user, key) = (server.access_key.clone(), server.secret_key.clone().into());
        let config = SwiftConfig {
            missing_container: MissingRoot::CreateAndKeep,
            ..SwiftConfig::new(SignIn::V1 { auth, user, key }, name)
        };
        let driver = block_on(SwiftDriver::open(config, &clock())).unwrap();
        // Some lie where runs write, beside what is theirs.
        let key = |number| match number % 3 {
            0 => format!("f{number}"),
            1 => format!("plimsoll/mine/{number}"),
            _ => format!("plimsoll/run-{number}"),
        };
        let planted = Self { server, name, driver, keys: (0..count).map(key).collect() };
        block_on(async {
            let mut admin = planted.driver.admin(&clock(), None).unwrap();
            admin.ensure_root().await.unwrap();
            for found in admin.survey("", None, true).await.unwrap() {
                admin.remove_mark(&found.key).await.unwrap();
            }
            let mut session = planted.driver.open_sessions(&clock(), 1).pop().unwrap();
            for (number, key) in (0..).zip(&planted.keys) {
                let put = Operation::Put { key, content: &mut Numbered(number) };
                assert_eq!(session.execute(None, put).await.result, Ok(()), "{key}");
            }
        });
        Some(planted)
    }

    fn listed(&self) -> Vec<String> {
        block_on(async {
            let mut admin = self.driver.admin(&clock(), None).unwrap();
            let found = admin.survey("", None, true).await.unwrap();
            found.into_iter().map(|found| found.key).collect()
        })
    }

    /// Every foreign object is as it was, and nothing else is there.
    #[track_caller]
    fn assert_untouched(&self) {
        let mut expected = self.keys.clone();
        expected.sort_unstable();
        assert!(self.listed() == expected, "objects are left or gone: {:?}", self.listed());
        block_on(async {
            let mut session = self.driver.open_sessions(&clock(), 1).pop().unwrap();
            for (number, key) in (0..).zip(&self.keys) {
                let mut same = Same::of(number);
                let get = Operation::Get { key, range: None, version: None, sink: &mut same };
                assert_eq!(session.execute(None, get).await.result, Ok(()), "{key}");
                assert!(same.is_whole(), "{key}");
            }
        });
    }

    /// Writes a workload on the container; `more` is said of the target.
    fn workload(&self, directory: &Path, more: &str, rest: &str) {
        let text = format!(
            "schema: plimsoll.workload/2\nname: t\ntargets: {{swift: {{auth: '{}/auth/v1.0', user: \
             '{}', container: {}{more}}}}}\n{rest}",
            self.server.url, self.server.access_key, self.name
        );
        std::fs::write(directory.join("w.yaml"), text).unwrap();
    }

    fn command(&self, directory: &Path, line: &str) -> Command {
        let mut command = plimsoll(directory);
        command.args(line.split_whitespace()).env("ST_KEY", &self.server.secret_key);
        // The key goes to the server that its owner names.
        command.env("ST_AUTH", &self.server.url);
        command
    }

    /// Neither what was printed nor what was recorded holds the key.
    fn assert_silent(&self, directory: &Path, printed: &str) {
        let key = &self.server.secret_key;
        assert!(!printed.contains(key));
        for name in ["run.json", "summary.json"] {
            let text = std::fs::read_to_string(directory.join("record").join(name)).unwrap();
            assert!(!text.contains(key), "{name}");
        }
    }
}

/// Returns what a record says of its cleaning.
fn cleanup(record: &Path) -> String {
    let text = std::fs::read_to_string(record.join("run.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    manifest["cleanup"]["state"].as_str().unwrap().to_owned()
}

/// Objects of the run's own, all operations on them, and a listing of what stays.
const MIXED: &str = "sets: {o: {count: 60, size: 5KiB}, s: {count: 7, size: 1KiB}}\nstages:\n\
    - {prepares: true, jobs: [{workers: 4, work: {fill: [o, s]}}]}\n\
    - {name: main, jobs: [{name: mix, ops: 300, workers: 4, work: {objects: [{get: o, weight: 30}, \
    {get: o, range: 1KiB, weight: 10}, {put: o, weight: 20}, {stat: o, weight: 10}, \
    {delete: o, weight: 20}]}}]}\n\
    - {name: lists, jobs: [{ops: 10, workers: 2, work: {objects: [{list: s}]}}]}\n";

#[test]
fn all_operations_are_recorded_verified_and_cleaned_and_nothing_else_is_touched() {
    let Some(place) = Container::plant("cli-mixed", 100) else { return };
    for more in
        ["", ", chunked: true, md5: true", ", segment: 2KB", ", segment: 2KB, manifest: dynamic"]
    {
        let directory = tempfile::tempdir().unwrap();
        place.workload(directory.path(), more, MIXED);
        let report = run_json(place.command(directory.path(), "run w.yaml --run-dir record"), 0);
        let mut kinds = Vec::new();
        for stage in report["stages"].as_array().unwrap() {
            for row in stage["rows"].as_array().unwrap() {
                assert_eq!(row["total"]["stage_total"]["ops_failed_count"], 0, "{report:#}");
                let of_row = row["kinds"].as_array().unwrap().iter();
                kinds.extend(of_row.map(|kind| kind["kind"].as_str().unwrap().to_owned()));
            }
        }
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds, ["DELETE", "GET", "LIST", "PUT", "STAT"], "{more}");
        let record = std::fs::read_to_string(directory.path().join("record/run.json")).unwrap();
        let manifest: Value = serde_json::from_str(&record).unwrap();
        assert_eq!(manifest["target"]["kind"], "swift", "{record}");
        assert_eq!(cleanup(&directory.path().join("record")), "complete");
        place.assert_silent(directory.path(), &report.to_string());
        let text = run(place.command(directory.path(), "analyze record"));
        let text = String::from_utf8(text.stdout).unwrap();
        assert!(text.starts_with("t: main ") && text.contains(" · 0 failed"), "{text}");
    }
    place.assert_untouched();
}

#[test]
fn uploads_in_parts_become_large_objects_whose_parts_are_read() {
    let Some(place) = Container::plant("cli-parts", 10) else { return };
    let directory = tempfile::tempdir().unwrap();
    place.workload(
        directory.path(),
        "",
        "sets: {o: {count: 4, size: 100KB, part: 30KB}, n: {}}\nstages:\n\
         - {prepares: true, jobs: [{workers: 2, work: {fill: o}}]}\n\
         - {name: main, jobs: [{name: read, ops: 30, workers: 2, work: {parts: {get: o}}}, \
         {name: write, ops: 40, workers: 2, work: {parts: {put: n, parts: 3, part: 20KB}}}]}\n\
         - {name: whole, jobs: [{ops: 20, work: {objects: [{get: o}]}}]}\n",
    );
    let report = run_json(place.command(directory.path(), "run w.yaml --run-dir record"), 0);
    for stage in report["stages"].as_array().unwrap() {
        for row in stage["rows"].as_array().unwrap() {
            assert_eq!(row["total"]["stage_total"]["ops_failed_count"], 0, "{report:#}");
        }
    }
    assert_eq!(cleanup(&directory.path().join("record")), "complete");
    place.assert_untouched();
}

const LONG: &str = "sets: {o: {count: 300, size: 5KiB}}\nstages:\n\
    - {prepares: true, jobs: [{workers: 4, work: {fill: o}}]}\n\
    - {name: main, duration: 60s, jobs: [{workers: 4, work: {objects: [{put: o}]}}]}\n";

#[test]
fn what_a_killed_run_left_is_cleaned_and_foreign_objects_survive() {
    let Some(place) = Container::plant("cli-signals", 30) else { return };
    for signal in [Signal::INT, Signal::KILL] {
        let directory = tempfile::tempdir().unwrap();
        place.workload(directory.path(), ", segment: 2KB", LONG);
        let mut running =
            Background::start(place.command(directory.path(), "run w.yaml --run-dir record"));
        while place.listed().len() < 200 {
            assert!(!running.has_ended(), "it ended before");
        }
        running.signal(signal);
        let (code, _, said) = running.end();
        if signal == Signal::INT {
            assert_eq!(code, Some(130), "{said}");
            place.assert_untouched();
            continue;
        }
        assert_eq!(code, None);
        let unasked = run(place.command(directory.path(), "clean record"));
        assert_eq!(unasked.status.code(), Some(2), "{}", stderr(&unasked));
        let what = "in container `cli-signals` on 127.0.0.1:";
        assert!(stderr(&unasked).contains(what), "{}", stderr(&unasked));
        // Leave to remove is no leave to send the password to a host that only the record names.
        let refused = run(place.command(directory.path(), "clean record --yes"));
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("name the host with --host"), "{}", stderr(&refused));
        let line = format!("clean record --yes --host {}", place.server.host());
        let output = run(place.command(directory.path(), &line));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(cleanup(&directory.path().join("record")), "complete");
    }
    place.assert_untouched();
}

#[test]
fn a_check_asks_no_server_and_what_is_missing_is_refused_in_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let write = |target: &str| {
        let text =
            format!("schema: plimsoll.workload/2\nname: t\ntargets: {{swift: {target}}}\n{MIXED}");
        std::fs::write(directory.path().join("w.yaml"), text).unwrap();
    };
    // Nobody listens there, and there is no key.
    write("{auth: 'http://127.0.0.1:1/auth/v1.0', user: 'a:u'}");
    for line in ["run w.yaml --check", "run w.yaml --explain", "run w.yaml --virtual"] {
        let mut command = plimsoll(directory.path());
        command.args(line.split_whitespace());
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    }
    for (target, said) in [
        (
            "{auth: 'http://127.0.0.1:1/auth/v1.0', user: 'a:u'}",
            "targets.swift.user: its key is not given",
        ),
        (
            "{auth: 'http://127.0.0.1:1/v3', user: u}",
            "targets.swift.user: its password is not given",
        ),
        (
            "{auth: '127.0.0.1:1', auth_version: v1}",
            "targets.swift.auth: the address does not begin",
        ),
        ("{auth_version: none}", "targets.swift.storage_url: without a sign-in"),
        ("{auth_version: none, storage_url: 'http://127.0.0.1:1/v1/a'}", "connection refused"),
    ] {
        write(target);
        let refused = refused(directory.path(), "run w.yaml");
        assert!(refused.contains(said), "{target}: {refused}");
    }
    let Some(place) = Container::plant("cli-refused", 1) else { return };
    place.workload(directory.path(), "", MIXED);
    let mut command = plimsoll(directory.path());
    command.args(["run", "w.yaml"]).env("ST_KEY", "hush, a wrong key");
    let output = run(command);
    let said = stderr(&output);
    assert!(said.contains("which only a file names") && !said.contains("hush"), "{said}");
    let mut command = place.command(directory.path(), "run w.yaml");
    command.env("ST_KEY", "hush, a wrong key");
    let output = run(command);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the sign-in was refused") && !said.contains("hush"), "{said}");
    place.assert_untouched();
}

#[test]
fn agents_of_a_fleet_sign_in_with_what_they_are_sent() {
    let Some(mut fleet) = Fleet::start(&["a", "b"], &[]) else { return };
    let Some(place) = Container::plant("cli-fleet", 20) else { return };
    let directory = fleet.place.path().to_path_buf();
    place.workload(&directory, "", MIXED);
    let mut command = place.command(&directory, "run w.yaml --run-dir record");
    command.arg(&fleet.flag);
    let report = run_json(command, 0);
    assert!(report.to_string().contains("\"agents\""), "{report:#}");
    place.assert_silent(&directory, &report.to_string());
    for agent in &fleet.agents {
        assert!(!agent.heard.join("\n").contains(&place.server.secret_key));
    }
    place.assert_untouched();
    // An owner who allows load elsewhere only is asked for no password.
    fleet.join("limited", &["--allow-hosts", "127.0.0.2"]);
    let mut command = place.command(&directory, "run w.yaml --run-dir other --agents limited");
    command.arg(&fleet.flag);
    let output = run(command);
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("does not allow load on 127.0.0.1"), "{}", stderr(&output));
    // That run has only said that it lives, which ends by itself.
    let left: Vec<String> = place.listed();
    let is_foreign = |key: &&String| !place.keys.contains(key);
    assert!(left.iter().filter(is_foreign).all(|key| key.contains(".live/")), "{left:?}");
}

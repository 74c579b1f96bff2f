//! `plimsoll weed` against a SeaweedFS that wants tokens, and one of three volume servers. Run by
//! `cargo xtask test`.

use std::process::Command;

use plimsoll_testkit::{LiveKind, live};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Background, counts, pause, plimsoll, run, run_json, stderr};

/// A cluster, and a place for the records of runs on it.
struct Place {
    master: String,
    directory: TempDir,
}

impl Place {
    fn of(kind: LiveKind) -> Option<Self> {
        let server = live(kind)?;
        let directory = tempfile::tempdir().unwrap();
        if let Some(keys) = &server.token_keys {
            let text = |write: &str, read: &str| {
                format!("[jwt.signing]\nkey = \"{write}\"\n[jwt.signing.read]\nkey = \"{read}\"\n")
            };
            let write = |name: &str, text: String| {
                std::fs::write(directory.path().join(name), text).unwrap();
            };
            write("right.toml", text(&keys.write, &keys.read));
            write("wrong.toml", text("nobody's", "nobody's"));
        }
        Some(Self { master: server.host().to_owned(), directory })
    }

    fn command(&self, line: &str) -> Command {
        let mut command = plimsoll(self.directory.path());
        command.args(line.split_whitespace());
        command
    }

    /// A run of `plimsoll weed` in a collection.
    fn weed(&self, collection: &str, line: &str) -> Command {
        let mut command = self.command(&format!("weed {line} --collection {collection}"));
        command.args(["--master", &self.master, "--concurrent", "4", "--run-dir", "record"]);
        command.arg("--create-bucket");
        command
    }

    fn forget(&self) {
        std::fs::remove_dir_all(self.directory.path().join("record")).unwrap();
    }
}

/// Runs until names are noted, and kills it.
fn killed(place: &Place, command: Command) {
    let mut running = Background::start(command);
    let list = place.directory.path().join("record/names-0.txt");
    while std::fs::read_to_string(&list).map_or(0, |text| text.lines().count()) < 50 {
        if running.has_ended() {
            panic!("it ended by itself: {:?}", running.end());
        }
        pause();
    }
    running.signal(Signal::KILL);
    assert_eq!(running.end().0, None);
}

#[test]
fn keys_are_found_where_security_says() {
    let Some(place) = Place::of(LiveKind::SeaweedJwt) else { return };
    for security in ["", "--security right.toml"] {
        let line = format!("mixed --objects 100 --duration 1s --max-error-rate 100% {security}");
        let report = run_json(place.weed("cli-keys", &line), 0);
        let total = counts(&report);
        // A token for writes is valid for 2 s: on a busy machine it may expire before it is used.
        let expired = total["failed_by_class"]["denied"].as_u64().unwrap_or(0);
        assert_eq!(total["ops_failed_count"], expired, "{security}: {report:#}");
        assert!(total["ops_ok_count"].as_u64() > Some(0), "{security}: {report:#}");
        place.forget();
    }
    // The master gives the tokens of writes; those of reads are signed here.
    let output =
        run(place.weed("cli-keys", "read --objects 9 --duration 1s --security wrong.toml"));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("the server rejects the token"), "{text}");
    place.forget();
    let output = run(place.weed("cli-keys", "write --duration 1s --security nowhere.toml"));
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("--security: cannot read nowhere.toml: No such file"), "{said}");

    let check = format!("check weed://{}/cli-keys --ops 300", place.master);
    for (security, code) in [("", 0), ("--security right.toml", 0), ("--security wrong.toml", 2)] {
        let output = run(place.command(&format!("{check} {security}")));
        assert_eq!(output.status.code(), Some(code), "{security}: {}", stderr(&output));
    }

    // What a killed run left goes by the keys that the user names, or that are in the environment;
    // a file that only the record names is not read.
    let right = "--security right.toml";
    for (given, security) in [(right, right), ("", right), ("", "")] {
        // An attempt with wrong keys left its record.
        let _ = std::fs::remove_dir_all(place.directory.path().join("record"));
        killed(&place, place.weed("cli-keys", &format!("write --duration 1m {given}")));
        let clean = |security: &str| {
            let output = run(place.command(&format!("clean record --yes {security}")));
            (output.status.code(), stderr(&output))
        };
        if !given.is_empty() {
            let (code, said) = clean("");
            assert!(code == Some(2) && said.contains("with --security FILE"), "{said}");
        }
        let (code, said) = clean(security);
        assert_eq!(code, Some(0), "{security}: {said}");
        place.forget();
    }
}

#[test]
fn copies_are_written_read_and_removed() {
    let Some(place) = Place::of(LiveKind::SeaweedCluster) else { return };
    for line in ["mixed --objects 200", "read --objects 200", "delete --objects 2000 --batch 50"] {
        let line = format!("{line} --duration 1s --replication 001");
        let report = run_json(place.weed("cli-copies", &line), 0);
        assert_eq!(counts(&report)["ops_failed_count"], 0, "{line}: {report:#}");
        place.forget();
    }
    let url = format!("weed://{}/cli-copies?replication=001", place.master);
    // Copies that are written over and removed at once may differ: `docs/checking.md`.
    let output = run(place.command(&format!("check {url} --ops 2000 --json")));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["target"]["collection"], "cli-copies", "{}", stderr(&output));
    assert_eq!(report["failures"].as_object().unwrap().len(), 0, "{report:#}");
    let only: Vec<&String> = report["counts"].as_object().unwrap().keys().collect();
    let known = ["stale-read", "resurrected-delete", "lost-write"];
    assert!(only.iter().all(|kind| known.contains(&&***kind)), "{report:#}");
    killed(&place, place.weed("cli-copies", "write --duration 1m --replication 001"));
    let output = run(place.command("clean record --yes"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    place.forget();
    let output = run(place.weed("cli-none", "write --duration 1s --replication 020"));
    let said = stderr(&output);
    let lacks = "replication 020 needs 3 racks in a data center, and the most are 1";
    assert!(said.contains(lacks), "{said}");
    assert_eq!(output.status.code(), Some(2), "{said}");
}

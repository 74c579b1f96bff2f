//! `plimsoll weed` and workloads on the filer of a real SeaweedFS: what is reported, and that
//! nothing of others is touched, however a run ends. Run by `cargo xtask test`.

use std::path::Path;
use std::process::Command;

use plimsoll_driver::{Admin, Driver, Operation, Session};
use plimsoll_driver_seaweed::{FilerConfig, FilerDriver};
use plimsoll_http::expand_hosts;
use plimsoll_model::WallTime;
use plimsoll_testkit::{LiveKind, live};
use rustix::process::Signal;
use serde_json::Value;

use crate::foreign::{Numbered, Same};
use crate::harness::{
    Background, block_on, clock, counts, measured, oracle, plimsoll, refused, run, run_json, stderr,
};

const FOREIGN: u64 = 1_000;

/// A directory of the real filer with files of somebody else in it.
struct Directory {
    filer: String,
    name: &'static str,
    driver: FilerDriver,
    keys: Vec<String>,
}

impl Directory {
    fn plant(name: &'static str, count: u64) -> Option<Self> {
        let filer = live(LiveKind::SeaweedFiler)?.host().to_owned();
        let config = FilerConfig::new(expand_hosts(&filer, 1).unwrap(), name).unwrap();
        let driver = FilerDriver::new(config, WallTime::from_unix_ns(0));
        // Some lie where runs write, beside what is theirs.
        let key = |number| match number % 3 {
            0 => format!("f{number}"),
            1 => format!("plimsoll/mine/{number}"),
            _ => format!("plimsoll/run-{number}"),
        };
        let planted = Self { filer, name, driver, keys: (0..count).map(key).collect() };
        block_on(async {
            let mut above = planted.driver.admin(&clock(), Some("")).unwrap();
            above.sweep(&format!("{name}/")).await.unwrap();
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

    /// Every foreign file is as it was, and nothing else is there.
    #[track_caller]
    fn assert_untouched(&self) {
        let mut expected = self.keys.clone();
        expected.sort_unstable();
        assert!(self.listed() == expected, "files are left or gone: {:?}", self.listed());
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

    fn command(&self, directory: &Path, line: &str) -> Command {
        let mut command = plimsoll(directory);
        command.arg("weed").args(line.split_whitespace());
        command.args(["--filer", &self.filer, "--directory", self.name, "--create-bucket"]);
        command
    }
}

/// Returns what a record says of its cleaning; the report is printed before.
fn cleanup(record: &Path) -> String {
    let text = std::fs::read_to_string(record.join("run.json")).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    manifest["cleanup"]["state"].as_str().unwrap().to_owned()
}

const COMMANDS: [(&str, &[&str]); 9] = [
    ("write", &["PUT"]),
    ("write --fsync --ttl 3d --replication 000 --collection filed --prefix a/b", &["PUT"]),
    ("read --objects 200", &["GET"]),
    ("read --objects 200 --range", &["GET"]),
    ("stat --objects 200", &["STAT"]),
    ("list --objects 200 --max-keys 7", &["LIST"]),
    ("delete --objects 3000", &["DELETE"]),
    ("delete --objects 3000 --batch 20", &["DELETE"]),
    ("mixed --objects 300", &["DELETE", "GET", "PUT", "STAT"]),
];

#[test]
fn a_thousand_foreign_files_survive_every_command() {
    let Some(place) = Directory::plant("filer-commands", FOREIGN) else { return };
    for (line, kinds) in COMMANDS {
        let directory = tempfile::tempdir().unwrap();
        let line = format!("{line} --duration 1s --concurrent 4 --run-dir record");
        let report = run_json(place.command(directory.path(), &line), 0);
        assert_eq!(counts(&report)["ops_failed_count"], 0, "{line}: {report:#}");
        let kinds_of = measured(&report)["kinds"].as_array().unwrap().iter();
        let mut found: Vec<&str> = kinds_of.map(|kind| kind["kind"].as_str().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, kinds, "{line}");
        assert_eq!(cleanup(&directory.path().join("record")), "complete", "{line}");
        assert_eq!(report["targets"][0]["directory"], format!("/{}", place.name), "{report:#}");
    }
    place.assert_untouched();
}

#[test]
fn a_thousand_foreign_files_survive_signals_and_what_a_killed_run_left_is_cleaned() {
    let Some(place) = Directory::plant("filer-signals", FOREIGN) else { return };
    for moment in 0..8usize {
        let directory = tempfile::tempdir().unwrap();
        let line = "mixed --objects 300 --duration 60s --concurrent 8 --run-dir record";
        let mut running = Background::start(place.command(directory.path(), line));
        // Within the preparation and within the measured stage.
        let wanted = FOREIGN as usize + 2 + moment * 45;
        while place.listed().len() < wanted {
            assert!(!running.has_ended(), "it ended before {wanted} files");
        }
        let signal = if moment % 2 == 0 { Signal::INT } else { Signal::KILL };
        running.signal(signal);
        let (code, _, said) = running.end();
        if signal == Signal::KILL {
            assert_eq!(code, None);
            assert!(place.listed().len() > FOREIGN as usize);
            let mut clean = plimsoll(directory.path());
            clean.args(["clean", "record"]);
            let unasked = run(clean);
            assert_eq!(unasked.status.code(), Some(2), "{}", stderr(&unasked));
            let what = "in directory `/filer-signals` on 127.0.0.1:";
            assert!(stderr(&unasked).contains(what), "{}", stderr(&unasked));
            let mut clean = plimsoll(directory.path());
            clean.args(["clean", "record", "--yes"]);
            let output = run(clean);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        } else {
            assert_eq!(code, Some(130), "{said}");
        }
        assert_eq!(place.listed().len(), FOREIGN as usize, "moment {moment}: {said}");
    }
    place.assert_untouched();
}

#[test]
fn files_that_were_there_are_read_by_listing_and_removed_with_leave_only() {
    let Some(place) = Directory::plant("filer-existing", 60) else { return };
    let directory = tempfile::tempdir().unwrap();
    let read = "read --list-existing --prefix plimsoll/mine/ --duration 1s --concurrent 4";
    let report = run_json(place.command(directory.path(), read), 0);
    assert_eq!(report["verification"]["mode"], "checksum", "{report:#}");
    assert_eq!(counts(&report)["ops_failed_count"], 0);
    std::fs::write(directory.path().join("list"), "# mine\nf0\nplimsoll/run-2\n").unwrap();
    let report = run_json(
        place.command(directory.path(), "stat --list list --duration 500ms --concurrent 2"),
        0,
    );
    assert_eq!(counts(&report)["ops_failed_count"], 0);
    let delete = "delete --list-existing --prefix plimsoll/mine/ --duration 60s --concurrent 2";
    let output = run(place.command(directory.path(), delete));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let what = "remove 20 files";
    assert!(stderr(&output).contains(what), "{}", stderr(&output));
    place.assert_untouched();
    let report = run_json(place.command(directory.path(), &format!("{delete} --yes")), 0);
    assert_eq!(counts(&report)["ops_failed_count"], 0, "{report:#}");
    let is_left = |key: &&String| !key.starts_with("plimsoll/mine/");
    let mut expected: Vec<String> = place.keys.iter().filter(is_left).cloned().collect();
    expected.sort_unstable();
    assert_eq!(place.listed(), expected);
    let none = run(place.command(directory.path(), "read --list-existing --prefix none/"));
    let said = "--list-existing: no object below `none/` in directory `/filer-existing` (--prefix)";
    assert!(stderr(&none).contains(said), "{}", stderr(&none));
}

#[test]
fn a_store_a_cluster_and_a_filer_are_loaded_in_one_stage() {
    let Some(place) = Directory::plant("filer-beside", 10) else { return };
    let Some(master) = live(LiveKind::SeaweedFs) else { return };
    let store = oracle();
    let directory = tempfile::tempdir().unwrap();
    let get_put = |set: &str| format!("{{objects: [{{get: {set}}}, {{put: {set}}}]}}");
    let workload = format!(
        "schema: plimsoll.workload/2\nname: beside\ntargets:\n  \
         a: {{s3: {{hosts: '{}', bucket: {}, create_bucket: true}}}}\n  \
         b: {{seaweedfs: {{filer: '{}', directory: /filer-beside, create_bucket: true}}}}\n  \
         c: {{seaweedfs: {{master: '{}', collection: beside, create_bucket: true}}}}\nsets:\n  \
         x: {{on: a, count: 50, size: 1KiB}}\n  \
         y: {{on: b, count: 50, size: 1KiB, keys: {{buckets: 3}}}}\n  \
         z: {{on: c, count: 50, size: 1KiB}}\n  \
         there: {{on: b, existing: {{prefix: f}}}}\nstages:\n\
         - {{prepares: true, jobs: [{{name: x, workers: 2, work: {{fill: [x]}}}}, \
         {{name: y, workers: 2, work: {{fill: [y]}}}}, \
         {{name: z, workers: 2, work: {{fill: [z]}}}}]}}\n\
         - {{name: main, jobs: [\
         {{name: s3, ops: 200, workers: 2, work: {}}}, \
         {{name: filer, ops: 200, workers: 2, work: {}}}, \
         {{name: weed, ops: 200, workers: 2, work: {}}}, \
         {{name: lists, ops: 20, workers: 1, work: {{objects: [{{list: y}}]}}}}, \
         {{name: foreign, ops: 20, workers: 1, work: {{objects: [{{get: there}}]}}}}]}}\n",
        store.host,
        store.bucket,
        place.filer,
        master.host(),
        get_put("x"),
        get_put("y"),
        get_put("z"),
    );
    std::fs::write(directory.path().join("beside.yaml"), workload).unwrap();
    for line in ["run beside.yaml --check", "run beside.yaml --run-dir one"] {
        let output = run(store.command(directory.path(), line));
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    }
    assert_eq!(cleanup(&directory.path().join("one")), "complete");
    place.assert_untouched();
    // The sets lay in three directories beside it, of which nothing is left.
    block_on(async {
        for number in 1..=3 {
            let of = format!("filer-beside{number}");
            let mut admin = place.driver.admin(&clock(), Some(&of)).unwrap();
            assert_eq!(admin.survey("", None, true).await.unwrap(), []);
        }
    });
}

#[test]
fn what_a_filer_cannot_be_told_is_refused_in_a_line() {
    let Some(place) = Directory::plant("filer-refused", 3) else { return };
    let directory = tempfile::tempdir().unwrap();
    let of_filer = format!("--filer {} --directory filer-refused", place.filer);
    for (line, said) in [
        ("write --master m:1", "--filer and --master: SeaweedFS is reached by one of them"),
        ("write --grow 3", "--grow: is for masters (--master), not for filers"),
        ("write --assign stream", "--assign: is for masters"),
        ("write --ids-per-assign 5", "--ids-per-assign: is for masters"),
        ("write --drop-collection", "--drop-collection: is for masters"),
        ("write --ttl 61s", "--ttl: must be a number of whole minutes"),
        ("write --prefix ../x", "--prefix: must have no `.` or `..` component"),
        ("write --prefix a//b", "--prefix: must have no empty part"),
        // A file of somebody else is in the way, and would be lost.
        ("write --prefix f0/x", "`/filer-refused/f0` is a file, which would be lost"),
    ] {
        let said_of = refused(directory.path(), &format!("weed {line} {of_filer} --duration 1s"));
        assert!(said_of.contains(said), "{line}: {said_of}");
    }
    for (line, said) in [
        ("list", "only a filer lists files; name it (--filer)"),
        ("read --list-existing", "--list-existing: only a filer lists files (--filer)"),
        ("write --prefix x", "--prefix: only with a filer files have paths (--filer)"),
        ("write --directory /x", "--directory: only a filer has directories; name one (--filer)"),
        ("write --filer 127.0.0.1:1", "connection refused by 127.0.0.1:1"),
        ("write --filer 127.0.0.1:1 --directory a/../b", "--directory: must be a path"),
    ] {
        let said_of = refused(directory.path(), &format!("weed {line} --duration 1s"));
        assert!(said_of.contains(said), "{line}: {said_of}");
    }
    place.assert_untouched();
}

#[test]
fn a_check_of_a_filer_finds_no_violation_and_leaves_nothing() {
    let Some(place) = Directory::plant("filer-check", 20) else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut check = plimsoll(directory.path());
    let url = format!("weed-filer://{}/filer-check", place.filer);
    check.args(["check", &url, "--ops", "3000"]);
    let report = run_json(check, 0);
    assert_eq!(report["violations_count"], 0, "{report:#}");
    place.assert_untouched();
}

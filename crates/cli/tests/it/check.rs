//! `plimsoll check`: a store that lies is found out, each lie by its name; an honest one is not
//! accused; nothing is left behind and nothing foreign is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use plimsoll_analysis::history::{History, HistoryReport};
use plimsoll_driver::{Completion, ContentSource, Driver, DriverError, Operation, Session};
use plimsoll_engine::{CheckConfig, CheckContext, Live, RunClock, StopFlag, run_check};
use plimsoll_model::{EndpointId, ErrorClass, OpKind, SharedClock};
use plimsoll_oracle::Script;
use plimsoll_testkit::{LiveKind, live};
use rustix::process::Signal;

use crate::harness::{self, Background, oracle, plimsoll, run, run_json, scripted, stderr};

/// Operations before the first lie, so that there is something to lie about.
const HONEST_FIRST: u64 = 500;

/// What a [`LyingStore`] does wrong, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    OtherKey,
    OlderVersion,
    Shifted,
    Zeroed,
    Torn,
    Flipped,
    Shortened,
    LostWrite,
    LostDelete,
    Omission,
    Ghost,
    StrangeName,
    VanishedForOneRead,
}

#[derive(Default)]
struct Store {
    /// Every version of every key, `None` for a removal.
    versions: BTreeMap<String, Vec<Option<Vec<u8>>>>,
    lie: Option<Lie>,
    ops_count: u64,
    /// Whether a failed write takes effect, turn about.
    failures_count: u64,
    failing: bool,
}

#[derive(Clone, Default)]
struct LyingStore(Arc<Mutex<Store>>);

struct LyingSession(Arc<Mutex<Store>>, SharedClock);

impl Driver for LyingStore {
    type Session = LyingSession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<LyingSession> {
        (0..count).map(|_| LyingSession(Arc::clone(&self.0), Arc::clone(clock))).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["lies".to_owned()]
    }
}

impl Session for LyingSession {
    async fn execute(&mut self, _: Option<&str>, operation: Operation<'_>) -> Completion {
        // So that the operations of several threads really meet.
        tokio::task::yield_now().await;
        let done = self.0.lock().unwrap().apply(operation);
        tokio::task::yield_now().await;
        let (size, result) = match done {
            Ok(size) => (size, Ok(())),
            Err(class) => (None, Err(DriverError::with_status(class, 416, "no"))),
        };
        let end = self.1.now();
        Completion { object_size: size, ..Completion::bare(EndpointId(0), end, result) }
    }

    fn endpoint(&self) -> EndpointId {
        EndpointId(0)
    }
}

fn content_of(content: &mut dyn ContentSource) -> Vec<u8> {
    let mut bytes = vec![0; content.size() as usize];
    content.fill(0, &mut bytes);
    bytes
}

impl Store {
    fn now(&self, key: &str) -> Option<&Vec<u8>> {
        self.versions.get(key)?.last()?.as_ref()
    }

    fn before(&self, key: &str) -> Option<&Vec<u8>> {
        self.versions.get(key)?.iter().rev().nth(1)?.as_ref()
    }

    /// Tells whether to tell this lie now; it is told once.
    fn lies(&mut self, lie: Lie) -> bool {
        let told = self.lie == Some(lie) && self.ops_count > HONEST_FIRST;
        if told {
            self.lie = None;
        }
        told
    }

    fn apply(&mut self, operation: Operation<'_>) -> Result<Option<u64>, ErrorClass> {
        self.ops_count += 1;
        match operation {
            Operation::Put { key, content } => {
                let bytes = content_of(content);
                self.write(key, Some(bytes), Lie::LostWrite)
            }
            Operation::Delete { keys } => keys
                .iter()
                .map(|key| match self.now(key) {
                    Some(_) => self.write(key, None, Lie::LostDelete),
                    None => Ok(None),
                })
                .collect::<Result<Vec<_>, _>>()
                .map(|_| None),
            Operation::Get { key, range, sink, .. } => {
                let found = self.now(key).cloned();
                let Some(found) = self.spoil(key, range.is_none(), found) else {
                    return Err(ErrorClass::NotFound);
                };
                let size = found.len() as u64;
                let (from, len) = range.map_or((0, size), |range| (range.offset, range.len));
                if from >= size {
                    return Err(ErrorClass::Client);
                }
                sink.restart();
                sink.accept(&found[from as usize..(from + len).min(size) as usize]);
                Ok(Some(size))
            }
            Operation::Stat { key, .. } => {
                self.now(key).map(|it| Some(it.len() as u64)).ok_or(ErrorClass::NotFound)
            }
            Operation::List { prefix, sink, .. } => {
                sink.restart();
                let keys: Vec<String> = self.versions.keys().cloned().collect();
                for key in keys.iter().filter(|key| key.starts_with(prefix)) {
                    let size = |bytes: &Vec<u8>| bytes.len() as u64;
                    let (now, before) = (self.now(key).map(size), self.before(key).map(size));
                    let shown = match (now, before) {
                        (Some(_), _) if self.lies(Lie::Omission) => None,
                        (None, Some(size)) if self.lies(Lie::Ghost) => Some(size),
                        _ => now,
                    };
                    shown.into_iter().for_each(|size| sink.entry(key, size));
                }
                if self.lies(Lie::StrangeName) {
                    sink.entry(&format!("{prefix}nobody-wrote-this"), 1);
                }
                Ok(None)
            }
            _ => Err(ErrorClass::Client),
        }
    }

    fn write(
        &mut self,
        key: &str,
        bytes: Option<Vec<u8>>,
        lie: Lie,
    ) -> Result<Option<u64>, ErrorClass> {
        self.failures_count += u64::from(self.failing && self.ops_count.is_multiple_of(9));
        let fails = self.failing && self.ops_count.is_multiple_of(9);
        let in_vain = fails && self.failures_count.is_multiple_of(2);
        if !in_vain && !self.lies(lie) {
            self.versions.entry(key.to_owned()).or_default().push(bytes);
        }
        if fails { Err(ErrorClass::Server) } else { Ok(None) }
    }

    /// Returns what a GET gives instead of `found`.
    fn spoil(&mut self, key: &str, whole: bool, found: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let mut bytes = found?;
        let middle = bytes.len() / 2;
        let older = self.before(key).cloned();
        let other = self.versions.keys().find(|it| *it != key && self.now(it).is_some()).cloned();
        if let Some(older) = older {
            if self.lies(Lie::OlderVersion) {
                return Some(older);
            }
            if whole && older.len() > 200 && bytes.len() > 200 && self.lies(Lie::Torn) {
                bytes.truncate(100);
                bytes.extend(&older[100..]);
                return Some(bytes);
            }
        }
        if other.is_some() && self.lies(Lie::OtherKey) {
            return other.and_then(|key| self.now(&key).cloned());
        }
        if self.lies(Lie::VanishedForOneRead) {
            return None;
        }
        // Of a part of the content a spoilt byte may not be asked for.
        if whole && self.lies(Lie::Shifted) {
            bytes.rotate_left(7);
        } else if whole && self.lies(Lie::Zeroed) {
            bytes[middle..].fill(0);
        } else if whole && self.lies(Lie::Flipped) {
            bytes[middle] ^= 0x10;
        } else if whole && self.lies(Lie::Shortened) {
            bytes.pop();
        }
        Some(bytes)
    }
}

fn judge(store: &LyingStore, threads: usize, ops: u64, seed: u64) -> HistoryReport {
    let clock: SharedClock = Arc::new(RunClock::start());
    let config = CheckConfig {
        lists: true,
        prefix: "p/".to_owned(),
        workers: if threads == 1 { 4 } else { 12 },
        threads,
        keys: 6,
        seed,
        salt: seed,
        duration: None,
        ops_max: Some(ops),
        op_timeout: std::time::Duration::from_secs(60),
    };
    let live = Live::new(threads);
    let context = CheckContext { clock: &clock, stop: &StopFlag::default(), live: &live };
    let mut history = History::new(10);
    let outcome = run_check(store, &config, &context, &mut history).unwrap();
    assert_eq!(outcome.ops_count, ops);
    let store = store.0.lock().unwrap();
    let left = store.versions.keys().filter(|key| store.now(key).is_some()).count();
    assert!(left == 0 || store.failing, "{left} keys left");
    history.finish()
}

#[test]
fn an_honest_store_is_not_accused_whatever_fails() {
    for seed in 0..4 {
        for failing in [false, true] {
            let store = LyingStore::default();
            store.0.lock().unwrap().failing = failing;
            // Every failure makes a worker pause.
            let ops = if failing { 1_000 } else { 20_000 };
            let report = judge(&store, 4, ops, seed);
            assert!(report.counts.is_empty(), "seed {seed}: {report:#?}");
            assert_eq!(!report.failures.is_empty(), failing);
            assert!(report.ops[&OpKind::Put].done > ops / 10);
        }
    }
}

#[test]
fn the_embedded_store_passes_and_nothing_is_left() {
    let target = oracle();
    target.plant(100);
    let directory = tempfile::tempdir().unwrap();
    let mut check = plimsoll(directory.path());
    check.args(["check", "--ops", "3000", "--seed", "7"]);
    check.arg(format!("http://{}/{}", target.host, target.bucket));
    target.credentials(&mut check);
    let report = run_json(check, 0);
    assert_eq!(report["schema"], "plimsoll.check/1");
    assert_eq!((&report["seed"], &report["violations_count"]), (&7.into(), &0.into()));
    let done: u64 = ["PUT", "GET", "STAT", "DELETE", "LIST"]
        .map(|kind| &report["operations"][kind])
        .iter()
        .map(|it| it["done"].as_u64().unwrap() + it["out_of_range"].as_u64().unwrap())
        .sum();
    assert_eq!(done, 3_000);
    target.assert_only_planted(100);
}

#[test]
fn a_store_that_lies_ends_with_one_and_shows_the_proof() {
    let script = "schema: plimsoll.oracle/1\nservice: {time: {constant: 200us}}\n\
                  grace_count: 300\nlies: {flipped: 0.01, list_omission: 0.05, lost_write: 0.01}\n";
    let target = scripted(Some(Script::from_yaml(script).unwrap()));
    let directory = tempfile::tempdir().unwrap();
    let line = "check --ops 4000 --concurrent 4 --show 3 --quiet";
    let output = run(target.command(directory.path(), line));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(text.starts_with("check: ") && text.contains(" VIOLATIONS in 4,000 operations"));
    for kind in ["  flipped ", "  list-omission ", "  lost-write "] {
        assert!(text.contains(kind), "{kind}: {text}");
    }
    assert_eq!(text.lines().filter(|line| line.contains(" after the start")).count(), 3, "{text}");
    assert!(text.contains("--show sets how many are shown"), "{text}");
}

#[test]
fn ctrl_c_ends_the_check_with_a_report_and_cleans() {
    let target = oracle();
    target.plant(10);
    let directory = tempfile::tempdir().unwrap();
    let line = "check --duration 60s --json";
    let mut running = Background::start(target.command(directory.path(), line));
    running.await_line("check: ");
    running.signal(Signal::INT);
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["interrupted"], true);
    target.assert_only_planted(10);
}

/// Checks a live server and returns its violations.
fn check_live(kind: LiveKind, bucket: &str) -> Vec<serde_json::Value> {
    let Some(server) = live(kind) else { return Vec::new() };
    let target = harness::live(&server, bucket);
    let directory = tempfile::tempdir().unwrap();
    let output = run(target.command(directory.path(), "check --ops 3000 --show 100000 --json"));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let violations = report["violations"].as_array().unwrap().clone();
    assert_eq!(output.status.code(), Some(i32::from(!violations.is_empty())), "{report:#}");
    assert_eq!(target.listed(), Vec::<String>::new());
    violations
}

#[test]
fn what_cannot_be_checked_ends_with_two() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |words: &[&str], expected: &str| {
        let mut command = plimsoll(directory.path());
        command.arg("check").args(words);
        let output = run(command);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).contains(expected), "{words:?}: {}", stderr(&output));
    };
    refused(&["http://127.0.0.1:1/bucket"], "check --host and --tls");
    refused(&["127.0.0.1/bucket"], "does not begin with http");
    refused(&["http://h/bucket/key"], "names more than a bucket");
    refused(&["http://a:b@h/bucket"], "--access-key");
    refused(&["--ops", "1", "--seed", "1"], "nothing was checked");
}

mod nightly {
    use super::*;

    #[test]
    fn each_planted_lie_is_found_and_named() {
        let name = |lie: Lie| {
            // One that something else explains as well is not found, and does no harm.
            let mut names = BTreeSet::new();
            for seed in 0..8 {
                let store = LyingStore::default();
                store.0.lock().unwrap().lie = Some(lie);
                let report = judge(&store, 1, 2_500, seed);
                assert_eq!(store.0.lock().unwrap().lie, None, "{lie:?} was never told");
                let count: u64 = report.counts.values().sum();
                assert!(count <= 1, "{lie:?}: {report:#?}");
                names.extend(report.counts.keys().map(|kind| kind.name()));
            }
            names.into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(name(Lie::OtherKey), "other-object");
        assert_eq!(name(Lie::OlderVersion), "stale-read");
        assert_eq!(name(Lie::Shifted), "shifted");
        assert_eq!(name(Lie::Zeroed), "zeroed");
        assert_eq!(name(Lie::Torn), "torn");
        assert_eq!(name(Lie::Flipped), "flipped");
        assert_eq!(name(Lie::Shortened), "short");
        assert_eq!(name(Lie::LostWrite), "lost-write");
        assert_eq!(name(Lie::LostDelete), "resurrected-delete");
        assert_eq!(name(Lie::Omission), "list-omission");
        assert_eq!(name(Lie::Ghost), "list-ghost");
        assert_eq!(name(Lie::StrangeName), "list-ghost");
        // While a removal is under way a read may find nothing. A listing that contradicts it
        // later, and that nobody could confirm, is then as likely to be wrong.
        assert_eq!(name(Lie::VanishedForOneRead), "list-ghost stale-read");
    }

    #[test]
    fn minio_is_consistent() {
        assert_eq!(check_live(LiveKind::Minio, "plimsoll-check"), Vec::<serde_json::Value>::new());
        assert_eq!(
            check_live(LiveKind::MinioTls, "plimsoll-check"),
            Vec::<serde_json::Value>::new()
        );
    }

    #[test]
    fn seaweedfs_is_consistent() {
        assert_eq!(
            check_live(LiveKind::SeaweedS3, "plimsoll-check"),
            Vec::<serde_json::Value>::new()
        );
    }

    #[test]
    fn versitygw_is_consistent_but_for_temporary_names_in_listings() {
        for violation in check_live(LiveKind::Versitygw, "plimsoll-check") {
            assert_eq!(violation["kind"], "list-ghost", "{violation:#}");
            assert!(violation["key"].as_str().unwrap().contains(".sgwtmp."), "{violation:#}");
        }
    }
}

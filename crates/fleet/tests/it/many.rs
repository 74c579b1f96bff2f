//! Fleets of 2, 8 and 50 agents on a real `nats-server`, each with a connection of its own, and
//! servers that are killed while they are needed.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_conduct::{Observer, RunTime, StageView, Store};
use plimsoll_driver::null::NullDriver;
use plimsoll_fleet::broker::{Broker, TokenRules, local_fleet};
use plimsoll_fleet::fabric::{Address, Fabric, FabricError, Kept, Space};
use plimsoll_fleet::nats::{Nats, Side};
use plimsoll_fleet::protocol::AgentId;
use plimsoll_model::{OpKind, OpRecord, TargetKind};
use plimsoll_record::schema::RunState;
use rustix::process::{Pid, Signal, kill_process};

use crate::broker::broker;
use crate::runs::{ACCESS, Fleet, On, WORKLOAD, assert_same, begin, begin_on, end, store, works};
use crate::task::{Task, about};

const ANY: TokenRules = TokenRules { uses: None, lasts: None };
/// Longer than anything takes that comes at all.
const LONG: Duration = Duration::from_secs(30);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until something is so.
#[track_caller]
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let tries = LONG.as_millis() / LOOK.as_millis();
    let found = (0..tries).any(|_| {
        let found = is_so();
        if !found {
            std::thread::park_timeout(LOOK);
        }
        found
    });
    assert!(found, "it did not come to that");
}

/// Checks that no file below a directory holds what only agents of a run are told.
fn assert_silent(directory: &Path) {
    let mut folders = vec![directory.to_path_buf()];
    let mut bytes_count = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            let found = bytes.windows(ACCESS.len()).any(|window| window == ACCESS.as_bytes());
            assert!(!found, "{}", entry.path().display());
            bytes_count += bytes.len();
        }
    }
    assert!(bytes_count > 100_000, "{bytes_count}");
}

fn check(agents: usize) {
    let place = tempfile::tempdir().unwrap();
    let Some(broker) = broker(place.path(), 64) else { return };
    let (run, heard) = begin(&place.path().join("alone"), WORKLOAD, &store());
    let alone = end(run, &heard);
    let token = broker.token(ANY).unwrap();
    let store = store();
    let parts = place.path().join("parts");
    let task = |index: usize| {
        let works = works(&parts, &On::Store(store.clone()), index);
        Task::join(&token, about(&format!("node{index:02}"), 1), works, &|_, nats| Arc::new(nats))
    };
    let tasks = (0..agents).map(task).collect();
    let fleet = Fleet::on_nats(local_fleet(&place.path().join("fleet")).unwrap(), tasks);
    let (mut run, heard) = begin(&place.path().join("run"), WORKLOAD, &store);
    fleet.direct_through(&mut run, &|fabric| fabric).unwrap();
    let seen = end(run, &heard);
    fleet.end();
    assert_same(&seen, &alone, &format!("{agents} agents"));
    assert_eq!(seen.manifest.state, RunState::Complete);
    let of_agents = seen.manifest.agents.iter().map(|agent| agent.rows_count.unwrap());
    assert_eq!(of_agents.clone().count(), agents);
    assert_eq!(of_agents.sum::<u64>(), seen.ops.len() as u64);
    // What only they are told is in no file, neither theirs nor the server's.
    assert_silent(place.path());
    // Nobody keeps what was handed in.
    assert_eq!(std::fs::read_dir(&parts).map_or(0, Iterator::count), 0);
}

#[test]
fn two_agents_on_nats_do_what_one_process_does() {
    check(2);
}

#[test]
fn eight_agents_on_nats_do_what_one_process_does() {
    check(8);
}

#[test]
fn fifty_agents_on_nats_do_what_one_process_does() {
    check(50);
}

/// A moment at which the server is to be killed: what was about to be done waits until it was.
struct Moment {
    what: &'static str,
    is_killed: Sender<()>,
}

/// Asks for the server to be killed once each at some moments.
#[derive(Clone)]
struct Kills(Arc<Mutex<(Vec<&'static str>, Sender<Moment>)>>);

impl Kills {
    fn at(moments: &[&'static str]) -> (Self, Receiver<Moment>) {
        let (sender, receiver) = channel();
        (Self(Arc::new(Mutex::new((moments.to_vec(), sender)))), receiver)
    }

    /// Has the server killed if it is the first time.
    fn now(&self, what: &'static str) {
        let mut kills = self.0.lock().unwrap();
        let (left, sender) = &mut *kills;
        let Some(at) = left.iter().position(|each| *each == what) else { return };
        left.remove(at);
        let (is_killed, killed) = channel();
        sender.send(Moment { what, is_killed }).unwrap();
        killed.recv_timeout(LONG).unwrap();
    }
}

const STAGE: &str = "in a stage";
const HANDING_IN: &str = "handing in";
const FETCHING: &str = "fetching";
const CLEARING: &str = "clearing";

/// A fabric whose server is killed while it is used.
struct Shaken {
    inner: Arc<dyn Fabric>,
    kills: Kills,
}

impl Fabric for Shaken {
    fn make(&self, agents: &[(AgentId, String)]) -> Result<(), FabricError> {
        self.inner.make(agents)
    }

    fn post(&self, to: &Address, message: Vec<u8>) -> Result<(), FabricError> {
        self.inner.post(to, message)
    }

    fn put(
        &self,
        of: &Space,
        name: &str,
        content: &mut dyn std::io::Read,
    ) -> Result<Kept, FabricError> {
        if name.contains("/ops/") {
            self.kills.now(HANDING_IN);
        }
        self.inner.put(of, name, content)
    }

    fn get(&self, of: &Space, kept: &Kept, to: &mut dyn Write) -> Result<u64, FabricError> {
        if kept.name.contains("/ops/") {
            self.kills.now(FETCHING);
        }
        self.inner.get(of, kept, to)
    }

    fn remove(&self, of: &Space, prefix: &str) -> Result<(), FabricError> {
        self.kills.now(CLEARING);
        self.inner.remove(of, prefix)
    }
}

/// Has the server killed in the midst of a stage.
struct InStage(Kills);

impl Observer for InStage {
    fn note(&self, _line: &str) {}

    fn warn(&self, _line: &str) {}

    fn during(&self, stage: &StageView<'_>, work: &mut dyn FnMut()) {
        if stage.name != "main" {
            return work();
        }
        let (live, kills) = (Arc::clone(stage.live), self.0.clone());
        let kill = std::thread::spawn(move || {
            wait_until(|| live.counts(OpKind::Get).ok > 100);
            kills.now(STAGE);
        });
        work();
        kill.join().unwrap();
    }
}

/// Kills the server, and starts it again.
fn kill_and_restart(broker: &mut Broker, meanwhile: impl FnOnce()) {
    let server = Pid::from_raw(broker.server_pid() as i32).unwrap();
    kill_process(server, Signal::KILL).unwrap();
    meanwhile();
    wait_until(|| broker.tend().unwrap().is_some());
}

/// Each operation without when it was, and how often it is there.
fn counted(ops: &[OpRecord]) -> BTreeMap<(u8, u32, &'static str, u64, bool), u64> {
    let mut counts = BTreeMap::new();
    for op in ops {
        let ok = op.outcome.is_ok();
        let key = (op.stage.0, op.worker.0, op.kind.name(), op.bytes, ok);
        *counts.entry(key).or_default() += 1;
    }
    counts
}

#[test]
fn a_server_that_is_killed_when_it_is_needed_loses_nothing_and_repeats_nothing() {
    const WORKLOAD: &str = "\
schema: plimsoll.workload/2
name: shaken
sets: {o: {count: 40, size: {uniform: 1KiB..2KiB}}}
stages:
- {name: load, prepares: true, jobs: [{workers: 4, work: {fill: o}}]}
- name: main
  jobs: [{workers: 4, ops: 2000, pacing: {capped: 1000/s}, work: {objects: [{get: o}]}}]
- {name: again, jobs: [{workers: 4, ops: 300, work: {objects: [{get: o}]}}]}
";
    let place = tempfile::tempdir().unwrap();
    let Some(mut broker) = broker(place.path(), 4) else { return };
    let null = || Store::without_admin(NullDriver, TargetKind::Null);
    let at = |name: &str| place.path().join(name);
    let (run, heard) = begin_on(&at("alone"), WORKLOAD, null(), RunTime::machine());
    let alone = end(run, &heard);
    let token = broker.token(ANY).unwrap();
    let (kills, moments) = Kills::at(&[STAGE, HANDING_IN, FETCHING, CLEARING]);
    let task = |index: usize| {
        let mut works = works(&at("parts"), &On::Null, index);
        if index == 0 {
            works.observer = Arc::new(InStage(kills.clone()));
        }
        Task::join(&token, about(&format!("node{index}"), 1), works, &|_, nats| {
            Arc::new(Shaken { inner: Arc::new(nats), kills: kills.clone() })
        })
    };
    let tasks = (0..3).map(task).collect();
    let fleet = Fleet::on_nats(local_fleet(&at("fleet")).unwrap(), tasks);
    let (mut run, heard) = begin_on(&at("run"), WORKLOAD, null(), RunTime::machine());
    let shaken = |inner| Arc::new(Shaken { inner, kills: kills.clone() }) as Arc<dyn Fabric>;
    fleet.direct_through(&mut run, &shaken).unwrap();
    let broker = &mut broker;
    let (is_over, over) = channel::<()>();
    let (seen, killed) = std::thread::scope(|scope| {
        let killing = scope.spawn(move || {
            let mut killed = Vec::new();
            for _ in 0..4 {
                let Moment { what, is_killed } = moments.recv_timeout(LONG).unwrap();
                killed.push(what);
                kill_and_restart(broker, || is_killed.send(()).unwrap());
            }
            // The server ends with the thread that has started it.
            let _ = over.recv();
            killed
        });
        let seen = crate::runs::end_with_remarks(run, None);
        drop(is_over);
        (seen, killing.join().unwrap())
    });
    fleet.end();
    assert_eq!(killed, [STAGE, HANDING_IN, FETCHING, CLEARING]);
    let lost: Vec<_> = seen.manifest.agents.iter().filter_map(|agent| agent.lost.clone()).collect();
    assert_eq!(lost, [], "{:?}", heard.0.lock().unwrap());
    assert!(counted(&seen.ops) == counted(&alone.ops), "{} operations", seen.ops.len());
    assert_eq!(seen.manifest.state, RunState::Complete);
    assert_eq!(std::fs::read_dir(at("parts")).unwrap().count(), 0);
}

/// Has the server killed when the first bytes come.
struct KillsIt<'a> {
    broker: &'a mut Broker,
    bytes: Vec<u8>,
}

impl Write for KillsIt<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.is_empty() {
            kill_and_restart(self.broker, || {});
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_content_comes_whole_when_the_server_is_killed_in_its_midst() {
    let place = tempfile::tempdir().unwrap();
    let Some(mut broker) = broker(place.path(), 1) else { return };
    let config = local_fleet(&place.path().join("fleet")).unwrap();
    let (lead, _arrivals) = Nats::join(&config, Side::Coordinator).unwrap();
    lead.make(&[]).unwrap();
    let large: Vec<u8> = (0..24_000_000_u32).map(|at| (at % 251) as u8).collect();
    let kept = lead.put(&Space::Shared, "run/large", &mut Cursor::new(&large)).unwrap();
    let mut taken = KillsIt { broker: &mut broker, bytes: Vec::new() };
    let size = lead.get(&Space::Shared, &kept, &mut taken).unwrap();
    assert!(taken.bytes == large && size == large.len() as u64, "{size}");
}

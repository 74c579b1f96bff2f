//! Agents that lie in a run, on a real `nats-server`: the run comes to its end without them, with
//! all that the others did.

use std::io::{Cursor, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_conduct::{RunTime, Store};
use plimsoll_driver::null::NullDriver;
use plimsoll_fleet::broker::{TokenRules, local_fleet};
use plimsoll_fleet::fabric::{Address, Fabric, FabricError, Kept, Space};
use plimsoll_fleet::nats::Nats;
use plimsoll_fleet::protocol::AgentId;
use plimsoll_fleet::token::Token;
use plimsoll_model::{JobId, Moment, OpRecord, RunId, StageId, TargetKind, WallTime, WorkerId};
use plimsoll_record::{OpLog, OpLogWriter, Receiving, RunDirectory};
use serde_json::{Value, json};

use crate::broker::broker;
use crate::runs::{Fleet, On, begin_on, end, end_with_remarks, works};
use crate::task::{Task, about};

const ANY: TokenRules = TokenRules { uses: None, lasts: None };

const WORKLOAD: &str = "\
schema: plimsoll.workload/2
name: lies
sets: {o: {count: 80, size: 1KiB}, p: {size: 64B}}
stages:
- {name: load, prepares: true, jobs: [{workers: 8, work: {fill: o}}]}
- {name: main, jobs: [{workers: 8, ops: 400, work: {objects: [{get: o}, {put: p}]}}]}
- {name: again, jobs: [{workers: 8, ops: 80, work: {objects: [{get: o}, {get: p}]}}]}
";

/// Changes what the agent answers.
type OfAnswer = Arc<dyn Fn(&mut Value) + Send + Sync>;
/// Changes what it hands in under a name.
type OfContent = Arc<dyn Fn(&str, Vec<u8>) -> Vec<u8> + Send + Sync>;

/// How an agent lies.
#[derive(Clone)]
enum Lie {
    Answer(OfAnswer),
    Content(OfContent),
    /// It says this besides everything that it says.
    Besides(Vec<u8>),
    /// It changes its messages.
    Message(OfAnswer),
}

/// A fabric of an agent that lies; the agent itself knows nothing of it.
struct Lying {
    nats: Nats,
    lie: Lie,
}

impl Fabric for Lying {
    fn make(&self, agents: &[(AgentId, String)]) -> Result<(), FabricError> {
        self.nats.make(agents)
    }

    fn post(&self, to: &Address, message: Vec<u8>) -> Result<(), FabricError> {
        let mut said: Value = serde_json::from_slice(&message).unwrap();
        match &self.lie {
            Lie::Answer(change) => {
                let answer = said.pointer_mut("/says/what/run/state/done/answer");
                if let Some(answer) = answer {
                    change(answer);
                }
            }
            Lie::Message(change) => change(&mut said),
            Lie::Besides(bytes) => self.nats.post(to, bytes.clone())?,
            Lie::Content(_) => {}
        }
        self.nats.post(to, serde_json::to_vec(&said).unwrap())
    }

    fn put(&self, of: &Space, name: &str, content: &mut dyn Read) -> Result<Kept, FabricError> {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes).unwrap();
        if let Lie::Content(change) = &self.lie {
            bytes = change(name, bytes);
        }
        self.nats.put(of, name, &mut Cursor::new(bytes))
    }

    fn get(&self, of: &Space, kept: &Kept, to: &mut dyn Write) -> Result<u64, FabricError> {
        self.nats.get(of, kept, to)
    }

    fn remove(&self, of: &Space, prefix: &str) -> Result<(), FabricError> {
        self.nats.remove(of, prefix)
    }
}

fn answers(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Lie {
    Lie::Answer(Arc::new(change))
}

/// Has a field of an answer of some kind be something else.
fn field(pointer: &'static str, value: Value) -> Lie {
    answers(move |answer| {
        if let Some(field) = answer.pointer_mut(pointer) {
            *field = value.clone();
        }
    })
}

/// Has the agent hand in other files than it has.
fn hands_in(files: &'static [(&'static str, u64)]) -> Lie {
    let of = |(name, size): &(&str, u64)| {
        let kept = json!({"name": "run/file", "word": "x", "size_bytes": size, "sha256": ""});
        json!([name, kept])
    };
    field("/handed_in/files/here", files.iter().map(of).collect())
}

/// Has the parts of its op log be something else.
fn log(change: impl Fn(Vec<u8>) -> Vec<u8> + Send + Sync + 'static) -> Lie {
    Lie::Content(Arc::new(move |name, bytes| match name.contains("/ops/") {
        true => change(bytes),
        false => bytes,
    }))
}

/// Returns a part of an op log with each operation changed.
fn forged(bytes: &[u8], change: &dyn Fn(&mut OpRecord)) -> Vec<u8> {
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    for directory in [&from, &to] {
        std::fs::create_dir(directory).unwrap();
    }
    let file = WORKLOAD;
    let (run, _heard) = begin_on(&from.join("run"), file, null(), RunTime::machine());
    let directory = run.recording.directory.clone();
    let (id, endpoints) = (run.recording.manifest.run_id.clone(), vec!["null".to_owned()]);
    drop(run);
    let receiving = Receiving::begin(directory.path()).unwrap();
    receiving
        .keep("ops/part-000000.parquet", |to| {
            to.write_all(bytes).unwrap();
            Ok::<_, plimsoll_record::RecordError>(())
        })
        .unwrap();
    let mut ops = Vec::new();
    OpLog::open(&directory).unwrap().scan(&mut |op| ops.push(*op)).unwrap();
    ops.iter_mut().for_each(change);
    std::fs::remove_file(directory.path().join("ops/part-000000.parquet")).unwrap();
    let id = RunId::parse(&id).unwrap();
    let epoch = WallTime::from_unix_ns(0);
    let mut log = OpLogWriter::new(&directory, &id, epoch, &endpoints).without_saving();
    log.append(&ops).unwrap();
    log.finish().unwrap();
    std::fs::read(directory.path().join("ops/part-000000.parquet")).unwrap()
}

fn null() -> Store {
    Store::without_admin(NullDriver, TargetKind::Null)
}

/// What an agent tells and hands in that may stop nobody else, each with what it is.
fn lies() -> Vec<(&'static str, Lie)> {
    let max = || json!(u64::MAX);
    let ended = |change: fn(&mut Value)| {
        answers(move |answer| {
            if let Some(ended) = answer.get_mut("ended") {
                change(ended);
            }
        })
    };
    let changes = |told: Value| {
        answers(move |answer| {
            if let Some(changes) = answer.pointer_mut("/ended/changes") {
                *changes = json!({"here": told});
            }
        })
    };
    let members = |change: Value| changes(json!({"members": [[0, change]]}));
    let fill = json!([0, {"filled": {"worker": 0, "workers": 1, "done": 80, "failed": []}}]);
    let tree = json!({"job": 0, "of_tree": true, "place": 0, "made": [[0, u64::MAX]], "begun": []});
    vec![
        (
            "answers of the wrong kind",
            answers(|answer| {
                if answer.get("ended").is_some() {
                    *answer = json!("forgotten");
                }
            }),
        ),
        ("a file outside", hands_in(&[("../../x", 1)])),
        ("a file from the root on", hands_in(&[("/tmp/x", 1)])),
        ("a file below another", hands_in(&[("ops/../../x", 1)])),
        ("a file that is not there", hands_in(&[("ops/part-000000.parquet", 5)])),
        ("an absurd size", hands_in(&[("run.json", u64::MAX)])),
        (
            "a size of nothing",
            answers(|answer| {
                if let Some(files) = answer.pointer_mut("/handed_in/files/here") {
                    files
                        .as_array_mut()
                        .unwrap()
                        .iter_mut()
                        .for_each(|file| file[1]["size_bytes"] = json!(0));
                }
            }),
        ),
        ("no files", hands_in(&[])),
        (
            "a file twice",
            answers(|answer| {
                if let Some(files) = answer.pointer_mut("/handed_in/files/here") {
                    let files = files.as_array_mut().unwrap();
                    files.push(files[0].clone());
                }
            }),
        ),
        (
            "fewer operations than it hands in",
            ended(|ended| {
                for count in ["ops", "measured"] {
                    ended["outcome"]["jobs"][0][count] = json!(1);
                }
                for count in ["failed", "measured_failed", "unchecked"] {
                    ended["outcome"]["jobs"][0][count] = json!(0);
                }
            }),
        ),
        (
            "work for ever",
            Lie::Message(Arc::new(|message| {
                let state = message.pointer_mut("/says/what/run/state");
                if let Some(state) = state.filter(|state| state["done"]["step"].as_u64() > Some(3))
                {
                    *state = json!({"working": {"step": state["done"]["step"]}});
                }
            })),
        ),
        ("absurd counts", field("/ended/outcome/jobs/0/ops", max())),
        ("absurd bytes", field("/ended/outcome/jobs/0/bytes", max())),
        ("an absurd start", field("/ended/outcome/started_ns", max())),
        ("jobs that there are not", field("/ended/outcome/jobs/0/job", json!(200))),
        ("endless waits", field("/ended/outcome/recorder_wait_ns", max())),
        ("an absurd processor", field("/ended/outcome/cpu_ns", max())),
        (
            "errors of nobody",
            ended(|ended| {
                ended["outcome"]["errors"] = json!([{"class": "throttled", "job": 0, "kind": "GET",
                "endpoint": 60_000, "at_ns": 1, "message": "\u{1b}]0;x\u{7}"}]);
            }),
        ),
        (
            "workers of nobody",
            members(json!({"filled":
            {"worker": 0, "workers": 0, "done": 1, "failed": [1]}})),
        ),
        (
            "endless objects",
            members(json!({"put":
            {"owner": 0, "law": 0, "from": 0, "to": u64::MAX, "failed": []}})),
        ),
        (
            "endless fills",
            members(json!({"filled":
            {"worker": 0, "workers": 1, "done": u64::MAX, "failed": [1]}})),
        ),
        (
            "numbers without end",
            members(json!({"numbered":
            {"owner": 0, "law": 0, "next": u64::MAX}})),
        ),
        (
            "owners of nothing",
            members(json!({"put":
            {"owner": u32::MAX, "law": 0, "from": 0, "to": 2, "failed": []}})),
        ),
        (
            "numbers that no member has",
            members(json!({"put":
            {"owner": 0, "law": 0, "from": 1_u64 << 38, "to": (1_u64 << 38) + 1, "failed": []}})),
        ),
        (
            "laws that there are not",
            members(json!({"put":
            {"owner": 0, "law": 999, "from": 0, "to": 2, "failed": []}})),
        ),
        ("members that there are not", members(json!({"holds": [[1_u64 << 39, 0]]}))),
        ("more fills than members", changes(json!({"members": [fill, fill]}))),
        ("fills of nobody", changes(json!({"filled": [[0, 0, 1]]}))),
        ("names of trees that there are not", changes(json!({"there": [tree]}))),
        ("names that no store gave", changes(json!({"names": [[0, 0, 0, 1, "x"]]}))),
        (
            "sets that there are not",
            answers(|answer| {
                if let Some(changes) = answer.pointer_mut("/ended/changes") {
                    *changes = json!({"here": {"members": [[9, {"holds": []}]]}});
                }
            }),
        ),
        (
            "contents of others",
            answers(|answer| {
                if let Some(changes) = answer.pointer_mut("/ended/changes") {
                    *changes = json!({"kept": "../../x"});
                }
            }),
        ),
        ("a log of nothing", log(|bytes| vec![0; bytes.len()])),
        (
            "a log that is cut",
            log(|mut bytes| {
                bytes.truncate(bytes.len() / 2);
                bytes
            }),
        ),
        (
            "a log with wrong bits",
            log(|mut bytes| {
                (0..bytes.len()).step_by(37).for_each(|at| bytes[at] ^= 0x55);
                bytes
            }),
        ),
        (
            "a manifest of nothing",
            Lie::Content(Arc::new(|name, bytes| {
                if name.ends_with("run.json") { vec![b'['; bytes.len()] } else { bytes }
            })),
        ),
    ]
}

/// What it says besides, or otherwise, and is nevertheless believed to do its part.
fn noises() -> Vec<(&'static str, Lie)> {
    let live = |live: Value| {
        Lie::Message(Arc::new(move |said: &mut Value| {
            if let Some(run) = said.pointer_mut("/says/what/run") {
                run["live"] = live.clone();
            }
        }))
    };
    let counts = json!({"stage": 1, "kinds": {"GET": {"ended": {"ok": u64::MAX}, "bytes": u64::MAX,
        "objects": u64::MAX, "latency_ns": u64::MAX, "ttfb_ns": u64::MAX,
        "cells": {"0": u64::MAX, "1": u64::MAX, "4096": 1}}}});
    vec![
        ("garbage", Lie::Besides(b"\xff\xfe\x00".to_vec())),
        ("a long message", Lie::Besides(vec![b' '; 1_000_000])),
        ("a deep message", Lie::Besides(vec![b'['; 400_000])),
        (
            "a deep value",
            Lie::Besides({
                let deep = "[".repeat(100_000) + &"]".repeat(100_000);
                format!(r#"{{"language":"plimsoll.fleet/1","says":{deep}}}"#).into_bytes()
            }),
        ),
        ("absurd counters", live(counts)),
        (
            "absurd times",
            Lie::Message(Arc::new(|said: &mut Value| {
                if let Some(echo) = said.pointer_mut("/says/what/run/echo") {
                    // One of many that says nothing that could be.
                    if echo["probe"].as_u64().is_some_and(|probe| probe % 3 == 0) {
                        echo["heard_ns"] = json!(u64::MAX);
                        echo["said_ns"] = json!(u64::MAX);
                    }
                }
            })),
        ),
    ]
}

/// So many agents are in a fleet, each with one of the workers of every stage.
const AGENTS: usize = 8;
/// So many of them are honest, and the first by name.
const HONEST: usize = 2;

/// Has a fleet of honest agents and of some that lie carry a run out; returns why each of these was
/// lost, and how many operations of the first honest ones there are.
fn run(place: &Path, token: &Token, lies: &[(&str, Lie)]) -> (Vec<Option<String>>, usize) {
    let own = place.join(lies[0].0);
    let task = |index: usize| {
        let lie = index.checked_sub(HONEST).and_then(|at| lies.get(at)).map(|(_, lie)| lie.clone());
        let name = format!("node{index}");
        let works = works(&own.join("parts"), &On::Null, index);
        Task::join(token, about(&name, 1), works, &move |_, nats| match lie.clone() {
            Some(lie) => Arc::new(Lying { nats, lie }),
            None => Arc::new(nats),
        })
    };
    let tasks = (0..AGENTS).map(task).collect();
    let mut fleet = Fleet::on_nats(local_fleet(&place.join("fleet")).unwrap(), tasks);
    // Nothing that an honest agent does takes so long.
    fleet.limits.lag_max = Duration::from_secs(10);
    let (mut run, _heard) = begin_on(&own.join("run"), WORKLOAD, null(), RunTime::machine());
    fleet.direct_through(&mut run, &|fabric| fabric).unwrap();
    let directory = run.recording.directory.path().to_path_buf();
    let seen = end_with_remarks(run, None);
    fleet.end();
    // Its record can be read.
    RunDirectory::open(&directory).unwrap();
    let lost = seen.manifest.agents.iter().map(|agent| agent.lost.clone().map(|lost| lost.why));
    let lost: Vec<Option<String>> = lost.collect();
    for (index, lost) in lost.iter().enumerate() {
        let is_liar = (HONEST..HONEST + lies.len()).contains(&index);
        assert!(is_liar || lost.is_none(), "agent {index} does not lie: {lost:?}");
    }
    (lost[HONEST..HONEST + lies.len()].to_vec(), ops_of_honest(&seen.ops))
}

fn ops_of_honest(ops: &[OpRecord]) -> usize {
    ops.iter().filter(|op| (op.worker.0 as usize) < HONEST).count()
}

#[test]
fn an_agent_that_lies_harms_nobody_but_itself() {
    let place = tempfile::tempdir().unwrap();
    let Some(broker) = broker(place.path(), 900) else { return };
    let token = broker.token(ANY).unwrap();
    let (alone, heard) =
        begin_on(&place.path().join("alone"), WORKLOAD, null(), RunTime::machine());
    let honest = ops_of_honest(&end(alone, &heard).ops);
    let mut all = lies();
    let mut forge = |what, change: fn(&mut OpRecord)| {
        all.push((what, log(move |bytes| forged(&bytes, &change))));
    };
    forge("a stage that there is not", |op| op.stage = StageId(77));
    forge("a job that there is not", |op| op.job = JobId(9));
    forge("a worker that is another's", |op| op.worker = WorkerId(0));
    forge("operations without end", |op| op.end = Moment::from_ns(u64::MAX));
    forge("operations long after", |op| {
        let later = |at: Moment| Moment::from_ns(at.as_ns() + 1_000_000_000_000_000);
        (op.intended, op.start, op.end) = (later(op.intended), later(op.start), later(op.end));
        (op.first_byte, op.last_byte_sent) = (None, None);
    });
    forge("more bytes than there are", |op| op.bytes = 1 << 60);
    for lies in all.chunks(AGENTS - HONEST) {
        let (lost, ops) = run(place.path(), &token, lies);
        for ((what, _), lost) in lies.iter().zip(&lost) {
            println!("{what}: {lost:?}");
            assert!(lost.is_some(), "{what}: it is believed");
        }
        assert_eq!(ops, honest, "{lost:?}");
    }
    let noises = noises();
    let (lost, ops) = run(place.path(), &token, &noises);
    assert!(lost.iter().all(Option::is_none), "{lost:?}");
    assert_eq!(ops, honest);
    // Nothing was written anywhere else.
    let mut known: Vec<&str> = all.chunks(AGENTS - HONEST).map(|lies| lies[0].0).collect();
    known.extend(["fleet", "alone", noises[0].0]);
    let left = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<String> = left.map(|name| name.into_string().unwrap()).collect();
    assert!(left.iter().all(|name| known.contains(&&**name)), "{left:?}");
}

//! A coordinator that is killed in each phase of a run: agents leave and keep their parts, what
//! they recorded is collected, and what they wrote is removed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use plimsoll_model::OpKind;
use plimsoll_oracle::Script;
use plimsoll_record::schema::RunState;
use plimsoll_record::{OpLog, RunDirectory};
use rustix::process::Signal;
use serde_json::Value;

use crate::fleet::{Fleet, agents_at, json_of};
use crate::harness::{Background, Target, plimsoll, run_directory, scripted, stderr};

/// Longer than anything takes that comes at all.
const LONG: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);

/// Each operation takes a while, so that every phase does.
const SCRIPT: &str = "schema: plimsoll.oracle/1\nservice: {time: {constant: 20ms}}\n\
                      kinds: {delete: {time: {constant: 2s}}}\n";

/// What the stages do takes a second and a half each.
const WORKLOAD: &str = "\
schema: plimsoll.workload/2
name: phases
sets: {o: {count: 300, size: 1KiB}}
stages:
- {name: load, prepares: true, jobs: [{workers: 4, work: {fill: o}}]}
- {name: first, jobs: [{workers: 4, ops: 300, work: {objects: [{get: o}]}}]}
- {name: second, jobs: [{workers: 4, ops: 300, work: {objects: [{get: o}]}}]}
";

/// Waits until something is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let tries = LONG.as_millis() / LOOK.as_millis();
    let found = (0..tries).any(|_| {
        let found = is_so();
        if !found {
            std::thread::park_timeout(LOOK);
        }
        found
    });
    assert!(found, "it did not come to that: {what}");
}

/// Returns a document that is being written by somebody else, once it is there.
fn document(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// A run of a fleet of two, whose coordinator is killed.
struct Scene {
    fleet: Fleet,
    target: Target,
    coordinator: Background,
}

impl Scene {
    fn begin() -> Option<Self> {
        let fleet = Fleet::start(&["a", "b"], &[])?;
        let target = scripted(Some(Script::from_yaml(SCRIPT).unwrap()));
        std::fs::write(fleet.place.path().join("w.yaml"), WORKLOAD).unwrap();
        let coordinator = Background::start(fleet.command(&target, "run w.yaml"));
        Some(Self { fleet, target, coordinator })
    }

    fn place(&self) -> &Path {
        self.fleet.place.path()
    }

    /// Waits until the store has done some operations of a kind.
    fn await_ops(&self, kind: OpKind) {
        let oracle = self.target.oracle.as_ref().unwrap();
        wait_until("operations", || oracle.ledger().unwrap().operations_count(kind) > 20);
    }

    /// Returns where the part of an agent is recorded.
    fn part_of(&self, name: &str) -> PathBuf {
        run_directory(&self.fleet.files_of(name))
    }

    /// Waits until both agents have ended a stage.
    fn await_end_of_stage(&self, stage: usize) {
        wait_until("the end of the stage", || {
            ["a", "b"].iter().all(|name| {
                let part = document(&self.part_of(name).join("run.json"));
                part["stages"][stage]["ended_ns"].is_u64()
            })
        });
    }

    fn line(&self, line: &str) -> (Option<i32>, String, String) {
        let mut command = plimsoll(self.place());
        command.args(line.split(' ')).arg(&self.fleet.flag);
        told(command)
    }

    /// Kills the coordinator, and waits until nothing is left of its process.
    fn kill(&mut self) {
        self.coordinator.signal_until_end(Signal::KILL);
    }

    /// Checks what comes of a killed coordinator whose agents keep their parts.
    fn check_kept(mut self, phase: &str) {
        for agent in &mut self.fleet.agents {
            agent.hear("has not been heard of; leaving the run");
            agent.hear("is kept in");
        }
        let record = run_directory(self.place());
        let run = record.file_name().unwrap().to_str().unwrap();
        let id = run.strip_prefix("plimsoll-").unwrap();
        for agent in agents_at(self.place()) {
            let state = (&agent["kept"], &agent["busy"]);
            assert_eq!(state, (&serde_json::json!([id]), &Value::Null), "{phase}: {agent}");
        }
        let (code, _, said) = self.line(&format!("fleet collect {run}"));
        assert_eq!(code, Some(0), "{phase}: {said}");
        self.check_counts(phase, run);
        let (code, _, said) = self.line(&format!("fleet collect {run}"));
        assert!(said.contains("nothing of that run is missing"), "{phase}: {code:?} {said}");
        self.check_clean(phase, run);
    }

    /// Checks that the record has what the store has truly done, each operation once.
    fn check_counts(&self, phase: &str, run: &str) {
        let directory = RunDirectory::open(&self.place().join(run)).unwrap();
        let manifest = directory.read_manifest().unwrap();
        assert_eq!(manifest.state, RunState::Interrupted, "{phase}");
        let (mut counts, mut known) = ([0; 3], BTreeSet::new());
        let all = OpLog::open(&directory).unwrap().scan(&mut |op| {
            counts[usize::from(op.stage.0)] += 1;
            known.insert((op.stage.0, op.worker.0, op.start));
        });
        let all = all.unwrap();
        assert_eq!(known.len() as u64, all, "{phase}: operations that are there twice");
        let of_agents: u64 = manifest.agents.iter().map(|agent| agent.rows_count.unwrap()).sum();
        assert_eq!(of_agents, all, "{phase}");
        let of_stages: Vec<u64> =
            manifest.stages.iter().map(|stage| stage.ops_count.unwrap_or(0)).collect();
        assert_eq!(of_stages, counts[..of_stages.len()], "{phase}");
        let [load, first, second] = counts;
        let ledger = self.target.oracle.as_ref().unwrap().ledger().unwrap();
        assert_eq!(first + second, ledger.operations_count(OpKind::Get), "{phase}");
        let objects = self.target.listed();
        let own = objects.iter().filter(|key| !key.contains(".live/")).count();
        assert_eq!(load, own as u64, "{phase}: {objects:?}");
    }

    /// Checks that what the run wrote can be removed, and that its agents are free.
    fn check_clean(self, phase: &str, run: &str) {
        let clean = || {
            let mut command = plimsoll(self.place());
            command.args(["clean", run, "--yes"]);
            self.target.credentials(&mut command);
            told(command)
        };
        // Agents may work on for some seconds; the test does not wait until their mark has ended.
        let (code, _, said) = clean();
        assert!(code == Some(2) && said.contains("is still going on"), "{phase}: {said}");
        let marks = self.target.listed().into_iter().filter(|key| key.contains(".live/"));
        self.target.remove(&marks.collect::<Vec<_>>());
        let (code, _, said) = clean();
        assert_eq!(code, Some(0), "{phase}: {said}");
        assert_eq!(self.target.listed(), [""; 0], "{phase}");
        for name in ["a", "b"] {
            assert_eq!(self.fleet.kept(name), [""; 0], "{phase}: {name}");
        }
        for agent in agents_at(self.place()) {
            let state = (&agent["kept"], &agent["busy"]);
            assert_eq!(state, (&serde_json::json!([]), &Value::Null), "{phase}: {agent}");
        }
    }
}

fn told(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), text, stderr(&output))
}

/// A store that accepts connections and says nothing.
#[test]
fn a_coordinator_killed_before_it_has_assigned_anything_leaves_free_agents() {
    let Some(fleet) = Fleet::start(&["a", "b"], &[]) else { return };
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut target = scripted(None);
    target.host = mute.local_addr().unwrap().to_string();
    let line = "s3 get --objects 5 --obj.size 1KiB --duration 1s --concurrent 2 --run-dir run";
    let mut coordinator = Background::start(fleet.command(&target, line));
    coordinator.await_line("2 agents: a, b");
    // It waits for the store now, before it tells agents anything.
    let _accepted = mute.accept().unwrap();
    coordinator.signal(Signal::KILL);
    assert_eq!(coordinator.end().0, None);
    for agent in agents_at(fleet.place.path()) {
        let state = (&agent["kept"], &agent["busy"]);
        assert_eq!(state, (&serde_json::json!([]), &Value::Null), "{agent}");
    }
    let collect = ["fleet", "collect", "run", &fleet.flag];
    let mut command = plimsoll(fleet.place.path());
    command.args(collect);
    let (code, _, said) = told(command);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no fleet has carried that run out"), "{said}");
    let target = scripted(None);
    let line = "s3 get --objects 5 --obj.size 1KiB --duration 200ms --concurrent 2";
    let output = fleet.run(&target, line);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_coordinator_killed_while_objects_are_prepared_leaves_what_was_written() {
    let Some(mut scene) = Scene::begin() else { return };
    scene.await_ops(OpKind::Put);
    scene.kill();
    scene.check_kept("prepare");
}

#[test]
fn a_coordinator_killed_in_a_measured_stage_leaves_what_was_measured() {
    let Some(mut scene) = Scene::begin() else { return };
    scene.await_ops(OpKind::Get);
    scene.kill();
    scene.check_kept("measure");
}

#[test]
fn a_coordinator_killed_between_stages_leaves_those_that_ended() {
    let Some(mut scene) = Scene::begin() else { return };
    scene.await_ops(OpKind::Get);
    // It does not hear that the stage has ended, and nobody begins the next.
    scene.coordinator.signal(Signal::STOP);
    scene.await_end_of_stage(1);
    scene.kill();
    scene.check_kept("between");
}

#[test]
fn a_coordinator_killed_while_it_gathers_leaves_parts_with_the_agents() {
    let Some(mut scene) = Scene::begin() else { return };
    let all = || scene.target.oracle.as_ref().unwrap().ledger().unwrap();
    wait_until("the last stage", || all().operations_count(OpKind::Get) > 320);
    scene.coordinator.signal(Signal::STOP);
    scene.await_end_of_stage(2);
    // One hands in, and the other does not.
    scene.fleet.agents[1].signal(Signal::STOP);
    scene.coordinator.signal(Signal::CONT);
    let streams = scene.place().join("state/plimsoll/fleet/jetstream");
    wait_until("a part that is handed in", || has_pieces(&streams, "OBJ_plimsoll-of-a0001"));
    scene.kill();
    scene.fleet.agents[1].signal(Signal::CONT);
    scene.check_kept("gather");
}

/// Tells whether the server keeps anything in a stream.
fn has_pieces(directory: &Path, stream: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    entries.filter_map(Result::ok).any(|entry| {
        let path = entry.path();
        let is_piece = path.extension().is_some_and(|end| end == "blk");
        let is_of_it = path.to_str().is_some_and(|path| path.contains(stream));
        match path.is_dir() {
            true => has_pieces(&path, stream),
            false => is_piece && is_of_it && entry.metadata().is_ok_and(|of| of.len() > 0),
        }
    })
}

#[test]
fn a_coordinator_killed_while_it_cleans_leaves_a_whole_record() {
    let Some(mut scene) = Scene::begin() else { return };
    scene.coordinator.await_line("cleaning up");
    scene.kill();
    let record = run_directory(scene.place());
    let run = record.file_name().unwrap().to_str().unwrap().to_owned();
    for agent in &mut scene.fleet.agents {
        agent.hear("has not been heard of; leaving the run");
    }
    let (_, _, said) = scene.line(&format!("fleet collect {run}"));
    assert!(said.contains("nothing of that run is missing"), "{said}");
    let read = plimsoll(scene.place()).args(["analyze", &run, "--json"]).output().unwrap();
    let report = json_of(&read);
    assert_eq!(report["state"], "complete");
    let rows = report["agents"].as_array().unwrap().iter();
    assert_eq!(rows.map(|agent| agent["rows_count"].as_u64().unwrap()).sum::<u64>(), 900);
    scene.check_clean("clean", &run);
}

//! Machines of a fleet that run out of disk.

use std::process::Command;

use serde_json::Value;

use crate::fleet::{Fleet, agents_at, json_of};
use crate::harness::{oracle, plimsoll, stderr};

/// Returns a command as one whose files can have no more than so many times 512 B: what is written
/// beyond that fails as on a disk that is full.
fn short_of_disk(command: &Command, blocks: u32) -> Command {
    let mut short = Command::new("sh");
    // Without the trap it would be killed instead.
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    short.arg("-c").arg(script).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => short.env(name, value),
            None => short.env_remove(name),
        };
    }
    short.current_dir(command.get_current_dir().unwrap()).stdin(std::process::Stdio::null());
    short
}

/// So many operations that the log of each agent is twice as large as a disk of these tests: 63 KB
/// were written for 9,000.
const WORKLOAD: &str = "schema: plimsoll.workload/2\nname: long\n\
    sets: {o: {count: 30, size: 1KiB}}\n\
    stages:\n- {prepares: true, jobs: [{workers: 6, work: {fill: o}}]}\n\
    - {name: measure, jobs: [{workers: 6, ops: 20000, work: {objects: [{get: o}]}}]}\n";
const LINE: &str = "run long.yaml --run-dir run";

/// Starts a fleet with these agents and the workload.
fn fleet_of(names: &[&str]) -> Option<Fleet> {
    let fleet = Fleet::start(names, &[])?;
    std::fs::write(fleet.place.path().join("long.yaml"), WORKLOAD).unwrap();
    Some(fleet)
}

#[test]
fn an_agent_whose_disk_is_full_is_named_and_the_run_goes_on_without_it() {
    let Some(mut fleet) = fleet_of(&["a", "c"]) else { return };
    let short = short_of_disk(&plimsoll(fleet.place.path()), 32);
    fleet.join_as(short, "b", &[]);
    let target = oracle();
    let output = fleet.run(&target, LINE);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let lost = said.lines().find(|line| line.contains("agent b is lost")).expect(&said);
    assert!(lost.contains("File too large"), "{lost}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("DEGRADED: agent b was lost in stage"), "{text}");
    let read = plimsoll(fleet.place.path()).args(["analyze", "run", "--json"]).output().unwrap();
    let report = json_of(&read);
    let agents = report["agents"].as_array().unwrap();
    let rows: Vec<Option<u64>> = agents.iter().map(|agent| agent["rows_count"].as_u64()).collect();
    assert!(rows[0] > Some(0) && rows[2] > Some(0), "{rows:?}");
    assert!(agents[1]["lost"]["why"].as_str().unwrap().contains("File too large"), "{agents:?}");
    // It is free for the next one, which is small enough.
    let small = WORKLOAD.replace("ops: 20000", "ops: 60");
    std::fs::write(fleet.place.path().join("small.yaml"), small).unwrap();
    let output = fleet.run(&target, "run small.yaml --agents b");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn parts_stay_with_their_agents_where_the_coordinators_disk_is_full() {
    let Some(mut fleet) = fleet_of(&["a", "b"]) else { return };
    let target = oracle();
    let mut command = short_of_disk(&fleet.command(&target, LINE), 64);
    let output = command.output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let is_named = |agent: &str| {
        let why =
            format!("agent {agent} is lost: its record cannot be fetched: cannot write run/agents");
        said.lines().any(|line| line.contains(&why) && line.contains("File too large"))
    };
    assert!(is_named("a") && is_named("b"), "{said}");
    for agent in &mut fleet.agents {
        agent.hear("is kept in");
    }
    let place = fleet.place.path();
    for agent in agents_at(place) {
        assert_eq!(agent["kept"].as_array().unwrap().len(), 1, "{agent}");
    }
    let output = plimsoll(place).args(["fleet", "collect", "run", &fleet.flag]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let read = plimsoll(place).args(["analyze", "run", "--json"]).output().unwrap();
    let report = json_of(&read);
    let rows = |agent: &Value| agent["rows_count"].as_u64();
    let agents = report["agents"].as_array().unwrap();
    assert!(agents.iter().all(|agent| rows(agent) > Some(0)), "{agents:?}");
    let of_agents: u64 = agents.iter().filter_map(rows).sum();
    let stages = report["stages"].as_array().unwrap().iter();
    let of_stages: u64 = stages.filter_map(|stage| stage["op_log"]["rows_count"].as_u64()).sum();
    assert_eq!(of_agents, of_stages);
    for agent in agents_at(place) {
        assert_eq!(agent["kept"], serde_json::json!([]), "{agent}");
    }
}

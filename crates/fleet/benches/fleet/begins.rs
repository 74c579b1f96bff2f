//! When stages begin: how far agents are apart, and how long after the stage before.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use plimsoll_conduct::RunTime;
use plimsoll_record::schema::Manifest;

use crate::Plan;
use crate::crew::{Fleet, Process, join_task};
use crate::place::{Idle, begin};
use crate::table::{Row, Target, percentile};
use crate::task::Task;

const AGENTS: usize = 50;
/// How many agents carry the stages out whose overhead is measured.
const FEW: usize = 4;

/// Returns stages in which each worker does one operation, which takes no time.
fn empty_stages(count: usize, workers: usize) -> String {
    let mut text = String::new();
    for stage in 0..count {
        let job =
            format!("{{workers: {workers}, ops: {workers}, work: {{objects: [{{get: o}}]}}}}");
        writeln!(text, "- {{name: s{stage}, jobs: [{job}]}}").unwrap();
    }
    text
}

/// Returns stages in which each of so many workers does one operation as it begins, and goes on
/// only when all others have begun: as they do that are waiting for a store.
fn waiting_stages(count: usize, workers: usize) -> String {
    let mut text = String::new();
    for stage in 0..count {
        let job = format!("workers: {workers}, ops: {workers}, work: {{objects: [{{get: o}}]}}");
        let later = format!("{{name: later, start_delay: 100ms, {job}}}");
        writeln!(text, "- {{name: s{stage}, jobs: [{{name: first, {job}}}, {later}]}}").unwrap();
    }
    text
}

/// What was seen of the beginnings of stages, in ms.
#[derive(Default)]
struct Begins {
    /// By round: the 99th percentile and the most.
    p99: Vec<f64>,
    most: Vec<f64>,
    /// By agent and stage: by how much its clock was misjudged, and by how much it may be, as is
    /// recorded.
    misjudged: Vec<f64>,
    uncertain: Vec<f64>,
    /// How long it took all agents to join, one after the other.
    joined: f64,
}

/// Measures how far from the agreed instant each agent's first operation starts. All agents are
/// in this process and share one clock, so what is found of their clocks is held against the
/// truth, that they are the same.
fn measure(plan: &Plan, count: usize) -> Begins {
    let clock = RunTime::machine().clock;
    let fleet = Fleet::start(count as u32);
    let token = fleet.token();
    let begun = Instant::now();
    let place = fleet.place.path().join("agents");
    let agents: Vec<Task> = (0..count)
        .map(|index| {
            let (clock, place) = (Arc::clone(&clock), place.clone());
            join_task(&token, &format!("node{index:02}"), Idle { clock, place })
        })
        .collect();
    let mut begins = Begins { joined: begun.elapsed().as_secs_f64() * 1e3, ..Begins::default() };
    for _ in 0..plan.rounds() {
        let mut run = begin(fleet.place.path(), &waiting_stages(plan.stages(), count), &clock);
        let fabric = fleet.direct(&mut run.run, count);
        let seen = run.end();
        let reading = |stage: u8, agent: usize| {
            let clock = &seen.manifest.agents[agent].clock;
            *clock.iter().find(|reading| reading.stage_index == stage).unwrap()
        };
        let starts = fabric.starts_ns();
        let mut apart: Vec<f64> = Vec::new();
        for op in seen.ops.iter().filter(|op| op.job.0 == 0) {
            let (stage, agent) = (op.stage.0, op.worker.0 as usize);
            let own = reading(stage, agent);
            // It was agreed on by the coordinator's clock, and said to the first agent by what was
            // found of its clock.
            let agreed = starts[usize::from(stage)] as i64 - reading(stage, 0).offset_ns;
            let began = op.start.as_ns() as i64 + own.offset_ns;
            apart.push((began - agreed).unsigned_abs() as f64 / 1e6);
            begins.misjudged.push(own.offset_ns.unsigned_abs() as f64 / 1e6);
            begins.uncertain.push(own.uncertainty_ns as f64 / 1e6);
        }
        assert_eq!(apart.len(), count * plan.stages());
        begins.p99.push(percentile(&mut apart, 99.0));
        begins.most.push(percentile(&mut apart, 100.0));
    }
    agents.into_iter().for_each(Task::end);
    begins
}

/// Measures how far apart agents begin: many on few cores, and one for each core.
pub(crate) fn skew(plan: &Plan) -> Vec<Row> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (many, mut rows) = (measure(plan, AGENTS), Vec::new());
    let p99 = format!("start skew of {AGENTS} agents on {cores} cores, p99");
    rows.push(Row::new(p99, "ms", many.p99, Target::Most(5.0)));
    for (what, values) in [
        ("– the farthest", many.most),
        ("– by how much their clocks were misjudged", many.misjudged),
        ("– by how much they may be, as is recorded", many.uncertain),
        ("– all agents join by a token, one after the other", vec![many.joined]),
    ] {
        rows.push(Row::new(what, "ms", values, Target::None));
    }
    let few = measure(plan, cores);
    let p99 = format!("start skew of {cores} agents, one for each core, p99");
    rows.push(Row::new(p99, "ms", few.p99, Target::Most(5.0)));
    rows.push(Row::new("– the farthest", "ms", few.most, Target::None));
    rows
}

/// Returns what lies between the end of each stage and the beginning of the next.
fn gaps(manifest: &Manifest) -> Vec<f64> {
    let pairs = manifest.stages.windows(2);
    let gap = |pair: &[plimsoll_record::schema::Stage]| {
        let (ended, started) = (pair[0].ended_ns.unwrap(), pair[1].started_ns.unwrap());
        (started as f64 - ended as f64) / 1e6
    };
    pairs.map(gap).collect()
}

/// Measures what lies between two stages without work.
pub(crate) fn stages(plan: &Plan) -> Vec<Row> {
    let clock = RunTime::machine().clock;
    let fleet = Fleet::start(FEW as u32);
    let _agents: Vec<Process> =
        (0..FEW).map(|index| Process::join(&fleet, &format!("node{index}"))).collect();
    let (mut by_fleet, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds() {
        let stages = empty_stages(plan.stages() + 1, FEW);
        let mut run = begin(fleet.place.path(), &stages, &clock);
        fleet.direct(&mut run.run, FEW);
        by_fleet.extend(gaps(&run.end().manifest));
        alone.extend(gaps(&begin(fleet.place.path(), &stages, &clock).end().manifest));
    }
    vec![
        Row::new(format!("from stage to stage, {FEW} agents"), "ms", by_fleet, Target::Most(100.0)),
        Row::new("– in one process without a fleet", "ms", alone, Target::None),
    ]
}

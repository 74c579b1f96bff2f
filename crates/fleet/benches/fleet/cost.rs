//! What it costs a machine to be an agent.

use std::path::Path;
use std::process::Command;

use plimsoll_conduct::RunTime;
use rustix::process::Signal;

use crate::Plan;
use crate::crew::{Fleet, Process, own_cpu};
use crate::place::begin;
use crate::table::{Row, Target};

/// The word that makes this program carry a run out without a fleet.
pub(crate) const ALONE: &str = "alone";
/// How long nothing is done.
const REST_SECONDS: f64 = 10.0;

fn work(ops: u64) -> String {
    let job = format!("{{workers: 16, ops: {ops}, work: {{objects: [{{get: o}}]}}}}");
    format!("- {{name: main, jobs: [{job}]}}\n")
}

/// Hardly anything, so that there are counters that are told of.
fn rest() -> String {
    let job = "{workers: 4, pacing: {capped: 10/s}, work: {objects: [{get: o}]}}";
    format!("- {{name: main, duration: {REST_SECONDS}s, jobs: [{job}]}}\n")
}

/// Carries a run out without a fleet, and says what that cost.
pub(crate) fn be_alone(stages: &str, place: &Path) {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    std::fs::create_dir_all(place).unwrap();
    let mut run = begin(place, stages, &RunTime::machine().clock);
    run.carry_out();
    println!("{}", own_cpu().as_nanos());
}

/// Returns the seconds that a process without a fleet has used from its beginning to the end of
/// its run.
fn alone(fleet: &Fleet, stages: &str) -> f64 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([ALONE, stages]).arg(fleet.place.path().join(ALONE));
    let nanoseconds: f64 = Process::start(command).line().parse().unwrap();
    std::fs::remove_dir_all(fleet.place.path().join(ALONE)).unwrap();
    nanoseconds / 1e9
}

/// Returns the seconds that a process has used that is an agent: until it had joined, and from
/// then to the end of its run.
fn as_agent(fleet: &Fleet, stages: &str, number: usize) -> (f64, f64) {
    let mut agent = Process::join(fleet, &format!("node{number:02}"));
    let joined = agent.cpu();
    let mut run = begin(fleet.place.path(), stages, &RunTime::machine().clock);
    fleet.direct(&mut run.run, 1);
    run.carry_out();
    let used = agent.cpu();
    (joined.as_secs_f64(), (used - joined).as_secs_f64())
}

/// Compares the processor time of a process that carries a run out by itself with that of an
/// agent that has all of the same run as its part.
pub(crate) fn cost(plan: &Plan) -> Vec<Row> {
    let (mut more, mut joins, mut busy, mut seconds) = (vec![], vec![], vec![], vec![]);
    let fleet = Fleet::start(100);
    let stages = work(plan.ops());
    for round in 0..plan.rounds() {
        // Who comes first changes from round to round.
        let (before, (joined, used), after) = match round % 2 {
            0 => (Some(alone(&fleet, &stages)), as_agent(&fleet, &stages, round), None),
            _ => {
                let agent = as_agent(&fleet, &stages, round);
                (None, agent, Some(alone(&fleet, &stages)))
            }
        };
        let own = before.or(after).unwrap();
        more.push(((joined + used) / own - 1.0) * 100.0);
        joins.push(joined * 1e3);
        busy.push(joined + used);
        seconds.push(own);
    }
    let (mut idle, mut idle_alone) = (vec![], vec![]);
    for round in 0..plan.rounds().min(3) {
        let (_, used) = as_agent(&fleet, &rest(), 50 + round);
        idle.push(used * 1e3 / REST_SECONDS);
        idle_alone.push(alone(&fleet, &rest()) * 1e3 / REST_SECONDS);
    }
    let ops = plan.ops() / 1_000_000;
    vec![
        Row::new(
            format!("CPU of an agent above that of a process alone, {ops} million operations"),
            "%",
            more,
            Target::Most(1.0),
        ),
        Row::new("– the agent, all of it", "s", busy, Target::None),
        Row::new("– the process alone, all of it", "s", seconds, Target::None),
        Row::new("– of the agent's, until it had joined", "ms", joins, Target::None),
        Row::new("CPU per second of an idle agent in a stage", "ms", idle, Target::None),
        Row::new("– of an idle process alone", "ms", idle_alone, Target::None),
    ]
}

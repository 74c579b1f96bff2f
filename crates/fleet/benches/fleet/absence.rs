//! How soon the coordinator says that an agent is not responding.

use std::time::Duration;

use plimsoll_conduct::RunTime;
use plimsoll_model::{Moment, SharedClock};
use rustix::process::Signal;

use crate::Plan;
use crate::crew::{Fleet, Process};
use crate::place::{Heard, begin};
use crate::table::{Row, Target};

/// How long is waited for what must come.
const LONG: Duration = Duration::from_secs(20);

/// Waits until a line is said, and returns how long that took from `from` on.
fn await_line(heard: &Heard, text: &str, from: Moment, clock: &SharedClock) -> f64 {
    loop {
        if let Some(at) = heard.when(text, from) {
            return at.since(from).as_secs_f64() * 1e3;
        }
        assert!(clock.now().since(from) < LONG, "nobody said `{text}`");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Freezes each agent for a while, then kills each; returns after how long that was said.
fn hurt(agents: &[Process], heard: &Heard, clock: &SharedClock) -> (Vec<f64>, Vec<f64>) {
    let (mut frozen, mut killed) = (Vec::new(), Vec::new());
    std::thread::sleep(Duration::from_secs(2));
    let missing = |index: usize| format!("agent {} has not been heard of", name(index));
    for (index, agent) in agents.iter().enumerate() {
        let from = clock.now();
        agent.signal(Signal::STOP);
        frozen.push(await_line(heard, &missing(index), from, clock));
        agent.signal(Signal::CONT);
    }
    // Who was frozen last is heard of again before any is killed.
    std::thread::sleep(Duration::from_secs(1));
    for (index, agent) in agents.iter().enumerate() {
        let from = clock.now();
        agent.signal(Signal::KILL);
        killed.push(await_line(heard, &missing(index), from, clock));
        // Not always at the same point of what is said every half a second.
        std::thread::sleep(Duration::from_millis(70));
    }
    (frozen, killed)
}

fn name(index: usize) -> String {
    format!("node{index:02}")
}

/// Measures from a signal to an agent's process to the coordinator's saying so, while a stage
/// goes on.
pub(crate) fn absence(plan: &Plan) -> Vec<Row> {
    let clock = RunTime::machine().clock;
    let count = plan.faults();
    let fleet = Fleet::start(count as u32 + 1);
    // The last one is spared, so that the run goes on.
    let agents: Vec<Process> =
        (0..=count).map(|index| Process::join(&fleet, &name(index))).collect();
    let job = format!("workers: {}, pacing: {{capped: 100/s}}", agents.len());
    let job = format!("{{{job}, work: {{objects: [{{get: o}}]}}}}");
    let stages = format!("- {{name: long, duration: 5m, jobs: [{job}]}}\n");
    let mut run = begin(fleet.place.path(), &stages, &clock);
    fleet.direct(&mut run.run, agents.len());
    let (heard, stop) = (run.heard.clone(), run.stop.clone());
    let (frozen, killed) = std::thread::scope(|scope| {
        let faults = scope.spawn(|| {
            let seen = hurt(&agents[..count], &heard, &clock);
            stop.request();
            seen
        });
        run.run.run(None, None).unwrap();
        faults.join().unwrap()
    });
    vec![
        Row::new("an agent that is killed is noticed", "ms", killed, Target::Most(100.0)),
        Row::new("an agent that is frozen is noticed", "ms", frozen, Target::Most(2_500.0)),
    ]
}

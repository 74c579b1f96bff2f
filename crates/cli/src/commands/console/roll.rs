//! The agents of a fleet, asked again and again by a thread of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use plimsoll_conduct::RunTime;
use plimsoll_console::{Agent, AgentState};
use plimsoll_fleet::protocol::{AgentId, MachineState};
use plimsoll_fleet::roll::{Recruit, Roll};
use plimsoll_model::WallTime;

use super::runner::{Known, now_ms};
use crate::args::fleet::FleetArgs;
use crate::fleet::{self, Reachable};

/// How often agents are asked whether they are there.
const ROLL_EVERY: Duration = Duration::from_secs(5);
/// How often it is looked whether the console has ended.
const LOOK: Duration = Duration::from_millis(200);

/// Begins to ask.
pub(super) fn begin(args: &FleetArgs, known: &Arc<Mutex<Known>>) -> Result<()> {
    let (args, known) = (args.clone(), Arc::downgrade(known));
    let thread = thread::Builder::new().name("console-roll".to_owned());
    thread.spawn(move || keep_roll(&args, &known))?;
    Ok(())
}

/// Asks again and again who is there, for as long as somebody wants to know.
fn keep_roll(args: &FleetArgs, known: &Weak<Mutex<Known>>) {
    let mut fleet = None;
    let mut before: BTreeMap<AgentId, MachineState> = BTreeMap::new();
    loop {
        if fleet.is_none() {
            fleet = fleet::reach(&args.reach()).ok();
        }
        let roll = fleet.as_ref().map(Reachable::all_by_the_clock);
        let Some(kept) = known.upgrade() else { return };
        let agents = match roll {
            Some(Ok((roll, epoch))) => {
                let of = |recruit: &Recruit| agent(recruit, (&roll, epoch), &before);
                let agents = Some(roll.present.iter().map(of).collect());
                let machine = |recruit: &Recruit| {
                    Some((recruit.id.clone(), **recruit.about.machine.as_ref()?))
                };
                before = roll.present.iter().filter_map(machine).collect();
                agents
            }
            Some(Err(_)) => {
                fleet = None;
                None
            }
            None => None,
        };
        let mut kept_now = kept.lock().unwrap_or_else(PoisonError::into_inner);
        match agents {
            Some(agents) => kept_now.agents = agents,
            None => kept_now.agents.iter_mut().for_each(|agent| agent.state = AgentState::Away),
        }
        drop(kept_now);
        drop(kept);
        let clock = RunTime::machine().clock;
        while clock.now().as_ns() < ROLL_EVERY.as_nanos() as u64 {
            thread::park_timeout(LOOK);
            if known.strong_count() == 0 {
                return;
            }
        }
    }
}

fn agent(
    recruit: &Recruit,
    (roll, epoch): (&Roll, WallTime),
    before: &BTreeMap<AgentId, MachineState>,
) -> Agent {
    let about = &recruit.about;
    let machine = about.machine.as_ref();
    let clock = roll.clocks.get(&recruit.id);
    let earlier = before.get(&recruit.id);
    Agent {
        name: recruit.name.clone(),
        address: None,
        state: if about.busy.is_some() { AgentState::Busy } else { AgentState::Ready },
        clock_offset_ms: clock.map(|clock| clock.offset_ns(epoch) as f64 / 1e6),
        cpu_percent: machine.zip(earlier).and_then(|(now, before)| now.cpu_percent_since(before)),
        cores_count: machine.map(|machine| machine.cores_count),
        version: Some(about.version.clone()),
        seen_at_ms: now_ms(),
        run: about.busy.clone(),
    }
}

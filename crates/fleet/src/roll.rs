//! Who is there.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_model::{Clock, Moment, WallTime};

use crate::fabric::{Address, Arrival, Arrivals, Fabric, FabricError};
use crate::protocol::{About, AgentId, Ask, MessageError, Tell, WEIGHT_MAX, What, decode, encode};
use crate::wire::{Answer, LiveDoc, Order};

/// How often the roll is called.
const CALL_EVERY: Duration = Duration::from_millis(250);

/// An agent that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recruit {
    /// What it is called on its fabric.
    pub id: AgentId,
    /// Its display name: its own name, unless a present agent already has that.
    pub name: String,
    /// Which process of that id it is.
    pub incarnation: u64,
    /// What it tells of itself.
    pub about: About,
}

/// What came of calling the roll.
#[derive(Clone, Debug, Default)]
pub struct Roll {
    /// Who is there, by name and id.
    pub present: Vec<Recruit>,
    /// What was not understood: others' versions.
    pub strangers: Vec<String>,
    /// What the wall clocks of those who are there showed.
    pub clocks: BTreeMap<AgentId, ClockSeen>,
}

/// What an agent's wall clock showed in the shortest exchange with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSeen {
    /// When it was asked, by the caller's clock.
    pub sent: Moment,
    /// When it had answered.
    pub received: Moment,
    /// What it showed in between, in nanoseconds since 1970.
    pub wall_ns: u64,
}

impl ClockSeen {
    /// Returns by how many nanoseconds it is ahead of the caller's, whose wall time at its epoch
    /// this is; wrong by half of the exchange at most.
    pub fn offset_ns(&self, wall_epoch: WallTime) -> i64 {
        let middle = u64::midpoint(self.sent.as_ns(), self.received.as_ns());
        let own = i128::from(wall_epoch.as_unix_ns()) + i128::from(middle);
        let offset = i128::from(self.wall_ns) - own;
        i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX })
    }

    fn took(&self) -> Duration {
        self.received.since(self.sent)
    }
}

/// How the roll is called.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Who calls.
    pub coordinator: u64,
    /// Paths of which agents are to tell what lies there; who has not told is not there yet.
    pub look: &'a [String],
    /// How long.
    pub limit: Duration,
}

/// Calls the roll until `is_enough`, which also sees for how long nobody new has come, or until the
/// limit.
pub fn call_roll(
    fabric: &dyn Fabric,
    arrivals: &Arrivals,
    clock: &dyn Clock,
    Call { coordinator, look, limit }: Call<'_>,
    is_enough: &mut dyn FnMut(&[Recruit], Duration) -> bool,
) -> Result<Roll, FabricError> {
    let mut found: BTreeMap<AgentId, Recruit> = BTreeMap::new();
    let mut strangers = Vec::new();
    let begun = clock.now();
    let mut clocks: BTreeMap<AgentId, ClockSeen> = BTreeMap::new();
    let mut calls: Vec<Moment> = Vec::new();
    let (mut called, mut newest): (Option<Moment>, Moment) = (None, begun);
    loop {
        let now = clock.now();
        let present = present(&found);
        if now.since(begun) >= limit || is_enough(&present, now.since(newest)) {
            clocks.retain(|id, _| found.contains_key(id));
            return Ok(Roll { present, strangers, clocks });
        }
        if called.is_none_or(|at| now.since(at) >= CALL_EVERY) {
            called = Some(now);
            calls.push(now);
            let number = u32::try_from(calls.len()).unwrap_or(0);
            let roll: Ask<Order> = Ask::Roll { coordinator, look: look.to_vec(), number };
            // One that does not fit is one that nobody answers.
            if let Ok(message) = encode(&roll) {
                fabric.post(&Address::Agents, message)?;
            }
        }
        let arrived = arrivals.recv_timeout(Duration::from_millis(20));
        let Ok(Arrival::Message { from, bytes }) = arrived else { continue };
        match decode::<Tell<Answer, LiveDoc>>(&bytes) {
            Ok(tell) if from.as_ref().is_some_and(|from| *from != tell.agent) => {}
            Ok(Tell { what: What::Here(about), .. }) if about.places.len() != look.len() => {}
            Ok(Tell { what: What::Here(about), .. }) if !about.is_printable() => {}
            Ok(Tell { agent, what: What::Here(about), .. }) if about.weight > WEIGHT_MAX => {
                note(&mut strangers, heavy(&agent, about.weight));
            }
            Ok(Tell { agent, incarnation, what: What::Here(about), .. }) => {
                let received = clock.now();
                let of_machine = about.machine.as_ref().and_then(|machine| {
                    let asked = (machine.number as usize).checked_sub(1)?;
                    let (sent, wall_ns) = (*calls.get(asked)?, machine.wall_ns);
                    Some(ClockSeen { sent, received, wall_ns })
                });
                if let Some(seen) = of_machine
                    && clocks.get(&agent).is_none_or(|have| seen.took() < have.took())
                {
                    clocks.insert(agent.clone(), seen);
                }
                let name = about.name.clone();
                let recruit = Recruit { id: agent.clone(), name, incarnation, about };
                if found.insert(agent, recruit).is_none() {
                    newest = clock.now();
                }
            }
            Ok(Tell { agent, incarnation, what: What::Leaving, .. }) => {
                if found.get(&agent).is_some_and(|known| known.incarnation == incarnation) {
                    found.remove(&agent);
                }
            }
            Ok(_) | Err(MessageError::Form(_) | MessageError::Long { .. }) => {}
            Err(error @ MessageError::Language { .. }) => {
                let who = from.map_or_else(|| "an agent".to_owned(), |id| id.as_str().to_owned());
                note(&mut strangers, format!("{who}: {error}"));
            }
        }
    }
}

/// The most messages that were not understood and are listed.
const STRANGERS_MAX: usize = 100;

fn note(strangers: &mut Vec<String>, text: String) {
    if strangers.len() < STRANGERS_MAX && !strangers.contains(&text) {
        strangers.push(text);
    }
}

fn heavy(agent: &AgentId, weight: u32) -> String {
    let id = agent.as_str();
    format!("{id} is left out: its weight is {weight}, and the most is {WEIGHT_MAX} (--weight)")
}

/// Returns who is there, by name and id. Of several that call themselves the same, the one that
/// joined first is called so, and the others have a number behind it: `vm`, `vm-2`, `vm-3`.
fn present(found: &BTreeMap<AgentId, Recruit>) -> Vec<Recruit> {
    let mut present: Vec<Recruit> = found.values().cloned().collect();
    // Numbers of agents grow as they join, and one may be longer than another.
    present.sort_by_key(|each| (each.id.as_str().len(), each.id.clone()));
    let mut taken: BTreeSet<String> = present.iter().map(|each| each.name.clone()).collect();
    let mut own: BTreeSet<String> = BTreeSet::new();
    for each in present.iter_mut().filter(|each| !own.insert(each.name.clone())) {
        let mut numbered = (2_u32..).map(|number| format!("{}-{number}", each.name));
        let free = numbered.find(|name| taken.insert(name.clone()));
        each.name = free.expect("there are more numbers than agents");
    }
    present.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    present
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use plimsoll_engine::RunClock;

    use super::*;
    use crate::fabric::{Deliver, Kept, Space, arrivals};
    use crate::protocol::MachineState;

    /// Agents that answer each call at once, the second one to another call than it was asked.
    struct Answers(Deliver, SharedEpoch);

    /// What the wall clock shows at the epoch of the clock.
    type SharedEpoch = u64;

    impl Fabric for Answers {
        fn post(&self, _: &Address, bytes: Vec<u8>) -> Result<(), FabricError> {
            let Ask::Roll { number, coordinator, .. } = decode::<Ask<Order>>(&bytes).unwrap()
            else {
                return Ok(());
            };
            for (name, number) in [("a", number), ("c", number), ("b", number + 9)] {
                // Its clock is ten seconds ahead of that of the caller, who has just begun.
                let wall_ns = self.1 + 10_000_000_000;
                let machine =
                    Some(Box::new(MachineState { number, wall_ns, ..MachineState::default() }));
                // The third says that it takes more than any agent may.
                let weight = if name == "c" { WEIGHT_MAX + 1 } else { 1 };
                let about = About { machine, weight, ..about(name) };
                let id = AgentId::new(name).unwrap();
                let tell: Tell<Answer, LiveDoc> = Tell {
                    agent: id.clone(),
                    incarnation: 1,
                    number: 1,
                    coordinator: Some(coordinator),
                    what: What::Here(about),
                };
                let bytes = encode(&tell).unwrap();
                let arrival = Arrival::Message { from: Some(id), bytes };
                assert!(self.0.deliver(arrival));
            }
            Ok(())
        }

        fn make(&self, _: &[(AgentId, String)]) -> Result<(), FabricError> {
            unreachable!("nothing is kept")
        }

        fn put(&self, _: &Space, _: &str, _: &mut dyn Read) -> Result<Kept, FabricError> {
            unreachable!("nothing is kept")
        }

        fn get(&self, _: &Space, _: &Kept, _: &mut dyn Write) -> Result<u64, FabricError> {
            unreachable!("nothing is kept")
        }

        fn remove(&self, _: &Space, _: &str) -> Result<(), FabricError> {
            unreachable!("nothing is kept")
        }
    }

    fn about(name: &str) -> About {
        About {
            name: name.to_owned(),
            version: "1".to_owned(),
            weight: 1,
            is_encrypted: false,
            busy: None,
            kept: Vec::new(),
            places: Vec::new(),
            machine: None,
        }
    }

    #[test]
    fn no_two_agents_that_are_there_have_the_same_name() {
        let recruit = |(id, name): (&str, &str)| {
            let id = AgentId::new(id).unwrap();
            let recruit = Recruit {
                id: id.clone(),
                name: name.to_owned(),
                incarnation: 1,
                about: about(name),
            };
            (id, recruit)
        };
        let found = [
            ("a10000", "vm"),
            ("a0002", "vm"),
            ("a0009", "vm"),
            ("a0001", "vm-2"),
            ("a0003", "node"),
        ];
        let present = present(&found.into_iter().map(recruit).collect());
        let named = present.iter().map(|each| (each.id.as_str(), &*each.name));
        assert_eq!(
            named.collect::<Vec<_>>(),
            [
                ("a0003", "node"),
                ("a0002", "vm"),
                ("a0001", "vm-2"),
                ("a0009", "vm-3"),
                ("a10000", "vm-4")
            ]
        );
        // An agent that comes back is recognised by the name that it calls itself.
        assert!(present.iter().all(|each| each.name.starts_with(&each.about.name)));
    }

    #[test]
    fn clocks_are_told_by_the_exchange_that_they_answer() {
        let (to, arrivals) = arrivals();
        let wall_epoch = WallTime::from_unix_ns(1_700_000_000_000_000_000);
        let fabric = Answers(to, wall_epoch.as_unix_ns());
        let clock = RunClock::start();
        let call = Call { coordinator: 1, look: &[], limit: Duration::from_secs(60) };
        let roll =
            call_roll(&fabric, &arrivals, &clock, call, &mut |present, _| present.len() == 2);
        let roll = roll.unwrap();
        assert_eq!(roll.present.len(), 2);
        let left_out = ["c is left out: its weight is 1000001, and the most is 1000000 (--weight)"];
        assert_eq!(roll.strangers, left_out);
        let [(id, seen)] = roll.clocks.iter().collect::<Vec<_>>()[..] else {
            panic!("{:?}", roll.clocks)
        };
        assert_eq!(id.as_str(), "a");
        let middle = u64::midpoint(seen.sent.as_ns(), seen.received.as_ns());
        assert_eq!(seen.offset_ns(wall_epoch), 10_000_000_000 - middle as i64);
        let before = MachineState { busy_ticks: 50, ticks: 100, ..MachineState::default() };
        let now = MachineState { busy_ticks: 75, ticks: 200, ..MachineState::default() };
        assert_eq!(now.cpu_percent_since(&before), Some(25.0));
        assert_eq!(before.cpu_percent_since(&now), None);
    }
}

//! Who is there.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use plimsoll_model::{Clock, Moment};

use crate::fabric::{Address, Arrival, Fabric, FabricError};
use crate::protocol::{About, AgentId, Ask, MessageError, Tell, What, decode, encode};
use crate::wire::{Answer, LiveDoc, Order};

/// How often the roll is called.
const CALL_EVERY: Duration = Duration::from_millis(250);

/// An agent that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recruit {
    /// What it is called on its fabric.
    pub id: AgentId,
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
    arrivals: &Receiver<Arrival>,
    clock: &dyn Clock,
    Call { coordinator, look, limit }: Call<'_>,
    is_enough: &mut dyn FnMut(&[Recruit], Duration) -> bool,
) -> Result<Roll, FabricError> {
    let mut found: BTreeMap<AgentId, Recruit> = BTreeMap::new();
    let mut strangers = Vec::new();
    let begun = clock.now();
    let (mut called, mut newest): (Option<Moment>, Moment) = (None, begun);
    loop {
        let now = clock.now();
        let present = by_name(&found);
        if now.since(begun) >= limit || is_enough(&present, now.since(newest)) {
            return Ok(Roll { present, strangers });
        }
        if called.is_none_or(|at| now.since(at) >= CALL_EVERY) {
            called = Some(now);
            let roll: Ask<Order> = Ask::Roll { coordinator, look: look.to_vec() };
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
            Ok(Tell { agent, incarnation, what: What::Here(about), .. }) => {
                let recruit = Recruit { id: agent.clone(), incarnation, about };
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
                let text = format!("{who}: {error}");
                if !strangers.contains(&text) {
                    strangers.push(text);
                }
            }
        }
    }
}

fn by_name(found: &BTreeMap<AgentId, Recruit>) -> Vec<Recruit> {
    let mut present: Vec<Recruit> = found.values().cloned().collect();
    present.sort_by(|a, b| (&a.about.name, &a.id).cmp(&(&b.about.name, &b.id)));
    present
}

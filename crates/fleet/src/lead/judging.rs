//! Sees what agents tell of a stage while it goes on: counters, and what stop rules have to know.

use std::sync::Arc;

use plimsoll_engine::{EndReason, Live, PartSeen, StageRules};

use super::hearing::Machine;
use crate::contents::fetch;
use crate::coordinator::Standing;
use crate::fabric::{Fabric, Space};
use crate::wire::NewSeen;

/// Looks at what agents tell now and then.
pub(super) trait Watching {
    /// Takes what they have told; nobody hears them meanwhile.
    fn see(&mut self, _machine: &Machine) {}

    /// Thinks about it. Returns whether the step is to end early.
    fn think(&mut self) -> bool {
        false
    }
}

/// Looks at nothing.
pub(super) struct Blind;

impl Watching for Blind {}

/// A stage as it goes on.
pub(super) struct StageWatch<'a> {
    pub(super) live: &'a Live,
    pub(super) judge: Option<Judge<'a>>,
}

impl Watching for StageWatch<'_> {
    fn see(&mut self, machine: &Machine) {
        // Each agent has a slot of the counters, of which there is one for each thread at least.
        for (slot, member) in machine.members().iter().enumerate() {
            member.live().inspect(|of| of.show(self.live, slot));
        }
        if let Some(judge) = &mut self.judge {
            judge.see(machine);
        }
    }

    fn think(&mut self) -> bool {
        self.judge.as_mut().is_some_and(Judge::think)
    }
}

/// Judges stop rules over what all agents have seen.
pub(super) struct Judge<'a> {
    pub(super) rules: &'a StageRules,
    pub(super) fabric: Arc<dyn Fabric>,
    /// The stage of the run.
    pub(super) stage: u64,
    /// By agent.
    pub(super) parts: Vec<PartTold>,
    /// Which rule holds, and why in words.
    pub(super) verdict: Option<(EndReason, String)>,
}

/// What an agent has told of a stage.
pub(super) struct PartTold {
    pub(super) space: Space,
    is_lost: bool,
    /// The newest number.
    number: u64,
    /// What was not looked at yet.
    new: Option<NewSeen>,
    seen: Option<PartSeen>,
}

impl PartTold {
    pub(super) fn by(space: Space) -> Self {
        Self { space, is_lost: false, number: 0, new: None, seen: None }
    }
}

impl Judge<'_> {
    fn see(&mut self, machine: &Machine) {
        for (part, member) in self.parts.iter_mut().zip(machine.members()) {
            part.is_lost = matches!(member.standing(), Standing::Lost(_));
            let told = member.live().and_then(|live| live.seen.as_ref());
            let is_new = |told: &&NewSeen| told.stage == self.stage && told.number > part.number;
            if let Some(told) = told.filter(is_new) {
                part.number = told.number;
                part.new = Some(told.clone());
            }
        }
    }

    fn think(&mut self) -> bool {
        let mut is_new = false;
        for part in &mut self.parts {
            let Some(NewSeen { content, .. }) = part.new.take() else { continue };
            // What cannot be had, or means nothing, is made up for by what is told next.
            let fetched = fetch(&*self.fabric, &part.space, content).ok();
            if let Some(seen) = fetched.and_then(crate::wire::SeenDoc::part) {
                part.seen = Some(seen);
                is_new = true;
            }
        }
        if is_new && self.verdict.is_none() {
            let left = self.parts.iter().filter(|part| !part.is_lost);
            let seen: Option<Vec<&PartSeen>> = left.map(|part| part.seen.as_ref()).collect();
            self.verdict = seen.and_then(|seen| self.rules.judge(&seen));
        }
        self.verdict.is_some()
    }
}

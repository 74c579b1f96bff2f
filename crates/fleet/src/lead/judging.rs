//! Sees what agents tell of a stage while it goes on: counters, and what stop rules have to know.

use std::sync::Arc;

use plimsoll_engine::{Live, LivePart, PartSeen, PartState, StageRules};
use plimsoll_model::EndReason;

use super::hearing::Machine;
use crate::contents::fetch;
use crate::coordinator::{Member, Standing};
use crate::fabric::{Fabric, Space};
use crate::wire::{Answer, LiveDoc, NewSeen, Order};

/// What an agent has seen for one rule of one job and kind takes no more.
const SEEN_BYTES_MAX: u64 = 16 << 20;

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
    /// Which stage of the run it is.
    pub(super) stage: u64,
    pub(super) live: &'a Live,
    pub(super) judge: Option<Judge<'a>>,
    /// What people call the agents.
    pub(super) names: Vec<String>,
}

impl Watching for StageWatch<'_> {
    fn see(&mut self, machine: &Machine) {
        // Each agent has a slot of the counters, of which there is one for each thread at least.
        for (slot, member) in machine.members().iter().enumerate() {
            // What they have told last may be of the stage before.
            let told = member.live().filter(|told| told.stage == self.stage);
            told.inspect(|of| of.show(self.live, slot));
        }
        let state = |member: &Member<Order, Answer, LiveDoc>| match member.standing() {
            Standing::Lost(_) | Standing::Back => PartState::Lost,
            Standing::Done(_) => PartState::Done,
            Standing::Working if member.is_silent() => PartState::Silent,
            Standing::Working => PartState::Works,
        };
        let parts = machine.members().iter().zip(&self.names);
        let part =
            |(member, name): (_, &String)| LivePart { name: name.clone(), state: state(member) };
        self.live.show_parts(parts.map(part).collect());
        if let Some(judge) = &mut self.judge {
            judge.see(machine, self.stage);
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
    fn see(&mut self, machine: &Machine, stage: u64) {
        for (part, member) in self.parts.iter_mut().zip(machine.members()) {
            part.is_lost = matches!(member.standing(), Standing::Lost(_));
            let told = member.live().filter(|told| told.stage == stage);
            let told = told.and_then(|live| live.seen.as_ref());
            let is_new = |told: &&NewSeen| told.number > part.number;
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
            let most = SEEN_BYTES_MAX * self.rules.count().max(1) as u64;
            let fetched = fetch(&*self.fabric, &part.space, content, most).ok();
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

#[cfg(test)]
mod tests {
    use plimsoll_model::{Moment, OpKind};

    use super::*;
    use crate::limits::Limits;
    use crate::protocol::{AgentId, Progress, State, Tell, What};

    #[test]
    fn counters_of_the_stage_before_are_not_shown_in_the_next() {
        let agent = AgentId::new("a").unwrap();
        let members = [(agent.clone(), 1)];
        let now = Moment::from_ns(1);
        let mut machine = Machine::new(7, "run".to_owned(), Limits::DEFAULT, members, now);
        let _ = machine.begin(now, None, |_| Order::HandIn { ended: Vec::new() });
        let text = |stage: u64| {
            format!(
                r#"{{"stage": {stage}, "kinds": {{"GET": {{"ended": {{"ok": 3}}, "bytes": 9,
                     "objects": 3, "latency_ns": 6, "ttfb_ns": 3, "cells": {{}}}}}}}}"#
            )
        };
        let mut shown = |number: u64, stage: u64| {
            let live: LiveDoc = serde_json::from_str(&text(stage)).unwrap();
            let state = State::Working { step: 1 };
            let progress = Progress { run: "run".to_owned(), state, echo: None, live: Some(live) };
            let what = What::Run(progress);
            let (agent, coordinator) = (agent.clone(), Some(7));
            let tell = Tell { agent, incarnation: 1, number, coordinator, what };
            let _ = machine.hear(now, tell);
            let live = Live::new(1);
            StageWatch { stage: 1, live: &live, judge: None, names: vec!["a".to_owned()] }
                .see(&machine);
            live.counts(OpKind::Get).ok
        };
        assert_eq!(shown(1, 0), 0);
        assert_eq!(shown(2, 1), 3);
    }

    #[test]
    fn how_agents_stand_is_shown() {
        let names = ["a", "b", "c", "d"].map(str::to_owned);
        let id = |name: &str| AgentId::new(name).unwrap();
        let now = Moment::from_ns(1);
        let members = names.iter().map(|name| (id(name), 1));
        let mut machine = Machine::new(7, "run".to_owned(), Limits::DEFAULT, members, now);
        let _ = machine.begin(now, None, |_| Order::HandIn { ended: Vec::new() });
        let live = Live::new(4);
        let shown = |machine: &Machine| {
            let names = names.to_vec();
            StageWatch { stage: 1, live: &live, judge: None, names }.see(machine);
            live.parts().into_iter().map(|part| part.state).collect::<Vec<_>>()
        };
        assert_eq!(shown(&machine), [PartState::Works; 4]);
        let _ = machine.disconnected(&id("b"), 1);
        let state = State::Done { step: 1, answer: Some(Answer::Forgotten) };
        let progress = Progress { run: "run".to_owned(), state, echo: None, live: None };
        let (agent, coordinator) = (id("c"), Some(7));
        let what = What::Run(progress);
        let _ = machine.hear(now, Tell { agent, incarnation: 1, number: 1, coordinator, what });
        let _ = machine.give_up(now, 3, "it is gone".to_owned());
        use PartState::{Done, Lost, Silent, Works};
        assert_eq!(shown(&machine), [Works, Silent, Done, Lost]);
        assert_eq!(live.parts()[3].name, "d");
    }
}

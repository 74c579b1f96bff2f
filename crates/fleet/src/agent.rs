//! An agent as a state machine: messages and moments in, messages and things to do out.

use plimsoll_model::Moment;

use crate::limits::Limits;
use crate::offset::Echo;
use crate::protocol::{About, AgentId, Ask, KEPT_MAX, Progress, State, Step, Tell, What};

/// What whoever runs the agent has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentDo<O, A, L> {
    /// Send this.
    Say(Tell<A, L>),
    /// Carry a step out, and hand in what came of it.
    CarryOut {
        /// Of which run.
        run: String,
        /// Which step.
        step: u32,
        /// What it is.
        order: O,
    },
    /// End the step under way early; what came of it is handed in as ever.
    EndStep,
    /// Leave the run: end what is under way, keep what was recorded, and say when that is done.
    Leave {
        /// Which run.
        run: String,
        /// Why.
        why: LeaveReason,
    },
}

/// Why an agent leaves a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// The coordinator has let it go.
    Dismissed,
    /// The coordinator was not responding for too long.
    Orphaned,
}

/// The run that an agent is part of.
#[derive(Debug)]
struct Part<A> {
    coordinator: u64,
    run: String,
    step: u32,
    answer: Option<A>,
    /// Whether the coordinator has the answer.
    is_known: bool,
    /// Whether the step was told to end early.
    ends: bool,
    /// Whether the agent is leaving.
    leaves: bool,
    /// When the coordinator was last heard.
    heard: Moment,
}

/// An agent: it is part of one run at most.
#[derive(Debug)]
pub struct Agent<A, L> {
    id: AgentId,
    incarnation: u64,
    about: About,
    limits: Limits,
    number: u64,
    part: Option<Part<A>>,
    live: Option<L>,
    said: Moment,
}

impl<A: Clone, L: Clone> Agent<A, L> {
    /// Returns an agent that is part of no run. `incarnation` is of this process alone.
    pub fn new(id: AgentId, incarnation: u64, about: About, limits: Limits, now: Moment) -> Self {
        Self { id, incarnation, about, limits, number: 0, part: None, live: None, said: now }
    }

    /// Returns what it tells of itself, for whoever changes it.
    pub fn about_mut(&mut self) -> &mut About {
        &mut self.about
    }

    /// Returns the run that it is part of.
    pub fn run(&self) -> Option<&str> {
        self.part.as_ref().map(|part| &*part.run)
    }

    /// Returns what it says to everybody as it begins.
    pub fn greet<O>(&mut self) -> AgentDo<O, A, L> {
        self.here(None)
    }

    /// Returns what it says to everybody as it ends.
    pub fn part_with<O>(&mut self) -> AgentDo<O, A, L> {
        self.say(None, What::Leaving)
    }

    /// Takes note of what was counted so far.
    pub fn count(&mut self, live: L) {
        self.live = Some(live);
    }

    /// Takes a message.
    pub fn hear<O>(&mut self, now: Moment, ask: Ask<O>) -> Vec<AgentDo<O, A, L>> {
        match ask {
            Ask::Roll { coordinator, .. } => vec![self.here(Some(coordinator))],
            Ask::Step(step) => self.hear_step(now, step),
        }
    }

    fn hear_step<O>(&mut self, now: Moment, ask: Step<O>) -> Vec<AgentDo<O, A, L>> {
        // It is answered before anything else is done.
        let now_ns = now.as_ns();
        let echo = ask.probe.map(|probe| Echo { probe, heard_ns: now_ns, said_ns: now_ns });
        let mut todo = Vec::new();
        let is_meant = ask.incarnation == self.incarnation;
        let is_own = |part: &Part<A>| part.run == ask.run && part.coordinator == ask.coordinator;
        match &mut self.part {
            Some(part) if is_own(part) => {
                if is_meant {
                    part.heard = now;
                }
                if ask.dismissed && is_meant && !part.leaves {
                    part.leaves = true;
                    let (run, why) = (part.run.clone(), LeaveReason::Dismissed);
                    todo.push(AgentDo::Leave { run, why });
                } else if is_meant && !part.leaves {
                    part.hear(ask, &mut todo);
                }
            }
            None if ask.step == 1 && is_meant && !ask.dismissed => {
                if let Some(order) = ask.order {
                    let Step { coordinator, run, .. } = ask;
                    self.live = None;
                    let carry_out = AgentDo::CarryOut { run: run.clone(), step: 1, order };
                    self.part = Some(Part {
                        coordinator,
                        run,
                        step: 1,
                        answer: None,
                        is_known: false,
                        ends: false,
                        leaves: false,
                        heard: now,
                    });
                    return vec![self.progress(now, echo), carry_out];
                }
                return vec![self.stranger(ask.coordinator, ask.run)];
            }
            _ => return vec![self.stranger(ask.coordinator, ask.run)],
        }
        todo.insert(0, self.progress(now, echo));
        todo
    }

    /// Takes what came of a step; one that is no longer asked for changes nothing.
    pub fn done<O>(
        &mut self,
        now: Moment,
        run: &str,
        step: u32,
        answer: A,
    ) -> Option<AgentDo<O, A, L>> {
        let part = self.part.as_mut().filter(|part| part.run == run && part.step == step)?;
        if part.answer.is_some() || part.leaves {
            return None;
        }
        part.answer = Some(answer);
        Some(self.progress(now, None))
    }

    /// Takes note that it has left the run, whether or not it was told to.
    pub fn left<O>(&mut self, kept: bool) -> Option<AgentDo<O, A, L>> {
        let part = self.part.take()?;
        self.live = None;
        self.about.kept.retain(|run| *run != part.run);
        if kept {
            self.about.kept.push(part.run.clone());
        }
        Some(self.stranger(part.coordinator, part.run))
    }

    /// Does what is due by time.
    pub fn tick<O>(&mut self, now: Moment) -> Vec<AgentDo<O, A, L>> {
        let Some(part) = self.part.as_mut().filter(|part| !part.leaves) else { return Vec::new() };
        if now.since(part.heard) >= self.limits.lost_after {
            part.leaves = true;
            let (run, why) = (part.run.clone(), LeaveReason::Orphaned);
            return vec![AgentDo::Leave { run, why }];
        }
        match now.since(self.said) >= self.limits.say_every {
            true => vec![self.progress(now, None)],
            false => Vec::new(),
        }
    }

    /// Returns when something is due; `None`: not before a message comes.
    pub fn due(&self) -> Option<Moment> {
        let part = self.part.as_ref().filter(|part| !part.leaves)?;
        let lost = part.heard.after(self.limits.lost_after);
        Some(lost.min(self.said.after(self.limits.say_every)))
    }

    fn here<O>(&mut self, to: Option<u64>) -> AgentDo<O, A, L> {
        let busy = self.part.as_ref().map(|part| part.run.clone());
        let mut about = About { busy, ..self.about.clone() };
        about.kept.drain(..about.kept.len().saturating_sub(KEPT_MAX));
        self.say(to, What::Here(about))
    }

    /// Answers about a run that it is not part of, or not of this coordinator's.
    fn stranger<O>(&mut self, coordinator: u64, run: String) -> AgentDo<O, A, L> {
        let state = match &self.part {
            Some(part) => State::Busy { run: part.run.clone() },
            None => State::Unknown,
        };
        let progress = Progress { run, state, echo: None, live: None };
        self.say(Some(coordinator), What::Run(progress))
    }

    fn progress<O>(&mut self, now: Moment, echo: Option<Echo>) -> AgentDo<O, A, L> {
        self.said = now;
        let part = self.part.as_ref().expect("an agent tells of the run that it is part of");
        let step = part.step;
        let state = match (&part.answer, part.is_known) {
            (None, _) => State::Working { step },
            (Some(_), true) => State::Done { step, answer: None },
            (Some(answer), false) => State::Done { step, answer: Some(answer.clone()) },
        };
        let to = Some(part.coordinator);
        let progress = Progress { run: part.run.clone(), state, echo, live: self.live.clone() };
        self.say(to, What::Run(progress))
    }

    fn say<O>(&mut self, coordinator: Option<u64>, what: What<A, L>) -> AgentDo<O, A, L> {
        self.number += 1;
        let (agent, incarnation) = (self.id.clone(), self.incarnation);
        AgentDo::Say(Tell { agent, incarnation, number: self.number, coordinator, what })
    }
}

impl<A> Part<A> {
    fn hear<O, L>(&mut self, ask: Step<O>, todo: &mut Vec<AgentDo<O, A, L>>) {
        if ask.step == self.step {
            self.is_known |= ask.is_known && self.answer.is_some();
            if ask.ends && !self.ends && self.answer.is_none() {
                self.ends = true;
                todo.push(AgentDo::EndStep);
            }
            return;
        }
        // A coordinator goes on only when it has heard what came of the step before.
        if let (true, true, Some(order)) =
            (ask.step == self.step + 1, self.answer.is_some(), ask.order)
        {
            self.step = ask.step;
            self.answer = None;
            self.is_known = false;
            self.ends = ask.ends;
            todo.push(AgentDo::CarryOut { run: self.run.clone(), step: self.step, order });
            if ask.ends {
                todo.push(AgentDo::EndStep);
            }
        }
    }
}

//! The coordinator of a run as a state machine: messages and moments in, messages and news out.

use std::time::Duration;

use plimsoll_model::Moment;

use crate::limits::Limits;
use crate::offset::{Offset, PROBES, Probes};
use crate::protocol::{AgentId, Progress, State, Step, Tell, What};

/// How often an agent that is let go is told so.
const DISMISSALS: u32 = 5;

/// What whoever runs the coordinator has to do or to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoordinatorDo<O> {
    /// Send this to the agent.
    Say(AgentId, Step<O>),
    /// The agent of that place has not responded for this long; `None`: its connection is gone.
    Silent(usize, Option<Duration>),
    /// It is heard of again.
    Back(usize),
    /// The others wait for the agent of that place, for this long.
    Lags(usize, Duration),
    /// It is no longer part of the run.
    Lost(usize, Loss),
}

/// How an agent was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// When that was found.
    pub at: Moment,
    /// When it was last heard of.
    pub heard: Moment,
    /// The step that was under way.
    pub step: u32,
    /// Whether it had said that this step is done.
    pub had_done: bool,
    /// Why.
    pub why: LossReason,
}

/// Why an agent was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// It was not responding for too long.
    Silent,
    /// It is another process than the one that was taken on, or has left the run.
    Restarted,
    /// It is part of another run.
    Busy {
        /// Which one.
        run: String,
    },
    /// It has said that it ends.
    Left,
    /// It still reports work long after the others were done.
    Lagging,
    /// It still reports work long after the stop order.
    Unending,
    /// The coordinator has let it go.
    Dismissed,
    /// It cannot go on, as it or the coordinator has found.
    Failed {
        /// Why.
        why: String,
    },
}

/// How far an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing<A> {
    /// It has been asked, or works.
    Working,
    /// It has done the step.
    Done(A),
    /// It was lost and has come back: it takes part from the next step on.
    Back,
    /// It is lost.
    Lost(Loss),
}

/// An agent of the run.
#[derive(Clone, Debug)]
pub struct Member<O, A, L> {
    /// Its id.
    pub agent: AgentId,
    /// Which process it is.
    pub incarnation: u64,
    /// The steps that were over when it was taken on: its own first one comes behind them.
    steps_before: u32,
    /// The number of the last message that it sent before it was taken on.
    numbers_before: u64,
    standing: Standing<A>,
    order: Option<O>,
    has_order: bool,
    heard: Moment,
    asked: Moment,
    is_silent: bool,
    /// When what it has counted changed last.
    progressed: Moment,
    is_lagging: bool,
    dismissals: u32,
    probes: Probes,
    is_measured: bool,
    number: u64,
    live: Option<L>,
}

impl<O, A, L> Member<O, A, L> {
    fn new(agent: AgentId, incarnation: u64, now: Moment) -> Self {
        Self {
            agent,
            incarnation,
            steps_before: 0,
            numbers_before: 0,
            standing: Standing::Working,
            order: None,
            has_order: true,
            heard: now,
            asked: now,
            is_silent: false,
            progressed: now,
            is_lagging: false,
            dismissals: 0,
            probes: Probes::default(),
            is_measured: true,
            number: 0,
            live: None,
        }
    }

    /// Returns how far it is.
    pub fn standing(&self) -> &Standing<A> {
        &self.standing
    }

    /// Returns by how much its clock is ahead, as far as that is known.
    pub fn offset(&self) -> Option<Offset> {
        self.probes.best()
    }

    /// Returns what it had counted when it was last heard of.
    pub fn live(&self) -> Option<&L> {
        self.live.as_ref()
    }

    /// Tells whether it has not responded for a while.
    pub fn is_silent(&self) -> bool {
        self.is_silent
    }

    fn is_lost(&self) -> bool {
        matches!(self.standing, Standing::Lost(_))
    }

    /// Tells whether it has been asked to carry the step out.
    fn is_asked(&self) -> bool {
        matches!(self.standing, Standing::Working | Standing::Done(_))
    }
}

/// The coordinator of one run.
#[derive(Debug)]
pub struct Coordinator<O, A, L> {
    id: u64,
    run: String,
    limits: Limits,
    members: Vec<Member<O, A, L>>,
    step: u32,
    begun: Moment,
    /// When the last of those was done who are done.
    done: Moment,
    /// When the step is to be over, where that is known.
    planned_end: Option<Moment>,
    /// When agents were told to end it.
    ends: Option<Moment>,
}

impl<O: Clone, A, L: PartialEq> Coordinator<O, A, L> {
    /// Returns the coordinator of a run by these agents, each as the process that it is now.
    pub fn new(
        id: u64,
        run: String,
        limits: Limits,
        agents: impl IntoIterator<Item = (AgentId, u64)>,
        now: Moment,
    ) -> Self {
        let member = |(agent, incarnation)| Member::new(agent, incarnation, now);
        let members = agents.into_iter().map(member).collect();
        let (planned_end, ends) = (None, None);
        Self { id, run, limits, members, step: 0, begun: now, done: now, planned_end, ends }
    }

    /// Returns the agents in the order in which they were given.
    pub fn members(&self) -> &[Member<O, A, L>] {
        &self.members
    }

    /// Returns the step under way, 0 before the first.
    pub const fn step(&self) -> u32 {
        self.step
    }

    /// Tells whether all that are not lost have done the step.
    pub fn is_step_over(&self) -> bool {
        !self.members.iter().any(|member| matches!(member.standing, Standing::Working))
    }

    /// Tells whether each agent that is not lost has answered enough probes.
    pub fn is_measured(&self) -> bool {
        self.members.iter().all(|member| member.is_lost() || member.is_measured)
    }

    /// Takes an agent on again that was lost, as the process that it is now; it takes part from the
    /// next step on, which is the first one that it hears of. `number` is that of a message by
    /// which it said that it is part of no run: what it said before is of the time before.
    pub fn take_back(
        &mut self,
        now: Moment,
        index: usize,
        (agent, incarnation): (AgentId, u64),
        number: u64,
    ) {
        let steps_before = self.step;
        let member = &mut self.members[index];
        assert!(member.is_lost(), "only who was lost comes back");
        let standing = Standing::Back;
        let new = Member::new(agent, incarnation, now);
        *member = Member { steps_before, standing, numbers_before: number, ..new };
    }

    /// Begins the next step; `order` says what an agent has to do. What an agent counts after
    /// `planned_end` is no progress.
    pub fn begin(
        &mut self,
        now: Moment,
        planned_end: Option<Moment>,
        mut order: impl FnMut(usize) -> O,
    ) -> Vec<CoordinatorDo<O>> {
        debug_assert!(self.step == 0 || self.is_step_over(), "a step begins behind another");
        self.step += 1;
        (self.begun, self.done) = (now, now);
        (self.planned_end, self.ends) = (planned_end, None);
        for (index, member) in self.members.iter_mut().enumerate() {
            if !member.is_lost() {
                if self.step == 1 {
                    // Before the first step nobody was asked anything, however long that took.
                    member.heard = now;
                }
                member.standing = Standing::Working;
                (member.progressed, member.is_lagging) = (now, false);
                member.order = Some(order(index));
                member.has_order = false;
            }
        }
        self.ask_all(now)
    }

    /// Has the step under way end early.
    pub fn end_step(&mut self, now: Moment) -> Vec<CoordinatorDo<O>> {
        match self.ends.replace(self.ends.unwrap_or(now)) {
            Some(_) => Vec::new(),
            None => self.ask_all(now),
        }
    }

    /// Measures all clocks anew.
    pub fn measure(&mut self, now: Moment) -> Vec<CoordinatorDo<O>> {
        for member in &mut self.members {
            member.probes.begin();
            member.is_measured = false;
        }
        self.ask_all(now)
    }

    /// Lets all agents go, and says no more.
    pub fn dismiss(&mut self, now: Moment) -> Vec<CoordinatorDo<O>> {
        let mut todo = Vec::new();
        for index in 0..self.members.len() {
            if !self.members[index].is_lost() {
                self.lose(now, index, LossReason::Dismissed, &mut todo);
            }
        }
        todo.retain(|each| matches!(each, CoordinatorDo::Say(..)));
        todo
    }

    /// Takes a message; one of an agent that is not of this run changes nothing.
    pub fn hear(&mut self, now: Moment, tell: Tell<A, L>) -> Vec<CoordinatorDo<O>> {
        let mut todo = Vec::new();
        let found = self.members.iter().position(|member| member.agent == tell.agent);
        let Some(index) = found else { return todo };
        if tell.coordinator.is_some_and(|to| to != self.id) {
            return todo;
        }
        let member = &mut self.members[index];
        let is_same = member.incarnation == tell.incarnation;
        match tell.what {
            _ if is_same && tell.number <= member.numbers_before => {}
            _ if matches!(member.standing, Standing::Back) => {}
            _ if member.is_lost() => {
                let about_it = match &tell.what {
                    What::Run(of) => of.run == self.run && of.state.is_part(),
                    What::Here(_) | What::Leaving => false,
                };
                if is_same && about_it && member.dismissals < DISMISSALS {
                    member.dismissals += 1;
                    todo.push(self.dismissal(index));
                }
            }
            // An earlier process never was of this run, so this is a later one, which was asked.
            What::Run(of) if !is_same => {
                if of.run == self.run && matches!(of.state, State::Unknown) && self.step > 0 {
                    self.lose(now, index, LossReason::Restarted, &mut todo);
                }
            }
            _ if !is_same => {
                if self.step > 0 && matches!(tell.what, What::Here(_)) {
                    todo.push(self.ask(now, index));
                }
            }
            What::Here(_) => {}
            What::Leaving => self.lose(now, index, LossReason::Left, &mut todo),
            What::Run(progress) if progress.run == self.run => {
                member.heard = now;
                if std::mem::take(&mut member.is_silent) {
                    todo.push(CoordinatorDo::Back(index));
                }
                let is_newest = tell.number > member.number;
                member.number = member.number.max(tell.number);
                self.hear_progress(now, index, progress, is_newest, &mut todo);
            }
            What::Run(_) => {}
        }
        todo
    }

    fn hear_progress(
        &mut self,
        now: Moment,
        index: usize,
        progress: Progress<A, L>,
        is_newest: bool,
        todo: &mut Vec<CoordinatorDo<O>>,
    ) {
        let member = &mut self.members[index];
        // Steps as the agent counts them.
        let step = self.step - member.steps_before;
        let echoed = progress.echo.is_some_and(|echo| member.probes.hear(&echo, now));
        member.is_measured |= member.probes.heard_count() >= PROBES;
        if is_newest && progress.live.is_some() && progress.live != member.live {
            member.live = progress.live;
            member.progressed = now;
        }
        match progress.state {
            State::Working { step: of } => member.has_order |= of == step,
            State::Done { step: of, answer } if of == step => {
                member.has_order = true;
                if let (Standing::Working, Some(answer)) = (&member.standing, answer) {
                    member.standing = Standing::Done(answer);
                    self.done = now;
                    todo.push(self.ask(now, index));
                    return;
                }
            }
            State::Done { .. } => {}
            // Before it has heard the first step it knows nothing of the run.
            State::Unknown if step == 1 && !member.has_order => {}
            State::Unknown if is_newest => {
                return self.lose(now, index, LossReason::Restarted, todo);
            }
            State::Busy { run } if is_newest => {
                return self.lose(now, index, LossReason::Busy { run }, todo);
            }
            State::Unknown | State::Busy { .. } => {}
        }
        if echoed && !self.members[index].is_measured {
            todo.push(self.ask(now, index));
        }
    }

    /// Goes on without an agent.
    pub fn give_up(&mut self, now: Moment, index: usize, why: String) -> Vec<CoordinatorDo<O>> {
        let mut todo = Vec::new();
        if !self.members[index].is_lost() {
            self.lose(now, index, LossReason::Failed { why }, &mut todo);
        }
        todo
    }

    /// Takes note that the fabric no longer has a connection of that process.
    pub fn disconnected(&mut self, agent: &AgentId, incarnation: u64) -> Vec<CoordinatorDo<O>> {
        let is_it = |member: &Member<O, A, L>| {
            member.agent == *agent && member.incarnation == incarnation && !member.is_lost()
        };
        let Some(index) = self.members.iter().position(is_it) else { return Vec::new() };
        match std::mem::replace(&mut self.members[index].is_silent, true) {
            true => Vec::new(),
            false => vec![CoordinatorDo::Silent(index, None)],
        }
    }

    /// Does what is due by time.
    pub fn tick(&mut self, now: Moment) -> Vec<CoordinatorDo<O>> {
        let mut todo = Vec::new();
        for index in 0..self.members.len() {
            let member = &mut self.members[index];
            if !member.is_asked() || self.step == 0 {
                continue;
            }
            let silence = now.since(member.heard);
            if silence >= self.limits.lost_after {
                self.lose(now, index, LossReason::Silent, &mut todo);
                continue;
            }
            if silence >= self.limits.silent_after && !member.is_silent {
                member.is_silent = true;
                todo.push(CoordinatorDo::Silent(index, Some(silence)));
            }
            if now.since(member.asked) >= self.limits.say_every {
                todo.push(self.ask(now, index));
            }
        }
        self.look_for_laggards(now, &mut todo);
        todo
    }

    /// Drops agents that report work and keep the others waiting, so that no agent can hold up a
    /// run for ever.
    fn look_for_laggards(&mut self, now: Moment, todo: &mut Vec<CoordinatorDo<O>>) {
        let count = |is: fn(&Standing<A>) -> bool| {
            self.members.iter().filter(|member| is(&member.standing)).count()
        };
        let working = count(|standing| matches!(standing, Standing::Working));
        let done = count(|standing| matches!(standing, Standing::Done(_)));
        let most = self.limits.lag_max.max(10 * self.done.since(self.begun));
        for index in 0..self.members.len() {
            let member = &mut self.members[index];
            if !matches!(member.standing, Standing::Working) {
                continue;
            }
            if self.ends.is_some_and(|at| now.since(at) >= self.limits.end_max) {
                self.lose(now, index, LossReason::Unending, todo);
                continue;
            }
            let progressed =
                self.planned_end.map_or(member.progressed, |at| member.progressed.min(at));
            let lag = now.since(self.done.max(progressed));
            if done < working || lag < most / 10 {
                continue;
            }
            if lag >= most {
                self.lose(now, index, LossReason::Lagging, todo);
            } else if !std::mem::replace(&mut member.is_lagging, true) {
                todo.push(CoordinatorDo::Lags(index, lag));
            }
        }
    }

    /// Returns when something is due.
    pub fn due(&self) -> Option<Moment> {
        let of = |member: &Member<O, A, L>| {
            let lost = member.heard.after(self.limits.lost_after);
            let silent = member.heard.after(self.limits.silent_after);
            let asked = member.asked.after(self.limits.say_every);
            if member.is_silent { lost.min(asked) } else { lost.min(silent).min(asked) }
        };
        let members = self.members.iter().filter(|member| member.is_asked());
        members.map(of).min().filter(|_| self.step > 0)
    }

    fn ask_all(&mut self, now: Moment) -> Vec<CoordinatorDo<O>> {
        let members = (0..self.members.len()).filter(|index| self.members[*index].is_asked());
        members.collect::<Vec<_>>().into_iter().map(|index| self.ask(now, index)).collect()
    }

    fn ask(&mut self, now: Moment, index: usize) -> CoordinatorDo<O> {
        let member = &mut self.members[index];
        member.asked = now;
        let step = Step {
            coordinator: self.id,
            run: self.run.clone(),
            incarnation: member.incarnation,
            step: self.step - member.steps_before,
            order: member.order.clone().filter(|_| !member.has_order),
            ends: self.ends.is_some(),
            dismissed: false,
            is_known: matches!(member.standing, Standing::Done(_)),
            probe: Some(member.probes.send(now)),
        };
        CoordinatorDo::Say(member.agent.clone(), step)
    }

    fn lose(
        &mut self,
        now: Moment,
        index: usize,
        why: LossReason,
        todo: &mut Vec<CoordinatorDo<O>>,
    ) {
        let member = &mut self.members[index];
        let had_done = matches!(member.standing, Standing::Done(_));
        let loss = Loss { at: now, heard: member.heard, step: self.step, had_done, why };
        member.standing = Standing::Lost(loss.clone());
        member.order = None;
        todo.push(CoordinatorDo::Lost(index, loss));
        todo.push(self.dismissal(index));
    }

    fn dismissal(&self, index: usize) -> CoordinatorDo<O> {
        let member = &self.members[index];
        let step = Step {
            coordinator: self.id,
            run: self.run.clone(),
            incarnation: member.incarnation,
            step: self.step - member.steps_before,
            order: None,
            ends: true,
            dismissed: true,
            is_known: false,
            probe: None,
        };
        CoordinatorDo::Say(member.agent.clone(), step)
    }
}

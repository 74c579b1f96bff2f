//! The thread that hears the agents of a run.

use std::collections::BTreeMap;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_conduct::Observer;
use plimsoll_model::{Moment, SharedClock};

use crate::coordinator::{Coordinator, CoordinatorDo, Loss, LossReason};
use crate::fabric::{Address, Arrival, Arrivals, Fabric};
use crate::protocol::{AgentId, Ask, Tell, What, decode, encode};
use crate::roll::Recruit;
use crate::wire::{Answer, LiveDoc, Order};

/// How often a request to stop is looked for.
pub(super) const LOOK: Duration = Duration::from_millis(20);

pub(super) type Machine = Coordinator<Order, Answer, LiveDoc>;

/// What the thread that hears the agents shares with the one that conducts the run.
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
}

pub(super) struct State {
    pub(super) machine: Machine,
    pub(super) losses: Vec<(usize, Loss)>,
    /// Agents of this run's as they told of themselves last, by id, with the numbers of the
    /// messages by which they did.
    pub(super) present: BTreeMap<AgentId, (Recruit, u64)>,
    pub(super) is_over: bool,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hears the agents until the run is over.
pub(super) struct Hearing {
    pub(super) shared: Arc<Shared>,
    pub(super) fabric: Arc<dyn Fabric>,
    pub(super) clock: SharedClock,
    pub(super) observer: Arc<dyn Observer>,
    /// What people call the agents.
    pub(super) names: Vec<String>,
    /// What they call themselves.
    pub(super) own_names: Vec<String>,
    pub(super) arrivals: Arrivals,
}

impl Hearing {
    pub(super) fn run(self) {
        loop {
            let due = self.shared.state().machine.due();
            let wait = due.map_or(LOOK, |due| due.since(self.clock.now())).min(LOOK);
            let arrived = self.arrivals.recv_timeout(wait);
            let now = self.clock.now();
            let mut state = self.shared.state();
            if state.is_over || arrived == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            let mut todo = match arrived {
                Ok(arrival) => hear(&mut state, &self.own_names, now, arrival),
                Err(_) => Vec::new(),
            };
            todo.extend(state.machine.tick(now));
            perform(&mut state, &*self.fabric, todo, |line| match line {
                News::Silent(index, None) => {
                    self.observer.warn(&format!("agent {} has disconnected", self.names[index]));
                }
                News::Silent(index, Some(silence)) => self.observer.warn(&format!(
                    "agent {} has not responded for {:.1} s",
                    self.names[index],
                    silence.as_secs_f64()
                )),
                News::Back(index) => {
                    self.observer.note(&format!("agent {} is back", self.names[index]));
                }
                News::Lags(index, lag) => self.observer.warn(&format!(
                    "agent {} still works, and the others have waited for it for {:.0} s; Ctrl-C \
                     goes on without it",
                    self.names[index],
                    lag.as_secs_f64()
                )),
                News::Lost(index, why) => {
                    self.observer.warn(&format!("agent {} is lost: {why}", self.names[index]));
                }
            });
            drop(state);
            self.shared.changed.notify_all();
        }
    }
}

pub(super) enum News {
    Silent(usize, Option<Duration>),
    Back(usize),
    Lags(usize, Duration),
    Lost(usize, String),
}

fn hear(
    state: &mut State,
    own_names: &[String],
    now: Moment,
    arrival: Arrival,
) -> Vec<CoordinatorDo<Order>> {
    match arrival {
        Arrival::Message { from, bytes } => {
            let Ok(tell) = decode::<Tell<Answer, LiveDoc>>(&bytes) else { return Vec::new() };
            if from.is_some_and(|from| from != tell.agent) {
                return Vec::new();
            }
            match &tell.what {
                What::Here(about) if about.is_printable() && own_names.contains(&about.name) => {
                    let (id, incarnation) = (tell.agent.clone(), tell.incarnation);
                    let (name, about) = (about.name.clone(), about.clone());
                    let recruit = Recruit { id: id.clone(), name, incarnation, about };
                    let is_newest = state.present.get(&id).is_none_or(|(known, number)| {
                        known.incarnation != incarnation || *number < tell.number
                    });
                    if is_newest {
                        state.present.insert(id, (recruit, tell.number));
                    }
                }
                What::Leaving => drop(state.present.remove(&tell.agent)),
                What::Here(_) | What::Run(_) => {}
            }
            state.machine.hear(now, tell)
        }
        Arrival::Disconnected { agent, incarnation } => {
            state.machine.disconnected(&agent, incarnation)
        }
    }
}

pub(super) fn perform(
    state: &mut State,
    fabric: &dyn Fabric,
    todo: Vec<CoordinatorDo<Order>>,
    mut tell: impl FnMut(News),
) {
    for each in todo {
        match each {
            CoordinatorDo::Say(agent, step) => {
                // What cannot be sent is said again.
                if let Ok(message) = encode(&Ask::Step(step)) {
                    let _ = fabric.post(&Address::Agent(agent), message);
                }
            }
            CoordinatorDo::Silent(index, silence) => tell(News::Silent(index, silence)),
            CoordinatorDo::Back(index) => tell(News::Back(index)),
            CoordinatorDo::Lags(index, lag) => tell(News::Lags(index, lag)),
            CoordinatorDo::Lost(index, loss) => {
                tell(News::Lost(index, in_words(&loss)));
                state.losses.push((index, loss));
            }
        }
    }
}

pub(super) fn in_words(loss: &Loss) -> String {
    match &loss.why {
        LossReason::Silent => {
            format!("it was not responding for {:.1} s", loss.at.since(loss.heard).as_secs_f64())
        }
        LossReason::Restarted => "it restarted, or left the run".to_owned(),
        LossReason::Busy { run } => format!("it is part of another run, {run}"),
        LossReason::Lagging => "it worked on for too long after others were done".to_owned(),
        LossReason::Unending => "it worked on for too long after it was told to end".to_owned(),
        LossReason::Left => "it has ended".to_owned(),
        LossReason::Dismissed => "it was let go".to_owned(),
        LossReason::Failed { why } => why.clone(),
    }
}

//! An agent at work: it hears its coordinator, carries out its part of a run, and tells how far it
//! is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_conduct::{Observer, StageView, Stop};
use plimsoll_engine::{Live, PartSeen};
use plimsoll_model::{Moment, SharedClock};

use crate::agent::{Agent, AgentDo, LeaveReason};
use crate::contents::hold;
use crate::fabric::{Address, Arrival, Fabric, Space};
use crate::limits::Limits;
use crate::part::{self, PartEnd, Workplace};
use crate::protocol::{About, AgentId, Ask, MachineState, PLACES_MAX, decode, encode};
use crate::wire::{Answer, LiveDoc, NewSeen, Order, SeenDoc};

/// What comes to an agent.
pub enum Input {
    /// From its fabric.
    Arrived(Arrival),
    /// A step is done.
    Answered {
        /// Of which run.
        run: String,
        /// Which step.
        step: u32,
        /// What came of it.
        answer: Box<Answer>,
    },
    /// The part of a run is over.
    Over(PartEnd),
    /// The agent is to end.
    End,
}

/// Who an agent is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// What it is called on its fabric.
    pub id: AgentId,
    /// A number that no other process of that id has.
    pub incarnation: u64,
    /// What it tells of itself.
    pub about: About,
}

/// What goes on in the part of a run that is under way, for whoever tells of it.
#[derive(Default)]
pub(crate) struct Board {
    /// The counters of the stage under way.
    live: Mutex<Option<Arc<Live>>>,
    /// What stop rules have seen in it.
    seen: Mutex<Option<NewSeen>>,
    /// How many stages have begun or ended: odd while one goes on.
    stages: AtomicU64,
}

/// How often is looked whether stop rules have seen anything new.
const LOOK_SEEN: Duration = Duration::from_millis(100);

/// Has what stop rules see told as long as a stage goes on.
struct TellSeen {
    board: Arc<Board>,
    live: Arc<Live>,
    fabric: Arc<dyn Fabric>,
    space: Space,
    name: String,
    /// What the count of stages is while this one goes on.
    stage: u64,
}

impl TellSeen {
    fn run(self) {
        let mut number = 0;
        let mut last: Option<Arc<PartSeen>> = None;
        while self.board.stages.load(Ordering::Acquire) == self.stage {
            let seen = self.live.seen();
            let is_new =
                |seen: &&Arc<PartSeen>| last.as_ref().is_none_or(|last| !Arc::ptr_eq(last, seen));
            if let Some(seen) = seen.as_ref().filter(is_new) {
                number += 1;
                let content =
                    hold(&*self.fabric, &self.space, self.name.clone(), SeenDoc::of(seen));
                // What cannot be told now is made up for by what is seen next.
                if let Ok(content) = content {
                    let new = NewSeen { number, content };
                    *self.board.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(new);
                }
            }
            last = seen.or(last);
            thread::park_timeout(LOOK_SEEN);
        }
    }
}

/// A stage that goes on, until this is dropped, and who tells what stop rules see in it.
struct GoesOn<'a>(&'a Board, thread::JoinHandle<()>);

impl Drop for GoesOn<'_> {
    fn drop(&mut self) {
        self.0.stages.fetch_add(1, Ordering::AcqRel);
        self.1.thread().unpark();
    }
}

/// Tells of a part of a run.
pub(crate) struct PartObserver {
    board: Arc<Board>,
    inner: Arc<dyn Observer>,
    fabric: Arc<dyn Fabric>,
    space: Space,
    below: String,
}

impl Observer for PartObserver {
    fn note(&self, line: &str) {
        self.inner.note(line);
    }

    fn warn(&self, line: &str) {
        self.inner.warn(line);
    }

    fn during(&self, stage: &StageView<'_>, work: &mut dyn FnMut()) {
        *self.board.live.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::clone(stage.live));
        *self.board.seen.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let tell = TellSeen {
            board: Arc::clone(&self.board),
            live: Arc::clone(stage.live),
            fabric: Arc::clone(&self.fabric),
            space: self.space.clone(),
            name: format!("{}/seen", self.below),
            stage: self.board.stages.fetch_add(1, Ordering::AcqRel) + 1,
        };
        // Nobody waits for it: it may hang where the fabric does.
        let _goes_on = GoesOn(&self.board, thread::spawn(move || tell.run()));
        self.inner.during(stage, work);
    }
}

/// A part of a run that is under way.
struct UnderWay {
    run: String,
    orders: Option<Sender<(u32, Order)>>,
    stop: Stop,
    board: Arc<Board>,
}

/// An agent at work.
pub struct Station {
    agent: Agent<Answer, LiveDoc>,
    id: AgentId,
    fabric: Arc<dyn Fabric>,
    clock: SharedClock,
    workplace: Arc<dyn Workplace>,
    observer: Arc<dyn Observer>,
    inputs: (Sender<Input>, Receiver<Input>),
    part: Option<UnderWay>,
}

impl Station {
    /// Returns an agent to whom all comes by `inputs`; `clock` is the one of the runs that it takes
    /// part in.
    pub fn new(
        inputs: (Sender<Input>, Receiver<Input>),
        identity: Identity,
        fabric: Arc<dyn Fabric>,
        clock: SharedClock,
        workplace: Arc<dyn Workplace>,
        observer: Arc<dyn Observer>,
        limits: Limits,
    ) -> Self {
        let Identity { id, incarnation, about } = identity;
        let agent = Agent::new(id.clone(), incarnation, about, limits, clock.now());
        Self { agent, id, fabric, clock, workplace, observer, inputs, part: None }
    }

    /// Works until it is told to end; a part that is under way then is ended and kept. Returns
    /// whether there was one.
    pub fn run(mut self) -> bool {
        let greeting = self.agent.greet();
        self.perform(vec![greeting]);
        loop {
            let now = self.clock.now();
            let wait = self.agent.due().map(|due| due.since(now));
            let input = match wait {
                Some(wait) => self.inputs.1.recv_timeout(wait),
                None => self.inputs.1.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            let now = self.clock.now();
            self.count();
            match input {
                Ok(Input::End) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(input) => self.take(now, input),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let todo = self.agent.tick(now);
            self.perform(todo);
        }
        let was_busy = self.part.is_some();
        self.end();
        was_busy
    }

    fn take(&mut self, now: Moment, input: Input) {
        let todo = match input {
            Input::Arrived(Arrival::Message { bytes, .. }) => {
                // What is not understood is somebody else's, or of another version, whose
                // coordinator sees that nobody answers it.
                let Ok(ask) = decode::<Ask<Order>>(&bytes) else { return };
                if let Ask::Roll { look, number, .. } = &ask {
                    let machine = self.workplace.machine();
                    let number = *number;
                    self.agent.about_mut().machine =
                        machine.map(|machine| Box::new(MachineState { number, ..machine }));
                    let places = look.iter().take(PLACES_MAX);
                    let places = places.map(|path| self.workplace.look(path)).collect();
                    self.agent.about_mut().places = places;
                }
                self.agent.hear(now, ask)
            }
            Input::Answered { run, step, answer } => {
                self.agent.done(now, &run, step, *answer).into_iter().collect()
            }
            Input::Over(end) => self.over(end),
            Input::Arrived(Arrival::Disconnected { .. }) | Input::End => return,
        };
        self.perform(todo);
    }

    /// Takes note of what was counted, so that it is told with the next message.
    fn count(&mut self) {
        let Some(part) = &self.part else { return };
        let live = part.board.live.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(live) = live {
            let seen = part.board.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
            // The one that goes on, or the last that has ended.
            let stage = part.board.stages.load(Ordering::Acquire).saturating_sub(1) / 2;
            self.agent.count(LiveDoc::of(stage, &live, seen));
        }
    }

    /// Takes note that a part is over; the machine may have had enough of it before.
    fn over(&mut self, end: PartEnd) -> Vec<AgentDo<Order, Answer, LiveDoc>> {
        let Some(part) = self.part.take_if(|part| part.run == end.run) else { return Vec::new() };
        if let Some(path) = &end.kept {
            let path = path.display();
            self.observer.warn(&format!("this agent's part of {} is kept in {path}", part.run));
        }
        if let Some(path) = &end.stays {
            let path = path.display();
            self.observer.note(&format!("this agent's part of {} stays in {path}", part.run));
        }
        self.agent.left(end.kept.is_some()).into_iter().collect()
    }

    fn perform(&mut self, todo: Vec<AgentDo<Order, Answer, LiveDoc>>) {
        for each in todo {
            match each {
                AgentDo::Say(tell) => {
                    let to = Address::Coordinators(self.id.clone());
                    // What cannot be sent is said again; a fabric that is away comes back.
                    if let Ok(message) = encode(&tell) {
                        let _ = self.fabric.post(&to, message);
                    }
                }
                AgentDo::CarryOut { run, step, order } => self.carry_out(run, step, order),
                AgentDo::EndStep => {
                    if let Some(part) = &self.part {
                        part.stop.stop_stage();
                    }
                }
                AgentDo::Leave { run, why } => self.leave(&run, why),
            }
        }
    }

    fn carry_out(&mut self, run: String, step: u32, order: Order) {
        if step == 1 {
            let below = match &order {
                Order::Open(assignment) => assignment.receipt.clone(),
                _ => String::new(),
            };
            self.begin(run.clone(), below);
        }
        let Some(part) = self.part.as_ref().filter(|part| part.run == run) else { return };
        if let Some(orders) = &part.orders {
            let _ = orders.send((step, order));
        }
    }

    /// Begins a part on a thread of its own, which keeps what it has for the coordinator below a
    /// name.
    fn begin(&mut self, run: String, below: String) {
        let (orders, receiver) = channel();
        let (stop, board) = (Stop::default(), Arc::new(Board::default()));
        let link = part::Link {
            run: run.clone(),
            below: below.clone(),
            agent: self.id.clone(),
            orders: receiver,
            inputs: self.inputs.0.clone(),
            fabric: Arc::clone(&self.fabric),
            stop: stop.clone(),
        };
        let observer = PartObserver {
            board: Arc::clone(&board),
            inner: Arc::clone(&self.observer),
            fabric: Arc::clone(&self.fabric),
            space: Space::Of(self.id.clone()),
            below,
        };
        let workplace = Arc::clone(&self.workplace);
        thread::spawn(move || part::carry_out(link, &workplace, Arc::new(observer)));
        self.part = Some(UnderWay { run, orders: Some(orders), stop, board });
    }

    fn leave(&mut self, run: &str, why: LeaveReason) {
        if why == LeaveReason::Orphaned {
            self.observer
                .warn(&format!("the coordinator of {run} has not been heard of; leaving the run"));
        }
        match self.part.as_mut().filter(|part| part.run == run) {
            Some(part) => {
                part.stop.stop_stage();
                part.orders = None;
            }
            None => {
                let todo = self.agent.left(false).into_iter().collect();
                self.perform(todo);
            }
        }
    }

    /// Ends what is under way and takes its leave.
    fn end(mut self) {
        /// Operations under way end within their time limits; who waits for longer has hung.
        const LONGEST: Duration = Duration::from_secs(300);
        let farewell = self.agent.part_with();
        self.perform(vec![farewell]);
        let Some(part) = &mut self.part else { return };
        part.stop.stop_stage();
        part.orders = None;
        while let Ok(input) = self.inputs.1.recv_timeout(LONGEST) {
            if let Input::Over(end) = input {
                self.over(end);
                break;
            }
        }
    }
}

//! A thousand agents: their state machines and the coordinator's in one thread of this process,
//! in real time. Every message is encoded and decoded; nothing else of a network is there.

use std::io::{Read, Write};
use std::sync::Mutex;
use std::time::Duration;

use plimsoll_conduct::{Changes, RunTime};
use plimsoll_fleet::Limits;
use plimsoll_fleet::agent::{Agent, AgentDo};
use plimsoll_fleet::coordinator::{Coordinator, CoordinatorDo};
use plimsoll_fleet::fabric::{
    Address, Arrival, Arrivals, Deliver, Fabric, FabricError, Kept, Space, arrivals,
};
use plimsoll_fleet::protocol::{About, AgentId, Ask, Tell, decode, encode};
use plimsoll_fleet::roll::{Call, call_roll};
use plimsoll_fleet::wire::{
    Answer, Assignment, ChangesDoc, ConductDoc, ContentDoc, Held, LiveDoc, Order, StageOrder,
};
use plimsoll_model::SharedClock;
use serde_json::Value;

use crate::Plan;
use crate::table::{Row, Target};

const AGENTS: usize = 1_000;
const COORDINATOR: u64 = 1;
/// Longer than anything takes that comes at all.
const LONG: Duration = Duration::from_secs(60);

type Machine = Coordinator<Order, Answer, LiveDoc>;

/// Agents that hear what is said to them at once, and answer within the same call.
struct AtOnce {
    clock: SharedClock,
    agents: Mutex<Vec<Agent<Answer, LiveDoc>>>,
    to: Deliver,
}

fn id_of(index: usize) -> AgentId {
    AgentId::new(format!("a{index:04}")).unwrap()
}

fn index_of(id: &AgentId) -> usize {
    id.as_str()[1..].parse().unwrap()
}

fn answer_to(order: &Order) -> Answer {
    match order {
        Order::Open(_) => Answer::Opened {
            threads: 2,
            endpoints: vec!["store:9000".to_owned()],
            machine: Value::Null,
            files: Vec::new(),
        },
        _ => Answer::Ready { files: None },
    }
}

impl AtOnce {
    fn new(clock: &SharedClock) -> (Self, Arrivals) {
        let agent = |index: usize| {
            let about = About {
                name: format!("node{index:04}"),
                version: "bench".to_owned(),
                weight: 1,
                is_encrypted: true,
                busy: None,
                kept: Vec::new(),
                places: Vec::new(),
                machine: None,
            };
            Agent::new(id_of(index), 7, about, Limits::DEFAULT, clock.now())
        };
        let agents = Mutex::new((0..AGENTS).map(agent).collect());
        let (to, arrivals) = arrivals();
        (Self { clock: SharedClock::clone(clock), agents, to }, arrivals)
    }

    fn hear(&self, agent: &mut Agent<Answer, LiveDoc>, id: &AgentId, message: &[u8]) {
        let now = self.clock.now();
        let mut todo = agent.hear(now, decode::<Ask<Order>>(message).unwrap());
        while !todo.is_empty() {
            let mut more = Vec::new();
            for each in todo {
                match each {
                    AgentDo::Say(tell) => {
                        let (from, bytes) = (Some(id.clone()), encode(&tell).unwrap());
                        self.to.deliver(Arrival::Message { from, bytes });
                    }
                    AgentDo::CarryOut { run, step, order } => {
                        agent.count(LiveDoc::default());
                        more.extend(agent.done(now, &run, step, answer_to(&order)));
                    }
                    AgentDo::EndStep | AgentDo::Leave { .. } => {}
                }
            }
            todo = more;
        }
    }
}

impl Fabric for AtOnce {
    fn make(&self, _: &[(AgentId, String)]) -> Result<(), FabricError> {
        Ok(())
    }

    fn post(&self, to: &Address, message: Vec<u8>) -> Result<(), FabricError> {
        let mut agents = self.agents.lock().unwrap();
        match to {
            Address::Agents => agents
                .iter_mut()
                .enumerate()
                .for_each(|(index, agent)| self.hear(agent, &id_of(index), &message)),
            Address::Agent(id) => self.hear(&mut agents[index_of(id)], id, &message),
            Address::Coordinators(_) => {}
        }
        Ok(())
    }

    fn put(&self, _: &Space, _: &str, _: &mut dyn Read) -> Result<Kept, FabricError> {
        unreachable!("all of it goes in messages")
    }

    fn get(&self, _: &Space, _: &Kept, _: &mut dyn Write) -> Result<u64, FabricError> {
        Ok(0)
    }

    fn remove(&self, _: &Space, _: &str) -> Result<(), FabricError> {
        Ok(())
    }
}

struct Head<'a> {
    machine: Machine,
    fabric: &'a AtOnce,
    arrivals: &'a Arrivals,
    clock: &'a SharedClock,
}

impl Head<'_> {
    fn perform(&self, todo: Vec<CoordinatorDo<Order>>) {
        for each in todo {
            match each {
                CoordinatorDo::Say(agent, step) => {
                    let message = encode(&Ask::Step(step)).unwrap();
                    self.fabric.post(&Address::Agent(agent), message).unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Hears agents until that holds.
    fn until(&mut self, is_over: impl Fn(&Machine) -> bool) {
        while !is_over(&self.machine) {
            let arrived = self.arrivals.recv_timeout(LONG).unwrap();
            let Arrival::Message { bytes, .. } = arrived else { continue };
            let tell = decode::<Tell<Answer, LiveDoc>>(&bytes).unwrap();
            let mut todo = self.machine.hear(self.clock.now(), tell);
            todo.extend(self.machine.tick(self.clock.now()));
            self.perform(todo);
        }
    }

    /// Has all agents carry a step out, and returns how long that took in ms.
    fn step(&mut self, order: impl FnMut(usize) -> Order) -> f64 {
        let begun = self.clock.now();
        let todo = self.machine.begin(begun, None, order);
        self.perform(todo);
        self.until(Machine::is_step_over);
        self.clock.now().since(begun).as_secs_f64() * 1e3
    }
}

fn assignment() -> Assignment {
    Assignment {
        workload: Held::Here(Value::from("a workload of some length ".repeat(40))),
        seed: 7,
        weights: vec![1; AGENTS],
        names: Vec::new(),
        part: 0,
        access: Value::Null,
        conduct: ConductDoc::default(),
        found: Held::Here(std::collections::BTreeMap::new()),
        content: Held::Here(ContentDoc::default()),
        receipt: String::new(),
    }
}

/// Measures how long it takes to take a thousand agents on, and one step of them.
pub(crate) fn thousand(plan: &Plan) -> Vec<Row> {
    let clock = RunTime::machine().clock;
    let (mut joins, mut rolls, mut opens, mut measures, mut barriers) =
        (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..plan.rounds() {
        let (fabric, arrivals) = AtOnce::new(&clock);
        let begun = clock.now();
        let call = Call { coordinator: COORDINATOR, look: &[], limit: LONG };
        let mut all = |present: &[_], _| present.len() == AGENTS;
        let roll = call_roll(&fabric, &arrivals, &*clock, call, &mut all).unwrap();
        assert_eq!(roll.present.len(), AGENTS);
        rolls.push(clock.now().since(begun).as_secs_f64() * 1e3);
        let who = roll.present.iter().map(|recruit| (recruit.id.clone(), recruit.incarnation));
        let run = "bench-1".to_owned();
        let machine = Coordinator::new(COORDINATOR, run, Limits::DEFAULT, who, clock.now());
        let (fabric, arrivals, clock) = (&fabric, &arrivals, &clock);
        let mut head = Head { machine, fabric, arrivals, clock };
        let open = assignment();
        opens.push(head.step(|part| Order::Open(Box::new(Assignment { part, ..open.clone() }))));
        joins.push(clock.now().since(begun).as_secs_f64() * 1e3);
        let began = clock.now();
        let todo = head.machine.measure(began);
        head.perform(todo);
        head.until(Machine::is_measured);
        measures.push(clock.now().since(began).as_secs_f64() * 1e3);
        let before = Held::Here(ChangesDoc::of(&Changes::default()));
        let stage =
            StageOrder { stage: 0, name: None, ops: None, pacing: None, probe: None, before };
        for _ in 0..plan.stages() {
            barriers.push(head.step(|_| Order::Stage(Box::new(stage.clone()))));
        }
        assert_eq!(head.machine.step() as usize, 1 + plan.stages());
    }
    let what = |text: &str| format!("{text} {AGENTS} simulated agents");
    vec![
        Row::new(what("join of"), "ms", joins, Target::Most(2_000.0)),
        Row::new("– of this the roll", "ms", rolls, Target::None),
        Row::new("– of this their first step", "ms", opens, Target::None),
        Row::new(what("barrier of"), "ms", barriers, Target::Most(100.0)),
        Row::new(what("measuring the clocks of"), "ms", measures, Target::None),
    ]
}

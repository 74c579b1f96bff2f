//! Schedules of faults, held against the rules of a fleet: nothing hangs, no step is done twice or
//! out of order, nobody works for two coordinators, and who is lost is named.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_fleet::Limits;
use plimsoll_fleet::agent::{Agent, AgentDo, LeaveReason};
use plimsoll_fleet::coordinator::{Coordinator, CoordinatorDo, LossReason, Standing};
use plimsoll_fleet::fabric::{Address, Fabric};
use plimsoll_fleet::protocol::{About, AgentId, Ask, Tell, decode, encode};
use plimsoll_fleet::simulated::{Simulated, Weather};
use plimsoll_model::Moment;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
/// How long a step takes at most.
const WORK_NS_MAX: u64 = 4 * SECOND;
const LIMITS: Limits = Limits::DEFAULT;

type Order = (String, u32);
type Answer = u64;
type Live = u64;

#[derive(Clone, Debug)]
enum Fault {
    /// The process ends; another one of the same id comes up after so long, if it does.
    Kill { agent: usize, back_ns: Option<u64> },
    /// It does nothing for so long.
    Freeze { agent: usize, ns: u64 },
    /// No message comes through for so long.
    Cut { agent: usize, ns: u64 },
    /// The first coordinator ends.
    KillCoordinator,
    /// The step under way is to end early.
    EndStep,
}

#[derive(Clone, Debug)]
struct Schedule {
    seed: u64,
    weather: Weather,
    /// By agent: its clock's offset in nanoseconds and drift in parts per billion.
    clocks: Vec<(i64, i64)>,
    steps: u32,
    faults: Vec<(u64, Fault)>,
    /// When a second coordinator wants the same agents.
    second_at: Option<u64>,
}

/// A process of an agent.
struct Process {
    id: AgentId,
    incarnation: u64,
    clock: (i64, i64),
    agent: Option<Agent<Answer, Live>>,
    /// Until when it does nothing.
    frozen: u64,
    /// What it works on, and when that is done.
    work: Option<(Work, u64)>,
    /// When it has left a run that it was told to leave.
    leaves: Option<u64>,
    /// When another process of that id comes up.
    back: Option<u64>,
}

#[derive(Clone, Debug)]
struct Work {
    run: String,
    /// As the agent counts.
    step: u32,
    /// As the coordinator does.
    step_of_all: u32,
}

struct Head {
    id: u64,
    run: &'static str,
    machine: Coordinator<Order, Answer, Live>,
    steps: u32,
    is_dead: bool,
    ended: Option<u64>,
    /// What came of each step: by step and agent.
    answers: BTreeMap<(u32, usize), Answer>,
    lost: BTreeMap<usize, LossReason>,
    silent: BTreeSet<usize>,
    /// Who was lost and came back; `None` before the last step, the only one that they take part
    /// in.
    back: Option<BTreeSet<usize>>,
}

struct World {
    now: u64,
    fabric: Simulated,
    processes: Vec<Process>,
    heads: Vec<Head>,
    /// What was carried out: by run, agent, incarnation, and how often it has left.
    carried: BTreeMap<(String, usize, u64, u32), Vec<u32>>,
    /// By agent: how often it has left a run.
    lefts: Vec<u32>,
    /// What each process answered.
    did: BTreeMap<(String, u32, usize), Answer>,
    /// Agents that nothing happens to.
    spared: BTreeSet<usize>,
    state: u64,
}

fn agent_clock((offset, drift): (i64, i64), now: u64) -> Moment {
    let drifted = i128::from(now) * i128::from(drift) / 1_000_000_000;
    let base = 4 * 3_600 * SECOND;
    Moment::from_ns((i128::from(base) + i128::from(now) + i128::from(offset) + drifted) as u64)
}

/// Returns the true time at which the clock shows `at`, or just behind it.
fn true_time((offset, drift): (i64, i64), at: Moment) -> u64 {
    let base = i128::from(4 * 3_600 * SECOND);
    let shown = i128::from(at.as_ns()) - base - i128::from(offset);
    let scale = 1_000_000_000 + i128::from(drift);
    (shown * 1_000_000_000 / scale + 2).max(0) as u64
}

impl World {
    fn new(schedule: &Schedule) -> Self {
        let fabric = Simulated::new(schedule.seed, schedule.weather);
        let process = |(index, clock): (usize, &(i64, i64))| Process {
            id: AgentId::new(format!("agent-{index}")).unwrap(),
            incarnation: 1,
            clock: *clock,
            agent: Some(agent(index, 1, agent_clock(*clock, 0))),
            frozen: 0,
            work: None,
            leaves: None,
            back: None,
        };
        let processes: Vec<Process> = schedule.clocks.iter().enumerate().map(process).collect();
        Self {
            now: 0,
            fabric,
            processes,
            heads: Vec::new(),
            carried: BTreeMap::new(),
            lefts: vec![0; schedule.clocks.len()],
            did: BTreeMap::new(),
            spared: (0..schedule.clocks.len()).filter(|at| is_spared(schedule, *at)).collect(),
            state: schedule.seed,
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 20) % below.max(1)
    }

    fn begin(&mut self, id: u64, run: &'static str, steps: u32) {
        let agents: Vec<_> =
            self.processes.iter().map(|each| (each.id.clone(), each.incarnation)).collect();
        let now = Moment::from_ns(self.now);
        let mut machine = Coordinator::new(id, run.to_owned(), LIMITS, agents, now);
        let mut todo = machine.begin(now, None, |_| (run.to_owned(), 1));
        todo.extend(machine.measure(now));
        let (answers, lost, silent) = Default::default();
        let (is_dead, ended, back) = (false, None, None);
        let head = Head { id, run, machine, steps, is_dead, ended, answers, lost, silent, back };
        self.heads.push(head);
        self.head_does(self.heads.len() - 1, todo);
    }

    fn head_does(&mut self, at: usize, todo: Vec<CoordinatorDo<Order>>) {
        for each in todo {
            let head = &mut self.heads[at];
            match each {
                CoordinatorDo::Say(agent, step) => {
                    let message = encode(&Ask::Step(step)).unwrap();
                    self.fabric.post(&Address::Agent(agent), message).unwrap();
                }
                CoordinatorDo::Silent(index, _) => {
                    assert!(head.silent.insert(index), "it is silent already");
                }
                CoordinatorDo::Lags(..) => {}
                CoordinatorDo::Back(index) => assert!(head.silent.remove(&index)),
                CoordinatorDo::Lost(index, loss) => {
                    assert!(head.lost.insert(index, loss.why).is_none(), "it is lost already");
                }
            }
        }
        self.go_on(at);
    }

    /// Begins the next step where one is over.
    fn go_on(&mut self, at: usize) {
        let head = &mut self.heads[at];
        if head.is_dead || head.ended.is_some() || !head.machine.is_step_over() {
            return;
        }
        let step = head.machine.step();
        for (index, member) in head.machine.members().iter().enumerate() {
            if let Standing::Done(answer) = member.standing() {
                head.answers.insert((step, index), *answer);
            }
        }
        let now = Moment::from_ns(self.now);
        let all_lost = head.lost.len() == head.machine.members().len();
        let run = head.run;
        let is_last = head.back.is_some() || step == head.steps || all_lost;
        if is_last && head.back.is_none() {
            self.take_back(at);
        }
        let head = &mut self.heads[at];
        let has_come = head.back.as_ref().is_some_and(|back| !back.is_empty());
        if is_last && (step > head.steps || !has_come) {
            head.ended = Some(self.now);
            let todo = head.machine.dismiss(now);
            return self.head_does(at, todo);
        }
        if is_last {
            // So that it is known as the last one, also where all were lost before.
            head.steps = step;
        }
        let todo = head.machine.begin(now, None, |_| (run.to_owned(), step + 1));
        self.head_does(at, todo);
    }

    /// Takes on again who was lost and is there with what it kept.
    fn take_back(&mut self, at: usize) {
        let head = &mut self.heads[at];
        let mut back = BTreeSet::new();
        for index in head.lost.keys().copied().collect::<Vec<_>>() {
            let process = &mut self.processes[index];
            let is_reached = process.frozen <= self.now && !self.fabric.is_cut(&process.id);
            let Some(agent) = process.agent.as_mut().filter(|_| is_reached) else { continue };
            let is_kept = agent.about_mut().kept.iter().any(|run| run == head.run);
            let here: AgentDo<Order, Answer, Live> = agent.greet();
            let AgentDo::Say(Tell { number, incarnation, .. }) = here else { unreachable!() };
            if agent.run().is_none() && is_kept {
                let who = (process.id.clone(), incarnation);
                head.machine.take_back(Moment::from_ns(self.now), index, who, number);
                head.lost.remove(&index);
                head.silent.remove(&index);
                back.insert(index);
            }
        }
        head.back = Some(back);
    }

    fn agent_does(&mut self, index: usize, todo: Vec<AgentDo<Order, Answer, Live>>) {
        for each in todo {
            match each {
                AgentDo::Say(tell) => {
                    let to = Address::Coordinators(tell.agent.clone());
                    self.fabric.post(&to, encode(&tell).unwrap()).unwrap();
                }
                AgentDo::CarryOut { run, step, order } => {
                    assert_eq!(order.0, run);
                    let takes = self.random(WORK_NS_MAX);
                    let process = &mut self.processes[index];
                    assert!(process.work.is_none() && process.leaves.is_none(), "works already");
                    let work = Work { run: run.clone(), step, step_of_all: order.1 };
                    process.work = Some((work, self.now + takes));
                    let life = (run.clone(), index, process.incarnation, self.lefts[index]);
                    let carried = self.carried.entry(life).or_default();
                    assert_eq!(step as usize, carried.len() + 1, "a step twice or out of order");
                    carried.push(step);
                    // Nobody is ahead of a step that somebody else still works on.
                    let head = self.heads.iter().find(|head| head.run == run).unwrap();
                    assert!(head.machine.step() >= order.1);
                    let is_back = head.back.as_ref().is_some_and(|back| back.contains(&index));
                    assert!(is_back || order.1 == step);
                }
                AgentDo::EndStep => {
                    if let Some((_, done)) = &mut self.processes[index].work {
                        *done = (*done).min(self.now);
                    }
                }
                AgentDo::Leave { why, .. } => {
                    let takes = self.random(SECOND);
                    let process = &mut self.processes[index];
                    process.work = None;
                    process.leaves = Some(self.now + takes);
                    let is_heard_of = |head: &Head| !head.is_dead && head.ended.is_none();
                    if why == LeaveReason::Orphaned && self.spared.contains(&index) {
                        assert!(!self.heads.iter().all(is_heard_of), "left for nothing");
                    }
                }
            }
        }
    }

    fn fault(&mut self, fault: &Fault) {
        match *fault {
            Fault::Kill { agent, back_ns } => {
                let back = back_ns.map(|ns| self.now + ns);
                let process = &mut self.processes[agent];
                process.agent = None;
                process.work = None;
                process.leaves = None;
                process.back = back;
            }
            Fault::Freeze { agent, ns } => self.processes[agent].frozen = self.now + ns,
            Fault::Cut { agent, ns } => {
                // It is joined again as a thaw: by the same list of moments.
                let id = self.processes[agent].id.clone();
                self.fabric.cut(&id, ns > 0);
            }
            Fault::KillCoordinator => self.heads[0].is_dead = true,
            Fault::EndStep => {
                if !self.heads[0].is_dead && self.heads[0].ended.is_none() {
                    let todo = self.heads[0].machine.end_step(Moment::from_ns(self.now));
                    self.head_does(0, todo);
                }
            }
        }
    }

    /// Returns when something is due without a message.
    fn due(&self) -> Option<u64> {
        let of_process = |process: &Process| {
            let timer = process.agent.as_ref().and_then(Agent::due);
            let timer = timer.map(|at| true_time(process.clock, at));
            let done = process.work.as_ref().map(|(_, done)| *done);
            let all = [timer, done, process.leaves, process.back];
            all.into_iter().flatten().min().map(|at| at.max(process.frozen))
        };
        let of_head = |head: &Head| {
            let is_over = head.is_dead || head.ended.is_some();
            head.machine.due().filter(|_| !is_over).map(Moment::as_ns)
        };
        let heads = self.heads.iter().filter_map(of_head);
        let due = self.processes.iter().filter_map(of_process).chain(heads);
        due.chain(self.fabric.next_ns()).min().map(|at| at.max(self.now))
    }

    fn turn(&mut self, now: u64) {
        self.now = now;
        for delivery in self.fabric.advance(now) {
            self.deliver(&delivery.to, &delivery.bytes);
        }
        for index in 0..self.processes.len() {
            self.turn_process(index);
        }
        for at in 0..self.heads.len() {
            let head = &mut self.heads[at];
            if !head.is_dead && head.ended.is_none() {
                let todo = head.machine.tick(Moment::from_ns(now));
                self.head_does(at, todo);
            }
        }
    }

    fn deliver(&mut self, to: &Address, bytes: &[u8]) {
        match to {
            Address::Agents => unreachable!("nobody calls the roll here"),
            Address::Agent(id) => {
                let index = self.processes.iter().position(|each| each.id == *id).unwrap();
                let process = &mut self.processes[index];
                // What comes to a frozen process waits in its socket; here it is lost, which is
                // worse.
                if process.frozen > self.now {
                    return;
                }
                let at = agent_clock(process.clock, self.now);
                let Some(agent) = &mut process.agent else { return };
                let todo = agent.hear(at, decode::<Ask<Order>>(bytes).unwrap());
                self.agent_does(index, todo);
            }
            Address::Coordinators(_) => {
                let tell: Tell<Answer, Live> = decode(bytes).unwrap();
                for at in 0..self.heads.len() {
                    let head = &mut self.heads[at];
                    if head.is_dead {
                        continue;
                    }
                    let todo = head.machine.hear(Moment::from_ns(self.now), tell.clone());
                    self.head_does(at, todo);
                }
            }
        }
    }

    fn turn_process(&mut self, index: usize) {
        let now = self.now;
        let process = &mut self.processes[index];
        if process.frozen > now {
            return;
        }
        let at = agent_clock(process.clock, now);
        if process.back.take_if(|back| *back <= now).is_some() {
            process.incarnation += 1;
            process.agent = Some(agent(index, process.incarnation, at));
            let todo = vec![process.agent.as_mut().unwrap().greet()];
            self.agent_does(index, todo);
        }
        let process = &mut self.processes[index];
        let Some(agent) = &mut process.agent else { return };
        let mut todo = Vec::new();
        if let Some((work, _)) = process.work.take_if(|(_, done)| *done <= now) {
            let Work { run, step, step_of_all } = work;
            let answer = u64::from(step_of_all) * 1_000 + index as u64;
            self.did.insert((run.clone(), step_of_all, index), answer);
            todo.extend(agent.done(at, &run, step, answer));
        }
        if process.leaves.take_if(|left| *left <= now).is_some() {
            todo.extend(agent.left(true));
            self.lefts[index] += 1;
        }
        todo.extend(agent.tick(at));
        self.agent_does(index, todo);
    }
}

fn agent(index: usize, incarnation: u64, now: Moment) -> Agent<Answer, Live> {
    let about = About {
        name: format!("machine {index}"),
        version: "1".to_owned(),
        weight: 1,
        is_encrypted: true,
        busy: None,
        kept: Vec::new(),
        places: Vec::new(),
        machine: None,
    };
    let id = AgentId::new(format!("agent-{index}")).unwrap();
    Agent::new(id, incarnation, about, LIMITS, now)
}

fn run(schedule: &Schedule) -> World {
    let mut world = World::new(schedule);
    let mut faults: Vec<(u64, Fault)> = Vec::new();
    for (at, fault) in &schedule.faults {
        faults.push((*at, fault.clone()));
        if let Fault::Cut { agent, ns } = fault {
            faults.push((at + ns, Fault::Cut { agent: *agent, ns: 0 }));
        }
    }
    faults.sort_by_key(|(at, _)| *at);
    let mut faults = faults.into_iter().peekable();
    let mut second_at = schedule.second_at;
    world.begin(1, "first", schedule.steps);
    // The longest that each step may take, and everybody leaves after that.
    let lost_ns = LIMITS.lost_after.as_nanos() as u64;
    let step_ns = WORK_NS_MAX + 2 * lost_ns + 60 * SECOND;
    let end = 40 * SECOND + u64::from(schedule.steps + 2) * step_ns + 2 * lost_ns;
    while world.now < end {
        let fault_at = faults.peek().map(|(at, _)| *at);
        let next = [world.due(), fault_at, second_at].into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= end) else { break };
        world.turn(next.max(world.now));
        while let Some((_, fault)) = faults.next_if(|(at, _)| *at <= world.now) {
            world.fault(&fault);
        }
        if second_at.take_if(|at| *at <= world.now).is_some() {
            world.begin(2, "second", 2);
        }
    }
    world
}

/// How long the misfortunes of an agent last that could make somebody give it up.
fn is_spared(schedule: &Schedule, agent: usize) -> bool {
    let hurts = |fault: &Fault| match fault {
        Fault::Kill { agent: of, .. } | Fault::Freeze { agent: of, .. } => *of == agent,
        Fault::Cut { agent: of, .. } => *of == agent,
        Fault::KillCoordinator | Fault::EndStep => false,
    };
    !schedule.faults.iter().any(|(_, fault)| hurts(fault))
}

fn check(schedule: &Schedule) {
    let world = run(schedule);
    let kills = |fault: &Fault| matches!(fault, Fault::KillCoordinator);
    let is_killed = schedule.faults.iter().any(|(_, fault)| kills(fault));
    for head in &world.heads {
        assert!(head.is_dead || head.ended.is_some(), "{}: hangs", head.run);
        assert!(head.id != 1 || is_killed || head.ended.is_some());
        for (index, member) in head.machine.members().iter().enumerate() {
            let why = head.lost.get(&index);
            let is_only = schedule.second_at.is_none();
            if is_only && !head.is_dead && is_spared(schedule, index) {
                assert_eq!(why, None, "agent {index} was given up, and nothing was wrong with it");
            }
            if head.ended.is_some() && why.is_none() {
                let is_back = head.back.as_ref().is_some_and(|back| back.contains(&index));
                let first = if is_back { head.machine.step() } else { 1 };
                for step in first..=head.machine.step() {
                    let did = world.did[&(head.run.to_owned(), step, index)];
                    assert_eq!(head.answers.get(&(step, index)), Some(&did), "step {step} is lost");
                }
            }
            if let Some(offset) = member.offset() {
                let process = &world.processes[index];
                let truth = agent_clock(process.clock, offset.at.as_ns()).as_ns() as i128
                    - i128::from(offset.at.as_ns());
                // A clock that drifts moves on while the messages are on their way.
                let drift = u64::from(process.clock.1.unsigned_abs() > 0) * 1_000_000;
                let wrong = truth.abs_diff(i128::from(offset.ns)) as u64;
                assert!(wrong <= offset.uncertainty_ns + drift, "{wrong} ns: {offset:?}");
            }
        }
        for ((step, index), answer) in &head.answers {
            assert_eq!(world.did[&(head.run.to_owned(), *step, *index)], *answer);
        }
    }
    for process in &world.processes {
        if let Some(agent) = &process.agent {
            assert_eq!(agent.run(), None, "{:?} is not let go", process.id);
        }
    }
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let weather = (0_u32..300_000, 0_u32..300_000, 0_u64..300_000_000);
    let weather = weather.prop_map(|(lost_ppm, twice_ppm, delay_ns_max)| Weather {
        lost_ppm,
        twice_ppm,
        delay_ns_max,
    });
    let hours = 3 * 3_600 * SECOND as i64;
    let clocks = prop::collection::vec((-hours..hours, -200_000_i64..200_000), 1..7);
    (any::<u64>(), weather, clocks, 1_u32..6).prop_flat_map(|(seed, weather, clocks, steps)| {
        let (agents, long) = (clocks.len(), 25 * SECOND);
        let back = prop::option::of(0..5 * SECOND);
        let fault = prop_oneof![
            (0..agents, back).prop_map(|(agent, back_ns)| Fault::Kill { agent, back_ns }),
            (0..agents, 1..long).prop_map(|(agent, ns)| Fault::Freeze { agent, ns }),
            (0..agents, 1..long).prop_map(|(agent, ns)| Fault::Cut { agent, ns }),
            Just(Fault::KillCoordinator),
            Just(Fault::EndStep),
        ];
        let faults = prop::collection::vec((0..15 * SECOND, fault), 0..5);
        let second_at = prop::option::weighted(0.2, 0..15 * SECOND);
        (Just((seed, weather, clocks, steps)), faults, second_at).prop_map(
            |((seed, weather, clocks, steps), faults, second_at)| Schedule {
                seed,
                weather,
                clocks,
                steps,
                faults,
                second_at,
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn no_schedule_of_faults_breaks_the_rules(schedule in schedule()) {
        check(&schedule);
    }
}

mod nightly {
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

        #[test]
        fn none_of_a_thousand_schedules_of_faults_breaks_the_rules(schedule in schedule()) {
            check(&schedule);
        }
    }
}

fn calm(agents: usize, steps: u32) -> Schedule {
    let weather = Weather { lost_ppm: 0, twice_ppm: 0, delay_ns_max: 1_000_000 };
    let clocks = vec![(0, 0); agents];
    Schedule { seed: 1, weather, clocks, steps, faults: Vec::new(), second_at: None }
}

#[test]
fn in_calm_weather_a_step_costs_its_longest_work_and_two_ways() {
    let world = run(&calm(50, 4));
    let head = &world.heads[0];
    assert_eq!((head.answers.len(), head.lost.len()), (200, 0));
    assert!(head.machine.is_measured());
    for member in head.machine.members() {
        let offset = member.offset().unwrap();
        let truth = i64::try_from(4 * 3_600 * SECOND).unwrap();
        assert!(offset.ns.abs_diff(truth) <= offset.uncertainty_ns, "{offset:?}");
        assert!(offset.uncertainty_ns <= 1_000_001, "{offset:?}");
    }
    let most = 4 * (WORK_NS_MAX + 2 * 1_000_000);
    assert!(head.ended.unwrap() <= most, "{:?}", head.ended);
    assert!(world.processes.iter().all(|each| each.agent.as_ref().unwrap().run().is_none()));
}

#[test]
fn an_agent_that_is_killed_is_lost_and_the_others_go_on() {
    let kill = Fault::Kill { agent: 1, back_ns: None };
    let schedule = Schedule { faults: vec![(SECOND / 100, kill)], ..calm(3, 2) };
    let world = run(&schedule);
    let head = &world.heads[0];
    assert_eq!(head.lost.keys().collect::<Vec<_>>(), [&1]);
    assert_eq!(head.lost[&1], LossReason::Silent);
    assert_eq!(head.answers.len(), 4);
    let lost_ns = LIMITS.lost_after.as_nanos() as u64;
    let most = lost_ns + 2 * WORK_NS_MAX + SECOND;
    assert!(head.ended.unwrap() <= most);
}

#[test]
fn one_that_comes_up_again_is_found_out_sooner() {
    let kill = Fault::Kill { agent: 0, back_ns: Some(SECOND) };
    let schedule = Schedule { faults: vec![(SECOND / 100, kill)], ..calm(2, 1) };
    let world = run(&schedule);
    let head = &world.heads[0];
    assert_eq!(head.lost[&0], LossReason::Restarted);
    assert!(head.ended.unwrap() <= WORK_NS_MAX + 2 * SECOND);
}

#[test]
fn one_that_was_cut_off_comes_back_with_what_it_kept() {
    let cut = Fault::Cut { agent: 1, ns: 15 * SECOND };
    // What goes on for longer than it is away.
    let schedule = Schedule { faults: vec![(SECOND / 100, cut)], ..calm(3, 12) };
    let world = run(&schedule);
    let head = &world.heads[0];
    assert_eq!(head.lost.len(), 0);
    assert_eq!(head.back, Some(BTreeSet::from([1])));
    // All steps of two agents, and of the third those before the cut and the last one.
    let of_back = head.answers.keys().filter(|(_, index)| *index == 1).count();
    assert_eq!(head.answers.len() - of_back, 2 * 13);
    assert!(head.answers.contains_key(&(13, 1)) && of_back < 13);
}

#[test]
fn a_second_coordinator_gets_no_agent_that_works_for_the_first() {
    let schedule = Schedule { second_at: Some(SECOND / 100), ..calm(3, 3) };
    let world = run(&schedule);
    let (first, second) = (&world.heads[0], &world.heads[1]);
    assert_eq!((first.lost.len(), first.answers.len()), (0, 9));
    let is_busy = |why: &LossReason| matches!(why, LossReason::Busy { run } if run == "first");
    assert_eq!(second.lost.len(), 3);
    assert!(second.lost.values().all(is_busy), "{:?}", second.lost);
}

#[test]
fn agents_of_a_dead_coordinator_leave_and_keep_their_part() {
    let schedule = Schedule { faults: vec![(SECOND / 100, Fault::KillCoordinator)], ..calm(3, 3) };
    let mut world = run(&schedule);
    for process in &mut world.processes {
        let agent = process.agent.as_mut().unwrap();
        assert_eq!(agent.run(), None);
        assert_eq!(agent.about_mut().kept, ["first"]);
    }
    assert!(Duration::from_nanos(world.now) < 3 * LIMITS.lost_after);
}

//! Fleets on a real `nats-server`: agents as threads of this process or as processes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_conduct::{BegunRun, ContentFiles, RunTime};
use plimsoll_fleet::Limits;
use plimsoll_fleet::broker::{Broker, BrokerSettings, TokenRules, local_fleet};
use plimsoll_fleet::fabric::{Address, Fabric, FabricError, Kept, Space};
use plimsoll_fleet::lead::{FleetSettings, Lead};
use plimsoll_fleet::nats::{Nats, NatsConfig, Side};
use plimsoll_fleet::protocol::{AgentId, Ask, decode};
use plimsoll_fleet::roll::{Call, Recruit, call_roll};
use plimsoll_fleet::token::Token;
use plimsoll_fleet::wire::{ConductDoc, Order};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::place::{Heard, Idle, OP_TIMEOUT};
use crate::task::{Task, Works, about};

/// The word that makes this program an agent.
pub(crate) const AGENT: &str = "agent";
/// Where an agent finds the token of its fleet.
const TOKEN: &str = "PLIMSOLL_BENCH_TOKEN";
/// What an agent says when it is there.
const READY: &str = "ready";
/// Longer than anything takes that comes at all.
const LONG: Duration = Duration::from_secs(60);

/// A fleet that is up.
pub(crate) struct Fleet {
    broker: Broker,
    config: NatsConfig,
    pub(crate) place: tempfile::TempDir,
}

impl Fleet {
    pub(crate) fn start(agents_max: u32) -> Self {
        let program = plimsoll_testkit::nats_server().expect("a fleet needs nats-server");
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("fleet");
        let settings = BrokerSettings {
            program,
            listen: ("127.0.0.1".to_owned(), 0),
            addresses: vec!["127.0.0.1".to_owned()],
            directory: directory.clone(),
            agents_max,
        };
        let broker = Broker::start(settings).unwrap();
        let config = local_fleet(&directory).unwrap();
        Self { broker, config, place }
    }

    pub(crate) fn token(&self) -> Token {
        self.broker.token(TokenRules { uses: None, lasts: None }).unwrap()
    }

    /// Returns the seconds of processor time that its server has used so far.
    pub(crate) fn server_cpu(&self) -> f64 {
        let path = format!("/proc/{}/stat", self.broker.server_pid());
        let text = std::fs::read_to_string(path).unwrap();
        // Behind the program's name, which is in brackets: user and system time are the 14th and
        // 15th of all words (proc_pid_stat(5)).
        let (_, words) = text.rsplit_once(") ").unwrap();
        let words: Vec<&str> = words.split(' ').collect();
        let ticks: u64 = words[11].parse::<u64>().unwrap() + words[12].parse::<u64>().unwrap();
        ticks as f64 / rustix::param::clock_ticks_per_second() as f64
    }

    /// Joins the fleet as its coordinator, which hears nobody.
    pub(crate) fn coordinator(&self) -> Nats {
        Nats::join_with(&self.config, Side::Coordinator, |_| true).unwrap()
    }

    /// Has that many agents carry a run out that has begun; returns the fabric as it was used.
    pub(crate) fn direct(&self, run: &mut BegunRun, count: usize) -> Arc<Watched> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let coordinator = NEXT.fetch_add(1, Ordering::Relaxed);
        let (nats, arrivals) = Nats::join(&self.config, Side::Coordinator).unwrap();
        let mut all = |present: &[Recruit], _| present.len() == count;
        let call = Call { coordinator, look: &[], limit: LONG };
        let clock = RunTime::machine().clock;
        let roll = call_roll(&nats, &arrivals, &*clock, call, &mut all).unwrap();
        assert_eq!((roll.present.len(), roll.strangers.len()), (count, 0));
        let op_timeout_ns = OP_TIMEOUT.as_nanos() as u64;
        let settings = FleetSettings {
            access: Value::Null,
            conduct: ConductDoc { op_timeout_ns, ..ConductDoc::default() },
            limits: Limits::DEFAULT,
            agents_min: 1,
            parts_stay: false,
            coordinator,
            content: ContentFiles::default(),
        };
        let first = roll.present[0].id.clone();
        let fabric = Arc::new(Watched { nats, first, starts: Mutex::default() });
        let of_lead = Arc::clone(&fabric) as Arc<dyn Fabric>;
        run.direct(Box::new(Lead::open(of_lead, arrivals, roll.present, run, settings).unwrap()));
        fabric
    }
}

/// The coordinator's fabric, which notes when it has stages begin.
pub(crate) struct Watched {
    nats: Nats,
    first: AgentId,
    /// By stage: the step, and when the first agent is to begin it by its own clock.
    starts: Mutex<Vec<(u32, u64)>>,
}

impl Watched {
    /// Returns when the first agent was to begin each stage, by its own clock.
    pub(crate) fn starts_ns(&self) -> Vec<u64> {
        self.starts.lock().unwrap().iter().map(|(_, at_ns)| *at_ns).collect()
    }
}

impl Fabric for Watched {
    fn make(&self, agents: &[(AgentId, String)]) -> Result<(), FabricError> {
        self.nats.make(agents)
    }

    fn post(&self, to: &Address, message: Vec<u8>) -> Result<(), FabricError> {
        if matches!(to, Address::Agent(id) if *id == self.first)
            && let Ok(Ask::Step(step)) = decode::<Ask<Order>>(&message)
            && let Some(Order::Start { at_ns }) = step.order
        {
            let mut starts = self.starts.lock().unwrap();
            if starts.last().is_none_or(|(last, _)| *last < step.step) {
                starts.push((step.step, at_ns));
            }
        }
        self.nats.post(to, message)
    }

    fn put(
        &self,
        of: &Space,
        name: &str,
        content: &mut dyn std::io::Read,
    ) -> Result<Kept, FabricError> {
        self.nats.put(of, name, content)
    }

    fn get(
        &self,
        of: &Space,
        kept: &Kept,
        to: &mut dyn std::io::Write,
    ) -> Result<u64, FabricError> {
        self.nats.get(of, kept, to)
    }

    fn remove(&self, of: &Space, prefix: &str) -> Result<(), FabricError> {
        self.nats.remove(of, prefix)
    }
}

/// Has an agent of this process join a fleet under a name.
pub(crate) fn join_task(token: &Token, name: &str, idle: Idle) -> Task {
    let clock = Arc::clone(&idle.clock);
    let observer = Heard::new(&clock);
    let works = Works { workplace: Arc::new(idle), clock, observer };
    Task::join(token, about(name, 1), works, &|_, nats| Arc::new(nats))
}

/// An agent that is a process.
pub(crate) struct Process {
    child: Child,
    says: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn join(fleet: &Fleet, name: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([AGENT, name]).arg(fleet.place.path().join(name));
        command.env(TOKEN, fleet.token().to_text());
        let mut process = Self::start(command);
        assert_eq!(process.line(), READY);
        process
    }

    /// Starts a process of this program that is talked to by lines.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let says = child.stdin.take().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        Self { child, says, said }
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Returns the processor time of all of its threads so far.
    pub(crate) fn cpu(&mut self) -> Duration {
        writeln!(self.says, "cpu").unwrap();
        Duration::from_nanos(self.line().parse().unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the processor time of all threads of this process so far.
pub(crate) fn own_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Is an agent until nobody talks to it any more.
pub(crate) fn be_an_agent(name: &str, place: &Path) {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    let token = Token::parse(&std::env::var(TOKEN).unwrap()).unwrap();
    let (clock, place) = (RunTime::machine().clock, place.to_path_buf());
    let task = join_task(&token, name, Idle { clock, place });
    println!("{READY}");
    for line in std::io::stdin().lines() {
        assert_eq!(line.unwrap(), "cpu");
        println!("{}", own_cpu().as_nanos());
    }
    task.end();
}

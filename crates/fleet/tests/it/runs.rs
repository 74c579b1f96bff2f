//! Runs of a fleet in virtual time, held against the same run of one process.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_conduct::{
    BegunRun, CallerError, Chooser, Chosen, ContentFiles, ContentFrom, FileSettings, FilesOn,
    FilesPart, Observer, RunRequest, RunSettings, RunTime, Stop, Store, Target, Targets,
};
use plimsoll_driver::null::NullDriver;
use plimsoll_driver::{ContentSink, Driver as _, EntrySink, Operation, Session as _};
use plimsoll_engine::EngineConfig;
use plimsoll_fleet::Limits;
use plimsoll_fleet::fabric::{Fabric, FabricError, Kept, Space};
use plimsoll_fleet::lead::{FleetSettings, Lead};
use plimsoll_fleet::local::Local;
use plimsoll_fleet::nats::{Nats, NatsConfig, Side};
use plimsoll_fleet::part::Workplace;
use plimsoll_fleet::protocol::AgentId;
use plimsoll_fleet::roll::{Call, Recruit, call_roll};
use plimsoll_fleet::station::{Identity, Input};
use plimsoll_fleet::wire::ConductDoc;
use plimsoll_model::{Clock, Moment, OpRecord, RunId, Seed, SharedClock, TargetKind, WallTime};
use plimsoll_oracle::{Behaviour, Script, ScriptedDriver};
use plimsoll_record::schema::{Manifest, RunState};
use plimsoll_record::{OpLog, RunDirectory};
use plimsoll_workload::Share;
use plimsoll_workload::plan::spec::PacingSpec;
use plimsoll_workload::plan::{FieldPath, JobPacing, Plan, WorkloadFile, read_as};
use serde_json::Value;

use crate::task::{Task, Works, about};

/// Members are filled, changed, read again by others than those who put them, and removed.
pub(crate) const WORKLOAD: &str = "\
schema: plimsoll.workload/2
name: divided
sets:
  o: {count: 200, size: {uniform: 1KiB..2KiB}}
  p: {size: 64B}
stages:
- {name: load, prepares: true, jobs: [{workers: 5, work: {fill: o}}]}
- name: main
  duration: 2s
  jobs:
  - name: mix
    workers: 7
    ops: 2000
    work:
      objects:
      - {get: o, weight: 50}
      - {put: o, weight: 20}
      - {delete: o, weight: 20}
      - {stat: o, weight: 10}
  - {name: few, workers: 2, work: {objects: [{put: p}]}}
- name: open
  duration: 1s
  jobs:
  - workers: 6
    pacing: {open: {rate: 400/s, arrivals: poisson, max_in_flight: 64}}
    work: {objects: [{get: o}]}
- {name: again, jobs: [{workers: 4, ops: 300, work: {objects: [{get: o}, {get: p}]}}]}
- {name: rest, duration: 500ms}
- name: capped
  duration: 700ms
  jobs:
  - {name: all, workers: 6, pacing: {capped: 250/s}, work: {objects: [{get: o}]}}
  - {name: each, workers: 3, start_delay: 0s..100ms, ramp: 50ms, work: {objects: [{stat: o}]}}
- name: counted
  jobs:
  - {workers: 5, ops: 93, pacing: {capped_each: {read: 90/s}}, work: {objects: [{get: o}]}}
- {name: remove, jobs: [{workers: 3, work: {remove: o}}]}
";

/// What only the agents of a run are told.
pub(crate) const ACCESS: &str = "access-that-must-stay-secret";

/// As many at once as anybody likes.
const SCRIPT: &str = "schema: plimsoll.oracle/1\nservice: {time: {constant: 3ms}}\n";

/// Keeps what is said.
#[derive(Default)]
pub(crate) struct Heard(pub(crate) Mutex<Vec<String>>);

impl Observer for Heard {
    fn note(&self, _line: &str) {}

    fn warn(&self, line: &str) {
        // Where tests share a machine, it may be the limit.
        let is_of_machine = line.ends_with(" late") || line.contains(" of its machine");
        if !is_of_machine {
            self.0.lock().unwrap().push(line.to_owned());
        }
    }
}

fn behaviour() -> Behaviour {
    Behaviour::new(&Script::from_yaml(SCRIPT).unwrap(), 7)
}

pub(crate) fn store() -> ScriptedDriver {
    ScriptedDriver::new(behaviour())
}

fn settings() -> RunSettings {
    let op_timeout = Duration::from_secs(60);
    let engine = EngineConfig { threads: 1, op_timeout, retries: 0 };
    RunSettings { engine, ..RunSettings::default() }
}

/// What agents work on.
#[derive(Clone)]
pub(crate) enum On {
    /// One scripted store, in virtual time.
    Store(ScriptedDriver),
    /// Nothing.
    Null,
    /// Files of this machine.
    Files,
}

/// Agents that all work on the same.
struct Simulated {
    on: On,
    clock: SharedClock,
    place: PathBuf,
}

/// A clock that is ahead.
struct Ahead {
    clock: SharedClock,
    by: Duration,
}

impl Clock for Ahead {
    fn now(&self) -> Moment {
        self.clock.now().after(self.by)
    }
}

impl Workplace for Simulated {
    fn time(&self) -> RunTime {
        match self.on {
            On::Store(_) => RunTime::simulated(),
            _ => RunTime { clock: Arc::clone(&self.clock), ..RunTime::machine() },
        }
    }

    fn judge(&self, plan: &Plan, _share: Share, _access: &Value) -> Result<(), CallerError> {
        match &*plan.name {
            "forbidden" => Err("the owner does not allow it".into()),
            "limited" if plan.stages.iter().any(|stage| stage.in_flight_max() > 100) => {
                Err("its owner allows 100 operations in flight".into())
            }
            "defect" => panic!("as the test wants it"),
            _ => Ok(()),
        }
    }

    fn targets(
        &self,
        _plan: &Plan,
        access: &Value,
        _seed: Seed,
        _time: &RunTime,
    ) -> Result<Targets, CallerError> {
        assert_eq!(access, ACCESS);
        let target = match &self.on {
            On::Store(store) => {
                Store::without_admin(store.beside(behaviour()), TargetKind::Oracle).into()
            }
            On::Null => Store::without_admin(NullDriver, TargetKind::Null).into(),
            On::Files => Target::Files(FilesOn::Machine),
        };
        Ok(Targets { all: vec![target], ..Targets::default() })
    }

    fn settings(&self, conduct: &ConductDoc, part: FilesPart) -> Result<RunSettings, CallerError> {
        assert_eq!(conduct.op_timeout_ns, 60_000_000_000);
        let settings = settings();
        let files = FileSettings { part: Some(part), keeps_data: true, ..settings.files.clone() };
        Ok(RunSettings { files, ..settings })
    }

    fn record_of(&self, run: &RunId, part: usize) -> PathBuf {
        self.place.join(format!("{}-{part}", run.as_str()))
    }

    fn settle(&self, part: RunDirectory) -> Result<PathBuf, CallerError> {
        let place = part.path().with_extension("own");
        part.move_to(&place)?;
        Ok(place)
    }
}

/// What carries the messages of a fleet.
enum Way {
    /// Nothing but this process.
    Local(Local),
    /// A NATS.
    Nats(NatsConfig),
}

/// A fleet in this process.
pub(crate) struct Fleet {
    way: Way,
    tasks: Vec<Task>,
    pub(crate) parts_stay: bool,
    pub(crate) limits: Limits,
    content: ContentFiles,
}

/// Returns what the agent of a number works with; its clock is ahead by hours, each by others.
pub(crate) fn works(place: &Path, on: &On, index: usize) -> Works {
    let by = Duration::from_secs(3_600 * index as u64);
    let clock: SharedClock = Arc::new(Ahead { clock: RunTime::machine().clock, by });
    let (on, place) = (on.clone(), place.to_path_buf());
    let workplace = Simulated { on, clock: Arc::clone(&clock), place };
    Works { workplace: Arc::new(workplace), clock, observer: Arc::new(Heard::default()) }
}

impl Fleet {
    /// Starts an agent of each weight.
    fn new(place: &Path, on: &On, weights: &[u32]) -> Self {
        let local = Local::default();
        let task = |(index, weight): (usize, &u32)| {
            let id = AgentId::new(format!("agent-{index:02}")).unwrap();
            let about = about(&format!("node{index:02}"), *weight);
            let arrivals = local.join_agent(&id);
            let way = channel();
            let to = way.0.clone();
            std::thread::spawn(move || {
                while let Ok(arrival) = arrivals.recv_timeout(Duration::MAX) {
                    if to.send(Input::Arrived(arrival)).is_err() {
                        return;
                    }
                }
            });
            let identity = Identity { id, incarnation: 1, about };
            Task::start(identity, Arc::new(local.clone()), way, works(place, on, index))
        };
        let tasks = weights.iter().enumerate().map(task).collect();
        Self::of(Way::Local(local), tasks)
    }

    /// Returns one of agents that have joined a NATS.
    pub(crate) fn on_nats(config: NatsConfig, tasks: Vec<Task>) -> Self {
        Self::of(Way::Nats(config), tasks)
    }

    fn of(way: Way, tasks: Vec<Task>) -> Self {
        let (content, limits) = (ContentFiles::default(), Limits::DEFAULT);
        Self { way, tasks, parts_stay: false, limits, content }
    }

    /// Has the agents carry a run out that has begun.
    fn direct(&self, run: &mut BegunRun) -> Result<(), CallerError> {
        self.direct_through(run, &|fabric| fabric)
    }

    /// The same; `through` may put something before the coordinator's fabric.
    pub(crate) fn direct_through(
        &self,
        run: &mut BegunRun,
        through: &dyn Fn(Arc<dyn Fabric>) -> Arc<dyn Fabric>,
    ) -> Result<(), CallerError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let coordinator = NEXT.fetch_add(1, Ordering::Relaxed);
        let clock = RunTime::machine().clock;
        let count = self.tasks.len();
        let mut all = |present: &[Recruit], _| present.len() == count;
        let call = Call { coordinator, look: &[], limit: Duration::from_secs(20) };
        let (fabric, arrivals, roll): (Arc<dyn Fabric>, _, _) = match &self.way {
            Way::Local(local) => {
                let arrivals = local.join_coordinator();
                let roll = call_roll(local, &arrivals, &*clock, call, &mut all)?;
                (Arc::new(local.clone()), arrivals, roll)
            }
            Way::Nats(config) => {
                let (nats, arrivals) = Nats::join(config, Side::Coordinator)?;
                let roll = call_roll(&nats, &arrivals, &*clock, call, &mut all)?;
                (Arc::new(nats), arrivals, roll)
            }
        };
        assert_eq!((roll.present.len(), roll.strangers.len()), (count, 0));
        let conduct = ConductDoc { op_timeout_ns: 60_000_000_000, ..ConductDoc::default() };
        let settings = FleetSettings {
            access: Value::from(ACCESS),
            conduct,
            limits: self.limits,
            agents_min: 1,
            parts_stay: self.parts_stay,
            coordinator,
            content: self.content.clone(),
        };
        let lead = Lead::open(through(fabric), arrivals, roll.present, run, settings)?;
        run.direct(Box::new(lead));
        Ok(())
    }

    pub(crate) fn end(self) {
        self.tasks.into_iter().for_each(Task::end);
    }
}

pub(crate) fn begin(
    place: &Path,
    workload: &str,
    store: &ScriptedDriver,
) -> (BegunRun, Arc<Heard>) {
    let store = Store::without_admin(store.clone(), TargetKind::Oracle);
    begin_on(place, workload, store, RunTime::simulated())
}

pub(crate) fn begin_on(
    place: &Path,
    workload: &str,
    target: impl Into<Target>,
    time: RunTime,
) -> (BegunRun, Arc<Heard>) {
    begin_of(place, workload, target, time, ContentFrom::Files)
}

fn begin_of(
    place: &Path,
    workload: &str,
    target: impl Into<Target>,
    time: RunTime,
    content: ContentFrom,
) -> (BegunRun, Arc<Heard>) {
    let file = WorkloadFile::from_yaml("divided", workload).unwrap();
    let request = RunRequest {
        plan: Arc::new(file.check().unwrap()),
        seed: Seed(11),
        id: RunId::new("divided", WallTime::from_unix_ns(0), 1),
        time,
        targets: vec![target.into()],
        settings: settings(),
        content,
    };
    let open = request.lay_out().unwrap();
    let manifest = open.manifest(Vec::new(), Default::default(), None);
    let directory = RunDirectory::create(place, &manifest).unwrap();
    let heard = Arc::new(Heard::default());
    let observer = Arc::clone(&heard) as Arc<dyn Observer>;
    (open.begin(directory, manifest, observer, Stop::default()).unwrap(), heard)
}

/// What a run left.
pub(crate) struct Seen {
    pub(crate) manifest: Manifest,
    pub(crate) ops: Vec<OpRecord>,
    pub(crate) summary: String,
}

pub(crate) fn end(run: BegunRun, heard: &Heard) -> Seen {
    end_choosing(run, heard, None)
}

/// The same; `choose` says which stage comes next.
fn end_choosing(run: BegunRun, heard: &Heard, choose: Option<Chooser<'_>>) -> Seen {
    let seen = end_with_remarks(run, choose);
    assert_eq!(*heard.0.lock().unwrap(), [""; 0]);
    seen
}

/// Carries a run out of which something may have been said.
pub(crate) fn end_with_remarks(mut run: BegunRun, choose: Option<Chooser<'_>>) -> Seen {
    let recorded = run.run(None, choose).unwrap();
    run.recording.settle_measured(&recorded).unwrap();
    let directory = &run.recording.directory;
    let mut ops = Vec::new();
    OpLog::open(directory).unwrap().scan(&mut |op| ops.push(*op)).unwrap();
    // In which order the recorder took what threads had done at once means nothing.
    ops.sort_by_key(|op| (op.stage.0, op.worker.0, op.start, op.end));
    let mut summary = String::new();
    directory.open_file("summary.json").unwrap().read_to_string(&mut summary).unwrap();
    let manifest = directory.read_manifest().unwrap();
    assert!(!directory.path().join("agents").exists());
    Seen { manifest, ops, summary }
}

/// Checks that a fleet has left what a process alone has.
pub(crate) fn assert_same(seen: &Seen, alone: &Seen, who: &str) {
    let differs = seen.ops.iter().zip(&alone.ops).find(|(of, alone)| of != alone);
    assert_eq!(differs, None, "{who}");
    assert_eq!(seen.ops.len(), alone.ops.len(), "{who}");
    assert_eq!(seen.summary, alone.summary, "{who}");
    let plain = |manifest: &Manifest| {
        let mut stages = manifest.stages.clone();
        stages.iter_mut().for_each(|stage| stage.threads_count = 0);
        stages
    };
    let (stages, alone_stages) = (plain(&seen.manifest), plain(&alone.manifest));
    for (of, alone) in stages.iter().zip(&alone_stages) {
        assert_eq!(of, alone, "{who}");
    }
    assert_eq!(stages.len(), alone_stages.len());
}

/// Returns the workload with content that is made of a file as well, and what that holds, which is
/// not there any more.
#[expect(clippy::disallowed_methods, reason = "makes the file that is read")]
fn with_content(path: &Path) -> (String, ContentFiles) {
    std::fs::write(path, "the quick brown fox ".repeat(70)).unwrap();
    let bytes = std::fs::metadata(path).unwrap().len();
    let content = format!("{{files: [{{path: {}, bytes: {bytes}}}]}}", path.display());
    let set =
        format!("sets:\n  l: {{count: 20, size: {{uniform: 3KiB..5KiB}}, content: {content}}}");
    let fill = "stages:\n- {name: letters, prepares: true, jobs: [{workers: 3, work: {fill: l}}]}";
    let read = "- {name: read, jobs: [{workers: 5, ops: 90, work: {objects: [{get: l}]}}]}\n";
    let workload = WORKLOAD.replacen("sets:", &set, 1).replacen("stages:", fill, 1) + read;
    let held = (path.display().to_string(), std::fs::read(path).unwrap());
    let content = std::iter::once(held).collect();
    std::fs::remove_file(path).unwrap();
    (workload, content)
}

/// Takes names and contents.
#[derive(Default)]
struct Taken {
    keys: Vec<String>,
    content: Vec<u8>,
}

impl EntrySink for Taken {
    fn restart(&mut self) {
        self.keys.clear();
    }

    fn entry(&mut self, key: &str, _size: u64) {
        self.keys.push(key.to_owned());
    }
}

impl ContentSink for Taken {
    fn restart(&mut self) {
        self.content.clear();
    }

    fn accept(&mut self, bytes: &[u8]) {
        self.content.extend_from_slice(bytes);
    }
}

/// Returns all that a store holds.
fn stored_in(store: &ScriptedDriver) -> BTreeMap<String, Vec<u8>> {
    let store = store.beside(behaviour());
    let mut session = store.open_sessions(&RunTime::machine().clock, 1).remove(0);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut execute = |operation: Operation<'_>| {
        runtime.block_on(session.execute(None, operation)).result.unwrap();
    };
    let mut taken = Taken::default();
    execute(Operation::List { prefix: "", page_size: 1_000, pages_max: None, sink: &mut taken });
    let content = |key: String| {
        let mut taken = Taken::default();
        execute(Operation::Get { key: &key, range: None, version: None, sink: &mut taken });
        (key, taken.content)
    };
    taken.keys.into_iter().map(content).collect()
}

#[test]
fn a_fleet_does_what_one_process_does_bit_for_bit() {
    let place = tempfile::tempdir().unwrap();
    let (workload, content) = with_content(&place.path().join("letters"));
    let begin = |place: &Path, driver: &ScriptedDriver| {
        let driver = Store::without_admin(driver.clone(), TargetKind::Oracle);
        let content = ContentFrom::Here(content.clone());
        begin_of(place, &workload, driver, RunTime::simulated(), content)
    };
    let alone_in = store();
    let (run, heard) = begin(&place.path().join("alone"), &alone_in);
    let alone = end(run, &heard);
    assert!(alone.ops.len() > 3_000);
    let alone_stored = stored_in(&alone_in);
    assert!(alone_stored.len() >= 20 && alone_stored.values().any(|held| held.contains(&b'q')));
    for weights in [&[1][..], &[1, 1], &[3, 0, 1, 2], &[1; 50]] {
        let place = place.path().join(format!("fleet-{}", weights.len()));
        let store = store();
        let mut fleet = Fleet::new(&place, &On::Store(store.clone()), weights);
        fleet.content = content.clone();
        let (mut run, heard) = begin(&place.join("run"), &store);
        fleet.direct(&mut run).unwrap();
        // Agents have it, and so nobody else does any longer.
        let name = format!("{}/content/0", run.recording.manifest.run_id);
        let (word, sha256) = (String::new(), String::new());
        let kept = Kept { name, word, size_bytes: 0, sha256 };
        let Way::Local(local) = &fleet.way else { unreachable!("it is in this process") };
        let kept = local.get(&Space::Shared, &kept, &mut Vec::new());
        assert!(matches!(kept, Err(FabricError::Missing { .. })), "{kept:?}");
        let seen = end(run, &heard);
        assert!(stored_in(&store) == alone_stored, "{weights:?}");
        assert_same(&seen, &alone, &format!("{weights:?}"));
        assert_eq!(seen.manifest.state, RunState::Complete);
        let agents = &seen.manifest.agents;
        assert_eq!(agents.iter().map(|agent| agent.weight).collect::<Vec<_>>(), weights);
        let rows: u64 = agents.iter().map(|agent| agent.rows_count.unwrap()).sum();
        assert_eq!(rows, seen.ops.len() as u64);
        fleet.end();
        // Nobody keeps what was handed in.
        let left: Vec<_> =
            std::fs::read_dir(&place).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["run"]);
    }
}

/// Makes a stage again and again, each time with its operations at other moments.
fn pacing_anew() -> Chooser<'static> {
    Box::new(|_, done| {
        let pacing = [
            "{open: 333.3333/s}",
            "{open: {rate: 50/s..700/s over 900ms, arrivals: poisson, max_in_flight: 40}}",
            "{capped: 123.4/s}",
            "{capped_each: {read: 17.5/s, arrivals: poisson}}",
            "closed",
        ];
        let Some(number) = done.len().checked_sub(1) else { return Some(Chosen::plain(0)) };
        let spec: PacingSpec = read_as("pacing", pacing.get(number)?).unwrap();
        let pacing = JobPacing::of(&FieldPath::root(), &spec).unwrap();
        let name = Some(format!("probe {number}"));
        Some(Chosen { name, pacing: Some((1, pacing)), ..Chosen::plain(1) })
    })
}

#[test]
fn whoever_chooses_the_next_stage_may_pace_it_anew() {
    const WORKLOAD: &str = "\
schema: plimsoll.workload/2
name: paced
sets: {o: {count: 50, size: 64B}}
stages:
- {name: load, prepares: true, jobs: [{workers: 4, work: {fill: o}}]}
- name: probe
  duration: 1s
  jobs:
  - {name: beside, workers: 2, pacing: {capped: 30/s}, work: {objects: [{stat: o}]}}
  - {name: paced, workers: 6, pacing: {open: {rate: 10/s}}, work: {objects: [{get: o}]}}
";
    let place = tempfile::tempdir().unwrap();
    let (run, heard) = begin(&place.path().join("alone"), WORKLOAD, &store());
    let alone = end_choosing(run, &heard, Some(pacing_anew()));
    let paced = |seen: &Seen| {
        let of = |stage: u8| seen.ops.iter().filter(move |op| (op.stage.0, op.job.0) == (stage, 1));
        (1..6).map(|stage| of(stage).count()).collect::<Vec<_>>()
    };
    let counts = paced(&alone);
    // 333, 375, 123 and 6 * 17.5 in a second, and 6 workers that wait 3 ms each.
    let expected = [333..=335, 300..=460, 120..=130, 70..=145, 1_990..=2_010];
    let are_paced = counts.iter().zip(&expected).all(|(count, of)| of.contains(count));
    assert!(are_paced, "{counts:?}");
    for weights in [&[1, 1][..], &[2, 0, 1, 5]] {
        let place = place.path().join(format!("fleet-{}", weights.len()));
        let store = store();
        let fleet = Fleet::new(&place, &On::Store(store.clone()), weights);
        let (mut run, _) = begin(&place.join("run"), WORKLOAD, &store);
        fleet.direct(&mut run).unwrap();
        // By chance, of so few operations, an agent may stand out.
        let seen = end_with_remarks(run, Some(pacing_anew()));
        assert_same(&seen, &alone, &format!("{weights:?}"));
        fleet.end();
    }
}

#[test]
fn what_an_owner_allows_holds_for_stages_as_they_are_ordered() {
    const WORKLOAD: &str = "\
schema: plimsoll.workload/2
name: limited
sets: {o: {count: 50, size: 64B}}
stages:
- {name: load, prepares: true, jobs: [{workers: 4, work: {fill: o}}]}
- {name: main, duration: 1s, jobs: [{workers: 4, work: {objects: [{get: o}]}}]}
";
    let place = tempfile::tempdir().unwrap();
    for first in [0, 1] {
        let (own, store) = (place.path().join(format!("fleet-{first}")), store());
        let fleet = Fleet::new(&own, &On::Store(store.clone()), &[1]);
        let (mut run, heard) = begin(&place.path().join(format!("run-{first}")), WORKLOAD, &store);
        fleet.direct(&mut run).unwrap();
        let choose: Chooser<'_> = Box::new(|_, done| {
            if done.len() != first {
                return (done.len() < first).then(|| Chosen::plain(done.len()));
            }
            let spec = "{open: {rate: 10/s, max_in_flight: 100000}}";
            let pacing = JobPacing::of(&FieldPath::root(), &read_as("pacing", spec).unwrap());
            Some(Chosen { pacing: Some((0, pacing.unwrap())), ..Chosen::plain(1) })
        });
        let refused = run.run(None, Some(choose)).err().unwrap().to_string();
        assert!(refused.contains("0 of 1 agents are left"), "{refused}");
        let heard = heard.0.lock().unwrap().join("\n");
        assert!(heard.contains("its owner allows 100 operations in flight"), "{heard}");
        drop(run);
        fleet.end();
        // What was recorded before is kept for the coordinator, and nothing where that is nothing.
        assert_eq!(std::fs::read_dir(&own).map_or(0, Iterator::count), first);
    }
}

#[test]
fn a_part_of_which_no_stage_began_leaves_nothing_with_its_agent() {
    let place = tempfile::tempdir().unwrap();
    let (own, store) = (place.path().join("fleet"), store());
    let fleet = Fleet::new(&own, &On::Store(store.clone()), &[1, 1]);
    let (mut run, _) = begin(&place.path().join("run"), WORKLOAD, &store);
    fleet.direct(&mut run).unwrap();
    assert_eq!(std::fs::read_dir(&own).unwrap().count(), 2);
    drop(run);
    fleet.end();
    assert_eq!(std::fs::read_dir(&own).unwrap().count(), 0);
}

#[test]
fn parts_stay_with_agents_as_records_of_their_own_where_that_is_asked() {
    let place = tempfile::tempdir().unwrap();
    let store = store();
    let mut fleet = Fleet::new(place.path(), &On::Store(store.clone()), &[1, 1]);
    fleet.parts_stay = true;
    let (mut run, heard) = begin(&place.path().join("run"), WORKLOAD, &store);
    fleet.direct(&mut run).unwrap();
    let id = run.recording.manifest.run_id.clone();
    let seen = end(run, &heard);
    fleet.end();
    for (index, agent) in seen.manifest.agents.iter().enumerate() {
        assert!(!place.path().join(format!("{id}-{index}")).exists());
        let own = RunDirectory::open(&place.path().join(format!("{id}-{index}.own"))).unwrap();
        let manifest = own.read_manifest().unwrap();
        assert_eq!(manifest.state, RunState::Complete);
        assert_eq!(OpLog::open(&own).unwrap().scan(&mut |_| {}).ok(), agent.rows_count);
    }
}

#[test]
fn clocks_that_are_hours_apart_change_nothing() {
    const WORKLOAD: &str = "\
schema: plimsoll.workload/2
name: apart
sets: {o: {count: 40, size: 1KiB}}
stages:
- {name: load, prepares: true, jobs: [{workers: 4, work: {fill: o}}]}
- name: main
  jobs:
  - {workers: 4, duration: 300ms, pacing: {open: {rate: 2000/s}}, work: {objects: [{get: o}]}}
";
    let place = tempfile::tempdir().unwrap();
    let fleet = Fleet::new(place.path(), &On::Null, &[1, 1, 1, 1]);
    let time = RunTime::machine();
    let null = Store::without_admin(NullDriver, TargetKind::Null);
    let (mut run, heard) = begin_on(&place.path().join("run"), WORKLOAD, null, time);
    fleet.direct(&mut run).unwrap();
    let seen = end(run, &heard);
    fleet.end();
    let main = &seen.manifest.stages[1];
    let (started, ended) = (main.started_ns.unwrap(), main.ended_ns.unwrap());
    let ops: Vec<&OpRecord> = seen.ops.iter().filter(|op| op.stage.0 == 1).collect();
    assert!(ops.len() > 400, "{}", ops.len());
    // Whatever agent did it, it lies in the stage by the clock of the run, which had just begun.
    assert!(ended < 60_000_000_000, "{ended}");
    let inside = |op: &&&OpRecord| (started..=ended).contains(&op.intended.as_ns());
    assert_eq!(ops.iter().filter(inside).count(), ops.len());
    assert!(ops.iter().all(|op| op.end.as_ns() <= ended));
    for (index, agent) in seen.manifest.agents.iter().enumerate() {
        let hours = 3_600_000_000_000 * index as i64;
        let [first, second, third] = agent.clock[..] else { panic!("{:?}", agent.clock) };
        for reading in [first, second, third] {
            // The epochs of the processes' clocks differ by what passed until the run began; on a
            // busy machine nobody knows it better than the reading says.
            let more = reading.offset_ns - hours;
            let unknown = i64::try_from(reading.uncertainty_ns).unwrap();
            assert!((-unknown..60_000_000_000 + unknown).contains(&more), "{reading:?}");
        }
        assert_eq!([first, second, third].map(|reading| reading.stage_index), [0, 1, 1]);
        let moved = first.offset_ns.abs_diff(second.offset_ns);
        assert!(moved <= first.uncertainty_ns + second.uncertainty_ns + 1_000_000, "{moved}");
    }
}

#[test]
fn an_agent_that_may_not_take_part_says_why() {
    let place = tempfile::tempdir().unwrap();
    let store = store();
    let fleet = Fleet::new(place.path(), &On::Store(store.clone()), &[1, 1]);
    let workload = WORKLOAD.replace("name: divided", "name: forbidden");
    let (mut run, _) = begin(&place.path().join("run"), &workload, &store);
    let refused = fleet.direct(&mut run).unwrap_err().to_string();
    assert_eq!(refused, "agent node00 cannot take part: the owner does not allow it");
    drop(run);
    let workload = WORKLOAD.replace("name: divided", "name: defect");
    let (mut run, _) = begin(&place.path().join("broken"), &workload, &store);
    let refused = fleet.direct(&mut run).unwrap_err().to_string();
    let left = "cannot take part: it restarted, or left the run";
    assert!(refused.ends_with(left), "{refused}");
    drop(run);
    // Nor does it open what lies with the coordinator, whatever that calls its place.
    let scripted = "name: divided\ntargets: {oracle: {script: /dev/zero}}";
    let workload = WORKLOAD.replace("name: divided", scripted);
    let (mut run, _) = begin(&place.path().join("scripted"), &workload, &store);
    let refused = fleet.direct(&mut run).unwrap_err().to_string();
    let reaches_none = "an oracle of the workload lives where agents do not reach it";
    assert_eq!(refused, format!("agent node00 cannot take part: {reaches_none}"));
    drop(run);
    // The agents are free again.
    let (mut run, heard) = begin(&place.path().join("again"), WORKLOAD, &store);
    fleet.direct(&mut run).unwrap();
    assert_eq!(end(run, &heard).manifest.agents.len(), 2);
    fleet.end();
}

/// What is done to files, without when.
fn done_to_files(ops: &[OpRecord]) -> Vec<(u8, u32, &'static str, u64, bool)> {
    let of =
        |op: &OpRecord| (op.stage.0, op.worker.0, op.kind.name(), op.bytes, op.outcome.is_ok());
    let mut done: Vec<_> = ops.iter().map(of).collect();
    done.sort_unstable();
    done
}

#[test]
fn agents_work_on_each_others_files_check_them_and_remove_them() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("files");
    std::fs::create_dir(&directory).unwrap();
    let names = |name: &str, shift: u32, work: &str| {
        let job = format!("{{workers: 4, deal: {{shift: {shift}}}, work: {{names: {{{work}}}}}}}");
        format!("- {{name: {name}, jobs: [{job}]}}\n")
    };
    let workload = format!(
        "schema: plimsoll.workload/2
name: divided
targets: {{files: {{directory: {}}}}}
sets:
  f: {{files: 2, size: 64KiB, workers: 4}}
  t: {{tree: {{entries: 30, per_worker: true}}}}
stages:
- {{name: fill, prepares: true, jobs: [{{workers: 3, work: {{fill: f}}}}]}}
- name: read
  jobs: [{{workers: 4, work: {{blocks: {{on: f, read: {{block: 4KiB}}, repeats: false}}}}}}]
{}{}{}{}{}{}",
        directory.display(),
        names("tree", 0, "make_tree: t"),
        names("create", 0, "create: t, bytes: 100B"),
        names("stat", 2, "stat: t"),
        names("open", 3, "open: t, bytes: 100B"),
        names("delete", 1, "remove: t"),
        names("tree-removal", 0, "remove_tree: t"),
    );
    let is_empty = || std::fs::read_dir(&directory).unwrap().next().is_none();
    let clean = |mut run: BegunRun, heard: &Heard| {
        let recorded = run.run(None, None);
        assert_eq!(*heard.0.lock().unwrap(), [""; 0]);
        let directory = run.recording.directory.clone();
        assert!(run.finish(recorded, |_, _| Ok(true)).unwrap());
        let mut ops = Vec::new();
        OpLog::open(&directory).unwrap().scan(&mut |op| ops.push(*op)).unwrap();
        (directory.read_manifest().unwrap(), done_to_files(&ops))
    };
    let machine = RunTime::machine;
    let on_files = Target::Files(FilesOn::Machine);
    let (run, heard) = begin_on(&place.path().join("alone"), &workload, on_files, machine());
    let (alone, done_alone) = clean(run, &heard);
    assert!(is_empty());
    // 32 blocks of two files of each of four, and 4 * (1 + 30 + 30 + 30 + 30 + 1) names.
    assert_eq!(done_alone.iter().filter(|op| op.0 == 1).count(), 128);
    assert_eq!(done_alone.iter().filter(|op| op.0 > 1).count(), 488);
    for weights in [&[1][..], &[1, 1], &[2, 0, 1, 1]] {
        let own = place.path().join(format!("fleet-{}", weights.len()));
        let fleet = Fleet::new(&own, &On::Files, weights);
        let of_agents = Target::Files(FilesOn::Agents);
        let (mut run, heard) = begin_on(&own.join("run"), &workload, of_agents, machine());
        fleet.direct(&mut run).unwrap();
        let (manifest, done) = clean(run, &heard);
        fleet.end();
        assert_eq!(done, done_alone, "{weights:?}");
        assert!(done.iter().all(|op| op.4));
        assert!(is_empty(), "{weights:?}");
        let (files, files_alone) = (manifest.target.files.unwrap(), alone.target.files.clone());
        assert_eq!(files.file_system, files_alone.unwrap().file_system);
        for (stage, alone) in manifest.stages.iter().zip(&alone.stages) {
            let (files, of_alone) = (stage.files.as_ref().unwrap(), alone.files.as_ref().unwrap());
            assert_eq!(files.caches, of_alone.caches, "{}", stage.name);
            assert_eq!(files.unverified_bytes, Some(0), "{}", stage.name);
            assert!(files.usage.is_some());
            let interfaces = |stage: &plimsoll_record::schema::Stage| {
                stage.jobs.iter().map(|job| job.interface).collect::<Vec<_>>()
            };
            assert_eq!(interfaces(stage), interfaces(alone), "{}", stage.name);
        }
        assert_eq!(manifest.cleanup.files_removed_count, alone.cleanup.files_removed_count);
    }
}

//! Stages in virtual time on scripted files, alone and beside a scripted store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::{
    EngineConfig, FilesJobs, JobTiming, KeptOps, Live, ObjectsJob, RingConfig, StageContext,
    StageLimits, StageOutcome, StageWork, StopFlag, VirtualTime, run_stage,
};
use plimsoll_model::{
    Clock, EndReason, ErrorClass, Interface, JobId, Moment, OpKind, OpRecord, Seed, SharedClock,
    StageId, StageKind, WallTime, WorkerId,
};
use plimsoll_oracle::{Behaviour, Script, ScriptedDriver, ScriptedFiles};
use plimsoll_workload::data::Generator;
use plimsoll_workload::files::FilePlan;
use plimsoll_workload::plan::{Placed, Placing, WorkloadFile};
use plimsoll_workload::{StopRule, objects};

/// Blocks take 1 ms in the middle and 1.133 ms in the mean, at most eight at once.
const SCRIPT: &str = "schema: plimsoll.oracle/1\n\
                      service: {time: {lognormal: {median: 1ms, sigma: 0.5}}}\n\
                      servers: 8\n";
const SEED: u64 = 7;
const CONFIG: EngineConfig =
    EngineConfig { threads: 1, op_timeout: Duration::from_secs(60), retries: 0 };
const RINGS: RingConfig = RingConfig { threads: 2, interface: Interface::IoUring };

/// Lays a workload out whose sets and stages are these.
fn placed(body: &str) -> Placed {
    let text = format!("schema: plimsoll.workload/2\nname: t\n{body}");
    let plan = Arc::new(WorkloadFile::from_yaml("t.yaml", &text).unwrap().check().unwrap());
    let (seed, found) = (Seed(SEED), BTreeMap::new());
    let placing = Placing { run: "run", seed, buckets: &[String::new()], found: &found };
    plan.place(&placing).unwrap()
}

/// A stage that fills two files, one that reads and writes them, and names.
fn plan() -> FilePlan {
    let placed = placed(
        "targets: {files: {directory: /d}}\n\
         sets:\n\
         \x20 f: {files: 1, size: 1MiB, workers: 2, job: j}\n\
         \x20 t: {tree: {entries: 50, per_worker: true}}\n\
         stages:\n\
         - {name: s, jobs: [{name: f, depth: 4, work: {fill: {sets: f, block: 64KiB}}}]}\n\
         - {name: s, jobs: [{name: j, workers: 2, depth: 8, duration: 60s, work: {blocks: {on: f, \
         read: {block: 4KiB, percent: 70%}, write: {block: 4KiB}, order: uniform}}}]}\n\
         - {name: s, jobs: [{name: m, workers: 3, work: {names: {make_tree: t}}}]}\n\
         - {name: s, jobs: [{name: c, workers: 3, work: {names: {create: t, bytes: 600B}}}]}\n\
         - {name: s, jobs: [{name: o, workers: 3, work: {names: {open: t, bytes: 600B}}}]}\n",
    );
    placed.files.expect("it works on files")
}

/// Files, a store and the time that they live in.
struct World {
    time: Arc<VirtualTime>,
    clock: SharedClock,
    files: ScriptedFiles,
    store: ScriptedDriver,
}

impl World {
    fn new(script: &str) -> Self {
        let time = Arc::new(VirtualTime::new());
        let clock: SharedClock = Arc::clone(&time) as SharedClock;
        let script = Script::from_yaml(script).unwrap();
        let files = ScriptedFiles::new(Behaviour::new(&script, SEED), Arc::clone(&clock), true);
        let store = ScriptedDriver::new(Behaviour::new(&script, SEED));
        Self { time, clock, files, store }
    }

    /// Runs a stage on files beside a job on objects.
    fn run(
        &self,
        plan: &FilePlan,
        stage: usize,
        objects: Option<(&Gets, StageKind)>,
        stop_rules: Vec<StopRule>,
    ) -> (StageOutcome, Vec<OpRecord>) {
        let (stop, live) = (StopFlag::default(), Live::new(4));
        let generator = Arc::new(Generator::new(SEED));
        let context = StageContext {
            clock: &self.clock,
            virtual_time: Some(&self.time),
            stop: &stop,
            live: &live,
            generator: &generator,
            wall_epoch: WallTime::from_unix_ns(0),
            begins_at: None,
        };
        let objects = objects.map(|(gets, kind)| ObjectsJob {
            id: JobId(1),
            name: kind.name(),
            timing: gets.timing(kind),
            number_first: plan.workers(stage),
            endpoint_first: 1,
            ..ObjectsJob::alone(&self.store, gets.work(kind), &gets.generators)
        });
        let work = StageWork {
            stage: StageId(stage as u8),
            objects: objects.into_iter().collect(),
            files: Some(FilesJobs::alone(&self.files, plan, stage, RINGS)),
            limits: StageLimits { stop_rules, ..StageLimits::default() },
        };
        let mut kept = KeptOps::default();
        let outcome = run_stage(&work, &CONFIG, &context, &mut kept).unwrap();
        (outcome, kept.0)
    }
}

fn until(rule: &str) -> Vec<StopRule> {
    vec![StopRule::Until(vec![rule.parse().unwrap()])]
}

/// GETs by four workers for fifteen seconds, of what they put before.
struct Gets {
    placed: Placed,
    generators: Arc<[Arc<Generator>]>,
    measure: Arc<objects::ObjectsJob>,
}

impl Gets {
    fn new() -> Self {
        let placed = placed(
            "sets: {o: {count: 16, size: 512B}}\nstages:\n\
             - {name: prepare, prepares: true, jobs: [{workers: 4, work: {fill: o}}]}\n\
             - {name: measure, duration: 15s, jobs: [{workers: 4, work: {objects: [{get: o}]}}]}\n",
        );
        let there = [objects::Members::all()].into();
        let measure = Arc::new(placed.stages[1].objects[0].work.with_members(there));
        Self { placed, generators: [Arc::new(Generator::new(SEED))].into(), measure }
    }

    fn work(&self, kind: StageKind) -> &Arc<objects::ObjectsJob> {
        match kind {
            StageKind::Prepare => &self.placed.stages[0].objects[0].work,
            _ => &self.measure,
        }
    }

    fn timing(&self, kind: StageKind) -> JobTiming {
        let stages = &self.placed.plan.stages;
        let stage = stages.iter().find(|stage| stage.kind == kind).unwrap();
        JobTiming::of_job(&stage.jobs[0], stage.duration)
    }
}

#[test]
fn a_simulation_on_files_is_the_same_every_time_and_ends_when_its_p99_is_known() {
    let plan = plan();
    let simulate = || {
        let world = World::new(SCRIPT);
        let (filled, _) = world.run(&plan, 0, None, Vec::new());
        assert_eq!((filled.ops_count, filled.failed_count), (32, 0));
        let ran = world.run(&plan, 1, None, until("ci(p99)<=5%"));
        (ran, world.files.ledger())
    };
    let ((outcome, records), ledger) = simulate();
    assert_eq!((outcome.failed_count, outcome.ended_by), (0, EndReason::Until));
    let because = outcome.ended_because.unwrap();
    assert!(
        because.starts_with("READ: ci(p99) is ±") && because.contains("; WRITE: "),
        "{because}"
    );
    assert!(outcome.ended < Moment::from_ns(60_000_000_000));
    for kind in [OpKind::Read, OpKind::Write] {
        let count = records.iter().filter(|op| op.kind == kind).count() as u64;
        let filled = if kind == OpKind::Write { 32 } else { 0 };
        assert_eq!(ledger.count(kind, ErrorClass::Ok), count + filled);
    }
    // Eight servers of 1.133 ms in the mean, and sixteen that want them: 7,060 a second.
    let per_sec = records.len() as f64 / outcome.ended.since(outcome.started).as_secs_f64();
    assert!((6_900.0..7_250.0).contains(&per_sec), "{per_sec}");
    let ((again, same), _) = simulate();
    assert_eq!(
        (again.stream_hash, again.ended, same),
        (outcome.stream_hash, outcome.ended, records)
    );
}

#[test]
fn names_do_not_block_one_another() {
    let plan = plan();
    let world = World::new(SCRIPT);
    for stage in 2..5 {
        let began = world.time.now();
        let (outcome, records) = world.run(&plan, stage, None, Vec::new());
        assert_eq!(outcome.failed_count, 0, "{:?}", outcome.errors);
        if stage == 2 {
            continue;
        }
        assert_eq!(records.len(), 150);
        // Three at a time of 1.133 ms each: 50 of them one after the other.
        let took = outcome.ended.since(began);
        assert!(took < Duration::from_millis(90), "{took:?}");
    }
}

#[test]
fn a_store_and_files_are_simulated_in_one_stage() {
    let (plan, gets) = (plan(), Gets::new());
    let world = World::new(&SCRIPT.replace("servers: 8\n", ""));
    world.run(&plan, 0, Some((&gets, StageKind::Prepare)), Vec::new());
    let stopped = world.run(&plan, 1, Some((&gets, StageKind::Measure)), until("ci(mean)<=2%"));
    let (outcome, records) = stopped;
    assert_eq!((outcome.failed_count, outcome.ended_by), (0, EndReason::Until));
    let because = outcome.ended_because.unwrap();
    assert!(because.contains("measure: ci(mean)") && because.contains("j READ: "), "{because}");
    // Everything is served at once: 1.133 ms an operation, 882 a second.
    for (job, at_once) in [(0, 16.0), (1, 4.0)] {
        let of: Vec<&OpRecord> = records.iter().filter(|op| op.job == JobId(job)).collect();
        let took = outcome.ended.since(outcome.started).as_secs_f64();
        let of_job = outcome.jobs.iter().find(|each| each.job == JobId(job)).unwrap();
        assert_eq!(of.len() as u64, of_job.ops_count);
        let per_worker = of.len() as f64 / took / at_once;
        assert!((860.0..905.0).contains(&per_worker), "job {job}: {per_worker}");
    }
    let workers = |job| {
        let of = records.iter().filter(move |op| op.job == JobId(job));
        of.map(|op| op.worker).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(workers(0), [0, 1].map(WorkerId).into());
    assert_eq!(workers(1), [2, 3, 4, 5].map(WorkerId).into());
}

#[test]
fn faults_and_lies_of_files_are_found() {
    let plan = plan();
    let script = format!(
        "{SCRIPT}grace_count: 32\nfaults: {{read: {{io: 0.01}}}}\nlies: {{flipped: 0.001}}\n"
    );
    let world = World::new(&script);
    world.run(&plan, 0, None, Vec::new());
    let (outcome, records) = world.run(&plan, 1, None, until("ci(rate)<=5%"));
    let ledger = world.files.ledger();
    assert!(outcome.failed_count > 20);
    for class in [ErrorClass::Io, ErrorClass::Corrupt] {
        let seen = records.iter().filter(|op| op.outcome == class).count() as u64;
        assert_eq!(ledger.count(OpKind::Read, class), seen, "{class:?}");
        assert!(seen > 10, "{class:?}");
    }
}

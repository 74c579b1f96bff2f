//! Stages that are decided while the run goes on.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_conduct::{
    BegunRun, Chooser, Chosen, ContentFrom, Ends, Observer, RunRequest, RunSettings, RunTime,
    StageView, Stop, Store,
};
use plimsoll_engine::{EngineConfig, StageOutcome};
use plimsoll_model::{RunId, Seed, StageKind, TargetKind};
use plimsoll_oracle::{Behaviour, Script, ScriptedDriver};
use plimsoll_record::schema::{RunState, Stage};
use plimsoll_record::{OpLog, RunDirectory};
use plimsoll_stats::{Histogram, Percentile};
use plimsoll_workload::plan::{JobPacing, WorkloadFile};
use plimsoll_workload::{OpenLoop, Pacing};

/// Ten servers of 5 ms each: 2,000 operations a second, and no wait below that.
const SCRIPT: &str =
    "schema: plimsoll.oracle/1\nservice: {time: {constant: 5ms}}\nservers: 10\ngrace_count: 16\n";
const RATE_FIRST: u64 = 300;
const P99_MAX: Duration = Duration::from_millis(20);
const CONFIG: EngineConfig =
    EngineConfig { threads: 1, op_timeout: Duration::from_secs(60), retries: 0 };

const WORKLOAD: &str = "\
schema: plimsoll.workload/2
name: doubling
sets: {o: {count: 16, size: 64B}}
stages:
- {name: load, prepares: true, jobs: [{workers: 4, work: {fill: o}}]}
- name: probe
  duration: 2s
  jobs:
  - workers: 4
    pacing: {open: {rate: 300/s, max_in_flight: 5000}}
    work: {objects: [{get: o}]}
";

/// Doubles the rate until the p99 is above what is allowed.
fn doubling() -> Chooser<'static> {
    let mut rate = RATE_FIRST;
    Box::new(move |plan, done| {
        let Some(last) = done.last() else { return Some(Chosen::plain(0)) };
        if last.kind == StageKind::Measure {
            if p99(&last.outcome) > P99_MAX {
                return None;
            }
            rate *= 2;
        }
        let JobPacing::Shared(Pacing::Open(open)) = &plan.stages[1].jobs[0].pacing else {
            panic!("the probe is an open loop")
        };
        let profile = format!("{rate}/s").parse().unwrap();
        let pacing = JobPacing::Shared(Pacing::Open(OpenLoop { profile, ..open.clone() }));
        let name = Some(format!("{rate}/s"));
        Some(Chosen { name, pacing: Some((0, pacing)), ..Chosen::plain(1) })
    })
}

fn p99(outcome: &StageOutcome) -> Duration {
    let mut latency = Histogram::new();
    for (_, total) in outcome.totals().iter() {
        latency.merge_compact(&total.times.latency);
    }
    Duration::from_nanos(latency.percentile(Percentile::new(99.0).unwrap()).unwrap())
}

/// Records the name of each stage that begins, and the hint on what ends it early, if it has one.
#[derive(Default)]
struct Names(Mutex<Vec<String>>, Mutex<Vec<Ends>>);

impl Observer for Names {
    fn note(&self, _line: &str) {}

    fn warn(&self, line: &str) {
        panic!("{line}");
    }

    fn during(&self, stage: &StageView<'_>, work: &mut dyn FnMut()) {
        self.0.lock().unwrap().push(stage.name.to_owned());
        self.1.lock().unwrap().extend(stage.announced.ends);
        work();
    }
}

/// Begins the run of a workload on the scripted store.
fn begin(workload: &str, place: &Path) -> (BegunRun, Arc<Names>) {
    begin_on(SCRIPT, workload, place)
}

fn begin_on(script: &str, workload: &str, place: &Path) -> (BegunRun, Arc<Names>) {
    let time = RunTime::simulated();
    let id = RunId::new("doubling", time.wall_epoch, 1);
    let script = Script::from_yaml(script).unwrap();
    let driver = ScriptedDriver::new(Behaviour::new(&script, 7));
    let file = WorkloadFile::from_yaml("doubling", workload).unwrap();
    let request = RunRequest {
        plan: Arc::new(file.check().unwrap()),
        seed: Seed(7),
        id,
        time,
        targets: vec![Store::without_admin(driver, TargetKind::Oracle).into()],
        settings: RunSettings { engine: CONFIG, ..RunSettings::default() },
        content: ContentFrom::Files,
    };
    let open = request.lay_out().unwrap();
    let manifest = open.manifest(Vec::new(), Default::default(), None);
    let directory = RunDirectory::create(&place.join("run"), &manifest).unwrap();
    let names = Arc::new(Names::default());
    let observer = Arc::clone(&names) as Arc<dyn Observer>;
    (open.begin(directory, manifest, observer, Stop::default()).unwrap(), names)
}

#[test]
fn a_job_ends_after_as_many_operations_as_are_chosen() {
    let place = tempfile::tempdir().unwrap();
    let workload = WORKLOAD.replace("{open: {rate: 300/s, max_in_flight: 5000}}", "closed");
    let (mut run, _) = begin(&workload, place.path());
    let choose: Chooser<'_> = Box::new(|_, done| {
        let ops = [None, Some((0, 7)), Some((0, 2))].into_iter().nth(done.len())?;
        Some(Chosen { ops, ..Chosen::plain(done.len().min(1)) })
    });
    let recorded = run.run(None, Some(choose)).unwrap();
    run.recording.settle_measured(&recorded).unwrap();
    let counts: Vec<u64> = recorded.stages.iter().map(|done| done.outcome.ops_count).collect();
    assert_eq!(counts, [16, 7, 2]);
}

#[test]
fn the_rate_doubles_until_the_p99_breaks() {
    let place = tempfile::tempdir().unwrap();
    let (mut run, names) = begin(WORKLOAD, place.path());
    let recorded = run.run(None, Some(doubling())).unwrap();
    run.recording.settle_measured(&recorded).unwrap();
    let recording = &run.recording;

    // 2,400 a second are more than the store carries: 400 more wait after each second.
    let expected = ["load", "300/s", "600/s", "1200/s", "2400/s"];
    assert_eq!(*names.0.lock().unwrap(), expected);
    let measured = &recorded.stages[1..];
    let p99s: Vec<Duration> = measured.iter().map(|done| p99(&done.outcome)).collect();
    let served = Duration::from_micros(5_000)..Duration::from_micros(5_010);
    assert!(p99s[..3].iter().all(|p99| served.contains(p99)), "{p99s:?}");
    assert!(p99s[3] > Duration::from_millis(300), "{p99s:?}");
    let counts: Vec<u64> = measured.iter().map(|done| done.outcome.ops_count).collect();
    assert_eq!(counts, [600, 1_200, 2_400, 4_800]);

    let manifest = recording.directory.read_manifest().unwrap();
    assert_eq!(manifest.state, RunState::Complete);
    let stages: Vec<&str> = manifest.stages.iter().map(|stage| &*stage.name).collect();
    assert_eq!(stages, expected);
    let mut rows = [0u64; 5];
    let log = OpLog::open(&recording.directory).unwrap();
    log.scan(&mut |op| rows[usize::from(op.stage.0)] += 1).unwrap();
    assert_eq!(rows, [16, 600, 1_200, 2_400, 4_800]);
}

/// One server of 1,000/s, exponential: M/M/1, of which 1 % take longer than 20 ms at 769.7/s.
const MM1: &str = "\
schema: plimsoll.oracle/1
service: {time: {exponential: {mean: 1ms}}}
servers: 1
grace_count: 16
";

const SEARCH: &str = "\
schema: plimsoll.workload/2
name: line
sets: {o: {count: 16, size: 64B}}
stages:
- {name: load, prepares: true, jobs: [{workers: 4, work: {fill: o}}]}
- name: line
  search:
    slo: ['p99<=20ms']
    budget: 60s
    precision: 8%
    max_in_flight: 5000
    stage: {jobs: [{workers: 4, work: {objects: [{get: o}]}}]}
- {name: after, ops: 5, jobs: [{workers: 1, work: {objects: [{stat: o}]}}]}
";

#[test]
fn a_search_is_made_of_probes_between_other_stages() {
    let place = tempfile::tempdir().unwrap();
    let (mut run, names) = begin_on(MM1, SEARCH, place.path());
    let recorded = run.run(None, None).unwrap();
    run.recording.settle_measured(&recorded).unwrap();
    // Only the first probe of a search has the hint on how to end it.
    let told = names.1.lock().unwrap().iter().filter(|of| **of == Ends::Search).count();
    assert_eq!(told, 1);
    let names = names.0.lock().unwrap().clone();
    assert_eq!((&*names[0], &*names[1]), ("load", "gauge"));
    assert_eq!(names.last().map(String::as_str), Some("after"));
    let manifest = run.recording.directory.read_manifest().unwrap();
    let probes = &manifest.stages[1..manifest.stages.len() - 1];
    let lasts = |stage: &Stage| stage.probe.as_ref().unwrap().lasts_ns;
    assert!(probes.iter().all(|stage| stage.probe.as_ref().unwrap().search_index == 1));
    // All together last no longer than the budget but for what the last one takes to drain, with
    // two seconds of the closed loop before.
    let all: u64 = probes.iter().map(lasts).sum();
    assert!((10_000_000_000..=62_000_000_000).contains(&all), "{all}");
    // A closed loop of 4 workers gives what the server gives; the ramp begins at a tenth of it.
    let rate = |name: &str| {
        let text = name.rsplit_once(' ')?.1.strip_suffix("/s")?;
        text.parse::<f64>().ok()
    };
    let first = rate(&names[2]).unwrap();
    assert!((90.0..110.0).contains(&first), "{names:?}");
    let last = names.iter().rev().find_map(|name| rate(name)).unwrap();
    assert!((600.0..950.0).contains(&last), "{names:?}");
    // What was counted while it ran is what the record holds.
    for (stage, done) in probes.iter().zip(&recorded.stages[1..]) {
        let counts = done.outcome.probe.as_ref().unwrap();
        let schedule = stage.jobs[0].schedule.as_ref();
        let offered = schedule.and_then(|schedule| schedule.offered_count);
        assert!(offered.is_none_or(|offered| offered >= counts.due_count()), "{}", stage.name);
    }
    let draws: Vec<u64> = recorded.stages[2..].iter().map(|of| of.outcome.stream_hash).collect();
    assert!(draws.iter().all(|hash| draws.iter().filter(|other| *other == hash).count() == 1));
}

#[test]
fn a_search_ends_with_the_run() {
    let place = tempfile::tempdir().unwrap();
    let (mut run, names) = begin_on(MM1, SEARCH, place.path());
    let stop = run.recording.stop.clone();
    let mut stages = 0;
    let mut order = plimsoll_conduct::in_order(&[]);
    let choose: Chooser<'_> = Box::new(move |plan, done| {
        stages += 1;
        if stages == 5 {
            stop.request();
        }
        order(plan, done)
    });
    let recorded = run.run(None, Some(choose)).unwrap();
    run.recording.settle_measured(&recorded).unwrap();
    let manifest = run.recording.directory.read_manifest().unwrap();
    assert_eq!(manifest.state, RunState::Interrupted);
    assert_eq!(names.0.lock().unwrap().len(), 5);
}

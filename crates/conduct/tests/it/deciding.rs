//! Stages that are decided while the run goes on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_conduct::{
    ConductError, Done, Goal, NextStage, ObjectsWork, Observer, Opening, Permit, Recording,
    RunTime, StageView, Stop, Work, of_workload,
};
use plimsoll_driver::Driver;
use plimsoll_engine::{
    EngineConfig, EngineError, ObjectsJob, OpSink, StageContext, StageOutcome, StageWork, run_stage,
};
use plimsoll_model::{RunId, StageId, StageKind};
use plimsoll_oracle::{Behaviour, Script, ScriptedDriver};
use plimsoll_record::schema::{LoopModel, RunState, Target};
use plimsoll_record::{OpLog, RunDirectory};
use plimsoll_stats::{Histogram, Percentile};
use plimsoll_workload::{
    KeysSpec, MeasureSpec, ObjectsSpec, OpWeightSpec, PacingSpec, SPEC_SCHEMA, SizeSpec, Workload,
    WorkloadSpec,
};

/// Ten servers of 5 ms each: 2,000 operations a second, and no wait below that.
const SCRIPT: &str =
    "schema: plimsoll.oracle/1\nservice: {time: {constant: 5ms}}\nservers: 10\ngrace_count: 16\n";
const RATE_FIRST: u64 = 300;
const P99_MAX: Duration = Duration::from_millis(20);
const CONFIG: EngineConfig =
    EngineConfig { threads: 1, op_timeout: Duration::from_secs(60), retries: 0 };

fn spec(rate: u64) -> WorkloadSpec {
    WorkloadSpec {
        schema: SPEC_SCHEMA.to_owned(),
        name: "doubling".to_owned(),
        seed: 7,
        concurrency: 4,
        keys: KeysSpec { prefix: String::new(), per_worker: true },
        objects: ObjectsSpec {
            count: 16,
            size: SizeSpec::FixedBytes(64),
            ..ObjectsSpec::default()
        },
        measure: MeasureSpec {
            operations: vec![OpWeightSpec { op: "GET".to_owned(), weight: 1 }],
            duration_ns: Duration::from_secs(2).as_nanos() as u64,
            ..MeasureSpec::default()
        },
        pacing: PacingSpec::Open {
            rate: format!("{rate}/s"),
            arrivals: "constant".to_owned(),
            max_in_flight: 5_000,
        },
        verify: true,
    }
}

/// Doubles the rate until the p99 is above what is allowed.
struct Doubling<'a> {
    driver: &'a ScriptedDriver,
    run: RunId,
    rate: u64,
    workload: Arc<Workload>,
    kind: StageKind,
}

fn p99(outcome: &StageOutcome) -> Duration {
    let mut timeline = outcome.timeline.clone();
    timeline.close();
    let mut latency = Histogram::new();
    for times in timeline.lanes().flat_map(|(_, lane)| lane.times()) {
        latency.merge_compact(&times.latency);
    }
    Duration::from_nanos(latency.percentile(Percentile::new(99.0).unwrap()).unwrap())
}

impl Work for Doubling<'_> {
    fn next(
        &mut self,
        _recording: &Recording,
        done: &[Done],
    ) -> Result<Option<NextStage>, ConductError> {
        match done.last() {
            None => self.kind = StageKind::Prepare,
            Some(last) => {
                if last.kind == StageKind::Measure {
                    if p99(&last.outcome) > P99_MAX {
                        return Ok(None);
                    }
                    self.rate *= 2;
                }
                self.kind = StageKind::Measure;
            }
        }
        self.workload = Arc::new(spec(self.rate).validate(self.run.as_str(), None)?);
        Ok(Some(NextStage {
            name: format!("{}/s", self.rate),
            doing: "measuring".to_owned(),
            kind: self.kind,
            loop_model: LoopModel::Open,
            iteration: 0,
            jobs: Vec::new(),
            workers_count: 4,
            threads_count: 1,
            files: None,
            goal: Goal::Time(self.workload.duration),
        }))
    }

    fn run(
        &mut self,
        stage: StageId,
        context: &StageContext<'_>,
        sink: &mut dyn OpSink,
    ) -> Result<StageOutcome, EngineError> {
        let job = ObjectsJob::alone(self.driver, &self.workload, self.kind);
        run_stage(&StageWork::of_objects(stage, job), &CONFIG, context, sink)
    }
}

/// Keeps the names of the stages as they begin.
#[derive(Default)]
struct Names(Mutex<Vec<String>>);

impl Observer for Names {
    fn note(&self, _line: &str) {}

    fn warn(&self, line: &str) {
        panic!("{line}");
    }

    fn during(&self, stage: &StageView<'_>, work: &mut dyn FnMut()) {
        self.0.lock().unwrap().push(stage.name.to_owned());
        work();
    }
}

#[test]
fn the_rate_doubles_until_the_p99_breaks() {
    let place = tempfile::tempdir().unwrap();
    let time = RunTime::simulated();
    let id = RunId::new("doubling", time.wall_epoch, 1);
    let script = Script::from_yaml(SCRIPT).unwrap();
    let driver = ScriptedDriver::new(Behaviour::new(&script, 7));
    let target = Target::bare("oracle", driver.endpoints());
    let manifest = of_workload(Opening::of_nobody(&id, target, &time), serde_json::Value::Null, 7);
    let directory = RunDirectory::create(&place.path().join("run"), &manifest).unwrap();
    let names = Arc::new(Names::default());
    let observer = Arc::clone(&names) as Arc<dyn Observer>;
    let permit = Permit::for_nothing_real();
    let mut recording =
        Recording::new(directory, manifest, time, permit, observer, Stop::default());
    let workload = Arc::new(spec(RATE_FIRST).validate(id.as_str(), None).unwrap());
    let generator = ObjectsWork::<ScriptedDriver>::generator(&spec(RATE_FIRST), &workload).unwrap();
    let mut work =
        Doubling { driver: &driver, run: id, rate: RATE_FIRST, workload, kind: StageKind::Prepare };
    let recorded = recording.run(&mut work, &generator).unwrap();
    recording.settle_measured(&recorded).unwrap();

    // 2,400 a second are more than the store carries: 400 more wait after each second.
    let expected = ["300/s", "300/s", "600/s", "1200/s", "2400/s"];
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

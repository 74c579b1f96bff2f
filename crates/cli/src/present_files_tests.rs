//! What the report takes from the record: runs of the real engine in virtual time, on nothing.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::NullRings;
use plimsoll_engine::{
    EngineConfig, FilesJobs, JobOutcome, JobTiming, Live, OpSink, OpSinkError, RingConfig,
    ScheduleOutcome, StageContext, StageOutcome, StageWork, StopFlag, VirtualTime, run_stage,
    start_delay,
};
use plimsoll_model::{JobId, OpRecord, PackedOp, SharedClock, StageId, WorkerId};
use plimsoll_record::schema::{FilesStage, Stage, StageKind, Target};
use plimsoll_workload::data::Generator;
use plimsoll_workload::files::FilesSpec;

use super::*;
use crate::manifest;
use plimsoll_conduct::RunTime;

/// Keeps every record.
#[derive(Default)]
struct Kept(Vec<OpRecord>);

impl OpSink for Kept {
    fn append(&mut self, ops: &[PackedOp]) -> Result<(), OpSinkError> {
        self.0.extend(ops.iter().map(OpRecord::from));
        Ok(())
    }

    fn tick(&mut self, _: Moment) -> Result<(), OpSinkError> {
        Ok(())
    }
}

/// Returns a spec of one stage of these jobs, which are YAML without braces.
fn spec(jobs: &[&str]) -> FilesSpec {
    let work = "work: {blocks: {files: {directories: [/d], size_bytes: {min: 65536, max: 65536}}, \
                read_percent: 0, read_blocks: {fixed_bytes: 4096}, write_blocks: {fixed_bytes: \
                4096}, order: sequential, repeats: true}}";
    let job = |(number, job): (usize, &&str)| {
        format!("{{name: job{number}, group: {number}, depth: 1, interface: psync, {job}, {work}}}")
    };
    let jobs: Vec<String> = jobs.iter().enumerate().map(job).collect();
    let text = format!(
        "schema: plimsoll.files/1\nname: test\nseed: 7\nverify: false\nstages:\n- {{name: s, jobs: \
         [{}]}}\n",
        jobs.join(", ")
    );
    FilesSpec::from_yaml(&text).unwrap()
}

/// Runs the stage and returns what its record says.
fn run(spec: &FilesSpec) -> (StageOutcome, Vec<OpRecord>, Manifest) {
    let plan = spec.validate("run").unwrap();
    let virtual_time = Arc::new(VirtualTime::new());
    let clock: SharedClock = Arc::clone(&virtual_time) as SharedClock;
    let (live, generator) = (Live::new(8), Arc::new(Generator::new(spec.seed)));
    let context = StageContext {
        clock: &clock,
        virtual_time: Some(&virtual_time),
        stop: &StopFlag::default(),
        live: &live,
        generator: &generator,
        wall_epoch: WallTime::from_unix_ns(0),
        begins_at: None,
    };
    let rings = RingConfig { threads: 1, interface: Interface::Psync };
    let config = EngineConfig { threads: 1, op_timeout: Duration::from_secs(60), retries: 0 };
    let mut kept = Kept::default();
    let work = StageWork::of_files(StageId(0), FilesJobs::alone(&NullRings, &plan, 0, rings));
    let ran = run_stage(&work, &config, &context, &mut kept).unwrap();
    let time = RunTime::machine();
    let id = RunId::new("test", time.wall_epoch, 1);
    let target = Target::bare("null", vec!["null".to_owned()]);
    let mut manifest =
        manifest::of_workload(&id, (serde_json::to_value(spec).unwrap(), spec.seed), target, &time);
    let (measure, open) = (StageKind::Measure, schema::LoopModel::Open);
    let mut stage = Stage::begun(0, measure, "s", open, (plan.workers(0), 1));
    stage.started_ns = Some(ran.started.as_ns());
    stage.ended_ns = Some(ran.ended.as_ns());
    on_files(&mut stage, &manifest);
    manifest.stages.push(stage);
    (ran, kept.0, manifest)
}

/// Has a stage say what the workload does of its jobs.
fn on_files(stage: &mut Stage, manifest: &Manifest) {
    stage.describe(manifest.workload.plan().as_ref());
    stage.jobs.iter_mut().for_each(|job| job.interface = Some("null".to_owned()));
}

#[test]
fn a_worker_counts_from_the_end_of_the_delay_that_was_drawn_for_it() {
    for ramp in [0, 2_000_000_000] {
        let spec = spec(&[&format!(
            "clones: 1, start_delay_ns: {{min: 0, max: 30000000000}}, ramp_ns: {ramp}, \
             duration_ns: 10000000000, pacing: {{capped: {{write: {{ops_per_sec: 1000}}}}}}"
        )]);
        // A delay that the least of the range is nowhere near.
        let range = JobTiming::of_files(&spec.stages[0].jobs[0]).start_delay;
        let drawn = start_delay(&range, spec.seed, WorkerId(0));
        assert!(drawn > Duration::from_secs(1), "{drawn:?}");
        let (_, records, manifest) = run(&spec);
        let clients = Clients::of(&manifest);
        let phases = analyse(&records, &manifest, &clients, |_| Rows::Jobs).unwrap();
        let figures = &phases[0].analysis.rows[0];
        // One operation each ms, and the last one begins, and ends, 1 ms before the end.
        assert_eq!(figures.kinds[0].ops_ok, 10_000, "ramp {ramp}");
        assert_eq!(figures.ramp.ops_ok, ramp / 1_000_000);
        assert_eq!(figures.took, Some(Duration::from_millis(9_999)), "ramp {ramp}");
    }
}

#[test]
fn workers_of_merged_runs_count_from_their_own_clients_beginning() {
    const SECOND: u64 = 1_000_000_000;
    let one = spec(
        &[
            "clones: 1, ops_max: 9, ramp_ns: 5",
            "clones: 2, ops_max: 9, start_delay_ns: {min: 0, max: 30000000000}, ramp_ns: 7",
        ]
        .map(|job| format!("{job}, pacing: closed"))
        .each_ref()
        .map(String::as_str),
    );
    let mut other = one.clone();
    other.stages[0].jobs[1].clones = 1;
    let time = RunTime::simulated();
    let id = RunId::new("test", time.wall_epoch, 1);
    let target = Target::bare("null", vec!["null".to_owned()]);
    let workload = serde_json::to_value(&one).unwrap();
    let mut manifest = manifest::of_workload(&id, (workload, one.seed), target, &time);
    let loop_model = schema::LoopModel::Closed;
    let mut stage = Stage::begun(0, StageKind::Measure, "s", loop_model, (5, 1));
    on_files(&mut stage, &manifest);
    manifest.stages.push(stage);
    let job = |(worker_first, workers_count): (u32, u32)| schema::MergedJob {
        worker_first,
        workers_count,
    };
    let run = |number: u32,
               workers: (u32, u32),
               jobs: [(u32, u32); 2],
               workload: Option<&FilesSpec>| schema::MergedRun {
        run_id: format!("run-{number}"),
        hostname: None,
        started_unix_ns: 0,
        seed: Some(u64::from(number)),
        prefix: None,
        worker_index_first: workers.0,
        workers_count: workers.1,
        stages: vec![schema::MergedStage {
            index: 0,
            own_index: 0,
            started_ns: Some(u64::from(number) * SECOND),
            ended_ns: None,
            ended_by: None,
            jobs: jobs.map(job).to_vec(),
        }],
        workload: workload.map(|spec| serde_json::to_value(spec).unwrap().into()),
    };
    // The first has another stage with four workers, so one number here is nobody's.
    manifest.merged = vec![
        run(1, (0, 4), [(0, 1), (1, 2)], None),
        run(2, (4, 2), [(0, 1), (1, 1)], Some(&other)),
    ];
    let clients = Clients::of(&manifest);
    let at = clients.at(0, &manifest.stages[0]);
    let (rows, workers) = lay_out(&manifest.stages[0], &at, Rows::Jobs, |_, _| ());
    let row_of = |jobs: &[usize]| RowJobs { jobs: jobs.to_vec(), worker: None };
    assert_eq!(rows, [row_of(&[0]), row_of(&[1])]);
    let of = |row: u32, seed: u64, own: u32, ramp: u64| {
        let range = JobTiming::of_files(&one.stages[0].jobs[row as usize]).start_delay;
        let delay = start_delay(&range, seed, WorkerId(own));
        let began = Moment::from_ns(seed * SECOND).after(delay);
        Some(WorkerRow { row, measured_from: began.after(Duration::from_nanos(ramp)) })
    };
    let expected =
        [of(0, 1, 0, 5), of(1, 1, 1, 7), of(1, 1, 2, 7), None, of(0, 2, 0, 5), of(1, 2, 1, 7)];
    assert_eq!(workers, expected);
    assert_eq!(described(&at, &rows[1]).depth, Some(1));
    assert_eq!(workers.iter().flatten().filter(|worker| worker.row == 1).count(), 3);
}

#[test]
fn the_job_that_missed_its_schedule_is_named() {
    let open = |rate: u32| {
        format!(
            "clones: 1, duration_ns: 1000, pacing: {{open: {{rate: {rate}/s, arrivals: constant, \
             max_in_flight: 1}}}}"
        )
    };
    let spec = spec(&["clones: 1, pacing: closed, ops_max: 1", &open(1_000), &open(10)]);
    let stage = &spec.stages[0];
    let kept = ScheduleOutcome { offered_count: 1_000, ..ScheduleOutcome::default() };
    let missed = ScheduleOutcome { late_count: 11, ..kept };
    let (_, mut of_jobs) = plimsoll_conduct::jobs_of(stage);
    of_jobs.iter_mut().for_each(|job| job.interface = Some("null".to_owned()));
    let rates = of_jobs.iter().filter_map(|job| job.schedule.as_ref());
    let rates: Vec<_> = rates.map(|schedule| schedule.rate.as_str()).collect();
    assert_eq!(rates, ["1000/s", "10/s"]);
    let mut entry = Stage::begun(0, StageKind::Measure, "s", schema::LoopModel::Open, (3, 1));
    entry.jobs = of_jobs;
    entry.files = Some(FilesStage::default());
    let (mut outcome, _, mut manifest) =
        run(&self::spec(&["clones: 1, pacing: closed, ops_max: 1"]));
    manifest.workload = serde_json::to_value(&spec).unwrap().into();
    entry.started_ns = Some(0);
    manifest.stages = vec![entry.clone()];
    let clients = Clients::of(&manifest);
    let at = clients.at(0, &entry);
    let (jobs, workers) = lay_out(&entry, &at, Rows::Jobs, |_, _| ());
    assert_eq!((jobs.len(), workers.len()), (3, 3));
    let one = outcome.jobs.pop().expect("a job ran");
    let of = |job, kept| JobOutcome { job, schedule: Some(kept), ..one.clone() };
    outcome.jobs = vec![of(JobId(1), missed), of(JobId(2), kept)];
    plimsoll_conduct::note_outcome(&mut entry, &outcome);
    let told = schedules(&entry, &at, &jobs);
    let told: Vec<_> =
        told.iter().map(|of| (of.job.as_str(), of.row, of.schedule.is_kept())).collect();
    assert_eq!(told, [("job1", 1, false), ("job2", 2, true)]);
}

//! What rows take from the record: runs of the real engine in virtual time, on nothing.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_analysis::{Depth, Question, RowAsked, Rows as RowsAsked, Span, Survey, measure};
use plimsoll_driver::NullRings;
use plimsoll_engine::{
    EngineConfig, FilesJobs, JobTiming, Live, OpSink, OpSinkError, RingConfig, StageContext,
    StageWork, StopFlag, VirtualTime, run_stage, start_delay,
};
use plimsoll_model::{
    Interface, Moment, OpRecord, PackedOp, SharedClock, StageId, WallTime, WorkerId,
};
use plimsoll_record::schema::{
    self, FilesStage, LoopModel, Manifest, MergedJob, MergedRun, MergedStage, Schedule, Stage,
    StageKind,
};
use plimsoll_workload::data::Generator;
use plimsoll_workload::files::FilesSpec;

use super::*;
use crate::described;
use crate::tests::manifest;

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

/// Returns a manifest of that workload with its stage, which so many workers did.
fn of_spec(spec: &FilesSpec, workers: u32, loop_model: LoopModel) -> Manifest {
    let mut manifest = manifest("fio-job");
    manifest.seed = spec.seed;
    manifest.workload = serde_json::to_value(spec).unwrap().into();
    let mut stage = Stage::begun(0, StageKind::Measure, "s", loop_model, (workers, 1));
    stage.describe(manifest.workload.plan().as_ref());
    stage.jobs.iter_mut().for_each(|job| job.interface = Some("null".to_owned()));
    manifest.stages = vec![stage];
    manifest
}

/// Runs the stage and returns what its record says.
fn run(spec: &FilesSpec) -> (Vec<OpRecord>, Manifest) {
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
    let mut manifest = of_spec(spec, plan.workers(0), LoopModel::Open);
    manifest.stages[0].started_ns = Some(ran.started.as_ns());
    manifest.stages[0].ended_ns = Some(ran.ended.as_ns());
    (kept.0, manifest)
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
        let (records, manifest) = run(&spec);
        let (stage, clients) = (&manifest.stages[0], Clients::of(&manifest));
        let (_, workers) = lay_out(stage, &clients.at(0, stage), Rows::Jobs, |_, _| ());
        let row = RowAsked { workers: 1, span: Span::FromRamps, open: false, ends: None };
        let bound = |ns: Option<u64>| Moment::from_ns(ns.unwrap());
        let (started, ended) = (bound(stage.started_ns), bound(stage.ended_ns));
        let question = Question {
            rows: RowsAsked::Several { workers: &workers, rows: &[row] },
            depth: Depth::Figures,
            ..Question::about(StageId(0), started, ended, 1)
        };
        let survey = Survey::of(&records).unwrap();
        let answer = measure(&records, &survey, &[question]).unwrap().pop().unwrap();
        let figures = &answer.rows[0];
        // One operation each ms, and the last one begins, and ends, 1 ms before the end.
        assert_eq!(figures.kinds[0].figures.stage.ops_ok, 10_000, "ramp {ramp}");
        assert_eq!(figures.ramp.ops_ok, ramp / 1_000_000);
        assert_eq!(figures.took(), Some(Duration::from_millis(9_999)), "ramp {ramp}");
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
    let mut manifest = of_spec(&one, 5, LoopModel::Closed);
    let job = |(worker_first, workers_count): (u32, u32)| MergedJob { worker_first, workers_count };
    let run = |number: u32, workers: (u32, u32), jobs: [(u32, u32); 2], own: Option<&FilesSpec>| {
        MergedRun {
            run_id: format!("run-{number}"),
            hostname: None,
            started_unix_ns: 0,
            seed: Some(u64::from(number)),
            prefix: None,
            worker_index_first: workers.0,
            workers_count: workers.1,
            stages: vec![MergedStage {
                index: 0,
                own_index: 0,
                started_ns: Some(u64::from(number) * SECOND),
                ended_ns: None,
                ended_by: None,
                jobs: jobs.map(job).to_vec(),
            }],
            workload: own.map(|spec| serde_json::to_value(spec).unwrap().into()),
        }
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
    let mut manifest = of_spec(&spec, 3, LoopModel::Open);
    let stage = &mut manifest.stages[0];
    (stage.started_ns, stage.ended_ns) = (Some(0), Some(1_000));
    stage.files = Some(FilesStage::default());
    for (job, (rate, late_count)) in stage.jobs[1..].iter_mut().zip([("1000/s", 11), ("10/s", 0)]) {
        job.loop_model = LoopModel::Open;
        job.schedule = Some(Schedule {
            rate: rate.to_owned(),
            arrivals: "constant".to_owned(),
            max_in_flight: 1,
            offered_count: Some(1_000),
            late_count: Some(late_count),
            skipped_count: Some(0),
            delay_max_ns: None,
        });
    }
    let (entry, clients): (&schema::Stage, _) = (&manifest.stages[0], Clients::of(&manifest));
    let at = clients.at(0, entry);
    let (rows, workers) = lay_out(entry, &at, Rows::Jobs, |_, _| ());
    assert_eq!((rows.len(), workers.len()), (3, 3));
    let told = rows
        .iter()
        .flat_map(|row| crate::report::schedules(entry, &at, row, Duration::from_nanos(1_000)));
    let told: Vec<_> = told.map(|of| (of.job.clone(), of.schedule.is_kept())).collect();
    assert_eq!(told, [("job1".to_owned(), false), ("job2".to_owned(), true)]);
}

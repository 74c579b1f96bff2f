//! What rows take from the record: runs of the real engine in virtual time, on nothing.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_analysis::{Depth, Question, RowAsked, Rows as RowsAsked, Span, Survey, measure};
use plimsoll_driver::NullRings;
use plimsoll_engine::{
    EngineConfig, FilesJobs, KeptOps, Live, RingConfig, StageContext, StageWork, StopFlag,
    VirtualTime, run_stage,
};
use plimsoll_model::{
    Interface, Moment, OpRecord, Seed, SharedClock, StageId, StageKind, WallTime, WorkerId,
};
use plimsoll_record::schema::{
    self, Agent, FilesStage, LoopModel, Manifest, MergedJob, MergedRun, MergedStage, Schedule,
    Stage,
};
use plimsoll_workload::data::Generator;
use plimsoll_workload::plan::{Placing, Plan, WorkloadFile};
use plimsoll_workload::{ArrivalLaw, start_delay};

use super::*;
use crate::described;
use crate::tests::manifest;

/// Returns a workload of one stage of these jobs, which are YAML without braces; each writes files
/// of its own.
fn workload(jobs: &[&str]) -> WorkloadFile {
    let set = |number: usize| format!("f{number}: {{files: 1, size: 64KiB, workers: 2}}");
    let sets: Vec<String> = (0..jobs.len()).map(set).collect();
    let job = |(number, job): (usize, &&str)| {
        format!(
            "{{name: job{number}, group: {number}, interface: psync, {job}, work: {{blocks: {{on: \
             f{number}, write: {{block: 4KiB}}, order: sequential, repeats: true}}}}}}"
        )
    };
    let jobs: Vec<String> = jobs.iter().enumerate().map(job).collect();
    let text = format!(
        "schema: plimsoll.workload/2\nname: test\nseed: 7\nverify: false\n\
         targets: {{files: {{directory: /d}}}}\nsets: {{{}}}\nstages:\n- {{name: s, jobs: [{}]}}\n",
        sets.join(", "),
        jobs.join(", ")
    );
    WorkloadFile::from_yaml("test", &text).unwrap_or_else(|error| panic!("{error}"))
}

fn plan_of(file: &WorkloadFile) -> Plan {
    file.check().unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the start delays of a job.
fn delays_of(file: &WorkloadFile, job: usize) -> RangeInclusive<Duration> {
    plan_of(file).stages[0].jobs[job].start_delay.clone()
}

/// Returns a manifest of that workload with its stage, which so many workers did.
fn of_workload(file: &WorkloadFile, workers: u32, loop_model: LoopModel) -> Manifest {
    let mut manifest = manifest("fio-job");
    manifest.seed = file.seed.unwrap();
    manifest.workload = file.clone().into();
    let mut stage = Stage::begun(0, StageKind::Measure, "s", loop_model, (workers, 1));
    stage.planned_index = Some(0);
    stage.describe(manifest.workload.plan().as_ref());
    manifest.stages = vec![stage];
    manifest
}

/// Runs the stage and returns what its record says.
fn run(file: &WorkloadFile) -> (Vec<OpRecord>, Manifest) {
    let (seed, found) = (Seed(file.seed.unwrap()), BTreeMap::new());
    let placing = Placing { run: "run", seed, buckets: &[String::new()], found: &found };
    let placed = Arc::new(plan_of(file)).place(&placing).unwrap();
    let plan = placed.files.expect("it works on files");
    let virtual_time = Arc::new(VirtualTime::new());
    let clock: SharedClock = Arc::clone(&virtual_time) as SharedClock;
    let (live, generator) = (Live::new(8), Arc::new(Generator::new(seed.0)));
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
    let mut kept = KeptOps::default();
    let work = StageWork::of_files(StageId(0), FilesJobs::alone(&NullRings, &plan, 0, rings));
    let ran = run_stage(&work, &config, &context, &mut kept).unwrap();
    let mut manifest = of_workload(file, plan.workers(0), LoopModel::Open);
    manifest.stages[0].started_ns = Some(ran.started.as_ns());
    manifest.stages[0].ended_ns = Some(ran.ended.as_ns());
    (kept.0, manifest)
}

#[test]
fn a_worker_counts_from_the_end_of_the_delay_that_was_drawn_for_it() {
    for ramp in [0, 2_000_000_000] {
        let file = workload(&[&format!(
            "workers: 1, start_delay: 0s..30s, ramp: {ramp}ns, duration: 10s, pacing: \
             {{capped_each: {{write: 1000/s}}}}"
        )]);
        // A delay that the least of the range is nowhere near.
        let drawn = start_delay(&delays_of(&file, 0), 7, WorkerId(0));
        assert!(drawn > Duration::from_secs(1), "{drawn:?}");
        let (records, manifest) = run(&file);
        let (stage, clients) = (&manifest.stages[0], Clients::of(&manifest));
        let (_, workers) = lay_out(stage, &clients.at(0), Rows::Jobs, &[], |_, _| ());
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
fn the_record_marks_what_the_report_counts() {
    let open = "pacing: {open: {rate: 50/s, arrivals: poisson, max_in_flight: 3}}";
    let each = "pacing: {capped_each: {write: 100/s}}";
    for jobs in [
        &[&*format!("workers: 1, ramp: 2s, ramp_down: 3s, duration: 5s, {each}")][..],
        &[&*format!("workers: 1, start_delay: 1s..4s, ramp: 2s, duration: 5s, {open}")],
        &[&*format!("workers: 1, ramp: 2s, ops: 300, {open}")],
        &[
            &*format!("workers: 1, start_delay: 0s..4s, ramp: 1s, duration: 3s, {each}"),
            &*format!("workers: 1, ramp: 2s, ramp_down: 1s, duration: 4s, {open}"),
            &*format!("workers: 1, duration: 2s, {each}"),
        ],
    ] {
        let file = workload(jobs);
        let (records, manifest) = run(&file);
        let (stage, clients) = (&manifest.stages[0], Clients::of(&manifest));
        let (_, workers) = lay_out(stage, &clients.at(0), Rows::Jobs, &[], |_, _| ());
        let counts = |op: &OpRecord| workers[op.worker.0 as usize].as_ref().unwrap().counts(op);
        let differs = records.iter().find(|op| op.is_measured != counts(op));
        assert_eq!(differs, None, "{jobs:?}");
        for measured in [true, false] {
            assert!(records.iter().any(|op| op.is_measured == measured), "{jobs:?}");
        }
    }
}

#[test]
fn sessions_of_a_worker_begin_with_it() {
    let file = workload(&["workers: 2, ops: 9, start_delay: 0s..30s"]);
    let mut manifest = of_workload(&file, 6, LoopModel::Closed);
    manifest.stages[0].jobs[0].workers_count = 6;
    manifest.stages[0].started_ns = Some(0);
    let (stage, clients) = (&manifest.stages[0], Clients::of(&manifest));
    let (_, workers) = lay_out(stage, &clients.at(0), Rows::Jobs, &[], |_, _| ());
    let began: Vec<Moment> = workers.iter().flatten().map(|of| of.measured_from).collect();
    let drawn = |number| {
        let delay = start_delay(&delays_of(&file, 0), 7, WorkerId(number));
        [Moment::EPOCH.after(delay); 3]
    };
    assert_eq!(began, [drawn(0), drawn(3)].concat());
}

#[test]
fn workers_of_merged_runs_count_from_their_own_clients_beginning() {
    const SECOND: u64 = 1_000_000_000;
    let delayed = |workers: u32| {
        let delayed = format!("workers: {workers}, ops: 9, start_delay: 0s..30s, ramp: 7ns");
        workload(&["ops: 9, ramp: 5ns", &delayed])
    };
    let (one, other) = (delayed(2), delayed(1));
    let mut manifest = of_workload(&one, 5, LoopModel::Closed);
    let job = |(worker_first, workers_count): (u32, u32)| MergedJob { worker_first, workers_count };
    let run =
        |number: u32, workers: (u32, u32), jobs: [(u32, u32); 2], own: Option<&WorkloadFile>| {
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
                    planned_index: Some(0),
                    started_ns: Some(u64::from(number) * SECOND),
                    ended_ns: None,
                    ended_by: None,
                    jobs: jobs.map(job).to_vec(),
                }],
                workload: own.map(|file| file.clone().into()),
            }
        };
    // The first has another stage with four workers, so one number here is nobody's.
    manifest.merged = vec![
        run(1, (0, 4), [(0, 1), (1, 2)], None),
        run(2, (4, 2), [(0, 1), (1, 1)], Some(&other)),
    ];
    let clients = Clients::of(&manifest);
    let at = clients.at(0);
    let (rows, workers) = lay_out(&manifest.stages[0], &at, Rows::Jobs, &[], |_, _| ());
    let row_of = |jobs: &[usize]| RowJobs { jobs: jobs.to_vec(), worker: None, agent: None };
    assert_eq!(rows, [row_of(&[0]), row_of(&[1])]);
    let of = |row: u32, seed: u64, own: u32, ramp: u64| {
        let delay = start_delay(&delays_of(&one, row as usize), seed, WorkerId(own));
        let began = Moment::from_ns(seed * SECOND).after(delay);
        Some(WorkerRow {
            row,
            measured_from: began.after(Duration::from_nanos(ramp)),
            measured_until: None,
        })
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
            "duration: 1us, pacing: {{open: {{rate: {rate}/s, arrivals: constant, max_in_flight: \
             1}}}}"
        )
    };
    let file = workload(&["ops: 1", &open(1_000), &open(10)]);
    let mut manifest = of_workload(&file, 3, LoopModel::Open);
    let stage = &mut manifest.stages[0];
    (stage.started_ns, stage.ended_ns) = (Some(0), Some(1_000));
    stage.files = Some(FilesStage::default());
    for (job, (rate, late_count)) in stage.jobs[1..].iter_mut().zip([("1000/s", 11), ("10/s", 0)]) {
        job.loop_model = LoopModel::Open;
        job.schedule = Some(Schedule {
            rates: vec![rate.parse().unwrap()],
            arrivals: vec![ArrivalLaw::Constant],
            max_in_flight: 1,
            offered_from_ns: None,
            offered_until_ns: None,
            offered_count: Some(1_000),
            late_count: Some(late_count),
            skipped_count: Some(0),
            held_count: 0,
            delay_max_ns: None,
        });
    }
    let (entry, clients): (&schema::Stage, _) = (&manifest.stages[0], Clients::of(&manifest));
    let at = clients.at(0);
    let (rows, workers) = lay_out(entry, &at, Rows::Jobs, &[], |_, _| ());
    assert_eq!((rows.len(), workers.len()), (3, 3));
    let told = rows
        .iter()
        .flat_map(|row| crate::schedules::schedules(entry, &at, row, Duration::from_nanos(1_000)));
    let told: Vec<_> = told.map(|of| (of.job.clone(), of.schedule.is_kept())).collect();
    assert_eq!(told, [("job1".to_owned(), false), ("job2".to_owned(), true)]);
}

#[test]
fn of_a_killed_run_the_plan_says_when_a_schedule_was_measured() {
    let open = "pacing: {open: {rate: 50/s, arrivals: constant, max_in_flight: 3}}";
    let job = format!("workers: 1, ramp: 2s, ramp_down: 3s, duration: 5s, {open}");
    let mut manifest = of_workload(&workload(&[&*job]), 1, LoopModel::Open);
    manifest.stages[0].started_ns = Some(1_000_000_000);
    let schedule = manifest.stages[0].jobs[0].schedule.as_ref().unwrap();
    assert_eq!(schedule.offered_span(), None, "it is written at the end");
    let clients = Clients::of(&manifest);
    let at = |seconds: u64| Moment::from_ns(seconds * 1_000_000_000);
    // From the end of its ramp on, and without its ramp down.
    let at_0 = clients.at(0);
    assert_eq!(at_0[0].measured_span(0, Some(schedule)), Some((at(3), at(8))));
    let (rows, _) = lay_out(&manifest.stages[0], &at_0, Rows::Jobs, &[], |_, _| ());
    let told = |took: u64| {
        let took = Duration::from_secs(took);
        let all = crate::schedules::schedules(&manifest.stages[0], &at_0, &rows[0], took);
        (all[0].schedule.started_after.as_secs(), all[0].schedule.lasted.unwrap().as_secs())
    };
    // Killed while it was measured, and later.
    assert_eq!([told(4), told(20)], [(2, 2), (2, 5)]);
}

#[test]
fn agents_have_rows_of_their_own_with_the_workers_of_their_share() {
    let file = workload(&["ops: 1, workers: 2", "ops: 1, workers: 4"]);
    let mut manifest = of_workload(&file, 6, LoopModel::Closed);
    manifest.stages[0].started_ns = Some(0);
    let agent = |name: &str| Agent {
        name: name.to_owned(),
        id: name.to_owned(),
        version: "1".to_owned(),
        machine: None,
        weight: 1,
        threads_count: 1,
        clock: Vec::new(),
        lost: None,
        rows_count: Some(0),
        cpu_ns: Vec::new(),
        receipt: None,
        losses: Vec::new(),
    };
    manifest.agents = ["a", "b"].map(agent).to_vec();
    let agents = agents_of_workers(&manifest);
    assert_eq!(agents, [[0, 1, 0, 0, 1, 1]]);
    let (entry, clients): (&schema::Stage, _) = (&manifest.stages[0], Clients::of(&manifest));
    let of = |rows| {
        let (rows, workers) = lay_out(entry, &clients.at(0), rows, &agents[0], |_, _| ());
        let rows = rows.into_iter().map(|row| (row.jobs, row.worker, row.agent));
        let workers = workers.into_iter().map(|worker| worker.unwrap().row);
        (rows.collect::<Vec<_>>(), workers.collect::<Vec<_>>())
    };
    let row = |job, agent| (vec![job], None, Some(agent));
    assert_eq!(
        of(Rows::Agents),
        (vec![row(0, 0), row(0, 1), row(1, 0), row(1, 1)], vec![0, 1, 2, 2, 3, 3])
    );
    let (rows, _) = of(Rows::Workers);
    assert_eq!((rows.len(), &rows[5]), (6, &(vec![1], Some(3), Some(1))));
    assert_eq!(of(Rows::Jobs).0, [(vec![0], None, None), (vec![1], None, None)]);
}

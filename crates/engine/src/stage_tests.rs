//! Stages of several jobs in virtual time: who records what, when each ends, and that it does not
//! matter which engine runs which workers.

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_driver::null::NullDriver;
use plimsoll_driver::{Driver, NullRings, RingDriver};
use plimsoll_model::{
    EndReason, EndpointId, ErrorClass, Interface, JobId, Moment, OpKind, OpRecord, SharedClock,
    StageId, StageKind, WallTime, WorkerId,
};
use plimsoll_workload::StopRule;
use plimsoll_workload::data::Generator;
use plimsoll_workload::plan::{Amount, Think};

use crate::instrument_tests::{Answer, MS, Script, Scripted, workload};
use crate::ring_tests::{self, FILL, Pace, World, blocks, one_ms, stages};
use crate::testing::{Laid, files_of};
use crate::{
    EngineConfig, FilesJobs, JobTiming, KeptOps, Live, ObjectsJob, RingConfig, RunClock,
    StageContext, StageLimits, StageOutcome, StageWork, StopFlag, VirtualTime, run_stage,
    stage_threads,
};

const CONFIG: EngineConfig =
    EngineConfig { threads: 2, op_timeout: Duration::from_secs(60), retries: 0 };
const RINGS: RingConfig = RingConfig { threads: 2, interface: Interface::IoUring };

type Done = (StageOutcome, Vec<OpRecord>);

/// Runs a stage in virtual time.
fn run<D: Driver, R: RingDriver>(
    time: &Arc<VirtualTime>,
    work: &StageWork<'_, D, R>,
    begins_at: Option<Moment>,
) -> Done {
    let clock: SharedClock = Arc::clone(time) as SharedClock;
    let (stop, live, generator) = (StopFlag::default(), Live::new(3), Arc::new(Generator::new(7)));
    let context = StageContext {
        clock: &clock,
        virtual_time: Some(time),
        stop: &stop,
        live: &live,
        generator: &generator,
        wall_epoch: WallTime::from_unix_ns(0),
        begins_at,
    };
    let mut kept = KeptOps::default();
    let outcome = run_stage(work, &CONFIG, &context, &mut kept).unwrap();
    assert_eq!(outcome.ops_count, kept.0.len() as u64);
    assert_eq!(outcome.jobs.iter().map(|job| job.ops_count).sum::<u64>(), outcome.ops_count);
    for job in &outcome.jobs {
        let of = kept.0.iter().filter(|op| op.job == job.job && op.outcome.is_ok());
        assert_eq!(job.bytes, of.map(|op| op.bytes).sum::<u64>());
    }
    (outcome, kept.0)
}

fn store(script: Script) -> Scripted {
    Scripted { script, generator: Arc::new(Generator::new(7)) }
}

fn ok_in_10_ms(_: u64) -> (Duration, Answer) {
    (Duration::from_millis(10), Answer::Right)
}

fn open(rate: &str, arrivals: &str) -> String {
    format!("{{open: {{rate: {rate}, arrivals: {arrivals}, max_in_flight: 64}}}}")
}

/// Returns the operations of one job in the order in which they started.
fn of_job(records: &[OpRecord], job: u8) -> Vec<&OpRecord> {
    let mut of: Vec<_> = records.iter().filter(|op| op.job == JobId(job)).collect();
    of.sort_by_key(|op| (op.start, op.worker));
    of
}

fn starts_ms(records: &[&OpRecord]) -> Vec<u64> {
    records.iter().map(|op| op.start.as_ns() / MS).collect()
}

/// Runs one job of a closed loop on objects with this timing.
fn timed(workers: u32, script: Script, timing: JobTiming, limits: StageLimits) -> Done {
    let (driver, workload) = (store(script), workload("get", workers, "closed"));
    let job = workload.alone(&driver, StageKind::Measure);
    let work = StageWork::of_objects(StageId(1), ObjectsJob { timing, ..job });
    run(&Arc::new(VirtualTime::new()), &StageWork { limits, ..work }, None)
}

const SECOND: Option<Duration> = Some(Duration::from_secs(1));

#[test]
fn jobs_on_objects_and_files_run_at_once() {
    let time = Arc::new(VirtualTime::new());
    let reads = format!("workers: 2, depth: 2, duration: 1s, {}", blocks(100, ""));
    let plan = files_of(&stages(&[FILL, &reads]));
    let files = Arc::new(Mutex::default());
    let world = World { time: Arc::clone(&time), script: one_ms, files, pace: Pace::MS };
    let filled = StageWork::of_files(StageId(0), FilesJobs::alone(&world, &plan, 0, RINGS));
    assert_eq!(run(&time, &filled, None).0.failed_count, 0);

    let began = time_of(&time);
    let driver = store(ok_in_10_ms);
    let (gets, stats) =
        (workload("get", 3, "closed"), workload("stat", 2, &open("50/s", "constant")));
    let first = gets.alone(&driver, StageKind::Measure);
    let second = ObjectsJob {
        id: JobId(2),
        name: "probes",
        number_first: 5,
        endpoint_first: 7,
        ..stats.alone(&driver, StageKind::Measure)
    };
    let mut jobs = FilesJobs::alone(&world, &plan, 1, RINGS);
    jobs.jobs[0].id = JobId(1);
    (jobs.number_first, jobs.jobs[0].endpoint) = (3, EndpointId(4));
    let limits = StageLimits::default();
    let work =
        StageWork { stage: StageId(3), objects: vec![first, second], files: Some(jobs), limits };
    let (outcome, records) = run(&time, &work, None);
    assert_eq!((outcome.started, outcome.failed_count), (began, 0));
    assert_eq!(outcome.ended, began.after(Duration::from_secs(1)));
    let counts: Vec<_> = outcome.jobs.iter().map(|job| (job.job.0, job.ops_count)).collect();
    // Three at 10 ms, four slots at 1 ms, and fifty arrivals.
    assert_eq!(counts, [(0, 300), (1, 4_000), (2, 50)]);
    assert!(outcome.jobs.iter().all(|job| job.ended_by == EndReason::Duration));
    let schedules: Vec<_> = outcome.jobs.iter().map(|job| job.schedule.is_some()).collect();
    assert_eq!(schedules, [false, false, true]);
    assert_eq!(outcome.schedule, outcome.jobs[2].schedule);
    assert!(records.iter().all(|op| op.stage == StageId(3)));
    for (job, kind, workers, endpoint) in
        [(0, OpKind::Get, 0..3, 0), (1, OpKind::Read, 3..5, 4), (2, OpKind::Stat, 5..7, 7)]
    {
        let of = of_job(&records, job);
        assert!(of.iter().all(|op| op.kind == kind && op.endpoint == EndpointId(endpoint)));
        let mut numbers: Vec<u32> = of.iter().map(|op| op.worker.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers, workers.collect::<Vec<_>>());
    }
}

fn time_of(time: &VirtualTime) -> Moment {
    plimsoll_model::Clock::now(time)
}

/// Returns what was intended of each of two jobs, which differ but in their numbers.
fn intended(records: &[OpRecord]) -> [Vec<u64>; 2] {
    [0, 1].map(|job| of_job(records, job).iter().map(|op| op.intended.as_ns()).collect())
}

#[test]
fn poisson_arrivals_of_two_jobs_are_two_draws_and_constant_ones_coincide() {
    let driver = store(ok_in_10_ms);
    let of_objects = |stage: u8, arrivals: &str| {
        let workload = workload("stat", 2, &open("300/s", arrivals));
        let first = workload.alone(&driver, StageKind::Measure);
        let second = workload.alone(&driver, StageKind::Measure);
        let second = ObjectsJob { id: JobId(1), number_first: 2, ..second };
        let work = StageWork::<_, NullRings> {
            stage: StageId(stage),
            objects: vec![first, second],
            files: None,
            limits: StageLimits::default(),
        };
        intended(&run(&Arc::new(VirtualTime::new()), &work, None).1)
    };
    let of_files = |pacing: &str| {
        let timing = format!("workers: 2, duration: 1s, pacing: {pacing}");
        let job = |name| format!("{{name: {name}, {timing}, {}}}", blocks(100, ""));
        let both = format!("{}, {}", job("j"), job("k"));
        let plan = files_of(&ring_tests::workload(&[format!("{{name: j, {FILL}}}"), both]));
        let time = Arc::new(VirtualTime::new());
        let files = Arc::new(Mutex::default());
        let world = World { time: Arc::clone(&time), script: one_ms, files, pace: Pace::MS };
        let stage = |stage| FilesJobs::alone(&world, &plan, stage, RINGS);
        run(&time, &StageWork::of_files(StageId(0), stage(0)), None);
        let mut jobs = stage(1);
        jobs.jobs[1].id = JobId(1);
        intended(&run(&time, &StageWork::of_files(StageId(1), jobs), None).1)
    };
    let apart = |[one, other]: &[Vec<u64>; 2]| {
        assert!(one.len() > 200 && other.len() > 200, "{} {}", one.len(), other.len());
        assert!(one.iter().all(|at| !other.contains(at)), "{one:?} {other:?}");
    };
    let first = of_objects(0, "poisson");
    apart(&first);
    // So are those of two stages.
    let later = of_objects(1, "poisson");
    apart(&later);
    apart(&[first[1].clone(), later[1].clone()]);
    apart(&of_files("{open: {rate: 300/s, arrivals: poisson}}"));
    let [one, other] = of_objects(0, "constant");
    assert_eq!(one, other);
    let [one, other] = of_files("{open: 300/s}");
    assert_eq!(one, other);
}

#[test]
fn a_worker_begins_after_its_delay_and_its_ramp_comes_on_top() {
    let delay = Duration::from_millis(30);
    let timing = JobTiming {
        duration: Some(Duration::from_millis(100)),
        ramp: Duration::from_millis(20),
        start_delay: delay..=delay,
        ..JobTiming::default()
    };
    let (outcome, records) = timed(1, ok_in_10_ms, timing, StageLimits::default());
    let expected: Vec<u64> = (3..15).map(|tens| 10 * tens).collect();
    assert_eq!(starts_ms(&of_job(&records, 0)), expected);
    assert_eq!((outcome.ended, outcome.ended_by), (at_ms(150), EndReason::Duration));
    let timing = JobTiming {
        duration: Some(Duration::from_millis(40)),
        ramp_down: Duration::from_millis(20),
        ..JobTiming::default()
    };
    let (outcome, records) = timed(1, ok_in_10_ms, timing, StageLimits::default());
    assert_eq!(starts_ms(&of_job(&records, 0)), [0, 10, 20, 30, 40, 50]);
    assert_eq!((outcome.ended, outcome.ended_by), (at_ms(60), EndReason::Duration));
}

const fn at_ms(ms: u64) -> Moment {
    Moment::from_ns(ms * MS)
}

#[test]
fn pauses_come_after_so_many_operations_and_do_not_outlast_the_job() {
    let think = |spin| Think {
        pause: Duration::from_millis(50),
        spin: Duration::from_millis(spin),
        every_ops: NonZeroU32::new(2).unwrap(),
    };
    for spin in [0, 20, 50] {
        let timing = JobTiming { duration: SECOND, think: Some(think(spin)), ..Default::default() };
        let limits =
            StageLimits { duration: Some(Duration::from_millis(200)), ..Default::default() };
        let (outcome, records) = timed(1, ok_in_10_ms, timing, limits);
        assert_eq!(starts_ms(&of_job(&records, 0)), [0, 10, 70, 80, 140, 150], "spin {spin}");
        // The stage is over while the worker pauses.
        assert_eq!((outcome.ended, outcome.ended_by), (at_ms(200), EndReason::Duration));
    }
}

#[test]
fn a_job_ends_after_its_operations_and_its_bytes() {
    let limited = |ops_max, bytes_max| {
        let timing = JobTiming { ops_max, bytes_max, ..JobTiming::default() };
        let (outcome, records) = timed(3, ok_in_10_ms, timing, StageLimits::default());
        assert_eq!(outcome.ended_by, EndReason::OutOfWork);
        [0, 1, 2].map(|worker| records.iter().filter(|op| op.worker == WorkerId(worker)).count())
    };
    assert_eq!(limited(Some(Amount::All(20)), None), [7, 7, 6]);
    assert_eq!(limited(Some(Amount::Each(20)), None), [20, 20, 20]);
    // Objects of 1,000 bytes: the one that reaches the limit is read to its end.
    assert_eq!(limited(None, Some(Amount::Each(2_500))), [3, 3, 3]);
    assert_eq!(limited(Some(Amount::Each(2)), Some(Amount::All(9_000))), [2, 2, 2]);
}

#[test]
fn a_stage_ends_after_the_operations_of_all_its_jobs() {
    let driver = store(ok_in_10_ms);
    let (gets, stats) =
        (workload("get", 3, "closed"), workload("stat", 1, &open("1000/s", "constant")));
    let first = gets.alone(&driver, StageKind::Measure);
    let second =
        ObjectsJob { id: JobId(1), number_first: 3, ..stats.alone(&driver, StageKind::Measure) };
    let limits = StageLimits { ops_max: Some(100), ..StageLimits::default() };
    let work = StageWork::<_, NullRings> {
        stage: StageId(0),
        objects: vec![first, second],
        files: None,
        limits,
    };
    let (outcome, records) = run(&Arc::new(VirtualTime::new()), &work, None);
    assert_eq!((records.len(), outcome.ended_by), (100, EndReason::OutOfWork));
    // 13 a 10 ms: 3 of the one and 10 of the other.
    let counts: Vec<u64> = outcome.jobs.iter().map(|job| job.ops_count).collect();
    assert!((22..=25).contains(&counts[0]) && counts[0] + counts[1] == 100, "{counts:?}");
    assert_eq!(outcome.schedule.unwrap().skipped_count, 0);
}

#[test]
fn the_first_failure_ends_a_stage_that_wants_it() {
    let script: Script = |number| {
        let fails = Answer::Fail(ErrorClass::Server);
        (Duration::from_millis(10), if number == 9 { fails } else { Answer::Right })
    };
    let timing = JobTiming { duration: SECOND, ..JobTiming::default() };
    let limits = StageLimits { end_on_failure: true, ..StageLimits::default() };
    let (outcome, records) = timed(2, script, timing, limits);
    assert_eq!((outcome.ended_by, outcome.ended), (EndReason::Failure, at_ms(100)));
    assert_eq!(outcome.ended_because.as_deref(), Some("GET failed: server: scripted"));
    assert_eq!(records.len(), 20);
    assert_eq!(outcome.errors[0].job, JobId(0));
}

#[test]
fn a_stage_ends_whose_operations_all_fail_alike_from_its_first_on() {
    let duration = 60 * SECOND.unwrap();
    let timing = JobTiming { duration: Some(duration), ..JobTiming::default() };
    let alike = StageLimits { ends_if_alike: true, ..StageLimits::default() };
    fn fails(class: ErrorClass) -> (Duration, Answer) {
        (Duration::from_millis(10), Answer::Fail(class))
    }
    let end = |script: Script, limits: &StageLimits| {
        let (outcome, records) = timed(2, script, timing.clone(), limits.clone());
        (outcome.ended_by, outcome.ended_because, records.len())
    };
    let denied: Script = |_| fails(ErrorClass::Denied);
    let (by, because, count) = end(denied, &alike);
    // The first that ends at 2 s or later, of 10 ms each, and what was under way then.
    assert_eq!((by, count), (EndReason::Failure, 400));
    let sentence = "all 399 operations so far failed alike: denied: scripted";
    assert_eq!(because.as_deref(), Some(sentence));
    // Not where that is not wanted, where one went otherwise, or where it may pass by itself.
    let one_right: Script = |number| match number {
        150 => (Duration::from_millis(10), Answer::Right),
        _ => fails(ErrorClass::Denied),
    };
    let one_other: Script =
        |number| fails(if number == 3 { ErrorClass::Client } else { ErrorClass::Denied });
    let server: Script = |_| fails(ErrorClass::Server);
    let never = StageLimits::default();
    for (script, limits) in
        [(denied, &never), (one_right, &alike), (one_other, &alike), (server, &alike)]
    {
        assert_eq!(end(script, limits).0, EndReason::Duration);
    }
}

/// Stops when the rate is known within 5 %.
fn until_known() -> StageLimits {
    let rules = vec![StopRule::Until(vec!["ci(mean)<=5%".parse().unwrap()])];
    StageLimits { stop_rules: rules, ..StageLimits::default() }
}

#[test]
fn rules_watch_operations_on_files_and_of_every_job() {
    let job = |pacing: &str| {
        let work = blocks(100, "");
        format!("workers: 2, depth: 4, duration: 60s, pacing: {pacing}, {work}")
    };
    let open = "{open: {rate: 1000/s, arrivals: poisson, max_in_flight: 64}}";
    for pacing in ["closed", "{capped_each: {read: 100/s}}", open] {
        let plan = files_of(&stages(&[FILL, &job(pacing)]));
        let time = Arc::new(VirtualTime::new());
        let files = Arc::new(Mutex::default());
        let world = World { time: Arc::clone(&time), script: one_ms, files, pace: Pace::MS };
        let stage = |stage| FilesJobs::alone(&world, &plan, stage, RINGS);
        run(&time, &StageWork::of_files(StageId(0), stage(0)), None);
        let began = time_of(&time);
        let work = StageWork::of_files(StageId(1), stage(1));
        let (outcome, _) = run(&time, &StageWork { limits: until_known(), ..work }, None);
        assert_eq!(outcome.ended_by, EndReason::Until, "{pacing}");
        let because = outcome.ended_because.unwrap();
        let mean = "ci(mean) is ±0.0 %, at most 5 % was asked (10 batches of 1 s)";
        assert_eq!(because, mean, "{pacing}");
        // As many whole seconds as batches after the one in which the workers began.
        let took = outcome.ended.since(began);
        assert!((11_000..12_100).contains(&took.as_millis()), "{pacing}: {took:?}");
    }
}

#[test]
fn what_is_done_in_a_ramp_is_no_reason_to_stop() {
    // Two seconds at 100 ms, then 10 ms each: the ramp would make the mean uncertain.
    let script: Script =
        |number| (Duration::from_millis(if number < 20 { 100 } else { 10 }), Answer::Right);
    let timing = |ramp| JobTiming {
        duration: Some(Duration::from_secs(40)),
        ramp: Duration::from_secs(ramp),
        ..JobTiming::default()
    };
    let (with, _) = timed(2, script, timing(2), until_known());
    assert_eq!(with.ended_by, EndReason::Until);
    let took = with.ended.since(with.started);
    assert!((13_000..14_100).contains(&took.as_millis()), "{took:?}");
    assert!(with.ended_because.unwrap().starts_with("ci(mean) is ±0.0 %"));
    let (without, _) = timed(2, script, timing(0), until_known());
    assert_ne!(without.ended_because.unwrap_or_default().find("±0.0 %"), Some(12));
}

#[test]
fn a_schedule_that_a_rule_ends_offered_what_was_due_until_then() {
    let script: Script =
        |number| (Duration::from_millis(if number == 100 { 40_000 } else { 10 }), Answer::Right);
    let workload = workload("get", 2, &open("100/s", "constant"));
    let driver = store(script);
    let mut job = workload.alone(&driver, StageKind::Measure);
    job.timing.duration = Some(Duration::from_secs(60));
    let work = StageWork::of_objects(StageId(1), job);
    let work = StageWork { limits: until_known(), ..work };
    let (outcome, records) = run(&Arc::new(VirtualTime::new()), &work, None);
    assert_eq!(outcome.ended_by, EndReason::Until);
    // It waited for what was under way, in which nothing was due.
    assert!(outcome.ended > at_ms(40_000), "{:?}", outcome.ended);
    let kept = outcome.schedule.unwrap();
    let (from, until) = kept.span.unwrap();
    assert_eq!((from, kept.skipped_count), (Duration::ZERO, 0));
    assert_eq!(kept.offered_count, records.len() as u64);
    let due = until.as_secs_f64() * 100.0;
    assert!(due < 2_000.0 && (kept.offered_count as f64 - due).abs() <= 1.0, "{kept:?}");
}

/// The workers of one job by the engine that runs them.
const DIVISIONS: [&[Range<u32>]; 3] = [&[WHOLE], &[0..3, 3..8], &[5..8, 0..1, 1..5]];
const WHOLE: Range<u32> = 0..8;

/// Returns the sum of the hashes of what several engines issue, and how much that is.
fn divided<D: Driver>(
    driver: &D,
    workload: &Laid,
    kind: StageKind,
    ranges: &[Range<u32>],
    limit: Option<Amount>,
) -> (u64, Vec<(WorkerId, u64)>) {
    let (mut hash, mut issued) = (0u64, Vec::new());
    for workers in ranges {
        let job = workload.alone(driver, kind);
        let timing = JobTiming { ops_max: limit, ..job.timing };
        let job = ObjectsJob { workers: workers.clone(), timing, ..job };
        let work = StageWork::of_objects(StageId(0), job);
        let (outcome, records) = run(&Arc::new(VirtualTime::new()), &work, None);
        hash = hash.wrapping_add(outcome.stream_hash);
        assert!(records.iter().all(|op| workers.contains(&op.worker.0)));
        issued.extend(records.iter().map(|op| (op.worker, op.intended.as_ns())));
    }
    issued.sort_unstable();
    (hash, issued)
}

#[test]
fn it_does_not_matter_which_engine_runs_which_workers() {
    let driver = store(ok_in_10_ms);
    let (poisson, constant) = (open("300/s", "poisson"), open("99/s", "constant"));
    for pacing in ["closed", "{capped: 100/s}", &poisson, &constant] {
        let workload = workload("get", 8, pacing);
        let mut all = DIVISIONS
            .iter()
            .map(|ranges| divided(&driver, &workload, StageKind::Measure, ranges, None));
        let whole = all.next().unwrap();
        assert!(whole.1.len() > 80, "{pacing:?}");
        all.for_each(|parts| assert_eq!(parts, whole, "{pacing:?}"));
    }
    let prepared = workload("get", 8, "closed");
    let of = |ranges| divided(&driver, &prepared, StageKind::Prepare, ranges, None);
    assert_eq!((of(DIVISIONS[1]), of(DIVISIONS[2])), (of(DIVISIONS[0]), of(DIVISIONS[0])));
    // What the job is given in all is divided by the workers' numbers.
    let limited =
        |ranges| divided(&driver, &prepared, StageKind::Measure, ranges, Some(Amount::All(101)));
    let whole = limited(DIVISIONS[0]);
    assert_eq!(whole.1.len(), 101);
    assert_eq!((limited(DIVISIONS[1]), limited(DIVISIONS[2])), (whole.clone(), whole));
}

/// Runs a stage on threads and the machine's clock.
fn run_real<D: Driver, R: RingDriver>(
    clock: &SharedClock,
    work: &StageWork<'_, D, R>,
    begins_at: Option<Moment>,
) -> Done {
    let (stop, generator) = (StopFlag::default(), Arc::new(Generator::new(7)));
    let live = Live::new(stage_threads(work, &CONFIG).max(1));
    let context = StageContext {
        clock,
        virtual_time: None,
        stop: &stop,
        live: &live,
        generator: &generator,
        wall_epoch: WallTime::from_unix_ns(0),
        begins_at,
    };
    let mut kept = KeptOps::default();
    let outcome = run_stage(work, &CONFIG, &context, &mut kept).unwrap();
    (outcome, kept.0)
}

#[test]
fn engines_on_threads_divide_the_same_operations() {
    let clock: SharedClock = Arc::new(RunClock::start());
    let workload = workload("get", 8, "closed");
    let job = format!("workers: 8, depth: 2, ops: 400, {}", blocks(50, ""));
    let plan = files_of(&stages(&[&job]));
    let mut sums = Vec::new();
    for ranges in DIVISIONS {
        let (mut hashes, mut counts) = ([0u64; 2], [0u64; 2]);
        for workers in ranges {
            let objects = workload.alone(&NullDriver, StageKind::Measure);
            let timing = JobTiming { ops_max: Some(Amount::All(1_000)), ..JobTiming::default() };
            let objects = ObjectsJob { workers: workers.clone(), timing, ..objects };
            let mut files = FilesJobs::alone(&NullRings, &plan, 0, RINGS);
            (files.jobs[0].id, files.number_first) = (JobId(1), 8);
            files.jobs[0].workers = workers.clone();
            let work = StageWork {
                stage: StageId(0),
                objects: vec![objects],
                files: Some(files),
                limits: StageLimits::default(),
            };
            let (outcome, _) = run_real(&clock, &work, None);
            for (at, job) in outcome.jobs.iter().enumerate() {
                hashes[at] = hashes[at].wrapping_add(job.stream_hash);
                counts[at] += job.ops_count;
            }
        }
        assert_eq!(counts, [1_000, 400]);
        sums.push(hashes);
    }
    assert!(sums.iter().all(|hashes| *hashes == sums[0]), "{sums:?}");
}

#[test]
fn a_job_whose_workers_all_run_elsewhere_takes_no_thread() {
    let clock: SharedClock = Arc::new(RunClock::start());
    let workload = workload("get", 1, "closed");
    let timing = || JobTiming { ops_max: Some(Amount::All(10)), ..JobTiming::default() };
    let of = |id: u8, workers| {
        let job = workload.alone(&NullDriver, StageKind::Measure);
        ObjectsJob { id: JobId(id), workers, number_first: id.into(), timing: timing(), ..job }
    };
    let done = |here: [Range<u32>; 2]| {
        let [first, second] = here;
        let work = StageWork {
            stage: StageId(0),
            objects: vec![of(0, first), of(1, second)],
            files: None::<FilesJobs<'_, NullRings>>,
            limits: StageLimits::default(),
        };
        let (outcome, _) = run_real(&clock, &work, None);
        outcome.jobs.iter().map(|job| job.ops_count).collect::<Vec<u64>>()
    };
    assert_eq!((done([0..1, 0..0]), done([0..0, 0..1])), (vec![10, 0], vec![0, 10]));
    assert_eq!((done([0..1, 0..1]), done([0..0, 0..0])), (vec![10, 10], vec![0, 0]));
}

#[test]
fn a_stage_begins_when_it_is_to_and_says_when_it_is_late() {
    let time = Arc::new(VirtualTime::new());
    let (driver, workload) = (store(ok_in_10_ms), workload("get", 2, "closed"));
    let job = workload.alone(&driver, StageKind::Measure);
    let work = StageWork::of_objects(StageId(0), job);
    let (outcome, records) = run(&time, &work, Some(at_ms(5_000)));
    assert_eq!((outcome.started, outcome.began_late_by), (at_ms(5_000), Duration::ZERO));
    assert_eq!(records.iter().map(|op| op.start).min(), Some(at_ms(5_000)));
    assert_eq!((records.len(), outcome.ended), (200, at_ms(6_000)));
    let (late, records) = run(&time, &work, Some(at_ms(5_500)));
    assert_eq!((late.started, late.began_late_by), (at_ms(6_000), Duration::from_millis(500)));
    assert_eq!(records.len(), 200);

    let clock: SharedClock = Arc::new(RunClock::start());
    let job = workload.alone(&NullDriver, StageKind::Prepare);
    let work = StageWork::of_objects(StageId(0), job);
    let begins = clock.now().after(Duration::from_millis(200));
    let (outcome, records) = run_real(&clock, &work, Some(begins));
    // On a machine that is very busy it may be late, and says so.
    assert_eq!(outcome.started, begins.after(outcome.began_late_by));
    assert!(records.len() == 16 && records.iter().all(|op| op.start >= outcome.started));
}

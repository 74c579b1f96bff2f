//! When operations on files start, and how schedules are kept: scripted files in virtual time.

use std::time::Duration;

use plimsoll_model::{EndReason, ErrorClass, JobId, Moment};

use crate::instrument_tests::MS;
use crate::ring_tests::Answer::{Fail, Right};
use crate::ring_tests::{FILL, blocks, one_ms, run, run_file, stages, ten_ms, workload};
use crate::testing::files_of;
use plimsoll_workload::start_delay;

use crate::{JobTiming, ScheduleOutcome};

#[test]
fn a_job_begins_after_its_delay_and_its_ramp_comes_on_top() {
    let job = "workers: 1, depth: 1, start_delay: 30ms..30ms, ramp: 20ms, duration: 100ms";
    let ran = run(job, 100, "", ten_ms);
    let expected: Vec<u64> = (3..15).map(|tens| 10 * tens).collect();
    assert_eq!(ran.starts_ms(), expected);
    assert_eq!(ran.outcome.ended, Moment::from_ns(150 * MS));
}

#[test]
fn a_schedule_is_kept_and_a_stall_is_in_the_latency_of_what_was_due() {
    let job = "workers: 1, depth: 1, duration: 1s, pacing: {open: {rate: 100/s, \
               arrivals: constant, max_in_flight: 2}}";
    let ran =
        run(job, 100, "", |number| (if number == 50 || number == 51 { 300 } else { 5 }, Right));
    let schedule = ran.outcome.schedule.as_ref().unwrap();
    assert_eq!((schedule.offered_count, schedule.skipped_count), (100, 0));
    let mut records = ran.records.clone();
    records.sort_by_key(|op| op.intended);
    let intended: Vec<u64> = records.iter().map(|op| op.intended.as_ns() / MS).collect();
    assert_eq!(intended, (0..100).map(|number| 10 * number).collect::<Vec<u64>>());
    // Both slots are taken from 510 to 800 ms, when the one that was due at 520 starts.
    assert_eq!(records[52].start, Moment::from_ns(800 * MS));
    assert_eq!(records[52].latency(), Duration::from_millis(285));
    assert_eq!(schedule.delay_max, Duration::from_millis(280));
    let late = records.iter().filter(|op| op.start.since(op.intended).as_millis() > 1).count();
    assert_eq!(schedule.late_count, late as u64);
    assert!(records[..52].iter().all(|op| op.start == op.intended));
}

#[test]
fn what_never_found_a_slot_is_counted_as_skipped() {
    let job = "workers: 2, depth: 1, duration: 1s, pacing: {open: {rate: 100/s, \
               arrivals: constant, max_in_flight: 2}}";
    let ran = run(job, 0, "", |_| (2_000, Right));
    let schedule = ran.outcome.schedule.as_ref().unwrap();
    assert_eq!((schedule.offered_count, schedule.skipped_count), (100, 98));
    assert_eq!((ran.records.len(), schedule.late_count), (2, 0));
}

#[test]
fn what_there_was_no_work_for_is_not_skipped() {
    // Ten operations fit into the second, and 20 are all there is.
    for more in ["ops: 20", "bytes: 80KiB"] {
        let job = format!(
            "workers: 1, depth: 1, duration: 1s, {more}, pacing: {{open: {{rate: 100/s, \
             arrivals: constant, max_in_flight: 1}}}}"
        );
        let ran = run(&job, 0, "", |_| (100, Right));
        let schedule = ran.outcome.schedule.as_ref().unwrap();
        assert_eq!((ran.records.len(), schedule.skipped_count), (10, 10), "{more}");
        assert_eq!(schedule.offered_count, 20, "{more}");
        // The first that there was no work for was due at 200 ms.
        assert_eq!(schedule.span, Some((Duration::ZERO, Duration::from_millis(200))), "{more}");
    }
}

#[test]
fn a_failure_does_not_make_the_arrivals_after_it_late() {
    let job = "workers: 1, depth: 2, duration: 1s, pacing: {open: {rate: 100/s, \
               arrivals: constant, max_in_flight: 2}}";
    let ran = run(job, 100, "", |number| {
        let is_bad = (10..20).contains(&number);
        (1, if is_bad { Fail(ErrorClass::Io, "bad sector") } else { Right })
    });
    assert_eq!((ran.records.len(), ran.outcome.failed_count), (100, 10));
    assert!(ran.records.iter().all(|op| op.start == op.intended));
    assert_eq!(ran.outcome.schedule.as_ref().unwrap().late_count, 0);
}

#[test]
fn a_schedule_is_counted_from_the_end_of_its_ramp_until_nothing_is_due() {
    let offered = |job: &str| {
        let job = format!(
            "workers: 2, depth: 4, {job}, pacing: {{open: {{rate: 100/s, arrivals: constant, \
             max_in_flight: 8}}}}"
        );
        // Each fifth takes 2 s, so that all is over long after the last one was due.
        let ran = run(&job, 100, "", |number| (if number % 5 == 4 { 2_000 } else { 1 }, Right));
        let measured = ran.records.iter().filter(|op| op.is_measured).count() as u64;
        let kept = ran.outcome.schedule.unwrap();
        assert_eq!(measured + kept.skipped_count, kept.offered_count, "{job}");
        let (from, until) = kept.span.unwrap();
        (from.as_millis(), until.as_millis(), kept.offered_count)
    };
    assert_eq!(offered("duration: 10s"), (0, 10_000, 1_000));
    assert_eq!(offered("duration: 10s, ramp: 5s"), (5_000, 15_000, 1_000));
    assert_eq!(offered("duration: 10s, ramp_down: 5s"), (0, 10_000, 1_000));
    assert_eq!(offered("duration: 10s, start_delay: 3s..3s, ramp: 5s"), (8_000, 18_000, 1_000));
    // Of each worker the one that would be due next is not.
    assert_eq!(offered("ops: 1000"), (0, 10_010, 1_000));
}

#[test]
fn each_job_is_held_against_its_own_schedule() {
    let job = |name: &str, pacing: &str| {
        let work = blocks(100, "").replace("on: f", &format!("on: {name}"));
        format!("{{name: {name}, depth: 16, duration: 1s, pacing: {pacing}, {work}}}")
    };
    let open = |rate: u32, at_once: u32| {
        format!("{{open: {{rate: {rate}/s, arrivals: constant, max_in_flight: {at_once}}}}}")
    };
    let jobs = [job("a", "closed"), job("b", &open(1_000, 1)), job("c", &open(10, 16))].join(", ");
    let fill = |name| format!("{{{}}}", FILL.replace("sets: f", &format!("sets: {name}")));
    let file = workload(&[fill("a"), fill("b"), fill("c"), jobs]);
    let ran = run_file(&file, &[one_ms, one_ms, one_ms, ten_ms]);
    // Sixteen at a time, and 10 ms each: 1,600 that nobody wanted at a certain moment.
    assert_eq!(ran.records.len(), 1_600 + 100 + 10);
    // Of the thousand that were to come, one each ms, one each 10 ms did: the hundredth, due at 99
    // ms, at 990. The other job had room for all of its ten.
    let until = |ms| Some((Duration::ZERO, Duration::from_millis(ms)));
    let missed = ScheduleOutcome {
        span: until(1_000),
        offered_count: 1_000,
        late_count: 99,
        skipped_count: 900,
        held_count: 0,
        delay_max: Duration::from_millis(990 - 99),
    };
    let kept =
        ScheduleOutcome { span: until(1_000), offered_count: 10, ..ScheduleOutcome::default() };
    let of_jobs: Vec<_> = ran.outcome.jobs.iter().map(|job| (job.job, job.schedule)).collect();
    let expected = [(JobId(0), None), (JobId(1), Some(missed)), (JobId(2), Some(kept))];
    assert_eq!(of_jobs, expected);
    let ended: Vec<u64> = ran.outcome.jobs.iter().map(|job| job.ops_count).collect();
    assert_eq!(ended, [1_600, 100, 10]);
    let all = ScheduleOutcome { offered_count: 1_010, ..missed };
    assert_eq!(ran.outcome.schedule, Some(all));
}

#[test]
fn workers_begin_when_the_drawn_delay_is_over() {
    let job = "workers: 8, ops: 8, start_delay: 1ms..30s";
    let file = stages(&[FILL, &format!("{job}, {}", blocks(100, ""))]);
    let ran = run_file(&file, &[one_ms, one_ms]);
    let plan = files_of(&file);
    let range = JobTiming::of_files(&plan.plan.stages[1].jobs[0], None).start_delay;
    let mut drawn = Vec::new();
    for op in &ran.records {
        let delay = start_delay(&range, plan.seed.0, op.worker);
        assert_eq!(op.start, Moment::EPOCH.after(delay), "{:?}", op.worker);
        drawn.push(delay);
    }
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!(drawn.len(), 8);
    assert!(drawn.iter().all(|delay| *delay >= Duration::from_millis(1)));
}

#[test]
fn arrivals_for_which_there_is_no_work_are_not_offered() {
    let job = "workers: 1, depth: 1, ops: 20, pacing: {open: {rate: 100/s, arrivals: constant, \
               max_in_flight: 2}}";
    let ran = run(job, 100, "", |number| (if number == 19 { 500 } else { 5 }, Right));
    let schedule = ran.outcome.schedule.as_ref().unwrap();
    assert_eq!((ran.records.len(), schedule.offered_count, schedule.skipped_count), (20, 20, 0));
    assert_eq!(ran.outcome.ended_by, EndReason::OutOfWork);
}

//! Stop rules on paused time: a stage ends exactly when they say.

use std::sync::Arc;

use plimsoll_driver::null::NullDriver;
use plimsoll_model::{ErrorClass, StageId, StageKind};

use super::*;
use crate::instrument_tests::{Answer, MS, Script, run};
use crate::testing::Laid;
use crate::{StageOutcome, StopFlag};

const SECOND: u64 = 1_000 * MS;

/// Eight workers for at most two minutes, with objects enough to delete all the while.
fn eight(operations: &str, until: &str) -> Arc<Laid> {
    eight_on("count: 9600, size: 1000", operations, until)
}

fn eight_on(set: &str, operations: &str, until: &str) -> Arc<Laid> {
    let work = format!("work: {{objects: [{operations}]}}");
    Laid::of(set, 8, &work, &format!("duration: 120s, until: [{until}]"))
}

/// warp's rule with a window of 7 s, so that it asks for more than 25 s.
const STEADY_7_S: &str = "'steady(7s, 7.5%)'";

fn measure(workload: &Laid, script: Script) -> (StageOutcome, Vec<OpRecord>) {
    run(workload, StageKind::Measure, script, 0, &StopFlag::default())
}

fn ok_in_100_ms(_: u64) -> (Duration, Answer) {
    (Duration::from_millis(100), Answer::Right)
}

fn last_end(records: &[OpRecord]) -> u64 {
    records.iter().map(|op| op.end.as_ns()).max().unwrap()
}

#[test]
fn a_steady_run_of_every_command_ends_in_the_second_the_rule_allows() {
    // A survey that found nothing: a listing is complete when it is empty.
    let list = eight_on("existing: {}", "{list: o}", STEADY_7_S);
    // Each kind must be steady, and of eight DELETEs a second chance makes an uneven rate.
    let mix = "{get: o, weight: 45}, {stat: o, weight: 30}, {put: o, weight: 15}, \
               {delete: o, weight: 10}";
    for (workload, what) in [
        (eight("{get: o}", STEADY_7_S), "throughput within 7.5 %"),
        (eight("{put: o}", STEADY_7_S), "throughput within 7.5 %"),
        (eight("{delete: o}", STEADY_7_S), "rate within 7.5 %"),
        (list, "rate within 7.5 %"),
        (eight("{stat: o}", STEADY_7_S), "rate within 7.5 %"),
        (eight(mix, "'steady(7s, 200%)'"), "PUT: throughput within 200 %"),
    ] {
        let (outcome, records) = measure(&workload, ok_in_100_ms);
        let because = outcome.ended_because.expect(what);
        assert!(records.iter().all(|op| op.outcome.is_ok()));
        assert_eq!(outcome.ended_by, EndReason::Steady);
        // All workers are active from 0.1 s on. At 25 s the range is 24.9 s long, at 26 s it is
        // 25.8 s or 25.9 s, as the recorder may be a look behind; what is under way is ended.
        let end = last_end(&records);
        assert!((26 * SECOND..=26 * SECOND + 200 * MS).contains(&end), "{what}: {end}");
        let begins = format!("{what} over the last 7 of 25 parts (7.2 s of 25.");
        let or = begins.replace("7.2", "7.3");
        assert!(because.starts_with(&begins) || because.starts_with(&or), "{because}");
    }
}

#[test]
fn a_drift_runs_to_the_end_of_its_time() {
    let workload = eight("{get: o}", STEADY_7_S);
    // 100 ms at first and 1 ms more after each fourth: 221 ms after two minutes.
    let (outcome, records) =
        measure(&workload, |number| (Duration::from_millis(100 + number / 4), Answer::Right));
    assert_eq!((outcome.ended_because, outcome.ended_by), (None, EndReason::Duration));
    assert!(last_end(&records) >= 120 * SECOND);
    // The slower half of the same ends it once the drift is out of sight.
    let (outcome, records) = measure(&workload, |number| {
        (Duration::from_millis(100 + number.min(200) / 4), Answer::Right)
    });
    assert_eq!(outcome.ended_by, EndReason::Steady);
    // 200 operations of 100 ms to 150 ms take 24.9 s, 18/25 of 34.6 s.
    let end = last_end(&records);
    assert!((26 * SECOND..36 * SECOND).contains(&end), "{end}");
}

#[test]
fn failed_operations_are_no_throughput() {
    let workload = eight("{get: o}", STEADY_7_S);
    let (outcome, _) =
        measure(&workload, |_| (Duration::from_millis(100), Answer::Fail(ErrorClass::Server)));
    assert_eq!((outcome.ended_because, outcome.ended_by), (None, EndReason::Duration));
    // From 20 s on every second one fails, which halves the rate: the last 7 of 25 parts begin
    // there at 27.8 s.
    let (outcome, records) = measure(&workload, |number| {
        let fails = number >= 2_000 && number % 2 == 1;
        let answer = if fails { Answer::Fail(ErrorClass::Server) } else { Answer::Right };
        (Duration::from_millis(10), answer)
    });
    assert!(outcome.ended_because.is_some());
    let end = last_end(&records);
    assert!((28 * SECOND..=28 * SECOND + 20 * MS).contains(&end), "{end}");
}

#[test]
fn a_worker_that_has_ended_nothing_keeps_it_running() {
    let stage = format!("duration: 30s, until: [{STEADY_7_S}]");
    let workload = Laid::of("count: 9600, size: 1000", 1, "work: {objects: [{get: o}]}", &stage);
    let (outcome, _) = measure(&workload, ok_in_100_ms);
    assert!(outcome.ended_because.is_some());
    let timing = JobTiming::default();
    let two = WatchedJob {
        id: JobId::default(),
        name: "measure",
        kinds: vec![OpKind::Get],
        number_first: 0,
        numbers: 2,
        numbers_each: 1,
        timing: &timing,
        seed: 7,
    };
    let mut two = Watch::new(&[two], workload.stop_rules(), Moment::EPOCH).unwrap();
    let (_, records) = measure(&workload, ok_in_100_ms);
    let packed: Vec<PackedOp> = records.iter().map(PackedOp::from).collect();
    two.observe(&packed);
    assert_eq!(two.check(Moment::from_ns(30 * SECOND)), None);
}

#[test]
fn figures_known_well_enough_end_it() {
    let rules = "'ci(mean)<=5%', 'ci(rate)<=5%'";
    let (outcome, records) = measure(&eight("{get: o}", rules), ok_in_100_ms);
    let because = outcome.ended_because.unwrap();
    assert_eq!(outcome.ended_by, EndReason::Until);
    // The first second is that in which the workers began; ten whole ones follow, and the end of
    // the last is seen when an operation ends there or beyond.
    let end = last_end(&records);
    assert!((11 * SECOND..=12 * SECOND + 200 * MS).contains(&end), "{end}");
    let mean = "ci(mean) is ±0.0 %, at most 5 % was asked (10 batches of 1 s); ci(rate) is ±";
    assert!(because.starts_with(mean), "{because}");
    // 80 operations a second: ten batches of 1,000 for a p99.9 take 125 s.
    let more = format!("{rules}, 'ci(p99.9)<=5%'");
    let (outcome, _) = measure(&eight("{get: o}", &more), ok_in_100_ms);
    assert_eq!((outcome.ended_because, outcome.ended_by), (None, EndReason::Duration));
}

#[test]
fn figures_that_drift_are_never_known() {
    let workload = eight("{get: o}", "'ci(p50)<=50%'");
    let (outcome, _) =
        measure(&workload, |number| (Duration::from_millis(100 + number / 4), Answer::Right));
    assert_eq!(outcome.ended_because, None);
}

#[test]
fn the_first_rule_to_hold_ends_it_and_only_while_measuring() {
    let workload = eight("{get: o}", &format!("{STEADY_7_S}, 'ci(rate)<=20%'"));
    let (outcome, _) = measure(&workload, ok_in_100_ms);
    assert_eq!(outcome.ended_by, EndReason::Until);
    let rules = |workload: &Laid, kind| {
        let job = workload.alone(&NullDriver, kind);
        workload.stage_of(StageId(0), kind, job).limits.stop_rules
    };
    assert_eq!(rules(&workload, StageKind::Measure), workload.stop_rules());
    assert!(rules(&workload, StageKind::Prepare).is_empty());
    assert!(Watch::new(&[], &rules(&workload, StageKind::Prepare), Moment::EPOCH).is_none());
    let workload = eight("{get: o}", "");
    assert!(Watch::new(&[], &rules(&workload, StageKind::Measure), Moment::EPOCH).is_none());
}

#[test]
fn the_least_time_a_rule_asks_for() {
    let window = Duration::from_secs(15);
    let steady = stop_time_min(&StopRule::Steady { window, percent: 7.5 });
    assert_eq!(steady.as_millis(), 53_571);
    assert_eq!(stop_time_min(&StopRule::Until(Vec::new())), Duration::from_secs(11));
}

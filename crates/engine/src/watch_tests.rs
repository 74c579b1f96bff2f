//! Stop rules on paused time: a stage ends exactly when they say.

use plimsoll_driver::null::NullDriver;
use plimsoll_model::{ErrorClass, StageId, StageKind};
use plimsoll_workload::v1::objects::{ExistingSpec, PacingSpec, SteadySpec, WorkloadSpec};

use super::*;
use crate::instrument_tests::{Answer, MS, Script, run, spec};
use crate::testing::Laid;
use crate::{StageOutcome, StopFlag};

const SECOND: u64 = 1_000 * MS;

/// Eight workers for at most two minutes, with objects enough to delete all the while.
fn eight(operations: &[(&str, u32)]) -> WorkloadSpec {
    let mut spec = spec(operations, 8, PacingSpec::Closed);
    spec.objects.count = 8 * 1_200;
    spec.measure.duration_ns = 120 * SECOND;
    spec
}

/// warp's rule with a window of 7 s, so that it asks for more than 25 s.
fn steady_7_s(mut spec: WorkloadSpec) -> WorkloadSpec {
    spec.measure.steady = Some(SteadySpec { window_ns: 7 * SECOND, percent: 7.5 });
    spec
}

fn measure(spec: &WorkloadSpec, script: Script) -> (StageOutcome, Vec<OpRecord>) {
    // A survey that found nothing: a listing is complete when it is empty.
    let workload = Laid::of(spec);
    run(&workload, StageKind::Measure, script, 0, &StopFlag::default())
}

fn ok_in_100_ms(_: u64) -> (Duration, Answer) {
    (Duration::from_millis(100), Answer::Right)
}

fn last_end(records: &[OpRecord]) -> u64 {
    records.iter().map(|op| op.end.as_ns()).max().unwrap()
}

#[test]
fn a_steady_run_of_every_command_ends_in_the_second_the_rule_allows() {
    let mut list = eight(&[("LIST", 1)]);
    list.objects.existing = Some(ExistingSpec { limit: None, recursive: true, destroys: false });
    // Each kind must be steady, and of eight DELETEs a second chance makes an uneven rate.
    let mut mixed = steady_7_s(eight(&[("GET", 45), ("STAT", 30), ("PUT", 15), ("DELETE", 10)]));
    mixed.measure.steady.as_mut().unwrap().percent = 200.0;
    for (spec, what) in [
        (steady_7_s(eight(&[("GET", 1)])), "throughput within 7.5 %"),
        (steady_7_s(eight(&[("PUT", 1)])), "throughput within 7.5 %"),
        (steady_7_s(eight(&[("DELETE", 1)])), "rate within 7.5 %"),
        (steady_7_s(list), "rate within 7.5 %"),
        (steady_7_s(eight(&[("STAT", 1)])), "rate within 7.5 %"),
        (mixed, "PUT: throughput within 200 %"),
    ] {
        let (outcome, records) = measure(&spec, ok_in_100_ms);
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
    let spec = steady_7_s(eight(&[("GET", 1)]));
    // 100 ms at first and 1 ms more after each fourth: 221 ms after two minutes.
    let (outcome, records) =
        measure(&spec, |number| (Duration::from_millis(100 + number / 4), Answer::Right));
    assert_eq!((outcome.ended_because, outcome.ended_by), (None, EndReason::Duration));
    assert!(last_end(&records) >= 120 * SECOND);
    // The slower half of the same ends it once the drift is out of sight.
    let (outcome, records) =
        measure(&spec, |number| (Duration::from_millis(100 + number.min(200) / 4), Answer::Right));
    assert_eq!(outcome.ended_by, EndReason::Steady);
    // 200 operations of 100 ms to 150 ms take 24.9 s, 18/25 of 34.6 s.
    let end = last_end(&records);
    assert!((26 * SECOND..36 * SECOND).contains(&end), "{end}");
}

#[test]
fn failed_operations_are_no_throughput() {
    let spec = steady_7_s(eight(&[("GET", 1)]));
    let (outcome, _) =
        measure(&spec, |_| (Duration::from_millis(100), Answer::Fail(ErrorClass::Server)));
    assert_eq!((outcome.ended_because, outcome.ended_by), (None, EndReason::Duration));
    // From 20 s on every second one fails, which halves the rate: the last 7 of 25 parts begin
    // there at 27.8 s.
    let (outcome, records) = measure(&spec, |number| {
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
    let mut spec = steady_7_s(eight(&[("GET", 1)]));
    spec.concurrency = 1;
    spec.measure.duration_ns = 30 * SECOND;
    let (outcome, _) = measure(&spec, ok_in_100_ms);
    assert!(outcome.ended_because.is_some());
    let workload = Laid::of(&spec);
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
    let (_, records) = measure(&spec, ok_in_100_ms);
    let packed: Vec<PackedOp> = records.iter().map(PackedOp::from).collect();
    two.observe(&packed);
    assert_eq!(two.check(Moment::from_ns(30 * SECOND)), None);
}

#[test]
fn figures_known_well_enough_end_it() {
    let mut spec = eight(&[("GET", 1)]);
    spec.measure.until = vec!["ci(mean)<=5%".to_owned(), "ci(rate)<=5%".to_owned()];
    let (outcome, records) = measure(&spec, ok_in_100_ms);
    let because = outcome.ended_because.unwrap();
    assert_eq!(outcome.ended_by, EndReason::Until);
    // The first second is that in which the workers began; ten whole ones follow, and the end of
    // the last is seen when an operation ends there or beyond.
    let end = last_end(&records);
    assert!((11 * SECOND..=12 * SECOND + 200 * MS).contains(&end), "{end}");
    let mean = "ci(mean) is ±0.0 %, at most 5 % was asked (10 batches of 1 s); ci(rate) is ±";
    assert!(because.starts_with(mean), "{because}");
    // 80 operations a second: ten batches of 1,000 for a p99.9 take 125 s.
    spec.measure.until.push("ci(p99.9)<=5%".to_owned());
    let (outcome, _) = measure(&spec, ok_in_100_ms);
    assert_eq!((outcome.ended_because, outcome.ended_by), (None, EndReason::Duration));
}

#[test]
fn figures_that_drift_are_never_known() {
    let mut spec = eight(&[("GET", 1)]);
    spec.measure.until = vec!["ci(p50)<=50%".to_owned()];
    let (outcome, _) =
        measure(&spec, |number| (Duration::from_millis(100 + number / 4), Answer::Right));
    assert_eq!(outcome.ended_because, None);
}

#[test]
fn the_first_rule_to_hold_ends_it_and_only_while_measuring() {
    let mut spec = steady_7_s(eight(&[("GET", 1)]));
    spec.measure.until = vec!["ci(rate)<=20%".to_owned()];
    let (outcome, _) = measure(&spec, ok_in_100_ms);
    assert_eq!(outcome.ended_by, EndReason::Until);
    let workload = Laid::of(&spec);
    let rules = |workload: &Laid, kind| {
        let job = workload.alone(&NullDriver, kind);
        workload.stage_of(StageId(0), kind, job).limits.stop_rules
    };
    assert_eq!(rules(&workload, StageKind::Measure), workload.stop_rules());
    assert!(rules(&workload, StageKind::Prepare).is_empty());
    assert!(Watch::new(&[], &rules(&workload, StageKind::Prepare), Moment::EPOCH).is_none());
    spec.measure.until.clear();
    spec.measure.steady = None;
    let workload = Laid::of(&spec);
    assert!(Watch::new(&[], &rules(&workload, StageKind::Measure), Moment::EPOCH).is_none());
}

#[test]
fn the_least_time_a_rule_asks_for() {
    let window = Duration::from_secs(15);
    let steady = stop_time_min(&StopRule::Steady { window, percent: 7.5 });
    assert_eq!(steady.as_millis(), 53_571);
    assert_eq!(stop_time_min(&StopRule::Until(Vec::new())), Duration::from_secs(11));
}

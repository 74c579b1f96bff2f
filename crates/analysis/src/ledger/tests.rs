//! Stalls worked out by hand, and sound runs of many kinds, which have none.

use plimsoll_model::{ErrorClass, OpKind, StageId, Standstill, WorkerId};

use super::*;
use crate::{OpRecord, Question, RowAsked, Rows, Span, Standstills, analyze};

const MS: u64 = 1_000_000;

fn op(worker: u32, start_us: u64, took_us: u64) -> OpRecord {
    let start = Moment::from_ns(start_us * 1_000);
    OpRecord {
        worker: WorkerId(worker),
        bytes: 1_024,
        ..OpRecord::plain(OpKind::Get, start, start.after(Duration::from_micros(took_us)))
    }
}

fn failed(op: OpRecord) -> OpRecord {
    OpRecord { outcome: ErrorClass::Reset, ..op }
}

fn at(endpoint: u16, op: OpRecord) -> OpRecord {
    OpRecord { endpoint: EndpointId(endpoint), ..op }
}

fn question(ops: &[OpRecord]) -> Question<'static> {
    let ended = ops.iter().map(|op| op.end).max().unwrap_or(Moment::EPOCH);
    let row = RowAsked { workers: 1, span: Span::Whole, open: false, ends: None };
    let about = Question::about(StageId(0), Moment::EPOCH, ended, 1);
    Question { rows: Rows::One(row), ..about }
}

fn ledger_of(ops: &[OpRecord], question: &Question<'_>) -> Ledger {
    let Ok(mut answer) = analyze(ops, question);
    answer.rows.pop().unwrap().ledger.unwrap()
}

fn ledger(ops: &[OpRecord]) -> Ledger {
    ledger_of(ops, &question(ops))
}

/// Workers one after the other without a pause, each operation as long as `took_us` says of the
/// worker, the number of the operation, and the moment at which it starts.
fn closed(workers: u32, until_us: u64, took_us: impl Fn(u32, u64, u64) -> u64) -> Vec<OpRecord> {
    let mut ops = Vec::new();
    for worker in 0..workers {
        let (mut now, mut index) = (0, 0);
        while now < until_us {
            let took = took_us(worker, index, now);
            ops.push(op(worker, now, took));
            now += took;
            index += 1;
        }
    }
    ops
}

/// An even number of [0, 1), the same for the same seed and index.
fn random(seed: u64, index: u64) -> f64 {
    (plimsoll_workload::mix64(seed ^ plimsoll_workload::mix64(index)) >> 11) as f64
        / (1u64 << 53) as f64
}

/// As long as it takes, and over the freeze as long as that lasts besides.
fn frozen(from_us: u64, until_us: u64, took_us: u64) -> impl Fn(u32, u64, u64) -> u64 {
    move |_, _, now| match now < until_us && now + took_us > from_us {
        true => took_us + until_us - now.max(from_us),
        false => took_us,
    }
}

#[test]
fn a_freeze_is_an_outage_from_success_to_success() {
    // 5 ms each; frozen from 4.002 s to 7.002 s: the last success ends at 4.000 s, and what began
    // then has 3 ms left at 7.002 s.
    let ops = closed(4, 12_000_000, frozen(4_002_000, 7_002_000, 5_000));
    let told = ledger(&ops);
    let [outage] = &told.outages[..] else { panic!("{:?}", told.outages) };
    assert_eq!(outage.last_success, Some(Moment::from_ns(4_000 * MS)));
    assert_eq!(outage.next_success, Some(Moment::from_ns(7_005 * MS)));
    assert_eq!(outage.gap, Duration::from_millis(3_005));
    assert_eq!(told.away, outage.gap);
    assert_eq!((outage.first_failure, outage.failed.count()), (None, 0));
    assert_eq!(told.gap_longest.unwrap().length, Duration::from_millis(3_005));
    // 800 a second before, and at once again.
    assert!((outage.rate_before.unwrap() - 800.0).abs() < 1.0, "{outage:?}");
    assert_eq!(outage.regained_after, Some(Duration::ZERO));
    assert!(told.failures.is_none() && !told.is_clean());
}

#[test]
fn what_was_known_after_a_row_was_done_is_told_of_the_outage_at_its_end() {
    // 5 ms each for 3 s. Then one fails after 2 s, with which its worker is done, one after 6 s,
    // and one succeeds after 7 s.
    let mut ops = closed(3, 3_000_000, |_, _, _| 5_000);
    let last = |worker, took_us| op(worker, 3_000_000, took_us);
    ops.extend([failed(last(0, 2_000_000)), failed(last(1, 6_000_000)), last(2, 7_000_000)]);
    let told = ledger(&ops);
    let [outage] = &told.outages[..] else { panic!("{:?}", told.outages) };
    assert_eq!((outage.gap, outage.failed.count()), (Duration::from_secs(2), 2));
}

#[test]
fn who_is_still_waiting_when_all_others_are_done_is_no_outage() {
    // 16 workers for 4 s, 2 ms each. One answer never comes: it is given up after 8 s, or comes
    // after 7 s.
    for (took_us, is_lost) in [(8_000_000, true), (7_000_000, false)] {
        let slow = |worker, index, _| if (worker, index) == (3, 1_900) { took_us } else { 2_000 };
        let mut ops = closed(16, 4_000_000, slow);
        let last = ops.iter_mut().find(|op| op.end > Moment::from_ns(5_000 * MS)).unwrap();
        if is_lost {
            *last = failed(*last);
        }
        let known = last.end;
        let told = ledger(&ops);
        assert_eq!((told.outages_count, told.outages.len()), (0, 0), "{:?}", told.outages);
        assert_eq!(told.gap_longest.unwrap().length, Duration::from_millis(2));
        assert_eq!(told.failures.map(|of| of.last), is_lost.then_some(known));
    }
}

#[test]
fn an_outage_goes_on_until_the_first_worker_that_it_held_is_done() {
    // 4 workers for 4 s, 5 ms each. From 2 s on nothing is answered, and each gives up after 8 s.
    let took = |worker, _, now| if now < 2_000_000 { 5_000 } else { 8_000_000 + u64::from(worker) };
    let mut ops = closed(4, 4_000_000, took);
    ops.iter_mut().filter(|op| op.start.as_ns() >= 2_000 * MS).for_each(|op| *op = failed(*op));
    let told = ledger(&ops);
    let [outage] = &told.outages[..] else { panic!("{:?}", told.outages) };
    assert_eq!(outage.last_success, Some(Moment::from_ns(2_000 * MS)));
    assert_eq!((outage.gap, outage.next_success), (Duration::from_secs(8), None));
    assert_eq!(outage.failed.count(), 4);
}

#[test]
fn what_fails_meanwhile_is_told_by_class_endpoint_and_client() {
    let mut ops =
        closed(
            2,
            10_000_000,
            |_, _, now| {
                if (3_000_000..5_000_000).contains(&now) { 100_000 } else { 10_000 }
            },
        );
    for op in ops.iter_mut() {
        let down = 3_000 * MS..5_000 * MS;
        *op = at(op.worker.0 as u16, *op);
        if down.contains(&op.start.as_ns()) {
            *op = failed(*op);
        }
    }
    let asked = Question { client_of: &[0, 1], ..question(&ops) };
    let told = ledger_of(&ops, &asked);
    let [outage] = &told.outages[..] else { panic!("{:?}", told.outages) };
    // 20 failures of each worker, the first known at 3.1 s; the next success ends at 5.01 s.
    assert_eq!(outage.first_failure, Some(Moment::from_ns(3_100 * MS)));
    assert_eq!((outage.failed.of(ErrorClass::Reset), outage.failed.count()), (40, 40));
    assert_eq!(outage.gap, Duration::from_millis(2_010));
    let at = |endpoint| FailedAt { endpoint: EndpointId(endpoint), count: 20 };
    assert_eq!(outage.failed_by_endpoint, [at(0), at(1)]);
    let of = |client| FailedOf { client, count: 20 };
    assert_eq!(outage.failed_by_client, [of(0), of(1)]);
    let failures = told.failures.unwrap();
    assert_eq!(failures.success_before, Some(Moment::from_ns(3_000 * MS)));
    assert_eq!(failures.first, Moment::from_ns(3_100 * MS));
    assert_eq!(failures.last, Moment::from_ns(5_000 * MS));
}

#[test]
fn one_endpoint_of_two_has_an_outage_of_its_own() {
    let freeze = frozen(2_000_000, 4_000_000, 4_000);
    let took = |worker: u32, index: u64, now: u64| match worker {
        0 => freeze(worker, index, now),
        _ => 4_000,
    };
    let ops: Vec<_> =
        closed(2, 8_000_000, took).into_iter().map(|op| at(op.worker.0 as u16, op)).collect();
    let told = ledger(&ops);
    let [outage] = &told.outages[..] else { panic!("{:?}", told.outages) };
    assert_eq!((outage.endpoint, outage.client), (Some(EndpointId(0)), None));
    assert_eq!(outage.gap, Duration::from_millis(2_004));
}

#[test]
fn an_outage_without_an_end_lasts_until_the_stage_ends() {
    let mut ops = closed(1, 10_000_000, |_, _, _| 10_000);
    ops.iter_mut().filter(|op| op.start.as_ns() >= 6_000 * MS).for_each(|op| *op = failed(*op));
    let told = ledger(&ops);
    let [outage] = &told.outages[..] else { panic!("{:?}", told.outages) };
    assert_eq!((outage.next_success, outage.gap), (None, Duration::from_secs(4)));
    assert_eq!((outage.failed.count(), outage.regained_after), (400, None));
    // A store that is away from the beginning on has no last success.
    ops.iter_mut().for_each(|op| *op = failed(*op));
    let told = ledger(&ops);
    let [outage] = &told.outages[..] else { panic!("{:?}", told.outages) };
    assert_eq!((outage.last_success, outage.next_success), (None, None));
    assert_eq!((outage.gap, told.gap_longest), (Duration::from_secs(10), None));
}

#[test]
fn the_rate_is_regained_when_it_is() {
    // Half as fast for 3 s after the freeze: it ends at 4.005 s, and all is well from 7.005 s on.
    let freeze = frozen(2_000_000, 4_000_000, 5_000);
    let took = |worker, index, now| match now {
        4_000_000..7_000_000 => 10_000,
        _ => freeze(worker, index, now),
    };
    let told = ledger(&closed(4, 12_000_000, took));
    let after = told.outages[0].regained_after.unwrap();
    // Of the stretch of 1 s 95 % of the rate are reached when a tenth of it is still slow.
    let truth = Duration::from_millis(2_900);
    assert!(after.abs_diff(truth) < Duration::from_millis(60), "{after:?}");
}

#[test]
fn a_brown_out_is_five_times_the_usual_or_beyond_what_was_asked() {
    let took = |_, _, now| if (10_000_000..12_000_000).contains(&now) { 60_000 } else { 5_000 };
    let ops = closed(8, 20_000_000, took);
    let told = ledger(&ops);
    let found = told.brown_outs.unwrap();
    assert_eq!((found.limit_is_asked, found.interval), (false, Duration::from_secs(1)));
    let [one] = &found.stretches[..] else { panic!("{:?}", found.stretches) };
    assert_eq!((one.from, one.length), (Moment::from_ns(10_000 * MS), Duration::from_secs(2)));
    assert!(one.p99_max.abs_diff(Duration::from_millis(60)) < Duration::from_micros(600));
    assert!(told.outages.is_empty());
    let limit =
        |ms| Question { latency_p99_max: Some(Duration::from_millis(ms)), ..question(&ops) };
    assert_eq!(ledger_of(&ops, &limit(4)).brown_outs.unwrap().stretches.len(), 1);
    assert!(ledger_of(&ops, &limit(80)).brown_outs.unwrap().stretches.is_empty());
}

/// Returns how long operation `index` takes in a sound run of that kind.
fn sound(kind: u64, seed: u64, index: u64) -> u64 {
    let u = random(seed, index);
    let exponential = |mean: f64| (-(1.0 - u).ln() * mean).max(1.0) as u64;
    let log_normal = |median: f64, sigma: f64| {
        let z = plimsoll_stats::normal_quantile(u.clamp(1e-12, 1.0 - 1e-12));
        (median * (sigma * z).exp()).max(1.0) as u64
    };
    match kind {
        0 => 2_000,
        1 => exponential(2_000.0),
        2 => log_normal(3_000.0, 1.0),
        // Operations of seconds, as uploads of large objects are.
        3 => 2_500_000,
        4 => log_normal(900_000.0, 0.5),
        5 => exponential(400_000.0),
        // One in twenty takes a thousand times as long.
        _ => {
            if u < 0.05 {
                1_500_000
            } else {
                1_500
            }
        }
    }
}

#[test]
fn sound_closed_runs_have_no_outage() {
    for kind in 0..7 {
        for (seed, workers) in [(1, 1), (2, 3), (3, 20)] {
            let ops = closed(workers, 30_000_000, |worker, index, _| {
                sound(kind, seed, u64::from(worker) << 32 | index)
            });
            let told = ledger(&ops);
            assert!(told.outages.is_empty(), "{kind} {workers}: {:?}", told.outages);
            assert!(told.failures.is_none());
        }
    }
}

#[test]
fn sound_open_runs_have_no_outage() {
    // Few arrivals, many, and a rate that rises from 1/s to 500/s.
    let rate = |which: u32, at: f64| match which {
        0 => 0.5,
        1 => 400.0,
        _ => 1.0 + at / 30.0 * 499.0,
    };
    for which in 0..3 {
        for seed in 0..4 {
            let (mut now, mut index, mut ops) = (0.0, 0, Vec::new());
            while now < 30.0 {
                now += -(1.0 - random(seed, index)).ln() / rate(which, now);
                ops.push(op(0, (now * 1e6) as u64, sound(1, seed + 9, index)));
                index += 1;
            }
            let told = ledger(&ops);
            assert!(told.outages.is_empty(), "{which} {seed}: {:?}", told.outages);
        }
    }
}

#[test]
fn rare_operations_that_take_long_by_their_kind_or_size_are_no_stall() {
    let mut ops =
        closed(1, 30_000_000, |_, index, _| if index % 300 == 299 { 1_200_000 } else { 1_000 });
    for op in ops.iter_mut().filter(|op| op.service_time() > Duration::from_secs(1)) {
        op.bytes = 1 << 30;
    }
    assert_eq!(ledger(&ops).outages, []);
    // The same of small ones are how the store is, as one worker sees no more than its operation.
    ops.iter_mut().for_each(|op| op.bytes = 1_024);
    assert_eq!(ledger(&ops).outages, []);
}

/// Slow operations at random, one in `one_in`, among those of a millisecond or so.
fn rarely(seed: u64, one_in: f64, slow_us: u64) -> impl Fn(u32, u64, u64) -> u64 {
    move |worker, index, _| {
        let index = u64::from(worker) << 32 | index;
        match random(seed, index) < 1.0 / one_in {
            true => slow_us / 2 + (random(seed + 77, index) * slow_us as f64) as u64,
            false => 500 + (random(seed + 78, index) * 1_000.0) as u64,
        }
    }
}

#[test]
fn rare_slow_operations_are_no_outage_however_many_workers_there_are() {
    let (mut runs, mut told) = (0, 0);
    for workers in [1, 2, 3, 8] {
        for one_in in [100.0, 300.0, 1_000.0] {
            for seed in 0..5 {
                let ops = closed(workers, 60_000_000, rarely(seed, one_in, 1_500_000));
                told += ledger(&ops).outages_count;
                runs += 1;
            }
        }
    }
    assert_eq!((told, runs), (0, 60));
}

#[test]
fn heavy_tails_of_all_kinds_have_no_outage() {
    // Pareto's law with 1.1 and 1.5, cut at a minute; log-normal laws as wide as they come.
    let pareto = |u: f64, alpha: f64| (1_000.0 * (1.0 - u).powf(-1.0 / alpha)).min(6e7) as u64;
    let wide = |u: f64, sigma: f64| {
        let z = plimsoll_stats::normal_quantile(u.clamp(1e-12, 1.0 - 1e-12));
        (2_000.0 * (sigma * z).exp()).clamp(1.0, 6e7) as u64
    };
    for kind in 0..4 {
        for workers in [1, 2, 4, 16] {
            for seed in 0..6 {
                let ops = closed(workers, 60_000_000, |worker, index, _| {
                    let u = random(seed, u64::from(worker) << 32 | index);
                    match kind {
                        0 => pareto(u, 1.1),
                        1 => pareto(u, 1.5),
                        2 => wide(u, 1.5),
                        _ => wide(u, 2.0),
                    }
                });
                let told = ledger(&ops);
                assert_eq!(told.outages, [], "{kind} {workers} {seed}");
            }
        }
    }
}

#[test]
fn several_endpoints_with_rare_slow_operations_have_no_outage() {
    for seed in 0..10 {
        let ops = closed(8, 60_000_000, rarely(seed, 2_000.0, 2_000_000));
        let ops: Vec<_> = ops.into_iter().map(|op| at(op.worker.0 as u16, op)).collect();
        let told = ledger(&ops);
        assert_eq!(told.outages, [], "{seed}");
    }
}

/// Adds to operations what a store that stands still from one moment to another adds.
fn held(
    from_us: u64,
    until_us: u64,
    took: impl Fn(u32, u64, u64) -> u64,
) -> impl Fn(u32, u64, u64) -> u64 {
    move |worker, index, now| {
        let took = took(worker, index, now);
        match now < until_us && now + took > from_us {
            true => took + until_us - now.max(from_us),
            false => took,
        }
    }
}

#[test]
fn real_stalls_are_told_among_noise() {
    for workers in [2, 4, 16] {
        for seed in 0..5 {
            let exponential = |worker, index, _| sound(1, seed, u64::from(worker) << 32 | index);
            let told =
                ledger(&closed(workers, 20_000_000, held(9_000_000, 12_000_000, exponential)));
            let [outage] = &told.outages[..] else { panic!("{workers} {seed}: {told:?}") };
            let off = outage.gap.abs_diff(Duration::from_secs(3));
            assert!(off < Duration::from_millis(60), "{outage:?}");
            // Twice, and among operations that are slow by themselves.
            let noise = rarely(seed, 2_000.0, 1_500_000);
            let twice = held(40_000_000, 44_000_000, held(9_000_000, 12_000_000, noise));
            let told = ledger(&closed(workers.max(4), 60_000_000, twice));
            assert_eq!(told.outages_count, 2, "{workers} {seed}: {:?}", told.outages);
        }
    }
}

#[test]
fn a_stall_of_few_or_large_operations_is_told() {
    // One worker: the only operation of its kind.
    let told = ledger(&closed(1, 20_000_000, frozen(9_000_000, 12_000_000, 2_000)));
    assert_eq!(told.outages_count, 1);
    // Uploads of 3 s each by four, and 20 s without an answer.
    let large = |worker, index, _| 2_500_000 + sound(0, 1, index) * u64::from(worker);
    let told = ledger(&closed(4, 90_000_000, held(40_000_000, 60_000_000, large)));
    assert_eq!(told.outages_count, 1, "{told:?}");
    // Two arrivals a second of 20 ms each, and 6 s without an answer.
    let mut ops: Vec<_> = (0..120).map(|index| op(0, index * 500_000, 20_000)).collect();
    let (from, until) = (20_000 * MS, 26_000 * MS);
    for op in ops.iter_mut().filter(|op| (from..until).contains(&op.start.as_ns())) {
        op.end = Moment::from_ns(until + 20 * MS);
    }
    let told = ledger(&ops);
    assert_eq!(told.outages_count, 1, "{told:?}");
    assert!(told.outages[0].gap >= Duration::from_secs(6));
}

#[test]
fn a_client_that_stands_still_is_no_outage_of_the_store() {
    // 100 arrivals a second; nothing is sent for 3 s, and then all of it at once.
    let mut ops: Vec<_> = (0..2_000).map(|index| op(0, index * 10_000, 2_000)).collect();
    let woken = Moment::from_ns(10_000 * MS);
    let asleep = |op: &&mut OpRecord| (7_000 * MS..10_000 * MS).contains(&op.intended.as_ns());
    for op in ops.iter_mut().filter(asleep) {
        (op.start, op.end) = (woken, woken.after(Duration::from_millis(2)));
    }
    assert_eq!(ledger(&ops).outages, []);
}

fn stood_still(from_ms: u64, until_ms: u64) -> Standstill {
    let length = Duration::from_millis(until_ms - from_ms);
    Standstill { from: Moment::from_ns(from_ms * MS), length }
}

#[test]
fn a_client_that_was_stopped_with_operations_in_flight_is_no_outage_of_the_store() {
    // As `a_freeze_is_an_outage_from_success_to_success`, but that it was the client.
    let ops = closed(4, 12_000_000, frozen(4_002_000, 7_002_000, 5_000));
    let told =
        |standstills: &Standstills| ledger_of(&ops, &Question { standstills, ..question(&ops) });
    let all = Standstills::of_clients(vec![vec![stood_still(4_050, 7_002)]]);
    let stopped = told(&all);
    assert_eq!((stopped.outages_count, &stopped.outages[..]), (0, &[][..]));
    let gap = stopped.gap_longest.unwrap();
    assert_eq!(gap.length, Duration::from_millis(3_005));
    assert_eq!(gap.stood_still, Duration::from_millis(2_952));
    let [of] = stopped.standstills[..] else { panic!("{stopped:?}") };
    assert_eq!((of.client, of.from), (None, Moment::from_ns(4_050 * MS)));
    // Most of a second says nothing of the other two, in which the store was silent.
    let some = Standstills::of_clients(vec![vec![stood_still(4_050, 5_000)]]);
    let partly = told(&some);
    assert_eq!(partly.outages_count, 1);
    assert_eq!(partly.away, partly.outages[0].gap - partly.outages[0].stood_still);
    assert!(!partly.outages[0].stood_still.is_zero());
}

#[test]
fn a_store_that_was_away_for_longer_than_its_client_stood_still_has_its_outage() {
    // 200 a second for 7 s; the store answers nothing from 1 s to 5 s, the client stands still from
    // 2 s to 3 s. What was due meanwhile is all answered at 5 s, so most took seconds.
    let mut ops: Vec<_> = (0..1_400).map(|index| op(0, index * 5_000, 1_000)).collect();
    let (back, went_on) = (Moment::from_ns(5_000 * MS), Moment::from_ns(3_000 * MS));
    for op in &mut ops {
        let due = op.intended.as_ns();
        if (1_000 * MS..5_000 * MS).contains(&due) {
            op.end = back.after(Duration::from_micros(500));
            if (2_000 * MS..3_000 * MS).contains(&due) {
                op.start = went_on;
            }
        }
    }
    let standstills = Standstills::of_clients(vec![vec![stood_still(2_000, 3_000)]]);
    let told = ledger_of(&ops, &Question { standstills: &standstills, ..question(&ops) });
    let [outage] = &told.outages[..] else { panic!("{told:?}") };
    assert_eq!(outage.stood_still, Duration::from_secs(1));
    assert!(outage.gap > Duration::from_secs(4), "{outage:?}");
}

#[test]
fn a_latency_that_is_a_standstill_is_no_brown_out() {
    // 200 operations a second on four workers; 0.3 s of silence in which all of them wait.
    let ops = closed(4, 12_000_000, frozen(6_002_000, 6_302_000, 20_000));
    let limit = Some(Duration::from_millis(25));
    let question = Question { latency_p99_max: limit, ..question(&ops) };
    let stretches = |standstills: &Standstills| {
        let told = ledger_of(&ops, &Question { standstills, ..question });
        told.brown_outs.unwrap().stretches_count
    };
    assert_eq!(stretches(Standstills::NONE), 1);
    assert_eq!(stretches(&Standstills::of_clients(vec![vec![stood_still(6_040, 6_302)]])), 0);
}

#[test]
fn a_freeze_of_several_clients_is_one_outage_of_all() {
    // Two workers of each of two clients, each of which last succeeded at another moment.
    let took = |worker, index, now| {
        frozen(4_002_000, 7_002_000, 5_000 + 1_000 * u64::from(worker))(worker, index, now)
    };
    let ops = closed(4, 12_000_000, took);
    let told = ledger_of(&ops, &Question { client_of: &[0, 0, 1, 1], ..question(&ops) });
    let [outage] = &told.outages[..] else { panic!("{:?}", told.outages) };
    assert_eq!((outage.client, outage.first_failure), (None, None));
    assert!(outage.gap > Duration::from_secs(3), "{outage:?}");
}

#[test]
fn one_client_that_was_stopped_is_no_outage_of_its_own() {
    // Two clients of four workers; the second stands still for 3 s.
    let frozen = frozen(4_002_000, 7_002_000, 5_000);
    let ops = closed(8, 12_000_000, |worker, index, now| match worker {
        0..4 => 5_000,
        _ => frozen(worker, index, now),
    });
    let client_of = [0, 0, 0, 0, 1, 1, 1, 1];
    let told = |standstills: &Standstills| {
        let question = Question { client_of: &client_of, standstills, ..question(&ops) };
        ledger_of(&ops, &question)
    };
    let outages = told(Standstills::NONE).outages;
    assert_eq!(outages.iter().map(|of| of.client).collect::<Vec<_>>(), [Some(1)]);
    let of_second = vec![Vec::new(), vec![stood_still(4_050, 7_002)]];
    let told = told(&Standstills::of_clients(of_second));
    assert_eq!(told.outages, []);
    assert_eq!(told.standstills.iter().map(|of| of.client).collect::<Vec<_>>(), [Some(1)]);
}

#[test]
fn the_order_of_the_record_does_not_matter() {
    let mut ops = closed(4, 8_000_000, frozen(3_000_000, 5_000_000, 3_000));
    let told = ledger(&ops);
    ops.reverse();
    assert_eq!(ledger(&ops), told);
    assert_eq!(told.outages_count, 1);
}

#[test]
fn all_outages_count_towards_the_time_in_which_the_store_was_away() {
    // Each of 120 rounds of 2 s has an outage of 1 s; the report lists 100 of them.
    let mut ops = Vec::new();
    for round in 0..120u64 {
        let from = round * 2_000_000;
        ops.extend((0..200).map(|index| op(0, from + index * 5_000, 5_000)));
        ops.extend((0..10).map(|index| failed(op(0, from + 1_000_000 + index * 100_000, 100_000))));
    }
    let told = ledger(&ops);
    assert_eq!((told.outages.len(), told.outages_count), (100, 120));
    assert!(
        told.away.abs_diff(Duration::from_secs(120)) < Duration::from_secs(2),
        "{:?}",
        told.away
    );
}

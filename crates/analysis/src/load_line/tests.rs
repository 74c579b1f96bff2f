//! Counts of a probe, and what the probes of a record come to.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{ErrorClass, JobId, Moment, OpKind, OpRecord, ProbeRole, StageId};
use plimsoll_stats::ProbePart;
use plimsoll_workload::plan::SloSpec;

use super::*;

const MS: u64 = 1_000_000;

pub(super) fn slos(texts: &[&str]) -> Arc<[Slo]> {
    texts.iter().map(|text| Slo::from(text.parse::<SloSpec>().unwrap())).collect()
}

/// An operation that was due at that moment and took so long, in milliseconds.
fn op(due_ms: u64, took_ms: u64) -> OpRecord {
    OpRecord {
        intended: Moment::from_ns(due_ms * MS),
        start: Moment::from_ns(due_ms * MS),
        end: Moment::from_ns((due_ms + took_ms) * MS),
        ..crate::tests::op(0, 0, 0)
    }
}

#[test]
fn an_operation_that_failed_misses_every_condition_of_its_kind() {
    let all = slos(&["p99<=20ms", "errors<=1%", "put.p99<=5ms"]);
    let missed = |op: &OpRecord| -> Vec<bool> {
        all.iter().filter(|slo| slo.is_about(op)).map(|slo| slo.is_missed_by(op)).collect()
    };
    let get = |took_ms| OpRecord { kind: OpKind::Get, ..op(0, took_ms) };
    assert_eq!(missed(&get(20)), [false, false]);
    assert_eq!(missed(&get(21)), [true, false]);
    assert_eq!(missed(&OpRecord { outcome: ErrorClass::Server, ..get(1) }), [true, true]);
    assert_eq!(missed(&OpRecord { kind: OpKind::Put, ..get(6) }), [false, false, true]);
}

#[test]
fn operations_are_counted_by_when_they_were_due() {
    let asked = ProbeAsked {
        slos: slos(&["p99<=20ms"]),
        job: JobId(0),
        lasts: Duration::from_millis(1_000),
    };
    let mut counter = ProbeCounter::new(asked, Moment::from_ns(500 * MS));
    // The warm-up is 100 ms, a stretch 90 ms: the first ends at 690 ms.
    counter.add(&op(599, 30));
    counter.add(&op(600, 30));
    counter.add(&op(689, 10));
    counter.add(&op(690, 10));
    counter.add(&OpRecord { job: JobId(1), ..op(700, 90) });
    let counts = counter.finish(10, &[]);
    let part = |ended, missed| ProbePart { ended, missed };
    assert_eq!(counts.bounds[0][..3], [part(2, 1), part(1, 0), part(0, 0)]);
    assert_eq!((counts.due_count(), counts.succeeded_count()), (3, 4));
}

#[test]
fn a_few_that_were_due_in_the_last_moment_are_no_misses() {
    let asked = ProbeAsked {
        slos: slos(&["errors<=1%"]),
        job: JobId(0),
        lasts: Duration::from_millis(1_000),
    };
    let missed = |skipped| {
        let counter = ProbeCounter::new(asked.clone(), Moment::EPOCH);
        counter.finish(skipped, &[]).bounds[0].iter().map(|part| part.missed).sum::<u64>()
    };
    assert_eq!([missed(0), missed(10), missed(11)], [0, 0, 11]);
}

/// Probes of a store that takes 10 ms up to 100/s, and 50 ms above that.
fn probes(rates: &[u64]) -> (Vec<ProbeStage>, Vec<OpRecord>) {
    let (mut probes, mut ops) = (Vec::new(), Vec::new());
    for (index, rate) in rates.iter().enumerate() {
        let started = index as u64 * 2_000;
        probes.push(ProbeStage {
            stage: StageId(index as u8),
            rate: Some(*rate as f64),
            role: Some(ProbeRole::Find),
            job: JobId(0),
            started: Moment::from_ns(started * MS),
            ended: Moment::from_ns((started + 1_000) * MS),
            lasts: Duration::from_millis(1_000),
            skipped_count: 0,
            is_cut: false,
            disturbed: Vec::new(),
        });
        let took = if *rate > 100 { 50 } else { 10 };
        ops.extend((0..*rate).map(|at| OpRecord {
            stage: StageId(index as u8),
            ..op(started + at * 1_000 / rate, took)
        }));
    }
    (probes, ops)
}

fn asked() -> LoadLineAsked {
    LoadLineAsked {
        slos: slos(&["p99<=20ms"]),
        precision: 0.05,
        budget: Duration::from_secs(60),
        rate_min: 0.0,
        rate_max: 1e6,
    }
}

#[test]
fn the_line_lies_between_what_was_carried_and_what_was_not() {
    let (probes, ops) = probes(&[50, 80, 100, 110, 200]);
    let found = find_load_line(&ops, &asked(), &probes).unwrap();
    let line = found.line.unwrap();
    // The interval begins 3 % below what was carried, as that may have been luck.
    assert_eq!((line.low, line.high), (97.0, 110.0));
    assert_eq!((found.carried_max, found.missed_min), (Some(100.0), Some(110.0)));
    // Of 200 operations 180 are due in the 900 ms that count; as many end there.
    assert_eq!(found.points[4].due_count, 180);
    assert_eq!(found.capacity, Some(200.0));
    // Up to 100/s each more operation costs nothing: 100/s in 10 ms are the most of rate over time.
    let knee = found.knee.unwrap();
    assert_eq!((knee.low, knee.rate, knee.high), (80.0, 100.0, 110.0));
    // From 45 operations, of which one is the 99th percentile as well as the maximum.
    let [p50, p99, _] = found.points[0].latency_ns;
    assert!(p50.unwrap().abs_diff(10 * MS) <= MS / 100, "{p50:?}");
    assert_eq!(p99, None);
}

#[test]
fn a_probe_in_which_less_was_due_than_was_to_be_tells_nothing() {
    let (mut probes, ops) = probes(&[50, 80, 100, 110, 200]);
    // As if half of the load had been an agent's that was lost.
    probes[3].rate = Some(220.0);
    let found = find_load_line(&ops, &asked(), &probes).unwrap();
    assert!(found.points[3].probe.is_cut && found.points[3].is_too_high.is_none());
    let line = found.line.unwrap();
    assert_eq!((line.low, line.high), (97.0, 200.0));
}

#[test]
fn no_probe_gives_no_line() {
    let found = find_load_line(&Vec::new(), &asked(), &[]).unwrap();
    assert_eq!((found.line, found.capacity, found.knee), (None, None, None));
}

#[test]
fn what_was_skipped_misses_only_conditions_of_its_kind() {
    let asked = ProbeAsked {
        slos: slos(&["errors<=1%", "delete.p99<=1s"]),
        job: JobId(0),
        lasts: Duration::from_millis(1_000),
    };
    let mut counter = ProbeCounter::new(asked, Moment::EPOCH);
    // Of 100 a DELETE is one.
    for due_ms in 100..1_000 {
        let kind = if due_ms % 100 == 0 { OpKind::Delete } else { OpKind::Get };
        counter.add(&OpRecord { kind, ..op(due_ms, 1) });
    }
    let counts = counter.finish(200, &[]);
    let missed = |bound: usize| counts.bounds[bound].iter().map(|part| part.missed).sum::<u64>();
    assert_eq!([missed(0), missed(1)], [200, 2]);
}

#[test]
fn percentiles_of_too_few_operations_are_not_told() {
    for (rate, known) in
        [(80, [true, false, false]), (120, [true, true, false]), (1_200, [true; 3])]
    {
        let (probes, ops) = probes(&[rate]);
        let found = find_load_line(&ops, &asked(), &probes).unwrap();
        assert_eq!(found.points[0].latency_ns.map(|ns| ns.is_some()), known, "{rate}");
    }
}

#[test]
fn a_short_lucky_probe_is_not_the_capacity() {
    // 1,000/s for 10 s, which ended evenly; then for 1 s in which bursts make 1,044/s.
    let (mut probes, mut ops) = (probes(&[1, 1]).0, Vec::new());
    for (at, (lasts, rate)) in [(10_000, 1_000), (1_000, 1_044)].into_iter().enumerate() {
        let started = at as u64 * 20_000;
        let probe = &mut probes[at];
        (probe.rate, probe.started) = (Some(rate as f64), Moment::from_ns(started * MS));
        (probe.ended, probe.lasts) =
            (Moment::from_ns((started + lasts) * MS), Duration::from_millis(lasts));
        let due = |number: u64| {
            let even = number * 1_000 / rate;
            // In every other 90 ms of the short one twice as many are due.
            let part = (even.saturating_sub(100)) / 90;
            let moved = if at == 1 && even >= 100 { part % 2 * 90 } else { 0 };
            started + even - moved
        };
        ops.extend(
            (0..rate * lasts / 1_000)
                .map(|number| OpRecord { stage: StageId(at as u8), ..op(due(number), 1) }),
        );
    }
    let found = find_load_line(&ops, &asked(), &probes).unwrap();
    assert!((found.capacity.unwrap() - 1_000.0).abs() < 2.0, "{:?}", found.capacity);
}

#[test]
fn a_short_lucky_probe_is_not_the_knee() {
    // Four probes of 10 s of which that of 100/s costs least for what it gives, and one of 1 s at
    // 90/s, of which every other tenth waited next to nothing and the others for long.
    let mut probes = probes(&[1; 5]).0;
    let mut ops = Vec::new();
    let each = [(10, 50, 10), (10, 80, 10), (10, 100, 11), (10, 110, 50), (1, 90, 0)];
    for (at, (lasts_s, rate, took_ms)) in each.into_iter().enumerate() {
        let started = at as u64 * 20_000;
        let probe = &mut probes[at];
        (probe.rate, probe.started) = (Some(rate as f64), Moment::from_ns(started * MS));
        probe.lasts = Duration::from_secs(lasts_s);
        probe.ended = probe.started.after(probe.lasts);
        ops.extend((0..rate * lasts_s).map(|number| {
            let due = number * 1_000 / rate;
            let took_ms = match took_ms {
                0 if due.saturating_sub(100) / 90 % 2 == 0 => 1,
                0 => 16,
                took_ms => took_ms,
            };
            OpRecord { stage: StageId(at as u8), ..op(started + due, took_ms) }
        }));
    }
    let found = find_load_line(&ops, &asked(), &probes).unwrap();
    assert_eq!(found.knee.map(|knee| knee.rate), Some(100.0), "{:?}", found.points);
}

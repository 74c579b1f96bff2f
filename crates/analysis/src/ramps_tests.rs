//! Nothing that ramps, delays and the end of a schedule do is a change or an outage of the store.

use std::time::Duration;

use plimsoll_model::{ErrorClass, Moment, OpKind, OpRecord};

use super::*;
use crate::tests::op;

const SECOND: u64 = 1_000;

/// A success of a GET that took so long.
fn get(worker: u32, start_us: u64, took_us: u64) -> OpRecord {
    let start = Moment::from_ns(start_us * 1_000);
    OpRecord {
        kind: OpKind::Get,
        intended: start,
        start,
        end: start.after(Duration::from_micros(took_us)),
        ..op(worker, 0, 0)
    }
}

fn at(ms: u64) -> Moment {
    Moment::from_ns(ms * 1_000_000)
}

/// What is asked of one row of a stage.
struct Asked {
    workers: Vec<Option<WorkerRow>>,
    row: RowAsked,
    ended_ms: u64,
}

impl Asked {
    /// Asks for a closed loop of workers that are measured from so many milliseconds to so many.
    fn closed(workers: u32, from_ms: u64, until_ms: Option<u64>, ended_ms: u64) -> Self {
        let worker =
            WorkerRow { row: 0, measured_from: at(from_ms), measured_until: until_ms.map(at) };
        let row = RowAsked { workers, span: Span::AllWorkers, open: false, ends: None };
        Self { workers: vec![Some(worker); workers as usize], row, ended_ms }
    }

    /// Asks for an open loop whose schedule ends then.
    fn open(self, ends_ms: u64) -> Self {
        Self { row: RowAsked { open: true, ends: Some(at(ends_ms)), ..self.row }, ..self }
    }

    fn answer(&self, ops: &[OpRecord]) -> RowAnalysis {
        let rows = std::slice::from_ref(&self.row);
        let question = Question {
            rows: Rows::Several { workers: &self.workers, rows },
            ..Question::about(ops[0].stage, at(0), at(self.ended_ms), self.row.workers)
        };
        let Ok(mut answer) = analyze(ops, &question);
        answer.rows.pop().unwrap()
    }
}

/// Four workers one operation of 10 ms after the other: 400 a second.
fn back_to_back(from_ms: u64, until_ms: u64) -> Vec<OpRecord> {
    let each = |worker: u32| {
        (from_ms / 10..until_ms / 10).map(move |index| get(worker, index * 10_000, 10_000))
    };
    (0..4).flat_map(each).collect()
}

#[test]
fn a_ramp_a_delay_and_a_ramp_down_leave_a_steady_store_steady() {
    for (what, ops, asked) in [
        ("ramp", back_to_back(0, 70 * SECOND), (10 * SECOND, None, 70 * SECOND)),
        ("start_delay", back_to_back(10 * SECOND, 70 * SECOND), (10 * SECOND, None, 70 * SECOND)),
        ("ramp_down", back_to_back(0, 70 * SECOND), (0, Some(60 * SECOND), 70 * SECOND)),
    ] {
        let (from, until, ended) = asked;
        let row = Asked::closed(4, from, until, ended).answer(&ops);
        let found = row.steadiness.unwrap();
        // Of even intervals the least deviation lies anywhere, and moves nothing.
        assert!(found.warm_up.is_some() && found.warm_up_shift.is_none(), "{what}: {found:?}");
        assert_eq!((found.cliff, found.drift), (None, None), "{what}");
        assert!(!row.advice.iter().any(Advice::is_of_time), "{what}: {:?}", row.advice);
    }
}

#[test]
fn a_ramp_down_after_a_failure_is_no_outage() {
    // 100 a second from 0 to 120 s, of which every fifth fails; the first 60 s count, and the last
    // operation that does failed.
    let ops = (0..12_000).map(|index| {
        let outcome = if index % 5 == 4 { ErrorClass::Server } else { ErrorClass::Ok };
        OpRecord { outcome, ..get(0, index * 10_000, 5_000) }
    });
    let ops: Vec<OpRecord> = ops.collect();
    let asked = Asked::closed(1, 0, Some(60 * SECOND), 120 * SECOND).open(60 * SECOND);
    let ledger = asked.answer(&ops).ledger.unwrap();
    assert_eq!(ledger.outages_count, 0, "{:?}", ledger.outages);
}

#[test]
fn the_rate_before_an_outage_is_that_of_the_time_that_counts() {
    // 400 a second, of which those of the first 10 s are a ramp; nothing succeeds from 12 s to
    // 20 s.
    let mut ops = back_to_back(0, 40 * SECOND);
    for op in &mut ops {
        if (at(12 * SECOND)..at(20 * SECOND)).contains(&op.start) {
            op.outcome = ErrorClass::Server;
        }
    }
    let ledger = Asked::closed(4, 10 * SECOND, None, 40 * SECOND).answer(&ops).ledger.unwrap();
    let [outage] = &ledger.outages[..] else { panic!("{:?}", ledger.outages) };
    assert!((outage.rate_before.unwrap() - 400.0).abs() < 4.0, "{outage:?}");
}

#[test]
fn a_schedule_that_is_over_has_no_outage() {
    // 100 a second over ten streams for 10 s; the last operation of each stream takes 10 s.
    let get = |index: u64| {
        let took_us = if index < 990 { 5_000 } else { 10_000_000 };
        get((index % 10) as u32, index * 10_000, took_us)
    };
    let ops: Vec<OpRecord> = (0..1_000).map(get).collect();
    let asked = Asked::closed(10, 0, None, 20 * SECOND).open(10 * SECOND);
    let ledger = asked.answer(&ops).ledger.unwrap();
    assert_eq!(ledger.outages_count, 0, "{:?}", ledger.outages);
}

#[test]
fn a_store_that_is_away_when_the_schedule_ends_is_away_until_then() {
    // 100 a second for 30 s; whatever is due from 29 s on is answered at 60 s.
    let get = |index: u64| {
        let op = get((index % 10) as u32, index * 10_000, 5_000);
        OpRecord { end: if op.start >= at(29 * SECOND) { at(60 * SECOND) } else { op.end }, ..op }
    };
    let ops: Vec<OpRecord> = (0..3_000).map(get).collect();
    let asked = Asked::closed(10, 0, None, 60 * SECOND).open(30 * SECOND);
    let ledger = asked.answer(&ops).ledger.unwrap();
    let [outage] = &ledger.outages[..] else { panic!("{:?}", ledger.outages) };
    assert!(outage.gap.abs_diff(Duration::from_secs(1)) < Duration::from_millis(20), "{outage:?}");
}

#[test]
fn workers_that_have_no_more_to_do_are_no_change_of_the_store() {
    // Two of four workers end after 20 s, as their duration or their work does, the others after
    // 70 s.
    let mut ops = back_to_back(0, 70 * SECOND);
    ops.retain(|op| op.worker.0 >= 2 || op.start < at(20 * SECOND));
    let asked = Asked::closed(4, 0, None, 70 * SECOND);
    let alone = Question::about(ops[0].stage, at(0), at(70 * SECOND), 4);
    let Ok(alone) = analyze(&ops[..], &alone);
    for row in [&asked.answer(&ops), &alone.rows[0]] {
        assert_eq!((row.span.rule, row.span.end), (SpanRule::AllWorkers, at(20 * SECOND)));
        let found = row.steadiness.unwrap();
        assert_eq!((found.cliff, found.drift, found.warm_up_shift), (None, None, None));
        assert!(!row.advice.iter().any(Advice::is_of_time), "{:?}", row.advice);
    }
}

#[test]
fn a_row_of_jobs_of_which_one_ramps_down_is_measured_to_the_end_of_the_others() {
    // Worker 0 is measured for 10 s and ramps down for 2 s; worker 1 of the same group goes on for
    // 40 s.
    let mut asked = Asked::closed(2, 0, None, 40 * SECOND).open(40 * SECOND);
    asked.workers[0].as_mut().unwrap().measured_until = Some(at(10 * SECOND));
    let of =
        |worker, until_s: u64| (0..until_s * 100).map(move |at| get(worker, at * 10_000, 5_000));
    let ops: Vec<OpRecord> = of(0, 12).chain(of(1, 40)).collect();
    let row = asked.answer(&ops);
    assert_eq!((row.span.rule, row.span.end), (SpanRule::Schedule, at(40 * SECOND)));
    let rate = row.total.rates.unwrap().ops.0;
    assert!((rate - (1_000.0 + 4_000.0) / 40.0).abs() < 0.1, "{rate}");
}

#[test]
fn the_time_in_which_all_workers_are_at_it_is_judged_by_its_own_successes() {
    // Five workers of 2 ms each for 116 ms, 290 operations, and four of them until 2 s.
    let each = |worker: u32| {
        let count = if worker == 0 { 58 } else { 1_000 };
        (0..count).map(move |index| get(worker, index * 2_000, 2_000))
    };
    let ops: Vec<OpRecord> = (0..5).flat_map(each).collect();
    let row = Asked::closed(5, 0, None, 2 * SECOND).answer(&ops);
    assert_eq!(row.steadiness, None);
}

//! Replays of traces against stores whose answers are known, in virtual time: when operations go
//! out, in which order for each object, and what they are about.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::memory::MemoryDriver;
use plimsoll_model::{EndReason, ErrorClass, Moment, OpKind, OpRecord, StageKind, WorkerId};
use plimsoll_workload::Random;
use plimsoll_workload::trace::{Seen, Trace, TraceBuilder, TraceOptions};

use crate::instrument_tests::{Answer, MS, Script, Scripted, run_at, run_with};
use crate::testing::Laid;
use crate::{StageOutcome, StopFlag, VirtualTime};

const SECOND: u64 = 1_000 * MS;

fn seen(at_ns: u64, kind: OpKind, name: &[u8], bytes: u64) -> Seen<'_> {
    let bytes = Some(bytes).filter(|_| matches!(kind, OpKind::Put | OpKind::Get));
    Seen { at_ns: Some(at_ns), kind, name, bytes, object_bytes: None, range: None }
}

fn trace(all: impl IntoIterator<Item = (u64, OpKind, u32, u64)>) -> Arc<Trace> {
    let mut builder = TraceBuilder::default();
    for (at_ns, kind, object, bytes) in all {
        builder.add(&seen(at_ns, kind, &object.to_le_bytes(), bytes)).unwrap();
    }
    Arc::new(builder.finish(TraceOptions::default()).unwrap())
}

/// Replays against a store that does as a script says.
fn replay(trace: &Arc<Trace>, workers: u32, script: Script) -> (StageOutcome, Vec<OpRecord>) {
    let laid = Laid::replaying(trace, workers, ", max_in_flight: 4096");
    let generator = Arc::clone(&laid.generators[0]);
    let stop = StopFlag::default();
    let store = Scripted { script, generator };
    run_with(&store, &laid, StageKind::Measure, (Duration::from_secs(60), 0), &stop)
}

/// Tells whether of each two operations on one object that are not both reads the second begins
/// when the first has ended, in the order in which they were wanted.
fn keeps_order(records: &[OpRecord]) -> bool {
    let mut by_object: HashMap<u64, Vec<&OpRecord>> = HashMap::new();
    for record in records.iter().filter(|record| record.object.is_some()) {
        by_object.entry(record.object.unwrap().as_u64()).or_default().push(record);
    }
    let is_read = |record: &OpRecord| matches!(record.kind, OpKind::Get | OpKind::Stat);
    by_object.values_mut().all(|of| {
        of.sort_by_key(|record| record.intended);
        let (mut write_end, mut read_end) = (Moment::EPOCH, Moment::EPOCH);
        of.iter().all(|record| {
            let waited = record.start >= write_end && (is_read(record) || record.start >= read_end);
            let end = if is_read(record) { &mut read_end } else { &mut write_end };
            *end = (*end).max(record.end);
            waited
        })
    })
}

/// Operations on 5,000 objects over an hour of virtual time, at random instants.
fn an_hour(ops: u64) -> Arc<Trace> {
    let mut random = Random::new(18, 4, 0);
    let mut at: Vec<u64> = (0..ops).map(|_| random.below(3_600 * SECOND)).collect();
    at.sort_unstable();
    at[0] = 0;
    trace(at.into_iter().map(|at| {
        let kind = match random.below(10) {
            0..7 => OpKind::Stat,
            _ => OpKind::Put,
        };
        // A fifth of the objects has most of the operations.
        let object = random.below(1_000) * if random.below(5) == 0 { 5 } else { 1 };
        (at, kind, object as u32, 100)
    }))
}

#[test]
fn an_hour_of_a_million_operations_comes_at_its_instants_and_in_the_order_of_each_object() {
    const OPS: u64 = 1_000_000;
    let trace = an_hour(OPS);
    let (outcome, mut records) =
        replay(&trace, 32, |number| (Duration::from_micros(300 + number % 700), Answer::Right));
    assert_eq!((records.len() as u64, outcome.failed_count), (OPS, 0));
    assert!(keeps_order(&records));
    records.sort_by_key(|record| record.intended);
    let wanted = trace.ops().iter().map(|op| op.at_ns);
    assert!(records.iter().map(|record| record.intended.as_ns()).eq(wanted));
    let mut errors: Vec<u64> = records
        .iter()
        .map(|record| record.start.since(record.intended).as_nanos() as u64)
        .collect();
    // No drift: the last thousand are as punctual as the first.
    let mean = |errors: &[u64]| errors.iter().sum::<u64>() / errors.len() as u64;
    let (first, last) = (mean(&errors[..1_000]), mean(&errors[errors.len() - 1_000..]));
    assert!(first.abs_diff(last) < 100_000, "{first} and {last} ns");
    errors.sort_unstable();
    assert!(errors[errors.len() / 100 * 99] <= MS, "{} ns", errors[errors.len() / 100 * 99]);
}

#[test]
fn a_trace_is_dealt_once_for_all_workers_before_any_begins() {
    // Dealing is a pass through the whole trace, so it belongs to laying out the run.
    let laid = Laid::replaying(&an_hour(1_000), 32, "");
    let job = laid.job(StageKind::Measure);
    let deal = job.traced.as_ref().unwrap();
    let holders_before = Arc::strong_count(deal);
    let of_worker = |worker| (job.source(WorkerId(worker)), job.times(WorkerId(worker)));
    let all: Vec<_> = (0..32).map(of_worker).collect();
    // The operations and the instants of each worker point into that one deal.
    assert_eq!(Arc::strong_count(deal) - holders_before, 2 * all.len());
}

#[test]
fn what_waits_for_an_earlier_operation_on_its_object_is_late_and_counts_from_its_instant() {
    use OpKind::{Put, Stat};
    // The put takes 10 ms; the reads after it may overlap, the second put waits for both.
    let trace = trace([
        (0, Put, 1, 10),
        (MS, Stat, 1, 0),
        (2 * MS, Stat, 1, 0),
        (3 * MS, Put, 1, 20),
        (4 * MS, Stat, 2, 0),
    ]);
    let (outcome, mut records) = replay(&trace, 2, |_| (Duration::from_millis(10), Answer::Right));
    records.sort_by_key(|record| record.intended);
    let times: Vec<(u64, u64)> = records
        .iter()
        .map(|record| (record.start.as_ns() / MS, record.latency().as_nanos() as u64 / MS))
        .collect();
    assert_eq!(times, [(0, 10), (10, 19), (10, 18), (20, 27), (4, 10)]);
    let kept = outcome.schedule.unwrap();
    // Three are late because of their object, none because of the machine.
    assert_eq!((kept.offered_count, kept.late_count, kept.skipped_count), (5, 0, 0));
    assert_eq!((kept.held_count, outcome.ended_by), (3, EndReason::OutOfWork));
}

/// Fills what has to be there in a store in memory, and replays.
fn on_memory(trace: &Arc<Trace>, closed: bool) -> (StageOutcome, Vec<OpRecord>) {
    let laid = Laid::replaying(trace, 5, if closed { ", closed: true" } else { "" });
    let (time, store) = (Arc::new(VirtualTime::new()), MemoryDriver::default());
    let (limits, stop) = ((Duration::from_secs(60), 0), StopFlag::default());
    let (filled, _) = run_at(&time, &store, &laid, StageKind::Prepare, limits, &stop);
    assert_eq!(filled.failed_count, 0);
    run_at(&time, &store, &laid, StageKind::Measure, limits, &stop)
}

#[test]
fn contents_that_are_read_are_those_of_the_last_write_byte_by_byte() {
    use OpKind::{Delete, Get, List, Put, Stat};
    let mut random = Random::new(3, 1, 4);
    let ops: Vec<_> = (0..3_000)
        .map(|at| {
            let kind = [Get, Get, Put, Stat, Delete, List][random.below(6) as usize];
            (at * MS / 4, kind, random.below(40) as u32, 1 + random.below(900))
        })
        .collect();
    let trace = trace(ops);
    for closed in [false, true] {
        let (outcome, records) = on_memory(&trace, closed);
        assert_eq!(records.len(), trace.ops().len());
        assert_eq!((outcome.failed_count, outcome.ended_by), (0, EndReason::OutOfWork));
        assert_eq!(outcome.schedule.is_none(), closed);
        assert!(keeps_order(&records) || closed);
        let kinds = |kind| records.iter().filter(|record| record.kind == kind).count();
        assert!([Get, Put, Stat, Delete, List].iter().all(|kind| kinds(*kind) > 100));
    }
}

#[test]
fn what_a_failed_write_left_is_read_and_not_held_against_the_store() {
    use OpKind::{Get, Put};
    let trace = trace([(0, Put, 1, 10), (MS, Get, 1, 10)]);
    // What the store gives is neither what was there nor what was to be written.
    let fails_first: Script = |number| match number {
        0 => (Duration::ZERO, Answer::Fail(ErrorClass::Server)),
        _ => (Duration::ZERO, Answer::Right),
    };
    let (outcome, records) = replay(&trace, 1, fails_first);
    let outcomes: Vec<bool> = records.iter().map(|record| record.outcome.is_ok()).collect();
    assert_eq!(outcomes, [false, true]);
    assert_eq!(outcome.jobs[0].unchecked.count, 1);
}

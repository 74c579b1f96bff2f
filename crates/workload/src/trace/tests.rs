//! Traces that are put together from entries whose meaning is known.

use plimsoll_model::OpKind::{
    AbortUpload, CompleteUpload, CreateUpload, Delete, Get, List, Put, PutPart, Read, Stat, Sync,
    Write,
};

use super::*;

const SECOND: u64 = 1_000_000_000;

fn seen(at_ns: u64, kind: OpKind, name: &str) -> Seen<'_> {
    let name = name.as_bytes();
    Seen { at_ns: Some(at_ns), kind, name, bytes: None, object_bytes: None, range: None }
}

fn sized(at_ns: u64, kind: OpKind, name: &str, bytes: u64) -> Seen<'_> {
    Seen { bytes: Some(bytes), ..seen(at_ns, kind, name) }
}

fn part(at_ns: u64, name: &str, range: (u64, u64)) -> Seen<'_> {
    Seen { range: Some(range), ..seen(at_ns, Get, name) }
}

#[track_caller]
fn built(all: &[Seen<'_>], options: TraceOptions) -> Trace {
    let mut builder = TraceBuilder::default();
    all.iter().for_each(|seen| builder.add(seen).unwrap());
    builder.finish(options).unwrap()
}

fn of(all: &[Seen<'_>]) -> Trace {
    built(all, TraceOptions::default())
}

/// Returns instant, kind, object and length of each operation.
fn brief(trace: &Trace) -> Vec<(u64, OpKind, u32, u64)> {
    trace.ops().iter().map(|op| (op.at_ns, op.kind, op.object, op.len)).collect()
}

#[test]
fn what_is_read_before_it_is_written_has_to_be_there_before() {
    let trace = of(&[
        sized(10, Put, "new", 5),
        sized(11, Get, "old", 7),
        sized(12, Put, "old", 9),
        seen(13, Get, "old"),
        seen(14, Get, "new"),
        seen(15, Delete, "gone"),
        seen(16, Stat, "new"),
    ]);
    // `old` and `gone` have the first numbers; nothing tells the size of `gone`, so that it is the
    // median of 5, 7 and 9.
    assert_eq!(trace.made_first(), [7, 7]);
    let expected = [
        (0, Put, 2, 5),
        (1, Get, 0, 7),
        (2, Put, 0, 9),
        (3, Get, 0, 9),
        (4, Get, 2, 5),
        (5, Delete, 1, 0),
        (6, Stat, 2, 0),
    ];
    assert_eq!(brief(&trace), expected);
    assert_eq!((trace.facts.size_unknown_count, trace.facts.size_assumed), (1, 7));
    assert!(trace.is_timed() && !trace.is_on_files());
    assert_eq!(trace.kinds(), [Put, Get, Delete, Stat]);
}

#[test]
fn entries_tell_of_each_others_sizes() {
    // A put without a size, as Ceph's access log has it, is as large as what is read of it.
    let trace = of(&[
        seen(0, Put, "a"),
        sized(1, Get, "a", 40),
        seen(2, Put, "a"),
        part(3, "a", (10, 50)),
        part(4, "b", (100, 20)),
        Seen { object_bytes: Some(500), ..part(5, "b", (0, 1)) },
        part(6, "b", (490, 20)),
        part(7, "b", (500, 20)),
    ]);
    // The part from 500 on tells of at least 520 bytes, whatever states 500.
    assert_eq!(trace.made_first(), [520]);
    let expected = [
        (0, Put, 1, 40),
        (1, Get, 1, 40),
        (2, Put, 1, 60),
        (3, Get, 1, 50),
        (4, Get, 0, 20),
        (5, Get, 0, 1),
        (6, Get, 0, 20),
        (7, Get, 0, 20),
    ];
    assert_eq!(brief(&trace), expected);
    // Of what a put states nothing is taken back: a part ends where the object does.
    let short = of(&[sized(0, Put, "a", 10), part(1, "a", (4, 20)), part(2, "a", (10, 1))]);
    assert_eq!(brief(&short), [(0, Put, 0, 10), (1, Get, 0, 6)]);
    assert_eq!((short.facts.clipped_count, short.facts.beyond_count), (1, 1));
    assert_eq!(trace.facts.size_unknown_count, 0);
}

#[test]
fn what_the_trace_has_removed_is_left_alone_until_it_is_written_again() {
    let trace = of(&[
        sized(0, Get, "a", 3),
        seen(1, Delete, "a"),
        seen(2, Get, "a"),
        seen(3, Delete, "a"),
        sized(4, Put, "a", 8),
        seen(5, Get, "a"),
    ]);
    let expected = [(0, Get, 0, 3), (1, Delete, 0, 0), (4, Put, 0, 8), (5, Get, 0, 8)];
    assert_eq!(brief(&trace), expected);
    assert_eq!(trace.facts.gone_count, 2);
}

/// Builds a trace of a form that counts instants in this.
fn counted_in(tick: Duration, all: &[Seen<'_>]) -> Trace {
    let mut builder = TraceBuilder::default();
    builder.tick = tick;
    all.iter().for_each(|seen| builder.add(seen).unwrap());
    builder.finish(TraceOptions::default()).unwrap()
}

#[test]
fn entries_come_into_the_order_of_time_and_those_of_one_second_are_spread_over_it() {
    let second = Duration::from_secs(1);
    let all = [
        sized(8 * SECOND, Put, "a", 1),
        sized(7 * SECOND, Put, "a", 2),
        sized(8 * SECOND, Put, "a", 3),
        sized(8 * SECOND, Put, "b", 4),
        sized(8 * SECOND, Put, "b", 5),
    ];
    let trace = counted_in(second, &all);
    let quarter = SECOND / 4;
    let expected = [
        (0, Put, 0, 2),
        (SECOND, Put, 0, 1),
        (SECOND + quarter, Put, 0, 3),
        (SECOND + 2 * quarter, Put, 1, 4),
        (SECOND + 3 * quarter, Put, 1, 5),
    ];
    assert_eq!(brief(&trace), expected);
    let facts = &trace.facts;
    assert_eq!((facts.out_of_order_count, facts.spread_count, facts.tick), (1, 4, second));
    // Whole seconds of a form that counts in less are bursts.
    let micros = Duration::from_micros(1);
    let bursts = counted_in(micros, &all);
    let instants = |trace: &Trace| trace.ops().iter().map(|op| op.at_ns).collect::<Vec<_>>();
    assert_eq!(instants(&bursts), [0, SECOND, SECOND, SECOND, SECOND]);
    assert_eq!((bursts.facts.spread_count, bursts.facts.tick), (0, micros));
    // Where seconds are written in fractions, nothing is moved.
    let all =
        [sized(SECOND, Put, "a", 1), sized(SECOND, Put, "a", 1), sized(SECOND + 250, Put, "a", 1)];
    let fine = counted_in(second, &all);
    assert_eq!(instants(&fine), [0, 0, 250]);
    assert_eq!((fine.facts.spread_count, fine.facts.tick), (0, Duration::from_nanos(250)));
}

#[test]
fn a_trace_is_cut_before_it_says_what_has_to_be_there() {
    let options = TraceOptions { until: Some(Duration::from_nanos(5)), size_unknown: Some(77) };
    let trace = built(&[seen(100, Get, "a"), seen(104, Get, "b"), seen(105, Get, "c")], options);
    assert_eq!(trace.made_first(), [77, 77]);
    assert_eq!(trace.facts.until, Some((Duration::from_nanos(5), 1)));
}

#[test]
fn an_upload_in_parts_is_one_put_when_it_is_completed() {
    let trace = of(&[
        seen(0, CreateUpload, "a"),
        sized(1, PutPart, "a", 30),
        sized(2, PutPart, "a", 12),
        seen(3, CompleteUpload, "a"),
        sized(4, PutPart, "b", 5),
        seen(5, AbortUpload, "b"),
        sized(6, PutPart, "c", 5),
    ]);
    assert_eq!(brief(&trace), [(0, Put, 0, 42)]);
    assert_eq!((trace.facts.uploads_count, trace.facts.parts_left_count), (1, 2));
}

#[test]
fn workers_have_whole_objects_and_together_everything() {
    let all: Vec<String> = (0..50).map(|n| format!("k{}", n % 13)).collect();
    let mut seen: Vec<Seen<'_>> =
        all.iter().enumerate().map(|(at, name)| sized(at as u64, Put, name, 1)).collect();
    seen.push(Seen { name: b"", ..sized(50, List, "", 0) });
    let trace = of(&seen);
    let deal = TraceDeal::new(Arc::new(trace), NonZeroU32::new(4).unwrap());
    let (share, trace) = (|worker| deal.places(WorkerId(worker)).collect(), deal.trace());
    let shares: Vec<Vec<u32>> = (0..4).map(share).collect();
    let mut together: Vec<u32> = shares.iter().flat_map(|share| share.iter().copied()).collect();
    together.sort_unstable();
    assert_eq!(together, (0..51).collect::<Vec<_>>());
    for (worker, share) in (0..).zip(&shares) {
        assert!(share.is_sorted());
        // How many there are is known without a pass through the trace: it was dealt once.
        assert_eq!(deal.places(WorkerId(worker)).len(), share.len());
        let objects = share.iter().map(|at| trace.ops()[*at as usize].object);
        assert!(objects.filter(|object| *object != NO_OBJECT).all(|object| object % 4 == worker));
    }
}

#[test]
fn times_are_scaled_without_a_sum_of_errors() {
    let all: Vec<Seen<'_>> = (0..10).map(|n| sized(n * 7, Put, "a", 1)).collect();
    let trace = Arc::new(of(&all));
    let deal = TraceDeal::new(trace, NonZeroU32::MIN);
    let at = |speed| -> Vec<u64> {
        let times = TraceTimes::new(deal.places(WorkerId(0)), speed);
        times.map(|at| at.as_nanos() as u64).collect()
    };
    assert_eq!(at(1.0), (0..10).map(|n| n * 7).collect::<Vec<_>>());
    assert_eq!(at(2.0), [0, 3, 7, 10, 14, 17, 21, 24, 28, 31]);
    assert_eq!(at(0.5)[9], 126);
}

#[test]
fn files_are_as_large_as_what_is_done_to_them_and_are_all_there_before() {
    let block = |at_ns, kind, name, range| Seen { range: Some(range), ..seen(at_ns, kind, name) };
    let trace =
        of(&[block(0, Write, "f", (4096, 512)), block(1, Read, "g", (0, 100)), seen(2, Sync, "f")]);
    assert!(trace.is_on_files());
    assert_eq!((trace.made_first(), trace.largest()), (&[4608, 100][..], 512));
}

#[test]
fn what_is_no_trace_is_refused() {
    let refused = |all: &[Seen<'_>]| {
        let mut builder = TraceBuilder::default();
        all.iter().for_each(|seen| builder.add(seen).unwrap());
        builder.finish(TraceOptions::default()).unwrap_err()
    };
    assert_eq!(refused(&[]), "it holds no operation that can be replayed");
    let both = [sized(0, Put, "a", 1), Seen { range: Some((0, 1)), ..seen(1, Read, "a") }];
    assert_eq!(refused(&both), "it is about objects and blocks of files at once");
    let mut builder = TraceBuilder::default();
    let beyond = builder.add(&part(0, "a", (u64::MAX, 2))).unwrap_err();
    assert_eq!(beyond, "2 bytes from 18446744073709551615 on are no part of anything");
    // Without instants there is a trace, but not when its operations began.
    builder.add(&Seen { at_ns: None, ..sized(0, Put, "a", 1) }).unwrap();
    assert!(!builder.finish(TraceOptions::default()).unwrap().is_timed());
}

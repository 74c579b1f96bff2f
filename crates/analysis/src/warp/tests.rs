//! Cases worked out by hand. That whole files give warp's printed reports is tested in
//! `crates/report`.

use plimsoll_model::{ErrorClass, ObjectId, WorkerId};

use super::*;

const MS: u64 = 1_000_000;

fn op(worker: u32, start_ms: u64, end_ms: u64) -> OpRecord {
    OpRecord {
        worker: WorkerId(worker),
        object: Some(ObjectId::new(WorkerId(0), start_ms)),
        bytes: 1_000,
        first_byte: Some(Moment::from_ns((start_ms + 1) * MS)),
        ..OpRecord::plain(OpKind::Get, Moment::from_ns(start_ms * MS), Moment::from_ns(end_ms * MS))
    }
}

fn failed(op: OpRecord) -> OpRecord {
    OpRecord { outcome: ErrorClass::Unknown, ..op }
}

/// Two workers, each with operations of half a second back to back, the second 100 ms later.
fn steady(until_ms: u64) -> Vec<OpRecord> {
    let starts = (0..until_ms).step_by(500);
    let pairs = starts.map(|at| [op(0, at, at + 500), op(1, at + 100, at + 600)]);
    pairs.flatten().collect()
}

fn answer(ops: &[OpRecord], question: &WarpQuestion) -> WarpAnalysis {
    let workers: Vec<WarpWorker> = (0..4).map(|thread| WarpWorker { client: 0, thread }).collect();
    let endpoints = ["http://b".to_owned(), "http://a".to_owned()];
    let error_texts = (0..ops.len()).map(|index| (index, format!("error {index}"))).collect();
    let recording = Recording {
        ops,
        endpoints: &endpoints,
        clients: &["one".to_owned()],
        workers: &workers,
        error_texts: &error_texts,
        utc_offset_seconds: 0,
    };
    analyze(&recording, question)
}

fn figures(ops: &[OpRecord], question: &WarpQuestion) -> WarpFigures {
    answer(ops, question).kinds[0].figures.clone().unwrap()
}

fn verbose() -> WarpQuestion {
    WarpQuestion { verbose: true, ..WarpQuestion::default() }
}

fn span_ms(throughput: &WarpThroughput) -> (u64, u64) {
    // The end is kept less 1 ns.
    (throughput.started.as_ns() / MS, (throughput.ended.as_ns() + 1) / MS)
}

#[test]
fn all_workers_have_ended_one_and_none_has_begun_its_last() {
    // First ends: 500, 600. Last starts: 4500, 4600. The span holds 3.9 s: 3 whole segments.
    let figures = figures(&steady(5_000), &WarpQuestion::default());
    let throughput = &figures.throughput;
    assert_eq!(span_ms(throughput), (600, 4_500));
    assert_eq!(throughput.millis(), 3_900);
    // Worker 0: [500,1000) gives 4/5 of it, then 7 whole ones to 4500. Worker 1: 7 whole ones from
    // 600 to 4100, then [4100,4600) gives 4/5 less 1 ns. But what ends at 4500 does not end before
    // the last nanosecond, so it gives its share less 1 ns too.
    assert_eq!(throughput.shares.bytes, 800 + 6_000 + 999 + 7_000 + 799);
    assert_eq!(throughput.shares.full_ops, 13);
    assert_eq!(throughput.segments.as_ref().unwrap().by_rate.len(), 3);
    assert_eq!(figures.concurrency, 2);
}

#[test]
fn a_segment_that_ends_with_the_span_is_dropped() {
    let ops: Vec<OpRecord> = (0..8).map(|at| op(0, at * 500, at * 500 + 500)).collect();
    // The span is 500 to 3500 ms: three seconds, of which the last is dropped.
    let figures = figures(&ops, &WarpQuestion::default());
    assert_eq!(figures.throughput.segments.unwrap().by_rate.len(), 2);
}

#[test]
fn fewer_than_two_segments_are_too_few_samples() {
    let analysis = answer(&steady(2_500), &WarpQuestion::default());
    assert_eq!((analysis.kinds[0].operations, analysis.kinds[0].figures.is_some()), (10, false));
    let short = WarpQuestion { segment: Some(Duration::from_millis(500)), ..Default::default() };
    assert!(answer(&steady(2_500), &short).kinds[0].figures.is_some());
}

#[test]
fn with_an_error_the_first_and_the_last_are_discarded() {
    let mut ops = steady(5_000);
    ops[6] = failed(ops[6]);
    // The second start is at 100, the last at 4600, before which 4500 is the last end.
    let analysis = answer(&ops, &WarpQuestion::default());
    let kind = &analysis.kinds[0];
    assert_eq!(span_ms(&kind.figures.as_ref().unwrap().throughput), (100, 4_500));
    let error = WarpError {
        endpoint: EndpointId(0),
        at: Moment::from_ns(2_000 * MS),
        text: "error 6".to_owned(),
    };
    assert_eq!((kind.errors, &kind.first_errors), (1, &vec![error]));
}

#[test]
fn failures_only_give_no_figures() {
    let ops: Vec<OpRecord> = steady(5_000).into_iter().map(failed).collect();
    let analysis = answer(&ops, &WarpQuestion::default());
    assert_eq!((analysis.kinds[0].errors, analysis.kinds[0].figures.is_none()), (20, true));
    assert_eq!(analysis.kinds[0].first_errors.len(), WarpKind::ERRORS_MAX);
    assert!(answer(&[], &verbose()).kinds.is_empty());
}

#[test]
fn failures_count_in_segments_where_they_end_inside() {
    // A span of 2.5 s from the only other start, 100, and a failure across the border at 1100.
    let good = |at| op(0, at, at + 100);
    let mut ops: Vec<OpRecord> = (0..28).map(|at| good(at * 100)).collect();
    ops.insert(11, failed(op(1, 1_050, 1_250)));
    let analysis = answer(&ops, &WarpQuestion::default());
    let mut segments =
        analysis.kinds[0].figures.as_ref().unwrap().throughput.segments.clone().unwrap().by_rate;
    segments.sort_by_key(|segment| segment.start);
    let counts = |at: usize| {
        let WarpShares { partial_ops, ops_started, ops_ended, errors, bytes, .. } =
            segments[at].shares;
        (partial_ops, ops_started, ops_ended, errors, bytes)
    };
    // Of the ten good ones from 100 on, the last ends at the border: partial, with all bytes. So
    // is the one before 100, as none ended earlier, without bytes; and the failure.
    assert_eq!(counts(0), (3, 11, 10, 0, 10_000));
    // The failure began before and ends inside.
    assert_eq!(counts(1), (2, 10, 10, 1, 10_000));
}

#[test]
fn the_median_of_five_is_the_fourth() {
    // round(5 · 0.5) = 3, counted from zero.
    let segment = |bytes| WarpSegment {
        start: Moment::from_ns(bytes),
        length: Duration::from_secs(1),
        shares: WarpShares { bytes, ..WarpShares::default() },
    };
    let segments = WarpSegments::ranked([50, 20, 40, 10, 30].map(segment).to_vec()).unwrap();
    assert_eq!(segments.picked().map(|segment| segment.shares.bytes), [50, 40, 10]);
    assert!(WarpSegments::ranked(vec![segment(1)]).is_none());
}

#[test]
fn kinds_that_overlap_are_mixed() {
    let put = |op: OpRecord| OpRecord { kind: OpKind::Put, ..op };
    let later = |op: &OpRecord| put(super::tests::op(0, op.start.as_ns() / MS + 9_000, 9_900));
    let mut apart = steady(5_000);
    apart.push(later(&apart[0]));
    assert!(answer(&apart, &WarpQuestion::default()).mixed.is_none());

    let mut mixed = steady(6_000);
    mixed.iter_mut().skip(3).step_by(4).for_each(|op| *op = put(*op));
    let analysis = answer(&mixed, &WarpQuestion::default());
    let kinds: Vec<_> = analysis.kinds.iter().map(|kind| (kind.kind, kind.operations)).collect();
    // What is not wholly within 600 to 5500 is cut: of 24 the first three and the last three.
    assert_eq!(kinds, [(OpKind::Get, 13), (OpKind::Put, 5)]);
    assert_eq!(analysis.mixed.unwrap().operations, 18);
    // One kind of it alone is no mixed report, but keeps the other kind of span.
    let only = WarpQuestion { op: Some(OpKind::Get), ..WarpQuestion::default() };
    let only = answer(&mixed, &only);
    assert!(only.mixed.is_none());
    let throughput = &only.kinds[0].figures.as_ref().unwrap().throughput;
    assert_eq!(throughput.started, Moment::from_ns(100 * MS));
}

#[test]
fn offset_limit_and_skip_leave_operations_out() {
    let ops = steady(8_000);
    let some = WarpQuestion { offset: 2, limit: Some(20), ..WarpQuestion::default() };
    assert_eq!(answer(&ops, &some).kinds[0].operations, 20);
    // The first start is at 500 then; less than 1 s after are those at 500, 600, 1000, 1100.
    let skip = WarpQuestion { skip: Duration::from_secs(1), ..some };
    assert_eq!(answer(&ops, &skip).kinds[0].operations, 16);
    let beyond = WarpQuestion { offset: u64::MAX, ..WarpQuestion::default() };
    assert!(answer(&ops, &beyond).kinds.is_empty());
}

#[test]
fn hosts_are_told_apart_by_name_over_their_own_spans() {
    let mut ops = steady(5_000);
    ops.iter_mut().skip(1).step_by(2).for_each(|op| op.endpoint = EndpointId(1));
    let analysis = answer(&ops, &verbose());
    let figures = analysis.kinds[0].figures.as_ref().unwrap();
    let sources: Vec<_> = figures.by_host.iter().map(|(source, _)| *source).collect();
    // `http://a` is number 1.
    let names = [1, 0].map(|id| WarpSource::Endpoint(EndpointId(id)));
    assert_eq!(sources, names);
    assert_eq!(span_ms(&figures.by_host[0].1), (600, 4_600 - 500));
    let requests = figures.requests.as_ref().unwrap();
    assert_eq!(requests.by_host.iter().map(|host| host.requests).collect::<Vec<_>>(), [10, 10]);
    // The tables: of all, then of each, with the same segments.
    let tables = &analysis.kinds[0].tables;
    let starts: Vec<_> = tables.iter().map(|table| table.segments[0].start).collect();
    assert_eq!(starts, [Moment::from_ns(600 * MS); 3]);
    assert_eq!(
        tables.iter().map(|table| table.endpoint).collect::<Vec<_>>(),
        [None, Some(EndpointId(1)), Some(EndpointId(0))]
    );
}

#[test]
fn times_of_one_size_with_first_and_last_access() {
    let mut ops = steady(5_000);
    ops.iter_mut().for_each(|op| op.object = Some(ObjectId::new(WorkerId(0), 7)));
    ops[0].first_byte = Some(Moment::from_ns(123 * MS));
    let requests = figures(&ops, &verbose()).requests.unwrap();
    // Wholly within 600 to 4500: of worker 0 from 1000 on 7, of worker 1 from 600 on 7.
    assert_eq!(requests.considered, 14);
    let WarpSizes::Single(single) = requests.sizes else { panic!("{:?}", requests.sizes) };
    let WarpSingleSize { bytes, times, first_access, last_access } = *single;
    assert_eq!(bytes, 1_000);
    let times = times.unwrap();
    assert_eq!(times.durations.percentile(99), Duration::from_millis(500));
    assert_eq!(times.durations.std_dev, Duration::ZERO);
    assert_eq!(times.ttfb.unwrap().percentile(100), Duration::from_millis(1));
    // The first access is not considered for the times, but counts here.
    let ttfb = |access: Option<WarpAccess>| access.unwrap().ttfb.unwrap();
    assert_eq!(ttfb(first_access).average, Duration::from_millis(123));
    assert_eq!(ttfb(last_access).samples, 1);
}

#[test]
fn an_upload_answers_from_its_last_byte_on() {
    let mut ops = steady(5_000);
    for op in &mut ops {
        (op.kind, op.first_byte) = (OpKind::Put, None);
        op.last_byte_sent = Some(op.start.after(Duration::from_millis(380)));
    }
    let requests = figures(&ops, &verbose()).requests.unwrap();
    let WarpSizes::Single(single) = requests.sizes else { panic!("{:?}", requests.sizes) };
    assert_eq!((&single.first_access, &single.last_access), (&None, &None));
    assert_eq!(single.times.unwrap().ttfb.unwrap().average, Duration::from_millis(120));
}

#[test]
fn a_size_class_that_is_extended_counts_again() {
    // 120 considered, a twentieth is 6: 5 of 50 B are too few for a class, so 10 B to 1 KiB has
    // them twice, then 100 of 500 B. The 15 of 5,000 B are a class of their own.
    let sizes = [(50, 5), (500, 100), (5_000, 15)];
    let sizes = sizes.into_iter().flat_map(|(bytes, count)| std::iter::repeat_n(bytes, count));
    let ends = |at: u64| at * 100 + 100;
    let mut ops: Vec<OpRecord> = vec![op(0, 0, 100)];
    for (index, bytes) in (1..).zip(sizes) {
        ops.push(OpRecord { bytes, ..op(0, index * 100, ends(index)) });
    }
    ops.push(op(0, 12_100, 12_200));
    let requests = figures(&ops, &verbose()).requests.unwrap();
    assert_eq!(requests.considered, 120);
    let WarpSizes::Multi(WarpMultiSize { bytes_mean, classes }) = requests.sizes else {
        panic!("{:?}", requests.sizes);
    };
    assert_eq!(bytes_mean, (5 * 50 + 100 * 500 + 15 * 5_000) / 120);
    let shown = classes.iter().map(|class| (class.bytes_from, class.bytes_to, class.requests));
    assert_eq!(shown.collect::<Vec<_>>(), [(10, 1_024, 110), (1_024, 10_240, 15)]);
    let [_, _, p90, p99, fastest, slowest] = classes[0].rates;
    assert_eq!([fastest, p90, p99, slowest], [5e3, 5e3, 500.0, 500.0]);
}

#[test]
fn what_is_outside_the_classes_is_left_out() {
    // 1,000 bytes are below the border of 1 KiB that goes with the third power of ten.
    for (bytes, expected) in [(0, vec![(1, 1_024)]), (1 << 41, vec![])] {
        let mut ops = steady(5_000);
        ops[7].bytes = bytes;
        let requests = figures(&ops, &verbose()).requests.unwrap();
        let WarpSizes::Multi(of) = requests.sizes else { panic!() };
        let classes = of.classes.iter().map(|class| (class.bytes_from, class.bytes_to));
        assert_eq!(classes.collect::<Vec<_>>(), expected);
    }
}

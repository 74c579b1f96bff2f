//! Cases worked out by hand, and what must hold for any operations.

#[path = "tests/details.rs"]
mod details;

use proptest::prelude::*;

use plimsoll_model::{ErrorClass, ObjectId, WorkerId};

use super::*;

const MS: u64 = 1_000_000;

pub(crate) fn op(worker: u32, start_ms: u64, end_ms: u64) -> OpRecord {
    OpRecord {
        stage: StageId(1),
        worker: WorkerId(worker),
        object: Some(ObjectId::new(WorkerId(0), 0)),
        bytes: 1_024,
        first_byte: Some(Moment::from_ns((start_ms + end_ms) * MS / 2)),
        ..OpRecord::plain(OpKind::Get, Moment::from_ns(start_ms * MS), Moment::from_ns(end_ms * MS))
    }
}

/// Operations of `took_ms`, back to back from `from_ms` to `until_ms`.
fn back_to_back(worker: u32, from_ms: u64, until_ms: u64, took_ms: u64) -> Vec<OpRecord> {
    let starts = (from_ms..until_ms).step_by(took_ms as usize);
    starts.map(|start| op(worker, start, start + took_ms)).collect()
}

fn question(ended_ms: u64, workers: u32) -> Question<'static> {
    Question::about(StageId(1), Moment::EPOCH, Moment::from_ns(ended_ms * MS), workers)
}

/// Has the only row laid in that way.
fn laid(question: Question<'static>, span: Span, open: bool) -> Question<'static> {
    let workers = question.rows.each()[0].workers;
    // A schedule ends with its stage.
    let ends = open.then_some(question.ended);
    Question { rows: Rows::One(RowAsked { workers, span, open, ends }), ..question }
}

fn span_of(full: bool) -> Span {
    if full { Span::Whole } else { Span::AllWorkers }
}

fn segments_of(ms: u64, question: Question<'static>) -> Question<'static> {
    Question { segment: Some(Duration::from_millis(ms)), ..question }
}

fn analysis(ops: &[OpRecord], question: &Question<'_>) -> RowAnalysis {
    let Ok(mut analysis) = analyze(ops, question);
    analysis.rows.pop().unwrap()
}

fn ms(count: u64) -> Option<Duration> {
    Some(Duration::from_millis(count))
}

fn span_ms(analysis: &RowAnalysis) -> (u64, u64) {
    (analysis.span.start.as_ns() / MS, analysis.span.end.as_ns() / MS)
}

#[track_caller]
fn assert_close(got: f64, expected: f64) {
    assert!((got - expected).abs() <= expected.abs() * 1e-9, "{got} is not {expected}");
}

fn objects_per_sec(rate: SegmentRate) -> f64 {
    rate.rates.objects.0
}

#[test]
fn eight_workers_of_ten_milliseconds_do_800_a_second() {
    let ops: Vec<_> = (0..8).flat_map(|worker| back_to_back(worker, 0, 1_000, 10)).collect();
    let answer = analysis(&ops, &segments_of(100, question(1_000, 8)));
    // The first operations end at 10 ms, the last at 1,000 ms: 99 of each worker in 0.99 s.
    assert_eq!((span_ms(&answer), answer.span.rule), ((10, 1_000), SpanRule::AllWorkers));
    let total = &answer.total;
    assert_eq!((total.counts.started, total.counts.ok, total.counts.failed.count()), (792, 792, 0));
    assert_eq!((total.stage.ops_ok, total.stage.bytes, total.stage.objects), (800, 819_200, 800));
    let rates = total.rates.unwrap();
    assert_close(rates.ops.0, 800.0);
    assert_close(rates.objects.0, 800.0);
    assert_close(rates.bytes.0, 819_200.0);
    // 990 ms hold nine whole segments of 100 ms with ten operations of each worker.
    assert_eq!(answer.segments_count, 9);
    let segments = total.segments.unwrap();
    for rate in [segments.fastest, segments.median, segments.slowest] {
        assert_close(rate.rates.bytes.0, 819_200.0);
    }
    let latency = &total.latency;
    assert_eq!((latency.samples, latency.min, latency.max), (792, ms(10), ms(10)));
    assert_eq!((latency.p50, latency.p90, latency.p99), (ms(10), ms(10), ms(10)));
    assert_eq!((latency.mean, latency.std_dev), (ms(10), ms(0)));
    assert_eq!(latency.p99_9, None, "792 samples are too few for p99.9");
    assert_eq!((total.ttfb.p50, total.service()), (ms(5), latency));
    assert_eq!(answer.kinds[0].figures, *total);
    assert_eq!(answer.kinds[0].mix_percent, Some(100.0));
    assert_eq!(answer.error_rate(), Some(0.0));
    assert_eq!(answer.advice, [Advice::FewSamples { kind: OpKind::Get, samples: 792 }]);
}

#[test]
fn operations_across_the_borders_count_with_their_share() {
    let sized = |bytes, op| OpRecord { bytes, ..op };
    let ops = [
        sized(100, op(0, 0, 100)),
        sized(400, op(0, 100, 500)),
        sized(200, op(1, 0, 200)),
        sized(1_000, op(1, 200, 300)),
        sized(4_000, op(1, 300, 700)),
    ];
    let answer = analysis(&ops, &segments_of(150, question(700, 2)));
    // All have ended one at 200; worker 0 ends its last at 500.
    assert_eq!(span_ms(&answer), (200, 500));
    // 300 of 400 bytes, all 1,000, half of 4,000: 3,300 bytes and 2.25 operations in 0.3 s.
    let rates = answer.total.rates.unwrap();
    assert_close(rates.bytes.0, 11_000.0);
    assert_close(rates.ops.0, 7.5);
    assert_eq!((answer.total.counts.started, answer.total.counts.ok), (2, 2));
    // 200-350: 150 + 1,000 + 500 bytes; 350-500: 150 + 1,500: the same, so the later one is called
    // faster.
    let segments = answer.total.segments.unwrap();
    assert_close(segments.slowest.rates.bytes.0, 1_650.0 / 0.15);
    assert_close(segments.fastest.rates.bytes.0, 1_650.0 / 0.15);
    // Only one lies wholly inside; the one that reaches beyond the end is told of.
    assert_eq!((answer.total.latency.samples, answer.total.latency.max), (1, ms(100)));
    assert_eq!(answer.total.latency.p50, None);
    let beyond = Advice::SlowBeyondEnd { latency: Duration::from_millis(400) };
    assert!(answer.advice.contains(&beyond), "{:?}", answer.advice);
    assert_eq!(answer.total.stage.latency_max, ms(400));
}

#[test]
fn failed_operations_are_counted_and_nothing_else() {
    let good = back_to_back(0, 0, 1_000, 10);
    let failed = back_to_back(1, 0, 1_000, 5).into_iter().map(|op| OpRecord {
        outcome: if op.start.as_ns() % (10 * MS) == 0 {
            ErrorClass::Throttled
        } else {
            ErrorClass::Server
        },
        bytes: 1 << 40,
        ..op
    });
    let with_failed: Vec<_> = good.iter().copied().chain(failed).collect();
    let alone = analysis(&good, &question(1_000, 1)).total;
    let answer = analysis(&with_failed, &question(1_000, 2));
    let total = &answer.total;
    assert_eq!((total.rates, &total.latency), (alone.rates, &alone.latency));
    assert_eq!((&total.ttfb, total.service()), (&alone.ttfb, alone.service()));
    assert_eq!((total.stage.bytes, total.stage.ops_ok), (102_400, 100));
    let classes: Vec<_> = total.stage.failed.classes().collect();
    assert_eq!(classes, [(ErrorClass::Throttled, 100), (ErrorClass::Server, 100)]);
    // From 10 ms on, exclusively: those of the first 10 ms end at 5 and 10 ms.
    assert_eq!(total.counts.failed.count(), 198);
    assert_close(answer.error_rate().unwrap(), 2.0 / 3.0);
    let shed = Advice::Throttled { count: 100, share: 1.0 / 3.0 };
    assert!(answer.advice.contains(&shed), "{:?}", answer.advice);
}

/// A store that goes away is asked only as often as the pauses after a failure allow, so that the
/// error rate stays low.
#[test]
fn an_outage_of_few_failures_is_told_of() {
    let mut ops = back_to_back(0, 0, 3_000, 1);
    ops.extend(
        back_to_back(0, 3_000, 7_000, 200)
            .into_iter()
            .map(|op| OpRecord { outcome: ErrorClass::Connect, ..op }),
    );
    ops.extend(back_to_back(0, 7_000, 8_001, 1));
    let answer = analysis(&ops, &question(8_001, 1));
    assert!(answer.error_rate().unwrap() < 0.01);
    // From the success that ended at 3,000 ms to the one at 7,001 ms, with 20 failures between. The
    // ledger says so, and no advice besides.
    let ledger = answer.ledger.as_ref().unwrap();
    let [outage] = &ledger.outages[..] else { panic!("{:?}", ledger.outages) };
    assert_eq!((outage.gap, outage.failed.count()), (Duration::from_millis(4_001), 20));
    assert!(!answer.advice.iter().any(|of| matches!(of, Advice::NothingSucceeded { .. })));
    // Without a failure there was nothing to do, which is no outage.
    ops.retain(|op| op.outcome.is_ok());
    assert_eq!(analysis(&ops, &question(8_001, 1)).ledger.unwrap().outages, []);
}

#[test]
fn the_span_does_not_shrink_to_the_few_successes() {
    let mut ops: Vec<_> = (0..4).flat_map(|worker| back_to_back(worker, 0, 1_001, 1)).collect();
    ops.iter_mut().for_each(|op| op.outcome = ErrorClass::Denied);
    ops[500].outcome = ErrorClass::Ok;
    let answer = analysis(&ops, &question(1_001, 4));
    assert_eq!(span_ms(&answer), (1, 1_001));
    assert_close(answer.total.rates.unwrap().ops.0, 1.0);
    assert_eq!(answer.total.counts.failed.count(), 3_999);
}

#[test]
fn a_dead_host_is_averaged_over_the_span_of_the_run() {
    let at_second = |op| OpRecord { endpoint: EndpointId(1), ..op };
    let mut ops = back_to_back(0, 0, 2_000, 10);
    ops.extend(back_to_back(1, 0, 1_000, 10).into_iter().map(at_second));
    let refused = |op| OpRecord { outcome: ErrorClass::Connect, ..at_second(op) };
    ops.extend(back_to_back(1, 1_000, 2_000, 10).into_iter().map(refused));
    let answer = analysis(&ops, &segments_of(100, question(2_000, 2)));
    assert_eq!(span_ms(&answer), (10, 2_000));
    let [living, dead] = &answer.endpoints[..] else { panic!("{:?}", answer.endpoints) };
    assert_close(living.figures.rates.unwrap().ops.0, 100.0);
    assert_close(dead.figures.rates.unwrap().ops.0, 99.0 / 1.99);
    assert_eq!(dead.figures.counts.failed.of(ErrorClass::Connect), 100);
    assert_eq!((living.figures.latency.samples, dead.figures.latency.samples), (199, 99));
    assert_close(objects_per_sec(dead.figures.segments.unwrap().slowest), 0.0);
    assert_eq!(answer.kinds[0].endpoints, answer.endpoints);
}

#[test]
fn hosts_beyond_count_are_not_told_apart() {
    let ops = |highest: u16| {
        let mut ops = back_to_back(0, 0, 2_000, 10);
        ops.extend(back_to_back(1, 0, 2_000, 10).into_iter().map(|op| OpRecord {
            endpoint: EndpointId(highest),
            kind: OpKind::Delete,
            ..op
        }));
        ops
    };
    let question = segments_of(100, question(2_000, 2));
    // Two kinds at so many hosts.
    let (apart, together) = (analysis(&ops(32_767), &question), analysis(&ops(32_768), &question));
    assert_eq!((apart.endpoints.len(), together.endpoints.len()), (2, 0));
    assert!(together.kinds.iter().all(|kind| kind.endpoints.is_empty()));
    assert_eq!(together.total, apart.total);
    let figures =
        |of: &RowAnalysis| of.kinds.iter().map(|of| of.figures.clone()).collect::<Vec<_>>();
    assert_eq!(figures(&together), figures(&apart));
}

#[test]
fn a_stalled_segment_is_the_slowest_with_nothing_done() {
    let ops = [back_to_back(0, 0, 1_000, 10), back_to_back(0, 2_000, 3_000, 10)].concat();
    let answer = analysis(&ops, &segments_of(500, question(3_000, 1)));
    // 10-510: 50 operations, -1,010: 49, -1,510: 0, -2,010: 1, -2,510: 50; the rest is no whole
    // segment.
    assert_eq!((span_ms(&answer), answer.segments_count), ((10, 3_000), 5));
    let segments = answer.total.segments.unwrap();
    assert_close(objects_per_sec(segments.slowest), 0.0);
    assert_eq!(segments.slowest.start, Moment::from_ns(1_010 * MS));
    assert_close(objects_per_sec(segments.median), 98.0);
    assert_close(objects_per_sec(segments.fastest), 100.0);
    // Four of 700 ms with 70, 29, 11 and 70: the lower of the two in the middle is the median.
    let segments = analysis(&ops, &segments_of(700, question(3_000, 1))).total.segments.unwrap();
    assert_close(objects_per_sec(segments.median), 29.0 / 0.7);
}

#[test]
fn a_segment_in_which_all_failed_is_a_stall_too() {
    let mut ops = back_to_back(0, 0, 2_010, 10);
    let failing = ops.iter_mut().filter(|op| op.start.as_ns() >= 1_010 * MS);
    failing.for_each(|op| op.outcome = ErrorClass::Timeout);
    let segments = analysis(&ops, &question(2_010, 1)).total.segments.unwrap();
    assert_eq!(segments.slowest.rates.bytes.0, 0.0);
    assert_close(segments.fastest.rates.ops.0, 100.0);
}

#[test]
fn deletes_that_run_out_of_work_end_the_span() {
    let delete = |op| OpRecord { kind: OpKind::Delete, objects_count: 10, bytes: 0, ..op };
    let ops = [back_to_back(0, 0, 1_000, 10), back_to_back(1, 0, 500, 10)].concat();
    let ops: Vec<_> = ops.into_iter().map(delete).collect();
    let answer = analysis(&ops, &segments_of(100, question(1_000, 3)));
    assert_eq!(span_ms(&answer), (10, 500));
    let total = &answer.total;
    assert!(!total.moves_bytes);
    // Two workers, each 100 batches of ten a second.
    assert_close(total.rates.unwrap().ops.0, 200.0);
    assert_close(total.rates.unwrap().objects.0, 2_000.0);
    assert_close(objects_per_sec(total.segments.unwrap().slowest), 2_000.0);
    assert_eq!(
        (answer.first_done, answer.last_done),
        (Some(Moment::from_ns(500 * MS)), Some(Moment::from_ns(1_000 * MS)),)
    );
    let apart = Duration::from_millis(500);
    let expected = [
        Advice::ShortSpan { span: Duration::from_millis(490) },
        Advice::FewSamples { kind: OpKind::Delete, samples: 98 },
        Advice::IdleWorkers { active: 2, configured: 3 },
        Advice::Imbalance { apart },
    ];
    assert_eq!(answer.advice, expected);
}

#[test]
fn without_a_stretch_in_which_all_ran_the_whole_stage_counts() {
    let never_together = [op(0, 0, 100), op(1, 0, 200)];
    let hardly = [op(0, 0, 100), op(0, 100, 1_000), op(1, 0, 950), op(1, 950, 1_000)];
    for (ops, ended_ms, length) in [(&never_together[..], 200, 0.2), (&hardly[..], 1_000, 1.0)] {
        let answer = analysis(ops, &question(ended_ms, 2));
        assert_eq!((span_ms(&answer), answer.span.rule), ((0, ended_ms), SpanRule::FullTooShort));
        assert_close(answer.total.rates.unwrap().ops.0, ops.len() as f64 / length);
        assert_eq!(answer.total.latency.samples, ops.len() as u64);
        assert!(answer.advice.contains(&Advice::FullSpanUsed { skipped: false }));
    }
}

#[test]
fn the_whole_stage_counts_when_asked_for() {
    let ops = back_to_back(0, 0, 1_000, 10);
    let asked = laid(question(1_000, 1), Span::Whole, false);
    let answer = analysis(&ops, &asked);
    assert_eq!((span_ms(&answer), answer.span.rule), ((0, 1_000), SpanRule::FullAsked));
    assert_eq!((answer.total.counts.ok, answer.segments_count), (100, 1));
    assert_close(answer.total.rates.unwrap().ops.0, 100.0);
}

#[test]
fn latency_counts_from_the_intended_start_and_service_time_from_the_real_one() {
    // From the 51st on, each starts 7 ms after it should have, at the same or at another endpoint.
    for endpoint in [0, 1] {
        let mut ops = back_to_back(0, 0, 1_000, 10);
        for op in ops.iter_mut().skip(50) {
            op.intended = Moment::from_ns(op.start.as_ns() - 7 * MS);
            op.endpoint = EndpointId(endpoint);
        }
        let total = analysis(&ops, &question(1_000, 1)).total;
        assert_eq!((total.latency.min, total.latency.max), (ms(10), ms(17)));
        assert_eq!((total.service().min, total.service().max), (ms(10), ms(10)));
        assert_eq!((total.latency.samples, total.service().samples), (99, 99));
        // 49 of 10 ms and 50 of 17 ms.
        assert_eq!(total.latency.mean, Some(Duration::from_nanos(13_535_354)));
    }
}

/// Ten arrivals 10 ms apart with one in flight at most. The first takes 25 ms, so that the second
/// starts 15 ms and the third 7 ms late; all but the first take 2 ms. The third is throttled.
fn scheduled() -> Vec<OpRecord> {
    let starts = [0, 25, 27, 30, 40, 50, 60, 70, 80, 90];
    let ops = starts.into_iter().zip(0u64..).map(|(start, index)| OpRecord {
        intended: Moment::from_ns(index * 10 * MS),
        outcome: if index == 2 { ErrorClass::Throttled } else { ErrorClass::Ok },
        ..op((index % 3) as u32, start, start + if index == 0 { 25 } else { 2 })
    });
    ops.collect()
}

#[test]
fn an_open_loop_is_measured_whole_and_tells_waiting_from_service() {
    let asked = laid(question(100, 4), Span::AllWorkers, true);
    let answer = analysis(&scheduled(), &asked);
    assert_eq!((span_ms(&answer), answer.span.rule), ((0, 100), SpanRule::Schedule));
    let total = &answer.total;
    assert_close(total.rates.unwrap().ops.0, 90.0);
    // Latencies of 25, 17 and seven times 2 ms; a failure has none, and is late all the same.
    let latency = &total.latency;
    assert_eq!((latency.samples, latency.min, latency.max), (9, ms(2), ms(25)));
    assert_eq!(latency.mean, Some(Duration::from_nanos(6_222_222)));
    assert_eq!(total.service().mean, Some(Duration::from_nanos(4_555_556)));
    let delay = total.schedule_delay.as_ref().unwrap();
    assert_eq!((delay.samples, delay.min, delay.max), (9, ms(0), ms(15)));
    assert_eq!((delay.p50, delay.mean), (ms(0), Some(Duration::from_nanos(1_666_667))));
    assert_eq!(total.stage.late, 2);
    // One of four streams had nothing to do, which is the schedule's choice.
    let advice = |of: &Advice| matches!(of, Advice::IdleWorkers { .. } | Advice::Imbalance { .. });
    assert!(!answer.advice.iter().any(advice), "{:?}", answer.advice);
}

#[test]
fn an_open_loop_has_its_schedule_delay_also_where_there_is_none() {
    let on_time = back_to_back(0, 0, 100, 10);
    let asked = Question { depth: Depth::Details, ..laid(question(100, 1), Span::Whole, true) };
    let answer = analysis(&on_time, &asked);
    let delay = answer.total.schedule_delay.unwrap();
    assert_eq!((delay.samples, delay.max, answer.total.stage.late), (10, ms(0), 0));
    assert_eq!(answer.span.rule, SpanRule::Schedule);
    let figures = &answer.kinds[0].figures;
    assert_eq!(figures.service(), &figures.latency);
    let closed = analysis(&on_time, &Question { depth: Depth::Details, ..question(100, 1) });
    assert_eq!((closed.total.schedule_delay, closed.total.stage.late), (None, 0));
    assert_eq!(closed.kinds[0].figures.service_time, None);
}

#[test]
fn exactly_a_millisecond_is_not_late() {
    let after = |ns| OpRecord { start: Moment::from_ns(5 * MS + ns), ..op(0, 5, 20) };
    let ops = [after(MS), after(MS + 1), after(0)];
    assert_eq!(analysis(&ops, &question(20, 1)).total.stage.late, 1);
}

#[test]
fn percentiles_are_known_once_one_sample_lies_above_them() {
    for (samples, p50, p90, p99, p99_9) in [
        (1, false, false, false, false),
        (2, true, false, false, false),
        (10, true, true, false, false),
        (100, true, true, true, false),
        (999, true, true, true, false),
        (1_000, true, true, true, true),
    ] {
        let ops = back_to_back(0, 0, samples + 1, 1);
        let latency = analysis(&ops, &question(samples + 1, 1)).total.latency;
        assert_eq!(latency.samples, samples);
        let known = [latency.p50, latency.p90, latency.p99, latency.p99_9].map(|p| p.is_some());
        assert_eq!(known, [p50, p90, p99, p99_9], "{samples} samples");
    }
}

#[test]
fn a_stage_without_operations_has_no_figures() {
    let other_stage = OpRecord { stage: StageId(0), ..op(0, 0, 10) };
    let answer = analysis(&[other_stage], &question(0, 4));
    assert_eq!((answer.kinds.len(), answer.endpoints.len()), (0, 0));
    assert_eq!((answer.total.rates, answer.total.segments), (None, None));
    assert_eq!((answer.error_rate(), answer.workers_active), (None, 0));
    assert_eq!(answer.advice, [Advice::NothingDone]);
}

#[test]
fn operations_without_duration_count_once() {
    // A virtual clock may not move while a worker works.
    let ops: Vec<_> = (0..=10).map(|i| op(0, i * 10, i * 10)).collect();
    let answer = analysis(&ops, &segments_of(10, question(100, 1)));
    assert_eq!(span_ms(&answer), (0, 100));
    assert_eq!((answer.total.counts.ok, answer.total.latency.samples), (10, 10));
    assert_close(answer.total.rates.unwrap().ops.0, 100.0);
    assert_close(answer.total.segments.unwrap().slowest.rates.ops.0, 100.0);
}

#[test]
fn long_spans_get_longer_segments() {
    let lengths = [(400, 1), (401, 5), (2_004, 5), (2_005, 15), (6_100, 60), (9_000_000, 10_800)];
    for (span_seconds, expected) in lengths {
        let span_ns = span_seconds * 1_000 * MS;
        let length = question(0, 1).segment_ns(span_ns);
        let count = span_ns / length;
        assert_eq!(length, expected * 1_000 * MS, "{span_seconds} s");
        assert_eq!(count, span_seconds / expected);
    }
    let ops = back_to_back(0, 0, 3_600_000, 1_000);
    let asked = segments_of(1, laid(question(3_600_000, 1), Span::Whole, false));
    let answer = analysis(&ops, &asked);
    assert_eq!((answer.segments_count, answer.segment), (100_000, Duration::from_millis(36)));
    let lengthened = Advice::SegmentLengthened {
        asked: Duration::from_millis(1),
        used: Duration::from_millis(36),
    };
    assert!(answer.advice.contains(&lengthened), "{:?}", answer.advice);
}

#[derive(Clone, Copy, Debug)]
struct Drawn {
    worker: u32,
    start: u64,
    took: u64,
    late: u64,
    kind: usize,
    endpoint: u16,
    bytes: u64,
    outcome: usize,
}

pub(crate) fn drawn() -> impl Strategy<Value = OpRecord> {
    let times = (0u64..3_000_000_000, 0u64..2_000_000_000, prop_oneof![Just(0), 0u64..1_000]);
    let what = (
        0usize..3,
        0u16..2,
        0u64..1 << 24,
        prop_oneof![3 => Just(0), 1 => 0..ErrorClass::ALL.len()],
    );
    (0u32..4, times, what).prop_map(
        |(worker, (start, took, late), (kind, endpoint, bytes, outcome))| {
            let drawn = Drawn { worker, start, took, late, kind, endpoint, bytes, outcome };
            OpRecord {
                kind: OpKind::ALL[drawn.kind],
                endpoint: EndpointId(drawn.endpoint),
                objects_count: drawn.kind as u32 + 1,
                bytes: drawn.bytes,
                intended: Moment::from_ns(drawn.start),
                start: Moment::from_ns(drawn.start + drawn.late),
                end: Moment::from_ns(drawn.start + drawn.late + drawn.took),
                first_byte: None,
                outcome: ErrorClass::ALL[drawn.outcome],
                ..op(drawn.worker, 0, 0)
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_order_of_records_does_not_matter(
        (ops, shuffled) in prop::collection::vec(drawn(), 0..60)
            .prop_flat_map(|ops| (Just(ops.clone()), Just(ops).prop_shuffle())),
        full_span: bool,
        open: bool,
    ) {
        let asked = laid(segments_of(70, question(5_000, 4)), span_of(full_span), open);
        prop_assert_eq!(analysis(&ops, &asked), analysis(&shuffled, &asked));
    }

    #[test]
    fn the_parts_are_the_whole(ops in prop::collection::vec(drawn(), 0..60)) {
        let answer = analysis(&ops, &segments_of(70, question(5_000, 4)));
        let kinds = &answer.kinds;
        let mix: f64 = kinds.iter().filter_map(|kind| kind.mix_percent).sum();
        prop_assert!(answer.total.counts.started == 0 || (mix - 100.0).abs() < 1e-9, "{}", mix);
        let sum = |of: &dyn Fn(&Figures) -> u64| -> (u64, u64, u64) {
            let by_kind = kinds.iter().map(|kind| of(&kind.figures)).sum();
            let by_endpoint = answer.endpoints.iter().map(|at| of(&at.figures)).sum();
            (by_kind, by_endpoint, of(&answer.total))
        };
        let stage_count = |f: &Figures| f.stage.ops_ok + f.stage.failed.count();
        prop_assert_eq!(sum(&stage_count), (ops.len() as u64, ops.len() as u64, ops.len() as u64));
        let counts: [fn(&Figures) -> u64; 3] =
            [|f| f.counts.started, |f| f.counts.ok, |f| f.latency.samples];
        for of in counts {
            let (by_kind, by_endpoint, total) = sum(&of);
            prop_assert_eq!((by_kind, by_endpoint), (total, total));
        }
        prop_assert!(answer.total.latency.samples <= answer.total.counts.ok);
    }

    #[test]
    fn shares_are_the_overlap_in_time(ops in prop::collection::vec(drawn(), 1..60)) {
        let answer = analysis(&ops, &question(5_000, 4));
        let (start, end) = (answer.span.start.as_ns() as f64, answer.span.end.as_ns() as f64);
        let overlap = |op: &OpRecord| {
            let (from, to) = (op.start.as_ns() as f64, op.end.as_ns() as f64);
            if to <= from { return f64::from(u8::from(from > start && from <= end)); }
            ((to.min(end) - from.max(start)) / (to - from)).max(0.0)
        };
        let succeeded = ops.iter().filter(|op| op.outcome.is_ok());
        let bytes: f64 = succeeded.map(|op| op.bytes as f64 * overlap(op)).sum();
        let got = answer.total.rates.unwrap().bytes.0 * (end - start) / 1e9;
        // Each operation is rounded at two borders.
        prop_assert!((got - bytes).abs() <= 2.0 * ops.len() as f64, "{} for {}", got, bytes);
    }
}

#[test]
fn a_span_as_long_as_was_asked_for_is_not_called_too_short() {
    // 10 ms each, for 5 s: the span is 4.98 s, which holds four whole seconds.
    let ops: Vec<OpRecord> = (0..2).flat_map(|worker| back_to_back(worker, 0, 5_000, 10)).collect();
    let is_short = |ends_ms: Option<u64>| {
        let ends = ends_ms.map(|ms| Moment::from_ns(ms * MS));
        let row = RowAsked { workers: 2, span: Span::AllWorkers, open: false, ends };
        let question = Question { rows: Rows::One(row), ..question(5_000, 2) };
        let advice = analysis(&ops, &question).advice;
        advice.iter().any(|of| matches!(of, Advice::ShortSpan { .. }))
    };
    assert_eq!([Some(5_000), Some(10_000), None].map(is_short), [false, true, true]);
}

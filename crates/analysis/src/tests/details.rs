//! What is counted beyond the figures, worked out by hand and held against plain counting.

use plimsoll_stats::Histogram;

use super::*;
use crate::access::AccessTable;

fn detailed(question: Question<'static>) -> Question<'static> {
    Question { depth: Depth::Details, ..question }
}

fn details(ops: &[OpRecord], question: &Question<'_>) -> (RowAnalysis, RowDetails) {
    let answer = analysis(ops, question);
    let details = answer.details.clone().unwrap();
    (answer, details)
}

fn of_object(number: u64, op: OpRecord) -> OpRecord {
    OpRecord { object: Some(ObjectId::new(WorkerId(0), number)), ..op }
}

/// 100 to 450 ms: three whole segments of 100 ms and half a one.
fn three_and_a_half() -> Question<'static> {
    let skip = Duration::from_millis(100);
    let asked = Question { skip, ..laid(question(450, 1), Span::Whole, false) };
    segments_of(100, detailed(asked))
}

#[test]
fn segments_count_what_started_ended_and_was_under_way() {
    let ops = [
        op(0, 0, 100),   // Over when the span begins.
        op(0, 50, 150),  // Under way when it begins.
        op(0, 150, 200), // Ends on a border.
        op(0, 200, 300), // Fills a segment.
        op(0, 180, 220), // Across a border.
        op(0, 110, 390), // Across two.
        op(0, 250, 250), // Without duration.
        op(0, 300, 300), // The same on a border, which belongs to the segment before it.
        op(0, 380, 420), // Out into the remainder.
        op(0, 60, 500),  // Through all.
        op(0, 410, 440), // In the remainder.
        op(0, 430, 450), // There, up to the end.
    ];
    let (answer, details) = details(&ops, &three_and_a_half());
    assert_eq!((span_ms(&answer), answer.segments_count), ((100, 450), 3));
    let series = &details.kinds[0].series;
    let counts = |row: &SegmentRow| (row.started, row.ended, row.full, row.partial);
    let counts: Vec<_> = series.iter().map(counts).collect();
    assert_eq!(counts, [(3, 2, 1, 4), (3, 4, 3, 3), (1, 1, 0, 3)]);
    // Two start and three end in the remainder.
    assert_eq!((answer.total.counts.started, answer.total.counts.ok), (7 + 2, 7 + 3));
    // Half of 50-150, all of 150-200, half of 180-220, 90 of 280, 100 of 440.
    assert_close(series[0].ops, 0.5 + 1.0 + 0.5 + 0.321_428 + 0.227_272);
    let starts: Vec<_> = series.iter().map(|row| row.start.as_ns() / MS).collect();
    assert_eq!((starts, series[2].length), (vec![100, 200, 300], Duration::from_millis(100)));
    // Of those that began in the span: 50; 100, 40, 0, 0; 280.
    let means: Vec<_> = series.iter().map(|row| row.latency_mean).collect();
    assert_eq!(means, [ms(50), ms(35), ms(280)]);
    let medians: Vec<_> = series.iter().map(|row| row.latency_p50).collect();
    assert_eq!(medians, [None, ms(0), None], "one sample has no median");
    // One kind at one endpoint is all there is, but for the percentiles.
    let plain = |row: &SegmentRow| SegmentRow { latency_p50: None, ..row.clone() };
    let plain: Vec<_> = series.iter().map(plain).collect();
    assert_eq!(details.series, plain);
    assert_eq!(
        details.kinds[0].endpoints,
        [EndpointSeries { endpoint: EndpointId(0), series: plain }]
    );
}

#[test]
fn failures_belong_to_the_segment_that_they_end_in() {
    let failed = |outcome, op| OpRecord { outcome, ..op };
    let ops = [
        failed(ErrorClass::Connect, op(0, 90, 100)), // Before the span.
        failed(ErrorClass::Timeout, op(0, 120, 200)),
        failed(ErrorClass::Server, op(0, 120, 201)),
        failed(ErrorClass::Server, op(0, 201, 300)),
        failed(ErrorClass::Reset, op(0, 420, 440)), // In the remainder.
    ];
    let (answer, details) = details(&ops, &three_and_a_half());
    let classes = |row: &SegmentRow| row.failed.classes().collect::<Vec<_>>();
    let classes: Vec<_> = details.series.iter().map(classes).collect();
    let expected = [vec![(ErrorClass::Timeout, 1)], vec![(ErrorClass::Server, 2)], vec![]];
    assert_eq!(classes, expected);
    assert_eq!(answer.total.counts.failed.count(), 4);
    let done = |row: &SegmentRow| row.started + row.ended + row.full + row.partial;
    assert_eq!(details.series.iter().map(done).sum::<u64>(), 0, "failures are nothing done");
}

#[test]
fn a_clock_that_went_backwards_is_no_negative_time() {
    let backwards = OpRecord { end: Moment::from_ns(150 * MS), ..op(0, 250, 250) };
    let (answer, details) = details(&[backwards], &three_and_a_half());
    let counts = |row: &SegmentRow| (row.started, row.ended, row.full, row.partial);
    let counts: Vec<_> = details.series.iter().map(counts).collect();
    assert_eq!(counts, [(0, 0, 0, 0), (1, 1, 1, 0), (0, 0, 0, 0)]);
    assert_eq!((answer.total.counts.ok, answer.total.latency.max), (1, ms(0)));
    let latency = Times { histogram: None, ..answer.total.latency.clone() };
    assert_eq!(details.kinds[0].sizes[0].latency, latency);
}

#[test]
fn size_classes_are_powers_of_two() {
    let kib = 1_024;
    let sized = |bytes, op| OpRecord { bytes, ..op };
    let ops = [
        sized(0, op(0, 0, 10)),
        sized(1, op(0, 10, 20)),
        sized(kib - 1, op(0, 20, 30)),
        sized(kib, op(0, 30, 40)),
        sized(2 * kib - 1, op(0, 40, 60)),
        sized(1 << 62, op(0, 60, 70)),
    ];
    let asked = detailed(laid(question(70, 1), Span::Whole, false));
    let sizes = details(&ops, &asked).1.kinds.remove(0).sizes;
    let limits = |class: &SizeClass| {
        (class.bytes_min, class.bytes_max, class.bytes_smallest, class.bytes_largest)
    };
    let expected = [
        (0, 0, 0, 0),
        (1, 1, 1, 1),
        (512, kib - 1, kib - 1, kib - 1),
        (kib, 2 * kib - 1, kib, 2 * kib - 1),
        (1 << 62, (1 << 63) - 1, 1 << 62, 1 << 62),
    ];
    assert_eq!(sizes.iter().map(limits).collect::<Vec<_>>(), expected);
    // 1,024 bytes in 10 ms and 2,047 in 20 ms: 102,400 and 102,350 a second; 3,071 in 30 ms.
    let class = &sizes[3];
    assert_eq!((class.latency.samples, class.latency.min, class.latency.max), (2, ms(10), ms(20)));
    assert_eq!((class.bytes, class.ttfb.max), (3_071, ms(10)));
    assert_close(class.rate.average.unwrap(), 3_071.0 / 0.03);
    assert_eq!((class.rate.min, class.rate.max), (Some(102_350), Some(102_400)));
    // To 0.1 %, and never outside minimum and maximum.
    let median = class.rate.p50.unwrap();
    assert!((102_350..102_400).contains(&median), "{median}");
    assert_eq!((class.rate.p90_slow, class.rate.p99_slow), (None, None));
}

#[test]
fn an_operation_without_duration_at_the_end_of_the_span_has_its_size() {
    let ops: Vec<_> = (0..=10).map(|i| op(0, i * 10, i * 10)).collect();
    let (answer, details) = details(&ops, &detailed(question(100, 1)));
    assert_eq!((span_ms(&answer), answer.total.latency.samples), ((0, 100), 10));
    assert_eq!(details.kinds[0].sizes[0].latency.samples, 10);
}

#[test]
fn the_first_and_the_last_access_of_each_object() {
    let failed = OpRecord { outcome: ErrorClass::Reset, ..op(0, 0, 400) };
    let nameless = OpRecord { object: None, ..op(0, 0, 300) };
    let ops = [
        of_object(1, op(0, 30, 60)),
        of_object(1, op(0, 0, 10)),
        of_object(1, op(0, 10, 30)),
        of_object(2, op(0, 60, 64)),
        of_object(3, failed),
        of_object(3, op(0, 70, 72)),
        of_object(3, op(0, 100, 106)),
        nameless,
    ];
    // Accesses count over the whole stage, whatever the span.
    let asked = Question { skip: Duration::from_millis(90), ..detailed(question(400, 1)) };
    let access = details(&ops, &asked).1.kinds.remove(0).access.unwrap();
    assert_eq!((access.objects_count, access.sampled_one_in), (3, 1));
    // First: 10, 4 and 2 ms; last: 30, 4 and 6; the first byte comes after half of each.
    let mean = |sum_ms: u64| Some(Duration::from_nanos((sum_ms * MS + 1) / 3));
    let first = (access.first.min, access.first.p50, access.first.max, access.first.mean);
    assert_eq!((first.0, first.2, first.3), (ms(2), ms(10), mean(16)));
    let last = (access.last.min, access.last.p50, access.last.max, access.last.mean);
    assert_eq!((last.0, last.2, last.3), (ms(4), ms(30), mean(40)));
    assert_eq!((access.first_ttfb.max, access.last_ttfb.max), (ms(5), ms(15)));
    assert_eq!((access.first_ttfb.samples, access.last_ttfb.samples), (3, 3));
    let once = [of_object(1, op(0, 0, 10)), of_object(2, op(0, 10, 20)), of_object(3, failed)];
    assert_eq!(details(&once, &asked).1.kinds[0].access, None);
}

#[test]
fn of_many_objects_the_same_part_is_followed_in_any_order() {
    // Two accesses of each: the first takes 10 ms, the last 20 ms.
    const OBJECTS: u64 = 200_000;
    let first = (0..OBJECTS).map(|number| of_object(number, op(0, 0, 10)));
    let last = (0..OBJECTS).map(|number| of_object(number, op(0, 10, 30)));
    let ops: Vec<_> = first.chain(last).collect();
    let (mut forwards, mut backwards) = (AccessTable::default(), AccessTable::default());
    ops.iter().for_each(|op| forwards.add(op));
    ops.iter().rev().for_each(|op| backwards.add(op));
    let access = forwards.summary().unwrap();
    assert_eq!(backwards.summary().unwrap(), access);
    // 131,072 are followed at most, so every second one: 100,000, give or take five times 224.
    assert_eq!(access.sampled_one_in, 2);
    assert!(access.objects_count.abs_diff(OBJECTS / 2) < 1_120, "{}", access.objects_count);
    assert_eq!((access.first.min, access.first.max), (ms(10), ms(10)));
    assert_eq!((access.last.min, access.last.max), (ms(20), ms(20)));
    assert_eq!(access.first.samples, access.objects_count);
}

#[test]
fn clients_are_told_apart_by_their_workers() {
    let ops: Vec<_> = (0..4).flat_map(|worker| back_to_back(worker, 0, 1_000, 10)).collect();
    let asked = Question { client_of: &[0, 2, 0, 0], ..detailed(question(1_000, 4)) };
    let (answer, details) = details(&ops, &asked);
    let rates = |client: &ClientDetails| (client.client, client.total.rates.unwrap().ops.0);
    let [three, one] = &details.clients[..] else { panic!("{:?}", details.clients) };
    assert_eq!((rates(three), rates(one)), ((0, 300.0), (2, 100.0)));
    assert_eq!(one.kinds, [ClientKind { kind: OpKind::Get, figures: one.total.clone() }]);
    assert_close(answer.total.rates.unwrap().ops.0, 400.0);
    let alone = Question { client_of: &[1, 1, 1, 1], ..asked };
    assert_eq!(super::details::details(&ops, &alone).1.clients, []);
}

#[test]
fn filters_leave_the_span_as_it_is() {
    let put = |op| OpRecord { kind: OpKind::Put, endpoint: EndpointId(1), ..op };
    let ops: Vec<_> = back_to_back(0, 0, 1_000, 10)
        .into_iter()
        .chain(back_to_back(1, 50, 850, 20).into_iter().map(put))
        .collect();
    let plain = detailed(question(1_000, 2));
    let whole = analysis(&ops, &plain);
    assert_eq!(span_ms(&whole), (70, 850));
    let puts = &whole.kinds[0];
    assert_eq!((puts.kind, puts.figures.counts.ok), (OpKind::Put, 39));
    let by_kind = Question { kind: Some(OpKind::Put), ..plain };
    let by_endpoint = Question { endpoint: Some(EndpointId(1)), ..plain };
    for asked in [by_kind, by_endpoint] {
        let answer = analysis(&ops, &asked);
        assert_eq!((answer.span, answer.workers_active), (whole.span, 2));
        assert_eq!((answer.kinds.len(), &answer.kinds[0].figures), (1, &puts.figures));
        assert_eq!((&answer.total, answer.endpoints.len()), (&puts.figures, 1));
        let (all, filtered) = (whole.details.as_ref().unwrap(), answer.details.unwrap());
        assert_eq!(filtered.kinds, all.kinds[..1]);
    }
}

#[test]
fn skipping_moves_the_start_of_the_span() {
    let ops = back_to_back(0, 0, 1_000, 10);
    for (skip_ms, full_span, expected) in [
        (0, false, (10, 1_000)),
        (5, false, (10, 1_000)),
        (500, false, (500, 1_000)),
        (500, true, (500, 1_000)),
        (2_000, false, (1_000, 1_000)),
    ] {
        let skip = Duration::from_millis(skip_ms);
        let answer = analysis(
            &ops,
            &Question { skip, ..laid(question(1_000, 1), span_of(full_span), false) },
        );
        assert_eq!(span_ms(&answer), expected, "{skip_ms} ms");
        let rate = answer.total.rates.map(|rates| rates.ops.0);
        assert_eq!(rate, (skip_ms < 1_000).then_some(100.0), "{skip_ms} ms");
        assert_eq!(answer.total.stage.ops_ok, 100);
    }
}

#[test]
fn several_stages_are_taken_as_one() {
    let one: Vec<_> = (0..2).flat_map(|worker| back_to_back(worker, 0, 1_000, 10)).collect();
    let later = |op: &OpRecord| OpRecord {
        stage: if op.start.as_ns() < 500 * MS { StageId(1) } else { StageId(70) },
        ..*op
    };
    let parted: Vec<_> = one.iter().map(later).collect();
    let other = OpRecord { stage: StageId(2), ..op(9, 0, 5) };
    let parted: Vec<_> = parted.into_iter().chain([other]).collect();
    let asked = detailed(question(1_000, 2));
    let both = Question { stages: [StageId(1), StageId(70)].into_iter().collect(), ..asked };
    assert_eq!(analysis(&parted, &both), analysis(&one, &asked));
}

#[test]
fn a_percentile_has_samples_on_its_far_side() {
    let of = |count: u64| {
        let mut times = Histogram::new();
        (1..=count).for_each(|ns| times.record(ns));
        let times = Times::of(&times, false);
        Times::PERCENTS.map(|percent| (percent, times.percentile(percent)))
    };
    let known = |count| {
        let known = of(count).into_iter().filter(|(_, time)| time.is_some());
        known.map(|(percent, _)| percent).collect::<Vec<_>>()
    };
    assert_eq!(known(1), [0.0; 0]);
    assert_eq!(known(2), [50.0]);
    assert_eq!(known(10), [25.0, 50.0, 75.0, 90.0]);
    assert_eq!(known(20), [10.0, 25.0, 50.0, 75.0, 90.0, 95.0]);
    assert_eq!(known(100), [5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0]);
    assert_eq!(known(9_999), Times::PERCENTS[..10]);
    assert_eq!(known(10_000), Times::PERCENTS);
    // Ranks of 1 to 1,000, which the histogram keeps one by one.
    let times: Vec<_> = of(1_000).into_iter().map(|(_, time)| time.map(super::ns)).collect();
    let ranks = [10, 50, 100, 250, 500, 750, 900, 950, 990, 999].map(Some);
    assert_eq!(times, ranks.into_iter().chain([None]).collect::<Vec<_>>());
}

/// What plain counting says about one stretch: started, ended, full, partial, failed.
fn counted(ops: &[OpRecord], from: u64, to: u64) -> (u64, u64, u64, u64, u64) {
    let mut counts = (0, 0, 0, 0, 0);
    for op in ops {
        let (start, end) = (op.start.as_ns(), op.end.as_ns());
        let ended = end > from && end <= to;
        if !op.outcome.is_ok() {
            counts.4 += u64::from(ended);
            continue;
        }
        let started = if start == end { ended } else { start >= from && start < to };
        let touches = ended || started || (start < from && end > to);
        counts.0 += u64::from(started);
        counts.1 += u64::from(ended);
        counts.2 += u64::from(started && ended);
        counts.3 += u64::from(touches && !(started && ended));
    }
    counts
}

/// An operation on a grid of 10 ms, so that it often lies on borders.
fn on_a_grid() -> impl Strategy<Value = OpRecord> {
    (drawn(), 0u64..60, 0u64..30).prop_map(|(drawn, start, took)| {
        let start = Moment::from_ns(start * 10 * MS);
        let end = start.after(Duration::from_millis(took * 10));
        OpRecord { intended: start, start, end, ..drawn }
    })
}

/// Sizes of every magnitude, and often a power of two or its neighbour.
fn sized() -> impl Strategy<Value = OpRecord> {
    let bytes = (0u32..40, -1i64..=1, any::<bool>()).prop_map(|(bits, beside, around)| {
        let power = 1u64 << bits;
        if around { power.saturating_add_signed(beside) } else { power | (power / 3) }
    });
    (on_a_grid(), bytes).prop_map(|(op, bytes)| OpRecord { bytes, first_byte: Some(op.end), ..op })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn segments_hold_what_plain_counting_finds(ops in prop::collection::vec(on_a_grid(), 1..40)) {
        let asked = segments_of(50, detailed(question(900, 4)));
        let (answer, details) = details(&ops, &asked);
        prop_assert_eq!(details.series.len() as u64, answer.segments_count);
        for row in &details.series {
            let from = row.start.as_ns();
            let got = (row.started, row.ended, row.full, row.partial, row.failed.count());
            prop_assert_eq!(got, counted(&ops, from, from + 50 * MS), "from {} ms", from / MS);
        }
    }

    #[test]
    fn segments_add_up_to_the_span(ops in prop::collection::vec(on_a_grid(), 1..40)) {
        // The span begins and ends on the grid, so segments of 10 ms leave no remainder.
        let (answer, details) = details(&ops, &segments_of(10, detailed(question(900, 4))));
        let sum = |of: fn(&SegmentRow) -> u64| details.series.iter().map(of).sum::<u64>();
        let total = &answer.total;
        prop_assert_eq!(sum(|row| row.ended), total.counts.ok);
        prop_assert_eq!(sum(|row| row.failed.count()), total.counts.failed.count());
        let seconds = answer.span.length().as_secs_f64();
        let rates = total.rates.unwrap();
        let bytes = sum(|row| row.bytes) as f64;
        prop_assert!((bytes - rates.bytes.0 * seconds).abs() < 1.0, "{} bytes", bytes);
        let done: f64 = details.series.iter().map(|row| row.ops).sum();
        prop_assert!((done - rates.ops.0 * seconds).abs() < 1e-6, "{} operations", done);
        let started = |op: &&OpRecord| {
            op.outcome.is_ok() && op.start < op.end
                && op.start >= answer.span.start && op.start < answer.span.end
        };
        let instant = |op: &&OpRecord| {
            op.outcome.is_ok() && op.start == op.end
                && op.end > answer.span.start && op.end <= answer.span.end
        };
        let expected = ops.iter().filter(|op| started(op) || instant(op)).count() as u64;
        prop_assert_eq!(sum(|row| row.started), expected);
        // Kinds and endpoints are parts of the whole.
        for (index, whole) in details.series.iter().enumerate() {
            let of_kinds = details.kinds.iter().map(|kind| &kind.series[index]);
            prop_assert_eq!(of_kinds.map(|row| row.partial).sum::<u64>(), whole.partial);
            let endpoints = details.kinds.iter().flat_map(|kind| &kind.endpoints);
            let of_endpoints = endpoints.map(|at| &at.series[index]);
            prop_assert_eq!(of_endpoints.map(|row| row.full).sum::<u64>(), whole.full);
        }
    }

    #[test]
    fn size_classes_are_all_samples_once(ops in prop::collection::vec(sized(), 0..60)) {
        let (answer, details) = details(&ops, &detailed(question(900, 4)));
        let inside = |op: &&OpRecord| {
            op.outcome.is_ok() && op.start >= answer.span.start
                && op.end > answer.span.start && op.end <= answer.span.end
        };
        for (kind, detail) in answer.kinds.iter().zip(&details.kinds) {
            if !kind.kind.moves_bytes() {
                prop_assert_eq!(&detail.sizes, &[]);
                continue;
            }
            let samples = detail.sizes.iter().map(|class| class.latency.samples);
            prop_assert_eq!(samples.sum::<u64>(), kind.figures.latency.samples);
            let first_bytes = detail.sizes.iter().map(|class| class.ttfb.samples);
            prop_assert_eq!(first_bytes.sum::<u64>(), kind.figures.ttfb.samples);
            let latency = kind.figures.latency.histogram.as_ref().unwrap();
            prop_assert_eq!(latency.count(), kind.figures.latency.samples);
            for pair in detail.sizes.windows(2) {
                prop_assert!(pair[0].bytes_max < pair[1].bytes_min);
            }
            for class in &detail.sizes {
                let limits = class.bytes_min..=class.bytes_max;
                let own = ops.iter().filter(inside).filter(|op| op.kind == kind.kind);
                let own: Vec<_> =
                    own.map(|op| op.bytes).filter(|bytes| limits.contains(bytes)).collect();
                prop_assert_eq!(own.len() as u64, class.latency.samples);
                prop_assert_eq!(own.iter().sum::<u64>(), class.bytes);
                let limits = (own.iter().min(), own.iter().max());
                let seen = (Some(&class.bytes_smallest), Some(&class.bytes_largest));
                prop_assert_eq!(limits, seen);
            }
        }
    }

    #[test]
    fn clients_add_up_to_the_total(ops in prop::collection::vec(drawn(), 0..60)) {
        let asked = Question { client_of: &[0, 1, 1, 2], ..detailed(question(5_000, 4)) };
        let (answer, details) = details(&ops, &asked);
        let seen: std::collections::BTreeSet<u32> =
            ops.iter().map(|op| [0, 1, 1, 2][op.worker.0 as usize]).collect();
        if seen.len() < 2 {
            prop_assert_eq!(details.clients, []);
            return Ok(());
        }
        prop_assert_eq!(details.clients.len(), seen.len());
        let counts: [fn(&Figures) -> u64; 6] = [
            |f| f.counts.started,
            |f| f.counts.ok,
            |f| f.counts.failed.count(),
            |f| f.stage.bytes,
            |f| f.stage.failed.count(),
            |f| f.latency.samples,
        ];
        for of in counts {
            let clients = details.clients.iter();
            let whole: u64 = clients.clone().map(|client| of(&client.total)).sum();
            let kinds: u64 =
                clients.flat_map(|client| &client.kinds).map(|kind| of(&kind.figures)).sum();
            prop_assert_eq!((whole, kinds), (of(&answer.total), of(&answer.total)));
        }
    }

    #[test]
    fn the_order_of_records_does_not_matter_to_details(
        (ops, shuffled) in prop::collection::vec((drawn(), 0u64..5), 0..60)
            .prop_map(|ops| ops.into_iter().map(|(op, number)| of_object(number, op)))
            .prop_map(|ops| ops.collect::<Vec<_>>())
            .prop_flat_map(|ops| (Just(ops.clone()), Just(ops).prop_shuffle())),
    ) {
        let asked = segments_of(70, detailed(question(5_000, 4)));
        let asked = Question { client_of: &[0, 0, 1, 2], ..asked };
        prop_assert_eq!(analysis(&ops, &asked), analysis(&shuffled, &asked));
    }

    #[test]
    fn accesses_are_the_earliest_and_the_latest(
        ops in prop::collection::vec((drawn(), 0u64..5), 0..40),
    ) {
        let get = |(op, number)| of_object(number, OpRecord { kind: OpKind::Get, ..op });
        let ops: Vec<_> = ops.into_iter().map(get).collect();
        let (_, details) = details(&ops, &detailed(question(5_000, 4)));
        let good: Vec<_> = ops.iter().filter(|op| op.outcome.is_ok()).collect();
        let of = |number| {
            let object = Some(ObjectId::new(WorkerId(0), number));
            good.iter().filter(move |op| op.object == object)
        };
        let again = (0..5).any(|number| of(number).count() > 1);
        let Some(access) = details.kinds.first().and_then(|kind| kind.access.clone()) else {
            prop_assert!(!again);
            return Ok(());
        };
        prop_assert!(again);
        let slowest = |latencies: &mut dyn Iterator<Item = Duration>| latencies.max();
        let mut first =
            (0..5).filter_map(|number| of(number).min_by_key(|op| op.start)).map(|op| op.latency());
        let mut last =
            (0..5).filter_map(|number| of(number).max_by_key(|op| op.start)).map(|op| op.latency());
        prop_assert_eq!(access.first.max, slowest(&mut first));
        prop_assert_eq!(access.last.max, slowest(&mut last));
    }
}

//! Small records worked out by hand.

use std::time::Duration;

use plimsoll_model::{
    EndpointId, ErrorClass, Moment, ObjectId, OpKind, OpRecord, StageId, WorkerId,
};

use super::*;

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Moment {
    Moment::from_ns(ms * MS)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A success of 4 KiB.
fn op(worker: u32, kind: OpKind, start_ms: u64, end_ms: u64) -> OpRecord {
    OpRecord {
        stage: StageId(3),
        worker: WorkerId(worker),
        object: Some(ObjectId::new(WorkerId(0), 0)),
        bytes: if kind.moves_bytes() { 4_096 } else { 0 },
        ..OpRecord::plain(kind, at(start_ms), at(end_ms))
    }
}

fn workers(rows: &[(u32, u64)]) -> Vec<Option<WorkerRow>> {
    let row = |&(row, measured_from_ms)| {
        Some(WorkerRow { row, measured_from: at(measured_from_ms), measured_until: None })
    };
    rows.iter().map(row).collect()
}

/// Returns the rows of these workers, measured from their ramps on.
fn rows(workers: &[Option<WorkerRow>]) -> Vec<RowAsked> {
    let count = workers.iter().flatten().map(|of| of.row + 1).max().unwrap_or(0);
    let of_row = |row| workers.iter().flatten().filter(|of| of.row == row).count() as u32;
    let asked =
        |row| RowAsked { workers: of_row(row), span: Span::FromRamps, open: false, ends: None };
    (0..count).map(asked).collect()
}

fn ask<'a>(
    workers: &'a [Option<WorkerRow>],
    rows: &'a [RowAsked],
    (from_ms, until_ms): (u64, u64),
) -> Question<'a> {
    Question {
        rows: Rows::Several { workers, rows },
        segment: Some(ms(500)),
        depth: Depth::Distributions,
        ..Question::about(StageId(3), at(from_ms), at(until_ms), 0)
    }
}

fn answer(ops: &[OpRecord], question: Question<'_>) -> StageAnalysis {
    let Ok(answer) = analyze(ops, &question);
    answer
}

/// Where a segment begins after a moment, how much of it counts, and what ended in it.
fn ended(series: &[SegmentRow], from_ms: u64) -> Vec<(Duration, Duration, u64)> {
    series.iter().map(|row| (row.start.since(at(from_ms)), row.length, row.ended)).collect()
}

/// Returns operations a second in each whole segment.
fn whole_rates(series: &[SegmentRow], whole: Duration) -> Vec<f64> {
    let whole = series.iter().filter(|row| row.length == whole);
    whole.map(|row| row.ended as f64 / row.length.as_secs_f64()).collect()
}

fn ops_per_sec(figures: &Figures) -> Option<f64> {
    figures.rates.map(|rates| rates.ops.0)
}

fn bytes_per_sec(figures: &Figures) -> Option<f64> {
    figures.rates.map(|rates| rates.bytes.0)
}

/// Two workers from 1,000 ms on: one is done after 3 creates of 100 ms, the other after 8.
fn two_workers() -> Vec<OpRecord> {
    let of = |worker, count: u64| {
        (0..count).map(move |i| op(worker, OpKind::Create, 1_000 + i * 100, 1_100 + i * 100))
    };
    of(0, 3).chain(of(1, 8)).collect()
}

#[test]
fn first_and_last_done_are_where_the_workers_end() {
    let workers = workers(&[(0, 1_000), (0, 1_000)]);
    let answer = answer(&two_workers(), ask(&workers, &rows(&workers), (1_000, 1_800)));
    let row = &answer.rows[0];
    assert_eq!((row.workers_count, row.workers_active), (2, 2));
    assert_eq!((row.began(), row.took()), (Some(Duration::ZERO), Some(ms(800))));
    assert_eq!((row.worker_took_max, row.worker_took_sum), (Some(ms(800)), ms(300 + 800)));
    let create = &row.kind(OpKind::Create).unwrap().figures;
    assert_eq!((create.stage.ops_ok, create.stage.bytes), (11, 11 * 4_096));
    assert_eq!(ops_per_sec(create), Some(11.0 / 0.8));
    assert_eq!(bytes_per_sec(create), Some(11.0 * 4_096.0 / 0.8));
    // At 300 ms both have ended three: 6 in 0.3 s.
    let first = create.first_done.unwrap();
    assert_eq!((first.after, first.ops, first.bytes), (ms(300), 6, 6 * 4_096));
    assert_eq!((first.ops_per_sec, first.bytes_per_sec), (Some(20.0), Some(81_920.0)));
    let last = create.last_done.unwrap();
    assert_eq!((last.after, last.ops, last.ops_per_sec), (ms(800), 11, ops_per_sec(create)));
    assert_eq!(create.latency.mean, Some(ms(100)));
    assert_eq!(create.service(), &create.latency);
}

#[test]
fn windows_are_of_what_ended_in_them() {
    let workers = workers(&[(0, 1_000), (0, 1_000)]);
    let answer = answer(&two_workers(), ask(&workers, &rows(&workers), (1_000, 1_800)));
    let series = &answer.rows[0].details.as_ref().unwrap().kinds[0].series;
    // Until 500 ms worker 0 ends 3 and worker 1 ends 5, one of them at 500 ms itself.
    assert_eq!(ended(series, 1_000), [(ms(0), ms(500), 8), (ms(500), ms(300), 3)]);
    assert_eq!(series.iter().map(|row| row.bytes).collect::<Vec<_>>(), [8 * 4_096, 3 * 4_096]);
    assert!(series.iter().all(|row| row.latency_mean == Some(ms(100))));
    // Only the first is whole.
    assert_eq!(whole_rates(series, ms(500)), [16.0]);
    let picked = answer.rows[0].total.segments.unwrap();
    assert_eq!((picked.fastest, picked.slowest.rates.ops.0), (picked.slowest, 16.0));
}

#[test]
fn a_pause_is_a_window_of_nothing() {
    let workers = workers(&[(0, 200)]);
    let ops = [op(0, OpKind::Read, 200, 400), op(0, OpKind::Read, 400, 2_500)];
    let rows = rows(&workers);
    let question = Question { segment: Some(ms(250)), ..ask(&workers, &rows, (0, 2_500)) };
    let row = &answer(&ops, question).rows[0];
    let series = &row.details.as_ref().unwrap().kinds[0].series;
    let windows = ended(series, 0);
    assert_eq!(windows.len(), 10);
    // The measuring began 50 ms before the first window was over.
    assert_eq!(windows[0], (ms(0), ms(50), 0));
    assert_eq!((windows[1].0, windows[1].2), (ms(250), 1));
    assert_eq!(series[5].latency_mean, None);
    assert_eq!((windows[9].1, windows[9].2), (ms(250), 1));
    // Of 9 whole windows 7 are empty; two have one operation in a quarter of a second.
    let rates = whole_rates(series, ms(250));
    assert_eq!((rates.len(), rates.iter().sum::<f64>()), (9, 8.0));
    assert_eq!(rates.iter().filter(|rate| **rate == 0.0).count(), 7);
}

#[test]
fn failures_are_counted_and_are_in_nothing_else() {
    let workers = workers(&[(0, 0)]);
    let mut ops = vec![op(0, OpKind::Write, 0, 100), op(0, OpKind::Write, 100, 200)];
    ops.push(OpRecord { outcome: ErrorClass::Io, ..op(0, OpKind::Write, 200, 1_000) });
    ops.push(OpRecord { outcome: ErrorClass::Corrupt, ..op(0, OpKind::Read, 1_000, 1_600) });
    let row = &answer(&ops, ask(&workers, &rows(&workers), (0, 1_600))).rows[0];
    let write = &row.kind(OpKind::Write).unwrap().figures;
    let counts = &write.stage;
    assert_eq!((counts.ops_ok, counts.failed.count(), counts.bytes), (2, 1, 8_192));
    assert_eq!(counts.failed.of(ErrorClass::Io), 1);
    // The time that failures took is still time in which nothing was done.
    assert_eq!((row.took(), ops_per_sec(write)), (Some(ms(1_600)), Some(1.25)));
    assert_eq!((write.latency.samples, write.latency.max), (2, Some(ms(100))));
    let series = &row.details.as_ref().unwrap().series;
    assert_eq!(series.iter().map(|row| row.ended).sum::<u64>(), 2);
    let read = &row.kind(OpKind::Read).unwrap().figures;
    assert_eq!((read.stage.ops_ok, read.stage.failed.of(ErrorClass::Corrupt)), (0, 1));
    assert_eq!((ops_per_sec(read), read.latency.mean), (Some(0.0), None));
}

#[test]
fn what_starts_in_a_ramp_is_in_no_figure() {
    // Worker 0 has a ramp of 1 s, worker 1 begins after 500 ms and has one of 700 ms.
    let workers = workers(&[(0, 1_000), (0, 1_200)]);
    let ops = [
        op(0, OpKind::Read, 0, 900),
        OpRecord { outcome: ErrorClass::Io, ..op(0, OpKind::Read, 900, 950) },
        // It is under way when the ramp ends.
        op(0, OpKind::Read, 950, 1_400),
        op(0, OpKind::Read, 1_400, 1_600),
        op(1, OpKind::Read, 1_000, 1_150),
        // It starts with the end of the ramp.
        op(1, OpKind::Read, 1_200, 2_000),
    ];
    let row = &answer(&ops, ask(&workers, &rows(&workers), (0, 2_000))).rows[0];
    assert_eq!((row.ramp.ops_ok, row.ramp.failed.count()), (3, 1));
    assert_eq!((row.began(), row.took()), (Some(ms(1_000)), Some(ms(1_000))));
    assert_eq!((row.worker_took_max, row.worker_took_sum), (Some(ms(800)), ms(600 + 800)));
    let read = &row.kinds[0].figures;
    let counts = (read.stage.ops_ok, read.stage.failed.count());
    assert_eq!((counts, ops_per_sec(read)), ((2, 0), Some(2.0)));
    let first = read.first_done.unwrap();
    assert_eq!((first.after, first.ops, first.ops_per_sec), (ms(1_600), 1, Some(1.0 / 0.6)));
    // The windows begin with the measuring.
    let series = &row.details.as_ref().unwrap().kinds[0].series;
    let windows: Vec<_> = ended(series, 0).iter().map(|each| (each.0, each.2)).collect();
    assert_eq!(windows, [(ms(1_000), 0), (ms(1_500), 2)]);
}

#[test]
fn what_starts_after_the_duration_is_in_no_figure_either() {
    let mut workers = workers(&[(0, 1_000), (0, 1_000)]);
    workers.iter_mut().flatten().for_each(|row| row.measured_until = Some(at(2_000)));
    let ops = [
        op(0, OpKind::Read, 900, 1_000),
        op(0, OpKind::Read, 1_000, 1_500),
        // It is under way when the duration ends.
        op(0, OpKind::Read, 1_500, 2_100),
        op(0, OpKind::Read, 2_100, 2_900),
        op(1, OpKind::Read, 1_000, 1_900),
        OpRecord { outcome: ErrorClass::Io, ..op(1, OpKind::Read, 2_000, 2_400) },
    ];
    for span in [Span::FromRamps, Span::Whole, Span::AllWorkers] {
        let mut asked = rows(&workers);
        asked.iter_mut().for_each(|row| row.span = span);
        let row = &answer(&ops, ask(&workers, &asked, (0, 3_000))).rows[0];
        assert_eq!((row.ramp.ops_ok, row.ramp.failed.count()), (2, 1), "{span:?}");
        let read = &row.kinds[0].figures;
        assert_eq!((read.stage.ops_ok, read.stage.failed.count()), (3, 0), "{span:?}");
        let began = row.began().unwrap();
        // With --full-span no worker has an end of its own.
        let ended = if span == Span::Whole { 3_000 } else { 2_000 };
        assert_eq!(began + row.took().unwrap(), ms(ended), "{span:?}");
    }
}

/// Two open loops in a stage of 20 s: one has a ramp of 2 s and ends after 7 s, the other ends with
/// its last operation.
#[test]
fn a_row_is_measured_from_its_own_ramp_to_its_own_end() {
    let workers = workers(&[(0, 2_000), (1, 0)]);
    let mut asked = rows(&workers);
    asked.iter_mut().for_each(|row| (row.open, row.span) = (true, Span::AllWorkers));
    asked[0].ends = Some(Moment::from_ns(7_000_000_000));
    let ops = [
        op(0, OpKind::Get, 500, 600),
        op(0, OpKind::Get, 2_500, 2_600),
        op(0, OpKind::Get, 5_500, 5_600),
        op(1, OpKind::Stat, 1_000, 1_100),
        op(1, OpKind::Stat, 9_000, 10_000),
    ];
    let all = answer(&ops, ask(&workers, &asked, (0, 20_000)));
    let span = |row: &RowAnalysis| {
        let since = |at: Moment| at.since(Moment::from_ns(0));
        (since(row.span.start), since(row.span.end), row.span.rule)
    };
    assert_eq!(span(&all.rows[0]), (ms(2_000), ms(7_000), SpanRule::Schedule));
    assert_eq!(span(&all.rows[1]), (ms(0), ms(10_000), SpanRule::Schedule));
    assert_eq!(ops_per_sec(&all.rows[0].kinds[0].figures), Some(2.0 / 5.0));
    assert_eq!(ops_per_sec(&all.rows[1].kinds[0].figures), Some(2.0 / 10.0));
    // Closed loops that hardly ran together are measured over their own stretch too.
    asked.iter_mut().for_each(|row| row.open = false);
    let all = answer(&ops, ask(&workers, &asked, (0, 20_000)));
    assert_eq!(span(&all.rows[0]), (ms(2_000), ms(5_600), SpanRule::AllWorkers));
    asked.iter_mut().for_each(|row| row.span = Span::Whole);
    let all = answer(&ops, ask(&workers, &asked, (0, 20_000)));
    assert_eq!(span(&all.rows[0]), (ms(2_000), ms(20_000), SpanRule::FullAsked));
}

#[test]
fn stages_and_rows_stay_apart() {
    let of = workers(&[(0, 0), (2, 0)]);
    let later = workers(&[(0, 5_000)]);
    let (of_rows, later_rows) = (rows(&of), rows(&later));
    let second = Question { stages: StageId(4).into(), ..ask(&later, &later_rows, (5_000, 6_000)) };
    let ops = [
        op(0, OpKind::Write, 0, 10),
        op(1, OpKind::Read, 0, 1_000),
        op(1, OpKind::Sync, 1_000, 1_500),
        // A worker that nobody knows, and a stage that nobody asks about.
        op(7, OpKind::Read, 0, 5),
        OpRecord { stage: StageId(9), ..op(0, OpKind::Read, 0, 5) },
        OpRecord {
            stage: StageId(4),
            endpoint: EndpointId(2),
            ..op(0, OpKind::Stat, 5_000, 5_001)
        },
    ];
    let Ok(survey) = Survey::of(&ops[..]);
    let asked = [ask(&of, &of_rows, (0, 1_500)), second];
    let Ok(answers) = measure(&ops[..], &survey, &asked);
    assert_eq!(answers.len(), 2);
    let rows = &answers[0].rows;
    assert_eq!(rows.len(), 3);
    let kinds = |row: usize| rows[row].kinds.iter().map(|each| each.kind).collect::<Vec<_>>();
    assert_eq!(
        (kinds(0), kinds(1), kinds(2)),
        (vec![OpKind::Write], vec![], vec![OpKind::Read, OpKind::Sync])
    );
    // Nobody is in row 1; row 0 has ended long before row 2.
    assert_eq!((rows[1].workers_count, rows[1].took(), rows[1].clients.len()), (0, None, 0));
    assert_eq!((rows[0].took(), rows[2].took()), (Some(ms(10)), Some(ms(1_500))));
    // What a sync at the end takes is part of the time of all kinds.
    assert_eq!(ops_per_sec(&rows[2].kinds[0].figures), Some(1.0 / 1.5));
    assert!(!rows[2].kinds[1].figures.moves_bytes);
    let endpoints = answers[1].rows[0].endpoints.iter().map(|at| at.endpoint);
    assert_eq!(endpoints.collect::<Vec<_>>(), [EndpointId(2)]);
    assert_eq!(ops_per_sec(&answers[1].rows[0].kinds[0].figures), Some(1_000.0));
}

#[test]
fn clients_are_those_whose_workers_did_something() {
    let workers = workers(&[(0, 0), (0, 0), (0, 0)]);
    let ops = [op(0, OpKind::Stat, 0, 1), op(2, OpKind::Stat, 0, 1)];
    let rows = rows(&workers);
    let asked = Question { client_of: &[0, 1, 3], ..ask(&workers, &rows, (0, 1)) };
    let row = &answer(&ops, asked).rows[0];
    assert_eq!((&row.clients[..], row.clients.len(), row.workers_active), (&[0, 3][..], 2, 2));
    let row = &answer(&ops, ask(&workers, &rows, (0, 1))).rows[0];
    assert_eq!(row.clients, [0]);
}

#[test]
fn numbers_of_nobody_between_the_workers_of_two_clients_count_for_nothing() {
    // The first client has room for three workers and here one, the second began 2 s later.
    let mut workers = workers(&[(0, 1_000), (0, 0), (0, 0), (0, 3_000), (1, 3_000)]);
    (workers[1], workers[2]) = (None, None);
    let ops = [
        op(0, OpKind::Stat, 1_000, 2_000),
        op(1, OpKind::Stat, 1_000, 9_000),
        op(3, OpKind::Stat, 3_000, 4_000),
        op(4, OpKind::Open, 3_000, 3_500),
        op(5, OpKind::Open, 3_000, 9_000),
    ];
    let rows = rows(&workers);
    let asked = ask(&workers, &rows, (1_000, 9_000));
    let rows = answer(&ops, Question { client_of: &[0, 0, 0, 1, 1], ..asked }).rows;
    let stat = &rows[0];
    assert_eq!((stat.workers_count, stat.workers_active), (2, 2));
    assert_eq!((&stat.clients[..], stat.total.stage.ops_ok), (&[0, 1][..], 2));
    // From the beginning of the first to the end of the last, and each from its own.
    assert_eq!((stat.began(), stat.took()), (Some(Duration::ZERO), Some(ms(3_000))));
    assert_eq!((stat.worker_took_max, stat.worker_took_sum), (Some(ms(1_000)), ms(2_000)));
    assert_eq!((&rows[1].clients[..], rows[1].total.stage.ops_ok), (&[1][..], 1));
}

#[test]
fn an_open_loop_has_latency_from_the_intended_start() {
    let workers = workers(&[(0, 0)]);
    let ops = [
        op(0, OpKind::Read, 0, 10),
        OpRecord { intended: at(5), ..op(0, OpKind::Read, 10, 20) },
        op(0, OpKind::Read, 30, 40),
    ];
    let read = &answer(&ops, ask(&workers, &rows(&workers), (0, 40))).rows[0].kinds[0].figures;
    assert_eq!((read.latency.max, read.service().max), (Some(ms(15)), Some(ms(10))));
    assert_eq!((read.latency.samples, read.service().samples), (3, 3));
}

#[test]
fn percentiles_need_a_sample_above_them() {
    let workers = workers(&[(0, 0)]);
    // 1 ms, 2 ms, ... 200 ms, one after the other.
    let starts = (1..=200).map(|i: u64| (i, i * (i - 1) / 2));
    let ops: Vec<_> = starts.map(|(i, from)| op(0, OpKind::Read, from, from + i)).collect();
    let read = &answer(&ops, ask(&workers, &rows(&workers), (0, 20_100))).rows[0].kinds[0].figures;
    let close = |percent: f64, exact: u64| {
        let got = read.latency.percentile(percent).unwrap();
        assert!(got >= ms(exact) && got <= ms(exact).mul_f64(1.001), "p{percent}: {got:?}");
    };
    close(1.0, 2);
    close(50.0, 100);
    close(90.0, 180);
    close(95.0, 190);
    close(99.0, 198);
    close(99.5, 199);
    assert_eq!([99.9, 99.95, 99.99].map(|percent| read.latency.percentile(percent)), [None; 3]);
    assert_eq!((read.latency.min, read.latency.max), (Some(ms(1)), Some(ms(200))));
}

#[test]
fn how_far_it_was_is_exact_in_a_long_stage() {
    // Worker 0 is done at 100.0005 s; worker 1 ends an operation every millisecond for 1,000 s.
    let workers = workers(&[(0, 0), (0, 0)]);
    let mut ops: Vec<_> = (0..1_000_000).map(|i| op(1, OpKind::Stat, i, i + 1)).collect();
    let end = Moment::from_ns(100_000 * MS + 500_000);
    ops.push(OpRecord { end, ..op(0, OpKind::Stat, 0, 1) });
    let stat =
        &answer(&ops, ask(&workers, &rows(&workers), (0, 1_000_000))).rows[0].kinds[0].figures;
    let first = stat.first_done.unwrap();
    assert_eq!(first.after, end.since(Moment::EPOCH));
    assert_eq!(first.ops, 100_001);
}

#[test]
fn a_stage_without_a_duration_has_no_rate() {
    let workers = workers(&[(0, 5)]);
    let stat = &answer(&[op(0, OpKind::Stat, 5, 5)], ask(&workers, &rows(&workers), (5, 5))).rows
        [0]
    .kinds[0]
        .figures;
    assert_eq!((stat.stage.ops_ok, ops_per_sec(stat)), (1, None));
    assert_eq!(stat.first_done.unwrap().ops_per_sec, None);
    let none = answer(&[], ask(&workers, &rows(&workers), (5, 5)));
    assert_eq!((none.rows[0].workers_count, none.rows[0].kinds.len()), (1, 0));
}

#[test]
fn too_many_windows_are_made_longer() {
    let workers = workers(&[(0, 0)]);
    let rows = rows(&workers);
    let asked = ask(&workers, &rows, (0, 1_000));
    let question = Question { segment: Some(Duration::from_nanos(1)), ..asked };
    let row = &answer(&[op(0, OpKind::Stat, 0, 1_000)], question).rows[0];
    assert_eq!(row.segment, Duration::from_micros(10));
    assert_eq!(row.details.as_ref().unwrap().series.len(), 100_000);
}

/// Beside a job that lasts ten seconds a row that is over after one is not divided by ten.
#[test]
fn a_row_that_ends_before_its_stage_is_measured_over_its_own_time() {
    let each = |worker, count: u64, took_ms: u64| {
        (0..count).map(move |i| op(worker, OpKind::Get, i * 100, i * 100 + took_ms))
    };
    let ops: Vec<OpRecord> = each(0, 5, 100)
        .chain(each(1, 10, 10))
        .chain(each(2, 10, 300))
        .chain(each(3, 100, 100))
        .collect();
    let workers = workers(&[(0, 0), (1, 0), (2, 0), (3, 0)]);
    let closed = RowAsked { workers: 1, span: Span::AllWorkers, open: false, ends: None };
    let open = RowAsked { open: true, ends: Some(at(1_000)), ..closed };
    let rows = [closed, open, open, closed];
    let answer = answer(&ops, ask(&workers, &rows, (0, 10_000)));
    let span = |row: usize| {
        let span = answer.rows[row].span;
        (span.start, span.end, span.rule)
    };
    // From the end of its first operation to that of its last, four later.
    assert_eq!(span(0), (at(100), at(500), SpanRule::AllWorkers));
    assert_eq!(ops_per_sec(&answer.rows[0].total), Some(10.0));
    // As long as operations arrive, and until the last of them has ended.
    assert_eq!(span(1), (at(0), at(1_000), SpanRule::Schedule));
    assert_eq!(ops_per_sec(&answer.rows[1].total), Some(10.0));
    assert_eq!(span(2), (at(0), at(1_200), SpanRule::Schedule));
    assert_eq!(span(3), (at(100), at(10_000), SpanRule::AllWorkers));
}

#[test]
fn what_ends_in_a_ramp_down_is_not_done_when_the_span_ends() {
    // Two workers are measured for 400 ms; what one began before that ends at 450 ms.
    let each = |worker, took: u64, count: u64| {
        (0..count).map(move |at| op(worker, OpKind::Create, at * took, (at + 1) * took))
    };
    let ops: Vec<OpRecord> = each(0, 100, 4).chain(each(1, 150, 3)).collect();
    let mut workers = workers(&[(0, 0), (0, 0)]);
    workers.iter_mut().flatten().for_each(|worker| worker.measured_until = Some(at(400)));
    let rows = rows(&workers);
    let answer = answer(&ops, ask(&workers, &rows, (0, 450)));
    let total = &answer.rows[0].total;
    let done = total.last_done.unwrap();
    assert_eq!((done.ops, done.ops_per_sec), (6, Some(15.0)));
    assert_eq!(total.stage.ops_ok, 7);
}

#[test]
fn an_open_row_of_several_clients_begins_no_earlier_than_their_stage() {
    // One client began at 0 s, the other at 1 s, with which the stage of both begins.
    let workers = workers(&[(0, 0), (0, 1_000)]);
    let row = RowAsked { workers: 2, span: Span::AllWorkers, open: true, ends: Some(at(3_000)) };
    let of = |worker, from: u64| {
        (from..3_000).step_by(100).map(move |start| op(worker, OpKind::Get, start, start + 10))
    };
    let ops: Vec<OpRecord> = of(0, 0).chain(of(1, 1_000)).collect();
    let answer = answer(&ops, ask(&workers, &[row], (1_000, 3_000)));
    let row = &answer.rows[0];
    assert_eq!((row.span.start, row.span.end), (at(1_000), at(3_000)));
    assert_eq!(ops_per_sec(&row.total), Some(20.0));
}

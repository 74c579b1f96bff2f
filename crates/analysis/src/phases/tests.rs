//! Small records worked out by hand.

use std::time::Duration;

use plimsoll_model::{
    EndpointId, ErrorClass, JobId, Moment, ObjectId, OpKind, OpRecord, StageId, WorkerId,
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
        job: JobId(0),
        worker: WorkerId(worker),
        kind,
        endpoint: EndpointId(0),
        object: Some(ObjectId::new(WorkerId(0), 0)),
        objects_count: 1,
        bytes: if kind.moves_bytes() { 4_096 } else { 0 },
        intended: at(start_ms),
        start: at(start_ms),
        first_byte: None,
        last_byte_sent: None,
        end: at(end_ms),
        outcome: ErrorClass::Ok,
        attempts: 1,
    }
}

fn workers(rows: &[(u32, u64)]) -> Vec<Option<WorkerRow>> {
    let row =
        |&(row, measured_from_ms)| Some(WorkerRow { row, measured_from: at(measured_from_ms) });
    rows.iter().map(row).collect()
}

fn ask(workers: &[Option<WorkerRow>], from_ms: u64, until_ms: u64) -> PhaseQuestion<'_> {
    PhaseQuestion {
        stage: StageId(3),
        started: at(from_ms),
        ended: at(until_ms),
        workers,
        rows_count: workers.iter().flatten().map(|of| of.row as usize + 1).max().unwrap_or(0),
        window: PhaseQuestion::WINDOW,
        client_of: &[],
    }
}

fn answer(ops: &[OpRecord], question: PhaseQuestion<'_>) -> PhaseAnalysis {
    let Ok(mut answers) = phases(ops, &[question]);
    answers.pop().unwrap()
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
    let answer = answer(&two_workers(), ask(&workers, 1_000, 1_800));
    let row = &answer.rows[0];
    assert_eq!((row.workers_count, row.workers_active), (2, 2));
    assert_eq!((row.began, row.took), (Some(Duration::ZERO), Some(ms(800))));
    assert_eq!((row.worker_took_max, row.worker_took_sum), (Some(ms(800)), ms(300 + 800)));
    let create = row.kind(OpKind::Create).unwrap();
    assert_eq!((create.ops_ok, create.bytes, create.took), (11, 11 * 4_096, ms(800)));
    assert_eq!(create.ops_per_sec, Some(11.0 / 0.8));
    assert_eq!(create.bytes_per_sec, Some(11.0 * 4_096.0 / 0.8));
    // At 300 ms both have ended three: 6 in 0.3 s.
    let first = create.first_done.unwrap();
    assert_eq!((first.after, first.ops, first.bytes), (ms(300), 6, 6 * 4_096));
    assert_eq!((first.ops_per_sec, first.bytes_per_sec), (Some(20.0), Some(81_920.0)));
    let last = create.last_done.unwrap();
    assert_eq!((last.after, last.ops, last.ops_per_sec), (ms(800), 11, create.ops_per_sec));
    assert_eq!(create.latency.mean(), Some(ms(100)));
    assert_eq!(create.service_time, create.latency);
}

#[test]
fn windows_are_of_what_ended_in_them() {
    let workers = workers(&[(0, 1_000), (0, 1_000)]);
    let answer = answer(&two_workers(), ask(&workers, 1_000, 1_800));
    let create = &answer.rows[0].kinds[0];
    // Until 500 ms worker 0 ends 3 and worker 1 ends 5, one of them at 500 ms itself.
    let window = |start, length, ops| WindowCount {
        start: ms(start),
        length: ms(length),
        ops,
        bytes: ops * 4_096,
        latency_mean: Some(ms(100)),
    };
    assert_eq!(create.windows, [window(0, 500, 8), window(500, 300, 3)]);
    // Only the first is whole.
    let spread = create.spread(answer.window, |window| window.ops).unwrap();
    let expected = RateSpread { samples: 1, min: 16.0, max: 16.0, mean: 16.0, std_dev: None };
    assert_eq!(spread, expected);
}

#[test]
fn a_pause_is_a_window_of_nothing() {
    let workers = workers(&[(0, 200)]);
    let ops = [op(0, OpKind::Read, 200, 400), op(0, OpKind::Read, 400, 2_500)];
    let question = PhaseQuestion { window: ms(250), ..ask(&workers, 0, 2_500) };
    let read = &answer(&ops, question).rows[0].kinds[0];
    assert_eq!(read.windows.len(), 10);
    // The measuring began 50 ms before the first window was over.
    assert_eq!((read.windows[0].length, read.windows[0].ops), (ms(50), 0));
    assert_eq!((read.windows[1].start, read.windows[1].ops), (ms(250), 1));
    assert_eq!(read.windows[5].latency_mean, None);
    assert_eq!((read.windows[9].length, read.windows[9].ops), (ms(250), 1));
    // Of 9 whole windows 7 are empty; two have one operation in a quarter of a second.
    let spread = read.spread(ms(250), |window| window.ops).unwrap();
    assert_eq!((spread.samples, spread.min, spread.max), (9, 0.0, 4.0));
    assert!((spread.mean - 8.0 / 9.0).abs() < 1e-12);
}

#[test]
fn failures_are_counted_and_are_in_nothing_else() {
    let workers = workers(&[(0, 0)]);
    let mut ops = vec![op(0, OpKind::Write, 0, 100), op(0, OpKind::Write, 100, 200)];
    ops.push(OpRecord { outcome: ErrorClass::Io, ..op(0, OpKind::Write, 200, 1_000) });
    ops.push(OpRecord { outcome: ErrorClass::Corrupt, ..op(0, OpKind::Read, 1_000, 1_600) });
    let row = &answer(&ops, ask(&workers, 0, 1_600)).rows[0];
    let write = row.kind(OpKind::Write).unwrap();
    assert_eq!((write.ops_ok, write.failed.count(), write.bytes), (2, 1, 8_192));
    assert_eq!(write.failed.of(ErrorClass::Io), 1);
    // The time that failures took is still time in which nothing was done.
    assert_eq!((write.took, write.ops_per_sec), (ms(1_600), Some(1.25)));
    assert_eq!((write.latency.samples(), write.latency.max()), (2, Some(ms(100))));
    assert_eq!(write.windows.iter().map(|window| window.ops).sum::<u64>(), 2);
    let read = row.kind(OpKind::Read).unwrap();
    assert_eq!((read.ops_ok, read.failed.of(ErrorClass::Corrupt)), (0, 1));
    assert_eq!((read.ops_per_sec, read.latency.mean()), (Some(0.0), None));
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
    let row = &answer(&ops, ask(&workers, 0, 2_000)).rows[0];
    assert_eq!((row.ramp.ops_ok, row.ramp.failed.count()), (3, 1));
    assert_eq!((row.began, row.took), (Some(ms(1_000)), Some(ms(1_000))));
    assert_eq!((row.worker_took_max, row.worker_took_sum), (Some(ms(800)), ms(600 + 800)));
    let read = &row.kinds[0];
    assert_eq!((read.ops_ok, read.failed.count(), read.ops_per_sec), (2, 0, Some(2.0)));
    let first = read.first_done.unwrap();
    assert_eq!((first.after, first.ops, first.ops_per_sec), (ms(1_600), 1, Some(1.0 / 0.6)));
    // The windows begin with the measuring.
    let windows: Vec<_> = read.windows.iter().map(|each| (each.start, each.ops)).collect();
    assert_eq!(windows, [(ms(1_000), 0), (ms(1_500), 2)]);
}

#[test]
fn stages_and_rows_stay_apart() {
    let of = workers(&[(0, 0), (2, 0)]);
    let later = workers(&[(0, 5_000)]);
    let second = PhaseQuestion { stage: StageId(4), ..ask(&later, 5_000, 6_000) };
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
    let Ok(answers) = phases(&ops[..], &[ask(&of, 0, 1_500), second]);
    assert_eq!(answers.iter().map(|each| each.stage.0).collect::<Vec<_>>(), [3, 4]);
    let rows = &answers[0].rows;
    assert_eq!(rows.len(), 3);
    let kinds = |row: usize| rows[row].kinds.iter().map(|each| each.kind).collect::<Vec<_>>();
    assert_eq!(
        (kinds(0), kinds(1), kinds(2)),
        (vec![OpKind::Write], vec![], vec![OpKind::Read, OpKind::Sync])
    );
    // Nobody is in row 1; row 0 has ended long before row 2.
    assert_eq!((rows[1].workers_count, rows[1].took, rows[1].clients_count()), (0, None, 0));
    assert_eq!((rows[0].took, rows[2].took), (Some(ms(10)), Some(ms(1_500))));
    // What a sync at the end takes is part of the time of all kinds.
    assert_eq!(rows[2].kinds[0].ops_per_sec, Some(1.0 / 1.5));
    assert_eq!(rows[2].kinds[1].bytes_per_sec, None);
    assert_eq!(answers[1].rows[0].endpoints, [EndpointId(2)]);
    assert_eq!(answers[1].rows[0].kinds[0].ops_per_sec, Some(1_000.0));
}

#[test]
fn clients_are_those_whose_workers_did_something() {
    let workers = workers(&[(0, 0), (0, 0), (0, 0)]);
    let ops = [op(0, OpKind::Stat, 0, 1), op(2, OpKind::Stat, 0, 1)];
    let row = &answer(&ops, PhaseQuestion { client_of: &[0, 1, 3], ..ask(&workers, 0, 1) }).rows[0];
    assert_eq!((&row.clients[..], row.clients_count(), row.workers_active), (&[0, 3][..], 2, 2));
    let row = &answer(&ops, ask(&workers, 0, 1)).rows[0];
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
    let question = PhaseQuestion { client_of: &[0, 0, 0, 1, 1], ..ask(&workers, 1_000, 9_000) };
    let rows = answer(&ops, question).rows;
    let stat = &rows[0];
    assert_eq!((stat.workers_count, stat.workers_active), (2, 2));
    assert_eq!((&stat.clients[..], stat.kinds[0].ops_ok), (&[0, 1][..], 2));
    // From the beginning of the first to the end of the last, and each from its own.
    assert_eq!((stat.began, stat.took), (Some(Duration::ZERO), Some(ms(3_000))));
    assert_eq!((stat.worker_took_max, stat.worker_took_sum), (Some(ms(1_000)), ms(2_000)));
    assert_eq!((&rows[1].clients[..], rows[1].kinds[0].ops_ok), (&[1][..], 1));
}

#[test]
fn an_open_loop_has_latency_from_the_intended_start() {
    let workers = workers(&[(0, 0)]);
    let ops = [
        op(0, OpKind::Read, 0, 10),
        OpRecord { intended: at(5), ..op(0, OpKind::Read, 10, 20) },
        op(0, OpKind::Read, 30, 40),
    ];
    let read = &answer(&ops, ask(&workers, 0, 40)).rows[0].kinds[0];
    assert_eq!((read.latency.max(), read.service_time.max()), (Some(ms(15)), Some(ms(10))));
    assert_eq!((read.latency.samples(), read.service_time.samples()), (3, 3));
}

#[test]
fn percentiles_need_a_sample_above_them() {
    let workers = workers(&[(0, 0)]);
    // 1 ms, 2 ms, ... 200 ms, one after the other.
    let starts = (1..=200).map(|i: u64| (i, i * (i - 1) / 2));
    let ops: Vec<_> = starts.map(|(i, from)| op(0, OpKind::Read, from, from + i)).collect();
    let read = &answer(&ops, ask(&workers, 0, 20_100)).rows[0].kinds[0];
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
    assert_eq!((read.latency.min(), read.latency.max()), (Some(ms(1)), Some(ms(200))));
}

#[test]
fn how_far_it_was_is_off_by_less_than_a_tick_in_a_long_stage() {
    // Worker 0 is done at 100.0005 s; worker 1 ends an operation every millisecond for 1,000 s.
    let workers = workers(&[(0, 0), (0, 0)]);
    let mut ops: Vec<_> = (0..1_000_000).map(|i| op(1, OpKind::Stat, i, i + 1)).collect();
    let end = Moment::from_ns(100_000 * MS + 500_000);
    ops.push(OpRecord { end, ..op(0, OpKind::Stat, 0, 1) });
    let stat = &answer(&ops, ask(&workers, 0, 1_000_000)).rows[0].kinds[0];
    let first = stat.first_done.unwrap();
    assert_eq!(first.after, end.since(Moment::EPOCH));
    assert!(first.ops.abs_diff(100_001) <= 2, "{}", first.ops);
}

#[test]
fn a_stage_without_a_duration_has_no_rate() {
    let workers = workers(&[(0, 5)]);
    let stat = &answer(&[op(0, OpKind::Stat, 5, 5)], ask(&workers, 5, 5)).rows[0].kinds[0];
    assert_eq!((stat.ops_ok, stat.took, stat.ops_per_sec), (1, Duration::ZERO, None));
    assert_eq!(stat.first_done.unwrap().ops_per_sec, None);
    let none = answer(&[], ask(&workers, 5, 5));
    assert_eq!((none.rows[0].workers_count, none.rows[0].kinds.len()), (1, 0));
}

#[test]
fn too_many_windows_are_made_longer() {
    let workers = workers(&[(0, 0)]);
    let question = PhaseQuestion { window: Duration::from_nanos(1), ..ask(&workers, 0, 1_000) };
    let answer = answer(&[op(0, OpKind::Stat, 0, 1_000)], question);
    assert_eq!(answer.window, Duration::from_micros(10));
    assert_eq!(answer.rows[0].kinds[0].windows.len(), 100_000);
}

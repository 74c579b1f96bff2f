//! Small runs for the tests, worked out by hand.

use std::time::Duration;

use plimsoll_analysis::{Depth, Question, RowAnalysis, RowAsked, Rows, Span, analyze};
use plimsoll_model::{
    EndpointId, ErrorClass, Moment, ObjectId, OpKind, OpRate, OpRecord, RunId, Seed, StageId,
    WallTime, WorkerId, WrongKind,
};
use plimsoll_workload::ArrivalLaw;

use crate::{
    ErrorSample, JobSchedule, LoopModel, OpLogCheck, Report, RowReport, RunState, ScheduleReport,
    StageReport, TargetReport, Verification, VerificationMode,
};

use crate::report::RowView;

const MS: u64 = 1_000_000;

/// A success of 10 KiB that takes `took_ms`, its first byte after half of that.
pub(crate) fn op(kind: OpKind, worker: u32, start_ms: u64, took_ms: u64) -> OpRecord {
    let start = Moment::from_ns(start_ms * MS);
    OpRecord {
        stage: StageId(1),
        worker: WorkerId(worker),
        bytes: if kind.moves_bytes() { 10_240 } else { 0 },
        first_byte: Some(start.after(Duration::from_micros(took_ms * 500))),
        ..OpRecord::plain(kind, start, start.after(Duration::from_millis(took_ms)))
    }
}

/// Operations of `took_ms`, back to back.
pub(crate) fn back_to_back(
    kind: OpKind,
    worker: u32,
    until_ms: u64,
    took_ms: u64,
) -> Vec<OpRecord> {
    (0..until_ms).step_by(took_ms as usize).map(|start| op(kind, worker, start, took_ms)).collect()
}

pub(crate) fn analysis(ops: &[OpRecord], ended_ms: u64, workers: u32) -> RowAnalysis {
    analysis_with(ops, ended_ms, workers, |_| ())
}

pub(crate) fn analysis_with(
    ops: &[OpRecord],
    ended_ms: u64,
    workers: u32,
    ask: impl FnOnce(&mut Question<'static>),
) -> RowAnalysis {
    let ended = Moment::from_ns(ended_ms * MS);
    let mut question = Question::about(StageId(1), Moment::EPOCH, ended, workers);
    ask(&mut question);
    let Ok(mut analysis) = analyze(ops, &question);
    analysis.rows.pop().unwrap()
}

/// Returns the report on a measured stage, the second, that 2,500 objects were prepared for.
pub(crate) fn report(what: &str, analysis: RowAnalysis, workers: u32) -> Report {
    let started = WallTime::from_unix_ns(1_795_251_600_000_000_000);
    let reads = analysis.kinds.iter().filter(|kind| kind.kind == OpKind::Get);
    let read_bytes = reads.map(|kind| kind.figures.stage.bytes).sum();
    let mut puts = self::analysis(&[op(OpKind::Put, 0, 0, 1_250)], 1_250, 1);
    for stage in [&mut puts.kinds[0].figures.stage, &mut puts.total.stage] {
        (stage.ops_ok, stage.objects, stage.bytes) = (2_500, 2_500, 2_500 * 10_240);
    }
    let prepared = StageReport::of("prepare", vec![RowReport::of("prepare", puts)]);
    let ended = analysis.total.stage.ended();
    let mut measured = StageReport::of("measure", vec![RowReport::of("measure", analysis)]);
    measured.threads = Some(2);
    measured.cpu = Some(Duration::from_millis(48));
    measured.op_log = Some(OpLogCheck { rows: ended, counted: ended });
    // The measured stage begins when the other has ended.
    measured.started_after = prepared.took;
    let stages = vec![StageReport { is_result: false, ..prepared }, measured];
    let what_id = what.replace(' ', "-");
    Report {
        tool_version: Some("0.1.0".to_owned()),
        run_id: Some(RunId::new(&what_id, started, 0)),
        command: format!("plimsoll {what} --concurrent {workers}"),
        targets: vec![TargetReport {
            address: "http://127.0.0.1:9000".to_owned(),
            bucket: Some("plimsoll".to_owned()),
            collection: None,
            directory: None,
            ..TargetReport::default()
        }],
        endpoints: vec!["http://127.0.0.1:9000".to_owned()],
        seed: Some(Seed(7)),
        run_directory: Some(format!("./plimsoll-{what_id}-20261121t090000z-aaaa")),
        verification: Some(Verification {
            mode: VerificationMode::EveryByte,
            bytes: read_bytes,
            unverified_bytes: 0,
        }),
        ..Report::of(what, started, stages)
    }
}

/// Returns the measured stage's only row with what is around it.
pub(crate) fn view(report: &Report) -> RowView<'_> {
    report.only_row().unwrap()
}

/// Returns the measured stage.
pub(crate) fn measured(report: &mut Report) -> &mut StageReport {
    &mut report.stages[1]
}

/// Returns its only row.
pub(crate) fn row(report: &mut Report) -> &mut RowReport {
    &mut report.stages[1].rows[0]
}

/// Eight workers, GETs of 10 ms and 10 KiB for 6 s: 4,800 operations.
pub(crate) fn steady() -> Report {
    let ops: Vec<_> =
        (0..8).flat_map(|worker| back_to_back(OpKind::Get, worker, 6_000, 10)).collect();
    report("s3 get", analysis(&ops, 6_000, 8), 8)
}

/// An open loop of 1,000 GETs a second for 2 s with at most 20 in flight, of 2 ms each. The store
/// answers nothing from 1,000 ms on until 1,102 ms: the 20 that came first wait for it, the other
/// 82 for them, and are then issued in batches of 20, one each 2 ms; the last 11 at 1,110 ms.
pub(crate) fn stalled() -> Report {
    let ops = (0..2_000).map(|index| {
        let (start, end) = match index {
            1_000..1_020 => (index, 1_102),
            1_020..=1_110 => {
                let start = 1_102 + (index - 1_020) / 20 * 2;
                (start, start + 2)
            }
            _ => (index, index + 2),
        };
        let intended = Moment::from_ns(index * MS);
        OpRecord { intended, ..op(OpKind::Get, (index % 8) as u32, start, end - start) }
    });
    let ops: Vec<_> = ops.collect();
    let open = RowAsked { workers: 8, span: Span::Whole, open: true, ends: None };
    let analysis = analysis_with(&ops, 2_001, 8, |asked| asked.rows = Rows::One(open));
    let mut report = report("s3 get", analysis, 8);
    row(&mut report).loop_model = LoopModel::Open;
    let schedule = ScheduleReport {
        rates: vec!["1000/s".parse().unwrap()],
        rate_peak: OpRate(1_000.0),
        arrivals: vec![ArrivalLaw::Constant],
        max_in_flight: 20,
        started_after: Duration::ZERO,
        lasted: Some(Duration::from_secs(2)),
        offered_count: Some(2_000),
        late_count: Some(89),
        skipped_count: Some(0),
        held_count: 0,
        delay_max: Some(Duration::from_millis(82)),
    };
    row(&mut report).schedules = vec![JobSchedule::new("measure", true, schedule)];
    report.note_schedules();
    report
}

/// As [`steady`], but nothing succeeds: the second of two contents is wrong, the rest is refused.
pub(crate) fn failing() -> Report {
    let ops = (0..8).flat_map(|worker| back_to_back(OpKind::Get, worker, 6_000, 10));
    let ops = ops.zip(0..).map(|(op, index)| {
        let classes = [ErrorClass::Server, ErrorClass::Corrupt];
        OpRecord { outcome: classes[index % 2], ..op }
    });
    let ops: Vec<_> = ops.collect();
    let mut report = report("s3 get", analysis(&ops, 6_000, 8), 8);
    let wrong = [(WrongKind::OldVersion, 1_000), (WrongKind::Torn, 1_400)];
    measured(&mut report).wrong = wrong.into_iter().collect();
    report
}

/// Three workers for 3 s: GETs of 10 ms on the first host, PUTs of 20 ms on the second until it
/// refuses connections at 2 s, DELETEs of ten keys in 50 ms on the first, of which the first twelve
/// are throttled.
pub(crate) fn troubled() -> Report {
    let gets = back_to_back(OpKind::Get, 0, 3_000, 10);
    let puts = back_to_back(OpKind::Put, 1, 3_000, 20).into_iter().map(|op| OpRecord {
        endpoint: EndpointId(1),
        outcome: if op.start.as_ns() >= 2_000 * MS { ErrorClass::Connect } else { ErrorClass::Ok },
        last_byte_sent: Some(op.start.after(Duration::from_millis(5))),
        ..op
    });
    let deletes = back_to_back(OpKind::Delete, 2, 3_000, 50).into_iter().map(|op| OpRecord {
        objects_count: 10,
        outcome: if op.start.as_ns() < 600 * MS { ErrorClass::Throttled } else { ErrorClass::Ok },
        ..op
    });
    let ops: Vec<_> = gets.into_iter().chain(puts).chain(deletes).collect();
    let mut report = report("s3 mixed", analysis(&ops, 3_000, 3), 3);
    report.endpoints = vec![
        "http://a.example:9000".to_owned(),
        "http://b.with-a-very-long-name.storage.example.com:9000".to_owned(),
    ];
    measured(&mut report).errors = vec![
        ErrorSample {
            class: ErrorClass::Connect,
            kind: OpKind::Put,
            endpoint: Some(EndpointId(1)),
            status: None,
            message: "connection refused\x1b[31m (os error 111)".to_owned(),
        },
        ErrorSample {
            class: ErrorClass::Throttled,
            kind: OpKind::Delete,
            endpoint: None,
            status: None,
            message: "SlowDown: please reduce your request rate".to_owned(),
        },
    ];
    report.state = RunState::Interrupted;
    report.recorder_wait = Some(Duration::from_millis(3));
    measured(&mut report).op_log = Some(OpLogCheck { rows: 509, counted: 510 });
    report.notes = vec!["uploads are signed without a payload hash".to_owned()];
    report
}

/// With details: two workers of two clients for 3 s. The first GETs 100 objects in turn from the
/// first host, each in 10 ms, of 10 KiB and 1 MiB in turn; the first byte comes after 4, 5 and 6 ms
/// in the first, second and third round. The second PUTs 10 KiB in 20 ms on the second host, which
/// refuses connections from 2 s on.
pub(crate) fn detailed() -> Report {
    let gets = back_to_back(OpKind::Get, 0, 3_000, 10).into_iter().zip(0..).map(|(op, index)| {
        let first_byte = op.start.after(Duration::from_millis(4 + index / 100));
        OpRecord {
            object: Some(ObjectId::new(WorkerId(0), index % 100)),
            bytes: if index % 2 == 0 { 10_240 } else { 1 << 20 },
            first_byte: Some(first_byte),
            ..op
        }
    });
    let puts = back_to_back(OpKind::Put, 1, 3_000, 20).into_iter().map(|op| OpRecord {
        endpoint: EndpointId(1),
        outcome: if op.start.as_ns() >= 2_000 * MS { ErrorClass::Connect } else { ErrorClass::Ok },
        last_byte_sent: Some(op.start.after(Duration::from_millis(5))),
        ..op
    });
    let ops: Vec<_> = gets.chain(puts).collect();
    let analysis = analysis_with(&ops, 3_000, 2, |asked| {
        asked.depth = Depth::Details;
        asked.client_of = &[0, 1];
    });
    let mut report = report("s3 mixed", analysis, 2);
    report.endpoints = vec![
        "http://a.example:9000".to_owned(),
        "http://b.with-a-very-long-name.storage.example.com:9000".to_owned(),
    ];
    report.clients = vec!["one.example:7761".to_owned(), "two.example:7761".to_owned()];
    report.utc_offset_seconds = Some(7_200);
    report
}

//! Runs on files for the tests, worked out by hand.

use std::time::Duration;

use plimsoll_analysis::{Depth, Question, RowAnalysis, RowAsked, Rows, Span, WorkerRow, analyze};
use plimsoll_model::{
    CacheState, ErrorClass, Interface, JobWork, Moment, OpKind, OpRate, OpRecord, RunId, Seed,
    StageId, WallTime, WorkerId, WrongKind,
};
use plimsoll_workload::ArrivalLaw;

use crate::{
    CleanupReport, CleanupState, ErrorSample, JobSchedule, LoopModel, OpLogCheck, Report,
    RowReport, RunState, ScheduleReport, StageReport, TargetReport, Verification, VerificationMode,
};

/// A success from `start_us` on.
pub(crate) fn op(worker: u32, kind: OpKind, start_us: u64, took_us: u64, bytes: u64) -> OpRecord {
    let start = Moment::from_ns(start_us * 1_000);
    OpRecord {
        worker: WorkerId(worker),
        bytes,
        ..OpRecord::plain(kind, start, start.after(Duration::from_micros(took_us)))
    }
}

/// Successes back to back from the stage's start on.
fn back_to_back(worker: u32, kind: OpKind, count: u64, took_us: u64, bytes: u64) -> Vec<OpRecord> {
    (0..count).map(|i| op(worker, kind, i * took_us, took_us, bytes)).collect()
}

/// Figures of a stage that begins at moment 0, with the row and the ramp of each worker.
pub(crate) fn figures(ops: &[OpRecord], workers: &[(u32, u64)]) -> Vec<RowAnalysis> {
    let count = workers.iter().map(|(row, _)| row + 1).max().unwrap_or(0);
    let of_row = |row| workers.iter().filter(|(of, _)| *of == row).count() as u32;
    let asked =
        |row| RowAsked { workers: of_row(row), span: Span::FromRamps, open: false, ends: None };
    let rows: Vec<RowAsked> = (0..count).map(asked).collect();
    let worker = |&(row, ramp_ms): &(u32, u64)| {
        Some(WorkerRow {
            row,
            measured_from: Moment::from_ns(ramp_ms * 1_000_000),
            measured_until: None,
        })
    };
    let workers: Vec<Option<WorkerRow>> = workers.iter().map(worker).collect();
    let ended = ops.iter().map(|op| op.end).max().unwrap_or_default();
    let question = Question {
        rows: Rows::Several { workers: &workers, rows: &rows },
        segment: Some(Duration::from_millis(500)),
        depth: Depth::Distributions,
        ..Question::about(StageId(0), Moment::EPOCH, ended, 0)
    };
    let Ok(answer) = analyze(ops, &question);
    answer.rows
}

pub(crate) fn row(
    name: &str,
    work: JobWork,
    block: Option<&str>,
    analysis: RowAnalysis,
) -> RowReport {
    let on_blocks = block.is_some();
    let workers = analysis.workers_count;
    RowReport {
        work: Some(work),
        is_on_files: true,
        block: block.map(str::to_owned),
        depth: Some(1),
        direct: on_blocks,
        interface: Some(Interface::IoUring),
        caches: Some(if on_blocks { CacheState::Bypassed } else { CacheState::Cached }),
        files_count: Some(if on_blocks { u64::from(workers) } else { 250 }),
        file_size: on_blocks.then(|| "4 GiB".to_owned()),
        duration: on_blocks.then(|| Duration::from_secs(2)),
        served_by: vec!["host-a".to_owned()],
        names_kept_count: None,
        ..RowReport::of(name, analysis)
    }
}

pub(crate) fn stage(name: &str, started_after_ms: u64, rows: Vec<RowReport>) -> StageReport {
    let took = rows.iter().filter_map(|row| Some(row.analysis.began()? + row.analysis.took()?));
    let took = took.max().unwrap_or_default();
    let started_after = Duration::from_millis(started_after_ms);
    StageReport { started_after, took, ..StageReport::of(name, rows) }
}

pub(crate) fn report(what: &str, stages: Vec<StageReport>) -> Report {
    Report {
        tool_version: Some("0.1.0".to_owned()),
        run_id: RunId::parse("20261121-090000-abcdef").ok(),
        command: format!("plimsoll {what} --dir /mnt/store"),
        targets: vec![TargetReport {
            address: "/mnt/store".to_owned(),
            is_files: true,
            file_system: Some("ext4".to_owned()),
            device: Some("/dev/nvme0n1p1".to_owned()),
            free_bytes: Some(100 << 30),
            bucket: None,
            collection: None,
            directory: None,
        }],
        machine: Some("Linux 6.1, 2 cores, 8.00 GiB".to_owned()),
        seed: Some(Seed(42)),
        verification: Some(Verification {
            mode: VerificationMode::EveryByte,
            bytes: 4 << 30,
            unverified_bytes: 0,
        }),
        cleanup: Some(CleanupReport {
            state: CleanupState::Complete,
            removed: Some(2),
            removed_files: Some(2),
            took: Some(Duration::from_millis(1)),
        }),
        run_directory: Some("plimsoll-runs/20261121-090000-abcdef".to_owned()),
        ..Report::of(what, WallTime::from_unix_ns(1_795_251_600_000_000_000), stages)
    }
}

/// Leaves out what was not asked for.
fn plain(mut report: Report) -> Report {
    for row in report.stages.iter_mut().flat_map(|stage| &mut stage.rows) {
        row.analysis.details = None;
        let kinds = row.analysis.kinds.iter_mut().map(|kind| &mut kind.figures);
        for figures in kinds.chain([&mut row.analysis.total]) {
            figures.latency.histogram = None;
            figures.ttfb.histogram = None;
        }
    }
    report
}

/// A part of WEKA's list: two stages on blocks and three on names.
pub(crate) fn suite() -> Report {
    plain(suite_with_series())
}

/// The same with the segments of each kind.
pub(crate) fn suite_with_series() -> Report {
    const MIB: u64 = 1 << 20;
    let one = |ops: &[OpRecord], workers: &[(u32, u64)]| figures(ops, workers).pop().unwrap();
    let fill = one(&back_to_back(0, OpKind::Write, 4, 10_000, MIB), &[(0, 0)]);
    let fill = StageReport {
        is_result: false,
        ..stage("fill", 0, vec![row("fill", JobWork::Write, Some("1 MiB"), fill)])
    };
    // Two workers that each read a MiB in a millisecond, 2 s long.
    let mut ops = back_to_back(0, OpKind::Read, 2_000, 1_000, MIB);
    ops.extend(back_to_back(1, OpKind::Read, 2_000, 1_000, MIB));
    let reads = row("read-throughput", JobWork::Read, Some("1 MiB"), one(&ops, &[(0, 0), (0, 0)]));
    let mut throughput = stage("read-throughput", 1_000, vec![reads]);
    throughput.cpu = Some(Duration::from_millis(400));
    // 300 times 299 reads of 0.1 ms and one of 1 ms: p99 0.1 ms, p99.9 1 ms.
    let mut ops = Vec::new();
    let mut at = 0;
    for i in 1..=3_000 {
        let took = if i % 300 == 0 { 1_000 } else { 100 };
        ops.push(op(0, OpKind::Read, at, took, 4_096));
        at += took;
    }
    let latency = row("read-latency", JobWork::RandRead, Some("4 KiB"), one(&ops, &[(0, 0)]));
    let latency = stage("read-latency", 4_000, vec![latency]);
    // Worker 0 is done after 100 creates of 1 ms, worker 1 after 150.
    let mut ops = back_to_back(0, OpKind::Create, 100, 1_000, 0);
    ops.extend(back_to_back(1, OpKind::Create, 150, 1_000, 0));
    let create = row("create", JobWork::Create, None, one(&ops, &[(0, 0), (0, 0)]));
    let create = stage("create", 5_000, vec![create]);
    // One name of 250 was away.
    let mut ops = back_to_back(0, OpKind::Stat, 125, 1_000, 0);
    ops.extend(back_to_back(1, OpKind::Stat, 125, 1_000, 0));
    ops[0].outcome = ErrorClass::NotFound;
    let stat = row("stat", JobWork::Stat, None, one(&ops, &[(0, 0), (0, 0)]));
    let mut stat = stage("stat", 6_000, vec![stat]);
    stat.errors.push(ErrorSample {
        class: ErrorClass::NotFound,
        kind: OpKind::Stat,
        endpoint: None,
        status: None,
        message: "stat of plimsoll/x/test-dir.0-0/file.0: no such file or directory".to_owned(),
    });
    report("file suite", vec![fill, throughput, latency, create, stat])
}

/// Two jobs at once: one that reads and writes with a ramp, one with an open loop that is held up.
pub(crate) fn mixed() -> Report {
    plain(mixed_with_series())
}

fn mixed_with_series() -> Report {
    let mut ops = Vec::new();
    for i in 0..400 {
        let kind = if i % 4 == 3 { OpKind::Write } else { OpKind::Read };
        ops.push(op(0, kind, i * 5_000, 5_000, 65_536));
    }
    ops.push(op(0, OpKind::Sync, 2_000_000, 40_000, 0));
    ops[10].outcome = ErrorClass::Io;
    ops[300].outcome = ErrorClass::Corrupt;
    for i in 0..100 {
        // Due every 10 ms; the first is held up for 20 ms, and so are those behind it.
        let read = op(1, OpKind::Read, i * 10_000 + 20_000, 10_000, 4_096);
        ops.push(OpRecord { intended: Moment::from_ns(i * 10_000_000), ..read });
    }
    let mut rows = figures(&ops, &[(0, 1_000), (1, 0)]);
    let open = row("open-loop", JobWork::RandRead, Some("4 KiB"), rows.pop().unwrap());
    let mixed = rows.pop().unwrap();
    let mixed = row("a-job-with-a-long-name", JobWork::RandReadWrite, Some("64 KiB"), mixed);
    let mixed = RowReport { read_percent: Some(75), ..mixed };
    let open = RowReport {
        caches: Some(CacheState::Dropped),
        direct: false,
        interface: None,
        loop_model: LoopModel::Open,
        ..open
    };
    let mixed = RowReport { depth: Some(16), ..mixed };
    let mut both = stage("both", 0, vec![mixed, open]);
    both.iteration = 1;
    both.wrong = [(WrongKind::Torn, 1)].into_iter().collect();
    both.errors.push(ErrorSample {
        class: ErrorClass::Corrupt,
        kind: OpKind::Read,
        endpoint: None,
        status: None,
        message: "file.0 at 65536: bytes 512 to 1024 are of an older version".to_owned(),
    });
    let schedule = ScheduleReport {
        rates: vec!["100/s".parse().unwrap()],
        rate_peak: OpRate(100.0),
        arrivals: vec![ArrivalLaw::Constant],
        max_in_flight: 1,
        started_after: Duration::ZERO,
        lasted: Some(Duration::from_secs(1)),
        offered_count: Some(100),
        late_count: Some(100),
        skipped_count: Some(0),
        held_count: 0,
        delay_max: Some(Duration::from_millis(20)),
    };
    both.rows[1].schedules = vec![JobSchedule::new("open-loop", true, schedule)];
    both.op_log = Some(OpLogCheck { rows: 500, counted: 501 });
    let mut report = report("run job.fio", vec![both]);
    report.state = RunState::Interrupted;
    report.notes.push("ioengine=posixaio is run by io_uring".to_owned());
    report
}

//! An archive out of a report, worked out by hand.

use std::time::Duration;

use plimsoll_analysis::{
    Depth, Question, RowAnalysis, RowAsked, Rows, Span, Survey, WorkerRow, measure,
};
use plimsoll_model::{ErrorClass, Moment, OpKind, OpRecord, StageId, WallTime, WorkerId};
use plimsoll_report::{Report, RowReport, RunState, StageReport};

use super::*;
use crate::cosbench::{Lowered, Options, Workload, lower, read};

const MS: u64 = 1_000_000;

const FILE: &str = "<workload name='w'><storage type='mock'/><workflow>\
    <workstage name='prepare' closuredelay='2'><work type='prepare' workers='2' \
    config='containers=r(1,1);objects=r(1,4);sizes=c(1)KB'/></workstage>\
    <workstage name='main'><work name='m' workers='2' runtime='2' afr='100000'>\
    <operation type='read' ratio='30' config='containers=c(1);objects=u(1,4)'/>\
    <operation type='read' ratio='20' config='name=hot;containers=c(1);objects=c(1)'/>\
    <operation type='write' ratio='50' config='containers=c(1);objects=u(5,9);sizes=c(1)KB'/>\
    </work></workstage>\
    <workstage name='last'><work type='dispose' workers='1' config='containers=r(1,1)'/>\
    </workstage></workflow></workload>";

fn at(ms: u64) -> Moment {
    Moment::from_ns(ms * MS)
}

/// Returns an operation of 1 kB whose first byte comes after a quarter of it.
fn op(
    stage: u8,
    worker: u32,
    kind: OpKind,
    start_ms: u64,
    ms: u64,
    outcome: ErrorClass,
) -> OpRecord {
    OpRecord {
        stage: StageId(stage),
        worker: WorkerId(worker),
        bytes: if outcome.is_ok() { 1_000 } else { 0 },
        first_byte: (kind == OpKind::Get).then(|| at(start_ms + ms / 4)),
        outcome,
        ..OpRecord::plain(kind, at(start_ms), at(start_ms + ms))
    }
}

/// Returns the rows of a stage whose workers are in these.
fn rows(ops: &[OpRecord], stage: u8, began: u64, ended: u64, of: &[u32]) -> Vec<RowAnalysis> {
    rows_after_ramp(ops, stage, (began, began, ended), of)
}

/// The same of a stage that began, was measured from then on, and ended at these.
fn rows_after_ramp(
    ops: &[OpRecord],
    stage: u8,
    (began, measured_from, ended): (u64, u64, u64),
    of: &[u32],
) -> Vec<RowAnalysis> {
    let measured_from = at(measured_from);
    let worker = |&row: &u32| Some(WorkerRow { row, measured_from, measured_until: None });
    let workers: Vec<Option<WorkerRow>> = of.iter().map(worker).collect();
    let count = |row: u32| of.iter().filter(|each| **each == row).count() as u32;
    let asked =
        |row| RowAsked { workers: count(row), span: Span::FromRamps, open: false, ends: None };
    let asked: Vec<RowAsked> = (0..=of.iter().copied().max().unwrap()).map(asked).collect();
    let question = Question {
        rows: Rows::Several { workers: &workers, rows: &asked },
        segment: Some(Duration::from_secs(1)),
        depth: Depth::Details,
        ..Question::about(StageId(stage), at(began), at(ended), of.len() as u32)
    };
    let Ok(survey) = Survey::of(ops);
    let Ok(mut answers) = measure(ops, &survey, &[question]);
    answers.remove(0).rows
}

fn stage(name: &str, rows: Vec<RowAnalysis>, by_worker: bool) -> StageReport {
    let row = |(number, analysis): (usize, RowAnalysis)| RowReport {
        jobs: vec![0],
        worker: by_worker.then_some(number as u32),
        ..RowReport::of("w1", analysis)
    };
    StageReport::of(name, rows.into_iter().enumerate().map(row).collect())
}

/// Ten reads of 104 ms for each of two workers, of which worker 0 fails two, and one write of 34 ms
/// of each after them.
fn ops() -> Vec<OpRecord> {
    let mut ops: Vec<OpRecord> = (0..2)
        .map(|worker| op(0, worker, OpKind::Put, 0, 54, ErrorClass::Ok))
        .chain((0..2).map(|worker| op(0, worker, OpKind::Put, 54, 54, ErrorClass::Ok)))
        .collect();
    for worker in 0..2 {
        for number in 0..10 {
            let fails = worker == 0 && number < 2;
            let outcome = if fails { ErrorClass::Timeout } else { ErrorClass::Ok };
            ops.push(op(1, worker, OpKind::Get, 3_000 + number * 104, 104, outcome));
        }
        ops.push(op(1, worker, OpKind::Put, 4_100, 34, ErrorClass::Ok));
    }
    ops
}

fn workload() -> (Workload, Lowered) {
    let workload = read(FILE.as_bytes()).unwrap();
    let lowered = lower(&workload, &Options::default()).unwrap();
    (workload, lowered)
}

fn report(by_worker: bool, max: f64) -> Report {
    let ops = ops();
    let workers: &[u32] = if by_worker { &[0, 1] } else { &[0, 0] };
    let mut main = stage("s2-main", rows(&ops, 1, 3_000, 5_000, workers), by_worker);
    main.rows.iter_mut().for_each(|row| row.error_rate_max = Some(max));
    let prepared = stage("s1-prepare", rows(&ops, 0, 0, 108, workers), by_worker);
    Report {
        state: RunState::Complete,
        ..Report::of("w", WallTime::from_unix_ns(0), vec![prepared, main])
    }
}

/// Returns a moment as UTC.
fn utc(at: WallTime) -> String {
    let (year, month, day, hour, minute, second) = at.civil();
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

fn archive(max: f64, state: Option<WorkloadState>) -> Archive {
    let (workload, lowered) = workload();
    let (report, by_worker) = (report(false, max), report(true, max));
    let results = Results {
        workload: &workload,
        lowered: &lowered,
        report: Some(&report),
        by_worker: Some(&by_worker),
    };
    let stopped = Some(WallTime::from_unix_ns(9_000 * MS));
    let submitted = WallTime::from_unix_ns(0);
    from_results(&results, &Ran { id: "w7", submitted, stopped, state, local: &utc })
}

#[test]
fn figures_are_those_of_the_rows() {
    let archive = archive(0.5, None);
    let summary = summary_csv(&archive);
    let lines: Vec<&str> = summary.lines().skip(1).collect();
    let cells: Vec<Vec<&str>> = lines.iter().map(|line| line.split(',').collect()).collect();
    assert_eq!(cells[0][..5], ["s1-prepare", "prepare-write", "prepare", "4", "4000"]);
    assert_eq!(cells[0][5..9], ["54", "54", "60", "60"]);
    // 18 of 20 reads; the first byte comes after 26 ms.
    assert_eq!(cells[1][..5], ["s2-main", "1-read+hot-read", "read", "18", "18000"]);
    assert_eq!(cells[1][5..8], ["104", "26", "110"]);
    assert_eq!(cells[1][15], "90%");
    assert_eq!(cells[2][..7], ["s2-main", "write", "write", "2", "2000", "34", "34"]);
    assert_eq!(cells[2][15], "100%");
    // It never ran.
    assert_eq!(cells[3][..3], ["last", "N/A", "N/A"]);
    let histogram = histogram_csv(&archive);
    assert!(histogram.starts_with("ResTime,s2-main-w1-m-1-read+hot,(%),s2-main-w1-m-write,(%)\n"));
    assert!(histogram.contains("\n100~110,18,100%,0,100%\n"), "{}", &histogram[..500]);
    assert!(
        workloads_rows(&archive).contains(",read,18,") || archive.stages[1].metrics[0].ratio == 50
    );
}

#[test]
fn rows_of_the_time_line_add_up() {
    let archive = archive(0.5, None);
    let main = &archive.stages[1];
    let sums = (0..2).map(|op| -> (u64, u64) {
        let figures = || main.snapshots.iter().map(|row| row.figures[op]);
        (figures().map(|of| of.ops).sum(), figures().map(|of| of.samples).sum())
    });
    assert_eq!(sums.collect::<Vec<_>>(), [(18, 20), (2, 2)]);
    let csv = stage_csv(main);
    let rows: Vec<&str> = csv.lines().skip(2).collect();
    assert!(rows[0].starts_with("00:00:04,"), "{csv}");
    assert!(rows[0].ends_with(",0,0,0"), "{csv}");
    let bytes = |op: usize| main.snapshots.iter().map(|row| row.figures[op].bytes).sum::<u64>();
    assert_eq!((bytes(0), bytes(1)), (18_000, 2_000));
    // A stage is not longer than it lasted.
    assert!(stage_csv(&archive.stages[0]).contains("\n00:00:00,4,4000,"));
}

#[test]
fn each_worker_has_a_row_for_each_operation() {
    let archive = archive(0.5, None);
    let csv = worker_csv(&archive.stages[1]);
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let told: Vec<_> = rows.iter().map(|row| (row[0], row[2], row[8])).collect();
    assert_eq!(
        told,
        [
            ("read", "8", "80%"),
            ("write", "1", "100%"),
            ("read", "10", "100%"),
            ("write", "1", "100%")
        ]
    );
}

#[test]
fn states_have_the_instants_of_the_run() {
    let told = |archive: &Archive, stage: usize| {
        let states = archive.stages[stage].states.iter();
        states.map(|state| format!("{} {}", state.state, &state.at[17..])).collect::<Vec<_>>()
    };
    let fine = archive(0.5, None);
    assert_eq!(fine.state(), "finished");
    assert_eq!(
        told(&fine, 1),
        [
            "waiting 00",
            "booting 03",
            "submitting 03",
            "authing 03",
            "launching 03",
            "running 03",
            "closing 05",
            "completed 05"
        ]
    );
    assert_eq!(told(&fine, 2), ["waiting 00", "aborted 09"]);
    // One in ten of the reads failed, and none of the writes: 2 of 22.
    let failed = archive(0.09, None);
    assert_eq!((failed.state(), failed.stages[1].state()), ("failed", "failed"));
    assert_eq!(archive(0.1, None).state(), "finished");
    let cancelled = archive(0.5, Some(WorkloadState::Cancelled));
    let states: Vec<&str> = cancelled.stages.iter().map(ArchivedStage::state).collect();
    assert_eq!(
        (cancelled.state(), &*states),
        ("cancelled", &["completed", "cancelled", "cancelled"][..])
    );
    // A stage that was under way when the run was killed was not completed.
    let killed = archive(0.5, Some(WorkloadState::Terminated));
    let states: Vec<&str> = killed.stages.iter().map(ArchivedStage::state).collect();
    assert_eq!(states, ["completed", "terminated", "aborted"]);
    let row = history_row(&cancelled);
    assert_eq!(
        row,
        "w7,w,1970-01-01 00:00:00,1970-01-01 00:00:00,1970-01-01 00:00:09,prepare read write \
         dispose,cancelled,queuing @ 1970-01-01 00:00:00,processing @ 1970-01-01 00:00:00,\
         cancelled @ 1970-01-01 00:00:09\n"
    );
}

#[test]
fn containers_made_before_the_rest_of_their_stage_are_in_its_tables() {
    let text = "<workload name='w'><storage type='mock'/><workflow><workstage name='both'>\
        <work type='prepare' workers='2' config='containers=r(1,1);objects=r(1,4);sizes=c(1)KB'/>\
        <work type='init' workers='1' config='cprefix=b;containers=r(1,1)'/>\
        </workstage></workflow></workload>";
    let workload = read(text.as_bytes()).unwrap();
    let lowered = lower(&workload, &Options::default()).unwrap();
    let made = StageReport::of("s1-both-make-containers", Vec::new());
    let wrote = stage("s1-both", rows(&ops(), 0, 0, 108, &[0, 0]), false);
    let report = Report {
        state: RunState::Complete,
        ..Report::of("w", WallTime::from_unix_ns(0), vec![made, wrote])
    };
    let results =
        Results { workload: &workload, lowered: &lowered, report: Some(&report), by_worker: None };
    let submitted = WallTime::from_unix_ns(0);
    let ran = Ran { id: "w1", submitted, stopped: Some(submitted), state: None, local: &utc };
    let archive = from_results(&results, &ran);
    let told = archive.stages[0].metrics.iter().map(|of| (&*of.op_name, of.work, of.figures.ops));
    assert_eq!(told.collect::<Vec<_>>(), [("prepare", 1, 4), ("init", 2, 0)]);
    let states = &archive.stages[0].states;
    assert_eq!((&*archive.stages[0].id, archive.stages[0].state()), ("s1-both", "completed"));
    assert_eq!(states.iter().filter(|of| of.state == "running").count(), 1);
}

#[test]
fn a_delay_that_was_cut_short_is_what_was_cut_short() {
    let text = "<workload name='w'><storage type='mock'/><workflow><workstage name='main'>\
        <work name='m' workers='2' totalOps='9'>\
        <operation type='write' config='containers=c(1);objects=u(1,9);sizes=c(1)KB'/></work>\
        </workstage><workstage name='rest' closuredelay='60'><work type='delay'/></workstage>\
        </workflow></workload>";
    let workload = read(text.as_bytes()).unwrap();
    let lowered = lower(&workload, &Options::default()).unwrap();
    let wrote = stage("s1-main", rows(&ops(), 0, 0, 108, &[0, 0]), false);
    let rested = StageReport::of("s2-rest", Vec::new());
    let report = Report {
        state: RunState::Interrupted,
        ..Report::of("w", WallTime::from_unix_ns(0), vec![wrote, rested])
    };
    let results =
        Results { workload: &workload, lowered: &lowered, report: Some(&report), by_worker: None };
    let submitted = WallTime::from_unix_ns(0);
    let ran = Ran { id: "w1", submitted, stopped: Some(submitted), state: None, local: &utc };
    let archive = from_results(&results, &ran);
    let states: Vec<&str> = archive.stages.iter().map(ArchivedStage::state).collect();
    assert_eq!(states, ["completed", "cancelled"]);
}

/// Returns the cells of each row, with the columns' names in the first.
fn cells(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|line| line.split(',').collect()).collect()
}

#[test]
fn tables_have_the_columns_of_the_real_files() {
    let archive = archive(0.5, None);
    let real = include_str!("../../../testdata/cosbench/archive/w3-s3-sample/w3-s3-sample.csv");
    let (real, summary) = (cells(real), summary_csv(&archive));
    let ours = cells(&summary);
    assert_eq!(ours[0], real[0]);
    // A main stage that was completed, read and written: words where there are words, and states
    // in their order.
    let words = |row: &[&str]| {
        let word = |cell: &&str| match cell.split_once(" @ ") {
            Some((state, _)) => state.to_owned(),
            None if cell.starts_with(|c: char| c.is_ascii_digit()) => {
                format!("#{}", if cell.ends_with('%') { "%" } else { "" })
            }
            None => (*cell).to_owned(),
        };
        row[2..].iter().map(word).collect::<Vec<_>>()
    };
    assert_eq!((words(&ours[2]), words(&ours[3])), (words(&real[3]), words(&real[4])));
    let real = include_str!("../../../testdata/cosbench/archive/w3-s3-sample/s3-main.csv");
    let (real, time_line) = (cells(real), stage_csv(&archive.stages[1]));
    let ours = cells(&time_line);
    assert_eq!(ours[0], real[0]);
    let shown: Vec<&str> = real[1]
        .iter()
        .map(|name| if *name == "read" { "1-read+hot-read" } else { *name })
        .collect();
    assert_eq!(ours[1], shown);
    for row in &ours[2..] {
        // A second without an operation has no time and no share of successes.
        let of_real = words(&real[2]);
        let is_like = |(ours, real): (&String, &String)| ours == real || ours == "N/A";
        assert!(words(row).iter().zip(&of_real).all(is_like), "{row:?}");
        assert_eq!(row.len(), shown.len());
    }
    // COSBench wrote no table of workers, and no archive kept its histogram whole.
    let table = worker_csv(&archive.stages[1]);
    let rows = cells(&table);
    assert_eq!(
        rows[0].join(","),
        "Op-Type,Sample-Type,Op-Count,Byte-Count,Avg-ResTime,Avg-ProcTime,Throughput,Bandwidth,\
         Succ-Ratio"
    );
    assert!(rows.iter().all(|row| row.len() == 9), "{table}");
    let histogram = histogram_csv(&archive);
    let columns = "ResTime,s2-main-w1-m-1-read+hot,(%),s2-main-w1-m-write,(%)";
    assert_eq!(histogram.lines().next(), Some(columns));
    assert_eq!(histogram.lines().count(), 50_002);
}

#[test]
fn no_rows_are_made_of_months_in_which_nothing_ended() {
    let mut ops = ops();
    // It ends 139 days later, as no operation does.
    ops.push(op(1, 0, OpKind::Put, 4_200, 12_000_000_000, ErrorClass::Ok));
    let main = stage("s2-main", rows(&ops, 1, 3_000, 12_000_005_000, &[0, 0]), false);
    let (workload, lowered) = workload();
    let report = Report::of("w", WallTime::from_unix_ns(0), vec![main]);
    let results =
        Results { workload: &workload, lowered: &lowered, report: Some(&report), by_worker: None };
    let submitted = WallTime::from_unix_ns(0);
    let ran = Ran { id: "w7", submitted, stopped: None, state: None, local: &utc };
    let archive = from_results(&results, &ran);
    let rows = &archive.stages[1].snapshots;
    assert!((2..10).contains(&rows.len()), "{}", rows.len());
    let written: u64 = rows.iter().flat_map(|row| &row.figures).map(|of| of.ops).sum();
    assert_eq!(written, archive.stages[1].metrics.iter().map(|of| of.figures.ops).sum::<u64>());
}

#[test]
fn failures_in_the_rampup_do_not_fail_a_stage() {
    let (workload, lowered) = workload();
    let state = |measured_from_ms: u64| {
        let times = (3_000, measured_from_ms, 5_000);
        let mut main = stage("s2-main", rows_after_ramp(&ops(), 1, times, &[0, 0]), false);
        main.rows[0].error_rate_max = Some(0.05);
        let report = Report {
            state: RunState::Complete,
            ..Report::of("w", WallTime::from_unix_ns(0), vec![main])
        };
        let report = Some(&report);
        let results = Results { workload: &workload, lowered: &lowered, report, by_worker: None };
        let submitted = WallTime::from_unix_ns(0);
        let ran = Ran { id: "w7", submitted, stopped: None, state: None, local: &utc };
        from_results(&results, &ran).stages[1].state().to_owned()
    };
    // Of 22 operations two fail, which begin before 3.208 s.
    assert_eq!([state(3_000), state(3_208)], ["failed", "completed"]);
}

//! What clients did, beside fio's own output and worked out by hand.

use std::num::NonZeroU32;

use plimsoll_analysis::{
    Depth, Question, RowAnalysis, RowAsked, Rows, Span, Survey, WorkerRow, measure,
};
use plimsoll_model::{Moment, OpKind, OpRecord, StageId, WallTime, WorkerId};
use plimsoll_report::{Report, RowReport, StageReport};
use plimsoll_testkit::golden::assert_like;
use serde_json::Value;

use super::samples::{CLIENTS_JSON, CLIENTS_TEXT, Document};
use super::tests::check_lines;
use super::*;
use crate::fio::{Host, JobFile, Lowered, Machine, Options, Units, lower, parse};

const MS: u64 = 1_000_000;

fn clients(of: &[(&str, u16)]) -> Vec<Client> {
    of.iter().map(|&(name, port)| Client { name: name.to_owned(), port }).collect()
}

/// Returns the input that comes to fio's output of two clients; the last row is of both.
fn sample_run<'a>(run: FioRun<'a>, clients: &'a [Client]) -> FioRun<'a> {
    let whose = [FioWhose::Client(0), FioWhose::Client(1), FioWhose::All];
    let records = run.records.into_iter().zip(whose);
    let records = records.map(|(record, whose)| FioRecord { whose, ..record });
    // Of clients there are no milliseconds.
    FioRun { records: records.collect(), clients, timestamp_ms: 1_795_208_948_000, ..run }
}

#[test]
fn the_json_of_clients_is_that_of_fio() {
    let document = Document::parse(CLIENTS_JSON);
    let histograms = document.histograms();
    let ran_by = clients(&[("127.0.0.1", 18766), ("127.0.0.1", 18765)]);
    let mut run = sample_run(document.run(&histograms), &ran_by);
    // fio 3.33 has no percentiles of all clients.
    run.records[2].percentiles_of.clat = false;
    // Of all clients fio names the one that came last.
    let (before, last) = CLIENTS_JSON.rsplit_once("\"hostname\" : \"127.0.0.1\",").unwrap();
    let last = last.replace("18765", "0");
    let fio = format!("{before}\"hostname\" : \"127.0.0.1,127.0.0.1\",{last}");
    let ours = json(&run);
    check_lines(&fio, &ours, false);
    assert!(ours.ends_with("  ],\n  \"disk_util\" : [\n\n  ]\n}\n"), "{ours}");
    let ours = Document::parse(&ours);
    let hosts: Vec<_> = ours.jobs.iter().map(|job| (job.hostname.as_deref(), job.port)).collect();
    assert_eq!(
        hosts,
        [
            (Some("127.0.0.1"), Some(18_766)),
            (Some("127.0.0.1"), Some(18_765)),
            (Some("127.0.0.1,127.0.0.1"), Some(0))
        ]
    );
}

/// Returns the lines whose number does not depend on the figures.
fn shown(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("  lat ("));
    let shown = lines.filter(|line| !line.starts_with("Jobs: "));
    shown.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_text_of_clients_is_that_of_fio() {
    let document = Document::parse(CLIENTS_JSON);
    let histograms = document.histograms();
    let ran_by = clients(&[("vm", 18766), ("vm", 18765)]);
    let mut run = sample_run(document.run(&histograms), &ran_by);
    run.records[2].percentiles_of.clat = false;
    let section = FioSection {
        name: "read_throughput".to_owned(),
        group: 0,
        clones: 2,
        rw: "read".to_owned(),
        block_bytes: [(1 << 20, 1 << 20); 3],
        engine: "posixaio".to_owned(),
        depth: 1,
    };
    run.sections = vec![section];
    let ours = normal(&run);
    let line = "<vm> read_throughput: (g=0): rw=read, bs=(R) 1024KiB-1024KiB, (W) 1024KiB-1024KiB, \
                (T) 1024KiB-1024KiB, ioengine=posixaio, iodepth=1\n<vm> ...\n";
    assert!(CLIENTS_TEXT.contains(line), "{CLIENTS_TEXT}");
    let version = &run.version;
    let begin = format!("{line}<vm> Starting 2 threads\n");
    let expected = format!("hostname=vm, fio={version}\n").repeat(2) + &begin.repeat(2);
    assert!(ours.starts_with(&expected), "{ours}");
    // Behind it, line by line.
    let rest = |text: &'static str| &text[text.find("<vm> \n").unwrap()..];
    let fio = rest(CLIENTS_TEXT);
    let our_rest = &ours[ours.find("<vm> \n").unwrap()..];
    // fio leaves out the unit.
    let of_all = "  read: IOPS=9771, BW=9772Mi (10.2G)(38.2GiB/4002msec)";
    assert!(fio.contains(of_all));
    let of_all_ours = "  read: IOPS=10.6k, BW=10.3GiB/s (11.1GB/s)(41.4GiB/4004msec)";
    assert!(our_rest.contains(of_all_ours));
    assert_like(&shown(&fio.replace(of_all, of_all_ours)), &shown(our_rest), &[]);
}

/// A section of two clones whose row is one, and then one clone that writes.
const FILE: &str = "\
[global]
directory=/d
size=64k
[reads]
rw=read
bs=4k
numjobs=2
group_reporting
[writes]
stonewall
rw=write
bs=8k
";

fn op(stage: u8, worker: u32, start_ms: u64, end_ms: u64) -> OpRecord {
    let at = |ms: u64| Moment::from_ns(ms * MS);
    OpRecord {
        stage: StageId(stage),
        worker: WorkerId(worker),
        bytes: if stage == 1 { 4_096 } else { 8_192 },
        ..OpRecord::plain(
            if stage == 1 { OpKind::Read } else { OpKind::Write },
            at(start_ms),
            at(end_ms),
        )
    }
}

/// Returns the rows of a stage whose workers are in these.
fn rows(ops: &[OpRecord], stage: u8, (began, ended): (u64, u64), of: &[u32]) -> Vec<RowAnalysis> {
    let at = |ms: u64| Moment::from_ns(ms * MS);
    let worker =
        |&row: &u32| Some(WorkerRow { row, measured_from: at(began), measured_until: None });
    let workers: Vec<Option<WorkerRow>> = of.iter().map(worker).collect();
    let count = |row: u32| of.iter().filter(|each| **each == row).count() as u32;
    let asked =
        |row| RowAsked { workers: count(row), span: Span::FromRamps, open: false, ends: None };
    let asked: Vec<RowAsked> = (0..=of.iter().copied().max().unwrap()).map(asked).collect();
    let question = Question {
        rows: Rows::Several { workers: &workers, rows: &asked },
        segment: Some(RATE_WINDOW),
        depth: Depth::Distributions,
        ..Question::about(StageId(stage), at(began), at(ended), of.len() as u32)
    };
    let Ok(survey) = Survey::of(ops);
    let Ok(mut answers) = measure(ops, &survey, &[question]);
    answers.remove(0).rows
}

/// Returns a stage of these rows with whose each is.
fn stage(name: &str, rows: Vec<RowAnalysis>, served_by: &[&str]) -> StageReport {
    let row = |(at, analysis): (usize, RowAnalysis)| {
        let served_by = served_by.get(at).map(|name| (*name).to_owned()).into_iter().collect();
        RowReport { jobs: vec![0], served_by, ..RowReport::of(name, analysis) }
    };
    StageReport::of(name, rows.into_iter().enumerate().map(row).collect())
}

fn report(stages: Vec<StageReport>) -> Report {
    Report::of("fio", WallTime::from_unix_ns(0), stages)
}

fn job_file(text: &str) -> (JobFile, Lowered) {
    let options = Options {
        units: Units::Strict,
        read: &|_| Err(String::new()),
        variable: &|_| None,
        host: Host { cpus_count: 1, memory_mib: 1, page_size_bytes: 4_096 },
        sections: Vec::new(),
    };
    let file = parse(text, "job.fio", &options).unwrap();
    let machine = Machine {
        cores: 2,
        default_directory: "/",
        file_size: &|_| None,
        is_device: &|_| false,
        destroys: false,
        seed: 1,
        size_scale: None,
        runtime_scale: None,
        clones_max: None,
        clients: NonZeroU32::new(2).unwrap(),
    };
    let lowered = lower(&file, &machine).unwrap();
    (file, lowered)
}

/// Stage 1 has workers 0 and 1 of `a`, 2 and 3 of `b`; stage 2 has 0 of `a` and 1 of `b`.
fn ops() -> Vec<OpRecord> {
    let mut ops = Vec::new();
    // 4 reads of 1 ms by each clone of a, 2 of 3 ms by each of b, all in the first 10 ms.
    for read in 0..4 {
        ops.extend([op(1, 0, read * 2, read * 2 + 1), op(1, 1, read * 2, read * 2 + 1)]);
    }
    for read in 0..2 {
        ops.extend([op(1, 2, read * 4, read * 4 + 3), op(1, 3, read * 4, read * 4 + 3)]);
    }
    // From 1 s on one write of 8 ms by a, two of 10 ms by b.
    ops.extend([op(2, 0, 1_000, 1_008), op(2, 1, 1_000, 1_010), op(2, 1, 1_010, 1_020)]);
    ops
}

fn ran(print: impl Fn(&FioRun<'_>) -> String) -> String {
    let (file, lowered) = job_file(FILE);
    let ops = ops();
    let fill = || stage("fill", rows(&[op(0, 0, 0, 1)], 0, (0, 1), &[0]), &[]);
    let own = report(vec![
        fill(),
        stage("reads", rows(&ops, 1, (0, 10), &[0, 0, 1, 1]), &["a", "b"]),
        stage("writes", rows(&ops, 2, (1_000, 1_020), &[0, 1]), &["a", "b"]),
    ]);
    let all = report(vec![
        fill(),
        stage("reads", rows(&ops, 1, (0, 10), &[0, 0, 0, 0]), &[]),
        stage("writes", rows(&ops, 2, (1_000, 1_020), &[0, 0]), &[]),
    ]);
    let clients = clients(&[("a", 8765), ("b", 8766)]);
    let by_clients = Some(RanByClients { clients: &clients, all: &all });
    let ran = Ran { file: &file, lowered: &lowered, report: &own, by_clients };
    let writing = Writing {
        program: "plimsoll-0.0.0".to_owned(),
        pid: 9,
        unix_ms: 1_795_209_896_039,
        time: "Fri Nov 20 21:24:56 2026".to_owned(),
    };
    print(&ran.run(writing, &FioLevels::default()))
}

#[test]
fn two_clients_worked_out_by_hand() {
    let report: Value = serde_json::from_str(&ran(json)).unwrap();
    let stats = report["client_stats"].as_array().unwrap();
    let told = |side: &str| -> Vec<(String, u64, String, u64, u64, u64)> {
        let whole = |value: &Value| value.as_u64().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let row = |job: &Value| {
            let moved = &job[side];
            (
                text(&job["jobname"]),
                whole(&job["groupid"]),
                text(&job["hostname"]),
                whole(&moved["total_ios"]),
                whole(&moved["runtime"]),
                whole(&moved["bw_bytes"]),
            )
        };
        stats.iter().filter(|job| job[side]["total_ios"] != 0).map(row).collect()
    };
    let row = |name: &str, group, host: &str, ops, ms, rate| {
        (name.to_owned(), group, host.to_owned(), ops, ms, rate)
    };
    // The last read of b ends after 7 ms, as does that of a: 8 * 4096 and 4 * 4096 bytes.
    assert_eq!(
        told("read"),
        [
            row("reads", 0, "a", 8, 7, 4_681_142),
            row("reads", 0, "b", 4, 7, 2_340_571),
            row("All clients", 0, "a,b", 12, 7, 7_021_714),
        ]
    );
    // Nothing of the reads a second before is in it.
    assert_eq!(
        told("write"),
        [
            row("writes", 1, "a", 1, 8, 1_024_000),
            row("writes", 1, "b", 2, 20, 819_200),
            row("All clients", 1, "a,b", 3, 20, 1_228_800),
        ]
    );
    let order: Vec<&Value> = stats.iter().map(|job| &job["jobname"]).collect();
    assert_eq!(order, ["reads", "writes", "reads", "writes", "All clients", "All clients"]);
    let all = &stats[4];
    assert_eq!((&all["desc"], &all["port"]), (&"reads".into(), &0.into()));
    assert_eq!((&all["job options"], &all["latency_depth"]), (&Value::Null, &Value::Null));
    assert_eq!((&stats[3]["port"], &stats[0]["eta"]), (&8_766.into(), &Value::Null));
    // Of 12 reads 8 took 1 ms and 4 took 3 ms.
    let clat = &all["read"]["clat_ns"];
    let near = |value: &Value, ms: u64| {
        let value = value.as_u64().unwrap() as f64;
        assert!((value - (ms * MS) as f64).abs() <= 0.001 * value, "{clat}");
    };
    near(&clat["percentile"]["60.000000"], 1);
    near(&clat["percentile"]["70.000000"], 3);
    assert_eq!((&clat["N"], &clat["max"]), (&12.into(), &(3 * MS).into()));
    assert_eq!(clat["mean"].as_f64().unwrap().round(), 1_666_667.0);
}

#[test]
fn two_clients_in_text() {
    let text = ran(normal);
    let now = "Fri Nov 20 21:24:56 2026";
    for (count, line) in [
        (1, "hostname=b, fio=plimsoll-0.0.0"),
        (1, "<a> Starting 3 threads"),
        (2, &format!("reads: (groupid=0, jobs=2): err= 0: pid=0: {now}")),
        (1, &format!("All clients: (groupid=0, jobs=4): err= 0: pid=0: {now}")),
        (1, "  Description  : [reads]"),
        (1, &format!("All clients: (groupid=1, jobs=2): err= 0: pid=0: {now}")),
        (1, "  write: IOPS=150, BW=1200KiB/s (1229kB/s)(24.0KiB/20msec); 0 zone resets"),
    ] {
        let found = text.lines().filter(|one| *one == line).count();
        assert_eq!(found, count, "{line}\n{text}");
    }
    // The sums of a client are of its rows alone.
    let own = &text[text.find("<a> \n").unwrap()..text.find("<b> \n").unwrap()];
    let sum =
        "Run status group 0 (all jobs):\n   READ: bw=4571KiB/s (4681kB/s), 4571KiB/s-4571KiB/s";
    assert!(own.contains(sum), "{own}");
}

#[test]
fn one_client_with_one_row_is_all_of_them() {
    let count = |text: &str, names: &[(&str, u16)]| {
        let (file, lowered) = job_file(text);
        let of = || {
            let stages = lowered.workload.work_stages().map(|spec| {
                stage(
                    spec.name.as_deref().unwrap(),
                    rows(&ops(), 1, (0, 10), &[0, 0, 0, 0]),
                    &["a"],
                )
            });
            report(stages.collect())
        };
        let (own, all, clients) = (of(), of(), clients(names));
        let by_clients = Some(RanByClients { clients: &clients, all: &all });
        let ran = Ran { file: &file, lowered: &lowered, report: &own, by_clients };
        let writing = Writing { program: String::new(), pid: 1, unix_ms: 0, time: String::new() };
        let records = ran.run(writing, &FioLevels::default()).records;
        records.iter().filter(|record| record.whose == FioWhose::All).count()
    };
    let one = "[global]\nsize=4k\ngroup_reporting\n[x]\nrw=read\nnumjobs=3\n";
    let made = format!("{one}[y]\nstonewall\nrw=write\ncreate_only=1\n");
    assert_eq!(count(one, &[("a", 1)]), 0);
    assert_eq!(count(one, &[("a", 1), ("b", 1)]), 1);
    // fio counts a section that only makes files, too.
    assert_eq!(count(&made, &[("a", 1)]), 1);
    // And each clone that has a row of its own.
    assert_eq!(count("[x]\nrw=read\nsize=4k\nnumjobs=2\n", &[("a", 1)]), 1);
}

#[test]
fn logs_bear_the_name_of_their_client() {
    let text = FILE.replace("[writes]", "write_bw_log=x\n[writes]");
    let (file, lowered) = job_file(&text);
    let own = report(vec![
        stage("fill", rows(&ops(), 1, (0, 1), &[0]), &[]),
        stage("reads", rows(&ops(), 1, (0, 10), &[0, 0, 1, 1]), &["a", "b"]),
    ]);
    let clients = clients(&[("a", 1), ("b", 1)]);
    let names = |by_clients| {
        let ran = Ran { file: &file, lowered: &lowered, report: &own, by_clients };
        let files = ran.logs().into_iter().flat_map(CloneLogs::finish);
        files.map(|(name, _)| name).collect::<Vec<_>>()
    };
    let by_clients = RanByClients { clients: &clients, all: &own };
    assert_eq!(
        names(Some(by_clients)),
        ["x_bw.1.log.a", "x_bw.2.log.a", "x_bw.1.log.b", "x_bw.2.log.b"]
    );
    assert_eq!(names(None), ["x_bw.1.log", "x_bw.2.log", "x_bw.3.log", "x_bw.4.log"]);
}

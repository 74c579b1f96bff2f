//! Every raw file that warp recorded gives the report that warp printed for it.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_analysis::warp::{WarpQuestion, WarpSegment, WarpSingleSize, WarpWorker, analyze};
use plimsoll_foreign::warp::aggregated::Aggregated;
use plimsoll_foreign::warp::raw::{ForeignWorker, Names, scan};
use plimsoll_model::{EndpointId, Moment, OpKind, OpRecord};
use serde_json::Value;

use super::*;
use crate::warp::document;

/// A raw file, read.
pub(in crate::warp) struct Raw {
    ops: Vec<OpRecord>,
    names: Names,
    workers: Vec<WarpWorker>,
    error_texts: BTreeMap<usize, String>,
    pub(in crate::warp) utc_offset_seconds: i32,
}

pub(in crate::warp) fn path(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/warp")).join(name)
}

pub(in crate::warp) fn printed(name: &str) -> String {
    std::fs::read_to_string(path(&format!("{name}.txt"))).unwrap()
}

impl Raw {
    pub(in crate::warp) fn read(name: &str) -> Self {
        let file = File::open(path(&format!("{name}.csv.zst"))).unwrap();
        let (mut ops, mut error_texts) = (Vec::new(), BTreeMap::new());
        let mut names = Names::default();
        let end = scan(file, &mut names, &mut |op, texts| {
            if !texts.error.is_empty() {
                error_texts.insert(ops.len(), texts.error.to_owned());
            }
            ops.push(*op);
        });
        let end = end.unwrap();
        assert!(end.losses.is_empty(), "{name}: {:?}", end.losses);
        let worker = |of: &ForeignWorker| WarpWorker { client: of.client, thread: of.thread };
        let workers = names.workers.iter().map(worker).collect();
        let utc_offset_seconds = end.utc_offset_seconds.unwrap_or(0);
        Self { ops, names, workers, error_texts, utc_offset_seconds }
    }

    fn recording(&self) -> Recording<'_> {
        Recording {
            ops: &self.ops,
            endpoints: &self.names.endpoints,
            clients: &self.names.clients,
            workers: &self.workers,
            error_texts: &self.error_texts,
            utc_offset_seconds: self.utc_offset_seconds,
        }
    }

    fn analysis(&self, question: &WarpQuestion) -> WarpAnalysis {
        analyze(&self.recording(), question)
    }

    /// Returns the document that warp would make of it.
    pub(in crate::warp) fn document(&self) -> Aggregated {
        document(&self.recording(), &plain(), String::new()).unwrap()
    }

    fn text(&self, question: &WarpQuestion) -> String {
        text(&self.analysis(question), &self.recording())
    }

    fn tsv(&self, question: &WarpQuestion) -> String {
        segments_tsv(&self.analysis(question), &self.recording())
    }
}

fn plain() -> WarpQuestion {
    WarpQuestion::default()
}

fn verbose() -> WarpQuestion {
    WarpQuestion { verbose: true, ..plain() }
}

fn gets() -> WarpQuestion {
    WarpQuestion { op: Some(OpKind::Get), ..plain() }
}

/// Compares to the byte with what warp printed at the end of the run: all from the first rule (or
/// the line that stands for it in a mixed run) to before the exit status, which the recorder added
/// with an empty line in front.
#[track_caller]
fn check_run(name: &str, question: &WarpQuestion) {
    let printed = printed(name);
    let begins =
        ["\n------", "Mixed operations."].into_iter().filter_map(|head| printed.find(head));
    let report = &printed[begins.min().unwrap()..];
    let report = report.strip_suffix("\n[exit status 0]\n").unwrap();
    assert_eq!(Raw::read(name).text(question), report, "{name}");
}

/// Returns what `warp analyze` printed with `flags`: all after the empty line that it begins with.
#[track_caller]
pub(in crate::warp) fn sample(flags: &str) -> String {
    let printed = printed("analyze-samples");
    let command = format!("$ warp analyze --no-color {flags}\n\n");
    let (_, after) = printed.split_once(&command).unwrap();
    after.split("$ warp ").next().unwrap().to_owned()
}

#[test]
fn the_reports_after_runs_are_the_same_to_the_byte() {
    for name in [
        "append-errors-full",
        "autoterm-full-rps-stat",
        "fanout-all-errors-full",
        "get-full",
        "list-full",
        "mixed-full",
        "multipart-put-full",
        "put-full",
        "retention-full",
        "snowball-full",
        "stat-full",
        "zip-full",
    ] {
        check_run(name, &plain());
    }
    check_run("get-2hosts-full-v", &verbose());
    check_run("get-randsize-full-v", &verbose());
}

#[test]
fn every_raw_file_is_compared_with_a_printed_report() {
    let source = include_str!("tests.rs");
    let files = std::fs::read_dir(path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let names =
        files.filter_map(|name| name.to_str().unwrap().strip_suffix(".csv.zst").map(str::to_owned));
    let names: Vec<String> = names.collect();
    assert!(names.len() >= 16, "{names:?}");
    for name in names {
        assert!(source.contains(&format!("\"{name}\"")), "{name} has no test");
    }
}

#[test]
fn the_reports_of_analyze_are_the_same_to_the_byte() {
    let (up, hosts) = ("upstream-testdata-get", "get-2hosts-full-v");
    let raw = Raw::read("upstream-testdata-get");
    let five = WarpQuestion { segment: Some(Duration::from_secs(5)), ..plain() };
    let skip = WarpQuestion { skip: Duration::from_secs(10), ..gets() };
    let up = |flags: &str| sample(&format!("{flags} {up}.csv.zst"));
    assert_eq!(raw.text(&plain()), up("--full"));
    assert_eq!(raw.text(&verbose()), up("--full --analyze.v"));
    assert_eq!(raw.text(&five), up("--full --analyze.dur=5s"));
    assert_eq!(raw.text(&skip), up("--full --analyze.skip=10s --analyze.op=get"));

    let raw = Raw::read("get-2hosts-full-v");
    let host = raw.names.endpoints.iter().position(|name| name == "http://localhost:19110");
    let host = WarpQuestion { host: Some(EndpointId(host.unwrap() as u16)), ..gets() };
    let flags = "--full --analyze.host=http://localhost:19110 --analyze.op=get";
    assert_eq!(raw.text(&host), sample(&format!("{flags} {hosts}.csv.zst")));

    let gets = WarpQuestion { verbose: true, ..gets() };
    let flags = "--full --analyze.v --analyze.op=get --analyze.out=-";
    let both = raw.tsv(&gets) + &raw.text(&gets);
    assert_eq!(both, sample(&format!("{flags} {hosts}.csv.zst")));
}

/// The first row of the table for the upstream file, whose moments are so coarse that operations
/// end just where the first segment begins.
#[test]
fn the_first_segment_of_the_upstream_file() {
    let tsv = Raw::read("upstream-testdata-get").tsv(&plain());
    let row = "0\tPUT\t\t1\t1\t1421656468\t129\t22\t139\t141\t0\t1355.7972602844238\t141\t\
               135.57972688010395\t83.63763191489356\t2019-11-13 17:07:06.3943418 +0100 +0100\t\
               2019-11-13 17:07:07.3943418 +0100 +0100";
    assert_eq!(tsv.lines().nth(1).unwrap(), row);
}

/// The report of `get-full-json` is JSON. It was made from the memory of the process that ran the
/// benchmark, where durations come from the monotonic clock. The file has the wall clock's moments:
/// in 4,530 of its 15,894 GET rows the column `duration_ns` is not end minus start, mostly by some
/// nanoseconds, once by 0.22 ms. So percentiles may be one rank off, which is at most 140 ns here,
/// shares of objects differ in the ninth digit, and sums of shares of bytes by a byte. Moments and
/// counts are equal.
#[test]
fn the_json_report_has_the_same_figures() {
    let printed = printed("get-full-json");
    let (begin, end) = (printed.find("{\n").unwrap(), printed.rfind("\n}").unwrap() + 2);
    let printed: Value = serde_json::from_str(&printed[begin..end]).unwrap();
    let raw = Raw::read("get-full-json");
    let analysis = raw.analysis(&verbose());
    assert_eq!(analysis.kinds.len(), 2);
    let (put, put_printed) = (&analysis.kinds[0], &printed["operations"][0]);
    assert_eq!(put.kind.name(), put_printed["type"]);
    assert_eq!((put.operations, put.figures.is_none()), (100, put_printed["skipped"] == true));

    let (get, printed) = (&analysis.kinds[1], &printed["operations"][1]);
    let figures = get.figures.as_ref().unwrap();
    assert_eq!(get.operations, printed["n"]);
    assert_eq!(time(figures.started), printed["start_time"]);
    assert_eq!(time(figures.ended), printed["end_time"]);
    assert_eq!(figures.concurrency, printed["concurrency"]);
    check_throughput(&figures.throughput, &printed["throughput"]);
    // One host and one client: the report by host is that of all over the other kind of span.
    let recording = raw.analysis(&WarpQuestion { host: Some(EndpointId(0)), ..gets() });
    let host = &recording.kinds[0].figures.as_ref().unwrap().throughput;
    check_throughput(host, &printed["throughput_by_host"]["http://127.0.0.1:19110"]);

    let requests = figures.requests.as_ref().unwrap();
    let printed = &printed["single_sized_requests"];
    let WarpSizes::Single(single) = &requests.sizes else { panic!("{:?}", requests.sizes) };
    let WarpSingleSize { bytes, times, first_access, last_access } = &**single;
    assert_eq!(*bytes, printed["obj_size"]);
    check_access(times.as_ref().unwrap(), printed);
    check_access(first_access.as_ref().unwrap(), &printed["first_access"]);
    check_access(last_access.as_ref().unwrap(), &printed["last_access"]);
}

/// Returns a moment as RFC 3339 with the fraction cut short.
fn time(at: Moment) -> String {
    let text = plimsoll_model::WallTime::from_unix_ns(at.as_ns()).to_string();
    format!("{}Z", text.trim_end_matches('Z').trim_end_matches('0'))
}

#[track_caller]
fn check_throughput(ours: &WarpThroughput, printed: &Value) {
    assert_eq!(time(ours.started), printed["start_time"]);
    assert_eq!(time(ours.ended), printed["end_time"]);
    assert_eq!(ours.millis(), printed["measure_duration_millis"]);
    check_bytes(ours.shares.bytes as f64, &printed["bytes"]);
    assert_eq!(ours.shares.full_ops, printed["ops"]);
    let objects = printed["objects"].as_f64().unwrap();
    assert!((ours.shares.objects - objects).abs() < 1e-4, "{} {objects}", ours.shares.objects);
    let (segments, printed) = (ours.segments.as_ref().unwrap(), &printed["segmented"]);
    for (name, segment) in ["fastest", "median", "slowest"].into_iter().zip(segments.picked()) {
        assert_eq!(time(segment.start), printed[format!("{name}_start")], "{name}");
        check_bytes(segment.bytes_per_second(), &printed[format!("{name}_bps")]);
    }
    let mut by_time: Vec<&WarpSegment> = segments.by_rate.iter().collect();
    by_time.sort_by_key(|segment| segment.start);
    let printed = printed["segments"].as_array().unwrap();
    assert_eq!(by_time.len(), printed.len());
    for (ours, printed) in by_time.into_iter().zip(printed) {
        assert_eq!(time(ours.start), printed["start"]);
        check_bytes(ours.bytes_per_second(), &printed["bytes_per_sec"]);
        let objects = format!("{:.2}", ours.objects_per_second());
        assert_eq!(objects, format!("{:.2}", printed["obj_per_sec"].as_f64().unwrap()));
    }
}

/// Allows one byte for each of the shares of four workers' operations at both ends.
#[track_caller]
fn check_bytes(ours: f64, printed: &Value) {
    let printed = printed.as_f64().unwrap();
    assert!((ours - printed).abs() <= 8.0, "{ours} is not {printed}");
}

#[track_caller]
fn check_millis(what: &str, ours: Duration, printed: &Value) {
    let printed = printed.as_f64().unwrap();
    let difference = (ours.as_nanos() as f64 / 1e6 - printed).abs();
    assert!(difference <= 140.5e-6, "{what}: {ours:?} is not {printed} ms");
}

#[track_caller]
fn check_access(ours: &WarpAccess, printed: &Value) {
    let (times, ttfb) = (&ours.durations, ours.ttfb.as_ref().unwrap());
    assert_eq!(times.samples, printed["requests"]);
    check_millis("average", times.average, &printed["dur_avg_millis"]);
    check_millis("deviation", times.std_dev, &printed["std_dev_millis"]);
    let first = &printed["first_byte"];
    check_millis("ttfb average", ttfb.average, &first["average_millis"]);
    check_millis("ttfb deviation", ttfb.std_dev, &first["std_dev_millis"]);
    for percent in 0..=100 {
        let printed = [&printed["dur_percentiles_millis"], &first["percentiles_millis"]];
        for (ours, printed) in [times, ttfb].into_iter().zip(printed) {
            check_millis(&format!("p{percent}"), ours.percentile(percent), &printed[percent]);
        }
    }
}

/// The form of these lines is that of warp's README and of its pull requests 152, 243 and 341; the
/// figures stand in the printed reports of the same files.
#[test]
fn forms_of_which_no_printed_report_is_kept() {
    let hosts = Raw::read("get-2hosts-full-v");
    let averages = "* Average: 26.00 MiB/s, 1664.31 obj/s\n\nThroughput by host:\n \
        * http://127.0.0.1:19110: Avg: 13.09 MiB/s, 837.87 obj/s\n \
        * http://localhost:19110: Avg: 12.92 MiB/s, 826.75 obj/s\n\nThroughput, split into";
    let text = hosts.text(&plain());
    assert!(text.contains(averages), "{text}");

    let mixed = Raw::read("mixed-full").text(&verbose());
    assert!(mixed.starts_with("Mixed operations.\n------"), "{mixed}");
    for line in [
        "\nOperation: GET - total: 5851, 45.0%, Size: 16384 bytes, Concurrency: 8, Ran 9s, \
         starting 2026-11-20 20:55:49.",
        "\n * Throughput: 9.18 MiB/s, 587.47 obj/s\n\nRequests considered: ",
        "\n\n----------------------------------------\nOperation: PUT - total: 1950, 15.0%, ",
        "\nCluster Total: 12.24 MiB/s, 1305.42 obj/s over 10s.\n",
    ] {
        assert!(mixed.contains(line), "{line} is not in\n{mixed}");
    }

    let failures = Raw::read("append-errors-full").text(&verbose());
    let first = "\nErrors: 4971\nFirst Errors:\n * http://127.0.0.1:19110, 21:00:41 UTC: An \
                 unsupported API call for method: PUT at '/w-app/";
    assert!(failures.contains(first), "{failures}");
    assert_eq!(failures.matches(" An unsupported").count(), 10);
}

#[test]
fn durations_are_written_as_go_writes_them() {
    // From the documentation of Go's package `time` and warp's printed reports.
    let cases = [
        (0, "0s"),
        (999, "999ns"),
        (1_500, "1.5µs"),
        (33_000_000, "33ms"),
        (1_500_000_000, "1.5s"),
        (60_000_000_000, "1m0s"),
        (899_000_000_000, "14m59s"),
        (5_415_500_000_000, "1h30m15.5s"),
    ];
    for (ns, text) in cases {
        assert_eq!(go_duration(Duration::from_nanos(ns), 1), text);
    }
    assert_eq!(millis(Duration::from_micros(98_600)), "98ms");
    assert_eq!(rounded_millis(Duration::from_micros(98_600)), "99ms");
    assert_eq!(whole_seconds(59_908), "60s");
}

#[test]
fn rates_change_unit_late() {
    let mib = f64::from(1 << 20);
    let cases = [
        (0.0, "0B/s"),
        (2_047.0, "2047.0B/s"),
        (2_048.0, "2.0KiB/s"),
        (2.0 * mib - 1_024.0, "2047.0KiB/s"),
        (10_239.0 * mib, "10239.0MiB/s"),
        (10_240.0 * mib, "10.00GiB/s"),
        (10_240.0 * 1_024.0 * mib, "10.00TiB/s"),
    ];
    for (bytes, text) in cases {
        assert_eq!(rate(bytes), text);
    }
}

#[test]
fn a_time_of_day_has_its_zone() {
    let at = Moment::from_ns(1_573_661_226_394_341_800);
    assert_eq!(clock(at, 3_600), "17:07:06 +0100");
    assert_eq!(clock(at, 0), "16:07:06 UTC");
    assert_eq!(date_time(at, -34_200, 9), "2019-11-13 06:37:06.3943418 -0930 -0930");
    assert_eq!(date_time(at, 3_600, 3), "2019-11-13 17:07:06.394 +0100 +0100");
}

//! Every document of warp's gives the report that warp printed of it, to the byte; every raw file
//! of which warp's report is known gives its figures; and what is printed here is in warp's words.
#![allow(clippy::disallowed_methods)]

use std::fs::File;

use plimsoll_foreign::warp::aggregated::read;
use plimsoll_testkit::golden::assert_lines_of;

use super::super::layout::tests::{Raw, path, printed, sample};
use super::*;

/// Documents whose report warp printed at the end of the run.
const REPORTED: [&str; 8] = [
    "get-default",
    "get-default-b",
    "mixed-default",
    "get-2hosts-default",
    "append-errors-default",
    "autoterm-rps-get",
    "dist2-get-default",
    "dist2-client-lost",
];
const DETAILS: ReportShown<'static> = ReportShown { details: true, op: None };

fn document(name: &str) -> Aggregated {
    read(File::open(path(&format!("{name}.json.zst"))).unwrap()).unwrap()
}

/// Returns the report that warp printed at the end of a run: from its first line to the exit
/// status that the recorder added, less the line feed that warp puts behind.
fn of_warp(name: &str) -> String {
    let printed = printed(name);
    let (_, report) =
        printed.split_once("\n\nReport: ").or_else(|| printed.split_once("\nReport: ")).unwrap();
    let report = format!("Report: {report}");
    report.strip_suffix("\n[exit status 0]\n").unwrap().to_owned()
}

/// Returns a text with the starts of its segments two seconds later: warp has them too early.
fn corrected(text: &str) -> String {
    let line = |line: &str| {
        let Some((before, time)) = line.split_once("(1s, starting ") else {
            return line.to_owned();
        };
        let part = |at: usize| time[at..at + 2].parse::<u32>().unwrap();
        let second = part(0) * 3_600 + part(3) * 60 + part(6) + 2;
        let (hour, minute) = (second / 3_600, second / 60 % 60);
        format!("{before}(1s, starting {hour:02}:{minute:02}:{:02}{}", second % 60, &time[8..])
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_document_of_warps_gives_the_report_that_warp_printed() {
    for name in REPORTED {
        let report = text(&document(name), ReportShown::default());
        assert_eq!(report, of_warp(name), "{name}");
    }
}

#[test]
fn a_merged_document_gives_its_details_as_warp_printed_them() {
    let samples = printed("merge-samples");
    let (_, report) = samples.split_once("\n\n Report: ").unwrap();
    let (report, _) = report.split_once("\n\n\n\nwarp: <ERROR>").unwrap();
    let ours = text(&document("merged-json"), DETAILS);
    assert_eq!(ours.trim_end(), format!("Report: {report}").trim_end());
}

#[test]
fn raw_files_give_the_figures_that_warp_analyze_printed() {
    // As the lines were typed.
    for (name, typed) in
        [("upstream-testdata-get", " upstream-testdata-get"), ("mixed-full", "mixed-full")]
    {
        let printed = sample(&format!("{typed}.csv.zst"));
        let of_warp = printed.trim_start_matches([' ', '\n']);
        let mut raw = Raw::read(name);
        // As the machine had it.
        raw.utc_offset_seconds = 0;
        let ours = text(&raw.document(), DETAILS);
        let (ours, of_warp) = (lines(&ours), lines(&corrected(of_warp)));
        assert_eq!(ours, of_warp, "{name}");
    }
}

fn lines(text: &str) -> Vec<String> {
    text.trim_end().lines().map(str::to_owned).collect()
}

/// Lines of warp's source that none of its outputs at hand has.
const OF_SOURCE: &str = " * Objects per request: 1. Size: 16384 bytes. Concurrency: 8. Hosts: 2.
 * HOST: Avg: 13.10 MiB/s, 838.08 obj/s (10s)
Request size 1KiB -> 100KiB . Requests: 3321
 * Reqs: Avg: 3.0MiB/s, 50%: 4.9MiB/s, 90%: 747.8KiB/s, 99%: 160.2KiB/s, Fastest: 215.0MiB/s, \
                         Slowest: 33.2KiB/s\u{20}
 * Average: 4.00 obj/s, 4971 errors
 * Average: 4.00 obj/s, 4971 errors (8s)
 - First Errors:
";

#[test]
fn what_is_made_of_raw_files_is_in_warps_words() {
    let mut printed_by_warp: Vec<String> = REPORTED.map(of_warp).to_vec();
    printed_by_warp.extend(["analyze-samples", "merge-samples"].map(printed));
    printed_by_warp.push(OF_SOURCE.to_owned());
    let mut lines_count = 0;
    for name in [
        "get-full",
        "put-full",
        "list-full",
        "stat-full",
        "mixed-full",
        "multipart-put-full",
        "retention-full",
        "snowball-full",
        "zip-full",
        "get-2hosts-full-v",
        "get-randsize-full-v",
        "append-errors-full",
        "fanout-all-errors-full",
        "autoterm-full-rps-stat",
        "get-full-json",
    ] {
        let document = Raw::read(name).document();
        let kinds: Vec<&str> = document.by_op_type.keys().map(|kind| &**kind).collect();
        let of_warp = ["GET", "PUT", "STAT", "DELETE", "APPEND"];
        let hosts = ["HOST", "http://127.0.0.1:19110", "http://localhost:19110"];
        let names = [&kinds[..], &of_warp, &hosts].concat();
        for details in [false, true] {
            let report = text(&document, ReportShown { details, op: None });
            // What failed stands below.
            let lines = report.lines().filter(|line| !line.starts_with("   * "));
            let lines: String = lines.map(|line| format!("{line}\n")).collect();
            assert_lines_of(&printed_by_warp, &lines, &names);
            lines_count += lines.lines().count();
        }
    }
    assert!(lines_count > 300, "{lines_count}");
}

#[test]
fn failures_are_in_no_rate_and_no_time() {
    let document = Raw::read("fanout-all-errors-full").document();
    let posts = &document.by_op_type["POST"];
    assert_eq!(posts.total_errors, posts.total_requests);
    assert_eq!((posts.total_objects, posts.total_bytes), (Some(0), Some(0)));
    assert_eq!(posts.first_errors.len(), 10);
    let report = text(&document, ReportShown::default());
    assert!(report.contains("\n * Average: 0.00 obj/s, "), "{report}");
    assert!(!report.contains("Reqs:"), "{report}");
}

#[test]
fn a_run_too_short_for_seconds_keeps_its_sums() {
    let document = Raw::read("list-full").document();
    // What was prepared took less than five seconds.
    let puts = document.by_op_type["PUT"].throughput.clone().unwrap();
    assert_eq!(puts.segmented, None);
    assert!(puts.objects > Some(0.0) && puts.measure_duration_millis > Some(0), "{puts:?}");
    let said = skipped(&document);
    assert_eq!(said.len(), 1, "{said:?}");
    let requests = document.by_op_type["PUT"].total_requests.unwrap();
    let start = format!("PUT: {requests} requests, 0 failed; ");
    assert!(
        said[0].starts_with(&start) && said[0].contains("obj/s (") && said[0].contains("99%: ")
    );
    let report = text(&document, ReportShown { details: false, op: Some("put") });
    assert!(report.starts_with("Skipping PUT too few samples. Longer "), "{report}");
}

#[test]
fn what_lies_too_far_apart_for_seconds_is_said() {
    let mut document = Raw::read("list-full").document();
    let puts = document.by_op_type.get_mut("PUT").unwrap().throughput.as_mut().unwrap();
    assert_eq!(puts.segmented, None);
    // From 1970 on.
    puts.measure_duration_millis = Some(1_790_000_000_000);
    let said = skipped(&document);
    assert!(said[0].contains("too far apart for figures by the second"), "{said:?}");
}

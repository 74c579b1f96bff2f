//! Every document of warp's gives the report that warp printed of it, to the byte; every raw file
//! of which warp's report is known gives its figures; and what is printed here is in warp's words.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeSet;
use std::fs::File;

use plimsoll_foreign::warp::aggregated::read;

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

/// Lines of which no printed report is kept: where nothing succeeded; failures, hosts and sizes
/// with details, as warp's README and its pull requests have them.
const OTHERS: [&str; 7] = [
    " * Average: 0.00 obj/s, 2965 errors",
    " * Average: 0.00 obj/s, 2965 errors (7s)",
    " - First Errors:",
    " * Objects per request: 1. Size: 16384 bytes. Concurrency: 8. Hosts: 2.",
    " * http://localhost:19110: Avg: 12.94 MiB/s, 828.15 obj/s (10s)",
    "Request size 1KiB -> 10KiB . Requests: 1932",
    " * Reqs: Avg: 1.2MiB/s, 50%: 1.2MiB/s, 90%: 1.2MiB/s, 99%: 1.2MiB/s, Fastest: 1.2MiB/s, \
     Slowest: 1.2MiB/s ",
];

/// Returns a line whose numbers, times, units, names and types of operation are masked.
fn masked(line: &str) -> String {
    let word = |word: &str| {
        let bare = word.trim_matches(['(', ')', ',', '.', ':']);
        let is_label = bare.ends_with('%') || bare.ends_with("th");
        let has_digits = bare.contains(|c: char| c.is_ascii_digit());
        let is_number = bare.chars().all(|c| c == '.' || c.is_ascii_digit());
        let mask = match bare.split_once('.') {
            _ if bare.is_empty() || is_label => return word.to_owned(),
            Some((_, decimals)) if is_number => format!("#.{}", "#".repeat(decimals.len())),
            _ if has_digits && bare.ends_with("/s") => "#/s".to_owned(),
            _ if has_digits && bare.ends_with('s') => "#s".to_owned(),
            _ if has_digits || bare.chars().all(|c| c.is_ascii_uppercase()) => "#".to_owned(),
            _ => return word.to_owned(),
        };
        word.replace(bare, &mask)
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_made_of_raw_files_is_in_warps_words() {
    let mut known = BTreeSet::from(OTHERS.map(masked));
    for entry in std::fs::read_dir(path("")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(name) = name.strip_suffix(".txt") {
            known.extend(printed(name).lines().map(masked));
        }
    }
    let mut lines = 0;
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
        for details in [false, true] {
            let report = text(&document, ReportShown { details, op: None });
            // But for what the store said.
            for line in report.lines().filter(|line| !line.starts_with("   * ")) {
                assert!(known.contains(&masked(line)), "{name}: {line}");
                lines += 1;
            }
        }
    }
    assert!(lines > 300, "{lines}");
    for other in ["Average: 1.5 MB/s", " * Average: 1.50 MB/s", "Report: GET. Ran: 7s"] {
        assert!(!known.contains(&masked(other)), "{other}");
    }
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

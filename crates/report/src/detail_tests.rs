//! The details as people see them, with every figure worked out by hand.

use plimsoll_model::{ErrorClass, OpRecord};

use super::*;
use crate::{Report, fixture};
use plimsoll_analysis::{Depth, KindAnalysis, RowAsked, Rows, Span};

fn text(report: &Report) -> String {
    let mut out = String::new();
    write(&fixture::view(report), 80, Paint { color: false }, &mut out);
    let too_wide = out.lines().find(|line| line.chars().count() > 80);
    assert_eq!(too_wide, None, "\n{out}");
    out
}

#[test]
fn a_run_with_hosts_clients_sizes_and_failures() {
    // The span is 20 to 3,000 ms, with 298 downloads of 10 ms and 99 uploads of 20 ms: 100 and 33.2
    // a second. Of the downloads one half has 10 KiB, the other 1 MiB: 149 × 1,058,816 bytes. The
    // first byte of the 100 first, middle and last is there after 4, 5 and 6 ms. Of 50 refused
    // uploads one ends at 2,020 ms, where the second whole segment ends.
    insta::assert_snapshot!(text(&fixture::detailed()));
}

#[test]
fn without_details_there_is_nothing_to_write() {
    assert_eq!(text(&fixture::troubled()), "");
}

#[test]
fn one_host_one_client_and_no_failure_need_no_tables() {
    let gets = fixture::back_to_back(OpKind::Get, 0, 2_000, 10);
    let sized = |(index, op): (usize, OpRecord)| OpRecord { bytes: 600 + index as u64 % 2, ..op };
    let gets: Vec<_> = gets.into_iter().enumerate().map(sized).collect();
    let analysis = fixture::analysis_with(&gets, 2_000, 1, |asked| asked.depth = Depth::Details);
    let report = fixture::report("s3 get", analysis, 1);
    let text = text(&report);
    for absent in ["hosts", "clients", "access", "failures", "local", "("] {
        assert!(!text.contains(absent), "{absent}\n{text}");
    }
    // 99 samples of 600 and 100 of 601 bytes.
    assert!(text.contains("GET sizes   600 B to 601 B, 600 B on average\n"), "{text}");
    assert!(text.contains("span until  2026-11-21 09:00:02 UTC\n"), "{text}");
}

#[test]
fn of_many_segments_with_failures_twenty_are_listed() {
    // A failure every 10 ms for 2 s: the first ends the moment the span begins.
    let refused = |op| OpRecord { outcome: ErrorClass::Connect, ..op };
    let ops = fixture::back_to_back(OpKind::Stat, 0, 2_000, 10).into_iter().map(refused);
    let ops: Vec<_> = ops.collect();
    let analysis = fixture::analysis_with(&ops, 2_000, 1, |asked| {
        asked.depth = Depth::Details;
        asked.segment = Some(Duration::from_millis(40));
    });
    // 1,990 ms hold 49 segments of 40 ms and 30 ms more, with 4 failures each and 3 at the end.
    let text = text(&fixture::report("s3 stat", analysis, 1));
    assert!(!text.contains("percentile"), "no success has a time\n{text}");
    let (_, text) = text.split_once("failures over time").unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], ", by 40.0 ms from the start of the span");
    assert_eq!(lines[1], "  2026-11-21 09:00:00 UTC  +0 s       4 connect");
    assert_eq!(lines[20], "  2026-11-21 09:00:00 UTC  +760 ms    4 connect");
    assert_eq!(lines[21], "  and 29 more segments with 116 failures");
    assert_eq!(lines[22..], ["  4 outside every whole segment"]);
}

#[test]
fn the_classes_of_size_are_half_open_powers_of_two() {
    let class = |bytes_min: u64| {
        let gets = [OpRecord { bytes: bytes_min, ..fixture::op(OpKind::Get, 0, 0, 10) }];
        let analysis = fixture::analysis_with(&gets, 10, 1, |asked| {
            asked.depth = Depth::Details;
            let whole = RowAsked { workers: 1, span: Span::Whole, open: false, ends: None };
            asked.rows = Rows::One(whole);
        });
        class_name(&analysis.details.unwrap().kinds[0].sizes[0])
    };
    for (bytes, name) in [
        (0, "0 B"),
        (1, "1 B – 2 B"),
        (1_023, "512 B – 1 KiB"),
        (1 << 19, "512 KiB – 1 MiB"),
        (1 << 20, "1 MiB – 2 MiB"),
        (u64::MAX, "8 EiB – 16 EiB"),
    ] {
        assert_eq!(class(bytes), name);
    }
}

#[test]
fn the_largest_figures_fit_into_80_columns() {
    let mut report = fixture::detailed();
    let most = |figures: &mut Figures| {
        figures.rates = Some(plimsoll_analysis::Rates {
            ops: plimsoll_model::OpRate(12_345_678.0),
            objects: plimsoll_model::OpRate(12_345_678.0),
            bytes: plimsoll_model::ByteRate(1_234_567.0 * 1_048_576.0),
        });
        figures.stage.ops_ok = 1_234_567_890;
        figures.latency = longest();
    };
    let analysis = &mut report.stages[1].rows[0].analysis;
    let endpoints = analysis.kinds.iter_mut().flat_map(|kind| &mut kind.endpoints);
    endpoints.for_each(|at| most(&mut at.figures));
    let details = analysis.details.as_mut().unwrap();
    for client in &mut details.clients {
        most(&mut client.total);
        client.kinds.iter_mut().for_each(|kind| most(&mut kind.figures));
    }
    let kind = &mut details.kinds[1];
    for class in &mut kind.sizes {
        (class.latency, class.ttfb) = (longest(), longest());
        class.rate.average = Some(1e15);
        (class.rate.p50, class.rate.max) = (Some(1 << 48), Some(1 << 48));
    }
    let access = kind.access.as_mut().unwrap();
    (access.first, access.last_ttfb) = (longest(), longest());
    text(&report);
    // All kinds have their percentiles, in as many tables as it takes.
    let kinds = &mut report.stages[1].rows[0].analysis.kinds;
    let (get, names) = (kinds[1].clone(), [OpKind::Retention, OpKind::PutPart]);
    let more = names.into_iter().map(|kind| KindAnalysis { kind, ..get.clone() });
    kinds.extend(more);
    let text = text(&report);
    assert_eq!(text.matches("\npercentile  ").count(), 2, "\n{text}");
    assert!(text.contains("  PUTPART TTFB\n"), "\n{text}");
}

fn longest() -> Times {
    let time = Some(Duration::from_secs(99 * 60));
    Times {
        samples: 1_234_567_890,
        min: time,
        p50: time,
        p90: time,
        p99: time,
        p99_9: time,
        max: time,
        mean: time,
        std_dev: time,
        ..Times::default()
    }
}

#[test]
fn a_sample_of_the_objects_says_so() {
    let report = fixture::detailed();
    let mut access = report.stages[1].rows[0].analysis.details.as_ref().unwrap().kinds[1]
        .access
        .clone()
        .unwrap();
    (access.objects_count, access.sampled_one_in) = (100_123, 1_024);
    let heading = "GET: first and last access of 100,123 objects, a sample of 1 in 1,024";
    assert_eq!(accesses_heading(OpKind::Get, &access), heading);
}

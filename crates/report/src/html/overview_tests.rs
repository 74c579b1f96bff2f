//! The chart of the whole run against runs worked out by hand.

use plimsoll_analysis::{Depth, Question, RowAnalysis, analyze};
use plimsoll_model::{ErrorClass, OpKind, OpRecord, StageId};

use super::*;
use crate::fixture;
use crate::report::RowReport;

/// A worker's operations of 10 KiB back to back until `until_ms`, with details.
fn analysis(kind: OpKind, until_ms: u64, took_ms: u64) -> RowAnalysis {
    let ops = fixture::back_to_back(kind, 0, until_ms, took_ms);
    let failed_from = until_ms - until_ms / 10;
    let ops: Vec<OpRecord> = ops
        .into_iter()
        .map(|op| match kind == OpKind::Get && op.start.as_ns() >= failed_from * 1_000_000 {
            true => OpRecord { outcome: ErrorClass::Reset, ..op },
            false => op,
        })
        .collect();
    let ended = Moment::from_ns(until_ms * 1_000_000);
    let about = Question::about(StageId(1), Moment::EPOCH, ended, 1);
    let Ok(mut analysis) = analyze(&ops, &Question { depth: Depth::Details, ..about });
    analysis.rows.pop().unwrap()
}

fn stage(name: &str, after: Duration, rows: Vec<RowAnalysis>) -> StageReport {
    let rows = rows.into_iter().map(|of| RowReport::of("job", of)).collect();
    StageReport { started_after: after, ..StageReport::of(name, rows) }
}

/// PUTs for 10 s at 100/s, a pause of 2 s, two jobs of GETs for 20 s at 50/s and at 20/s, of which
/// the last 2 s fail, and 3 ms of DELETEs.
fn run() -> Report {
    let after = Duration::from_secs;
    let gets = vec![analysis(OpKind::Get, 20_000, 20), analysis(OpKind::Get, 20_000, 50)];
    Report {
        stages: vec![
            stage("fill", after(0), vec![analysis(OpKind::Put, 10_000, 10)]),
            stage("serve", after(12), gets),
            stage("remove", after(32), vec![analysis(OpKind::Delete, 3, 1)]),
        ],
        ..fixture::steady()
    }
}

#[test]
fn all_jobs_of_a_stage_add_up_and_nothing_is_drawn_between_stages() {
    let charts = charts(&run());
    let ids: Vec<&str> = charts.iter().map(|of| of.id.as_str()).collect();
    assert_eq!(ids, ["chart-run-throughput", "chart-run-operations"]);
    let plot = &charts[1].plot;
    let points = &plot.marks[0].points;
    assert!(points.is_sorted_by(|a, b| a.0 < b.0), "{points:?}");
    let rates = |from: f64, until: f64| -> Vec<f64> {
        let shown = points.iter().filter(|(at, _)| (from..until).contains(at));
        shown.filter_map(|(_, rate)| *rate).collect()
    };
    // An operation has 10 ms in a hundred a second; 50 + 20 a second together.
    let near =
        |rates: &[f64], want: f64| rates.iter().all(|rate| (rate - want).abs() < 0.02 * want);
    assert!(near(&rates(0.0, 9.99), 100.0), "{:?}", rates(0.0, 9.99));
    assert!(near(&rates(12.0, 29.0), 70.0), "{:?}", rates(12.0, 29.0));
    assert!(rates(31.0, 31.99).iter().all(|rate| *rate < 1.0), "{:?}", rates(31.0, 31.99));
    assert!(rates(10.0, 12.0).is_empty(), "the pause: {:?}", rates(10.0, 12.0));
    // 3 operations in 3 ms: too short for segments.
    assert_eq!(rates(32.0, 33.0).len(), 1);
    assert!(near(&rates(32.0, 33.0), 1_000.0), "{:?}", rates(32.0, 33.0));
    assert!(points.iter().any(|(at, rate)| rate.is_none() && (9.9..12.0).contains(at)));
    // 10 KiB each.
    let bytes = charts[0].plot.marks[0].points.iter().find(|(at, _)| *at > 5.0).unwrap();
    assert!((bytes.1.unwrap() - 100.0 * 10.0 / 1_024.0).abs() < 0.02, "{bytes:?}");
}

#[test]
fn a_steady_stage_of_several_kinds_is_level_to_its_end() {
    // 5.6 s are no whole number of segments: what ends after the last of them counts as well.
    let each = [OpKind::Put, OpKind::Get, OpKind::Stat, OpKind::Delete].into_iter().zip(0..);
    let ops: Vec<_> =
        each.flat_map(|(kind, worker)| fixture::back_to_back(kind, worker, 5_600, 10)).collect();
    let ended = Moment::from_ns(5_600_000_000);
    let about = Question::about(StageId(1), Moment::EPOCH, ended, 4);
    let segment = Some(Duration::from_secs(1));
    let Ok(mut answer) = analyze(&ops, &Question { depth: Depth::Details, segment, ..about });
    let steady = stage("mixed", Duration::ZERO, vec![answer.rows.pop().unwrap()]);
    let placed = placed(&steady, Duration::ZERO);
    assert_eq!(placed.intervals.len(), 6);
    for interval in &placed.intervals {
        let rate = interval.rate(|of| of.ops).unwrap();
        assert!((rate - 400.0).abs() < 8.0, "{interval:?}");
        assert!((interval.known - interval.length).abs() < 0.05, "{interval:?}");
    }
}

#[test]
fn a_stage_of_a_moment_does_not_flatten_the_others() {
    let charts = charts(&run());
    // 1,000/s for 3 ms of 32 s; the others have 100/s at most.
    let axis = &charts[1].plot.y;
    assert!((115.0..=200.0).contains(&axis.high), "{}", axis.high);
    assert!(charts[1].caption.contains("goes beyond"), "{}", charts[1].caption);
    assert!(!charts[0].caption.contains("goes beyond"), "DELETEs move nothing");
}

#[test]
fn every_stage_is_a_named_stretch_and_failures_lie_where_they_were() {
    let plot = &charts(&run())[1].plot;
    let ends: Vec<_> = plot.stretches.iter().map(|of| (&*of.name, of.from, of.until)).collect();
    assert_eq!(ends, [("fill", 0.0, 10.0), ("serve", 12.0, 32.0), ("remove", 32.0, 32.003)]);
    let failed = plot.bands.iter().filter(|of| of.color == SeriesColor::FAILED);
    let failed: Vec<_> = failed.collect();
    // 18 s into the stage, a segment of 1 s before or after.
    assert!(!failed.is_empty() && failed.iter().all(|of| of.from >= 29.0 && of.until <= 32.01));
    let svg = plot.svg("");
    assert!(svg.contains(">\nfill\n<") && svg.contains(">\nserve\n<"), "{svg}");
    // The shade of every other one.
    assert_eq!(svg.matches("#0A0003").count(), 1);
}

#[test]
fn one_stage_has_no_overview_and_what_did_not_run_is_no_stage() {
    let mut report = run();
    report.stages.truncate(1);
    assert!(charts(&report).is_empty());
    let not_run =
        StageReport { took: Duration::ZERO, ..stage("later", Duration::ZERO, Vec::new()) };
    report.stages.push(not_run);
    assert!(charts(&report).is_empty());
}

//! The report as people see it, with every figure worked out by hand.

use plimsoll_model::{EndReason, EndpointId, JobWork, OpRecord, WorkerId};

use super::*;
use crate::StageReport;
use crate::fixture_files as fixture;
use crate::text::{Look, brief, render};

const PLAIN: Look = Look { width: 80, color: false };

/// Returns the first line that is wider than 80 columns, the copyable run directory apart.
fn too_wide(text: &str) -> Option<&str> {
    let lines = text.lines().filter(|line| !line.starts_with("run kept in"));
    lines.into_iter().find(|line| line.chars().count() > 80)
}

#[test]
fn a_suite() {
    let text = render(&fixture::suite(), &PLAIN);
    assert_eq!(too_wide(&text), None);
    insta::assert_snapshot!(text);
}

#[test]
fn jobs_at_once_with_a_ramp_and_a_schedule_that_was_not_kept() {
    let text = render(&fixture::mixed(), &PLAIN);
    assert_eq!(too_wide(&text), None);
    insta::assert_snapshot!(text);
}

#[test]
fn at_a_glance_a_suite_is_one_table() {
    let text = brief(&fixture::suite(), &PLAIN);
    assert_eq!(too_wide(&text), None);
    insta::assert_snapshot!(text);
}

#[test]
fn at_a_glance_jobs_at_once_have_a_row_each() {
    let text = brief(&fixture::mixed(), &PLAIN);
    assert_eq!(too_wide(&text), None);
    insta::assert_snapshot!(text);
}

#[test]
fn one_result_has_its_figures_in_the_first_line() {
    let mut report = fixture::suite();
    report.stages.retain(|stage| stage.name == "read-latency");
    let text = render(&report, &PLAIN);
    let first = text.lines().next();
    // 3,000 reads of 4 KiB in 309 ms.
    let expected = "file suite: 9,709 IOPS · 37.9 MiB/s · p50 100 µs · p99 100 µs · 0 failed";
    assert_eq!(first, Some(expected));
}

#[test]
fn a_stage_that_did_nothing_says_so() {
    let figures = fixture::figures(&[], &[(0, 0), (0, 0)]).pop().unwrap();
    let row = fixture::row("write-iops", JobWork::RandWrite, Some("4 KiB"), figures);
    let report = fixture::report("file iops", vec![fixture::stage("write-iops", 0, vec![row])]);
    let text = render(&report, &PLAIN);
    assert!(text.starts_with("file iops: 1 result · 0 failed\n"), "{text}");
    assert!(text.contains("  no operation ended that counts\n"), "{text}");
    assert!(text.contains("idle        2 of 2 workers ended no operation that counts\n"), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn failures_of_what_only_prepares_are_not_hidden() {
    let mut report = fixture::suite();
    let mut ops = vec![fixture::op(0, OpKind::Write, 0, 10, 4_096)];
    ops[0].outcome = ErrorClass::Io;
    report.stages[0].rows[0].analysis = fixture::figures(&ops, &[(0, 0)]).pop().unwrap();
    report.stages[0].errors.push(ErrorSample {
        class: ErrorClass::Io,
        kind: OpKind::Write,
        endpoint: Some(EndpointId(0)),
        status: None,
        message: "no space\x1b[2J left on device".to_owned(),
    });
    let text = render(&report, &PLAIN);
    assert!(text.contains("p99 100 µs · 2 more · 2 failed\n"), "{text}");
    assert!(text.contains("  0 WRITE in 40.0 ms; 1 failed (no result)\n  1 WRITE io\n"), "{text}");
    // What a text holds moves no cursor.
    let brief = brief(&report, &PLAIN);
    assert!(brief.contains("1 io (WRITE) in fill at +10.0 µs\n  no space [2J left"), "{brief}");
    assert!(text.contains("    no space [2J left on device\n"), "{text}");
}

#[test]
fn colour_is_all_that_colour_adds() {
    let report = fixture::mixed();
    let colored = render(&report, &Look { width: 80, color: true });
    let mut plain = String::new();
    let mut rest = colored.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    assert_eq!(plain, render(&report, &PLAIN));
    assert!(colored.len() > plain.len());
}

#[test]
fn blocks_have_first_done_only_where_workers_end_apart() {
    let stage = |last: u64| -> StageReport {
        let mut ops = Vec::new();
        for (worker, count) in [(0, 1_000), (1, last)] {
            ops.extend((0..count).map(|i| fixture::op(worker, OpKind::Read, i * 10, 10, 4_096)));
        }
        let figures = fixture::figures(&ops, &[(0, 0), (0, 0)]).pop().unwrap();
        fixture::stage("p", 0, vec![fixture::row("p", JobWork::Read, Some("4 KiB"), figures)])
    };
    let shows = |last: u64| {
        let report = fixture::report("file iops", vec![stage(last)]);
        render(&report, &PLAIN).contains("READ first")
    };
    // 1,000 of 1,010 is a hundredth less; of 1,020 it is more.
    assert_eq!([1_000, 1_010, 1_020].map(shows), [false, false, true]);
}

#[test]
fn ends_that_were_seen_late_are_told_with_what_helps() {
    let mut report = fixture::suite();
    let stage = report.stages.iter_mut().find(|stage| stage.name == "read-latency").unwrap();
    let one_percent = stage.ended_count() / 100;
    (stage.look_gap_max, stage.uncertain_count) =
        (Some(Duration::from_micros(800)), Some(one_percent));
    assert!(!render(&report, &PLAIN).contains("busy with the content"));
    let stage = report.stages.iter_mut().find(|stage| stage.name == "read-latency").unwrap();
    stage.uncertain_count = Some(one_percent + 1);
    let warnings = warnings(&report);
    let warning = warnings.iter().find(|text| text.contains("busy with the content")).unwrap();
    for word in ["read-latency: ", "800 µs", "`depth`", "`threads`"] {
        assert!(warning.contains(word), "{warning}");
    }
}

#[test]
fn what_ended_each_stage_is_told() {
    let mut report = fixture::suite();
    let [prepare, rest @ ..] = &mut report.stages[..] else { panic!("no stages") };
    prepare.ended_by = Some(EndReason::Stopped);
    let reasons = [EndReason::OutOfWork, EndReason::Duration, EndReason::Until, EndReason::Failure];
    for (stage, reason) in rest.iter_mut().filter(|stage| stage.is_result).zip(reasons) {
        stage.ended_by = Some(reason);
        let is_rule = reason == EndReason::Until;
        stage.ended_because =
            is_rule.then(|| "ci(p99) is ±4.2 %, at most 5 % was asked".to_owned());
    }
    let text = render(&report, &PLAIN);
    let ends = [", all work done", ", time up", ", ended by a stop rule", ", ended by a failure"];
    let lines = text.lines().filter(|line| line.contains(" from +"));
    for (line, end) in lines.zip(ends) {
        assert!(line.ends_with(end), "{line}: {end}");
    }
    assert!(text.contains("; stopped early (no result)\n"), "{text}");
    let because = "\nended early ci(p99) is ±4.2 %, at most 5 % was asked\n";
    assert_eq!(text.matches(because).count(), 1, "{text}");
    let html = crate::html::render(&report, &crate::html::Environment::default());
    assert!(html.contains(", ended by a stop rule") && html.contains("at most 5 % was asked"));
    let json = crate::json::value(&report);
    assert_eq!((&json["stages"][0]["ended_by"]), "stopped");
}

#[test]
fn a_part_of_the_operations_explains_nothing() {
    let mut report = fixture::mixed();
    let before = render(&report, &PLAIN);
    assert!(before.contains("SCHEDULE NOT KEPT") && before.contains("; achieved"), "{before}");
    for row in report.stages.iter_mut().flat_map(|stage| &mut stage.rows) {
        row.analysis.is_part = true;
    }
    let text = render(&report, &PLAIN);
    let told = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let instead = "asked for. The report of all operations says what held it back";
    assert!(told.contains(instead), "{text}");
    assert!(!text.contains("max_in_flight") && !text.contains("; achieved"), "{text}");
    assert!(!text.contains("\nramp ") && text.contains("\nleft out "), "{text}");
}

#[test]
fn what_was_removed_is_told_by_what_it_was() {
    let mut report = fixture::suite();
    report.targets.push(crate::TargetReport::default());
    for (removed, files, said) in [
        (5, Some(2), "3 objects and 2 files removed"),
        (2, Some(2), "2 files removed"),
        (1, Some(0), "1 object removed"),
        (5, None, "5 objects and files removed"),
    ] {
        let cleanup = report.cleanup.as_mut().unwrap();
        (cleanup.removed, cleanup.removed_files) = (Some(removed), files);
        let text = render(&report, &PLAIN);
        assert!(text.contains(&format!("\ncleaned up  {said}\n")), "{said}: {text}");
    }
}

#[test]
fn a_job_that_was_short_is_named() {
    let ops = [fixture::op(0, OpKind::Read, 0, 10, 4_096)];
    let figures = || fixture::figures(&ops, &[(0, 0)]).pop().unwrap();
    let row = |name: &str| fixture::row(name, JobWork::Read, Some("4 KiB"), figures());
    let mut report = fixture::report("both", vec![fixture::stage("main", 0, vec![row("a")])]);
    assert_eq!(warnings(&report), ["main took 10.0 µs only: a longer run tells more"]);
    let stage = fixture::stage("main", 0, vec![row("a"), row("b")]);
    report.stages = vec![stage];
    assert_eq!(warnings(&report), ["main, b took 10.0 µs only: a longer run tells more"]);
    report.stages[0].clients_apart = true;
    assert_eq!(warnings(&report), [""; 0]);
}

#[test]
fn long_names_stay_within_the_width_and_apart() {
    let ops = [fixture::op(0, OpKind::Read, 0, 10, 4_096)];
    let figures = || fixture::figures(&ops, &[(0, 0)]).pop().unwrap();
    let row = |end: &str| {
        let name = format!("scanning-job-{end}-of-the-backups-of-the-north-western-region");
        fixture::row(&name, JobWork::Read, Some("4 KiB"), figures())
    };
    let name = "the-main-stage-with-a-very-long-name-indeed-of-all-of-its-users";
    let stage = fixture::stage(name, 0, vec![row("one"), row("two")]);
    let text = render(&fixture::report("both", vec![stage]), &PLAIN);
    assert_eq!(too_wide(&text), None, "{text}");
    assert!(text.contains(&format!("\n{name}\n  10.0 µs from +0 s\n")), "{text}");
    let labels: Vec<&str> = text.lines().filter(|line| line.contains('…')).collect();
    // Two tables, with both rows each.
    assert_eq!(labels.len() % 2, 0, "{text}");
    assert!(!labels.is_empty() && labels.chunks(2).all(|pair| pair[0] != pair[1]), "{text}");
}

#[test]
fn rates_of_jobs_that_never_ran_at_once_are_not_added() {
    // Two jobs of 1,000 reads a second, the second of which begins when the first has ended.
    let read = |worker, from_us: u64, at: u64| {
        fixture::op(worker, OpKind::Read, from_us + at * 1_000, 1_000, 4_096)
    };
    let mut ops: Vec<OpRecord> = (0..2_000).map(|at| read(0, 0, at)).collect();
    ops.extend((0..2_000).map(|at| read(1, 2_000_000, at)));
    let figures = fixture::figures(&ops, &[(0, 0), (1, 2_000)]);
    let named = ["one", "two"].into_iter().zip(figures);
    let rows: Vec<RowReport> =
        named.map(|(name, of)| fixture::row(name, JobWork::RandRead, Some("4 KiB"), of)).collect();
    let headline = |rows: &[RowReport]| {
        let report = fixture::report("run", vec![fixture::stage("main", 0, rows.to_vec())]);
        brief(&report, &PLAIN).lines().next().unwrap().to_owned()
    };
    let text = headline(&rows);
    assert!(text.starts_with("run: main 1,000 IOPS"), "{text}");
    // Blocks and names have no common unit.
    let ops: Vec<OpRecord> = (0..2_000).map(|at| read(0, 0, at)).collect();
    let stats = ops.iter().map(|op| OpRecord { worker: WorkerId(1), kind: OpKind::Stat, ..*op });
    let both: Vec<OpRecord> = ops.iter().copied().chain(stats).collect();
    let mut mixed = fixture::figures(&both, &[(0, 0), (1, 0)]).into_iter();
    let row = |name: &str, of| fixture::row(name, JobWork::RandRead, Some("4 KiB"), of);
    let mixed = [row("one", mixed.next().unwrap()), row("two", mixed.next().unwrap())];
    let text = headline(&mixed);
    assert!(!text.contains("IOPS") && !text.contains("ops/s"), "{text}");
}

#[test]
fn a_job_that_ended_within_its_ramp_takes_no_rate_from_the_others() {
    let read = |worker, at: u64| fixture::op(worker, OpKind::Read, at * 1_000, 1_000, 4_096);
    let ops: Vec<OpRecord> = (0..2_000).flat_map(|at| [read(0, at), read(1, at)]).collect();
    let figures = fixture::figures(&ops, &[(0, 0), (1, 10_000)]);
    let named = ["one", "two"].into_iter().zip(figures);
    let rows: Vec<RowReport> =
        named.map(|(name, of)| fixture::row(name, JobWork::RandRead, Some("4 KiB"), of)).collect();
    assert!(rows[1].analysis.total.rates.is_none());
    let other =
        vec![fixture::row("one", JobWork::RandRead, Some("4 KiB"), rows[0].analysis.clone())];
    let stages = vec![fixture::stage("main", 0, rows), fixture::stage("other", 1, other)];
    let text = brief(&fixture::report("run", stages), &PLAIN);
    assert!(text.starts_with("run: main 1,000 IOPS · other 1,000 IOPS"), "{text}");
}

#[test]
fn what_is_measured_of_a_job_on_files_is_what_its_rates_are_of() {
    // A ramp of 1 s before 2 s that count.
    let read = |at: u64| fixture::op(0, OpKind::Read, at * 1_000, 1_000, 4_096);
    let ops: Vec<OpRecord> = (0..3_000).map(read).collect();
    let figures = fixture::figures(&ops, &[(0, 1_000)]).pop().unwrap();
    let row = fixture::row("reads", JobWork::RandRead, Some("4 KiB"), figures);
    let report = fixture::report("run", vec![fixture::stage("main", 0, vec![row])]);
    let text = brief(&report, &PLAIN);
    assert!(text.contains("measured    2.00 s of 3.00 s\n"), "{text}");
}

//! What tests share, and what is asked of records of either kind.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_analysis::Failures;
use plimsoll_analysis::compare::{Comparison, Doubt, Gate, Margin, Outcome, exit_code, judge};
use plimsoll_model::{ErrorClass, OpKind, StageKind};
use plimsoll_record::RunDirectory;
use plimsoll_record::schema::{ClientEvidence, Manifest, SocketsEvidence};
use plimsoll_report::text::Look;
use plimsoll_report::{OpLogCheck, Report, RowReport, compare, format, html};

use crate::open::{Origin, UNTOLD, counted};
use crate::parameters::parameters;
use crate::{Asked, AskedFor, Record, ResultsError, Side, flaws, typed_again};

/// Returns where a committed run lies.
pub(crate) fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runs").join(name)
}

/// Returns the manifest of a committed run.
pub(crate) fn manifest(name: &str) -> Manifest {
    RunDirectory::open(&testdata(name)).unwrap().read_manifest().unwrap()
}

fn report(name: &str, asked: &Asked) -> Result<Report, ResultsError> {
    Record::open(&testdata(name)).unwrap().report(asked)
}

fn refused(name: &str, asked: &Asked) -> (AskedFor, String) {
    match report(name, asked).unwrap_err() {
        ResultsError::Asked { field, reason } => (field, reason),
        other => panic!("{other}"),
    }
}

/// Returns stage and row of all that is in a report.
fn rows(report: &Report) -> Vec<(&str, &str)> {
    let of_stage = |stage: &'_ plimsoll_report::StageReport| stage.rows.len();
    assert!(report.stages.iter().all(|stage| of_stage(stage) > 0));
    let stages = report.stages.iter();
    stages.flat_map(|stage| stage.rows.iter().map(|row| (&*stage.name, &*row.name))).collect()
}

#[test]
fn stages_and_jobs_of_every_run_are_asked_for_by_name() {
    let stage = |name: &str| Asked { stage: Some(name.to_owned()), ..Asked::default() };
    let job = |name: &str| Asked { job: Some(name.to_owned()), ..Asked::default() };
    let gets = report("s3-benchmark", &stage("LOOP-1-get")).unwrap();
    assert_eq!(rows(&gets), [("loop-1-get", "loop-1-get")]);
    assert_eq!(
        rows(&report("s3-benchmark", &job("LOOP-1-get")).unwrap()),
        [("loop-1-get", "loop-1-get")]
    );
    let paced = report("fio-job", &stage("paced+more-readers")).unwrap();
    assert_eq!(paced.stages.len(), 1);
    let (field, reason) = refused("s3-get", &stage("nosuch"));
    assert_eq!(field, AskedFor::Stage);
    assert!(reason.ends_with("has prepare, measure"), "{reason}");
    let (field, reason) = refused("fio-job", &job("nosuch"));
    assert_eq!(field, AskedFor::Job);
    assert!(reason.contains("writers"), "{reason}");
}

#[test]
fn filters_work_on_runs_of_either_kind() {
    for (name, kind) in [("s3-mixed", OpKind::Get), ("fio-job", OpKind::Read)] {
        let asked = Asked { kind: Some(kind), ..Asked::default() };
        let report = report(name, &asked).unwrap();
        for stage in report.results() {
            let kinds = stage.rows.iter().flat_map(|row| &row.analysis.kinds);
            assert!(kinds.clone().all(|of| of.kind == kind), "{name}");
            assert!(stage.op_log.is_none() && stage.cpu.is_none(), "{name}");
        }
    }
    let none = Asked { kind: Some(OpKind::Append), ..Asked::default() };
    assert_eq!(refused("s3-get", &none).0, AskedFor::Kind);
    assert_eq!(refused("fio-job", &none).0, AskedFor::Kind);
    let host = Asked { host: Some("nosuch".to_owned()), ..Asked::default() };
    assert_eq!(refused("file-suite", &host).0, AskedFor::Endpoint);
    let few = Asked { limit: Some(10), ..Asked::default() };
    assert_eq!(refused("fio-job", &few).0, AskedFor::Limit);
    let few = Asked { stage: Some("writers".to_owned()), ..few };
    let writers = report("fio-job", &few).unwrap();
    assert_eq!(writers.stages[0].ops_ok(), 10);
}

#[test]
fn what_is_left_out_is_not_explained_by_what_is_shown() {
    // Of the jobs on the store and on files only those are shown that have such operations.
    let asked = Asked { kind: Some(OpKind::Write), ..Asked::default() };
    let writes = report("fio-job", &asked).unwrap();
    assert_eq!(writes.results().map(|stage| &*stage.name).collect::<Vec<_>>(), ["writers"]);
    assert!(writes.results().all(|stage| stage.rows.iter().all(|row| row.analysis.is_part)));
    // Longer than any stage, so that nothing is left; what prepares is told whole.
    let skip = Duration::from_secs(100);
    for (name, results) in [("fio-job", 2), ("s3-get", 1)] {
        let asked = Asked { skip, ..Asked::default() };
        let report = report(name, &asked).unwrap();
        assert_eq!(report.results().count(), results, "{name}");
        for stage in &report.stages {
            let advice = |row: &RowReport| row.advice.iter().map(|of| of.code).collect::<Vec<_>>();
            let told = advice(&stage.rows[0]);
            assert_eq!(told == ["all-skipped"], stage.is_result, "{name}: {told:?}");
            assert!(stage.is_result || stage.ops_ok() > 0, "{name}: {}", stage.name);
        }
        let text = plimsoll_report::text::render(&report, &Look { width: 200, color: false });
        assert!(text.contains("the first 100 s of the stage are left out"), "{name}: {text}");
        for false_cause in
            ["check that the store answers", "why they failed", "a longer run", "idle"]
        {
            assert!(!text.contains(false_cause), "{name}: {text}");
        }
    }
    let few = Asked { offset: 1_000_000, ..Asked::default() };
    assert_eq!(refused("s3-get", &few).0, AskedFor::Offset);
}

#[test]
fn a_good_run_has_no_flaws_and_one_without_operations_has() {
    for name in ["s3-get", "s3-benchmark", "file-suite", "fio-merged"] {
        let mut report = report(name, &Asked::default()).unwrap();
        assert_eq!(flaws(&report, 0.0), [""; 0], "{name}");
        let stage = report.stages.iter_mut().find(|stage| stage.is_result).unwrap();
        stage.rows.clear();
        let found = flaws(&report, 0.0);
        assert!(found.iter().any(|flaw| flaw.contains("no operation ended")), "{name}: {found:?}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "takes a part of a record away")]
fn silences_are_not_told_across_what_is_missing() {
    let gap = |report: &Report| {
        let ledger = report.results().next().unwrap().rows[0].analysis.ledger.clone();
        ledger.unwrap().gap_longest
    };
    let place = tempfile::tempdir().unwrap();
    let ops = place.path().join("ops");
    std::fs::create_dir(&ops).unwrap();
    let from = testdata("s3-get");
    for name in ["run.json", "ops/part-000000.parquet"] {
        std::fs::copy(from.join(name), place.path().join(name)).unwrap();
    }
    let report = || Record::open(place.path()).unwrap().report(&Asked::default()).unwrap();
    let told = |report: &Report| report.losses.iter().any(|loss| loss == UNTOLD);
    let whole = report();
    assert!(gap(&whole).is_some() && !told(&whole), "{:?}", whole.losses);
    std::fs::write(ops.join("part-000001.parquet"), "PAR1").unwrap();
    let holed = report();
    assert_eq!(gap(&holed), None);
    assert!(told(&holed) && holed.losses[0].starts_with("part-000001"), "{:?}", holed.losses);
}

#[test]
fn of_a_killed_run_nobody_knows_how_many_operations_were_counted() {
    let mut manifest = manifest("s3-get");
    let all = manifest.stages.iter().filter_map(|stage| stage.ops_count).sum();
    assert_eq!(counted(&manifest), Some(all));
    manifest.stages[0].ops_count = Some(u64::MAX);
    assert_eq!(counted(&manifest), Some(u64::MAX), "a forged count");
    manifest.stages.last_mut().unwrap().ops_count = None;
    assert_eq!(counted(&manifest), None);
}

#[test]
fn a_run_whose_record_lost_operations_has_a_flaw() {
    let mut report = report("s3-get", &Asked::default()).unwrap();
    for stage in &mut report.stages {
        stage.op_log.as_mut().unwrap().rows -= 1;
    }
    let OpLogCheck { rows, counted } = report.op_log().unwrap();
    let found = flaws(&report, 0.0);
    assert!(found.len() == 1 && found[0].contains("a bug in plimsoll"), "{found:?}");
    report.losses.push("part-000001.parquet is missing".to_owned());
    let missing = format!(
        "operations are missing from the record: it holds {} of the {} that were counted",
        format::count(rows),
        format::count(counted)
    );
    assert_eq!(flaws(&report, 0.0), [missing]);
}

#[test]
fn what_is_missing_of_a_record_is_said_of_its_comparison_and_keeps_no_gate() {
    let gates = ["rate>=1/s".parse::<Gate>().unwrap(), "rate>=1000000000/s".parse().unwrap()];
    let compared = |is_whole: bool| {
        let mut sides = [Side::default(), Side::default()];
        for side in &mut sides {
            let path = testdata("s3-get");
            let mut record = Record::open(&path).unwrap();
            if !is_whole {
                record.is_whole = false;
                record.losses.push("part-000007.parquet is missing".to_owned());
            }
            side.add(&path, &record, &Asked::default()).unwrap();
        }
        let [before, after] = sides;
        before.compare(after, Margin::default()).0
    };
    let outcomes = |comparison: &Comparison| {
        let results = judge(&gates, comparison).unwrap();
        let found = results.iter().map(|result| result.outcome).collect::<Vec<_>>();
        (found, results)
    };
    let whole = compared(true);
    assert_eq!((whole.is_incomplete, whole.remarks.len()), (false, 0));
    assert_eq!(outcomes(&whole).0, [Outcome::Pass, Outcome::Worse]);
    let holed = compared(false);
    let (found, results) = outcomes(&holed);
    assert_eq!(found, [Outcome::Inconclusive(Doubt::Incomplete), Outcome::Worse]);
    let sentence = "part-000007.parquet is missing";
    let look = Look { width: 200, color: false };
    for text in [
        compare::text(&holed, &[], &results, &look),
        compare::brief(&holed, &[], &results, &look),
        compare::markdown(&holed, &[], &results),
        compare::json::json(&holed, &[], &results).to_string(),
        html::comparison(&holed, &[], &[], &[]),
    ] {
        assert!(text.contains(sentence), "{text}");
    }
}

#[test]
fn a_run_that_measured_its_client_holds_no_gate_of_a_comparison() {
    let path = testdata("s3-get");
    let side = |evidence: Vec<ClientEvidence>| {
        let mut record = Record::open(&path).unwrap();
        let Origin::Run { manifest, .. } = &mut record.origin else { panic!("a run of ours") };
        let measured = manifest.stages.iter_mut().find(|stage| stage.kind == StageKind::Measure);
        measured.unwrap().evidence = evidence;
        let mut side = Side::default();
        side.add(&path, &record, &Asked::default()).unwrap();
        side
    };
    let gates = ["rate>=1/s".parse::<Gate>().unwrap()];
    let judged = |after: Vec<ClientEvidence>| {
        let comparison = side(Vec::new()).compare(side(after), Margin::default()).0;
        let code = exit_code(&judge(&gates, &comparison).unwrap());
        (comparison.client_limits, code)
    };
    assert_eq!(judged(Vec::new()), (Vec::new(), 0));
    let (took_ns, stood_still_ns) = (1_000_000_000, 500_000_000);
    let stopped = ClientEvidence { took_ns, stood_still_ns, ..ClientEvidence::default() };
    let (limits, code) = judged(vec![stopped]);
    assert_eq!((limits.len(), code), (1, 3), "{limits:?}");
    assert!(limits[0].1.contains("the client itself stood still"), "{limits:?}");
}

#[test]
fn what_carried_requests_is_among_what_a_run_was_made_with() {
    let mut manifest = manifest("s3-get");
    let transport = |manifest: &Manifest| {
        let known = parameters(manifest).into_iter().find(|(name, _)| name == "transport");
        known.map(|(_, value)| value)
    };
    assert_eq!(transport(&manifest), None, "nothing was seen of the client");
    let seen = |over_ring| ClientEvidence {
        sockets: Some(SocketsEvidence {
            io_uring_requests_count: over_ring,
            ..SocketsEvidence::default()
        }),
        ..ClientEvidence::default()
    };
    let measured = manifest.stages.iter_mut().find(|stage| stage.kind == StageKind::Measure);
    measured.unwrap().evidence = vec![seen(0), seen(0)];
    assert_eq!(transport(&manifest).as_deref(), Some("sockets"));
    let measured = manifest.stages.iter_mut().find(|stage| stage.kind == StageKind::Measure);
    measured.unwrap().evidence[1] = seen(7);
    assert_eq!(transport(&manifest).as_deref(), Some("io_uring"));
}

#[test]
fn a_job_that_says_how_many_may_fail_is_judged_by_that() {
    let mut report = report("fio-job", &Asked::default()).unwrap();
    let stage = report.stages.iter_mut().find(|stage| stage.is_result).unwrap();
    stage.rows.truncate(1);
    let mut other = stage.rows[0].clone();
    other.name = "other".to_owned();
    stage.rows.push(other);
    for row in &mut stage.rows {
        let figures = &mut row.analysis.total.stage;
        (figures.ops_ok, figures.failed) = (99, [(ErrorClass::Server, 1)].into_iter().collect());
        row.analysis.ramp.failed = Failures::default();
    }
    let name = stage.name.clone();
    let found = flaws(&report, 0.5);
    let flaw = "2 of 200 operations failed, more than `max_error_rate` 0.5% allows";
    assert_eq!(found[0], format!("{name}: {flaw}"));
    assert_eq!(flaws(&report, 1.0)[..], [""; 0]);
    let stage = report.stages.iter_mut().find(|stage| stage.name == name).unwrap();
    stage.rows[1].error_rate_max = Some(0.005);
    let found = flaws(&report, 1.0);
    let flaw = "other: 1 of 100 operations failed, more than its max_error_rate of 0.5% allows";
    assert_eq!(found[0], format!("{name}: {flaw}"));
    // What one job may fail is no longer counted with the others.
    let stage = report.stages.iter_mut().find(|stage| stage.name == name).unwrap();
    stage.rows[1].error_rate_max = Some(1.0);
    stage.rows[0].analysis.total.stage.failed = Failures::default();
    assert_eq!(flaws(&report, 0.0)[..], [""; 0]);
}

#[test]
fn failures_of_ramps_are_held_against_nothing() {
    let mut report = report("fio-job", &Asked::default()).unwrap();
    let at = report.stages.iter().position(|stage| stage.is_result).unwrap();
    report.stages.truncate(at + 1);
    let stage = &mut report.stages[at];
    stage.rows.truncate(1);
    let analysis = &mut stage.rows[0].analysis;
    let of_server = |count| [(ErrorClass::Server, count)].into_iter().collect();
    let figures = &mut analysis.total.stage;
    // 42 of 8,000 failed in the span, 220 of 48,000 in its ramp.
    (figures.ops_ok, figures.failed) = (7_958, of_server(42));
    (analysis.ramp.ops_ok, analysis.ramp.failed) = (47_780, of_server(220));
    stage.op_log = None;
    assert_eq!((stage.failed_count(), stage.ended_count()), (42, 56_000));
    assert_eq!(flaws(&report, 1.0)[..], [""; 0]);
    report.stages[at].rows[0].error_rate_max = Some(0.005);
    let found = flaws(&report, 1.0);
    assert!(found[0].contains("42 of 8000 operations failed"), "{found:?}");
}

#[test]
fn the_headline_and_the_warning_tell_one_share_of_failures() {
    let mut report = report("s3-get", &Asked::default()).unwrap();
    let stage = report.stages.iter_mut().find(|stage| stage.is_result).unwrap();
    let analysis = &mut stage.rows[0].analysis;
    let of_server = |count| [(ErrorClass::Server, count)].into_iter().collect();
    let figures = &mut analysis.total.stage;
    // 40 of 8,000 failed in the span, 220 of 48,000 in its ramp.
    (figures.ops_ok, figures.failed) = (7_960, of_server(40));
    (analysis.ramp.ops_ok, analysis.ramp.failed) = (47_780, of_server(220));
    stage.op_log = None;
    let text = plimsoll_report::text::render(&report, &Look { width: 200, color: false });
    assert!(text.lines().next().unwrap().contains(" 40 failed (0.500 %)"), "{text}");
    let flaw = "0.50 % of the operations failed, more than `max_error_rate` 0.4% allows";
    assert_eq!(flaws(&report, 0.4), [flaw]);
}

#[test]
fn a_command_line_can_be_typed_again() {
    let words = ["plimsoll", "s3", "get", "--rate", "1/s..9/s over 2m", "--host", "a{1...3}"];
    let words = words.map(str::to_owned);
    let line = typed_again(&words);
    assert_eq!(shlex::split(&line).unwrap(), words);
    assert!(line.starts_with("plimsoll s3 get --rate '1/s..9/s over 2m' --host "), "{line}");
}

#[test]
fn what_is_wrong_with_the_second_stage_of_a_name_is_said_of_that_one() {
    let mut report = report("s3-get", &Asked::default()).unwrap();
    let mut again = report.results().next().unwrap().clone();
    again.number_of_title = 2;
    let total = &mut again.rows[0].analysis.total.stage;
    (total.ops_ok, total.failed) = (98, [(ErrorClass::Server, 2)].into_iter().collect());
    let name = again.name.clone();
    report.stages.push(again);
    let found = flaws(&report, 1.0);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(&format!("{name} #2: 2 of 100 operations failed")), "{found:?}");
}

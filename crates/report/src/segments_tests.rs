//! The segments of a run as rows, worked out by hand.

use super::*;
use crate::fixture;

const GET_KEPT: &str = "http://a.example:9000";
const PUT_KEPT: &str = "http://b.with-a-very-long-name.storage.example.com:9000";

#[test]
fn a_block_for_each_kind_and_on_request_for_each_host() {
    let report = fixture::detailed();
    let blocks = |by_host| {
        let rows = rows(&report, by_host).into_iter();
        rows.map(|row| (row.op, row.host, row.index)).collect::<Vec<_>>()
    };
    let block = |op, host: Option<&str>| [0, 1].map(|index| (op, host.map(str::to_owned), index));
    let whole = [block(OpKind::Put, None), block(OpKind::Get, None)].concat();
    assert_eq!(blocks(false), whole);
    let (put, get) = (&whole[..2], &whole[2..]);
    let (at_put, at_get) = (block(OpKind::Put, Some(PUT_KEPT)), block(OpKind::Get, Some(GET_KEPT)));
    assert_eq!(blocks(true), [put, &at_put, get, &at_get].concat());
    assert_eq!(rows(&fixture::troubled(), true), [], "there are no details");
}

#[test]
fn the_figures_of_a_segment() {
    let report = fixture::detailed();
    let rows = rows(&report, false);
    // From 1,020 to 2,020 ms: uploads of 10 KiB at 1,020 to 1,980 ms, 49 in all, and the one
    // that is refused at 2,020.
    let start_time = report.started.after(Duration::from_millis(1_020));
    let bytes = 49 * 10_240;
    let expected = SegmentOut {
        index: 1,
        op: OpKind::Put,
        host: None,
        duration_s: 1.0,
        objects_per_op: Some(1.0),
        bytes,
        full_ops: 49,
        partial_ops: 0,
        ops_started: 49,
        ops_ended: 49,
        errors: 1,
        mb_per_sec: 49.0 * 10_240.0 / 1_048_576.0,
        ops_ended_per_sec: 49.0,
        objs_per_sec: 49.0,
        reqs_ended_avg_ms: Some(20.0),
        start_time,
        end_time: start_time.after(Duration::from_secs(1)),
        stage: "measure".to_owned(),
        iteration: 0,
        job: "measure".to_owned(),
    };
    assert_eq!(rows[1], expected);
}

#[test]
fn tabs_have_the_names_above_every_block_and_commas_once() {
    let report = fixture::detailed();
    let rows = rows(&report, true);
    let names = "index\top\thost\tduration_s\tobjects_per_op\tbytes\tfull_ops\tpartial_ops\t\
                 ops_started\tops_ended\terrors\tmb_per_sec\tops_ended_per_sec\tobjs_per_sec\t\
                 reqs_ended_avg_ms\tstart_time\tend_time";
    let tabs = delimited(&rows, Separator::Tab);
    let lines: Vec<&str> = tabs.lines().collect();
    assert_eq!(lines.len(), 4 * 3);
    for (at, line) in lines.iter().enumerate() {
        assert_eq!(*line == names, at % 3 == 0, "{line}");
        assert_eq!(line.split('\t').count(), 17);
    }
    assert_eq!(
        lines[2],
        "1\tPUT\t\t1\t1\t501760\t49\t0\t49\t49\t1\t0.478515625\t49\t49\t20\t\
         2026-11-21 09:00:01.02 +0000 UTC\t2026-11-21 09:00:02.02 +0000 UTC"
    );
    let commas = delimited(&rows, Separator::Comma);
    let lines: Vec<&str> = commas.lines().collect();
    let names = names.replace('\t', ",") + ",stage,iteration_index,job";
    assert_eq!((lines.len(), lines[0]), (1 + 4 * 2, &*names));
    assert_eq!(
        lines[2],
        "1,PUT,,1,1,501760,49,0,49,49,1,0.478515625,49,49,20,2026-11-21T09:00:01.020000000Z,\
         2026-11-21T09:00:02.020000000Z,measure,0,measure"
    );
    assert_eq!(delimited(&[], Separator::Tab), "");
    // What has several jobs tells them apart with tabs as well.
    let mut other = rows.clone();
    other.iter_mut().for_each(|row| (row.iteration, row.job) = (1, "=other".to_owned()));
    let tabs = delimited(&[rows, other].concat(), Separator::Tab);
    let lines: Vec<&str> = tabs.lines().collect();
    assert!(lines.iter().all(|line| line.split('\t').count() == 20), "{tabs}");
    assert!(lines[0].ends_with("\tend_time\tstage\titeration_index\tjob"), "{tabs}");
    assert!(lines[1].ends_with("\tmeasure\t0\tmeasure"), "{tabs}");
    assert!(tabs.ends_with("\tmeasure\t1\t'=other\n"), "{tabs}");
}

#[test]
fn unknown_is_empty_and_one_host_is_named() {
    let mut ops = fixture::back_to_back(OpKind::Delete, 0, 3_000, 10);
    ops.iter_mut().for_each(|op| op.objects_count = 5);
    ops.retain(|op| !(1_000_000_000..2_500_000_000).contains(&op.start.as_ns()));
    let analysis = fixture::analysis_with(&ops, 3_000, 1, |asked| {
        asked.depth = plimsoll_analysis::Depth::Details
    });
    let mut report = fixture::report("s3 delete", analysis, 1);
    report.endpoints = vec!["\"odd\",\thost".to_owned()];
    // From 1,010 ms on nothing is done for a second.
    let rows = rows(&report, true);
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[1].reqs_ended_avg_ms, rows[1].objects_per_op), (None, Some(5.0)));
    let csv = delimited(&rows, Separator::Comma);
    let idle = csv.lines().nth(2).unwrap();
    assert!(
        idle.starts_with("1,DELETE,\"\"\"odd\"\", host\",1,5,0,0,0,0,0,0,0,0,0,,2026-"),
        "{idle}"
    );
    let tabs = delimited(&rows, Separator::Tab);
    assert!(tabs.lines().nth(2).unwrap().starts_with("1\tDELETE\t\"odd\", host\t1\t5\t"), "{tabs}");
}

#[test]
fn times_are_as_go_prints_them() {
    for (ns, text) in [
        (1_795_251_600_000_000_000, "2026-11-21 09:00:00 +0000 UTC"),
        (1_795_251_600_476_336_967, "2026-11-21 09:00:00.476336967 +0000 UTC"),
        (1_795_251_600_100_000_000, "2026-11-21 09:00:00.1 +0000 UTC"),
    ] {
        assert_eq!(go_time(WallTime::from_unix_ns(ns)), text);
    }
}

#[test]
fn a_host_is_no_formula() {
    let mut row = rows(&fixture::detailed(), true).remove(2);
    for (separator, between) in [(Separator::Comma, ','), (Separator::Tab, '\t')] {
        row.host = Some("=HYPERLINK(1)".to_owned());
        let text = delimited(std::slice::from_ref(&row), separator);
        let host = text.lines().nth(1).unwrap().split(between).nth(2).unwrap();
        assert_eq!(host, "'=HYPERLINK(1)");
    }
}

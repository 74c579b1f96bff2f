//! How a check looks, and its JSON.

use std::collections::BTreeMap;

use plimsoll_analysis::history::{
    Event, HistoryOp, HistoryReport, KeyNumber, Saw, Tally, ValueId, Violation, ViolationKind,
    WrongContent, WrongKind,
};
use plimsoll_model::{ErrorClass, Moment, OpKind, WorkerId};

use super::{CheckReport, CheckRoot, json, schema, text};

const KEY: KeyNumber = KeyNumber(3);

fn value(key: u32, writer: u32, number: u32) -> ValueId {
    ValueId { key: KeyNumber(key), writer: WorkerId(writer), number }
}

fn event(number: u64, op: HistoryOp, ms: (u64, Option<u64>), saw: Saw) -> Event {
    let moment = |ms: u64| Moment::from_ns(ms * 1_000_000);
    let worker = WorkerId(number as u32 * 5);
    Event { number, worker, op, begin: moment(ms.0), end: ms.1.map(moment), saw }
}

fn report(violations: Vec<Violation>) -> CheckReport {
    let mut counts = BTreeMap::new();
    for violation in &violations {
        *counts.entry(violation.kind).or_insert(0) += 1;
    }
    CheckReport {
        tool_version: "0.0.0".to_owned(),
        endpoints: vec!["127.0.0.1:9000".to_owned()],
        root: CheckRoot::Bucket("b".to_owned()),
        prefix: Some("plimsoll/check-1/".to_owned()),
        embedded: false,
        seed: 7,
        workers: 16,
        threads: 2,
        keys: 16,
        keys_used: 18,
        started: Moment::from_ns(1_000_000_000),
        ended: Moment::from_ns(3_500_000_000),
        interrupted: false,
        lists: true,
        history: HistoryReport {
            counts,
            violations,
            ops: BTreeMap::from([
                (OpKind::Put, Tally { done: 1_500, out_of_range: 0, failed: 2 }),
                (OpKind::Get, Tally { done: 2_900, out_of_range: 98, failed: 0 }),
            ]),
            failures: BTreeMap::from([(ErrorClass::Timeout, 2)]),
            judged_count: 2_900,
            kept_count_max: 44,
        },
    }
}

fn stale() -> Violation {
    let put = |number, at: u64| HistoryOp::Put(value(3, number, at as u32), 1_234);
    Violation {
        kind: ViolationKind::StaleRead,
        key: Ok(KEY),
        proof: vec![
            event(0, put(0, 8), (1_100, Some(1_103)), Saw::Done),
            event(1, put(5, 9), (1_110, Some(1_112)), Saw::Done),
            event(
                2,
                HistoryOp::Get(KEY, Some((10, 90))),
                (1_120, Some(1_121)),
                Saw::Value(value(3, 0, 8)),
            ),
        ],
        repeats_count: 3,
    }
}

#[test]
fn a_clean_check_says_so_in_its_first_line() {
    assert_eq!(
        text(&report(Vec::new()), false),
        "\
check: no violation found in 4,500 operations in 2.50 s

target      127.0.0.1:9000, bucket b, prefix plimsoll/check-1/
load        16 workers on 2 threads, 16 keys (2 replaced, as too many of their writes had an unknown
            outcome), seed 7
judged      2,900 answers of reads, each key of a listing as one; at most 44 operations kept

operations   done  out of range  failed
  PUT       1,500             0       2
  GET       2,900            98       0
  failed      2 × timeout
"
    );
}

#[test]
fn a_violation_is_shown_with_the_operations_that_prove_it() {
    let mut report = report(vec![stale()]);
    *report.history.counts.get_mut(&ViolationKind::StaleRead).unwrap() = 12;
    let shown = text(&report, false);
    assert!(shown.starts_with("check: 12 VIOLATIONS in 4,500 operations in 2.50 s\n"), "{shown}");
    let from = shown.find("violations").unwrap();
    assert_eq!(
        &shown[from..],
        "\
violations    count
  stale-read     12

1. stale-read of k000003, 100 ms after the start
   the last read returned an older state than was certain
     0.000 to 3.000 ms  w0   PUT w0#8 (1.21 KiB)  done
   10.000 to 12.000 ms  w5   PUT w5#9 (1.21 KiB)  done
   20.000 to 21.000 ms  w10  GET bytes 10 to 99   gave w0#8
   and 3 more reads showed the same

and 11 more; `show` sets how many are shown
"
    );
}

#[test]
fn every_answer_has_words() {
    let told = |op, saw| {
        let proof = vec![event(0, op, (1_000, None), saw)];
        let key = Ok(KEY);
        let kind = ViolationKind::WrongSize;
        let shown = text(&report(vec![Violation { kind, key, proof, repeats_count: 0 }]), false);
        let line = shown.lines().find(|line| line.contains("0.000 to – ms")).unwrap().to_owned();
        line["   0.000 to – ms  w0  ".len() + 2..].to_owned()
    };
    let wrong = WrongContent { kind: WrongKind::Torn, value: Some(value(4, 1, 2)), at: 64 };
    for (op, saw, expected) in [
        (HistoryOp::List, Saw::Absent, "did not list it"),
        (HistoryOp::List, Saw::Present(Some(5)), "listed it with 5 B"),
        (HistoryOp::Stat(KEY), Saw::Present(Some(5)), "gave 5 B"),
        (HistoryOp::Stat(KEY), Saw::Absent, "found nothing (404)"),
        (HistoryOp::Delete(KEY), Saw::Pending, "not yet answered"),
        (HistoryOp::Delete(KEY), Saw::Failed(ErrorClass::Reset), "failed (reset), outcome unknown"),
        (
            HistoryOp::Get(KEY, None),
            Saw::Wrong(wrong),
            "gave torn content from byte 64, traces of k000004:w1#2",
        ),
    ] {
        assert!(told(op, saw).ends_with(expected), "{}", told(op, saw));
    }
    let proof = vec![event(0, HistoryOp::List, (1_000, None), Saw::Present(None))];
    let key = Err("x\x1b[2J".to_owned());
    let kind = ViolationKind::ListGhost;
    let shown = text(&report(vec![Violation { kind, key, proof, repeats_count: 0 }]), false);
    assert!(shown.contains("1. list-ghost of `x [2J`, 0 s after the start\n"), "{shown}");
    assert!(shown.contains("the listing holds a key that was never written\n"), "{shown}");
}

#[test]
fn the_json_counts_in_nanoseconds_since_the_check_began() {
    let document = json(&report(vec![stale()]));
    assert_eq!(document["schema"], "plimsoll.check/1");
    assert_eq!(document["duration_ns"], 2_500_000_000u64);
    assert_eq!(document["counts"], serde_json::json!({"stale-read": 1}));
    let read = &document["violations"][0]["proof"][2];
    assert_eq!(read["begin_ns"], 120_000_000);
    assert_eq!(read["range"], serde_json::json!([10, 90]));
    assert_eq!((&read["answer"], &read["value"]), (&"value".into(), &"k000003:w0#8".into()));
    assert!(read["written"].is_null());
}

#[test]
fn the_committed_schema_is_the_schema() {
    let current = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    plimsoll_testkit::check_format("check.schema.json", &current);
}

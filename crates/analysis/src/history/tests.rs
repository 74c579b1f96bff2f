//! Small histories by hand: what is found, what it is called, and which operations prove it.

use plimsoll_model::{ErrorClass, Moment, WorkerId, WrongKind};
use plimsoll_workload::history::{Answer, HistoryOp, KeyNumber, ValueId, Witness, WrongContent};

use super::{History, HistoryReport, ViolationKind};

const KEY: KeyNumber = KeyNumber(0);

fn value(number: u32) -> ValueId {
    ValueId { key: KEY, writer: WorkerId(0), number }
}

fn put(number: u32) -> HistoryOp {
    HistoryOp::Put(value(number), 100 + u64::from(number))
}

fn get() -> HistoryOp {
    HistoryOp::Get(KEY, None)
}

/// Writes a history: operations with begin, end and answer, each by a worker of its own.
fn judge(ops: &[(HistoryOp, u64, u64, Answer)]) -> HistoryReport {
    let mut history = History::new(10);
    history.add_key(KEY);
    let mut moments: Vec<(u64, bool, usize)> = Vec::new();
    for (at, (_, begin, end, _)) in ops.iter().enumerate() {
        moments.extend([(*begin, false, at), (*end, true, at)]);
    }
    moments.sort_unstable();
    for (moment, is_end, at) in moments {
        let (op, _, _, answer) = &ops[at];
        let (worker, moment) = (WorkerId(at as u32), Moment::from_ns(moment));
        if is_end {
            history.end(worker, answer, moment);
        } else {
            history.begin(worker, *op, moment);
        }
    }
    history.finish()
}

/// Checks which violations there are, and which operations prove the first one.
fn check(ops: &[(HistoryOp, u64, u64, Answer)], counts: &[(ViolationKind, u64)], proof: &[u64]) {
    let report = judge(ops);
    let found: Vec<(ViolationKind, u64)> =
        report.counts.iter().map(|(kind, count)| (*kind, *count)).collect();
    assert_eq!(found, counts, "{report:#?}");
    let begins: Vec<u64> = report.violations.first().map_or(Vec::new(), |violation| {
        violation.proof.iter().map(|event| event.begin.as_ns()).collect()
    });
    assert_eq!(begins, proof, "{report:#?}");
}

#[test]
fn a_read_of_a_version_that_was_overwritten_is_stale() {
    check(
        &[
            (put(1), 0, 10, Answer::Done),
            (put(2), 20, 30, Answer::Done),
            (get(), 40, 50, Answer::Value(value(1))),
            (get(), 60, 70, Answer::Value(value(2))),
        ],
        &[(ViolationKind::StaleRead, 1)],
        &[0, 20, 40],
    );
    // Seen once is a read, not a loss, when nobody looked again.
    check(
        &[
            (put(1), 0, 10, Answer::Done),
            (put(2), 20, 30, Answer::Done),
            (get(), 40, 50, Answer::Value(value(1))),
        ],
        &[(ViolationKind::StaleRead, 1)],
        &[0, 20, 40],
    );
}

#[test]
fn overlapping_operations_may_come_in_either_order() {
    let ok: &[(ViolationKind, u64)] = &[];
    for seen in [1, 2] {
        check(
            &[
                (put(1), 0, 10, Answer::Done),
                (put(2), 5, 30, Answer::Done),
                (get(), 25, 40, Answer::Value(value(seen))),
            ],
            ok,
            &[],
        );
    }
    check(
        &[
            (put(1), 0, 10, Answer::Done),
            (HistoryOp::Delete(KEY), 20, 60, Answer::Done),
            (get(), 30, 40, Answer::Absent),
            (HistoryOp::List, 30, 40, Answer::Listed(vec![], vec![])),
        ],
        ok,
        &[],
    );
}

#[test]
fn two_reads_that_disagree_on_the_order_are_a_violation() {
    check(
        &[
            (put(1), 0, 10, Answer::Done),
            (put(2), 20, 100, Answer::Done),
            (get(), 30, 40, Answer::Value(value(2))),
            (get(), 50, 60, Answer::Value(value(1))),
            (get(), 70, 80, Answer::Value(value(2))),
        ],
        &[(ViolationKind::StaleRead, 1)],
        &[0, 30, 50],
    );
}

#[test]
fn a_write_that_no_look_finds_is_lost() {
    check(
        &[
            (put(1), 0, 10, Answer::Done),
            (get(), 20, 30, Answer::Absent),
            (get(), 40, 50, Answer::Absent),
            (HistoryOp::List, 60, 70, Answer::Listed(vec![], vec![])),
        ],
        &[(ViolationKind::LostWrite, 1)],
        &[0, 20],
    );
    check(
        &[
            (put(1), 0, 10, Answer::Done),
            (put(2), 20, 30, Answer::Done),
            (get(), 40, 50, Answer::Value(value(1))),
            (HistoryOp::Stat(KEY), 60, 70, Answer::Present(Some(101))),
            (put(3), 80, 90, Answer::Done),
            (get(), 100, 110, Answer::Value(value(3))),
        ],
        &[(ViolationKind::LostWrite, 1)],
        &[0, 20, 40],
    );
    // It came late: every look before was stale.
    check(
        &[
            (put(1), 0, 10, Answer::Done),
            (get(), 20, 30, Answer::Absent),
            (HistoryOp::Stat(KEY), 40, 50, Answer::Absent),
            (get(), 60, 70, Answer::Value(value(1))),
        ],
        &[(ViolationKind::StaleRead, 2)],
        &[0, 20],
    );
}

#[test]
fn a_removal_that_has_no_effect_is_a_resurrection() {
    check(
        &[
            (put(1), 0, 10, Answer::Done),
            (HistoryOp::Delete(KEY), 20, 30, Answer::Done),
            (get(), 40, 50, Answer::Value(value(1))),
            (HistoryOp::List, 60, 70, Answer::Listed(vec![(KEY, 101)], vec![])),
        ],
        &[(ViolationKind::ResurrectedDelete, 1)],
        &[0, 20, 40],
    );
    check(
        &[
            (put(1), 0, 10, Answer::Done),
            (HistoryOp::Delete(KEY), 20, 30, Answer::Done),
            (get(), 40, 50, Answer::Value(value(1))),
            (get(), 60, 70, Answer::Absent),
        ],
        &[(ViolationKind::StaleRead, 1)],
        &[0, 20, 40],
    );
}

#[test]
fn listings_are_held_to_what_is_certain() {
    let listed = |entries: Vec<(KeyNumber, u64)>| Answer::Listed(entries, vec![]);
    let with = |list: Answer, kind, proof: &[u64]| {
        check(
            &[
                (put(1), 0, 10, Answer::Done),
                (put(2), 20, 30, Answer::Done),
                (HistoryOp::List, 40, 50, list),
                (get(), 60, 70, Answer::Value(value(2))),
            ],
            &[(kind, 1)],
            proof,
        );
    };
    with(listed(vec![]), ViolationKind::ListOmission, &[20, 40]);
    with(listed(vec![(KEY, 101)]), ViolationKind::ListStale, &[0, 20, 40]);
    with(listed(vec![(KEY, 999)]), ViolationKind::WrongSize, &[20, 40]);
    check(
        &[
            (put(1), 0, 10, Answer::Done),
            (HistoryOp::Delete(KEY), 20, 30, Answer::Done),
            (HistoryOp::List, 40, 50, listed(vec![(KEY, 101)])),
            (get(), 60, 70, Answer::Absent),
        ],
        &[(ViolationKind::ListGhost, 1)],
        &[0, 20, 40],
    );
    let strange = Answer::Listed(vec![(KeyNumber(7), 5)], vec!["never written".to_owned()]);
    check(&[(HistoryOp::List, 0, 10, strange)], &[(ViolationKind::ListGhost, 2)], &[0]);
}

#[test]
fn a_write_that_failed_excuses_both_answers_for_good() {
    let failed = Answer::Failed(ErrorClass::Timeout);
    for seen in [1, 2] {
        check(
            &[
                (put(1), 0, 10, Answer::Done),
                (put(2), 20, 30, failed.clone()),
                (get(), 1_000, 1_010, Answer::Value(value(1))),
                (get(), 2_000, 2_010, Answer::Value(value(seen))),
            ],
            &[],
            &[],
        );
    }
    // Once it was seen it has happened.
    check(
        &[
            (put(1), 0, 10, Answer::Done),
            (put(2), 20, 30, failed.clone()),
            (get(), 40, 50, Answer::Value(value(2))),
            (get(), 60, 70, Answer::Value(value(1))),
        ],
        &[(ViolationKind::StaleRead, 1)],
        &[0, 40, 60],
    );
    check(
        &[
            (put(1), 0, 10, Answer::Done),
            (HistoryOp::Delete(KEY), 20, 30, failed),
            (get(), 40, 50, Answer::Value(value(1))),
            (get(), 60, 70, Answer::Absent),
        ],
        &[],
        &[],
    );
}

#[test]
fn wrong_content_is_named_with_the_write_it_is_from() {
    let wrong = WrongContent { kind: WrongKind::Torn, value: Some(value(1)), at: 64 };
    check(
        &[(put(1), 0, 10, Answer::Done), (get(), 20, 30, Answer::Wrong(wrong))],
        &[(ViolationKind::Content(WrongKind::Torn), 1)],
        &[0, 20],
    );
}

#[test]
fn a_version_from_long_ago_is_still_a_stale_read() {
    let mut ops = Vec::new();
    for number in 0..100 {
        let begin = u64::from(number) * 10;
        ops.push((put(number), begin, begin + 5, Answer::Done));
    }
    ops.push((get(), 2_000, 2_010, Answer::Value(value(3))));
    check(&ops, &[(ViolationKind::StaleRead, 1)], &[990, 2_000]);
}

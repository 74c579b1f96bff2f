//! Schedules that were kept and not, with every count worked out by hand.

use plimsoll_analysis::{RowAsked, Rows, Span};
use plimsoll_model::{Moment, OpKind, OpRecord};

use super::*;
use crate::fixture::{self, view};
use crate::{JobSchedule, Report};

fn with(change: impl FnOnce(&mut ScheduleReport)) -> Report {
    let mut report = fixture::stalled();
    change(&mut fixture::row(&mut report).schedules[0].schedule);
    report
}

#[test]
fn one_percent_may_be_late_or_skipped() {
    for (late, skipped, kept) in [
        (0, 0, true),
        (20, 0, true),
        (10, 10, true),
        (21, 0, false),
        (0, 21, false),
        (20, 1, false),
    ] {
        let report = with(|of| (of.late_count, of.skipped_count) = (Some(late), Some(skipped)));
        assert_eq!(
            view(&report).row.schedule_kept(),
            kept,
            "{late} late, {skipped} skipped of 2,000"
        );
        assert_eq!(view(&report).schedule_warning().is_none(), kept);
    }
    // Nothing is known of it, nothing arrived, no schedule at all.
    let unknown = with(|of| of.offered_count = None);
    let none_arrived = with(|of| (of.offered_count, of.late_count) = (Some(0), Some(0)));
    let closed = fixture::steady();
    for report in [&unknown, &none_arrived, &closed] {
        assert!(view(report).row.schedule_kept());
    }
    assert_eq!(view(&closed).schedule_facts(), []);
}

#[test]
fn the_rate_is_that_of_the_arrivals() {
    let schedule = view(&fixture::stalled()).schedule().unwrap().clone();
    assert_eq!(schedule.rate_offered(), Some(OpRate(1_000.0)));
    let unknown = ScheduleReport { lasted: Some(Duration::ZERO), ..schedule.clone() };
    assert_eq!(unknown.rate_offered(), None);
    assert_eq!(ScheduleReport { offered_count: None, ..schedule }.rate_offered(), None);
}

#[track_caller]
fn check_hint(report: &Report, hint: &str) {
    let warning = view(report).schedule_warning().unwrap();
    let lead = "SCHEDULE NOT KEPT: 89 of 2,000 operations (4.45 %) did not start on time, 89 by \
                more than 1 ms and 0 not at all, so the load was not the one asked for. ";
    assert_eq!(warning, format!("{lead}{hint}"));
}

#[test]
fn the_hint_follows_littles_law() {
    // Mean service time: (102 + … + 83 ms + 1,980 · 2 ms) / 2,000 = 2.905 ms; 1,000/s need 2.905.
    check_hint(
        &with(|of| of.max_in_flight = 2),
        "`max_in_flight` 2 is below the 3 that 1,000/s needs at the observed 2.90 ms: raise it, or \
         lower `rate`; if the achieved rate does not rise with it, the store completes no more",
    );
    // 102 ms, the longest, need 102.
    check_hint(
        &with(|of| of.max_in_flight = 101),
        "While the store was slow, up to 102 ms for an operation, 1,000/s needed up to 102 in \
         flight, and `max_in_flight` is 101: raise it; if that does not help, the client machine \
         is too slow",
    );
    check_hint(
        &with(|of| of.max_in_flight = 102),
        "`max_in_flight` 102 was enough at the observed 2.90 ms, so the client machine is too \
        slow or too busy for 1,000/s: lower `rate`, or use another",
    );
}

#[test]
fn one_slow_operation_among_many_needs_no_more_than_what_waited() {
    // One of 15 s took one place. The longest delay of 82 ms had 82 arrivals wait, and no more.
    let mut report = fixture::stalled();
    let total = &mut fixture::row(&mut report).analysis.total;
    total.service_time.as_mut().unwrap().max = Some(Duration::from_secs(15));
    check_hint(
        &report,
        "While the store was slow, up to 15.0 s for an operation, 1,000/s needed up to 102 in \
         flight, and `max_in_flight` is 20: raise it; if that does not help, the client machine \
         is too slow",
    );
}

/// Operations of a store that serves one at a time in 2 ms, 1,000/s for 2 s, up to 20 in flight:
/// the n-th ends after 2n ms, and from the 38th on each waits for the one 20 before it.
fn overloaded() -> Report {
    let ends = |index: u64| (index + 1) * 2;
    let start = |index: u64| index.checked_sub(20).map_or(index, |before| index.max(ends(before)));
    let ops = (0..1_000).filter(|index| start(*index) < 2_000).map(|index| OpRecord {
        intended: Moment::from_ns(index * 1_000_000),
        ..fixture::op(OpKind::Get, 0, start(index), ends(index) - start(index))
    });
    let ops: Vec<_> = ops.collect();
    let mut report = fixture::stalled();
    report.stages[1].rows[0].analysis = fixture::analysis_with(&ops, 2_040, 1, |asked| {
        let open = RowAsked { workers: 1, span: Span::Whole, open: true, ends: None };
        asked.rows = Rows::One(open);
    });
    report
}

#[test]
fn a_saturated_store_is_not_asked_for_more_in_flight() {
    let hint = view(&overloaded()).schedule_warning().unwrap();
    let (_, hint) = hint.split_once("asked for. ").unwrap();
    assert!(
        hint.starts_with("The store completes about 500/s and cannot carry 1,000/s: more in "),
        "{hint}"
    );
    assert!(hint.contains(" with 20). Lower `rate`; "), "{hint}");
    assert!(!hint.contains("raise it"), "{hint}");
    // Who computes all the time may be as slow as the store.
    let mut busy = overloaded();
    fixture::measured(&mut busy).cpu = Some(Duration::from_millis(3_672));
    let hint = view(&busy).schedule_warning().unwrap();
    let who = "The store, or the client machine (its threads were busy 90.0 % of the \
               time), completes about 500/s";
    assert!(hint.contains(who), "{hint}");
    // A part of the operations shows nothing of what was in flight, and of why.
    let mut part = overloaded();
    fixture::row(&mut part).analysis.is_part = true;
    let told = view(&part).schedule_warning().unwrap();
    assert!(told.ends_with("asked for. The report of all operations says what held it back"));
}

#[test]
fn failures_may_have_taken_all_places() {
    let mut report = fixture::failing();
    let schedules: Vec<JobSchedule> = fixture::row(&mut fixture::stalled()).schedules.clone();
    fixture::row(&mut report).schedules = schedules;
    check_hint(
        &report,
        "Failed operations may have used up `max_in_flight` 20: find out first why they failed; a \
        store that sheds load needs a lower `rate`, not more in flight",
    );
}

#[test]
fn a_part_of_the_operations_is_not_held_against_the_schedule() {
    let mut report = fixture::stalled();
    report.stages[1].rows[0].analysis.is_part = true;
    assert_eq!(view(&report).schedule_facts()[0].1, "1,000 ops/s (2,000 operations in 2.00 s)");
}

#[test]
fn a_run_that_was_killed_has_no_numbers_made_up() {
    let report = with(|of| {
        (of.offered_count, of.late_count, of.skipped_count) = (None, None, None);
        (of.lasted, of.delay_max) = (None, None);
    });
    let facts = view(&report).schedule_facts();
    assert_eq!(facts[0].1, "– (– in –); achieved 1,000 ops/s");
    assert_eq!(facts[1].1, "–: – late by more than 1 ms, – skipped, longest delay –");
}

#[test]
fn a_replay_is_told_its_speed_and_what_it_held_back() {
    let report = with(|of| {
        of.arrivals = vec![ArrivalLaw::Trace];
        of.held_count = 1_234;
        // Enough, so that the load itself is what was too much.
        of.max_in_flight = 1_000;
    });
    let warning = view(&report).schedule_warning().unwrap();
    assert!(!warning.contains("`rate`") && warning.contains("lower `speed`"), "{warning}");
    let facts = view(&report).schedule_facts();
    let told = &facts.iter().find(|(name, _)| *name == "schedule").unwrap().1;
    assert!(told.ends_with("; 1,234 held back by an earlier one on the same object"), "{told}");
    let of_rate = view(&with(|_| ())).schedule_facts();
    assert!(of_rate.iter().all(|(_, text)| !text.contains("held back")), "{of_rate:?}");
}

#[test]
fn a_client_that_stood_still_is_named_for_what_it_missed() {
    let mut report = fixture::stalled();
    let row = fixture::row(&mut report);
    let ledger = row.analysis.ledger.as_mut().unwrap();
    let (from, length) = (row.analysis.started, Duration::from_millis(2));
    // A hundred are listed of as many as there were.
    ledger.standstills = vec![plimsoll_analysis::StoodStill { client: None, from, length }; 100];
    (ledger.standstills_count, ledger.stood_still) = (500, Duration::from_secs(1));
    let told = view(&report).schedule_warning().unwrap();
    assert!(told.ends_with("run it again without stopping it"), "{told}");
    assert!(told.contains("plimsoll itself stood still for 1.00 s"), "{told}");
}

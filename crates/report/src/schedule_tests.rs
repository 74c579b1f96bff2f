//! Schedules that were kept and not, with every count worked out by hand.

use super::*;
use crate::fixture;

fn with(change: impl FnOnce(&mut ScheduleReport)) -> RunReport {
    let mut report = fixture::stalled();
    change(report.schedule.as_mut().unwrap());
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
        assert_eq!(report.schedule_kept(), kept, "{late} late, {skipped} skipped of 2,000");
        assert_eq!(report.schedule_warning().is_none(), kept);
    }
    // Nothing is known of it, nothing arrived, no schedule at all.
    assert!(with(|of| of.offered_count = None).schedule_kept());
    assert!(with(|of| (of.offered_count, of.late_count) = (Some(0), Some(0))).schedule_kept());
    assert!(fixture::steady().schedule_kept());
    assert_eq!(fixture::steady().schedule_facts(), []);
}

#[test]
fn the_rate_is_that_of_the_arrivals() {
    let schedule = fixture::stalled().schedule.unwrap();
    assert_eq!(schedule.rate_offered(), Some(OpRate(1_000.0)));
    let unknown = ScheduleReport { lasted: Some(Duration::ZERO), ..schedule.clone() };
    assert_eq!(unknown.rate_offered(), None);
    assert_eq!(ScheduleReport { offered_count: None, ..schedule }.rate_offered(), None);
}

#[track_caller]
fn check_hint(report: &RunReport, hint: &str) {
    let warning = report.schedule_warning().unwrap();
    let lead = "SCHEDULE NOT KEPT: 89 of 2,000 operations (4.45 %) did not start on time, 89 by \
                more than 1 ms and 0 not at all, so the load was not the one that was asked for. ";
    assert_eq!(warning, format!("{lead}{hint}"));
}

#[test]
fn the_hint_follows_littles_law() {
    // Mean service time: (102 + … + 83 ms + 1,980 · 2 ms) / 2,000 = 2.905 ms; 1,000/s need 2.905.
    check_hint(
        &with(|of| of.max_in_flight = 2),
        "--max-in-flight 2 is below the 3 that 1,000/s needs at the observed 2.90 ms: raise it, or \
         lower --rate",
    );
    // 102 ms, the longest, need 102.
    check_hint(
        &with(|of| of.max_in_flight = 101),
        "While the store was slow, up to 102 ms for an operation, 1,000/s needed up to 102 in \
         flight, and --max-in-flight is 101: raise it; if that does not help, the machine that \
         makes the load is too slow",
    );
    check_hint(
        &with(|of| of.max_in_flight = 102),
        "--max-in-flight 102 was enough at the observed 2.90 ms, so the machine that makes the \
         load is too slow or too busy for 1,000/s: lower --rate, or take another",
    );
}

#[test]
fn failures_may_have_taken_all_places() {
    let schedule = fixture::stalled().schedule;
    let report = RunReport { schedule, ..fixture::failing() };
    check_hint(
        &report,
        "Operations that failed may have taken all of --max-in-flight 20: raise it; if that does \
         not help, the machine that makes the load is too slow",
    );
}

#[test]
fn a_part_of_the_operations_is_not_held_against_the_schedule() {
    let mut report = fixture::stalled();
    report.analysis.is_part = true;
    assert_eq!(report.schedule_facts()[0].1, "1,000 ops/s (2,000 operations in 2.00 s)");
}

#[test]
fn a_run_that_was_killed_has_no_numbers_made_up() {
    let report = with(|of| {
        (of.offered_count, of.late_count, of.skipped_count) = (None, None, None);
        (of.lasted, of.delay_max) = (None, None);
    });
    let facts = report.schedule_facts();
    assert_eq!(facts[0].1, "– (– in –); achieved 1,000 ops/s");
    assert_eq!(facts[1].1, "–: – late by more than 1 ms, – skipped, longest delay –");
}

//! The table against figures worked out by hand.

use super::*;
use crate::fixture_files as fixture;

#[test]
fn averages_of_repetitions_and_only_what_is_known() {
    let mut report = fixture::suite();
    // The same again, but for half of the creates.
    let mut again = report.stages[3].clone();
    again.iteration = 1;
    let ops: Vec<_> =
        (0..125).map(|i| fixture::op(0, OpKind::Create, i * 1_000, 1_000, 0)).collect();
    again.rows[0].analysis = fixture::figures(&ops, &[(0, 0)]).pop().unwrap();
    report.stages.push(again);
    let text = table(&report).unwrap();
    // (250 / 0.150 s + 125 / 0.125 s) / 2 = 1,333.3.
    assert!(text.contains("  creates       1,333\n"), "{text}");
    assert!(text.contains("  averages of 2 repetitions\n"), "{text}");
    assert_eq!(text.matches("  create  ").count(), 1, "{text}");
    // Nothing on IOPS ran.
    assert!(!text.contains("IOPS"), "{text}");
    assert!(text.contains("  throughput        1.95 GiB/s      –\n"), "{text}");
}

#[test]
fn the_average_latency_is_in_microseconds_whatever_it_is() {
    // WEKA's guide prints 3483 µs for reads of 1 MiB.
    assert_eq!(Figure::Latency.text(3_483.2), "3,483 µs");
    assert_eq!(Figure::Throughput.text(8.952), "8.95 GiB/s");
    assert_eq!(Figure::Rate.text(390_412.3), "390,412");
}

#[test]
fn who_served_the_names_is_said_where_it_is_known() {
    let mut report = fixture::suite();
    assert!(table(&report).unwrap().contains("All metadata stages ran on one client"));
    report.stages[4].rows[0].served_by = vec!["host-b".to_owned()];
    let text = table(&report).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "2 clients served the stages on names: create by host-a; stat by host-b.";
    assert!(text.contains(expected), "{text}");
    let names = |report: &mut Report, kept| report.stages[4].rows[0].names_kept_count = kept;
    let said =
        |report: &Report| table(report).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    names(&mut report, Some(0));
    let expected = "2 clients served the stages on names, each stage on what another one had in \
                    the stage before: caches of clients are excluded.";
    assert!(said(&report).contains(expected), "{}", said(&report));
    names(&mut report, Some(1));
    let expected = "and in stat 1 of 2 jobs worked on names that their own client had";
    assert!(said(&report).contains(expected), "{}", said(&report));
    // Without stages on names there is nothing to say.
    report.stages.truncate(3);
    assert!(!table(&report).unwrap().contains("client"));
}

#[test]
fn other_runs_have_no_such_table() {
    assert_eq!(table(&fixture::mixed()), None);
    let mut report = fixture::suite();
    report.stages.iter_mut().for_each(|stage| stage.is_result = false);
    assert_eq!(table(&report), None);
    // Stages on objects may have the same names.
    let mut report = fixture::suite();
    let rows = report.stages.iter_mut().flat_map(|stage| &mut stage.rows);
    rows.for_each(|row| row.is_on_files = false);
    assert_eq!(table(&report), None);
}

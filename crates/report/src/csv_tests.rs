//! The lines of the suite and of jobs at once.

use super::*;
use crate::fixture_files as fixture;

fn lines(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(',').collect()).collect()
}

#[test]
fn a_line_for_each_kind_in_each_row() {
    let text = render(&fixture::suite());
    let lines = lines(&text);
    assert_eq!(lines[0], COLUMNS);
    assert_eq!(lines.len(), 1 + 5);
    assert!(lines.iter().all(|line| line.len() == COLUMNS.len()));
    let field = |line: usize, name: &str| {
        lines[line][COLUMNS.iter().position(|column| *column == name).unwrap()]
    };
    assert_eq!((field(1, "stage"), field(1, "is_result")), ("fill", "false"));
    assert_eq!((field(2, "kind"), field(2, "bytes")), ("READ", "4194304000"));
    assert_eq!((field(2, "ops_per_sec"), field(2, "bytes_per_sec")), ("2000", "2097152000"));
    assert_eq!((field(2, "client_cpu_ns"), field(3, "client_cpu_ns")), ("400000000", ""));
    // 3,000 samples are enough for p99.95 and too few for p99.99.
    assert_eq!(field(3, "latency_ns_mean"), "103000");
    assert_eq!(field(3, "latency_ns_p99_95"), "1000000");
    assert_eq!(field(3, "latency_ns_p99_99"), "");
    assert_eq!((field(4, "first_done_ns"), field(4, "last_done_ns")), ("100000000", "150000000"));
    assert_eq!(field(4, "first_done_ops_per_sec"), "2000");
    assert_eq!((field(5, "ops_ok_count"), field(5, "ops_failed_count")), ("249", "1"));
}

#[test]
fn what_others_named_is_no_formula() {
    let mut report = fixture::mixed();
    for name in ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1"] {
        report.stages[0].name = name.to_owned();
        report.stages[0].rows[0].name = name.to_owned();
        let text = render(&report);
        let cell = text.lines().nth(1).unwrap();
        assert!(cell.starts_with('\'') || cell.starts_with(' '), "{name:?}: {cell}");
        let row = cell.split(',').nth(3).unwrap();
        assert!(row.starts_with('\'') || row.starts_with(' '), "{name:?}: {row}");
    }
}

#[test]
fn rows_stay_apart_and_commas_are_quoted() {
    let mut report = fixture::mixed();
    report.stages[0].rows[0].name = "a, \"b\"\n".to_owned();
    let text = render(&report);
    assert_eq!(text.lines().count(), 1 + 4);
    assert!(text.contains("both,1,true,\"a, \"\"b\"\" \",randrw 75/25,"), "{text}");
}

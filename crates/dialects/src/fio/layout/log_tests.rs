//! Lines of logs, worked out by hand, and the columns of fio's own.

use std::num::NonZeroU64;

use super::samples::LOGS;
use super::*;

fn op(ended_ms: u64, write: bool, bytes: u64, ns: u64) -> FioLogOp {
    FioLogOp { ended_ms, write, bytes, ns }
}

fn log(kind: FioLogKind, window_ms: u64, ended_ms: u64, ops: &[FioLogOp]) -> String {
    let mut text = String::new();
    let mut log = FioLog::new(kind, NonZeroU64::new(window_ms));
    ops.iter().for_each(|op| log.add(op, &mut text));
    log.finish(ended_ms, &mut text);
    text
}

#[test]
fn each_operation_has_a_line() {
    let ops = [op(0, false, 4096, 2_000), op(7, true, 65_536, 1_000_000)];
    // 4 KiB in 2 µs are 2,000,000 KiB/s; 64 KiB in 1 ms are 64,000.
    for (kind, values) in [
        (FioLogKind::Throughput, [2_000_000, 64_000]),
        (FioLogKind::Iops, [1, 1]),
        (FioLogKind::Time, [2_000, 1_000_000]),
    ] {
        let expected = format!("0, {}, 0, 4096, 0\n7, {}, 1, 65536, 0\n", values[0], values[1]);
        assert_eq!(log(kind, 0, 10, &ops), expected);
    }
}

#[test]
fn windows_are_whole_and_sides_apart() {
    let ops = [
        op(260, false, 8192, 100),
        op(10, false, 4096, 1_000),
        op(249, false, 4096, 2_001),
        op(0, true, 102_400, 7),
        op(1_020, false, 4096, 5),
    ];
    // 8 KiB in 250 ms are 32 KiB/s, 100 KiB are 400. From 500 ms on nothing ended until 1,000 ms,
    // and the last window has only 100 ms.
    let expected = "250, 32, 0, 0, 0\n250, 400, 1, 0, 0\n500, 32, 0, 0, 0\n";
    assert_eq!(log(FioLogKind::Throughput, 250, 1_100, &ops), expected);
    let expected = "250, 8, 0, 0, 0\n250, 4, 1, 0, 0\n500, 4, 0, 0, 0\n";
    assert_eq!(log(FioLogKind::Iops, 250, 1_100, &ops), expected);
    let expected = "250, 1500, 0, 0, 0\n250, 7, 1, 0, 0\n500, 100, 0, 0, 0\n1100, 5, 0, 0, 0\n";
    assert_eq!(log(FioLogKind::Time, 250, 1_100, &ops), expected);
}

#[test]
fn columns_are_those_of_fio() {
    let ours = log(FioLogKind::Time, 250, 500, &[op(1, false, 1, 1), op(2, true, 1, 1)]);
    for line in LOGS.into_iter().chain([ours.as_str()]).flat_map(str::lines) {
        let columns: Vec<u64> = line.split(", ").map(|one| one.parse().unwrap()).collect();
        assert_eq!(
            (columns.len(), columns[2] < 2, &columns[3..]),
            (5, true, &[0, 0][..]),
            "{line}"
        );
    }
}

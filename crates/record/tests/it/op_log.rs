//! Writing the op log and reading it back, whole and after accidents.
#![expect(clippy::disallowed_methods, reason = "a test looks at the files of a run")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use parquet::file::reader::SerializedFileReader;
use parquet::record::{Field, Row};
use plimsoll_model::{EndpointId, Moment, OpKind, OpRecord, PackedOp};
use plimsoll_record::{OpLog, OpLogTotals, PART_AGE_MAX, PART_ROWS_MAX, RecordError, RunDirectory};

use crate::{endpoints, new_run, op, writer};

fn read(directory: &RunDirectory) -> Vec<OpRecord> {
    let mut ops = Vec::new();
    let rows = OpLog::open(directory).unwrap().scan(&mut |op| ops.push(*op)).unwrap();
    assert_eq!(rows, ops.len() as u64);
    ops
}

fn part(directory: &RunDirectory, name: &str) -> std::path::PathBuf {
    directory.ops_path().join(name)
}

#[test]
fn every_column_comes_back_in_order() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    // More rows than one batch of the writer or the reader holds.
    let ops: Vec<OpRecord> = (0..40_000).map(op).collect();
    let mut writer = writer(&directory);
    let (first, second) = ops.split_at(100);
    writer.append(first).unwrap();
    let packed: Vec<PackedOp> = second.iter().map(PackedOp::from).collect();
    writer.append_packed(&packed).unwrap();
    let totals = writer.finish().unwrap();
    let bytes = fs::metadata(part(&directory, "part-000000.parquet")).unwrap().len();
    assert_eq!(totals, OpLogTotals { rows: 40_000, parts: 1, bytes });
    assert!(read(&directory) == ops);
}

/// Returns a column of the first part as the file holds it.
fn stored(directory: &RunDirectory, name: &str) -> Vec<Option<i64>> {
    let file = fs::File::open(part(directory, "part-000000.parquet")).unwrap();
    let rows = SerializedFileReader::new(file).unwrap().into_iter();
    let field = |row: Row| match row.get_column_iter().find(|(column, _)| *column == name) {
        Some((_, Field::Long(value))) => Some(*value),
        Some((_, Field::Null)) => None,
        other => panic!("column {name} holds {other:?}"),
    };
    rows.map(|row| field(row.unwrap())).collect()
}

#[test]
fn moments_and_bytes_stand_in_the_file_as_the_document_says() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let at = Moment::from_ns;
    let get = OpRecord {
        kind: OpKind::Get,
        bytes: 0,
        intended: at(1_000),
        start: at(1_300),
        first_byte: Some(at(1_900)),
        last_byte_sent: None,
        end: at(2_000),
        ..op(1)
    };
    let put = OpRecord { kind: OpKind::Put, bytes: 5, last_byte_sent: Some(at(1_400)), ..get };
    let stat = OpRecord { kind: OpKind::Stat, intended: at(0), start: at(0), ..get };
    let refused = OpRecord { first_byte: None, intended: at(0), ..get };
    let ops = [get, put, stat, refused];
    let mut writer = writer(&directory);
    writer.append(&ops).unwrap();
    writer.finish().unwrap();

    let column = |name| stored(&directory, name);
    assert_eq!(column("bytes"), [Some(0), Some(5), None, Some(0)]);
    assert_eq!(column("schedule_delay_ns"), [Some(300), Some(300), Some(0), Some(1_300)]);
    assert_eq!(column("start_ns"), [Some(1_300), Some(1_300), Some(0), Some(1_300)]);
    assert_eq!(column("last_byte_sent_ns"), [None, Some(1_400), None, None]);
    assert_eq!(column("first_byte_to_end_ns"), [Some(100), Some(100), Some(100), None]);
    assert_eq!(column("end_ns"), [Some(2_000); 4]);
    assert_eq!(read(&directory), ops);

    // The document's ways to what is not a column.
    let latency = [700 + 300, 700 + 300, 2_000, 700 + 1_300].map(Duration::from_nanos);
    assert_eq!(ops.map(|op| op.latency()), latency);
    let ttfb = [Some(1_900 - 1_300), Some(1_900 - 1_400), Some(1_900), None];
    assert_eq!(ops.map(|op| op.ttfb()), ttfb.map(|ns| ns.map(Duration::from_nanos)));
}

#[test]
fn a_log_without_operations_has_no_parts() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let mut writer = writer(&directory);
    writer.tick(Moment::from_ns(u64::MAX)).unwrap();
    assert_eq!(writer.finish().unwrap(), OpLogTotals::default());
    assert_eq!(read(&directory), []);
}

#[test]
fn a_part_is_closed_when_its_oldest_operation_is_ten_seconds_old() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let mut writer = writer(&directory);
    let (old, young) = (op(1), op(2_000_000));
    writer.append(&[old, young]).unwrap();
    let due = old.end.after(PART_AGE_MAX);
    writer.tick(Moment::from_ns(due.as_ns() - 1)).unwrap();
    assert_eq!(read(&directory), []);
    writer.tick(due).unwrap();
    assert_eq!(read(&directory), [old, young]);

    // The next part has an age of its own.
    writer.append(&[op(3_000_000)]).unwrap();
    writer.tick(due.after(Duration::from_nanos(1))).unwrap();
    assert_eq!(OpLog::open(&directory).unwrap().parts(), 1);
    assert_eq!(writer.finish().unwrap().parts, 2);
    assert_eq!(read(&directory), [old, young, op(3_000_000)]);
}

#[test]
fn a_part_holds_a_million_rows_at_most() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let mut writer = writer(&directory);
    let thousand: Vec<OpRecord> = (0..1_000).map(op).collect();
    for _ in 0..PART_ROWS_MAX / 1_000 {
        writer.append(&thousand).unwrap();
    }
    assert!(part(&directory, "part-000000.parquet").exists());
    writer.append(&thousand[..1]).unwrap();
    let totals = writer.finish().unwrap();
    assert_eq!((totals.rows, totals.parts), (PART_ROWS_MAX + 1, 2));
    let rows = OpLog::open(&directory).unwrap().scan(&mut |_| ()).unwrap();
    assert_eq!(rows, PART_ROWS_MAX + 1);
}

#[test]
fn a_writer_that_dies_loses_the_open_part_alone() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let mut writer = writer(&directory);
    let closed: Vec<OpRecord> = (0..100).map(op).collect();
    writer.append(&closed).unwrap();
    writer.tick(Moment::from_ns(u64::MAX)).unwrap();
    // More rows than the writer buffers, so that the open part is on the disk.
    writer.append(&(100..50_000).map(op).collect::<Vec<_>>()).unwrap();
    drop(writer);
    assert!(part(&directory, "part-000001.parquet.open").exists());
    assert!(!part(&directory, "part-000001.parquet").exists());
    assert_eq!(OpLog::open(&directory).unwrap().unfinished(), 1);
    assert!(read(&directory) == closed);
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_names_the_directory_and_spares_what_is_closed() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let mut writer = writer(&directory);
    let closed = [op(1)];
    writer.append(&closed).unwrap();
    writer.tick(Moment::from_ns(u64::MAX)).unwrap();
    let next = part(&directory, "part-000001.parquet.open");
    std::os::unix::fs::symlink("/dev/full", next).unwrap();
    writer.append(&(2..10_000).map(op).collect::<Vec<_>>()).unwrap();
    let full = writer.tick(Moment::from_ns(u64::MAX)).unwrap_err();
    assert!(matches!(&full, RecordError::Full { path, .. } if *path == directory.ops_path()));
    assert!(full.to_string().contains("free some"), "{full}");
    // A writer that is used nevertheless begins a new part.
    writer.append(&[op(3)]).unwrap();
    assert_eq!(writer.finish().unwrap().rows, 2);
    assert_eq!(read(&directory), [op(1), op(3)]);
}

#[test]
fn an_endpoint_that_was_not_announced_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let mut writer = writer(&new_run(place.path()));
    let stray = OpRecord { endpoint: EndpointId(2), ..op(1) };
    let refused = writer.append(&[stray]).unwrap_err().to_string();
    assert!(refused.contains("names endpoint 2"), "{refused}");
    assert_eq!(endpoints().len(), 2);
}

#[test]
fn a_part_that_is_gone_is_missed() {
    let place = tempfile::tempdir().unwrap();
    let directory = three_parts(place.path());
    fs::remove_file(part(&directory, "part-000001.parquet")).unwrap();
    let missing = OpLog::open(&directory).unwrap_err().to_string();
    let expected = part(&directory, "part-000001.parquet").display().to_string();
    assert_eq!(missing, format!("{expected} is missing; was it moved or deleted?"));
}

#[test]
fn a_damaged_part_is_named() {
    let place = tempfile::tempdir().unwrap();
    let directory = three_parts(place.path());
    let path = part(&directory, "part-000001.parquet");
    let whole = fs::read(&path).unwrap();
    for damaged in [&whole[..0], &whole[..whole.len() / 2], b"PAR1 is not enough PAR1"] {
        fs::write(&path, damaged).unwrap();
        let refused = OpLog::open(&directory).unwrap().scan(&mut |_| ()).unwrap_err();
        let expected = format!("{} is damaged: ", path.display());
        assert!(refused.to_string().starts_with(&expected), "{refused}");
    }
}

/// Flips bits all over a part: reading may fail or give other rows, and must do neither by a panic.
#[test]
fn no_flipped_bit_brings_the_reader_down() {
    let place = tempfile::tempdir().unwrap();
    let directory = new_run(place.path());
    let mut writer = writer(&directory);
    writer.append(&(0..50).map(op).collect::<Vec<_>>()).unwrap();
    writer.finish().unwrap();
    let path = part(&directory, "part-000000.parquet");
    let whole = fs::read(&path).unwrap();
    let mut refused = 0;
    for position in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[position] ^= 1 << (position % 8);
        fs::write(&path, &damaged).unwrap();
        refused += u32::from(OpLog::open(&directory).unwrap().scan(&mut |_| ()).is_err());
    }
    assert!(refused > 0);
}

#[test]
fn a_part_of_another_version_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let directory = three_parts(place.path());
    let path = part(&directory, "part-000001.parquet");
    let mut bytes = fs::read(&path).unwrap();
    let name = b"plimsoll.ops/1";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at + name.len() - 1] = b'2';
    fs::write(&path, bytes).unwrap();
    let refused = OpLog::open(&directory).unwrap().scan(&mut |_| ()).unwrap_err().to_string();
    assert!(refused.contains("is of schema `plimsoll.ops/2`"), "{refused}");
}

fn three_parts(path: &Path) -> RunDirectory {
    let directory = new_run(path);
    let mut writer = writer(&directory);
    for number in 0..3 {
        writer.append(&(0..50).map(|row| op(number * 50 + row)).collect::<Vec<_>>()).unwrap();
        writer.tick(Moment::from_ns(u64::MAX)).unwrap();
    }
    assert_eq!(writer.finish().unwrap().parts, 3);
    directory
}

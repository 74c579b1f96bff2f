//! Outlines of operations, read without the rest of them.
#![expect(clippy::disallowed_methods, reason = "a test looks at the files of a run")]

use std::fs;
use std::path::PathBuf;

use plimsoll_model::{OpOutline, OpRecord, Visit};
use plimsoll_record::{OpLog, RecordError, RunDirectory};

use crate::{mark_at, new_run, op, seal_anew, writer};

/// Returns a run with a part of 300 operations, and where that is.
fn one_part(place: &tempfile::TempDir) -> (RunDirectory, PathBuf) {
    let directory = new_run(place.path());
    let mut writer = writer(&directory);
    writer.append(&(0..300).map(op).collect::<Vec<_>>()).unwrap();
    writer.finish().unwrap();
    let path = directory.ops_path().join("part-000000.parquet");
    (directory, path)
}

fn outlines(log: &OpLog) -> Result<Vec<OpOutline>, RecordError> {
    let mut seen = Vec::new();
    let mut visit = |op: &OpOutline| seen.push(*op);
    let mut visits = [&mut visit as &mut Visit<'_, OpOutline>];
    let rows = log.scan_outlines(&mut visits)?;
    assert_eq!(rows, seen.len() as u64);
    Ok(seen)
}

#[test]
fn outlines_are_those_of_the_operations() {
    let place = tempfile::tempdir().unwrap();
    let (directory, _) = one_part(&place);
    let expected: Vec<OpOutline> = (0..300).map(|number| op(number).outline()).collect();
    assert_eq!(outlines(&OpLog::open(&directory).unwrap()).unwrap(), expected);
}

/// Damage that a checksum was made over is found in the columns that are decoded, and in no others.
#[test]
fn outlines_are_decoded_without_the_other_columns() {
    let place = tempfile::tempdir().unwrap();
    let (directory, path) = one_part(&place);
    let whole = fs::read(&path).unwrap();
    let (mut found, mut passed_over) = (0, 0);
    for at in (4..mark_at(&whole)).step_by(3) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        seal_anew(&mut damaged);
        fs::write(&path, &damaged).unwrap();
        let log = OpLog::open(&directory).unwrap();
        let is_damaged = log.scan(&mut |_: &OpRecord| ()).is_err();
        let is_found = outlines(&log).is_err();
        assert!(is_damaged || !is_found, "byte {at}");
        found += u32::from(is_found);
        passed_over += u32::from(is_damaged && !is_found);
    }
    assert!(found > 0 && passed_over > 0, "{found} {passed_over}");
}

//! Outlines of operations, read without the rest of them.
#![expect(clippy::disallowed_methods, reason = "a test looks at the files of a run")]

use std::fs;
use std::path::PathBuf;

use plimsoll_model::{OpOutline, OpRecord, Visit};
use plimsoll_record::{OpLog, RecordError, RunDirectory, Salvage};

use crate::{new_run, op, seal_anew, unseal, without_checksum, writer};

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
fn outlines_are_those_of_the_operations_with_a_checksum_and_without() {
    let place = tempfile::tempdir().unwrap();
    let (directory, path) = one_part(&place);
    let expected: Vec<OpOutline> = (0..300).map(|number| op(number).outline()).collect();
    assert_eq!(outlines(&OpLog::open(&directory).unwrap()).unwrap(), expected);
    let (unsealed, _) = unsealed(&directory, &fs::read(&path).unwrap());
    fs::write(&path, unsealed).unwrap();
    assert_eq!(outlines(&OpLog::salvage(&directory).unwrap().log).unwrap(), expected);
    // What is to have a checksum is refused here as well.
    let refused = outlines(&OpLog::open(&directory).unwrap()).unwrap_err().to_string();
    assert!(refused.contains("it has no checksum"), "{refused}");
}

/// Returns the part as older versions wrote it, and where its mark was. Neither it nor the manifest
/// has a checksum then.
fn unsealed(directory: &RunDirectory, whole: &[u8]) -> (Vec<u8>, usize) {
    let manifest = directory.path().join("run.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, without_checksum(&text)).unwrap();
    let mut bytes = whole.to_vec();
    let at = unseal(&mut bytes);
    (bytes, at)
}

/// Without a checksum damage to any column shows in the first scan, so that the part can be left
/// out of those after it; with one that fits the damage was there when it was made.
#[test]
fn a_part_that_no_checksum_vouches_for_is_decoded_whole() {
    let place = tempfile::tempdir().unwrap();
    let (directory, path) = one_part(&place);
    let whole = fs::read(&path).unwrap();
    let (old, mark) = unsealed(&directory, &whole);
    let (mut found, mut vouched_for) = (0, 0);
    for at in (4..mark).step_by(3) {
        let mut damaged = old.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, &damaged).unwrap();
        // A part of another version is refused as a whole.
        let Ok(Salvage { log, .. }) = OpLog::salvage(&directory) else { continue };
        let scanned = log.scan(&mut |_: &OpRecord| ()).map_err(|error| error.to_string());
        let outlined = outlines(&log).map_err(|error| error.to_string());
        assert_eq!(scanned.as_ref().err(), outlined.as_ref().err(), "byte {at}");
        found += u32::from(scanned.is_err());

        damaged[mark] = whole[mark];
        seal_anew(&mut damaged);
        fs::write(&path, &damaged).unwrap();
        let log = OpLog::open(&directory).unwrap();
        let is_found = log.scan(&mut |_: &OpRecord| ()).is_err();
        vouched_for += u32::from(is_found && outlines(&log).is_ok());
    }
    assert!(found > vouched_for && vouched_for > 0, "{found} {vouched_for}");
}

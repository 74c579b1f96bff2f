//! What is salvaged of a damaged op log.
#![expect(clippy::disallowed_methods, reason = "a test looks at the files of a run")]

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_model::{Moment, OpRecord};
use plimsoll_record::{OpLog, RecordError, RunDirectory, Salvage};

use crate::{new_run, op, seal_anew, unseal, without_checksum, writer};

const SECOND: u64 = 1_000_000_000;

/// Returns a run of five parts with ten operations each: number `n` is in part `n / 10`.
fn five_parts(path: &Path) -> RunDirectory {
    let directory = new_run(path);
    let mut log = writer(&directory);
    for part in 0..5 {
        let ops: Vec<OpRecord> = (part * 10..part * 10 + 10).map(op).collect();
        log.append(&ops).unwrap();
        log.tick(Moment::from_ns(100 * SECOND)).unwrap();
    }
    assert_eq!(log.finish().unwrap().parts, 5);
    directory
}

fn part_path(directory: &RunDirectory, number: u32) -> PathBuf {
    directory.ops_path().join(format!("part-{number:06}.parquet"))
}

fn open_path(directory: &RunDirectory, number: u32) -> PathBuf {
    directory.ops_path().join(format!("part-{number:06}.parquet.open"))
}

fn salvaged(directory: &RunDirectory) -> (Vec<OpRecord>, Vec<String>) {
    let Salvage { log, losses, .. } = OpLog::salvage(directory).unwrap();
    let mut ops = Vec::new();
    assert_eq!(log.scan(&mut |op| ops.push(*op)).unwrap(), ops.len() as u64);
    (ops, losses)
}

#[test]
fn what_is_left_is_salvaged_and_each_lost_part_is_named() {
    let place = tempfile::tempdir().unwrap();
    let directory = five_parts(place.path());
    assert_eq!(salvaged(&directory), ((0..50).map(op).collect(), Vec::new()));

    let truncated = part_path(&directory, 0);
    let bytes = fs::read(&truncated).unwrap();
    fs::write(&truncated, &bytes[..bytes.len() / 2]).unwrap();
    fs::remove_file(part_path(&directory, 2)).unwrap();
    fs::rename(part_path(&directory, 4), open_path(&directory, 4)).unwrap();
    let (ops, losses) = salvaged(&directory);
    let left: Vec<OpRecord> = (10..20).chain(30..40).map(op).collect();
    assert_eq!(ops, left);
    let [missing, open, damaged] = &losses[..] else { panic!("{losses:?}") };
    assert_eq!(missing, "part-000002.parquet is missing: its operations are not counted");
    let never = "part-000004.parquet was never closed, as the run was killed or is still going \
    on: its operations are not counted";
    assert_eq!(open, never);
    assert!(damaged.starts_with("part-000000.parquet is damaged ("), "{damaged}");
    assert!(damaged.ends_with("): its operations are not counted"), "{damaged}");
}

#[test]
fn a_part_under_the_name_of_another_is_counted_once() {
    let place = tempfile::tempdir().unwrap();
    let directory = five_parts(place.path());
    assert!(!OpLog::salvage(&directory).unwrap().has_holes);
    fs::copy(part_path(&directory, 1), part_path(&directory, 3)).unwrap();
    fs::copy(part_path(&directory, 1), part_path(&directory, 99)).unwrap();
    assert!(OpLog::salvage(&directory).unwrap().has_holes);
    let (ops, losses) = salvaged(&directory);
    assert_eq!(ops, (0..30).chain(40..50).map(op).collect::<Vec<_>>());
    // The copy behind the end does not say that there were parts before it.
    let copy = |number: u32| {
        format!(
            "part-{number:06}.parquet is damaged (it is a copy of part-000001.parquet): its \
             operations are not counted"
        )
    };
    assert_eq!(losses, [copy(3), copy(99)]);
}

#[test]
fn a_part_without_a_checksum_is_damaged_whether_or_not_the_manifest_has_one() {
    let place = tempfile::tempdir().unwrap();
    let directory = five_parts(place.path());
    let path = part_path(&directory, 2);
    let mut bytes = fs::read(&path).unwrap();
    unseal(&mut bytes);
    fs::write(&path, bytes).unwrap();
    let manifest = directory.path().join("run.json");
    let text = fs::read_to_string(&manifest).unwrap();
    for text in [without_checksum(&text), text] {
        fs::write(&manifest, text).unwrap();
        let (ops, losses) = salvaged(&directory);
        assert_eq!(ops, (0..20).chain(30..50).map(op).collect::<Vec<_>>());
        let lost = "part-000002.parquet is damaged (it has no checksum): its operations are not \
                    counted";
        assert_eq!(losses, [lost]);
        let refused = OpLog::open(&directory).unwrap().scan(&mut |_| ()).unwrap_err().to_string();
        let expected = format!("{} is damaged: it has no checksum; ", path.display());
        assert!(refused.starts_with(&expected), "{refused}");
    }
}

#[test]
fn a_part_missing_before_an_unfinished_one_is_named_too() {
    let place = tempfile::tempdir().unwrap();
    let directory = five_parts(place.path());
    fs::remove_file(part_path(&directory, 3)).unwrap();
    fs::rename(part_path(&directory, 4), open_path(&directory, 4)).unwrap();
    let (ops, losses) = salvaged(&directory);
    assert_eq!(ops, (0..30).map(op).collect::<Vec<_>>());
    assert_eq!(losses.len(), 2, "{losses:?}");
    assert!(losses[0].starts_with("part-000003.parquet is missing"), "{losses:?}");
    assert!(losses[1].starts_with("part-000004.parquet was never closed"), "{losses:?}");
}

#[test]
fn a_part_of_a_newer_version_is_no_loss_but_refused() {
    let place = tempfile::tempdir().unwrap();
    let directory = five_parts(place.path());
    let path = part_path(&directory, 1);
    let mut bytes = fs::read(&path).unwrap();
    let name = b"plimsoll.ops/1";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at + name.len() - 1] = b'2';
    seal_anew(&mut bytes);
    fs::write(&path, bytes).unwrap();
    let refused = OpLog::salvage(&directory).unwrap_err();
    assert!(matches!(refused, RecordError::Version { .. }), "{refused}");
    assert!(refused.to_string().contains("part-000001.parquet has the schema `plimsoll.ops/2`"));
}

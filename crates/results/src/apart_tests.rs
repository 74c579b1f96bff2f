//! Every committed record, counted by several counters, gives what one counter gives.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_analysis::{OpSource, StageAnalysis, Survey};
use plimsoll_model::{OpRecord, Visit};

use crate::analyze::AnalyzedStage;
use crate::error::ReadError;
use crate::tests::testdata;
use crate::{Asked, Record};

/// The operations of a record, dealt out in turns of a length that no part of the record has.
struct Dealt {
    ops: Vec<OpRecord>,
    threads: usize,
}

const TURN: usize = 7;

impl OpSource for Dealt {
    type Error = ReadError;

    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), ReadError> {
        self.ops.iter().for_each(visit);
        Ok(())
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn scan_apart(&self, visits: &mut [&mut Visit<'_>]) -> Result<(), ReadError> {
        assert_eq!(visits.len(), self.threads);
        for (turn, ops) in self.ops.chunks(TURN).enumerate() {
            ops.iter().for_each(|op| visits[turn % self.threads](op));
        }
        Ok(())
    }
}

/// Returns every committed record that has operations.
fn committed() -> Vec<PathBuf> {
    let entries = |path: PathBuf| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let is_raw = |path: &PathBuf| path.to_string_lossy().ends_with(".csv.zst");
    let runs = entries(testdata("")).filter(|path| path.join("run.json").exists());
    let warp = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/warp");
    let mut all: Vec<PathBuf> = runs.chain(entries(warp).filter(is_raw)).collect();
    all.sort();
    all
}

#[test]
fn every_committed_record_is_the_same_for_any_number_of_threads() {
    let records = committed();
    let is_run = |path: &PathBuf| path.is_dir();
    let runs = records.iter().filter(|path| is_run(path)).count();
    assert!(runs >= 8 && records.len() - runs >= 8, "{records:?}");
    for path in records {
        let record = Record::open(&path).unwrap();
        let mut dealt = Dealt { ops: Vec::new(), threads: 1 };
        record.source.scan(&mut |op| dealt.ops.push(*op)).unwrap();
        for asked in [Asked::default(), Asked { details: true, ..Asked::default() }] {
            let analyses = |of: Vec<AnalyzedStage>| -> Vec<StageAnalysis> {
                of.into_iter().map(|of| of.analysis).collect()
            };
            let expected = analyses(record.analyze(&asked).unwrap());
            assert!(expected.iter().any(|of| of.rows.iter().any(|row| row.workers_active > 0)));
            for threads in [1, 2, 3, 8] {
                dealt.threads = threads;
                let survey = Survey::of(&dealt).unwrap();
                assert_eq!(format!("{survey:?}"), format!("{:?}", record.survey));
                let found = analyses(record.analyze_from(&dealt, &asked).unwrap());
                assert!(found == expected, "{}, {threads} threads", path.display());
            }
        }
    }
}

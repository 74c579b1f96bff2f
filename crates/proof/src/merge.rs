//! Sixty-four shards of a run, merged in any order, are the run.

use std::time::Duration;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use plimsoll_conduct::output::temporary_directory;
use plimsoll_model::{OpRecord, RunId, StageId, WallTime, WorkerId};
use plimsoll_record::schema::Manifest;
use plimsoll_record::{MergePart, OpLog, RecordError, RunDirectory, merge};
use plimsoll_report::proof::Check;
use plimsoll_workload::Random;

use crate::error::{Context, Result};
use crate::{Load, Prover, open, same};

pub(crate) const CLAIM: &str = "\
    a run cut into 64 shards and merged in any order gives the summary of the whole, byte \
    for byte: no percentile is averaged";

const SHARDS: u32 = 64;
const ORDERS: u64 = 8;
/// Sets the orders apart from everything else that the seed fixes.
const ORDER_DOMAIN: u64 = 0x6f72_6465;

pub(crate) fn checks(prover: &Prover) -> Result<Vec<Check>> {
    let load = Load {
        operations: "{get: o, weight: 6}, {stat: o, weight: 3}, {put: o}",
        pacing: open("2000/s", "poisson", 10_000),
        lasts: Duration::from_secs(20),
        workers: SHARDS,
        objects: 640,
        size: 256,
    };
    let script = "service: {time: {lognormal: {median: 2ms, sigma: 1.0}}}\n\
                  faults: {all: {status: {500: 0.01}}}";
    let place = temporary_directory()?;
    let whole_path = place.path().join("whole");
    prover.simulate_into(&load.file(prover.seed), script, Some(&whole_path))?;
    let directory = RunDirectory::open(&whole_path)?;
    let manifest = directory.read_manifest()?;
    let mut shards = vec![Vec::new(); SHARDS as usize];
    let mut rows = 0;
    OpLog::open(&directory)?.scan(&mut |op: &OpRecord| {
        rows += 1;
        shards[op.worker.0 as usize].push(OpRecord { worker: WorkerId(0), ..*op });
    })?;
    let whole = summary(&whole_path)?;
    let mut checks = Vec::new();
    let mut random = Random::new(prover.seed, ORDER_DOMAIN, 0);
    let (mut alike, mut merged_rows) = (0, 0);
    for number in 0..ORDERS {
        let mut order: Vec<usize> = (0..SHARDS as usize).collect();
        random.shuffle(&mut order);
        let parts = order.iter().map(|shard| part(&manifest, *shard, &shards[*shard]));
        let path = place.path().join(format!("merged-{number}"));
        let id = RunId::new("merged", WallTime::from_unix_ns(0), number);
        let merged = merge(parts.collect(), &path, &id, Vec::new());
        let merged = merged.context("cannot merge the shards")?;
        alike += u64::from(summary(&path)? == whole);
        let recorder = merged.read_manifest()?.recorder;
        merged_rows += recorder.map_or(0, |recorder| recorder.rows_count);
    }
    let what = format!("orders of {SHARDS} shards that give the same {} bytes", whole.len());
    checks.push(same(what, ORDERS, alike));
    checks.push(same("operations in the merged logs", ORDERS * rows, merged_rows));
    Ok(checks)
}

/// Returns the operations of one worker as a run of its own.
fn part<'a>(manifest: &Manifest, shard: usize, ops: &'a [OpRecord]) -> MergePart<'a, RecordError> {
    let mut manifest = Manifest { run_id: format!("shard-{shard:02}"), ..manifest.clone() };
    for stage in &mut manifest.stages {
        stage.workers_count = 1;
        stage.jobs.iter_mut().for_each(|job| job.workers_count = 1);
    }
    let stages = 0..manifest.stages.len();
    let stage_of: BTreeMap<StageId, usize> =
        stages.map(|index| (StageId(index as u8), index)).collect();
    let scan = move |visit: &mut dyn FnMut(&OpRecord)| {
        ops.iter().for_each(visit);
        Ok(())
    };
    MergePart { manifest, stage_of, workers_count: 1, scan: Box::new(scan) }
}

#[expect(clippy::disallowed_methods, reason = "compares the very bytes of what was written")]
fn summary(path: &Path) -> Result<Vec<u8>> {
    let path = path.join("summary.json");
    fs::read(&path).context(format!("cannot read {}", path.display()))
}

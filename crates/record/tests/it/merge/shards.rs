//! A run cut into shards, each of some of its workers, and merged again in any order and grouping.

use plimsoll_model::{
    EndpointId, ErrorClass, JobId, JobWork, Moment, ObjectId, OpKind, OpRecord, RunId, StageId,
    StageKind, WorkerId,
};
use plimsoll_record::schema::{FilesStage, LoopModel, MergedRun, MergedStage, StageJob};
use plimsoll_record::{Manifest, MergePart, OpLog, OpLogWriter, RecordError, RunDirectory, merge};
use proptest::prelude::*;

use super::{SECOND, Span, file, merge_part, part_manifest, rows, stage, summarised};
use crate::{EPOCH, endpoints};

const WORKERS: u32 = 64;
/// How many stages each kind of run has.
const STAGES: u8 = 4;
/// How long after the first shard the last one may begin, in seconds: no operation is earlier.
const LATER_MAX: u64 = 64;

/// Which kind of run it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One measured stage, and what went before and comes after it.
    OneStage,
    /// Several measured stages that lasted for a time.
    Stages,
    /// Stages on files, with several jobs at once.
    Files,
}

impl Kind {
    fn stages(self) -> [Span; STAGES as usize] {
        let other = if self == Self::OneStage { StageKind::Prepare } else { StageKind::Measure };
        let last = if self == Self::OneStage { StageKind::Cleanup } else { StageKind::Measure };
        [
            (StageKind::Prepare, 100, 120),
            (other, 120, 150),
            (StageKind::Measure, 150, 250),
            (last, 250, 290),
        ]
    }

    /// Returns the manifest of the shard of that number, which begins and ends a little later.
    fn manifest(self, run_id: &str, later: u64) -> Manifest {
        let mut manifest = part_manifest(run_id, later, &[]);
        for (index, (kind, started, ended)) in self.stages().into_iter().enumerate() {
            let mut stage = stage((kind, started, ended - later / 8), index);
            stage.name = format!("stage-{index}");
            stage.files = (self == Self::Files).then(FilesStage::default);
            stage.iteration = if self == Self::Files { index as u32 / 2 } else { 0 };
            stage.jobs = self.jobs();
            manifest.stages.push(stage);
        }
        // The moments of a shard are those of its own clock.
        for stage in &mut manifest.stages {
            let own = |at: Option<u64>| at.map(|at| at - later * SECOND);
            (stage.started_ns, stage.ended_ns) = (own(stage.started_ns), own(stage.ended_ns));
        }
        manifest.workload = serde_json::json!({ "schema": "1", "seed": manifest.seed }).into();
        manifest
    }

    fn jobs(self) -> Vec<StageJob> {
        let job = |group: u32| StageJob {
            work: Some(JobWork::RandRead),
            group: Some(group),
            ..StageJob::of(&format!("job-{group}"), 1, LoopModel::Closed)
        };
        (0..if self == Self::Files { 3 } else { 1 }).map(job).collect()
    }
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::OneStage), Just(Kind::Stages), Just(Kind::Files)]
}

prop_compose! {
    /// Makes an operation of any worker, stage and job; its number is given to it later.
    fn any_op()(
        (stage, job, kind, endpoint, worker) in
            (0..STAGES, 0u8..3, 0usize..5, 0u16..2, 0..WORKERS),
        start in LATER_MAX * SECOND + 1_000..(LATER_MAX + 90) * SECOND,
        (waited, sent, answered, ended) in
            (0u64..1_000, 0u64..SECOND, 0u64..SECOND, 0u64..3 * SECOND),
        (bytes, objects_count, outcome) in (any::<u32>(), 0u32..1_000, 0usize..30),
    ) -> OpRecord {
        let at = Moment::from_ns;
        OpRecord {
            stage: StageId(stage),
            job: JobId(job),
            worker: WorkerId(worker),
            kind: OpKind::ALL[kind],
            endpoint: EndpointId(endpoint),
            object: None,
            objects_count,
            bytes: bytes.into(),
            intended: at(start - waited),
            start: at(start),
            first_byte: (answered % 3 > 0).then_some(at(start + sent + answered)),
            assigned: None,
            last_byte_sent: (kind == 0).then_some(at(start + sent)),
            end: at(start + sent + answered + ended),
            // About half of them succeed.
            outcome: ErrorClass::ALL.get(outcome).copied().unwrap_or(ErrorClass::Ok),
            attempts: 1,
            is_measured: true,
        }
    }
}

/// Returns the shard's part of the records, with workers numbered from 0: worker `w` of the whole
/// is worker `w / shards` of shard `w % shards`.
fn shard(kind: Kind, ops: &[OpRecord], shard: u32, shards: u32) -> MergePart<'static, RecordError> {
    let later = u64::from(shard) * LATER_MAX / u64::from(WORKERS);
    let own = ops.iter().filter(|op| op.worker.0 % shards == shard).map(|op| {
        let worker = WorkerId(op.worker.0 / shards);
        let object = op.object.map(|object| ObjectId::new(worker, object.number()));
        OpRecord { worker, object, ..*op }.before(later * SECOND)
    });
    let manifest = kind.manifest(&format!("shard-{shard:02}"), later);
    let workers_count = (WORKERS - shard).div_ceil(shards);
    merge_part(manifest, own.collect(), workers_count)
}

/// Undoes [`shard`] by what the merged manifest says of each part's workers.
fn unsharded(op: &OpRecord, merged: &[MergedRun], shards: u32) -> OpRecord {
    let own = |run: &&MergedRun| {
        (run.worker_index_first..run.worker_index_first + run.workers_count).contains(&op.worker.0)
    };
    let owners: Vec<&MergedRun> = merged.iter().filter(own).collect();
    let [run] = owners[..] else { panic!("worker {} is of {owners:?}", op.worker.0) };
    let shard: u32 = run.run_id.strip_prefix("shard-").unwrap().parse().unwrap();
    let worker = WorkerId((op.worker.0 - run.worker_index_first) * shards + shard);
    let object = op.object.map(|object| {
        assert_eq!(object.owner(), op.worker);
        ObjectId::new(worker, object.number())
    });
    OpRecord { worker, object, ..*op }
}

/// Returns a run that was merged, to be merged again.
fn again(directory: &RunDirectory) -> MergePart<'static, RecordError> {
    let manifest = directory.read_manifest().unwrap();
    let workers_count = manifest.merged.iter().map(|run| run.workers_count).sum();
    merge_part(manifest, rows(directory), workers_count)
}

fn merged_as(
    parts: Vec<MergePart<'_, RecordError>>,
    place: &std::path::Path,
    name: &str,
) -> RunDirectory {
    let run = RunId::new(name, EPOCH, 0);
    merge(parts, &place.join(name), &run, Vec::new()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn shards_merged_in_any_order_and_grouping_are_the_whole(
        kind in any_kind(),
        mut ops in prop::collection::vec(any_op(), 0..400),
        shards in 2u32..=WORKERS,
        order in Just((0..WORKERS).collect::<Vec<_>>()).prop_shuffle(),
        first_group in 2usize..WORKERS as usize,
    ) {
        for (number, op) in ops.iter_mut().enumerate() {
            op.object = Some(ObjectId::new(op.worker, number as u64));
        }
        let place = tempfile::tempdir().unwrap();
        let id = RunId::new("whole", EPOCH, 0);
        let manifest = kind.manifest(id.as_str(), 0);
        let whole = RunDirectory::create(&place.path().join("whole"), &manifest).unwrap();
        let expected = summarised(&whole, &ops);
        let mut log = OpLogWriter::new(&whole, &id, EPOCH, &endpoints());
        log.append(&ops).unwrap();
        let totals = log.finish().unwrap();

        let order: Vec<u32> = order.into_iter().filter(|index| *index < shards).collect();
        let parts = || order.iter().map(|index| shard(kind, &ops, *index, shards));
        let flat = merged_as(parts().collect(), place.path(), "flat");
        prop_assert_eq!(file(&flat, "summary.json"), &*expected);
        let manifest = flat.read_manifest().unwrap();
        prop_assert_eq!(manifest.recorder.unwrap().rows_count, totals.rows);
        let last = manifest.merged.last().unwrap();
        prop_assert_eq!(last.worker_index_first + last.workers_count, WORKERS);
        let numbered = |directory: &RunDirectory| {
            let mut ops = Vec::new();
            OpLog::open(directory).unwrap().scan(&mut |op| ops.push(*op)).unwrap();
            ops.sort_by_key(|op| op.object.unwrap().number());
            ops
        };
        let back: Vec<OpRecord> = numbered(&flat)
            .iter()
            .map(|op| unsharded(op, &manifest.merged, shards))
            .collect();
        prop_assert_eq!(back, rows(&whole));
        let starts = |stage: &MergedStage| stage.started_ns == Some(100 * SECOND);
        prop_assert!(manifest.merged.iter().all(|run| starts(&run.stages[0])));

        // Some of them first, and then that with the others.
        let (first, others) = order.split_at(first_group.min(order.len()));
        let first = first.iter().map(|index| shard(kind, &ops, *index, shards)).collect();
        let first = merged_as(first, place.path(), "first");
        if !others.is_empty() {
            let others = others.iter().map(|index| shard(kind, &ops, *index, shards));
            let parts = std::iter::once(again(&first)).chain(others).collect();
            let grouped = merged_as(parts, place.path(), "grouped");
            prop_assert_eq!(file(&grouped, "summary.json"), expected);
            prop_assert_eq!(numbered(&grouped), numbered(&flat));
            let again = grouped.read_manifest().unwrap();
            prop_assert_eq!(again.merged, manifest.merged);
            prop_assert_eq!(again.stages, manifest.stages);
            prop_assert_eq!(again.workload, manifest.workload);
        }
    }
}

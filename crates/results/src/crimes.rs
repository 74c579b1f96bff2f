//! What the record says of a run, as far as it bears on whether its figures mislead.

use plimsoll_analysis::{CrimeFacts, crimes, host_of, is_loopback};
use plimsoll_model::{CacheState, EndReason, OpKind, SyncMode, TargetKind};
use plimsoll_record::schema::{Manifest, Target};
use plimsoll_report::{
    AdviceLine, LoopModel, Report, RowReport, StageReport, VerificationMode, crime_line, format,
};
use plimsoll_workload::data::DataRule;
use plimsoll_workload::plan::{Members, Plan, Work};

/// Begins the note of a run on an embedded store, which the sheet says shorter.
const EMBEDDED_NOTE: &str = "on the same cores: this measures plimsoll and the machine";

/// Notes in a report what of the run may mislead; `results` are the stages of the manifest whose
/// figures it has. In virtual time nothing does: nothing was real.
pub(crate) fn note(
    report: &mut Report,
    (manifest, results): (&Manifest, &[usize]),
    plan: Option<&Plan>,
) {
    if manifest.virtual_time {
        return;
    }
    let facts = facts(report, (manifest, results), plan);
    report.crimes = crimes(&facts).iter().map(crime_line).collect::<Vec<AdviceLine>>();
    if facts.is_embedded {
        // Said once.
        report.notes.retain(|note| !note.contains(EMBEDDED_NOTE));
    }
}

fn facts(
    report: &Report,
    (manifest, results): (&Manifest, &[usize]),
    plan: Option<&Plan>,
) -> CrimeFacts {
    let rows = || report.results().flat_map(|stage| &stage.rows);
    let on_objects = || rows().filter(|row| !row.is_on_files);
    let stores = || manifest.targets().filter(|target| is_store(target));
    let is_local = |target: &Target| all_local(target, manifest);
    let is_embedded = stores().any(|target| target.embedded);
    let is_on_this_host =
        manifest.agents.is_empty() && stores().next().is_some() && stores().all(is_local);
    let reads = |row: &RowReport| row.analysis.kinds.iter().any(|kind| is_read(kind.kind));
    let prepared = || report.stages.iter().filter(|stage| is_prepared(stage));
    let data: u64 = prepared().map(bytes_of).sum();
    let reads_own = on_objects().any(reads) && data > 0;
    let holds_data = is_on_this_host || rows().any(|row| row.is_on_files);
    let loops = |row: &&RowReport| row.loop_model != LoopModel::Open;
    let is_timed = |stage: &&StageReport| stage.ended_by != Some(EndReason::OutOfWork);
    let spans = report.results().filter(is_timed).flat_map(|stage| &stage.rows);
    let lasted = spans.filter_map(|row| row.analysis.took());
    // Probes are open loops that cut their own beginning, all of them together; only the first is a
    // closed one, whose figures tell where to begin.
    let is_search = !report.load_lines.is_empty();
    CrimeFacts {
        is_embedded,
        is_on_this_host,
        is_closed_loop: !is_search && on_objects().any(|row| loops(&row)),
        measured: if is_search { Some(lasted.sum()) } else { lasted.max() },
        reads_are_fresh: reads_own,
        data_bytes: (rows().any(reads) && data > 0).then_some(data),
        memory_bytes: manifest.machine.memory_bytes.filter(|_| holds_data),
        content_reduces: plan.is_some_and(reduces),
        reads_are_cached: rows().any(|row| row.is_on_files && reads(row) && is_cached(row)),
        writes_are_cached: plan.is_some_and(|plan| writes_unsynced(plan, manifest, results)),
        is_unverified: report.verification.is_some_and(|of| of.mode == VerificationMode::Off),
        clocks_uncompared_count: machines_merged(manifest),
        clock_uncertainty_max: report.agents.iter().filter_map(|of| of.clock_uncertainty).max(),
        objects_and_workers: objects_and_workers(report),
        warm_up: rows().filter_map(warm_up).max().filter(|_| !is_search),
    }
}

/// Returns how long a row's beginning differed from the rest, where that moves its figures.
fn warm_up(row: &RowReport) -> Option<std::time::Duration> {
    let steadiness = row.analysis.steadiness?;
    steadiness.warm_up_shift.and(steadiness.warm_up)
}

fn is_store(target: &Target) -> bool {
    !target.has_directories() && target.kind != Some(TargetKind::Null)
}

fn is_read(kind: OpKind) -> bool {
    matches!(kind, OpKind::Get | OpKind::Read)
}

fn is_prepared(stage: &StageReport) -> bool {
    !stage.is_result && !stage.is_read_back
}

fn bytes_of(stage: &StageReport) -> u64 {
    stage.rows.iter().map(|row| row.analysis.total.stage.bytes).sum()
}

/// Tells whether all addresses of a store are those of the machine that made the load: loopback, or
/// its own name.
fn all_local(target: &Target, manifest: &Manifest) -> bool {
    let hostname = manifest.machine.hostname.as_deref();
    let known = format::known_hosts(&target.endpoints);
    let mut known = known.peekable();
    known.peek().is_some()
        && known.all(|endpoint| is_loopback(endpoint) || hostname == Some(host_of(endpoint)))
}

fn is_cached(row: &RowReport) -> bool {
    !row.direct && matches!(row.caches, Some(CacheState::Cached) | None)
}

/// Tells whether content that is read or written compresses or repeats.
fn reduces(plan: &Plan) -> bool {
    plan.sets.iter().any(|set| match &set.members {
        Members::Objects(objects) => match objects.data {
            DataRule::Zero | DataRule::Text => true,
            DataRule::Shaped { compress_per_mille, dedupe_per_mille } => {
                compress_per_mille > 1_000 || dedupe_per_mille > 1_000
            }
            DataRule::Random | DataRule::Files { .. } => false,
        },
        _ => false,
    })
}

/// Tells whether files were written in one of these stages without anything that puts it on the
/// medium.
fn writes_unsynced(plan: &Plan, manifest: &Manifest, stages: &[usize]) -> bool {
    let planned = |at: &usize| plan.stages.get(usize::from(manifest.stages.get(*at)?.planned()?));
    let stages = stages.iter().filter_map(planned);
    stages.flat_map(|stage| &stage.jobs).any(|job| {
        let Work::Blocks(blocks) = &job.work else { return false };
        blocks.read_percent < 100
            && !blocks.direct
            && blocks.sync == SyncMode::Off
            && blocks.fsync_every.is_none()
            && blocks.fdatasync_every.is_none()
            && !blocks.end_fsync
    })
}

/// Returns how many machines recorded, where several runs were merged: nobody compared their
/// clocks.
fn machines_merged(manifest: &Manifest) -> usize {
    if manifest.merged.len() < 2 {
        return 0;
    }
    let mut names: Vec<_> = manifest.merged.iter().map(|run| run.hostname.clone()).collect();
    names.sort();
    names.dedup();
    names.len()
}

/// Returns how many objects the run had made, and by how many workers they were read.
fn objects_and_workers(report: &Report) -> Option<(u64, u64)> {
    let made = report.stages.iter().filter(|stage| is_prepared(stage));
    let objects: u64 = made.map(StageReport::ops_ok).sum();
    let readers = report.results().flat_map(|stage| &stage.rows).filter(|row| {
        !row.is_on_files && row.analysis.kinds.iter().any(|kind| kind.kind == OpKind::Get)
    });
    let workers = readers.map(|row| u64::from(row.analysis.workers_count)).max()?;
    (objects > 0).then_some((objects, workers))
}

#[cfg(test)]
mod tests {
    use plimsoll_workload::plan::WorkloadFile;

    use super::*;
    use crate::tests::manifest;

    #[test]
    fn a_stage_that_prepares_is_not_taken_for_the_result_that_has_its_name() {
        let text = "schema: plimsoll.workload/2\nname: w\ntargets: {files: {directory: /mnt}}\n\
                    sets: {f: {files: 1, size: 1MiB}}\nstages:\n- {name: main, prepares: true, \
                    jobs: [{work: {blocks: {on: f, write: {block: 4KiB}}}}]}\n- {name: main, \
                    jobs: [{work: {blocks: {on: f, read: {block: 4KiB}}}}]}\n";
        let plan = WorkloadFile::from_yaml("w.yaml", text).unwrap().recorded().unwrap();
        let mut manifest = manifest("s3-get");
        for (stage, planned) in manifest.stages.iter_mut().zip(0..) {
            "main".clone_into(&mut stage.name);
            stage.planned_index = Some(planned);
        }
        assert_eq!(manifest.stages.len(), 2);
        assert!(writes_unsynced(&plan, &manifest, &[0]));
        assert!(!writes_unsynced(&plan, &manifest, &[1]));
    }
}

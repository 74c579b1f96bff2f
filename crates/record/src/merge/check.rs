//! What is looked at before runs are merged.

use super::{MergeError, MergePart};
use crate::schema::{FilesStage, Manifest, STAGES_MAX, Stage, StageJob};

/// Refuses parts that cannot be merged.
pub(super) fn check<E: std::error::Error + 'static>(
    parts: &[MergePart<'_, E>],
) -> Result<(), MergeError<E>> {
    if parts.len() < 2 {
        return Err(MergeError::Alone);
    }
    let mut run_ids: Vec<&str> = parts.iter().map(|part| &*part.manifest.run_id).collect();
    run_ids.sort_unstable();
    if let Some([same, _]) = run_ids.array_windows().find(|[a, b]| a == b) {
        return Err(MergeError::Twice { run_id: (*same).to_owned() });
    }
    // What is added up must fit, even if all of them held as much.
    let count_max = u64::MAX / (parts.len() as u64).saturating_mul(STAGES_MAX as u64).max(1);
    parts.iter().try_for_each(|part| check_part(&part.manifest, count_max))
}

fn check_part<E: std::error::Error + 'static>(
    manifest: &Manifest,
    count_max: u64,
) -> Result<(), MergeError<E>> {
    let run_id = || manifest.run_id.clone();
    let impossible = |reason| MergeError::Impossible { run_id: run_id(), reason };
    manifest.check().map_err(impossible)?;
    if let Some(count) = counts(manifest).find(|count| *count > count_max) {
        return Err(impossible(format!("it counts {count} of something")));
    }
    Ok(())
}

/// Returns all counts of a manifest that are added to those of others.
fn counts(manifest: &Manifest) -> impl Iterator<Item = u64> + '_ {
    let of_stage = |stage: &Stage| {
        [stage.ops_count, stage.ops_failed_count, stage.bytes, stage.cpu_ns].into_iter().flatten()
    };
    let stages = || manifest.stages.iter();
    let on_files = || stages().filter_map(|stage| stage.files.as_ref());
    stages()
        .flat_map(of_stage)
        .chain(stages().flat_map(|stage| &stage.jobs).flat_map(StageJob::counts))
        .chain(on_files().flat_map(FilesStage::counts))
        .chain(stages().flat_map(|stage| &stage.wrong).map(|wrong| wrong.count))
        .chain(manifest.recorder.map(|recorder| recorder.wait_ns))
}

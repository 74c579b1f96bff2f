//! What is looked at before runs are merged.

use super::{MergeError, MergePart};
use crate::schema::{Manifest, STAGES_MAX, Schedule, Stage, StageKind};

/// How many stages a sentence names.
const NAMES_MAX: usize = 4;

/// Refuses parts that cannot be merged.
pub(super) fn check<E: std::error::Error + 'static>(
    parts: &[MergePart<'_, E>],
) -> Result<(), MergeError<E>> {
    if parts.len() < 2 {
        return Err(MergeError::Alone);
    }
    // They are sorted by name.
    if let Some([same, _]) =
        parts.array_windows().find(|[a, b]| a.manifest.run_id == b.manifest.run_id)
    {
        return Err(MergeError::Twice { run_id: same.manifest.run_id.clone() });
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
    if manifest.stages.iter().any(|stage| stage.files.is_some()) {
        return Err(MergeError::OnFiles { run_id: run_id() });
    }
    let measured = manifest.stages.iter().filter(|stage| stage.kind == StageKind::Measure);
    let names: Vec<&str> = measured.map(|stage| &*stage.name).collect();
    if names.len() > 1 {
        let count = names.len();
        let more = (count > NAMES_MAX).then_some("…");
        let names: Vec<&str> = names.into_iter().take(NAMES_MAX).chain(more).collect();
        let names = names.join(", ");
        return Err(MergeError::SeveralStages { run_id: run_id(), count, names });
    }
    Ok(())
}

/// Returns all counts of a manifest that are added to those of others.
fn counts(manifest: &Manifest) -> impl Iterator<Item = u64> + '_ {
    let of_stage = |stage: &Stage| {
        [stage.ops_count, stage.ops_failed_count, stage.bytes, stage.cpu_ns].into_iter().flatten()
    };
    let of_schedule = |schedule: &Schedule| {
        [schedule.offered_count, schedule.late_count, schedule.skipped_count].into_iter().flatten()
    };
    let stages = || manifest.stages.iter();
    stages()
        .flat_map(of_stage)
        .chain(stages().filter_map(|stage| stage.schedule.as_ref()).flat_map(of_schedule))
        .chain(stages().flat_map(|stage| &stage.wrong).map(|wrong| wrong.count))
        .chain(manifest.recorder.map(|recorder| recorder.wait_ns))
}

//! What is looked at before anything of a run on files is made: whether it can go well, and whether
//! it may write what it is to write.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_driver_file::in_use::{Held, hold_for_writing};
use plimsoll_driver_file::work_dir::WorkDir;
use plimsoll_engine::{RingConfig, ring_threads};
use plimsoll_report::format;
use plimsoll_workload::Share;
use plimsoll_workload::files::FilePlan;
use plimsoll_workload::plan::{Blocks, FieldPath, FileNames, Members, Set, Work};
use rustix::fs::OFlags;

use super::asked_directory;
use crate::error::refused;
use crate::own_path::OwnPath;
use crate::{ConductError, machine};

/// Descriptors that are not for files under test: the record, the terminal, the rings.
const DESCRIPTORS_SPARE: u64 = 64;

/// Refuses what cannot go well before anything is made. Returns what was there and is written.
pub(super) fn check(
    plan: &FilePlan,
    config: &RingConfig,
    share: Share,
    allowed: &AllowedDirs,
) -> Result<HashMap<PathBuf, Held>, ConductError> {
    let mut held = HashMap::new();
    for file in 0..plan.table.len() as u32 {
        let entry = plan.table.entry(file);
        let path = Path::new(&entry.path);
        if !entry.existing {
            continue;
        }
        // Leave is given to what is named, not to what another user makes of the name.
        let find = || OwnPath::walk(path)?.open(OFlags::PATH, 0);
        let found = writes(plan, &entry.path).then(find).transpose();
        let found = found.or_else(|error| refused(format!("{}: {error}", entry.path)))?;
        if allowed.is_device(path) && !destroys(plan, &entry.path) {
            return refused(format!(
                "{} is a device; a run on it needs `i_know_this_destroys_data`, also to read it",
                entry.path
            ));
        }
        let name = &entry.path;
        let Some(size) = allowed.size_bytes(path) else {
            return refused(format!(
                "{name} does not exist, or is neither a file nor a block device"
            ));
        };
        // A file that is only written grows; what lies behind its end cannot be read.
        let grows = || !allowed.is_device(path) && destroys(plan, name) && !reads(plan, name);
        if size < entry.size && !grows() {
            let (size, wanted) = (format::bytes(size), format::bytes(entry.size));
            return refused(format!(
                "{name} holds {size}, and the run is to work on {wanted} of it"
            ));
        }
        if let Some(found) = found {
            let file = hold_for_writing(allowed, path, found).map_err(ConductError::Target)?;
            held.insert(path.to_owned(), file);
        }
    }
    for path in plan.run_directories() {
        WorkDir::check(allowed, &asked_directory(&path))?;
    }
    check_space(plan, allowed)?;
    check_descriptors(plan, config, share)?;
    Ok(held)
}

/// Refuses files that do not fit: all that lie on one file system together.
fn check_space(plan: &FilePlan, allowed: &AllowedDirs) -> Result<(), ConductError> {
    let own = || (0..plan.table.len() as u32).map(|file| plan.table.entry(file));
    let mut needed: BTreeMap<Option<PathBuf>, u64> = BTreeMap::new();
    for path in plan.run_directories() {
        let directory = asked_directory(&path);
        let Ok(facts) = allowed.probe(&directory) else { continue };
        let here = own().filter(|entry| !entry.existing && entry.path.starts_with(&path));
        let all = needed.entry(facts.mount_point).or_default();
        *all += here.map(|entry| entry.size).sum::<u64>();
        if facts.free_bytes < *all {
            let reason = format!(
                "the files need {}, and {} has {} free; make them smaller",
                format::bytes(*all),
                directory.display(),
                format::bytes(facts.free_bytes)
            );
            return Err(largest(plan).field("size").refuse(reason).into());
        }
    }
    Ok(())
}

/// Returns where the set with the largest files of the run's own is described.
fn largest(plan: &FilePlan) -> FieldPath {
    let size = |set: &&Set| match &set.members {
        Members::Files(files) if !files.are_there() => files.size.max,
        _ => 0,
    };
    let set = plan.plan.sets.iter().max_by_key(size);
    set.map_or_else(FieldPath::root, |set| set.path.clone())
}

/// Refuses more open files than the process may have.
fn check_descriptors(
    plan: &FilePlan,
    config: &RingConfig,
    share: Share,
) -> Result<(), ConductError> {
    let limit = machine::open_files_max();
    for (stage, of) in plan.plan.stages.iter().enumerate() {
        let workers = plan.workers_in(stage, share).into_iter();
        let files: usize = workers.map(|worker| plan.files_of(stage, worker).len()).sum();
        let threads = ring_threads(plan, stage, config);
        let wanted = files as u64 + 2 * threads as u64 + DESCRIPTORS_SPARE;
        if wanted > limit {
            return refused(format!(
                "stage {} keeps {wanted} files open, and this process may have {limit}; raise \
                 `ulimit -n`, or use fewer files or jobs",
                of.name
            ));
        }
    }
    Ok(())
}

/// Tells whether the plan may write to a file that was there before.
fn destroys(plan: &FilePlan, path: &str) -> bool {
    jobs_on(plan, path).any(|blocks| plan.plan.set(blocks.set).touch)
}

/// Tells whether the plan reads from a file that was there before.
fn reads(plan: &FilePlan, path: &str) -> bool {
    jobs_on(plan, path).any(Blocks::reads)
}

/// Tells whether the plan does write to a file that was there before.
fn writes(plan: &FilePlan, path: &str) -> bool {
    jobs_on(plan, path).any(Blocks::writes)
}

/// Returns what is done to the blocks of a file that was there before.
fn jobs_on<'p>(plan: &'p FilePlan, path: &'p str) -> impl Iterator<Item = &'p Blocks> {
    plan.plan.jobs().filter_map(move |job| {
        let Work::Blocks(blocks) = &job.work else { return None };
        match &plan.plan.files(blocks.set).names {
            FileNames::Paths(paths) => paths.iter().any(|each| each == path).then_some(&**blocks),
            _ => None,
        }
    })
}

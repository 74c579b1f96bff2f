//! Consent to change what no run of plimsoll made: worked out from the checked workload, and asked
//! for here alone.
//!
//! A workload that changes such things says so itself (`destroys`), and whoever starts it says so
//! again on the command line. A file is never enough: it may have been written for another bucket.

use std::collections::HashSet;

use plimsoll_report::format;
use plimsoll_workload::files::{BlocksSpec, FilePlan, FileWorkSpec};
use plimsoll_workload::{Activity, Population, Workload};

use crate::{ConductError, Observer};

/// Whether the command line of this run gives leave, and by which flag.
#[derive(Clone, Copy, Debug)]
pub struct Consent {
    /// Whether leave is given.
    pub given: bool,
    /// By which flag it is given, or would be.
    pub flag: &'static str,
}

/// Leave to run: every record of a run begins with one.
pub struct Permit(());

impl Permit {
    /// Returns leave to run a workload on objects, which lie in `place`.
    pub fn for_objects(
        workload: &Workload,
        place: &str,
        consent: Consent,
        observer: &dyn Observer,
    ) -> Result<Self, ConductError> {
        let Some(objects) = removed_objects(workload) else { return Ok(Self(())) };
        let bytes = objects.iter().map(|object| object.size).sum();
        let count = format::count(objects.len() as u64);
        let what = format!("remove {count} objects ({}) in {place}", format::bytes(bytes));
        Self::ask(&what, consent, observer)
    }

    /// Returns leave to run a plan on files.
    pub fn for_files(
        plan: &FilePlan,
        consent: Consent,
        observer: &dyn Observer,
    ) -> Result<Self, ConductError> {
        let names = overwritten(plan);
        if names.is_empty() {
            return Ok(Self(()));
        }
        Self::ask(&format!("overwrite {}", names.join(", ")), consent, observer)
    }

    /// Returns leave to run against a driver that touches nothing outside of this process.
    pub fn for_nothing_real() -> Self {
        Self(())
    }

    fn ask(
        what: &str,
        Consent { given, flag }: Consent,
        observer: &dyn Observer,
    ) -> Result<Self, ConductError> {
        if !given {
            let what = what.to_owned();
            return Err(ConductError::NoLeave { what, flag });
        }
        observer.note(&format!("{flag}: about to {what}, which this run did not write"));
        Ok(Self(()))
    }
}

/// Returns the objects of others that a workload removes. Nothing else is done to those but to
/// read them, which the workload's own check sees to.
fn removed_objects(workload: &Workload) -> Option<&[plimsoll_workload::ExistingObject]> {
    match (&workload.population, &workload.activity) {
        (Population::Existing(objects), Activity::Delete { .. }) => Some(objects),
        _ => None,
    }
}

/// Returns the files and devices of others that a plan writes to, each once.
fn overwritten(plan: &FilePlan) -> Vec<String> {
    let jobs = plan.spec.stages.iter().flat_map(|stage| &stage.jobs);
    let written = jobs.filter_map(|job| match &job.work {
        FileWorkSpec::Blocks(blocks) if blocks.files.existing && blocks.writes() => Some(blocks),
        _ => None,
    });
    let mut seen = HashSet::new();
    let names = written.flat_map(|BlocksSpec { files, .. }| &files.names);
    names.filter(|name| seen.insert(*name)).cloned().collect()
}

//! How much of everything a run on files may have, and the pace that it is recorded to keep.

use plimsoll_driver_file::SLOTS_MAX;
use plimsoll_engine::{RingConfig, ring_slots, ring_threads};
use plimsoll_report::format;
use plimsoll_workload::files::FilePlan;

use crate::ConductError;
use crate::error::refused;

/// The most threads of one stage. What blocks has one for each job.
const THREADS_MAX: usize = 10_000;

/// Refuses more threads, or more operations in flight, than a run can have.
pub(super) fn check_counts(plan: &FilePlan, config: &RingConfig) -> Result<(), ConductError> {
    for (stage, of) in plan.plan.stages.iter().enumerate() {
        let (name, threads) = (&of.name, ring_threads(plan, stage, config));
        if threads > THREADS_MAX {
            return refused(format!(
                "`jobs`: stage {name} needs {} threads, one for each job of its kind; at most {}",
                format::count(threads as u64),
                format::count(THREADS_MAX as u64)
            ));
        }
        let slots = ring_slots(plan, stage, config);
        if slots > SLOTS_MAX as u64 {
            return refused(format!(
                "`depth`: one thread of stage {name} would have {} operations in flight, and the \
                 kernel takes {} at most; lower `depth` or `jobs` (with `rate`: `max_in_flight`), \
                 or spread the jobs over more `threads`",
                format::count(slots),
                format::count(SLOTS_MAX as u64)
            ));
        }
    }
    Ok(())
}

//! How much of everything a run on files may have, and the pace that it is recorded to keep.

use plimsoll_driver_file::SLOTS_MAX;
use plimsoll_engine::{RingConfig, ring_slots, ring_threads};
use plimsoll_record::schema;
use plimsoll_report::format;
use plimsoll_workload::RateProfile;
use plimsoll_workload::files::{FilePacingSpec, FilePlan, FileStageSpec};

use crate::ConductError;
use crate::error::refused;

/// The most threads of one stage. What blocks has one for each job.
const THREADS_MAX: usize = 10_000;

/// Refuses more threads, or more operations in flight, than a run can have.
pub(super) fn check_counts(plan: &FilePlan, config: &RingConfig) -> Result<(), ConductError> {
    for (stage, spec) in plan.spec.stages.iter().enumerate() {
        let (name, threads) = (&spec.name, ring_threads(plan, stage, config));
        if threads > THREADS_MAX {
            return refused(format!(
                "--jobs: stage {name} needs {} threads, as each job of its kind has one of its \
                 own; at most {}",
                format::count(threads as u64),
                format::count(THREADS_MAX as u64)
            ));
        }
        let slots = ring_slots(plan, stage, config);
        if slots > SLOTS_MAX as u64 {
            return refused(format!(
                "--depth: one thread of stage {name} would have {} operations in flight, and the \
                 kernel takes {} at most; lower --depth or --jobs (with --rate: --max-in-flight), \
                 or spread the jobs over more --threads",
                format::count(slots),
                format::count(SLOTS_MAX as u64)
            ));
        }
    }
    Ok(())
}

/// Returns what decides when operations of a stage start, and the schedules of its jobs that have
/// one.
pub fn pacing_of(spec: &FileStageSpec) -> (schema::LoopModel, Vec<schema::JobSchedule>) {
    let mut schedules = Vec::new();
    let mut is_capped = false;
    for (job_index, job) in (0..).zip(&spec.jobs) {
        match &job.pacing {
            FilePacingSpec::Closed => {}
            FilePacingSpec::Capped { .. } => is_capped = true,
            FilePacingSpec::Open { rate, arrivals, max_in_flight } => {
                let rate =
                    rate.parse::<RateProfile>().map_or(rate.clone(), |rate| rate.to_string());
                let schedule = schema::Schedule {
                    rate,
                    arrivals: arrivals.clone(),
                    max_in_flight: *max_in_flight,
                    offered_count: None,
                    late_count: None,
                    skipped_count: None,
                    delay_max_ns: None,
                };
                schedules.push(schema::JobSchedule { job_index, schedule });
            }
        }
    }
    let model = match (schedules.is_empty(), is_capped) {
        (false, _) => schema::LoopModel::Open,
        (true, true) => schema::LoopModel::Capped,
        (true, false) => schema::LoopModel::Closed,
    };
    (model, schedules)
}

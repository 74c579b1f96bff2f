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

/// Returns what decides when operations of a stage start, and its jobs.
pub fn jobs_of(spec: &FileStageSpec) -> (schema::LoopModel, Vec<schema::StageJob>) {
    let mut jobs: Vec<schema::StageJob> = Vec::new();
    let mut worker_first = 0;
    for job in &spec.jobs {
        let (loop_model, schedule) = match &job.pacing {
            FilePacingSpec::Closed => (schema::LoopModel::Closed, None),
            FilePacingSpec::Capped { .. } => (schema::LoopModel::Capped, None),
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
                (schema::LoopModel::Open, Some(schedule))
            }
        };
        let of = schema::StageJob::of(&job.name, job.clones, loop_model);
        jobs.push(schema::StageJob { group: job.group, worker_first, schedule, ..of });
        worker_first += job.clones;
    }
    let any = |model| jobs.iter().any(|job| job.loop_model == model);
    let model = match (any(schema::LoopModel::Open), any(schema::LoopModel::Capped)) {
        (true, _) => schema::LoopModel::Open,
        (false, true) => schema::LoopModel::Capped,
        (false, false) => schema::LoopModel::Closed,
    };
    (model, jobs)
}

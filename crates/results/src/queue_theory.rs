//! What queueing theory says of an embedded store that is a queue (M/M/c).

use std::time::Duration;

use plimsoll_report::{JobSchedule, QueueTheory};
use plimsoll_stats::{mmc_share_over, mmc_time_over, rate_carried};
use plimsoll_workload::ArrivalLaw;
use plimsoll_workload::plan::spec::{QueueSpec, TargetSpec};
use plimsoll_workload::plan::{Plan, Search, SloOf, SloSpec, Stage};

/// A line by theory that is less than this part of the capacity is none.
const LEAST: f64 = 1e-6;

/// Returns the queue that the only job of a stage works on.
fn queue(plan: &Plan, stage: &Stage) -> Option<QueueSpec> {
    let [job] = &stage.jobs[..] else { return None };
    match &plan.target(job.target).spec {
        Some(TargetSpec::Oracle(oracle)) => oracle.queue,
        _ => None,
    }
}

/// Returns how many operations a second one of the servers completes.
fn mu(queue: QueueSpec) -> f64 {
    1.0 / queue.time.0.as_secs_f64()
}

/// Returns the load line, where nothing else is done to the queue: what its formula says of the
/// percentile that is exceeded first.
pub(crate) fn line(plan: &Plan, stage: &Stage, search: &Search) -> Option<f64> {
    let queue = queue(plan, stage).filter(|_| search.arrivals == ArrivalLaw::Poisson)?;
    let most = f64::from(queue.servers) * mu(queue);
    let line = |slo: &SloSpec| match slo.of {
        SloOf::Latency { most: bound, .. } => {
            let over = |rate| mmc_share_over(queue.servers, mu(queue), rate, bound.as_secs_f64());
            Some(rate_carried(most, slo.share_max(), over))
        }
        SloOf::Errors { .. } => None,
    };
    // Where one operation by itself takes too long, there is none.
    search.slo.iter().filter_map(line).reduce(f64::min).filter(|rate| *rate > most * LEAST)
}

/// Returns the latency at the rate of the only schedule of a stage, where that is one rate of
/// Poisson arrivals.
pub(crate) fn latency(plan: &Plan, stage: &Stage, kept: &[JobSchedule]) -> Option<QueueTheory> {
    let [JobSchedule { schedule, .. }] = kept else { return None };
    let queue = queue(plan, stage).filter(|_| schedule.arrivals == [ArrivalLaw::Poisson])?;
    let [profile] = &schedule.rates[..] else { return None };
    let rate = profile.peak();
    let from = schedule.started_after;
    let is_one = [from, from + schedule.lasted?].map(|at| profile.rate_at(at)) == [rate; 2];
    let over = |share| {
        let time = mmc_time_over(queue.servers, mu(queue), rate, share).filter(|_| is_one)?;
        Some(Duration::from_secs_f64(time))
    };
    Some(QueueTheory { latency_p50: over(0.5)?, latency_p99: over(0.01)? })
}

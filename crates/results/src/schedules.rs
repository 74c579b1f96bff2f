//! How jobs kept their schedules, from a record, and over which span their arrivals are counted.

use std::time::Duration;

use plimsoll_model::OpRate;
use plimsoll_record::schema;
use plimsoll_report::{JobSchedule, ScheduleReport};
use plimsoll_workload::RateProfile;

use crate::clients::{ClientStage, RowJobs};

/// Returns how each job of a row with a schedule kept it.
pub(crate) fn schedules(
    entry: &schema::Stage,
    clients: &[ClientStage<'_>],
    row: &RowJobs,
    took: Duration,
) -> Vec<JobSchedule> {
    let report = |index: &usize| {
        let job = &entry.jobs[*index];
        let kept = job.schedule.as_ref().filter(|_| row.worker.is_none())?;
        let is_alone = row.jobs.len() == 1 && job.loop_model == schema::LoopModel::Open;
        Some(JobSchedule::new(&job.name, is_alone, schedule(kept, clients, *index, took)))
    };
    row.jobs.iter().filter_map(report).collect()
}

fn schedule(
    kept: &schema::Schedule,
    clients: &[ClientStage<'_>],
    job: usize,
    took: Duration,
) -> ScheduleReport {
    let (from, until) = offered_span(kept, clients, job, took);
    ScheduleReport {
        rates: kept.rates.clone(),
        // Those of merged runs may have peaked at once.
        rate_peak: OpRate(kept.rates.iter().map(RateProfile::peak).sum()),
        arrivals: kept.arrivals.clone(),
        max_in_flight: kept.max_in_flight,
        started_after: from,
        lasted: Some(until.saturating_sub(from)),
        offered_count: kept.offered_count,
        late_count: kept.late_count,
        skipped_count: kept.skipped_count,
        held_count: kept.held_count,
        delay_max: kept.delay_max_ns.map(Duration::from_nanos),
    }
}

/// Returns from when to when the operations of a schedule were due that are counted, since the
/// start of the stage. Of a run that was killed, the plan says it.
fn offered_span(
    kept: &schema::Schedule,
    clients: &[ClientStage<'_>],
    job: usize,
    took: Duration,
) -> (Duration, Duration) {
    let ns = Duration::from_nanos;
    if let Some((from, until)) = kept.offered_span() {
        return (ns(from), ns(until));
    }
    let planned: Option<Vec<_>> = clients.iter().map(|of| of.planned_span(job)).collect();
    let planned =
        planned.and_then(|all| all.into_iter().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))));
    // Nothing arrives while the stage waits for its last operations.
    planned.map_or((Duration::ZERO, took), |(from, until)| (from.min(took), until.min(took)))
}

//! What a row of a stage on files says of the jobs in it.

use std::time::Duration;

use plimsoll_model::OpRate;
use plimsoll_record::schema::{self, LoopModel};
use plimsoll_report::ScheduleReport;
use plimsoll_report::phases::JobSchedule;
use plimsoll_results::{ClientStage, RowJobs};
use plimsoll_workload::RateProfile;

/// Returns how each job with a schedule kept it.
pub(super) fn schedules(
    entry: &schema::Stage,
    clients: &[ClientStage<'_>],
    rows: &[RowJobs],
) -> Vec<JobSchedule> {
    let report = |(index, job): (usize, &schema::StageJob)| {
        let kept = job.schedule.as_ref()?;
        let row = rows.iter().position(|row| row.jobs.contains(&index))?;
        // What clients without a schedule did beside it is in the figures of the row.
        let is_alone = rows[row].jobs.len() == 1
            && rows[row].worker.is_none()
            && job.loop_model == LoopModel::Open;
        let lasted = |of: &ClientStage<'_>| {
            let (_, stage) = of.planned?;
            [stage.jobs.get(index)?.duration, stage.duration].into_iter().flatten().min()
        };
        let lasted: Option<Vec<Duration>> = clients.iter().map(lasted).collect();
        let lasted = lasted.and_then(|all| all.into_iter().max());
        Some(JobSchedule { job: job.name.clone(), row, is_alone, schedule: schedule(kept, lasted) })
    };
    entry.jobs.iter().enumerate().filter_map(report).collect()
}

fn schedule(kept: &schema::Schedule, lasted: Option<Duration>) -> ScheduleReport {
    // Clients have their rates joined; all of them may have peaked at once.
    let peaks = kept.rates().map(|rate| rate.parse::<RateProfile>().ok().map(|rate| rate.peak()));
    ScheduleReport {
        rate: kept.rate.clone(),
        rate_peak: peaks.sum::<Option<f64>>().map(OpRate),
        arrivals: kept.arrivals.clone(),
        max_in_flight: kept.max_in_flight,
        lasted,
        offered_count: kept.offered_count,
        late_count: kept.late_count,
        skipped_count: kept.skipped_count,
        delay_max: kept.delay_max_ns.map(Duration::from_nanos),
    }
}

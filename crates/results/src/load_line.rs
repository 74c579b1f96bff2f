//! The load lines that a run looked for, from its record.

use std::time::Duration;

use plimsoll_analysis::load_line::{LoadLineAsked, ProbeStage, find_load_line};
use plimsoll_model::{JobId, Moment, StageId};
use plimsoll_record::schema::{Manifest, Stage};
use plimsoll_report::{LoadLineReport, stage_title};
use plimsoll_stats::ProbeRole;
use plimsoll_workload::RateProfile;

use crate::asked::Asked;
use crate::error::ResultsError;
use crate::open::Record;

/// What ends a probe when all that was due was issued.
const DURATION: &str = "duration";

impl Record {
    /// Returns the load lines, where the run looked for some and nothing but its whole is asked
    /// for.
    pub(crate) fn load_lines(
        &self,
        manifest: &Manifest,
        asked: &Asked,
    ) -> Result<Vec<LoadLineReport>, ResultsError> {
        let is_whole = !asked.is_part() && asked.stage.is_none() && asked.job.is_none();
        let plan = manifest.workload.plan().filter(|_| is_whole);
        let Some(plan) = plan else { return Ok(Vec::new()) };
        let mut lines = Vec::new();
        for (index, stage) in plan.stages.iter().enumerate() {
            let Some(search) = &stage.search else { continue };
            let of_search = manifest.stages.iter().filter(|stage| {
                let probe = stage.probe.as_ref();
                probe.is_some_and(|probe| usize::from(probe.search_index) == index)
            });
            let probes: Vec<ProbeStage> = of_search.filter_map(probe).collect();
            let looked_for = LoadLineAsked::of(search);
            let found = find_load_line(&self.source, &looked_for, &probes)?;
            let name = stage_title(&stage.name, stage.iteration);
            lines.push(LoadLineReport::of(&name, &looked_for, &found, None));
        }
        Ok(lines)
    }
}

/// Returns a stage as a probe, if it was one and its end is known.
fn probe(stage: &Stage) -> Option<ProbeStage> {
    let probe = stage.probe.as_ref()?;
    let job = stage.jobs.get(usize::from(probe.job_index))?;
    let role = probe.role.as_deref().map(ProbeRole::from_name);
    let schedule = job.schedule.as_ref().filter(|_| role.is_some());
    let rate: Option<RateProfile> = schedule.and_then(|schedule| schedule.rate.parse().ok());
    Some(ProbeStage {
        stage: StageId(stage.index),
        rate: rate.map(|rate| rate.peak()),
        role: role.flatten(),
        job: JobId(probe.job_index),
        started: Moment::from_ns(stage.started_ns?),
        ended: Moment::from_ns(stage.ended_ns?),
        lasts: Duration::from_nanos(probe.lasts_ns),
        skipped_count: schedule.and_then(|schedule| schedule.skipped_count).unwrap_or(0),
        is_cut: stage.ended_by.as_deref() != Some(DURATION),
    })
}

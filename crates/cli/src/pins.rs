//! Jobs of a workload that name an agent: what is said of them here.

use anyhow::Result;
use plimsoll_conduct::ConductError;
use plimsoll_fleet::roll::Recruit;
use plimsoll_workload::plan::Plan;

use crate::ui::Ui;

/// Returns a note on jobs that name agents, for a run without any.
pub(crate) fn pinned_here(plan: &Plan) -> Option<String> {
    let mut jobs: Vec<String> = plan
        .pinned()
        .map(|(stage, job, agent)| format!("{}/{} ({agent})", stage.name, job.name))
        .collect();
    jobs.dedup();
    (!jobs.is_empty()).then(|| {
        format!("there is no fleet, so jobs that name an agent run here: {}", jobs.join(", "))
    })
}

/// Has the jobs of a plan be on the agents that they name. One that is not there is told, and
/// what is its is done by all.
pub(crate) fn pin(plan: &mut Plan, recruits: &[Recruit], ui: &Ui) -> Result<()> {
    let agents = recruits.iter().map(|each| (&*each.about.name, each.about.weight));
    let unknown = plan.pin(&agents.collect::<Vec<_>>()).map_err(ConductError::from)?;
    for (agent, jobs) in unknown {
        ui.warn(&format!(
            "no agent of the run is called {agent}, so all share the workers of {}",
            jobs.join(", ")
        ));
    }
    Ok(())
}

//! What clients and rows of jobs are called.

use plimsoll_record::schema::{self, Manifest};

use crate::clients::RowJobs;

/// Returns the names of the clients of a merged run.
pub(crate) fn client_names(manifest: &Manifest) -> Vec<String> {
    let name = |part: &schema::MergedRun| match &part.hostname {
        Some(hostname) => format!("{hostname} ({})", part.run_id),
        None => part.run_id.clone(),
    };
    if manifest.merged.is_empty() && manifest.agents.len() > 1 {
        return manifest.agents.iter().map(|agent| agent_name(manifest, agent)).collect();
    }
    manifest.merged.iter().map(name).collect()
}

/// Returns what an agent is called among those of its run.
fn agent_name(manifest: &Manifest, agent: &schema::Agent) -> String {
    let same = manifest.agents.iter().filter(|other| other.name == agent.name).count();
    if same == 1 { agent.name.clone() } else { format!("{} ({})", agent.name, agent.id) }
}

/// Returns what a row is called: its jobs and, of one alone, the worker.
pub(crate) fn row_name(stage: &schema::Stage, row: &RowJobs) -> String {
    let names: Vec<&str> = row.jobs.iter().map(|job| stage.jobs[*job].name.as_str()).collect();
    let names = names.join(" + ");
    row.worker.map_or(names.clone(), |worker| format!("{names}.{worker}"))
}

//! The agents of a fleet as a report shows them.

use std::time::Duration;

use plimsoll_analysis::Advice;
use plimsoll_analysis::verdict::LimitClass;
use plimsoll_record::schema::{self, Manifest};
use plimsoll_report::{AgentReport, LossReport, StageReport, format, lost};

/// Returns the agents that carried a run out.
pub(crate) fn agents(manifest: &Manifest) -> Vec<AgentReport> {
    let ns = Duration::from_nanos;
    let loss = |of: &schema::AgentLoss| LossReport {
        heard: ns(of.heard_ns),
        at: ns(of.at_ns),
        stage: of
            .stage_index
            .and_then(|at| Some(manifest.stages.get(usize::from(at))?.name.clone())),
        why: of.why.clone(),
    };
    let agent = |of: &schema::Agent| AgentReport {
        name: of.name.clone(),
        id: of.id.clone(),
        version: of.version.clone(),
        machine: of.machine.as_ref().and_then(machine_line),
        weight: of.weight,
        threads: of.threads_count,
        clock_uncertainty: of.clock.iter().map(|of| ns(of.uncertainty_ns)).max(),
        rows: of.rows_count,
        cpu: cpu_ns(of).map(ns),
        lost: of.lost.as_ref().map(loss),
        losses: of.losses.clone(),
    };
    manifest.agents.iter().map(agent).collect()
}

/// Has the stages of a run that lost agents advise nothing that only helps where all are there: a
/// longer run brings none of them back.
pub(crate) fn advise_of_a_part<'s>(
    agents: &[AgentReport],
    stages: impl Iterator<Item = &'s mut StageReport>,
) {
    let Some(lost) = lost(agents) else { return };
    let is_of_all =
        |code: &str| ["full-span-used", "short-span", "idle-workers", "imbalance"].contains(&code);
    for stage in stages {
        for row in &mut stage.rows {
            row.advice.retain(|of| !is_of_all(of.code));
            row.analysis.advice.retain(|of| {
                !matches!(
                    of,
                    Advice::FullSpanUsed { .. }
                        | Advice::ShortSpan { .. }
                        | Advice::IdleWorkers { .. }
                        | Advice::Imbalance { .. }
                )
            });
        }
        if let Some(verdict) = stage.verdict.as_mut().filter(|of| of.class == LimitClass::Unknown) {
            verdict.experiment = format!("{lost}: find out why, and run again with all agents");
        }
    }
}

/// Returns the processor time of an agent over all stages; of one that was lost, that of the last
/// is not known.
fn cpu_ns(agent: &schema::Agent) -> Option<u64> {
    let of_stages = agent.cpu_ns.iter().flatten().copied();
    of_stages.reduce(|all, of| all + of).filter(|_| agent.lost.is_none())
}

pub(crate) fn machine_line(machine: &schema::Machine) -> Option<String> {
    let cores = machine.cores_count.map(|cores| format!("{cores} cores"));
    let memory = machine.memory_bytes.map(|bytes| format!("{} memory", format::bytes(bytes)));
    let (name, kernel) = (machine.hostname.clone(), machine.kernel.clone());
    let known = [name, kernel, machine.cpu_model.clone(), cores, memory];
    let known: Vec<String> = known.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.join(", "))
}

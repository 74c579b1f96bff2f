//! The agents that carried a run out.

use std::time::Duration;

use serde::Serialize;

use crate::{format, serial};

/// A process that carried out a part of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentReport {
    /// What people call it.
    pub name: String,
    /// What it is called on its fabric.
    pub id: String,
    /// The version of its program.
    pub version: String,
    /// Its machine in one line.
    pub machine: Option<String>,
    /// How much of the workers it had relative to others.
    pub weight: u32,
    /// How many threads drove its operations.
    #[serde(rename = "threads_count")]
    pub threads: u32,
    /// By how much its moments may be wrong against those of other agents, at most; null where that
    /// was not measured, as in virtual time.
    #[serde(rename = "clock_uncertainty_ns", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub clock_uncertainty: Option<Duration>,
    /// How many operations of it are in the record; null where none is, as it was lost.
    #[serde(rename = "rows_count")]
    pub rows: Option<u64>,
    /// Processor time of its worker threads and its recorder, over all stages.
    #[serde(rename = "client_cpu_ns", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub cpu: Option<Duration>,
    /// How it was lost; null where it was there to the end.
    pub lost: Option<LossReport>,
    /// What is missing of what it recorded, a sentence each.
    pub losses: Vec<String>,
}

/// How an agent was lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossReport {
    /// When it was last heard of, since the run's epoch: what it did from then on is not known.
    #[serde(rename = "heard_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub heard: Duration,
    /// When it was given up.
    #[serde(rename = "at_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub at: Duration,
    /// The stage under way, or the last one; null before the first.
    pub stage: Option<String>,
    /// Why.
    pub why: String,
}

impl AgentReport {
    /// Says what is missing of it, if anything is.
    pub fn missing(&self) -> Vec<String> {
        let of_loss = self.lost.as_ref().map(|lost| self.missing_since(lost));
        let of_record =
            self.losses.iter().map(|loss| format!("of what agent {} recorded: {loss}", self.name));
        of_loss.into_iter().chain(of_record).collect()
    }

    fn missing_since(&self, lost: &LossReport) -> String {
        let during =
            lost.stage.as_ref().map_or(String::new(), |stage| format!(" in stage {stage}"));
        let what = match self.rows {
            None => {
                "all that it did is missing here (`plimsoll fleet collect` fetches what it kept)"
            }
            Some(_) => "what it recorded is here, and its share of the work is missing",
        };
        format!(
            "DEGRADED: agent {} was lost{during} ({}), last heard of {} after the run began; {what}",
            self.name,
            lost.why,
            format::duration(lost.heard)
        )
    }
}

/// Returns the agents in one line; `None` where there are none.
pub(crate) fn line(agents: &[AgentReport]) -> Option<String> {
    /// More names than that say nothing.
    const NAMES_MAX: usize = 6;
    if agents.is_empty() {
        return None;
    }
    let names: Vec<&str> = agents.iter().take(NAMES_MAX).map(|agent| &*agent.name).collect();
    let more = if agents.len() > NAMES_MAX { ", …" } else { "" };
    let clocks = agents.iter().filter_map(|agent| agent.clock_uncertainty).max();
    let clocks = clocks.map_or(String::new(), |clocks| {
        format!("; their clocks agree to ±{}", format::duration(clocks))
    });
    Some(format!("{}: {}{more}{clocks}", agents.len(), names.join(", ")))
}

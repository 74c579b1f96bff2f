//! Agents that jobs of a workload or a command line name: what is said of them here.

use std::fmt;
use std::time::Duration;

use anyhow::anyhow;
use plimsoll_report::format;
use plimsoll_workload::plan::Plan;

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

/// Agents that were named and waited for in vain.
#[derive(Debug)]
pub(crate) struct Absent {
    pub(crate) names: Vec<String>,
    pub(crate) waited: Duration,
}

impl Absent {
    /// Returns the error with the flag of another tool's by which the agents are named, if that is
    /// what went wrong.
    pub(crate) fn named_by(error: anyhow::Error, flag: &str) -> anyhow::Error {
        match error.downcast() {
            Ok(Self { names, waited }) => anyhow!(
                "{flag}: agents {} have not joined after {}; on each of these machines run the line \
                 that `plimsoll fleet up` printed, with `--name` and its name",
                names.join(", "),
                format::duration(waited)
            ),
            Err(other) => other,
        }
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (names, waited) = (self.names.join(", "), format::duration(self.waited));
        write!(f, "agents {names} have not joined after {waited} (--agents, --agents-wait)")
    }
}

impl std::error::Error for Absent {}

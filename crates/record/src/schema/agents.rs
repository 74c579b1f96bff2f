//! What the manifest says of the agents that carried a run out.

use serde::{Deserialize, Serialize};

use super::Machine;

/// A process that carried out a part of the run. Its operations stand in the run's op log by the
/// run's clock, under the numbers of its workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agent {
    /// What people call it.
    pub name: String,
    /// What it is called on its fabric.
    pub id: String,
    /// The version of its program.
    pub version: String,
    /// The machine that it runs on.
    pub machine: Option<Machine>,
    /// How much of the workers it has relative to others. Of `n` workers of a job those from
    /// `n * before / all` on up to `n * (before + weight) / all` are its own, both rounded down,
    /// where `before` is the weight of the agents before it in the list.
    pub weight: u32,
    /// How many threads drove its operations.
    pub threads_count: u32,
    /// By how much its clock was ahead of the run's.
    pub clock: Vec<ClockReading>,
    /// How it was lost; null where it was there to the end.
    pub lost: Option<AgentLoss>,
    /// How many operations of it stand in the op log; null where its record is missing.
    pub rows_count: Option<u64>,
    /// Processor time of its worker threads and its recorder, stage by stage; null where it took
    /// no part in a stage.
    pub cpu_ns: Vec<Option<u64>>,
    /// What its part shows that it is the one which it was given; null where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    /// What is missing of what it recorded, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
}

/// By how much the clock of an agent was ahead of the run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockReading {
    /// The stage before which that was measured.
    pub stage_index: u8,
    /// When.
    pub at_ns: u64,
    /// What the agent's clock showed more than the run's; each has an epoch of its own.
    pub offset_ns: i64,
    /// By how much that may be wrong either way: half of the time that messages were on their way.
    pub uncertainty_ns: u64,
}

/// How an agent was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentLoss {
    /// When it was given up.
    pub at_ns: u64,
    /// When it was last heard of: what it did from then on is not known.
    pub heard_ns: u64,
    /// The stage under way, or the one that had ended; null before the first.
    pub stage_index: Option<u8>,
    /// Why.
    pub why: String,
}

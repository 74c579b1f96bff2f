//! What the manifest says of the runs that were merged into one.

use plimsoll_model::EndReason;
use serde::{Deserialize, Serialize};

use super::{MergedJob, RecordedWorkload};

/// One of the runs that were merged into another, usually that of one client. Of runs that were
/// merged before it is one of those that they were made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MergedRun {
    /// Its name.
    pub run_id: String,
    /// The machine that made its load.
    pub hostname: Option<String>,
    /// Wall time of its own epoch, nanoseconds since 1970-01-01T00:00:00Z.
    pub started_unix_ns: u64,
    /// The number that fixed its choices; null for a record made elsewhere.
    pub seed: Option<u64>,
    /// The prefix that it owned; null when it owned none.
    pub prefix: Option<String>,
    /// Its first worker, as numbered in the merged run; owners of its objects begin there too.
    pub worker_index_first: u32,
    /// How many worker numbers are its own: as many as its largest stage had workers.
    pub workers_count: u32,
    /// When it was at each stage of the merged run.
    pub stages: Vec<MergedStage>,
    /// Its own workload, where that differs from the whole's in more than the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<RecordedWorkload>,
}

/// What one of the merged runs did of a stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MergedStage {
    /// The stage of the merged run, an index into its list.
    pub index: u8,
    /// Which stage of the run's own workload it is; absent where it is none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_index: Option<u16>,
    /// When the run began it, since the epoch of the merged run.
    pub started_ns: Option<u64>,
    /// When the run's last worker ended it.
    pub ended_ns: Option<u64>,
    /// What ended it.
    pub ended_by: Option<EndReason>,
    /// The workers that the run gave each of its jobs, in their order.
    pub jobs: Vec<MergedJob>,
}

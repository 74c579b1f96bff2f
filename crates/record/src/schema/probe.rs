//! What the manifest says of the probes of a search.

use plimsoll_model::ProbeRole;
use serde::{Deserialize, Serialize};

/// What a stage was to the search. The rate that it offered stands in the schedule of its job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageProbe {
    /// Which stage of the workload the search is, 0-based, repeated ones taken one by one.
    pub search_index: u8,
    /// What it was made for; null: a closed loop, to find out where to begin.
    pub role: Option<ProbeRole>,
    /// The job whose rate was probed, an index into the jobs of the stage.
    pub job_index: u8,
    /// For how long operations were due.
    pub lasts_ns: u64,
}

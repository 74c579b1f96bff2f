//! What the manifest says of a stage on files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Schedule;

/// What is known of a stage on files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesStage {
    /// Which repetition of the stage it is, 0-based.
    pub iteration: u32,
    /// How operations of each job reached the kernel: `io_uring`, `libaio`, `psync` or `null`.
    pub interfaces: Vec<String>,
    /// What was done about caches: `dropped`, `dropped-machine`, `bypassed`,
    /// `cached` or `unknown`.
    pub caches: String,
    /// Why caches could not be dropped as asked, where they could not.
    pub caches_reason: Option<String>,
    /// What the whole process used while the stage lasted.
    pub usage: Option<ProcessUsage>,
    /// Bytes that were read and could not be checked, as the run never wrote them.
    #[serde(default)]
    pub unverified_bytes: Option<u64>,
    /// How the jobs with a schedule kept theirs, each by itself; the stage's `schedule` is their
    /// sum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<JobSchedule>,
    /// The longest time in which a thread with operations under way did not look at what has
    /// ended: no end is stamped later than it was by more. Null where nothing was waited for.
    #[serde(default)]
    pub look_gap_max_ns: Option<u64>,
    /// How many operations were seen to end after a gap of more than half of their service time.
    #[serde(default)]
    pub uncertain_count: Option<u64>,
}

/// How one job of a stage on files kept its schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobSchedule {
    /// The job, an index into the jobs of the stage.
    pub job_index: u32,
    /// Its schedule.
    pub schedule: Schedule,
}

/// What a process used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessUsage {
    /// Processor time of its own code.
    pub user_ns: u64,
    /// Processor time of the kernel on its behalf.
    pub system_ns: u64,
    /// How often a thread gave the processor away or lost it.
    pub context_switches_count: u64,
    /// Page faults that read from a medium.
    pub faults_major_count: u64,
    /// Other page faults.
    pub faults_minor_count: u64,
}

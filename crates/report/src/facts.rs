//! The smaller facts of a report: states, targets, schedules, errors, verification.

use std::time::Duration;

use plimsoll_analysis::verdict::LimitClass;
use plimsoll_model::{EndpointId, ErrorClass, OpKind, OpRate};
use serde::Serialize;

use crate::proof::{Certificate, Verdict};
use crate::{ScheduleReport, serial};

/// The verdict on the stage that says most of the run; its evidence stands with the stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunVerdict {
    /// The stage.
    pub stage: String,
    /// Which repetition of it, 0-based.
    #[serde(rename = "iteration_index")]
    pub iteration: u32,
    /// Which one it is of the stages that have that name and repetition, 1-based; absent for the
    /// first.
    #[serde(rename = "title_number", skip_serializing_if = "crate::serial::is_first")]
    pub number_of_title: u32,
    /// Who.
    pub class: LimitClass,
    /// Whether that is the client: the figures are then not a measurement of the store.
    #[serde(rename = "is_client_limit")]
    pub is_client: bool,
    /// The same in one sentence.
    pub sentence: String,
    /// What to do to confirm it or to find out that it is wrong.
    pub experiment: String,
}

/// What load was put on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TargetReport {
    /// Its addresses or directories, in one line.
    pub address: String,
    /// The bucket.
    pub bucket: Option<String>,
    /// The collection, where there are these instead of buckets.
    pub collection: Option<String>,
    /// The directory of a filer, where there are these instead of buckets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Whether it is directories or devices.
    pub is_files: bool,
    /// The file system, such as `ext4`.
    pub file_system: Option<String>,
    /// What the file system lies on, such as `/dev/nvme0n1p1`.
    pub device: Option<String>,
    /// How much was free before the run.
    pub free_bytes: Option<u64>,
}

impl TargetReport {
    /// Returns its addresses with the bucket, collection or directory.
    pub(crate) fn place(&self) -> String {
        let named = |what: &str, name: &Option<String>| {
            name.as_ref().map_or(String::new(), |name| format!(", {what} {name}"))
        };
        let bucket = named("bucket", &self.bucket);
        let collection = named("collection", &self.collection);
        let directory = named("directory", &self.directory);
        format!("{}{bucket}{collection}{directory}", self.address)
    }
}

/// Whether the run came to its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// It did.
    Complete,
    /// It did, without agents that were lost on the way: what they did is missing, and rates over
    /// the whole span are those of a part.
    Degraded,
    /// It was ended early by the user; the figures are those of what ran.
    Interrupted,
    /// It is under way.
    Running,
    /// It never said that it ended, and is not under way.
    Killed,
    /// It could not go on.
    Failed,
}

impl RunState {
    /// Returns what stands behind the title.
    pub(crate) fn remark(self) -> &'static str {
        match self {
            Self::Complete => "",
            Self::Degraded => " (DEGRADED)",
            Self::Interrupted => " (interrupted)",
            Self::Running => " (running)",
            Self::Killed => " (killed)",
            Self::Failed => " (failed)",
        }
    }
}

/// When operations start.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum LoopModel {
    /// The next one when the one before has ended.
    Closed,
    /// As closed, but not more than so many per second in all; waiting for the cap is not in the
    /// latency.
    Capped {
        /// The cap over all workers; null where each has its own.
        #[serde(rename = "ops_per_sec", serialize_with = "serial::rate_if_known")]
        #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
        rate: Option<OpRate>,
    },
    /// On a schedule, whatever the target does; the report says which.
    Open,
}

/// How one job kept its schedule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobSchedule {
    /// What the job is called.
    pub job: String,
    /// Whether its row holds no other job.
    #[serde(skip)]
    pub is_alone: bool,
    /// Its schedule, and what came of it.
    #[serde(flatten)]
    pub schedule: ScheduleReport,
    /// Whether at most 1 % were late or skipped; null when unknown.
    kept: Option<bool>,
    /// Arrivals over the time in which they came.
    #[serde(rename = "rate_offered_ops_per_sec", serialize_with = "serial::rate_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    rate_offered: Option<OpRate>,
    /// By how much it was not kept, and what to change; null if it was.
    pub(crate) warning: Option<String>,
}

impl JobSchedule {
    /// Returns how a job kept its schedule; `is_alone` says that its row holds no other job.
    pub fn new(job: &str, is_alone: bool, schedule: ScheduleReport) -> Self {
        Self {
            job: job.to_owned(),
            is_alone,
            kept: schedule.offered_count.map(|_| schedule.is_kept()),
            rate_offered: schedule.rate_offered(),
            warning: None,
            schedule,
        }
    }
}

/// A warning about the trust of figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdviceLine {
    /// What it is about, such as `few-samples`.
    pub code: &'static str,
    /// The warning in words.
    pub text: String,
}

/// What was removed at the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CleanupReport {
    /// How far it got.
    pub state: CleanupState,
    /// How many objects and files were removed.
    #[serde(rename = "removed_count")]
    pub removed: Option<u64>,
    /// How many of them were files; null where that is not known.
    #[serde(rename = "files_removed_count")]
    pub removed_files: Option<u64>,
    /// How long that took.
    #[serde(rename = "duration_ns", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub took: Option<Duration>,
}

/// How far the removal of what a run wrote got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CleanupState {
    /// Everything is removed.
    Complete,
    /// It was to stay.
    Kept,
    /// Not all of it could be removed.
    Failed,
}

/// An error as the target or the system worded it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorSample {
    /// Its class.
    pub class: ErrorClass,
    /// The operation it ended.
    pub kind: OpKind,
    /// Where it happened.
    #[serde(rename = "endpoint_id", serialize_with = "serial::endpoint_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u16>"))]
    pub endpoint: Option<EndpointId>,
    /// The protocol's own number (HTTP status, errno), where it is known.
    pub status: Option<u16>,
    /// Its text.
    pub message: String,
}

/// What a process used of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Processor time of its own code.
    pub user: Duration,
    /// Processor time of the kernel on its behalf.
    pub system: Duration,
    /// How often a thread gave the processor away or lost it.
    pub context_switches: u64,
    /// Page faults that read from a medium.
    pub faults_major: u64,
    /// Other page faults.
    pub faults_minor: u64,
}

/// The op log held against the workers' own counters; both should be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpLogCheck {
    /// Rows of the stage in the op log.
    #[serde(rename = "rows_count")]
    pub rows: u64,
    /// Operations of the stage as counted by the workers.
    #[serde(rename = "ops_counted_count")]
    pub counted: u64,
}

impl OpLogCheck {
    /// Tells whether every operation that was counted is in the op log, and no other.
    pub fn is_whole(&self) -> bool {
        self.rows == self.counted
    }
}

/// How read content was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum VerificationMode {
    /// Every byte of every read.
    EveryByte,
    /// Every byte of what the run wrote; others were read as well.
    Partial,
    /// Whole reads against the checksum that the target states for what it holds.
    Checksum,
    /// The length only, because the content is not known.
    LengthOnly,
    /// Switched off; the length is still checked.
    Off,
}

/// How much read content was checked, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verification {
    /// How.
    pub mode: VerificationMode,
    /// Bytes compared; where only lengths are, bytes read.
    pub bytes: u64,
    /// With `partial`, bytes that were read and not compared.
    pub unverified_bytes: u64,
}

/// What the proofs said of the instrument that measured; of a certificate that cannot be read
/// nothing is known and nothing passed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CertificateLine {
    /// The version of plimsoll that was proved.
    pub tool_version: Option<String>,
    /// The machine it was proved on.
    pub machine: Option<String>,
    /// The seed of the proofs, in decimal digits.
    #[serde(serialize_with = "serial::display_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub seed: Option<u64>,
    /// How many proofs passed.
    pub passed_count: u64,
    /// How many did not.
    pub failed_count: u64,
    /// When, as the certificate says it.
    pub when: Option<String>,
}

impl From<&Certificate> for CertificateLine {
    fn from(certificate: &Certificate) -> Self {
        Self {
            tool_version: Some(certificate.tool_version.clone()),
            machine: Some(certificate.machine.clone()),
            seed: Some(certificate.seed),
            passed_count: certificate.count(Verdict::Pass) as u64,
            failed_count: certificate.count(Verdict::Fail) as u64,
            when: Some(certificate.made_at.clone()),
        }
    }
}

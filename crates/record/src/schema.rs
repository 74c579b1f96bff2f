//! The manifest `run.json`, and in a module of its own `summary.json`, as they stand in the files.
//!
//! A field that is not known is null, never 0. A change of what is written here needs a change of
//! the documents in `docs/formats/`, and a new version where an older reader would be misled.

mod agents;
mod check;
mod events;
mod evidence;
mod files;
mod histogram;
mod jobs;
mod merged;
mod probe;
mod scraped;
mod summary;
mod target;
mod workload;

use std::collections::BTreeMap;

use plimsoll_model::{EndReason, ErrorClass, OpKind, StageKind, WrongKind};
use plimsoll_workload::{ArrivalLaw, RateProfile};
use serde::{Deserialize, Serialize};

pub use agents::{Agent, AgentLoss, ClockReading};
pub(crate) use check::STAGES_MAX;
pub use events::Event;
pub use evidence::{
    ClientEvidence, DISTURBED_KEPT_MAX, DeviceEvidence, EVIDENCE_KEPT_MAX, InterfaceEvidence,
    ProcessorsEvidence, QuotaEvidence, SocketsEvidence, StandstillEvidence, ThreadEvidence,
    ThreadsEvidence, join_evidence,
};
use files::add;
pub use files::{FilesStage, ProcessUsage, sum_known};
pub use histogram::{Histogram, StoredHistogram};
pub use jobs::{MergedJob, StageJob, Verification};
pub use merged::{MergedRun, MergedStage};
pub use probe::StageProbe;
pub use scraped::ScrapedPage;
pub use summary::{Cell, Series, Summary, SummarySchema, Times};
pub use target::{FilesTarget, Target};
pub use workload::RecordedWorkload;

/// A document with the checksum of its file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checked<T> {
    /// What it is about.
    #[serde(flatten)]
    pub document: T,
    /// `crc64-nvme:` and the sixteen hexadecimal digits of the CRC-64/NVME of all bytes of the
    /// file, in which these digits count as sixteen `0`. Empty where somebody
    /// took it away.
    #[serde(default)]
    pub checksum: String,
}

/// The version of the manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RunSchema {
    /// The first version.
    #[default]
    #[serde(rename = "plimsoll.run/1")]
    V1,
}

impl RunSchema {
    /// The version this code writes and reads.
    pub const NAME: &'static str = "plimsoll.run/1";
}

/// What is known about a run, kept in `run.json`.
///
/// All `_ns` moments count from the run's epoch, whose wall time is `started_unix_ns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manifest {
    /// The version of this document.
    pub schema: RunSchema,
    /// The name of the run, also part of every key it writes.
    pub run_id: String,
    /// How far the run got.
    pub state: RunState,
    /// Why it was interrupted or failed.
    pub state_reason: Option<String>,
    /// What wrote the run.
    pub tool: Tool,
    /// The command line, secrets replaced.
    pub command_line: Vec<String>,
    /// Wall time of the run's epoch, nanoseconds since 1970-01-01T00:00:00Z.
    pub started_unix_ns: u64,
    /// The same in RFC 3339, UTC.
    pub started_at: String,
    /// The clock behind all moments of the run.
    pub clock: ClockInfo,
    /// The number that fixes all choices of the run.
    pub seed: u64,
    /// The machine that made the load.
    pub machine: Machine,
    /// What the load was put on.
    pub target: Target,
    /// Further targets; the ids of addresses go on through them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_targets: Vec<Target>,
    /// The workload as it was lowered; its own format is the workload file's.
    pub workload: RecordedWorkload,
    /// The stages in the order they ran; `stage` in the op log is an index into this list.
    pub stages: Vec<Stage>,
    /// What the recorder did; null until it has finished.
    pub recorder: Option<Recorder>,
    /// What became of the objects the run wrote.
    pub cleanup: Cleanup,
    /// Warnings about the trust of the result.
    pub advice: Vec<String>,
    /// Remarks on what the figures mean.
    pub notes: Vec<String>,
    /// The first failed operations of each class, with their texts.
    pub first_errors: Vec<FirstError>,
    /// The runs that were merged into this one; empty for a run of its own.
    pub merged: Vec<MergedRun>,
    /// Of a part that an agent of a fleet has carried out: what shows that it is the one which the
    /// run's coordinator gave out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    /// Those that carried it out, where that was not the process that recorded it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Agent>,
    /// Commands of the user's own that were run at instants of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Event>,
    /// Pages with a store's own metrics that were read while it lasted, see `scraped.jsonl`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scraped: Vec<ScrapedPage>,
    /// Whether its time was simulated: no store was asked, and no moment is one of a machine.
    #[serde(default, skip_serializing_if = "is_false")]
    pub virtual_time: bool,
    /// What `plimsoll prove` had found on the machine, as that command wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<serde_json::Value>,
}

impl Manifest {
    /// Returns all targets, in the order of the plan.
    pub fn targets(&self) -> impl Iterator<Item = &Target> + Clone {
        std::iter::once(&self.target).chain(&self.more_targets)
    }

    /// Returns all targets, to be changed.
    pub fn targets_mut(&mut self) -> impl Iterator<Item = &mut Target> {
        std::iter::once(&mut self.target).chain(&mut self.more_targets)
    }

    /// Returns what members are called: `file` where all targets call them so, else `object`.
    pub fn noun(&self) -> &'static str {
        let has_files = |of: &Target| of.has_collections() || of.has_directories();
        if self.targets().all(has_files) { "file" } else { "object" }
    }

    /// Returns of each target the first of its addresses and how many it has.
    pub(crate) fn endpoints_by_target(&self) -> impl Iterator<Item = (usize, usize)> {
        let mut first = 0;
        self.targets().map(move |target| {
            let own = (first, target.endpoints.len());
            first += target.endpoints.len();
            own
        })
    }

    /// Returns which target an address is of.
    pub(crate) fn target_of(&self, endpoint: u16) -> Option<usize> {
        let endpoint = usize::from(endpoint);
        self.endpoints_by_target().position(|(first, count)| endpoint < first + count)
    }

    /// Returns the addresses of all targets, in the order of their ids.
    pub fn endpoints(&self) -> impl Iterator<Item = &String> + Clone {
        self.targets().flat_map(|target| &target.endpoints)
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

pub(crate) fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// How far a run got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// It runs, or was killed.
    Running,
    /// All stages ended as planned.
    Complete,
    /// The user ended it early; what is there is valid.
    Interrupted,
    /// It could not go on.
    Failed,
}

/// What wrote the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tool {
    /// Its name; null where merged runs differ in it.
    pub name: Option<String>,
    /// Its version; null where that is not known, and where merged runs differ in it.
    pub version: Option<String>,
    /// The commit that it was built of, as `git describe` names it; null where that is not known.
    pub commit: Option<String>,
    /// The profile of Cargo that it was built with, such as `dist`, `release` or `dev`; absent of
    /// another tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// What it was built for, as Rust names targets; absent of another tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_for: Option<String>,
}

/// A clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockInfo {
    /// Where its time comes from; null where merged runs differ in it.
    pub source: Option<String>,
    /// Its smallest step.
    pub resolution_ns: Option<u64>,
}

/// The machine that made the load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// Its name.
    pub hostname: Option<String>,
    /// Name and version of its kernel.
    pub kernel: Option<String>,
    /// The model of its processors.
    pub cpu_model: Option<String>,
    /// Which of the processor features that change what an operation costs were there to use, by
    /// the names that Rust gives them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_features: Vec<String>,
    /// How many cores the run could use.
    pub cores_count: Option<u32>,
    /// Its main memory.
    pub memory_bytes: Option<u64>,
    /// How much of it the control group of the run allowed, as a container's limit does; null for
    /// no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
}

/// A stage of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stage {
    /// Its position in the list, 0-based.
    pub index: u8,
    /// What it is for.
    pub kind: StageKind,
    /// Its name.
    pub name: String,
    /// Which repetition of the stage it is, 0-based.
    pub iteration: u32,
    /// Which stage of the workload it is, 0-based, where repeated ones and steps are taken one by
    /// one; absent where it is none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_index: Option<u16>,
    /// What decides when an operation starts: that of its jobs that leaves the target the least
    /// say.
    pub loop_model: LoopModel,
    /// How many loops issue operations, one at a time each.
    pub workers_count: u32,
    /// How many threads carry them.
    pub threads_count: u32,
    /// When it began.
    pub started_ns: Option<u64>,
    /// When its last worker ended; what the recorder did afterwards is not in it.
    pub ended_ns: Option<u64>,
    /// What ended it: the stop rule that held, the user, or a failure.
    pub ended_by: Option<EndReason>,
    /// In words and figures why a stop rule held; null where none ended it.
    pub ended_because: Option<String>,
    /// How many operations ended in it, failed ones included.
    pub ops_count: Option<u64>,
    /// How many of them failed.
    pub ops_failed_count: Option<u64>,
    /// Bytes moved by the successes.
    pub bytes: Option<u64>,
    /// User and system CPU time of the workers and the recorder.
    pub cpu_ns: Option<u64>,
    /// The jobs, in the order of their numbers in the op log.
    pub jobs: Vec<StageJob>,
    /// A hash of all operations as they were planned, 16 hexadecimal digits: the same for the same
    /// workload and seed as long as operations succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_hash: Option<String>,
    /// How many uploads in parts that failed operations had begun were given up after these, in the
    /// time of no operation; absent for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uploads_given_up_count: u64,
    /// How many of them could not be given up; their parts were left to the cleaning.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uploads_left_count: u64,
    /// What was wrong with content that was read; a kind that is not named was not seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrong: Vec<WrongCount>,
    /// Of a stage that reads back what was acknowledged: what the target calls the objects that
    /// were not as they had been, by `object/OWNER/NUMBER`, a thousand at most. Absent where keys
    /// tell, of a stage that agents carried out, and in merged records.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub server_names: BTreeMap<String, String>,
    /// What is known of a stage on files; absent for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FilesStage>,
    /// What it was to a search of the workload; absent where it was no probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<StageProbe>,
    /// What was seen of the clients while it ran, each by itself; absent in virtual time and where
    /// nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<ClientEvidence>,
}

impl Stage {
    /// Returns a stage of which nothing has happened yet, with its workers and the threads that
    /// carry them.
    pub fn begun(
        index: u8,
        kind: StageKind,
        name: &str,
        loop_model: LoopModel,
        (workers_count, threads_count): (u32, u32),
    ) -> Self {
        Self {
            index,
            kind,
            name: name.to_owned(),
            iteration: 0,
            loop_model,
            workers_count,
            threads_count,
            started_ns: None,
            ended_ns: None,
            ended_by: None,
            ended_because: None,
            ops_count: None,
            ops_failed_count: None,
            bytes: None,
            cpu_ns: None,
            jobs: Vec::new(),
            planned_index: None,
            stream_hash: None,
            uploads_given_up_count: 0,
            uploads_left_count: 0,
            wrong: Vec::new(),
            server_names: BTreeMap::new(),
            files: None,
            probe: None,
            evidence: Vec::new(),
        }
    }
}

/// How an open loop kept its schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Schedule {
    /// The rate over all workers, as in the workload; of merged runs, that of each.
    pub rates: Vec<RateProfile>,
    /// How the arrivals lay about the rates, each law once.
    pub arrivals: Vec<ArrivalLaw>,
    /// How many operations could be under way at once.
    pub max_in_flight: u32,
    /// From when on operations that were due counted, since the start of the stage: from the end of
    /// the first worker's ramp. Absent where the run was killed before it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_from_ns: Option<u64>,
    /// Until when, since the start of the stage: to the end of the duration, or to the moment at
    /// which something else ended the schedule; operations under way are not waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_until_ns: Option<u64>,
    /// How many operations were due in that time.
    pub offered_count: Option<u64>,
    /// How many of these were issued more than 1 ms after they were due.
    pub late_count: Option<u64>,
    /// How many of these were never issued.
    pub skipped_count: Option<u64>,
    /// How many of these a replay held back when they were due, as an earlier operation on the same
    /// object had not ended; they are not among the late ones. Absent for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_count: u64,
    /// The longest time from when an operation was due to when it was issued, of those that were
    /// not held back.
    pub delay_max_ns: Option<u64>,
}

/// How often content was wrong in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WrongCount {
    /// The way.
    pub kind: WrongKind,
    /// How many reads.
    pub count: u64,
}

impl Schedule {
    /// Returns the schedule of runs that went on at the same time; `None` where none had one.
    pub fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Option<Self> {
        let both = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
        all.cloned().reduce(|mut sum, each| {
            // In an order that does not depend on that of the runs.
            sum.rates.extend_from_slice(&each.rates);
            sum.rates.sort_by(|a, b| a.partial_cmp(b).expect("rates are numbers"));
            sum.arrivals.extend_from_slice(&each.arrivals);
            sum.arrivals.sort_unstable();
            sum.arrivals.dedup();
            sum.max_in_flight = sum.max_in_flight.saturating_add(each.max_in_flight);
            let spans = sum.offered_span().into_iter().chain(each.offered_span());
            let span = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
            (sum.offered_from_ns, sum.offered_until_ns) = span.unzip();
            sum.offered_count = both(sum.offered_count, each.offered_count);
            sum.late_count = both(sum.late_count, each.late_count);
            sum.skipped_count = both(sum.skipped_count, each.skipped_count);
            sum.held_count = sum.held_count.saturating_add(each.held_count);
            sum.delay_max_ns = sum.delay_max_ns.zip(each.delay_max_ns).map(|(a, b)| a.max(b));
            sum
        })
    }

    /// Returns from when to when its operations were due that are counted, since the start of the
    /// stage, in nanoseconds; `None` where the run was killed before it was known.
    pub fn offered_span(&self) -> Option<(u64, u64)> {
        self.offered_from_ns.zip(self.offered_until_ns)
    }

    /// Returns all counts that are added to those of other runs.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> {
        let counts = [self.offered_count, self.late_count, self.skipped_count];
        counts.into_iter().flatten().chain([self.held_count])
    }
}

impl WrongCount {
    /// Returns the counts of each kind, added up.
    pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Vec<Self> {
        let mut sums: BTreeMap<WrongKind, u64> = BTreeMap::new();
        for Self { kind, count } in all {
            let sum = sums.entry(*kind).or_insert(0);
            *sum = add(*sum, *count);
        }
        sums.into_iter().map(|(kind, count)| Self { kind, count }).collect()
    }
}

/// What decides when an operation starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LoopModel {
    /// The end of the one before.
    Closed,
    /// The end of the one before, and a cap on the rate.
    Capped,
    /// A schedule, whatever the target does.
    Open,
}

/// What the recorder did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recorder {
    /// Operations in closed parts of the op log.
    pub rows_count: u64,
    /// Closed parts of the op log.
    pub parts_count: u32,
    /// Time that workers waited for the recorder, all workers added up.
    pub wait_ns: u64,
}

/// What became of the objects the run wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cleanup {
    /// How far the removal got.
    pub state: CleanupState,
    /// How many objects and files were removed.
    pub objects_removed_count: Option<u64>,
    /// How many of them were files; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_removed_count: Option<u64>,
    /// How long that took.
    pub took_ns: Option<u64>,
}

/// How far the removal of the run's objects got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CleanupState {
    /// The run wrote nothing that would have to be removed.
    NotNeeded,
    /// Still to be done.
    Pending,
    /// Everything is removed.
    Complete,
    /// The user asked to keep the objects.
    Kept,
    /// Some objects could not be removed.
    Failed,
}

/// A failed operation, kept as an example of its class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirstError {
    /// The class of its outcome, as in the op log.
    pub class: ErrorClass,
    /// What it did, as in the op log.
    pub kind: OpKind,
    /// The address it went to.
    pub endpoint: Option<String>,
    /// When it ended.
    pub at_ns: Option<u64>,
    /// Its stage, an index into the list of stages; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_index: Option<u8>,
    /// Its job, an index into the jobs of the stage; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_index: Option<u8>,
    /// The protocol's own number (HTTP status, of files the system's); null where it is not known.
    pub status: Option<u16>,
    /// What was said, secrets replaced.
    pub message: String,
}

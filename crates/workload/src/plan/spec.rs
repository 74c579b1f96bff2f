//! The workload file as people write it: targets, sets, stages and jobs.

mod blocks;
mod choice;
mod job;
mod named;
mod named_set;
mod replay;
mod set;
mod target;
mod work;
mod work_sets;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

pub use blocks::{
    BlockLaw, BlockOrder, BlockSizes, BlocksSpec, ReadBlocks, SECTOR_BYTES, SyncSpec, WriteBlocks,
};
#[cfg(feature = "schema")]
use choice::or_short;
pub use choice::{
    Choice, ContentSpec, DataFileSpec, LengthLaw, Limit, OneOrMany, PickSpec, RangeSpec,
    RangeWithin, Share, Shares, SizeLaw, SizeSpec, SizeSteps,
};
pub use job::{
    Arrivals, CappedEach, DealBy, DealSpec, InterfaceSpec, JobSpec, OpenSpec, PacingSpec, RateSpec,
    Step, ThinkSpec,
};
pub use named::Named;
pub(crate) use named_set::CONTENT_SEED;
pub use named_set::{FilesOf, NamedSet, NamesOf};
pub use replay::{ReplaySpec, TRACE_FORMATS, TraceOf, TraceSet};
pub(crate) use set::NAME_FORMAT;
pub use set::{
    AlsoOn, ArchiveKind, ExistingOf, ExistingSet, FileSet, KeysSpec, ListedSet, ObjectSet, PathSet,
    SetSpec, TreeOf, TreeSet,
};
pub use target::{
    FilesTarget, Lookup, NullTarget, OracleTarget, QueueSpec, S3Signature, S3Target, SeaweedAssign,
    SeaweedTarget, SeaweedUpload, SwiftAuth, SwiftManifest, SwiftTarget, TargetSpec, Targets,
};
pub(crate) use work::LIST_PAGE;
pub use work::{
    AppendSpec, ArchiveSpec, DeleteOp, FanoutSpec, GetOp, GetPart, GetZip, ListOp, OpSpec,
    PartsSpec, PostOp, PutAs, PutOp, PutParts, PutTar, RetentionSpec, StatOp, VersionPick,
    WorkSpec,
};
pub use work_sets::{
    BucketsSpec, CreateNames, FillSpec, MakeTree, NamesSpec, OpenNames, RemoveNames, RemoveSpec,
    RemoveTree, RenameNames, StatNames,
};

use super::local::{names_a_file, names_what_is_sent};
use super::rules::{SloSpec, UntilSpec};
use super::tree::{Tree, TreeError};
use super::units::{Percent, RateRange, Time};

/// The schema's name and version.
pub const WORKLOAD_SCHEMA: &str = "plimsoll.workload/2";

/// A workload: what is done, to what, where, and when it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct WorkloadFile {
    /// `plimsoll.workload/2`.
    pub schema: String,
    /// What the run is called, such as `nightly`.
    #[serde(default = "workload_name")]
    pub name: String,
    /// Fixes every choice of the run. Left out, one is drawn when the run starts, and recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether every byte that is read is checked.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub verify: bool,
    /// Whether a stage goes on whose operations all fail alike from its first on. Left out, the run
    /// ends once that lasts for two seconds and a hundred operations: the next would fail as well.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keep_going: bool,
    /// Where the load goes. Left out, it is the one target that is named when the run starts.
    #[serde(default, skip_serializing_if = "Targets::is_given")]
    pub targets: Targets,
    /// What there is: named populations, shared by stages and jobs.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub sets: Named<SetSpec>,
    /// What is done, one stage after the other.
    pub stages: Vec<StageSpec>,
}

// Other crates hold workloads in documents of their own. By these two every format passes through
// one tree, so that what reads and writes the types of the language is compiled here and only here:
// it was a quarter of the code of `record` and of `fleet`.
impl<'de> Deserialize<'de> for WorkloadFile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::from_tree(Tree::deserialize(from)?).map_err(D::Error::custom)
    }
}

impl Serialize for WorkloadFile {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(to)
    }
}

impl WorkloadFile {
    /// Reads a workload from a tree; a refusal names the field.
    pub(super) fn from_tree(tree: Tree) -> Result<Self, TreeError> {
        Self::deserialize(tree)
    }

    fn to_value(&self) -> Value {
        Self::serialize(self, serde_json::value::Serializer).expect("it holds text keys only")
    }
}

super::tree::by_key! {
    /// One stage.
    pub enum StageSpec {
        /// Stages that are done several times over.
        Repeat(RepeatStage) by "repeat",
        /// A stage that is made anew until a condition is met.
        Search(SearchStage) by "search",
        ;
        /// Jobs that run at once; without any, a pause.
        Jobs(WorkStage),
    }
}

/// Jobs that run at once. Nothing of the next stage begins before all of them have ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkStage {
    /// What it is called. Left out, `prepare` where it prepares, otherwise `stage-` and its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether it only makes what later stages need and is no result.
    #[serde(default, skip_serializing_if = "is_false")]
    pub prepares: bool,
    /// Whether it is left out where the target does not offer what its jobs need, instead of the
    /// run being refused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub if_offered: bool,
    /// Which repetition it is, 0-based, where the file itself lists the repetitions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub iteration: u32,
    /// How long each worker of its jobs lasts at most, counted from the end of its own ramp: start
    /// delays and ramps come on top. A stage without jobs is a pause of this length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Time>,
    /// After how many operations of all its jobs it ends, those of ramps included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<u64>,
    /// Ends it before that: once `steady` holds, or once all of the other rules hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub until: Vec<UntilSpec>,
    /// Whether what is cached of the run's own files is dropped before it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub drop_caches: bool,
    /// Whether the first failed operation ends the whole run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub end_on_failure: bool,
    /// What is done at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobSpec>,
}

/// Stages that are done several times over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RepeatStage {
    /// How often, and what.
    pub repeat: RepeatSpec,
}

/// Stages and how often they are done, all of them in turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RepeatSpec {
    /// How often; at least 1.
    pub times: u32,
    /// The stages.
    pub stages: Vec<StageSpec>,
}

/// A stage that is made anew until a condition is met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SearchStage {
    /// What it is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is looked for.
    pub search: SearchSpec,
}

/// The highest rate that meets all conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SearchSpec {
    /// Between which rates it is looked for; the search begins with the lowest. Left out, a closed
    /// loop tells where to begin, and nothing but the store ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateRange>,
    /// What each probe is held against, such as `p99<=20ms` and `errors<=0.1%`.
    pub slo: Vec<SloSpec>,
    /// How closely the rate is to be known.
    #[serde(default = "five_percent", skip_serializing_if = "is_five_percent")]
    pub precision: Percent,
    /// How long all probes together last at most.
    #[serde(default = "ten_minutes", skip_serializing_if = "is_ten_minutes")]
    pub budget: Time,
    /// How arrivals lie about the rate: `constant` or `poisson`.
    #[serde(default = "Arrivals::poisson", skip_serializing_if = "Arrivals::is_poisson")]
    pub arrivals: Arrivals,
    /// How many operations may be under way at once.
    #[serde(default = "job::in_flight", skip_serializing_if = "job::is_in_flight")]
    pub max_in_flight: u32,
    /// Which job has the rate; the only one may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The stage of each probe. The search says how long each lasts.
    pub stage: WorkStage,
}

impl SearchSpec {
    /// Returns the search for the highest rate of a stage's only job that meets these conditions,
    /// with what a file that says nothing else means.
    pub fn of(slo: Vec<SloSpec>, stage: WorkStage) -> Self {
        Self {
            rate: None,
            slo,
            precision: five_percent(),
            budget: ten_minutes(),
            arrivals: Arrivals::poisson(),
            max_in_flight: job::in_flight(),
            job: None,
            stage,
        }
    }
}

impl WorkStage {
    /// Returns a stage of these jobs that nothing limits.
    pub fn of(name: &str, jobs: Vec<JobSpec>) -> Self {
        Self { name: Some(name.to_owned()), jobs, ..Self::default() }
    }
}

impl WorkloadFile {
    /// Returns a workload of these stages on the target that is named when the run starts.
    pub fn new(name: &str, sets: Named<SetSpec>, stages: Vec<StageSpec>) -> Self {
        Self {
            schema: WORKLOAD_SCHEMA.to_owned(),
            name: name.to_owned(),
            seed: None,
            verify: true,
            keep_going: false,
            targets: Targets::Given,
            sets,
            stages,
        }
    }

    /// Returns the stages that are neither repeated nor searched.
    pub fn work_stages(&self) -> impl Iterator<Item = &WorkStage> {
        self.stages.iter().filter_map(|stage| match stage {
            StageSpec::Jobs(stage) => Some(stage),
            StageSpec::Repeat(_) | StageSpec::Search(_) => None,
        })
    }
}

fn workload_name() -> String {
    "workload".to_owned()
}

fn ten_minutes() -> Time {
    Time(std::time::Duration::from_secs(600))
}

fn is_ten_minutes(value: &Time) -> bool {
    *value == ten_minutes()
}

fn five_percent() -> Percent {
    Percent(5.0)
}

fn is_five_percent(value: &Percent) -> bool {
    *value == five_percent()
}

fn yes() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn one() -> u32 {
    1
}

fn is_one(value: &u32) -> bool {
    *value == 1
}

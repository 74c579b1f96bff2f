//! A run on files of version 1 as written: stages of jobs, each on blocks of files or on names in
//! directories.

mod check;

use plimsoll_model::{Interface, SyncMode};
use serde::{Deserialize, Serialize};

use super::by_name;
use crate::plan::spec::TreeOf;

/// The schema's name and version.
pub const FILES_SCHEMA: &str = "plimsoll.files/1";

/// A run on files as written. Paths below a `directory` come to lie in a directory of the run's
/// own: `<directory>/plimsoll/<run>/...`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FilesSpec {
    /// `plimsoll.files/1`.
    pub schema: String,
    /// What the run is called, such as `file-iops`.
    pub name: String,
    /// Fixes every choice of the run.
    pub seed: u64,
    /// Whether every byte is checked that is read of what the run wrote.
    pub verify: bool,
    /// The stages in order; none begins before the one before it has ended.
    pub stages: Vec<FileStageSpec>,
}

/// Jobs that run at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FileStageSpec {
    /// What it is called, such as `read-iops`; of repeated stages the same each time.
    pub name: String,
    /// Which repetition it is, 0-based.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub iteration: u32,
    /// Whether it only makes what later stages need and is no result.
    #[serde(default, skip_serializing_if = "is_false")]
    pub prepares: bool,
    /// Whether the stage's own files are dropped from caches before it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub drop_caches: bool,
    /// Whether the first failed operation ends the whole run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub end_on_failure: bool,
    /// The jobs.
    pub jobs: Vec<FileJobSpec>,
}

/// Work that one or several clones do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FileJobSpec {
    /// What it is called.
    pub name: String,
    /// Jobs of one group are reported in one row.
    pub group: u32,
    /// How many workers do it, each on its own.
    pub clones: u32,
    /// How many operations each clone keeps in flight.
    pub depth: u32,
    /// `io_uring`, `libaio` or `psync`; absent: the first of them that the machine allows.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "by_name::interface")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub interface: Option<Interface>,
    /// How long after the stage's start each clone begins; drawn from the range.
    #[serde(default, skip_serializing_if = "SpanSpec::is_zero")]
    pub start_delay_ns: SpanSpec,
    /// How long it runs before what is measured begins; on top of `duration_ns`.
    #[serde(default, skip_serializing_if = "is_zero_64")]
    pub ramp_ns: u64,
    /// How long it lasts at most; absent: until all is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// After how many operations a clone ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops_max: Option<u64>,
    /// After how many bytes a clone ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
    /// When operations start.
    pub pacing: FilePacingSpec,
    /// Pauses between operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<ThinkSpec>,
    /// What is done.
    pub work: FileWorkSpec,
}

/// From the least to the most; both belong to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SpanSpec {
    /// The least.
    pub min: u64,
    /// The most.
    pub max: u64,
}

impl SpanSpec {
    /// Returns the span of one value.
    pub const fn of(value: u64) -> Self {
        Self { min: value, max: value }
    }

    fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

/// When the operations of a job start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum FilePacingSpec {
    /// The next one when the one before has ended.
    Closed,
    /// As closed, with a cap on each clone.
    Capped {
        /// The cap on reads.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        read: Option<CapSpec>,
        /// The cap on writes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        write: Option<CapSpec>,
        /// Whether gaps are random, as of arrivals without memory, instead of even.
        #[serde(default, skip_serializing_if = "is_false")]
        poisson: bool,
    },
    /// On a schedule, whatever the files do. `depth` says nothing then.
    Open {
        /// Operations a second over all clones, as in a workload file: `1000/s`.
        rate: String,
        /// `constant` or `poisson`.
        arrivals: String,
        /// How many operations may be under way at once, over all clones.
        max_in_flight: u32,
    },
}

/// A cap on one clone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum CapSpec {
    /// Bytes a second.
    BytesPerSec(f64),
    /// Operations a second.
    OpsPerSec(f64),
}

/// Pauses between the operations of a clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ThinkSpec {
    /// How long a pause is, counted from the end of the last operation in flight.
    pub pause_ns: u64,
    /// How much of it is spent computing instead of sleeping.
    #[serde(default, skip_serializing_if = "is_zero_64")]
    pub spin_ns: u64,
    /// After how many operations it comes.
    pub every_ops: u32,
}

/// What a job does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum FileWorkSpec {
    /// Fills the files of other jobs, shared out among the clones by pieces of 64 MiB.
    Fill(FillSpec),
    /// Reads and writes blocks of files.
    Blocks(BlocksSpec),
    /// Makes, looks at and removes names.
    Names(NamesSpec),
}

/// Files to be filled with content from their first to their last byte. Those that a stage before
/// has filled are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FillSpec {
    /// The files; of each, those of `clones` clones.
    pub files: Vec<FillFilesSpec>,
    /// Bytes of one write.
    pub block_bytes: u32,
    /// Whether the page cache is passed by.
    pub direct: bool,
}

/// The files of one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FillFilesSpec {
    /// How the job is called, where its files' names say so.
    pub job: String,
    /// How many clones it has.
    pub clones: u32,
    /// Its files.
    pub files: JobFilesSpec,
}

/// The files of a job. Two jobs, or clones, that come to the same path use the same file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JobFilesSpec {
    /// Where they lie; dealt to the clones in turn. At least one.
    pub directories: Vec<String>,
    /// Their names, which all clones share. Empty: names are made by `name_format`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// How names are made: `$jobname`, `$jobnum` (the clone, 0-based) and `$filenum` are replaced.
    #[serde(default = "name_format_default")]
    pub name_format: String,
    /// How many files each clone has, where names are made.
    #[serde(default = "one")]
    pub count: u32,
    /// How large each is; drawn from the range.
    pub size_bytes: SpanSpec,
    /// Whether they already exist and are taken as they are: nothing is made, filled or
    /// removed, and what is read is not checked. `names` are whole paths then.
    #[serde(default, skip_serializing_if = "is_false")]
    pub existing: bool,
    /// Whether files that were there already may be written to, devices too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub destroys: bool,
}

/// Reading and writing blocks of files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BlocksSpec {
    /// The files.
    pub files: JobFilesSpec,
    /// Out of a hundred operations, how many are reads.
    pub read_percent: u32,
    /// How large blocks are that are read.
    pub read_blocks: BlockSizesSpec,
    /// How large blocks are that are written.
    pub write_blocks: BlockSizesSpec,
    /// Which block comes next.
    pub order: BlockOrderSpec,
    /// Whether it begins anew when all has been read or written once.
    pub repeats: bool,
    /// Whether random choices are those of this seed instead of the run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether the page cache is passed by.
    #[serde(default, skip_serializing_if = "is_false")]
    pub direct: bool,
    /// Whether each write is on the medium when it returns: `off`, `sync`, `dsync`.
    #[serde(default, skip_serializing_if = "is_sync_off", with = "by_name::sync_mode")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub sync: SyncMode,
    /// After how many writes of a clone an `fsync` follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsync_every: Option<u32>,
    /// After how many writes of a clone an `fdatasync` follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fdatasync_every: Option<u32>,
    /// Whether an `fsync` of each file ends the job.
    #[serde(default, skip_serializing_if = "is_false")]
    pub end_fsync: bool,
    /// Whether what is cached of the files is dropped before the job.
    #[serde(default, skip_serializing_if = "is_false")]
    pub invalidates: bool,
}

impl BlocksSpec {
    /// Tells whether blocks are written.
    pub const fn writes(&self) -> bool {
        self.read_percent < 100
    }
}

/// How large blocks are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum BlockSizesSpec {
    /// All alike.
    FixedBytes(u64),
    /// Drawn evenly from a range, rounded down to a multiple of its least.
    RangeBytes(SpanSpec),
    /// Drawn by weight.
    Shares(Vec<BlockShareSpec>),
}

/// One size of blocks and how often it is drawn, relative to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BlockShareSpec {
    /// The size.
    pub size_bytes: u64,
    /// How often.
    pub weight: u32,
}

/// Which block comes next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum BlockOrderSpec {
    /// One after the other.
    Sequential,
    /// Drawn alike; of each pass through a file every block comes once, in random order.
    EachOnce,
    /// Drawn alike, whatever came before.
    Uniform,
    /// By Zipf's law: the block of rank r in proportion to r^-theta.
    Zipf {
        /// The exponent, above 0 and not 1.
        theta: f64,
    },
    /// By a Pareto distribution with fio's parameter, between 0 and 1.
    Pareto {
        /// The parameter.
        h: f64,
    },
    /// By a normal distribution around the middle of the file.
    Normal {
        /// Its standard deviation, in percent of the file.
        deviation_percent: f64,
    },
}

/// Making, looking at and removing names: one step of what mdtest does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NamesSpec {
    /// The tree.
    pub tree: TreeSpec,
    /// What is done.
    pub act: NameActSpec,
    /// By how many clones the names are moved on: clone c works on what clone c + shift made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shift: u32,
    /// Whether entries come in random order instead of that in which they were made.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shuffled: bool,
}

/// Directories and the entries in them. Stages with the same tree work on the same names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TreeSpec {
    /// Where they lie; with several, clone c is in the one of number c modulo their count.
    pub directories: Vec<String>,
    /// The top directory's name, such as `test-dir.0-0`.
    pub name: String,
    /// How many levels of directories there are below the top one.
    pub depth: u32,
    /// How many directories each directory has below it.
    pub branching: u32,
    /// How many entries each clone has in each directory.
    pub entries_per_directory: u64,
    /// Whether only directories of the lowest level hold entries.
    #[serde(default, skip_serializing_if = "is_false")]
    pub leaves_only: bool,
    /// Whether each clone has a tree of its own.
    pub per_clone: bool,
    /// Whether all clones use the same names instead of names of their own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared_names: bool,
    /// Whether entries are directories instead of files.
    #[serde(default, skip_serializing_if = "is_false")]
    pub of_directories: bool,
}

impl TreeSpec {
    /// Returns what it looks like, in today's words.
    pub(crate) fn shape(&self) -> TreeOf {
        TreeOf {
            name: Some(self.name.clone()),
            depth: self.depth,
            branching: self.branching,
            entries: self.entries_per_directory,
            leaves_only: self.leaves_only,
            per_worker: self.per_clone,
            shared_names: self.shared_names,
            of_directories: self.of_directories,
        }
    }
}

/// What is done to names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum NameActSpec {
    /// Makes the directories of the tree.
    MakeTree,
    /// Makes the entries; files get so many bytes.
    Create {
        /// Bytes written to each file.
        bytes: u32,
        /// Whether each is put on the medium before it is closed.
        fsync: bool,
    },
    /// Reads the entries' attributes.
    Stat,
    /// Opens files, reads so many bytes, closes them.
    Open {
        /// Bytes read of each file.
        bytes: u32,
    },
    /// Gives entries other names: entry 0 a spare one, entry i that of entry i - 1, and at last the
    /// spare one that of the last but one, as mdtest does.
    Rename,
    /// Removes the entries.
    Remove,
    /// Removes the directories of the tree.
    RemoveTree,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_zero_64(value: &u64) -> bool {
    *value == 0
}

fn is_sync_off(mode: &SyncMode) -> bool {
    *mode == SyncMode::Off
}

fn name_format_default() -> String {
    "$jobname.$jobnum.$filenum".to_owned()
}

fn one() -> u32 {
    1
}

//! Work on blocks of files, as written.

use plimsoll_model::SyncMode;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Shares, is_false};
use crate::plan::tree::{Tree, scalar_or};
use crate::plan::units::{Percent, Size, SizeRange, written};

/// What the page cache can be passed by in multiples of.
pub const SECTOR_BYTES: u64 = 512;

/// Reads and writes blocks of files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BlocksSpec {
    /// The set.
    pub on: String,
    /// Reads blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<ReadBlocks>,
    /// Writes blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<WriteBlocks>,
    /// Which block comes next.
    #[serde(default, skip_serializing_if = "BlockOrder::is_default")]
    pub order: BlockOrder,
    /// Whether it begins anew when all has been read or written once; left out, it does where a
    /// duration, operations or bytes end the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<bool>,
    /// Fixes random choices instead of the run's seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether the page cache is passed by.
    #[serde(default, skip_serializing_if = "is_false")]
    pub direct: bool,
    /// Whether each write is on the medium when it returns: `off`, `sync` or `dsync`.
    #[serde(default, skip_serializing_if = "SyncSpec::is_off")]
    pub sync: SyncSpec,
    /// After how many writes of a worker an `fsync` follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsync_every: Option<u32>,
    /// After how many writes of a worker an `fdatasync` follows.
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
    /// Returns work on a set's blocks that neither reads nor writes yet.
    pub fn of(set: &str) -> Self {
        Self {
            on: set.to_owned(),
            read: None,
            write: None,
            order: BlockOrder::default(),
            repeats: None,
            seed: None,
            direct: false,
            sync: SyncSpec::default(),
            fsync_every: None,
            fdatasync_every: None,
            end_fsync: false,
            invalidates: false,
        }
    }

    /// Returns work that reads so much of a hundred blocks, and writes the others.
    pub fn mixed(read_percent: u32, read: BlockSizes, write: BlockSizes) -> Self {
        let percent = (1..100).contains(&read_percent).then(|| Percent(read_percent.into()));
        Self {
            read: (read_percent > 0).then_some(ReadBlocks { block: read, percent }),
            write: (read_percent < 100).then_some(WriteBlocks { block: write }),
            ..Self::of("")
        }
    }
}

/// Reads of blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReadBlocks {
    /// How large they are.
    pub block: BlockSizes,
    /// Beside writes: which share of all operations reads are, in whole percent. Half when left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percent: Option<Percent>,
}

/// Writes of blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WriteBlocks {
    /// How large they are.
    pub block: BlockSizes,
}

/// How large blocks are: `4KiB`, or drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum BlockSizes {
    /// All alike.
    Fixed(Size),
    /// Drawn.
    Drawn(BlockLaw),
}

/// How sizes of blocks are drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum BlockLaw {
    /// From a range, both ends included: multiples of its least, each as often as the next, and its
    /// most: `4KiB..64KiB`.
    Range(SizeRange),
    /// By weight: `[{4KiB: 60}, {64KiB: 40}]`.
    Shares(Shares<Size>),
}

impl<'de> Deserialize<'de> for BlockSizes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        scalar_or(Tree::deserialize(from)?, Self::Fixed, Self::Drawn)
    }
}

/// Which block comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum BlockOrder {
    /// One after the other.
    Sequential,
    /// Drawn alike; of each pass through a file every block comes once, in random order.
    #[default]
    EachOnce,
    /// Drawn alike, whatever came before.
    Uniform,
    /// By Zipf's law with this exponent, above 0 and not 1.
    Zipf(f64),
    /// By a Pareto distribution with fio's parameter, between 0 and 1.
    Pareto(f64),
    /// By a normal distribution around the middle of the file, with this standard deviation as a
    /// share of the file.
    Normal(Percent),
}

impl BlockOrder {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether each write is on the medium when it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncSpec(pub SyncMode);

written!(SyncSpec, "one of off, sync and dsync", "dsync");

impl SyncSpec {
    fn is_off(&self) -> bool {
        self.0 == SyncMode::Off
    }
}

impl std::str::FromStr for SyncSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        SyncMode::from_name(text).map(Self).ok_or_else(|| "there is no such mode".to_owned())
    }
}

impl std::fmt::Display for SyncSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

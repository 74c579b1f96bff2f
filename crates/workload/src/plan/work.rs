//! What a job does, checked.

use std::num::NonZeroU32;
use std::time::Duration;

use plimsoll_model::SyncMode;

use super::Pattern;
use super::checked::SetIndex;
use super::path::FieldPath;
use super::spec::{BlockOrder, BlockSizes, Choice, PickSpec, PutAs, VersionPick};
use crate::SizeDist;
use crate::files::{NameAct, greatest_common};

/// What a job does.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Operations on whole objects, drawn by weight.
    Objects(Vec<Op>),
    /// Uploads new members in parts, one upload a worker.
    PutParts {
        /// The set.
        set: SetIndex,
        /// How many parts each has; `None`: as many as its size needs.
        parts: Option<NonZeroU32>,
        /// How large a part is.
        part_bytes: u64,
        /// How many parts of an upload are under way at a time.
        at_once: NonZeroU32,
    },
    /// Reads one part of a member.
    GetPart {
        /// The set.
        set: SetIndex,
        /// Which of all parts of all members.
        pick: Choice,
        /// How large a part is.
        part_bytes: u64,
    },
    /// Adds to the end of objects of the worker's own.
    Append {
        /// The set.
        set: SetIndex,
        /// After so many parts comes another object.
        parts: NonZeroU32,
        /// How much is added at a time.
        sizes: SizeDist,
    },
    /// Reads one file of a zip archive.
    GetFromZip {
        /// The set.
        set: SetIndex,
        /// Which file.
        pick: Choice,
    },
    /// Uploads tar archives that the store takes apart.
    PutTar {
        /// The set.
        set: SetIndex,
        /// How many members an archive has.
        members: NonZeroU32,
        /// Whether it is compressed.
        compress: bool,
    },
    /// Uploads one content that the store writes under several names.
    Fanout {
        /// The set.
        set: SetIndex,
        /// How many names.
        copies: NonZeroU32,
    },
    /// Sets until when members may not be removed.
    Retention {
        /// The set.
        set: SetIndex,
        /// For how long from then on.
        hold: Duration,
        /// Which member.
        pick: Choice,
    },
    /// Reads and writes blocks of files.
    Blocks(Box<Blocks>),
    /// Makes, looks at and removes names of a tree.
    Names {
        /// The set.
        set: SetIndex,
        /// What is done.
        act: NameAct,
        /// Whether entries come in random order.
        shuffled: bool,
    },
    /// Makes all members of sets.
    Fill {
        /// The sets.
        sets: Vec<SetIndex>,
        /// Of files: bytes of one write.
        block_bytes: u32,
        /// Of files: whether the page cache is passed by.
        direct: bool,
    },
    /// Removes all members of sets.
    Remove {
        /// The sets.
        sets: Vec<SetIndex>,
        /// Of objects: how many with one call.
        batch: NonZeroU32,
    },
    /// Reads all members of sets that were written for certain, each once.
    ReadBack(Vec<SetIndex>),
    /// Makes the buckets of sets.
    MakeBuckets(Vec<SetIndex>),
    /// Removes the buckets of sets.
    RemoveBuckets(Vec<SetIndex>),
    /// Does again what a trace holds.
    Replay {
        /// The set of its objects or files.
        set: SetIndex,
        /// How much faster than it was recorded.
        speed: f64,
    },
}

/// One operation of a mix.
#[derive(Clone, Debug, PartialEq)]
pub struct Op {
    /// The set.
    pub set: SetIndex,
    /// How often, relative to the other operations; at least 1.
    pub weight: u32,
    /// How its figures are labelled, where it has a label of its own.
    pub label: Option<String>,
    /// Other buckets than the set's.
    pub buckets: Option<Pattern>,
    /// Other keys than the set's.
    pub keys: Option<Pattern>,
    /// What is done.
    pub act: OpAct,
    /// Where it is described.
    pub path: FieldPath,
}

impl Op {
    /// Returns the largest number that divides the weights of all operations of a mix.
    pub(crate) fn common_weight(ops: &[Self]) -> u32 {
        ops.iter().fold(0, |common, op| greatest_common(common, op.weight.into())) as u32
    }
}

/// What an operation of a mix does.
#[derive(Clone, Debug, PartialEq)]
pub enum OpAct {
    /// Reads a member.
    Get {
        /// Which.
        pick: PickSpec,
        /// Which part of it.
        range: Length,
        /// Which version of it.
        version: VersionPick,
    },
    /// Writes a member.
    Put {
        /// As what.
        put_as: PutAs,
        /// Which, where none is new.
        pick: PickSpec,
        /// How large it is.
        sizes: SizeDist,
        /// Whether it is sent by an HTML form.
        is_form: bool,
        /// Removes it again after this time.
        remove_after: Option<Duration>,
        /// Uploads it in parts of so many bytes.
        part_bytes: Option<u64>,
    },
    /// Reads a member's properties.
    Stat {
        /// Which.
        pick: PickSpec,
        /// Which version of it.
        version: VersionPick,
    },
    /// Removes members.
    Delete {
        /// Which.
        pick: PickSpec,
        /// How many with one call.
        batch: NonZeroU32,
        /// Which version.
        version: VersionPick,
        /// Whether each member is removed once and the job ends then.
        is_all: bool,
    },
    /// Lists members.
    List {
        /// How many entries a page has at most.
        page: NonZeroU32,
        /// How many pages are read at most; `None`: all.
        pages: Option<NonZeroU32>,
        /// Whether versions are listed.
        versions: bool,
        /// Whether each listing is of a part of the set that fits on one page.
        by_page: bool,
        /// Whether the account's buckets are listed in place of what is in one.
        account: bool,
        /// Which bucket, of a set with names of the user's own; `None`: the workers take turns.
        bucket: Option<Choice>,
    },
}

impl OpAct {
    /// Returns which version of a member it is about, where it is about one that is there.
    pub(crate) const fn version(&self) -> Option<VersionPick> {
        match self {
            Self::Get { version, .. }
            | Self::Stat { version, .. }
            | Self::Delete { version, .. } => Some(*version),
            Self::Put { .. } | Self::List { .. } => None,
        }
    }

    /// Returns how it chooses its bucket and its key, or its member.
    pub(crate) fn choices(&self) -> Vec<&Choice> {
        match self {
            Self::Get { pick, .. }
            | Self::Put { pick, .. }
            | Self::Stat { pick, .. }
            | Self::Delete { pick, .. } => match pick {
                PickSpec::Member(choice) => vec![choice],
                PickSpec::InBucket { bucket, key } => vec![bucket, key],
            },
            Self::List { bucket, .. } => bucket.iter().collect(),
        }
    }

    /// Tells whether that is one version by the store's own name for it.
    pub(crate) fn is_by_name(&self) -> bool {
        self.version() == Some(VersionPick::Uniform)
    }
}

/// How much of a member is read, at a random offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// All of it.
    Whole,
    /// A log-uniform length from 1/256 of the size up to the size.
    Random,
    /// This many bytes.
    Fixed(u64),
    /// Drawn alike from this many bytes to that many.
    Uniform(u64, u64),
    /// Drawn from this many bytes to that many, each doubling as likely as the next.
    LogUniform(u64, u64),
    /// This many bytes within the first so many of a member, however large it is.
    Within {
        /// How many.
        len: u64,
        /// Within so many.
        of: u64,
    },
}

/// Reading and writing blocks of files.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks {
    /// The set.
    pub set: SetIndex,
    /// Out of a hundred operations, how many are reads.
    pub read_percent: u32,
    /// How large blocks are that are read; says nothing where none is.
    pub read: BlockSizes,
    /// How large blocks are that are written; says nothing where none is.
    pub write: BlockSizes,
    /// Which block comes next.
    pub order: BlockOrder,
    /// Whether it begins anew when all has been read or written once.
    pub repeats: bool,
    /// Fixes random choices instead of the run's seed.
    pub seed: Option<u64>,
    /// Whether the page cache is passed by.
    pub direct: bool,
    /// Whether each write is on the medium when it returns.
    pub sync: SyncMode,
    /// After how many writes of a worker an `fsync` follows.
    pub fsync_every: Option<u32>,
    /// After how many writes of a worker an `fdatasync` follows.
    pub fdatasync_every: Option<u32>,
    /// Whether an `fsync` of each file ends the job.
    pub end_fsync: bool,
    /// Whether what is cached of the files is dropped before the job.
    pub invalidates: bool,
}

impl Work {
    /// Tells whether objects or parts of them are sent with content.
    pub fn sends_content(&self) -> bool {
        match self {
            Self::Objects(ops) => ops.iter().any(|op| matches!(op.act, OpAct::Put { .. })),
            Self::PutParts { .. }
            | Self::Append { .. }
            | Self::PutTar { .. }
            | Self::Fanout { .. }
            | Self::Replay { .. }
            | Self::Fill { .. } => true,
            _ => false,
        }
    }

    /// Returns the sets that it works on, in order; one may stand more than once.
    pub fn sets(&self) -> Vec<SetIndex> {
        match self {
            Self::Objects(ops) => ops.iter().map(|op| op.set).collect(),
            Self::Fill { sets, .. }
            | Self::Remove { sets, .. }
            | Self::ReadBack(sets)
            | Self::MakeBuckets(sets)
            | Self::RemoveBuckets(sets) => sets.clone(),
            Self::Blocks(blocks) => vec![blocks.set],
            Self::PutParts { set, .. }
            | Self::GetPart { set, .. }
            | Self::Append { set, .. }
            | Self::GetFromZip { set, .. }
            | Self::PutTar { set, .. }
            | Self::Fanout { set, .. }
            | Self::Retention { set, .. }
            | Self::Names { set, .. }
            | Self::Replay { set, .. } => vec![*set],
        }
    }

    /// Tells whether it ends by itself when all is done.
    pub fn is_finite(&self) -> bool {
        match self {
            Self::Objects(ops) => {
                ops.iter().all(|op| matches!(op.act, OpAct::Delete { is_all: true, .. }))
            }
            Self::Blocks(blocks) => !blocks.repeats,
            Self::Names { .. }
            | Self::Fill { .. }
            | Self::Remove { .. }
            | Self::ReadBack(_)
            | Self::MakeBuckets(_)
            | Self::RemoveBuckets(_)
            | Self::Replay { .. } => true,
            _ => false,
        }
    }

    /// Tells whether it makes or removes buckets, which takes no operations.
    pub fn is_on_buckets(&self) -> bool {
        matches!(self, Self::MakeBuckets(_) | Self::RemoveBuckets(_))
    }

    /// Tells whether its operations move content.
    pub fn moves_bytes(&self) -> bool {
        match self {
            Self::Objects(ops) => {
                ops.iter().any(|op| matches!(op.act, OpAct::Get { .. } | OpAct::Put { .. }))
            }
            Self::Names { act, .. } => act.bytes() > 0,
            Self::Retention { .. }
            | Self::Remove { .. }
            | Self::MakeBuckets(_)
            | Self::RemoveBuckets(_) => false,
            _ => true,
        }
    }
}

//! Sets of objects with names of the user's own, as written.

use serde::{Deserialize, Deserializer, Serialize};

use super::{AlsoOn, ContentSpec, DataFileSpec, SizeSpec, is_false};
use crate::plan::pattern::Pattern;
use crate::plan::tree::{Tree, from_tree};
use crate::plan::units::Size;

/// What fixes the content of a shared set where nothing is said.
pub(crate) const CONTENT_SEED: u64 = 1;

/// Objects whose names are the user's own; they may have been there before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NamedSet {
    /// Which target they lie on; the only one may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Their names.
    pub named: NamesOf,
    /// How large those are that the run writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<SizeSpec>,
    /// Has them uploaded in parts of this size: by a `fill`, and by puts that say no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Size>,
    /// What those hold.
    #[serde(default, skip_serializing_if = "ContentSpec::is_random")]
    pub content: ContentSpec,
    /// Consents to their being written and removed, and their buckets made and removed. Asked for
    /// once more when the run starts.
    #[serde(default, skip_serializing_if = "is_false")]
    pub touch: bool,
    /// Whether any number of workers, jobs and operations may write and remove the same members at
    /// once, also while others read them. What a member holds is then a function of its bucket,
    /// its key and `content_seed` alone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared: bool,
    /// Of a shared set: fixes what its members hold, whatever the seed of the run.
    #[serde(default = "content_seed", skip_serializing_if = "is_content_seed")]
    pub content_seed: u64,
    /// Of a shared set: whether what is written ends in COSBench's guard, the MD5 of what stands
    /// before it, and whether what is read and is not the run's own is checked by that.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hash_check: bool,
    /// Another target on which the same members are seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub also_on: Option<AlsoOn>,
}

impl NamedSet {
    /// Returns the set of these names on the only target, of which nothing more is said.
    pub fn of(named: NamesOf) -> Self {
        Self {
            on: None,
            named,
            size: None,
            part: None,
            content: ContentSpec::Random,
            touch: false,
            shared: false,
            content_seed: CONTENT_SEED,
            hash_check: false,
            also_on: None,
        }
    }
}

fn content_seed() -> u64 {
    CONTENT_SEED
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands on references")]
fn is_content_seed(seed: &u64) -> bool {
    *seed == CONTENT_SEED
}

/// Names by pattern, or those of files: every key in every bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NamesOf {
    /// The buckets, such as `c{1..32}`; the target's own when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<Pattern>,
    /// The keys in each, such as `o{1..1000}`. This or `files`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Pattern>,
    /// The files whose names the keys are, and what they hold: a directory such as `/data/photos`,
    /// or each of them. This or `key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FilesOf>,
}

impl NamesOf {
    /// Returns these keys in these buckets, the target's own where there are none.
    pub fn keys(bucket: Option<Pattern>, key: Pattern) -> Self {
        Self { bucket, key: Some(key), files: None }
    }
}

/// Files whose names are keys of objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum FilesOf {
    /// All files of this directory, in the order of their names; it has no other directory in it.
    #[serde(serialize_with = "super::names_what_is_sent")]
    In(String),
    /// These.
    These(Vec<DataFileSpec>),
}

impl<'de> Deserialize<'de> for FilesOf {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Tree::deserialize(from)? {
            list @ Tree::List(_) => from_tree(list).map(Self::These),
            directory => from_tree(directory).map(Self::In),
        }
    }
}

//! What a job does, as written: a sum of kinds of work, so that what cannot be combined cannot be
//! written.

use serde::{Deserialize, Serialize};

use super::{
    BlocksSpec, BucketsSpec, Choice, FillSpec, NamesSpec, OneOrMany, PickSpec, RangeSpec,
    RemoveSpec, ReplaySpec, SizeSpec, is_false, is_one, one,
};
use crate::plan::pattern::Pattern;
use crate::plan::tree::by_key;
use crate::plan::units::{Size, Time};

/// What a job does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum WorkSpec {
    /// Operations on whole objects, drawn by weight.
    Objects(Vec<OpSpec>),
    /// Uploads in parts, or reads by part.
    Parts(PartsSpec),
    /// Adds to the end of objects.
    Append(AppendSpec),
    /// Archives that the store packs or unpacks.
    Archive(ArchiveSpec),
    /// Uploads of one content that the store writes under several names.
    Fanout(FanoutSpec),
    /// Sets until when objects may not be removed.
    Retention(RetentionSpec),
    /// Reads and writes blocks of files.
    Blocks(BlocksSpec),
    /// Makes, looks at and removes names of a tree.
    Names(NamesSpec),
    /// Makes all members of sets.
    Fill(FillSpec),
    /// Removes all members of sets.
    Remove(RemoveSpec),
    /// Reads all members of sets that were written for certain, each once, and checks every byte.
    ReadBack(OneOrMany<String>),
    /// Makes or removes the buckets of sets.
    Buckets(BucketsSpec),
    /// Does again what a trace holds.
    Replay(ReplaySpec),
}

by_key! {
    /// One operation of a mix, with what belongs to it alone.
    pub enum OpSpec {
        /// Reads a member.
        Get(GetOp) by "get",
        /// Writes a member.
        Put(PutOp) by "put",
        /// Writes a member by an HTML form.
        Post(PostOp) by "post",
        /// Reads a member's properties.
        Stat(StatOp) by "stat",
        /// Removes members.
        Delete(DeleteOp) by "delete",
        /// Lists members.
        List(ListOp) by "list",
    }
}

/// Reads a member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GetOp {
    /// The set.
    pub get: String,
    /// How often, relative to the other operations.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    /// Which member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pick: Option<PickSpec>,
    /// Which part of it; all when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeSpec>,
    /// Which version of it.
    #[serde(default, skip_serializing_if = "VersionPick::is_newest")]
    pub version: VersionPick,
    /// Of a set with names of the user's own: other buckets than the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<Pattern>,
    /// Of a set with names of the user's own: other keys than the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Pattern>,
    /// How its figures are labelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Writes a member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PutOp {
    /// The set.
    pub put: String,
    /// How often, relative to the other operations.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    /// Which member, where none is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pick: Option<PickSpec>,
    /// As what it is written. Left out: `new`, or `overwrite` in a set with names of the user's
    /// own.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub put_as: Option<PutAs>,
    /// How large it is; as the set says when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<SizeSpec>,
    /// Of a shared set: uploads it in parts of this size, one after the other, which is one
    /// operation; as the set says when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Size>,
    /// Removes it again after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove_after: Option<Time>,
    /// Of a set with names of the user's own: other buckets than the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<Pattern>,
    /// Of a set with names of the user's own: other keys than the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Pattern>,
    /// How its figures are labelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Writes a new member by an HTML form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PostOp {
    /// The set.
    pub post: String,
    /// How often, relative to the other operations.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    /// As what it is written; `new` when left out.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub put_as: Option<PutAs>,
    /// How large it is; as the set says when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<SizeSpec>,
    /// How its figures are labelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Reads a member's properties.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StatOp {
    /// The set.
    pub stat: String,
    /// How often, relative to the other operations.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    /// Which member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pick: Option<PickSpec>,
    /// Which version of it.
    #[serde(default, skip_serializing_if = "VersionPick::is_newest")]
    pub version: VersionPick,
    /// Of a set with names of the user's own: other buckets than the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<Pattern>,
    /// Of a set with names of the user's own: other keys than the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Pattern>,
    /// How its figures are labelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Removes members. Where it is the only operation of its job, it removes all of them, each once,
/// and the job ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DeleteOp {
    /// The set.
    pub delete: String,
    /// How often, relative to the other operations.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    /// Which member, of a set with names of the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pick: Option<PickSpec>,
    /// How many with one call, where it is the only operation.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub batch: u32,
    /// Which version of it.
    #[serde(default, skip_serializing_if = "VersionPick::is_newest")]
    pub version: VersionPick,
    /// Of a set with names of the user's own: other buckets than the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<Pattern>,
    /// Of a set with names of the user's own: other keys than the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Pattern>,
    /// How its figures are labelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Lists members: those below the worker's own prefix where workers have one. A listing is checked:
/// it must hold what is there, where no job of the stage changes the set. Of a set with names of
/// the user's own one bucket is listed, whatever is in it, and not checked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ListOp {
    /// The set.
    pub list: String,
    /// How often, relative to the other operations.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    /// How many entries a page has at most.
    #[serde(default = "page", skip_serializing_if = "is_page")]
    pub page: u32,
    /// How many pages are read at most; all when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<u32>,
    /// Whether versions are listed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub versions: bool,
    /// Whether each listing is of one of the prefixes below which so much lies as fits on one page,
    /// drawn evenly.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_page: bool,
    /// Whether the names of the buckets of the whole account are listed, whatever they are, in
    /// place of what is in one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub account: bool,
    /// Of a set with names of the user's own: which bucket is listed, by the `bucket` of the pick;
    /// left out, the workers take turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pick: Option<PickSpec>,
    /// Of a set with names of the user's own: other buckets than the set's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<Pattern>,
    /// How its figures are labelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// As what an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PutAs {
    /// As a new member.
    New,
    /// In place of a member.
    Overwrite,
    /// As another version of a member; versions are known by the store's own names.
    Version,
}

/// Which version of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VersionPick {
    /// The newest, without naming it.
    #[default]
    Newest,
    /// Each as likely as the next, by the store's own name of it.
    Uniform,
}

impl VersionPick {
    fn is_newest(&self) -> bool {
        *self == Self::Newest
    }
}

/// How many entries a page of a listing has where nothing is said.
pub(crate) const LIST_PAGE: u32 = 1_000;

fn page() -> u32 {
    LIST_PAGE
}

fn is_page(value: &u32) -> bool {
    *value == page()
}

by_key! {
    /// Uploads in parts, or reads by part.
    pub enum PartsSpec {
        /// Uploads members in parts; each worker has one upload under way.
        Put(PutParts) by "put",
        /// Reads one part of a member that was uploaded in parts.
        Get(GetPart) by "get",
    }
}

/// Uploads new members in parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PutParts {
    /// The set.
    pub put: String,
    /// How many parts each has; left out, as many as its size needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<u32>,
    /// How large a part is.
    pub part: Size,
    /// How many parts of an upload are under way at a time.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub at_once: u32,
    /// The smallest part that the store takes, where it has a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_min: Option<Size>,
}

/// Reads one part of a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GetPart {
    /// The set.
    pub get: String,
    /// Which of all parts of all members.
    #[serde(default, skip_serializing_if = "Choice::is_uniform")]
    pub pick: Choice,
}

/// Adds to the end of objects; each worker has one of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AppendSpec {
    /// The set.
    pub to: String,
    /// After so many parts, the first included, a new object is begun.
    pub parts: u32,
    /// How much is added at a time; as the set says when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<SizeSpec>,
}

by_key! {
    /// Archives that the store packs or unpacks.
    pub enum ArchiveSpec {
        /// Reads one file of a zip archive.
        GetFromZip(GetZip) by "get_from_zip",
        /// Uploads tar archives that the store takes apart.
        PutTar(PutTar) by "put_tar",
    }
}

/// Reads one file of a zip archive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GetZip {
    /// The set.
    pub get_from_zip: String,
    /// Which file.
    #[serde(default, skip_serializing_if = "Choice::is_uniform")]
    pub pick: Choice,
}

/// Uploads tar archives of new members.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PutTar {
    /// The set.
    pub put_tar: String,
    /// How many members an archive has.
    pub members: u32,
    /// Whether it is compressed (zstd).
    #[serde(default, skip_serializing_if = "is_false")]
    pub compress: bool,
}

/// Uploads one content that the store writes under several names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FanoutSpec {
    /// The set.
    pub put: String,
    /// How many names.
    pub copies: u32,
}

/// Sets until when members may not be removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RetentionSpec {
    /// The set.
    pub of: String,
    /// For how long from then on.
    pub hold: Time,
    /// Which member.
    #[serde(default, skip_serializing_if = "Choice::is_uniform")]
    pub pick: Choice,
}

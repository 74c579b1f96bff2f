//! What there is, as written: objects, files and trees of names.

use serde::{Deserialize, Serialize};

use super::named_set::NamedSet;
use super::replay::TraceSet;
use super::{ContentSpec, SizeSpec, is_false, is_one, is_true, is_zero, one, yes};
use crate::plan::tree::by_key;
use crate::plan::units::{Size, SizeRange};

by_key! {
    /// A population on one target. Which kind it is shows in its fields.
    pub enum SetSpec {
        /// Objects whose names are the user's own.
        Named(NamedSet) by "named",
        /// Objects that were there before, found by listing.
        Existing(ExistingSet) by "existing",
        /// Files or devices that were there before.
        Paths(PathSet) by "paths",
        /// Files whose names are listed.
        Listed(ListedSet) by "names",
        /// Files whose names are made.
        Files(FileSet) by "files",
        /// Directories and the entries in them.
        Tree(TreeSet) by "tree",
        /// The objects or files of a trace.
        Trace(TraceSet) by "trace",
        ;
        /// Objects of the run's own.
        Objects(ObjectSet),
    }
}

/// Objects of the run's own, below its own prefix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ObjectSet {
    /// Which target they lie on; the only one may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// How many a `fill` makes; 0 for a set that begins empty.
    #[serde(default, skip_serializing_if = "is_none_made")]
    pub count: u64,
    /// How large they are; of an archive its files. Left out only where the work says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<SizeSpec>,
    /// Has a `fill` upload them in parts of this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Size>,
    /// How many versions of each a `fill` makes.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub versions: u32,
    /// Has a `fill` put all of them into one archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveKind>,
    /// What they hold.
    #[serde(default, skip_serializing_if = "ContentSpec::is_random")]
    pub content: ContentSpec,
    /// How their keys are laid out.
    #[serde(default, skip_serializing_if = "KeysSpec::is_default")]
    pub keys: KeysSpec,
    /// Another target on which the same members are seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub also_on: Option<AlsoOn>,
}

fn is_none_made(count: &u64) -> bool {
    *count == 0
}

impl ObjectSet {
    /// Returns `count` objects of that size on the only target.
    pub fn of(count: u64, size: Option<SizeSpec>) -> Self {
        Self {
            on: None,
            count,
            size,
            part: None,
            versions: 1,
            archive: None,
            content: ContentSpec::Random,
            keys: KeysSpec::default(),
            also_on: None,
        }
    }
}

/// An archive that a store reads files out of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ArchiveKind {
    /// A zip archive.
    Zip,
}

/// How keys are laid out: `<prefix>/plimsoll/<run>/...`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeysSpec {
    /// What comes before `plimsoll/<run>/`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// Whether each worker that owns members has a prefix of its own.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub per_worker: bool,
    /// Over how many buckets members are spread, numbered from 1 on behind the target's bucket
    /// name; the target's own bucket when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buckets: Option<u32>,
}

impl Default for KeysSpec {
    fn default() -> Self {
        Self { prefix: String::new(), per_worker: true, buckets: None }
    }
}

impl KeysSpec {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Another target on which the members of a set are seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AlsoOn {
    /// The target.
    pub target: String,
    /// What stands before their names there, such as `bench/`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
}

/// Objects that were there before. What is read of them is checked by its length only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ExistingSet {
    /// Which target they lie on; the only one may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Which they are.
    pub existing: ExistingOf,
    /// Consents to their being removed. Asked for once more when the run starts.
    #[serde(default, skip_serializing_if = "is_false")]
    pub touch: bool,
}

/// Which of the objects that are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ExistingOf {
    /// What their keys begin with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// At most this many; all when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Whether to look below `/` too.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub recursive: bool,
    /// Takes those that this file names instead of asking the store, one on each line; lines that
    /// are empty or begin with `#` are passed over. How large they are is not known.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "super::names_what_is_sent"
    )]
    pub list: Option<String>,
}

impl ExistingOf {
    /// Returns all those that the store names, below a prefix.
    pub const fn below(prefix: String) -> Self {
        Self { prefix, limit: None, recursive: true, list: None }
    }
}

/// Files whose names are made, in a directory of the run's own. Sets that come to the same path on
/// one target have the same file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FileSet {
    /// Which target they lie on; the only one may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// How many; with `workers`, how many for each of these.
    pub files: u32,
    /// How large each is; drawn from the range.
    pub size: SizeRange,
    /// How names are made: `$jobname`, `$jobnum` and `$filenum` are replaced.
    #[serde(default = "name_format", skip_serializing_if = "is_name_format")]
    pub name: String,
    /// How many workers have files of their own; left out, all workers share the files. `$jobnum`
    /// is the number of the worker, 0-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// What `$jobname` stands for; the set's name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

/// How names of files are made where nothing is said.
pub(crate) const NAME_FORMAT: &str = "$jobname.$jobnum.$filenum";

fn name_format() -> String {
    NAME_FORMAT.to_owned()
}

fn is_name_format(name: &String) -> bool {
    name == NAME_FORMAT
}

/// Files whose names are listed, in a directory of the run's own; all workers share them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ListedSet {
    /// Which target they lie on; the only one may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Their names.
    pub names: Vec<String>,
    /// How large each is; drawn from the range.
    pub size: SizeRange,
}

/// Files or devices that were there before and are taken as they are: nothing is made or removed,
/// and what is read is not checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PathSet {
    /// Which target they lie on; the only one may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Where they lie, from the root on.
    #[serde(serialize_with = "super::names_a_file")]
    pub paths: Vec<String>,
    /// How much of each is used, from its beginning. One that holds less is refused, but for a
    /// file that is only written: it grows.
    pub size: SizeRange,
    /// Consents to their being written. Asked for once more when the run starts.
    #[serde(default, skip_serializing_if = "is_false")]
    pub touch: bool,
}

/// Directories and the entries in them, in a directory of the run's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TreeSet {
    /// Which target they lie on; the only one may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// What it looks like.
    pub tree: TreeOf,
}

/// What a tree looks like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TreeOf {
    /// The top directory's name; the set's name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many levels of directories there are below the top one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// How many directories each directory has below it.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub branching: u32,
    /// How many entries each worker has in each directory.
    pub entries: u64,
    /// Whether only directories of the lowest level hold entries.
    #[serde(default, skip_serializing_if = "is_false")]
    pub leaves_only: bool,
    /// Whether each worker has a tree of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub per_worker: bool,
    /// Whether all workers use the same names instead of names of their own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shared_names: bool,
    /// Whether entries are directories instead of files.
    #[serde(default, skip_serializing_if = "is_false")]
    pub of_directories: bool,
}

impl SetSpec {
    /// Returns the target that it names.
    pub fn on(&self) -> Option<&str> {
        match self {
            Self::Objects(set) => set.on.as_deref(),
            Self::Named(set) => set.on.as_deref(),
            Self::Existing(set) => set.on.as_deref(),
            Self::Paths(set) => set.on.as_deref(),
            Self::Listed(set) => set.on.as_deref(),
            Self::Files(set) => set.on.as_deref(),
            Self::Tree(set) => set.on.as_deref(),
            Self::Trace(set) => set.on.as_deref(),
        }
    }
    /// Returns the place in which it names its target.
    pub fn on_mut(&mut self) -> &mut Option<String> {
        match self {
            Self::Objects(set) => &mut set.on,
            Self::Named(set) => &mut set.on,
            Self::Existing(set) => &mut set.on,
            Self::Paths(set) => &mut set.on,
            Self::Listed(set) => &mut set.on,
            Self::Files(set) => &mut set.on,
            Self::Tree(set) => &mut set.on,
            Self::Trace(set) => &mut set.on,
        }
    }
}

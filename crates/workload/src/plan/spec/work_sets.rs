//! Work on whole sets, as written: names of trees, filling, removing, buckets.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{OneOrMany, is_false};
use crate::plan::tree::{Tree, by_key, from_tree};
use crate::plan::units::Size;

by_key! {
    /// Makes, looks at and removes names of a tree: one step of what mdtest does.
    pub enum NamesSpec {
        /// Makes the directories of the tree.
        MakeTree(MakeTree) by "make_tree",
        /// Makes the entries.
        Create(CreateNames) by "create",
        /// Reads the entries' attributes.
        Stat(StatNames) by "stat",
        /// Opens entries, reads of them and closes them.
        Open(OpenNames) by "open",
        /// Gives entries other names.
        Rename(RenameNames) by "rename",
        /// Removes the entries.
        Remove(RemoveNames) by "remove",
        /// Removes the directories of the tree.
        RemoveTree(RemoveTree) by "remove_tree",
    }
}

/// Makes the directories of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MakeTree {
    /// The set.
    pub make_tree: String,
}

/// Makes the entries of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateNames {
    /// The set.
    pub create: String,
    /// How much is written to each file.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub bytes: Size,
    /// Whether each is put on the medium before it is closed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fsync: bool,
    /// Whether they come in random order.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shuffled: bool,
}

/// Reads the attributes of entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StatNames {
    /// The set.
    pub stat: String,
    /// Whether they come in random order.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shuffled: bool,
}

/// Opens entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OpenNames {
    /// The set.
    pub open: String,
    /// How much is read of each.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub bytes: Size,
    /// Whether they come in random order.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shuffled: bool,
}

/// Gives entries other names: entry 0 a spare one, entry i that of entry i - 1, and at last the
/// spare one that of the last but one, as mdtest does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RenameNames {
    /// The set.
    pub rename: String,
}

/// Removes entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RemoveNames {
    /// The set.
    pub remove: String,
    /// Whether they come in random order.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shuffled: bool,
}

/// Removes the directories of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RemoveTree {
    /// The set.
    pub remove_tree: String,
}

fn is_empty(size: &Size) -> bool {
    size.0 == 0
}

/// Makes all members of sets: `photos`, `[small, large]`, or with more to say
/// `{sets: photos, block: 1MiB, direct: true}`. Files that are filled already are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = or_names))]
pub struct FillSpec {
    /// The sets.
    pub sets: OneOrMany<String>,
    /// Of files: bytes of one write.
    #[cfg_attr(feature = "schema", schemars(default = "mebibyte"))]
    pub block: Size,
    /// Of files: whether the page cache is passed by.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub direct: bool,
}

impl FillSpec {
    /// Returns the filling of these sets.
    pub fn of(sets: Vec<String>) -> Self {
        Self { sets: OneOrMany(sets), block: mebibyte(), direct: false }
    }
}

/// Removes all members of sets: `photos`, `[small, large]`, or with more to say
/// `{sets: photos, batch: 100}`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = or_names))]
pub struct RemoveSpec {
    /// The sets.
    pub sets: OneOrMany<String>,
    /// Of objects: how many with one call.
    #[cfg_attr(feature = "schema", schemars(default = "super::one"))]
    pub batch: u32,
}

impl RemoveSpec {
    /// Returns the removal of these sets.
    pub fn of(sets: Vec<String>) -> Self {
        Self { sets: OneOrMany(sets), batch: 1 }
    }
}

/// Lets a schema take the names of sets alone, too.
#[cfg(feature = "schema")]
fn or_names(schema: &mut schemars::Schema) {
    let name = serde_json::json!({ "type": "string" });
    let names = serde_json::json!({ "type": "array", "items": name });
    super::or_short(schema, [name, names]);
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FillFields {
    sets: OneOrMany<String>,
    #[serde(default = "mebibyte", skip_serializing_if = "is_mebibyte")]
    block: Size,
    #[serde(default, skip_serializing_if = "is_false")]
    direct: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RemoveFields {
    sets: OneOrMany<String>,
    #[serde(default = "super::one", skip_serializing_if = "super::is_one")]
    batch: u32,
}

fn mebibyte() -> Size {
    Size(1 << 20)
}

fn is_mebibyte(size: &Size) -> bool {
    *size == mebibyte()
}

impl Serialize for FillSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if *self == Self::of(self.sets.0.clone()) {
            return self.sets.serialize(to);
        }
        let Self { sets, block, direct } = self.clone();
        FillFields { sets, block, direct }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for FillSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Tree::deserialize(from)? {
            tree @ Tree::Map(_) => {
                let FillFields { sets, block, direct } = from_tree(tree)?;
                Ok(Self { sets, block, direct })
            }
            tree => from_tree(tree).map(|sets: OneOrMany<String>| Self::of(sets.0)),
        }
    }
}

impl Serialize for RemoveSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.batch {
            1 => self.sets.serialize(to),
            batch => RemoveFields { sets: self.sets.clone(), batch }.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for RemoveSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Tree::deserialize(from)? {
            tree @ Tree::Map(_) => {
                let RemoveFields { sets, batch } = from_tree(tree)?;
                Ok(Self { sets, batch })
            }
            tree => from_tree(tree).map(|sets: OneOrMany<String>| Self::of(sets.0)),
        }
    }
}

/// Makes or removes the buckets of sets with names of the user's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum BucketsSpec {
    /// Makes those that are not there.
    Make(OneOrMany<String>),
    /// Removes them, empty as they must be.
    Remove(OneOrMany<String>),
}

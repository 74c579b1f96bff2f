//! Populations of objects: how many, how large, under which names, in which buckets.

use std::num::NonZeroU32;
use std::sync::Arc;

use plimsoll_model::{ObjectId, WorkerId};

use super::SharedSet;
use crate::data::DataRule;
use crate::keys::file_of;
use crate::trace::Trace;
use crate::{DataFileSpec, Keys, SizeDist, hash_text};

/// Bits of a member's number that say by which law its size is drawn.
const LAW_SHIFT: u32 = 36;

/// A population of objects, laid out for a run.
#[derive(Clone, Debug)]
pub struct ObjectSet {
    /// What the workload calls it.
    pub name: String,
    /// Fixes sizes.
    pub seed: u64,
    /// How many a fill makes, were found, or names stand for; those that are put one by one come
    /// on top.
    pub count: u64,
    /// Over how many owners those are spread.
    pub owners: NonZeroU32,
    /// How many versions of each a fill makes.
    pub versions: u32,
    /// How large members are: the law of the set itself, if it has one, then those of operations
    /// that say their own. A member's number says which one is its.
    pub laws: Vec<Option<SizeDist>>,
    /// What they hold.
    pub data: DataRule,
    /// The files that their bytes come from, where they do.
    pub data_files: Vec<DataFileSpec>,
    /// Their keys.
    pub keys: Keys,
    /// What all keys of the run's own with the same prefix begin with, with the `/` at its
    /// end.
    pub base: String,
    /// Their buckets.
    pub buckets: SetBuckets,
    /// Has a fill upload them in parts of so many bytes.
    pub part_bytes: Option<u64>,
    /// Whether a fill puts all of them into one zip archive.
    pub is_zip: bool,
    /// Whether the target names them by itself, so that they are asked for by those names.
    pub is_named: bool,
    /// What members are held to where anybody may write them at any time.
    pub shared: Option<SharedSet>,
    /// The trace whose objects they are, which says how large they are.
    pub trace: Option<Arc<Trace>>,
}

/// The buckets that a set lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetBuckets {
    /// The target's own.
    OfTarget,
    /// These, at least one.
    Several(Arc<[String]>),
}

impl SetBuckets {
    /// Returns how many there are.
    pub fn count(&self) -> u32 {
        match self {
            Self::OfTarget => 1,
            Self::Several(names) => names.len() as u32,
        }
    }

    /// Returns the name of bucket `index`; `None` for the target's own.
    pub fn name(&self, index: u32) -> Option<&str> {
        match self {
            Self::OfTarget => None,
            Self::Several(names) => Some(&names[index as usize]),
        }
    }
}

impl ObjectSet {
    /// The most laws by which sizes of one set are drawn.
    pub const LAWS_MAX: usize = 1 << (40 - LAW_SHIFT);
    /// The most members that one owner has of one law.
    pub const NUMBER_MAX: u64 = (1 << LAW_SHIFT) - 1;

    /// Returns an empty set of random content with these keys in the target's bucket.
    pub fn plain(name: &str, keys: Keys) -> Self {
        Self {
            name: name.to_owned(),
            seed: 0,
            count: 0,
            owners: NonZeroU32::MIN,
            versions: 1,
            laws: vec![None],
            data: DataRule::Random,
            data_files: Vec::new(),
            keys,
            base: String::new(),
            buckets: SetBuckets::OfTarget,
            part_bytes: None,
            is_zip: false,
            is_named: false,
            shared: None,
            trace: None,
        }
    }

    /// Tells whether its members are the run's own, which nobody else knows the names of.
    pub const fn is_own(&self) -> bool {
        matches!(self.keys, Keys::Generated { .. })
    }

    /// Returns the name of the bucket that the content of a member depends on, where it does: keys
    /// that are the user's own may be the same in several buckets.
    pub fn bucket_of_content(&self, bucket: u32) -> Option<&str> {
        match (&self.keys, &self.shared) {
            (Keys::Named(_) | Keys::Files(_), Some(shared)) => {
                Some(self.buckets.name(bucket).unwrap_or(&shared.home))
            }
            (Keys::Named(_), None) => self.buckets.name(bucket),
            _ => None,
        }
    }

    /// Returns where a member begins among the bytes of all files, where it is one of them.
    pub fn file_start(&self, id: ObjectId) -> Option<u64> {
        match &self.keys {
            Keys::Files(files) => Some(file_of(files, id).offset),
            _ => None,
        }
    }

    /// Returns the id of member `index` of those that a fill makes, were found, or names stand for.
    pub fn id(&self, index: u64) -> ObjectId {
        let owners = if self.is_own() { u64::from(self.owners.get()) } else { 1 };
        ObjectId::new(WorkerId((index % owners) as u32), index / owners)
    }

    /// Returns how many members an owner has of those.
    pub fn share_of(&self, owner: u32) -> u64 {
        let owners = if self.is_own() { self.owners.get() } else { 1 };
        let (each, rest) = (self.count / u64::from(owners), self.count % u64::from(owners));
        if owner >= owners { 0 } else { each + u64::from(u64::from(owner) < rest) }
    }

    /// Returns the id of a member that is put, whose size is drawn by that law.
    pub fn new_id(&self, owner: u32, law: u16, number: u64) -> ObjectId {
        assert!(number <= Self::NUMBER_MAX, "a worker puts fewer members");
        ObjectId::new(WorkerId(owner), u64::from(law) << LAW_SHIFT | number)
    }

    /// Returns the law of the size of a member of the run's own, and its number among those of its
    /// owner and law.
    pub(super) const fn split(id: ObjectId) -> (u16, u64) {
        ((id.number() >> LAW_SHIFT) as u16, id.number() & Self::NUMBER_MAX)
    }

    /// Tells whether there can be a member of that id.
    pub(super) fn can_have(&self, id: ObjectId) -> bool {
        match self.is_own() {
            true => usize::from(Self::split(id).0) < self.laws.len(),
            false => id.owner() == WorkerId(0) && id.number() < self.count,
        }
    }

    /// Tells whether there can be an id of a member that an owner puts by a law of size.
    pub(super) fn can_number(owner: u32, law: u16, number: u64) -> bool {
        let is_law = usize::from(law) < Self::LAWS_MAX;
        owner <= ObjectId::OWNER_MAX && is_law && number <= Self::NUMBER_MAX
    }

    /// Returns in which of the set's buckets a member lies, 0-based.
    pub fn bucket_of(&self, id: ObjectId) -> u32 {
        let buckets = u64::from(self.buckets.count());
        let bucket = match &self.keys {
            Keys::Generated { .. } => (Self::split(id).1 + u64::from(id.owner().0)) % buckets,
            Keys::Existing(_) => 0,
            Keys::Named(keys) => id.number() / keys.count(),
            Keys::Files(files) => id.number() / files.len() as u64,
        };
        bucket as u32
    }

    /// Returns how large a member is; `None` where that is not known.
    pub fn size_of(&self, id: ObjectId) -> Option<u64> {
        if let Some(trace) = &self.trace {
            let index = id.number() * u64::from(self.owners.get()) + u64::from(id.owner().0);
            return trace.made_first().get(index as usize).copied();
        }
        match &self.keys {
            Keys::Existing(objects) => objects[id.number() as usize].size,
            Keys::Generated { .. } => {
                let law = self.laws.get(usize::from(Self::split(id).0))?.as_ref()?;
                Some(law.size(self.seed, id))
            }
            Keys::Files(files) => {
                let guard = self.shared.as_ref().map_or(0, SharedSet::guard_bytes);
                Some(file_of(files, id).bytes + guard)
            }
            // Other patterns may stand for the same name, so the size comes from that.
            Keys::Named(_) => match &*self.laws {
                [Some(SizeDist::Fixed(size))] => Some(*size),
                [Some(law)] => {
                    let mut key = String::new();
                    self.keys.write(id, &mut key);
                    let bucket = self.buckets.name(self.bucket_of(id)).unwrap_or_default();
                    let hash = hash_text(&key) ^ hash_text(bucket).rotate_left(1);
                    let of_name = ObjectId::new(WorkerId(0), hash & ObjectId::NUMBER_MAX);
                    Some(law.size(self.seed, of_name))
                }
                _ => None,
            },
        }
    }
}

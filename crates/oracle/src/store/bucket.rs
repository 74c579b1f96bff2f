//! One bucket: its objects by hash with their versions, and their keys in order.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockWriteGuard};

use foldhash::fast::RandomState;
use plimsoll_model::WallTime;

use super::uploads::Uploads;
use super::{
    Condition, Marker, Object, RetentionMode, StoreError, Version, VersionId, lock, read, write,
};
use crate::digests::Tag;

/// How many locks the objects of a bucket are spread over.
const SHARDS: usize = 64;

/// Objects by key.
type Shard = HashMap<Arc<str>, Entry, RandomState>;

/// The objects of a bucket by hash, and their keys in order.
///
/// A key is in `keys` exactly while its newest version is an object, and in `hidden` while that is
/// a mark of deletion: they change under the shard's lock. Locks are taken in the order shard,
/// keys, hidden; listing lets go of the keys before it reads a shard.
pub(super) struct Bucket {
    pub(super) created: WallTime,
    /// Not that of the maps: within a shard they would see hashes that are alike.
    hasher: RandomState,
    shards: Vec<RwLock<Shard>>,
    pub(super) keys: RwLock<BTreeSet<Arc<str>>>,
    pub(super) hidden: RwLock<BTreeSet<Arc<str>>>,
    versioning: AtomicU8,
    pub(super) locks: AtomicBool,
    pub(super) settings: RwLock<Settings>,
    pub(super) uploads: RwLock<Uploads>,
    pub(super) memory: Option<Mutex<Memory>>,
}

/// Whether a bucket keeps what a write replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versioning {
    /// It never has.
    Never,
    /// It does.
    Enabled,
    /// It keeps those of before, and one more, the null version.
    Suspended,
}

/// What is set for a bucket as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) retention: Option<DefaultRetention>,
    pub(super) tags: Vec<(String, String)>,
}

/// How long new versions are kept where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DefaultRetention {
    pub(crate) mode: RetentionMode,
    pub(crate) days: u32,
    /// Whether the days were given as years of 365.
    pub(crate) in_years: bool,
}

/// What lies are made of.
#[derive(Default)]
pub(super) struct Memory {
    /// What was under a key before its last change; `None`: nothing.
    pub(super) earlier: HashMap<Arc<str>, Option<Object>>,
    /// Keys whose last write was acknowledged and lost.
    pub(super) lost: HashSet<Arc<str>>,
}

/// The versions of a key: the newest, and those before it from the oldest on.
pub(super) struct Entry {
    newest: Version,
    older: Vec<Version>,
}

/// What came of a removal.
pub(super) enum Removed {
    /// There was nothing to remove.
    Nothing,
    /// A version is gone.
    Gone(Version),
    /// A mark of deletion stands before the versions, in the place of one where versioning is
    /// suspended.
    Marked(VersionId, Option<Version>),
}

impl Entry {
    /// Returns all versions, the newest first.
    pub(super) fn versions(&self) -> impl Iterator<Item = &Version> {
        std::iter::once(&self.newest).chain(self.older.iter().rev())
    }

    /// Returns the versions that stand behind one in a listing, with how many are newer; all where
    /// none is named. One that is gone is where its number would be.
    pub(super) fn rest_after(
        &self,
        after: Option<VersionId>,
    ) -> impl Iterator<Item = (usize, &Version)> {
        let at = after.and_then(|id| self.versions().position(|version| version.id() == id));
        let gone = after.filter(|id| at.is_none() && *id != VersionId::NULL);
        let is_behind = move |version: &Version| {
            gone.is_none_or(|gone| version.id() == VersionId::NULL || version.id() < gone)
        };
        let rest = self.versions().enumerate().skip(at.map_or(0, |at| at + 1));
        rest.filter(move |(_, version)| is_behind(version))
    }

    /// Adds a version, and returns the one that it replaces.
    fn push(&mut self, version: Version, versioning: Versioning) -> Option<Version> {
        let before = mem::replace(&mut self.newest, version);
        match versioning {
            Versioning::Never => return Some(before),
            Versioning::Suspended if before.id() == VersionId::NULL => return Some(before),
            Versioning::Enabled => {
                self.older.push(before);
                return None;
            }
            Versioning::Suspended => {}
        }
        let null = self.older.iter().position(|version| version.id() == VersionId::NULL);
        let replaced = null.map(|at| self.older.remove(at));
        self.older.push(before);
        replaced
    }
}

impl Bucket {
    pub(super) fn new(created: WallTime, locks: bool, remembers: bool) -> Self {
        let versioning = if locks { Versioning::Enabled } else { Versioning::Never };
        Self {
            created,
            hasher: RandomState::default(),
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            keys: RwLock::default(),
            hidden: RwLock::default(),
            versioning: AtomicU8::new(versioning as u8),
            locks: AtomicBool::new(locks),
            settings: RwLock::default(),
            uploads: RwLock::default(),
            memory: remembers.then(Mutex::default),
        }
    }

    pub(super) fn versioning(&self) -> Versioning {
        match self.versioning.load(Ordering::Relaxed) {
            0 => Versioning::Never,
            1 => Versioning::Enabled,
            _ => Versioning::Suspended,
        }
    }

    /// Writes that have begun may still go by what held before.
    pub(super) fn set_versioning(&self, versioning: Versioning) {
        self.versioning.store(versioning as u8, Ordering::Relaxed);
    }

    pub(super) fn is_empty(&self) -> bool {
        read(&self.keys).is_empty() && read(&self.hidden).is_empty()
    }

    /// Takes what a change of `key` has replaced, and returns what nobody needs any more.
    pub(super) fn outlived(&self, key: &str, replaced: Option<Version>) -> Option<Version> {
        let Some(memory) = &self.memory else { return replaced };
        let mut memory = lock(memory);
        memory.lost.remove(key);
        if self.versioning() != Versioning::Never {
            return replaced;
        }
        let replaced = match replaced {
            Some(Version::Object(object)) => Some(object),
            _ => None,
        };
        memory.earlier.insert(key.into(), replaced).flatten().map(Version::Object)
    }

    fn shard(&self, key: &str) -> &RwLock<Shard> {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }

    /// Looks at the versions of a key.
    pub(super) fn look<T>(&self, key: &str, look: impl FnOnce(&Entry) -> T) -> Option<T> {
        read(self.shard(key)).get(key).map(look)
    }

    /// Returns the object under a key.
    pub(super) fn get(&self, key: &str) -> Option<Object> {
        read(self.shard(key)).get(key).and_then(|entry| entry.newest.object()).cloned()
    }

    /// Returns one version of a key, the newest unless another is named.
    pub(super) fn version(&self, key: &str, id: Option<VersionId>) -> Option<Version> {
        self.look(key, |entry| match id {
            None => Some(entry.newest.clone()),
            Some(id) => entry.versions().find(|version| version.id() == id).cloned(),
        })?
    }

    /// Returns the version that was added, and the one that was replaced, so that it is freed
    /// outside the lock.
    pub(super) fn insert(
        &self,
        key: &str,
        mut object: Object,
        condition: Condition<'_>,
        next: impl FnOnce() -> VersionId,
    ) -> Result<(VersionId, Option<Version>), StoreError> {
        let mut shard = write(self.shard(key));
        condition.check(shard.get(key).and_then(|entry| entry.newest.object()))?;
        let versioning = self.versioning();
        object.version = match versioning {
            Versioning::Enabled => next(),
            Versioning::Never | Versioning::Suspended => VersionId::NULL,
        };
        let version = object.version;
        Ok((version, self.push(&mut shard, key, Version::Object(object), versioning)))
    }

    fn push(
        &self,
        shard: &mut RwLockWriteGuard<'_, Shard>,
        key: &str,
        version: Version,
        versioning: Versioning,
    ) -> Option<Version> {
        let is_object = version.object().is_some();
        let Some(entry) = shard.get_mut(key) else {
            let key: Arc<str> = key.into();
            let entry = Entry { newest: version, older: Vec::new() };
            shard.insert(Arc::clone(&key), entry);
            self.keys_of(is_object).insert(key);
            return None;
        };
        let was_object = entry.newest.object().is_some();
        let replaced = entry.push(version, versioning);
        if was_object != is_object {
            self.move_key(key, was_object);
        }
        replaced
    }

    fn keys_of(&self, is_object: bool) -> RwLockWriteGuard<'_, BTreeSet<Arc<str>>> {
        write(if is_object { &self.keys } else { &self.hidden })
    }

    /// Moves a key between those that are shown and those that are hidden.
    fn move_key(&self, key: &str, was_object: bool) {
        let key = self.keys_of(was_object).take(key).expect("a key is where its newest version is");
        self.keys_of(!was_object).insert(key);
    }

    /// Returns whether there was an object, and the tag and the size of what is there then.
    pub(super) fn append(
        &self,
        key: &str,
        offset: u64,
        object: Object,
    ) -> Result<(bool, Tag, u64), StoreError> {
        let mut shard = write(self.shard(key));
        if self.versioning() != Versioning::Never {
            return Err(StoreError::AppendToVersions);
        }
        let held = shard.get(key).and_then(|entry| entry.newest.object());
        let size_bytes = held.map_or(0, |held| held.content.len() as u64);
        if offset != size_bytes {
            return Err(StoreError::WrongOffset { size_bytes });
        }
        let size_bytes = size_bytes + object.content.len() as u64;
        let tag = object.tag;
        if let Some(Entry { newest: Version::Object(held), .. }) = shard.get_mut(key) {
            held.content.push(&object.content);
            held.tag = Tag::of_appended(held.tag, object.tag, size_bytes);
            held.modified = object.modified;
            held.part_ends = None;
            if let Some(attributes) = &mut held.attributes {
                // It was that of what was there before.
                Arc::make_mut(attributes).checksum = None;
            }
            return Ok((true, held.tag, size_bytes));
        }
        self.push(&mut shard, key, Version::Object(object), Versioning::Never);
        Ok((false, tag, size_bytes))
    }

    /// Removes the object under a key, or has a mark of deletion hide it where versions are kept;
    /// `mark` makes that, or says why it cannot.
    pub(super) fn remove(
        &self,
        key: &str,
        condition: Condition<'_>,
        mark: impl FnOnce(Versioning) -> Result<Marker, StoreError>,
    ) -> Result<Removed, StoreError> {
        let mut shard = write(self.shard(key));
        let held = shard.get(key).and_then(|entry| entry.newest.object());
        if condition != Condition::Always {
            condition.check(held)?;
        }
        let versioning = self.versioning();
        if versioning == Versioning::Never {
            let Some(entry) = shard.remove(key) else { return Ok(Removed::Nothing) };
            write(&self.keys).remove(key);
            return Ok(Removed::Gone(entry.newest));
        }
        let marker = mark(versioning)?;
        let replaced = self.push(&mut shard, key, Version::Marker(marker), versioning);
        Ok(Removed::Marked(marker.version, replaced))
    }

    /// Removes one version of a key for good.
    pub(super) fn remove_version(
        &self,
        key: &str,
        id: VersionId,
        (now, bypass): (WallTime, bool),
        condition: Condition<'_>,
    ) -> Result<Option<Version>, StoreError> {
        let mut shard = write(self.shard(key));
        let Some(entry) = shard.get_mut(key) else { return Ok(None) };
        let Some(version) = entry.versions().find(|version| version.id() == id) else {
            return Ok(None);
        };
        if condition != Condition::Always {
            condition.check(version.object())?;
        }
        if let Some(object) = version.object() {
            object.lock().check(now, bypass)?;
        }
        let was_object = entry.newest.object().is_some();
        if entry.newest.id() != id {
            // Who removes all goes from the newest on.
            let at = entry.older.iter().rposition(|version| version.id() == id);
            return Ok(at.map(|at| entry.older.remove(at)));
        }
        let Some(before) = entry.older.pop() else {
            self.keys_of(was_object).remove(key);
            return Ok(shard.remove(key).map(|entry| entry.newest));
        };
        let is_object = before.object().is_some();
        let removed = mem::replace(&mut entry.newest, before);
        if was_object != is_object {
            self.move_key(key, was_object);
        }
        Ok(Some(removed))
    }

    /// Changes one version of a key in place, the newest unless another is named.
    pub(super) fn change<T>(
        &self,
        key: &str,
        id: Option<VersionId>,
        change: impl FnOnce(&mut Object) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut shard = write(self.shard(key));
        let missing = if id.is_some() { StoreError::NoSuchVersion } else { StoreError::NoSuchKey };
        let entry = shard.get_mut(key).ok_or(missing)?;
        let version = match id {
            Some(id) if entry.newest.id() != id => {
                entry.older.iter_mut().find(|version| version.id() == id).ok_or(missing)?
            }
            _ => &mut entry.newest,
        };
        match version {
            Version::Object(object) => change(object),
            Version::Marker(marker) => Err(marker.refusal(id.is_some())),
        }
    }
}

impl Marker {
    /// Returns why nothing can be done with it, asked for by name or not.
    pub(super) fn refusal(self, is_named: bool) -> StoreError {
        let version = self.version;
        if is_named { StoreError::NamedMarker { version } } else { StoreError::Hidden { version } }
    }
}

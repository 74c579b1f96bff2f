//! Buckets and objects in memory: maps and locks, without IO, clock or any word of the protocol.

mod bucket;
mod object;
mod properties;
mod uploads;
mod versions;

use std::collections::BTreeMap;
use std::mem;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use plimsoll_model::WallTime;

use self::bucket::{Bucket, Removed};
pub(crate) use self::bucket::{DefaultRetention, Versioning};
pub(crate) use self::object::{
    Attributes, Lock, Marker, Object, Retention, RetentionMode, Version, VersionId,
};
use self::object::{object_bytes, overhead_bytes};
pub(crate) use self::uploads::{NamedPart, PART_NUMBER_MAX, Part, Summing};
pub(crate) use self::versions::VersionPage;
use crate::content::Content;
use crate::digests::Tag;
use crate::listing::{Entry, ListQuery};

/// What an object holds besides its content and key: map slots, index entry, attributes.
pub(crate) const OBJECT_OVERHEAD_BYTES: u64 = 256;

/// How many other keys are looked at to find one whose object has a certain size.
const NEIGHBOURS_MAX: usize = 64;

/// All buckets of a store. Point reads take two read locks, and one of those is a bucket's shard.
pub(crate) struct Store {
    capacity_bytes: u64,
    remembers: bool,
    held_bytes: AtomicU64,
    objects_count: AtomicU64,
    versions_count: AtomicU64,
    buckets: RwLock<BTreeMap<String, Bucket>>,
}

/// When an object is stored or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition<'a> {
    /// Whatever is there.
    Always,
    /// Where nothing is there.
    Absent,
    /// Where something is there.
    Present,
    /// Where something of that ETag is there.
    Is(&'a str),
}

/// What came of a removal that is not of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    /// The object is gone, or there was none.
    Gone,
    /// This mark of deletion hides it.
    Marked(VersionId),
}

/// A version that is to be removed for good, and who asks when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Removal {
    pub(crate) version: VersionId,
    pub(crate) now: WallTime,
    /// Whether governance is to be lifted.
    pub(crate) bypass: bool,
}

/// Room set aside for an object on its way in; given back when dropped unused.
pub(crate) struct Room<'s> {
    store: &'s Store,
    /// Those that are set aside, but for those of `content`.
    bytes: u64,
    /// The content that it is for, once that is known: held, as if it were stored already.
    content: Option<Content>,
}

/// One page of a listing with its objects.
#[derive(Debug, Default)]
pub(crate) struct ObjectPage {
    pub(crate) objects: Vec<(Arc<str>, Object)>,
    pub(crate) common_prefixes: Vec<String>,
    /// The last key or common prefix shown.
    pub(crate) last: Option<String>,
    /// Where the next page starts; absent on the last one.
    pub(crate) next: Option<String>,
}

/// How much a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) buckets_count: u64,
    pub(crate) objects_count: u64,
    pub(crate) bytes: u64,
}

/// Why the store refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("the bucket does not exist")]
    NoSuchBucket,
    #[error("the key does not exist")]
    NoSuchKey,
    #[error("the object has no such version")]
    NoSuchVersion,
    #[error("the object was removed: its newest version is a mark of deletion")]
    Hidden { version: VersionId },
    #[error("this version is a mark of deletion")]
    NamedMarker { version: VersionId },
    #[error("an object of that key exists")]
    KeyExists,
    #[error("the object has another ETag, or another date")]
    OtherTag,
    #[error("the object is what the client has")]
    NotModified,
    #[error("the version is retained or on legal hold")]
    Locked,
    #[error("the bucket was made without object lock")]
    NoLock,
    #[error("object lock needs a bucket that keeps versions, and keeps them for good")]
    LockNeedsVersions,
    #[error("this store does not offer appends in a bucket that keeps versions")]
    AppendToVersions,
    #[error("the bucket exists already")]
    BucketExists,
    #[error("the bucket holds objects")]
    BucketNotEmpty,
    #[error("the upload does not exist: it was completed, aborted or never begun")]
    NoSuchUpload,
    #[error("part {number} was not uploaded, or its ETag or checksum is another")]
    InvalidPart { number: u32 },
    #[error("part {number} comes after a part of the same or a higher number")]
    InvalidPartOrder { number: u32 },
    #[error("part {number} is not the last and below 5 MiB")]
    PartTooSmall { number: u32 },
    #[error("the parts together have another checksum")]
    OtherChecksum,
    #[error("the object has {size_bytes} bytes, and what is added begins elsewhere")]
    WrongOffset { size_bytes: u64 },
    #[error("the store is full: its capacity is {capacity_bytes} bytes")]
    Full { capacity_bytes: u64 },
}

impl Condition<'_> {
    /// Tells why it does not hold of what is there, if so.
    fn check(self, held: Option<&Object>) -> Result<(), StoreError> {
        match (self, held) {
            (Self::Always, _) | (Self::Absent, None) | (Self::Present, Some(_)) => Ok(()),
            (Self::Absent, Some(_)) => Err(StoreError::KeyExists),
            (Self::Present | Self::Is(_), None) => Err(StoreError::NoSuchKey),
            (Self::Is(tag), Some(held)) if held.tag.to_string() == tag => Ok(()),
            (Self::Is(_), Some(_)) => Err(StoreError::OtherTag),
        }
    }
}

impl Store {
    /// Returns an empty store that holds up to `capacity_bytes`. One that `remembers` keeps what
    /// every key held before its last change, and counts that as held too.
    pub(crate) fn new(capacity_bytes: u64, remembers: bool) -> Self {
        Self {
            capacity_bytes,
            remembers,
            held_bytes: AtomicU64::new(0),
            objects_count: AtomicU64::new(0),
            versions_count: AtomicU64::new(0),
            buckets: RwLock::default(),
        }
    }

    /// Adds an empty bucket, with object lock or without.
    pub(crate) fn create_bucket(
        &self,
        name: &str,
        created: WallTime,
        locks: bool,
    ) -> Result<(), StoreError> {
        let mut buckets = write(&self.buckets);
        if buckets.contains_key(name) {
            return Err(StoreError::BucketExists);
        }
        buckets.insert(name.to_owned(), Bucket::new(created, locks, self.remembers));
        Ok(())
    }

    /// Removes a bucket that holds nothing.
    pub(crate) fn delete_bucket(&self, name: &str) -> Result<(), StoreError> {
        let mut buckets = write(&self.buckets);
        let bucket = buckets.get(name).ok_or(StoreError::NoSuchBucket)?;
        if !bucket.is_empty() {
            return Err(StoreError::BucketNotEmpty);
        }
        let removed = buckets.remove(name);
        drop(buckets);
        // Uploads that were begun do not keep a bucket, in S3 neither.
        for ((key, _), upload) in
            removed.iter().flat_map(|bucket| mem::take(&mut *write(&bucket.uploads)))
        {
            self.give_back_bytes(upload.end(&key));
        }
        if let Some(memory) = removed.and_then(|bucket| bucket.memory) {
            for (key, object) in lock(&memory).earlier.drain() {
                self.give_back_bytes(object.map_or(0, |object| object.release(&key)));
            }
        }
        Ok(())
    }

    /// Returns every bucket's name and when it was created, by name.
    pub(crate) fn buckets(&self) -> Vec<(String, WallTime)> {
        let buckets = read(&self.buckets);
        buckets.iter().map(|(name, bucket)| (name.clone(), bucket.created)).collect()
    }

    /// Tells whether a bucket exists.
    pub(crate) fn has_bucket(&self, name: &str) -> bool {
        read(&self.buckets).contains_key(name)
    }

    /// Sets room aside for an object, so that uploads under way count before they end.
    pub(crate) fn reserve(
        &self,
        key: &str,
        size_bytes: u64,
        attributes: Option<&Attributes>,
    ) -> Result<Room<'_>, StoreError> {
        self.reserve_bytes(object_bytes(key, size_bytes, attributes))
    }

    /// Sets room aside for an object whose content is stored already under another key, so that it
    /// counts once.
    pub(crate) fn reserve_copy(
        &self,
        key: &str,
        content: &Content,
        attributes: Option<&Attributes>,
    ) -> Result<Room<'_>, StoreError> {
        let mut room = self.reserve(key, 0, attributes)?;
        // All of it where the other has gone meanwhile. Its room was there a moment ago, so this
        // is not held against the capacity.
        self.held_bytes.fetch_add(content.hold(), Ordering::Relaxed);
        room.content = Some(content.clone());
        Ok(room)
    }

    fn reserve_bytes(&self, bytes: u64) -> Result<Room<'_>, StoreError> {
        let within_capacity = |held: u64| {
            held.checked_add(bytes).filter(|held_then| *held_then <= self.capacity_bytes)
        };
        match self.held_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within_capacity) {
            Ok(_) => Ok(Room { store: self, bytes, content: None }),
            Err(_) => Err(StoreError::Full { capacity_bytes: self.capacity_bytes }),
        }
    }

    /// Tells whether an object may be stored under `key`.
    pub(crate) fn check_condition(
        &self,
        bucket: &str,
        key: &str,
        condition: Condition<'_>,
    ) -> Result<(), StoreError> {
        match condition {
            Condition::Always => Ok(()),
            _ => condition.check(self.get(bucket, key).ok().as_ref()),
        }
    }

    /// Stores an object under `key`, in the place of one that may be there unless the condition is
    /// against it or the bucket keeps versions. Returns which version it is.
    pub(crate) fn put(
        &self,
        bucket: &str,
        key: &str,
        object: Object,
        condition: Condition<'_>,
        room: Room<'_>,
    ) -> Result<VersionId, StoreError> {
        let room = room.holding(&object.content);
        assert_eq!(room.bytes, object.own_bytes(key));
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket).ok_or(StoreError::NoSuchBucket)?;
        let next = || self.next_version();
        let (version, replaced) = bucket.insert(key, object, condition, next)?;
        room.keep();
        if replaced.as_ref().is_none_or(|replaced| replaced.object().is_none()) {
            self.objects_count.fetch_add(1, Ordering::Relaxed);
        }
        let dropped = bucket.outlived(key, replaced);
        drop(buckets);
        self.give_back(key, dropped.as_ref());
        Ok(version)
    }

    fn next_version(&self) -> VersionId {
        VersionId::new(self.versions_count.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Adds the content of `object` to what is under `key`, which must have `offset` bytes: none
    /// where nothing is there. Returns the tag and the size of what is there then.
    ///
    /// Not for a store that remembers: what was before would share what is.
    pub(crate) fn append(
        &self,
        bucket: &str,
        key: &str,
        offset: u64,
        object: Object,
        room: Room<'_>,
    ) -> Result<(Tag, u64), StoreError> {
        assert!(!self.remembers, "the caller refuses");
        let said_bytes = object.own_bytes(key);
        let room = room.holding(&object.content);
        assert_eq!(room.bytes, said_bytes);
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket).ok_or(StoreError::NoSuchBucket)?;
        let (was_there, tag, size_bytes) = bucket.append(key, offset, object)?;
        room.keep();
        match was_there {
            true => self.give_back_bytes(said_bytes),
            false => drop(self.objects_count.fetch_add(1, Ordering::Relaxed)),
        }
        Ok((tag, size_bytes))
    }

    /// Tells whether it keeps what every key held before its last change.
    pub(crate) fn remembers(&self) -> bool {
        self.remembers
    }

    /// Returns the object under `key`.
    pub(crate) fn get(&self, bucket: &str, key: &str) -> Result<Object, StoreError> {
        self.get_version(bucket, key, None)
    }

    /// Returns the object under `key`, of that version where one is named.
    pub(crate) fn get_version(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
    ) -> Result<Object, StoreError> {
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket).ok_or(StoreError::NoSuchBucket)?;
        match bucket.version(key, version) {
            Some(Version::Object(object)) => Ok(object),
            Some(Version::Marker(marker)) => Err(marker.refusal(version.is_some())),
            None if version.is_some() => Err(StoreError::NoSuchVersion),
            None => Err(StoreError::NoSuchKey),
        }
    }

    /// Removes the object under `key`, or hides it where versions are kept; no object is no error.
    pub(crate) fn delete(
        &self,
        bucket: &str,
        key: &str,
        condition: Condition<'_>,
        now: WallTime,
    ) -> Result<Deleted, StoreError> {
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket).ok_or(StoreError::NoSuchBucket)?;
        let removed = bucket.remove(key, condition, |versioning| {
            self.reserve_bytes(overhead_bytes(key))?.keep();
            let version = match versioning {
                Versioning::Enabled => self.next_version(),
                Versioning::Never | Versioning::Suspended => VersionId::NULL,
            };
            Ok(Marker { version, modified: now })
        })?;
        let (deleted, gone) = match removed {
            Removed::Nothing => return Ok(Deleted::Gone),
            Removed::Gone(gone) => (Deleted::Gone, Some(gone)),
            Removed::Marked(marker, gone) => (Deleted::Marked(marker), gone),
        };
        let objects_count = u64::from(gone.as_ref().is_some_and(|gone| gone.object().is_some()));
        self.objects_count.fetch_sub(objects_count, Ordering::Relaxed);
        let dropped = bucket.outlived(key, gone);
        drop(buckets);
        self.give_back(key, dropped.as_ref());
        Ok(deleted)
    }

    /// Removes one version for good; no such version is no error. Returns whether it was a mark of
    /// deletion.
    pub(crate) fn delete_version(
        &self,
        bucket: &str,
        key: &str,
        removal: Removal,
        condition: Condition<'_>,
    ) -> Result<bool, StoreError> {
        let buckets = read(&self.buckets);
        let of = buckets.get(bucket).ok_or(StoreError::NoSuchBucket)?;
        if removal.version == VersionId::NULL && of.versioning() == Versioning::Never {
            drop(buckets);
            return self.delete(bucket, key, condition, removal.now).map(|_| false);
        }
        let Removal { version, now, bypass } = removal;
        let removed = of.remove_version(key, version, (now, bypass), condition)?;
        drop(buckets);
        let Some(removed) = removed else { return Ok(false) };
        let is_object = removed.object().is_some();
        self.objects_count.fetch_sub(u64::from(is_object), Ordering::Relaxed);
        self.give_back(key, Some(&removed));
        Ok(!is_object)
    }

    /// Returns what was under `key` before its last change; `None` when that is not known.
    pub(crate) fn earlier(&self, bucket: &str, key: &str) -> Option<Option<Object>> {
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket)?;
        let memory = lock(bucket.memory.as_ref()?);
        if bucket.versioning() == Versioning::Never {
            return memory.earlier.get(key).cloned();
        }
        // Where versions are kept, it is the one before the newest.
        bucket.look(key, |entry| entry.versions().nth(1).and_then(Version::object).cloned())
    }

    /// Returns the first object by key that starts with `prefix` and was removed, as it was.
    pub(crate) fn removed_below(&self, bucket: &str, prefix: &str) -> Option<(Arc<str>, Object)> {
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket)?;
        let memory = lock(bucket.memory.as_ref()?);
        if bucket.versioning() != Versioning::Never {
            let from = (Bound::Included(prefix), Bound::Unbounded);
            let first = read(&bucket.hidden).range::<str, _>(from).next().cloned()?;
            let last = bucket
                .look(&first, |entry| entry.versions().find_map(Version::object).cloned())??;
            return first.starts_with(prefix).then_some((first, last));
        }
        let earlier = memory.earlier.iter().filter(|(key, _)| key.starts_with(prefix));
        let removed = earlier.filter(|(key, _)| bucket.get(key).is_none());
        let first = removed.min_by_key(|(key, _)| Arc::clone(key))?;
        Some((Arc::clone(first.0), first.1.clone()?))
    }

    /// Notes that a write of `key` is acknowledged and lost.
    pub(crate) fn lose_write(&self, bucket: &str, key: &str) {
        let buckets = read(&self.buckets);
        if let Some(memory) = buckets.get(bucket).and_then(|bucket| bucket.memory.as_ref()) {
            lock(memory).lost.insert(key.into());
        }
    }

    /// Tells whether the last write of `key` was acknowledged and lost.
    pub(crate) fn lost_write(&self, bucket: &str, key: &str) -> bool {
        if !self.remembers {
            return false;
        }
        let buckets = read(&self.buckets);
        let memory = buckets.get(bucket).and_then(|bucket| bucket.memory.as_ref());
        memory.is_some_and(|memory| lock(memory).lost.contains(key))
    }

    /// Returns the object of another key close to `key`: one of `size_bytes` if there is any, else
    /// the largest.
    pub(crate) fn neighbour(&self, bucket: &str, key: &str, size_bytes: usize) -> Option<Object> {
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket)?;
        let near: Vec<Arc<str>> = {
            let keys = read(&bucket.keys);
            let after = keys.range::<str, _>((Bound::Excluded(key), Bound::Unbounded));
            let before = keys.range::<str, _>((Bound::Unbounded, Bound::Excluded(key))).rev();
            after.take(NEIGHBOURS_MAX).chain(before.take(NEIGHBOURS_MAX)).cloned().collect()
        };
        let objects: Vec<Object> = near.iter().filter_map(|key| bucket.get(key)).collect();
        let same_size = objects.iter().find(|object| object.content.len() == size_bytes);
        let largest = || objects.iter().max_by_key(|object| object.content.len());
        same_size.or_else(largest).cloned()
    }

    /// Returns one page of a listing.
    ///
    /// A key that is deleted while the page is made may be left out of it.
    pub(crate) fn list(
        &self,
        bucket: &str,
        query: &ListQuery<'_>,
    ) -> Result<ObjectPage, StoreError> {
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket).ok_or(StoreError::NoSuchBucket)?;
        let keys = query.page(&read(&bucket.keys));
        let last = keys.entries.last().map(|entry| entry.text().to_owned());
        let mut page = ObjectPage { last, next: keys.next, ..ObjectPage::default() };
        for entry in keys.entries {
            match entry {
                Entry::Key(key) => {
                    if let Some(object) = bucket.get(&key) {
                        page.objects.push((key, object));
                    }
                }
                Entry::CommonPrefix(prefix) => page.common_prefixes.push(prefix),
            }
        }
        Ok(page)
    }

    /// Returns how much the store holds; uploads under way count as bytes, not as objects.
    pub(crate) fn holding(&self) -> Holding {
        Holding {
            buckets_count: read(&self.buckets).len() as u64,
            objects_count: self.objects_count.load(Ordering::Relaxed),
            bytes: self.held_bytes.load(Ordering::Relaxed),
        }
    }

    fn give_back(&self, key: &str, old: Option<&Version>) {
        let Some(old) = old else { return };
        self.give_back_bytes(old.release(key));
    }

    fn give_back_bytes(&self, bytes: u64) {
        let before = self.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "more was given back than was ever held");
    }
}

impl Room<'_> {
    /// Makes it the room of this content, which it has bytes for or holds already.
    pub(crate) fn holding(mut self, content: &Content) -> Self {
        if self.content.is_none() {
            let len = content.len() as u64;
            assert!(self.bytes >= len, "room is set aside for less than the content");
            self.bytes -= len;
            let added_bytes = content.hold();
            self.content = Some(content.clone());
            self.store.give_back_bytes(len - added_bytes);
        }
        self
    }

    /// Leaves what was set aside to what is stored now.
    fn keep(mut self) {
        (self.bytes, self.content) = (0, None);
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        let released = self.content.as_ref().map_or(0, Content::release);
        self.store.give_back_bytes(self.bytes + released);
    }
}

fn lock<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().expect("nobody panics while holding a lock of the store")
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().expect("nobody panics while holding a lock of the store")
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().expect("nobody panics while holding a lock of the store")
}

#[cfg(test)]
mod tests;

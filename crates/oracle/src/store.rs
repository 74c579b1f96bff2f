//! Buckets and objects in memory: maps and locks, without IO, clock or any word of the protocol.

mod uploads;

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;
use std::mem;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use plimsoll_model::WallTime;

use self::uploads::Uploads;
pub(crate) use self::uploads::{NamedPart, PART_NUMBER_MAX, Part};
use crate::content::Content;
use crate::digests::Tag;
use crate::listing::{Entry, ListQuery};

/// How many locks the objects of a bucket are spread over.
const SHARDS: usize = 64;

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
    buckets: RwLock<BTreeMap<String, Bucket>>,
}

/// An object as stored. A clone shares the content.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) content: Content,
    pub(crate) tag: Tag,
    pub(crate) modified: WallTime,
    pub(crate) attributes: Option<Arc<Attributes>>,
    /// Where in the content each part ends that it was uploaded in; `None`: it came as a whole.
    pub(crate) part_ends: Option<Arc<[usize]>>,
}

/// What a client said about an object and wants to hear again.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) content_type: Option<String>,
    pub(crate) metadata: Option<HashMap<String, String>>,
}

/// When an object is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Whatever is there.
    Always,
    /// Where nothing is there.
    Absent,
}

/// Room set aside for an object on its way in; given back when dropped unused.
pub(crate) struct Room<'s> {
    store: &'s Store,
    bytes: u64,
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
    #[error("an object of that key exists")]
    KeyExists,
    #[error("the bucket exists already")]
    BucketExists,
    #[error("the bucket holds objects")]
    BucketNotEmpty,
    #[error("the upload does not exist: it was completed, aborted or never begun")]
    NoSuchUpload,
    #[error("part {number} was not uploaded, or its ETag is another")]
    InvalidPart { number: u32 },
    #[error("part {number} comes after a part of the same or a higher number")]
    InvalidPartOrder { number: u32 },
    #[error("part {number} is not the last and below 5 MiB")]
    PartTooSmall { number: u32 },
    #[error("the object has {size_bytes} bytes, and what is added begins elsewhere")]
    WrongOffset { size_bytes: u64 },
    #[error("the store is full: its capacity is {capacity_bytes} bytes")]
    Full { capacity_bytes: u64 },
}

/// The objects of a bucket by hash, and their keys in order.
///
/// A key is in `keys` exactly while it is in its shard: both change under the shard's lock. Locks
/// are taken in the order shard, keys; listing lets go of `keys` before it reads a shard.
struct Bucket {
    created: WallTime,
    hasher: RandomState,
    shards: Vec<RwLock<HashMap<Arc<str>, Object>>>,
    keys: RwLock<BTreeSet<Arc<str>>>,
    uploads: RwLock<Uploads>,
    memory: Option<Mutex<Memory>>,
}

/// What lies are made of.
#[derive(Default)]
struct Memory {
    /// What was under a key before its last change; `None`: nothing.
    earlier: HashMap<Arc<str>, Option<Object>>,
    /// Keys whose last write was acknowledged and lost.
    lost: HashSet<Arc<str>>,
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
            buckets: RwLock::default(),
        }
    }

    /// Adds an empty bucket.
    pub(crate) fn create_bucket(&self, name: &str, created: WallTime) -> Result<(), StoreError> {
        let mut buckets = write(&self.buckets);
        if buckets.contains_key(name) {
            return Err(StoreError::BucketExists);
        }
        buckets.insert(name.to_owned(), Bucket::new(created, self.remembers));
        Ok(())
    }

    /// Removes a bucket that holds nothing.
    pub(crate) fn delete_bucket(&self, name: &str) -> Result<(), StoreError> {
        let mut buckets = write(&self.buckets);
        let bucket = buckets.get(name).ok_or(StoreError::NoSuchBucket)?;
        if !read(&bucket.keys).is_empty() {
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
                self.give_back(&key, object.as_ref());
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
    pub(crate) fn reserve(&self, key: &str, size_bytes: u64) -> Result<Room<'_>, StoreError> {
        let full = StoreError::Full { capacity_bytes: self.capacity_bytes };
        let bytes = size_bytes.checked_add(overhead_bytes(key)).ok_or(full)?;
        let within_capacity = |held: u64| {
            held.checked_add(bytes).filter(|held_then| *held_then <= self.capacity_bytes)
        };
        match self.held_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within_capacity) {
            Ok(_) => Ok(Room { store: self, bytes }),
            Err(_) => Err(full),
        }
    }

    /// Tells whether an object may be stored under `key`.
    pub(crate) fn check_condition(
        &self,
        bucket: &str,
        key: &str,
        condition: Condition,
    ) -> Result<(), StoreError> {
        match condition == Condition::Absent && self.get(bucket, key).is_ok() {
            true => Err(StoreError::KeyExists),
            false => Ok(()),
        }
    }

    /// Stores an object under `key`, in the place of one that may be there unless the condition is
    /// against it.
    pub(crate) fn put(
        &self,
        bucket: &str,
        key: &str,
        object: Object,
        condition: Condition,
        room: Room<'_>,
    ) -> Result<(), StoreError> {
        assert_eq!(room.bytes, object.content.len() as u64 + overhead_bytes(key));
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket).ok_or(StoreError::NoSuchBucket)?;
        let replaced = bucket.insert(key, object, condition)?;
        // What was set aside is now held by the object.
        mem::forget(room);
        if replaced.is_none() {
            self.objects_count.fetch_add(1, Ordering::Relaxed);
        }
        let dropped = bucket.outlived(key, replaced);
        drop(buckets);
        self.give_back(key, dropped.as_ref());
        Ok(())
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
        let added_bytes = object.content.len() as u64;
        assert_eq!(room.bytes, added_bytes + overhead_bytes(key));
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket).ok_or(StoreError::NoSuchBucket)?;
        let (was_there, tag, size_bytes) = bucket.append(key, offset, object)?;
        mem::forget(room);
        match was_there {
            true => self.give_back_bytes(overhead_bytes(key)),
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
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket).ok_or(StoreError::NoSuchBucket)?;
        bucket.get(key).ok_or(StoreError::NoSuchKey)
    }

    /// Removes the object under `key`; no object is no error.
    pub(crate) fn delete(&self, bucket: &str, key: &str) -> Result<(), StoreError> {
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket).ok_or(StoreError::NoSuchBucket)?;
        let Some(removed) = bucket.remove(key) else { return Ok(()) };
        self.objects_count.fetch_sub(1, Ordering::Relaxed);
        let dropped = bucket.outlived(key, Some(removed));
        drop(buckets);
        self.give_back(key, dropped.as_ref());
        Ok(())
    }

    /// Returns what was under `key` before its last change; `None` when that is not known.
    pub(crate) fn earlier(&self, bucket: &str, key: &str) -> Option<Option<Object>> {
        let buckets = read(&self.buckets);
        let memory = buckets.get(bucket)?.memory.as_ref()?;
        lock(memory).earlier.get(key).cloned()
    }

    /// Returns the first object by key that starts with `prefix` and was removed, as it was.
    pub(crate) fn removed_below(&self, bucket: &str, prefix: &str) -> Option<(Arc<str>, Object)> {
        let buckets = read(&self.buckets);
        let bucket = buckets.get(bucket)?;
        let memory = lock(bucket.memory.as_ref()?);
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

    fn give_back(&self, key: &str, old: Option<&Object>) {
        let Some(old) = old else { return };
        self.give_back_bytes(old.content.len() as u64 + overhead_bytes(key));
    }

    fn give_back_bytes(&self, bytes: u64) {
        let before = self.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "more was given back than was ever held");
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.store.held_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Bucket {
    fn new(created: WallTime, remembers: bool) -> Self {
        Self {
            created,
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            keys: RwLock::default(),
            uploads: RwLock::default(),
            memory: remembers.then(Mutex::default),
        }
    }

    /// Takes what a change of `key` has replaced, and returns what nobody needs any more.
    fn outlived(&self, key: &str, replaced: Option<Object>) -> Option<Object> {
        let Some(memory) = &self.memory else { return replaced };
        let mut memory = lock(memory);
        memory.lost.remove(key);
        memory.earlier.insert(key.into(), replaced).flatten()
    }

    fn shard(&self, key: &str) -> &RwLock<HashMap<Arc<str>, Object>> {
        &self.shards[self.hasher.hash_one(key) as usize % SHARDS]
    }

    fn get(&self, key: &str) -> Option<Object> {
        read(self.shard(key)).get(key).cloned()
    }

    /// Returns the object that was replaced, so that it is freed outside the lock.
    fn insert(
        &self,
        key: &str,
        object: Object,
        condition: Condition,
    ) -> Result<Option<Object>, StoreError> {
        let mut shard = write(self.shard(key));
        match (shard.get_mut(key), condition) {
            (Some(_), Condition::Absent) => return Err(StoreError::KeyExists),
            (Some(held), Condition::Always) => return Ok(Some(mem::replace(held, object))),
            (None, _) => {}
        }
        let key: Arc<str> = key.into();
        shard.insert(Arc::clone(&key), object);
        write(&self.keys).insert(key);
        Ok(None)
    }

    /// Returns whether there was an object, and the tag and the size of what is there then.
    fn append(
        &self,
        key: &str,
        offset: u64,
        object: Object,
    ) -> Result<(bool, Tag, u64), StoreError> {
        let mut shard = write(self.shard(key));
        let size_bytes = shard.get(key).map_or(0, |held| held.content.len() as u64);
        if offset != size_bytes {
            return Err(StoreError::WrongOffset { size_bytes });
        }
        let size_bytes = size_bytes + object.content.len() as u64;
        if let Some(held) = shard.get_mut(key) {
            held.content.push(object.content.whole());
            held.tag = Tag::of_parts(&[held.tag, object.tag], size_bytes);
            held.modified = object.modified;
            held.part_ends = None;
            return Ok((true, held.tag, size_bytes));
        }
        let (key, tag): (Arc<str>, _) = (key.into(), object.tag);
        shard.insert(Arc::clone(&key), object);
        write(&self.keys).insert(key);
        Ok((false, tag, size_bytes))
    }

    fn remove(&self, key: &str) -> Option<Object> {
        let mut shard = write(self.shard(key));
        let removed = shard.remove(key)?;
        write(&self.keys).remove(key);
        Some(removed)
    }
}

fn overhead_bytes(key: &str) -> u64 {
    OBJECT_OVERHEAD_BYTES + key.len() as u64
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

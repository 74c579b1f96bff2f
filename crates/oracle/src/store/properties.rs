//! What is set for a bucket or a version after it was made: versioning, object lock, retention,
//! tags.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_model::WallTime;

use super::{
    Attributes, Bucket, DefaultRetention, Lock, Object, Retention, Store, StoreError, VersionId,
    Versioning, read, write,
};

/// How long a day is for retentions.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Names and values.
pub(crate) type Tags = Vec<(String, String)>;

impl DefaultRetention {
    /// Returns the retention of a version that is made now.
    fn from(self, now: WallTime) -> Retention {
        Retention { mode: self.mode, until: now.after(DAY * self.days) }
    }
}

impl Store {
    fn with_bucket<T>(
        &self,
        bucket: &str,
        then: impl FnOnce(&Bucket) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        then(read(&self.buckets).get(bucket).ok_or(StoreError::NoSuchBucket)?)
    }

    /// Tells whether a bucket keeps versions.
    pub(crate) fn versioning(&self, bucket: &str) -> Result<Versioning, StoreError> {
        self.with_bucket(bucket, |bucket| Ok(bucket.versioning()))
    }

    /// Has a bucket keep versions, or no more of them.
    pub(crate) fn set_versioning(&self, bucket: &str, to: Versioning) -> Result<(), StoreError> {
        assert!(to != Versioning::Never, "nobody forgets versions");
        self.with_bucket(bucket, |bucket| {
            if to == Versioning::Suspended && bucket.locks.load(Ordering::Relaxed) {
                return Err(StoreError::LockNeedsVersions);
            }
            bucket.set_versioning(to);
            Ok(())
        })
    }

    /// Returns what keeps a version that is made now, where `asked` is what its writer says of it.
    pub(crate) fn lock_of_new(
        &self,
        bucket: &str,
        asked: Lock,
        now: impl FnOnce() -> WallTime,
    ) -> Result<Lock, StoreError> {
        self.with_bucket(bucket, |bucket| {
            if !bucket.locks.load(Ordering::Relaxed) {
                return if asked == Lock::default() { Ok(asked) } else { Err(StoreError::NoLock) };
            }
            let default = || {
                let default = read(&bucket.settings).retention;
                default.map(|default| default.from(now()))
            };
            Ok(Lock { retention: asked.retention.or_else(default), ..asked })
        })
    }

    /// Returns how long new versions are kept where nobody says otherwise.
    pub(crate) fn default_retention(
        &self,
        bucket: &str,
    ) -> Result<Option<DefaultRetention>, StoreError> {
        self.with_bucket(bucket, |bucket| match bucket.locks.load(Ordering::Relaxed) {
            true => Ok(read(&bucket.settings).retention),
            false => Err(StoreError::NoLock),
        })
    }

    /// Gives a bucket object lock, if it has none, and says how long new versions are kept.
    pub(crate) fn set_default_retention(
        &self,
        bucket: &str,
        retention: Option<DefaultRetention>,
    ) -> Result<(), StoreError> {
        self.with_bucket(bucket, |bucket| {
            if bucket.versioning() != Versioning::Enabled {
                return Err(StoreError::LockNeedsVersions);
            }
            write(&bucket.settings).retention = retention;
            bucket.locks.store(true, Ordering::Relaxed);
            Ok(())
        })
    }

    /// Returns the tags of a bucket.
    pub(crate) fn bucket_tags(&self, bucket: &str) -> Result<Tags, StoreError> {
        self.with_bucket(bucket, |bucket| Ok(read(&bucket.settings).tags.clone()))
    }

    /// Gives a bucket these tags and no others.
    pub(crate) fn set_bucket_tags(&self, bucket: &str, tags: Tags) -> Result<(), StoreError> {
        self.with_bucket(bucket, |bucket| {
            write(&bucket.settings).tags = tags;
            Ok(())
        })
    }

    /// Gives a version these tags and no others, and returns which version that is.
    pub(crate) fn set_tags(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
        tags: Tags,
    ) -> Result<VersionId, StoreError> {
        self.with_bucket(bucket, |bucket| {
            bucket.change(key, version, |object| {
                self.set_attributes(key, object, |attributes| attributes.tags = tags)?;
                Ok(object.version)
            })
        })
    }

    /// Retains a version; a retention that is lifted or weakened needs `bypass`, which lifts no
    /// compliance.
    pub(crate) fn set_retention(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
        retention: Option<Retention>,
        (now, bypass): (WallTime, bool),
    ) -> Result<(), StoreError> {
        self.change_lock(bucket, key, version, |lock| {
            let held = lock.retention.filter(|held| held.holds(now, bypass));
            if held.is_some_and(|held| !held.is_kept_by(retention)) {
                return Err(StoreError::Locked);
            }
            lock.retention = retention;
            Ok(())
        })
    }

    /// Puts a version on legal hold, or lifts it.
    pub(crate) fn set_legal_hold(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
        legal_hold: bool,
    ) -> Result<(), StoreError> {
        self.change_lock(bucket, key, version, |lock| {
            lock.legal_hold = legal_hold;
            Ok(())
        })
    }

    fn change_lock(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
        change: impl FnOnce(&mut Lock) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.with_bucket(bucket, |bucket| {
            if !bucket.locks.load(Ordering::Relaxed) {
                return Err(StoreError::NoLock);
            }
            bucket.change(key, version, |object| {
                let mut lock = object.lock();
                change(&mut lock)?;
                self.set_attributes(key, object, |attributes| attributes.lock = lock)
            })
        })
    }

    /// Changes what is said of an object, and counts it.
    fn set_attributes(
        &self,
        key: &str,
        object: &mut Object,
        change: impl FnOnce(&mut Attributes),
    ) -> Result<(), StoreError> {
        let mut attributes = object.attributes.as_deref().cloned().unwrap_or_default();
        change(&mut attributes);
        let before = object.own_bytes(key);
        let changed = Object { attributes: Some(Arc::new(attributes)), ..object.clone() };
        let after = changed.own_bytes(key);
        self.reserve_bytes(after.saturating_sub(before))?.keep();
        self.give_back_bytes(before.saturating_sub(after));
        *object = changed;
        Ok(())
    }
}

//! Administration of the bucket: making it, listing it, removing what the run wrote.

use plimsoll_driver::{DELETE_BATCH_MAX, DriverError, FoundObject, RootState, Steward};
use plimsoll_model::ErrorClass;

use crate::call::{Call, Property};
use crate::listing::{Listing, Walk};
use crate::session::{BucketCall, S3Session};
use crate::xml::{self, Listed};

mod mark;
mod probe;

pub use probe::Feature;

/// How many entries the steward asks for per page, which is also how many keys it removes with one
/// call.
const PAGE_SIZE: u32 = DELETE_BATCH_MAX as u32;
/// How often a key may be listed first again after it was removed; stores that list late get that
/// much patience.
const SWEEP_REPEATS_MAX: u32 = 100;
/// How many unfinished uploads of a whole bucket are looked through where a server does not list
/// them by prefix.
const FOREIGN_UPLOADS_MAX: u64 = 100_000;

/// A version of an object found on the target, or the mark of its deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundVersion {
    /// The object's key.
    pub key: String,
    /// The version by the target's own name.
    pub version: String,
    /// Its size; zero for a mark of deletion.
    pub size: u64,
    /// Whether it is a mark of deletion.
    pub is_marker: bool,
}

/// An unfinished upload found on the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundUpload {
    /// The key that the object was to have.
    pub key: String,
    /// The upload by the target's own name.
    pub upload: String,
}

/// Administers the bucket of an [`S3Driver`](crate::S3Driver).
pub struct S3Steward {
    session: S3Session,
}

impl Steward for S3Steward {
    async fn ensure_root(&mut self) -> Result<RootState, DriverError> {
        self.ensure(false).await
    }

    async fn survey(
        &mut self,
        prefix: &str,
        limit: Option<u64>,
        recursive: bool,
    ) -> Result<Vec<FoundObject>, DriverError> {
        let mut found = Vec::new();
        let mut take = |entry: xml::Entry<'_>| {
            found.push(FoundObject { key: entry.key.to_owned(), size: entry.size });
        };
        self.list(prefix, limit, Walk::Objects { recursive }, &mut take).await?;
        Ok(found)
    }

    /// Removes every object below `prefix` with all its versions and marks of deletion, and gives
    /// up the uploads that are unfinished there. Versions that are retained go too where the
    /// credentials give leave to that.
    async fn sweep(&mut self, prefix: &str) -> Result<u64, DriverError> {
        assert!(!prefix.is_empty(), "sweeping needs a prefix of its own");
        let versioning = self.versioning().await;
        // Leave to remove what is retained is asked for only where something may be.
        let bypass = self.has_lock().await.unwrap_or(false);
        let removed_count = match versioning {
            Ok(Versioning::Never) => self.sweep_objects(prefix, bypass).await?,
            Ok(Versioning::Enabled | Versioning::Suspended) => {
                self.sweep_versions(prefix, bypass).await?
            }
            // Whether there are versions is not known.
            Err(_) => {
                let objects_count = self.sweep_objects(prefix, bypass).await?;
                objects_count + optional(self.sweep_versions(prefix, bypass).await)?.unwrap_or(0)
            }
        };
        self.sweep_uploads(prefix).await?;
        Ok(removed_count)
    }
}

/// Whether a bucket keeps versions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Versioning {
    Never,
    Enabled,
    Suspended,
}

impl S3Steward {
    pub(crate) fn new(session: S3Session) -> Self {
        Self { session }
    }

    /// Tells whether the bucket keeps versions.
    pub async fn keeps_versions(&mut self) -> Result<bool, DriverError> {
        Ok(self.versioning().await? == Versioning::Enabled)
    }

    /// Has the bucket keep versions from now on, if it does not yet.
    pub async fn ensure_versioning(&mut self) -> Result<(), DriverError> {
        if self.versioning().await == Ok(Versioning::Enabled) {
            return Ok(());
        }
        let result = self.session.call_bucket(BucketCall::EnableVersioning).await.result;
        result.map_err(|error| self.explained("cannot be made to keep versions", error))
    }

    /// Tells whether objects of the bucket can be retained.
    pub async fn has_lock(&mut self) -> Result<bool, DriverError> {
        let call = BucketCall::Get(Property::ObjectLock);
        // A bucket without it is answered with 404, a server without it with others.
        if optional(self.session.call_bucket(call).await.result)?.is_none() {
            return Ok(false);
        }
        let path = "ObjectLockConfiguration/ObjectLockEnabled";
        let enabled = xml::parse_value(self.session.answer_body(), path);
        Ok(enabled.as_deref() == Some("Enabled"))
    }

    /// Makes sure that the bucket is there and that its objects can be retained. S3 gives that to
    /// new buckets only, so one that is there without it is refused and left alone.
    pub async fn ensure_root_with_lock(&mut self) -> Result<RootState, DriverError> {
        let state = self.ensure(true).await?;
        if self.has_lock().await? {
            return Ok(state);
        }
        let why = match state {
            RootState::Existed => {
                "cannot retain objects; name another --bucket, to be made with that"
            }
            RootState::Created => "was made, but the server cannot retain objects",
        };
        let message = format!("bucket `{}` {why}", self.bucket());
        Err(DriverError::new(ErrorClass::Precondition, message))
    }

    /// Lists up to `limit` versions and marks of deletion below `prefix` (all when `None`).
    pub async fn survey_versions(
        &mut self,
        prefix: &str,
        limit: Option<u64>,
    ) -> Result<Vec<FoundVersion>, DriverError> {
        let mut found = Vec::new();
        let mut take = |entry: xml::Entry<'_>| {
            found.push(FoundVersion {
                key: entry.key.to_owned(),
                version: entry.id.to_owned(),
                size: entry.size,
                is_marker: entry.is_marker,
            });
        };
        self.list(prefix, limit, Walk::Marked(Listed::Versions), &mut take).await?;
        Ok(found)
    }

    /// Lists the unfinished uploads below `prefix`.
    pub async fn survey_uploads(&mut self, prefix: &str) -> Result<Vec<FoundUpload>, DriverError> {
        let mut found = self.list_uploads(prefix, None).await?;
        // MinIO lists the uploads of one key, or all of the bucket, but not those below a prefix.
        if found.is_empty() && !prefix.is_empty() {
            let listed = self.list_uploads("", Some(FOREIGN_UPLOADS_MAX)).await?;
            for upload in listed.into_iter().filter(|upload| upload.key.starts_with(prefix)) {
                // That list is kept in memory, and goes on naming an upload whose client was killed
                // while it was begun.
                if self.list_uploads(&upload.key, None).await?.contains(&upload) {
                    found.push(upload);
                }
            }
        }
        found.retain(|upload| upload.key.starts_with(prefix));
        Ok(found)
    }

    async fn list_uploads(
        &mut self,
        prefix: &str,
        limit: Option<u64>,
    ) -> Result<Vec<FoundUpload>, DriverError> {
        let mut found = Vec::new();
        let mut take = |entry: xml::Entry<'_>| {
            found.push(FoundUpload { key: entry.key.to_owned(), upload: entry.id.to_owned() });
        };
        self.list(prefix, limit, Walk::Marked(Listed::Uploads), &mut take).await?;
        Ok(found)
    }

    async fn list(
        &mut self,
        prefix: &str,
        limit: Option<u64>,
        walk: Walk,
        take: &mut dyn FnMut(xml::Entry<'_>),
    ) -> Result<(), DriverError> {
        if limit == Some(0) {
            return Ok(());
        }
        let page_size = limit.map_or(PAGE_SIZE, |limit| limit.min(PAGE_SIZE.into()) as u32);
        let listing = Listing { prefix, page_size, walk, entries_max: limit };
        self.session.survey(listing, take).await.result
    }

    async fn sweep_objects(&mut self, prefix: &str, bypass: bool) -> Result<u64, DriverError> {
        let (mut removed_count, mut patience) = (0, Patience::default());
        loop {
            let mut found = self.survey(prefix, Some(PAGE_SIZE.into()), true).await?;
            // Whatever the server lists, nothing outside of the prefix is touched.
            found.retain(|object| object.key.starts_with(prefix));
            let Some(first) = found.first() else {
                return Ok(removed_count);
            };
            let is_repeat = patience.is_repeat(&first.key)?;
            let objects = found.iter().map(|object| (object.key.as_str(), None));
            self.session.remove(objects, bypass).await.result?;
            removed_count += if is_repeat { 0 } else { found.len() as u64 };
        }
    }

    /// Removes versions and marks of deletion; marks do not count as removed objects.
    async fn sweep_versions(&mut self, prefix: &str, bypass: bool) -> Result<u64, DriverError> {
        let (mut removed_count, mut patience) = (0, Patience::default());
        loop {
            let mut found = self.survey_versions(prefix, Some(PAGE_SIZE.into())).await?;
            found.retain(|version| version.key.starts_with(prefix));
            let Some(first) = found.first() else {
                return Ok(removed_count);
            };
            let is_repeat = patience.is_repeat(&format!("{}?{}", first.key, first.version))?;
            let versions =
                found.iter().map(|found| (found.key.as_str(), Some(found.version.as_str())));
            self.session.remove(versions, bypass).await.result?;
            let contents_count = found.iter().filter(|version| !version.is_marker).count();
            removed_count += if is_repeat { 0 } else { contents_count as u64 };
        }
    }

    /// Gives up the unfinished uploads below `prefix`, if the server lists them.
    async fn sweep_uploads(&mut self, prefix: &str) -> Result<(), DriverError> {
        let found = optional(self.survey_uploads(prefix).await)?.unwrap_or_default();
        for FoundUpload { key, upload } in &found {
            let lease = self.session.lease();
            let call = Call::AbortUpload { key, upload };
            let aborted = self.session.line.call(&lease, &call, &[204, 200, 404]).await;
            aborted.result?;
        }
        Ok(())
    }

    async fn versioning(&mut self) -> Result<Versioning, DriverError> {
        let call = BucketCall::Get(Property::Versioning);
        self.session.call_bucket(call).await.result?;
        let status = xml::parse_value(self.session.answer_body(), "VersioningConfiguration/Status");
        Ok(match status.as_deref() {
            Some("Enabled") => Versioning::Enabled,
            Some("Suspended") => Versioning::Suspended,
            _ => Versioning::Never,
        })
    }

    fn bucket(&self) -> &str {
        &self.session.line.target.bucket
    }

    fn explained(&self, what: &str, error: DriverError) -> DriverError {
        let message = format!("bucket `{}` {what}: {}", self.bucket(), error.message);
        DriverError { message, ..error }
    }

    async fn ensure(&mut self, lock: bool) -> Result<RootState, DriverError> {
        let Err(error) = self.session.call_bucket(BucketCall::Head).await.result else {
            return Ok(RootState::Existed);
        };
        match error.status {
            Some(404) => self.create(lock).await,
            Some(_) => self.explain(error).await,
            None => Err(error),
        }
    }

    /// Finds out why the bucket may not be used: a HEAD is answered without a text, a list with
    /// one.
    async fn explain(&mut self, head_error: DriverError) -> Result<RootState, DriverError> {
        let Err(list_error) = self.survey("", Some(1), false).await else {
            return Ok(RootState::Existed);
        };
        let error = if list_error.status == head_error.status { list_error } else { head_error };
        let because = match error.class {
            ErrorClass::Denied => "cannot be read with these credentials",
            _ => "cannot be read",
        };
        Err(self.explained(because, error))
    }

    async fn create(&mut self, lock: bool) -> Result<RootState, DriverError> {
        let Err(error) = self.session.call_bucket(BucketCall::Create { lock }).await.result else {
            return Ok(RootState::Created);
        };
        // Someone with the same credentials was faster.
        let text = xml::parse_error(self.session.answer_body());
        if text.is_some_and(|text| text.code == "BucketAlreadyOwnedByYou") {
            return Ok(RootState::Existed);
        }
        Err(self.explained("is not there and cannot be made", error))
    }
}

/// Notices a listing that goes on with what was removed.
#[derive(Default)]
struct Patience {
    first_before: String,
    repeats_count: u32,
}

impl Patience {
    /// Tells whether a page begins with the same as the one before, which is an error after so many
    /// times.
    fn is_repeat(&mut self, first: &str) -> Result<bool, DriverError> {
        let is_repeat = self.first_before == first;
        self.repeats_count = if is_repeat { self.repeats_count + 1 } else { 0 };
        if self.repeats_count > SWEEP_REPEATS_MAX {
            let message = format!("`{first}` is still listed after its removal");
            return Err(DriverError::new(ErrorClass::Protocol, message));
        }
        first.clone_into(&mut self.first_before);
        Ok(is_repeat)
    }
}

/// Returns `None` for what the server does not offer, or not to these credentials.
fn optional<T>(result: Result<T, DriverError>) -> Result<Option<T>, DriverError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_refusal(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Tells whether the server answered that it does not do such a thing.
fn is_refusal(error: &DriverError) -> bool {
    error.status.is_some_and(|status| matches!(status, 400..=499 | 501) && status != 429)
}

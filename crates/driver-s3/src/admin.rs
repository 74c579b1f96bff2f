//! Administration of the bucket: making it, listing it, removing what the run wrote.
//!
//! Every request has a limit and every listing an end. Dropping a future of it gives up
//! the request that is under way; the next one has a new connection.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_driver::{
    Admin, CreatedRoot, DELETE_BATCH_MAX, Dates, DriverError, FoundObject, Lack, MissingRoot,
    RootState, Step, one_line,
};
use plimsoll_model::{Ability, ErrorClass};

use crate::listing::{Listing, Walk};
use crate::s3_request::{Property, S3Request};
use crate::session::{BucketRequest, S3Session};
use crate::xml::{self, Listed};
use crate::{Credentials, error, request};

mod bucket;
mod mark;
mod probe;
mod ready;

pub use probe::Feature;

/// How many entries are asked for per page, which is also how many keys are removed with one
/// call.
const PAGE_SIZE: u32 = DELETE_BATCH_MAX as u32;
/// How often a key may be listed first again after it was removed; stores that list late get that
/// much patience.
const SWEEP_REPEATS_MAX: u32 = 100;
/// How many pages one sweep removes at most; with 1,000 entries each, 10^9 of them.
const SWEEP_PAGES_MAX: usize = 1_000_000;
/// How long a request of administration may go without moving a byte; in all it may take 20 times
/// as long.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The most entries of a listing that are kept where no number was asked for, and the most bytes of
/// their names in any case.
const SURVEY_ENTRIES_MAX: u64 = 10_000_000;
const SURVEY_NAMES_BYTES_MAX: u64 = 2 << 30;
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

/// What administration keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminLimits {
    /// How long a request may go without moving a byte once it is connected; in all it may take 20
    /// times as long. Connecting has a limit of its own.
    pub stall_timeout: Duration,
    /// The most entries of a listing that are kept where no number is asked for; more are an error.
    pub entries_max: u64,
}

impl Default for AdminLimits {
    /// 30 seconds and ten million entries.
    fn default() -> Self {
        Self { stall_timeout: STALL_TIMEOUT, entries_max: SURVEY_ENTRIES_MAX }
    }
}

/// Administers the bucket of an [`S3Driver`](crate::S3Driver).
pub struct S3Admin {
    session: S3Session,
    limits: AdminLimits,
    removed_count: Arc<AtomicU64>,
    has_created: bool,
}

/// How much of a listing may still be kept.
struct Room {
    entries_left: u64,
    bytes_left: u64,
    /// Whether there was more than may be kept.
    is_over: bool,
}

impl Room {
    /// Tells whether there is room for an entry with such names, and takes it.
    fn take(&mut self, names: &[&str]) -> bool {
        let bytes = names.iter().map(|name| name.len() as u64).sum();
        match (self.entries_left.checked_sub(1), self.bytes_left.checked_sub(bytes)) {
            (Some(entries), Some(bytes)) => (self.entries_left, self.bytes_left) = (entries, bytes),
            _ => self.is_over = true,
        }
        !self.is_over
    }
}

impl Admin for S3Admin {
    fn ensure_root(&mut self) -> Step<'_, RootState> {
        Box::pin(self.ensure(false))
    }

    fn has_created(&self) -> bool {
        self.has_created
    }

    fn remove_created(&mut self) -> Step<'_, Option<CreatedRoot>> {
        Box::pin(self.remove_own())
    }

    fn make_bucket(&mut self) -> Step<'_, RootState> {
        Box::pin(self.ensure_as(MissingRoot::CreateAndKeep, false))
    }

    fn make_ready<'a>(&'a mut self, needs: &'a [Ability], base: &'a str) -> Step<'a, Option<Lack>> {
        Box::pin(self.ready(needs, base))
    }

    fn survey<'a>(
        &'a mut self,
        prefix: &'a str,
        limit: Option<u64>,
        recursive: bool,
    ) -> Step<'a, Vec<FoundObject>> {
        Box::pin(self.survey_objects(prefix, limit, recursive))
    }

    /// Removes every object below `prefix` with all its versions and marks of deletion, and gives
    /// up the uploads that are unfinished there. Versions that are retained go too where the
    /// credentials give leave to that.
    fn sweep<'a>(&'a mut self, prefix: &'a str) -> Step<'a, u64> {
        Box::pin(self.sweep_all(prefix))
    }

    fn removed_count(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.removed_count)
    }

    fn put_mark<'a>(&'a mut self, key: &'a str) -> Step<'a, ()> {
        Box::pin(self.put_empty(key))
    }

    fn remove_mark<'a>(&'a mut self, key: &'a str) -> Step<'a, ()> {
        Box::pin(self.remove_one(key))
    }

    fn dates_of<'a>(&'a mut self, key: &'a str) -> Step<'a, Option<Dates>> {
        Box::pin(self.dated(S3Request::Stat { key, version: None }))
    }

    fn mark<'a>(&'a mut self, run: &'a str) -> Step<'a, ()> {
        Box::pin(self.put_made(run))
    }

    fn is_marked(&mut self) -> Step<'_, Option<bool>> {
        Box::pin(self.was_made())
    }

    fn remove_bucket(&mut self) -> Step<'_, bool> {
        Box::pin(self.remove_empty())
    }
}

/// Gives up where nothing came back in time: the next question would only wait as long.
fn unless_silent<T>(asked: Result<T, DriverError>) -> Result<Result<T, DriverError>, DriverError> {
    match asked {
        Err(error) if error.class == ErrorClass::Timeout => Err(error),
        asked => Ok(asked),
    }
}

/// Whether a bucket keeps versions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Versioning {
    Never,
    Enabled,
    Suspended,
}

impl S3Admin {
    pub(crate) fn new(session: S3Session, limits: AdminLimits) -> Self {
        Self { session, limits, removed_count: Arc::default(), has_created: false }
    }

    async fn survey_objects(
        &mut self,
        prefix: &str,
        limit: Option<u64>,
        recursive: bool,
    ) -> Result<Vec<FoundObject>, DriverError> {
        let (mut found, mut room) = (Vec::new(), self.room(limit));
        let mut take = |entry: xml::Entry<'_>| {
            let fits = room.take(&[entry.key]);
            if fits {
                found.push(FoundObject { key: entry.key.to_owned(), size: entry.size });
            }
            fits
        };
        self.list(prefix, limit, Walk::Objects { recursive }, &mut take).await?;
        self.check_room(&room, prefix)?;
        Ok(found)
    }

    async fn sweep_all(&mut self, prefix: &str) -> Result<u64, DriverError> {
        assert!(!prefix.is_empty(), "sweeping needs its own prefix");
        self.removed_count.store(0, Ordering::Relaxed);
        let versioning = unless_silent(self.versioning().await)?;
        // Leave to remove what is retained is asked for only where something may be.
        let bypass = unless_silent(self.has_lock().await)?.unwrap_or(false);
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

    fn room(&self, limit: Option<u64>) -> Room {
        let entries_left = limit.unwrap_or(self.limits.entries_max);
        Room { entries_left, bytes_left: SURVEY_NAMES_BYTES_MAX, is_over: false }
    }

    fn check_room(&self, room: &Room, prefix: &str) -> Result<(), DriverError> {
        if !room.is_over {
            return Ok(());
        }
        let message = format!(
            "the list of bucket `{}` below `{prefix}` is longer than {} entries, or their names \
             than {} GiB; ask for a number of them (`objects`) or below another `prefix`",
            self.bucket(),
            self.limits.entries_max,
            SURVEY_NAMES_BYTES_MAX >> 30,
        );
        Err(DriverError::new(ErrorClass::Client, message))
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
        let result =
            self.call(BucketRequest::Put(Property::Versioning, request::VERSIONING_BODY)).await;
        result.map_err(|error| self.explained("cannot have versioning enabled", error))
    }

    /// Tells whether objects of the bucket can be retained.
    pub async fn has_lock(&mut self) -> Result<bool, DriverError> {
        let call = BucketRequest::Get(Property::ObjectLock);
        // A bucket without it is answered with 404, a server without it with others.
        if optional(self.call(call).await)?.is_none() {
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
                "has no object lock; name another `bucket`, which is then made with it"
            }
            RootState::Created => "was made, but the server does not support retention",
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
        let (mut found, mut room) = (Vec::new(), self.room(limit));
        let mut take = |entry: xml::Entry<'_>| {
            let fits = room.take(&[entry.key, entry.id]);
            if fits {
                found.push(FoundVersion {
                    key: entry.key.to_owned(),
                    version: entry.id.to_owned(),
                    size: entry.size,
                    is_marker: entry.is_marker,
                });
            }
            fits
        };
        self.list(prefix, limit, Walk::Marked(Listed::Versions), &mut take).await?;
        self.check_room(&room, prefix)?;
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
        let (mut found, mut room) = (Vec::new(), self.room(limit));
        let mut take = |entry: xml::Entry<'_>| {
            let fits = room.take(&[entry.key, entry.id]);
            if fits {
                found.push(FoundUpload { key: entry.key.to_owned(), upload: entry.id.to_owned() });
            }
            fits
        };
        self.list(prefix, limit, Walk::Marked(Listed::Uploads), &mut take).await?;
        self.check_room(&room, prefix)?;
        Ok(found)
    }

    async fn list(
        &mut self,
        prefix: &str,
        limit: Option<u64>,
        walk: Walk,
        take: &mut dyn FnMut(xml::Entry<'_>) -> bool,
    ) -> Result<(), DriverError> {
        if limit == Some(0) {
            return Ok(());
        }
        let page_size = limit.map_or(PAGE_SIZE, |limit| limit.min(PAGE_SIZE.into()) as u32);
        let listing = Listing { entries_max: limit, ..Listing::whole(prefix, page_size, walk) };
        let listed = self.session.survey(listing, take).await.result;
        listed.map_err(|error| self.overdue("listing", error))
    }

    async fn sweep_objects(&mut self, prefix: &str, bypass: bool) -> Result<u64, DriverError> {
        let (mut removed_count, mut patience) = (0, Patience::default());
        loop {
            let mut found = self.survey_objects(prefix, Some(PAGE_SIZE.into()), true).await?;
            // Whatever the server lists, nothing outside of the prefix is touched.
            found.retain(|object| object.key.starts_with(prefix));
            let Some(first) = found.first() else {
                return Ok(removed_count);
            };
            let is_repeat = patience.is_repeat(&first.key)?;
            let objects = found.iter().map(|object| (object.key.as_str(), None));
            let removed = self.session.remove(objects, bypass).await.result;
            removed.map_err(|error| self.overdue("removing objects of", error))?;
            removed_count += self.removed(is_repeat, found.len());
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
            let removed = self.session.remove(versions, bypass).await.result;
            removed.map_err(|error| self.overdue("removing versions of", error))?;
            let contents_count = found.iter().filter(|version| !version.is_marker).count();
            removed_count += self.removed(is_repeat, contents_count);
        }
    }

    /// Gives up the unfinished uploads below `prefix`, if the server lists them.
    async fn sweep_uploads(&mut self, prefix: &str) -> Result<(), DriverError> {
        let found = optional(self.survey_uploads(prefix).await)?.unwrap_or_default();
        for FoundUpload { key, upload } in &found {
            let lease = self.session.lease();
            let call = S3Request::AbortUpload { key, upload };
            let aborted = self.session.connection.call(&lease, &call, &[204, 200, 404]).await;
            aborted.result.map_err(|error| self.overdue("aborting uploads of", error))?;
        }
        Ok(())
    }

    /// Counts what was removed, unless it was counted before, and returns how many that are.
    fn removed(&self, is_repeat: bool, count: usize) -> u64 {
        let count = if is_repeat { 0 } else { count as u64 };
        self.removed_count.fetch_add(count, Ordering::Relaxed);
        count
    }

    /// Does a request about the bucket itself.
    async fn call(&mut self, call: BucketRequest<'_>) -> Result<(), DriverError> {
        let result = self.session.call_bucket(call).await.result;
        result.map_err(|error| self.overdue("asking for", error))
    }

    /// Says in an error of something that took too long what was waited for.
    fn overdue(&self, what: &str, error: DriverError) -> DriverError {
        if error.class != ErrorClass::Timeout {
            return error;
        }
        let message = format!("{what} bucket `{}`: {}", self.bucket(), error.message);
        DriverError { message, ..error }
    }

    async fn versioning(&mut self) -> Result<Versioning, DriverError> {
        let call = BucketRequest::Get(Property::Versioning);
        self.call(call).await?;
        let status = xml::parse_value(self.session.answer_body(), "VersioningConfiguration/Status");
        Ok(match status.as_deref() {
            Some("Enabled") => Versioning::Enabled,
            Some("Suspended") => Versioning::Suspended,
            _ => Versioning::Never,
        })
    }

    fn bucket(&self) -> &str {
        &self.session.connection.target.place.bucket
    }

    /// Tells whether nobody asks.
    fn is_nobody(&self) -> bool {
        matches!(self.session.connections.config.credentials, Credentials::Anonymous)
    }

    fn explained(&self, what: &str, error: DriverError) -> DriverError {
        let message = format!("bucket `{}` {what}: {}", self.bucket(), error.message);
        DriverError { message, ..error }
    }

    async fn ensure(&mut self, lock: bool) -> Result<RootState, DriverError> {
        self.ensure_as(self.session.connections.config.missing_bucket, lock).await
    }

    async fn ensure_as(
        &mut self,
        missing: MissingRoot,
        lock: bool,
    ) -> Result<RootState, DriverError> {
        let Err(error) = self.call(BucketRequest::Head).await else {
            return Ok(RootState::Existed);
        };
        match error.status {
            Some(404) if missing == MissingRoot::Refuse => {
                let message = format!(
                    "bucket `{}` does not exist; create it, or add `create_bucket`",
                    self.bucket()
                );
                Err(DriverError { message, ..error })
            }
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
        let text = xml::parse_error(self.session.answer_body());
        let config = &self.session.connections.config;
        let source = config.credentials.current().and_then(|keys| keys.source.clone());
        let because = match error.class {
            ErrorClass::Denied if self.is_nobody() => {
                format!("cannot be read without credentials, and {}", self.none_found())
            }
            ErrorClass::Denied if text.is_some_and(|text| error::is_expired(&text.code)) => {
                let from = source.unwrap_or_else(|| "`access_key`".to_owned());
                format!("cannot be read, as the credentials from {from} have expired")
            }
            ErrorClass::Denied => "cannot be read with these credentials".to_owned(),
            _ => "cannot be read".to_owned(),
        };
        Err(self.explained(&because, error))
    }

    /// Returns how it comes that nobody asks.
    fn none_found(&self) -> String {
        let given = "none are given (`access_key` and `secret_key`)";
        match &self.session.connections.config.keys_sought {
            Some(places) => format!("{given} or found: looked at {places}"),
            None => given.to_owned(),
        }
    }

    async fn create(&mut self, lock: bool) -> Result<RootState, DriverError> {
        let Err(error) = self.call(BucketRequest::Create { lock }).await else {
            self.has_created = true;
            return Ok(RootState::Created);
        };
        // Someone with the same credentials was faster.
        let text = xml::parse_error(self.session.answer_body());
        if text.is_some_and(|text| text.code == "BucketAlreadyOwnedByYou") {
            return Ok(RootState::Existed);
        }
        let because = match error.class {
            ErrorClass::Denied if self.is_nobody() => {
                let none = self.none_found();
                format!("does not exist and cannot be made without credentials; {none}")
            }
            _ => "does not exist and cannot be made".to_owned(),
        };
        Err(self.explained(&because, error))
    }
}

/// Detects a listing that keeps returning removed objects.
#[derive(Default)]
struct Patience {
    /// Hashes of what pages began with.
    firsts: HashSet<u64>,
    hashes: RandomState,
    repeats_count: u32,
}

impl Patience {
    /// Tells whether a page begins with the same as one before, which is an error after so many
    /// times, as are pages without end.
    fn is_repeat(&mut self, first: &str) -> Result<bool, DriverError> {
        let is_repeat = !self.firsts.insert(self.hashes.hash_one(first));
        self.repeats_count = if is_repeat { self.repeats_count + 1 } else { 0 };
        let message = if self.repeats_count > SWEEP_REPEATS_MAX {
            format!("`{}` is still listed after its removal", one_line(first))
        } else if self.firsts.len() > SWEEP_PAGES_MAX {
            format!("after {SWEEP_PAGES_MAX} pages were removed there are more")
        } else {
            return Ok(is_repeat);
        };
        Err(DriverError::new(ErrorClass::Protocol, message))
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

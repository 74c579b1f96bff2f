//! Buckets that runs make and remove: the mark in them, and removing one that holds nothing else.

use plimsoll_driver::{
    ContentSink, ContentSource, CreatedRoot, DriverError, MADE_MARK, MissingRoot, Operation,
    Session,
};
use plimsoll_model::ErrorClass;

use super::{S3Admin, Versioning, optional, unless_silent};
use crate::s3_request::S3Request;
use crate::session::BucketRequest;

/// How a server names itself that deletes buckets that are not empty
/// (`weed s3 -allowDeleteBucketNotEmpty`, which is the default).
const DELETES_WHAT_IS_IN_IT: &str = "SeaweedFS";
/// Why a bucket stays that the run created.
const IN_USE: &str = "somebody else uses it";
/// No mark has more of a text.
const TEXT_BYTES_MAX: usize = 1 << 10;

/// A short text.
struct Text<'a>(&'a [u8]);

impl ContentSource for Text<'_> {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        let from = offset as usize;
        buffer.copy_from_slice(&self.0[from..from + buffer.len()]);
    }
}

/// Keeps a short text.
#[derive(Default)]
struct Kept(Vec<u8>);

impl ContentSink for Kept {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn accept(&mut self, bytes: &[u8]) {
        let room = TEXT_BYTES_MAX.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl S3Admin {
    /// Notes in the bucket that a run made it, in that text.
    pub(super) async fn put_made(&mut self, text: &[u8]) -> Result<(), DriverError> {
        let content = &mut Text(text);
        let put = Operation::Put { key: MADE_MARK, content };
        let result = self.session.execute(None, put).await.result;
        result.map_err(|error| self.explained("cannot be marked as made by this run", error))
    }

    /// Tells whether the bucket is there, and whether a run made it.
    pub(super) async fn was_made(&mut self) -> Result<Option<bool>, DriverError> {
        match self.call(BucketRequest::Head).await {
            Ok(()) => {}
            Err(error) if error.status == Some(404) => return Ok(None),
            Err(error) if error.status.is_none() => {
                return Err(self.explained("cannot be listed", error));
            }
            // A list says why.
            Err(error) => drop(self.explain(error).await?),
        }
        let stat = Operation::Stat { key: MADE_MARK, version: None };
        match self.session.execute(None, stat).await.result {
            Ok(()) => Ok(Some(true)),
            Err(error) if matches!(error.status, Some(403 | 404)) => Ok(Some(false)),
            Err(error) => Err(self.explained("cannot be listed", error)),
        }
    }

    /// Removes the bucket if it holds nothing but the mark.
    pub(super) async fn remove_empty(&mut self) -> Result<bool, DriverError> {
        match self.call(BucketRequest::Head).await {
            Ok(()) => {}
            Err(error) if error.status == Some(404) => return Ok(false),
            // A list says why.
            Err(error) => drop(self.explain(error).await?),
        }
        let found = self.survey_objects("", Some(2), true).await;
        let found = found.map_err(|error| self.explained("cannot be read", error))?;
        if let Some(other) = found.iter().find(|object| object.key != MADE_MARK) {
            let message = format!(
                "bucket `{}` is not removed: it holds other objects, such as `{}`",
                self.bucket(),
                other.key
            );
            return Err(DriverError::new(ErrorClass::Precondition, message));
        }
        let cannot = "cannot be removed";
        let mut mark = None;
        if !found.is_empty() {
            let mut kept = Kept::default();
            let (key, sink) = (MADE_MARK, &mut kept);
            let get = Operation::Get { key, range: None, version: None, sink };
            let read = self.session.execute(None, get).await.result;
            read.map_err(|error| self.explained(cannot, error))?;
            let removed = self.remove_made().await;
            removed.map_err(|error| self.explained(cannot, error))?;
            mark = Some(kept.0);
        }
        match self.call(BucketRequest::Delete).await {
            Ok(()) => Ok(true),
            Err(error) if error.status == Some(404) => Ok(true),
            Err(error) => {
                if let Some(mark) = mark {
                    // The bucket stays, so it is to say whose it is.
                    let _ = self.put_made(&mark).await;
                }
                Err(self.explained(cannot, error))
            }
        }
    }

    /// Removes the bucket if this admin created it and nothing is in it.
    ///
    /// A store refuses to delete a bucket that is not empty, so that nothing is lost that somebody
    /// writes between the look and the deletion. SeaweedFS by default deletes it with all that is
    /// in it, so there it stays.
    pub(super) async fn remove_own(&mut self) -> Result<Option<CreatedRoot>, DriverError> {
        let missing = self.session.connections.config.missing_bucket;
        if !self.has_created || missing != MissingRoot::Create {
            return Ok(None);
        }
        let stays = |why: &str| Ok(Some(CreatedRoot::Stays(why.to_owned())));
        if self.dated(S3Request::HeadBucket).await?.is_none() {
            return Ok(None);
        }
        if self.session.connection.answer.server.starts_with(DELETES_WHAT_IS_IN_IT) {
            return stays("SeaweedFS deletes a bucket with all that is in it");
        }
        let uploads = optional(self.survey_uploads("").await)?.unwrap_or_default();
        if !uploads.is_empty() || !self.survey_objects("", Some(1), true).await?.is_empty() {
            return stays(IN_USE);
        }
        match self.call(BucketRequest::Delete).await {
            Ok(()) => {}
            Err(error) if error.status == Some(404) => {}
            // Somebody has just written into it, or old versions are left.
            Err(error) if error.status == Some(409) => return stays(IN_USE),
            Err(error) => return Err(self.explained("cannot be removed", error)),
        }
        self.has_created = false;
        Ok(Some(CreatedRoot::Removed))
    }

    /// Removes the mark with all of its versions.
    async fn remove_made(&mut self) -> Result<(), DriverError> {
        let versioning = unless_silent(self.versioning().await)?;
        if matches!(versioning, Ok(Versioning::Never)) || versioning.is_err() {
            return self.remove_one(MADE_MARK).await;
        }
        let mut versions = self.survey_versions(MADE_MARK, None).await?;
        versions.retain(|found| found.key == MADE_MARK);
        if versions.is_empty() {
            return Ok(());
        }
        let versions = versions.iter().map(|found| (&*found.key, Some(&*found.version)));
        self.session.remove(versions, false).await.result
    }
}

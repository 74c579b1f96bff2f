//! Buckets that runs make and remove: how they are marked, and removing one that holds nothing. A
//! store that refuses to delete a bucket with objects may still delete one with old versions or
//! unfinished uploads (MinIO, Ceph), so all three are looked for first.

use plimsoll_driver::{CreatedRoot, DriverError, MissingRoot};
use plimsoll_model::ErrorClass;

use super::{S3Admin, optional};
use crate::s3_request::{Property, S3Request};
use crate::session::BucketRequest;
use crate::xml;

/// How a server names itself that deletes buckets that are not empty
/// (`weed s3 -allowDeleteBucketNotEmpty`, which is the default).
const DELETES_WHAT_IS_IN_IT: &str = "SeaweedFS";
/// Why a bucket stays that the run created.
const IN_USE: &str = "somebody else uses it";
/// The tag of a bucket that a run of plimsoll created; its value is the id of the run.
/// Credentials that may only write objects cannot set it.
const MADE_TAG: &str = "plimsoll-made";

impl S3Admin {
    /// Notes in the bucket that a run made it, where the store takes tags.
    pub(super) async fn put_made(&mut self, run: &str) -> Result<(), DriverError> {
        let tags = format!(
            "<Tagging xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><TagSet><Tag>\
             <Key>{MADE_TAG}</Key><Value>{run}</Value></Tag></TagSet></Tagging>"
        );
        match self.call(BucketRequest::Put(Property::Tagging, tags.as_bytes())).await {
            // The store has no tags of buckets.
            Err(error) if matches!(error.status, Some(404 | 405 | 501)) => Ok(()),
            put => {
                put.map_err(|error| self.explained("cannot be marked as made by this run", error))
            }
        }
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
        // One without tags is answered with 404, a store without them with others.
        let asked = optional(self.call(BucketRequest::Get(Property::Tagging)).await);
        let asked = asked.map_err(|error| self.explained("cannot be read", error))?;
        let tags = xml::parse_values(self.session.answer_body(), "Tagging/TagSet/Tag/Key");
        let is_made = |tags: Vec<String>| tags.iter().any(|tag| tag == MADE_TAG);
        Ok(Some(asked.is_some() && tags.is_some_and(is_made)))
    }

    /// Returns one of the things that the bucket holds, as a message names it; `None` if it holds
    /// nothing.
    ///
    /// In this order something that turns from an upload into an object, or from an object into a
    /// version, between two questions is still found.
    async fn held(&mut self) -> Result<Option<String>, DriverError> {
        let uploads = self.list_uploads("", Some(1)).await;
        if let Some(upload) = self.if_offered(uploads)?.first() {
            return Ok(Some(format!("unfinished uploads, such as one of `{}`", upload.key)));
        }
        if let Some(object) = self.survey_objects("", Some(1), true).await?.first() {
            return Ok(Some(format!("other objects, such as `{}`", object.key)));
        }
        let versions = self.survey_versions("", Some(1)).await;
        let held = self.if_offered(versions)?.pop().map(|version| {
            format!("old versions or marks of deletion, such as one of `{}`", version.key)
        });
        Ok(held)
    }

    /// Returns what a listing found: nothing where the store does not offer such a listing, as it
    /// then has no such things. Not being allowed to look is an error.
    fn if_offered<T>(&self, listed: Result<Vec<T>, DriverError>) -> Result<Vec<T>, DriverError> {
        let is_unknown = |error: &DriverError| {
            matches!(error.status, Some(400 | 404 | 405 | 501)) && error.class != ErrorClass::Denied
        };
        // A store that does not know the question may pass it over and list objects.
        let are_objects =
            || xml::parse_value(self.session.answer_body(), "ListBucketResult").is_some();
        match listed {
            Err(error) if is_unknown(&error) || are_objects() => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// Removes the bucket if it holds nothing. On SeaweedFS something that is written after the
    /// look goes with it: unlike [`Self::remove_own`], this was asked for.
    pub(super) async fn remove_empty(&mut self) -> Result<bool, DriverError> {
        match self.call(BucketRequest::Head).await {
            Ok(()) => {}
            Err(error) if error.status == Some(404) => return Ok(false),
            // A list says why.
            Err(error) => drop(self.explain(error).await?),
        }
        let held = self.held().await;
        if let Some(held) = held.map_err(|error| self.explained("cannot be read", error))? {
            let message = format!("bucket `{}` is not removed: it holds {held}", self.bucket());
            return Err(DriverError::new(ErrorClass::Precondition, message));
        }
        match self.call(BucketRequest::Delete).await {
            Ok(()) => Ok(true),
            Err(error) if error.status == Some(404) => Ok(true),
            Err(error) => Err(self.explained("cannot be removed", error)),
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
        if self.held().await?.is_some() {
            return stays(IN_USE);
        }
        match self.call(BucketRequest::Delete).await {
            Ok(()) => {}
            Err(error) if error.status == Some(404) => {}
            // Somebody has just written into it.
            Err(error) if error.status == Some(409) => return stays(IN_USE),
            Err(error) => return Err(self.explained("cannot be removed", error)),
        }
        self.has_created = false;
        Ok(Some(CreatedRoot::Removed))
    }
}

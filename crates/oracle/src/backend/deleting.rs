//! Removing objects and versions, one or many at once.

use hyper::StatusCode;
use hyper::http::Extensions;
use plimsoll_model::OpKind;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::conditions::write_condition;
use super::{BATCH_COUNT_MAX, Backend, not_offered, refusal, version_of};
use crate::clock::wall_time;
use crate::misbehave::Ruling;
use crate::store::{Condition, Deleted, Removal, StoreError, VersionId};

/// What is to be removed.
struct Wanted<'a> {
    bucket: &'a str,
    key: &'a str,
    version: Option<VersionId>,
    condition: Condition<'a>,
    /// Whether governance is to be lifted.
    bypass: bool,
}

impl Backend {
    pub(super) async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let input = request.input;
        let by_more = input.if_match_last_modified_time.is_some() || input.if_match_size.is_some();
        not_offered(by_more, "deletes on condition of a date or a size")?;
        not_offered(input.mfa.is_some(), "multi-factor authentication")?;
        let wanted = Wanted {
            bucket: &input.bucket,
            key: &input.key,
            version: version_of(input.version_id.as_deref())?,
            condition: write_condition(input.if_match.as_ref(), None)?,
            bypass: input.bypass_governance_retention.unwrap_or(false),
        };
        let mut output = DeleteObjectOutput::default();
        if !self.loses_delete(&request.extensions, wanted.bucket, &[wanted.key])? {
            let (marker, version) = self.remove(&wanted).map_err(refusal)?;
            output.delete_marker = marker.then_some(true);
            output.version_id = version.map(|version| version.to_string());
        }
        Ok(S3Response::with_status(output, StatusCode::NO_CONTENT))
    }

    pub(super) async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let DeleteObjectsInput { bucket, delete, bypass_governance_retention, mfa, .. } =
            request.input;
        not_offered(mfa.is_some(), "multi-factor authentication")?;
        let count = delete.objects.len();
        if !(1..=BATCH_COUNT_MAX).contains(&count) {
            let error = s3_error!(MalformedXML, "a delete names 1 to 1000 keys, this one {count}");
            return Err(error);
        }
        let conditional = |object: &ObjectIdentifier| {
            object.e_tag.is_some() || object.last_modified_time.is_some() || object.size.is_some()
        };
        not_offered(delete.objects.iter().any(conditional), "conditions on one of many deletes")?;
        let keys: Vec<&str> = delete.objects.iter().map(|object| &*object.key).collect();
        let is_lost = self.loses_delete(&request.extensions, &bucket, &keys)?;
        if !self.store.has_bucket(&bucket) {
            return Err(refusal(StoreError::NoSuchBucket));
        }
        let quiet = delete.quiet.unwrap_or(false);
        let bypass = bypass_governance_retention.unwrap_or(false);
        let (mut deleted, mut errors) = (Vec::new(), Vec::new());
        for object in delete.objects {
            let done = match version_of(object.version_id.as_deref()) {
                _ if is_lost => Ok((false, None)),
                Err(error) => Err(error),
                Ok(version) => {
                    let (key, condition) = (&*object.key, Condition::Always);
                    let wanted = Wanted { bucket: &bucket, key, version, condition, bypass };
                    self.remove(&wanted).map_err(refusal)
                }
            };
            match done {
                Ok(_) if quiet => {}
                Ok((marker, version)) => deleted.push(DeletedObject {
                    delete_marker: marker.then_some(true),
                    delete_marker_version_id: version.filter(|_| marker).map(|id| id.to_string()),
                    key: Some(object.key),
                    version_id: object.version_id,
                }),
                Err(error) => errors.push(Error {
                    code: Some(error.code().as_str().to_owned()),
                    message: error.message().map(str::to_owned),
                    key: Some(object.key),
                    version_id: object.version_id,
                }),
            }
        }
        let (deleted, errors) = (Some(deleted), Some(errors).filter(|errors| !errors.is_empty()));
        Ok(S3Response::new(DeleteObjectsOutput { deleted, errors, ..Default::default() }))
    }

    /// Returns whether a mark of deletion was made or removed, and the version that this is, or
    /// that was removed.
    fn remove(&self, wanted: &Wanted<'_>) -> Result<(bool, Option<VersionId>), StoreError> {
        let Wanted { bucket, key, condition, bypass, .. } = *wanted;
        let now = wall_time();
        let Some(version) = wanted.version else {
            return Ok(match self.store.delete(bucket, key, condition, now)? {
                Deleted::Gone => (false, None),
                Deleted::Marked(version) => (true, Some(version)),
            });
        };
        let removal = Removal { version, now, bypass };
        let was_marker = self.store.delete_version(bucket, key, removal, condition)?;
        Ok((was_marker, Some(version)))
    }

    /// Tells whether a delete is acknowledged and lost.
    fn loses_delete(&self, extensions: &Extensions, bucket: &str, keys: &[&str]) -> S3Result<bool> {
        let Some(ruling) = Ruling::of(extensions) else { return Ok(false) };
        let obstacle = (!self.store.has_bucket(bucket)).then_some(StoreError::NoSuchBucket);
        let changes = keys.iter().any(|key| self.store.get(bucket, key).is_ok());
        ruling.loses(OpKind::Delete, keys[0], 0, obstacle, changes)
    }
}

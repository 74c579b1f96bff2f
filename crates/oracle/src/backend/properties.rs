//! What is set for a bucket or an object after it was made: versioning, object lock, retention,
//! legal hold, tags.

use hyper::StatusCode;
use hyper::http::Extensions;
use plimsoll_model::OpKind;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::attributes::{BUCKET_TAGS_MAX, OBJECT_TAGS_MAX, is_on, retention, tag_set, tags_of_set};
use super::{Backend, not_offered, refusal, rule, timestamp, version_of};
use crate::clock::wall_time;
use crate::store::{
    DefaultRetention, Lock, Object, Retention, RetentionMode, StoreError, Versioning,
};

/// How many days a year of retention has.
const YEAR_DAYS: u32 = 365;

/// The longest default retention, as in S3.
const RETENTION_DAYS_MAX: u32 = 100 * YEAR_DAYS;

impl Backend {
    pub(super) async fn get_bucket_versioning(
        &self,
        request: S3Request<GetBucketVersioningInput>,
    ) -> S3Result<S3Response<GetBucketVersioningOutput>> {
        let status = match self.store.versioning(&request.input.bucket).map_err(refusal)? {
            Versioning::Never => None,
            Versioning::Enabled => Some(BucketVersioningStatus::ENABLED),
            Versioning::Suspended => Some(BucketVersioningStatus::SUSPENDED),
        };
        let status = status.map(BucketVersioningStatus::from_static);
        Ok(S3Response::new(GetBucketVersioningOutput { status, ..Default::default() }))
    }

    pub(super) async fn put_bucket_versioning(
        &self,
        request: S3Request<PutBucketVersioningInput>,
    ) -> S3Result<S3Response<PutBucketVersioningOutput>> {
        let PutBucketVersioningInput { bucket, versioning_configuration: asked, .. } =
            request.input;
        let mfa = asked.mfa_delete.is_some_and(|mfa| mfa.as_str() == MFADelete::ENABLED);
        not_offered(mfa, "multi-factor authentication")?;
        let to = match asked.status.as_ref().map(|status| status.as_str()) {
            Some("Enabled") => Versioning::Enabled,
            Some("Suspended") => Versioning::Suspended,
            _ => return Err(s3_error!(MalformedXML, "the status is Enabled or Suspended")),
        };
        self.store.set_versioning(&bucket, to).map_err(refusal)?;
        Ok(S3Response::new(PutBucketVersioningOutput {}))
    }

    pub(super) async fn get_object_lock_configuration(
        &self,
        request: S3Request<GetObjectLockConfigurationInput>,
    ) -> S3Result<S3Response<GetObjectLockConfigurationOutput>> {
        let retention = match self.store.default_retention(&request.input.bucket) {
            Err(StoreError::NoLock) => {
                let none = "the bucket was made without object lock";
                return Err(s3_error!(ObjectLockConfigurationNotFoundError, "{none}"));
            }
            other => other.map_err(refusal)?,
        };
        let rule = retention.map(|default| {
            let years = default.days / YEAR_DAYS;
            let retention = s3s::dto::DefaultRetention {
                mode: Some(ObjectLockRetentionMode::from_static(default.mode.name())),
                days: (!default.in_years).then_some(default.days as i32),
                years: default.in_years.then_some(years as i32),
            };
            ObjectLockRule { default_retention: Some(retention) }
        });
        let enabled = ObjectLockEnabled::from_static(ObjectLockEnabled::ENABLED);
        let object_lock_configuration =
            Some(ObjectLockConfiguration { object_lock_enabled: Some(enabled), rule });
        Ok(S3Response::new(GetObjectLockConfigurationOutput { object_lock_configuration }))
    }

    pub(super) async fn put_object_lock_configuration(
        &self,
        request: S3Request<PutObjectLockConfigurationInput>,
    ) -> S3Result<S3Response<PutObjectLockConfigurationOutput>> {
        let PutObjectLockConfigurationInput { bucket, object_lock_configuration, .. } =
            request.input;
        let asked = object_lock_configuration.unwrap_or_default();
        if asked.object_lock_enabled.is_none_or(|word| word.as_str() != ObjectLockEnabled::ENABLED)
        {
            return Err(s3_error!(MalformedXML, "object lock can only be enabled"));
        }
        let asked = asked.rule.and_then(|rule| rule.default_retention);
        let retention = asked.map(default_retention).transpose()?;
        self.store.set_default_retention(&bucket, retention).map_err(refusal)?;
        Ok(S3Response::new(PutObjectLockConfigurationOutput::default()))
    }

    pub(super) async fn get_object_retention(
        &self,
        request: S3Request<GetObjectRetentionInput>,
    ) -> S3Result<S3Response<GetObjectRetentionOutput>> {
        let GetObjectRetentionInput { bucket, key, version_id, .. } = request.input;
        let lock = self.lock(&request.extensions, &bucket, &key, version_id.as_deref())?;
        let Some(Retention { mode, until }) = lock.retention else {
            return Err(no_lock_of_object());
        };
        let retention = Some(ObjectLockRetention {
            mode: Some(ObjectLockRetentionMode::from_static(mode.name())),
            retain_until_date: Some(timestamp(until)),
        });
        Ok(S3Response::new(GetObjectRetentionOutput { retention }))
    }

    pub(super) async fn put_object_retention(
        &self,
        request: S3Request<PutObjectRetentionInput>,
    ) -> S3Result<S3Response<PutObjectRetentionOutput>> {
        let PutObjectRetentionInput { bucket, key, version_id, retention: asked, .. } =
            request.input;
        let bypass = request.input.bypass_governance_retention.unwrap_or(false);
        let version = version_of(version_id.as_deref())?;
        let now = wall_time();
        let asked = match asked.map(|asked| (asked.mode, asked.retain_until_date)) {
            None | Some((None, None)) => None,
            Some((Some(mode), Some(until))) => {
                Some(retention(RetentionMode::from_name(mode.as_str())?, &until, now)?)
            }
            Some(_) => {
                let both = "a retention has a mode and a date until which it holds";
                return Err(s3_error!(MalformedXML, "{both}"));
            }
        };
        let obstacle = || self.store.get_version(&bucket, &key, version).err();
        rule(&request.extensions, OpKind::Retention, (&key, 0), obstacle)?;
        let set = self.store.set_retention(&bucket, &key, version, asked, (now, bypass));
        set.map_err(refusal)?;
        Ok(S3Response::new(PutObjectRetentionOutput::default()))
    }

    pub(super) async fn get_object_legal_hold(
        &self,
        request: S3Request<GetObjectLegalHoldInput>,
    ) -> S3Result<S3Response<GetObjectLegalHoldOutput>> {
        let GetObjectLegalHoldInput { bucket, key, version_id, .. } = request.input;
        let lock = self.lock(&request.extensions, &bucket, &key, version_id.as_deref())?;
        let word = if lock.legal_hold { "ON" } else { "OFF" };
        let status = Some(ObjectLockLegalHoldStatus::from_static(word));
        let legal_hold = Some(ObjectLockLegalHold { status });
        Ok(S3Response::new(GetObjectLegalHoldOutput { legal_hold }))
    }

    pub(super) async fn put_object_legal_hold(
        &self,
        request: S3Request<PutObjectLegalHoldInput>,
    ) -> S3Result<S3Response<PutObjectLegalHoldOutput>> {
        let PutObjectLegalHoldInput { bucket, key, version_id, legal_hold, .. } = request.input;
        let version = version_of(version_id.as_deref())?;
        let status = legal_hold.and_then(|hold| hold.status);
        let status = status.ok_or_else(|| s3_error!(MalformedXML, "a legal hold is ON or OFF"))?;
        let obstacle = || self.store.get_version(&bucket, &key, version).err();
        rule(&request.extensions, OpKind::Retention, (&key, 0), obstacle)?;
        let set = self.store.set_legal_hold(&bucket, &key, version, is_on(&status)?);
        set.map_err(refusal)?;
        Ok(S3Response::new(PutObjectLegalHoldOutput::default()))
    }

    pub(super) async fn get_object_tagging(
        &self,
        request: S3Request<GetObjectTaggingInput>,
    ) -> S3Result<S3Response<GetObjectTaggingOutput>> {
        let GetObjectTaggingInput { bucket, key, version_id, .. } = request.input;
        let object = self.property(&request.extensions, &bucket, &key, version_id.as_deref())?;
        let tags = object.attributes.as_ref().map(|said| said.tags.clone()).unwrap_or_default();
        let (tag_set, version_id) = (tag_set(tags), object.version.name());
        Ok(S3Response::new(GetObjectTaggingOutput { tag_set, version_id }))
    }

    pub(super) async fn put_object_tagging(
        &self,
        request: S3Request<PutObjectTaggingInput>,
    ) -> S3Result<S3Response<PutObjectTaggingOutput>> {
        let PutObjectTaggingInput { bucket, key, version_id, tagging, .. } = request.input;
        let tags = tags_of_set(tagging.tag_set, OBJECT_TAGS_MAX)?;
        let version_id =
            self.set_tags(&request.extensions, &bucket, &key, version_id.as_deref(), tags)?;
        Ok(S3Response::new(PutObjectTaggingOutput { version_id }))
    }

    pub(super) async fn delete_object_tagging(
        &self,
        request: S3Request<DeleteObjectTaggingInput>,
    ) -> S3Result<S3Response<DeleteObjectTaggingOutput>> {
        let DeleteObjectTaggingInput { bucket, key, version_id, .. } = request.input;
        let tags = Vec::new();
        let version_id =
            self.set_tags(&request.extensions, &bucket, &key, version_id.as_deref(), tags)?;
        let output = DeleteObjectTaggingOutput { version_id };
        Ok(S3Response::with_status(output, StatusCode::NO_CONTENT))
    }

    pub(super) async fn get_bucket_tagging(
        &self,
        request: S3Request<GetBucketTaggingInput>,
    ) -> S3Result<S3Response<GetBucketTaggingOutput>> {
        let tags = self.store.bucket_tags(&request.input.bucket).map_err(refusal)?;
        if tags.is_empty() {
            return Err(s3_error!(NoSuchTagSet, "the bucket has no tags"));
        }
        Ok(S3Response::new(GetBucketTaggingOutput { tag_set: tag_set(tags) }))
    }

    pub(super) async fn put_bucket_tagging(
        &self,
        request: S3Request<PutBucketTaggingInput>,
    ) -> S3Result<S3Response<PutBucketTaggingOutput>> {
        let PutBucketTaggingInput { bucket, tagging, .. } = request.input;
        let tags = tags_of_set(tagging.tag_set, BUCKET_TAGS_MAX)?;
        self.store.set_bucket_tags(&bucket, tags).map_err(refusal)?;
        Ok(S3Response::with_status(PutBucketTaggingOutput {}, StatusCode::NO_CONTENT))
    }

    pub(super) async fn delete_bucket_tagging(
        &self,
        request: S3Request<DeleteBucketTaggingInput>,
    ) -> S3Result<S3Response<DeleteBucketTaggingOutput>> {
        self.store.set_bucket_tags(&request.input.bucket, Vec::new()).map_err(refusal)?;
        Ok(S3Response::with_status(DeleteBucketTaggingOutput {}, StatusCode::NO_CONTENT))
    }

    fn set_tags(
        &self,
        extensions: &Extensions,
        bucket: &str,
        key: &str,
        version: Option<&str>,
        tags: Vec<(String, String)>,
    ) -> S3Result<Option<String>> {
        let version = version_of(version)?;
        let obstacle = || self.store.get_version(bucket, key, version).err();
        rule(extensions, OpKind::Retention, (key, 0), obstacle)?;
        Ok(self.store.set_tags(bucket, key, version, tags).map_err(refusal)?.name())
    }

    /// Returns what keeps a version of a bucket that has object lock.
    fn lock(
        &self,
        extensions: &Extensions,
        bucket: &str,
        key: &str,
        version: Option<&str>,
    ) -> S3Result<Lock> {
        let object = self.property(extensions, bucket, key, version)?;
        self.store.default_retention(bucket).map_err(refusal)?;
        Ok(object.lock())
    }

    /// Returns an object of which a property is asked, which is what a script calls a stat.
    fn property(
        &self,
        extensions: &Extensions,
        bucket: &str,
        key: &str,
        version: Option<&str>,
    ) -> S3Result<Object> {
        let found = self.store.get_version(bucket, key, version_of(version)?);
        rule(extensions, OpKind::Stat, (key, 0), || found.as_ref().err().copied())?;
        found.map_err(refusal)
    }
}

fn no_lock_of_object() -> s3s::S3Error {
    s3_error!(NoSuchObjectLockConfiguration, "the version has no retention")
}

fn default_retention(asked: s3s::dto::DefaultRetention) -> S3Result<DefaultRetention> {
    let mode = asked.mode.as_ref().map_or("", |mode| mode.as_str());
    let mode = RetentionMode::from_name(mode)?;
    let (count, in_years) = match (asked.days, asked.years) {
        (Some(days), None) => (days, false),
        (None, Some(years)) => (years, true),
        _ => {
            let why = "a default retention is in days or in years";
            return Err(s3_error!(MalformedXML, "{why}"));
        }
    };
    let days = u32::try_from(count).unwrap_or(0);
    let days = days.saturating_mul(if in_years { YEAR_DAYS } else { 1 });
    if !(1..=RETENTION_DAYS_MAX).contains(&days) {
        let why = "a default retention is 1 day to 100 years";
        return Err(s3_error!(InvalidArgument, "{why}"));
    }
    Ok(DefaultRetention { mode, days, in_years })
}

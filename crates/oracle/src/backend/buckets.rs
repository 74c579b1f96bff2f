//! Buckets: making, finding and removing them, and what is asked of their settings that nobody can
//! change here.

use hyper::StatusCode;
use s3s::dto::*;
use s3s::{S3Error, S3ErrorCode, S3Request, S3Response, S3Result};

use super::{Backend, not_offered, owner, refusal, timestamp, version_of};
use crate::clock::wall_time;
use crate::store::StoreError;

/// The region every bucket is in.
const REGION: &str = "us-east-1";

/// Answers that a bucket has no such setting, as S3 does where nobody ever made one.
macro_rules! unset {
    ($($operation:ident($input:ident) -> $output:ident = $code:literal;)*) => {
        impl Backend {$(
            pub(super) async fn $operation(
                &self,
                request: S3Request<$input>,
            ) -> S3Result<S3Response<$output>> {
                self.check_bucket(&request.input.bucket)?;
                Err(not_set($code))
            }
        )*}
    };
}

unset! {
    get_bucket_policy(GetBucketPolicyInput) -> GetBucketPolicyOutput = "NoSuchBucketPolicy";
    get_bucket_cors(GetBucketCorsInput) -> GetBucketCorsOutput = "NoSuchCORSConfiguration";
    get_bucket_website(GetBucketWebsiteInput) -> GetBucketWebsiteOutput
        = "NoSuchWebsiteConfiguration";
    get_bucket_lifecycle_configuration(GetBucketLifecycleConfigurationInput)
        -> GetBucketLifecycleConfigurationOutput = "NoSuchLifecycleConfiguration";
    get_bucket_encryption(GetBucketEncryptionInput) -> GetBucketEncryptionOutput
        = "ServerSideEncryptionConfigurationNotFoundError";
    get_bucket_replication(GetBucketReplicationInput) -> GetBucketReplicationOutput
        = "ReplicationConfigurationNotFoundError";
    get_public_access_block(GetPublicAccessBlockInput) -> GetPublicAccessBlockOutput
        = "NoSuchPublicAccessBlockConfiguration";
}

fn not_set(code: &'static str) -> S3Error {
    let code = S3ErrorCode::from_bytes(code.as_bytes())
        .unwrap_or_else(|| S3ErrorCode::Custom(code.into()));
    let mut error = S3Error::with_message(code, "the bucket has no such setting");
    error.set_status_code(StatusCode::NOT_FOUND);
    error
}

impl Backend {
    pub(super) async fn list_buckets(
        &self,
        request: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        let ListBucketsInput { prefix, max_buckets, continuation_token, .. } = request.input;
        let begins = prefix.clone().unwrap_or_default();
        let limit = max_buckets.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let is_after = |name: &String| continuation_token.as_ref().is_none_or(|last| name > last);
        let mut found = self.store.buckets();
        found.retain(|(name, _)| name.starts_with(&begins) && is_after(name));
        let is_truncated = found.len() > limit;
        found.truncate(limit);
        let last = found.last().filter(|_| is_truncated).map(|(name, _)| name.clone());
        let buckets = found.into_iter().map(|(name, created)| Bucket {
            name: Some(name),
            creation_date: Some(timestamp(created)),
            bucket_region: None,
        });
        Ok(S3Response::new(ListBucketsOutput {
            buckets: Some(buckets.collect()),
            owner: Some(owner()),
            continuation_token: last,
            prefix,
        }))
    }

    pub(super) async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        let input = request.input;
        let acl = input.acl.as_ref().map(|acl| acl.as_str());
        not_offered(!matches!(acl, None | Some("private")), "access lists other than `private`")?;
        let (bucket, locks) = (input.bucket, input.object_lock_enabled_for_bucket.unwrap_or(false));
        self.store.create_bucket(&bucket, wall_time(), locks).map_err(refusal)?;
        Ok(S3Response::new(CreateBucketOutput { location: Some(format!("/{bucket}")) }))
    }

    pub(super) async fn delete_bucket(
        &self,
        request: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        self.store.delete_bucket(&request.input.bucket).map_err(refusal)?;
        Ok(S3Response::with_status(DeleteBucketOutput {}, StatusCode::NO_CONTENT))
    }

    pub(super) async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.check_bucket(&request.input.bucket)?;
        let bucket_region = Some(REGION.to_owned());
        Ok(S3Response::new(HeadBucketOutput { bucket_region, ..Default::default() }))
    }

    pub(super) async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.check_bucket(&request.input.bucket)?;
        // S3 names us-east-1 by an empty constraint.
        Ok(S3Response::new(GetBucketLocationOutput::default()))
    }

    pub(super) async fn get_bucket_acl(
        &self,
        request: S3Request<GetBucketAclInput>,
    ) -> S3Result<S3Response<GetBucketAclOutput>> {
        self.check_bucket(&request.input.bucket)?;
        let (grants, owner) = (Some(vec![full_control()]), Some(owner()));
        Ok(S3Response::new(GetBucketAclOutput { grants, owner }))
    }

    pub(super) async fn get_object_acl(
        &self,
        request: S3Request<GetObjectAclInput>,
    ) -> S3Result<S3Response<GetObjectAclOutput>> {
        let input = request.input;
        let version = version_of(input.version_id.as_deref())?;
        self.store.get_version(&input.bucket, &input.key, version).map_err(refusal)?;
        let (grants, owner) = (Some(vec![full_control()]), Some(owner()));
        Ok(S3Response::new(GetObjectAclOutput { grants, owner, ..Default::default() }))
    }

    pub(super) async fn get_bucket_notification_configuration(
        &self,
        request: S3Request<GetBucketNotificationConfigurationInput>,
    ) -> S3Result<S3Response<GetBucketNotificationConfigurationOutput>> {
        self.check_bucket(&request.input.bucket)?;
        Ok(S3Response::new(GetBucketNotificationConfigurationOutput::default()))
    }

    fn check_bucket(&self, bucket: &str) -> S3Result<()> {
        match self.store.has_bucket(bucket) {
            true => Ok(()),
            false => Err(refusal(StoreError::NoSuchBucket)),
        }
    }
}

/// Returns what the one owner may do.
fn full_control() -> Grant {
    let Owner { id, display_name } = owner();
    let type_ = Type::from_static(Type::CANONICAL_USER);
    let grantee = Grantee { id, display_name, type_, email_address: None, uri: None };
    let permission = Some(Permission::from_static(Permission::FULL_CONTROL));
    Grant { grantee: Some(grantee), permission }
}

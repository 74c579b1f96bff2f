//! The operations of S3 in terms of the store: wire words in, wire words out.

mod archives;
mod attributes;
mod body;
mod buckets;
mod conditions;
mod copying;
mod deleting;
mod fanout;
mod listing;
mod properties;
mod reading;
mod uploads;
mod writing;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use hyper::http::{Extensions, HeaderMap, HeaderValue};
use hyper::{StatusCode, header};
use plimsoll_model::{OpKind, WallTime};
use s3s::dto::*;
use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};

use self::archives::Zips;
pub(crate) use self::fanout::{FanoutAnswer, FanoutKeys};
use self::listing::page_limit;
use crate::digests::Tagging as EtagKind;
use crate::misbehave::Ruling;
use crate::store::{Store, StoreError, VersionId};

/// The most entries of a listing page, and the most keys of a multi-object delete.
const BATCH_COUNT_MAX: usize = 1000;

/// The one who owns everything.
const OWNER: &str = "plimsoll";

/// S3 over a store.
pub(crate) struct Backend {
    store: Arc<Store>,
    tagging: EtagKind,
    zips: Zips,
}

/// Hands the operations of S3 on to the methods of the same names; those that are not named are not
/// offered, and their refusal says which they are.
macro_rules! operations {
    ($($operation:ident($input:ident) -> $output:ident;)*) => {
        #[async_trait]
        impl S3 for Backend {$(
            async fn $operation(
                &self,
                request: S3Request<$input>,
            ) -> S3Result<S3Response<$output>> {
                // A method of the type itself goes before one of a trait.
                Backend::$operation(self, request).await
            }
        )*}
    };
}

operations! {
    list_buckets(ListBucketsInput) -> ListBucketsOutput;
    create_bucket(CreateBucketInput) -> CreateBucketOutput;
    delete_bucket(DeleteBucketInput) -> DeleteBucketOutput;
    head_bucket(HeadBucketInput) -> HeadBucketOutput;
    get_bucket_location(GetBucketLocationInput) -> GetBucketLocationOutput;
    get_bucket_acl(GetBucketAclInput) -> GetBucketAclOutput;
    get_object_acl(GetObjectAclInput) -> GetObjectAclOutput;
    get_bucket_policy(GetBucketPolicyInput) -> GetBucketPolicyOutput;
    get_bucket_cors(GetBucketCorsInput) -> GetBucketCorsOutput;
    get_bucket_website(GetBucketWebsiteInput) -> GetBucketWebsiteOutput;
    get_bucket_encryption(GetBucketEncryptionInput) -> GetBucketEncryptionOutput;
    get_bucket_replication(GetBucketReplicationInput) -> GetBucketReplicationOutput;
    get_bucket_lifecycle_configuration(GetBucketLifecycleConfigurationInput)
        -> GetBucketLifecycleConfigurationOutput;
    get_bucket_notification_configuration(GetBucketNotificationConfigurationInput)
        -> GetBucketNotificationConfigurationOutput;
    get_public_access_block(GetPublicAccessBlockInput) -> GetPublicAccessBlockOutput;
    get_bucket_versioning(GetBucketVersioningInput) -> GetBucketVersioningOutput;
    put_bucket_versioning(PutBucketVersioningInput) -> PutBucketVersioningOutput;
    get_bucket_tagging(GetBucketTaggingInput) -> GetBucketTaggingOutput;
    put_bucket_tagging(PutBucketTaggingInput) -> PutBucketTaggingOutput;
    delete_bucket_tagging(DeleteBucketTaggingInput) -> DeleteBucketTaggingOutput;
    get_object_lock_configuration(GetObjectLockConfigurationInput)
        -> GetObjectLockConfigurationOutput;
    put_object_lock_configuration(PutObjectLockConfigurationInput)
        -> PutObjectLockConfigurationOutput;
    get_object(GetObjectInput) -> GetObjectOutput;
    head_object(HeadObjectInput) -> HeadObjectOutput;
    get_object_attributes(GetObjectAttributesInput) -> GetObjectAttributesOutput;
    put_object(PutObjectInput) -> PutObjectOutput;
    copy_object(CopyObjectInput) -> CopyObjectOutput;
    delete_object(DeleteObjectInput) -> DeleteObjectOutput;
    delete_objects(DeleteObjectsInput) -> DeleteObjectsOutput;
    get_object_tagging(GetObjectTaggingInput) -> GetObjectTaggingOutput;
    put_object_tagging(PutObjectTaggingInput) -> PutObjectTaggingOutput;
    delete_object_tagging(DeleteObjectTaggingInput) -> DeleteObjectTaggingOutput;
    get_object_retention(GetObjectRetentionInput) -> GetObjectRetentionOutput;
    put_object_retention(PutObjectRetentionInput) -> PutObjectRetentionOutput;
    get_object_legal_hold(GetObjectLegalHoldInput) -> GetObjectLegalHoldOutput;
    put_object_legal_hold(PutObjectLegalHoldInput) -> PutObjectLegalHoldOutput;
    list_objects(ListObjectsInput) -> ListObjectsOutput;
    list_objects_v2(ListObjectsV2Input) -> ListObjectsV2Output;
    list_object_versions(ListObjectVersionsInput) -> ListObjectVersionsOutput;
    create_multipart_upload(CreateMultipartUploadInput) -> CreateMultipartUploadOutput;
    upload_part(UploadPartInput) -> UploadPartOutput;
    upload_part_copy(UploadPartCopyInput) -> UploadPartCopyOutput;
    complete_multipart_upload(CompleteMultipartUploadInput) -> CompleteMultipartUploadOutput;
    abort_multipart_upload(AbortMultipartUploadInput) -> AbortMultipartUploadOutput;
    list_multipart_uploads(ListMultipartUploadsInput) -> ListMultipartUploadsOutput;
    list_parts(ListPartsInput) -> ListPartsOutput;
}

impl Backend {
    /// Returns S3 over this store, whose ETags are of that kind where the client sends no digest.
    pub(crate) fn new(store: Arc<Store>, tagging: EtagKind) -> Self {
        Self { store, tagging, zips: Zips::default() }
    }
}

/// Asks the script, where there is one, whether a request comes to nothing here that it tells no
/// lies about. The obstacle is why it cannot be done, if so.
fn rule(
    extensions: &Extensions,
    kind: OpKind,
    (key, content_bytes): (&str, u64),
    obstacle: impl FnOnce() -> Option<StoreError>,
) -> S3Result<()> {
    match Ruling::of(extensions) {
        None => Ok(()),
        Some(ruling) => ruling.loses(kind, key, content_bytes, obstacle(), false).map(drop),
    }
}

/// Refuses what would otherwise be silently ignored.
fn not_offered(asked: bool, what: &str) -> S3Result<()> {
    match asked {
        true => Err(s3_error!(NotImplemented, "this store does not offer {what}")),
        false => Ok(()),
    }
}

/// Returns the version that a request names.
fn version_of(name: Option<&str>) -> S3Result<Option<VersionId>> {
    let version = |name| {
        let version = VersionId::from_text(name);
        version.ok_or_else(|| s3_error!(InvalidArgument, "no version was ever given this id"))
    };
    name.map(version).transpose()
}

fn owner() -> Owner {
    Owner { id: Some(OWNER.to_owned()), display_name: Some(OWNER.to_owned()) }
}

fn timestamp(time: WallTime) -> Timestamp {
    let time: SystemTime = UNIX_EPOCH + Duration::from_nanos(time.as_unix_ns());
    time.into()
}

fn refusal(error: StoreError) -> S3Error {
    let code = match error {
        StoreError::NoSuchBucket => S3ErrorCode::NoSuchBucket,
        StoreError::NoSuchKey | StoreError::Hidden { .. } => S3ErrorCode::NoSuchKey,
        StoreError::NoSuchVersion => S3ErrorCode::NoSuchVersion,
        StoreError::NamedMarker { .. } => S3ErrorCode::MethodNotAllowed,
        StoreError::KeyExists | StoreError::OtherTag => S3ErrorCode::PreconditionFailed,
        StoreError::NotModified => S3ErrorCode::NotModified,
        StoreError::Locked => S3ErrorCode::AccessDenied,
        StoreError::NoLock => S3ErrorCode::InvalidRequest,
        StoreError::LockNeedsVersions => S3ErrorCode::InvalidBucketState,
        StoreError::AppendToVersions => S3ErrorCode::NotImplemented,
        StoreError::BucketExists => S3ErrorCode::BucketAlreadyOwnedByYou,
        StoreError::BucketNotEmpty => S3ErrorCode::BucketNotEmpty,
        StoreError::NoSuchUpload => S3ErrorCode::NoSuchUpload,
        StoreError::InvalidPart { .. } => S3ErrorCode::InvalidPart,
        StoreError::InvalidPartOrder { .. } => S3ErrorCode::InvalidPartOrder,
        StoreError::PartTooSmall { .. } => S3ErrorCode::EntityTooSmall,
        StoreError::OtherChecksum => S3ErrorCode::BadDigest,
        StoreError::WrongOffset { .. } => S3ErrorCode::Custom("InvalidWriteOffset".into()),
        StoreError::Full { .. } => S3ErrorCode::Custom("InsufficientStorage".into()),
    };
    let mut answer = S3Error::with_message(code, error.to_string());
    match error {
        StoreError::Full { .. } => answer.set_status_code(StatusCode::INSUFFICIENT_STORAGE),
        StoreError::WrongOffset { .. } => answer.set_status_code(StatusCode::BAD_REQUEST),
        StoreError::Hidden { version } | StoreError::NamedMarker { version } => {
            answer.set_headers(marker_headers(version));
        }
        _ => {}
    }
    answer
}

/// Returns the headers that say that a mark of deletion is there.
fn marker_headers(version: VersionId) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    headers.insert("x-amz-delete-marker", HeaderValue::from_static("true"));
    let version = HeaderValue::from_str(&version.to_string()).expect("a version is ASCII");
    headers.insert("x-amz-version-id", version);
    headers
}

//! The operations of S3 in terms of the store: wire words in, wire words out.

mod body;
mod uploads;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use hyper::StatusCode;
use hyper::http::Extensions;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_model::{OpKind, WallTime};
use s3s::dto::*;
use s3s::{Body, S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};

use self::body::{collect, size_of};
use crate::clock::wall_time;
use crate::content::Content;
use crate::digests::Digests;
use crate::extent::Extent;
use crate::listing::{ListQuery, first_text_after, first_text_past};
use crate::misbehave::{Ruling, Wanted};
use crate::store::{Attributes, Condition, Object as Stored, ObjectPage, Room, Store, StoreError};

/// The region every bucket is in.
const REGION: &str = "us-east-1";

/// The most entries of a listing page, and the most keys of a multi-object delete.
const BATCH_COUNT_MAX: usize = 1000;

/// What `encoding-type=url` leaves as it is. A space becomes `%20`, which clients of both habits
/// decode.
const URL_SAFE: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// S3 over a store.
pub(crate) struct Backend {
    pub(crate) store: Arc<Store>,
}

#[async_trait]
impl S3 for Backend {
    async fn list_buckets(
        &self,
        _: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        let buckets = self.store.buckets().into_iter().map(|(name, created)| Bucket {
            name: Some(name),
            creation_date: Some(timestamp(created)),
            bucket_region: None,
        });
        let buckets = Some(buckets.collect());
        Ok(S3Response::new(ListBucketsOutput { buckets, ..Default::default() }))
    }

    async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        let bucket = request.input.bucket;
        self.store.create_bucket(&bucket, wall_time()).map_err(refusal)?;
        Ok(S3Response::new(CreateBucketOutput { location: Some(format!("/{bucket}")) }))
    }

    async fn delete_bucket(
        &self,
        request: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        self.store.delete_bucket(&request.input.bucket).map_err(refusal)?;
        Ok(S3Response::with_status(DeleteBucketOutput {}, StatusCode::NO_CONTENT))
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.check_bucket(&request.input.bucket)?;
        let bucket_region = Some(REGION.to_owned());
        Ok(S3Response::new(HeadBucketOutput { bucket_region, ..Default::default() }))
    }

    async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.check_bucket(&request.input.bucket)?;
        // S3 names us-east-1 by an empty constraint.
        Ok(S3Response::new(GetBucketLocationOutput::default()))
    }

    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let mut input = request.input;
        let condition = condition(input.if_match.as_ref(), input.if_none_match.as_ref())?;
        let offset = input.write_offset_bytes.map(u64::try_from).transpose();
        let offset =
            offset.map_err(|_| s3_error!(InvalidArgument, "the write offset is below 0"))?;
        not_offered(offset.is_some() && self.store.remembers(), "appends where a script lies")?;
        let kind = if offset.is_some() { OpKind::Append } else { OpKind::Put };
        let body = input.body.take().unwrap_or_else(|| Body::empty().into());
        let size_bytes = size_of(input.content_length)?;
        let room = self.room(&input.bucket, &input.key, size_bytes, (offset, condition));
        let is_lost = match Ruling::of(&request.extensions) {
            None => false,
            Some(ruling) => {
                let obstacle = room.as_ref().err().copied();
                ruling.loses(kind, &input.key, size_bytes, obstacle, true)?
            }
        };
        let room = room.map_err(refusal)?;
        let (content, tag) = collect(body, size_bytes, Digests::new((&input).into())).await?;
        let attributes = attributes(input.content_type, input.metadata);
        let object = Stored {
            content: content.into(),
            tag,
            modified: wall_time(),
            attributes,
            part_ends: None,
        };
        let (bucket, key) = (&input.bucket, &input.key);
        let (tag, size) = match offset {
            _ if is_lost => {
                self.store.lose_write(bucket, key);
                (tag, None)
            }
            None => {
                self.store.put(bucket, key, object, condition, room).map_err(refusal)?;
                (tag, None)
            }
            Some(offset) => {
                let added = self.store.append(bucket, key, offset, object, room);
                let (tag, size_bytes) = added.map_err(refusal)?;
                (tag, Some(size_bytes as i64))
            }
        };
        Ok(S3Response::new(PutObjectOutput {
            e_tag: Some(ETag::Strong(tag.to_string())),
            size,
            checksum_crc32: input.checksum_crc32,
            checksum_crc32c: input.checksum_crc32c,
            checksum_crc64nvme: input.checksum_crc64nvme,
            checksum_sha1: input.checksum_sha1,
            checksum_sha256: input.checksum_sha256,
            ..Default::default()
        }))
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let input = request.input;
        let conditional = input.if_match.is_some()
            || input.if_none_match.is_some()
            || input.if_modified_since.is_some()
            || input.if_unmodified_since.is_some();
        not_offered(conditional, "conditional reads")?;
        not_offered(input.version_id.is_some(), "versions")?;
        let extent = Extent::new(input.range, input.part_number)?;
        let wanted = (&*input.bucket, &*input.key, extent);
        let object = self.find(&request.extensions, OpKind::Get, wanted)?;
        let (content, content_range) = cut(&object, extent)?;
        let parts_count = input.part_number.and(object.part_ends.as_deref()).map(<[usize]>::len);
        let (content_type, metadata) = described(&object);
        Ok(S3Response::new(GetObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: Some(content.len() as i64),
            body: Some(content.into_body().into()),
            content_range,
            parts_count: parts_count.map(|count| count as i32),
            content_type,
            metadata,
            e_tag: Some(ETag::Strong(object.tag.to_string())),
            last_modified: Some(timestamp(object.modified)),
            ..Default::default()
        }))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = request.input;
        let conditional = input.if_match.is_some()
            || input.if_none_match.is_some()
            || input.if_modified_since.is_some()
            || input.if_unmodified_since.is_some();
        not_offered(conditional, "conditional reads")?;
        not_offered(input.version_id.is_some(), "versions")?;
        not_offered(input.part_number.is_some(), "parts of HEAD")?;
        not_offered(input.range.is_some(), "ranges of HEAD")?;
        let wanted = (&*input.bucket, &*input.key, Extent::Whole);
        let object = self.find(&request.extensions, OpKind::Stat, wanted)?;
        let (content_type, metadata) = described(&object);
        Ok(S3Response::new(HeadObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: Some(object.content.len() as i64),
            content_type,
            metadata,
            e_tag: Some(ETag::Strong(object.tag.to_string())),
            last_modified: Some(timestamp(object.modified)),
            ..Default::default()
        }))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let input = request.input;
        not_offered(input.if_match.is_some(), "conditional deletes")?;
        not_offered(input.version_id.is_some(), "versions")?;
        if !self.loses_delete(&request.extensions, &input.bucket, &[&input.key])? {
            self.store.delete(&input.bucket, &input.key).map_err(refusal)?;
        }
        Ok(S3Response::with_status(DeleteObjectOutput::default(), StatusCode::NO_CONTENT))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let DeleteObjectsInput { bucket, delete, .. } = request.input;
        let count = delete.objects.len();
        if !(1..=BATCH_COUNT_MAX).contains(&count) {
            let error = s3_error!(MalformedXML, "a delete names 1 to 1000 keys, this one {count}");
            return Err(error);
        }
        not_offered(delete.objects.iter().any(|object| object.version_id.is_some()), "versions")?;
        let keys: Vec<&str> = delete.objects.iter().map(|object| &*object.key).collect();
        let is_lost = self.loses_delete(&request.extensions, &bucket, &keys)?;
        self.check_bucket(&bucket)?;
        let quiet = delete.quiet.unwrap_or(false);
        let mut deleted = Vec::new();
        for object in delete.objects {
            if !is_lost {
                self.store.delete(&bucket, &object.key).map_err(refusal)?;
            }
            if !quiet {
                deleted.push(DeletedObject { key: Some(object.key), ..Default::default() });
            }
        }
        let deleted = Some(deleted);
        Ok(S3Response::new(DeleteObjectsOutput { deleted, ..Default::default() }))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        self.begin_upload(request).await
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        self.put_part(request).await
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        self.complete_upload(request).await
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        self.abort_upload(request).await
    }

    async fn list_multipart_uploads(
        &self,
        request: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        self.uploads(request).await
    }

    async fn list_parts(
        &self,
        request: S3Request<ListPartsInput>,
    ) -> S3Result<S3Response<ListPartsOutput>> {
        self.parts(request).await
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = request.input;
        let names = Names::new(input.encoding_type.as_ref())?;
        let from = match (&input.continuation_token, &input.start_after) {
            (Some(token), _) => from_token(token)?,
            (None, Some(start_after)) => first_text_after(start_after),
            (None, None) => String::new(),
        };
        let prefix = input.prefix.unwrap_or_default();
        let delimiter = input.delimiter.unwrap_or_default();
        let limit = page_limit(input.max_keys)?;
        let query = ListQuery { prefix: &prefix, delimiter: &delimiter, from: &from, limit };
        let page = self.page(&request.extensions, &input.bucket, &query)?;
        let key_count = page.objects.len() + page.common_prefixes.len();
        Ok(S3Response::new(ListObjectsV2Output {
            is_truncated: Some(page.next.is_some()),
            next_continuation_token: page.next.as_deref().map(to_token),
            key_count: Some(key_count as i32),
            common_prefixes: Some(names.common_prefixes(&page)),
            contents: Some(names.contents(page)),
            name: Some(input.bucket),
            delimiter: Some(delimiter)
                .filter(|text| !text.is_empty())
                .map(|text| names.write(&text)),
            prefix: Some(names.write(&prefix)),
            start_after: input.start_after.map(|text| names.write(&text)),
            max_keys: Some(limit as i32),
            continuation_token: input.continuation_token,
            encoding_type: input.encoding_type,
            ..Default::default()
        }))
    }

    async fn list_objects(
        &self,
        request: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        let input = request.input;
        let names = Names::new(input.encoding_type.as_ref())?;
        let prefix = input.prefix.unwrap_or_default();
        let delimiter = input.delimiter.unwrap_or_default();
        let marker = input.marker.unwrap_or_default();
        let limit = page_limit(input.max_keys)?;
        let mut query = ListQuery { prefix: &prefix, delimiter: &delimiter, from: "", limit };
        // A marker that is itself a common prefix stands for all that it rolled up.
        let from = if query.common_prefix(&marker) == Some(&marker) {
            first_text_past(&marker).unwrap_or_else(|| first_text_after(&marker))
        } else if marker.is_empty() {
            String::new()
        } else {
            first_text_after(&marker)
        };
        query.from = &from;
        let page = self.page(&request.extensions, &input.bucket, &query)?;
        let truncated = page.next.is_some();
        Ok(S3Response::new(ListObjectsOutput {
            is_truncated: Some(truncated),
            next_marker: page.last.as_deref().filter(|_| truncated).map(|text| names.write(text)),
            common_prefixes: Some(names.common_prefixes(&page)),
            contents: Some(names.contents(page)),
            name: Some(input.bucket),
            delimiter: Some(delimiter)
                .filter(|text| !text.is_empty())
                .map(|text| names.write(&text)),
            prefix: Some(names.write(&prefix)),
            marker: Some(names.write(&marker)),
            max_keys: Some(limit as i32),
            encoding_type: input.encoding_type,
            ..Default::default()
        }))
    }
}

impl Backend {
    /// Sets room aside for what is written, behind `offset` bytes where there is an offset.
    fn room(
        &self,
        bucket: &str,
        key: &str,
        size_bytes: u64,
        (offset, condition): (Option<u64>, Condition),
    ) -> Result<Room<'_>, StoreError> {
        if !self.store.has_bucket(bucket) {
            return Err(StoreError::NoSuchBucket);
        }
        if let Some(offset) = offset {
            let held = self.store.get(bucket, key).map_or(0, |held| held.content.len() as u64);
            if held != offset {
                return Err(StoreError::WrongOffset { size_bytes: held });
            }
        }
        self.store.check_condition(bucket, key, condition)?;
        self.store.reserve(key, size_bytes)
    }

    fn check_bucket(&self, bucket: &str) -> S3Result<()> {
        match self.store.has_bucket(bucket) {
            true => Ok(()),
            false => Err(refusal(StoreError::NoSuchBucket)),
        }
    }

    fn page(
        &self,
        extensions: &Extensions,
        bucket: &str,
        query: &ListQuery<'_>,
    ) -> S3Result<ObjectPage> {
        let page = match Ruling::of(extensions) {
            None => self.store.list(bucket, query),
            Some(ruling) => ruling.page(&self.store, bucket, query)?,
        };
        page.map_err(refusal)
    }

    /// Returns the object that a read of it is told about.
    fn find(
        &self,
        extensions: &Extensions,
        kind: OpKind,
        (bucket, key, extent): (&str, &str, Extent),
    ) -> S3Result<Stored> {
        let found = self.store.get(bucket, key);
        let told = match Ruling::of(extensions) {
            None => found,
            Some(ruling) => {
                let wanted = Wanted { store: &self.store, bucket, key, extent };
                ruling.read(kind, &wanted, found)?
            }
        };
        told.map_err(refusal)
    }

    /// Tells whether a delete is acknowledged and lost.
    fn loses_delete(&self, extensions: &Extensions, bucket: &str, keys: &[&str]) -> S3Result<bool> {
        let Some(ruling) = Ruling::of(extensions) else { return Ok(false) };
        let obstacle = (!self.store.has_bucket(bucket)).then_some(StoreError::NoSuchBucket);
        let changes = keys.iter().any(|key| self.store.get(bucket, key).is_ok());
        ruling.loses(OpKind::Delete, keys[0], 0, obstacle, changes)
    }
}

/// How names are written into a listing.
#[derive(Clone, Copy)]
enum Names {
    Plain,
    UrlEncoded,
}

impl Names {
    fn new(encoding: Option<&EncodingType>) -> S3Result<Self> {
        match encoding.map(EncodingType::as_str) {
            None => Ok(Self::Plain),
            Some("url") => Ok(Self::UrlEncoded),
            Some(other) => Err(s3_error!(InvalidArgument, "no encoding-type is called {other}")),
        }
    }

    fn write(self, name: &str) -> String {
        match self {
            Self::Plain => name.to_owned(),
            Self::UrlEncoded => utf8_percent_encode(name, &URL_SAFE).to_string(),
        }
    }

    fn contents(self, page: ObjectPage) -> Vec<Object> {
        let objects = page.objects.into_iter().map(|(key, object)| Object {
            key: Some(self.write(&key)),
            size: Some(object.content.len() as i64),
            e_tag: Some(ETag::Strong(object.tag.to_string())),
            last_modified: Some(timestamp(object.modified)),
            storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
            ..Default::default()
        });
        objects.collect()
    }

    fn common_prefixes(self, page: &ObjectPage) -> Vec<CommonPrefix> {
        let prefixes = page.common_prefixes.iter();
        prefixes.map(|prefix| CommonPrefix { prefix: Some(self.write(prefix)) }).collect()
    }
}

/// Returns the bytes of an object that are asked for and, where they are not all, their
/// `Content-Range`.
fn cut(object: &Stored, extent: Extent) -> S3Result<(Content, Option<String>)> {
    let span = extent.span(object)?;
    let is_cut = !matches!(extent, Extent::Whole) && !span.is_empty();
    let content_range =
        is_cut.then(|| format!("bytes {}-{}/{}", span.start, span.end - 1, object.content.len()));
    Ok((object.content.slice(span), content_range))
}

/// Returns what a client said about an object, if anything.
fn attributes(
    content_type: Option<ContentType>,
    metadata: Option<Metadata>,
) -> Option<Arc<Attributes>> {
    match (content_type, metadata) {
        (None, None) => None,
        (content_type, metadata) => Some(Arc::new(Attributes { content_type, metadata })),
    }
}

fn described(object: &Stored) -> (Option<ContentType>, Option<Metadata>) {
    let attributes = object.attributes.as_deref();
    let content_type = attributes.and_then(|attributes| attributes.content_type.clone());
    (content_type, attributes.and_then(|attributes| attributes.metadata.clone()))
}

/// Returns when a write that has these headers is done.
fn condition(
    if_match: Option<&IfMatch>,
    if_none_match: Option<&IfNoneMatch>,
) -> S3Result<Condition> {
    let by_tag = if_match.is_some() || if_none_match.is_some_and(|tag| !tag.is_any());
    not_offered(by_tag, "writes on condition of an ETag")?;
    Ok(if if_none_match.is_some() { Condition::Absent } else { Condition::Always })
}

/// Refuses what would otherwise be silently ignored.
fn not_offered(asked: bool, what: &str) -> S3Result<()> {
    match asked {
        true => Err(s3_error!(NotImplemented, "this store does not offer {what}")),
        false => Ok(()),
    }
}

fn page_limit(max_keys: Option<i32>) -> S3Result<usize> {
    let asked = usize::try_from(max_keys.unwrap_or(BATCH_COUNT_MAX as i32));
    let asked = asked.map_err(|_| s3_error!(InvalidArgument, "max-keys is below 0"))?;
    Ok(asked.min(BATCH_COUNT_MAX))
}

/// Writes where a listing goes on as hexadecimal digits, which survive every client's encoding.
fn to_token(from: &str) -> String {
    from.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn from_token(token: &str) -> S3Result<String> {
    let unknown = || s3_error!(InvalidArgument, "this continuation-token was never given out");
    let digits = token.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    let bytes: Option<Vec<u8>> = digits.collect();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(unknown)
}

fn timestamp(time: WallTime) -> Timestamp {
    let time: SystemTime = UNIX_EPOCH + Duration::from_nanos(time.as_unix_ns());
    time.into()
}

fn refusal(error: StoreError) -> S3Error {
    let code = match error {
        StoreError::NoSuchBucket => S3ErrorCode::NoSuchBucket,
        StoreError::NoSuchKey => S3ErrorCode::NoSuchKey,
        StoreError::KeyExists => S3ErrorCode::PreconditionFailed,
        StoreError::BucketExists => S3ErrorCode::BucketAlreadyOwnedByYou,
        StoreError::BucketNotEmpty => S3ErrorCode::BucketNotEmpty,
        StoreError::NoSuchUpload => S3ErrorCode::NoSuchUpload,
        StoreError::InvalidPart { .. } => S3ErrorCode::InvalidPart,
        StoreError::InvalidPartOrder { .. } => S3ErrorCode::InvalidPartOrder,
        StoreError::PartTooSmall { .. } => S3ErrorCode::EntityTooSmall,
        StoreError::WrongOffset { .. } => S3ErrorCode::Custom("InvalidWriteOffset".into()),
        StoreError::Full { .. } => S3ErrorCode::Custom("InsufficientStorage".into()),
    };
    let mut answer = S3Error::with_message(code, error.to_string());
    match error {
        StoreError::Full { .. } => answer.set_status_code(StatusCode::INSUFFICIENT_STORAGE),
        StoreError::WrongOffset { .. } => answer.set_status_code(StatusCode::BAD_REQUEST),
        _ => {}
    }
    answer
}

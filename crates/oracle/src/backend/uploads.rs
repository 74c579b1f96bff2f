//! The operations of S3 on uploads in parts.

use hyper::StatusCode;
use hyper::http::Extensions;
use plimsoll_model::OpKind;
use s3s::dto::*;
use s3s::{Body, S3Request, S3Response, S3Result, s3_error};

use super::body::{collect, size_of};
use super::{Backend, Names, attributes, condition, not_offered, page_limit, refusal, timestamp};
use crate::clock::wall_time;
use crate::digests::Digests;
use crate::misbehave::Ruling;
use crate::store::{NamedPart, PART_NUMBER_MAX, Part as Stored, StoreError};

impl Backend {
    pub(super) async fn begin_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let CreateMultipartUploadInput { bucket, key, content_type, metadata, .. } = request.input;
        let obstacle = || (!self.store.has_bucket(&bucket)).then_some(StoreError::NoSuchBucket);
        rule(&request.extensions, OpKind::CreateUpload, (&key, 0), obstacle)?;
        let attributes = attributes(content_type, metadata);
        let id = self.store.begin_upload(&bucket, &key, wall_time(), attributes);
        Ok(S3Response::new(CreateMultipartUploadOutput {
            upload_id: Some(id.map_err(refusal)?),
            bucket: Some(bucket),
            key: Some(key),
            ..Default::default()
        }))
    }

    pub(super) async fn put_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let mut input = request.input;
        let number = u32::try_from(input.part_number).ok();
        let number = number.filter(|number| (1..=PART_NUMBER_MAX).contains(number));
        let number = number.ok_or_else(|| {
            s3_error!(InvalidArgument, "a part's number is 1 to {PART_NUMBER_MAX}")
        })?;
        let body = input.body.take().unwrap_or_else(|| Body::empty().into());
        let size_bytes = size_of(input.content_length)?;
        let upload = (&*input.bucket, &*input.key, &*input.upload_id);
        let room = match self.store.check_upload(upload) {
            Ok(()) => self.store.reserve(&input.key, size_bytes),
            Err(error) => Err(error),
        };
        let obstacle = || room.as_ref().err().copied();
        rule(&request.extensions, OpKind::PutPart, (&input.key, size_bytes), obstacle)?;
        let room = room.map_err(refusal)?;
        let digests = Digests::new((&input).into());
        let (content, tag) = collect(body, size_bytes, digests).await?;
        let part = Stored { content, tag, modified: wall_time() };
        self.store.put_part(upload, number, part, room).map_err(refusal)?;
        Ok(S3Response::new(UploadPartOutput {
            e_tag: Some(ETag::Strong(tag.to_string())),
            checksum_crc32: input.checksum_crc32,
            checksum_crc32c: input.checksum_crc32c,
            checksum_crc64nvme: input.checksum_crc64nvme,
            checksum_sha1: input.checksum_sha1,
            checksum_sha256: input.checksum_sha256,
            ..Default::default()
        }))
    }

    pub(super) async fn complete_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let input = request.input;
        let condition = condition(input.if_match.as_ref(), input.if_none_match.as_ref())?;
        let named = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
        let named = named.into_iter().map(named_part).collect::<S3Result<Vec<_>>>()?;
        if named.is_empty() {
            return Err(s3_error!(MalformedXML, "the completion of an upload names its parts"));
        }
        let upload = (&*input.bucket, &*input.key, &*input.upload_id);
        let obstacle = || self.store.check_completion(upload, &named, condition).err();
        rule(&request.extensions, OpKind::CompleteUpload, (&input.key, 0), obstacle)?;
        let tag =
            self.store.complete_upload(upload, &named, condition, wall_time()).map_err(refusal)?;
        Ok(S3Response::new(CompleteMultipartUploadOutput {
            location: Some(format!("/{}/{}", input.bucket, input.key)),
            e_tag: Some(ETag::Strong(tag.to_string())),
            bucket: Some(input.bucket),
            key: Some(input.key),
            ..Default::default()
        }))
    }

    pub(super) async fn abort_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let input = request.input;
        not_offered(input.if_match_initiated_time.is_some(), "conditional aborts")?;
        let upload = (&*input.bucket, &*input.key, &*input.upload_id);
        let obstacle = || self.store.check_upload(upload).err();
        rule(&request.extensions, OpKind::AbortUpload, (&input.key, 0), obstacle)?;
        self.store.abort_upload(upload).map_err(refusal)?;
        let output = AbortMultipartUploadOutput::default();
        Ok(S3Response::with_status(output, StatusCode::NO_CONTENT))
    }

    pub(super) async fn uploads(
        &self,
        request: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        let input = request.input;
        let delimits = input.delimiter.is_some_and(|delimiter| !delimiter.is_empty());
        not_offered(delimits, "common prefixes of uploads")?;
        let names = Names::new(input.encoding_type.as_ref())?;
        let limit = page_limit(input.max_uploads)?;
        let prefix = input.prefix.unwrap_or_default();
        let key_marker = input.key_marker.unwrap_or_default();
        let id_marker = input.upload_id_marker;
        let after = (&*key_marker, id_marker.as_deref());
        let page = self.store.uploads(&input.bucket, &prefix, after, limit).map_err(refusal)?;
        let last = page.uploads.last().filter(|_| page.is_truncated).cloned();
        let (next_key, next_id) = last.map(|(key, id, _)| (names.write(&key), id)).unzip();
        let uploads = page.uploads.into_iter().map(|(key, id, begun)| MultipartUpload {
            key: Some(names.write(&key)),
            upload_id: Some(id),
            initiated: Some(timestamp(begun)),
            ..Default::default()
        });
        Ok(S3Response::new(ListMultipartUploadsOutput {
            uploads: Some(uploads.collect()),
            is_truncated: Some(page.is_truncated),
            next_key_marker: next_key,
            next_upload_id_marker: next_id,
            bucket: Some(input.bucket),
            prefix: Some(names.write(&prefix)),
            key_marker: Some(names.write(&key_marker)),
            upload_id_marker: id_marker,
            max_uploads: Some(limit as i32),
            encoding_type: input.encoding_type,
            ..Default::default()
        }))
    }

    pub(super) async fn parts(
        &self,
        request: S3Request<ListPartsInput>,
    ) -> S3Result<S3Response<ListPartsOutput>> {
        let input = request.input;
        let limit = page_limit(input.max_parts)?;
        let after = u32::try_from(input.part_number_marker.unwrap_or(0));
        let after =
            after.map_err(|_| s3_error!(InvalidArgument, "part-number-marker is below 0"))?;
        let upload = (&*input.bucket, &*input.key, &*input.upload_id);
        let page = self.store.parts(upload, after, limit).map_err(refusal)?;
        let next =
            page.parts.last().filter(|_| page.is_truncated).map(|(number, _)| *number as i32);
        let parts = page.parts.into_iter().map(|(number, part)| Part {
            part_number: Some(number as i32),
            size: Some(part.content.len() as i64),
            e_tag: Some(ETag::Strong(part.tag.to_string())),
            last_modified: Some(timestamp(part.modified)),
            ..Default::default()
        });
        Ok(S3Response::new(ListPartsOutput {
            parts: Some(parts.collect()),
            is_truncated: Some(page.is_truncated),
            next_part_number_marker: next,
            part_number_marker: input.part_number_marker,
            max_parts: Some(limit as i32),
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(input.upload_id),
            ..Default::default()
        }))
    }
}

/// Asks the script, where there is one, whether a step of an upload comes to nothing here. The
/// obstacle is why it cannot be done, if so.
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

fn named_part(part: CompletedPart) -> S3Result<NamedPart> {
    let number = part.part_number.and_then(|number| u32::try_from(number).ok());
    let number = number.ok_or_else(|| s3_error!(MalformedXML, "a part is named by its number"))?;
    let tag = part.e_tag.map(|tag| match tag {
        ETag::Strong(tag) | ETag::Weak(tag) => tag,
    });
    Ok(NamedPart { number, tag })
}

//! The operations of S3 on uploads in parts.

use hyper::StatusCode;
use plimsoll_model::OpKind;
use s3s::dto::*;
use s3s::{Body, S3Request, S3Response, S3Result, s3_error};

use super::attributes::{kept, private_only, said, tell_checksum};
use super::body::{Trailers, collect, refuse_unsigned_chunks, size_of};
use super::conditions::write_condition;
use super::listing::{Names, page_limit};
use super::writing::asked_algorithm;
use super::{Backend, not_offered, owner, refusal, rule, timestamp};
use crate::checksum::{Algorithm, Checksum};
use crate::clock::wall_time;
use crate::digests::{Digested, Digests, claimed_checksums};
use crate::store::{Attributes, NamedPart, PART_NUMBER_MAX, Part as Stored, Summing};

impl Backend {
    pub(super) async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let mut input = request.input;
        private_only!(input);
        let mut attributes = said!(input, wall_time());
        let summing = summing(input.checksum_algorithm.as_ref(), input.checksum_type.as_ref())?;
        let completed = self.complete_lock(&input.bucket, &mut attributes, wall_time);
        rule(&request.extensions, OpKind::CreateUpload, (&input.key, 0), || completed.err())?;
        completed.map_err(refusal)?;
        let attributes = kept(attributes);
        let id =
            self.store.begin_upload(&input.bucket, &input.key, wall_time(), attributes, summing);
        let (algorithm, kind) = summing.map(told_summing).unzip();
        Ok(S3Response::new(CreateMultipartUploadOutput {
            upload_id: Some(id.map_err(refusal)?),
            checksum_algorithm: algorithm,
            checksum_type: kind,
            bucket: Some(input.bucket),
            key: Some(input.key),
            ..Default::default()
        }))
    }

    pub(super) async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        refuse_unsigned_chunks(&request)?;
        let mut input = request.input;
        let number = part_number(input.part_number)?;
        let body = input.body.take().unwrap_or_else(|| Body::empty().into());
        let size_bytes = size_of(input.content_length)?;
        let upload = (&*input.bucket, &*input.key, &*input.upload_id);
        let (summing, room) = match self.store.check_upload(upload) {
            Ok(summing) => (summing, self.store.reserve(&input.key, size_bytes, None)),
            Err(error) => (None, Err(error)),
        };
        let obstacle = || room.as_ref().err().copied();
        rule(&request.extensions, OpKind::PutPart, (&input.key, size_bytes), obstacle)?;
        let room = room.map_err(refusal)?;
        let trailers = Trailers::new(&request.headers, request.trailing_headers.as_ref());
        let also = trailers.algorithm.or_else(|| summing.map(|summing| summing.algorithm));
        let digests = Digests::new((&input).into(), self.tagging, also);
        let (content, Digested { tag, checksum }) =
            collect(body, size_bytes, digests, &trailers).await?;
        let content = content.into();
        let part = Stored { content, tag, modified: wall_time(), checksum: checksum.clone() };
        self.store.put_part(upload, number, part, room).map_err(refusal)?;
        let e_tag = Some(ETag::Strong(tag.to_string()));
        let mut output = UploadPartOutput { e_tag, ..Default::default() };
        tell_checksum!(output, checksum);
        Ok(S3Response::new(output))
    }

    pub(super) async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let input = request.input;
        let condition = write_condition(input.if_match.as_ref(), input.if_none_match.as_ref())?;
        let claimed = claimed_checksums!(input).next();
        let named = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
        let named = named.into_iter().map(named_part).collect::<S3Result<Vec<_>>>()?;
        if named.is_empty() {
            return Err(s3_error!(MalformedXML, "the completion of an upload names its parts"));
        }
        let upload = (&*input.bucket, &*input.key, &*input.upload_id);
        let obstacle = || self.store.check_completion(upload, &named, condition).err();
        rule(&request.extensions, OpKind::CompleteUpload, (&input.key, 0), obstacle)?;
        let claimed = claimed.as_ref();
        let done = self.store.complete_upload(upload, &named, claimed, condition, wall_time());
        let (tag, checksum, version) = done.map_err(refusal)?;
        let mut output = CompleteMultipartUploadOutput {
            location: Some(format!("/{}/{}", input.bucket, input.key)),
            e_tag: Some(ETag::Strong(tag.to_string())),
            version_id: version.name(),
            checksum_type: checksum.as_ref().map(Checksum::kind),
            bucket: Some(input.bucket),
            key: Some(input.key),
            ..Default::default()
        };
        tell_checksum!(output, checksum);
        Ok(S3Response::new(output))
    }

    pub(super) async fn abort_multipart_upload(
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

    pub(super) async fn list_multipart_uploads(
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
            owner: Some(owner()),
            storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
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

    pub(super) async fn list_parts(
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
        let summing = self.store.check_upload(upload).map_err(refusal)?;
        let (algorithm, kind) = summing.map(told_summing).unzip();
        let next =
            page.parts.last().filter(|_| page.is_truncated).map(|(number, _)| *number as i32);
        let parts = page.parts.into_iter().map(|(number, part)| {
            let mut told = Part {
                part_number: Some(number as i32),
                size: Some(part.content.len() as i64),
                e_tag: Some(ETag::Strong(part.tag.to_string())),
                last_modified: Some(timestamp(part.modified)),
                ..Default::default()
            };
            tell_checksum!(told, part.checksum);
            told
        });
        Ok(S3Response::new(ListPartsOutput {
            parts: Some(parts.collect()),
            owner: Some(owner()),
            storage_class: Some(StorageClass::from_static(StorageClass::STANDARD)),
            checksum_algorithm: algorithm,
            checksum_type: kind,
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

/// Returns the number of a part.
pub(super) fn part_number(number: i32) -> S3Result<u32> {
    let number = u32::try_from(number).ok();
    let number = number.filter(|number| (1..=PART_NUMBER_MAX).contains(number));
    number.ok_or_else(|| s3_error!(InvalidArgument, "a part's number is 1 to {PART_NUMBER_MAX}"))
}

/// Returns how the checksum of an upload is made.
fn summing(
    algorithm: Option<&ChecksumAlgorithm>,
    kind: Option<&ChecksumType>,
) -> S3Result<Option<Summing>> {
    let Some(algorithm) = asked_algorithm(algorithm) else { return Ok(None) };
    let is_of_whole = match kind.map(|kind| kind.as_str()) {
        None => algorithm == Algorithm::Crc64Nvme,
        Some("FULL_OBJECT") if algorithm.is_crc() => true,
        Some("COMPOSITE") if algorithm != Algorithm::Crc64Nvme => false,
        Some(other) => {
            let name = algorithm.name();
            return Err(s3_error!(InvalidRequest, "a checksum {name} is not made as {other}"));
        }
    };
    Ok(Some(Summing { algorithm, is_of_whole }))
}

fn told_summing(summing: Summing) -> (ChecksumAlgorithm, ChecksumType) {
    let kind = if summing.is_of_whole { "FULL_OBJECT" } else { "COMPOSITE" };
    let algorithm = ChecksumAlgorithm::from_static(summing.algorithm.name());
    (algorithm, ChecksumType::from_static(kind))
}

fn named_part(part: CompletedPart) -> S3Result<NamedPart> {
    let checksum = claimed_checksums!(part).next();
    let number = part.part_number.and_then(|number| u32::try_from(number).ok());
    let number = number.ok_or_else(|| s3_error!(MalformedXML, "a part is named by its number"))?;
    let tag = part.e_tag.map(|tag| match tag {
        ETag::Strong(tag) | ETag::Weak(tag) => tag,
    });
    Ok(NamedPart { number, tag, checksum })
}

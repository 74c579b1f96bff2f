//! Reading objects, whole or in part, and what is known of them.

use hyper::HeaderMap;
use hyper::http::Extensions;
use plimsoll_model::OpKind;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::archives::{EXTRACT, member_of};
use super::attributes::{checksum, describe, storage_class, tell_checksum};
use super::conditions::{ReadConditions, not_modified, read_conditions};
use super::{Backend, page_limit, refusal, rule, timestamp, version_of};
use crate::content::Content;
use crate::extent::Extent;
use crate::misbehave::{Ruling, Wanted};
use crate::store::{Object, StoreError, VersionId};

/// What a read asks for.
pub(super) struct Asked<'a> {
    pub(super) bucket: &'a str,
    pub(super) key: &'a str,
    pub(super) version: Option<VersionId>,
    pub(super) extent: Extent,
    pub(super) conditions: ReadConditions,
}

impl Backend {
    pub(super) async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let mut input = request.input;
        let asked = Asked {
            conditions: read_conditions!(input),
            bucket: &input.bucket,
            key: &input.key,
            version: version_of(input.version_id.as_deref())?,
            extent: Extent::new(input.range, input.part_number)?,
        };
        let object = self.find(&request.headers, &request.extensions, OpKind::Get, &asked)?;
        let (content, content_range) = cut(&object, asked.extent)?;
        let mut output = GetObjectOutput {
            content_length: Some(content.len() as i64),
            body: Some(content.into_body().into()),
            content_range,
            parts_count: parts_count(&object, asked.extent),
            ..Default::default()
        };
        describe!(output, &object);
        let tags_count = object.attributes.as_ref().map_or(0, |said| said.tags.len());
        output.tag_count = Some(tags_count as i32).filter(|count| *count > 0);
        if wants_checksum(input.checksum_mode.as_ref(), asked.extent) {
            let checksum = checksum(&object);
            output.checksum_type = checksum.as_ref().map(|checksum| checksum.kind());
            tell_checksum!(output, checksum);
        }
        Ok(S3Response::new(output))
    }

    pub(super) async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let mut input = request.input;
        let asked = Asked {
            conditions: read_conditions!(input),
            bucket: &input.bucket,
            key: &input.key,
            version: version_of(input.version_id.as_deref())?,
            extent: Extent::new(input.range, input.part_number)?,
        };
        let object = self.find(&request.headers, &request.extensions, OpKind::Stat, &asked)?;
        let (content, content_range) = cut(&object, asked.extent)?;
        let is_part = content_range.is_some();
        let mut output = HeadObjectOutput {
            content_length: Some(content.len() as i64),
            content_range,
            parts_count: parts_count(&object, asked.extent),
            ..Default::default()
        };
        describe!(output, &object);
        if wants_checksum(input.checksum_mode.as_ref(), asked.extent) {
            let checksum = checksum(&object);
            output.checksum_type = checksum.as_ref().map(|checksum| checksum.kind());
            tell_checksum!(output, checksum);
        }
        let mut response = S3Response::new(output);
        response.status = is_part.then_some(hyper::StatusCode::PARTIAL_CONTENT);
        Ok(response)
    }

    pub(super) async fn get_object_attributes(
        &self,
        request: S3Request<GetObjectAttributesInput>,
    ) -> S3Result<S3Response<GetObjectAttributesOutput>> {
        let input = request.input;
        let asked = Asked {
            bucket: &input.bucket,
            key: &input.key,
            version: version_of(input.version_id.as_deref())?,
            extent: Extent::Whole,
            conditions: ReadConditions::default(),
        };
        let object = self.find(&request.headers, &request.extensions, OpKind::Stat, &asked)?;
        // Some clients send one header for all, others one for each.
        let wants = |name: &str| {
            let mut names =
                input.object_attributes.iter().flat_map(|text| text.as_str().split(','));
            names.any(|wanted| wanted.trim() == name)
        };
        let after = input.part_number_marker.unwrap_or(0).max(0) as usize;
        let limit = page_limit(input.max_parts)?;
        let class = StorageClass::from(storage_class(&object));
        let checksum = checksum(&object).filter(|_| wants("Checksum"));
        Ok(S3Response::new(GetObjectAttributesOutput {
            e_tag: wants("ETag").then(|| ETag::Strong(object.tag.to_string())),
            object_size: wants("ObjectSize").then_some(object.content.len() as i64),
            storage_class: wants("StorageClass").then_some(class),
            checksum: checksum.map(|checksum| checksum.told()),
            object_parts: wants("ObjectParts").then(|| parts_of(&object, after, limit)).flatten(),
            last_modified: Some(timestamp(object.modified)),
            version_id: object.version.name(),
            ..Default::default()
        }))
    }

    /// Returns the object that a read of it is told about.
    pub(super) fn find(
        &self,
        headers: &HeaderMap,
        extensions: &Extensions,
        kind: OpKind,
        asked: &Asked<'_>,
    ) -> S3Result<Object> {
        let Asked { bucket, key, version, extent, .. } = *asked;
        let found = match member_of(key).filter(|_| wants_member(headers)) {
            None => self.store.get_version(bucket, key, version),
            Some((archive, member)) => {
                let archive = self.store.get_version(bucket, archive, version);
                match archive {
                    Ok(archive) => self.zips.member(&archive, member)?,
                    Err(error) => Err(error),
                }
            }
        };
        let failure = found.as_ref().ok().and_then(|object| asked.conditions.failure(object));
        if let (Ok(object), Some(failure)) = (&found, failure) {
            rule(extensions, kind, (key, 0), || Some(failure))?;
            return Err(match failure {
                StoreError::NotModified => not_modified(object),
                other => refusal(other),
            });
        }
        let told = match Ruling::of(extensions) {
            None => found,
            Some(ruling) => {
                let wanted = Wanted { store: &self.store, bucket, key, version, extent };
                ruling.read(kind, &wanted, found)?
            }
        };
        told.map_err(refusal)
    }
}

fn wants_member(headers: &HeaderMap) -> bool {
    headers.get(EXTRACT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}

fn wants_checksum(mode: Option<&ChecksumMode>, extent: Extent) -> bool {
    matches!(extent, Extent::Whole) && mode.is_some_and(|mode| mode.as_str() == "ENABLED")
}

fn parts_count(object: &Object, extent: Extent) -> Option<i32> {
    let is_part = matches!(extent, Extent::Part(_));
    let ends = object.part_ends.as_deref().filter(|_| is_part);
    ends.map(|ends| ends.len() as i32)
}

/// Returns one page of the parts that an object was uploaded in; `None`: it came as a whole.
fn parts_of(object: &Object, after: usize, limit: usize) -> Option<GetObjectAttributesParts> {
    let ends = object.part_ends.as_deref()?;
    let begin = |at: usize| at.checked_sub(1).map_or(0, |before| ends[before]);
    let shown = after.min(ends.len())..after.saturating_add(limit).min(ends.len());
    let is_truncated = shown.end < ends.len();
    let next = (is_truncated && !shown.is_empty()).then_some(shown.end as i32);
    let part = |at: usize| ObjectPart {
        part_number: Some(at as i32 + 1),
        size: Some((ends[at] - begin(at)) as i64),
        ..Default::default()
    };
    Some(GetObjectAttributesParts {
        total_parts_count: Some(ends.len() as i32),
        parts: Some(shown.map(part).collect()),
        is_truncated: Some(is_truncated),
        max_parts: Some(limit as i32),
        part_number_marker: Some(after as i32),
        next_part_number_marker: next,
    })
}

/// Returns the bytes of an object that are asked for and, where they are not all, their
/// `Content-Range`.
fn cut(object: &Object, extent: Extent) -> S3Result<(Content, Option<String>)> {
    let span = extent.span(object)?;
    let is_cut = !matches!(extent, Extent::Whole) && !span.is_empty();
    let content_range =
        is_cut.then(|| format!("bytes {}-{}/{}", span.start, span.end - 1, object.content.len()));
    Ok((object.content.slice(span), content_range))
}

/// Reads a range as a copy has it, which needs both ends.
pub(super) fn copy_range(text: &str) -> S3Result<Extent> {
    let range =
        Range::parse(text).ok().filter(|range| matches!(range, Range::Int { last: Some(_), .. }));
    let range =
        range.ok_or_else(|| s3_error!(InvalidArgument, "the range to copy is bytes=FIRST-LAST"))?;
    Ok(Extent::Range(range))
}

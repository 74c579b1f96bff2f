//! Copies: of an object to another key, and of a range of one to a part of an upload.

use std::sync::Arc;

use hyper::http::Extensions;
use plimsoll_model::OpKind;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::attributes::{kept, private_only, said, tell_checksum};
use super::conditions::{ReadConditions, copy_conditions, target_conditions, write_condition};
use super::reading::copy_range;
use super::uploads::part_number;
use super::writing::{Place, asked_algorithm, is_lost};
use super::{Backend, not_offered, refusal, rule, timestamp, version_of};
use crate::checksum::{Algorithm, Checksum};
use crate::clock::wall_time;
use crate::content::Content;
use crate::digests::{Digested, Digests, Tag};
use crate::extent::Extent;
use crate::store::{Attributes, Object, Part, StoreError, VersionId};

/// The most that is copied with one request, as in S3.
const COPY_BYTES_MAX: usize = 5 << 30;

/// What is copied.
struct Source<'a> {
    bucket: &'a str,
    key: &'a str,
    version: Option<VersionId>,
}

impl<'a> Source<'a> {
    fn new(source: &'a CopySource) -> S3Result<Self> {
        match source {
            CopySource::Bucket { bucket, key, version_id } => {
                let version = version_of(version_id.as_deref())?;
                Ok(Self { bucket, key, version })
            }
            CopySource::AccessPoint { .. } | CopySource::Outpost { .. } => {
                Err(s3_error!(NotImplemented, "this store does not offer access points"))
            }
        }
    }
}

impl Backend {
    pub(super) async fn copy_object(
        &self,
        request: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        let mut input = request.input;
        private_only!(input);
        let conditions = copy_conditions!(input);
        let (if_match, if_none_match) = target_conditions(&request.headers)?;
        let condition = write_condition(if_match.as_ref(), if_none_match.as_ref())?;
        let has_tags = replaces(input.tagging_directive.as_ref().map(|word| word.as_str()))?;
        let is_anew = replaces(input.metadata_directive.as_ref().map(|word| word.as_str()))?;
        let changes = is_anew
            || input.storage_class.is_some()
            || input.website_redirect_location.is_some()
            || input.server_side_encryption.is_some();
        let said = said!(input, wall_time()).unwrap_or_default();
        let from = Source::new(&input.copy_source)?;
        let is_itself = (from.bucket, from.key) == (&*input.bucket, &*input.key);
        if is_itself && from.version.is_none() && !changes {
            let why = "a copy onto itself must change the metadata or the storage class";
            return Err(s3_error!(InvalidRequest, "{why}"));
        }
        let place = Place { bucket: &input.bucket, key: &input.key, offset: None, condition };
        let source = self.source(&request.extensions, &from, &conditions, place.key)?;
        let mut attributes = Some(attributes_of_copy(&source, said, is_anew, has_tags));
        let asked = asked_algorithm(input.checksum_algorithm.as_ref());
        let (tag, checksum) = self.digested(&source, asked);
        attributes.get_or_insert_default().checksum.clone_from(&checksum);
        let size_bytes = source.content.len() as u64;
        let room = self.room_for_copy(&place, &source.content, &mut attributes);
        let is_lost = is_lost(&request.extensions, OpKind::Put, (place.key, size_bytes), &room)?;
        let room = room.map_err(refusal)?;
        let (modified, content, version) = (wall_time(), source.content, VersionId::NULL);
        let attributes = kept(attributes);
        let object = Object { content, tag, modified, attributes, part_ends: None, version };
        let version = match is_lost {
            true => {
                self.store.lose_write(place.bucket, place.key);
                version
            }
            false => {
                self.store.put(place.bucket, place.key, object, condition, room).map_err(refusal)?
            }
        };
        let mut result = CopyObjectResult {
            e_tag: Some(ETag::Strong(tag.to_string())),
            last_modified: Some(timestamp(modified)),
            checksum_type: checksum.as_ref().map(Checksum::kind),
            ..Default::default()
        };
        tell_checksum!(result, checksum);
        Ok(S3Response::new(CopyObjectOutput {
            copy_object_result: Some(result),
            copy_source_version_id: source.version.name(),
            version_id: version.name(),
            ..Default::default()
        }))
    }

    pub(super) async fn upload_part_copy(
        &self,
        request: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        let mut input = request.input;
        let conditions = copy_conditions!(input);
        let number = part_number(input.part_number)?;
        let extent = input.copy_source_range.as_deref().map_or(Ok(Extent::Whole), copy_range)?;
        let from = Source::new(&input.copy_source)?;
        let source = self.source(&request.extensions, &from, &conditions, &input.key)?;
        let span = extent.span(&source)?;
        // A range that goes beyond the end is refused, unlike one that is read.
        if let Extent::Range(Range::Int { last: Some(last), .. }) = extent
            && last >= source.content.len() as u64
        {
            let why = "the range to copy goes beyond the end of the object";
            return Err(s3_error!(InvalidArgument, "{why}"));
        }
        let upload = (&*input.bucket, &*input.key, &*input.upload_id);
        let size_bytes = span.len() as u64;
        // A part that shared some of the content would hold all of it.
        let is_shared =
            span.len() == source.content.len() && matches!(source.content, Content::Whole(_));
        let reserve = || match is_shared {
            true => self.store.reserve_copy(&input.key, &source.content, None),
            false => self.store.reserve(&input.key, size_bytes, None),
        };
        let (summing, room) = match self.store.check_upload(upload) {
            Ok(summing) => (summing, reserve()),
            Err(error) => (None, Err(error)),
        };
        let obstacle = || room.as_ref().err().copied();
        rule(&request.extensions, OpKind::PutPart, (&input.key, size_bytes), obstacle)?;
        let room = room.map_err(refusal)?;
        let content = match source.content.slice(span).into_piece() {
            piece if is_shared => piece,
            piece => bytes::Bytes::copy_from_slice(piece.as_ref()).into(),
        };
        let also = summing.map(|summing| summing.algorithm);
        let Digested { tag, checksum } = Digests::of([content.as_ref()], self.tagging, also);
        let modified = wall_time();
        let part = Part { content, tag, modified, checksum: checksum.clone() };
        self.store.put_part(upload, number, part, room).map_err(refusal)?;
        let mut result = CopyPartResult {
            e_tag: Some(ETag::Strong(tag.to_string())),
            last_modified: Some(timestamp(modified)),
            ..Default::default()
        };
        tell_checksum!(result, checksum);
        Ok(S3Response::new(UploadPartCopyOutput {
            copy_part_result: Some(result),
            copy_source_version_id: source.version.name(),
            ..Default::default()
        }))
    }

    /// Returns what is copied; the script is asked where it cannot be, for then nothing is written.
    fn source(
        &self,
        extensions: &Extensions,
        from: &Source<'_>,
        conditions: &ReadConditions,
        key: &str,
    ) -> S3Result<Object> {
        let found = self.store.get_version(from.bucket, from.key, from.version);
        let found = found.and_then(|object| match conditions.failure(&object) {
            // Of a copy both are a condition that does not hold.
            Some(_) => Err(StoreError::OtherTag),
            None => Ok(object),
        });
        let object = found.or_else(|error| {
            rule(extensions, OpKind::Put, (key, 0), || Some(error))?;
            Err(refusal(error))
        })?;
        not_offered(object.content.len() > COPY_BYTES_MAX, "copies of more than 5 GiB at once")?;
        Ok(object)
    }

    /// Returns tag and checksum of a copy, which is no longer made of parts.
    fn digested(&self, source: &Object, asked: Option<Algorithm>) -> (Tag, Option<Checksum>) {
        let held = source.attributes.as_ref().and_then(|said| said.checksum.as_ref());
        let algorithm = asked.or_else(|| held.map(|held| held.algorithm));
        let keeps_sum = match (held, algorithm) {
            (Some(held), Some(algorithm)) => held.algorithm == algorithm && held.is_of_whole(),
            (None, None) => true,
            _ => false,
        };
        if keeps_sum && matches!(source.tag, Tag::Crc64 { .. } | Tag::Md5(_)) {
            return (source.tag, held.cloned());
        }
        let Digested { tag, checksum } =
            Digests::of(source.content.pieces(), self.tagging, algorithm);
        (tag, checksum)
    }
}

/// Tells whether what the source has is replaced by what the request says.
fn replaces(directive: Option<&str>) -> S3Result<bool> {
    match directive {
        None | Some("COPY") => Ok(false),
        Some("REPLACE") => Ok(true),
        Some(other) => Err(s3_error!(InvalidArgument, "a directive is no {other}")),
    }
}

/// Returns what is said of a copy: by its source, or by the request.
fn attributes_of_copy(
    source: &Object,
    said: Attributes,
    is_anew: bool,
    has_tags: bool,
) -> Attributes {
    let held = source.attributes.as_ref().map(Arc::clone).unwrap_or_default();
    let mut attributes = if is_anew { said.clone() } else { (*held).clone() };
    attributes.tags = if has_tags { said.tags } else { held.tags.clone() };
    // These are of the copy alone.
    (attributes.lock, attributes.redirect) = (said.lock, said.redirect);
    attributes.storage_class = said.storage_class;
    attributes
}

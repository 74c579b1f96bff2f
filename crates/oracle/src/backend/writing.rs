//! Writing objects whole: by PUT, by a form, behind what is there, and archives that are taken
//! apart.

use hyper::Method;
use hyper::http::Extensions;
use plimsoll_model::{OpKind, WallTime};
use s3s::dto::*;
use s3s::{Body, S3Request, S3Response, S3Result, s3_error};

use super::archives::is_to_be_taken_apart;
use super::attributes::{kept, private_only, said, tell_checksum};
use super::body::{Trailers, collect, refuse_unsigned_chunks, size_of};
use super::conditions::write_condition;
use super::fanout::FanoutKeys;
use super::{Backend, not_offered, refusal};
use crate::checksum::Algorithm;
use crate::clock::wall_time;
use crate::content::Content;
use crate::digests::{Digested, Digests, Tag};
use crate::misbehave::Ruling;
use crate::store::{Attributes, Condition, Object, Room, StoreError, VersionId};

/// Where an object is to be stored, and when.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) bucket: &'a str,
    pub(super) key: &'a str,
    /// How many bytes must be there, to which the content is added.
    pub(super) offset: Option<u64>,
    pub(super) condition: Condition<'a>,
}

impl Backend {
    pub(super) async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        refuse_unsigned_chunks(&request)?;
        let mut input = request.input;
        private_only!(input);
        let offset = input.write_offset_bytes.map(u64::try_from).transpose();
        let offset =
            offset.map_err(|_| s3_error!(InvalidArgument, "the write offset is below 0"))?;
        not_offered(offset.is_some() && self.store.remembers(), "appends where a script lies")?;
        let kind = match (offset, &request.method) {
            (Some(_), _) => OpKind::Append,
            (None, &Method::POST) => OpKind::Post,
            (None, _) => OpKind::Put,
        };
        let body = input.body.take().unwrap_or_else(|| Body::empty().into());
        let size_bytes = size_of(input.content_length)?;
        let mut attributes = said!(input, wall_time());
        let condition = write_condition(input.if_match.as_ref(), input.if_none_match.as_ref())?;
        let place = Place { bucket: &input.bucket, key: &input.key, offset, condition };
        let room = self.room(&place, size_bytes, &mut attributes);
        let is_lost = is_lost(&request.extensions, kind, (place.key, size_bytes), &room)?;
        let room = room.map_err(refusal)?;
        let trailers = Trailers::new(&request.headers, request.trailing_headers.as_ref());
        let also =
            trailers.algorithm.or_else(|| asked_algorithm(input.checksum_algorithm.as_ref()));
        let digests = Digests::new((&input).into(), self.tagging, also);
        let (content, Digested { tag, checksum }) =
            collect(body, size_bytes, digests, &trailers).await?;
        if is_to_be_taken_apart(attributes.as_ref()) {
            if !is_lost {
                self.take_apart(&place, content, attributes.unwrap_or_default())?;
            }
            let e_tag = Some(ETag::Strong(tag.to_string()));
            return Ok(S3Response::new(PutObjectOutput { e_tag, ..Default::default() }));
        }
        if checksum.is_some() {
            attributes.get_or_insert_default().checksum.clone_from(&checksum);
        }
        let object = Object {
            content: content.into(),
            tag,
            modified: wall_time(),
            attributes: kept(attributes),
            part_ends: None,
            version: VersionId::NULL,
        };
        if let Some(keys) = request.extensions.get::<FanoutKeys>() {
            // Held until every key has its copy, so that the content counts once.
            let _room = room.holding(&object.content);
            return self.fan_out(&place, keys, object, is_lost);
        }
        let (tag, version, size) = match is_lost {
            true => {
                self.store.lose_write(place.bucket, place.key);
                (tag, VersionId::NULL, None)
            }
            false => self.store_at(&place, object, room).map_err(refusal)?,
        };
        let mut output = PutObjectOutput {
            e_tag: Some(ETag::Strong(tag.to_string())),
            version_id: version.name(),
            size,
            ..Default::default()
        };
        tell_checksum!(output, checksum);
        Ok(S3Response::new(output))
    }

    /// Stores an object or adds it to what is there; returns the tag and the version of what is
    /// there then, and its size where it was added to.
    fn store_at(
        &self,
        place: &Place<'_>,
        object: Object,
        room: Room<'_>,
    ) -> Result<(Tag, VersionId, Option<i64>), StoreError> {
        let Place { bucket, key, offset, condition } = *place;
        let tag = object.tag;
        let Some(offset) = offset else {
            return Ok((tag, self.store.put(bucket, key, object, condition, room)?, None));
        };
        let (tag, size_bytes) = self.store.append(bucket, key, offset, object, room)?;
        Ok((tag, VersionId::NULL, Some(size_bytes as i64)))
    }

    /// Sets room aside for what is written, and completes what keeps it by what its bucket says.
    pub(super) fn room(
        &self,
        place: &Place<'_>,
        size_bytes: u64,
        attributes: &mut Option<Attributes>,
    ) -> Result<Room<'_>, StoreError> {
        self.check_place(place, attributes)?;
        self.store.reserve(place.key, size_bytes, attributes.as_ref())
    }

    /// Sets room aside as [`room`](Self::room) does, for content that is stored already.
    pub(super) fn room_for_copy(
        &self,
        place: &Place<'_>,
        content: &Content,
        attributes: &mut Option<Attributes>,
    ) -> Result<Room<'_>, StoreError> {
        self.check_place(place, attributes)?;
        self.store.reserve_copy(place.key, content, attributes.as_ref())
    }

    /// Tells why nothing can be written there, if so, and completes what keeps it.
    fn check_place(
        &self,
        place: &Place<'_>,
        attributes: &mut Option<Attributes>,
    ) -> Result<(), StoreError> {
        let Place { bucket, key, offset, condition } = *place;
        self.complete_lock(bucket, attributes, wall_time)?;
        if let Some(offset) = offset {
            let held = self.store.get(bucket, key).map_or(0, |held| held.content.len() as u64);
            if held != offset {
                return Err(StoreError::WrongOffset { size_bytes: held });
            }
        }
        self.store.check_condition(bucket, key, condition)
    }

    /// Completes what keeps a version by what its bucket says.
    pub(super) fn complete_lock(
        &self,
        bucket: &str,
        attributes: &mut Option<Attributes>,
        now: impl FnOnce() -> WallTime,
    ) -> Result<(), StoreError> {
        let asked = attributes.as_ref().map(|said| said.lock).unwrap_or_default();
        let lock = self.store.lock_of_new(bucket, asked, now)?;
        if lock != asked {
            attributes.get_or_insert_default().lock = lock;
        }
        Ok(())
    }
}

/// Asks the script, where there is one, whether a write comes to nothing here or is acknowledged
/// and lost.
pub(super) fn is_lost(
    extensions: &Extensions,
    kind: OpKind,
    (key, size_bytes): (&str, u64),
    room: &Result<Room<'_>, StoreError>,
) -> S3Result<bool> {
    let Some(ruling) = Ruling::of(extensions) else { return Ok(false) };
    ruling.loses(kind, key, size_bytes, room.as_ref().err().copied(), true)
}

/// Returns the checksum that a client asks to be computed; one that it names and does not send is
/// computed too.
pub(super) fn asked_algorithm(name: Option<&ChecksumAlgorithm>) -> Option<Algorithm> {
    name.and_then(|name| Algorithm::from_name(name.as_str()))
}

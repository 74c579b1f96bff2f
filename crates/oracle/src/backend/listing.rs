//! Listings: which objects and versions a bucket holds, page by page.

use hyper::http::Extensions;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_model::OpKind;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

use super::attributes::storage_class;
use super::{BATCH_COUNT_MAX, Backend, owner, refusal, rule, timestamp, version_of};
use crate::checksum::Checksum;
use crate::listing::{ListQuery, first_text_after};
use crate::misbehave::Ruling;
use crate::store::{Object as Stored, ObjectPage, StoreError, Version, VersionPage};

/// What `encoding-type=url` leaves as it is. A space becomes `%20`, which clients of both habits
/// decode.
const URL_SAFE: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

impl Backend {
    pub(super) async fn list_objects_v2(
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
        let with_owner = input.fetch_owner.unwrap_or(false);
        let query = ListQuery { prefix: &prefix, delimiter: &delimiter, from: &from, limit };
        let page = self.page(&request.extensions, &input.bucket, &query)?;
        let key_count = page.objects.len() + page.common_prefixes.len();
        Ok(S3Response::new(ListObjectsV2Output {
            is_truncated: Some(page.next.is_some()),
            next_continuation_token: page.next.as_deref().map(to_token),
            key_count: Some(key_count as i32),
            common_prefixes: Some(names.common_prefixes(&page)),
            contents: Some(names.contents(page, with_owner)),
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

    pub(super) async fn list_objects(
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
        let from = query.behind(&marker);
        query.from = &from;
        let page = self.page(&request.extensions, &input.bucket, &query)?;
        let truncated = page.next.is_some();
        Ok(S3Response::new(ListObjectsOutput {
            is_truncated: Some(truncated),
            next_marker: page.last.as_deref().filter(|_| truncated).map(|text| names.write(text)),
            common_prefixes: Some(names.common_prefixes(&page)),
            contents: Some(names.contents(page, true)),
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

    pub(super) async fn list_object_versions(
        &self,
        request: S3Request<ListObjectVersionsInput>,
    ) -> S3Result<S3Response<ListObjectVersionsOutput>> {
        let input = request.input;
        let names = Names::new(input.encoding_type.as_ref())?;
        let prefix = input.prefix.unwrap_or_default();
        let delimiter = input.delimiter.unwrap_or_default();
        let key_marker = input.key_marker.unwrap_or_default();
        let marker = input.version_id_marker.filter(|marker| !marker.is_empty());
        if marker.is_some() && key_marker.is_empty() {
            return Err(s3_error!(InvalidArgument, "a version-id-marker needs a key-marker"));
        }
        let after = version_of(marker.as_deref())?;
        let limit = page_limit(input.max_keys)?;
        let mut query = ListQuery { prefix: &prefix, delimiter: &delimiter, from: "", limit };
        let from = match after {
            Some(_) => key_marker.clone(),
            None => query.behind(&key_marker),
        };
        query.from = &from;
        let obstacle =
            || (!self.store.has_bucket(&input.bucket)).then_some(StoreError::NoSuchBucket);
        rule(&request.extensions, OpKind::List, (&prefix, 0), obstacle)?;
        let page = self.store.list_versions(&input.bucket, &query, after).map_err(refusal)?;
        let (next_key, next_version) = match &page.next {
            Some((key, version)) => (Some(names.write(key)), version.map(|id| id.to_string())),
            None => (None, None),
        };
        let is_truncated = Some(page.next.is_some());
        let prefixes = names.prefixes(&page.common_prefixes);
        let (versions, delete_markers) = names.versions(page);
        Ok(S3Response::new(ListObjectVersionsOutput {
            is_truncated,
            next_key_marker: next_key,
            next_version_id_marker: next_version,
            common_prefixes: Some(prefixes),
            versions: Some(versions),
            delete_markers: Some(delete_markers),
            name: Some(input.bucket),
            delimiter: Some(delimiter)
                .filter(|text| !text.is_empty())
                .map(|text| names.write(&text)),
            prefix: Some(names.write(&prefix)),
            key_marker: Some(names.write(&key_marker)),
            version_id_marker: marker,
            max_keys: Some(limit as i32),
            encoding_type: input.encoding_type,
            ..Default::default()
        }))
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
}

/// How names are written into a listing.
#[derive(Clone, Copy)]
pub(super) enum Names {
    Plain,
    UrlEncoded,
}

impl Names {
    pub(super) fn new(encoding: Option<&EncodingType>) -> S3Result<Self> {
        match encoding.map(EncodingType::as_str) {
            None => Ok(Self::Plain),
            Some("url") => Ok(Self::UrlEncoded),
            Some(other) => Err(s3_error!(InvalidArgument, "no encoding-type is called {other}")),
        }
    }

    pub(super) fn write(self, name: &str) -> String {
        match self {
            Self::Plain => name.to_owned(),
            Self::UrlEncoded => utf8_percent_encode(name, &URL_SAFE).to_string(),
        }
    }

    fn contents(self, page: ObjectPage, with_owner: bool) -> Vec<Object> {
        let objects = page.objects.into_iter().map(|(key, object)| Object {
            key: Some(self.write(&key)),
            size: Some(object.content.len() as i64),
            e_tag: Some(ETag::Strong(object.tag.to_string())),
            last_modified: Some(timestamp(object.modified)),
            storage_class: Some(storage_class(&object).into()),
            checksum_algorithm: algorithms(&object),
            checksum_type: kept_checksum(&object).map(Checksum::kind),
            owner: with_owner.then(owner),
            ..Default::default()
        });
        objects.collect()
    }

    fn common_prefixes(self, page: &ObjectPage) -> Vec<CommonPrefix> {
        self.prefixes(&page.common_prefixes)
    }

    fn prefixes(self, prefixes: &[String]) -> Vec<CommonPrefix> {
        let of = |prefix: &String| CommonPrefix { prefix: Some(self.write(prefix)) };
        prefixes.iter().map(of).collect()
    }

    fn versions(self, page: VersionPage) -> (Vec<ObjectVersion>, Vec<DeleteMarkerEntry>) {
        let (mut versions, mut markers) = (Vec::new(), Vec::new());
        for (key, version, is_latest) in page.versions {
            let key = Some(self.write(&key));
            match version {
                Version::Object(object) => versions.push(ObjectVersion {
                    key,
                    is_latest: Some(is_latest),
                    version_id: Some(object.version.to_string()),
                    size: Some(object.content.len() as i64),
                    e_tag: Some(ETag::Strong(object.tag.to_string())),
                    last_modified: Some(timestamp(object.modified)),
                    storage_class: Some(storage_class(&object).into()),
                    owner: Some(owner()),
                    ..Default::default()
                }),
                Version::Marker(marker) => markers.push(DeleteMarkerEntry {
                    key,
                    is_latest: Some(is_latest),
                    version_id: Some(marker.version.to_string()),
                    last_modified: Some(timestamp(marker.modified)),
                    owner: Some(owner()),
                }),
            }
        }
        (versions, markers)
    }
}

/// Returns the checksum that was sent with an object.
fn kept_checksum(object: &Stored) -> Option<&Checksum> {
    object.attributes.as_ref().and_then(|attributes| attributes.checksum.as_ref())
}

fn algorithms(object: &Stored) -> Option<Vec<ChecksumAlgorithm>> {
    let checksum = kept_checksum(object)?;
    Some(vec![ChecksumAlgorithm::from_static(checksum.algorithm.name())])
}

pub(super) fn page_limit(max_keys: Option<i32>) -> S3Result<usize> {
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

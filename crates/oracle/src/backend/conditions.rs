//! Conditions of requests: on what is read, and on what a write replaces.

use hyper::HeaderMap;
use hyper::header::{ETAG, HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH, LAST_MODIFIED};
use s3s::dto::{ETag, ETagCondition, Timestamp, TimestampFormat};
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use super::{not_offered, timestamp};
use crate::store::{Condition, Object, StoreError};

/// When an object is read, or copied.
#[derive(Default)]
pub(super) struct ReadConditions {
    pub(super) if_match: Option<ETagCondition>,
    pub(super) if_none_match: Option<ETagCondition>,
    pub(super) if_modified_since: Option<Timestamp>,
    pub(super) if_unmodified_since: Option<Timestamp>,
}

/// Takes the conditions out of the input of a read.
macro_rules! read_conditions {
    ($input:expr) => {
        ReadConditions {
            if_match: $input.if_match.take(),
            if_none_match: $input.if_none_match.take(),
            if_modified_since: $input.if_modified_since.take(),
            if_unmodified_since: $input.if_unmodified_since.take(),
        }
    };
}

/// Takes the conditions on its source out of the input of a copy.
macro_rules! copy_conditions {
    ($input:expr) => {
        ReadConditions {
            if_match: $input.copy_source_if_match.take(),
            if_none_match: $input.copy_source_if_none_match.take(),
            if_modified_since: $input.copy_source_if_modified_since.take(),
            if_unmodified_since: $input.copy_source_if_unmodified_since.take(),
        }
    };
}

pub(super) use {copy_conditions, read_conditions};

impl ReadConditions {
    /// Returns why an object is not read, if so, in the order of RFC 9110, section 13.2.2.
    pub(super) fn failure(&self, object: &Object) -> Option<StoreError> {
        let names = |condition: &ETagCondition| match condition {
            ETagCondition::Any => true,
            ETagCondition::ETag(ETag::Strong(tag) | ETag::Weak(tag)) => {
                *tag == object.tag.to_string()
            }
        };
        // The dates of HTTP have no fractions of a second.
        let modified = || timestamp(object.modified).whole_seconds();
        let is_right = match (&self.if_match, &self.if_unmodified_since) {
            (Some(condition), _) => names(condition),
            (None, Some(since)) => modified() <= since.whole_seconds(),
            (None, None) => true,
        };
        if !is_right {
            return Some(StoreError::OtherTag);
        }
        let is_known = match (&self.if_none_match, &self.if_modified_since) {
            (Some(condition), _) => names(condition),
            (None, Some(since)) => modified() <= since.whole_seconds(),
            (None, None) => false,
        };
        is_known.then_some(StoreError::NotModified)
    }
}

/// A date as HTTP has it.
trait WholeSeconds {
    fn whole_seconds(&self) -> i64;
}

impl WholeSeconds for Timestamp {
    fn whole_seconds(&self) -> i64 {
        (seconds(self)).floor() as i64
    }
}

/// Returns a time in seconds since 1970.
pub(super) fn seconds(time: &Timestamp) -> f64 {
    let mut text = Vec::new();
    time.format(TimestampFormat::EpochSeconds, &mut text).expect("memory takes it");
    std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// Returns the answer that what the client has is still what is there.
pub(super) fn not_modified(object: &Object) -> S3Error {
    let mut answer = S3Error::new(S3ErrorCode::NotModified);
    let mut headers = HeaderMap::new();
    let mut date = Vec::new();
    timestamp(object.modified)
        .format(TimestampFormat::HttpDate, &mut date)
        .expect("memory takes it");
    let tag = format!("\"{}\"", object.tag);
    for (name, value) in [(ETAG, tag.as_bytes()), (LAST_MODIFIED, &date)] {
        headers.insert(name, HeaderValue::from_bytes(value).expect("it is ASCII"));
    }
    answer.set_headers(headers);
    answer
}

/// Returns when a write that has these conditions is done.
pub(super) fn write_condition<'a>(
    if_match: Option<&'a ETagCondition>,
    if_none_match: Option<&'a ETagCondition>,
) -> S3Result<Condition<'a>> {
    let by_other_tag = if_none_match.is_some_and(|tag| !tag.is_any());
    not_offered(by_other_tag, "writes where there is another ETag (If-None-Match but for `*`)")?;
    match (if_match, if_none_match) {
        (Some(_), Some(_)) => {
            Err(s3_error!(InvalidRequest, "If-Match and If-None-Match exclude one another"))
        }
        (Some(ETagCondition::Any), None) => Ok(Condition::Present),
        (Some(ETagCondition::ETag(ETag::Strong(tag) | ETag::Weak(tag))), None) => {
            Ok(Condition::Is(tag))
        }
        (None, Some(_)) => Ok(Condition::Absent),
        (None, None) => Ok(Condition::Always),
    }
}

/// Returns the conditions on its target that a copy has in its headers.
pub(super) fn target_conditions(
    headers: &HeaderMap,
) -> S3Result<(Option<ETagCondition>, Option<ETagCondition>)> {
    let of = |name: HeaderName| {
        let value =
            headers.get(&name).map(|value| ETagCondition::parse_http_header(value.as_bytes()));
        value.transpose().map_err(|_| s3_error!(InvalidArgument, "{name} is no ETag"))
    };
    Ok((of(IF_MATCH)?, of(IF_NONE_MATCH)?))
}

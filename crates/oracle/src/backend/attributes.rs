//! What a client says of an object besides its content: out of a request, and into an answer.

use std::sync::Arc;

use percent_encoding::percent_decode_str;
use plimsoll_model::WallTime;
use s3s::dto::{ObjectLockLegalHoldStatus, ObjectLockMode, Tag, Timestamp};
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use super::conditions::seconds;
use crate::store::{Attributes, Lock, Object, Retention, RetentionMode};

/// The most tags of an object, and of a bucket.
pub(super) const OBJECT_TAGS_MAX: usize = 10;
pub(super) const BUCKET_TAGS_MAX: usize = 50;

/// How long a tag's name and value may be, in characters of UTF-16 as S3 counts.
const TAG_NAME_MAX: usize = 128;
const TAG_VALUE_MAX: usize = 256;

/// How long all metadata of an object may be.
const METADATA_BYTES_MAX: usize = 2 << 10;

/// Names and values.
type Tags = Vec<(String, String)>;

/// Takes what is said of an object out of the input of a write; `None` when nothing is.
macro_rules! said {
    ($input:expr, $now:expr) => {{
        let lock = $crate::backend::attributes::lock_of(
            $input.object_lock_mode.take(),
            $input.object_lock_retain_until_date.take(),
            $input.object_lock_legal_hold_status.take(),
            $now,
        )?;
        let tags = $input.tagging.take().map(|text| $crate::backend::attributes::tags_of(&text));
        let attributes = Attributes {
            content_type: $input.content_type.take(),
            cache_control: $input.cache_control.take(),
            content_disposition: $input.content_disposition.take(),
            content_encoding: $crate::backend::attributes::encoding($input.content_encoding.take()),
            content_language: $input.content_language.take(),
            expires: $input.expires.take().map(|at| $crate::backend::attributes::wall(&at)),
            redirect: $input.website_redirect_location.take(),
            storage_class: $input.storage_class.take().map(|class| class.as_str().to_owned()),
            metadata: $input.metadata.take(),
            tags: tags.transpose()?.unwrap_or_default(),
            lock,
            checksum: None,
        };
        $crate::backend::attributes::unless_empty(attributes)?
    }};
}

/// Refuses to make anything that others may read or write.
macro_rules! private_only {
    ($input:expr) => {{
        let acl = $input.acl.as_ref().map(|acl| acl.as_str());
        let grants = [&$input.grant_full_control, &$input.grant_read, &$input.grant_read_acp];
        let is_shared = grants.iter().any(|grant| grant.is_some())
            || $input.grant_write_acp.is_some()
            || !matches!(acl, None | Some("private" | "bucket-owner-full-control"));
        not_offered(is_shared, "access lists other than `private`")?;
    }};
}

/// Writes what was said of an object into the answer to a read of it.
macro_rules! describe {
    ($output:expr, $object:expr) => {{
        let object: &Object = $object;
        $output.accept_ranges = Some("bytes".to_owned());
        $output.e_tag = Some(ETag::Strong(object.tag.to_string()));
        $output.last_modified = Some(timestamp(object.modified));
        $output.version_id = object.version.name();
        let said = object.attributes.as_deref();
        let content_type = said.and_then(|said| said.content_type.clone());
        $output.content_type = content_type.or_else(|| Some("binary/octet-stream".to_owned()));
        if let Some(said) = said {
            $output.cache_control.clone_from(&said.cache_control);
            $output.content_disposition.clone_from(&said.content_disposition);
            $output.content_encoding.clone_from(&said.content_encoding);
            $output.content_language.clone_from(&said.content_language);
            $output.expires = said.expires.map(timestamp);
            $output.website_redirect_location.clone_from(&said.redirect);
            let class = said.storage_class.as_ref().filter(|class| *class != "STANDARD");
            $output.storage_class = class.map(|class| class.clone().into());
            $output.metadata.clone_from(&said.metadata);
            if let Some(retention) = said.lock.retention {
                $output.object_lock_mode = Some(ObjectLockMode::from_static(retention.mode.name()));
                $output.object_lock_retain_until_date = Some(timestamp(retention.until));
            }
            if said.lock.legal_hold {
                let on = ObjectLockLegalHoldStatus::ON;
                $output.object_lock_legal_hold_status =
                    Some(ObjectLockLegalHoldStatus::from_static(on));
            }
        }
    }};
}

/// Writes a checksum into an answer.
macro_rules! tell_checksum {
    ($output:expr, $checksum:expr) => {
        if let Some(checksum) = $checksum {
            let told = checksum.told();
            $output.checksum_crc32 = told.checksum_crc32;
            $output.checksum_crc32c = told.checksum_crc32c;
            $output.checksum_crc64nvme = told.checksum_crc64nvme;
            $output.checksum_sha1 = told.checksum_sha1;
            $output.checksum_sha256 = told.checksum_sha256;
        }
    };
}

pub(super) use {describe, private_only, said, tell_checksum};

impl RetentionMode {
    /// Returns its name in S3.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Governance => "GOVERNANCE",
            Self::Compliance => "COMPLIANCE",
        }
    }

    pub(super) fn from_name(name: &str) -> S3Result<Self> {
        match name {
            "GOVERNANCE" => Ok(Self::Governance),
            "COMPLIANCE" => Ok(Self::Compliance),
            other => Err(s3_error!(MalformedXML, "no mode of retention is called {other}")),
        }
    }
}

/// Returns what keeps a version, as its writer says.
pub(super) fn lock_of(
    mode: Option<ObjectLockMode>,
    until: Option<Timestamp>,
    hold: Option<ObjectLockLegalHoldStatus>,
    now: WallTime,
) -> S3Result<Lock> {
    let retention = match (mode, until) {
        (None, None) => None,
        (Some(mode), Some(until)) => {
            Some(retention(RetentionMode::from_name(mode.as_str())?, &until, now)?)
        }
        _ => {
            let both = "a retention has a mode and a date until which it holds";
            return Err(s3_error!(InvalidArgument, "{both}"));
        }
    };
    Ok(Lock { retention, legal_hold: hold.map_or(Ok(false), |hold| is_on(&hold))? })
}

/// Returns a retention until a time to come.
pub(super) fn retention(
    mode: RetentionMode,
    until: &Timestamp,
    now: WallTime,
) -> S3Result<Retention> {
    let until = wall(until);
    if until <= now {
        return Err(s3_error!(InvalidArgument, "the date until which to retain is in the past"));
    }
    Ok(Retention { mode, until })
}

pub(super) fn is_on(hold: &ObjectLockLegalHoldStatus) -> S3Result<bool> {
    match hold.as_str() {
        "ON" => Ok(true),
        "OFF" => Ok(false),
        other => Err(s3_error!(MalformedXML, "a legal hold is ON or OFF, not {other}")),
    }
}

/// Returns the same time; one before 1970 is 1970, one after 2554 is then.
pub(super) fn wall(time: &Timestamp) -> WallTime {
    let micros = (seconds(time) * 1e6).round() as u64;
    WallTime::from_unix_ns(micros.saturating_mul(1000))
}

/// Returns how the content itself is encoded: `aws-chunked` was only on the wire.
pub(super) fn encoding(text: Option<String>) -> Option<String> {
    let text = text?;
    let parts = text.split(',').map(str::trim);
    let kept: Vec<&str> = parts.filter(|part| *part != "aws-chunked" && !part.is_empty()).collect();
    (!kept.is_empty()).then(|| kept.join(","))
}

/// Returns the attributes unless they say nothing.
pub(super) fn unless_empty(attributes: Attributes) -> S3Result<Option<Attributes>> {
    let metadata = attributes.metadata.iter().flatten();
    let bytes: usize = metadata.map(|(name, value)| name.len() + value.len()).sum();
    if bytes > METADATA_BYTES_MAX {
        let most = "the metadata of an object takes 2 KiB at most";
        return Err(s3_error!(MetadataTooLarge, "{most}"));
    }
    let says = attributes.content_type.is_some()
        || attributes.cache_control.is_some()
        || attributes.content_disposition.is_some()
        || attributes.content_encoding.is_some()
        || attributes.content_language.is_some()
        || attributes.expires.is_some()
        || attributes.redirect.is_some()
        || attributes.storage_class.is_some()
        || attributes.metadata.is_some()
        || !attributes.tags.is_empty()
        || attributes.lock != Lock::default();
    Ok(says.then_some(attributes))
}

/// Returns the tags that a header has in the form of a query.
pub(super) fn tags_of(text: &str) -> S3Result<Tags> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        let decoded = percent_decode_str(&text).decode_utf8().map(String::from);
        decoded.map_err(|_| s3_error!(InvalidArgument, "the tags are not UTF-8"))
    };
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let tags = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((decode(name)?, decode(value)?))
    });
    checked_tags(tags.collect::<S3Result<_>>()?, OBJECT_TAGS_MAX)
}

/// Returns the tags of a set.
pub(super) fn tags_of_set(set: Vec<Tag>, count_max: usize) -> S3Result<Tags> {
    let pair = |tag: Tag| (tag.key.unwrap_or_default(), tag.value.unwrap_or_default());
    checked_tags(set.into_iter().map(pair).collect(), count_max)
}

/// Returns tags as a set.
pub(super) fn tag_set(tags: Tags) -> Vec<Tag> {
    tags.into_iter().map(|(key, value)| Tag { key: Some(key), value: Some(value) }).collect()
}

fn checked_tags(tags: Tags, count_max: usize) -> S3Result<Tags> {
    if tags.len() > count_max {
        let mut error = S3Error::with_message(
            S3ErrorCode::Custom("BadRequest".into()),
            format!("there are {} tags, {count_max} at most", tags.len()),
        );
        error.set_status_code(hyper::StatusCode::BAD_REQUEST);
        return Err(error);
    }
    for (at, (name, value)) in tags.iter().enumerate() {
        let len = |text: &str| text.encode_utf16().count();
        if name.is_empty() || len(name) > TAG_NAME_MAX {
            return Err(s3_error!(InvalidTag, "the name of a tag has 1 to 128 characters"));
        }
        if len(value) > TAG_VALUE_MAX {
            return Err(s3_error!(InvalidTag, "the value of a tag has 256 characters at most"));
        }
        if tags[..at].iter().any(|(other, _)| other == name) {
            return Err(s3_error!(InvalidTag, "a tag is named twice"));
        }
    }
    Ok(tags)
}

/// Returns the storage class of an object.
pub(super) fn storage_class(object: &Object) -> String {
    let said = object.attributes.as_ref().and_then(|said| said.storage_class.clone());
    said.unwrap_or_else(|| "STANDARD".to_owned())
}

/// Returns the checksum of an object, if one is known.
pub(super) fn checksum(object: &Object) -> Option<crate::checksum::Checksum> {
    let said = object.attributes.as_ref().and_then(|said| said.checksum.clone());
    said.or_else(|| object.tag.checksum())
}

/// Returns attributes as they are stored.
pub(super) fn kept(attributes: Option<Attributes>) -> Option<Arc<Attributes>> {
    attributes.map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_as_a_query_and_held_to_the_limits_of_s3() {
        let tags = tags_of("a+b=1%2B2+%2F+3&c").unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(tags, [pair("a b", "1+2 / 3"), pair("c", "")]);
        assert_eq!(tags_of("").unwrap(), []);
        let many: Vec<String> = (0..11).map(|index| format!("k{index}=v")).collect();
        let long = format!("k={}", "v".repeat(257));
        for (text, code) in [
            ("a=1&a=2", "InvalidTag"),
            ("=x", "InvalidTag"),
            (&long, "InvalidTag"),
            (&many.join("&"), "BadRequest"),
            ("%ff=x", "InvalidArgument"),
        ] {
            assert_eq!(tags_of(text).unwrap_err().code().as_str(), code, "{text}");
        }
    }

    #[test]
    fn how_it_came_over_the_wire_is_not_how_it_is_encoded() {
        let of = |text: &str| encoding(Some(text.to_owned()));
        assert_eq!((of("aws-chunked"), of("gzip, aws-chunked")), (None, Some("gzip".to_owned())));
    }
}

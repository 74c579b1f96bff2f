//! An object as it is kept: its content, what its client said of it, and what keeps it from being
//! removed.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use plimsoll_model::WallTime;

use super::{OBJECT_OVERHEAD_BYTES, StoreError};
use crate::checksum::Checksum;
use crate::content::Content;
use crate::digests::Tag;

/// What an entry of a map or list takes besides its text.
const ENTRY_BYTES: u64 = 48;

/// Which of an object's versions one is. Numbers grow as versions are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VersionId(u64);

/// An object as stored. A clone shares the content.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) content: Content,
    pub(crate) tag: Tag,
    pub(crate) modified: WallTime,
    pub(crate) attributes: Option<Arc<Attributes>>,
    /// Where in the content each part ends that it was uploaded in; `None`: it came as a whole.
    pub(crate) part_ends: Option<Arc<[usize]>>,
    /// Given when it is stored.
    pub(crate) version: VersionId,
}

/// A version that says that the object was removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marker {
    pub(crate) modified: WallTime,
    pub(crate) version: VersionId,
}

/// One version of what is under a key.
#[derive(Clone, Debug)]
pub(crate) enum Version {
    /// An object.
    Object(Object),
    /// A mark of deletion.
    Marker(Marker),
}

/// What a client said about an object and wants to hear again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) content_type: Option<String>,
    pub(crate) cache_control: Option<String>,
    pub(crate) content_disposition: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) content_language: Option<String>,
    pub(crate) expires: Option<WallTime>,
    pub(crate) redirect: Option<String>,
    pub(crate) storage_class: Option<String>,
    pub(crate) metadata: Option<HashMap<String, String>>,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) lock: Lock,
    pub(crate) checksum: Option<Checksum>,
}

/// What keeps a version from being removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) retention: Option<Retention>,
    pub(crate) legal_hold: bool,
}

/// Until when a version is kept, and whether anybody can change that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retention {
    pub(crate) mode: RetentionMode,
    pub(crate) until: WallTime,
}

/// Who can shorten a retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetentionMode {
    /// Who asks for it by name.
    Governance,
    /// Nobody.
    Compliance,
}

impl VersionId {
    /// The version of objects in buckets that do not keep versions.
    pub(crate) const NULL: Self = Self(0);

    /// Returns a version by its number, which is above 0.
    pub(super) fn new(number: u64) -> Self {
        debug_assert!(number > 0, "0 is the null version");
        Self(number)
    }

    /// Returns the version of that name, if any was ever given such a name.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        if text == "null" {
            return Some(Self::NULL);
        }
        let is_ours = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = is_ours.then(|| u64::from_str_radix(text, 16).ok()).flatten()?;
        (number > 0).then_some(Self(number))
    }

    /// Returns the name, `None` for the null version.
    pub(crate) fn name(self) -> Option<String> {
        (self != Self::NULL).then(|| self.to_string())
    }
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NULL => f.write_str("null"),
            Self(number) => write!(f, "{number:016x}"),
        }
    }
}

impl Object {
    /// Returns what it counts as held under `key` besides its content, which others may share.
    pub(super) fn own_bytes(&self, key: &str) -> u64 {
        object_bytes(key, 0, self.attributes.as_deref())
    }

    /// Counts it as no longer stored, and returns how many bytes are free by that.
    pub(super) fn release(&self, key: &str) -> u64 {
        self.own_bytes(key) + self.content.release()
    }

    /// Returns what keeps it from being removed.
    pub(crate) fn lock(&self) -> Lock {
        self.attributes.as_ref().map(|attributes| attributes.lock).unwrap_or_default()
    }
}

impl Version {
    pub(crate) fn id(&self) -> VersionId {
        match self {
            Self::Object(object) => object.version,
            Self::Marker(marker) => marker.version,
        }
    }

    /// Returns the object, unless it is a mark of deletion.
    pub(crate) fn object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            Self::Marker(_) => None,
        }
    }

    /// Counts it as no longer stored, and returns how many bytes are free by that.
    pub(super) fn release(&self, key: &str) -> u64 {
        match self {
            Self::Object(object) => object.release(key),
            Self::Marker(_) => overhead_bytes(key),
        }
    }
}

impl Attributes {
    /// Returns how many bytes they take beyond what every object is counted.
    fn bytes(&self) -> u64 {
        let texts = [
            &self.content_type,
            &self.cache_control,
            &self.content_disposition,
            &self.content_encoding,
            &self.content_language,
            &self.redirect,
            &self.storage_class,
        ];
        let texts = texts.into_iter().flatten().map(|text| text.len() as u64).sum::<u64>();
        let metadata = self.metadata.iter().flatten();
        let pairs = metadata.chain(self.tags.iter().map(|(name, value)| (name, value)));
        texts
            + pairs
                .map(|(name, value)| (name.len() + value.len()) as u64 + ENTRY_BYTES)
                .sum::<u64>()
    }
}

impl Lock {
    /// Tells why a version may not be removed, if so; `bypass` lifts governance.
    pub(super) fn check(self, now: WallTime, bypass: bool) -> Result<(), StoreError> {
        let is_kept = self.retention.is_some_and(|retention| retention.holds(now, bypass));
        if self.legal_hold || is_kept { Err(StoreError::Locked) } else { Ok(()) }
    }
}

impl Retention {
    /// Tells whether it still keeps one who asks to `bypass` governance, or does not.
    pub(super) fn holds(self, now: WallTime, bypass: bool) -> bool {
        self.until > now && !(bypass && self.mode == RetentionMode::Governance)
    }

    /// Tells whether another in its place keeps the version at least as long and as well.
    pub(super) fn is_kept_by(self, other: Option<Self>) -> bool {
        let weaker = |other: Self| {
            self.mode == RetentionMode::Compliance && other.mode == RetentionMode::Governance
        };
        other.is_some_and(|other| other.until >= self.until && !weaker(other))
    }
}

/// Returns what an object counts as held.
pub(super) fn object_bytes(key: &str, size_bytes: u64, attributes: Option<&Attributes>) -> u64 {
    let said = attributes.map_or(0, Attributes::bytes);
    size_bytes.saturating_add(overhead_bytes(key) + said)
}

/// Returns what is counted for anything under a key.
pub(super) fn overhead_bytes(key: &str) -> u64 {
    OBJECT_OVERHEAD_BYTES + key.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_by_the_name_it_was_given_and_no_other() {
        for version in [VersionId::NULL, VersionId::new(1), VersionId::new(u64::MAX)] {
            assert_eq!(VersionId::from_text(&version.to_string()), Some(version));
        }
        for text in ["", "1", "+000000000000001", "0000000000000000", "nULL", "00000000000000001"] {
            assert_eq!(VersionId::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn a_retention_is_replaced_only_by_one_that_keeps_as_well() {
        use RetentionMode::{Compliance, Governance};
        let until = |mode, ns| Retention { mode, until: WallTime::from_unix_ns(ns) };
        for (held, other, kept) in [
            (until(Governance, 5), None, false),
            (until(Governance, 5), Some(until(Governance, 4)), false),
            (until(Governance, 5), Some(until(Compliance, 5)), true),
            (until(Compliance, 5), Some(until(Governance, 9)), false),
            (until(Compliance, 5), Some(until(Compliance, 6)), true),
        ] {
            assert_eq!(held.is_kept_by(other), kept, "{held:?} by {other:?}");
        }
        let now = WallTime::from_unix_ns(5);
        assert!(!until(Compliance, 5).holds(now, false), "over");
        assert!(until(Governance, 6).holds(now, false) && !until(Governance, 6).holds(now, true));
        assert!(until(Compliance, 6).holds(now, true));
    }
}

//! What the measured stage does, as written, where it is more than operations on whole objects.

use serde::{Deserialize, Serialize};

use super::is_false;

/// What the measured stage does.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum ActivitySpec {
    /// The operations, on whole objects.
    #[default]
    Operations,
    /// The operations GET, STAT, PUT and DELETE on versions: a PUT writes a new version of a
    /// random object of the worker's own, the others are about one version.
    Versioned,
    /// Sets until when a version of an object may not be removed.
    Retention {
        /// For how long from that moment on.
        hold_ns: u64,
    },
    /// Reads one part of one object, which the prepare stage uploads in parts.
    Multipart,
    /// Uploads objects in parts; each worker has one upload under way.
    MultipartPut {
        /// Parts of an object.
        parts: u32,
        /// Parts of an upload under way at a time.
        part_concurrency: u32,
    },
    /// Adds to the end of an object; each worker has one of its own.
    Append {
        /// After so many parts, the first included, a new object is begun.
        parts: u32,
    },
    /// Reads one file of a zip archive, which the prepare stage uploads.
    Zip,
    /// Uploads tar archives that the store takes apart.
    Snowball {
        /// Objects in an archive.
        members: u32,
        /// Whether the archive is compressed (zstd).
        #[serde(default, skip_serializing_if = "is_false")]
        compress: bool,
    },
    /// Uploads one content that the store writes under several names.
    Fanout {
        /// How many names.
        copies: u32,
    },
}

impl ActivitySpec {
    pub(super) fn is_operations(&self) -> bool {
        *self == Self::Operations
    }
}

/// How the object of a GET, STAT or RETENTION is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum PickSpec {
    /// Each as likely as the next.
    #[default]
    Uniform,
    /// By Zipf's law: the object of rank r in proportion to r^-theta.
    Zipf {
        /// Above 0, at most 10 and not 1.
        theta: f64,
    },
    /// One after the other, and again from the first; the workers take turns.
    Sequential,
}

impl PickSpec {
    pub(super) fn is_uniform(&self) -> bool {
        *self == Self::Uniform
    }
}

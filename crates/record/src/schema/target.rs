//! What the load of a run was put on.

use plimsoll_model::{Lookup, TargetKind};
use serde::{Deserialize, Serialize};

use super::is_false;

/// What the load was put on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Target {
    /// Its kind; null where merged runs differ in it.
    pub kind: Option<TargetKind>,
    /// Its addresses, in the order of their ids.
    pub endpoints: Vec<String>,
    /// The bucket, the container, the collection, or the directory of a filer without its first
    /// `/`.
    pub bucket: Option<String>,
    /// The prefix that the run owns: it writes and removes nothing outside of it.
    pub prefix: Option<String>,
    /// The region requests are signed for.
    pub region: Option<String>,
    /// How the bucket is addressed.
    pub lookup: Option<Lookup>,
    /// Whether connections are encrypted.
    pub tls: Option<bool>,
    /// How payloads are signed.
    pub payload_signing: Option<String>,
    /// Whether it was a store in the run's own process, which ended with all that it held.
    #[serde(default, skip_serializing_if = "is_false")]
    pub embedded: bool,
    /// Where files lay; absent for other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FilesTarget>,
}

/// Where the files of a run lay. What is not known is null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesTarget {
    /// The directories in which the run made one of its own, `plimsoll/<run id>`.
    pub directories: Vec<String>,
    /// The type of the file system of the first of them, such as `ext4`.
    pub file_system: Option<String>,
    /// Where it is mounted.
    pub mount_point: Option<String>,
    /// What is mounted there.
    pub device: Option<String>,
    /// How large it is.
    pub size_bytes: Option<u64>,
    /// How much of it was free when the run began.
    pub free_bytes: Option<u64>,
}

impl Target {
    /// Tells whether it has collections instead of buckets, and names files by itself.
    pub fn has_collections(&self) -> bool {
        self.kind == Some(TargetKind::Seaweedfs)
    }

    /// Tells whether it has directories instead of buckets.
    pub fn has_directories(&self) -> bool {
        self.kind == Some(TargetKind::SeaweedfsFiler)
    }

    /// Returns what its bucket, collection or directory is called, before its name.
    pub fn root_word(&self) -> &'static str {
        match self.kind {
            Some(TargetKind::Seaweedfs) => "collection",
            Some(TargetKind::SeaweedfsFiler) => "directory",
            Some(TargetKind::Swift) => "container",
            _ => "bucket",
        }
    }

    /// Returns the name of a bucket, collection or directory of it as it is shown.
    pub fn root_name(&self, bucket: &str) -> String {
        if self.has_directories() { format!("/{bucket}") } else { bucket.to_owned() }
    }

    /// Returns a target of which nothing but its kind and its addresses is known.
    pub fn bare(kind: TargetKind, endpoints: Vec<String>) -> Self {
        Self {
            kind: Some(kind),
            endpoints,
            bucket: None,
            prefix: None,
            region: None,
            lookup: None,
            tls: None,
            payload_signing: None,
            embedded: false,
            files: None,
        }
    }
}

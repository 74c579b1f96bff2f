//! The keys and attributes that are taken, and what becomes of those that say something else here.

use super::config::Taken;

/// The attributes of a work.
pub(super) const WORK: [&str; 15] = [
    "name",
    "type",
    "workers",
    "interval",
    "division",
    "runtime",
    "rampup",
    "rampdown",
    "totalOps",
    "totalBytes",
    "driver",
    "afr",
    "config",
    "maxIOPS",
    "maxBW",
];

/// The keys of operations, and of works, stages and workloads, which hand them down.
pub(super) const OPERATION: [&str; 19] = [
    "containers",
    "objects",
    "cprefix",
    "csuffix",
    "oprefix",
    "osuffix",
    "sizes",
    "content",
    "chunked",
    "hashCheck",
    "createContainer",
    "deleteContainer",
    "files",
    "fileselection",
    "name",
    "histogram",
    "is_range_request",
    "file_length",
    "chunk_length",
];

/// A key and what becomes of it.
pub(super) type Key = (&'static str, Taken);

const LOGGING: Key = ("logging", Taken::Yes);
const CACHING: Key = ("caching", Taken::Yes);
const RETRY: Key = (
    "retry",
    Taken::But("is ignored: one login, and what fails of it fails the operations that need it"),
);

const S3: &[Key] = &[
    LOGGING,
    ("accesskey", Taken::Yes),
    ("secretkey", Taken::Yes),
    ("endpoint", Taken::Yes),
    ("timeout", Taken::Yes),
    ("proxyhost", Taken::Yes),
    ("proxyport", Taken::Yes),
    ("path_style_access", Taken::Yes),
    ("max_connections", Taken::But("is ignored: every worker has its own connection")),
    ("signer_version", Taken::Yes),
    ("aws_region", Taken::Yes),
    ("region", Taken::Yes),
    ("storage_class", Taken::Yes),
    ("no_verify_ssl", Taken::Yes),
    ("part_size", Taken::Yes),
    ("restore_days", Taken::Yes),
    ("is_prefetch", Taken::But("is ignored: nothing is fetched before it is asked for")),
    ("is_range_request", Taken::Yes),
    ("file_length", Taken::Yes),
    ("chunk_length", Taken::Yes),
];
const SWIFT: &[Key] = &[
    LOGGING,
    ("timeout", Taken::Yes),
    ("token", Taken::Yes),
    ("storage_url", Taken::Yes),
    ("policy", Taken::Yes),
    ("transfer_rate", Taken::But("is ignored: it only asks the store for a custom header")),
];
const MOCK: &[Key] = &[
    LOGGING,
    ("size", Taken::Yes),
    ("delay", Taken::Yes),
    ("errors", Taken::Yes),
    ("printing", Taken::But("is ignored")),
    ("doStats", Taken::But("is ignored")),
    ("profiling", Taken::But("is ignored")),
];
const SWAUTH: &[Key] = &[
    LOGGING,
    CACHING,
    RETRY,
    ("username", Taken::Yes),
    ("password", Taken::Yes),
    ("auth_url", Taken::Yes),
    ("url", Taken::Yes),
    ("timeout", Taken::Yes),
];
const KEYSTONE: &[Key] = &[
    LOGGING,
    CACHING,
    RETRY,
    ("username", Taken::Yes),
    ("password", Taken::Yes),
    ("tenant_name", Taken::Yes),
    ("tenname", Taken::Yes),
    ("tenant_id", Taken::Yes),
    ("usertoken", Taken::Yes),
    ("service", Taken::Yes),
    ("auth_url", Taken::Yes),
    ("url", Taken::Yes),
    ("timeout", Taken::Yes),
    ("region", Taken::Yes),
];
const NONE: &[Key] = &[LOGGING, CACHING, RETRY];
const MOCK_AUTH: &[Key] = &[LOGGING, CACHING, RETRY, ("token", Taken::Yes), ("delay", Taken::Yes)];

/// The elements and types whose keys are known.
#[cfg(test)]
pub(super) const ACCESSES: [(&str, &str); 11] = [
    ("storage", "none"),
    ("storage", "mock"),
    ("storage", "s3"),
    ("storage", "sio"),
    ("storage", "siov1"),
    ("storage", "gdas"),
    ("storage", "swift"),
    ("auth", "swauth"),
    ("auth", "tempauth"),
    ("auth", "keystone"),
    ("auth", "mock"),
];

/// Returns the keys of an `auth` or `storage` of a type; `None` where the type is refused anyhow.
pub(super) fn of_access(element: &str, kind: &str) -> Option<&'static [Key]> {
    match (element, kind) {
        ("storage", "s3" | "sio" | "siov1" | "gdas") => Some(S3),
        ("storage", "swift") => Some(SWIFT),
        ("storage", "mock") => Some(MOCK),
        ("auth", "swauth" | "tempauth") => Some(SWAUTH),
        ("auth", "keystone") => Some(KEYSTONE),
        ("auth", "mock") => Some(MOCK_AUTH),
        (_, "none") => Some(NONE),
        _ => None,
    }
}

/// Returns what becomes of a key where these are known.
pub(super) fn taken(known: Option<&[Key]>, key: &str) -> Taken {
    let Some(known) = known else { return Taken::Yes };
    known.iter().find(|(name, _)| *name == key).map_or(Taken::No, |(_, taken)| *taken)
}

/// Returns what becomes of a key of an operation, or of what it inherits from.
pub(super) fn of_operation(key: &str) -> Taken {
    match key {
        "hashcheck" | "hash_check" | "HashCheck" => {
            Taken::But("is not a parameter, so nothing is checked, as in COSBench: write hashCheck")
        }
        "histogram" => Taken::But("is ignored: there are always percentiles"),
        "is_prefetch" => Taken::But("is ignored: nothing is fetched before it is asked for"),
        key if OPERATION.contains(&key) => Taken::Yes,
        _ => Taken::No,
    }
}

//! Replaying, as written: the objects or files of a trace, and how it is done again.

use serde::{Deserialize, Serialize};

use super::is_false;
use super::job::{in_flight, is_in_flight};
use crate::plan::units::{Size, Time};

/// The forms of traces, by their names.
pub const TRACE_FORMATS: [&str; 9] = [
    "s3-access-log",
    "rgw-ops-log",
    "rgw-access-log",
    "minio-trace",
    "warp",
    "fio-iolog",
    "ibm-cos",
    "csv",
    "plimsoll",
];

/// The objects or files that a trace is about. Those that it reads before it writes them are made
/// by a `fill`; names are the run's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TraceSet {
    /// Which target they lie on; the only one may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// The trace.
    pub trace: TraceOf,
}

/// Which trace it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TraceOf {
    /// The file with the trace, or the directory of a run of plimsoll.
    #[serde(serialize_with = "super::names_what_is_sent")]
    pub file: String,
    /// Its form: `s3-access-log`, `rgw-ops-log`, `rgw-access-log`, `minio-trace`, `warp`,
    /// `fio-iolog`, `ibm-cos`, `csv` or `plimsoll`; told by its content when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Up to which instant since its first operation it is used; all of it when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// How large objects are whose sizes the trace does not tell; as the median of those that it
    /// tells when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_size: Option<Size>,
}

impl TraceOf {
    /// Returns all of a trace whose content tells its form.
    pub fn file(file: String) -> Self {
        Self { file, format: None, until: None, unknown_size: None }
    }
}

/// Does again what a trace holds, operation by operation and for each object in its order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReplaySpec {
    /// The set of the trace's objects or files.
    pub of: String,
    /// How much faster than it was recorded.
    #[serde(default = "as_recorded", skip_serializing_if = "is_as_recorded")]
    pub speed: f64,
    /// How many operations may be under way at once, over all workers.
    #[serde(default = "in_flight", skip_serializing_if = "is_in_flight")]
    pub max_in_flight: u32,
    /// Whether each worker begins an operation as soon as its last one has ended, whatever the
    /// trace says of instants.
    #[serde(default, skip_serializing_if = "is_false")]
    pub closed: bool,
}

impl ReplaySpec {
    /// Returns the replay of a set as it was recorded.
    pub fn of(set: String) -> Self {
        Self { of: set, speed: as_recorded(), max_in_flight: in_flight(), closed: false }
    }
}

fn as_recorded() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands on references")]
fn is_as_recorded(speed: &f64) -> bool {
    *speed == as_recorded()
}

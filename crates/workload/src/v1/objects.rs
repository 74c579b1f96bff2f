//! A workload on objects of version 1 as written.

mod activity;
mod check;
mod content;

use serde::{Deserialize, Serialize};

use crate::{ArrivalLaw, MAX_IN_FLIGHT_DEFAULT};
pub use activity::{ActivitySpec, PickSpec};
pub use content::{ExistingSpec, GeneratorSpec, ObjectsSpec, SizeBarSpec, SizeSpec};

/// The schema's name and version.
pub const SPEC_SCHEMA: &str = "plimsoll.workload/1";

/// A workload as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// `plimsoll.workload/1`.
    pub schema: String,
    /// What the run is called, such as `s3-get`.
    pub name: String,
    /// Fixes every choice of the run.
    pub seed: u64,
    /// Workers, each with one operation under way at a time. In an open loop they do that while
    /// preparing; the measured stage has as many streams of operations, whose arrivals and objects
    /// are their own and of which each may have several operations under way.
    pub concurrency: u32,
    /// Where the run's own objects lie.
    pub keys: KeysSpec,
    /// What there is when the measured stage begins.
    pub objects: ObjectsSpec,
    /// What the measured stage does.
    pub measure: MeasureSpec,
    /// When operations start.
    pub pacing: PacingSpec,
    /// Whether every byte that is read is checked.
    pub verify: bool,
}

/// Where the run's own objects lie: `<prefix>/plimsoll/<run>/...`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeysSpec {
    /// What comes before `plimsoll/<run>/`; may be empty.
    pub prefix: String,
    /// Whether each worker has a prefix of its own.
    pub per_worker: bool,
}

/// What the measured stage does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MeasureSpec {
    /// What kind of load it is.
    #[serde(default, skip_serializing_if = "ActivitySpec::is_operations")]
    pub activity: ActivitySpec,
    /// The operations; several kinds only of put, get, delete and stat. Only where the activity is
    /// `operations` or `versioned`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OpWeightSpec>,
    /// Which object a GET, STAT or RETENTION is about.
    #[serde(default, skip_serializing_if = "PickSpec::is_uniform")]
    pub pick: PickSpec,
    /// Whether a put is an HTML form (POST).
    #[serde(default, skip_serializing_if = "is_false")]
    pub post: bool,
    /// Refuses parts that are smaller, as the store would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_bytes_min: Option<u64>,
    /// Which part of an object a get reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeSpec>,
    /// Whether a put writes the next version of an object of the worker's own instead of a new
    /// object. Where none is free of operations under way a new one is written after all.
    #[serde(default, skip_serializing_if = "is_false")]
    pub overwrite: bool,
    /// Objects per delete call, when delete is the only operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_batch: Option<u32>,
    /// Entries per page of a listing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_page_size: Option<u32>,
    /// How long it lasts at most.
    pub duration_ns: u64,
    /// Ends it before that when the throughput is steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadySpec>,
    /// Ends it before that when all of these rules hold, such as `ci(p99)<=5%`: the half width of
    /// the figure's 95 % confidence interval is at most 5 % of it. The figures are `rate`,
    /// `throughput`, and of the latency `mean`, `p50`, `p90`, `p99` and `p99.9`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub until: Vec<String>,
}

/// When the throughput counts as steady: of the range so far, cut into 25 equal parts, the last 7
/// are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SteadySpec {
    /// The last 7 parts together must be longer than this.
    pub window_ns: u64,
    /// By how much of the last part, in percent, the six before it may differ from it.
    pub percent: f64,
}

/// One kind of operation with its weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OpWeightSpec {
    /// `PUT`, `GET`, `DELETE`, `LIST` or `STAT`.
    pub op: String,
    /// How often, relative to the others.
    pub weight: u32,
}

/// Which part of an object a get reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum RangeSpec {
    /// A log-uniform length at a random offset.
    Random,
    /// A fixed length at a random offset.
    FixedBytes(u64),
}

/// When operations start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum PacingSpec {
    /// The next one when the one before has ended.
    Closed,
    /// As closed, with a cap over all workers.
    Capped {
        /// The cap.
        ops_per_sec: f64,
    },
    /// On a schedule, whatever the store does.
    Open {
        /// Operations a second over all workers: `1000/s`, a ramp `100/s..5000/s over 2m`, or steps
        /// `100/s for 30s, 200/s for 30s, 400/s`. After the end of it its last rate holds.
        rate: String,
        /// How the arrivals lie about that rate: evenly (`constant`) or as a Poisson process
        /// (`poisson`).
        #[serde(default = "constant_arrivals")]
        arrivals: String,
        /// How many operations may be under way at once, over all workers.
        #[serde(default = "max_in_flight_default")]
        max_in_flight: u32,
    },
}

fn is_false(value: &bool) -> bool {
    !value
}

fn constant_arrivals() -> String {
    ArrivalLaw::Constant.to_string()
}

fn max_in_flight_default() -> u32 {
    MAX_IN_FLIGHT_DEFAULT
}

#[cfg(test)]
#[path = "objects_tests.rs"]
pub(crate) mod tests;

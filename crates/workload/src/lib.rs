//! What will be done: operation mix, keys, sizes, content, pacing, and the stream of operations of
//! each worker.
//!
//! [`WorkloadSpec`] is the workload as written; [`Workload`] is the validated one. Everything here
//! is a function of the seed: no driver, no async, no clock.

pub mod archive;
pub mod data;
pub mod files;
pub mod history;
mod keys;
pub mod objects;
mod pacing;
mod pick;
pub mod plan;
mod seed;
mod sizes;
mod spec;
mod stop;
mod stream;
mod workload;

pub use keys::{KeyLayout, Keys};
pub use pacing::{ArrivalLaw, Arrivals, OpenLoop, Pacing, RateProfile};
pub use pick::Pick;
pub use seed::{Permutation, PrefixHash, Random, hash_text, mix64};
pub use sizes::{SizeBar, SizeDist, SizeParseError};
pub(crate) use spec::MAX_IN_FLIGHT_MAX;
pub use spec::{
    ActivitySpec, DataFileSpec, ExistingSpec, GeneratorSpec, KeysSpec, MAX_IN_FLIGHT_DEFAULT,
    MeasureSpec, ObjectsSpec, OpWeightSpec, PacingSpec, PickSpec, RangeSpec, SPEC_SCHEMA,
    SizeBarSpec, SizeSpec, SteadySpec, WorkloadSpec,
};
pub use stop::{Metric, Precision, StopRule};
pub use stream::{ObjectRef, OpStream, PlannedOp, Target, delete_order};
pub use workload::{
    Activity, ExistingObject, InvalidWorkload, Mix, Population, RangeRule, Verify, Workload,
};

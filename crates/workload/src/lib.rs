//! What will be done: operation mix, keys, sizes, content, pacing, and the stream of operations of
//! each worker.
//!
//! A [`plan::WorkloadFile`] is the workload as written, a [`plan::Plan`] the checked one, and what
//! a run makes of it is [`plan::Placed`]. Everything here is a function of the seed: no driver, no
//! async, no clock.

pub mod archive;
pub mod data;
pub mod files;
pub mod history;
mod keys;
pub mod objects;
mod pacing;
pub mod plan;
mod seed;
mod share;
mod sizes;
mod stop;
pub mod trace;

pub use keys::{ExistingObject, FileMember, KeyLayout, Keys};
pub use objects::Verify;
pub(crate) use pacing::MAX_IN_FLIGHT_MAX;
pub use pacing::{
    ArrivalLaw, Arrivals, MAX_IN_FLIGHT_DEFAULT, OpenLoop, Pacing, RateProfile, start_delay,
};
pub use plan::spec::DataFileSpec;
pub use seed::{Permutation, PrefixHash, Random, hash_text, mix64};
pub use share::Share;
pub use sizes::{SizeBar, SizeDist, SizeParseError, SizeStep};
pub use stop::{Metric, Precision, StopRule};

#[cfg(test)]
mod testing;

//! The load line: the highest rate of arrivals at which a store keeps what was asked of it, from
//! probes that are stages of one record.
//!
//! The same counts are taken while the run goes on, to decide what is probed next, and from the
//! record afterwards. The definitions to the letter stand in `docs/loadline.md`.

mod counts;
mod curve;
mod slo;

#[cfg(test)]
mod disturbed_tests;
#[cfg(test)]
mod tests;

pub use counts::{ProbeAsked, ProbeCounter};
pub use curve::{CurvePoint, Knee, LoadLineAnalysis, LoadLineAsked, ProbeStage, find_load_line};
pub use slo::Slo;

//! What a store is to keep, held against operations.

use std::fmt;
use std::time::Duration;

use plimsoll_model::OpRecord;
use plimsoll_workload::plan::{SloOf, SloSpec};

/// A bound that all but a share of operations are to meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slo {
    spec: SloSpec,
    /// The longest latency, where it is about that.
    latency_max: Option<Duration>,
}

impl From<SloSpec> for Slo {
    fn from(spec: SloSpec) -> Self {
        let latency_max = match spec.of {
            SloOf::Latency { most, .. } => Some(most),
            SloOf::Errors { .. } => None,
        };
        Self { spec, latency_max }
    }
}

impl Slo {
    /// Returns it as it is written.
    pub const fn spec(&self) -> SloSpec {
        self.spec
    }

    /// Returns the longest latency, where it is about that.
    pub(super) const fn latency_max(&self) -> Option<Duration> {
        self.latency_max
    }

    /// Returns the share of operations that may miss it, above 0 and below 1.
    pub fn share_max(&self) -> f64 {
        self.spec.share_max()
    }

    /// Tells whether it is about an operation.
    #[inline]
    pub fn is_about(&self, op: &OpRecord) -> bool {
        self.spec.kind.is_none_or(|kind| kind == op.kind)
    }

    /// Tells whether an operation misses it. One that failed misses every bound, however fast it
    /// failed: nobody was served.
    #[inline]
    pub fn is_missed_by(&self, op: &OpRecord) -> bool {
        !op.outcome.is_ok() || self.latency_max.is_some_and(|most| op.latency() > most)
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec.fmt(f)
    }
}

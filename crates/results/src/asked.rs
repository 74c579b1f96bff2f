//! What is asked of a record.

use std::time::Duration;

use plimsoll_model::OpKind;
use plimsoll_workload::plan::{SloOf, SloSpec};

use crate::Rows;

/// What is asked of a record; nothing asked gives the report that a run ends with.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The length of a segment.
    pub segment: Option<Duration>,
    /// Only this kind of operation; the measured span stays that of all.
    pub kind: Option<OpKind>,
    /// Only this endpoint, by its name or its host and port; the measured span stays that of all.
    pub host: Option<String>,
    /// Leaves out this much at the beginning of each stage.
    pub skip: Duration,
    /// Takes at most this many operations, in the order of the record.
    pub limit: Option<u64>,
    /// Leaves out this many operations, in the order of the record.
    pub offset: u64,
    /// Leaves out the warm-up of each measured stage, as MSER-5 finds it.
    pub steady: bool,
    /// By stage of the record: how long its warm-up was, where that was found before.
    pub warm_ups: Vec<Option<Duration>>,
    /// Takes figures from the whole stage.
    pub full_span: bool,
    /// The stage, by its name.
    pub stage: Option<String>,
    /// The job, by its name.
    pub job: Option<String>,
    /// How workers are put into rows.
    pub rows: Rows,
    /// What is to be kept: load lines are told by these conditions instead of their own, and where
    /// the 99th percentile of the latency exceeds its own the ledger tells of a brown-out.
    pub slo: Vec<SloSpec>,
    /// Also gives the whole distributions of times and every segment.
    pub distributions: bool,
    /// Also gives hosts, clients, sizes and accesses.
    pub details: bool,
}

impl Asked {
    /// Tells whether operations of a stage are left out.
    pub(crate) fn is_part(&self) -> bool {
        self.kind.is_some() || self.host.is_some() || self.is_windowed()
    }

    /// Returns what the 99th percentile of the latency of all operations must not exceed, where
    /// that is among what is to be kept.
    pub(crate) fn latency_p99_max(&self) -> Option<Duration> {
        let p99 = |slo: &SloSpec| match (slo.kind, slo.of) {
            (None, SloOf::Latency { percent: 99.0, most }) => Some(most),
            _ => None,
        };
        self.slo.iter().find_map(p99)
    }

    /// Tells whether operations are left out by the order of the record.
    pub(crate) fn is_windowed(&self) -> bool {
        self.limit.is_some() || self.offset > 0
    }
}

//! The outage ledger of a row: when nothing succeeded, what failed meanwhile, when the rate was
//! back, and when the latency was far above the usual.
//!
//! The definitions to the letter stand in `docs/outages.md`. A first scan counts into cells of time
//! ([`watch`]), from which what may be a stall is known to the nanosecond ([`stall`]). Only where
//! there is such a gap or a failure, a second scan says who it was ([`tell`]), and whether
//! operations that are slow by themselves explain it ([`judge`]).

mod brown_out;
mod judge;
mod stall;
mod tell;
mod watch;

#[cfg(test)]
mod tests;

use std::time::Duration;

use plimsoll_model::{EndpointId, ErrorClass, Moment, OpRecord};
use serde::Serialize;

use crate::{Failures, serial};

pub(crate) use tell::{RowTelling, Telling, Witness};
pub(crate) use watch::RowWatch;

/// How many outages and brown-outs of a row are told one by one; all are counted.
pub(crate) const TOLD_MAX: usize = 100;

/// When nothing succeeded in a row, and when it took long; moments are since the run's epoch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ledger {
    /// How long the row asked for what counts: gaps and outages are looked for in that time.
    #[serde(rename = "asked_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub asked: Duration,
    /// The longest time from the end of a success to the end of the next one; null for fewer than
    /// two successes, and where parts of the record are missing.
    pub gap_longest: Option<Gap>,
    /// From the first to the last failure; null without one.
    pub failures: Option<FailureSpan>,
    /// The failures by class, in the order of [`ErrorClass::ALL`]; empty without one.
    pub failures_by_class: Vec<ClassFailures>,
    /// How many outages there were.
    pub outages_count: u64,
    /// How long all outages of the whole row took together, without what clients stood still in
    /// them.
    #[serde(rename = "away_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub away: Duration,
    /// The outages in the order of time, at most a hundred.
    pub outages: Vec<Outage>,
    /// When the latency was far above the usual; null where that cannot be judged.
    pub brown_outs: Option<BrownOuts>,
    /// How often clients stood still.
    pub standstills_count: u64,
    /// For how long in all, each client's time added up.
    #[serde(rename = "stood_still_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub stood_still: Duration,
    /// When clients stood still, which makes no outage and no brown-out; at most a hundred.
    pub standstills: Vec<StoodStill>,
}

impl Ledger {
    /// Takes out what is told of times in which nothing was seen, as not all that happened was
    /// recorded: what failed is known, and that nothing succeeded is not.
    pub fn forget_silences(&mut self) {
        self.gap_longest = None;
        self.outages_count = 0;
        self.away = Duration::ZERO;
        self.outages.clear();
    }

    /// Tells whether there is nothing to tell.
    pub fn is_clean(&self) -> bool {
        self.outages.is_empty()
            && self.failures.is_none()
            && self.standstills.is_empty()
            && self.brown_outs.as_ref().is_none_or(|of| of.stretches.is_empty())
    }
}

/// A stretch of time between two successes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// When the success before it ended.
    #[serde(rename = "from_ns", serialize_with = "serial::moment")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub from: Moment,
    /// From there to the end of the next success.
    #[serde(rename = "length_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub length: Duration,
    /// For how long of it all clients stood still.
    #[serde(rename = "stood_still_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub stood_still: Duration,
}

/// A time for which a client stood still: it was stopped, had no processor, or its machine was
/// paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoodStill {
    /// The client; null where there is but one.
    #[serde(rename = "client_id")]
    pub client: Option<u16>,
    /// When it stood still.
    #[serde(rename = "from_ns", serialize_with = "serial::moment")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub from: Moment,
    /// From there until it went on.
    #[serde(rename = "length_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub length: Duration,
}

/// The failures of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailureSpan {
    /// When the last success before the first failure ended; null where there was none.
    #[serde(rename = "success_before_ns", serialize_with = "serial::moment_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub success_before: Option<Moment>,
    /// When the first failure was known.
    #[serde(rename = "first_ns", serialize_with = "serial::moment")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub first: Moment,
    /// When the last failure was known.
    #[serde(rename = "last_ns", serialize_with = "serial::moment")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub last: Moment,
}

/// The failures of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassFailures {
    /// The class.
    #[serde(serialize_with = "serial::class")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub class: ErrorClass,
    /// When the first of them was known.
    #[serde(rename = "first_ns", serialize_with = "serial::moment")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub first: Moment,
    /// When the last of them was known.
    #[serde(rename = "last_ns", serialize_with = "serial::moment")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub last: Moment,
    /// How many there were at each endpoint, by its number; those without one are left out.
    pub by_endpoint: Vec<FailedAt>,
}

impl ClassFailures {
    /// Returns those of the class of a failure, before any is added.
    fn of(op: &OpRecord) -> Self {
        Self { class: op.outcome, first: op.end, last: op.end, by_endpoint: Vec::new() }
    }

    fn add(&mut self, op: &OpRecord) {
        self.first = self.first.min(op.end);
        self.last = self.last.max(op.end);
        self.add_at(FailedAt { endpoint: op.endpoint, count: 1 });
    }

    /// Adds others of the same class.
    fn merge(&mut self, other: &Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        other.by_endpoint.iter().for_each(|of| self.add_at(*of));
    }

    fn add_at(&mut self, of: FailedAt) {
        match self.by_endpoint.binary_search_by_key(&of.endpoint, |at| at.endpoint) {
            Ok(at) => self.by_endpoint[at].count += of.count,
            Err(at) => self.by_endpoint.insert(at, of),
        }
    }
}

/// A stretch in which operations were waited for and none succeeded, far longer than is usual in
/// the row.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outage {
    /// The endpoint that it is of, where others went on; null for all of the row.
    #[serde(rename = "endpoint_id", serialize_with = "serial::endpoint_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u16>"))]
    pub endpoint: Option<EndpointId>,
    /// The client that it is of, where others went on; null for all of the row.
    #[serde(rename = "client_id")]
    pub client: Option<u16>,
    /// When the last success before it ended; null where none had, and it began with the stage.
    #[serde(rename = "last_success_ns", serialize_with = "serial::moment_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub last_success: Option<Moment>,
    /// When the first failure in it was known; null where nothing failed.
    #[serde(rename = "first_failure_ns", serialize_with = "serial::moment_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub first_failure: Option<Moment>,
    /// When the next success ended; null where none did while the row asked for anything.
    #[serde(rename = "next_success_ns", serialize_with = "serial::moment_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub next_success: Option<Moment>,
    /// From the end of the last success, or the start of the stage, to the end of the next success,
    /// or to when the row asked for nothing more.
    #[serde(rename = "gap_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub gap: Duration,
    /// For how long of it all clients, or the one that it is of, stood still.
    #[serde(rename = "stood_still_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub stood_still: Duration,
    /// What failed in it.
    #[serde(flatten)]
    pub failed: Failures,
    /// The same by endpoint; those without a failure are left out.
    pub failed_by_endpoint: Vec<FailedAt>,
    /// The same by client, where several are known.
    pub failed_by_client: Vec<FailedOf>,
    /// Successes that ended a second in the ten seconds before it, or in what there is of them from
    /// the start of the stage or the outage before on; null for under a second or 20 successes.
    #[serde(rename = "rate_before_ops_per_sec")]
    pub rate_before: Option<f64>,
    /// From the end of the next success to the start of the first stretch in which 95 % of that
    /// rate was reached; null where it was not before the stage ended, or is not known.
    #[serde(rename = "rate_regained_after_ns", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub regained_after: Option<Duration>,
}

impl Outage {
    /// Returns when it began: with the last success, or with the stage.
    pub fn from(&self, stage_started: Moment) -> Moment {
        self.last_success.unwrap_or(stage_started)
    }

    /// Returns when it ended: with the next success, or with the stage.
    pub fn until(&self, stage_started: Moment) -> Moment {
        self.from(stage_started).after(self.gap)
    }
}

/// How many operations failed at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedAt {
    /// The endpoint.
    #[serde(rename = "endpoint_id", serialize_with = "serial::endpoint")]
    #[cfg_attr(feature = "schema", schemars(with = "u16"))]
    pub endpoint: EndpointId,
    /// How many.
    #[serde(rename = "ops_failed_count")]
    pub count: u64,
}

/// How many operations of a client failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedOf {
    /// The client.
    #[serde(rename = "client_id")]
    pub client: u16,
    /// How many.
    #[serde(rename = "ops_failed_count")]
    pub count: u64,
}

/// When the 99th percentile of the latency was above a limit, interval by interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BrownOuts {
    /// The limit.
    #[serde(rename = "limit_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub limit: Duration,
    /// Whether it was asked for; otherwise it is five times the median of the intervals.
    pub limit_is_asked: bool,
    /// How long an interval is.
    #[serde(rename = "interval_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub interval: Duration,
    /// How many stretches there were.
    pub stretches_count: u64,
    /// Neighbouring intervals above the limit, as one each; at most a hundred.
    pub stretches: Vec<BrownOut>,
}

/// Neighbouring intervals in which the 99th percentile was above the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BrownOut {
    /// When the first of them begins.
    #[serde(rename = "from_ns", serialize_with = "serial::moment")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub from: Moment,
    /// How long they are together.
    #[serde(rename = "length_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub length: Duration,
    /// The highest percentile of one of them, off by at most 1 %.
    #[serde(rename = "latency_ns_p99_max", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub p99_max: Duration,
}

//! What happened in a stage: the measured span, segments, rates, times and advice, from the
//! operation records.
//!
//! Pure functions over records that something else reads; knows neither files nor looks. The
//! definitions to the letter stand in `docs/measuring.md`.

mod access;
mod accumulator;
mod addresses;
mod advice;
pub mod compare;
mod crimes;
mod detail;
mod ended;
mod figures;
pub mod history;
mod in_flight;
mod ledger;
pub mod load_line;
mod measuring;
mod serial;
mod series;
mod source;
mod span;
mod standstills;
mod steadiness;
mod steps;
mod times;
pub mod verdict;
pub mod warp;
mod window;

#[cfg(test)]
mod apart_tests;
#[cfg(test)]
mod ramps_tests;
#[cfg(test)]
mod rows_tests;
#[cfg(test)]
mod tests;

use std::time::Duration;

use plimsoll_model::{EndpointId, Moment, OpKind, OpRecord, StageId};
use serde::Serialize;

pub use access::AccessSummary;
pub use addresses::{host_of, is_loopback};
pub use advice::Advice;
pub use crimes::{Crime, CrimeFacts, crimes};
pub use detail::{
    ClientDetails, ClientKind, Depth, EndpointSeries, KindDetails, RateSummary, RowDetails,
    SegmentRow, SegmentTimes, SizeClass,
};
pub use ended::EndedInterval;
pub use figures::{
    Done, FailedShare, Failures, Figures, LATE_AFTER, Parts, Rates, SegmentRate, SegmentRates,
    SpanCounts, StageTotals,
};
pub use in_flight::{FullLoad, InFlight, Level};
pub use ledger::{
    BrownOut, BrownOuts, ClassFailures, FailedAt, FailedOf, FailureSpan, Gap, Ledger, Outage,
    StoodStill,
};
pub use measuring::{analyze, measure};
pub use source::OpSource;
pub use span::{KindSpan, MeasuredSpan, Span, SpanRule, StageSurvey, Survey};
pub use standstills::{Standstills, common as common_standstills};
pub use steadiness::{Cliff, Steadiness};
pub use steps::{StepAsked, StepFigures, find_steps};
pub use times::Times;
pub use window::Window;

/// A set of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages([u64; 4]);

impl Stages {
    /// Tells whether a stage belongs to the set.
    pub fn contains(&self, stage: StageId) -> bool {
        self.0[usize::from(stage.0 >> 6)] >> (stage.0 & 63) & 1 == 1
    }
}

impl FromIterator<StageId> for Stages {
    fn from_iter<I: IntoIterator<Item = StageId>>(stages: I) -> Self {
        let mut set = Self::default();
        stages
            .into_iter()
            .for_each(|stage| set.0[usize::from(stage.0 >> 6)] |= 1 << (stage.0 & 63));
        set
    }
}

impl From<StageId> for Stages {
    fn from(stage: StageId) -> Self {
        Self::from_iter([stage])
    }
}

/// Where a worker's operations belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerRow {
    /// The row.
    pub row: u32,
    /// The first moment at which an operation may be due that counts: the end of the worker's ramp;
    /// without one, the moment at which the worker began.
    pub measured_from: Moment,
    /// The first moment at which an operation that is due does not count any more: the end of the
    /// worker's duration, where it goes on after that.
    pub measured_until: Option<Moment>,
}

impl WorkerRow {
    /// Tells whether an operation of the worker counts. In an open loop it is due when the schedule
    /// says so, so that none is left out for starting late.
    pub fn counts(&self, op: &OpRecord) -> bool {
        let (due, until) = (op.intended, self.measured_until);
        due >= self.measured_from && until.is_none_or(|until| due < until)
    }
}

/// What is asked about a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowAsked {
    /// How many workers it was given.
    pub workers: u32,
    /// How its span is laid.
    pub span: Span,
    /// Takes it as an open loop: all of it is measured, and schedule delays are kept.
    pub open: bool,
    /// When its measuring was to end, where that is known: of an open loop when its schedule had.
    /// Each row of a stage has an end of its own.
    pub ends: Option<Moment>,
}

/// The rows of a stage: jobs, groups of jobs, or single workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows<'a> {
    /// All workers in one row; all that they did counts.
    One(RowAsked),
    /// Rows by worker.
    Several {
        /// The workers by their number; records of others are passed over. Where several clients
        /// served a stage, each has numbers for as many workers as its largest stage has, so that
        /// there are numbers of nobody.
        workers: &'a [Option<WorkerRow>],
        /// The rows; each has an answer, also if nothing was done.
        rows: &'a [RowAsked],
    },
}

impl Rows<'_> {
    fn each(&self) -> &[RowAsked] {
        match self {
            Self::One(row) => std::slice::from_ref(row),
            Self::Several { rows, .. } => rows,
        }
    }
}

/// What is asked about one stage, or several that are taken as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// The stages; records of others are passed over.
    pub stages: Stages,
    /// When the stage began.
    pub started: Moment,
    /// When its last operation had ended.
    pub ended: Moment,
    /// Its rows.
    pub rows: Rows<'a>,
    /// The length of a segment; `None` takes the first of 1 s, 5 s, 15 s, 1 min, 5 min, 15 min, 1
    /// h, 3 h that gives at most [`Question::SEGMENTS_AUTO_MAX`].
    pub segment: Option<Duration>,
    /// Leaves out this much at the beginning of the stage, but where spans begin with ramps.
    pub skip: Duration,
    /// Takes figures of this kind only; the span is that of all.
    pub kind: Option<OpKind>,
    /// Takes figures of this endpoint only; the span is that of all.
    pub endpoint: Option<EndpointId>,
    /// Which client each worker belongs to, by the worker's number; empty when there is but one.
    pub client_of: &'a [u16],
    /// When its clients stood still.
    pub standstills: &'a Standstills,
    /// What the 99th percentile of the latency must not exceed, where that is asked for.
    pub latency_p99_max: Option<Duration>,
    /// How much is given beside the figures.
    pub depth: Depth,
}

impl<'a> Question<'a> {
    /// Returns the plain question about one stage in one row, without filters and details.
    pub fn about(stage: StageId, started: Moment, ended: Moment, workers: u32) -> Self {
        Self {
            stages: stage.into(),
            started,
            ended,
            rows: Rows::One(RowAsked { workers, span: Span::AllWorkers, open: false, ends: None }),
            segment: None,
            skip: Duration::ZERO,
            kind: None,
            endpoint: None,
            client_of: &[],
            standstills: Standstills::NONE,
            latency_p99_max: None,
            depth: Depth::Figures,
        }
    }

    /// Tells whether an operation passes the filters.
    fn asks_for(&self, op: &OpRecord) -> bool {
        self.kind.is_none_or(|kind| op.kind == kind)
            && self.endpoint.is_none_or(|endpoint| op.endpoint == endpoint)
    }

    /// Returns the row that an operation of the stages belongs to, with its worker's place in it
    /// where there are several rows.
    fn row_of(&self, op: &OpRecord) -> Option<(usize, Option<&'a WorkerRow>)> {
        if !self.stages.contains(op.stage) {
            return None;
        }
        match self.rows {
            Rows::One(_) => Some((0, None)),
            Rows::Several { workers, .. } => {
                let worker = workers.get(op.worker.0 as usize)?.as_ref()?;
                Some((worker.row as usize, Some(worker)))
            }
        }
    }

    /// Tells whether an operation of a row counts: not in a ramp, unless all of the stage was asked
    /// for.
    fn counts(&self, op: &OpRecord, row: usize, worker: Option<&WorkerRow>) -> bool {
        let is_whole = self.rows.each()[row].span == Span::Whole;
        let Some(worker) = worker else { return is_whole || op.is_measured };
        // A worker that is measured from the start of the stage is asked for with its ramp.
        worker.counts(op) && (op.is_measured || worker.measured_from <= self.started)
    }

    /// Tells whether operations are left out.
    fn is_of_part(&self) -> bool {
        self.kind.is_some() || self.endpoint.is_some() || !self.skip.is_zero()
    }

    /// Returns the client of a worker.
    fn client(&self, worker: usize) -> u16 {
        self.client_of.get(worker).copied().unwrap_or(0)
    }

    /// How many segments there are at most when the length is left open.
    pub const SEGMENTS_AUTO_MAX: u64 = 400;
    /// How many segments there are at most in any case; a length that gives more is lengthened,
    /// with advice.
    pub const SEGMENTS_MAX: u64 = 100_000;

    /// Returns the length of a segment for a span of `span_ns`.
    fn segment_ns(&self, span_ns: u64) -> u64 {
        const LENGTHS_SECONDS: [u64; 8] = [1, 5, 15, 60, 300, 900, 3_600, 10_800];
        let longest = LENGTHS_SECONDS[LENGTHS_SECONDS.len() - 1] * 1_000_000_000;
        let auto = || {
            let mut lengths = LENGTHS_SECONDS.iter().map(|seconds| seconds * 1_000_000_000);
            lengths.find(|length| span_ns / length <= Self::SEGMENTS_AUTO_MAX).unwrap_or(longest)
        };
        let asked = self.segment.map(|length| ns(length).max(1));
        asked.unwrap_or_else(auto).max(span_ns.div_ceil(Self::SEGMENTS_MAX))
    }
}

/// The figures of one kind of operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindAnalysis {
    /// The kind, such as `PUT` or `READ`.
    #[serde(serialize_with = "serial::kind")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: OpKind,
    /// Its part of all operations of the row that started in the span, in percent; null when none
    /// did.
    pub mix_percent: Option<f64>,
    /// The figures over all endpoints.
    #[serde(flatten)]
    pub figures: Figures,
    /// The figures of each endpoint, over the same span.
    pub endpoints: Vec<EndpointAnalysis>,
}

/// The figures of what went to one endpoint.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndpointAnalysis {
    /// The endpoint.
    #[serde(rename = "endpoint_id", serialize_with = "serial::endpoint")]
    #[cfg_attr(feature = "schema", schemars(with = "u16"))]
    pub endpoint: EndpointId,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Operations that started before the measuring of their worker began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RampCounts {
    /// How many did what was asked.
    #[serde(rename = "ops_ok_count")]
    pub ops_ok: u64,
    /// How many failed.
    #[serde(flatten)]
    pub failed: Failures,
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq)]
pub struct StageAnalysis {
    /// The rows, by their number.
    pub rows: Vec<RowAnalysis>,
}

/// The figures of one row of a stage; moments are since the run's epoch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowAnalysis {
    /// When the stage began.
    #[serde(rename = "stage_started_ns", serialize_with = "serial::moment")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub started: Moment,
    /// When its last worker had ended.
    #[serde(rename = "stage_ended_ns", serialize_with = "serial::moment")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub ended: Moment,
    /// The stretch that rates and times are taken from.
    pub span: MeasuredSpan,
    /// The length of a segment.
    #[serde(rename = "segment_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub segment: Duration,
    /// How many whole segments the span holds.
    pub segments_count: u64,
    /// How many workers the row was given.
    pub workers_count: u32,
    /// How many of them ended at least one operation that counts.
    #[serde(rename = "workers_active_count")]
    pub workers_active: u32,
    /// When the first of them ended its last operation.
    #[serde(rename = "first_done_ns", serialize_with = "serial::moment_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub first_done: Option<Moment>,
    /// When the last of them ended its last operation.
    #[serde(rename = "last_done_ns", serialize_with = "serial::moment_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub last_done: Option<Moment>,
    /// The longest that one worker took: from the end of its own ramp to the end of its last
    /// operation.
    #[serde(rename = "worker_took_ns_max", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub worker_took_max: Option<Duration>,
    /// What the workers took, each by itself, all added up.
    #[serde(rename = "worker_took_ns_sum", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub worker_took_sum: Duration,
    /// What was done in ramps and is in no other figure.
    pub ramp: RampCounts,
    /// The clients whose workers ended operations that count; client 0 where there is only one.
    #[serde(rename = "client_ids")]
    pub clients: Vec<u16>,
    /// Each kind that occurred, in the order of [`OpKind::ALL`].
    pub kinds: Vec<KindAnalysis>,
    /// All kinds together.
    pub total: Figures,
    /// All kinds together, per endpoint.
    pub endpoints: Vec<EndpointAnalysis>,
    /// Operations in flight over time; `None` unless the row is an open loop, asked for whole.
    #[serde(skip)]
    pub in_flight: Option<InFlight>,
    /// When nothing succeeded, what failed, and when the latency was far above the usual; null
    /// where no operation ended, or where only some of them were asked for by their count.
    pub ledger: Option<Ledger>,
    /// How steady it was; null in an open loop, and where there is too little to say.
    pub steadiness: Option<Steadiness>,
    /// Whether the question left out operations of the row.
    pub is_part: bool,
    /// What limits the trust in these figures.
    #[serde(skip)]
    pub advice: Vec<Advice>,
    /// Everything beyond the figures; null unless it was asked for.
    pub details: Option<RowDetails>,
}

impl RowAnalysis {
    /// Returns the part of all operations of the row that failed, 0 to 1; `None` when there was
    /// none.
    pub fn error_rate(&self) -> Option<f64> {
        self.total.stage.failed_share().rate()
    }

    /// Returns the figures of one kind.
    pub fn kind(&self, kind: OpKind) -> Option<&KindAnalysis> {
        self.kinds.iter().find(|figures| figures.kind == kind)
    }

    /// Returns how long after the stage's start the measuring began; `None` without an operation
    /// that counts.
    pub fn began(&self) -> Option<Duration> {
        (self.workers_active > 0).then(|| self.span.start.since(self.started))
    }

    /// Returns how long the measured span is; `None` without an operation that counts.
    pub fn took(&self) -> Option<Duration> {
        (self.workers_active > 0).then(|| self.span.length())
    }
}

/// Returns a duration in nanoseconds, at most what 64 bits hold.
fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

//! What happened in a stage: the measured span, segments, rates, times and advice, from the
//! operation records.
//!
//! Pure functions over records that something else reads; knows neither files nor looks. The
//! definitions to the letter stand in `docs/measuring.md`.

mod advice;
mod figures;
mod lane;
mod span;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::time::Duration;

use plimsoll_model::{EndpointId, Moment, OpKind, OpRecord, StageId};

pub use advice::Advice;
pub use figures::{
    Failures, Figures, Rates, SegmentRate, SegmentRates, SpanCounts, StageTotals, TimeSummary,
};
pub use span::{MeasuredSpan, SpanRule};

use lane::{Frame, Lanes};
use span::WorkerTimes;

/// Gives operation records, in any order, the same ones on every scan.
pub trait OpSource {
    /// Why a scan can fail.
    type Error;

    /// Shows every record to `visit`.
    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), Self::Error>;
}

impl OpSource for [OpRecord] {
    type Error = Infallible;

    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), Infallible> {
        self.iter().for_each(visit);
        Ok(())
    }
}

impl OpSource for Vec<OpRecord> {
    type Error = Infallible;

    fn scan(&self, visit: &mut dyn FnMut(&OpRecord)) -> Result<(), Infallible> {
        self.as_slice().scan(visit)
    }
}

/// What is asked about one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The stage; records of others are passed over.
    pub stage: StageId,
    /// When the stage began.
    pub started: Moment,
    /// When its last worker had ended.
    pub ended: Moment,
    /// How many workers it was given.
    pub workers: u32,
    /// The length of a segment; `None` takes the first of 1 s, 5 s, 15 s, 1 min, 5 min, 15 min, 1
    /// h, 3 h that gives at most [`Question::SEGMENTS_AUTO_MAX`].
    pub segment: Option<Duration>,
    /// Takes the whole stage instead of the span in which all workers ran.
    pub full_span: bool,
}

impl Question {
    /// How many segments there are at most when the length is left open.
    pub const SEGMENTS_AUTO_MAX: u64 = 400;
    /// How many segments there are at most in any case; a length that gives more is lengthened,
    /// with advice.
    pub const SEGMENTS_MAX: u64 = 100_000;

    /// Returns the length of a segment for a span of `span_ns`, and how many whole ones fit.
    fn segments(&self, span_ns: u64) -> (u64, usize) {
        const LENGTHS_SECONDS: [u64; 8] = [1, 5, 15, 60, 300, 900, 3_600, 10_800];
        let longest = LENGTHS_SECONDS[LENGTHS_SECONDS.len() - 1] * 1_000_000_000;
        let auto = || {
            let mut lengths = LENGTHS_SECONDS.iter().map(|seconds| seconds * 1_000_000_000);
            lengths.find(|length| span_ns / length <= Self::SEGMENTS_AUTO_MAX).unwrap_or(longest)
        };
        let asked = self.segment.map(|length| ns(length).max(1));
        let length = asked.unwrap_or_else(auto).max(span_ns.div_ceil(Self::SEGMENTS_MAX));
        (length, (span_ns / length) as usize)
    }
}

/// The figures of one kind of operation.
#[derive(Clone, Debug, PartialEq)]
pub struct KindAnalysis {
    /// The kind.
    pub kind: OpKind,
    /// Its part of all operations started in the span, in percent; `None` when none was.
    pub mix_percent: Option<f64>,
    /// The figures over all endpoints.
    pub figures: Figures,
    /// The figures of each endpoint, over the same span.
    pub endpoints: Vec<EndpointAnalysis>,
}

/// The figures of what went to one endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointAnalysis {
    /// The endpoint.
    pub endpoint: EndpointId,
    /// The figures.
    pub figures: Figures,
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq)]
pub struct StageAnalysis {
    /// When the stage began.
    pub started: Moment,
    /// When its last worker had ended.
    pub ended: Moment,
    /// The stretch that rates and times are taken from.
    pub span: MeasuredSpan,
    /// The length of a segment.
    pub segment: Duration,
    /// How many whole segments the span holds.
    pub segments_count: u64,
    /// How many workers ended at least one operation.
    pub workers_active: u32,
    /// When the first worker ended its last operation.
    pub first_done: Option<Moment>,
    /// When the last worker ended its last operation.
    pub last_done: Option<Moment>,
    /// Each kind that occurred, in the order of [`OpKind::ALL`].
    pub kinds: Vec<KindAnalysis>,
    /// All kinds together.
    pub total: Figures,
    /// All kinds together, per endpoint.
    pub endpoints: Vec<EndpointAnalysis>,
    /// What limits the trust in these figures.
    pub advice: Vec<Advice>,
}

impl StageAnalysis {
    /// Returns the part of all operations of the stage that failed, 0 to 1; `None` when there was
    /// none.
    pub fn error_rate(&self) -> Option<f64> {
        let totals = &self.total.stage;
        let ended = totals.ops_ok + totals.failed.count();
        (ended > 0).then(|| totals.failed.count() as f64 / ended as f64)
    }
}

/// Returns the figures of one stage; reads the source twice.
pub fn analyze<S: OpSource + ?Sized>(
    source: &S,
    question: &Question,
) -> Result<StageAnalysis, S::Error> {
    let mut workers = WorkerTimes::default();
    source.scan(&mut |op| {
        if op.stage == question.stage {
            workers.add(op);
        }
    })?;
    let span = workers.measured_span(question);
    let (segment_ns, segments_count) = question.segments(ns(span.length()));
    let frame = Frame::new(&span, segment_ns, segments_count);
    let mut lanes = Lanes::default();
    source.scan(&mut |op| {
        if op.stage == question.stage {
            lanes.add(&frame, op);
        }
    })?;
    let total = lanes.merged(&frame, |_, _| true);
    let started_in_span = total.counts.started;
    let kinds = OpKind::ALL.into_iter().filter(|kind| lanes.kinds().contains(kind));
    let kinds = kinds.map(|kind| {
        let lane = lanes.merged(&frame, |of, _| of == kind);
        let share = lane.counts.started as f64 / started_in_span as f64;
        let mix_percent = (started_in_span > 0).then_some(share * 100.0);
        let endpoints = endpoints(&lanes, &frame, Some(kind));
        KindAnalysis { kind, mix_percent, figures: lane.figures(&frame), endpoints }
    });
    let mut analysis = StageAnalysis {
        started: question.started,
        ended: question.ended,
        span,
        segment: Duration::from_nanos(segment_ns),
        segments_count: segments_count as u64,
        workers_active: workers.active(),
        first_done: workers.first_done(),
        last_done: workers.last_done(),
        kinds: kinds.collect(),
        total: total.figures(&frame),
        endpoints: endpoints(&lanes, &frame, None),
        advice: Vec::new(),
    };
    analysis.advice = advice::collect(&analysis, question, total.latency_beyond_end());
    Ok(analysis)
}

/// Returns the figures of each endpoint, of one kind or of all.
fn endpoints(lanes: &Lanes, frame: &Frame, kind: Option<OpKind>) -> Vec<EndpointAnalysis> {
    let wanted = |of: OpKind| kind.is_none_or(|kind| of == kind);
    let figures = |endpoint: EndpointId| {
        lanes.merged(frame, |of, at| wanted(of) && at == endpoint).figures(frame)
    };
    let of_kind = lanes.endpoints(wanted).into_iter();
    of_kind.map(|endpoint| EndpointAnalysis { endpoint, figures: figures(endpoint) }).collect()
}

/// Returns a duration in nanoseconds, at most what 64 bits hold.
fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

//! What happened in a stage: the measured span, segments, rates, times and advice, from the
//! operation records.
//!
//! Pure functions over records that something else reads; knows neither files nor looks. The
//! definitions to the letter stand in `docs/measuring.md`.

mod access;
mod advice;
pub mod compare;
mod detail;
mod figures;
pub mod history;
mod in_flight;
mod lane;
mod lanes;
pub mod phases;
mod span;
pub mod warp;
mod window;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::time::Duration;

use plimsoll_model::{EndpointId, Moment, OpKind, OpRecord, StageId};

pub use access::AccessSummary;
pub use advice::Advice;
pub use detail::{
    ClientDetails, KindDetails, PERCENTS, RateSummary, SegmentRow, SegmentTimes, SizeClass,
    StageDetails, percentiles,
};
pub use figures::{
    Failures, Figures, LATE_AFTER, Rates, SegmentRate, SegmentRates, SpanCounts, StageTotals,
    TimeSummary,
};
pub use in_flight::{FullLoad, InFlight, Level};
pub use phases::WorkerRow;
pub use span::{KindSpan, MeasuredSpan, SpanRule, StageSurvey, Survey};

pub use window::Window;

use lane::Frame;
use lanes::Lanes;

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

/// What is asked about one stage, or several that are taken as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    /// The stages; records of others are passed over.
    pub stages: Stages,
    /// When the stage began.
    pub started: Moment,
    /// When its last operation had ended.
    pub ended: Moment,
    /// How many workers it was given.
    pub workers: u32,
    /// The length of a segment; `None` takes the first of 1 s, 5 s, 15 s, 1 min, 5 min, 15 min, 1
    /// h, 3 h that gives at most [`Question::SEGMENTS_AUTO_MAX`].
    pub segment: Option<Duration>,
    /// Takes the whole stage instead of the span in which all workers ran.
    pub full_span: bool,
    /// Takes the stage as an open loop: all of it is measured, and schedule delays are kept.
    pub open: bool,
    /// Leaves out this much at the beginning of the stage.
    pub skip: Duration,
    /// Takes figures of this kind only; the span is that of all.
    pub kind: Option<OpKind>,
    /// Takes figures of this endpoint only; the span is that of all.
    pub endpoint: Option<EndpointId>,
    /// Which client each worker belongs to, by the worker's number; empty when there is but one.
    pub client_of: &'a [u16],
    /// Also gives every segment, sizes, clients and accesses.
    pub details: bool,
}

impl<'a> Question<'a> {
    /// Returns the plain question about one stage, without filters and details.
    pub fn about(stage: StageId, started: Moment, ended: Moment, workers: u32) -> Self {
        Self {
            stages: stage.into(),
            started,
            ended,
            workers,
            segment: None,
            full_span: false,
            open: false,
            skip: Duration::ZERO,
            kind: None,
            endpoint: None,
            client_of: &[],
            details: false,
        }
    }

    /// Tells whether an operation passes the filters.
    fn asks_for(&self, op: &OpRecord) -> bool {
        self.stages.contains(op.stage)
            && self.kind.is_none_or(|kind| op.kind == kind)
            && self.endpoint.is_none_or(|endpoint| op.endpoint == endpoint)
    }

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
    /// Operations in flight over time; `None` unless the stage is an open loop, asked for whole.
    pub in_flight: Option<InFlight>,
    /// Whether the question left out operations of the stage.
    pub is_part: bool,
    /// What limits the trust in these figures.
    pub advice: Vec<Advice>,
    /// Everything beyond the figures, if it was asked for.
    pub details: Option<StageDetails>,
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
    question: &Question<'_>,
) -> Result<StageAnalysis, S::Error> {
    let survey = Survey::of(source)?;
    let mut answers = measure(source, &survey, std::slice::from_ref(question))?;
    Ok(answers.pop().expect("one question has one answer"))
}

/// Returns the answer to each question; reads the source once more than the survey did.
pub fn measure<S: OpSource + ?Sized>(
    source: &S,
    survey: &Survey,
    questions: &[Question<'_>],
) -> Result<Vec<StageAnalysis>, S::Error> {
    let mut asked: Vec<_> =
        questions.iter().map(|question| Measuring::new(survey, question)).collect();
    source.scan(&mut |op| asked.iter_mut().for_each(|asked| asked.add(op)))?;
    Ok(asked.into_iter().map(Measuring::answer).collect())
}

/// A question on its way to the answer.
struct Measuring<'a> {
    question: &'a Question<'a>,
    stage: StageSurvey,
    span: MeasuredSpan,
    lanes: Lanes<'a>,
    in_flight: Option<InFlight>,
}

impl<'a> Measuring<'a> {
    fn new(survey: &Survey, question: &'a Question<'a>) -> Self {
        let stage = survey.stages(question.stages);
        let span = stage.measured_span(question);
        let (segment_ns, segments_count) = question.segments(ns(span.length()));
        let lanes = Lanes::new(question, Frame::new(&span, segment_ns, segments_count));
        let is_part = question.kind.is_some() || question.endpoint.is_some();
        let in_flight = (question.open && !is_part).then(|| InFlight::new(question.started));
        Self { question, stage, span, lanes, in_flight }
    }

    fn add(&mut self, op: &OpRecord) {
        self.lanes.add(op);
        if let Some(in_flight) = &mut self.in_flight
            && self.question.stages.contains(op.stage)
        {
            in_flight.add(op);
        }
    }

    fn answer(self) -> StageAnalysis {
        let (question, lanes, frame) = (self.question, &self.lanes, self.lanes.frame());
        let total = lanes.merged(|_, _| true);
        let kinds = lanes.kinds().into_iter().map(|kind| {
            let lane = lanes.merged(|of, _| of == kind);
            let share = lane.counts.started as f64 / total.counts.started as f64;
            let whole = total.counts.started > 0 && question.kind.is_none();
            let mix_percent = whole.then_some(share * 100.0);
            let endpoints = lanes.endpoints(Some(kind));
            KindAnalysis { kind, mix_percent, figures: lane.figures(frame), endpoints }
        });
        let mut analysis = StageAnalysis {
            started: question.started,
            ended: question.ended,
            span: self.span,
            segment: frame.segment_length(),
            segments_count: frame.segments_count as u64,
            workers_active: self.stage.active(),
            first_done: self.stage.first_done(),
            last_done: self.stage.last_done(),
            kinds: kinds.collect(),
            total: total.figures(frame),
            endpoints: lanes.endpoints(None),
            in_flight: self.in_flight,
            is_part: question.kind.is_some() || question.endpoint.is_some(),
            advice: Vec::new(),
            details: lanes.details(),
        };
        analysis.advice = advice::collect(&analysis, question, &total);
        analysis
    }
}

/// Returns a duration in nanoseconds, at most what 64 bits hold.
fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

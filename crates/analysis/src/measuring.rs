//! The scans that answer questions: what is counted on each thread, and how that becomes one.

use plimsoll_model::{OpKind, OpRecord, Visit};

use crate::accumulator::Frame;
use crate::in_flight::InFlight;
use crate::ledger::{Ledger, RowTelling, RowWatch, Telling, Witness};
use crate::series::Series;
use crate::source::counted;
use crate::span::{MeasuredSpan, RowSurvey, Span, StageSurvey, Survey};
use crate::{
    Advice, Depth, KindAnalysis, OpSource, Question, RampCounts, RowAnalysis, RowAsked,
    StageAnalysis, Steadiness, advice,
};

/// Where figures of each kind of each row at each endpoint may be more than these, endpoints are
/// not told apart: a run of many stages on thousands of hosts has millions of them, of 4 KB each.
const HOST_FIGURES_MAX: u64 = 1 << 16;

/// Returns the figures of one stage; reads the source twice.
pub fn analyze<S: OpSource + ?Sized>(
    source: &S,
    question: &Question<'_>,
) -> Result<StageAnalysis, S::Error> {
    let survey = Survey::of(source)?;
    let mut answers = measure(source, &survey, std::slice::from_ref(question))?;
    Ok(answers.pop().expect("one question has one answer"))
}

/// Returns the answer to each question; reads the source once more than the survey did, and twice
/// where there are failures or stalls to tell of. Where the source can be read by several threads,
/// each counts for itself; all counts are whole numbers, so the answer is the same for any number
/// of threads.
pub fn measure<S: OpSource + ?Sized>(
    source: &S,
    survey: &Survey,
    questions: &[Question<'_>],
) -> Result<Vec<StageAnalysis>, S::Error> {
    let (threads, scan) =
        (source.threads(), |visits: &mut [&mut Visit<'_>]| source.scan_apart(visits));
    // Once, and not by each thread again.
    let asked_about = questions.iter().map(|question| (survey.stages(question.stages), question));
    let asked_about: Vec<(StageSurvey, &Question<'_>)> = asked_about.collect();
    let of_hosts = asked_about.iter().map(|(stage, question)| {
        let rows = question.rows.each().len() as u64 * stage.kinds().count() as u64;
        rows.saturating_mul(stage.endpoints_max())
    });
    let by_host = of_hosts.fold(0, u64::saturating_add) <= HOST_FIGURES_MAX;
    let new = || {
        let each = asked_about.iter();
        each.map(|(stage, question)| Measuring::new(stage, question, by_host)).collect()
    };
    let add = |asked: &mut Vec<Measuring<'_>>, op: &OpRecord| {
        asked.iter_mut().for_each(|asked| asked.add(op));
    };
    let mut asked: Vec<Measuring<'_>> = counted(threads, scan, new, add, |mine, theirs| {
        mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.merge(theirs));
    })?;
    let mut telling: Vec<Telling<'_>> = asked.iter_mut().map(Measuring::telling).collect();
    if telling.iter().any(|of| of.wants_more) {
        let new = || telling.iter().map(Telling::witness).collect();
        let add = |telling: &mut Vec<Witness<'_>>, op: &OpRecord| {
            telling.iter_mut().for_each(|of| of.add(op));
        };
        let seen: Vec<Witness<'_>> = counted(threads, scan, new, add, |mine, theirs| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| mine.merge(&theirs));
        })?;
        telling.iter_mut().zip(seen).for_each(|(of, seen)| of.hear(seen));
    }
    let answer = |(of, told): (Measuring<'_>, Telling<'_>)| of.answer(told.rows);
    Ok(asked.into_iter().zip(telling).map(answer).collect())
}

/// A question on its way to the answer.
struct Measuring<'a> {
    question: &'a Question<'a>,
    rows: Vec<MeasuringRow<'a>>,
}

/// A row of it.
struct MeasuringRow<'a> {
    asked: RowAsked,
    survey: RowSurvey,
    span: MeasuredSpan,
    series: Series<'a>,
    watch: Option<RowWatch<'a>>,
    in_flight: Option<InFlight>,
    ramp: RampCounts,
}

impl<'a> Measuring<'a> {
    fn new(stage: &StageSurvey, question: &'a Question<'a>, by_host: bool) -> Self {
        let several = by_host && stage.endpoints_max() > 1;
        let rows = stage.rows(question).into_iter().zip(question.rows.each());
        let rows = rows.map(|(survey, asked)| {
            let watch = RowWatch::new(question, survey.asked_for(question, asked), several);
            MeasuringRow::new(question, survey, *asked, (watch, by_host))
        });
        Self { question, rows: rows.collect() }
    }

    fn add(&mut self, op: &OpRecord) {
        let Some((index, worker)) = self.question.row_of(op) else { return };
        let row = &mut self.rows[index];
        // An `fsync` comes with the writes and not by the schedule.
        if let (Some(in_flight), false) = (&mut row.in_flight, op.kind == OpKind::Sync) {
            in_flight.add(op);
        }
        if !self.question.asks_for(op) {
            return;
        }
        if !self.question.counts(op, index, worker) {
            match op.outcome.is_ok() {
                true => row.ramp.ops_ok += 1,
                false => row.ramp.failed.add(op.outcome),
            }
            return;
        }
        row.series.add(op);
        row.watch.as_mut().into_iter().for_each(|watch| watch.add(op));
    }

    /// Adds what another one counted of the same question.
    fn merge(&mut self, other: Self) {
        for (mine, theirs) in self.rows.iter_mut().zip(other.rows) {
            mine.series.merge(theirs.series);
            if let (Some(mine), Some(theirs)) = (&mut mine.watch, theirs.watch) {
                mine.merge(theirs);
            }
            if let (Some(mine), Some(theirs)) = (&mut mine.in_flight, &theirs.in_flight) {
                mine.merge(theirs);
            }
            mine.ramp.ops_ok += theirs.ramp.ops_ok;
            mine.ramp.failed.merge(&theirs.ramp.failed);
        }
    }

    /// Returns what a second scan is to tell.
    fn telling(&mut self) -> Telling<'a> {
        let question = self.question;
        let mut wants_more = false;
        let found = self.rows.iter_mut().map(|row| {
            let found = row.watch.take()?.found()?;
            wants_more |= found.wants_more();
            Some(found.telling(question))
        });
        let rows = found.collect();
        Telling { question, wants_more, rows }
    }

    fn answer(self, told: Vec<Option<RowTelling<'_>>>) -> StageAnalysis {
        let question = self.question;
        let answer = |(row, told): (MeasuringRow<'_>, Option<RowTelling<'_>>)| {
            row.answer(question, told.map(RowTelling::told))
        };
        StageAnalysis { rows: self.rows.into_iter().zip(told).map(answer).collect() }
    }
}

impl<'a> MeasuringRow<'a> {
    fn new(
        question: &'a Question<'a>,
        survey: RowSurvey,
        asked: RowAsked,
        (watch, by_host): (RowWatch<'a>, bool),
    ) -> Self {
        let span = survey.measured_span(question, &asked);
        let first_done = survey.first_done.filter(|_| asked.span == Span::FromRamps);
        let frame = Frame::new(&span, (question.started, first_done), |span_ns| {
            question.segment_ns(span_ns)
        });
        let frame = frame.opened(asked.open, question.depth > Depth::Figures);
        let series = Series::new(question, frame, by_host);
        let is_filtered = question.kind.is_some() || question.endpoint.is_some();
        let in_flight = (asked.open && !is_filtered).then(|| InFlight::new(question.started));
        let ramp = RampCounts::default();
        Self { asked, survey, span, series, watch: Some(watch), in_flight, ramp }
    }

    fn answer(
        self,
        question: &Question<'_>,
        ledger: Option<(Ledger, Option<Steadiness>)>,
    ) -> RowAnalysis {
        let steadiness = ledger.as_ref().and_then(|(_, steadiness)| *steadiness);
        let steadiness = steadiness.filter(|_| !self.asked.open);
        let asked_from = self.survey.asked_for(question, &self.asked).from;
        let (survey, series, frame) = (self.survey, &self.series, self.series.frame());
        let total = series.merged(|_, _| true);
        let kinds = series.kinds().into_iter().map(|kind| {
            let counted = series.merged(|of, _| of == kind);
            let share = counted.counts.started as f64 / total.counts.started as f64;
            let whole = total.counts.started > 0 && question.kind.is_none();
            let mix_percent = whole.then_some(share * 100.0);
            let endpoints = series.endpoints(Some(kind));
            KindAnalysis { kind, mix_percent, figures: counted.figures(frame), endpoints }
        });
        let mut analysis = RowAnalysis {
            started: question.started,
            ended: question.ended,
            span: self.span,
            segment: frame.segment_length(),
            segments_count: frame.whole_segments().count() as u64,
            workers_count: survey.workers,
            workers_active: survey.active,
            first_done: survey.first_done,
            last_done: survey.last_done,
            worker_took_max: survey.took_max,
            worker_took_sum: survey.took_sum,
            ramp: self.ramp,
            clients: survey.clients.into_iter().collect(),
            kinds: kinds.collect(),
            total: total.figures(frame),
            endpoints: series.endpoints(None),
            in_flight: self.in_flight,
            ledger: ledger.map(|(ledger, _)| ledger),
            steadiness,
            is_part: question.is_of_part(),
            advice: Vec::new(),
            details: series.details(),
        };
        analysis.advice = advice::collect(&analysis, (question, &self.asked), asked_from, &total);
        if analysis.ledger.as_ref().is_some_and(|ledger| ledger.outages_count > 0) {
            // The ledger says so exactly.
            analysis.advice.retain(|of| !matches!(of, Advice::NothingSucceeded { .. }));
        }
        analysis
    }
}

//! What limits the trust in a result, as values; the words are the report's.

use std::time::Duration;

use plimsoll_model::{ErrorClass, Moment, OpKind};

use crate::accumulator::Accumulator;
use crate::{Cliff, Ledger, Question, RowAnalysis, RowAsked, Span, SpanRule, Times, ns};

/// A warning about the trust of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Advice {
    /// No operation of the stage ended.
    NothingDone,
    /// All workers ran together for too small a part of the stage, so the figures are those of the
    /// whole stage.
    FullSpanUsed {
        /// Whether its beginning was to be left out.
        skipped: bool,
    },
    /// Nothing is left of the stage once its beginning is left out.
    AllSkipped {
        /// How much that was.
        skip: Duration,
        /// How long the stage took.
        took: Duration,
    },
    /// The span holds fewer than five whole segments, and is shorter than what was asked for, where
    /// that is known.
    ShortSpan {
        /// Its length.
        span: Duration,
    },
    /// A kind has too few samples for p99.9, or even for less.
    FewSamples {
        /// The kind.
        kind: OpKind,
        /// How many there are.
        samples: u64,
    },
    /// Some workers ended no operation.
    IdleWorkers {
        /// How many did.
        active: u32,
        /// How many there were.
        configured: u32,
    },
    /// The first worker was done long before the last: more than a tenth of the stage.
    Imbalance {
        /// From first done to last done.
        apart: Duration,
    },
    /// The store shed load.
    Throttled {
        /// How many operations of the stage.
        count: u64,
        /// Their part of all operations of the stage, 0 to 1.
        share: f64,
    },
    /// Operations failed, and over several whole segments in a row none succeeded. So few of them
    /// may have been tried meanwhile that the error rate does not show it.
    NothingSucceeded {
        /// The longest such stretch.
        length: Duration,
        /// How long after the begin of the span it began.
        after: Duration,
    },
    /// A success that ended after the span took longer than every one inside, so the latencies do
    /// not show it.
    SlowBeyondEnd {
        /// Its latency.
        latency: Duration,
    },
    /// The rate changed over the row, by this part of its mean.
    Drift {
        /// The part.
        part: f64,
    },
    /// The rate changed at once.
    Cliff(Cliff),
    /// The rate paused again and again.
    Pauses {
        /// How far apart.
        period: Duration,
    },
    /// The segments asked for would have been too many.
    SegmentLengthened {
        /// The length asked for.
        asked: Duration,
        /// The length used.
        used: Duration,
    },
}

impl Advice {
    /// Tells whether it says that the run, or the part of it in which all worked, was short.
    pub fn is_of_length(&self) -> bool {
        matches!(
            self,
            Self::FullSpanUsed { .. }
                | Self::ShortSpan { .. }
                | Self::IdleWorkers { .. }
                | Self::Imbalance { .. }
        )
    }

    /// Tells whether it says how the rate went over time.
    pub fn is_of_time(&self) -> bool {
        matches!(
            self,
            Self::NothingSucceeded { .. }
                | Self::Drift { .. }
                | Self::Cliff(_)
                | Self::Pauses { .. }
        )
    }
}

/// Fewer whole segments than this say little about the fastest and the slowest.
const SEGMENTS_MIN: u64 = 5;

/// A span of this part of what was asked for is what was asked for: nothing but the first and the
/// last operation of a worker is missing of it.
const AS_ASKED: f64 = 0.9;

/// Fewer whole segments in a row than this without a success are no outage.
const SEGMENTS_WITHOUT_MIN: usize = 2;

/// Returns all advice on a row, which asked for what counts from a moment on; `counted` is all of
/// its operations.
pub(crate) fn collect(
    analysis: &RowAnalysis,
    (question, row): (&Question<'_>, &RowAsked),
    asked_from: Moment,
    counted: &Accumulator,
) -> Vec<Advice> {
    let totals = &analysis.total.stage;
    let ended = totals.ops_ok + totals.failed.count();
    let is_skipped = !question.skip.is_zero();
    if is_skipped && (ended == 0 || analysis.span.length().is_zero()) {
        let took = analysis.ended.since(analysis.started);
        return vec![Advice::AllSkipped { skip: question.skip, took }];
    }
    // A row that is measured from its ramps on has a fixed amount to do, or none of these ends.
    if row.span == Span::FromRamps {
        return Vec::new();
    }
    if ended == 0 {
        return vec![Advice::NothingDone];
    }
    let mut advice = Vec::new();
    match analysis.span.rule {
        SpanRule::FullTooShort => advice.push(Advice::FullSpanUsed { skipped: is_skipped }),
        SpanRule::AllWorkers | SpanRule::FullAsked | SpanRule::Schedule | SpanRule::FromRamps => {}
    }
    let asked = row.ends.map(|ends| ends.since(asked_from.min(ends)));
    let is_as_asked = asked.is_some_and(|asked| analysis.span.length() >= asked.mul_f64(AS_ASKED));
    if analysis.segments_count < SEGMENTS_MIN && !is_as_asked {
        advice.push(Advice::ShortSpan { span: analysis.span.length() });
    }
    if let Some(asked) = question.segment.filter(|asked| *asked < analysis.segment) {
        advice.push(Advice::SegmentLengthened { asked, used: analysis.segment });
    }
    for kind in &analysis.kinds {
        let samples = kind.figures.latency.samples;
        if samples < Times::P99_9_SAMPLES_MIN {
            advice.push(Advice::FewSamples { kind: kind.kind, samples });
        }
    }
    // When a worker has nothing to do in an open loop is the schedule's choice.
    if !row.open && !is_skipped {
        let uneven = uneven_workers(analysis, row.workers);
        // Where the whole stage is measured, it does not end with the first worker.
        let is_whole = analysis.span.rule == SpanRule::FullTooShort;
        advice.extend(uneven.filter(|of| !(is_whole && matches!(of, Advice::Imbalance { .. }))));
    }
    let count = totals.failed.of(ErrorClass::Throttled);
    if count > 0 {
        advice.push(Advice::Throttled { count, share: count as f64 / ended as f64 });
    }
    let outage = counted.longest_without_success();
    // Where nothing succeeded at all the error rate says so.
    let some_failed = totals.failed.count() > 0 && totals.ops_ok > 0;
    if some_failed && outage.len() >= SEGMENTS_WITHOUT_MIN {
        let of = |segments: usize| analysis.segment.saturating_mul(segments as u32);
        advice.push(Advice::NothingSucceeded { length: of(outage.len()), after: of(outage.start) });
    }
    advice.extend(unsteady(analysis));
    if let Some(latency) = counted
        .latency_beyond_end()
        .filter(|latency| analysis.total.latency.max.is_none_or(|inside| *latency > inside))
    {
        advice.push(Advice::SlowBeyondEnd { latency });
    }
    advice
}

/// Returns in what way the rate was not steady; an outage, or a client that stood still,
/// explains what it does to the rate.
fn unsteady(analysis: &RowAnalysis) -> Option<Advice> {
    let explains = |ledger: &Ledger| ledger.outages_count > 0 || !ledger.standstills.is_empty();
    let had_outage = analysis.ledger.as_ref().is_some_and(explains);
    let found = analysis.steadiness.filter(|_| !had_outage)?;
    let cliff = found.cliff.map(Advice::Cliff);
    let pauses = found.period.map(|period| Advice::Pauses { period });
    cliff.or(pauses).or(found.drift.map(|part| Advice::Drift { part }))
}

/// Returns whether workers did nothing, or were done long before others.
fn uneven_workers(analysis: &RowAnalysis, configured: u32) -> impl Iterator<Item = Advice> {
    let active = analysis.workers_active;
    let idle = (active < configured).then_some(Advice::IdleWorkers { active, configured });
    let apart = analysis.first_done.zip(analysis.last_done).map(|(first, last)| last.since(first));
    let long = ns(analysis.ended.since(analysis.started)) / 10;
    let apart = apart.filter(|apart| ns(*apart) > long);
    idle.into_iter().chain(apart.map(|apart| Advice::Imbalance { apart }))
}

//! The measured span: the stretch of a stage in which all workers ran.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{Moment, OpRecord, WorkerId};

use crate::{Question, ns};

/// How the span came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanRule {
    /// From the moment at which every worker had ended one operation to the moment at which the
    /// first worker ended its last.
    AllWorkers,
    /// The whole stage, because it was asked for.
    FullAsked,
    /// The whole stage, because all workers ran together for less than a tenth of it.
    FullTooShort,
}

/// The stretch of the stage that rates and times are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredSpan {
    /// Its beginning.
    pub start: Moment,
    /// Its end, not before its beginning.
    pub end: Moment,
    /// How it came about.
    pub rule: SpanRule,
}

impl MeasuredSpan {
    /// Returns how long it is.
    pub fn length(&self) -> Duration {
        self.end.since(self.start)
    }
}

/// When a worker ended its first and its last operation.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: Moment,
    last: Moment,
}

/// The ends of every worker that did anything, failed operations included.
#[derive(Debug, Default)]
pub(crate) struct WorkerTimes {
    ends: BTreeMap<WorkerId, Ends>,
}

impl WorkerTimes {
    /// A span below this part of the stage is too short to stand for it.
    const STAGE_PART_MIN: u64 = 10;

    pub(crate) fn add(&mut self, op: &OpRecord) {
        let ends = self.ends.entry(op.worker).or_insert(Ends { first: op.end, last: op.end });
        ends.first = ends.first.min(op.end);
        ends.last = ends.last.max(op.end);
    }

    pub(crate) fn active(&self) -> u32 {
        self.ends.len() as u32
    }

    pub(crate) fn first_done(&self) -> Option<Moment> {
        self.ends.values().map(|ends| ends.last).min()
    }

    pub(crate) fn last_done(&self) -> Option<Moment> {
        self.ends.values().map(|ends| ends.last).max()
    }

    pub(crate) fn measured_span(&self, question: &Question) -> MeasuredSpan {
        let full = |rule| MeasuredSpan {
            start: question.started,
            end: question.ended.max(question.started),
            rule,
        };
        if question.full_span {
            return full(SpanRule::FullAsked);
        }
        let all_ran = self.ends.values().map(|ends| ends.first).max();
        let (Some(start), Some(end)) = (all_ran, self.first_done()) else {
            return full(SpanRule::FullTooShort);
        };
        let stage_ns = ns(question.ended.since(question.started));
        if end <= start || ns(end.since(start)) < stage_ns / Self::STAGE_PART_MIN {
            return full(SpanRule::FullTooShort);
        }
        MeasuredSpan { start, end, rule: SpanRule::AllWorkers }
    }
}

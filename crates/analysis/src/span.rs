//! The measured span: the stretch of a stage in which all workers ran.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{Moment, OpKind, OpRecord, StageId, WorkerId};

use crate::{OpSource, Question, Stages, ns};

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
    /// The whole stage of an open loop: its operations arrive on a schedule, from its start on.
    Schedule,
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

impl Ends {
    fn join(&mut self, other: Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

/// From when to when operations of one kind ran, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindSpan {
    /// The kind.
    pub kind: OpKind,
    /// When the first began.
    pub started: Moment,
    /// When the last had ended.
    pub ended: Moment,
    /// How many ended, failed ones included.
    pub ops: u64,
}

/// What the first look at all records says about one stage.
#[derive(Clone, Debug, Default)]
pub struct StageSurvey {
    kinds: [Option<KindSpan>; OpKind::ALL.len()],
    /// By worker; the ends of every worker that did anything, failed operations included.
    ends: Vec<Option<Ends>>,
    /// Of workers with a number too high for the list.
    ends_beyond: BTreeMap<WorkerId, Ends>,
}

/// The first look at all records: which stages there are, and who worked in them from when to when.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    stages: BTreeMap<StageId, StageSurvey>,
}

impl Survey {
    /// Reads the source once.
    pub fn of<S: OpSource + ?Sized>(source: &S) -> Result<Self, S::Error> {
        let mut survey = Self::default();
        // Records of one stage come in a row.
        let mut current: Option<(StageId, StageSurvey)> = None;
        source.scan(&mut |op| match &mut current {
            Some((stage, seen)) if *stage == op.stage => seen.add(op),
            _ => {
                if let Some((stage, seen)) = current.take() {
                    survey.stages.insert(stage, seen);
                }
                let mut seen = survey.stages.remove(&op.stage).unwrap_or_default();
                seen.add(op);
                current = Some((op.stage, seen));
            }
        })?;
        survey.stages.extend(current);
        Ok(survey)
    }

    /// Returns the stages that occurred.
    pub fn each(&self) -> impl Iterator<Item = (StageId, &StageSurvey)> {
        self.stages.iter().map(|(stage, survey)| (*stage, survey))
    }

    /// Returns several stages as one.
    pub fn stages(&self, stages: Stages) -> StageSurvey {
        let mut all = StageSurvey::default();
        let wanted = self.stages.iter().filter(|(stage, _)| stages.contains(**stage));
        wanted.for_each(|(_, survey)| all.join(survey));
        all
    }
}

impl StageSurvey {
    /// A span below this part of the stage is too short to stand for it.
    const STAGE_PART_MIN: u64 = 10;
    /// Workers below this number have a place in the list.
    const LISTED_MAX: u32 = 1 << 16;

    fn add(&mut self, op: &OpRecord) {
        let ends = Ends { first: op.end, last: op.end };
        self.add_ends(op.worker, ends);
        let new = KindSpan { kind: op.kind, started: op.start, ended: op.end, ops: 0 };
        let kind = self.kinds[op.kind as usize].get_or_insert(new);
        kind.started = kind.started.min(op.start);
        kind.ended = kind.ended.max(op.end);
        kind.ops += 1;
    }

    fn add_ends(&mut self, worker: WorkerId, ends: Ends) {
        if worker.0 >= Self::LISTED_MAX {
            self.ends_beyond.entry(worker).or_insert(ends).join(ends);
            return;
        }
        let index = worker.0 as usize;
        if index >= self.ends.len() {
            self.ends.resize(index + 1, None);
        }
        self.ends[index].get_or_insert(ends).join(ends);
    }

    fn join(&mut self, other: &Self) {
        for (worker, ends) in other.ends.iter().enumerate() {
            ends.iter().for_each(|ends| self.add_ends(WorkerId(worker as u32), *ends));
        }
        other.ends_beyond.iter().for_each(|(worker, ends)| self.add_ends(*worker, *ends));
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            let Some(theirs) = theirs else { continue };
            let mine = mine.get_or_insert(KindSpan { ops: 0, ..*theirs });
            mine.started = mine.started.min(theirs.started);
            mine.ended = mine.ended.max(theirs.ended);
            mine.ops += theirs.ops;
        }
    }

    /// Returns each kind that occurred, in the order of [`OpKind::ALL`].
    pub fn kinds(&self) -> impl Iterator<Item = KindSpan> + '_ {
        self.kinds.iter().flatten().copied()
    }

    /// Returns when the first operation began.
    pub fn started(&self) -> Option<Moment> {
        self.kinds().map(|kind| kind.started).min()
    }

    /// Returns when the last operation had ended.
    pub fn ended(&self) -> Option<Moment> {
        self.kinds().map(|kind| kind.ended).max()
    }

    fn each_ends(&self) -> impl Iterator<Item = &Ends> {
        self.ends.iter().flatten().chain(self.ends_beyond.values())
    }

    /// Returns how many workers ended an operation.
    pub fn active(&self) -> u32 {
        self.each_ends().count() as u32
    }

    /// Returns how many worker numbers are in use, idle ones below the highest included.
    pub fn workers_count(&self) -> u32 {
        let beyond = self.ends_beyond.keys().last().map_or(0, |worker| worker.0.saturating_add(1));
        beyond.max(self.ends.len() as u32)
    }

    pub(crate) fn first_done(&self) -> Option<Moment> {
        self.each_ends().map(|ends| ends.last).min()
    }

    pub(crate) fn last_done(&self) -> Option<Moment> {
        self.each_ends().map(|ends| ends.last).max()
    }

    pub(crate) fn measured_span(&self, question: &Question<'_>) -> MeasuredSpan {
        let skipped_to =
            Moment::from_ns(question.started.as_ns().saturating_add(ns(question.skip)));
        let full = |rule| {
            let ended = question.ended.max(question.started);
            MeasuredSpan { start: skipped_to.min(ended), end: ended, rule }
        };
        if question.open {
            return full(SpanRule::Schedule);
        }
        if question.full_span {
            return full(SpanRule::FullAsked);
        }
        let all_ran = self.each_ends().map(|ends| ends.first).max();
        let (Some(start), Some(end)) = (all_ran, self.first_done()) else {
            return full(SpanRule::FullTooShort);
        };
        let start = start.max(skipped_to);
        let stage_ns = ns(question.ended.since(question.started)).saturating_sub(ns(question.skip));
        if end <= start || ns(end.since(start)) < stage_ns / Self::STAGE_PART_MIN {
            return full(SpanRule::FullTooShort);
        }
        MeasuredSpan { start, end, rule: SpanRule::AllWorkers }
    }
}

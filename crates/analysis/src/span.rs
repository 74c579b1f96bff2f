//! The measured span: the stretch of a stage in which all workers ran.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_model::{EndpointId, Moment, OpKind, OpOutline, StageId, Visit, WorkerId};
use serde::Serialize;

use crate::source::counted;
use crate::{OpSource, Question, RowAsked, Rows, Stages, ns, serial};

/// How the measured span is to be laid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// Over the time in which all workers were at work.
    #[default]
    AllWorkers,
    /// Over the whole stage.
    Whole,
    /// From the end of the first worker's ramp to the end of the row's last operation.
    FromRamps,
}

/// How the span came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
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
    /// From the end of the first worker's ramp to the end of the row's last operation.
    FromRamps,
}

/// The stretch of the stage that rates and times are taken from; moments are since the run's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredSpan {
    /// Its beginning.
    #[serde(rename = "started_ns", serialize_with = "serial::moment")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub start: Moment,
    /// Its end, not before its beginning.
    #[serde(rename = "ended_ns", serialize_with = "serial::moment")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
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
    /// When the last of them began.
    last_start: Moment,
}

impl Ends {
    fn join(&mut self, other: Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.last_start = self.last_start.max(other.last_start);
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
    /// By worker; the ends of every worker that did anything that counts, failed operations
    /// included.
    ends: Vec<Option<Ends>>,
    /// Of workers with a number too high for the list.
    ends_beyond: BTreeMap<WorkerId, Ends>,
    /// The lowest and the highest number of an endpoint that was asked for something.
    endpoints: Option<(EndpointId, EndpointId)>,
}

/// The first look at all records: which stages there are, and who worked in them from when to when.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    stages: BTreeMap<StageId, StageSurvey>,
}

/// A survey that is being made.
#[derive(Default)]
struct Surveying {
    whole: Survey,
    /// The stage that the last record was of, of which records come in a row.
    current: Option<(StageId, StageSurvey)>,
}

impl Surveying {
    fn add(&mut self, op: &OpOutline) {
        match &mut self.current {
            Some((stage, seen)) if *stage == op.stage => seen.add(op),
            _ => {
                self.whole.merge(self.current.take().into_iter());
                let mut seen = self.whole.stages.remove(&op.stage).unwrap_or_default();
                seen.add(op);
                self.current = Some((op.stage, seen));
            }
        }
    }
}

impl Survey {
    /// Reads the outlines of the source once.
    pub fn of<S: OpSource + ?Sized>(source: &S) -> Result<Self, S::Error> {
        let scan = |visits: &mut [&mut Visit<'_, OpOutline>]| source.scan_outlines(visits);
        let (new, add) = (Surveying::default, Surveying::add);
        let whole = counted(source.threads(), scan, new, add, |mine, theirs| {
            mine.whole.merge(std::mem::take(&mut mine.current).into_iter());
            mine.whole.merge(theirs.whole.stages.into_iter().chain(theirs.current));
        })?;
        let Surveying { whole: mut survey, current } = whole;
        survey.merge(current.into_iter());
        Ok(survey)
    }

    /// Adds what was seen of stages.
    fn merge(&mut self, stages: impl Iterator<Item = (StageId, StageSurvey)>) {
        for (stage, seen) in stages {
            match self.stages.entry(stage) {
                Entry::Occupied(mut mine) => mine.get_mut().join(&seen),
                Entry::Vacant(none) => {
                    none.insert(seen);
                }
            }
        }
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

    fn add(&mut self, op: &OpOutline) {
        // What began in a ramp moves nothing in the span, so that the worker is not at it yet.
        if op.is_measured {
            let ends = Ends { first: op.end, last: op.end.max(op.start), last_start: op.start };
            self.add_ends(op.worker, ends);
        }
        self.add_endpoints((op.endpoint, op.endpoint));
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
            // Bound: `LISTED_MAX`.
            self.ends.resize(index + 1, None);
        }
        self.ends[index].get_or_insert(ends).join(ends);
    }

    fn add_endpoints(&mut self, (lowest, highest): (EndpointId, EndpointId)) {
        let own = self.endpoints.get_or_insert((lowest, highest));
        *own = (own.0.min(lowest), own.1.max(highest));
    }

    fn join(&mut self, other: &Self) {
        other.endpoints.into_iter().for_each(|endpoints| self.add_endpoints(endpoints));
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

    /// Returns how many endpoints were asked for something, at most.
    pub(crate) fn endpoints_max(&self) -> u64 {
        self.endpoints.map_or(0, |(lowest, highest)| 1 + u64::from(highest.0 - lowest.0))
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

    /// Returns what the workers of each row did by themselves, all of them in one row where
    /// they are not told apart.
    pub(crate) fn rows(&self, question: &Question<'_>) -> Vec<RowSurvey> {
        let Rows::Several { workers, rows } = question.rows else {
            let mut row = RowSurvey::new(question.rows.each()[0].workers);
            let all = self.ends.iter().enumerate().filter_map(|(at, ends)| Some((at, (*ends)?)));
            let beyond = self.ends_beyond.iter().map(|(worker, ends)| (worker.0 as usize, *ends));
            for (worker, ends) in all.chain(beyond) {
                row.add(question.started, ends, question.client(worker));
            }
            return vec![row];
        };
        let mut all: Vec<RowSurvey> = rows.iter().map(|row| RowSurvey::new(row.workers)).collect();
        for (number, worker) in workers.iter().enumerate() {
            let Some(worker) = worker else { continue };
            let row = &mut all[worker.row as usize];
            row.measured_from = Some(
                row.measured_from
                    .map_or(worker.measured_from, |from| from.min(worker.measured_from)),
            );
            let beyond = || self.ends_beyond.get(&WorkerId(number as u32)).copied();
            let ends = self.ends.get(number).copied().flatten().or_else(beyond);
            // Of a worker that did nothing after its ramp there is nothing to count.
            if let Some(mut ends) = ends.filter(|ends| ends.last_start >= worker.measured_from) {
                if let Some(until) = worker.measured_until {
                    ends.last = ends.last.min(until);
                    ends.last_start = ends.last_start.min(until);
                }
                row.all_from = row.all_from.max(Some(worker.measured_from));
                row.add(worker.measured_from, ends, question.client(number));
            }
        }
        all
    }
}

/// From when to when a row asked for what counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedFor {
    pub(crate) from: Moment,
    /// Not before that.
    pub(crate) until: Moment,
    /// From when to when all of its workers were at what counts.
    pub(crate) all_from: Moment,
    pub(crate) all_until: Moment,
}

/// What the workers of a row did by themselves.
#[derive(Clone, Debug)]
pub(crate) struct RowSurvey {
    pub(crate) workers: u32,
    pub(crate) active: u32,
    /// The earliest end of a ramp.
    measured_from: Option<Moment>,
    /// The latest end of a ramp.
    all_from: Option<Moment>,
    /// When every worker had ended an operation.
    all_ran: Option<Moment>,
    /// When the first worker had nothing more to do that counts.
    pub(crate) first_done: Option<Moment>,
    pub(crate) last_done: Option<Moment>,
    /// When the last operation began.
    last_started: Option<Moment>,
    pub(crate) took_max: Option<Duration>,
    pub(crate) took_sum: Duration,
    pub(crate) clients: BTreeSet<u16>,
}

impl RowSurvey {
    fn new(workers: u32) -> Self {
        Self {
            workers,
            active: 0,
            measured_from: None,
            all_from: None,
            all_ran: None,
            first_done: None,
            last_done: None,
            last_started: None,
            took_max: None,
            took_sum: Duration::ZERO,
            clients: BTreeSet::new(),
        }
    }

    fn add(&mut self, measured_from: Moment, ends: Ends, client: u16) {
        self.active += 1;
        self.all_ran = self.all_ran.max(Some(ends.first));
        self.first_done = Some(self.first_done.map_or(ends.last, |done| done.min(ends.last)));
        self.last_done = self.last_done.max(Some(ends.last));
        self.last_started = self.last_started.max(Some(ends.last_start));
        let took = ends.last.since(measured_from);
        self.took_max = self.took_max.max(Some(took));
        self.took_sum += took;
        self.clients.insert(client);
    }

    /// Returns from when to when the row asked for what counts: until its last operation had begun,
    /// and its schedules had ended or, without one, a worker had nothing left to do. What is under
    /// way then is waited for by nobody but itself.
    pub(crate) fn asked_for(&self, question: &Question<'_>, row: &RowAsked) -> AskedFor {
        let skipped_to = question.started.after(question.skip);
        let from = self.measured_from.map_or(skipped_to, |from| from.max(skipped_to));
        let until = match row.open {
            true => row.ends.max(self.last_started),
            false => self.first_done.max(self.last_started),
        };
        let until = until.map_or(question.ended, |until| until.min(question.ended)).max(from);
        let all_from = self.all_from.map_or(from, |at| at.clamp(from, until));
        let all_until = self.first_done.map_or(until, |at| at.clamp(all_from, until));
        AskedFor { from, until, all_from, all_until }
    }

    pub(crate) fn measured_span(&self, question: &Question<'_>, row: &RowAsked) -> MeasuredSpan {
        let skipped_to =
            Moment::from_ns(question.started.as_ns().saturating_add(ns(question.skip)));
        let stage_ended = question.ended.max(question.started);
        let full =
            |start: Moment, end: Moment, rule| MeasuredSpan { start: start.min(end), end, rule };
        // What is measured of a row begins after its ramp, and ends when it does itself: another
        // row may go on. Of an open loop the time after its last operation belongs to it.
        // A client that began before the stage of all clients did nothing in it until then.
        let own_start = self.measured_from.map_or(skipped_to, |from| from.max(skipped_to));
        // Without an operation that counts, a closed loop was done within its ramp.
        let unknown = if row.open { stage_ended } else { own_start };
        let own_end = row.ends.max(self.last_done).unwrap_or(unknown);
        let own_end = own_end.clamp(question.started, stage_ended);
        let own = |rule| full(own_start, own_end, rule);
        match row.span {
            Span::FromRamps => {
                // A row may have ended within its ramp.
                let start = self.measured_from.unwrap_or(question.started).min(stage_ended);
                let end = self.last_done.unwrap_or(start).max(start);
                MeasuredSpan { start, end, rule: SpanRule::FromRamps }
            }
            _ if row.open => own(SpanRule::Schedule),
            Span::Whole => full(own_start, stage_ended, SpanRule::FullAsked),
            Span::AllWorkers => {
                let ran = self.all_ran.zip(self.first_done);
                let Some((start, end)) = ran else { return own(SpanRule::FullTooShort) };
                let start = start.max(skipped_to).max(own_start);
                let all_ns = ns(own_end.since(own_start));
                let is_short = ns(end.since(start)) < all_ns / StageSurvey::STAGE_PART_MIN;
                if end <= start || is_short {
                    return own(SpanRule::FullTooShort);
                }
                MeasuredSpan { start, end, rule: SpanRule::AllWorkers }
            }
        }
    }
}

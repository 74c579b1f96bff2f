//! What a first scan keeps of the operations of a row: cells of time, of which the first and the
//! last success are known exactly, so that every gap across a border is.

use std::time::Duration;

use plimsoll_model::{EndpointId, Moment, OpRecord};
use plimsoll_stats::{CoarseHistogram, Percentile};

use super::stall::{self, Stall};
use super::{BrownOut, BrownOuts, Gap, Ledger, TOLD_MAX};
use crate::steadiness::{
    self, INTERVALS_MAX as STEADY_INTERVALS_MAX, INTERVALS_MIN as STEADY_INTERVALS_MIN, OKS_MIN,
};
use crate::{Question, Steadiness, ns};

/// Cells of a row, and of all its endpoints or all its clients together.
const CELLS_MAX: u64 = 65_536;
/// Fewer cells would hide what is to be seen.
const CELLS_MIN: u64 = 1_024;
/// No cell is shorter, as no stall is.
const CELL_NS_MIN: u64 = 1_000_000;
/// Intervals of a row for the latency.
const INTERVALS_MAX: u64 = 512;
/// No interval is shorter.
const INTERVAL_NS_MIN: u64 = 1_000_000_000;
/// So many successes an interval must have for its 99th percentile to be judged.
const SAMPLES_MIN: u64 = 100;
/// So many intervals are to have on average, if there are enough of them.
const SAMPLES_WANTED: u64 = 1_000;
/// So many intervals must have been judged for their median to be the usual.
const INTERVALS_MIN: usize = 8;
/// A brown-out is so many times the usual.
const TIMES_THE_USUAL: u64 = 5;

/// What ended in one cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    /// When the first success ended; `u64::MAX` without one.
    pub(super) first_ok: u64,
    /// When the last success ended.
    pub(super) last_ok: u64,
    /// The earliest moment at which an operation of these was wanted.
    pub(super) ok_wanted: u64,
    /// The same of those that failed; `u64::MAX` without one.
    pub(super) failed_wanted: u64,
    /// How many succeeded.
    pub(super) oks: u32,
    /// What kind and size the first success had.
    pub(super) class: u16,
}

const EMPTY: Cell = Cell {
    first_ok: u64::MAX,
    last_ok: 0,
    ok_wanted: u64::MAX,
    failed_wanted: u64::MAX,
    oks: 0,
    class: 0,
};

/// Cells of time from the start of a stage to its end.
#[derive(Debug)]
pub(super) struct Cells {
    pub(super) started: u64,
    pub(super) ended: u64,
    pub(super) cell_ns: u64,
    pub(super) cells: Vec<Cell>,
}

impl Cells {
    fn new(started: u64, ended: u64, cells_max: u64) -> Self {
        let cells_max = cells_max.max(CELLS_MIN);
        let cell_ns = ended.saturating_sub(started).div_ceil(cells_max).max(CELL_NS_MIN);
        Self { started, ended, cell_ns, cells: Vec::new() }
    }

    fn add(&mut self, op: &OpRecord, class: u16) {
        let end = op.end.as_ns().clamp(self.started, self.ended.max(self.started));
        let index = ((end - self.started) / self.cell_ns) as usize;
        if self.cells.len() <= index {
            self.cells.resize(index + 1, EMPTY);
        }
        let cell = &mut self.cells[index];
        let wanted = op.intended.as_ns();
        if !op.outcome.is_ok() {
            cell.failed_wanted = cell.failed_wanted.min(wanted);
            return;
        }
        if end < cell.first_ok {
            cell.first_ok = end;
            cell.class = class;
        }
        cell.last_ok = cell.last_ok.max(end);
        cell.ok_wanted = cell.ok_wanted.min(wanted);
        cell.oks = cell.oks.saturating_add(1);
    }
}

/// What kind and size an operation has: a kind, and a power of two.
fn class_of(op: &OpRecord) -> u16 {
    (op.kind as u16) << 7 | (64 - op.bytes.leading_zeros()) as u16
}

/// A row as the first scan sees it.
#[derive(Debug)]
pub(crate) struct RowWatch<'a> {
    question: &'a Question<'a>,
    rows_count: u64,
    whole: Cells,
    endpoints: Vec<Option<Cells>>,
    clients: Vec<Option<Cells>>,
    /// How long successes of each kind and size took from their start.
    services: Vec<Option<Box<CoarseHistogram>>>,
    interval_ns: u64,
    intervals: Vec<Option<Box<CoarseHistogram>>>,
    failed: Option<(u64, u64)>,
}

/// What the first scan found of a row, to be told by a second one.
#[derive(Debug)]
pub(crate) struct Watching {
    pub(super) ledger: Ledger,
    pub(super) stalls: Vec<Stall>,
    pub(super) failed: Option<(u64, u64)>,
    pub(super) steadiness: Option<Steadiness>,
}

impl<'a> RowWatch<'a> {
    /// Watches one of so many rows of a stage.
    pub(crate) fn new(question: &'a Question<'a>, rows_count: usize) -> Self {
        let rows_count = (rows_count as u64).max(1);
        let started = question.started.after(question.skip).as_ns();
        let ended = question.ended.as_ns();
        let intervals_max = (INTERVALS_MAX / rows_count).max(32);
        let lasted = ended.saturating_sub(started);
        Self {
            question,
            rows_count,
            whole: Cells::new(started, ended, CELLS_MAX / rows_count),
            endpoints: Vec::new(),
            clients: Vec::new(),
            services: Vec::new(),
            interval_ns: lasted
                .div_ceil(intervals_max)
                .next_multiple_of(INTERVAL_NS_MIN)
                .max(INTERVAL_NS_MIN),
            intervals: Vec::new(),
            failed: None,
        }
    }

    /// Counts an operation.
    pub(crate) fn add(&mut self, op: &OpRecord) {
        let (class, end) = (class_of(op), op.end.as_ns());
        if end < self.whole.started {
            return;
        }
        self.whole.add(op, class);
        let share = CELLS_MAX / self.rows_count / 16;
        let (started, ended) = (self.whole.started, self.whole.ended);
        let new = || Cells::new(started, ended, share);
        at(&mut self.endpoints, op.endpoint.0).get_or_insert_with(new).add(op, class);
        if let Some(&client) = self.question.client_of.get(op.worker.0 as usize) {
            at(&mut self.clients, client).get_or_insert_with(new).add(op, class);
        }
        if !op.outcome.is_ok() {
            let (first, last) = self.failed.unwrap_or((end, end));
            self.failed = Some((first.min(end), last.max(end)));
            return;
        }
        at(&mut self.services, class).get_or_insert_default().record(ns(op.service_time()));
        let index = (end.saturating_sub(started) / self.interval_ns) as u16;
        at(&mut self.intervals, index).get_or_insert_default().record(ns(op.latency()));
    }

    /// Returns what was found, as far as one scan tells; `None` where no operation ended.
    pub(crate) fn found(self) -> Option<Watching> {
        if self.whole.cells.is_empty() {
            return None;
        }
        let high = Percentile::new(95.0).expect("95 is a percentile");
        let usual = |times: &Option<Box<CoarseHistogram>>| {
            let times = times.as_ref()?;
            let (median, high) = (times.percentile(Percentile::P50)?, times.percentile(high)?);
            Some(stall::longest_usual(median, high))
        };
        let usual: Vec<Option<u64>> = self.services.iter().map(usual).collect();
        let mut stalls = stall::stalls(&self.whole, &usual);
        let all_stalled = stalls.clone();
        let of_part = |part: &Option<Cells>| {
            part.iter().flat_map(|cells| stall::stalls(cells, &usual)).collect::<Vec<_>>()
        };
        let covered = |stall: &Stall, by: &[Stall]| by.iter().any(|other| other.covers(stall));
        let several = |parts: &[Option<Cells>]| parts.iter().flatten().count() > 1;
        if several(&self.endpoints) {
            for (endpoint, cells) in self.endpoints.iter().enumerate() {
                let own = of_part(cells).into_iter().filter(|of| !covered(of, &all_stalled));
                let endpoint = Some(EndpointId(endpoint as u16));
                stalls.extend(own.map(|stall| Stall { endpoint, ..stall }));
            }
        }
        if several(&self.clients) {
            for (client, cells) in self.clients.iter().enumerate() {
                let own = of_part(cells).into_iter().filter(|of| !covered(of, &all_stalled));
                let client = Some(client as u16);
                stalls.extend(own.map(|stall| Stall { client, ..stall }));
            }
        }
        stalls.sort_by_key(|stall| (stall.from, stall.endpoint, stall.client));
        let outages_count = stalls.len() as u64;
        let brown_outs = self.brown_outs(&all_stalled);
        stalls.truncate(TOLD_MAX);
        let ledger = Ledger {
            gap_longest: longest_gap(&self.whole),
            failures: None,
            outages_count,
            outages: Vec::new(),
            brown_outs,
        };
        let steadiness = self.steadiness();
        Some(Watching { ledger, stalls, failed: self.failed, steadiness })
    }

    /// Returns how steady the successes came.
    fn steadiness(&self) -> Option<Steadiness> {
        let Cells { cells, cell_ns, started, ended } = &self.whole;
        let oks: u64 = cells.iter().map(|cell| u64::from(cell.oks)).sum();
        let wanted = (oks / OKS_MIN).min(STEADY_INTERVALS_MAX);
        let width = (ended - started).div_ceil(wanted.max(1)).div_ceil(*cell_ns).max(1);
        let whole = (ended - started) / (width * cell_ns);
        if wanted < STEADY_INTERVALS_MIN || whole < STEADY_INTERVALS_MIN {
            return None;
        }
        let mut series = vec![0; whole as usize];
        for (index, cell) in (0u64..).zip(cells) {
            if let Some(interval) = series.get_mut((index / width) as usize) {
                *interval += u64::from(cell.oks);
            }
        }
        let medians = self.services.iter().flatten();
        let medians = medians.filter_map(|times| times.percentile(Percentile::P50));
        let service = Duration::from_nanos(medians.max().unwrap_or(0));
        steadiness::steadiness(&series, Duration::from_nanos(width * cell_ns), service)
    }

    /// Returns when the latency was above the limit; an interval that an outage touches tells of
    /// that, and is passed over.
    fn brown_outs(&self, stalls: &[Stall]) -> Option<BrownOuts> {
        let (interval_ns, intervals) = self.joined();
        let judged: Vec<Option<u64>> = (0u64..)
            .zip(&intervals)
            .map(|(index, times)| {
                let from = self.whole.started + index * interval_ns;
                let is_apart = |of: &Stall| of.until < from || of.from >= from + interval_ns;
                let whole = from + interval_ns <= self.whole.ended && stalls.iter().all(is_apart);
                let enough = whole && times.count() >= SAMPLES_MIN;
                enough.then(|| times.percentile(Percentile::P99)).flatten()
            })
            .collect();
        let mut known: Vec<u64> = judged.iter().flatten().copied().collect();
        known.sort_unstable();
        let usual = known.get(known.len().saturating_sub(1) / 2).copied();
        let (limit, limit_is_asked) = match (self.question.latency_p99_max, usual) {
            (Some(limit), Some(_)) => (ns(limit), true),
            (None, Some(usual)) if known.len() >= INTERVALS_MIN => {
                (usual.saturating_mul(TIMES_THE_USUAL), false)
            }
            _ => return None,
        };
        let mut stretches: Vec<BrownOut> = Vec::new();
        for (index, p99) in (0u64..).zip(&judged) {
            let Some(p99) = p99.filter(|p99| *p99 > limit) else { continue };
            let from = Moment::from_ns(self.whole.started + index * interval_ns);
            let (length, p99) = (Duration::from_nanos(interval_ns), Duration::from_nanos(p99));
            match stretches.last_mut().filter(|last| last.from.after(last.length) == from) {
                Some(last) => {
                    last.length += length;
                    last.p99_max = last.p99_max.max(p99);
                }
                None => stretches.push(BrownOut { from, length, p99_max: p99 }),
            }
        }
        let stretches_count = stretches.len() as u64;
        stretches.truncate(TOLD_MAX);
        Some(BrownOuts {
            limit: Duration::from_nanos(limit),
            limit_is_asked,
            interval: Duration::from_nanos(interval_ns),
            stretches_count,
            stretches,
        })
    }

    /// Returns the intervals, joined in pairs while they hold too few successes for a percentile
    /// that means something.
    fn joined(&self) -> (u64, Vec<CoarseHistogram>) {
        let mut interval_ns = self.interval_ns;
        let mut intervals: Vec<CoarseHistogram> =
            self.intervals.iter().map(|of| of.as_deref().cloned().unwrap_or_default()).collect();
        let all: u64 = intervals.iter().map(CoarseHistogram::count).sum();
        while intervals.len() >= 2 * INTERVALS_MIN
            && all < SAMPLES_WANTED.saturating_mul(intervals.len() as u64)
        {
            intervals = intervals
                .chunks(2)
                .map(|pair| {
                    let mut both = pair[0].clone();
                    pair[1..].iter().for_each(|second| both.merge(second));
                    both
                })
                .collect();
            interval_ns *= 2;
        }
        (interval_ns, intervals)
    }
}

impl Watching {
    /// Tells whether a second scan has something to tell.
    pub(crate) fn wants_more(&self) -> bool {
        self.failed.is_some() || !self.stalls.is_empty()
    }
}

fn at<T>(list: &mut Vec<Option<T>>, index: u16) -> &mut Option<T> {
    let index = usize::from(index);
    if list.len() <= index {
        list.resize_with(index + 1, || None);
    }
    &mut list[index]
}

/// Returns the longest gap between two successes: across a border of cells exactly, and otherwise
/// none, as it is shorter than a cell.
fn longest_gap(cells: &Cells) -> Option<Gap> {
    let gaps = stall::gaps(cells).into_iter().filter_map(|gap| Some((gap.from?, gap.to?)));
    let (from, to) = gaps.max_by_key(|(from, to)| (to - from, std::cmp::Reverse(*from)))?;
    Some(Gap { from: Moment::from_ns(from), length: Duration::from_nanos(to - from) })
}

//! What a first scan keeps of the operations of a row: cells of time, of which the first and the
//! last success are known exactly, so that every gap across a border is.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

use plimsoll_model::{EndpointId, Moment, OpRecord, Standstill};
use plimsoll_stats::{CoarseHistogram, Percentile};

use super::brown_out::Latencies;
use super::stall::{self, Stall};
use super::{ClassFailures, Gap, Ledger};
use crate::span::AskedFor;
use crate::steadiness::{
    self, INTERVALS_MAX as STEADY_INTERVALS_MAX, INTERVALS_MIN as STEADY_INTERVALS_MIN, OKS_MIN,
};
use crate::{Question, Steadiness, ns, standstills};

/// Cells of a row, and of all its endpoints or all its clients together.
const CELLS_MAX: u64 = 65_536;
/// Fewer cells would hide what is to be seen.
const CELLS_MIN: u64 = 1_024;
/// No cell is shorter, as no stall is.
const CELL_NS_MIN: u64 = 1_000_000;
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

/// Cells of time from when a row asks for what counts until it does so no more. What ends after
/// that counts as ending then.
#[derive(Debug)]
pub(super) struct Cells {
    pub(super) started: u64,
    pub(super) ended: u64,
    pub(super) cell_ns: u64,
    pub(super) cells: Vec<Cell>,
    /// When those who asked stood still.
    pub(super) standstills: Vec<Standstill>,
}

impl Cells {
    fn new(started: u64, ended: u64, cells_max: u64, standstills: &[Standstill]) -> Self {
        let cells_max = cells_max.max(CELLS_MIN);
        let cell_ns = ended.saturating_sub(started).div_ceil(cells_max).max(CELL_NS_MIN);
        Self { started, ended, cell_ns, cells: Vec::new(), standstills: standstills.to_vec() }
    }

    fn add(&mut self, op: &OpRecord, class: u16) {
        let end = op.end.as_ns().clamp(self.started, self.ended.max(self.started));
        let index = ((end - self.started) / self.cell_ns) as usize;
        if self.cells.len() <= index {
            // Bound: `cells_max` of `new`, as ends are clamped to the stage.
            self.cells.resize(index + 1, EMPTY);
        }
        let cell = &mut self.cells[index];
        let wanted = op.intended.as_ns();
        if !op.outcome.is_ok() {
            cell.failed_wanted = cell.failed_wanted.min(wanted);
            return;
        }
        cell.add_first(end, class);
        cell.last_ok = cell.last_ok.max(end);
        cell.ok_wanted = cell.ok_wanted.min(wanted);
        cell.oks = cell.oks.saturating_add(1);
    }

    /// Adds what others counted of the same stretch.
    fn merge(&mut self, other: Self) {
        if self.cells.len() < other.cells.len() {
            self.cells.resize(other.cells.len(), EMPTY);
        }
        for (mine, theirs) in self.cells.iter_mut().zip(other.cells) {
            mine.add_first(theirs.first_ok, theirs.class);
            mine.last_ok = mine.last_ok.max(theirs.last_ok);
            mine.ok_wanted = mine.ok_wanted.min(theirs.ok_wanted);
            mine.failed_wanted = mine.failed_wanted.min(theirs.failed_wanted);
            mine.oks = mine.oks.saturating_add(theirs.oks);
        }
    }
}

impl Cell {
    /// Takes a success for the first one if it is. Of those that ended in the same nanosecond the
    /// lowest class is, whichever was seen first: no order of records matters.
    fn add_first(&mut self, end: u64, class: u16) {
        let (first_ok, own) = (self.first_ok, self.class);
        if end < first_ok || (end == first_ok && class < own) {
            (self.first_ok, self.class) = (end, class);
        }
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
    asked: AskedFor,
    whole: Cells,
    /// Told apart only where there are several, as one has the cells of the row.
    endpoints: Option<Vec<Option<Cells>>>,
    /// Likewise.
    clients: Option<Vec<Option<Cells>>>,
    /// How long successes of each kind and size took from their start.
    services: Vec<Option<Box<CoarseHistogram>>>,
    latencies: Latencies,
    failed: Option<(u64, u64)>,
    failed_by_class: BTreeMap<usize, ClassFailures>,
}

/// What the first scan found of a row, to be told by a second one.
#[derive(Debug)]
pub(crate) struct Watching {
    pub(super) ledger: Ledger,
    /// Until when the row asked for anything.
    pub(super) asked_until: u64,
    /// Gaps of the row, its endpoints and its clients that may be stalls.
    pub(super) suspects: Vec<Stall>,
    pub(super) latencies: Latencies,
    pub(super) failed: Option<(u64, u64)>,
    pub(super) steadiness: Option<Steadiness>,
}

impl<'a> RowWatch<'a> {
    /// Watches a row of a stage.
    pub(crate) fn new(
        question: &'a Question<'a>,
        asked: AskedFor,
        has_several_endpoints: bool,
    ) -> Self {
        let rows_count = (question.rows.each().len() as u64).max(1);
        let clients = question.client_of;
        let has_several_clients = clients.iter().any(|client| *client != clients[0]);
        let (started, until) = (asked.from.as_ns(), asked.until.as_ns());
        let ended = question.ended.as_ns().max(until);
        Self {
            question,
            rows_count,
            asked,
            whole: Cells::new(started, until, CELLS_MAX / rows_count, &question.standstills.all),
            endpoints: has_several_endpoints.then(Vec::new),
            clients: has_several_clients.then(Vec::new),
            services: Vec::new(),
            latencies: Latencies::new(started, ended, rows_count, question.latency_p99_max),
            failed: None,
            failed_by_class: BTreeMap::new(),
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
        let standstills = self.question.standstills;
        let new = |client| Cells::new(started, ended, share, standstills.of(client));
        if let Some(endpoints) = &mut self.endpoints {
            at(endpoints, op.endpoint.0).get_or_insert_with(|| new(None)).add(op, class);
        }
        let client = self.question.client_of.get(op.worker.0 as usize);
        if let (Some(clients), Some(&client)) = (&mut self.clients, client) {
            at(clients, client).get_or_insert_with(|| new(Some(client))).add(op, class);
        }
        if !op.outcome.is_ok() {
            let (first, last) = self.failed.unwrap_or((end, end));
            self.failed = Some((first.min(end), last.max(end)));
            let new = || ClassFailures::of(op);
            self.failed_by_class.entry(op.outcome as usize).or_insert_with(new).add(op);
            return;
        }
        at(&mut self.services, class).get_or_insert_default().record(ns(op.service_time()));
        self.latencies.add(end, op.latency());
    }

    /// Adds what another one counted of the same row.
    pub(crate) fn merge(&mut self, other: Self) {
        self.whole.merge(other.whole);
        for (mine, theirs) in
            [(&mut self.endpoints, other.endpoints), (&mut self.clients, other.clients)]
        {
            if let (Some(mine), Some(theirs)) = (mine, theirs) {
                merge(mine, theirs, Cells::merge);
            }
        }
        merge(&mut self.services, other.services, |mine, theirs| mine.merge(&theirs));
        self.latencies.merge(other.latencies);
        let failed = self.failed.into_iter().chain(other.failed);
        self.failed = failed.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        for (class, theirs) in other.failed_by_class {
            match self.failed_by_class.entry(class) {
                Entry::Occupied(mut mine) => mine.get_mut().merge(&theirs),
                Entry::Vacant(none) => {
                    none.insert(theirs);
                }
            }
        }
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
        let mut suspects = stall::stalls(&self.whole, &usual);
        let several = |parts: &&Vec<Option<Cells>>| parts.iter().flatten().count() > 1;
        let of_part = |part: &Option<Cells>| {
            part.iter().flat_map(|cells| stall::stalls(cells, &usual)).collect()
        };
        if let Some(endpoints) = self.endpoints.as_ref().filter(several) {
            for (endpoint, cells) in endpoints.iter().enumerate() {
                let own: Vec<Stall> = of_part(cells);
                let endpoint = Some(EndpointId(endpoint as u16));
                suspects.extend(own.into_iter().map(|stall| Stall { endpoint, ..stall }));
            }
        }
        if let Some(clients) = self.clients.as_ref().filter(several) {
            for (client, cells) in clients.iter().enumerate() {
                let own: Vec<Stall> = of_part(cells);
                let client = Some(client as u16);
                suspects.extend(own.into_iter().map(|stall| Stall { client, ..stall }));
            }
        }
        let ledger = Ledger {
            asked: self.asked.until.since(self.asked.from),
            gap_longest: longest_gap(&self.whole),
            failures: None,
            failures_by_class: self.failed_by_class.values().cloned().collect(),
            outages_count: 0,
            away: Duration::ZERO,
            outages: Vec::new(),
            brown_outs: None,
            standstills_count: self.question.standstills.count,
            stood_still: self.question.standstills.total,
            standstills: self
                .question
                .standstills
                .told(self.whole.started, self.question.ended.as_ns()),
        };
        let (steadiness, asked_until) = (self.steadiness(), self.whole.ended);
        let Self { latencies, failed, .. } = self;
        Some(Watching { ledger, asked_until, suspects, latencies, failed, steadiness })
    }

    /// Returns how steady the successes came while all workers were at what counts.
    fn steadiness(&self) -> Option<Steadiness> {
        let Cells { cells, cell_ns, started, .. } = &self.whole;
        let AskedFor { all_from, all_until, .. } = self.asked;
        let first = (all_from.as_ns() - started).div_ceil(*cell_ns);
        let from = started + first * cell_ns;
        let lasted = all_until.as_ns().checked_sub(from)?;
        // What ends after the first worker has no more to do is in no interval.
        let until = cells.len().min((first + lasted / *cell_ns) as usize);
        let cells = cells.get(first as usize..until)?;
        let oks: u64 = cells.iter().map(|cell| u64::from(cell.oks)).sum();
        let wanted = (oks / OKS_MIN).min(STEADY_INTERVALS_MAX);
        let width = lasted.div_ceil(wanted.max(1)).div_ceil(*cell_ns).max(1);
        let whole = lasted / (width * cell_ns);
        if wanted < STEADY_INTERVALS_MIN || whole < STEADY_INTERVALS_MIN {
            return None;
        }
        // Bound: `STEADY_INTERVALS_MAX`, as `width` is at least that part of the time.
        let mut series = vec![0; whole as usize];
        for (index, cell) in (0u64..).zip(cells) {
            if let Some(interval) = series.get_mut((index / width) as usize) {
                *interval += u64::from(cell.oks);
            }
        }
        let medians = self.services.iter().flatten();
        let medians = medians.filter_map(|times| times.percentile(Percentile::P50));
        let service = Duration::from_nanos(medians.max().unwrap_or(0));
        let from = Moment::from_ns(from).since(self.question.started);
        steadiness::steadiness(&series, (from, Duration::from_nanos(width * cell_ns)), service)
    }
}

impl Watching {
    /// Tells whether a second scan has something to tell.
    pub(crate) fn wants_more(&self) -> bool {
        self.failed.is_some() || !self.suspects.is_empty()
    }
}

pub(super) fn at<T>(list: &mut Vec<Option<T>>, index: u16) -> &mut Option<T> {
    let index = usize::from(index);
    if list.len() <= index {
        // Bound: a number of 16 bits.
        list.resize_with(index + 1, || None);
    }
    &mut list[index]
}

/// Adds those of a list to the others with their numbers.
pub(super) fn merge<T>(mine: &mut Vec<Option<T>>, theirs: Vec<Option<T>>, add: impl Fn(&mut T, T)) {
    if mine.len() < theirs.len() {
        mine.resize_with(theirs.len(), || None);
    }
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        match (mine, theirs) {
            (Some(mine), Some(theirs)) => add(mine, theirs),
            (mine @ None, theirs) => *mine = theirs,
            (Some(_), None) => {}
        }
    }
}

/// Returns the longest gap between two successes: across a border of cells exactly, and otherwise
/// none, as it is shorter than a cell.
fn longest_gap(cells: &Cells) -> Option<Gap> {
    let gaps = stall::gaps(cells).into_iter().filter_map(|gap| Some((gap.from?, gap.to?)));
    let (from, to) = gaps.max_by_key(|(from, to)| (to - from, std::cmp::Reverse(*from)))?;
    Some(Gap {
        from: Moment::from_ns(from),
        length: Duration::from_nanos(to - from),
        stood_still: Duration::from_nanos(standstills::within(&cells.standstills, from, to)),
    })
}

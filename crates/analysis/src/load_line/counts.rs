//! What a probe has come to, counted as its operations are recorded.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{JobId, Moment, OpRecord, Standstill};
use plimsoll_stats::{PROBE_PARTS, ProbeCounts, ProbePart, ProbeStretch};

use super::Slo;

/// The first of so many equal parts of a probe does not count: connections are made, queues fill.
const WARM_UP_PARTS: u128 = 10;

/// What is counted of a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeAsked {
    /// What is to be kept.
    pub slos: Arc<[Slo]>,
    /// The job whose rate is probed.
    pub job: JobId,
    /// For how long operations are due.
    pub lasts: Duration,
}

/// So many operations, or such a part of all, may be due in the last moment of a stage.
const SKIPPED_MIN: f64 = 10.0;
const SKIPPED_PART: f64 = 0.005;

/// What a disturbed client makes of a probe is taken out in cells of about this length, of which a
/// part has no more than so many.
const CELL: Duration = Duration::from_millis(5);
const CELLS_OF_PART_MAX: u128 = 400;

/// Counts the operations of a probe by when they were due.
#[derive(Clone, Debug)]
pub struct ProbeCounter {
    asked: ProbeAsked,
    started: Moment,
    counts: ProbeCounts,
    cells: Vec<Cell>,
    /// By bound and cell.
    judged: Vec<Vec<Judged>>,
}

/// A short piece of a probe.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// How many operations were due in it, and how many ended.
    due: u32,
    ended: u32,
}

/// Those of one bound that were due in a cell: how many ended, and how many missed it.
type Judged = (u32, u32);

/// In which cells of a probe the client was not disturbed.
#[derive(Clone, Debug)]
pub(super) struct Clean(Vec<bool>);

impl ProbeCounter {
    /// Begins to count a stage that begins at `started`.
    pub fn new(asked: ProbeAsked, started: Moment) -> Self {
        let counts = ProbeCounts::new(asked.slos.len());
        let part_ns = Self::counted_for(asked.lasts).as_nanos() / PROBE_PARTS as u128;
        let of_part = (part_ns / CELL.as_nanos()).clamp(1, CELLS_OF_PART_MAX) as usize;
        // The warm-up has as many cells as a part.
        let count = of_part * (1 + PROBE_PARTS);
        // Bound: CELLS_OF_PART_MAX times the parts of a probe, for each thing that is asked.
        let judged = vec![vec![(0, 0); count]; asked.slos.len()];
        // Bound: the same.
        let cells = vec![Cell::default(); count];
        Self { asked, started, counts, cells, judged }
    }

    /// Returns the cell in which a moment lies, cut to the first and the last.
    fn cell(&self, at: Moment) -> usize {
        let lasts = self.asked.lasts.as_nanos();
        let (at, warm_up) = (at.since(self.started).as_nanos(), lasts / WARM_UP_PARTS);
        let of_part = (self.cells.len() / (1 + PROBE_PARTS)) as u128;
        let cell = match at.checked_sub(warm_up) {
            None => (at * of_part).checked_div(warm_up),
            Some(at) => (at * of_part * PROBE_PARTS as u128)
                .checked_div(lasts - warm_up)
                .map(|cell| of_part + cell),
        };
        (cell.unwrap_or(0) as usize).min(self.cells.len() - 1)
    }

    /// Returns the cells that count: not those in which the client was disturbed, nor, after that,
    /// those until as many operations are waiting or under way as before. Then the store is again
    /// as it was, so that the rest goes on where the time before ended. Nothing is said of
    /// operations that were due within the longest bound before it: their end was perhaps seen
    /// late, and all earlier ones had met or missed theirs.
    pub(super) fn clean(&self, disturbed: &[Standstill]) -> Clean {
        let bound = self.asked.slos.iter().filter_map(Slo::latency_max).max().unwrap_or_default();
        let mut under_way = 0;
        let at_begin = self.cells.iter().map(|cell| {
            let before = under_way;
            under_way += i64::from(cell.due) - i64::from(cell.ended);
            before
        });
        let at_begin: Vec<i64> = at_begin.collect();
        let mut clean = vec![true; self.cells.len()];
        let mut all = self.within(disturbed, bound).peekable();
        while let Some((from, mut until)) = all.next() {
            let first = self.cell(earlier(from, bound));
            let back = loop {
                let next = (self.cell(until) + 1).min(clean.len());
                let rest = &at_begin[next..];
                let is_back = |now: &i64| match rest[0].cmp(&at_begin[first]) {
                    Ordering::Greater => *now <= at_begin[first],
                    _ => *now >= at_begin[first],
                };
                let back = rest.iter().position(is_back).map_or(clean.len(), |at| next + at);
                match all.next_if(|(from, _)| self.cell(earlier(*from, bound)) < back) {
                    Some((_, later)) => until = until.max(later),
                    None => break back,
                }
            };
            clean[first..back].fill(false);
        }
        Clean(clean)
    }

    /// Returns where those begin and end that touch the probe, or what is under way behind it.
    fn within(
        &self,
        disturbed: &[Standstill],
        behind: Duration,
    ) -> impl Iterator<Item = (Moment, Moment)> {
        let last = self.started.after(self.asked.lasts).after(behind);
        let touches = move |of: &&Standstill| of.from < last;
        disturbed.iter().filter(touches).map(|of| (of.from, of.until()))
    }

    /// Returns the stretch of the probe in which a moment lies.
    fn stretch(&self, at: Moment) -> ProbeStretch {
        let (at, lasts) = (at.since(self.started).as_nanos(), self.asked.lasts.as_nanos());
        let warm_up = lasts / WARM_UP_PARTS;
        let Some(at) = at.checked_sub(warm_up) else { return ProbeStretch::WarmUp };
        match (at * PROBE_PARTS as u128).checked_div(lasts - warm_up) {
            Some(part) if part < PROBE_PARTS as u128 => ProbeStretch::Part(part as usize),
            _ => ProbeStretch::After,
        }
    }

    /// Returns the stretch that counts in which an operation was due, if it was in one.
    pub(super) fn counted_in(&self, op: &OpRecord) -> Option<usize> {
        match self.stretch(op.intended) {
            ProbeStretch::Part(part) if op.job == self.asked.job => Some(part),
            _ => None,
        }
    }

    /// Takes note of an operation that has ended.
    pub fn add(&mut self, op: &OpRecord) {
        if op.job != self.asked.job {
            return;
        }
        let (due, ended) = (self.stretch(op.intended), self.stretch(op.end));
        self.counts.note(due, ended, op.outcome.is_ok());
        if ended != ProbeStretch::After {
            let cell = self.cell(op.end);
            self.cells[cell].ended += 1;
        }
        let cell = self.cell(op.intended);
        self.cells[cell].due += u32::from(due != ProbeStretch::After);
        let ProbeStretch::Part(_) = due else { return };
        for (judged, slo) in self.judged.iter_mut().zip(&*self.asked.slos) {
            if slo.is_about(op) {
                let (ended, missed) = &mut judged[cell];
                *ended += 1;
                *missed += u32::from(slo.is_missed_by(op));
            }
        }
    }

    /// Returns what was counted. `skipped` operations were due and never issued. A few were due in
    /// the last moment of the stage; more of them waited, as all that may be under way were, from
    /// some moment near its end on, and were not served. Bounds are of what was due while the
    /// client was not disturbed.
    pub fn finish(mut self, skipped: u64, disturbed: &[Standstill]) -> ProbeCounts {
        let Clean(clean) = self.clean(disturbed);
        let of_part = self.cells.len() / (1 + PROBE_PARTS);
        for (bound, judged) in self.judged.iter().enumerate() {
            let counts = |(at, _): &(usize, _)| *at >= of_part && clean[*at];
            for (at, (ended, missed)) in judged.iter().enumerate().filter(counts) {
                let (ended, missed) = (u64::from(*ended), u64::from(*missed));
                self.counts.add(bound, at / of_part - 1, ProbePart { ended, missed });
            }
        }
        let clean = &clean[of_part..];
        self.counts.cells = clean.len() as u64;
        self.counts.cells_clean = clean.iter().filter(|is_clean| **is_clean).count() as u64;
        let mut runs = vec![true; self.cells.len()];
        for (from, until) in self.within(disturbed, Duration::ZERO) {
            runs[self.cell(from)..=self.cell(until)].fill(false);
        }
        let running = self.cells.iter().zip(&runs).skip(of_part).filter(|(_, runs)| **runs);
        let grows = |(cell, _): (&Cell, &bool)| i64::from(cell.due) - i64::from(cell.ended);
        self.counts.growth = running.map(grows).sum();
        let few = (self.counts.due_count() as f64 * SKIPPED_PART).max(SKIPPED_MIN);
        if skipped as f64 > few {
            self.counts.skip(skipped);
        }
        self.counts
    }

    /// Returns how long the stretch is that counts.
    pub fn counted_for(lasts: Duration) -> Duration {
        lasts - lasts / WARM_UP_PARTS as u32
    }
}

impl Clean {
    /// Tells whether an operation that was due then counts.
    pub(super) fn holds(&self, counter: &ProbeCounter, due: Moment) -> bool {
        self.0[counter.cell(due)]
    }
}

fn earlier(at: Moment, by: Duration) -> Moment {
    Moment::from_ns(at.as_ns().saturating_sub(by.as_nanos() as u64))
}

//! Which gaps between successes may be stalls: those that were waited for, far beyond what the
//! row's own gaps say. Of those without a failure the operations have the last word ([`judge`]).
//!
//! [`judge`]: super::judge

use std::time::Duration;

use plimsoll_model::{EndpointId, OpRecord};
use plimsoll_stats::normal_quantile;

use super::watch::{Cell, Cells};
use crate::standstills;

/// Nothing shorter is a stall.
const STALL_NS_MIN: u64 = 500_000_000;
/// A stall is longer than so many cells, as shorter gaps may not be seen at all.
const CELLS_MIN: u64 = 2;
/// A stall is so many times the 99th percentile of the shorter gaps, and of the median service time
/// of what ended it.
const TIMES: u64 = 5;
/// So many shorter gaps there must be where nothing failed.
const GAPS_MIN: u64 = 10;
/// What is more frequent than one gap in so many, and than so few, is how the row is.
const ONE_IN: u64 = 100;
const FEW: u64 = 5;
/// A gap that long comes by chance in one of so many rows, if gaps are about log-normal.
const RARE: f64 = 1_000.0;
/// How long before a stall its rate is taken from.
const BEFORE_NS: u64 = 10_000_000_000;
/// A rate of a shorter stretch, or of fewer successes, says little.
const BEFORE_NS_MIN: u64 = 1_000_000_000;
const BEFORE_OKS_MIN: u64 = 20;
/// What part of the earlier rate counts as regained.
const REGAINED: f64 = 0.95;
/// How many successes at the earlier rate the stretch holds in which it is regained.
const REGAINED_OKS: f64 = 100.0;

/// A stretch without a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Open {
    /// When the success before it ended; `None` at the beginning of the stage.
    pub(super) from: Option<u64>,
    /// When the next success ended; `None` at the end of the stage.
    pub(super) to: Option<u64>,
    /// How long of it an operation was waited for.
    waited: u64,
    /// For how long of that the client stood still, so that nobody waited for the store.
    stood_still: u64,
    /// Whether something failed in it.
    failed: bool,
    /// What kind and size the success had that ended it.
    class: u16,
}

/// A stall of a row, or of a part of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stall {
    pub(super) endpoint: Option<EndpointId>,
    pub(super) client: Option<u16>,
    pub(super) last_success: Option<u64>,
    pub(super) next_success: Option<u64>,
    /// When it began and ended; with the stage where there was no success.
    pub(super) from: u64,
    pub(super) until: u64,
    /// How long of it an operation was waited for.
    pub(super) waited: u64,
    /// For how long of that the client stood still.
    pub(super) stood_still: u64,
    /// Whether something failed in it.
    pub(super) failed: bool,
    pub(super) rate_before: Option<f64>,
    pub(super) regained_after: Option<Duration>,
}

impl Open {
    /// Returns for how long the store was waited for.
    fn waited_for_store(&self) -> u64 {
        self.waited.saturating_sub(self.stood_still)
    }
}

impl Stall {
    /// Returns half of what was waited for.
    pub(super) fn half(&self) -> u64 {
        self.waited / 2
    }

    /// Tells whether an operation, of that client, is of what it is a stall of.
    pub(super) fn is_about(&self, op: &OpRecord, client: Option<u16>) -> bool {
        self.endpoint.is_none_or(|endpoint| endpoint == op.endpoint)
            && self.client.is_none_or(|of| client == Some(of))
    }

    /// Tells whether it is of all of the row.
    pub(super) fn is_of_all(&self) -> bool {
        self.endpoint.is_none() && self.client.is_none()
    }

    /// Tells whether more than half of the other one lies in this one.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let both = self.until.min(other.until).saturating_sub(self.from.max(other.from));
        both > (other.until - other.from) / 2
    }
}

/// Returns every gap across a border of cells, in the order of time.
pub(super) fn gaps(cells: &Cells) -> Vec<Open> {
    let mut gaps = Vec::new();
    let mut last: Option<u64> = None;
    // The earliest wish for an operation that failed since the last success.
    let mut failed_wanted = u64::MAX;
    for cell in &cells.cells {
        if cell.oks == 0 {
            failed_wanted = failed_wanted.min(cell.failed_wanted);
            continue;
        }
        gaps.push(opened(cells, last, Some(cell), failed_wanted.min(cell.failed_wanted)));
        last = Some(cell.last_ok);
        failed_wanted = u64::MAX;
    }
    if failed_wanted < u64::MAX {
        gaps.push(opened(cells, last, None, failed_wanted));
    }
    gaps
}

/// `failed_wanted` may be of a failure in the cell of the next success that came after it: then the
/// gap is not longer for it, only waited for in any case.
fn opened(cells: &Cells, last: Option<u64>, next: Option<&Cell>, failed_wanted: u64) -> Open {
    let to = next.map(|cell| cell.first_ok);
    let (begun, ended) = (last.unwrap_or(cells.started), to.unwrap_or(cells.ended));
    let wanted = next.map_or(u64::MAX, |cell| cell.ok_wanted).min(failed_wanted);
    let wanted = wanted.max(begun);
    Open {
        from: last,
        to,
        waited: ended.saturating_sub(wanted),
        stood_still: standstills::within(&cells.standstills, wanted, ended),
        failed: failed_wanted < u64::MAX,
        class: next.map_or(0, |cell| cell.class),
    }
}

/// Returns how long operations of one kind and size may take and be waited for without a stall, by
/// the median and the 95th percentile of their service times.
pub(super) fn longest_usual(median: u64, high: u64) -> u64 {
    median.saturating_mul(TIMES).max(high)
}

/// Returns the gaps that may be stalls in the order of time; `usual` is by kind and size what is no
/// stall yet.
pub(super) fn stalls(cells: &Cells, usual: &[Option<u64>]) -> Vec<Stall> {
    let gaps = gaps(cells);
    let Some(shortest) = shortest_stall(cells, &gaps) else { return Vec::new() };
    let is_stall = |gap: &&Open| {
        // Before its first success a client connects, and after its last one nothing is wanted.
        let is_between = gap.from.is_some() && gap.to.is_some();
        let usual = usual.get(usize::from(gap.class)).copied().flatten();
        // What operations took has the standstill in it as well.
        let is_long = usual.is_some_and(|usual| gap.waited > usual);
        gap.waited_for_store() >= shortest && (gap.failed || (is_between && is_long))
    };
    let mut earlier = cells.started;
    let of = |gap: &Open| {
        let (from, until) = (gap.from.unwrap_or(cells.started), gap.to.unwrap_or(cells.ended));
        let rate_before = rate_before(cells, earlier, from);
        earlier = until;
        let regained_after =
            rate_before.filter(|_| gap.to.is_some()).and_then(|rate| regained(cells, until, rate));
        Stall {
            endpoint: None,
            client: None,
            last_success: gap.from,
            next_success: gap.to,
            from,
            until,
            waited: gap.waited,
            stood_still: gap.stood_still,
            failed: gap.failed,
            rate_before,
            regained_after,
        }
    };
    gaps.iter().filter(is_stall).map(of).collect()
}

/// Returns how long the shortest stall is; `None` where no gap is one.
///
/// Going up through the gaps as they were waited for, it is the first one that lies beyond what all
/// shorter ones say: beyond five times their 99th percentile, and beyond where a law as wide as the
/// way from their mean to that percentile ends in all but one of a thousand such rows.
fn shortest_stall(cells: &Cells, gaps: &[Open]) -> Option<u64> {
    let least = STALL_NS_MIN.max(CELLS_MIN * cells.cell_ns);
    let oks: u64 = cells.cells.iter().map(|cell| u64::from(cell.oks)).sum();
    let has_failed = gaps.iter().any(|gap| gap.failed);
    // Gaps within a cell are not known one by one; they are shorter than it.
    let within = oks.saturating_sub(gaps.len() as u64);
    let inside: u64 =
        cells.cells.iter().map(|cell| cell.last_ok.saturating_sub(cell.first_ok)).sum();
    let within_ns = inside / within.max(1);
    let mut waited: Vec<u64> = gaps.iter().map(Open::waited_for_store).collect();
    waited.sort_unstable();
    let silent = gaps.iter().filter(|gap| !gap.failed).map(Open::waited_for_store);
    let silent: Vec<u64> = silent.collect();
    let few = FEW.max(oks / ONE_IN);
    let first = waited.partition_point(|gap| *gap < least);
    (first..waited.len()).find_map(|index| {
        let (gap, shorter) = (waited[index], &waited[..index]);
        let count = within + shorter.len() as u64;
        if count < GAPS_MIN {
            // Too few to say what is usual: what failed is out of the usual.
            return has_failed.then_some(gap);
        }
        let ranked = |share: f64| {
            let rank = (share * count as f64).ceil() as u64;
            // All that lie within cells are taken for shorter than those that do not.
            let above = rank.checked_sub(within).filter(|above| *above > 0);
            above.map_or(within_ns, |above| shorter[(above - 1) as usize])
        };
        if silent.iter().filter(|other| **other >= gap).count() as u64 > few {
            return None;
        }
        let sum = inside + shorter.iter().sum::<u64>();
        let mean = (sum / count).max(1);
        let high = ranked(0.99).max(mean);
        let beyond = log_normal_beyond(mean, high, count);
        (gap as f64 > beyond.max((TIMES * high) as f64)).then_some(gap)
    })
}

/// Returns what a log-normal law around `mean` has once in a thousand samples of `count`, by what
/// was found to be its 99th percentile, or its longest where there are fewer. The mean stands for
/// the median, as most gaps are 0 where workers go in step.
fn log_normal_beyond(mean: u64, high: u64, count: u64) -> f64 {
    let count = count as f64;
    let high_at = 0.99f64.min((count - 0.5) / count);
    let rare_at = 1.0 - 1.0 / (RARE * count);
    let times = normal_quantile(rare_at) / normal_quantile(high_at);
    mean as f64 * (high as f64 / mean as f64).powf(times)
}

/// Returns the successes a second before a stall, not before the one that came earlier.
fn rate_before(cells: &Cells, earlier: u64, from: u64) -> Option<f64> {
    let begun = earlier.max(from.saturating_sub(BEFORE_NS));
    // Whole cells up to the one in which the last success ended.
    let first = (begun - cells.started).div_ceil(cells.cell_ns) as usize;
    let until = ((from - cells.started) / cells.cell_ns) as usize + 1;
    let counted = cells.cells.get(first..until)?;
    let oks: u64 = counted.iter().map(|cell| u64::from(cell.oks)).sum();
    let lasted = from.saturating_sub(cells.started + first as u64 * cells.cell_ns);
    let enough = lasted >= BEFORE_NS_MIN && oks >= BEFORE_OKS_MIN;
    enough.then(|| oks as f64 / (lasted as f64 / 1e9))
}

/// Returns how long after a stall the first stretch begins in which the rate is regained.
fn regained(cells: &Cells, until: u64, rate: f64) -> Option<Duration> {
    let length_ns = ((REGAINED_OKS / rate * 1e9) as u64).clamp(BEFORE_NS_MIN, BEFORE_NS);
    let width = length_ns.div_ceil(cells.cell_ns) as usize;
    let wanted = rate * REGAINED * (width as u64 * cells.cell_ns) as f64 / 1e9;
    let first = ((until - cells.started) / cells.cell_ns) as usize;
    let last = ((cells.ended - cells.started) / cells.cell_ns) as usize;
    let oks = |index: usize| cells.cells.get(index).map_or(0, |cell| u64::from(cell.oks));
    let mut held: u64 = (first..first + width).map(oks).sum();
    for begins in first..=last.checked_sub(width)? {
        if held as f64 >= wanted {
            let at = cells.started + begins as u64 * cells.cell_ns;
            return Some(Duration::from_nanos(at.saturating_sub(until)));
        }
        held = held + oks(begins + width) - oks(begins);
    }
    None
}

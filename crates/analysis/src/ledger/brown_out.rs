//! The latency of a row, interval by interval: when it was far above the usual.

use std::time::Duration;

use plimsoll_model::Moment;
use plimsoll_stats::{CoarseHistogram, Percentile};

use super::{BrownOut, BrownOuts, TOLD_MAX};
use crate::ns;

/// Intervals of a row.
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

/// The latencies of a row by the interval in which operations ended.
#[derive(Debug)]
pub(super) struct Latencies {
    started: u64,
    ended: u64,
    interval_ns: u64,
    intervals: Vec<Option<Box<CoarseHistogram>>>,
    /// The limit that is asked for.
    asked: Option<Duration>,
}

impl Latencies {
    /// Returns those of one of so many rows.
    pub(super) fn new(started: u64, ended: u64, rows_count: u64, asked: Option<Duration>) -> Self {
        let intervals_max = (INTERVALS_MAX / rows_count).max(32);
        let interval_ns = ended
            .saturating_sub(started)
            .div_ceil(intervals_max)
            .next_multiple_of(INTERVAL_NS_MIN)
            .max(INTERVAL_NS_MIN);
        Self { started, ended, interval_ns, intervals: Vec::new(), asked }
    }

    /// Counts a success.
    pub(super) fn add(&mut self, end: u64, latency: Duration) {
        let index = (end.saturating_sub(self.started) / self.interval_ns) as u16;
        super::watch::at(&mut self.intervals, index).get_or_insert_default().record(ns(latency));
    }

    /// Adds what another one counted of the same row.
    pub(super) fn merge(&mut self, other: Self) {
        super::watch::merge(&mut self.intervals, other.intervals, |mine, theirs| {
            mine.merge(&theirs);
        });
    }

    /// Returns when the latency was above the limit. An interval that an outage touches, or a
    /// standstill of a client, tells of that and is passed over: `apart` has their bounds.
    pub(super) fn brown_outs(&self, apart: &[(u64, u64)]) -> Option<BrownOuts> {
        let (interval_ns, intervals) = self.joined();
        let judged: Vec<Option<u64>> = (0u64..)
            .zip(&intervals)
            .map(|(index, times)| {
                let from = self.started + index * interval_ns;
                let is_apart =
                    |&(begun, over): &(u64, u64)| over < from || begun >= from + interval_ns;
                let whole = from + interval_ns <= self.ended && apart.iter().all(is_apart);
                let enough = whole && times.count() >= SAMPLES_MIN;
                enough.then(|| times.percentile(Percentile::P99)).flatten()
            })
            .collect();
        let mut known: Vec<u64> = judged.iter().flatten().copied().collect();
        known.sort_unstable();
        let usual = known.get(known.len().saturating_sub(1) / 2).copied();
        let (limit, limit_is_asked) = match (self.asked, usual) {
            (Some(limit), Some(_)) => (ns(limit), true),
            (None, Some(usual)) if known.len() >= INTERVALS_MIN => {
                (usual.saturating_mul(TIMES_THE_USUAL), false)
            }
            _ => return None,
        };
        let mut stretches: Vec<BrownOut> = Vec::new();
        for (index, p99) in (0u64..).zip(&judged) {
            let Some(p99) = p99.filter(|p99| *p99 > limit) else { continue };
            let from = Moment::from_ns(self.started + index * interval_ns);
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

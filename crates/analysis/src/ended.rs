//! What ended in each interval of a stage: whole operations, which add up to the stage's totals.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{Moment, OpRecord};

use crate::ns;

/// What ended in one interval, counted from the stage's beginning on. Each operation counts whole
/// in the interval that it ended in, a border being the end of the interval before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndedInterval {
    /// Where the interval begins.
    pub start: Moment,
    /// How much of it there was: the last one ends with the stage.
    pub length: Duration,
    /// Successes.
    pub ok: u64,
    /// Failures.
    pub failed: u64,
    /// Content bytes of successes.
    pub bytes: u64,
    /// Mean service time of successes, start to end.
    pub service_time_mean: Option<Duration>,
    /// Mean time to first byte of successes that had one.
    pub ttfb_mean: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    ok: u64,
    failed: u64,
    bytes: u64,
    service_ns: u128,
    ttfb_ns: u128,
    with_ttfb: u64,
}

/// Intervals of one kind of operation.
#[derive(Debug, Default)]
pub(crate) struct Ended(BTreeMap<u64, Counts>);

impl Ended {
    /// Counts an operation of a stage with intervals so long.
    pub(crate) fn add(&mut self, op: &OpRecord, started: Moment, interval: Duration) {
        let counts = self.0.entry(interval_of(op, started, interval)).or_default();
        if !op.outcome.is_ok() {
            counts.failed += 1;
            return;
        }
        counts.ok += 1;
        counts.bytes += op.bytes;
        counts.service_ns += u128::from(ns(op.service_time()));
        if let Some(ttfb) = op.ttfb() {
            counts.ttfb_ns += u128::from(ns(ttfb));
            counts.with_ttfb += 1;
        }
    }

    /// Adds what another one counted of the same stage.
    pub(crate) fn merge(&mut self, other: Self) {
        for (index, theirs) in other.0 {
            let mine = self.0.entry(index).or_default();
            mine.ok += theirs.ok;
            mine.failed += theirs.failed;
            mine.bytes += theirs.bytes;
            mine.service_ns += theirs.service_ns;
            mine.ttfb_ns += theirs.ttfb_ns;
            mine.with_ttfb += theirs.with_ttfb;
        }
    }

    /// Returns the intervals in which something ended.
    pub(crate) fn intervals(
        &self,
        (started, ended): (Moment, Moment),
        interval: Duration,
    ) -> Vec<EndedInterval> {
        let mean = |sum: u128, count: u64| {
            let mean = sum.checked_div(u128::from(count))?;
            Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
        };
        let of_each = |(index, counts): (&u64, &Counts)| {
            let start = started.as_ns().saturating_add(index.saturating_mul(ns(interval)));
            let length = ended.as_ns().saturating_sub(start).min(ns(interval));
            EndedInterval {
                start: Moment::from_ns(start),
                length: Duration::from_nanos(length),
                ok: counts.ok,
                failed: counts.failed,
                bytes: counts.bytes,
                service_time_mean: mean(counts.service_ns, counts.ok),
                ttfb_mean: mean(counts.ttfb_ns, counts.with_ttfb),
            }
        };
        self.0.iter().map(of_each).collect()
    }
}

/// Returns the number of the interval that an operation ended in.
fn interval_of(op: &OpRecord, started: Moment, interval: Duration) -> u64 {
    let after = op.end.max(op.start).as_ns().saturating_sub(started.as_ns());
    after.saturating_sub(1) / ns(interval).max(1)
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{ErrorClass, OpKind};

    use super::*;

    const MS: u64 = 1_000_000;

    fn op(start_ms: u64, end_ms: u64, outcome: ErrorClass) -> OpRecord {
        let at = |ms: u64| Moment::from_ns(ms * MS);
        OpRecord {
            bytes: if outcome.is_ok() { 10 } else { 3 },
            first_byte: outcome.is_ok().then(|| at(start_ms + 100)),
            outcome,
            ..OpRecord::plain(OpKind::Get, at(start_ms), at(end_ms))
        }
    }

    #[test]
    fn each_operation_is_whole_in_the_interval_that_it_ended_in() {
        let mut ended = Ended::default();
        let (started, second) = (Moment::from_ns(1_000 * MS), Duration::from_secs(1));
        let ops = [
            // A border belongs to the interval before it.
            op(1_500, 2_000, ErrorClass::Ok),
            op(1_700, 2_400, ErrorClass::Ok),
            op(1_700, 2_900, ErrorClass::Ok),
            op(1_900, 2_700, ErrorClass::Timeout),
            // Nothing ended from 3 s to 4 s.
            op(4_000, 4_200, ErrorClass::Ok),
        ];
        ops.iter().for_each(|op| ended.add(op, started, second));
        let intervals = ended.intervals((started, Moment::from_ns(4_250 * MS)), second);
        let told = intervals.iter().map(|of| {
            let ms = |time: Option<Duration>| time.map(|time| time.as_millis());
            let (start, length) = (of.start.as_ns() / MS, of.length.as_millis());
            let times = (ms(of.service_time_mean), ms(of.ttfb_mean));
            (start, length, of.ok, of.failed, of.bytes, times)
        });
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                (1_000, 1_000, 1, 0, 10, (Some(500), Some(100))),
                (2_000, 1_000, 2, 1, 20, (Some(950), Some(100))),
                (4_000, 250, 1, 0, 10, (Some(200), Some(100))),
            ]
        );
    }
}

//! Whether a row went on as it began: its warm-up, a drift, a cliff, pauses that come back.
//!
//! All of it is of the successes that ended in equal intervals of the row. An open loop has no
//! say in these, as its schedule has.

use std::time::Duration;

use plimsoll_stats::{WarmUp, mser5};
use serde::Serialize;

use crate::serial;

/// Into how many intervals a row is cut at most.
pub(crate) const INTERVALS_MAX: u64 = 500;
/// So many successes an interval has on average; rows with fewer are cut into fewer.
pub(crate) const OKS_MIN: u64 = 20;
/// Fewer intervals tell nothing.
pub(crate) const INTERVALS_MIN: u64 = 50;
/// A drift or a cliff changes the rate by this part at least.
const CHANGE_MIN: f64 = 0.15;
/// And by so many standard errors, of means of intervals.
const ERRORS_MIN: f64 = 6.0;
/// How many intervals make one of those means: neighbours hang together.
const BATCH: usize = 5;
/// Pauses come back where intervals so far apart are as much alike.
const ALIKE_MIN: f64 = 0.5;
/// So often a period must fit.
const PERIODS_MIN: usize = 4;
/// No pause comes back faster: workers that go in step are no pause.
const PERIOD_MIN: Duration = Duration::from_millis(500);
/// Nor within so many times what an operation usually takes.
const PERIOD_SERVICES_MIN: u32 = 5;
/// The rate must vary by this part, or there is no pause.
const VARIES_MIN: f64 = 0.1;

/// How steady a row was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steadiness {
    /// How long the warm-up was, by MSER-5; null where it does not end in the first half.
    #[serde(rename = "warm_up_ns", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub warm_up: Option<Duration>,
    /// How long an interval is.
    #[serde(rename = "interval_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub interval: Duration,
    /// By what part of its mean the rate grew from the end of the warm-up to the end; null without
    /// a drift.
    pub drift: Option<f64>,
    /// When the rate changed at once; null where it did not.
    pub cliff: Option<Cliff>,
    /// How far apart pauses that come back are; null without any.
    #[serde(rename = "period_ns", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub period: Option<Duration>,
}

/// A change of the rate at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cliff {
    /// How long after the start of the stage.
    #[serde(rename = "after_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub after: Duration,
    /// Successes a second before it, after the warm-up.
    #[serde(rename = "before_ops_per_sec")]
    pub before: f64,
    /// Successes a second after it.
    #[serde(rename = "after_ops_per_sec")]
    pub rate_after: f64,
}

/// Returns how steady a row was whose successes, interval by interval, were these; `None` where
/// there are too few to say. `service` is what the slower kinds of its operations usually take.
pub(crate) fn steadiness(oks: &[u64], interval: Duration, service: Duration) -> Option<Steadiness> {
    let series: Vec<f64> = oks.iter().map(|oks| *oks as f64).collect();
    let warm_up = mser5(&series)?;
    let cut = match warm_up {
        WarmUp::Ends(cut) => Some(cut),
        WarmUp::NotFound => None,
    };
    let first = cut.unwrap_or(0);
    let rest = &series[first..];
    let time = |intervals: usize| interval.mul_f64(intervals as f64);
    let is_long =
        |lag: &usize| time(*lag) >= PERIOD_MIN.max(service.saturating_mul(PERIOD_SERVICES_MIN));
    let period = period(rest).filter(is_long);
    let cliff = cliff(rest).filter(|_| period.is_none());
    let drift = drift(rest).filter(|_| cliff.is_none() && period.is_none());
    let seconds = interval.as_secs_f64();
    Some(Steadiness {
        warm_up: cut.map(time),
        interval,
        drift,
        cliff: cliff.map(|(at, before, after)| Cliff {
            after: time(first + at),
            before: before / seconds,
            rate_after: after / seconds,
        }),
        period: period.map(time),
    })
}

fn mean(series: &[f64]) -> f64 {
    series.iter().sum::<f64>() / series.len().max(1) as f64
}

/// Returns the squared standard error of the mean of a series whose neighbours hang together, by
/// means of batches.
fn error_squared(series: &[f64]) -> f64 {
    let means: Vec<f64> = series.chunks_exact(BATCH).map(mean).collect();
    let (count, middle) = (means.len() as f64, mean(&means));
    let squares: f64 = means.iter().map(|mean| (mean - middle).powi(2)).sum();
    squares / (count - 1.0).max(1.0) / count.max(1.0)
}

/// Returns the place, and the mean before and behind it, of the split that explains most, where it
/// explains enough: and more than a line through all would.
fn cliff(series: &[f64]) -> Option<(usize, f64, f64)> {
    let edge = 2 * BATCH;
    let splits = edge..series.len().checked_sub(edge)?.max(edge);
    let gain = |at: usize| {
        let (before, after) = series.split_at(at);
        (mean(before) - mean(after)).powi(2) * before.len() as f64 * after.len() as f64
    };
    let at = splits.max_by(|a, b| gain(*a).total_cmp(&gain(*b)))?;
    let (before, after) = series.split_at(at);
    let (low, high) = (mean(before), mean(after));
    let error = (error_squared(before) + error_squared(after)).sqrt();
    let change = (high - low).abs();
    let is_large = change >= CHANGE_MIN * low.max(high) && change >= ERRORS_MIN * error;
    // Of a slope half of the change lies within either side.
    let inside = |side: &[f64]| {
        let (first, second) = side.split_at(side.len() / 2);
        (mean(first) - mean(second)).abs()
    };
    let is_sudden = inside(before).max(inside(after)) < change / 4.0;
    (is_large && is_sudden).then_some((at, low, high))
}

/// Returns by what part of the mean the least-squares line grows over a series, where it is beyond
/// chance.
fn drift(series: &[f64]) -> Option<f64> {
    let (third, all) = (series.len() / 3, mean(series));
    if third < 2 * BATCH || all <= 0.0 {
        return None;
    }
    let (first, last) = (&series[..third], &series[series.len() - third..]);
    let change = mean(last) - mean(first);
    let error = (error_squared(first) + error_squared(last)).sqrt();
    // The middles of the outer thirds lie two thirds of the series apart.
    let over_all = change * 1.5 / all;
    (over_all.abs() >= CHANGE_MIN && change.abs() >= ERRORS_MIN * error).then_some(over_all)
}

/// Returns the smallest lag of a peak of the autocorrelation, where the rate varies and its double
/// is a peak as well.
fn period(series: &[f64]) -> Option<usize> {
    let middle = mean(series);
    let off: Vec<f64> = series.iter().map(|value| value - middle).collect();
    let variance: f64 = off.iter().map(|off| off * off).sum::<f64>() / off.len() as f64;
    if variance.sqrt() < VARIES_MIN * middle {
        return None;
    }
    let alike = |lag: usize| {
        let pairs = off.iter().zip(&off[lag..]).map(|(a, b)| a * b).sum::<f64>();
        pairs / (off.len() - lag) as f64 / variance
    };
    let lags = 2..series.len() / PERIODS_MIN;
    let all: Vec<f64> = (0..series.len() / 2).map(alike).collect();
    let is_peak = |lag: &usize| {
        let at = all[*lag];
        // Between two peaks there is a valley, or it is a slope.
        let valley = all[1..*lag].iter().copied().fold(f64::INFINITY, f64::min);
        at >= ALIKE_MIN
            && at >= all[lag - 1]
            && at >= all[lag + 1]
            && valley < at / 2.0
            && all.get(2 * lag).is_some_and(|double| *double >= ALIKE_MIN * 0.8)
    };
    lags.clone().find(is_peak)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(100);

    /// About a hundred, with noise of some percent.
    fn noisy(index: usize, level: f64) -> u64 {
        let unit = (plimsoll_workload::mix64(index as u64) >> 11) as f64 / (1u64 << 53) as f64;
        (level * (1.0 + 0.1 * (unit - 0.5))).round() as u64
    }

    fn of(level: impl Fn(usize) -> f64) -> Steadiness {
        let oks: Vec<u64> = (0..400).map(|index| noisy(index, level(index))).collect();
        steadiness(&oks, INTERVAL, Duration::from_millis(1)).unwrap()
    }

    #[test]
    fn a_level_rate_has_nothing() {
        let found = of(|_| 100.0);
        assert!(found.warm_up.unwrap() < Duration::from_secs(4), "{found:?}");
        assert_eq!((found.drift, found.cliff, found.period), (None, None, None));
    }

    #[test]
    fn a_warm_up_is_found() {
        let found = of(|index| if index < 60 { 40.0 } else { 100.0 });
        assert_eq!(found.warm_up, Some(Duration::from_secs(6)));
        assert_eq!((found.drift, found.cliff, found.period), (None, None, None));
    }

    #[test]
    fn a_cliff_is_found_where_it_is() {
        let found = of(|index| if index < 250 { 100.0 } else { 60.0 });
        let cliff = found.cliff.unwrap();
        assert!(cliff.after.abs_diff(Duration::from_secs(25)) <= INTERVAL, "{cliff:?}");
        assert!((cliff.before - 1_000.0).abs() < 20.0 && (cliff.rate_after - 600.0).abs() < 20.0);
        assert_eq!((found.drift, found.period), (None, None));
    }

    #[test]
    fn a_drift_is_no_cliff() {
        let found = of(|index| 100.0 - index as f64 * 0.1);
        // From 100 to 60 around 80: half of the mean.
        let drift = found.drift.unwrap();
        assert!(found.cliff.is_none() && (-0.6..-0.3).contains(&drift), "{found:?}");
    }

    #[test]
    fn pauses_that_come_back_have_a_period() {
        let found = of(|index| if index % 30 < 4 { 20.0 } else { 100.0 });
        let period = found.period.unwrap();
        assert!(period.abs_diff(Duration::from_secs(3)) <= INTERVAL, "{found:?}");
        assert_eq!(found.cliff, None);
        // Workers that go in step with operations of a second are no pauses.
        let oks: Vec<u64> = (0..400).map(|index| if index % 10 == 0 { 100 } else { 0 }).collect();
        let found = steadiness(&oks, INTERVAL, Duration::from_secs(1)).unwrap();
        assert_eq!(found.period, None);
    }

    #[test]
    fn few_intervals_tell_nothing() {
        assert_eq!(steadiness(&[5; 49], INTERVAL, INTERVAL), None);
    }
}

//! Whether a row went on as it began: its warm-up, a drift, a cliff, pauses that come back.
//!
//! All of it is of the successes that ended in equal intervals of the row. An open loop has no
//! say in these, as its schedule has.

use std::time::Duration;

use plimsoll_stats::{WarmUp, mser5, student_t_quantile};
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
/// A warm-up that moves the mean of the row by less hardly moves a figure.
const SHIFT_MIN: f64 = 0.01;
/// Of so many rows of a rate that is level one may be told of a warm-up, and likewise of a cliff
/// and of a drift.
const FALSE_ALARM: f64 = 0.001;
/// Neighbours hang together, so what chance does is seen from means of batches: of so many, as is
/// usual, so that a row in which noise lasts longer has longer ones,
const BATCHES: usize = 10;
/// of so many intervals at least. MSER-5 cuts between such means as well.
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
    /// From the start of the stage to where the row is looked at: to the end of its last ramp.
    #[serde(rename = "started_after_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub started_after: Duration,
    /// How long the warm-up was from there on, by MSER-5; null where it does not end in the first
    /// half, which differs from the second.
    #[serde(rename = "warm_up_ns", serialize_with = "serial::ns_if_known")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub warm_up: Option<Duration>,
    /// By what part of the mean without it the warm-up moves the mean, below 0 where it makes it
    /// less; null where that is chance, or less than a hundredth.
    pub warm_up_shift: Option<f64>,
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

/// Returns how steady a row was whose successes, interval by interval from so long after the start
/// of the stage on, were these; `None` where there are too few to say. `service` is what the slower
/// kinds of its operations usually take.
pub(crate) fn steadiness(
    oks: &[u64],
    (started_after, interval): (Duration, Duration),
    service: Duration,
) -> Option<Steadiness> {
    let series: Vec<f64> = oks.iter().map(|oks| *oks as f64).collect();
    let warm_up = mser5(&series)?;
    let cut = match warm_up {
        WarmUp::Ends(cut) => Some(cut),
        // The least lies anywhere where nothing differs.
        WarmUp::NotFound => is_level(&series).then_some(0),
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
        started_after,
        warm_up: cut.map(time),
        warm_up_shift: cut.and_then(|cut| shift(&series, cut)),
        interval,
        drift,
        cliff: cliff.map(|(at, before, after)| Cliff {
            after: started_after + time(first + at),
            before: before / seconds,
            rate_after: after / seconds,
        }),
        period: period.map(time),
    })
}

fn mean(series: &[f64]) -> f64 {
    series.iter().sum::<f64>() / series.len().max(1) as f64
}

/// What chance does to the sum of a series, for each interval of it: the variance that intervals
/// which have nothing to do with each other would need.
struct Noise {
    variance: f64,
    freedom: f64,
}

/// Returns the noise of a series by means of batches; `None` where there are fewer than two.
fn noise(series: &[f64]) -> Option<Noise> {
    let length = (series.len() / BATCHES).max(BATCH);
    let means: Vec<f64> = series.chunks_exact(length).map(mean).collect();
    if means.len() < 2 {
        return None;
    }
    let (freedom, middle) = ((means.len() - 1) as f64, mean(&means));
    let squares: f64 = means.iter().map(|mean| (mean - middle).powi(2)).sum();
    Some(Noise { variance: length as f64 * squares / freedom, freedom })
}

/// Tells whether a distance of two means with this squared standard error is beyond chance, where
/// so many pairs could have been looked at (Bonferroni).
fn is_beyond_chance(distance: f64, squared_error: f64, freedom: f64, pairs: usize) -> bool {
    let level = 1.0 - FALSE_ALARM / 2.0 / pairs.max(1) as f64;
    distance.abs() > student_t_quantile(level, freedom) * squared_error.sqrt()
}

/// Tells whether the means of two stretches differ beyond chance, by Welch's test.
fn differ(before: &[f64], after: &[f64], pairs: usize) -> bool {
    let (Some(first), Some(second)) = (noise(before), noise(after)) else { return false };
    let of = |noise: &Noise, series: &[f64]| noise.variance / series.len() as f64;
    let (a, b) = (of(&first, before), of(&second, after));
    let distance = mean(before) - mean(after);
    if a + b <= 0.0 {
        return distance != 0.0;
    }
    let freedom = (a + b).powi(2) / (a * a / first.freedom + b * b / second.freedom);
    is_beyond_chance(distance, a + b, freedom, pairs)
}

/// Tells whether the halves of a series differ by no more than chance.
fn is_level(series: &[f64]) -> bool {
    let (first, second) = series.split_at(series.len() / 2);
    !differ(first, second, 1)
}

/// Returns by what part the beginning up to a cut moves the mean, where that is beyond chance. A
/// beginning is short, so its noise is taken to be that of the rest; and no less than what
/// operations that have nothing to do with each other would have (Poisson).
fn shift(series: &[f64], cut: usize) -> Option<f64> {
    let (beginning, rest) = series.split_at(cut);
    let (noise, level) = (noise(rest)?, mean(rest));
    if beginning.is_empty() || level <= 0.0 {
        return None;
    }
    let lengths = 1.0 / beginning.len() as f64 + 1.0 / rest.len() as f64;
    let squared_error = noise.variance.max(level) * lengths;
    let cuts = series.len() / 2 / BATCH;
    let shift = mean(series) / level - 1.0;
    let is_real = is_beyond_chance(mean(beginning) - level, squared_error, noise.freedom, cuts);
    (is_real && shift.abs() >= SHIFT_MIN).then_some(shift)
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
    let change = (high - low).abs();
    // Splits that are less than a batch apart are much the same.
    let pairs = (series.len() - 2 * edge) / BATCH;
    let is_large = change >= CHANGE_MIN * low.max(high) && differ(before, after, pairs);
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
    // The middles of the outer thirds lie two thirds of the series apart.
    let over_all = change * 1.5 / all;
    (over_all.abs() >= CHANGE_MIN && differ(first, last, 1)).then_some(over_all)
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
        steadiness(&oks, (Duration::ZERO, INTERVAL), Duration::from_millis(1)).unwrap()
    }

    #[test]
    fn a_level_rate_has_nothing() {
        let found = of(|_| 100.0);
        assert!(found.warm_up.unwrap() < Duration::from_secs(4), "{found:?}");
        assert_eq!(found.warm_up_shift, None);
        assert_eq!((found.drift, found.cliff, found.period), (None, None, None));
    }

    #[test]
    fn a_warm_up_is_found() {
        let found = of(|index| if index < 60 { 40.0 } else { 100.0 });
        assert_eq!(found.warm_up, Some(Duration::from_secs(6)));
        // 60 of 400 intervals at 40 % of the rest: 9 % less.
        let shift = found.warm_up_shift.unwrap();
        assert!((shift + 0.09).abs() < 0.005, "{shift}");
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
        let found = steadiness(&oks, (Duration::ZERO, INTERVAL), Duration::from_secs(1)).unwrap();
        assert_eq!(found.period, None);
    }

    /// A rate whose noise lasts for some intervals, and what counting adds: sound, and level.
    fn sound(seed: u64, count: usize, level: f64, spread: f64, lasting: f64) -> Vec<u64> {
        let mut state = seed;
        let mut normal = || {
            // The sum of twelve even shares has the variance 1.
            let mut sum = -6.0;
            for _ in 0..12 {
                state = plimsoll_workload::mix64(state.wrapping_add(1));
                sum += (state >> 11) as f64 / (1u64 << 53) as f64;
            }
            sum
        };
        let kept = if lasting > 0.0 { (-1.0 / lasting).exp() } else { 0.0 };
        let mut slow = normal();
        let mut next = || {
            slow = kept * slow + (1.0 - kept * kept).sqrt() * normal();
            let mean = (level * (1.0 + spread * slow)).max(0.0);
            (mean + mean.sqrt() * normal()).round().max(0.0) as u64
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn sound_rows_that_are_short_or_noisy_are_told_of_nothing() {
        let service = Duration::from_millis(1);
        let (mut rows, mut told, mut unsteady) = (0, 0, 0);
        for (count, level) in [(50, 20.0), (100, 20.0), (500, 20.0), (500, 200.0)] {
            for (spread, lasting) in [(0.0, 0.0), (0.2, 0.0), (0.2, 2.0), (0.4, 2.0)] {
                for seed in 0..100_u64 {
                    let oks = sound(seed << 32, count, level, spread, lasting);
                    let found = steadiness(&oks, (Duration::ZERO, INTERVAL), service).unwrap();
                    rows += 1;
                    unsteady += usize::from(found.warm_up.is_none());
                    let any = found.cliff.is_some()
                        || found.drift.is_some()
                        || found.period.is_some()
                        || found.warm_up_shift.is_some();
                    told += usize::from(any);
                }
            }
        }
        // One in a thousand each, as is stated: of 1,600 rows about five.
        assert!(told <= 16 && unsteady <= 16, "{told} and {unsteady} of {rows} rows");
    }

    #[test]
    fn what_noise_hides_is_told_where_there_is_enough_of_it() {
        let service = Duration::from_millis(1);
        let (mut cliffs, mut warm_ups) = (0, 0);
        for seed in 0..100_u64 {
            let noisy = sound(seed << 32, 500, 100.0, 0.1, 2.0);
            let change = |part: f64, from: usize, to: usize| {
                let of = |(index, oks): (usize, &u64)| match (from..to).contains(&index) {
                    true => (*oks as f64 * part) as u64,
                    false => *oks,
                };
                noisy.iter().enumerate().map(of).collect::<Vec<u64>>()
            };
            let found =
                steadiness(&change(0.6, 300, 500), (Duration::ZERO, INTERVAL), service).unwrap();
            cliffs += usize::from(found.cliff.is_some());
            let found =
                steadiness(&change(0.3, 0, 50), (Duration::ZERO, INTERVAL), service).unwrap();
            warm_ups += usize::from(found.warm_up_shift.is_some_and(|shift| shift < -0.05));
        }
        assert!(cliffs >= 95 && warm_ups >= 95, "{cliffs} cliffs, {warm_ups} warm-ups");
    }

    #[test]
    fn few_intervals_tell_nothing() {
        assert_eq!(steadiness(&[5; 49], (Duration::ZERO, INTERVAL), INTERVAL), None);
    }
}

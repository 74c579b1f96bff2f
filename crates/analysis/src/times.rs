//! The distribution of a time.

use std::time::Duration;

use plimsoll_stats::{Histogram, Percentile};
use serde::{Serialize, Serializer};

use crate::serial;

/// Declares the distribution with its percentiles: each from so many samples on.
macro_rules! times {
    ($($name:ident = $percent:literal, $since:literal;)+) => {
        /// The distribution of a time, in figures; `None` is unknown for want of samples.
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub struct Times {
            /// How many operations it is taken from.
            #[serde(rename = "samples_count")]
            pub samples: u64,
            /// The smallest, exactly.
            #[serde(serialize_with = "serial::ns_if_known")]
            #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
            pub min: Option<Duration>,
            $(
                #[doc = $since]
                #[serde(serialize_with = "serial::ns_if_known")]
                #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
                pub $name: Option<Duration>,
            )+
            /// Between this and `p99_high` the true 99th percentile lies with 95 % probability,
            /// if operations are independent of each other: by the ranks of the samples, from 563
            /// on.
            #[serde(serialize_with = "serial::ns_if_known")]
            #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
            pub p99_low: Option<Duration>,
            /// See `p99_low`.
            #[serde(serialize_with = "serial::ns_if_known")]
            #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
            pub p99_high: Option<Duration>,
            /// The largest, exactly.
            #[serde(serialize_with = "serial::ns_if_known")]
            #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
            pub max: Option<Duration>,
            /// The mean, to the nanosecond.
            #[serde(serialize_with = "serial::ns_if_known")]
            #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
            pub mean: Option<Duration>,
            /// The sample standard deviation (n − 1), from 2 samples on.
            #[serde(serialize_with = "serial::ns_if_known")]
            #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
            pub std_dev: Option<Duration>,
            /// Pairs of the smallest nanoseconds of a bin and how many lie in it, smallest first;
            /// bins without any are absent, and so are all where they were not asked for.
            #[serde(rename = "bins", serialize_with = "bins")]
            #[serde(skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<(u64, u64)>>"))]
            pub histogram: Option<Box<Histogram>>,
        }

        impl Times {
            /// Returns the figures of a histogram of nanoseconds, and all of it where it is wanted.
            pub fn of(times: &Histogram, with_histogram: bool) -> Self {
                let (p99_low, p99_high) = p99_interval(times).unzip();
                Self {
                    p99_low,
                    p99_high,
                    samples: times.count(),
                    min: times.min().map(Duration::from_nanos),
                    $($name: percentile(times, $percent),)+
                    max: times.max().map(Duration::from_nanos),
                    mean: times.mean().map(rounded),
                    std_dev: times.std_dev().map(rounded),
                    histogram: with_histogram.then(|| Box::new(times.clone())),
                }
            }

            /// Returns the time that so many percent do not exceed; `None` for want of samples, as
            /// at least one has to lie above it, or below it before the median. Others than the
            /// usual ones are known only of a whole histogram.
            pub fn percentile(&self, percent: f64) -> Option<Duration> {
                $(if percent == $percent {
                    return self.$name;
                })+
                self.histogram.as_ref().and_then(|times| percentile(times, percent))
            }
        }
    };
}

times! {
    p1 = 1.0, "From 101 samples on.";
    p5 = 5.0, "From 21 samples on.";
    p10 = 10.0, "From 11 samples on.";
    p25 = 25.0, "From 5 samples on.";
    p50 = 50.0, "The median, from 2 samples on.";
    p75 = 75.0, "From 4 samples on.";
    p90 = 90.0, "From 10 samples on.";
    p95 = 95.0, "From 20 samples on.";
    p99 = 99.0, "From 100 samples on.";
    p99_5 = 99.5, "From 200 samples on.";
    p99_9 = 99.9, "From 1,000 samples on.";
    p99_95 = 99.95, "From 2,000 samples on.";
    p99_99 = 99.99, "From 10,000 samples on.";
}

impl Times {
    /// How many samples p99.9 needs.
    pub const P99_9_SAMPLES_MIN: u64 = 1_000;
    /// The percentiles that a detailed report shows, in percent.
    pub const PERCENTS: [f64; 11] =
        [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];

    /// Returns the sum of all, in nanoseconds.
    pub fn sum_ns(&self) -> f64 {
        self.mean.map_or(0.0, |mean| mean.as_nanos() as f64 * self.samples as f64)
    }
}

/// Returns a percentile, `None` for want of samples: from the median on at least one has to lie
/// above it, or it is the maximum by another name; before it at least one below.
pub(crate) fn percentile(times: &Histogram, percent: f64) -> Option<Duration> {
    let samples_min = match percent {
        ..50.0 => (100.0 / percent).floor() as u64 + 1,
        // Nudged down, as 100 - 99.9 is not exactly a tenth.
        _ => (100.0 / (100.0 - percent) * (1.0 - 1e-9)).ceil() as u64,
    };
    let percentile = Percentile::new(percent).filter(|_| times.count() >= samples_min)?;
    times.percentile(percentile).map(Duration::from_nanos)
}

/// Returns where the 99th percentile lies with a probability of 95 %: of n independent samples the
/// number below it is binomial, so it lies between those of the ranks 0.99 n ± 1.96 √(0.0099 n),
/// the upper one more. Source: H. A. David, H. N. Nagaraja, *Order Statistics*, 3rd edition, 2003,
/// section 7.1.
fn p99_interval(times: &Histogram) -> Option<(Duration, Duration)> {
    let count = times.count() as f64;
    let half = 1.96 * (count * 0.99 * 0.01).sqrt();
    let at = |rank: f64| {
        let percentile = Percentile::new(rank / count * 100.0)?;
        times.percentile(percentile).map(Duration::from_nanos)
    };
    let (low, high) = ((count * 0.99 - half).floor(), (count * 0.99 + half).ceil() + 1.0);
    (low >= 1.0 && high <= count).then(|| Some((at(low)?, at(high)?))).flatten()
}

fn rounded(ns: f64) -> Duration {
    Duration::from_nanos(ns.round() as u64)
}

fn bins<S: Serializer>(times: &Option<Box<Histogram>>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(times.iter().flat_map(|times| times.bins()).map(|bin| (bin.lowest, bin.count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_p99_is_that_of_the_ranks() {
        let of = |count: u64| {
            let mut times = Histogram::default();
            (1..=count).for_each(|ms| times.record(ms * 1_000_000));
            Times::of(&times, false)
        };
        // 9,900 ± 1.96 × √99 = 9,900 ± 19.5: the ranks 9,880 and 9,921, which are milliseconds.
        let found = of(10_000);
        let ms = |time: Option<Duration>| time.unwrap().as_secs_f64() * 1e3;
        assert!((ms(found.p99_low) / 9_880.0 - 1.0).abs() < 1e-3, "{found:?}");
        assert!((ms(found.p99_high) / 9_921.0 - 1.0).abs() < 1e-3, "{found:?}");
        assert_eq!(of(350).p99_high, None);
        assert!(of(700).p99_high.is_some());
    }
}

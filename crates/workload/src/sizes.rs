//! Object sizes: fixed, log-uniform, log-normal, by histogram or from a list, and the command
//! line's way to write them.

use std::fmt;
use std::sync::Arc;

use plimsoll_model::{Bytes, ObjectId, UnitError};

use crate::Random;

const SIZE_DOMAIN: u64 = 0x7369_7a65;

/// One bar of a size histogram: sizes above the previous bar's up to this one's, evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeBar {
    /// The largest size in the bar.
    pub up_to: u64,
    /// How often the bar is taken, relative to the others.
    pub weight: u64,
}

/// How large objects are. The size of an object is a function of the seed and its id.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeDist {
    /// All of one size.
    Fixed(u64),
    /// The logarithm is evenly distributed between both ends, so that every doubling is as likely
    /// as the next.
    LogUniform {
        /// The smallest size, at least 1.
        min: u64,
        /// The largest size.
        max: u64,
    },
    /// A bar by weight, then evenly within the bar.
    Histogram(Vec<SizeBar>),
    /// The logarithm is normally distributed. What would be more than 5 GiB, or less
    /// than a byte, is that.
    LogNormal {
        /// Half of the sizes are below it.
        median: u64,
        /// The standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// These, each as likely as the next.
    List(Arc<[u64]>),
    /// So many times a unit.
    Steps {
        /// The unit.
        unit: u64,
        /// How many times it.
        steps: Arc<[SizeStep]>,
    },
}

/// Numbers of which each is as likely as the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeStep {
    /// The first.
    pub from: u64,
    /// The last.
    pub to: u64,
    /// How often one of them is taken, relative to those of others.
    pub weight: u64,
}

/// The largest object one PUT can write (S3's limit).
pub(crate) const PUT_BYTES_MAX: u64 = 5 << 30;
/// The most parts of one object (S3's limit).
pub(crate) const PARTS_MAX: u32 = 10_000;
/// With a larger deviation most sizes would be at one of the limits.
pub(crate) const SIGMA_MAX: f64 = 8.0;

/// Why a text names no sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeParseError {
    /// A part is no size.
    Unit(UnitError),
    /// A size or weight is 0.
    Zero,
    /// The minimum is above the maximum.
    Reversed(u64, u64),
    /// The deviation is not above 0 and at most 8.
    Sigma(String),
    /// It is neither SIZE, MIN,MAX, SIZE:WEIGHT,... nor lognormal:MEDIAN,SIGMA.
    Form(String),
}

impl fmt::Display for SizeParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit(error) => error.fmt(f),
            Self::Zero => f.write_str("sizes and weights must be at least 1"),
            Self::Reversed(min, max) => {
                write!(f, "the minimum {} is above the maximum {}", Bytes(*min), Bytes(*max))
            }
            Self::Sigma(text) => {
                write!(f, "`{text}` is not a deviation above 0 and at most {SIGMA_MAX}")
            }
            Self::Form(text) => write!(
                f,
                "`{text}` is not one of SIZE, MIN,MAX, SIZE:WEIGHT,SIZE:WEIGHT,... and \
                 lognormal:MEDIAN,SIGMA"
            ),
        }
    }
}

impl std::error::Error for SizeParseError {}

impl From<UnitError> for SizeParseError {
    fn from(error: UnitError) -> Self {
        Self::Unit(error)
    }
}

impl SizeDist {
    /// Without a minimum, random sizes span this factor: eight doublings, which gives warp's mean
    /// of 0.18 max.
    const RANDOM_SPAN: u64 = 256;

    /// Returns the sizes that `text` names: `SIZE`, `MIN,MAX`, `SIZE:WEIGHT,...` or
    /// `lognormal:MEDIAN,SIGMA`; `random` asks for log-uniform sizes up to a lone `SIZE`.
    pub fn parse(text: &str, random: bool) -> Result<Self, SizeParseError> {
        let size = |text: &str| match Bytes::parse(text)?.0 {
            0 => Err(SizeParseError::Zero),
            size => Ok(size),
        };
        if let Some(rest) = text.strip_prefix("lognormal:") {
            let parts =
                rest.split_once(',').ok_or_else(|| SizeParseError::Form(text.to_owned()))?;
            let sigma = parts.1.trim().parse().ok().filter(|sigma| is_sigma(*sigma));
            let sigma = sigma.ok_or_else(|| SizeParseError::Sigma(parts.1.trim().to_owned()))?;
            return Ok(Self::LogNormal { median: size(parts.0)?, sigma });
        }
        if text.contains(':') {
            return Self::parse_histogram(text, size);
        }
        let parts: Vec<&str> = text.split(',').collect();
        let (min, max) = match (&*parts, random) {
            ([one], false) => return Ok(Self::Fixed(size(one)?)),
            ([one], true) => {
                let max = size(one)?;
                ((max / Self::RANDOM_SPAN).max(1), max)
            }
            ([min, max], _) => (size(min)?, size(max)?),
            _ => return Err(SizeParseError::Form(text.to_owned())),
        };
        match min.cmp(&max) {
            std::cmp::Ordering::Greater => Err(SizeParseError::Reversed(min, max)),
            std::cmp::Ordering::Equal => Ok(Self::Fixed(max)),
            std::cmp::Ordering::Less => Ok(Self::LogUniform { min, max }),
        }
    }

    fn parse_histogram(
        text: &str,
        size: impl Fn(&str) -> Result<u64, SizeParseError>,
    ) -> Result<Self, SizeParseError> {
        let form = || SizeParseError::Form(text.to_owned());
        let mut bars = Vec::new();
        for bar in text.split(',') {
            let (up_to, weight) = bar.split_once(':').ok_or_else(form)?;
            let weight: u64 = weight.trim().parse().map_err(|_| form())?;
            let up_to = size(up_to)?;
            if weight == 0 {
                return Err(SizeParseError::Zero);
            }
            bars.push(SizeBar { up_to, weight });
        }
        bars.sort_by_key(|bar| bar.up_to);
        Ok(Self::Histogram(bars))
    }

    /// Returns the size of object `id` in a run with `seed`.
    pub fn size(&self, seed: u64, id: ObjectId) -> u64 {
        match self {
            Self::Fixed(size) => *size,
            Self::LogUniform { min, max } => {
                log_uniform(&mut Random::new(seed, SIZE_DOMAIN, id.as_u64()), *min, *max)
            }
            Self::Histogram(bars) => {
                let mut random = Random::new(seed, SIZE_DOMAIN, id.as_u64());
                let mut left = random.below(bars.iter().map(|bar| bar.weight).sum());
                let mut below = 0;
                for bar in bars {
                    if left < bar.weight {
                        return below + 1 + random.below((bar.up_to - below).max(1));
                    }
                    left -= bar.weight;
                    below = bar.up_to;
                }
                unreachable!("the weights add up to their sum")
            }
            Self::LogNormal { median, sigma } => {
                let mut random = Random::new(seed, SIZE_DOMAIN, id.as_u64());
                let size = *median as f64 * (sigma * standard_normal(&mut random)).exp();
                (size.round() as u64).clamp(1, PUT_BYTES_MAX)
            }
            Self::List(sizes) => {
                let mut random = Random::new(seed, SIZE_DOMAIN, id.as_u64());
                sizes[random.below(sizes.len() as u64) as usize]
            }
            Self::Steps { unit, steps } => {
                let mut random = Random::new(seed, SIZE_DOMAIN, id.as_u64());
                let mut left = random.below(steps.iter().map(|step| step.weight).sum());
                let step = steps.iter().find(|step| {
                    let is_it = left < step.weight;
                    left = left.saturating_sub(step.weight);
                    is_it
                });
                let SizeStep { from, to, .. } = step.expect("the weights add up to their sum");
                unit * (from + random.below(to - from + 1))
            }
        }
    }

    /// Tells whether a size may be drawn.
    pub fn allows(&self, size: u64) -> bool {
        match self {
            Self::Fixed(only) => *only == size,
            Self::LogUniform { min, max } => (*min..=*max).contains(&size),
            Self::LogNormal { .. } => (1..=PUT_BYTES_MAX).contains(&size),
            Self::List(sizes) => sizes.contains(&size),
            Self::Histogram(bars) => {
                let mut below = 0;
                bars.iter().any(|bar| {
                    let is_in = bar.weight > 0 && below < size && size <= bar.up_to;
                    below = bar.up_to;
                    is_in
                })
            }
            Self::Steps { unit, steps } => {
                let number = size / unit;
                let is_in = |step: &SizeStep| (step.from..=step.to).contains(&number);
                size.is_multiple_of(*unit) && steps.iter().any(is_in)
            }
        }
    }

    /// Returns the largest size there can be.
    pub fn max(&self) -> u64 {
        match self {
            Self::Fixed(size) | Self::LogUniform { max: size, .. } => *size,
            Self::Histogram(bars) => bars.iter().map(|bar| bar.up_to).max().unwrap_or(0),
            Self::LogNormal { .. } => PUT_BYTES_MAX,
            Self::List(sizes) => sizes.iter().copied().max().unwrap_or(0),
            Self::Steps { unit, steps } => {
                unit * steps.iter().map(|step| step.to).max().unwrap_or(0)
            }
        }
    }

    /// Returns the smallest size there can be.
    pub fn min(&self) -> u64 {
        match self {
            Self::Fixed(size) | Self::LogUniform { min: size, .. } => *size,
            Self::Histogram(bars) => {
                let mut below = 0;
                let first = bars.iter().find(|bar| {
                    let has_any = bar.weight > 0;
                    below = if has_any { below } else { bar.up_to };
                    has_any
                });
                first.map_or(0, |_| below + 1)
            }
            Self::LogNormal { .. } => 1,
            Self::List(sizes) => sizes.iter().copied().min().unwrap_or(0),
            Self::Steps { unit, steps } => {
                unit * steps.iter().map(|step| step.from).min().unwrap_or(0)
            }
        }
    }

    /// Returns the mean size; of log-normal ones as if nothing were above the largest.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(size) => *size as f64,
            Self::LogUniform { min, max } => {
                let (min, max) = (*min as f64, *max as f64 + 1.0);
                (max - min) / (max / min).ln()
            }
            Self::Histogram(bars) => {
                let total: u64 = bars.iter().map(|bar| bar.weight).sum();
                let mut below = 0;
                let mut sum = 0.0;
                for bar in bars {
                    sum += (below + 1 + bar.up_to) as f64 / 2.0 * bar.weight as f64;
                    below = bar.up_to;
                }
                sum / total as f64
            }
            Self::LogNormal { median, sigma } => {
                *median as f64 * (sigma * sigma / 2.0).exp().min(PUT_BYTES_MAX as f64)
            }
            Self::List(sizes) => {
                sizes.iter().map(|size| *size as f64).sum::<f64>() / sizes.len() as f64
            }
            Self::Steps { unit, steps } => {
                let weight: u64 = steps.iter().map(|step| step.weight).sum();
                let of = |step: &SizeStep| {
                    step.weight as f64 * (step.from as f64 / 2.0 + step.to as f64 / 2.0)
                };
                *unit as f64 * steps.iter().map(of).sum::<f64>() / weight as f64
            }
        }
    }
}

/// Tells whether the logarithm of sizes can deviate so much.
pub(crate) fn is_sigma(sigma: f64) -> bool {
    sigma > 0.0 && sigma <= SIGMA_MAX
}

/// Returns a number of the standard normal distribution (G. Box, M. Muller: A note on the
/// generation of random normal deviates, 1958); the second one is not kept.
fn standard_normal(random: &mut Random) -> f64 {
    // 1 - [0, 1) is never 0.
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

/// Returns a number from `min` (at least 1) to `max` whose logarithm is evenly distributed.
pub(crate) fn log_uniform(random: &mut Random, min: u64, max: u64) -> u64 {
    debug_assert!(1 <= min && min <= max);
    let (low, high) = (min as f64, max as f64 + 1.0);
    let value = low * (high / low).powf(random.unit());
    (value as u64).clamp(min, max)
}

#[cfg(test)]
mod tests {
    use plimsoll_model::WorkerId;

    use super::*;

    fn sample(dist: &SizeDist, count: u64) -> Vec<u64> {
        (0..count).map(|number| dist.size(3, ObjectId::new(WorkerId(0), number))).collect()
    }

    #[test]
    fn the_three_forms() {
        let log = |min, max| Ok(SizeDist::LogUniform { min, max });
        let bar = |up_to, weight| SizeBar { up_to, weight };
        assert_eq!(SizeDist::parse("10MiB", false), Ok(SizeDist::Fixed(10 << 20)));
        assert_eq!(SizeDist::parse("1MiB", true), log(4_096, 1 << 20));
        assert_eq!(SizeDist::parse("100", true), log(1, 100));
        assert_eq!(SizeDist::parse("1KB,1KiB", false), log(1_000, 1_024));
        assert_eq!(SizeDist::parse("5,5", true), Ok(SizeDist::Fixed(5)));
        let bars = vec![bar(1_024, 3), bar(4_096, 1)];
        assert_eq!(SizeDist::parse("4KiB:1,1024:3", false), Ok(SizeDist::Histogram(bars)));
    }

    #[test]
    fn log_normal_sizes_have_the_known_median_mean_and_spread() {
        let dist = SizeDist::parse("lognormal:64KiB,1.5", false).unwrap();
        assert_eq!(dist, SizeDist::LogNormal { median: 65_536, sigma: 1.5 });
        let logs: Vec<f64> =
            sample(&dist, 80_000).iter().map(|&size| (size as f64 / 65_536.0).ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let square = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / logs.len() as f64;
        // Standard errors: 1.5 / sqrt(80000) = 0.0053 of the mean, 0.0038 of the deviation.
        assert!(mean.abs() < 0.02 && (square.sqrt() - 1.5).abs() < 0.015, "{mean} {square}");
        // 65536 * e^(1.5^2 / 2) = 65536 * e^1.125.
        assert!((dist.mean() - 201_865.0).abs() < 1.0, "{}", dist.mean());
        for text in ["lognormal:1MiB", "lognormal:1MiB,0", "lognormal:1MiB,nan", "lognormal:0,1"] {
            assert!(SizeDist::parse(text, false).is_err(), "{text}");
        }
    }

    #[test]
    fn listed_sizes_are_drawn_alike() {
        let dist = SizeDist::List(vec![5, 5, 9, 1_000].into());
        let sizes = sample(&dist, 40_000);
        for (size, expected) in [(5, 20_000usize), (9, 10_000), (1_000, 10_000)] {
            let count = sizes.iter().filter(|&&each| each == size).count();
            assert!(count.abs_diff(expected) < 400, "{count} of {size}");
        }
        assert_eq!((dist.max(), dist.mean()), (1_000, 254.75));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert_eq!(SizeDist::parse("0", false), Err(SizeParseError::Zero));
        assert_eq!(SizeDist::parse("0,5", true), Err(SizeParseError::Zero));
        assert_eq!(SizeDist::parse("5:0", false), Err(SizeParseError::Zero));
        assert_eq!(SizeDist::parse("9,5", true), Err(SizeParseError::Reversed(9, 5)));
        for text in ["1,2,3", "5:x", "5:1,6", ""] {
            assert!(SizeDist::parse(text, false).is_err(), "{text}");
        }
    }

    #[test]
    fn log_uniform_sizes_have_no_hole_and_the_known_mean() {
        let dist = SizeDist::parse("1MiB", true).unwrap();
        let sizes = sample(&dist, 80_000);
        // Eight doublings from 4 KiB to 1 MiB: each holds an eighth, 10,000 +- 94 (one standard
        // deviation).
        for doubling in 0..8 {
            let low = 4_096u64 << doubling;
            let count = sizes.iter().filter(|&&size| (low..low * 2).contains(&size)).count();
            assert!(count.abs_diff(10_000) < 400, "{count} from {low}");
        }
        let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        assert!((mean / dist.mean() - 1.0).abs() < 0.02, "{mean} against {}", dist.mean());
        assert!((dist.mean() / (1u64 << 20) as f64 - 0.1796).abs() < 0.001);
    }

    #[test]
    fn histogram_bars_come_by_weight_and_are_even_within() {
        let dist = SizeDist::parse("10:1,20:3", false).unwrap();
        let sizes = sample(&dist, 40_000);
        let low = sizes.iter().filter(|&&size| size <= 10).count();
        assert!(low.abs_diff(10_000) < 400, "{low}");
        for size in 1..=20 {
            assert!(sizes.contains(&size), "{size} is missing");
        }
        assert!(sizes.iter().all(|size| (1..=20).contains(size)));
        assert!((dist.mean() - (0.25 * 5.5 + 0.75 * 15.5)).abs() < 1e-9);
    }
}

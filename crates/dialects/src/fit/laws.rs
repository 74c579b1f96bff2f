//! Sizes and instants of a trace as laws of the workload language, with their distances.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::OpKind;
use plimsoll_stats::{KolmogorovSmirnov, mean, std_dev};
use plimsoll_workload::ArrivalLaw;
use plimsoll_workload::plan::Size;
use plimsoll_workload::plan::spec::{Share, Shares, SizeLaw, SizeSpec};
use plimsoll_workload::trace::Trace;

use self::normal::normal_cdf;

/// So many different sizes are written down one by one.
const SHARES_MAX: usize = 64;
/// A law that is at most so far from the trace is taken for its law.
pub const DISTANCE_MAX: f64 = 0.02;
/// Bars of a histogram, each of as many objects as the next.
const BARS: usize = 100;
/// Gaps that vary by less than this part of their mean are taken for even ones: those of arrivals
/// without memory vary by all of it.
const EVEN_BELOW: f64 = 0.5;
/// Gaps that vary by at most this part of their mean are those of a constant rate.
const CONSTANT_UP_TO: f64 = 0.1;
/// Gaps that vary by more than this come in bursts.
const BURSTS_ABOVE: f64 = 1.3;
/// The instants of a trace show gaps of so many times what they are counted in.
const GAP_TICKS_MIN: f64 = 10.0;
/// Where they do not, operations are counted in windows of so many at least, and so many windows
/// tell something.
const WINDOW_OPS_MIN: f64 = 10.0;
const WINDOWS_MIN: usize = 20;

/// How large objects are.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeFit {
    /// The law's name.
    pub law: &'static str,
    /// The largest distance between the distribution of the sizes and the law's (Kolmogorov and
    /// Smirnov).
    pub distance: f64,
    /// Of so many objects, or contents of them.
    pub count: usize,
    /// Half of them are at most so large.
    pub median: u64,
}

/// When operations arrive.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrivalFit {
    /// By which law.
    pub law: ArrivalLaw,
    /// Whether the trace does not show that they arrive by it.
    pub is_assumed: bool,
    /// How often.
    pub ops_per_sec: f64,
    /// What the trace shows of it.
    pub seen: ArrivalsSeen,
}

/// What a trace shows of arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArrivalsSeen {
    /// The gaps between them.
    Gaps {
        /// Their standard deviation, in parts of their mean.
        variation: f64,
        /// The largest distance between the distribution of the gaps and the law's, and how large
        /// it may be; `None` of even ones, whose law has a step where the smallest gap off it is
        /// as far as can be.
        distance: Option<(f64, f64)>,
    },
    /// Its instants are too coarse for gaps, but it shows how many arrive in a window.
    Counts {
        /// What its instants are counted in.
        tick: Duration,
        /// The windows, of several ticks where few arrive in one.
        window: Duration,
        /// The variance of the counts over their mean: 1 of a Poisson process, 0 of a constant
        /// rate (D. R. Cox, P. A. W. Lewis, *The Statistical Analysis of Series of Events*, 1966,
        /// section 4.5); `None` of too few windows.
        dispersion: Option<f64>,
    },
}

impl ArrivalFit {
    /// Returns what the law does not have.
    pub(super) fn note(&self) -> Option<String> {
        let (what, variation) = match self.seen {
            ArrivalsSeen::Gaps { variation, .. } => ("their gaps vary", variation),
            // Over long windows the dispersion is the square of what the gaps vary by.
            ArrivalsSeen::Counts { dispersion, .. } => {
                ("as if their gaps varied", dispersion?.sqrt())
            }
        };
        (variation > BURSTS_ABOVE).then(|| {
            format!(
                "operations come in bursts ({what} by {variation:.2} of the mean), which the \
                 workload does not have: replay the trace where they matter"
            )
        })
    }

    /// Returns what is to be said of it, lines of at most 68 columns.
    pub(super) fn said(&self) -> Vec<String> {
        let Self { law, is_assumed, ops_per_sec, seen } = self;
        let assumed = if *is_assumed { " assumed" } else { "" };
        let mut said = vec![format!("{law}{assumed}, {}/s", super::in_figures(*ops_per_sec))];
        match *seen {
            ArrivalsSeen::Gaps { variation, distance } => {
                said.push(format!("gaps vary by {variation:.3} of their mean"));
                said.extend(distance.map(|(distance, most)| match is_assumed {
                    true => format!("no law fits: KS distance {distance:.4}, limit {most:.4}"),
                    false => format!("KS distance {distance:.4}, limit {most:.4}"),
                }));
            }
            ArrivalsSeen::Counts { tick, window, dispersion } => {
                said.push(format!("the trace's resolution of {tick:?} does not show the gaps"));
                said.push(match dispersion {
                    Some(dispersion) => {
                        format!(
                            "counts in {window:?} vary by {dispersion:.3} of Poisson's variance"
                        )
                    }
                    None => "it is too short to judge by its counts".to_owned(),
                });
            }
        }
        said
    }
}

/// Returns how sizes are drawn, and how far that is from those of the trace: of objects that were
/// there before and of all that was written.
pub(super) fn sizes(trace: &Trace) -> (SizeSpec, SizeFit) {
    let puts = trace.ops().iter().filter(|op| op.kind == OpKind::Put).map(|op| op.len);
    let mut sizes: Vec<u64> =
        trace.made_first().iter().copied().chain(puts).map(|size| size.max(1)).collect();
    if sizes.is_empty() {
        sizes.push(1);
    }
    sizes.sort_unstable();
    let (count, median) = (sizes.len(), sizes[(sizes.len() - 1) / 2]);
    let fit = |law, distance| SizeFit { law, distance, count, median };
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    sizes.iter().for_each(|size| *counts.entry(*size).or_default() += 1);
    if counts.len() == 1 {
        return (SizeSpec::Fixed(Size(median)), fit("all alike", 0.0));
    }
    if counts.len() <= SHARES_MAX {
        let share = |(size, weight): (&u64, &u64)| Share { value: Size(*size), weight: *weight };
        let shares = Shares(counts.iter().map(share).collect());
        return (SizeSpec::Drawn(SizeLaw::Shares(shares)), fit("each by its share", 0.0));
    }
    let logs: Vec<f64> = sizes.iter().map(|size| (*size as f64).ln()).collect();
    let (middle, sigma) = (mean(&logs).unwrap_or(0.0), std_dev(&logs).unwrap_or(0.0));
    let law = Size((middle.exp().round() as u64).max(1));
    let sigma = (sigma * 1e4).round() / 1e4;
    let distance = distance_of(&sizes, |size| {
        normal_cdf(((size as f64 + 0.5).ln() - (law.0 as f64).ln()) / sigma)
    });
    if distance <= DISTANCE_MAX && sigma > 0.0 && sigma <= 8.0 {
        let spec = SizeSpec::Drawn(SizeLaw::Lognormal { median: law, sigma });
        return (spec, fit("lognormal", distance));
    }
    let bars = bars(&sizes);
    let distance = distance_of(&sizes, |size| below_bars(&bars, size));
    let share = |(up_to, weight): &(u64, u64)| Share { value: Size(*up_to), weight: *weight };
    let shares = Shares(bars.iter().map(share).collect());
    (SizeSpec::Drawn(SizeLaw::Histogram(shares)), fit("a histogram", distance))
}

/// Returns the largest distance between sizes, in order, and a law whose distribution function is
/// of whole numbers, so that it is compared behind each size and not before it.
fn distance_of(sizes: &[u64], cdf: impl Fn(u64) -> f64) -> f64 {
    let n = sizes.len() as f64;
    let mut farthest: f64 = 0.0;
    let mut before = 0;
    for of_size in sizes.chunk_by(|a, b| a == b) {
        let size = of_size[0];
        farthest = farthest.max((cdf(size - 1) - before as f64 / n).abs());
        before += of_size.len();
        farthest = farthest.max((cdf(size) - before as f64 / n).abs());
    }
    farthest
}

/// Returns bars, each up to a size, with how many sizes are in each.
fn bars(sizes: &[u64]) -> Vec<(u64, u64)> {
    let mut bars: Vec<(u64, u64)> = Vec::new();
    // A bar begins behind the one before it. One without weight keeps the first from beginning at
    // 1: what is below the smallest size is none of the trace.
    if let Some(below) = sizes[0].checked_sub(1).filter(|below| *below > 0) {
        bars.push((below, 0));
    }
    let mut begin = 0;
    let mut ends: Vec<usize> = (1..=BARS).map(|bar| bar * sizes.len() / BARS).collect();
    ends.insert(0, sizes.partition_point(|size| *size <= sizes[0]));
    for end in ends {
        let Some(up_to) = end.checked_sub(1).map(|last| sizes[last]) else { continue };
        let end = sizes.partition_point(|size| *size <= up_to);
        if end > begin {
            bars.push((up_to, (end - begin) as u64));
            begin = end;
        }
    }
    bars
}

/// Returns the part of a histogram's sizes that is at most so large.
fn below_bars(bars: &[(u64, u64)], size: u64) -> f64 {
    let all: u64 = bars.iter().map(|(_, weight)| weight).sum();
    let (mut sum, mut from) = (0.0, 0);
    for &(up_to, weight) in bars {
        if size >= up_to {
            sum += weight as f64;
        } else if size > from {
            sum += weight as f64 * (size - from) as f64 / (up_to - from) as f64;
        }
        from = up_to;
    }
    sum / all as f64
}

/// Returns when operations arrive, and how far that is from the trace.
pub(super) fn arrivals(trace: &Trace) -> ArrivalFit {
    let at = |op: &plimsoll_workload::trace::TraceOp| op.at_ns as f64 / 1e9;
    let mut gaps: Vec<f64> =
        trace.ops().windows(2).map(|pair| at(&pair[1]) - at(&pair[0])).collect();
    let gap = mean(&gaps).unwrap_or(0.0).max(1e-9);
    let ops_per_sec = gap.recip();
    let tick = trace.facts.tick;
    let coarse = tick.as_secs_f64() / gap;
    if coarse * GAP_TICKS_MIN > 1.0 {
        return by_counts(trace, tick, gap);
    }
    let variation = std_dev(&gaps).unwrap_or(0.0) / gap;
    if variation < EVEN_BELOW {
        return ArrivalFit {
            law: ArrivalLaw::Constant,
            is_assumed: variation > CONSTANT_UP_TO + coarse,
            ops_per_sec,
            seen: ArrivalsSeen::Gaps { variation, distance: None },
        };
    }
    let n = gaps.len() as f64;
    let distance = KolmogorovSmirnov::test(&mut gaps, |each| -(-each / gap).exp_m1()).distance;
    // As far as 5 of 100 such samples are by chance, where the mean is theirs (M. A. Stephens,
    // *EDF Statistics for Goodness of Fit and Some Comparisons*, Journal of the American
    // Statistical Association 69, 1974), and what the instants are rounded by comes on top.
    let by_chance = 1.094 / (n.sqrt() + 0.26 + 0.5 / n.sqrt()) + 0.2 / n;
    let most = by_chance.max(DISTANCE_MAX) + coarse;
    ArrivalFit {
        law: ArrivalLaw::Poisson,
        is_assumed: distance > most,
        ops_per_sec,
        seen: ArrivalsSeen::Gaps { variation, distance: Some((distance, most)) },
    }
}

/// Returns when operations arrive of which the trace does not show the gaps.
fn by_counts(trace: &Trace, tick: Duration, gap: f64) -> ArrivalFit {
    let ticks = (WINDOW_OPS_MIN * gap / tick.as_secs_f64()).ceil().max(1.0);
    let window = tick.mul_f64(ticks);
    let width = window.as_nanos().max(1) as u64;
    // The last window may lie only partly in the trace.
    // Bound: one window for `WINDOW_OPS_MIN` operations, which are in memory.
    let mut counts = vec![0.0; (trace.duration().as_nanos() as u64 / width) as usize];
    for op in trace.ops() {
        if let Some(count) = counts.get_mut((op.at_ns / width) as usize) {
            *count += 1.0;
        }
    }
    let dispersion = mean(&counts)
        .zip(std_dev(&counts))
        .filter(|(mean, _)| counts.len() >= WINDOWS_MIN && *mean > 0.0)
        .map(|(mean, deviation)| deviation * deviation / mean);
    let is_even = dispersion.is_some_and(|dispersion| dispersion < EVEN_BELOW * EVEN_BELOW);
    ArrivalFit {
        law: if is_even { ArrivalLaw::Constant } else { ArrivalLaw::Poisson },
        is_assumed: true,
        ops_per_sec: gap.recip(),
        seen: ArrivalsSeen::Counts { tick, window, dispersion },
    }
}

/// The normal distribution.
mod normal {
    /// Returns the part of a normal distribution that is below `z` deviations.
    ///
    /// By the complementary error function of W. J. Cody's kind as W. H. Press et al. give it in
    /// *Numerical Recipes*, 2nd edition 1992, section 6.2, within 1.2e-7.
    pub(super) fn normal_cdf(z: f64) -> f64 {
        const TERMS: [f64; 10] = [
            -1.265_512_23,
            1.000_023_68,
            0.374_091_96,
            0.096_784_18,
            -0.186_288_06,
            0.278_868_07,
            -1.135_203_98,
            1.488_515_87,
            -0.822_152_23,
            0.170_872_77,
        ];
        let x = z / std::f64::consts::SQRT_2;
        let t = 1.0 / (1.0 + 0.5 * x.abs());
        let polynomial = TERMS.iter().rev().fold(0.0, |sum, term| sum * t + term);
        let beyond = t * (-x * x + polynomial).exp();
        if x >= 0.0 { 1.0 - beyond / 2.0 } else { beyond / 2.0 }
    }
}

//! How unevenly something is chosen: the exponent of Zipf's law, held against even chances and
//! against the law itself.
//!
//! Who is drawn the most has rank 1 only because it was drawn the most, and what was never drawn is
//! not known. So even chances look like a law of Zipf's: of 10,000 draws from 10,000 things the
//! estimate is 0.34. What the estimate means is therefore found by drawing: from even chances, and
//! from laws of known exponents, with the same number of draws and the same estimator (B. Efron, R.
//! J. Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter 6; correcting an estimate so is
//! C. Gouriéroux, A. Monfort, E. Renault, *Indirect Inference*, Journal of Applied Econometrics 8,
//! 1993).

use std::collections::BTreeMap;

use statrs::function::gamma::ln_gamma;

use crate::Interval;
use crate::bootstrap::SplitMix64;

/// Steps of Newton's method; it doubles the digits with each.
const STEPS_MAX: u32 = 60;
/// The exponent is looked for up to here.
const EXPONENT_MAX: f64 = 10.0;
/// Ranks up to here are counted one by one, those above in blocks of a hundredth of their number.
const RANKS_EXACT: u64 = 1_000;
const BLOCK_ONE_OF: u64 = 100;
/// Trials of a law: as many as draw so many ranks, within these bounds.
const TRIAL_RANKS: u64 = 16_000_000;
const TRIALS_MIN: u64 = 16;
const TRIALS_MAX: u64 = 100;
/// More things than so many times those that were drawn are not assumed.
const POPULATION_TIMES_MAX: u64 = 16;
/// An estimate that is at most so many standard deviations above what even chances give is not told
/// from them: by chance that happens once in 740 (normal distribution).
const EVEN_DEVIATIONS: f64 = 3.0;
/// The normal distribution has 95 % within so many standard deviations.
const DEVIATIONS_95: f64 = 1.96;
/// Rounds in which the exponent is looked for that gives the estimate.
const ROUNDS_MAX: u32 = 6;
/// From this mean on, draws of a rank are taken from the normal distribution.
const NORMAL_FROM: f64 = 64.0;

/// Zipf's law, p(k) ∝ k^-s over ranks k = 1 to N, as it was fitted to how often things were drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZipfFit {
    /// The exponent s; 0 where the draws are not told from even chances.
    pub exponent: f64,
    /// Which exponents the draws are compatible with, 95 %.
    pub interval: Interval,
    /// The number N of things among which was drawn, those that never were among them.
    pub population: u64,
    /// The largest distance between the shares of the first ranks and the law's (Kolmogorov and
    /// Smirnov).
    pub distance: f64,
    /// Of 100 trials of the law itself 95 are no farther from it.
    pub distance_by_chance: f64,
}

impl ZipfFit {
    /// Fits the law to how often each thing was drawn. `None` where fewer than two were drawn, or
    /// fewer than two draws made. The seed fixes the trials.
    pub fn of(counts: impl IntoIterator<Item = u64>, seed: u64) -> Option<Self> {
        let drawn = Drawn::of(counts);
        if drawn.ranks < 2 || drawn.draws < 2 {
            return None;
        }
        let estimate = drawn.estimate(1.0);
        let even = Trials::of(&drawn, 0.0, seed);
        let is_even = estimate <= even.mean + EVEN_DEVIATIONS * even.deviation;
        let (exponent, fitted) = fitting(&drawn, estimate, even, seed);
        let margin = DEVIATIONS_95 * fitted.deviation;
        let (high, _) = fitting(&drawn, estimate + margin, even, seed);
        let (exponent, low, law) = match is_even {
            true => (0.0, 0.0, even),
            false => (exponent, fitting(&drawn, estimate - margin, even, seed).0, fitted),
        };
        Some(Self {
            exponent,
            interval: Interval { low, high },
            population: law.population,
            distance: drawn.distance(&Law::new(law.population, exponent)),
            distance_by_chance: law.distance,
        })
    }
}

/// Returns the exponent whose trials have the estimate for their mean, with the trials; 0 where
/// even chances have no smaller one.
fn fitting(drawn: &Drawn, estimate: f64, even: Trials, seed: u64) -> (f64, Trials) {
    let (mut before, mut slope) = ((0.0, even), 1.0);
    let (mut low, mut high) = (0.0, EXPONENT_MAX);
    let mut exponent = estimate.clamp(0.0, EXPONENT_MAX);
    if estimate <= even.mean {
        return before;
    }
    for _ in 0..ROUNDS_MAX {
        // The same seed each time, so that the mean is a smooth function of the exponent.
        let trials = Trials::of(drawn, exponent, seed);
        let grown = (trials.mean - before.1.mean) / (exponent - before.0);
        if grown.is_finite() && grown > 0.0 {
            slope = grown;
        }
        before = (exponent, trials);
        let off = estimate - trials.mean;
        match off > 0.0 {
            true => low = exponent,
            false => high = exponent,
        }
        if off.abs() <= 0.1 * trials.deviation {
            break;
        }
        let next = exponent + off / slope;
        exponent = if next > low && next < high { next } else { f64::midpoint(low, high) };
    }
    before
}

/// How often things were drawn: by number of draws, how many things were drawn so often.
#[derive(Clone, Debug, Default)]
struct Drawn {
    things: BTreeMap<u64, u64>,
    /// How many things were drawn, and how often in all.
    ranks: u64,
    draws: u64,
}

impl Drawn {
    fn of(counts: impl IntoIterator<Item = u64>) -> Self {
        let mut drawn = Self::default();
        counts.into_iter().for_each(|count| drawn.add(count, 1));
        drawn
    }

    fn add(&mut self, count: u64, things: u64) {
        if count > 0 && things > 0 {
            *self.things.entry(count).or_default() += things;
            self.ranks += things;
            self.draws += count * things;
        }
    }

    /// Returns the exponent of the greatest likelihood of having drawn each rank so often, over as
    /// many ranks as were drawn; who is drawn the most has rank 1.
    ///
    /// The likelihood's derivative is n · E(ln k) - Σ cₖ ln k, with the mean of ln k under the law,
    /// and the second one -n · Var(ln k). Source: M. L. Goldstein, S. A. Morris, G. G. Yen,
    /// *Problems with fitting to the power-law distribution*, European Physical Journal B 41, 2004.
    /// It is looked for from `near` on.
    fn estimate(&self, near: f64) -> f64 {
        let (mut before, mut sum) = (0, 0.0);
        for (count, things) in self.things.iter().rev() {
            let (from, to) = (before as f64 + 1.0, (before + things) as f64 + 1.0);
            // The sum of ln k over these ranks.
            sum += *count as f64 * (ln_gamma(to) - ln_gamma(from));
            before += things;
        }
        let observed = sum / self.draws as f64;
        let blocks = blocks(self.ranks);
        // The mean of ln k falls as the exponent grows.
        let (mut low, mut high) = (0.0, EXPONENT_MAX);
        if moments(&blocks, low).0 <= observed {
            return 0.0;
        }
        let mut exponent = near;
        for _ in 0..STEPS_MAX {
            let (mean, spread) = moments(&blocks, exponent);
            match mean > observed {
                true => low = exponent,
                false => high = exponent,
            }
            let next = exponent + (mean - observed) / spread;
            let next = if next > low && next < high { next } else { f64::midpoint(low, high) };
            if (next - exponent).abs() < 1e-12 {
                break;
            }
            exponent = next;
        }
        exponent
    }

    /// Returns the largest distance between the shares of the first ranks and the law's.
    fn distance(&self, law: &Law) -> f64 {
        let mut things = self.things.iter().rev();
        // Up to which rank draws were counted, how many they were, and what each rank after it has.
        let (mut rank, mut sum, mut next) = (0, 0.0, things.next().map(|(c, t)| (*c, *t)));
        let (mut expected, mut farthest) = (0.0, 0.0f64);
        for (block, chance) in law.blocks.iter().zip(&law.chances) {
            while rank < block.to
                && let Some((count, left)) = next
            {
                let taken = left.min(block.to - rank);
                sum += (count * taken) as f64;
                rank += taken;
                next = match left - taken {
                    0 => things.next().map(|(count, things)| (*count, *things)),
                    left => Some((count, left)),
                };
            }
            expected += chance * block.width();
            farthest = farthest.max((sum / self.draws as f64 - expected).abs());
        }
        farthest
    }

    /// Returns from how many things so many were drawn, if they are drawn by a law of this exponent
    /// and as often: that of which as many can be expected.
    fn population(&self, exponent: f64) -> u64 {
        let expected = |population| {
            let law = Law::new(population, exponent);
            let draws = self.draws as f64;
            let drawn =
                |(block, chance): (&Block, &f64)| -block.width() * (-draws * chance).exp_m1();
            law.blocks.iter().zip(&law.chances).map(drawn).sum::<f64>()
        };
        let (mut low, mut high) = (self.ranks, self.ranks.saturating_mul(POPULATION_TIMES_MAX));
        // Within half a block, which is as exact as a large law is.
        while high - low > (low / BLOCK_ONE_OF / 2).max(1) {
            let middle = low.midpoint(high);
            match expected(middle) < self.ranks as f64 {
                true => low = middle,
                false => high = middle,
            }
        }
        // All that there are may have been drawn.
        if expected(self.ranks) + 0.5 >= self.ranks as f64 { self.ranks } else { high }
    }
}

/// Ranks that are taken as alike: one, or neighbours far down.
#[derive(Clone, Copy, Debug)]
struct Block {
    before: u64,
    to: u64,
    /// The logarithm of its rank, of several of the one in the middle: it is wanted with each
    /// exponent, and takes as long as all else.
    log: f64,
}

impl Block {
    fn new(before: u64, to: u64) -> Self {
        let log = match to - before {
            1 => (to as f64).ln(),
            _ => f64::midpoint((before as f64 + 0.5).ln(), (to as f64 + 0.5).ln()),
        };
        Self { before, to, log }
    }

    fn width(self) -> f64 {
        (self.to - self.before) as f64
    }

    /// Returns the sum of k^-s over its ranks; of several the integral between half ranks, which is
    /// within 10^-7 of it that far down.
    fn weight(self, exponent: f64) -> f64 {
        if self.to - self.before == 1 {
            return (-exponent * self.log).exp();
        }
        let (from, to) = (self.before as f64 + 0.5, self.to as f64 + 0.5);
        let (power, grown) = (1.0 - exponent, (to / from).ln());
        match power.abs() < 1e-9 {
            true => grown,
            false => from.powf(power) * (power * grown).exp_m1() / power,
        }
    }
}

/// Returns the blocks of so many ranks.
fn blocks(ranks: u64) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut before = 0;
    while before < ranks {
        let width = if before < RANKS_EXACT { 1 } else { before / BLOCK_ONE_OF };
        let to = ranks.min(before + width);
        blocks.push(Block::new(before, to));
        before = to;
    }
    blocks
}

/// Returns mean and variance of ln k under the law.
fn moments(blocks: &[Block], exponent: f64) -> (f64, f64) {
    let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
    for block in blocks {
        let (weight, log) = (block.weight(exponent), block.log);
        sum += weight;
        first += weight * log;
        second += weight * log * log;
    }
    let mean = first / sum;
    (mean, (second / sum - mean * mean).max(f64::MIN_POSITIVE))
}

/// The law of one exponent over so many ranks.
struct Law {
    blocks: Vec<Block>,
    /// The chance of each rank of a block.
    chances: Vec<f64>,
}

impl Law {
    fn new(ranks: u64, exponent: f64) -> Self {
        let blocks = blocks(ranks);
        let weights: Vec<f64> = blocks.iter().map(|block| block.weight(exponent)).collect();
        let sum: f64 = weights.iter().sum();
        let chance = |(weight, block): (&f64, &Block)| weight / sum / block.width();
        let chances = weights.iter().zip(&blocks).map(chance).collect();
        Self { blocks, chances }
    }

    /// Draws about so many times: the number of draws of each rank is Poisson's.
    fn draw(&self, draws: u64, random: &mut SplitMix64) -> Drawn {
        let mut drawn = Drawn::default();
        // Most ranks are drawn a few times.
        let mut few = [0; NORMAL_FROM as usize * 2];
        for (block, chance) in self.blocks.iter().zip(&self.chances) {
            let poisson = Poisson::new(chance * draws as f64);
            for _ in block.before..block.to {
                let count = poisson.draw(random);
                match few.get_mut(count as usize) {
                    Some(things) => *things += 1,
                    None => drawn.add(count, 1),
                }
            }
        }
        (0..).zip(few).for_each(|(count, things)| drawn.add(count, things));
        drawn
    }
}

/// Poisson's distribution of one mean.
struct Poisson {
    mean: f64,
    /// The chance of none.
    none: f64,
}

impl Poisson {
    fn new(mean: f64) -> Self {
        Self { mean, none: (-mean).exp() }
    }

    fn draw(&self, random: &mut SplitMix64) -> u64 {
        if self.mean >= NORMAL_FROM {
            // G. E. P. Box, M. E. Muller, 1958.
            let (one, other) = (1.0 - random.unit(), random.unit());
            let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos();
            return (self.mean + self.mean.sqrt() * normal).round().max(0.0) as u64;
        }
        // By inversion: L. Devroye, *Non-Uniform Random Variate Generation*, 1986, section X.3.3.
        let (mut left, mut chance, mut count) = (random.unit(), self.none, 0);
        while left >= chance && count < 1_000 {
            left -= chance;
            count += 1;
            chance *= self.mean / count as f64;
        }
        count
    }
}

/// What comes of drawing by a law as often as was drawn, many times.
#[derive(Clone, Copy, Debug)]
struct Trials {
    population: u64,
    /// Mean and standard deviation of the estimates.
    mean: f64,
    deviation: f64,
    /// Of 100 trials 95 are no farther from the law.
    distance: f64,
}

impl Trials {
    fn of(drawn: &Drawn, exponent: f64, seed: u64) -> Self {
        let population = drawn.population(exponent);
        let law = Law::new(population, exponent);
        let count = (TRIAL_RANKS / population).clamp(TRIALS_MIN, TRIALS_MAX);
        let (mut estimates, mut distances) = (Vec::new(), Vec::new());
        for trial in 0..count {
            let trial = law.draw(drawn.draws, &mut SplitMix64::new(seed ^ trial << 32));
            if trial.ranks >= 2 {
                estimates.push(trial.estimate(exponent));
                distances.push(trial.distance(&law));
            }
        }
        distances.sort_unstable_by(f64::total_cmp);
        let within = (distances.len() * 95).div_ceil(100).saturating_sub(1);
        Self {
            population,
            mean: crate::mean(&estimates).unwrap_or(0.0),
            deviation: crate::std_dev(&estimates).unwrap_or(0.0),
            distance: distances.get(within).copied().unwrap_or(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns as many draws of each rank as the law expects of `draws`.
    fn expected(ranks: u32, exponent: f64, draws: f64) -> Vec<u64> {
        let weights: Vec<f64> = (1..=ranks).map(|k| f64::from(k).powf(-exponent)).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| (draws * weight / sum).round() as u64).collect()
    }

    /// Returns how often each of so many things is drawn.
    fn drawn(things: usize, exponent: f64, draws: u64, seed: u64) -> Vec<u64> {
        let mut sum = 0.0;
        let up_to: Vec<f64> = (1..=things)
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        let mut random = SplitMix64::new(seed);
        let mut counts = vec![0; things];
        for _ in 0..draws {
            let at = random.unit() * sum;
            counts[up_to.partition_point(|each| *each <= at)] += 1;
        }
        counts
    }

    #[test]
    fn the_exponent_is_found_from_what_the_law_expects() {
        for exponent in [0.2, 0.7, 0.99, 1.0, 1.3, 2.5] {
            let mut counts = expected(500, exponent, 1e9);
            counts.reverse();
            let found = Drawn::of(counts).estimate(1.0);
            assert!((found - exponent).abs() < 1e-4, "{exponent}: {found}");
        }
        // Blocks of ranks far down are as good as each by itself.
        for exponent in [0.0, 0.5, 1.0, 1.7] {
            let (mut sum, mut logs) = (0.0, 0.0);
            for rank in (1..=200_000).map(f64::from) {
                sum += rank.powf(-exponent);
                logs += rank.powf(-exponent) * rank.ln();
            }
            let (mean, _) = moments(&blocks(200_000), exponent);
            assert!((mean - logs / sum).abs() < 1e-4, "{exponent}: {mean} {}", logs / sum);
        }
    }

    #[test]
    fn even_chances_are_not_taken_for_a_law() {
        // The estimate is 0.24, 0.34, 0.23 and 0.09 of these.
        for (things, draws) in
            [(10_000, 3_000), (10_000, 10_000), (10_000, 100_000), (1_000, 100_000)]
        {
            for seed in 0..2 {
                let fit = ZipfFit::of(drawn(things, 0.0, draws, seed), 7).unwrap();
                assert_eq!(
                    (fit.exponent, fit.interval.low),
                    (0.0, 0.0),
                    "{things} {draws}: {fit:?}"
                );
                assert!(fit.interval.high < 0.35, "{things} {draws}: {fit:?}");
                assert!(fit.distance <= 1.5 * fit.distance_by_chance, "{things} {draws}: {fit:?}");
                let apart = fit.population as f64 / things as f64 - 1.0;
                assert!(apart.abs() < 0.15, "{things} {draws}: {fit:?}");
            }
        }
    }

    #[test]
    fn the_exponent_that_draws_came_from_is_found_within_its_interval() {
        // The estimate of the first is 0.918, 12 of its standard deviations below the truth.
        for (things, draws, exponent) in [
            (10_000, 10_000, 0.99),
            (20_000, 20_000, 0.8),
            (1_000, 100_000, 1.3),
            (1_000, 5_000, 0.4),
        ] {
            let mut held = 0;
            for seed in 0..4 {
                let fit = ZipfFit::of(drawn(things, exponent, draws, seed), 7).unwrap();
                let Interval { low, high } = fit.interval;
                assert!((fit.exponent - exponent).abs() < 0.1, "{exponent}: {fit:?}");
                held += u32::from((low..=high).contains(&exponent));
            }
            // Fewer than 3 of 4 at 95 % have a chance of 1 in 70 (binomial); the seeds are fixed.
            assert!(held >= 3, "{exponent}: {held}");
        }
    }

    #[test]
    fn what_no_law_of_this_kind_gives_is_far_from_it() {
        // A tenth of the things has nine tenths of the draws.
        let counts = (0..1_000u64).map(|thing| if thing < 100 { 900 } else { 11 });
        let fit = ZipfFit::of(counts, 7).unwrap();
        assert!(fit.exponent > 0.5 && fit.distance > 0.1, "{fit:?}");
        assert!(fit.distance > 3.0 * fit.distance_by_chance, "{fit:?}");
    }

    #[test]
    fn what_is_even_has_no_exponent_and_too_little_no_law() {
        assert_eq!(ZipfFit::of([7; 40], 1).unwrap().exponent, 0.0);
        assert_eq!(ZipfFit::of([9], 1), None);
        assert_eq!(ZipfFit::of([1, 0], 1), None);
        assert_eq!(ZipfFit::of([], 1), None);
        // Almost all draws of one rank.
        assert!(ZipfFit::of([100_000, 1, 1], 1).unwrap().exponent > 5.0);
    }
}

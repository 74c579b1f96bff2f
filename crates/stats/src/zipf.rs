//! How unevenly something is chosen: the exponent of Zipf's law.

/// Steps of Newton's method; it doubles the digits with each.
const STEPS_MAX: u32 = 60;
/// The exponent is looked for up to here.
const EXPONENT_MAX: f64 = 10.0;

/// The exponent of Zipf's law by which ranks were drawn, p(k) ∝ k^-s over k = 1 to N.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZipfFit {
    /// The exponent s; 0 where all ranks are alike.
    pub exponent: f64,
    /// Its standard error.
    pub std_error: f64,
}

impl ZipfFit {
    /// Returns the exponent of the greatest likelihood of having drawn each rank so often. The
    /// counts are put in order, the largest first: who is drawn the most has rank 1. `None` where
    /// there are fewer than two ranks or draws.
    ///
    /// The likelihood's derivative is n · E(ln k) - Σ cₖ ln k, with the mean of ln k under the law,
    /// and the second one -n · Var(ln k), so that the standard error is 1 / √(n · Var(ln k)).
    /// Source: M. L. Goldstein, S. A. Morris, G. G. Yen, *Problems with fitting to the power-law
    /// distribution*, European Physical Journal B 41, 2004. As ranks come from the counts
    /// themselves, ranks with few draws make the law a little steeper than it was.
    pub fn of(counts: &mut [u64]) -> Option<Self> {
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let draws: u64 = counts.iter().sum();
        if counts.len() < 2 || draws < 2 {
            return None;
        }
        let logs: Vec<f64> = (1..=counts.len()).map(|rank| (rank as f64).ln()).collect();
        let weighed = logs.iter().zip(counts.iter()).map(|(log, count)| log * *count as f64);
        let observed = weighed.sum::<f64>() / draws as f64;
        // The mean of ln k falls as the exponent grows.
        let (mut low, mut high) = (0.0, EXPONENT_MAX);
        if moments(&logs, low).0 <= observed {
            let variance = moments(&logs, 0.0).1;
            return Some(Self {
                exponent: 0.0,
                std_error: (draws as f64 * variance).sqrt().recip(),
            });
        }
        let mut exponent: f64 = 1.0;
        let mut variance = 1.0;
        for _ in 0..STEPS_MAX {
            let (mean, spread) = moments(&logs, exponent);
            variance = spread;
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
        Some(Self { exponent, std_error: (draws as f64 * variance).sqrt().recip() })
    }
}

/// Returns mean and variance of ln k under the law.
fn moments(logs: &[f64], exponent: f64) -> (f64, f64) {
    let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
    for log in logs {
        let weight = (-exponent * log).exp();
        sum += weight;
        first += weight * log;
        second += weight * log * log;
    }
    let mean = first / sum;
    (mean, (second / sum - mean * mean).max(f64::MIN_POSITIVE))
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

    #[test]
    fn the_exponent_is_found_from_what_the_law_expects() {
        for exponent in [0.2, 0.7, 0.99, 1.0, 1.3, 2.5] {
            let mut counts = expected(500, exponent, 1e9);
            counts.reverse();
            let fit = ZipfFit::of(&mut counts).unwrap();
            assert!((fit.exponent - exponent).abs() < 1e-4, "{exponent}: {fit:?}");
            assert!(fit.std_error > 0.0 && fit.std_error < 1e-3);
        }
    }

    #[test]
    fn what_is_even_has_no_exponent_and_too_little_no_law() {
        assert_eq!(ZipfFit::of(&mut [7; 40]).unwrap().exponent, 0.0);
        assert_eq!(ZipfFit::of(&mut [9]), None);
        assert_eq!(ZipfFit::of(&mut [1, 0]), None);
        assert_eq!(ZipfFit::of(&mut []), None);
        // All draws of one rank: as steep as is looked for.
        assert!(ZipfFit::of(&mut [1_000, 0, 0]).unwrap().exponent > 9.0);
    }
}

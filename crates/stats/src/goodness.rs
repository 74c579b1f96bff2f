//! Whether a sample may come from a distribution.

/// Below this the p-value is 1 to twelve digits, and its series converges slowly.
const SCALED_MIN: f64 = 0.2;
/// Terms of the series; from [`SCALED_MIN`] on the last is below 10⁻³⁰.
const TERMS: u32 = 30;

/// The one-sample test of Kolmogorov and Smirnov against a continuous distribution that is known
/// beforehand: nothing of it may be estimated from the sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KolmogorovSmirnov {
    /// How many samples.
    pub count: usize,
    /// The largest distance between the distribution of the sample and the one it is held against.
    pub distance: f64,
    /// With which probability a sample from that distribution lies at least this far from it.
    pub p_value: f64,
}

impl KolmogorovSmirnov {
    /// Holds `samples`, which it puts in order, against the distribution function `cdf`.
    ///
    /// With the samples x₁ ≤ … ≤ xₙ the distance D is the largest of all i/n − F(xᵢ) and of all
    /// F(xᵢ) − (i−1)/n. The p-value is the limit for many samples, Q(x) = 2 Σ (−1)ᵏ⁻¹ exp(−2k²x²)
    /// over k = 1, 2, …, at x = D · (√n + 0.12 + 0.11/√n), which is within 5 % of the exact one for
    /// 10 samples and more. Sources: the series, G. Marsaglia, W. W. Tsang, J. Wang, *Evaluating
    /// Kolmogorov's Distribution*, Journal of Statistical Software 8 (18), 2003; the factor, M. A.
    /// Stephens, *Use of the Kolmogorov–Smirnov, Cramér–von Mises and Related Statistics without
    /// Extensive Tables*, Journal of the Royal Statistical Society B 32 (1), 1970.
    ///
    /// Without samples the distance is 0 and the p-value 1: nothing speaks against it.
    pub fn test(samples: &mut [f64], cdf: impl Fn(f64) -> f64) -> Self {
        samples.sort_by(f64::total_cmp);
        let count = samples.len();
        let n = count as f64;
        let distance = samples.iter().enumerate().fold(0.0, |farthest: f64, (before, sample)| {
            let expected = cdf(*sample);
            let (below, up_to) = (before as f64 / n, (before + 1) as f64 / n);
            farthest.max(up_to - expected).max(expected - below)
        });
        let p_value = if count == 0 {
            1.0
        } else {
            kolmogorov_exceeded(distance * (n.sqrt() + 0.12 + 0.11 / n.sqrt()))
        };
        Self { count, distance, p_value }
    }
}

/// Returns the probability that √n · D exceeds `scaled` when there are many samples.
fn kolmogorov_exceeded(scaled: f64) -> f64 {
    if scaled < SCALED_MIN {
        return 1.0;
    }
    let term = |k: u32| {
        let sign = if k % 2 == 1 { 2.0 } else { -2.0 };
        sign * (-2.0 * (f64::from(k) * scaled).powi(2)).exp()
    };
    (1..=TERMS).map(term).sum::<f64>().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_that_of_the_tables() {
        // Critical values of √n · D for many samples: N. Smirnov, *Table for Estimating the
        // Goodness of Fit of Empirical Distributions*, Annals of Mathematical Statistics 19 (2),
        // 1948, and any textbook.
        for (scaled, level) in [
            (1.073, 0.20),
            (1.138, 0.15),
            (1.224, 0.10),
            (1.358, 0.05),
            (1.480, 0.025),
            (1.628, 0.01),
        ] {
            let got = kolmogorov_exceeded(scaled);
            assert!((got - level).abs() < 0.005 * level, "{scaled}: {got}");
        }
        assert_eq!(kolmogorov_exceeded(0.0), 1.0);
        // At 1 it is 2 (e⁻² − e⁻⁸ + e⁻¹⁸ − …) = 0.26999967.
        assert!((kolmogorov_exceeded(1.0) - 0.269_999_67).abs() < 1e-8);
        assert!(kolmogorov_exceeded(SCALED_MIN) > 0.999_999);
    }

    #[test]
    fn few_samples_have_the_critical_values_of_their_own() {
        // The exact critical values of D at 5 % and 1 %: L. H. Miller, *Table of Percentage Points
        // of Kolmogorov Statistics*, Journal of the American Statistical Association 51, 1956.
        for (n, at_5, at_1) in [
            (10, 0.40925, 0.48893),
            (20, 0.29408, 0.35241),
            (50, 0.18845, 0.22604),
            (100, 0.13403, 0.16081),
        ] {
            let root = f64::from(n).sqrt();
            for (critical, level) in [(at_5, 0.05), (at_1, 0.01)] {
                let got = kolmogorov_exceeded(critical * (root + 0.12 + 0.11 / root));
                assert!((got - level).abs() < 0.05 * level, "{n}: {got}");
            }
        }
    }

    #[test]
    fn the_distance_is_that_of_the_steps() {
        let uniform = |x: f64| x;
        // Steps at 0.1, 0.2, 0.9: the sample is at 2/3 just above 0.2, and at 2/3 just below 0.9.
        let test = KolmogorovSmirnov::test(&mut [0.9, 0.1, 0.2], uniform);
        assert!((test.distance - (2.0 / 3.0 - 0.2)).abs() < 1e-12);
        assert_eq!(test.count, 3);
        let late = KolmogorovSmirnov::test(&mut [0.5], uniform);
        assert_eq!(late.distance, 0.5);
        // The best that n samples can do is 1 / (2n).
        let mut even: Vec<f64> = (0..100).map(|i| (f64::from(i) + 0.5) / 100.0).collect();
        let test = KolmogorovSmirnov::test(&mut even, uniform);
        assert!((test.distance - 0.005).abs() < 1e-12 && test.p_value == 1.0);
        let none = KolmogorovSmirnov::test(&mut [], uniform);
        assert_eq!((none.count, none.distance, none.p_value), (0, 0.0, 1.0));
    }

    #[test]
    fn another_distribution_is_told() {
        let mut even: Vec<f64> = (0..1_000).map(|i| (f64::from(i) + 0.5) / 1_000.0).collect();
        // x and x^1.2 are at most 0.067 apart, and √1000 · 0.067 is 2.1.
        let test = KolmogorovSmirnov::test(&mut even, |x| x.powf(1.2));
        assert!(test.p_value < 0.001, "{test:?}");
    }
}

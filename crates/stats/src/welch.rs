//! Whether the means of two small samples differ: Welch's interval, the size of the effect, and
//! how small an effect the samples could show.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::batch::RESOLUTION;

/// Intervals are to cover the truth with this probability.
const CONFIDENCE: f64 = 0.95;
/// A detectable effect is found with this probability.
const POWER: f64 = 0.80;
/// As few runs a side as a verdict takes.
const RUNS_MIN: u32 = 3;

/// A stretch in which a figure is thought to lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end, not below the lower.
    pub high: f64,
}

impl Interval {
    /// Returns the interval between two ends in either order.
    pub fn between(a: f64, b: f64) -> Self {
        Self { low: a.min(b), high: a.max(b) }
    }

    /// Tells whether `value` lies in it, its ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Returns half of its length.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Returns it with both ends multiplied by `factor`.
    pub fn scaled(&self, factor: f64) -> Self {
        Self::between(self.low * factor, self.high * factor)
    }
}

/// Returns the value that a Student-t variable of `freedom` degrees, which need not be a whole
/// number, does not exceed with `probability`.
pub fn student_t_quantile(probability: f64, freedom: f64) -> f64 {
    let distribution = StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive");
    distribution.inverse_cdf(probability)
}

/// Returns the value that a standard normal variable does not exceed with `probability`.
pub fn normal_quantile(probability: f64) -> f64 {
    Normal::standard().inverse_cdf(probability)
}

/// Returns the mean; exact where all values are the same; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    let first = *values.first()?;
    let beyond: f64 = values.iter().map(|value| value - first).sum();
    Some(first + beyond / values.len() as f64)
}

/// Returns the sample standard deviation (n − 1); exactly 0 where all values are the same; `None`
/// for fewer than two values.
pub fn std_dev(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// How the mean of one sample differs from that of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Welch {
    /// The mean after − the mean before.
    pub difference: f64,
    /// The 95 % interval of the difference.
    pub interval: Interval,
    /// Degrees of freedom, seldom a whole number.
    pub freedom: f64,
    /// Hedges' g: the difference in standard deviations; `None` when nothing deviates.
    pub effect: Option<f64>,
    /// The smallest true difference that two such samples show with a probability of 80 %.
    pub detectable: f64,
}

impl Welch {
    /// Compares two samples; `None` if one of them has fewer than two values.
    ///
    /// With means m, standard deviations s and sizes n, and v = s² / n:
    ///
    /// - standard error e = √(v₁ + v₂), degrees of freedom ν = (v₁ + v₂)² / (v₁² / (n₁ − 1) + v₂² /
    ///   (n₂ − 1)), interval (m₂ − m₁) ± t(97.5 %, ν) · e. Sources: B. L. Welch, *The
    ///   Generalization of "Student's" Problem when Several Different Population Variances are
    ///   Involved*, Biometrika 34, 1947; F. E. Satterthwaite, *An Approximate Distribution of
    ///   Estimates of Variance Components*, Biometrics Bulletin 2 (6), 1946.
    /// - effect g = (1 − 3 / (4(n₁ + n₂ − 2) − 1)) · (m₂ − m₁) / s, s being the pooled deviation.
    ///   Source: L. V. Hedges, *Distribution Theory for Glass's Estimator of Effect Size and
    ///   Related Estimators*, Journal of Educational Statistics 6 (2), 1981.
    /// - detectable (t(97.5 %, ν) + t(80 %, ν)) · e. Source: H. S. Bloom, *Minimum Detectable
    ///   Effects*, Evaluation Review 19 (5), 1995.
    ///
    /// No interval is narrower than what a histogram can tell apart, ± 0.1 % of the larger mean:
    /// runs that hardly vary, as in virtual time, may all lie in one bin.
    pub fn compare(before: &[f64], after: &[f64]) -> Option<Self> {
        let (mean_before, mean_after) = (mean(before)?, mean(after)?);
        let (deviation_before, deviation_after) = (std_dev(before)?, std_dev(after)?);
        let difference = mean_after - mean_before;
        let freedoms = [before.len(), after.len()].map(|count| (count - 1) as f64);
        let pooled_freedom = freedoms[0] + freedoms[1];
        let squares = [deviation_before.powi(2), deviation_after.powi(2)];
        let parts = [squares[0] / before.len() as f64, squares[1] / after.len() as f64];
        let variance = parts[0] + parts[1];
        let least = RESOLUTION * mean_before.abs().max(mean_after.abs());
        let around = |half| Interval { low: difference - half, high: difference + half };
        if variance <= 0.0 {
            return Some(Self {
                difference,
                interval: around(least),
                freedom: pooled_freedom,
                effect: None,
                detectable: least,
            });
        }
        // Of the parts' shares and not of the parts, as the squares of tiny parts would be 0.
        let shares = parts.map(|part| part / variance);
        let freedom = 1.0 / (shares[0].powi(2) / freedoms[0] + shares[1].powi(2) / freedoms[1]);
        let error = variance.sqrt();
        let t = student_t_quantile(1.0 - (1.0 - CONFIDENCE) / 2.0, freedom);
        let pooled =
            ((squares[0] * freedoms[0] + squares[1] * freedoms[1]) / pooled_freedom).sqrt();
        let correction = 1.0 - 3.0 / (4.0 * pooled_freedom - 1.0);
        Some(Self {
            difference,
            interval: around((t * error).max(least)),
            freedom,
            effect: Some(correction * difference / pooled),
            detectable: ((t + student_t_quantile(POWER, freedom)) * error).max(least),
        })
    }
}

/// Returns the least number of runs on each side, of at least 3 and at most `most`, with which a
/// change would be told in 4 of 5 cases, if it is truly `change` and runs deviate by `deviations`
/// before and after: either its 95 % interval excludes 0, or it lies within ± `margin`, where there
/// is one. `None` if `most` are too few. All are in the same unit.
///
/// With n runs a side, e = √((s₁² + s₂²) / n) and Welch's ν = (n − 1)(s₁² + s₂²)² / (s₁⁴ + s₂⁴):
///
/// - 0 is excluded where (t(97.5 %, ν) + t(80 %, ν)) · e ≤ |change|. Source: H. S. Bloom, *Minimum
///   Detectable Effects*, Evaluation Review 19 (5), 1995.
/// - it lies within the margin where |change| + (t(97.5 %, ν) + t(90 %, ν)) · e ≤ margin. Both ends
///   of the interval may leave it, hence 90 %: exact without a change, a little too careful with
///   one. Source: S. A. Julious, *Sample Sizes for Clinical Trials with Normal Data*, Statistics in
///   Medicine 23 (12), 2004, section 5.
pub fn runs_to_tell(
    change: f64,
    deviations: [f64; 2],
    margin: Option<f64>,
    most: u32,
) -> Option<u32> {
    let squares = deviations.map(|deviation| deviation.powi(2));
    let variance = squares[0] + squares[1];
    if variance.is_nan() || variance <= 0.0 {
        return None;
    }
    let shares = squares.map(|square| square / variance);
    let per_run = 1.0 / (shares[0].powi(2) + shares[1].powi(2));
    let tells = |runs: u32| {
        let error = (variance / f64::from(runs)).sqrt();
        let t = |probability| student_t_quantile(probability, per_run * f64::from(runs - 1));
        let interval = t(1.0 - (1.0 - CONFIDENCE) / 2.0);
        let excludes_0 = (interval + t(POWER)) * error <= change.abs();
        let reach = change.abs() + (interval + t((1.0 + POWER) / 2.0)) * error;
        excludes_0 || margin.is_some_and(|margin| reach <= margin)
    };
    // More runs never tell less.
    let (mut few, mut enough) = (RUNS_MIN - 1, most);
    if most < RUNS_MIN || !tells(most) {
        return None;
    }
    while enough - few > 1 {
        let middle = few.midpoint(enough);
        if tells(middle) { enough = middle } else { few = middle }
    }
    Some(enough)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn close(got: f64, expected: f64, tolerance: f64) {
        assert!((got - expected).abs() <= tolerance, "{got} is not {expected}");
    }

    #[test]
    fn quantiles_are_those_of_the_nist_table() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2.
        for (probability, freedom, printed) in [
            (0.975, 1.0, 12.706),
            (0.975, 2.0, 4.303),
            (0.975, 3.0, 3.182),
            (0.975, 5.0, 2.571),
            (0.975, 10.0, 2.228),
            (0.975, 30.0, 2.042),
            (0.975, 100.0, 1.984),
            (0.90, 4.0, 1.533),
            (0.99, 7.0, 2.998),
        ] {
            close(student_t_quantile(probability, freedom), printed, 0.000_51);
        }
        // Between the rows of 17 and 18 degrees, 2.110 and 2.101.
        let between = student_t_quantile(0.975, 17.5);
        assert!(between > 2.101 && between < 2.110);
    }

    #[test]
    fn runs_to_tell_of_a_change_are_those_of_the_usual_tables() {
        // J. Cohen, *Statistical Power Analysis for the Behavioral Sciences*, 1988, table 2.4.1: at
        // 5 % on two sides and a power of 80 %, d = 0.2, 0.5, 0.8 need 393, 64, 26 a side. This
        // approximation by two quantiles of t is within one of them.
        for (effect, printed) in [(0.2, 393), (0.5, 64), (0.8, 26)] {
            let runs = runs_to_tell(effect, [1.0, 1.0], None, 1_000).unwrap();
            assert!(runs.abs_diff(printed) <= 1, "{effect}: {runs}");
            assert_eq!(runs_to_tell(-effect, [1.0, 1.0], None, 1_000), Some(runs));
        }
        // Without a change: 2 s² (z(97.5 %) + z(90 %))² / margin² = 21.01 for a margin of s, and
        // one more or two for t in place of z.
        let same = runs_to_tell(0.0, [1.0, 1.0], Some(1.0), 1_000).unwrap();
        assert!((22..=23).contains(&same), "{same}");
        // A change as large as the margin never lies within it, and none is never one.
        assert_eq!(runs_to_tell(0.0, [1.0, 1.0], None, 1_000), None);
        assert_eq!(runs_to_tell(1.0, [1.0, 1.0], Some(1.0), 10), None);
        assert_eq!(runs_to_tell(100.0, [1.0, 1.0], None, 1_000), Some(3));
        assert_eq!(runs_to_tell(1.0, [0.0, 0.0], Some(2.0), 1_000), None);
        assert_eq!(runs_to_tell(f64::NAN, [1.0, 1.0], Some(1.0), 1_000), None);
    }

    #[test]
    fn as_many_runs_as_are_said_to_tell_do_so_in_four_of_five_cases() {
        // Normal noise by the sum of twelve, as a fixed sequence (Park and Miller, 1988).
        let mut state = 20_261_126_u64;
        let mut uniform = || {
            state = state * 48_271 % 2_147_483_647;
            state as f64 / 2_147_483_647.0
        };
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        for (change, margin) in [(6.0, None), (0.0, Some(5.0)), (2.0, Some(8.0))] {
            let runs = runs_to_tell(change, [4.0, 4.0], margin, 1_000).unwrap();
            let trials = 2_000;
            let told = (0..trials).filter(|_| {
                let mut side =
                    |mean: f64| -> Vec<f64> { (0..runs).map(|_| mean + 4.0 * normal()).collect() };
                let (before, after) = (side(100.0), side(100.0 + change));
                let Interval { low, high } = Welch::compare(&before, &after).unwrap().interval;
                match margin {
                    None => low > 0.0,
                    Some(margin) => -margin <= low && high <= margin,
                }
            });
            let share = told.count() as f64 / f64::from(trials);
            // 0.8 less four standard errors of 2,000 trials; above, the careful one by its 90 %.
            assert!((0.764..0.95).contains(&share), "{change} {margin:?}: {runs} runs, {share}");
        }
    }

    #[test]
    fn the_sleep_of_ten_patients() {
        // Student's sleep data of 1908, as in R's `t.test(extra ~ group, data = sleep)`, which
        // prints t = -1.8608, df = 17.776, and -3.3654832 0.2054832 for group 1 − group 2.
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let welch = Welch::compare(&first, &second).unwrap();
        close(welch.difference, 2.33 - 0.75, 1e-12);
        close(welch.freedom, 17.776, 0.000_5);
        close(welch.interval.low, -0.205_483_2, 5e-8);
        close(welch.interval.high, 3.365_483_2, 5e-8);
        // By hand: pooled variance (3.200556 + 4.009) / 2 = 3.604778, deviation 1.898625; Cohen's d
        // is 0.832181, and 1 − 3 / 71 of it 0.797019.
        close(welch.effect.unwrap(), 0.797_019, 5e-6);
        // t / 1.8608 is the standard error 0.849; t(97.5 %) + t(80 %) of 17.776 degrees lie by the
        // tables between 2.110 + 0.863 and 2.101 + 0.862.
        assert!(welch.detectable > 2.963 * 0.849 && welch.detectable < 2.973 * 0.8492);
    }

    #[test]
    fn what_never_varies_is_known_to_a_bin_of_a_histogram() {
        let tenth = [0.1; 3];
        let same = Welch::compare(&tenth, &tenth).unwrap();
        assert_eq!((same.difference, same.effect), (0.0, None));
        assert_eq!((same.interval.half_width(), same.detectable), (0.1 * 0.001, 0.1 * 0.001));
        let other = Welch::compare(&tenth, &[0.3; 5]).unwrap();
        let difference = 0.3 - 0.1;
        let (low, high) = (difference - 0.3 * 0.001, difference + 0.3 * 0.001);
        assert_eq!(other.interval, Interval { low, high });
        assert_eq!(other.freedom, 6.0);
        // Next to each other in a histogram: nobody can tell which is larger.
        let next = Welch::compare(&[1.0230; 3], &[1.0239; 3]).unwrap();
        assert!(next.interval.contains(0.0));
        // Further apart than any bin is wide: what was measured lies less than a bin below what is
        // told, so the second is larger, if by 0.02 % only. Runs that never vary do show that.
        let apart = Welch::compare(&[1.0230; 3], &[1.0242; 3]).unwrap();
        close(apart.interval.low, 0.0012 - 1.0242 * 0.001, 1e-9);
        close(apart.interval.high, 0.0012 + 1.0242 * 0.001, 1e-9);
        assert!(apart.interval.low > 0.0);
        let zero = Welch::compare(&[0.0; 3], &[0.0; 3]).unwrap();
        assert_eq!(zero.interval.half_width(), 0.0);
    }

    #[test]
    fn only_one_side_varies() {
        // v₁ = 0, v₂ = 1 / 3: two degrees of freedom, 4.303 · √(1 / 3) = 2.484.
        let welch = Welch::compare(&[5.0; 4], &[4.0, 5.0, 6.0]).unwrap();
        close(welch.freedom, 2.0, 1e-9);
        close(welch.interval.high, 2.484, 0.001);
        assert_eq!(welch.difference, 0.0);
        // Figures whose squares are beyond what a number holds stay finite.
        let tiny = Welch::compare(&[1e-100, 2e-100], &[3e-100, 5e-100]).unwrap();
        assert!(tiny.freedom.is_finite() && tiny.detectable.is_finite());
    }

    #[test]
    fn one_value_tells_nothing_about_its_spread() {
        assert_eq!(Welch::compare(&[1.0], &[1.0, 2.0]), None);
        assert_eq!((mean(&[]), std_dev(&[1.0])), (None, None));
        assert_eq!(std_dev(&[2.0, 4.0]), Some(2.0_f64.sqrt()));
    }
}

//! A line through counts of misses: how the odds of missing a bound rise with the rate.
//!
//! The logarithm of the odds is taken for a straight line of the rate near the answer: for a queue
//! M/M/1 that of the share is one, P(T > t) = exp(-(mu - lambda) t) (L. Kleinrock, *Queueing
//! Systems*, vol. 1, 1975, section 5.12), and what other queues do near the answer is close to one.

use super::{Basis, LoadLine, ProbePart};
use crate::student_t_quantile;

/// Probes of which more missed than so many times the allowed share, or than this share of all,
/// tell little about where the line is: the store was nearly overloaded, and no share is above 1.
const FAR_ABOVE: f64 = 6.0;
const SHARE_MAX: f64 = 0.3;
/// Where the odds rise faster with the rate than e^400 for each time that it doubles, nothing was
/// seen between what meets the bound and what does not.
const STEEP_MAX: f64 = 400.0;
/// A line that is not found in so many rounds is taken as it then is.
const ROUNDS_MAX: usize = 200;
/// How often a probe's misses tell by themselves how much more they vary than by chance.
const MISSED_MIN: u64 = 20;
/// An interval is to cover the truth with a probability of 95 %.
const CONFIDENCE: f64 = 0.95;

/// What the stretches of a probe have come to for one bound.
#[derive(Clone, Copy)]
pub(super) struct Counts<'a>(pub(super) &'a [ProbePart]);

/// A probe as far as one bound goes.
#[derive(Clone, Copy)]
pub(super) struct Point<'a> {
    pub(super) rate: f64,
    pub(super) seconds: f64,
    pub(super) counts: Counts<'a>,
}

/// The line of logarithms of odds: `at` at the rate `centre`, rising by `slope`.
pub(super) struct Fit {
    pub(super) centre: f64,
    pub(super) at: f64,
    pub(super) slope: f64,
    /// Variances of `at` and `slope`, and how they vary together.
    variance_at: f64,
    variance_slope: f64,
    covariance: f64,
    probes_count: usize,
    /// Whether probes near the answer say by themselves how it rises.
    pub(super) is_near: bool,
}

impl Counts<'_> {
    pub(super) fn ended(self) -> u64 {
        self.0.iter().map(|part| part.ended).sum()
    }

    pub(super) fn missed(self) -> u64 {
        self.0.iter().map(|part| part.missed).sum()
    }

    /// Returns the share that missed; never 0, as that of few operations says little.
    pub(super) fn share(self) -> f64 {
        (self.missed() as f64 + 0.5) / (self.ended() as f64 + 1.0)
    }

    /// Returns by how much the variance of what missed exceeds that of operations that know nothing
    /// of each other; `None` where too few missed. Neighbours wait for the same queue, so they miss
    /// together; that comes from how far the stretches differ (batch means: A. M. Law, W. D.
    /// Kelton, *Simulation Modeling and Analysis*, 3rd ed. 2000, section 9.5.3).
    pub(super) fn dispersion(self) -> Option<f64> {
        let count = self.0.len() as f64;
        if self.missed() < MISSED_MIN || count < 2.0 {
            return None;
        }
        let share = self.missed() as f64 / self.ended() as f64;
        let off = |part: &ProbePart| part.missed as f64 - share * part.ended as f64;
        let squares: f64 = self.0.iter().map(|part| off(part).powi(2)).sum();
        let of_parts = squares * count / (count - 1.0);
        Some((of_parts / (self.missed() as f64 * (1.0 - share).max(1e-9))).max(1.0))
    }
}

/// Fits the line to the probes near the answer.
///
/// Which are near is told by their rates, and not by what they came to: to leave out those that
/// came out high would make the rest too low.
pub(super) fn fit_near(all: &[Point<'_>], share_max: f64) -> Option<Fit> {
    let mut fit = fit_of(all)?;
    for _ in 0..3 {
        let most = logit((share_max * FAR_ABOVE).min(SHARE_MAX));
        let is_near = |probe: &&Point<'_>| fit.at + fit.slope * (probe.rate - fit.centre) <= most;
        let near: Vec<Point<'_>> = all.iter().filter(is_near).copied().collect();
        // Probes further off stay until those near say by themselves how it rises.
        match fit_of(&near).filter(Fit::is_steep) {
            Some(nearer) => fit = Fit { is_near: true, ..nearer },
            None => break,
        }
    }
    Some(fit)
}

/// Fits the line to counts: the odds of missing rise by a factor with the rate, and what missed
/// varies like a binomial number, only more (logistic regression by quasi-likelihood; P.
/// McCullagh, J. A. Nelder, *Generalized Linear Models*, 2nd ed. 1989, sections 4.4 and 4.5).
/// Small odds are shares. A probe of which none missed counts for what it is worth.
fn fit_of(probes: &[Point<'_>]) -> Option<Fit> {
    let missed: f64 = probes.iter().map(|probe| probe.counts.missed() as f64).sum();
    let ended: f64 = probes.iter().map(|probe| probe.counts.ended() as f64).sum();
    if probes.len() < 2 || missed < 1.0 || missed >= ended {
        return None;
    }
    // One for all: a probe of which few missed by chance also varies less by chance, so that
    // its own would give most weight to those that are too low.
    let known: Vec<f64> = probes.iter().filter_map(|probe| probe.counts.dispersion()).collect();
    let dispersion = crate::mean(&known).unwrap_or(1.0);
    let centre = probes.iter().map(|probe| probe.rate * probe.seconds).sum::<f64>()
        / probes.iter().map(|probe| probe.seconds).sum::<f64>();
    let (mut at, mut slope) = (logit(missed / ended), 1.0 / centre);
    let mut information = [0.0; 3];
    for _ in 0..ROUNDS_MAX {
        let (step_at, step_slope);
        ((step_at, step_slope), information) = newton(probes, (centre, at, slope), dispersion);
        if !step_at.is_finite() || !step_slope.is_finite() {
            return None;
        }
        let shorter = (1.0 / step_at.abs().max(step_slope.abs() * centre / 4.0)).min(1.0);
        at += step_at * shorter;
        slope += step_slope * shorter;
        if step_at.abs() < 1e-6 && (step_slope * centre).abs() < 1e-6 {
            break;
        }
    }
    // Where probes lie further from the line than they are known, they are known less.
    let off = |probe: &Point<'_>| {
        let share = expected_share(probe.rate, (centre, at, slope));
        let expected = probe.counts.ended() as f64 * share;
        let variance = (expected * (1.0 - share)).max(0.5) * dispersion;
        (probe.counts.missed() as f64 - expected).powi(2) / variance
    };
    let freedom = probes.len().saturating_sub(2).max(1) as f64;
    let scatter = (probes.iter().map(off).sum::<f64>() / freedom).max(1.0);
    let [i0, i1, i2] = information;
    let determinant = (i0 * i2 - i1 * i1) / scatter;
    let is_sound = slope > 0.0 && slope * centre < STEEP_MAX && determinant > 0.0;
    is_sound.then_some(Fit {
        centre,
        at,
        slope,
        variance_at: i2 / determinant,
        variance_slope: i0 / determinant,
        covariance: -i1 / determinant,
        // Those in which next to nothing was to miss add next to nothing.
        probes_count: probes
            .iter()
            .filter(|probe| {
                let share = expected_share(probe.rate, (centre, at, slope));
                probe.counts.ended() as f64 * share >= MISSED_MIN as f64
            })
            .count(),
        is_near: false,
    })
}

impl Fit {
    /// Tells whether it is known to rise.
    pub(super) fn is_steep(&self) -> bool {
        self.slope > 3.0 * self.variance_slope.sqrt()
    }

    /// Returns the rate at which this share misses, with its interval (the delta method; N. R.
    /// Draper, H. Smith, *Applied Regression Analysis*, 3rd ed. 1998, section 3.2).
    pub(super) fn meets(&self, share: f64) -> Option<LoadLine> {
        let away = (logit(share) - self.at) / self.slope;
        let rate = self.centre + away;
        let variance =
            self.variance_at + away.powi(2) * self.variance_slope + 2.0 * away * self.covariance;
        // Two for the line and one for how much more counts vary than by chance.
        let freedom = self.probes_count.saturating_sub(3).max(1) as f64;
        let half = student_t_quantile(0.5 + CONFIDENCE / 2.0, freedom) * variance.max(0.0).sqrt()
            / self.slope;
        (rate > 0.0).then_some(LoadLine {
            rate,
            low: (rate - half).max(0.0),
            high: rate + half,
            probes_count: self.probes_count,
            basis: Basis::Fit(0),
        })
    }
}

/// Returns how much of all that ended misses at a rate by the line.
fn expected_share(rate: f64, (centre, at, slope): (f64, f64, f64)) -> f64 {
    1.0 / (1.0 + (-(at + slope * (rate - centre))).exp())
}

/// Returns a step of Newton's to a line that is more likely, and what is known of it: the
/// information matrix.
fn newton(probes: &[Point<'_>], line: (f64, f64, f64), dispersion: f64) -> ((f64, f64), [f64; 3]) {
    let (mut score_at, mut score_slope, mut information) = (0.0, 0.0, [0.0; 3]);
    for probe in probes {
        let x = probe.rate - line.0;
        let (share, ended) = (expected_share(probe.rate, line), probe.counts.ended() as f64);
        let weight = (ended * share * (1.0 - share) / dispersion).max(1e-12);
        let off = (probe.counts.missed() as f64 - ended * share) / dispersion;
        score_at += off;
        score_slope += off * x;
        information[0] += weight;
        information[1] += weight * x;
        information[2] += weight * x * x;
    }
    let [i0, i1, i2] = information;
    let determinant = i0 * i2 - i1 * i1;
    let step_at = (i2 * score_at - i1 * score_slope) / determinant;
    let step_slope = (i0 * score_slope - i1 * score_at) / determinant;
    ((step_at, step_slope), information)
}

/// Returns the logarithm of the odds of a share.
fn logit(share: f64) -> f64 {
    (share / (1.0 - share)).ln()
}

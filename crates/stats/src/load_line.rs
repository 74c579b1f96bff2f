//! The search for the highest rate at which no more than a given share of operations is too slow or
//! fails.
//!
//! Each probe offers load at one rate for a while and counts how many operations miss the bound.
//! The logarithm of its odds is taken for a straight line of the rate near the answer: for a queue
//! M/M/1 that of the share is one, P(T > t) = exp(-(mu - lambda) t) (L. Kleinrock, *Queueing
//! Systems*, vol. 1, 1975, section 5.12), and what other queues do near the answer is close to one.
//! The answer is where the line that is fitted through all probes near it meets the share that is
//! allowed: every probe adds to what is known, where a bisection throws away all but the last.

use crate::student_t_quantile;

/// Probes of which more missed than so many times the allowed share, or than this share of all,
/// tell little about where the line is: the store was nearly overloaded, and no share is above 1.
const FAR_ABOVE: f64 = 6.0;
const SHARE_MAX: f64 = 0.3;
/// A probe at the answer's side: where so many times the allowed share is expected to miss, or this
/// part of it. Further apart a line is known better, and is less true.
const APART: f64 = 2.5;
/// A probe of the ramp lasts so long, in seconds.
const RAMP_SECONDS: f64 = 1.0;
/// From one probe of the ramp to the next the rate grows by this.
const RAMP_STEP: f64 = 1.6;
/// A probe that is fitted lasts this part of the budget, one that only finds out where to fit that
/// part; both at least so long, in seconds.
const FIT_PART: f64 = 1.0 / 10.0;
const FIND_PART: f64 = 1.0 / 40.0;
const PROBE_SECONDS_MIN: f64 = 2.0;
/// Where the answer is known so well, as half its interval over it, it is fitted from then on.
const FOUND: f64 = 0.15;
/// A probe is at least this part of the answer away from it, so that a line that is too steep by
/// chance is found out,
const AWAY_MIN: f64 = 0.05;
/// and no further than that part.
const STRAY: f64 = 0.12;
/// Where the odds rise faster with the rate than e^400 for each time that it doubles, nothing was
/// seen between what meets the bound and what does not.
const STEEP_MAX: f64 = 400.0;
/// A line that is not found in so many rounds is taken as it then is.
const ROUNDS_MAX: usize = 200;
/// So many probes are fitted before the answer is taken for known.
const FITTED_MIN: usize = 4;
/// How often a probe's misses tell by themselves how much more they vary than by chance.
const MISSED_MIN: u64 = 20;
/// An interval is to cover the truth with a probability of 95 %.
const CONFIDENCE: f64 = 0.95;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadLineGoal {
    /// The share of operations that may miss the bound, above 0 and below 1: 0.01 for a 99th
    /// percentile.
    pub share_max: f64,
    /// How well the answer is to be known: half the width of its interval over the answer.
    pub precision: f64,
    /// How long all probes together may last, in seconds.
    pub budget_s: f64,
    /// The rate that the ramp begins with, in operations per second.
    pub rate_first: f64,
    /// No higher rate is offered.
    pub rate_max: f64,
}

/// What one stretch of a probe has come to, the warm-up left out. Stretches of one probe are
/// equally long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbePart {
    /// Operations that arrived in it and have ended.
    pub ended: u64,
    /// Of these, those that missed the bound: too slow, or failed.
    pub missed: u64,
}

/// What a probe has come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The rate that was offered, in operations per second.
    pub rate: f64,
    /// How long it lasted in all, in seconds.
    pub seconds: f64,
    /// Its stretches.
    pub parts: Vec<ProbePart>,
    /// Whether what was waiting grew as long as it lasted.
    pub is_overloaded: bool,
}

/// Why a probe is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeRole {
    /// To find out which rate is too high.
    Ramp,
    /// To find out where between two rates the answer is.
    Find,
    /// To know the answer better.
    Fit,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// A probe.
    Probe {
        /// At which rate, in operations per second.
        rate: f64,
        /// For how long, in seconds.
        seconds: f64,
        /// What for.
        role: ProbeRole,
    },
    /// Nothing: all is known that is to be, or the budget is used up.
    Done,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadLine {
    /// The highest rate that meets the bound, in operations per second.
    pub rate: f64,
    /// Where it may lie, with a probability of 95 %.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// How many probes it rests on.
    pub probes_count: usize,
}

impl LoadLine {
    /// Returns half the width of its interval over the rate.
    pub fn precision(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.rate
    }
}

/// The search.
#[derive(Clone, Debug)]
pub struct LoadLineSearch {
    goal: LoadLineGoal,
    probes: Vec<Probe>,
}

/// The line of logarithms of shares: `at` at the rate `centre`, rising by `slope`.
struct Fit {
    centre: f64,
    at: f64,
    slope: f64,
    /// Variances of `at` and `slope`, and how they vary together.
    variance_at: f64,
    variance_slope: f64,
    covariance: f64,
    probes_count: usize,
}

impl Probe {
    fn ended(&self) -> u64 {
        self.parts.iter().map(|part| part.ended).sum()
    }

    fn missed(&self) -> u64 {
        self.parts.iter().map(|part| part.missed).sum()
    }

    /// Returns the share that missed; never 0, as that of few operations says little.
    fn share(&self) -> f64 {
        (self.missed() as f64 + 0.5) / (self.ended() as f64 + 1.0)
    }

    /// Returns by how much the variance of what missed exceeds that of operations that know nothing
    /// of each other; `None` where too few missed. Neighbours wait for the same queue, so they miss
    /// together; that comes from how far the stretches differ (batch means: A. M. Law, W. D.
    /// Kelton, *Simulation Modeling and Analysis*, 3rd ed. 2000, section 9.5.3).
    fn dispersion(&self) -> Option<f64> {
        let count = self.parts.len() as f64;
        if self.missed() < MISSED_MIN || count < 2.0 {
            return None;
        }
        let share = self.missed() as f64 / self.ended() as f64;
        let off = |part: &ProbePart| part.missed as f64 - share * part.ended as f64;
        let squares: f64 = self.parts.iter().map(|part| off(part).powi(2)).sum();
        let of_parts = squares * count / (count - 1.0);
        Some((of_parts / (self.missed() as f64 * (1.0 - share).max(1e-9))).max(1.0))
    }
}

impl LoadLineSearch {
    /// Begins a search.
    pub const fn new(goal: LoadLineGoal) -> Self {
        Self { goal, probes: Vec::new() }
    }

    /// Takes in what a probe has come to.
    pub fn add(&mut self, probe: Probe) {
        self.probes.push(probe);
    }

    /// Returns all probes so far.
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// Returns how much of the budget is left, in seconds.
    pub fn left_s(&self) -> f64 {
        self.goal.budget_s - self.probes.iter().map(|probe| probe.seconds).sum::<f64>()
    }

    /// Tells whether a probe shows by itself that its rate is too high.
    fn is_too_high(&self, probe: &Probe) -> bool {
        let dispersion = probe.dispersion().unwrap_or(1.0);
        let margin = 2.0 * (dispersion / (probe.missed() as f64 + 0.5)).sqrt();
        probe.is_overloaded || probe.share().ln() - margin > self.goal.share_max.ln()
    }

    /// Returns what comes next.
    pub fn step(&self) -> Step {
        let too_high = self.probes.iter().filter(|probe| self.is_too_high(probe));
        let ceiling = too_high.map(|probe| probe.rate).fold(f64::INFINITY, f64::min);
        let below = self.probes.iter().filter(|probe| probe.rate < ceiling);
        let floor = below.map(|probe| probe.rate).fold(0.0, f64::max);
        if ceiling.is_infinite() && self.left_s() >= RAMP_SECONDS {
            let rate = if floor > 0.0 { floor * RAMP_STEP } else { self.goal.rate_first };
            if floor < self.goal.rate_max {
                let rate = rate.min(self.goal.rate_max);
                return Step::Probe { rate, seconds: RAMP_SECONDS, role: ProbeRole::Ramp };
            }
            return Step::Done;
        }
        self.step_between(floor, ceiling)
    }

    /// Returns the next probe between a rate that was carried and one that was not.
    fn step_between(&self, floor: f64, ceiling: f64) -> Step {
        let line = self.line();
        let is_known = line.is_some_and(|line| {
            line.probes_count >= FITTED_MIN && line.precision() <= self.goal.precision
        });
        if is_known || self.left_s() < PROBE_SECONDS_MIN {
            return Step::Done;
        }
        let lasts =
            |part: f64| (self.goal.budget_s * part).max(PROBE_SECONDS_MIN).min(self.left_s());
        let (rate, seconds, role) = match self.fit().zip(line) {
            // Below and above the answer in turn.
            Some((fit, line)) => {
                let is_even = self.probes.len().is_multiple_of(2);
                let away = (APART.ln() / fit.slope).max(line.rate * AWAY_MIN);
                let rate = line.rate + if is_even { -away } else { away };
                let is_near = line.precision() <= FOUND;
                let rate = rate.clamp(line.rate * (1.0 - STRAY), line.rate * (1.0 + STRAY));
                match is_near {
                    true => (rate, lasts(FIT_PART), ProbeRole::Fit),
                    false => (rate.clamp(floor * 0.8, ceiling), lasts(FIND_PART), ProbeRole::Find),
                }
            }
            None => (f64::midpoint(floor, ceiling), lasts(FIND_PART), ProbeRole::Find),
        };
        Step::Probe { rate: rate.min(self.goal.rate_max), seconds, role }
    }

    /// Fits the line to the probes near the answer.
    ///
    /// Which are near is told by their rates, and not by what they came to: to leave out those that
    /// came out high would make the rest too low.
    fn fit(&self) -> Option<Fit> {
        let all: Vec<&Probe> = self.probes.iter().filter(|probe| probe.ended() > 0).collect();
        let mut fit = self.fit_of(&all)?;
        for _ in 0..3 {
            let most = logit((self.goal.share_max * FAR_ABOVE).min(SHARE_MAX));
            let is_near = |probe: &&&Probe| fit.at + fit.slope * (probe.rate - fit.centre) <= most;
            let near: Vec<&Probe> = all.iter().filter(is_near).copied().collect();
            // Probes further off stay until those near say by themselves how it rises.
            match self.fit_of(&near).filter(|fit| fit.slope > 3.0 * fit.variance_slope.sqrt()) {
                Some(nearer) => fit = nearer,
                None => break,
            }
        }
        Some(fit)
    }

    /// Fits the line to counts: the odds of missing rise by a factor with the rate, and what missed
    /// varies like a binomial number, only more (logistic regression by quasi-likelihood; P.
    /// McCullagh, J. A. Nelder, *Generalized Linear Models*, 2nd ed. 1989, sections 4.4 and 4.5).
    /// Small odds are shares. A probe of which none missed counts for what it is worth.
    fn fit_of(&self, probes: &[&Probe]) -> Option<Fit> {
        let missed: f64 = probes.iter().map(|probe| probe.missed() as f64).sum();
        let ended: f64 = probes.iter().map(|probe| probe.ended() as f64).sum();
        if probes.len() < 2 || missed < 1.0 || missed >= ended {
            return None;
        }
        // One for all: a probe of which few missed by chance also varies less by chance, so that
        // its own would give most weight to those that are too low.
        let known: Vec<f64> = probes.iter().filter_map(|probe| probe.dispersion()).collect();
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
        let off = |probe: &&Probe| {
            let share = expected_share(probe.rate, (centre, at, slope));
            let expected = probe.ended() as f64 * share;
            let variance = (expected * (1.0 - share)).max(0.5) * dispersion;
            (probe.missed() as f64 - expected).powi(2) / variance
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
                    probe.ended() as f64 * share >= MISSED_MIN as f64
                })
                .count(),
        })
    }

    /// Returns the answer, as far as it is known.
    ///
    /// Its interval is that of the rate at which a fitted line meets a given height (the delta
    /// method; N. R. Draper, H. Smith, *Applied Regression Analysis*, 3rd ed. 1998, section 3.2).
    pub fn line(&self) -> Option<LoadLine> {
        let fit = self.fit()?;
        let away = (logit(self.goal.share_max) - fit.at) / fit.slope;
        let rate = fit.centre + away;
        let variance =
            fit.variance_at + away.powi(2) * fit.variance_slope + 2.0 * away * fit.covariance;
        let freedom = fit.probes_count.saturating_sub(2).max(1) as f64;
        let half = student_t_quantile(0.5 + CONFIDENCE / 2.0, freedom) * variance.max(0.0).sqrt()
            / fit.slope;
        (rate > 0.0).then_some(LoadLine {
            rate,
            low: (rate - half).max(0.0),
            high: rate + half,
            probes_count: fit.probes_count,
        })
    }
}

/// Returns how much of all that ended misses at a rate by the line.
fn expected_share(rate: f64, (centre, at, slope): (f64, f64, f64)) -> f64 {
    1.0 / (1.0 + (-(at + slope * (rate - centre))).exp())
}

/// Returns a step of Newton's to a line that is more likely, and what is known of it: the
/// information matrix.
fn newton(probes: &[&Probe], line: (f64, f64, f64), dispersion: f64) -> ((f64, f64), [f64; 3]) {
    let (mut score_at, mut score_slope, mut information) = (0.0, 0.0, [0.0; 3]);
    for probe in probes {
        let x = probe.rate - line.0;
        let (share, ended) = (expected_share(probe.rate, line), probe.ended() as f64);
        let weight = (ended * share * (1.0 - share) / dispersion).max(1e-12);
        let off = (probe.missed() as f64 - ended * share) / dispersion;
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

#[cfg(test)]
#[path = "load_line_tests.rs"]
mod tests;

//! What is known of the answer after the probes so far.

use plimsoll_model::ProbeRole;

use super::steps::FOUND;
use super::{Basis, LoadLine, LoadLineSearch, Probe, ProbePart};
use crate::load_line::fit::{Counts, Fit, Point, fit_near};

/// A fitted line whose interval is as wide as it is high says nothing, and none does that so few
/// probes say.
const UNKNOWN: f64 = 1.0;
const FITTED_LEAST: usize = 2;
/// Where so many probes are made to be fitted, those of the ramp are too short to count.
const FITTED_ENOUGH: usize = 4;
/// A store falls off a cliff where the logarithm of the share that misses rises at least so much,
/// for each time that the rate doubles, over the rate's distance, which is taken for no less than
/// that part: closer, chance makes cliffs. Of an overloaded probe at least half would miss.
const CLIFF_STEEP: f64 = 60.0;
const CLIFF_WIDTH_MIN: f64 = 0.05;
const OVERLOADED_SHARE: f64 = 0.5;
/// By so much of a rate the truth may lie below what a probe carried: nearly overloaded, a store
/// may carry it as long as a probe lasts.
const LUCK: f64 = 0.03;

/// The best that is known of the answer.
pub(super) enum Best {
    Fitted(Fit, LoadLine),
    Between(LoadLine),
}

impl Best {
    const fn line(&self) -> LoadLine {
        match self {
            Self::Fitted(_, line) | Self::Between(line) => *line,
        }
    }
}

impl LoadLineSearch {
    /// Returns the best that is known of the answer: of what each bound says the lowest.
    pub(super) fn best(&self) -> Option<Best> {
        let counted = self.counted();
        let fittable = self.fittable(&counted);
        let fit_for = |(bound, share_max): (usize, &f64)| {
            let fit = fit_near(&points(&fittable, bound), *share_max)?;
            (fit.is_near || !self.is_cliff(&counted, bound, *share_max)).then_some(fit)
        };
        let fits: Vec<Option<Fit>> = self.goal.shares_max.iter().enumerate().map(fit_for).collect();
        // What a fitted bound explains by itself needs no other reason.
        let is_else = |probe: &Probe| {
            let shares = self.goal.shares_max.iter().zip(&fits).enumerate();
            let too_high =
                |(bound, (share, _)): (usize, (&f64, _))| probe.is_too_high_for(bound, *share);
            let by_fitted = shares.clone().filter(|(_, (_, fit))| fit.is_some()).any(too_high);
            let by_other = shares.filter(|(_, (_, fit))| fit.is_none()).any(too_high);
            by_other || (probe.is_overloaded && !by_fitted)
        };
        let between = self.between(is_else).map(Best::Between);
        let fitted = fits.into_iter().enumerate().filter_map(|(bound, fit)| {
            let fit = fit?;
            let line = fit.meets(self.goal.shares_max[bound])?;
            Some(Best::Fitted(fit, LoadLine { basis: Basis::Fit(bound), ..line }))
        });
        fitted.chain(between).min_by(|a, b| a.line().rate.total_cmp(&b.line().rate))
    }

    /// Returns those that say where the line is. What was carried at a rate that was too high for
    /// a probe of twice the length does not: a store that is nearly overloaded shows it after a
    /// while.
    fn fittable<'p>(&self, counted: &[&'p Probe]) -> Vec<&'p Probe> {
        let hides = |probe: &Probe| {
            let outlasts = |of: &&Probe| of.rate <= probe.rate && of.seconds >= 2.0 * probe.seconds;
            let mut longer = counted.iter().copied().filter(outlasts);
            !self.is_too_high(probe) && longer.any(|of| self.is_too_high(of))
        };
        let fitted_count = counted.iter().filter(|of| of.role == ProbeRole::Fit).count();
        let is_long = |of: &Probe| fitted_count < FITTED_ENOUGH || of.role != ProbeRole::Ramp;
        counted.iter().copied().filter(|of| is_long(of) && !hides(of)).collect()
    }

    /// Tells whether less than half of what is allowed misses a bound at one rate, and a great part
    /// of all at a little more.
    fn is_cliff(&self, counted: &[&Probe], bound: usize, share_max: f64) -> bool {
        let (low, high) = self.bracket(|probe| probe.is_too_high_for(bound, share_max));
        let most = |rate: f64| {
            let of_rate = counted.iter().filter(|probe| probe.rate == rate);
            let share = |probe: &&Probe| match probe.is_overloaded {
                true => OVERLOADED_SHARE,
                false => ProbePart::share_missed(&probe.bounds[bound]),
            };
            of_rate.map(share).fold(0.0, f64::max)
        };
        let apart = high / low - 1.0;
        apart <= FOUND
            && most(low) <= share_max / 2.0
            && (most(high) / share_max).ln() > CLIFF_STEEP * apart.max(CLIFF_WIDTH_MIN)
    }

    /// Returns the answer as far as a rate that was carried and one that was not say it.
    pub(super) fn between(&self, is_too_high: impl Fn(&Probe) -> bool) -> Option<LoadLine> {
        let (carried, high) = self.bracket(is_too_high);
        let probes = self.counted();
        let probes_count = probes.iter().filter(|of| of.rate == carried || of.rate == high).count();
        let low = carried * (1.0 - LUCK);
        (carried > 0.0 && high.is_finite()).then_some(LoadLine {
            rate: f64::midpoint(low, high),
            low,
            high,
            probes_count,
            basis: Basis::Between,
        })
    }

    /// Returns the answer, as far as it is known; `None` unless one rate was carried and a higher
    /// one was not.
    pub fn line(&self) -> Option<LoadLine> {
        let (carried, too_high) = self.bracket(|probe| self.is_too_high(probe));
        if carried == 0.0 || too_high.is_infinite() {
            return None;
        }
        match self.best()?.line() {
            // All or none missed in each probe, so nothing says how steeply it rises between.
            line if line.precision() > UNKNOWN || line.probes_count < FITTED_LEAST => {
                self.between(|probe| self.is_too_high(probe)).or(Some(line))
            }
            line => Some(line),
        }
    }
}

/// Returns what is to be fitted for a bound.
fn points<'p>(probes: &[&'p Probe], bound: usize) -> Vec<Point<'p>> {
    let point = |probe: &&'p Probe| Point {
        rate: probe.rate,
        seconds: probe.seconds,
        counts: Counts(&probe.bounds[bound]),
    };
    probes.iter().map(point).filter(|point| point.counts.ended() > 0).collect()
}

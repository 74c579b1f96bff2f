//! The search for the highest rate at which no more than a given share of operations is too slow or
//! fails.
//!
//! Each probe offers load at one rate for a while and counts how many operations miss each bound.
//! A quick ramp finds a rate that is too high; probes about the answer are fitted (`fit`), and the
//! answer is where the line through all of them meets the share that is allowed: every probe adds
//! to what is known, where a bisection throws away all but the last. Where nothing lies between
//! what is met and what is missed by far, a store that falls off a cliff, the answer lies between
//! the two rates. After an overload the search looks whether the store is back at a rate that it
//! carried before, so that no probe measures what an earlier one has left behind.

mod counts;
mod fit;

pub use counts::{PROBE_PARTS, ProbeCounts, ProbeStretch};
use fit::{Counts, Fit, Point, fit_near};

/// Of a probe of the ramp that misses more than this part of a bound, the rate is too high.
const SHARE_MAX: f64 = 0.3;
/// A probe at the answer's side: where so many times the allowed share is expected to miss, or this
/// part of it. Further apart a line is known better, and is less true.
const APART: f64 = 2.5;
/// A probe of the ramp is as long as so many operations take to arrive, at least so many seconds
/// and no longer than this part of the budget.
const RAMP_OPS: f64 = 100.0;
const RAMP_SECONDS: f64 = 1.0;
const RAMP_PART: f64 = 1.0 / 40.0;
/// From one probe of the ramp to the next the rate grows by this.
const RAMP_STEP: f64 = 1.6;
/// A probe that is fitted lasts this part of the budget, one that only finds out where to fit that
/// part; both at least so long, in seconds.
const FIT_PART: f64 = 1.0 / 10.0;
const FIND_PART: f64 = 1.0 / 40.0;
const PROBE_SECONDS_MIN: f64 = 2.0;
/// Each probe is a stage of the record, of which there are no more than 256.
const PROBES_MAX: usize = 200;
/// Where the answer is known so well, as half its interval over it, it is fitted from then on.
const FOUND: f64 = 0.15;
/// A fitted line whose interval is as wide as it is high says nothing.
const UNKNOWN: f64 = 1.0;
/// Two rates of which one is carried and the other is not are looked between until they are so
/// close, as half their distance over the rate.
const BETWEEN_MIN: f64 = 0.005;
/// A probe is at least this part of the answer away from it, so that a line that is too steep by
/// chance is found out,
const AWAY_MIN: f64 = 0.05;
/// and no further than that part.
const STRAY: f64 = 0.12;
/// So many probes are fitted before the answer is taken for known.
const FITTED_MIN: usize = 4;
/// A store is to be back after an overload at this part of the highest rate that it carried.
const DESCENT_BELOW: f64 = 0.9;
/// Of a probe that looks whether it is, the beginning does not count: all but one part of so many.
const DESCENT_PART: usize = 2;
/// A store that is not back is asked again for so many times as long, and after that at half the
/// rate, until it is asked for less than this part of it.
const DESCENT_LONGER: f64 = 2.0;
const DESCENT_LEAST: f64 = 1.0 / 64.0;

/// What is looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadLineGoal {
    /// By bound: the share of operations that may miss it, above 0 and below 1; 0.01 for a 99th
    /// percentile.
    pub shares_max: Vec<f64>,
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
    /// Operations that were due in it.
    pub ended: u64,
    /// Of these, those that missed the bound: too slow, or failed.
    pub missed: u64,
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
    /// To find out whether the store is back after an overload.
    Descent,
}

impl ProbeRole {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Ramp, Self::Find, Self::Fit, Self::Descent];

    /// Returns the name used in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ramp => "ramp",
            Self::Find => "find",
            Self::Fit => "fit",
            Self::Descent => "descent",
        }
    }

    /// Returns the role of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// What a probe has come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The rate that was offered, in operations per second.
    pub rate: f64,
    /// How long it lasted in all, in seconds.
    pub seconds: f64,
    /// What it was made for.
    pub role: ProbeRole,
    /// By bound: its stretches.
    pub bounds: Vec<Vec<ProbePart>>,
    /// Whether what was waiting grew as long as it lasted.
    pub is_overloaded: bool,
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

/// What an answer rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// A line that was fitted through what missed this bound; its interval holds the truth with a
    /// probability of 95 %.
    Fit(usize),
    /// The highest rate that was carried and the lowest that was not, which are its interval.
    Between,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadLine {
    /// The highest rate that meets all bounds, in operations per second.
    pub rate: f64,
    /// Where it may lie.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// How many probes it rests on.
    pub probes_count: usize,
    /// What kind of answer it is.
    pub basis: Basis,
}

impl LoadLine {
    /// Returns half the width of its interval over the rate.
    pub fn precision(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.rate
    }
}

/// A store that was not back, after an overload, at a rate which it had carried before (N. Bronson
/// and others, *Metastable Failures in Distributed Systems*, HotOS 2021).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metastable {
    /// The rate that overloaded it, in operations per second.
    pub overloaded_at: f64,
    /// The rate below those that it had carried at which it was not back.
    pub not_back_at: f64,
    /// The lower rate at which it was; `None` where it was at none.
    pub back_at: Option<f64>,
}

/// The search.
#[derive(Clone, Debug)]
pub struct LoadLineSearch {
    goal: LoadLineGoal,
    probes: Vec<Probe>,
}

/// The best that is known of the answer.
enum Best {
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

impl Probe {
    fn is_too_high_for(&self, bound: usize, share_max: f64) -> bool {
        let counts = Counts(&self.bounds[bound]);
        let dispersion = counts.dispersion().unwrap_or(1.0);
        let margin = 2.0 * (dispersion / (counts.missed() as f64 + 0.5)).sqrt();
        counts.share().ln() - margin > share_max.ln()
    }

    /// Returns it without what came of its beginning.
    fn last_part(&self) -> Self {
        let last = |parts: &Vec<ProbePart>| parts[parts.len() / DESCENT_PART..].to_vec();
        Self { bounds: self.bounds.iter().map(last).collect(), ..self.clone() }
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
    pub fn is_too_high(&self, probe: &Probe) -> bool {
        let probe = match probe.role {
            ProbeRole::Descent => &probe.last_part(),
            _ => probe,
        };
        let mut shares = self.goal.shares_max.iter().enumerate();
        probe.is_overloaded || shares.any(|(bound, share)| probe.is_too_high_for(bound, *share))
    }

    /// Returns the probes that count for the answer: not those that look whether a store is back,
    /// and of the ramp at each rate the last.
    fn counted(&self) -> Vec<&Probe> {
        let counts = |(at, probe): &(usize, &Probe)| match probe.role {
            ProbeRole::Descent => false,
            ProbeRole::Ramp => {
                let mut later = self.probes[at + 1..].iter();
                !later.any(|later| later.role == ProbeRole::Ramp && later.rate == probe.rate)
            }
            ProbeRole::Find | ProbeRole::Fit => true,
        };
        self.probes.iter().enumerate().filter(counts).map(|(_, probe)| probe).collect()
    }

    /// Returns the lowest rate that is too high, infinite where none was, and the highest below it
    /// that is not, 0 where none was. Of several probes at one rate the last one says.
    fn bracket(&self, is_too_high: impl Fn(&Probe) -> bool) -> (f64, f64) {
        let counted = self.counted();
        let says = |(at, probe): &(usize, &&Probe)| {
            !counted[at + 1..].iter().any(|later| later.rate == probe.rate)
        };
        let last: Vec<&&Probe> =
            counted.iter().enumerate().filter(says).map(|(_, probe)| probe).collect();
        let too_high = last.iter().filter(|probe| is_too_high(probe));
        let ceiling = too_high.map(|probe| probe.rate).fold(f64::INFINITY, f64::min);
        let below = last.iter().filter(|probe| probe.rate < ceiling);
        (below.map(|probe| probe.rate).fold(0.0, f64::max), ceiling)
    }

    /// Returns what comes next.
    pub fn step(&self) -> Step {
        if self.left_s() < PROBE_SECONDS_MIN.min(self.goal.budget_s)
            || self.probes.len() >= PROBES_MAX
        {
            return Step::Done;
        }
        let (floor, ceiling) = self.bracket(|probe| self.is_too_high(probe));
        if let Some(step) = self.descent_step(floor) {
            return step;
        }
        if let Some(rate) = self.ramp_again(floor) {
            return self.ramp(rate);
        }
        if ceiling.is_infinite() {
            let rate = if floor > 0.0 { floor * RAMP_STEP } else { self.goal.rate_first };
            return match floor < self.goal.rate_max {
                true => self.ramp(rate.min(self.goal.rate_max)),
                false => Step::Done,
            };
        }
        self.step_between(floor, ceiling)
    }

    fn ramp(&self, rate: f64) -> Step {
        let longest = (self.goal.budget_s * RAMP_PART).max(RAMP_SECONDS);
        let seconds = (RAMP_OPS / rate).clamp(RAMP_SECONDS, longest);
        Step::Probe { rate, seconds, role: ProbeRole::Ramp }
    }

    /// Returns the rate of the ramp that is to be probed again, as it was too high by so little, or
    /// so early, that a cold start may be the reason.
    fn ramp_again(&self, floor: f64) -> Option<f64> {
        let last = self.probes.iter().rev().find(|probe| probe.role != ProbeRole::Descent)?;
        let same = |probe: &&Probe| probe.role == ProbeRole::Ramp && probe.rate == last.rate;
        let is_first = self.probes.iter().filter(same).count() == 1;
        if last.role != ProbeRole::Ramp || !is_first || !self.is_too_high(last) {
            return None;
        }
        let most = last.bounds.iter().map(|parts| Counts(parts).share()).fold(0.0, f64::max);
        (floor == 0.0 || most < SHARE_MAX).then_some(last.rate)
    }

    /// Returns the probe that looks whether the store is back after an overload, where one is due.
    fn descent_step(&self, floor: f64) -> Option<Step> {
        let last = self.probes.last()?;
        let find = self.lasts(FIND_PART);
        if last.role != ProbeRole::Descent {
            let rate = if floor > 0.0 { floor * DESCENT_BELOW } else { last.rate / 2.0 };
            let step = Step::Probe { rate, seconds: find, role: ProbeRole::Descent };
            return last.is_overloaded.then_some(step);
        }
        let descents: Vec<&Probe> = self.descents_before(self.probes.len()).collect();
        let first = descents[0].rate;
        let (is_back, is_first) = (!self.is_too_high(last), last.rate == first);
        let lowest = descents.iter().map(|of| of.rate).fold(first, f64::min);
        let rate = match (is_back, is_first) {
            (true, true) => return None,
            // Whether it is back shows at the rate that it had carried.
            (true, false) => first,
            (false, true) if descents.len() == 1 => first,
            (false, _) => lowest / 2.0,
        };
        let seconds = (find * DESCENT_LONGER).min(self.left_s());
        Some(match rate >= first * DESCENT_LEAST {
            true => Step::Probe { rate, seconds, role: ProbeRole::Descent },
            false => Step::Done,
        })
    }

    /// Returns the probes before that place which look whether the store is back, in order of time.
    fn descents_before(&self, at: usize) -> impl Iterator<Item = &Probe> {
        let is_descent = |of: &&Probe| of.role == ProbeRole::Descent;
        let count = self.probes[..at].iter().rev().take_while(is_descent).count();
        self.probes[at - count..at].iter()
    }

    /// Returns what was found of a store that did not come back, if it did not.
    pub fn metastable(&self) -> Option<Metastable> {
        let is_last = |at: usize| {
            let after = self.probes.get(at);
            after.is_none_or(|after| after.role != ProbeRole::Descent)
        };
        (0..=self.probes.len()).filter(|at| is_last(*at)).find_map(|at| {
            let descents: Vec<&Probe> = self.descents_before(at).collect();
            let overloaded = self.probes.get((at - descents.len()).checked_sub(1)?)?;
            let (first, again) = (descents.first()?, descents.get(1)?);
            if !self.is_too_high(again) {
                return None;
            }
            // It was back where it carried the first rate, after the last one that was lower.
            let mut lower = descents.iter().rev().skip(1).map(|of| of.rate);
            let came_back = descents.last().is_some_and(|last| !self.is_too_high(last));
            Some(Metastable {
                overloaded_at: overloaded.rate,
                not_back_at: first.rate,
                back_at: lower.next().filter(|_| came_back),
            })
        })
    }

    /// Returns how long a probe is that is to last this part of the budget.
    fn lasts(&self, part: f64) -> f64 {
        (self.goal.budget_s * part).max(PROBE_SECONDS_MIN).min(self.left_s())
    }

    /// Returns the next probe between a rate that was carried and one that was not.
    fn step_between(&self, floor: f64, ceiling: f64) -> Step {
        let find = |rate: f64| Step::Probe {
            rate: rate.min(self.goal.rate_max),
            seconds: self.lasts(FIND_PART),
            role: ProbeRole::Find,
        };
        let (fit, line) = match self.best() {
            None => return find(f64::midpoint(floor, ceiling)),
            Some(Best::Between(line)) => return self.step_within(line),
            Some(Best::Fitted(fit, line)) => (fit, line),
        };
        if line.probes_count >= FITTED_MIN && line.precision() <= self.goal.precision {
            return Step::Done;
        }
        // Below and above the answer in turn.
        let is_even = self.counted().len().is_multiple_of(2);
        let away = (APART.ln() / fit.slope).max(line.rate * AWAY_MIN);
        let rate = line.rate + if is_even { -away } else { away };
        let rate = rate.clamp(line.rate * (1.0 - STRAY), line.rate * (1.0 + STRAY));
        match line.precision() <= FOUND {
            true => Step::Probe {
                rate: rate.min(self.goal.rate_max),
                seconds: self.lasts(FIT_PART),
                role: ProbeRole::Fit,
            },
            false => find(rate.clamp(floor * 0.8, ceiling)),
        }
    }

    /// Returns the next probe where nothing but a rate that was carried and one that was not is
    /// known: halfway, and at last at both of them once more.
    fn step_within(&self, line: LoadLine) -> Step {
        let probe = |rate: f64, part: f64| Step::Probe {
            rate,
            seconds: self.lasts(part),
            role: ProbeRole::Find,
        };
        if line.precision() > self.goal.precision.max(BETWEEN_MIN) {
            let part = if line.precision() <= FOUND { FIT_PART } else { FIND_PART };
            return probe(line.rate, part);
        }
        let once = |rate: f64| self.counted().iter().filter(|of| of.rate == rate).count() == 1;
        match [line.high, line.low].into_iter().find(|rate| once(*rate)) {
            Some(rate) => probe(rate, FIT_PART),
            None => Step::Done,
        }
    }

    /// Returns the best that is known of the answer: of what each bound says the lowest.
    fn best(&self) -> Option<Best> {
        let counted = self.counted();
        let fits: Vec<Option<Fit>> = (0..self.goal.shares_max.len())
            .map(|bound| fit_near(&self.points(&counted, bound), self.goal.shares_max[bound]))
            .collect();
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

    /// Returns the answer as far as a rate that was carried and one that was not say it.
    fn between(&self, is_too_high: impl Fn(&Probe) -> bool) -> Option<LoadLine> {
        let (low, high) = self.bracket(is_too_high);
        let probes = self.counted();
        let probes_count = probes.iter().filter(|of| of.rate == low || of.rate == high).count();
        high.is_finite().then_some(LoadLine {
            rate: f64::midpoint(low, high),
            low,
            high,
            probes_count,
            basis: Basis::Between,
        })
    }

    /// Returns what is to be fitted for a bound.
    fn points<'p>(&self, probes: &[&'p Probe], bound: usize) -> Vec<Point<'p>> {
        let point = |probe: &&'p Probe| Point {
            rate: probe.rate,
            seconds: probe.seconds,
            counts: Counts(&probe.bounds[bound]),
        };
        probes.iter().map(point).filter(|point| point.counts.ended() > 0).collect()
    }

    /// Returns the answer, as far as it is known.
    pub fn line(&self) -> Option<LoadLine> {
        match self.best()?.line() {
            // All or none missed in each probe, so nothing says how steeply it rises between.
            line if line.precision() > UNKNOWN => {
                self.between(|probe| self.is_too_high(probe)).or(Some(line))
            }
            line => Some(line),
        }
    }
}

#[cfg(test)]
#[path = "load_line_tests.rs"]
mod tests;

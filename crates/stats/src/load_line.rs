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

mod answer;
mod counts;
mod fit;
mod steps;

pub use counts::{PROBE_PARTS, ProbeCounts, ProbeStretch};
use fit::Counts;
use plimsoll_model::ProbeRole;

/// Of a probe that looks whether a store is back, the beginning does not count: all but one part of
/// so many.
const DESCENT_PART: usize = 2;

/// A probe of which less than this share was undisturbed shows nothing.
const CLEAN_MIN: f64 = 0.1;

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
    /// No lower rate is offered, but to look whether a store is back; 0: any may be.
    pub rate_min: f64,
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

impl ProbePart {
    /// Returns the share of the operations of these that missed the bound; 0 of none.
    pub fn share_missed(parts: &[Self]) -> f64 {
        let sum = |of: fn(&Self) -> u64| parts.iter().map(of).sum::<u64>();
        sum(|part| part.missed) as f64 / sum(|part| part.ended).max(1) as f64
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
    /// In what share of its time the client was not disturbed, which `bounds` are of.
    pub clean_share: f64,
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

impl Probe {
    fn is_too_high_for(&self, bound: usize, share_max: f64) -> bool {
        let counts = Counts(&self.bounds[bound]);
        if counts.missed() == 0 {
            return false;
        }
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

    /// Tells whether a probe shows nothing, as the client was disturbed too much of the time. That
    /// a store does not keep up shows all the same.
    pub fn is_disturbed(&self, probe: &Probe) -> bool {
        probe.clean_share < CLEAN_MIN && !probe.is_overloaded
    }

    /// Returns the probes that count for the answer: not those that look whether a store is back,
    /// nor those that show nothing, and of the ramp at each rate the last.
    fn counted(&self) -> Vec<&Probe> {
        let counts = |(at, probe): &(usize, &Probe)| match probe.role {
            _ if self.is_disturbed(probe) => false,
            ProbeRole::Descent => false,
            ProbeRole::Ramp => !self.probes[at + 1..].iter().any(|later| {
                later.role == ProbeRole::Ramp
                    && later.rate == probe.rate
                    && !self.is_disturbed(later)
            }),
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

    /// Returns what was found of a store that did not come back, if it did not.
    pub fn metastable(&self) -> Option<Metastable> {
        let is_last = |at: usize| {
            let after = self.probes.get(at);
            after.is_none_or(|after| after.role != ProbeRole::Descent)
        };
        (0..=self.probes.len()).filter(|at| is_last(*at)).find_map(|at| {
            let (begin, descents) = self.descents_before(at);
            let overloaded = self.probes.get(begin.checked_sub(1)?)?;
            let (first, again) = (descents.first()?, descents.get(1)?);
            if !self.is_too_high(again) {
                return None;
            }
            // It was back where it carried the first rate, after the last one that was lower.
            let mut lower =
                descents.iter().rev().map(|of| of.rate).filter(|rate| *rate < first.rate);
            let came_back = descents.last().is_some_and(|last| !self.is_too_high(last));
            Some(Metastable {
                overloaded_at: overloaded.rate,
                not_back_at: first.rate,
                back_at: lower.next().filter(|_| came_back),
            })
        })
    }

    /// Returns the probes before that place which look whether the store is back and show
    /// something, in order of time, and where the first probe of this kind is.
    fn descents_before(&self, at: usize) -> (usize, Vec<&Probe>) {
        let is_descent = |of: &&Probe| of.role == ProbeRole::Descent;
        let begin = at - self.probes[..at].iter().rev().take_while(is_descent).count();
        let shows = |of: &&Probe| !self.is_disturbed(of);
        (begin, self.probes[begin..at].iter().filter(shows).collect())
    }
}

#[cfg(test)]
#[path = "load_line_tests.rs"]
mod tests;

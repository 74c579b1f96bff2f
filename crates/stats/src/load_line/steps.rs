//! What comes next: which rate is probed, for how long, and what for.

use plimsoll_model::ProbeRole;

use super::answer::Best;
use super::{LoadLineSearch, Probe, Step};
use crate::load_line::fit::Counts;

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
/// A probe of which less than this part would be left takes all that is left of the budget.
const LEFT_OVER: f64 = 0.5;
/// Each probe is a stage of the record, of which there are no more than 256.
const PROBES_MAX: usize = 200;
/// After so many probes in a row that show nothing they are half as long, after so many the search
/// ends.
const DISTURBED_SHORTER: usize = 3;
const DISTURBED_MAX: usize = 12;
/// Where the answer is known so well, as half its interval over it, it is fitted from then on.
pub(super) const FOUND: f64 = 0.15;
/// Where nothing is carried, rates are looked at down to this part of the first one.
const LEAST: f64 = 1.0 / 64.0;
/// After so many short probes that have not found out where to fit, longer ones halve.
const FINDS_MAX: usize = 6;
/// A short probe is at no less than this part of what was carried.
const FIND_BELOW: f64 = 0.9;
/// Two rates of which one is carried and the other is not are looked between until they are so
/// close, as half their distance over the rate.
const BETWEEN_MIN: f64 = 0.015;
/// A probe is at least this part of the answer away from it, so that a line that is too steep by
/// chance is found out; once it is known better than that and how it rises, this part of that,
const AWAY_MIN: f64 = 0.05;
const NEARER: f64 = 0.4;
/// and no further than that part.
const STRAY: f64 = 0.12;
/// So many probes are fitted before the answer is taken for known.
const FITTED_MIN: usize = 4;
/// A store is to be back after an overload at this part of the highest rate that it carried: a
/// short probe may carry a little more than the line.
const DESCENT_BELOW: f64 = 0.75;
/// A store that is not back is asked again for so many times as long, and after that at half the
/// rate, until it is asked for less than this part of it.
const DESCENT_LONGER: f64 = 2.0;
const DESCENT_LEAST: f64 = 1.0 / 64.0;

impl LoadLineSearch {
    /// Returns what comes next. A probe that shows nothing changes nothing of that, so it is made
    /// again, and shorter after some in a row: a short one may find the client undisturbed.
    pub fn step(&self) -> Step {
        let in_a_row = self.probes.iter().rev().take_while(|of| self.is_disturbed(of)).count();
        if self.left_s() < PROBE_SECONDS_MIN.min(self.goal.budget_s)
            || self.probes.len() >= PROBES_MAX
            || in_a_row >= DISTURBED_MAX
        {
            return Step::Done;
        }
        let halved = 0.5_f64.powi((in_a_row / DISTURBED_SHORTER) as i32);
        match self.undisturbed_step() {
            Step::Probe { rate, seconds, role } if halved < 1.0 => {
                Step::Probe { rate, seconds: (seconds * halved).max(RAMP_SECONDS), role }
            }
            step => step,
        }
    }

    fn undisturbed_step(&self) -> Step {
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
        if ceiling <= self.goal.rate_min || ceiling < self.goal.rate_first * LEAST {
            return Step::Done;
        }
        self.step_between(floor.max(self.goal.rate_min), ceiling)
    }

    fn ramp(&self, rate: f64) -> Step {
        let longest = (self.goal.budget_s * RAMP_PART).max(RAMP_SECONDS);
        let seconds = (RAMP_OPS / rate).clamp(RAMP_SECONDS, longest);
        Step::Probe { rate, seconds, role: ProbeRole::Ramp }
    }

    /// Returns the rate of the ramp that is to be probed again, as it was too high by so little, or
    /// so early, that a cold start may be the reason.
    fn ramp_again(&self, floor: f64) -> Option<f64> {
        let shows = |probe: &&Probe| !self.is_disturbed(probe);
        let of_line = |probe: &&Probe| probe.role != ProbeRole::Descent;
        let last = self.probes.iter().rev().filter(shows).find(of_line)?;
        let same = |probe: &&Probe| {
            probe.role == ProbeRole::Ramp && probe.rate == last.rate && shows(probe)
        };
        let is_first = self.probes.iter().filter(same).count() == 1;
        if last.role != ProbeRole::Ramp || !is_first || !self.is_too_high(last) {
            return None;
        }
        let most = last.bounds.iter().map(|parts| Counts(parts).share()).fold(0.0, f64::max);
        (floor == 0.0 || most < SHARE_MAX).then_some(last.rate)
    }

    /// Returns the probe that looks whether the store is back after an overload, where one is due.
    fn descent_step(&self, floor: f64) -> Option<Step> {
        let at = self.probes.iter().rposition(|of| !self.is_disturbed(of))?;
        let last = &self.probes[at];
        let find = self.lasts(FIND_PART);
        if last.role != ProbeRole::Descent {
            let rate = if floor > 0.0 { floor * DESCENT_BELOW } else { last.rate / 2.0 };
            let step = Step::Probe { rate, seconds: find, role: ProbeRole::Descent };
            return (last.is_overloaded && !self.has_come_back_from(last)).then_some(step);
        }
        let (_, descents) = self.descents_before(at + 1);
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

    /// Tells whether the store has come back at once from an overload that was no less than this.
    fn has_come_back_from(&self, overload: &Probe) -> bool {
        self.probes.windows(2).any(|pair| {
            let [before, after] = pair else { return false };
            before.is_overloaded
                && before.rate >= overload.rate
                && before.seconds >= overload.seconds
                && before.role != ProbeRole::Descent
                && after.role == ProbeRole::Descent
                && !self.is_too_high(after)
        })
    }

    /// Returns how long a probe is that is to last this part of the budget.
    fn lasts(&self, part: f64) -> f64 {
        let seconds = (self.goal.budget_s * part).max(PROBE_SECONDS_MIN);
        let left = self.left_s();
        if left < seconds * (1.0 + LEFT_OVER) { left } else { seconds }
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
            Some(Best::Between(_)) => return self.step_within(),
            Some(Best::Fitted(fit, line)) => (fit, line),
        };
        if line.probes_count >= FITTED_MIN && line.precision() <= self.goal.precision {
            return Step::Done;
        }
        let finds_count = self.counted().iter().filter(|of| of.role == ProbeRole::Find).count();
        let is_found = line.precision() <= FOUND;
        if !is_found && finds_count >= FINDS_MAX {
            return self.step_within();
        }
        // Below and above the answer in turn.
        let is_even = self.counted().len().is_multiple_of(2);
        let is_known = fit.is_steep() && line.precision() < AWAY_MIN;
        let away_min = line.rate * if is_known { AWAY_MIN * NEARER } else { AWAY_MIN };
        let away = (APART.ln() / fit.slope).max(away_min).min(line.rate * STRAY);
        let rate = line.rate + if is_even { -away } else { away };
        match is_found {
            true => Step::Probe {
                rate: rate.min(self.goal.rate_max),
                seconds: self.lasts(FIT_PART),
                role: ProbeRole::Fit,
            },
            false => find(rate.clamp((floor * FIND_BELOW).max(self.goal.rate_min), ceiling)),
        }
    }

    /// Returns the next probe where nothing but a rate that was carried and one that was not is
    /// known: at the lower one, where only a short one carried it, halfway, and at last at both of
    /// them once more.
    fn step_within(&self) -> Step {
        let (low, high) = self.bracket(|probe| self.is_too_high(probe));
        let at = |rate: f64| self.counted().into_iter().filter(move |of| of.rate == rate);
        let probe = |rate: f64, part: f64| Step::Probe {
            rate,
            seconds: self.lasts(part),
            role: ProbeRole::Find,
        };
        let half = (high - low) / (high + low);
        let is_close = half <= FOUND;
        let long = self.lasts(FIT_PART) / 2.0;
        if is_close && self.left_s() > long * 2.0 && at(low).all(|of| of.seconds < long) {
            return probe(low, FIT_PART);
        }
        if half > self.goal.precision.max(BETWEEN_MIN) {
            return probe(f64::midpoint(low, high), if is_close { FIT_PART } else { FIND_PART });
        }
        match [high, low].into_iter().find(|rate| at(*rate).count() == 1) {
            Some(rate) => probe(rate, FIT_PART),
            None => Step::Done,
        }
    }
}

//! How many operations of an open loop were under way over time, how long they took, and whether
//! the store was saturated.

use std::time::Duration;

use plimsoll_model::{Moment, OpRate, OpRecord, per_sec};

use crate::ns;

/// Parts of an octave of time; each is at most an eighth as long as the time before it.
const PARTS: u64 = 8;
/// Everything before 2^`OCTAVE_FIRST` ns is one step.
const OCTAVE_FIRST: u64 = 16;
const STEPS: usize = 1 + (64 - OCTAVE_FIRST as usize) * PARTS as usize;

/// What began and ended in one step of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Step {
    started: u64,
    ended: u64,
    ended_ok: u64,
    /// The service times of the successes that began in it.
    service_ns: u128,
    service_count: u64,
}

/// Operations in flight over the time of a stage.
///
/// A step of time is an eighth of the octave it lies in, so the first moments, in which a load
/// that is too high fills its places, are seen as finely as they need to be, whatever the length of
/// the stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    started_ns: u64,
    steps: Vec<Step>,
}

/// So much of the places are nearly all.
const FULL_PART: f64 = 0.9;

/// A number of operations in flight, and how long each then took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// How many were under way, on average.
    pub in_flight: f64,
    /// The mean service time of the successes that began then.
    pub service_mean: Duration,
}

/// The load of an open loop that took every place it had for most of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FullLoad {
    /// While an eighth to half of the places were taken; `None` when that was never seen.
    pub half: Option<Level>,
    /// While at least nine in ten places were taken.
    pub full: Level,
    /// The successes that ended a second in that time.
    pub completed: OpRate,
}

impl FullLoad {
    /// Tells whether more in flight only made each operation take longer; `None` without evidence.
    ///
    /// By Little's law the rate is in flight / time. A store with room to spare takes as long with
    /// twice as many in flight; a saturated one takes twice as long. Between the two lies a time
    /// that grows with the square root.
    pub fn is_saturated(&self) -> Option<bool> {
        let half = self.half?;
        let times = self.full.service_mean.as_secs_f64() / half.service_mean.as_secs_f64();
        let places = self.full.in_flight / half.in_flight;
        (times.is_finite() && places > 1.0).then(|| times >= places.sqrt())
    }
}

impl InFlight {
    pub(crate) fn new(started: Moment) -> Self {
        Self { started_ns: started.as_ns(), steps: Vec::new() }
    }

    pub(crate) fn add(&mut self, op: &OpRecord) {
        self.step(op.start).started += 1;
        if op.outcome.is_ok() {
            let step = self.step(op.start);
            step.service_ns += u128::from(ns(op.service_time()));
            step.service_count += 1;
        }
        let step = self.step(op.end.max(op.start));
        step.ended += 1;
        step.ended_ok += u64::from(op.outcome.is_ok());
    }

    /// Adds what another one counted of the same stage.
    pub(crate) fn merge(&mut self, other: &Self) {
        let steps = self.steps.len().max(other.steps.len());
        // Bound: `STEPS`, by `index_of`.
        self.steps.resize(steps, Step::default());
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            mine.started += theirs.started;
            mine.ended += theirs.ended;
            mine.ended_ok += theirs.ended_ok;
            mine.service_ns += theirs.service_ns;
            mine.service_count += theirs.service_count;
        }
    }

    fn step(&mut self, at: Moment) -> &mut Step {
        let index = index_of(at.as_ns().saturating_sub(self.started_ns));
        if index >= self.steps.len() {
            // Bound: `STEPS`, by `index_of`.
            self.steps.resize(index + 1, Step::default());
        }
        &mut self.steps[index]
    }

    /// Tells whether nearly all of `limit` places were taken at some time.
    pub fn was_full(&self, limit: u32) -> bool {
        let mut under_way = 0;
        self.steps.iter().any(|step| {
            under_way = (under_way + step.started).saturating_sub(step.ended);
            under_way as f64 >= f64::from(limit) * FULL_PART
        })
    }

    /// Returns what was seen of a load that took nearly all of `limit` places while at least half
    /// of its operations began; `None` of another.
    pub fn full_load(&self, limit: u32) -> Option<FullLoad> {
        let limit = f64::from(limit);
        let (mut half, mut full) = (Sum::default(), Sum::default());
        let (mut under_way, mut started) = (0, 0);
        for (index, step) in self.steps.iter().enumerate() {
            let before = under_way as f64;
            under_way = (under_way + step.started).saturating_sub(step.ended);
            started += step.started;
            let (low, high) = (before.min(under_way as f64), before.max(under_way as f64));
            if low >= limit * FULL_PART {
                full.add(step, index, f64::midpoint(low, high));
            } else if (limit / 8.0..=limit / 2.0).contains(&high) {
                // Fewer tell of the first operations, which make connections and find a process
                // that sleeps, and of a store that serves some at once without their waiting.
                half.add(step, index, f64::midpoint(low, high));
            }
        }
        let is_most = full.started * 2 >= started;
        let level = full.level().filter(|_| is_most)?;
        let completed = per_sec(full.ended_ok as f64, Duration::from_nanos(full.length_ns))?;
        Some(FullLoad { half: half.level(), full: level, completed: OpRate(completed) })
    }
}

/// Steps added up.
#[derive(Default)]
struct Sum {
    started: u64,
    ended_ok: u64,
    length_ns: u64,
    service_ns: u128,
    service_count: u64,
    in_flight: f64,
}

impl Sum {
    fn add(&mut self, step: &Step, index: usize, in_flight: f64) {
        self.started += step.started;
        self.ended_ok += step.ended_ok;
        self.length_ns += start_of(index + 1).saturating_sub(start_of(index));
        self.service_ns += step.service_ns;
        self.service_count += step.service_count;
        // An operation alone is one in flight, also where none is at both borders of its step.
        self.in_flight += in_flight.max(1.0) * step.service_count as f64;
    }

    fn level(&self) -> Option<Level> {
        let count = self.service_count;
        let mean = |sum: u128| Duration::from_nanos((sum / u128::from(count)) as u64);
        (count > 0).then(|| Level {
            in_flight: self.in_flight / count as f64,
            service_mean: mean(self.service_ns),
        })
    }
}

/// Returns the number of the step in which a moment lies, by its time from the stage's start.
fn index_of(after_ns: u64) -> usize {
    let Some(octave) = after_ns.checked_ilog2().map(u64::from) else { return 0 };
    let Some(above) = octave.checked_sub(OCTAVE_FIRST) else { return 0 };
    let part = (after_ns - (1 << octave)) >> (octave - PARTS.ilog2() as u64);
    (1 + above * PARTS + part) as usize
}

/// Returns when a step begins, after the stage's start.
fn start_of(index: usize) -> u64 {
    if index >= STEPS {
        return u64::MAX;
    }
    let Some(above) = (index as u64).checked_sub(1) else { return 0 };
    let octave = OCTAVE_FIRST + above / PARTS;
    (1 << octave) + ((above % PARTS) << (octave - u64::from(PARTS.ilog2())))
}

#[cfg(test)]
#[path = "in_flight_tests.rs"]
mod tests;

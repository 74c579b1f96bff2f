//! When operations start: in answer to the ones before, or on a schedule of arrivals.

mod profile;

use std::fmt;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use plimsoll_model::WorkerId;
use serde::{Deserialize, Serialize};

use crate::Random;
use crate::trace::TraceTimes;
pub use profile::RateProfile;
pub(crate) use profile::{in_units, rate as parse_rate};

const ARRIVAL_DOMAIN: u64 = 0x6172_7276;
/// Tells the draw of a worker's delay from other choices of the seed.
const DELAY_DOMAIN: u64 = 0x6465_6c61;
/// The most operations an open loop may have under way; each needs a session of its own.
pub(crate) const MAX_IN_FLIGHT_MAX: u32 = 100_000;
/// So many operations an open loop may have under way where nothing else is said.
pub const MAX_IN_FLIGHT_DEFAULT: u32 = 1_024;

/// Returns how long after its stage's start the worker of that number begins. The seed draws it
/// from the range, so a reader of the record can compute it.
pub fn start_delay(range: &RangeInclusive<Duration>, seed: u64, worker: WorkerId) -> Duration {
    let (min, max) = (range.start().as_nanos() as u64, range.end().as_nanos() as u64);
    let mut draw = Random::new(seed, DELAY_DOMAIN, u64::from(worker.0));
    Duration::from_nanos(min + draw.below(max.saturating_sub(min).saturating_add(1)))
}

/// When operations start.
#[derive(Clone, Debug, PartialEq)]
pub enum Pacing {
    /// The next one when the one before has ended.
    Closed,
    /// As closed, but not more than this many per second in all; waiting is outside of the latency.
    Capped {
        /// The cap over all workers.
        ops_per_sec: f64,
    },
    /// On a schedule, whatever the store does.
    Open(OpenLoop),
}

/// A schedule of arrivals that does not wait for the store.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenLoop {
    /// How many operations a second, over all workers.
    pub profile: RateProfile,
    /// How the arrivals lie about that rate.
    pub arrivals: ArrivalLaw,
    /// How many operations may be under way at once, over all workers.
    pub max_in_flight: NonZeroU32,
}

/// How arrivals lie about their rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalLaw {
    /// Evenly.
    Constant,
    /// Independently of each other: a Poisson process, as of many users who know nothing of each
    /// other.
    Poisson,
    /// At the instants of a trace.
    Trace,
}

impl ArrivalLaw {
    /// Every law that makes arrivals of a rate.
    pub const ALL: [Self; 2] = [Self::Constant, Self::Poisson];

    /// Returns the name it has in files and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Poisson => "poisson",
            Self::Trace => "trace",
        }
    }
}

impl fmt::Display for ArrivalLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ArrivalLaw {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|law| law.name() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(" and ");
            format!("`{text}` is not an arrival law; the laws are {names}")
        })
    }
}

/// The moments at which one worker's operations are wanted, counted from the stage's start, in
/// order and, but for those of a trace, without end: a function of the seed and the worker, not of
/// what the store does.
///
/// With Λ(t) the number of operations that the rate amounts to within t, constant arrival k of all
/// workers together is at Λ⁻¹(k), and of W workers number w has those with k ≡ w mod W. Poisson
/// arrivals are those of W independent processes of the rate λ(t) / W, made by inversion: with E₁,
/// E₂, … independent exponential variables of mean 1, arrival n is at Λ⁻¹(W · (E₁ + … + Eₙ)) (E.
/// Çınlar, *Introduction to Stochastic Processes*, 1975, section 4.7).
#[derive(Clone, Debug)]
pub struct Arrivals {
    profile: RateProfile,
    workers: u32,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    /// The number of the next arrival among those of all workers.
    Constant { next: u64 },
    /// How many arrivals the worker's own rate amounts to so far.
    Poisson { random: Random, amount: f64 },
    /// As a trace says.
    Trace(TraceTimes),
}

impl Arrivals {
    /// Returns the arrivals of `worker`, one of the `workers` of a job. `number` is its number
    /// among the workers of all jobs of the stage: by it what is random is drawn, since jobs that
    /// drew alike would arrive in pairs.
    pub fn new(
        open: &OpenLoop,
        seed: u64,
        workers: u32,
        worker: WorkerId,
        number: WorkerId,
    ) -> Self {
        let source = match open.arrivals {
            // The times of a trace take the place of a rate's.
            ArrivalLaw::Constant | ArrivalLaw::Trace => Source::Constant { next: worker.0.into() },
            ArrivalLaw::Poisson => {
                let random = Random::new(seed, ARRIVAL_DOMAIN, number.0.into());
                Source::Poisson { random, amount: 0.0 }
            }
        };
        Self { profile: open.profile.clone(), workers, source }
    }

    /// Returns the same worker's arrivals at the instants of a trace.
    #[must_use]
    pub fn at_times(self, times: TraceTimes) -> Self {
        Self { source: Source::Trace(times), ..self }
    }
}

impl Iterator for Arrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let count = match &mut self.source {
            Source::Constant { next } => {
                let count = *next as f64;
                *next += u64::from(self.workers);
                count
            }
            Source::Trace(times) => return times.next(),
            Source::Poisson { random, amount } => {
                // 1 − u is in (0, 1], so the logarithm is finite.
                *amount -= (1.0 - random.unit()).ln();
                *amount * f64::from(self.workers)
            }
        };
        Some(self.profile.time_of(count))
    }
}

#[cfg(test)]
mod tests;

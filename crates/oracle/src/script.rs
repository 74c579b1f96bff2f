//! What a scripted store does, checked: how long it takes, when it rests, how it fails and how it
//! lies.
//!
//! `docs/formats/oracle.md` has the meaning of every field to the letter.

mod distribution;
mod lower;
pub(crate) mod seaweed;
mod spec;
mod stall;

use std::time::Duration;

use plimsoll_model::OpKind;

pub(crate) use self::distribution::Distribution;
use self::seaweed::SeaweedPlan;
use self::spec::ScriptSpec;
pub(crate) use self::stall::Stall;
use crate::behaviour::Act;

/// The schema's name and version.
pub const SCRIPT_SCHEMA: &str = "plimsoll.oracle/1";

/// No service takes longer, whatever a heavy tail gives: 73 years.
const SERVICE_NS_MAX: f64 = (1u64 << 61) as f64;

/// What a scripted store does.
#[derive(Clone, Debug)]
pub struct Script {
    /// By [`OpKind`].
    pub(crate) plans: [KindPlan; OpKind::ALL.len()],
    pub(crate) servers: Option<u32>,
    pub(crate) queue_max: Option<u32>,
    pub(crate) rate_cap: Option<RateCap>,
    pub(crate) refusal_ns: u64,
    pub(crate) stall: Option<Stall>,
    pub(crate) brownouts: Vec<Brownout>,
    pub(crate) collapse: Option<Collapse>,
    /// So many requests at the beginning are answered as they should be.
    pub grace_count: u64,
    pub(crate) plant: Option<Plant>,
    /// What only a SeaweedFS does.
    pub seaweed: SeaweedPlan,
}

/// A slow state that the store falls into and stays in under load. Times are in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Collapse {
    pub(crate) above: u64,
    pub(crate) factor: f64,
    pub(crate) calm: u64,
    pub(crate) lasting: u64,
}

/// Why a script is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// It is no YAML, or holds what a script does not have.
    #[error("the oracle script cannot be read: {0}")]
    Yaml(String),
    /// A field has an impossible value.
    #[error("{field}: {reason}")]
    Field {
        /// The path of the field, such as `faults.get.slow_down`.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// What is done with operations of one kind.
#[derive(Clone, Debug)]
pub(crate) struct KindPlan {
    pub(crate) service: Service,
    /// Acts with the sum of the shares up to and with theirs.
    pub(crate) mix: Vec<(f64, Act)>,
}

/// How long serving takes.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) time: Distribution,
    pub(crate) per_byte_ns: f64,
    /// By how much of the first service time each ns adds.
    pub(crate) drift_per_ns: f64,
    pub(crate) first_byte: FirstByte,
}

/// When the first byte goes out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FirstByte {
    Share(f64),
    /// Nanoseconds in front of the service time.
    Delay(f64),
}

/// A token bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateCap {
    pub(crate) ops_per_ns: f64,
    pub(crate) burst: f64,
}

/// A stretch in which serving takes `factor` times as long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brownout {
    pub(crate) from: u64,
    pub(crate) lasting: u64,
    pub(crate) every: Option<u64>,
    pub(crate) factor: f64,
}

/// An exact number of wrong answers.
#[derive(Clone, Debug)]
pub(crate) struct Plant {
    pub(crate) count: u64,
    pub(crate) of: u64,
    pub(crate) acts: Vec<Act>,
}

impl Script {
    /// Returns the script that `yaml` holds.
    pub fn from_yaml(yaml: &str) -> Result<Self, ScriptError> {
        let spec: ScriptSpec = serde_saphyr::from_str(yaml).map_err(|error| {
            let text = error.without_snippet().to_string();
            ScriptError::Yaml(text.split_whitespace().collect::<Vec<_>>().join(" "))
        })?;
        lower::lower(&spec)
    }

    /// Returns the JSON Schema of scripts.
    #[cfg(feature = "schema")]
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(ScriptSpec).into()
    }

    /// Returns the service time that an operation of `kind` with `content_bytes` stays at or below
    /// with the chance `p` in [0, 1), drift, brown-outs, stalls and waiting apart.
    pub fn quantile(&self, kind: OpKind, content_bytes: u64, p: f64) -> Duration {
        assert!((0.0..1.0).contains(&p), "a chance is in [0, 1)");
        let service = &self.plan(kind).service;
        as_duration(service.fixed_ns(content_bytes) + service.time.quantile(p))
    }

    /// Returns the mean of that service time, `None` where it is infinite.
    pub fn mean(&self, kind: OpKind, content_bytes: u64) -> Option<Duration> {
        let service = &self.plan(kind).service;
        Some(as_duration(service.fixed_ns(content_bytes) + service.time.mean()?))
    }

    /// Returns the script without an act that a store cannot do to operations of a kind.
    pub fn without(mut self, kind: OpKind, act: Act) -> Self {
        let mix = &mut self.plans[kind as usize].mix;
        let (mut before, mut left_out) = (0.0, 0.0);
        mix.retain_mut(|(up_to, of)| {
            let share = *up_to - std::mem::replace(&mut before, *up_to);
            left_out += if *of == act { share } else { 0.0 };
            *up_to -= left_out;
            *of != act
        });
        self
    }

    pub(crate) fn plan(&self, kind: OpKind) -> &KindPlan {
        &self.plans[kind as usize]
    }

    /// Tells whether some lie may be told, so that the store has to remember what was before.
    pub(crate) fn tells_lies(&self) -> bool {
        let lie = |act: &Act| matches!(act, Act::Lie(_));
        self.plans.iter().any(|plan| plan.mix.iter().any(|(_, act)| lie(act)))
            || self.plant.as_ref().is_some_and(|plant| plant.acts.iter().any(lie))
    }
}

impl Service {
    /// Returns what comes on top of the distribution's time.
    fn fixed_ns(&self, content_bytes: u64) -> f64 {
        let delay = match self.first_byte {
            FirstByte::Share(_) => 0.0,
            FirstByte::Delay(delay) => delay,
        };
        delay + self.per_byte_ns * content_bytes as f64
    }

    /// Returns the work until the first byte and until the last, in ns, of a service with the
    /// random number `unit` that begins at `start`; `brownout` is the factor of that moment.
    pub(crate) fn work(
        &self,
        unit: f64,
        content_bytes: u64,
        start: u64,
        brownout: f64,
    ) -> (u64, u64) {
        let factor = brownout * (1.0 + self.drift_per_ns * start as f64);
        let whole = factor * (self.fixed_ns(content_bytes) + self.time.draw(unit));
        // Even the fastest store takes a moment, or a closed loop would never see time pass.
        let whole = whole.round().clamp(1.0, SERVICE_NS_MAX);
        let first = match self.first_byte {
            FirstByte::Share(share) => whole * share,
            FirstByte::Delay(delay) => factor * delay,
        };
        (first.round().min(whole) as u64, whole as u64)
    }
}

impl Brownout {
    pub(crate) fn covers(&self, at: u64) -> bool {
        let Some(since) = at.checked_sub(self.from) else { return false };
        self.every.map_or(since, |every| since % every) < self.lasting
    }
}

fn as_duration(ns: f64) -> Duration {
    Duration::from_nanos(ns.round().clamp(1.0, SERVICE_NS_MAX) as u64)
}

#[cfg(test)]
mod files_tests;
#[cfg(test)]
mod tests;

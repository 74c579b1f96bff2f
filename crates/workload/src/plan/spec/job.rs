//! Jobs as written: workers, pacing, limits, and what they do.

use std::fmt;
use std::str::FromStr;

use plimsoll_model::Interface;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Limit, WorkSpec, is_one, is_zero, one};
use crate::plan::tree::{Tree, from_tree, scalar_or};
use crate::plan::units::{Cap, Percent, Rate, Size, Time, TimeRange, written};
use crate::{ArrivalLaw, MAX_IN_FLIGHT_DEFAULT, RateProfile};

/// Work that one or several workers do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// What it is called. The only job of a stage may be left without; it is called as the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Which target it works on; left out, the one that its sets lie on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// How many workers it has. In an open loop each is a stream of operations with arrivals of its
    /// own.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub workers: u32,
    /// How many operations each worker keeps in flight; an open loop has no use for it.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub depth: u32,
    /// When operations start.
    #[serde(default, skip_serializing_if = "PacingSpec::is_closed")]
    pub pacing: PacingSpec,
    /// How long each of its workers lasts at most, counted from the end of the worker's ramp: start
    /// delay and ramp come on top. Where its stage has a shorter one, that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Time>,
    /// After how many operations it ends, those of the ramp included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops: Option<Limit<u64>>,
    /// After how many bytes it ends, those of the ramp included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Limit<Size>>,
    /// How long each worker runs, from its own beginning, before what is measured begins.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub ramp: Time,
    /// How long each worker goes on after its duration; operations that begin then are in no figure
    /// but their own count.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub ramp_down: Time,
    /// How long after the start of its stage each worker begins; drawn from the range.
    #[serde(default, skip_serializing_if = "TimeRange::is_zero")]
    pub start_delay: TimeRange,
    /// Pauses between operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<ThinkSpec>,
    /// Whether every byte that is read is checked; left out, as the file says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<bool>,
    /// Jobs of one group are reported in one row; left out, the job has a row of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// Which agent does it; left out, all of them share its workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How operations on files reach the kernel: `io_uring`, `libaio` or `psync`. Left out, the
    /// first of them that the machine allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<InterfaceSpec>,
    /// How members and sequential work are shared among workers.
    #[serde(default, skip_serializing_if = "DealSpec::is_default")]
    pub deal: DealSpec,
    /// The share of operations that may fail before the job counts as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_error_rate: Option<Percent>,
    /// What is done.
    pub work: WorkSpec,
}

impl JobSpec {
    /// Returns a job of so many workers, each with one operation in flight, that nothing limits.
    pub fn of(workers: u32, work: WorkSpec) -> Self {
        Self {
            name: None,
            on: None,
            workers,
            depth: 1,
            pacing: PacingSpec::Closed,
            duration: None,
            ops: None,
            bytes: None,
            ramp: Time::default(),
            ramp_down: Time::default(),
            start_delay: TimeRange::default(),
            think: None,
            verify: None,
            group: None,
            agent: None,
            interface: None,
            deal: DealSpec::default(),
            max_error_rate: None,
            work,
        }
    }
}

fn is_no_time(time: &Time) -> bool {
    time.0.is_zero()
}

/// How operations on files reach the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceSpec(pub Interface);

written!(InterfaceSpec, "one of io_uring, libaio and psync", "io_uring");

impl FromStr for InterfaceSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Interface::from_name(text).map(Self).ok_or_else(|| "there is no such interface".to_owned())
    }
}

impl fmt::Display for InterfaceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

/// How arrivals lie about their rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrivals(pub ArrivalLaw);

written!(Arrivals, "one of constant and poisson", "poisson");

impl Default for Arrivals {
    fn default() -> Self {
        Self(ArrivalLaw::Constant)
    }
}

impl Arrivals {
    pub(super) const fn poisson() -> Self {
        Self(ArrivalLaw::Poisson)
    }

    pub(super) fn is_poisson(&self) -> bool {
        *self == Self::poisson()
    }

    pub(super) fn is_constant(&self) -> bool {
        *self == Self::default()
    }
}

impl FromStr for Arrivals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// When operations start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum PacingSpec {
    /// The next one when the one before has ended.
    #[default]
    Closed,
    /// As closed, with a cap over all workers: `{capped: 20/s}`.
    Capped(Rate),
    /// As closed, with caps on each worker.
    CappedEach(CappedEach),
    /// On a schedule, whatever the target does: `{open: 100/s}`, or with more to say
    /// `{open: {rate: 100/s..2000/s over 2m, arrivals: poisson}}`.
    Open(OpenSpec),
}

impl PacingSpec {
    fn is_closed(&self) -> bool {
        *self == Self::Closed
    }
}

/// Caps on each worker; one of them at least.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CappedEach {
    /// The cap on reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Cap>,
    /// The cap on writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Cap>,
    /// How the gaps are: even (`constant`) or as of arrivals without memory (`poisson`).
    #[serde(default, skip_serializing_if = "Arrivals::is_constant")]
    pub arrivals: Arrivals,
}

/// A schedule of arrivals.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = or_rate))]
pub struct OpenSpec {
    /// Operations a second over all workers.
    #[cfg_attr(feature = "schema", schemars(flatten))]
    pub rate: RateSpec,
    /// How arrivals lie about that rate: `constant` or `poisson`.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub arrivals: Arrivals,
    /// How many operations may be under way at once, over all workers.
    #[cfg_attr(feature = "schema", schemars(default = "in_flight"))]
    pub max_in_flight: u32,
}

/// Lets a schema take the rate alone, too.
#[cfg(feature = "schema")]
fn or_rate(schema: &mut schemars::Schema) {
    super::or_short(schema, [serde_json::json!({ "type": "string", "examples": ["1000/s"] })]);
}

/// The rate of a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RateSpec {
    /// Over the course of one stage: `100/s`, `100/s..2000/s over 2m`, or `100/s for 30s, 200/s`.
    Rate(RateProfile),
    /// One stage after the other, each with figures of its own: `[{200/s: 30s}, {600/s: 30s}]`.
    Steps(Vec<Step>),
}

/// A rate and how long it holds, written `{200/s: 30s}`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The rate.
    pub rate: Rate,
    /// How long.
    pub time: Time,
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map([(self.rate.to_string(), self.time)])
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let form = || D::Error::custom("must be a rate with a time such as {200/s: 30s}");
        let Tree::Map(fields) = Tree::deserialize(from)? else { return Err(form()) };
        let [(rate, time)] = <[(String, Tree); 1]>::try_from(fields).map_err(|_| form())?;
        let rate = from_tree(Tree::Text(rate))?;
        Ok(Self { rate, time: from_tree(time)? })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Step {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Step".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A rate and how long it holds, written `{200/s: 30s}`.",
            "type": "object",
            "additionalProperties": { "type": "string" },
            "minProperties": 1,
            "maxProperties": 1,
        })
    }
}

impl OpenSpec {
    /// Returns the schedule of that rate, with even arrivals.
    pub fn of(rate: RateSpec) -> Self {
        Self { rate, arrivals: Arrivals::default(), max_in_flight: in_flight() }
    }
}

/// The fields of a schedule as they are written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<RateProfile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<Step>>,
    #[serde(default, skip_serializing_if = "Arrivals::is_constant")]
    arrivals: Arrivals,
    #[serde(default = "in_flight", skip_serializing_if = "is_in_flight")]
    max_in_flight: u32,
}

impl Serialize for OpenSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (rate, steps) = match self.rate.clone() {
            RateSpec::Rate(rate) => (Some(rate), None),
            RateSpec::Steps(steps) => (None, Some(steps)),
        };
        let Self { arrivals, max_in_flight, .. } = *self;
        match rate {
            Some(rate) if *self == Self::of(RateSpec::Rate(rate.clone())) => rate.serialize(to),
            rate => OpenFields { rate, steps, arrivals, max_in_flight }.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for OpenSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let read: Result<OpenFields, D::Error> = scalar_or(
            Tree::deserialize(from)?,
            |rate| OpenFields {
                rate: Some(rate),
                steps: None,
                arrivals: Arrivals::default(),
                max_in_flight: in_flight(),
            },
            |fields: OpenFields| fields,
        );
        let OpenFields { rate, steps, arrivals, max_in_flight } = read?;
        let rate = match (rate, steps) {
            (Some(rate), None) => RateSpec::Rate(rate),
            (None, Some(steps)) => RateSpec::Steps(steps),
            _ => return Err(D::Error::custom("must have exactly one of the fields rate, steps")),
        };
        Ok(Self { rate, arrivals, max_in_flight })
    }
}

pub(super) fn in_flight() -> u32 {
    MAX_IN_FLIGHT_DEFAULT
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands on references")]
pub(super) fn is_in_flight(value: &u32) -> bool {
    *value == in_flight()
}

/// Pauses between the operations of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ThinkSpec {
    /// How long a pause is, counted from the end of the last operation in flight.
    pub pause: Time,
    /// How much of it is spent computing instead of sleeping.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub spin: Time,
    /// After how many operations it comes.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub every: u32,
}

/// How members and sequential work are shared among workers: `by_member`, or with more to say
/// `{by: by_bucket, shift: 1}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = or_by))]
pub struct DealSpec {
    /// What is dealt.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub by: DealBy,
    /// By how many workers it is moved on: worker w works on what worker w + shift made.
    #[cfg_attr(feature = "schema", schemars(default))]
    pub shift: u32,
}

/// Lets a schema take what is dealt alone, too.
#[cfg(feature = "schema")]
fn or_by(schema: &mut schemars::Schema) {
    super::or_short(schema, [serde_json::json!({ "$ref": "#/$defs/DealBy" })]);
}

/// What is dealt to workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DealBy {
    /// Members, each to one worker.
    #[default]
    ByMember,
    /// Buckets with all their members, each to one worker.
    ByBucket,
    /// Nothing: all workers take from the whole set. Only for work that changes none of it.
    None,
    /// Buckets of a set with names of the user's own, in as many contiguous slices as there are
    /// workers; the first slices have one more where it does not come out even.
    BucketSlices,
    /// Keys of a set with names of the user's own in the same way, of every bucket.
    MemberSlices,
}

impl DealSpec {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Tells whether each worker keeps to a contiguous part.
    pub(crate) const fn is_sliced(self) -> bool {
        matches!(self.by, DealBy::BucketSlices | DealBy::MemberSlices)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DealFields {
    #[serde(default, skip_serializing_if = "is_by_member")]
    by: DealBy,
    #[serde(default, skip_serializing_if = "is_zero")]
    shift: u32,
}

fn is_by_member(by: &DealBy) -> bool {
    *by == DealBy::ByMember
}

impl Serialize for DealSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.shift {
            0 => self.by.serialize(to),
            shift => DealFields { by: self.by, shift }.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for DealSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let both = |DealFields { by, shift }| Self { by, shift };
        scalar_or(Tree::deserialize(from)?, |by| Self { by, shift: 0 }, both)
    }
}

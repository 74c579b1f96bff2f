//! How the model's own types are written: integers with their unit in the field's name, names as
//! in the op log.

use std::fmt::Display;
use std::time::Duration;

use plimsoll_model::{EndpointId, OpRate, Seed};
use serde::Serializer;

/// Returns a duration in nanoseconds, at most what 64 bits hold.
pub(crate) fn in_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Tells whether a number is that of the first of several, which is not written.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
pub(crate) fn is_first(number: &u32) -> bool {
    *number <= 1
}

pub(crate) fn ns<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(in_ns(*time))
}

pub(crate) fn ns_if_known<S: Serializer>(
    time: &Option<Duration>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => to.serialize_some(&in_ns(*time)),
        None => to.serialize_none(),
    }
}

pub(crate) fn rate<S: Serializer>(rate: &OpRate, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(rate.0)
}

pub(crate) fn rate_if_known<S: Serializer>(
    rate: &Option<OpRate>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match rate {
        Some(rate) => to.serialize_some(&rate.0),
        None => to.serialize_none(),
    }
}

pub(crate) fn display<S: Serializer>(value: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

pub(crate) fn display_if_known<S: Serializer>(
    value: &Option<impl Display>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.serialize_some(&value.to_string()),
        None => to.serialize_none(),
    }
}

pub(crate) fn seed<S: Serializer>(seed: &Option<Seed>, to: S) -> Result<S::Ok, S::Error> {
    display_if_known(&seed.map(|seed| seed.0), to)
}

pub(crate) fn endpoint_if_known<S: Serializer>(
    endpoint: &Option<EndpointId>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match endpoint {
        Some(endpoint) => to.serialize_some(&endpoint.0),
        None => to.serialize_none(),
    }
}

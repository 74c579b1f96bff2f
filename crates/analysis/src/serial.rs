//! How the model's own types are written, as integers with their unit in the field's name.

use std::time::Duration;

use plimsoll_model::{ByteRate, EndpointId, ErrorClass, Moment, OpKind, OpRate};
use serde::Serializer;

pub(crate) fn ns<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(crate::ns(*time))
}

pub(crate) fn ns_if_known<S: Serializer>(
    time: &Option<Duration>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => to.serialize_some(&crate::ns(*time)),
        None => to.serialize_none(),
    }
}

pub(crate) fn moment<S: Serializer>(at: &Moment, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(at.as_ns())
}

pub(crate) fn moment_if_known<S: Serializer>(
    at: &Option<Moment>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => to.serialize_some(&at.as_ns()),
        None => to.serialize_none(),
    }
}

pub(crate) fn kind<S: Serializer>(kind: &OpKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind.name())
}

pub(crate) fn endpoint<S: Serializer>(endpoint: &EndpointId, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u16(endpoint.0)
}

pub(crate) fn op_rate<S: Serializer>(rate: &OpRate, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(rate.0)
}

pub(crate) fn byte_rate<S: Serializer>(rate: &ByteRate, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(rate.0)
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

pub(crate) fn class<S: Serializer>(class: &ErrorClass, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(class.name())
}

//! The driver against a real OpenStack Swift, and against servers that play a script.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod fake;
mod large;
mod live;
mod scripted;
mod support;

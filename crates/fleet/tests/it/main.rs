//! Tests of the fleet from outside.

#![allow(clippy::unwrap_used, reason = "a test may fail by a panic")]

mod broker;
mod many;
mod runs;
mod schedules;
mod task;

//! Tests of the fleet from outside.

#![allow(clippy::unwrap_used, reason = "a test may fail by a panic")]
#![expect(clippy::disallowed_methods, reason = "tests read and write files of their own")]

mod broker;
mod hostile;
mod laggards;
mod liars;
mod many;
mod runs;
mod schedules;
mod task;

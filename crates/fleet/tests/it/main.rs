//! Tests of the fleet from outside.

mod broker;
mod runs;
mod schedules;

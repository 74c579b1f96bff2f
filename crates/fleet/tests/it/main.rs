//! Tests of the fleet from outside.

mod runs;
mod schedules;

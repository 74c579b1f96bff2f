//! Tests of the fleet from outside.

mod schedules;

//! Runs as whoever has one conducted meets them, against scripted stores in virtual time.

#![allow(clippy::unwrap_used, reason = "a test may fail by a panic")]

mod crews;
mod deciding;
mod simulated;

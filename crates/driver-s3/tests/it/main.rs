//! The driver over loopback: against a server that plays a script, against the embedded store, and
//! against the live servers where there are any.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod admin;
mod common;
mod fake;
mod faults;
mod keys;
mod listing;
mod offers;
mod operations;
mod whole;

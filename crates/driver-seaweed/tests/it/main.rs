//! The driver against a real SeaweedFS.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod live;

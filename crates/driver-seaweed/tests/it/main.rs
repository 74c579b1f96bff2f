//! The driver against a real SeaweedFS, and against a stand-in that does as it is told.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;
mod filer;
mod growth;
mod live;
mod replicas;
mod secured;
mod standin;
mod support;
mod tokens;

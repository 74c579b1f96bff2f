//! A fleet: one run carried out by agents on many machines, which a coordinator directs.
//!
//! Coordinator and agents are state machines without IO. What carries their messages may lose,
//! repeat, delay and reorder them.

pub mod agent;
pub mod coordinator;
pub mod fabric;
mod limits;
mod offset;
pub mod protocol;
pub mod simulated;
pub mod wire;

pub use limits::Limits;
pub use offset::{Echo, Offset, PROBES, Probes};

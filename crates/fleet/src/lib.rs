//! A fleet: one run carried out by agents on many machines, which a coordinator directs.
//!
//! Coordinator and agents are state machines without IO. What carries their messages may lose,
//! repeat, delay and reorder them.

pub mod agent;
pub mod agent_key;
pub mod broker;
mod content;
mod contents;
pub mod coordinator;
pub mod fabric;
pub mod lead;
mod limits;
pub mod local;
pub mod nats;
mod offset;
pub mod part;
pub mod pki;
pub mod protocol;
pub mod roll;
pub mod simulated;
pub mod station;
pub mod token;
pub mod wire;

pub use content::CONTENT_BYTES_MAX;
pub use limits::Limits;
pub use offset::{ClockLine, Echo, Offset, PROBES, Probes};

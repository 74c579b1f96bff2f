//! From a record to what is shown: opens it, asks the analysis, fills the report.
//!
//! Knows no terminal, no driver and not the engine: all it says, the record holds.

mod clients;
mod described;

pub use clients::{ClientStage, Clients, RowJobs, Rows, lay_out};
pub use described::{Described, described};

//! From a record to what is shown: opens it, asks the analysis, fills the report.
//!
//! Knows no terminal, no driver and not the engine: all it says, the record holds.

mod analyze;
mod asked;
mod clients;
mod described;
mod error;
mod flaws;
mod open;
mod report;
mod warp_file;
mod warp_record;

#[cfg(test)]
mod references_tests;
#[cfg(test)]
mod tests;

pub use analyze::AnalyzedStage;
pub use asked::Asked;
pub use clients::{ClientStage, Clients, RowJobs, Rows, lay_out};
pub use described::{Described, described};
pub use error::{AskedFor, ReadError, ResultsError};
pub use flaws::flaws;
pub use open::{Opened, Origin, Record, RecordStage, Source, open, runs};
pub use report::typed_again;
pub use warp_file::WarpFile;
pub use warp_record::WarpRecord;

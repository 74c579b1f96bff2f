//! From a record to what is shown: opens it, asks the analysis, fills the report.
//!
//! Knows no terminal, no driver and not the engine: all it says, the record holds.

mod agents;
mod analyze;
mod asked;
mod clients;
mod comparing;
mod crimes;
mod described;
mod environment;
mod error;
mod events;
mod export;
mod export_hdr;
mod export_openmetrics;
mod export_trace;
mod first_errors;
mod flaws;
mod load_line;
mod merging;
mod names;
mod open;
mod parameters;
mod queue_theory;
mod raw_file;
mod read_back;
mod report;
mod schedules;
mod scraped;
mod standstills;
mod steady;
mod steps;
mod tables;
mod threads;
mod verdict;
mod warp_file;
mod warp_record;

#[cfg(test)]
mod apart_tests;
#[cfg(test)]
mod references_tests;
#[cfg(test)]
mod tests;

pub use analyze::AnalyzedStage;
pub use asked::Asked;
pub use clients::{ClientStage, Clients, RowJobs, Rows, lay_out};
pub use comparing::Side;
pub use described::{Described, described};
pub use environment::environment;
pub use error::{AskedFor, ExportError, ReadError, ResultsError};
pub use export::{Export, ExportFormat};
pub use export_trace::{Trace, TraceAsked, TraceWritten};
pub use flaws::flaws;
pub use merging::{RawWritten, parts, write_raw};
pub use open::{Opened, Origin, Record, RecordStage, Source, degraded, only_sums, open, runs};
pub use report::typed_again;
pub use verdict::client_facts;
pub use warp_file::WarpFile;
pub use warp_record::WarpRecord;

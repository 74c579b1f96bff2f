//! The run directory: the manifest `run.json`, the op log `ops/part-*.parquet` and `summary.json`.
//!
//! What each file holds, field by field, stands in `docs/formats/run.md` and `docs/formats/ops.md`.
//! Knows neither who makes the operations nor what is concluded from them, and never sees a
//! credential.

mod count;
mod directory;
mod error;
pub mod exposure;
mod folder;
mod lease;
mod merge;
mod ops;
pub mod removal;
pub mod schema;
mod scraped;
mod seal;
mod segments;
mod state_directory;
mod summary;
mod travel;

pub use count::{sample_of, series_of};
pub use directory::{ReadManifest, RunDirectory};
pub use error::RecordError;
pub use lease::{Lease, is_alive};
pub use merge::{MergeError, MergePart, Scan, merge, plan};
pub use ops::{OpLog, OpLogTotals, OpLogWriter, PART_AGE_MAX, PART_ROWS_MAX, SAVE_AGE, Salvage};
pub use schema::Manifest;
pub use scraped::{ScrapeRead, Scraped, ScrapedLine, ScrapedSeries, ScrapedWriter};
pub use segments::{SegmentRow, write_segments};
pub use state_directory::{StateDirectory, StateDirectoryError};
pub use summary::{SummaryCounter, SummaryWriter};
pub use travel::{Receiving, RunFile, Staging};

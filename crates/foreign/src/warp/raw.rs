//! warp's raw file: one tab-separated line for each operation.

mod classify;
mod losses;
mod names;
mod rows;
mod scan;
pub(crate) mod time;
mod writer;

#[cfg(test)]
mod tests;

pub use classify::classify;
pub use losses::{Loss, LossKind, UNKNOWN_OPS_MAX};
pub use names::{ForeignWorker, NAME_BYTES_MAX, NAMES_MAX, Names, WORKERS_MAX, object_id};
pub use rows::ROW_BYTES_MAX;
pub use scan::{BYTES_MAX, BYTES_SUM_MAX, OBJECTS_SUM_MAX, ScanEnd, Texts, scan, scan_ahead};
pub use writer::{RawRow, THREAD_MAX_OF_WARP, Writer};

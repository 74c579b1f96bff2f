//! The text in which Prometheus is told of metrics: its own format 0.0.4, and OpenMetrics 1.0.
//! Written line by line, since the official library writes only OpenMetrics and no times; read
//! leniently, since what stores write is not always right.

mod read;
mod write;

pub use read::{Page, PageSample, SeriesKind, read};
pub use write::{Exposition, Family, Writer};

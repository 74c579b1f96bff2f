//! Reads and writes the record files of other tools: warp's raw and aggregated files; reads the
//! logs and traces of stores and tools (`trace`); writes and reads the text of Prometheus; writes
//! HdrHistogram's logs and traces for Chrome and Perfetto.
//!
//! Turns rows into `OpRecord`s and back; works on `Read` and `Write`, knows neither paths nor
//! Parquet nor what is concluded from a record.

pub mod chrome_trace;
pub mod hdr_log;
pub mod prometheus;
pub mod trace;
pub mod warp;

//! Reads and writes the record files of other tools: warp's raw and aggregated files; reads the
//! logs and traces of stores and tools (`trace`); writes and reads the text of Prometheus.
//!
//! Turns rows into `OpRecord`s and back; works on `Read` and `Write`, knows neither paths nor
//! Parquet nor what is concluded from a record.

pub mod prometheus;
pub mod trace;
pub mod warp;

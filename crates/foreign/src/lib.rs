//! Reads and writes the record files of other tools: warp's raw and aggregated files.
//!
//! Turns rows into `OpRecord`s and back; works on `Read` and `Write`, knows neither paths nor
//! Parquet nor what is concluded from a record.

pub mod warp;

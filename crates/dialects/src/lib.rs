//! Other tools, a room each: what their job files and command lines ask for, with a note of every
//! meaning that changes on the way, and their layouts of a result.
//!
//! Pure functions over values: what else is needed (included files, variables, the size of the
//! machine, the report of a run) is handed in. Knows neither the engine nor a driver.

pub mod fio;
pub mod mdtest;
pub mod s3_benchmark;
pub mod warp;

mod spelling;

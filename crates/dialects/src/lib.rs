//! Reads the job files and command lines of other tools into a neutral form, with a note of every
//! meaning that changes on the way.
//!
//! Pure functions over text: what else is needed (included files, variables, the size of the
//! machine) is handed in. Knows neither the engine nor a driver.

pub mod fio;
pub mod mdtest;
pub mod s3_benchmark;
pub mod warp;

mod spelling;

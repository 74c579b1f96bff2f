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

use plimsoll_workload::InvalidWorkload;
use plimsoll_workload::files::FilesSpec;
use plimsoll_workload::plan::WorkloadFile;

/// Returns a run on files in today's language, if it is sound.
pub fn on_files(spec: &FilesSpec) -> Result<WorkloadFile, InvalidWorkload> {
    spec.check()?;
    WorkloadFile::try_from(spec).map_err(|refused| InvalidWorkload {
        field: refused.path.to_string().into(),
        reason: refused.reason,
    })
}

//! The tables that COSBench writes of a workload when it has run: as it lays them out, out of our
//! record.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use plimsoll_dialects::cosbench::layout::{
    Ran, Results, WORKLOADS_HEADER, WorkloadState, config_xml, files, from_results, workloads_rows,
};
use plimsoll_dialects::cosbench::{Options, lower, read};
use plimsoll_model::WallTime;
use plimsoll_results::{Asked, Record, Rows};

use crate::clock::{IN_FILES, local};
use crate::disk;
use crate::names::safe;
use crate::state::{SourceKind, State};
use crate::store::Entry;

/// The file with the figures of all workloads.
const ALL: &str = "workloads.csv";
/// How often COSBench takes a snapshot where a work says nothing.
const INTERVAL: Duration = Duration::from_secs(5);
/// What the console writes itself, while it goes on.
const OURS: [&str; 2] = ["workload.log", "scripts.log"];

/// Writes the tables of a workload.
pub(super) fn write(
    root: &Path,
    directory: &Path,
    entry: &Entry,
    text: &str,
) -> Result<(), String> {
    let Some(run) = entry.run_directory.as_deref().filter(|_| entry.kind == SourceKind::Cosbench)
    else {
        return Ok(());
    };
    if !Path::new(run).join("run.json").exists() {
        return Ok(());
    }
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let mut workload = read(text.as_bytes()).map_err(|error| failed(&error))?;
    workload.name = safe(&entry.name);
    let lowered = lower(&workload, &Options::default()).map_err(|error| failed(&error))?;
    // A run that recorded nothing has no figures, which is no failure of its archive.
    let Ok(record) = Record::open(Path::new(run)) else { return Ok(()) };
    let asked = Asked {
        rows: Rows::Jobs,
        distributions: true,
        details: true,
        segment: Some(INTERVAL),
        ..Asked::default()
    };
    let report = record.report(&asked).map_err(|error| failed(&error))?;
    let workers = record.report(&Asked { rows: Rows::Workers, ..asked });
    let workers = workers.ok();
    let results = Results {
        workload: &workload,
        lowered: &lowered,
        report: &report,
        by_worker: workers.as_ref(),
    };
    let wall = |ms: i64| WallTime::from_unix_ns(u64::try_from(ms).unwrap_or(0) * 1_000_000);
    let id = entry.number.to_string();
    let ran = Ran {
        id: &id,
        submitted: wall(entry.submitted_ms),
        stopped: entry.ended_ms.map(wall),
        state: Some(state(entry.state)),
        local: &|at| {
            local(i64::try_from(at.as_unix_ns() / 1_000_000).unwrap_or(i64::MAX), IN_FILES)
        },
    };
    let archive = from_results(&results, &ran);
    for file in files(&archive, config_xml(&workload), &[]) {
        let path = directory.join(safe(&file.name));
        if !OURS.contains(&&*file.name) || !path.exists() {
            disk::write(&path, file.text.as_bytes()).map_err(|error| failed(&error))?;
        }
    }
    let path = root.join(ALL);
    let is_new = !path.exists();
    let head = if is_new { format!("{WORKLOADS_HEADER}\n") } else { String::new() };
    let rows = head + &workloads_rows(&archive);
    let written = disk::appended(&path).and_then(|mut file| file.write_all(rows.as_bytes()));
    written.map_err(|error| failed(&error))
}

fn state(state: State) -> WorkloadState {
    match state {
        State::Queued => WorkloadState::Queuing,
        State::Running => WorkloadState::Processing,
        State::Finished => WorkloadState::Finished,
        State::Failed => WorkloadState::Failed,
        State::Terminated => WorkloadState::Terminated,
        State::Cancelled => WorkloadState::Cancelled,
    }
}

//! The tables that COSBench writes of a workload when it has run: as it lays them out, out of our
//! record.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_dialects::cosbench::layout::{
    Archive, HISTORY_HEADER, Ran, Results, WORKLOADS_HEADER, WorkloadState, config_xml, files,
    from_results, history_row, meta, workloads_rows,
};
use plimsoll_dialects::cosbench::{Options, Workload, lower, read};
use plimsoll_model::WallTime;
use plimsoll_results::Record;

use super::{ALL, HISTORY, META};
use crate::clock::{IN_FILES, local};
use crate::disk;
use crate::names::safe;
use crate::state::{Number, SourceKind, State};
use crate::store::Entry;

/// More bytes than any number has.
const META_BYTES_MAX: u64 = 64;
/// How much is read of the end of the history, which has the last numbers: thousands of lines.
const HISTORY_BYTES_MAX: u64 = 4 << 20;
/// What the console writes itself, while it goes on.
const OURS: [&str; 2] = ["workload.log", "scripts.log"];

/// Returns a moment in local time as COSBench writes it.
fn in_files(at: WallTime) -> String {
    local(i64::try_from(at.as_unix_ns() / 1_000_000).unwrap_or(i64::MAX), IN_FILES)
}

/// A directory of COSBench's archives, held for one process.
pub struct ArchiveRoot {
    path: PathBuf,
    _held: File,
}

impl ArchiveRoot {
    /// Opens the directory, which is made where there is none; one that another process writes to
    /// is refused.
    pub fn open(path: &Path) -> io::Result<Self> {
        disk::make(path)?;
        disk::check_writable(path)?;
        let held = disk::hold(path)?.ok_or_else(|| {
            io::Error::other("another plimsoll is writing to it; wait until that has ended")
        })?;
        Ok(Self { path: path.to_path_buf(), _held: held })
    }

    /// Returns the id of the next workload.
    pub fn next_id(&self) -> String {
        Number(last_number(&self.path) + 1).to_string()
    }

    /// Writes all of a workload that has run, and returns in which directory.
    pub fn keep(&self, archive: &Archive, workload: &Workload) -> io::Result<PathBuf> {
        let directory = self.path.join(safe(&archive.directory()));
        disk::make_new(&directory)?;
        write_files(&directory, archive, workload)?;
        append(&self.path.join(ALL), WORKLOADS_HEADER, &workloads_rows(archive))?;
        append(&self.path.join(HISTORY), HISTORY_HEADER, &history_row(archive))?;
        disk::write(&self.path.join(META), meta(&archive.id).as_bytes())?;
        Ok(directory)
    }
}

/// Returns the highest number of an archived workload, ours or COSBench's: of those in `.meta`, in
/// the history and in names of directories. 0 where there is none.
pub(crate) fn last_number(root: &Path) -> i64 {
    let last = disk::read_end(&root.join(META), META_BYTES_MAX).unwrap_or_default();
    let last = Number::parse(&format!("w{}", last.trim()));
    let history = disk::read_end(&root.join(HISTORY), HISTORY_BYTES_MAX).unwrap_or_default();
    let of_history = history.lines().filter_map(|line| Number::parse(line.split(',').next()?));
    let names = disk::names_in(root).unwrap_or_default();
    let of_names = names.iter().filter_map(|name| Number::parse(name.split('-').next()?));
    of_history.chain(of_names).chain(last).max().map_or(0, |number| number.0)
}

fn write_files(directory: &Path, archive: &Archive, workload: &Workload) -> io::Result<()> {
    disk::check_directory(directory)?;
    for file in files(archive, config_xml(workload), &[]) {
        let path = directory.join(safe(&file.name));
        if !OURS.contains(&&*file.name) || !path.exists() {
            disk::write(&path, file.text.as_bytes())?;
        }
    }
    Ok(())
}

/// Appends rows to a table over all workloads.
fn append(path: &Path, head: &str, rows: &str) -> io::Result<()> {
    let head = if path.exists() { String::new() } else { format!("{head}\n") };
    disk::appended(path)?.write_all((head + rows).as_bytes())
}

/// Writes the tables of a workload of the queue.
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
    let mut workload = read(text.as_bytes()).map_err(|error| error.to_string())?;
    workload.name = safe(&entry.name);
    let lowered = lower(&workload, &Options::default()).map_err(|error| error.to_string())?;
    let wall = |ms: i64| WallTime::from_unix_ns(u64::try_from(ms).unwrap_or(0) * 1_000_000);
    let id = entry.number.to_string();
    let ran = Ran {
        id: &id,
        submitted: wall(entry.submitted_ms),
        stopped: entry.ended_ms.map(wall),
        state: Some(state(entry.state)),
        local: &in_files,
    };
    let interval = Duration::from_secs(workload.interval_s().into());
    let reports = match Record::open(Path::new(run)) {
        Ok(record) => record.report_of_tables(interval).map_err(|error| error.to_string())?,
        // A run that recorded nothing has no figures, which is no failure of its archive.
        Err(_) => (None, None),
    };
    let (report, by_worker) = (reports.0.as_ref(), reports.1.as_ref());
    let results = Results { workload: &workload, lowered: &lowered, report, by_worker };
    let archive = from_results(&results, &ran);
    let written = write_files(directory, &archive, &workload);
    let written =
        written.and_then(|()| append(&root.join(ALL), WORKLOADS_HEADER, &workloads_rows(&archive)));
    written.map_err(|error| error.to_string())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_never_given_twice() {
        let folder = tempfile::tempdir().unwrap();
        let root = ArchiveRoot::open(folder.path()).unwrap();
        assert_eq!(root.next_id(), "w1");
        disk::write(&folder.path().join(META), b"3").unwrap();
        assert_eq!(root.next_id(), "w4");
        disk::make(&folder.path().join("w7-demo")).unwrap();
        assert_eq!(root.next_id(), "w8");
        // The number is lost; the history is not.
        disk::write(&folder.path().join(META), b"garbage").unwrap();
        disk::write(&folder.path().join(HISTORY), b"Id,Name\nw12,demo,,\n").unwrap();
        assert_eq!(root.next_id(), "w13");
        let second = ArchiveRoot::open(folder.path()).map(drop).unwrap_err().to_string();
        assert!(second.contains("another plimsoll"), "{second}");
    }

    #[test]
    fn links_and_pipes_in_an_archive_are_neither_followed_nor_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        disk::write(&path("outside"), b"41").unwrap();
        std::os::unix::fs::symlink(path("outside"), path(META)).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let (here, kind) = (rustix::fs::CWD, rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(here, path(HISTORY), kind, mode, 0).unwrap();
        disk::make(&path("w7-demo")).unwrap();
        assert_eq!(last_number(folder.path()), 7);
        assert!(append(&path(HISTORY), "", "w8,demo\n").is_err());
        disk::write(&path(META), b"9").unwrap();
        assert_eq!(last_number(folder.path()), 9);
    }
}

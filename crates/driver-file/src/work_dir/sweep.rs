//! Removing what a run left, and finding what runs left.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use plimsoll_model::WallTime;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::allowed_dirs::AllowedDirs;

use super::{Directory, HOME, MARKER, OURS, WorkDirError, check_run_id};

/// How many threads remove files; most file systems gain little from more.
const THREADS: usize = 4;
/// How many files a thread takes at once.
const BATCH: usize = 256;

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Files and links, without the marker.
    pub files: u64,
    /// Directories below the run's.
    pub directories: u64,
    /// The files' sizes together.
    pub bytes: u64,
}

/// What a run left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The run.
    pub run_id: String,
    /// How many files, without the marker.
    pub files: u64,
    /// Their sizes together.
    pub bytes: u64,
    /// When the last of them, or of their directories, was changed.
    pub modified: WallTime,
    /// Whether the run is still going on, as far as the file system knows locks.
    pub is_alive: bool,
}

/// What runs left in a directory, by run id.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// Those whose directories could be looked at.
    pub runs: Vec<Found>,
    /// Names of runs whose directories could not, with the reasons.
    pub left_alone: Vec<(String, WorkDirError)>,
}

/// Tells whether the run is still going on whose directory lies in `directory`, as far as the file
/// system knows locks.
pub fn is_alive(directory: &Path, run_id: &str) -> Result<bool, WorkDirError> {
    check_run_id(run_id)?;
    let home = if_there(Directory::open_top(&AllowedDirs::ANY, directory)?.enter(HOME.as_ref()))?;
    let work_dir = home.map_or(Ok(None), |home| if_there(home.enter(run_id.as_ref())))?;
    work_dir.map_or(Ok(false), |work_dir| work_dir.is_alive())
}

/// Removes `<directory>/plimsoll/<run id>`, if its marker says that the run made it, and
/// `<directory>/plimsoll` if nothing else is in it. What is not there counts as removed; what
/// cannot be removed does not keep the rest from it. Between two files it asks `is_stopped` whether
/// to give up.
pub fn sweep(
    directory: &Path,
    run_id: &str,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Swept, WorkDirError> {
    check_run_id(run_id)?;
    sweep_in(&Directory::open_top(&AllowedDirs::ANY, directory)?, run_id, is_stopped)
}

/// Removes `plimsoll/<run id>` in an open directory.
pub(super) fn sweep_in(
    top: &Directory,
    run_id: &str,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Swept, WorkDirError> {
    let Some(home) = if_there(top.enter(HOME.as_ref()))? else {
        return Ok(Swept::default());
    };
    let mut swept = Swept::default();
    if let Some(work_dir) = if_there(home.enter(run_id.as_ref()))? {
        let is_ours = match work_dir.marker()? {
            Some(found) => found == run_id,
            // Killed before the marker was written, or after it was removed.
            None => work_dir.is_empty()?,
        };
        if !is_ours {
            return Err(WorkDirError::Foreign { path: work_dir.path, run_id: run_id.to_owned() });
        }
        swept = clear(&work_dir, is_stopped)?;
        for (name, _) in work_dir.entries()? {
            let name = OsStr::from_bytes(name.to_bytes());
            if name != MARKER {
                remove(&work_dir, name, AtFlags::empty())?;
            }
        }
        // The marker goes last, so that a sweep that was cut short can be taken up again.
        remove(&work_dir, OsStr::new(MARKER), AtFlags::empty())?;
        remove(&home, run_id.as_ref(), AtFlags::REMOVEDIR)?;
    }
    // It stays if other runs left something in it.
    let _ = remove(top, OsStr::new(HOME), AtFlags::REMOVEDIR);
    Ok(swept)
}

/// Returns what runs left in a directory. Others may write there, too: what is wrong with the
/// directory of one run keeps no other from being found.
pub fn find(directory: &Path) -> Result<Leftovers, WorkDirError> {
    let top = Directory::open_top(&AllowedDirs::ANY, directory)?;
    let mut found = Leftovers::default();
    let Some(home) = if_there(top.enter(HOME.as_ref()))? else { return Ok(found) };
    let mut entries = home.entries()?;
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (name, kind) in entries {
        let Ok(run_id) = name.to_str() else { continue };
        if kind != FileType::Directory || check_run_id(run_id).is_err() {
            continue;
        }
        match look(&home, run_id) {
            Ok(of_run) => found.runs.extend(of_run),
            Err(error) => found.left_alone.push((run_id.to_owned(), error)),
        }
    }
    Ok(found)
}

/// Returns what a run left, unless the directory of that name is not the run's.
fn look(home: &Directory, run_id: &str) -> Result<Option<Found>, WorkDirError> {
    let Some(work_dir) = if_there(home.enter(run_id.as_ref()))? else { return Ok(None) };
    if work_dir.marker()?.as_deref() != Some(run_id) {
        return Ok(None);
    }
    survey(&work_dir, run_id).map(Some)
}

/// Returns `None` for what is not there.
fn if_there<T>(entered: Result<T, WorkDirError>) -> Result<Option<T>, WorkDirError> {
    match entered {
        Ok(directory) => Ok(Some(directory)),
        Err(WorkDirError::Missing(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Counts what is below a run's directory.
fn survey(work_dir: &Directory, run_id: &str) -> Result<Found, WorkDirError> {
    let (mut files, mut bytes) = (0, 0);
    let mut modified_ns = modified_ns(&stat(work_dir, OsStr::new("."))?);
    let mut walk = Walk::new(work_dir);
    let mut rest = vec![PathBuf::new()];
    while let Some(below) = rest.pop() {
        // What is gone by now was removed by somebody else.
        let Some(directory) = if_there(walk.open(&below))? else { continue };
        for (name, kind) in directory.entries()? {
            let name = OsStr::from_bytes(name.to_bytes());
            let Some(stat) = if_there(stat(&directory, name))? else { continue };
            modified_ns = modified_ns.max(self::modified_ns(&stat));
            if kind == FileType::Directory {
                rest.push(below.join(name));
            } else if !is_marker(&below, name) {
                files += 1;
                bytes += stat.st_size as u64;
            }
        }
    }
    let modified = WallTime::from_unix_ns(modified_ns);
    let is_alive = work_dir.is_alive()?;
    Ok(Found { run_id: run_id.to_owned(), files, bytes, modified, is_alive })
}

/// Tells whether a file is one by which processes of the run know each other.
fn is_marker(below: &Path, name: &OsStr) -> bool {
    below.as_os_str().is_empty() && name.as_bytes().starts_with(OURS.as_bytes())
}

fn stat(directory: &Directory, name: &OsStr) -> Result<rustix::fs::Stat, WorkDirError> {
    let path = || directory.path.join(name);
    rustix::fs::statat(&directory.fd, name, AtFlags::SYMLINK_NOFOLLOW).map_err(
        |errno| match errno {
            Errno::NOENT => WorkDirError::Missing(path()),
            errno => WorkDirError::new("look at", &path(), errno),
        },
    )
}

/// Returns when it was changed last; times before 1970 count as 1970.
fn modified_ns(stat: &rustix::fs::Stat) -> u64 {
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec)
}

/// Removes a name; one that is not there counts as removed.
fn remove(directory: &Directory, name: &OsStr, flags: AtFlags) -> Result<(), WorkDirError> {
    match rustix::fs::unlinkat(&directory.fd, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => {
            Err(WorkDirError::new("remove a name from", &directory.path, errno))
        }
        Err(errno) => Err(WorkDirError::new("remove", &directory.path.join(name), errno)),
    }
}

/// Opens directories below one, each by its names, and keeps the last: the next is mostly the same.
struct Walk<'a> {
    root: &'a Directory,
    last: Option<(PathBuf, Arc<Directory>)>,
}

impl<'a> Walk<'a> {
    fn new(root: &'a Directory) -> Self {
        Self { root, last: None }
    }

    fn open(&mut self, below: &Path) -> Result<Arc<Directory>, WorkDirError> {
        if let Some((path, directory)) = &self.last
            && path == below
        {
            return Ok(Arc::clone(directory));
        }
        let mut names = below.iter();
        let first = names.next().unwrap_or(OsStr::new("."));
        let mut directory = self.root.enter(first)?;
        for name in names {
            directory = directory.enter(name)?;
        }
        let directory = Arc::new(directory);
        self.last = Some((below.to_owned(), Arc::clone(&directory)));
        Ok(directory)
    }
}

/// Files of one directory that are to go.
struct Batch {
    directory: Arc<Directory>,
    names: Vec<CString>,
}

/// What the threads have done so far.
#[derive(Default)]
struct Tally {
    files: AtomicU64,
    bytes: AtomicU64,
    error: Mutex<Option<WorkDirError>>,
}

impl Tally {
    /// Returns what was removed, or the first error.
    fn result(self, swept: Swept) -> Result<Swept, WorkDirError> {
        match self.error.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => {
                let (files, bytes) = (self.files.into_inner(), self.bytes.into_inner());
                Ok(Swept { files, bytes, ..swept })
            }
        }
    }

    /// Keeps the first error.
    fn note(&self, result: Result<(), WorkDirError>) {
        if let Err(error) = result {
            self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }
}

/// Removes everything in a directory but its marker, and what lies beside that for other processes
/// of the run.
fn clear(
    work_dir: &Directory,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<Swept, WorkDirError> {
    let tally = Tally::default();
    let (sender, receiver) = mpsc::sync_channel(2 * THREADS);
    let receiver = Mutex::new(receiver);
    let directories = thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| remove_batches(&receiver, &tally, is_stopped));
        }
        scan(work_dir, &tally, &move |batch| {
            sender.send(batch).expect("the threads take batches until there are no more");
        })
    });
    if is_stopped() {
        tally.note(Err(WorkDirError::Stopped(work_dir.path.clone())));
        return tally.result(Swept::default());
    }
    // Below comes after above in the list.
    let mut walk = Walk::new(work_dir);
    let mut swept = Swept::default();
    for below in directories.iter().rev() {
        let name = below.file_name().expect("every path of the list has a name");
        let above = below.parent().expect("every path of the list has a parent");
        let result = walk.open(above).and_then(|above| remove(&above, name, AtFlags::REMOVEDIR));
        swept.directories += u64::from(result.is_ok());
        tally.note(result);
    }
    tally.result(swept)
}

/// Hands out all files below a directory, and returns all directories, each after those above it.
fn scan(work_dir: &Directory, tally: &Tally, hand_out: &dyn Fn(Batch)) -> Vec<PathBuf> {
    let mut walk = Walk::new(work_dir);
    let mut directories = Vec::new();
    let mut rest = vec![PathBuf::new()];
    while let Some(below) = rest.pop() {
        let opened = walk.open(&below).and_then(|directory| {
            let entries = directory.entries()?;
            Ok((directory, entries))
        });
        let (directory, entries) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                tally.note(Err(error));
                continue;
            }
        };
        let mut names = Vec::new();
        for (name, kind) in entries {
            let text = OsStr::from_bytes(name.to_bytes());
            if kind == FileType::Directory {
                directories.push(below.join(text));
                rest.push(below.join(text));
            } else if !is_marker(&below, text) {
                names.push(name);
            }
            if names.len() == BATCH {
                let names = std::mem::take(&mut names);
                hand_out(Batch { directory: Arc::clone(&directory), names });
            }
        }
        if !names.is_empty() {
            hand_out(Batch { directory, names });
        }
    }
    directories
}

/// Removes files; once stopped it takes batches and removes nothing, so that nobody waits for room.
fn remove_batches(
    receiver: &Mutex<Receiver<Batch>>,
    tally: &Tally,
    is_stopped: &(dyn Fn() -> bool + Sync),
) {
    loop {
        let batch = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Batch { directory, names }) = batch else { return };
        for name in names.iter().take_while(|_| !is_stopped()) {
            let name = OsStr::from_bytes(name.to_bytes());
            let size = stat(&directory, name).map_or(0, |stat| stat.st_size as u64);
            let result = remove(&directory, name, AtFlags::empty());
            if result.is_ok() {
                tally.files.fetch_add(1, Ordering::Relaxed);
                tally.bytes.fetch_add(size, Ordering::Relaxed);
            }
            tally.note(result);
        }
    }
}

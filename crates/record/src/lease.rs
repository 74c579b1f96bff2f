//! Who holds a run directory: a lock that the kernel releases when its holder is gone.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::RecordError;
use crate::folder::Folder;

/// The file that is locked. It is empty, and stays behind when the run has ended.
pub(crate) const LOCK_NAME: &str = "lock";

/// The sole right to change what a run left, held until it is dropped or the process has ended,
/// however it ends.
///
/// Where the file system knows no locks, or the directory takes no file, it is given to everybody.
#[derive(Debug)]
pub struct Lease {
    /// Closing it releases the lock.
    _file: Option<File>,
}

impl Lease {
    /// Takes the lease of the run in the directory at `path`; `None` while the run is still
    /// going on, or
    /// somebody else cleans up after it.
    pub fn try_take(path: &Path) -> Result<Option<Self>, RecordError> {
        let folder = Folder::open(path).map_err(|source| RecordError::io("open", path, source))?;
        Self::try_take_in(&folder)
    }

    /// Takes the lease of the run in a directory that is held.
    pub(crate) fn try_take_in(folder: &Folder) -> Result<Option<Self>, RecordError> {
        let path = folder.path_of(LOCK_NAME);
        let file = match folder.open_or_create(LOCK_NAME) {
            Ok(file) => file,
            Err(error) if takes_no_file(&error) => match folder.file(LOCK_NAME) {
                Ok(file) => file,
                Err(RecordError::Missing { .. }) => return Ok(Some(Self { _file: None })),
                Err(error) => return Err(error),
            },
            Err(error) => return Err(RecordError::io("open", &path, error)),
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) if knows_no_locks(&error) => {
                Ok(Some(Self { _file: None }))
            }
            Err(TryLockError::Error(error)) => Err(RecordError::io("lock", &path, error)),
        }
    }
}

/// Tells whether the run in the directory at `path` is under way, or somebody cleans up after it:
/// whether a process of this machine, or of another that shares the directory, holds its lease.
///
/// A run that was killed holds nothing. Nor does one of a version of plimsoll that took no lease.
pub fn is_alive(path: &Path) -> Result<bool, RecordError> {
    let folder = match Folder::open(path) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(RecordError::io("open", path, error)),
    };
    let file = match folder.file(LOCK_NAME) {
        Ok(file) => file,
        Err(RecordError::Missing { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) if knows_no_locks(&error) => Ok(false),
        Err(TryLockError::Error(error)) => {
            Err(RecordError::io("lock", &folder.path_of(LOCK_NAME), error))
        }
    }
}

fn takes_no_file(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

fn knows_no_locks(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOLCK | Errno::NOTSUP | Errno::INVAL | Errno::NOSYS))
}

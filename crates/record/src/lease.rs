//! Who holds a run directory: a lock that the kernel releases when its holder is gone.
#![expect(clippy::disallowed_methods, reason = "record owns the files of a run")]

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::RecordError;

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
    /// Takes the lease of the run in the directory at `path`; `None` while the run is under way, or
    /// somebody else cleans up after it.
    pub fn try_take(path: &Path) -> Result<Option<Self>, RecordError> {
        let path = path.join(LOCK_NAME);
        let mut options = OpenOptions::new();
        let opened = open(options.read(true).write(true).create(true).truncate(false), &path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if takes_no_file(&error) => match open(OpenOptions::new().read(true), &path)
            {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Some(Self { _file: None }));
                }
                Err(error) => return Err(RecordError::io("open", &path, error)),
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
    let path = path.join(LOCK_NAME);
    let file = match open(OpenOptions::new().read(true), &path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(RecordError::io("open", &path, error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) if knows_no_locks(&error) => Ok(false),
        Err(TryLockError::Error(error)) => Err(RecordError::io("lock", &path, error)),
    }
}

/// Opens a lock file; a link is not followed, and a FIFO does not make anybody wait.
fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.clone().custom_flags(flags.bits() as i32).open(path)
}

fn takes_no_file(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

fn knows_no_locks(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::NOLCK | Errno::NOTSUP | Errno::INVAL | Errno::NOSYS))
}

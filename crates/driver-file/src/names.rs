//! Operations on names, relative to open directories. All of them block, so every interface does
//! them this way.

use std::ffi::OsStr;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use plimsoll_driver::{Place, Reply, Request};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::open::OpenFiles;
use crate::trouble;

/// Does a request on names; `buffer` is the slot's.
pub(crate) fn run(files: &OpenFiles, request: &Request<'_>, buffer: &mut [u8]) -> Reply {
    let (verb, place, result) = match *request {
        Request::Create { place, len, sync } => {
            ("create", place, create(files, place, &buffer[..len as usize], sync))
        }
        Request::Open { place, len } => {
            ("open", place, read(files, place, &mut buffer[..len as usize]))
        }
        Request::Stat { place } => ("stat", place, stat(files, place)),
        Request::Unlink { place } => ("unlink", place, remove(files, place, AtFlags::empty())),
        Request::Rmdir { place } => {
            ("remove directory", place, remove(files, place, AtFlags::REMOVEDIR))
        }
        Request::Rename { from, to } => ("rename", from, rename(files, from, to)),
        Request::Mkdir { place } => ("make directory", place, make_directory(files, place)),
        Request::Read { .. } | Request::Write { .. } | Request::Sync { .. } => {
            unreachable!("blocks go another way")
        }
    };
    result.map_err(|errno| {
        let path = path(files, place);
        match *request {
            Request::Rename { to, .. } => {
                let to = self::path(files, to);
                let what = format_args!("cannot rename {} to {}", path.display(), to.display());
                trouble::failed(what, errno)
            }
            _ => trouble::failed(format_args!("cannot {verb} {}", path.display()), errno),
        }
    })
}

/// Returns where a name lies, for messages.
fn path(files: &OpenFiles, place: Place<'_>) -> PathBuf {
    files.get(place.directory).path.join(OsStr::from_bytes(place.name.to_bytes()))
}

/// Neither a link is followed nor a pipe waited for that somebody has put in the place of a file.
const PLAIN: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

fn create(files: &OpenFiles, place: Place<'_>, content: &[u8], sync: bool) -> Result<u64, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | PLAIN;
    let directory = &files.get(place.directory).fd;
    let file = rustix::fs::openat(directory, place.name, flags, Mode::from_raw_mode(0o644))?;
    let mut rest = content;
    while !rest.is_empty() {
        match rustix::io::write(&file, rest) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => rest = &rest[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    if sync {
        rustix::fs::fsync(&file)?;
    }
    close(file)?;
    Ok(content.len() as u64)
}

/// Reads a file from its start until the buffer is full or the file ends.
fn read(files: &OpenFiles, place: Place<'_>, buffer: &mut [u8]) -> Result<u64, Errno> {
    let flags = OFlags::RDONLY | PLAIN;
    let directory = &files.get(place.directory).fd;
    let file = rustix::fs::openat(directory, place.name, flags, Mode::empty())?;
    let mut done = 0;
    while done < buffer.len() {
        match rustix::io::read(&file, &mut buffer[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    close(file)?;
    Ok(done as u64)
}

/// Closes a file and looks at what came of it, as network file systems say only then that a write
/// failed.
fn close(file: OwnedFd) -> Result<(), Errno> {
    // SAFETY: the descriptor is ours, and is given up here.
    let result = unsafe { libc::close(file.into_raw_fd()) };
    if result == 0 { Ok(()) } else { Err(trouble::last()) }
}

fn stat(files: &OpenFiles, place: Place<'_>) -> Result<u64, Errno> {
    let directory = &files.get(place.directory).fd;
    let stat = rustix::fs::statat(directory, place.name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(stat.st_size as u64)
}

fn remove(files: &OpenFiles, place: Place<'_>, flags: AtFlags) -> Result<u64, Errno> {
    rustix::fs::unlinkat(&files.get(place.directory).fd, place.name, flags).map(|()| 0)
}

fn rename(files: &OpenFiles, from: Place<'_>, to: Place<'_>) -> Result<u64, Errno> {
    let (old, new) = (&files.get(from.directory).fd, &files.get(to.directory).fd);
    rustix::fs::renameat(old, from.name, new, to.name).map(|()| 0)
}

fn make_directory(files: &OpenFiles, place: Place<'_>) -> Result<u64, Errno> {
    let directory = &files.get(place.directory).fd;
    rustix::fs::mkdirat(directory, place.name, Mode::from_raw_mode(0o755)).map(|()| 0)
}

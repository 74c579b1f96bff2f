//! The console's own files: made, appended to and read here alone.
#![expect(clippy::disallowed_methods, reason = "the console owns its directory and its archive")]

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Access, FlockOperation, OFlags, access, flock};

/// Makes a directory that only its owner looks into, and those above it.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes a directory and those above it.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Refuses what is no directory, such as a link to one.
pub(crate) fn check_directory(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::NotADirectory, "not a directory")),
    }
}

/// Makes a directory that is not there yet.
pub(crate) fn make_new(path: &Path) -> io::Result<()> {
    DirBuilder::new().create(path)
}

/// Holds a directory for this process alone; `None` where another one does.
pub(crate) fn hold(path: &Path) -> io::Result<Option<File>> {
    let directory = File::open(path)?;
    match flock(directory.as_fd(), FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(directory)),
        Err(error) if error == rustix::io::Errno::WOULDBLOCK => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Finds out whether files can be made in a directory.
pub(crate) fn check_writable(path: &Path) -> io::Result<()> {
    Ok(access(path, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Writes a file that only its owner reads, and has it on the disk when it returns.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.sync_all()?;
    if let Some(parent) = path.parent() {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

/// Writes a file whole: it is there with all of its content, or not at all. Until then it has a
/// name that no other file has: the directory may hold files of others.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let as_usual = Permissions::from_mode(0o666);
    let mut named = tempfile::Builder::new();
    let mut file = named.prefix(".plimsoll-").permissions(as_usual).tempfile_in(directory)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Opens a file that only its owner reads, to append to it.
pub(crate) fn appended_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Opens a plain file in a directory that others may write to. A link is refused, and so is a pipe
/// or a device, which without `NONBLOCK` would be waited for.
fn open_only_plain(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::NotFound, "not a plain file")),
    }
}

/// Opens a plain file to append to it; a link, a pipe or a device is refused.
pub(crate) fn appended(path: &Path) -> io::Result<File> {
    open_only_plain(OpenOptions::new().append(true).create(true), path)
}

/// Returns what a file holds.
#[cfg(test)]
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// Returns the text that a file holds, in a directory that only its owner enters.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Opens a plain file to read it; a link, a pipe or a device is refused.
pub(crate) fn open_plain(path: &Path) -> io::Result<(File, u64)> {
    let file = open_only_plain(OpenOptions::new().read(true), path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// Returns the end of a plain file as text, of at most so many bytes. Others may have put the file
/// there, and it may be larger than memory.
pub(crate) fn read_end(path: &Path, bytes_max: u64) -> io::Result<String> {
    let (mut file, length) = open_plain(path)?;
    file.seek(SeekFrom::Start(length.saturating_sub(bytes_max)))?;
    let mut end = Vec::new();
    file.take(bytes_max).read_to_end(&mut end)?;
    Ok(String::from_utf8_lossy(&end).into_owned())
}

/// Returns the names of what is in a directory.
pub(crate) fn names_in(path: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok()).collect())
}

/// A plain file below a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its name relative to the directory.
    pub(crate) name: String,
    /// How much it holds.
    pub(crate) size_bytes: u64,
}

/// How deep directories are looked into.
const DEPTH_MAX: u32 = 4;
/// More files than this are not listed.
const FILES_MAX: usize = 10_000;

/// Returns the plain files below a directory by name; links are not followed.
pub(crate) fn files_below(directory: &Path) -> io::Result<Vec<Found>> {
    check_directory(directory)?;
    let mut found = Vec::new();
    collect(directory, "", DEPTH_MAX, &mut found)?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn collect(directory: &Path, before: &str, depth: u32, found: &mut Vec<Found>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name());
        let Some(name) = name.to_str().filter(|_| found.len() < FILES_MAX) else { continue };
        let name = format!("{before}{name}");
        if kind.is_dir() && depth > 0 {
            collect(&entry.path(), &format!("{name}/"), depth - 1, found)?;
        } else if kind.is_file() {
            found.push(Found { name, size_bytes: entry.metadata()?.len() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_others_in_an_archive_stay_as_they_are() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let probe = format!(".plimsoll-{}", std::process::id());
        let foreign = ["outside", "table.csv.new", &probe];
        foreign.iter().for_each(|name| fs::write(path(name), "FOREIGN").unwrap());
        for link in ["workload.log", "table.csv"] {
            std::os::unix::fs::symlink(path("outside"), path(link)).unwrap();
        }
        check_writable(place.path()).unwrap();
        write(&path("table.csv"), b"own").unwrap();
        assert_eq!(read(&path("table.csv")).unwrap(), b"own");
        assert!(open_plain(&path("table.csv")).is_ok(), "the link is gone");
        assert!(appended(&path("workload.log")).is_err());
        std::os::unix::fs::symlink(place.path(), path("w0-link")).unwrap();
        assert!(files_below(&path("w0-link")).is_err());
        fs::remove_file(path("w0-link")).unwrap();
        make_new(&path("w1-demo")).unwrap();
        assert_eq!(make_new(&path("w1-demo")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        for name in foreign {
            assert_eq!(read(&path(name)).unwrap(), b"FOREIGN", "{name}");
        }
        assert_eq!(names_in(place.path()).unwrap().len(), 6, "nothing else is left");
    }

    #[test]
    fn only_the_end_of_a_plain_file_is_read() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("own"), "12345").unwrap();
        assert_eq!(read_end(&path("own"), 9).unwrap(), "12345");
        assert_eq!(read_end(&path("own"), 2).unwrap(), "45");
        File::create(path("giant")).unwrap().set_len(8 << 40).unwrap();
        assert_eq!(read_end(&path("giant"), 2).unwrap(), "\0\0");
        std::os::unix::fs::symlink(path("own"), path("link")).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let (here, kind) = (rustix::fs::CWD, rustix::fs::FileType::Fifo);
        rustix::fs::mknodat(here, path("pipe"), kind, mode, 0).unwrap();
        for name in ["link", "pipe", "."] {
            assert!(read_end(&path(name), 9).is_err(), "{name}");
            assert!(appended(&path(name)).is_err(), "{name}");
        }
    }
}

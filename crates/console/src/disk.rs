//! The console's own files: made, appended to and read here alone.
#![expect(clippy::disallowed_methods, reason = "the console owns its directory and its archive")]

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use plimsoll_record::removal;
use rustix::fs::{FlockOperation, flock};

/// Makes a directory that only its owner looks into, and those above it.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes a directory and those above it.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
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
pub(crate) fn try_writing(path: &Path) -> io::Result<()> {
    let probe = path.join(format!(".plimsoll-{}", std::process::id()));
    File::create(&probe)?;
    removal::file(&probe)
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

/// Writes a file whole: it is there with all of its content, or not at all.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let mut file = File::create(&beside)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    let done = written.and_then(|()| fs::rename(&beside, path));
    if done.is_err() {
        let _ = removal::file(Path::new(&beside));
    }
    done
}

/// Opens a file that only its owner reads, to append to it.
pub(crate) fn appended_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Opens a file to append to it.
pub(crate) fn appended(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Returns what a file holds.
#[cfg(test)]
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// Returns the text that a file holds.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Opens a plain file to read it; a link, a pipe or a device is refused.
pub(crate) fn open_plain(path: &Path) -> io::Result<(File, u64)> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "not a plain file"));
    }
    Ok((File::open(path)?, found.len()))
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

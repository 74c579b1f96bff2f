//! Files that the user names and that are read whole: bounded, and nothing but files.
//!
//! A workload may come from somebody else. A file that it names is read only if it lies in the
//! `AllowedDirs` given with it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use plimsoll_driver_file::allowed_dirs::{AllowedDirs, LINK};
use plimsoll_record::exposure::{check_owner, check_private, check_unchangeable};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use plimsoll_workload::plan::Position;

/// Returns what a file holds, which must be at most `bytes_max`.
///
/// A directory, a pipe or a device is refused: what has no end would be read without end, and who
/// opens a pipe waits for somebody to write to it.
pub fn read_bounded(allowed: &AllowedDirs, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let foreign_max = if allowed.is_foreign() { FOREIGN_BYTES_MAX } else { u64::MAX };
    let bytes_max = bytes_max.min(foreign_max);
    bounded(open_regular(allowed, path)?, bytes_max)
}

fn bounded(stream: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    stream.take(bytes_max.saturating_add(1)).read_to_end(&mut content)?;
    match content.len() as u64 > bytes_max {
        true => Err(io::Error::other(format!("it is larger than {bytes_max} bytes"))),
        false => Ok(content),
    }
}

fn open_regular(allowed: &AllowedDirs, path: &Path) -> io::Result<File> {
    // With this flag opening a pipe returns at once, so that it can be told from a file.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(allowed.open(path, flags, Mode::empty()).map_err(in_words)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

fn in_words(errno: Errno) -> io::Error {
    match errno {
        Errno::LOOP => io::Error::other(LINK),
        errno => errno.into(),
    }
}

/// Returns the metadata and the type of a file that a workload names.
pub(crate) fn look_at(allowed: &AllowedDirs, path: &Path) -> io::Result<(Stat, FileType)> {
    let stat = allowed.stat(path).map_err(in_words)?;
    Ok((stat, FileType::from_raw_mode(stat.st_mode)))
}

/// The largest description of a workload, a script, a job file or a list of sizes that is read.
pub const TEXT_BYTES_MAX: u64 = 64 << 20;

/// How much is read of the files that somebody else's workload names: of each, and of all that its
/// content is made of. It is held in memory.
pub(crate) const FOREIGN_BYTES_MAX: u64 = 64 << 20;

/// How many names are read of a list that somebody else's workload names.
pub(crate) const FOREIGN_NAMES_MAX: usize = 1_000_000;

/// The largest list of names that is read.
pub(crate) const LIST_BYTES_MAX: u64 = 4 << 30;

/// Returns the text at a place that the user names, which may also be a pipe, such as of `<(...)`;
/// `-` is the standard input. At most [`TEXT_BYTES_MAX`] are read.
pub fn read_given(path: &Path) -> io::Result<String> {
    read_named(&AllowedDirs::ANY, path)
}

/// The same for a place that a workload names.
pub(crate) fn read_named(allowed: &AllowedDirs, path: &Path) -> io::Result<String> {
    text_of(bounded(open_named(allowed, path)?, TEXT_BYTES_MAX)?)
}

/// Returns what is there in whichever encoding, at most so much.
pub fn read_given_bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    bounded(open_named(&AllowedDirs::ANY, path)?, bytes_max)
}

/// Returns the text of a file that holds secrets, or says who may do what: one that no other user
/// may read or change. It may also be a pipe, such as of `<(...)`; `-` is the standard input.
pub fn read_secret(path: &Path, bytes_max: u64) -> io::Result<String> {
    if path == Path::new("-") {
        return text_of(bounded(io::stdin().lock(), bytes_max)?);
    }
    let file = OpenOptions::new().read(true).open(path)?;
    check_private(&file.metadata()?).map_err(io::Error::other)?;
    text_of(bounded(file, bytes_max)?)
}

/// Returns the text of a file that only this user or root can have made or changed: one that nobody
/// has named, and that others may have put where it is looked for, or that says who may do what.
pub fn read_unchangeable(path: &Path, bytes_max: u64) -> io::Result<String> {
    check_owner(&path.symlink_metadata()?).map_err(io::Error::other)?;
    let file = open_regular(&AllowedDirs::ANY, path)?;
    check_unchangeable(&file.metadata()?).map_err(io::Error::other)?;
    text_of(bounded(file, bytes_max)?)
}

/// Returns a reader of what is there, however much that is: a file, or a pipe such as of `<(...)`;
/// `-` is the standard input. Only the user's own workload may name anything but a file.
pub(crate) fn open_named(allowed: &AllowedDirs, path: &Path) -> io::Result<Box<dyn Read>> {
    match path.to_str() {
        _ if !allowed.is_any() => Ok(Box::new(open_regular(allowed, path)?)),
        Some("-") => Ok(Box::new(io::stdin().lock())),
        _ => Ok(Box::new(OpenOptions::new().read(true).open(path)?)),
    }
}

/// Returns the text that a file holds.
fn text_of(content: Vec<u8>) -> io::Result<String> {
    String::from_utf8(content).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let Position { line, column } = Position::behind(&String::from_utf8_lossy(before));
        let place = format!("line {line}, column {column}");
        io::Error::other(format!("it is not UTF-8 text ({place})"))
    })
}

/// Returns the text of such a file.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    read_text_allowed(&AllowedDirs::ANY, path, bytes_max)
}

/// The same for a file that a workload names.
pub fn read_text_allowed(allowed: &AllowedDirs, path: &Path, bytes_max: u64) -> io::Result<String> {
    text_of(read_bounded(allowed, path, bytes_max)?)
}

/// Opens a directory.
pub(crate) fn open_directory(allowed: &AllowedDirs, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    allowed.open(path, flags, Mode::empty()).map_err(in_words)
}

/// Returns the names of what is in a directory, in order; one that is not a string is left out.
pub fn names_in(allowed: &AllowedDirs, path: &Path) -> io::Result<Vec<String>> {
    let entries = rustix::fs::Dir::read_from(open_directory(allowed, path)?)?
        .collect::<Result<Vec<_>, _>>()?;
    let names = entries.iter().filter_map(|entry| entry.file_name().to_str().ok());
    let names = names.filter(|name| ![".", ".."].contains(name));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes the files that are read")]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_an_end_is_refused() {
        let error = read_given(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "it is larger than 67108864 bytes");
        assert_eq!(read_given(Path::new("/dev/null")).unwrap(), "");
    }

    #[test]
    fn only_files_that_are_not_too_large_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_text(&path, 5).unwrap(), "12345");
        let said = |path: &Path, most| {
            read_bounded(&AllowedDirs::ANY, path, most).unwrap_err().to_string()
        };
        assert_eq!(said(&path, 4), "it is larger than 4 bytes");
        assert_eq!(said(Path::new("/dev/zero"), 4), "it is not a regular file");
        assert_eq!(said(folder.path(), 4), "it is not a regular file");
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(said(&pipe, 4), "it is not a regular file", "and no writer was waited for");
        let allowed = AllowedDirs::only(&[folder.path().to_owned()]).unwrap();
        let refused = |path: &Path| match open_named(&allowed, path) {
            Ok(_) => panic!("{} was opened", path.display()),
            Err(error) => error.to_string(),
        };
        assert_eq!(refused(&pipe), "it is not a regular file", "nor here");
        let link = "a symbolic link is in the way and is not followed";
        assert_eq!(refused(Path::new("/dev/null")), link);
        let away = folder.path().join("away");
        std::os::unix::fs::symlink("/etc", &away).unwrap();
        assert_eq!(refused(&away.join("passwd")), link);
        assert_eq!(names_in(&allowed, &away).unwrap_err().to_string(), link);
        assert_eq!(names_in(&allowed, folder.path()).unwrap(), ["away", "file", "pipe"]);
        assert!(open_named(&allowed, &path).is_ok());
        // Of somebody else's workload no file is read whole that is larger, however large the
        // workload says that it is.
        let giant = folder.path().join("giant");
        std::fs::File::create(&giant).unwrap().set_len(8 << 40).unwrap();
        let error = read_bounded(&allowed, &giant, u64::MAX).unwrap_err().to_string();
        assert_eq!(error, "it is larger than 67108864 bytes");
        std::fs::File::create(&giant).unwrap();
        let missing =
            read_bounded(&AllowedDirs::ANY, &folder.path().join("missing"), 4).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        std::fs::write(&path, [0xff]).unwrap();
        let not_text = read_text(&path, 5).unwrap_err().to_string();
        assert_eq!(not_text, "it is not UTF-8 text (line 1, column 1)");
        std::fs::write(&path, b"a: 1\nb: \xc3\xa9\xe9\n").unwrap();
        let not_text = read_given(&path).unwrap_err().to_string();
        assert_eq!(not_text, "it is not UTF-8 text (line 2, column 5)");
    }
}

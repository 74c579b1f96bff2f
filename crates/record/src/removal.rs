//! Removes files and directories by path, and is the only module that does: `clippy.toml` forbids
//! it everywhere else.
//!
//! A path that a user names may lead to anything. So a caller removes only names that this program
//! itself gave, in a directory that was empty or bore our mark ([`crate::StateDirectory`]), and a
//! directory only as long as it is empty. What a handle leads to is removed by `record::folder`
//! (the files of a run) and by `driver_file::work_dir` (below `plimsoll/<run id>/`).
#![expect(clippy::disallowed_methods, reason = "the one place that removes by path")]

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Removes a file that this program created; one that is not there counts as removed. Of a link it
/// removes the link.
pub fn file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a directory if nothing is in it, and returns whether it is gone.
pub fn empty_directory(path: &Path) -> io::Result<bool> {
    match fs::remove_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a directory with all that is in it, which a server wrote that this program started in a
/// directory of its state. A link in its place is removed, and not what it leads to.
pub(crate) fn tree(path: &Path) -> io::Result<()> {
    fs::remove_dir_all(path)
}

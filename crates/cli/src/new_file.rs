//! A file that somebody asked for by name: written whole or not at all, and never over another one
//! unless that is asked for too.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::NamedTempFile;

/// What new files may be, less what the umask takes.
const MODE: u32 = 0o666;

/// A file to write, and the flag that named it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    pub(crate) flag: &'static str,
    pub(crate) path: &'a Path,
    /// Whether a file that is there already may be replaced.
    pub(crate) overwrite: bool,
}

/// A file that is being written.
pub(crate) enum NewFile {
    /// Gets its name when it is whole.
    Whole { file: NamedTempFile, name: PathBuf, overwrite: bool },
    /// A pipe, a device, or what a descriptor leads to: nothing there is replaced.
    Stream(File),
}

impl Named<'_> {
    /// Writes all of it.
    pub(crate) fn write(self, content: &[u8]) -> Result<()> {
        let mut file = self.create()?;
        file.write_all(content).with_context(|| self.failed())?;
        self.finish(file)
    }

    /// Refuses a file that is there and is not to be replaced; to be asked before long work.
    pub(crate) fn check(&self) -> Result<()> {
        let Self { flag, path, overwrite } = *self;
        let of_descriptor = is_of_descriptor(path);
        if !overwrite && !of_descriptor && fs::metadata(path).is_ok_and(|there| there.is_file()) {
            bail!("{flag}: {} is there already; --overwrite replaces it", path.display());
        }
        Ok(())
    }

    /// Begins to write.
    pub(crate) fn create(self) -> Result<NewFile> {
        let Self { path, overwrite, .. } = self;
        let there = fs::metadata(path).ok();
        if is_of_descriptor(path)
            || there.as_ref().is_some_and(|there| !there.is_file() && !there.is_dir())
        {
            let file = OpenOptions::new().append(true).open(path);
            return file.map(NewFile::Stream).with_context(|| self.failed());
        }
        self.check()?;
        // A link stays one: what it leads to is replaced.
        let name = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let directory = match name.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mode = there.map_or_else(|| Permissions::from_mode(MODE), |there| there.permissions());
        let mut temporary = tempfile::Builder::new();
        temporary.prefix(".plimsoll-").suffix(".part").permissions(mode);
        // The directory is looked at first, as only then the system's own words say what is wrong.
        let made = fs::metadata(directory).and_then(|_| temporary.tempfile_in(directory));
        let file = made.map_err(error_of).with_context(|| self.failed())?;
        Ok(NewFile::Whole { file, name, overwrite })
    }

    /// Gives the file its name.
    pub(crate) fn finish(self, file: NewFile) -> Result<()> {
        file.finish().with_context(|| self.failed())
    }

    pub(crate) fn failed(&self) -> String {
        format!("{}: cannot write {}", self.flag, self.path.display())
    }
}

/// Tells whether a path leads to what is open: that was emptied, or not, by who opened it.
fn is_of_descriptor(path: &Path) -> bool {
    ["/dev", "/proc"].iter().any(|place| path.starts_with(place))
}

/// Returns the error without the path of the temporary file, which nobody asked for.
fn error_of(error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() { error } else { error.kind().into() }
}

impl NewFile {
    /// Returns where it is being written.
    pub(crate) fn path<'a>(&'a self, asked: &'a Path) -> &'a Path {
        match self {
            Self::Whole { file, .. } => file.path(),
            Self::Stream(_) => asked,
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Stream(mut file) => file.flush(),
            Self::Whole { file, name, overwrite: true } => {
                file.persist(name).map(|_| ()).map_err(|failed| failed.error)
            }
            // Another may have made the file in the meantime.
            Self::Whole { file, name, overwrite: false } => {
                file.persist_noclobber(name).map(|_| ()).map_err(|failed| failed.error)
            }
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        match self {
            Self::Whole { file, .. } => file.write(content),
            Self::Stream(file) => file.write(content),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Whole { file, .. } => file.flush(),
            Self::Stream(file) => file.flush(),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "looks at the files that were written")]
mod tests {
    use super::*;

    fn named(path: &Path, overwrite: bool) -> Named<'_> {
        Named { flag: "-o", path, overwrite }
    }

    fn entries(directory: &Path) -> usize {
        fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn a_file_that_is_there_stays_unless_it_is_to_be_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("report.html");
        named(&path, false).write(b"first").unwrap();
        let refused = named(&path, false).write(b"second").unwrap_err().to_string();
        assert!(refused.ends_with("report.html is there already; --overwrite replaces it"));
        assert_eq!(fs::read(&path).unwrap(), b"first");
        named(&path, true).write(b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        // A link goes on leading to it.
        let link = place.path().join("latest.html");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        named(&link, true).write(b"third").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"third");
        assert_eq!(entries(place.path()), 2);
    }

    #[test]
    fn what_is_not_finished_leaves_nothing_and_replaces_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ops.csv");
        let mut half = named(&path, false).create().unwrap();
        half.write_all(b"half").unwrap();
        drop(half);
        assert_eq!(entries(place.path()), 0);
        fs::write(&path, "whole").unwrap();
        let mut half = named(&path, true).create().unwrap();
        half.write_all(b"half").unwrap();
        drop(half);
        assert_eq!((fs::read(&path).unwrap(), entries(place.path())), (b"whole".to_vec(), 1));
        // One that another makes in the meantime is not replaced either.
        fs::remove_file(&path).unwrap();
        let late = named(&path, false).create().unwrap();
        fs::write(&path, "of another").unwrap();
        assert!(named(&path, false).finish(late).is_err());
        assert_eq!((fs::read(&path).unwrap(), entries(place.path())), (b"of another".to_vec(), 1));
    }

    #[test]
    fn devices_are_written_to_and_directories_are_not() {
        named(Path::new("/dev/null"), false).write(b"gone").unwrap();
        let full = named(Path::new("/dev/full"), false).write(b"no room").unwrap_err();
        assert_eq!(full.to_string(), "-o: cannot write /dev/full");
        let place = tempfile::tempdir().unwrap();
        assert!(named(place.path(), true).write(b"").is_err());
        let nowhere = place.path().join("no/such/place");
        let failed = format!("{:#}", named(&nowhere, false).write(b"").unwrap_err());
        assert!(failed.contains("no/such/place: No such file"), "{failed}");
        assert!(!failed.contains(".plimsoll-"), "{failed}");
    }
}

//! A file that somebody asked for by name: written whole or not at all, and never over another one
//! unless that is asked for too. `-` is the standard output.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tempfile::{NamedTempFile, TempDir};
use thiserror::Error;

use crate::own_path::OwnPath;

/// What new files may be, less what the umask takes.
const MODE: u32 = 0o666;

/// Whether a file that is there may be replaced.
#[derive(Clone, Copy, Debug)]
pub struct Overwrite {
    /// Whether it may.
    pub given: bool,
    /// By which flag leave is given, or would be.
    pub flag: &'static str,
}

/// A file to write.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// What messages call it, such as the flag that named it.
    pub name: &'static str,
    /// Where it is to be; `-` is the standard output.
    pub path: &'a Path,
    /// Whether a file that already exists may be replaced.
    pub overwrite: Overwrite,
}

/// Why a file is not written.
#[derive(Debug, Error)]
pub enum OutputError {
    /// There is one already.
    #[error("{name}: {} already exists; {flag} replaces it", path.display())]
    Exists {
        /// What messages call it.
        name: &'static str,
        /// Where it is.
        path: PathBuf,
        /// Which flag gives leave to replace it.
        flag: &'static str,
    },
    /// The system refused.
    #[error("{name}: cannot write {}", path.display())]
    Write {
        /// What messages call it.
        name: &'static str,
        /// Where it was to be.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Why there is no temporary directory.
#[derive(Debug, Error)]
#[error(
    "cannot make a temporary directory in {}; let TMPDIR name a directory that can be written",
    place.display()
)]
pub struct NoTemporaryDirectory {
    /// Where it was to be.
    place: PathBuf,
    /// Why not.
    source: io::Error,
}

type Result<T, E = OutputError> = std::result::Result<T, E>;

/// A file that is being written.
pub struct NewFile(Kind);

enum Kind {
    /// Gets its name when it is whole.
    Whole { file: NamedTempFile, place: OwnPath, overwrite: bool },
    /// A pipe, a device, or what a descriptor leads to: nothing there is replaced.
    Stream(File),
    /// The standard output.
    Stdout(io::Stdout),
}

impl Named<'_> {
    /// Tells whether it is the standard output, where then nothing else belongs.
    pub fn is_stdout(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Writes all of it.
    pub fn write(self, content: &[u8]) -> Result<()> {
        self.complete(self.create()?, content)
    }

    /// Writes all of it to the file that was begun.
    pub fn complete(self, mut file: NewFile, content: &[u8]) -> Result<()> {
        match file.write_all(content) {
            // A reader that has gone away is no error.
            Err(error) if self.is_stdout() && error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => {
                written.map_err(|source| self.failed(source))?;
                self.finish(file)
            }
        }
    }

    /// Refuses a file that is there and is not to be replaced; to be asked before long work.
    pub fn check(&self) -> Result<()> {
        if self.is_stdout() { Ok(()) } else { self.find().map(drop) }
    }

    /// Returns where it is to be, and what is there, which may be replaced.
    fn find(&self) -> Result<(OwnPath, Option<Metadata>)> {
        let Self { name, path, overwrite: Overwrite { given, flag } } = *self;
        let found = || {
            let place = OwnPath::walk(path)?;
            let there = place.found()?;
            let is_kept =
                there.as_ref().is_some_and(Metadata::is_file) && !place.is_of_process()?;
            Ok((place, there, is_kept && !given))
        };
        match found().map_err(|source| self.failed(source))? {
            (.., true) => Err(OutputError::Exists { name, path: path.to_owned(), flag }),
            (place, there, false) => Ok((place, there)),
        }
    }

    /// Begins to write.
    pub fn create(self) -> Result<NewFile> {
        if self.is_stdout() {
            return Ok(NewFile(Kind::Stdout(io::stdout())));
        }
        // A link stays one: what it leads to is replaced.
        let (place, there) = self.find()?;
        let is_replaced = there.as_ref().is_none_or(|there| there.is_file() || there.is_dir());
        if !is_replaced || place.is_of_process().map_err(|source| self.failed(source))? {
            let file = place.open(OFlags::WRONLY | OFlags::APPEND, 0);
            let file = file.map_err(|source| self.failed(source));
            return file.map(Kind::Stream).map(NewFile);
        }
        let mode = there.map_or_else(|| Permissions::from_mode(MODE), |there| there.permissions());
        let mut temporary = tempfile::Builder::new();
        temporary.prefix(".plimsoll-").suffix(".part").permissions(mode);
        let made = temporary.tempfile_in(place.directory());
        let file = made.map_err(|error| self.failed(error_of(error)))?;
        Ok(NewFile(Kind::Whole { file, place, overwrite: self.overwrite.given }))
    }

    /// Gives the file its name.
    pub fn finish(self, file: NewFile) -> Result<()> {
        file.finish().map_err(|source| self.failed(source))
    }

    /// Returns the error of a write to it that failed.
    pub fn failed(&self, source: io::Error) -> OutputError {
        OutputError::Write { name: self.name, path: self.path.to_owned(), source }
    }
}

/// Writes a file as other tools do: over the one that is there.
pub fn write_over(path: &Path, content: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    OwnPath::walk(path)?.open(flags, MODE)?.write_all(content.as_bytes())
}

/// Adds to a file, which is made where it is not there.
pub fn append(path: &Path, content: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND;
    OwnPath::walk(path)?.open(flags, MODE)?.write_all(content.as_bytes())
}

/// Returns the error without the path of the temporary file, which nobody asked for.
fn error_of(error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() { error } else { error.kind().into() }
}

impl NewFile {
    /// Returns where it is being written.
    pub fn path<'a>(&'a self, asked: &'a Path) -> &'a Path {
        match &self.0 {
            Kind::Whole { file, .. } => file.path(),
            Kind::Stream(_) | Kind::Stdout(_) => asked,
        }
    }

    fn finish(self) -> io::Result<()> {
        match self.0 {
            Kind::Stream(mut file) => file.flush(),
            Kind::Stdout(mut stdout) => match stdout.flush() {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                flushed => flushed,
            },
            Kind::Whole { file, place, overwrite: true } => {
                file.persist(place.path()).map(|_| ()).map_err(|failed| failed.error)
            }
            // Another may have made the file in the meantime.
            Kind::Whole { file, place, overwrite: false } => {
                file.persist_noclobber(place.path()).map(|_| ()).map_err(|failed| failed.error)
            }
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Kind::Whole { file, .. } => file.write(content),
            Kind::Stream(file) => file.write(content),
            Kind::Stdout(stdout) => stdout.write(content),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Kind::Whole { file, .. } => file.flush(),
            Kind::Stream(file) => file.flush(),
            Kind::Stdout(stdout) => stdout.flush(),
        }
    }
}

/// Makes a directory for files that are to be written, with those above it; one that already exists
/// is taken as it is.
#[expect(clippy::disallowed_methods, reason = "the owner of files that the user names")]
pub fn make_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Makes a directory for what nobody keeps; it is gone with the value.
pub fn temporary_directory() -> Result<TempDir, NoTemporaryDirectory> {
    tempfile::tempdir().map_err(|error| {
        let place = tempfile::env::temp_dir();
        NoTemporaryDirectory { place, source: error_of(error) }
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "looks at the files that were written")]

    use super::*;

    fn named(path: &Path, overwrite: bool) -> Named<'_> {
        Named { name: "-o", path, overwrite: Overwrite { given: overwrite, flag: "--overwrite" } }
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
        assert!(refused.ends_with("report.html already exists; --overwrite replaces it"));
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
    fn a_dash_is_the_standard_output_and_never_a_file() {
        let dash = named(Path::new("-"), false);
        assert!(dash.is_stdout() && !named(Path::new("./-"), false).is_stdout());
        // In no directory is anything made of that name, nor does one that is there matter.
        dash.check().unwrap();
        assert!(matches!(dash.create().unwrap(), NewFile(Kind::Stdout(_))));
        dash.finish(dash.create().unwrap()).unwrap();
        assert!(!Path::new("-").exists());
    }

    #[test]
    fn a_link_or_a_pipe_of_another_user_is_not_written_to() {
        // Only root can make what belongs to another user.
        let is_root = rustix::process::geteuid().is_root();
        let place = tempfile::tempdir().unwrap();
        let (own, list) = (place.path().join("own.txt"), place.path().join("list.txt"));
        fs::write(&own, "own").unwrap();
        let make: [&dyn Fn(); 2] = [&|| std::os::unix::fs::symlink(&own, &list).unwrap(), &|| {
            rustix::fs::mkfifoat(rustix::fs::CWD, &list, 0o666.into()).unwrap()
        }];
        for make in make.iter().filter(|_| is_root) {
            make();
            std::os::unix::fs::lchown(&list, Some(65_534), None).unwrap();
            let refused = crate::in_one_line(&named(&list, true).write(b"ids").unwrap_err());
            assert!(refused.contains("belongs to another user"), "{refused}");
            assert_eq!((fs::read(&own).unwrap(), entries(place.path())), (b"own".to_vec(), 2));
            fs::remove_file(&list).unwrap();
        }
    }

    #[test]
    fn devices_are_written_to_and_directories_are_not() {
        named(Path::new("/dev/null"), false).write(b"gone").unwrap();
        let full = named(Path::new("/dev/full"), false).write(b"no room").unwrap_err();
        assert_eq!(full.to_string(), "-o: cannot write /dev/full");
        let place = tempfile::tempdir().unwrap();
        assert!(named(place.path(), true).write(b"").is_err());
        let nowhere = place.path().join("no/such/place");
        let failed = crate::in_one_line(&named(&nowhere, false).write(b"").unwrap_err());
        assert!(failed.contains("no/such/place: No such file"), "{failed}");
        assert!(!failed.contains(".plimsoll-"), "{failed}");
    }
}

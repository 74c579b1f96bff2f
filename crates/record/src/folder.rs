//! A directory that is held by a handle, and its files.
//!
//! Names are looked up in the directory that was opened, whatever its path has come to mean since.
//! Only regular files are opened: no link is followed, and nothing waits at a FIFO.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::RecordError;

/// What is asked of every file: it is no link, nobody waits for it, and no child inherits it.
const FLAGS: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const FILE_MODE: u32 = 0o666;
const FOLDER_MODE: u32 = 0o777;

/// A directory that is held open.
#[derive(Debug)]
pub(crate) struct Folder {
    handle: OwnedFd,
    /// As it was called when it was opened; for messages.
    path: PathBuf,
}

impl Folder {
    /// Opens the directory at `path`, wherever that leads.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { handle, path: path.to_path_buf() })
    }

    /// Opens a directory in it.
    pub(crate) fn folder(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | FLAGS;
        let handle = rustix::fs::openat(&self.handle, name, flags, Mode::empty())?;
        Ok(Self { handle, path: self.path_of(name) })
    }

    /// Makes a directory in it.
    pub(crate) fn make_folder(&self, name: &str) -> io::Result<Self> {
        rustix::fs::mkdirat(&self.handle, name, Mode::from_raw_mode(FOLDER_MODE))?;
        self.folder(name)
    }

    /// Returns where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what a file in it is called.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the names of what is in it, in no order; one that is not a string is none of ours.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(self.handle.as_fd())? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Tells whether it holds nothing at all.
    pub(crate) fn is_empty(&self) -> io::Result<bool> {
        for entry in Dir::read_from(self.handle.as_fd())? {
            if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes a file that is not there yet, to write and to read.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        #[cfg(test)]
        if full_disk::is_simulated() {
            return File::options().write(true).open("/dev/full");
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | FLAGS;
        let mode = Mode::from_raw_mode(FILE_MODE);
        Ok(File::from(rustix::fs::openat(&self.handle, name, flags, mode)?))
    }

    /// Opens a file to read it and to add to its end, and makes it if it is not there.
    pub(crate) fn open_or_create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | FLAGS;
        let mode = Mode::from_raw_mode(FILE_MODE);
        let file = rustix::fs::openat(&self.handle, name, flags, mode)?;
        match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(File::from(file)),
            kind => Err(io::Error::other(irregular(kind))),
        }
    }

    /// Opens a file to read it.
    pub(crate) fn file(&self, name: &str) -> Result<File, RecordError> {
        let path = || self.path_of(name);
        let failed = |errno: Errno| match errno {
            Errno::NOENT => RecordError::Missing { path: path() },
            errno => RecordError::io("open", &path(), errno.into()),
        };
        let irregular = |kind| RecordError::damaged(&path(), irregular(kind));
        // Opening some devices does something, so it is asked first and made sure of afterwards.
        let found = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW);
        let kind = FileType::from_raw_mode(found.map_err(failed)?.st_mode);
        if kind != FileType::RegularFile {
            return Err(irregular(kind));
        }
        let flags = OFlags::RDONLY | FLAGS;
        let file = rustix::fs::openat(&self.handle, name, flags, Mode::empty()).map_err(failed)?;
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&file).map_err(failed)?.st_mode);
        match kind {
            FileType::RegularFile => Ok(File::from(file)),
            kind => Err(irregular(kind)),
        }
    }

    /// Returns the content of a file, which may have `bytes_max`.
    pub(crate) fn read(&self, name: &str, bytes_max: u64) -> Result<Vec<u8>, RecordError> {
        let path = || self.path_of(name);
        let file = self.file(name)?;
        let failed = |source| RecordError::io("read", &path(), source);
        let size = file.metadata().map_err(failed)?.len();
        let mut content = Vec::new();
        if size <= bytes_max {
            // Bound: `bytes_max`.
            content.reserve_exact(size as usize + 1);
            file.take(bytes_max + 1).read_to_end(&mut content).map_err(failed)?;
        }
        let size = size.max(content.len() as u64);
        if size > bytes_max {
            let reason = format!("it has {size} bytes, and no such file has more than {bytes_max}");
            return Err(RecordError::damaged(&path(), reason));
        }
        Ok(content)
    }

    /// Returns the first bytes of a file.
    pub(crate) fn read_first(&self, name: &str, bytes: u64) -> Result<Vec<u8>, RecordError> {
        let mut content = Vec::new();
        let read = self.file(name)?.take(bytes).read_to_end(&mut content);
        read.map_err(|source| RecordError::io("read", &self.path_of(name), source))?;
        Ok(content)
    }

    /// Gives a file another name, in place of the file that has it.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.handle, from, &self.handle, to)?)
    }

    /// Removes a file if it is there.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.handle, name, AtFlags::empty()) {
            Err(errno) if errno != Errno::NOENT => Err(errno.into()),
            _ => Ok(()),
        }
    }

    /// Removes a directory in it if it is there and empty.
    pub(crate) fn remove_empty_folder(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Makes sure of its names on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.handle)?)
    }
}

/// Says what stands where a file of a run should.
fn irregular(kind: FileType) -> String {
    let what = match kind {
        FileType::Symlink => "a link",
        FileType::Fifo => "a FIFO",
        FileType::Directory => "a directory",
        FileType::Socket => "a socket",
        FileType::BlockDevice | FileType::CharacterDevice => "a device",
        FileType::RegularFile | FileType::Unknown => "of an unknown kind",
    };
    format!("it is {what}, and a run is read from regular files only")
}

/// A disk that is full for the tests of this thread.
#[cfg(test)]
pub(crate) mod full_disk {
    use std::cell::Cell;

    thread_local! {
        static SIMULATED: Cell<bool> = const { Cell::new(false) };
    }

    pub(crate) fn simulate(full: bool) {
        SIMULATED.set(full);
    }

    pub(super) fn is_simulated() -> bool {
        SIMULATED.get()
    }
}

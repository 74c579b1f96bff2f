//! The open files and directories of a ring, and what their opening may be refused for.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_driver::{Access, DriverError, Handle, OpenMode};
use plimsoll_model::SyncMode;
use rustix::fs::{Advice, Mode, OFlags};
use rustix::io::Errno;

use crate::allowed_dirs::AllowedDirs;
use crate::in_use::Held;
use crate::work_dir::WorkDir;
use crate::{facts, trouble};

/// An open file or directory.
pub(crate) struct OpenFile {
    pub(crate) fd: OwnedFd,
    pub(crate) path: PathBuf,
    pub(crate) is_direct: bool,
}

/// Everything a ring has open, by handle.
#[derive(Default)]
pub(crate) struct OpenFiles {
    opened: Vec<OpenFile>,
    /// A directory has no mode.
    known: HashMap<(PathBuf, Option<OpenMode>), Handle>,
    /// What lies in these is reached through them.
    work_dirs: Vec<Arc<WorkDir>>,
    /// What lies nowhere else is reached at all.
    allowed: AllowedDirs,
    /// What was there before the run, and is written.
    held: Arc<HashMap<PathBuf, Held>>,
}

impl OpenFiles {
    pub(crate) fn within(
        work_dirs: Vec<Arc<WorkDir>>,
        allowed: AllowedDirs,
        held: Arc<HashMap<PathBuf, Held>>,
    ) -> Self {
        Self { work_dirs, allowed, held, ..Self::default() }
    }

    /// Opens a path: in a directory of the run from that directory on, else from a directory that
    /// is allowed.
    fn open_at(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let of_run = self.work_dirs.iter().find_map(|of| of.open(path, flags, mode));
        of_run.unwrap_or_else(|| self.allowed.open(path, flags, mode))
    }

    #[cfg(test)]
    pub(crate) fn add(&mut self, fd: OwnedFd) -> Handle {
        let handle = Handle(self.opened.len() as u32);
        self.opened.push(OpenFile { fd, path: "test".into(), is_direct: false });
        handle
    }

    #[inline]
    pub(crate) fn get(&self, handle: Handle) -> &OpenFile {
        &self.opened[handle.0 as usize]
    }

    /// Returns the handle of a file or, without a mode, of a directory, and whether it is new.
    pub(crate) fn open(
        &mut self,
        path: &Path,
        mode: Option<OpenMode>,
    ) -> Result<(Handle, bool), DriverError> {
        let key = (path.to_owned(), mode);
        if let Some(handle) = self.known.get(&key) {
            return Ok((*handle, false));
        }
        let fd = match mode {
            Some(mode) => self.open_file(path, mode)?,
            None => self.open_directory(path)?,
        };
        let handle = Handle(u32::try_from(self.opened.len()).expect("a process has fewer files"));
        let is_direct = mode.is_some_and(|mode| mode.direct);
        self.opened.push(OpenFile { fd, path: path.to_owned(), is_direct });
        self.known.insert(key, handle);
        Ok((handle, true))
    }

    fn open_directory(&self, path: &Path) -> Result<OwnedFd, DriverError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.open_at(path, flags, Mode::empty())
            .map_err(|errno| trouble::failed(format_args!("cannot open {}", path.display()), errno))
    }

    fn open_file(&self, path: &Path, mode: OpenMode) -> Result<OwnedFd, DriverError> {
        let held = self.held.get(path);
        let mut flags = flags(path, mode);
        // What was there is not made anew.
        flags.set(OFlags::CREATE, flags.contains(OFlags::CREATE) && held.is_none());
        let permissions = Mode::from_raw_mode(0o644);
        let fd = match self.open_at(path, flags, permissions) {
            // Only a file's owner may leave its access time alone.
            Err(Errno::PERM) => self.open_at(path, flags - OFlags::NOATIME, permissions),
            other => other,
        }
        .map_err(|errno| refused(&self.allowed, path, mode, errno))?;
        held.map_or(Ok(()), |held| held.check(path, &fd))?;
        if !mode.direct {
            let advice = if mode.random { Advice::Random } else { Advice::Sequential };
            // Without the advice it works just as well.
            let _ = rustix::fs::fadvise(&fd, 0, None, advice);
        }
        Ok(fd)
    }
}

fn flags(path: &Path, mode: OpenMode) -> OFlags {
    let mut flags = OFlags::CLOEXEC | OFlags::NOATIME;
    flags |= match mode.access {
        Access::Read => OFlags::RDONLY,
        Access::Write => OFlags::WRONLY,
        Access::ReadWrite => OFlags::RDWR,
    };
    // A device's name with a typing error must not become a file in the machine's memory.
    let is_device_name = path.starts_with("/dev") && !path.starts_with("/dev/shm");
    flags.set(OFlags::CREATE, mode.access != Access::Read && !is_device_name);
    flags.set(OFlags::DIRECT, mode.direct);
    flags |= match mode.sync {
        SyncMode::Off => OFlags::empty(),
        SyncMode::Sync => OFlags::SYNC,
        SyncMode::Dsync => OFlags::DSYNC,
    };
    flags
}

fn refused(allowed: &AllowedDirs, path: &Path, mode: OpenMode, errno: Errno) -> DriverError {
    if mode.direct && [Errno::INVAL, Errno::OPNOTSUPP].contains(&errno) {
        let file_system = allowed.probe(path).map_or("–".to_owned(), |facts| facts.file_system);
        let path = path.display();
        let text = format!(
            "the file system at {path} ({file_system}) refuses O_DIRECT; leave `direct` out"
        );
        return trouble::with_text(errno, text);
    }
    trouble::failed(format_args!("cannot open {}", path.display()), errno)
}

/// Says what direct blocks must be multiples of, for a message that ends before it.
pub(crate) fn alignment_advice(file: &OpenFile) -> String {
    let mut text = "; with O_DIRECT, offsets and lengths must be multiples of".to_owned();
    match facts::direct_alignment(&file.fd) {
        Some(direct) => write!(text, " {} bytes here", direct.offset_align),
        None => write!(text, " the device's logical block size"),
    }
    .expect("a String takes everything");
    text
}

//! The run's own directories, `<directory>/plimsoll/<run id>`: made, filled with files, swept. All
//! that lies beside them belongs to others and is never touched.

mod sweep;

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use plimsoll_model::RunId;
use rustix::fs::{
    Access, AtFlags, FallocateFlags, FileType, FlockOperation, Mode, OFlags, StatxFlags,
};
use rustix::io::Errno;

use crate::allowed_dirs::{AllowedDirs, open_beneath};
use crate::facts;

pub use sweep::{Found, Leftovers, Swept, find, is_alive, sweep};

/// What all runs lie in.
const HOME: &str = "plimsoll";
/// The file that says which run made a directory.
const MARKER: &str = ".plimsoll-run";
/// What the names of all files begin with by which processes of a run know each other.
const OURS: &str = ".plimsoll-";
/// So many processes may make a directory of a run at once.
const DRAFTS_MAX: u32 = 10_000;
/// A marker holds no more than this.
const MARKER_BYTES_MAX: usize = 255;

/// Why the run's directories could not be made or swept.
#[derive(Debug, thiserror::Error)]
pub enum WorkDirError {
    /// The directory does not exist.
    #[error("the directory {} does not exist", .0.display())]
    Missing(PathBuf),
    /// Something else has that name.
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The user lacks the rights.
    #[error("permission denied in {}", .0.display())]
    NotWritable(PathBuf),
    /// Nobody can.
    #[error("the file system of {} is read-only", .0.display())]
    ReadOnly(PathBuf),
    /// A symbolic link may lead anywhere.
    #[error("{} is a symbolic link, and no run makes any; it is not followed", .0.display())]
    Link(PathBuf),
    /// What is mounted there is not the run's.
    #[error("{} is a mount point, and no run makes any; it is left alone", .0.display())]
    Mount(PathBuf),
    /// The marker names another run, or there is none.
    #[error("{} has no marker of the run {run_id}, so it is left alone", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The run whose marker it should have.
        run_id: String,
    },
    /// A path that no plan should have.
    #[error(
        "{} does not lie in {}, and a run writes nowhere else",
        path.display(),
        work_dir.display()
    )]
    Outside {
        /// The path.
        path: PathBuf,
        /// The run's directory.
        work_dir: PathBuf,
    },
    /// The user had enough of waiting.
    #[error("stopped before everything in {} was removed", .0.display())]
    Stopped(PathBuf),
    /// The id is no name of a directory.
    #[error("{0:?} is not the id of a run")]
    RunId(String),
    /// The file system is full.
    #[error("no space is left for {}, which takes {size_bytes} bytes", path.display())]
    Full {
        /// The file or directory.
        path: PathBuf,
        /// How large it was to be.
        size_bytes: u64,
    },
    /// The user's share of the file system is used up.
    #[error("the quota leaves no space for {}, which takes {size_bytes} bytes", path.display())]
    Quota {
        /// The file or directory.
        path: PathBuf,
        /// How large it was to be.
        size_bytes: u64,
    },
    /// Anything else.
    #[error("cannot {what} {}", path.display())]
    Failed {
        /// What was done.
        what: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl WorkDirError {
    fn new(what: &'static str, path: &Path, errno: Errno) -> Self {
        Self::with_size(what, path, 0, errno)
    }

    fn with_size(what: &'static str, path: &Path, size_bytes: u64, errno: Errno) -> Self {
        let path = path.to_owned();
        match errno {
            Errno::ACCESS | Errno::PERM => Self::NotWritable(path),
            Errno::ROFS => Self::ReadOnly(path),
            Errno::NOSPC => Self::Full { path, size_bytes },
            Errno::DQUOT => Self::Quota { path, size_bytes },
            _ => Self::Failed { what, path, source: errno.into() },
        }
    }
}

/// A directory below which everything is one run's.
#[derive(Debug)]
pub struct WorkDir {
    directory: Directory,
    /// The directory in which the run made its own.
    top: Directory,
    run_id: String,
    /// The marker, locked: whoever cleans up sees that the run lives. The kernel lets it go when
    /// the process ends, however it ends.
    _alive: OwnedFd,
}

impl WorkDir {
    /// Refuses a directory in which no run could make one of its own. Nothing is made.
    pub fn check(allowed: &AllowedDirs, directory: &Path) -> Result<(), WorkDirError> {
        let top = Directory::open_top(allowed, directory)?;
        let home = match top.enter(HOME.as_ref()) {
            Ok(home) => home,
            Err(WorkDirError::Missing(_)) => top,
            Err(error) => return Err(error),
        };
        let access = Access::WRITE_OK | Access::EXEC_OK;
        rustix::fs::accessat(&home.fd, c".", access, AtFlags::empty())
            .map_err(|errno| WorkDirError::new("make a directory in", &home.path, errno))
    }

    /// Makes `<directory>/plimsoll/<run id>` with its marker. One that this run made before is used
    /// as it is.
    pub fn make(
        allowed: &AllowedDirs,
        directory: &Path,
        run_id: &str,
    ) -> Result<Self, WorkDirError> {
        check_run_id(run_id)?;
        let top = Directory::open_top(allowed, directory)?;
        let home = top.make(HOME.as_ref())?;
        let work_dir = home.make(run_id.as_ref())?;
        match work_dir.marker()? {
            Some(_) => {}
            // Others of the run make it, too.
            None if work_dir.is_empty()? => work_dir.mark(run_id)?,
            None => {}
        }
        if work_dir.marker()?.is_none_or(|found| found != run_id) {
            return Err(WorkDirError::Foreign { path: work_dir.path, run_id: run_id.to_owned() });
        }
        let marker = work_dir
            .open_marker(OFlags::RDONLY)?
            .ok_or_else(|| WorkDirError::Missing(work_dir.path.clone()))?;
        // A file system without locks has nothing to hold; the run is none the worse for it.
        let _ = rustix::fs::flock(&marker, FlockOperation::NonBlockingLockShared);
        let run_id = run_id.to_owned();
        Ok(Self { directory: work_dir, top, run_id, _alive: marker })
    }

    /// Returns the run's directory.
    pub fn path(&self) -> &Path {
        &self.directory.path
    }

    /// Removes what the run made in the directory, as [`sweep`] does, whatever has the directory's
    /// name now.
    pub fn sweep(&self, is_stopped: &(dyn Fn() -> bool + Sync)) -> Result<Swept, WorkDirError> {
        sweep::sweep_in(&self.top, &self.run_id, is_stopped)
    }

    /// Opens a path in the run's directory, which is the one that was made, whatever has its name
    /// now; no link is followed on the way. `None` for a path that lies elsewhere.
    pub(crate) fn open(
        &self,
        path: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> Option<Result<OwnedFd, Errno>> {
        let below = path.strip_prefix(self.path()).ok()?;
        Some(open_beneath(&self.directory.fd, below, flags, mode))
    }

    /// Leaves a sign of the part of that number of the run, for others who carry it out.
    pub fn sign(&self, part: usize) -> Result<(), WorkDirError> {
        let path = self.path().join(sign_of(part));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.directory.fd, sign_of(part), flags, Mode::from_raw_mode(0o644))
            .map_err(|errno| WorkDirError::new("write", &path, errno))?;
        Ok(())
    }

    /// Tells whether the sign of the part of that number shows here.
    pub fn shows(&self, part: usize) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::statat(&self.directory.fd, sign_of(part), flags).is_ok()
    }

    /// Makes directories, with all that is above them, that are not there. Each path lies in the
    /// run's directory.
    pub fn make_directories<P: AsRef<Path>>(
        &self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<(), WorkDirError> {
        for path in paths {
            let names = self.names(path.as_ref())?;
            let mut last: Option<Directory> = None;
            for name in names {
                last = Some(last.as_ref().unwrap_or(&self.directory).make(name)?);
            }
        }
        Ok(())
    }

    /// Makes a file of at least `size_bytes` with its space reserved, where the file system can do
    /// that; the directory above it is there. A file that is larger stays so.
    pub fn make_file(&self, path: &Path, size_bytes: u64) -> Result<(), WorkDirError> {
        let names = self.names(path)?;
        let outside = || WorkDirError::Outside { path: path.into(), work_dir: self.path().into() };
        let (name, above) = names.split_last().ok_or_else(outside)?;
        let mut last: Option<Directory> = None;
        for name in above {
            last = Some(last.as_ref().unwrap_or(&self.directory).enter(name)?);
        }
        let directory = last.as_ref().unwrap_or(&self.directory);
        let failed = |errno| WorkDirError::with_size("make the file", path, size_bytes, errno);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory.fd, *name, flags, Mode::from_raw_mode(0o644))
            .map_err(|errno| match errno {
                Errno::LOOP => WorkDirError::Link(path.to_owned()),
                errno => failed(errno),
            })?;
        reserve(&file, size_bytes).map_err(failed)
    }

    /// Returns the names on the way from the run's directory to a path below it.
    fn names<'a>(&self, path: &'a Path) -> Result<Vec<&'a OsStr>, WorkDirError> {
        let outside = || WorkDirError::Outside { path: path.into(), work_dir: self.path().into() };
        let below = path.strip_prefix(self.path()).map_err(|_| outside())?;
        below
            .components()
            .map(|each| match each {
                Component::Normal(name) => Ok(name),
                _ => Err(outside()),
            })
            .collect()
    }
}

/// Gives a file its size, and its space where the file system can do that.
fn reserve(file: &OwnedFd, size_bytes: u64) -> Result<(), Errno> {
    if size_bytes == 0 {
        return Ok(());
    }
    loop {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, size_bytes) {
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => break,
            other => return other,
        }
    }
    let is_smaller = (rustix::fs::fstat(file)?.st_size as u64) < size_bytes;
    if is_smaller { rustix::fs::ftruncate(file, size_bytes) } else { Ok(()) }
}

/// Returns the name of the sign of a part of a run.
fn sign_of(part: usize) -> String {
    format!(".plimsoll-part-{part}")
}

fn check_run_id(run_id: &str) -> Result<(), WorkDirError> {
    RunId::parse(run_id).map(drop).map_err(|_| WorkDirError::RunId(run_id.to_owned()))
}

/// An open directory that was reached without following a link or crossing to another mount.
#[derive(Debug)]
struct Directory {
    fd: OwnedFd,
    path: PathBuf,
    place: MountPlace,
}

/// What differs between two mounts: bind mounts have the same device, subvolumes the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MountPlace {
    device: u64,
    /// Known since Linux 5.8.
    mount_id: Option<u64>,
}

impl Directory {
    /// Opens a directory that the user named, wherever links lead within what is allowed.
    fn open_top(allowed: &AllowedDirs, path: &Path) -> Result<Self, WorkDirError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match allowed.open(path, flags, Mode::empty()) {
            Ok(fd) => Self::new(fd, path.to_owned()),
            Err(Errno::NOENT) => Err(WorkDirError::Missing(path.to_owned())),
            Err(Errno::NOTDIR) => Err(WorkDirError::NotADirectory(path.to_owned())),
            Err(Errno::LOOP) => Err(WorkDirError::Link(path.to_owned())),
            Err(errno) => Err(WorkDirError::new("open", path, errno)),
        }
    }

    fn new(fd: OwnedFd, path: PathBuf) -> Result<Self, WorkDirError> {
        let stat = rustix::fs::fstat(&fd);
        let device = stat.map_err(|errno| WorkDirError::new("look at", &path, errno))?.st_dev;
        let mount_id = facts::statx(&fd, StatxFlags::MNT_ID).map(|facts| facts.stx_mnt_id);
        Ok(Self { fd, path, place: MountPlace { device, mount_id } })
    }

    /// Opens a directory in this one.
    fn enter(&self, name: &OsStr) -> Result<Self, WorkDirError> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Err(WorkDirError::Missing(path)),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let stat = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW);
                let is_link = stat
                    .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
                let error = if is_link { WorkDirError::Link } else { WorkDirError::NotADirectory };
                return Err(error(path));
            }
            Err(errno) => return Err(WorkDirError::new("open", &path, errno)),
        };
        let inner = Self::new(fd, path)?;
        if inner.place == self.place { Ok(inner) } else { Err(WorkDirError::Mount(inner.path)) }
    }

    /// Opens a directory in this one, made where it is not there.
    fn make(&self, name: &OsStr) -> Result<Self, WorkDirError> {
        match rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => self.enter(name),
            // It is the directory that they may not write to.
            Err(errno @ (Errno::ACCESS | Errno::PERM | Errno::ROFS)) => {
                Err(WorkDirError::new("make a directory in", &self.path, errno))
            }
            Err(errno) => Err(WorkDirError::new("make", &self.path.join(name), errno)),
        }
    }

    /// Returns the names in this directory with their types.
    fn entries(&self) -> Result<Vec<(CString, FileType)>, WorkDirError> {
        let failed = |errno| WorkDirError::new("read", &self.path, errno);
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                        // It was removed meanwhile.
                        Err(Errno::NOENT) => continue,
                        Err(errno) => return Err(failed(errno)),
                    }
                }
                kind => kind,
            };
            entries.push((name.to_owned(), kind));
        }
        Ok(entries)
    }

    /// Tells whether nothing is in this directory but what processes of a run leave that make it
    /// at once.
    fn is_empty(&self) -> Result<bool, WorkDirError> {
        let is_ours = |name: &CString| name.to_bytes().starts_with(OURS.as_bytes());
        self.entries().map(|entries| entries.iter().all(|(name, _)| is_ours(name)))
    }

    /// Opens the marker in this directory, if there is one.
    fn open_marker(&self, access: OFlags) -> Result<Option<OwnedFd>, WorkDirError> {
        let path = self.path.join(MARKER);
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.fd, MARKER, flags, Mode::empty()) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP) => Err(WorkDirError::Link(path)),
            Err(errno) => Err(WorkDirError::new("read", &path, errno)),
        }
    }

    /// Tells whether the run of this directory is under way: it holds the marker locked. Where that
    /// cannot be told, as on a file system without locks, it is an error.
    fn is_alive(&self) -> Result<bool, WorkDirError> {
        // NFS gives an exclusive lock only to those who may write.
        let Some(marker) = self.open_marker(OFlags::RDWR)? else { return Ok(false) };
        match rustix::fs::flock(&marker, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(errno) => Err(WorkDirError::new("lock", &self.path.join(MARKER), errno)),
        }
    }

    /// Returns what the marker in this directory says.
    fn marker(&self) -> Result<Option<String>, WorkDirError> {
        let Some(file) = self.open_marker(OFlags::RDONLY)? else { return Ok(None) };
        let path = self.path.join(MARKER);
        let failed = |errno| WorkDirError::new("read", &path, errno);
        let mut text = [0; MARKER_BYTES_MAX + 1];
        let len = rustix::io::read(file, &mut text).map_err(failed)?;
        Ok(Some(String::from_utf8_lossy(&text[..len]).trim_end().to_owned()))
    }

    /// Makes the marker, whole from its first moment: others of the same run may look at once.
    fn mark(&self, run_id: &str) -> Result<(), WorkDirError> {
        let text = format!("{run_id}\n");
        let pid = rustix::process::getpid().as_raw_nonzero();
        // Other threads, and processes of other machines, may have the same.
        let drafts = (0..DRAFTS_MAX).map(|number| format!("{MARKER}.{pid}.{number}"));
        let mut free = drafts.map(|name| (self.write_new(&name, &text), name));
        let written = free.find(|(written, _)| *written != Err(Errno::EXIST));
        let linked = match written {
            Some((Ok(()), draft)) => {
                let (flags, to) = (AtFlags::empty(), &self.fd);
                let linked = rustix::fs::linkat(&self.fd, &*draft, to, MARKER, flags);
                let _ = rustix::fs::unlinkat(&self.fd, &*draft, AtFlags::empty());
                linked
            }
            Some((Err(errno), _)) => Err(errno),
            None => Err(Errno::EXIST),
        };
        match linked {
            // Another process of the run has just made it.
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            // Not every file system has links.
            Err(_) => match self.write_new(MARKER, &text) {
                Err(Errno::EXIST) | Ok(()) => Ok(()),
                Err(errno) => Err(WorkDirError::new("write", &self.path.join(MARKER), errno)),
            },
        }
    }

    /// Writes a file that only its user can open. Another user who opened the marker could lock it,
    /// and the run would seem to live for ever.
    fn write_new(&self, name: &str, text: &str) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::openat(&self.fd, name, flags, Mode::from_raw_mode(0o600))
            .and_then(|file| rustix::io::write(file, text.as_bytes()))
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_is_not_entered() {
        let root = Directory::open_top(&AllowedDirs::ANY, Path::new("/")).unwrap();
        let error = root.enter(OsStr::new("proc")).unwrap_err();
        assert!(
            matches!(&error, WorkDirError::Mount(path) if path == Path::new("/proc")),
            "{error}"
        );
        let text = "/proc is a mount point, and no run makes any; it is left alone";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn refusals_are_one_clear_sentence() {
        let path = Path::new("/d/f");
        let text = |errno| WorkDirError::with_size("make the file", path, 4096, errno).to_string();
        assert_eq!(text(Errno::NOSPC), "no space is left for /d/f, which takes 4096 bytes");
        let quota = "the quota leaves no space for /d/f, which takes 4096 bytes";
        assert_eq!(text(Errno::DQUOT), quota);
        assert_eq!(text(Errno::ROFS), "the file system of /d/f is read-only");
        assert_eq!(text(Errno::ACCESS), "permission denied in /d/f");
        assert_eq!(text(Errno::IO), "cannot make the file /d/f");
    }
}

//! Directories that the owner of a machine allows others to work in.
//!
//! A path is resolved first, which tells where it lies now. It is then opened relative to a handle
//! of the allowed directory, and the kernel follows no link there. If another user replaces a part
//! of the path by a link in between, opening fails; a file outside is never opened.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_driver::DriverError;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::facts::real_path;
use crate::trouble;

/// Why a path is not opened that is a link or leads out of what is allowed.
pub const LINK: &str = "a symbolic link is in the way and is not followed";

/// Where files may be opened: in these directories, or anywhere.
#[derive(Clone, Debug, Default)]
pub struct AllowedDirs {
    /// `None`: anywhere.
    dirs: Option<Arc<[AllowedDir]>>,
    is_foreign: bool,
}

#[derive(Debug)]
struct AllowedDir {
    /// What is allowed, without links: a directory, or a single file.
    path: PathBuf,
    /// The directory that is open, without links: `path`, or the one that holds the file.
    top: PathBuf,
    fd: OwnedFd,
}

/// Where a path lies: in an open directory, under a path that had no link in it.
struct Located<'a> {
    top: &'a OwnedFd,
    below: PathBuf,
}

impl AllowedDirs {
    /// Files are opened wherever they lie, as for the user who typed the command line.
    pub const ANY: Self = Self { dirs: None, is_foreign: false };

    /// No file is opened.
    pub fn none() -> Self {
        Self { dirs: Some(Arc::default()), is_foreign: true }
    }

    /// Opens the directories; what lies in them, and nothing else, can be opened from now on. A
    /// file stands for itself.
    pub fn only(paths: &[PathBuf]) -> Result<Self, DriverError> {
        let open = |path: &PathBuf| {
            let what = || format!("cannot open the directory {}", path.display());
            let failed = |error: io::Error| trouble::failed(what(), trouble::of(&error));
            let real = real_path(path).map_err(failed)?;
            let top = match (real.is_dir(), real.parent()) {
                (false, Some(parent)) if real.exists() => parent.to_owned(),
                _ => real.clone(),
            };
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let fd = rustix::fs::open(&top, flags, Mode::empty());
            let fd = fd.map_err(|errno| trouble::failed(what(), errno))?;
            Ok(AllowedDir { path: real, top, fd })
        };
        let dirs = Some(paths.iter().map(open).collect::<Result<_, _>>()?);
        Ok(Self { dirs, is_foreign: true })
    }

    /// Like `only`, without limits on how much is read: for the user's own command line.
    pub fn own(paths: &[PathBuf]) -> Result<Self, DriverError> {
        Ok(Self { is_foreign: false, ..Self::only(paths)? })
    }

    /// Returns whether somebody else says what is opened, so that only so much of it is read.
    pub const fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Returns whether files can be opened wherever they lie.
    pub const fn is_any(&self) -> bool {
        self.dirs.is_none()
    }

    /// Returns whether a path lies in one of the directories now.
    pub fn allows(&self, path: &Path) -> bool {
        self.dirs.as_ref().is_none_or(|all| locate(all, path).is_ok())
    }

    /// Opens a path. What has become a link since it was looked at fails with [`Errno::LOOP`].
    pub fn open(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        match &self.dirs {
            None => rustix::fs::openat(CWD, path, flags, mode),
            Some(all) => locate(all, path)?.open(flags, mode),
        }
    }
}

/// Returns where a path lies; [`Errno::LOOP`] where that is in none of the directories.
fn locate<'a>(all: &'a [AllowedDir], path: &Path) -> Result<Located<'a>, Errno> {
    let real = real_path(path).map_err(|error| trouble::of(&error))?;
    let dir = all.iter().find(|dir| real.starts_with(&dir.path)).ok_or(Errno::LOOP)?;
    let below = real.strip_prefix(&dir.top).map_err(|_| Errno::LOOP)?;
    Ok(Located { top: &dir.fd, below: below.to_owned() })
}

impl Located<'_> {
    fn open(&self, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        open_beneath(self.top, &self.below, flags, mode)
    }
}

/// Opens what lies below an open directory, and follows no link on the way.
pub(crate) fn open_beneath(
    top: &OwnedFd,
    below: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    // What makes nothing may ask for no mode.
    let makes = flags.intersects(OFlags::CREATE) || flags.contains(OFlags::TMPFILE);
    let mode = if makes { mode } else { Mode::empty() };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(top, below, flags, mode, resolve) {
        // Before Linux 5.6, or where a sandbox does not know it.
        Err(Errno::NOSYS | Errno::PERM) => open_stepwise(top, below, flags, mode),
        opened => opened,
    }
}

/// The same, one name after the other.
fn open_stepwise(top: &OwnedFd, below: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let steps = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (name, above) = (below.file_name(), below.parent());
    let Some(name) = name else {
        return rustix::fs::openat(top, ".", flags | OFlags::NOFOLLOW, mode);
    };
    let mut last: Option<OwnedFd> = None;
    for step in above.into_iter().flat_map(Path::components) {
        let from = last.as_ref().unwrap_or(top).as_fd();
        last = Some(match step {
            std::path::Component::Normal(step) => {
                rustix::fs::openat(from, step, steps, Mode::empty())?
            }
            _ => return Err(Errno::LOOP),
        });
    }
    let from = last.as_ref().unwrap_or(top).as_fd();
    rustix::fs::openat(from, name, flags | OFlags::NOFOLLOW, mode)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes and exchanges the files that are opened")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::RenameFlags;

    use super::*;

    const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);

    /// A directory that is allowed, with a file `in/file`, and one beside it with `out/file`.
    struct Place {
        _temporary: tempfile::TempDir,
        inside: PathBuf,
        outside: PathBuf,
        allowed: AllowedDirs,
    }

    fn place() -> Place {
        let temporary = tempfile::tempdir().unwrap();
        let (inside, outside) = (temporary.path().join("in"), temporary.path().join("out"));
        for directory in [&inside, &outside] {
            fs::create_dir_all(directory.join("deep")).unwrap();
            fs::write(directory.join("file"), "1").unwrap();
            fs::write(directory.join("deep/file"), "1").unwrap();
        }
        let allowed = AllowedDirs::only(std::slice::from_ref(&inside)).unwrap();
        Place { _temporary: temporary, inside, outside, allowed }
    }

    fn exchange(one: &Path, other: &Path) {
        rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
    }

    type Open = fn(&OwnedFd, &Path, OFlags, Mode) -> Result<OwnedFd, Errno>;

    /// Another user replaces the path, or a directory on it, by a link after the path was resolved
    /// and before it is opened.
    #[test]
    fn a_path_that_becomes_a_link_before_it_is_opened_is_refused() {
        for open in [open_beneath as Open, open_stepwise] {
            for (exchanged, path) in [("file", "file"), ("deep", "deep/file")] {
                let place = place();
                let link = place.inside.join("link");
                symlink(place.outside.join(exchanged), &link).unwrap();
                let all = place.allowed.dirs.as_ref().unwrap();
                let located = locate(all, &place.inside.join(path)).unwrap();
                let opened = || open(located.top, &located.below, READ, Mode::empty());
                assert!(opened().is_ok(), "{path}");
                exchange(&place.inside.join(exchanged), &link);
                let refused = opened().unwrap_err();
                assert!([Errno::LOOP, Errno::NOTDIR].contains(&refused), "{path}: {refused}");
            }
        }
    }

    #[test]
    fn the_directory_is_the_one_that_was_opened_whatever_has_its_name() {
        let place = place();
        fs::write(place.outside.join("other"), "").unwrap();
        exchange(&place.inside, &place.outside);
        let open = |name: &str| place.allowed.open(&place.inside.join(name), READ, Mode::empty());
        assert_eq!(open("other").unwrap_err(), Errno::NOENT);
        assert!(open("file").is_ok());
    }

    #[test]
    fn what_lies_elsewhere_is_not_opened_and_links_within_are_followed() {
        let place = place();
        let link = |name: &str, to: &Path| symlink(to, place.inside.join(name)).unwrap();
        link("within", &place.inside.join("deep"));
        link("away", &place.outside);
        let opened = |path: &Path| place.allowed.open(path, READ, Mode::empty()).map(drop);
        for path in ["", "file", "deep/file", "within/file", "deep/../file"] {
            let path = place.inside.join(path);
            assert_eq!(opened(&path), Ok(()), "{}", path.display());
            assert!(place.allowed.allows(&path), "{}", path.display());
        }
        for path in ["away/file", "../out/file", "away", "..", "away/new"] {
            let path = place.inside.join(path);
            assert_eq!(opened(&path), Err(Errno::LOOP), "{}", path.display());
            assert!(!place.allowed.allows(&path), "{}", path.display());
        }
        assert!(!place.allowed.allows(Path::new("/etc/passwd")));
        let none = AllowedDirs::only(&[]).unwrap();
        assert!(!none.allows(&place.inside) && AllowedDirs::ANY.allows(&place.inside));
        // A single file, such as a device.
        let one = AllowedDirs::only(&[place.inside.join("file")]).unwrap();
        let opened = |name: &str| one.open(&place.inside.join(name), READ, Mode::empty()).is_ok();
        assert_eq!([opened("file"), opened("deep/file"), opened("")], [true, false, false]);
        let error = AllowedDirs::only(&[place.inside.join("away/none")]).unwrap_err().message;
        assert!(error.starts_with("cannot open the directory "), "{error}");
    }
}

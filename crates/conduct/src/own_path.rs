//! Paths of files that are written over, on which no other user has put a link.
//!
//! In a directory in which others may write, such as /tmp, a name can be a link of theirs to a file
//! of this user. The kernel refuses such links only where `fs.protected_symlinks` is set, and only
//! in directories with the sticky bit.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use plimsoll_record::exposure::check_owner;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;

/// As many links as the kernel follows on one path.
const LINKS_MAX: u32 = 40;
/// The type of /proc.
const PROC: u64 = 0x9fa0;
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Where a path leads: a name in an open directory that is no link, but for the kernel's own in
/// /proc.
pub(crate) struct OwnPath {
    directory: OwnedFd,
    name: PathBuf,
    /// What has that name; to be looked at, not to be read.
    found: Option<File>,
}

impl OwnPath {
    /// Walks a path and refuses every link on it that another user than this one and root has made.
    pub(crate) fn walk(path: &Path) -> io::Result<Self> {
        let mut directory = root_of(path, CWD)?;
        let (mut rest, mut links) = (names_of(path), 0);
        let mut name = rest.pop().ok_or(Errno::NOENT)?;
        loop {
            let mut found =
                match rustix::fs::openat(&directory, &name, LOOK | OFlags::NOFOLLOW, Mode::empty())
                {
                    Err(Errno::NOENT) if rest.is_empty() => {
                        return Ok(Self { directory, name: name.into(), found: None });
                    }
                    found => File::from(found?),
                };
            let metadata = found.metadata()?;
            if metadata.is_symlink() && is_proc(&directory)? {
                // What such a link leads to has no path.
                found = rustix::fs::openat(&directory, &name, LOOK, Mode::empty())?.into();
            } else if metadata.is_symlink() {
                check_owner(&metadata).map_err(|_| foreign(&name))?;
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::LOOP.into());
                }
                let to = rustix::fs::readlinkat(&found, "", Vec::new())?.into_bytes();
                let to = PathBuf::from(OsString::from_vec(to));
                directory = root_of(&to, directory.as_fd())?;
                rest.extend(names_of(&to));
                name = rest.pop().ok_or(Errno::NOENT)?;
                continue;
            }
            let Some(next) = rest.pop() else {
                return Ok(Self { directory, name: name.into(), found: Some(found) });
            };
            // By its name again: only so is a file system mounted there on first use.
            let flags = LOOK | OFlags::DIRECTORY;
            let flags = if is_proc(&directory)? { flags } else { flags | OFlags::NOFOLLOW };
            directory = rustix::fs::openat(&directory, &name, flags, Mode::empty())?;
            name = next;
        }
    }

    /// Returns what is there.
    pub(crate) fn found(&self) -> io::Result<Option<Metadata>> {
        self.found.as_ref().map(File::metadata).transpose()
    }

    /// Tells whether it is the kernel's name of what a process has open.
    pub(crate) fn is_of_process(&self) -> io::Result<bool> {
        is_proc(&self.directory)
    }

    /// Opens it, or makes it; a link that has taken its place meanwhile is not followed. What is no
    /// file, such as a pipe that nobody reads, must not be another user's either.
    pub(crate) fn open(&self, flags: OFlags, mode: u32) -> io::Result<File> {
        match self.found()? {
            Some(found) if !found.is_file() && !self.is_of_process()? => {
                check_owner(&found).map_err(io::Error::other)?;
            }
            _ => {}
        }
        let flags = flags | OFlags::CLOEXEC;
        let flags = if is_proc(&self.directory)? { flags } else { flags | OFlags::NOFOLLOW };
        let mode = Mode::from_raw_mode(mode);
        Ok(rustix::fs::openat(&self.directory, &self.name, flags, mode)?.into())
    }

    /// Returns the directory as a path that leads to it as long as the value lives, whatever has
    /// its name by then.
    pub(crate) fn directory(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.directory.as_raw_fd()).into()
    }

    /// Returns the same of the file.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory().join(&self.name)
    }
}

fn foreign(name: &OsString) -> io::Error {
    let name = name.display();
    let reason = format!("the symbolic link `{name}` belongs to another user; name where it leads");
    io::Error::other(reason)
}

/// Opens where a path begins.
fn root_of(path: &Path, otherwise: impl AsFd) -> io::Result<OwnedFd> {
    let begin = if path.is_absolute() { "/" } else { "." };
    Ok(rustix::fs::openat(otherwise, begin, LOOK | OFlags::DIRECTORY, Mode::empty())?)
}

/// Returns the names on a path, the last first; none of an empty one.
fn names_of(path: &Path) -> Vec<OsString> {
    let name = |part: Component<'_>| match part {
        Component::RootDir => OsString::from("."),
        part => part.as_os_str().to_owned(),
    };
    path.components().rev().map(name).collect()
}

fn is_proc(directory: &OwnedFd) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(directory)?.f_type as u64 == PROC)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes and exchanges what is on the way")]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::{MetadataExt as _, lchown, symlink};

    use super::*;

    /// A directory with `in/file`, and a user of whom links are.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("in");
        fs::create_dir(&inside).unwrap();
        fs::write(inside.join("file"), "file").unwrap();
        (place, inside)
    }

    fn inode(path: &Path) -> io::Result<Option<u64>> {
        let found = OwnPath::walk(path)?.found()?;
        Ok(found.map(|found| found.ino()))
    }

    #[test]
    fn a_path_leads_where_the_kernel_says() {
        let (place, inside) = place();
        let at = |name: &str| place.path().join(name);
        symlink("in", at("near")).unwrap();
        symlink(&inside, at("far")).unwrap();
        symlink("../in/./file", inside.join("up")).unwrap();
        symlink("..", inside.join("above")).unwrap();
        let links = ["near/file", "far/file", "near/up", "far/above/in/up", "in/../far/file"];
        for path in links.map(at).iter().chain([&inside, &PathBuf::from("/"), &"/proc".into()]) {
            let expected = fs::metadata(path).unwrap().ino();
            assert_eq!(inode(path).unwrap(), Some(expected), "{}", path.display());
        }
        assert_eq!(inode(Path::new(".")).unwrap(), Some(fs::metadata(".").unwrap().ino()));
        assert_eq!(inode(&at("far/new")).unwrap(), None);
        symlink("loop", at("loop")).unwrap();
        for (path, errno) in [
            (at("loop"), Errno::LOOP),
            (at("new/file"), Errno::NOENT),
            (at("in/file/x"), Errno::NOTDIR),
            (PathBuf::new(), Errno::NOENT),
        ] {
            let error = inode(&path).unwrap_err();
            assert_eq!(Errno::from_io_error(&error), Some(errno), "{}: {error}", path.display());
        }
        // What is open, though its name is gone.
        let mut open = tempfile::tempfile().unwrap();
        let path = format!("/proc/self/fd/{}", open.as_raw_fd());
        let path = OwnPath::walk(Path::new(&path)).unwrap();
        assert!(path.is_of_process().unwrap() && path.found().unwrap().unwrap().is_file());
        path.open(OFlags::WRONLY, 0).unwrap().write_all(b"x").unwrap();
        assert_eq!(io::Seek::seek(&mut open, io::SeekFrom::End(0)).unwrap(), 1);
    }

    #[test]
    fn a_link_of_another_user_is_not_followed_wherever_it_is() {
        // Only root can make what belongs to another user.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (place, inside) = place();
        let at = |name: &str| place.path().join(name);
        for (name, to) in [("file", inside.join("file")), ("directory", inside.clone())] {
            symlink(to, at(name)).unwrap();
            lchown(at(name), Some(65_534), None).unwrap();
        }
        symlink("file", at("own")).unwrap();
        let by_root = Path::new("/proc/self/root").join(at("file").strip_prefix("/").unwrap());
        for path in [at("file"), at("directory/file"), at("directory/new"), at("own"), by_root] {
            let refused = inode(&path).unwrap_err().to_string();
            assert!(refused.contains("belongs to another user"), "{}: {refused}", path.display());
        }
    }

    #[test]
    fn what_takes_the_place_of_the_file_or_its_directory_is_not_written() {
        let (place, inside) = place();
        let (other, moved) = (place.path().join("other"), place.path().join("moved"));
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), "other").unwrap();
        let found = OwnPath::walk(&inside.join("file")).unwrap();
        fs::remove_file(inside.join("file")).unwrap();
        symlink(other.join("file"), inside.join("file")).unwrap();
        let refused = found.open(OFlags::WRONLY | OFlags::TRUNC, 0).unwrap_err();
        assert_eq!(Errno::from_io_error(&refused), Some(Errno::LOOP));
        fs::rename(&inside, &moved).unwrap();
        symlink(&other, &inside).unwrap();
        fs::remove_file(moved.join("file")).unwrap();
        let made = found.open(OFlags::WRONLY | OFlags::CREATE, 0o600).unwrap();
        assert_eq!(made.metadata().unwrap().ino(), fs::metadata(moved.join("file")).unwrap().ino());
        assert_eq!(fs::read_to_string(found.path()).unwrap(), "");
        assert_eq!(fs::read_to_string(other.join("file")).unwrap(), "other");
    }
}

//! What can be known of a file system and of a device before anything is done to it.
#![expect(clippy::disallowed_methods, reason = "the kernel tells of mounts in files of its own")]

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use plimsoll_driver::DriverError;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, SeekFrom, Stat, Statx, StatxFlags};
use rustix::io::Errno;

use crate::allowed_dirs::AllowedDirs;
use crate::trouble;

/// File systems that other machines have a part in.
const NETWORK: [&str; 25] = [
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "fhgfs",
    "fuse.ceph",
    "fuse.glusterfs",
    "fuse.juicefs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.seaweedfs",
    "fuse.sshfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "pvfs2",
    "smb3",
    "virtiofs",
    "wekafs",
];
/// File systems that are nothing but page cache.
const MEMORY: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// Names by the number in `statfs`, for where there is no /proc.
const MAGIC: [(u64, &str); 8] = [
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x6969, "nfs"),
    (0x794c_7630, "overlay"),
    (0x2fc1_2fc1, "zfs"),
];
/// What direct blocks are multiples of where neither kernel nor device tells.
const SECTOR_BYTES: u32 = 512;

/// What is known of the file system at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsFacts {
    /// Its type, such as `ext4`.
    pub file_system: String,
    /// Where it is mounted.
    pub mount_point: Option<PathBuf>,
    /// What is mounted there: a device, or what a server gives.
    pub device: Option<String>,
    /// How large it is.
    pub size_bytes: u64,
    /// How much of it this user may still fill.
    pub free_bytes: u64,
    /// How many more files it takes; `None` where it makes room for them as they come.
    pub free_inodes: Option<u64>,
    /// The block size that it likes best.
    pub block_size: u64,
    /// What O_DIRECT asks for; `None` where the page cache cannot be passed by, or this user may
    /// not find out.
    pub direct: Option<DirectFacts>,
    /// Whether other machines have a part in it.
    pub is_network: bool,
    /// Whether it is nothing but page cache.
    pub is_memory: bool,
}

/// What O_DIRECT asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectFacts {
    /// What addresses of buffers are multiples of.
    pub mem_align: u32,
    /// What offsets and lengths are multiples of.
    pub offset_align: u32,
}

/// Probes a path wherever it lies; see [`AllowedDirs::probe`].
pub fn probe(path: &Path) -> Result<FsFacts, DriverError> {
    AllowedDirs::ANY.probe(path)
}

impl AllowedDirs {
    /// Returns what is known of the file system at a path, or where the path would come to lie.
    pub fn probe(&self, path: &Path) -> Result<FsFacts, DriverError> {
        let (path, fd) = self.open_nearest(path)?;
        let failed = |errno| {
            let what = format!("cannot look at the file system of {}", path.display());
            trouble::failed(what, errno)
        };
        let space = rustix::fs::fstatvfs(&fd).map_err(failed)?;
        let mount = mount_of(&path, &fd);
        let file_system = match &mount {
            Some(mount) => mount.file_system.clone(),
            None => name_of_magic(rustix::fs::fstatfs(&fd).map_err(failed)?.f_type as u64),
        };
        let is_memory = MEMORY.contains(&file_system.as_str());
        Ok(FsFacts {
            is_network: NETWORK.contains(&file_system.as_str()),
            is_memory,
            direct: if is_memory { None } else { self.direct_facts(&path) },
            device: mount.as_ref().and_then(Mount::device),
            mount_point: mount.map(|mount| mount.mount_point),
            file_system,
            size_bytes: space.f_blocks * space.f_frsize,
            free_bytes: space.f_bavail * space.f_frsize,
            free_inodes: (space.f_files > 0).then_some(space.f_favail),
            block_size: space.f_bsize,
        })
    }

    /// Returns whether a path names a block device.
    pub fn is_device(&self, path: &Path) -> bool {
        let stat = self.stat(path);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice)
    }

    /// Returns how much a file or a block device holds; `None` of anything else, and of what is
    /// not there.
    pub fn size_bytes(&self, path: &Path) -> Option<u64> {
        let stat = self.stat(path).ok()?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => u64::try_from(stat.st_size).ok(),
            FileType::BlockDevice => self.device_size(path).ok(),
            _ => None,
        }
    }

    /// Returns the size of a block device.
    pub fn device_size(&self, path: &Path) -> Result<u64, DriverError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let by_seek = self
            .open(path, flags, Mode::empty())
            .and_then(|fd| rustix::fs::seek(fd, SeekFrom::End(0)));
        // Where this user may not open it, the kernel tells all the same, in sectors.
        let by_number = || {
            let number = self.stat(path).ok()?.st_rdev;
            let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
            let sectors = read_text(format!("/sys/dev/block/{major}:{minor}/size"))?;
            Some(sectors.trim().parse::<u64>().ok()? * u64::from(SECTOR_BYTES))
        };
        by_seek.or_else(|errno| by_number().ok_or(errno)).map_err(|errno| {
            trouble::failed(format_args!("cannot get the size of {}", path.display()), errno)
        })
    }

    /// Returns the metadata of a path.
    pub fn stat(&self, path: &Path) -> Result<Stat, Errno> {
        let fd = self.open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        rustix::fs::fstat(fd)
    }

    /// Opens a path, or what is nearest above it.
    fn open_nearest(&self, path: &Path) -> Result<(PathBuf, OwnedFd), DriverError> {
        let mut last = Errno::NOENT;
        for each in path.ancestors() {
            let each = if each.as_os_str().is_empty() { Path::new(".") } else { each };
            match self.open(each, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
                Ok(fd) => return Ok((each.to_owned(), fd)),
                Err(errno @ (Errno::NOENT | Errno::NOTDIR)) => last = errno,
                Err(errno) => {
                    let what = format!("cannot open {}", each.display());
                    return Err(trouble::failed(what, errno));
                }
            }
        }
        Err(trouble::failed(format_args!("cannot open {}", path.display()), last))
    }

    /// Returns what O_DIRECT asks for at a path: of a file with that name, or of one without a
    /// name that is made in the directory and gone at once.
    fn direct_facts(&self, path: &Path) -> Option<DirectFacts> {
        let stat = self.stat(path).ok()?;
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        // A pipe would have us wait for somebody at its other end.
        if !is_directory && !holds_blocks(&stat) {
            return None;
        }
        let kind = if is_directory { OFlags::TMPFILE | OFlags::RDWR } else { OFlags::RDONLY };
        let flags = kind | OFlags::DIRECT | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = self.open(path, flags, Mode::from_raw_mode(0o600)).ok()?;
        let of_device = || {
            let sectors = match FileType::from_raw_mode(stat.st_mode) {
                FileType::BlockDevice => rustix::fs::ioctl_blksszget(&fd).ok(),
                _ => logical_block_size(stat.st_dev),
            };
            let align = sectors.unwrap_or(SECTOR_BYTES);
            DirectFacts { mem_align: align, offset_align: align }
        };
        Some(direct_alignment(&fd).unwrap_or_else(of_device))
    }
}

/// Returns a path without links and `..` in it. What is not there yet stands behind what is.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    let mut behind = Vec::new();
    let mut there = std::path::absolute(path)?;
    loop {
        match std::fs::canonicalize(&there) {
            Ok(real) => return Ok(behind.iter().rev().fold(real, |path, name| path.join(name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A name that ends in `..` has none, and may lead anywhere.
                let name = there.file_name().map(|name| name.to_owned());
                let (Some(name), true) = (name, there.pop()) else { return Err(error) };
                behind.push(name);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether something can be read and written by blocks: a file or a block device.
fn holds_blocks(stat: &Stat) -> bool {
    let kind = FileType::from_raw_mode(stat.st_mode);
    matches!(kind, FileType::RegularFile | FileType::BlockDevice)
}

/// Returns what O_DIRECT asks for of an open file, if the kernel tells.
pub(crate) fn direct_alignment(fd: impl AsFd) -> Option<DirectFacts> {
    let facts = statx(fd, StatxFlags::DIOALIGN)?;
    let direct = DirectFacts {
        mem_align: facts.stx_dio_mem_align,
        offset_align: facts.stx_dio_offset_align,
    };
    (direct.offset_align > 0).then_some(direct)
}

/// Returns the text of a file of the kernel's.
pub(crate) fn read_text(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Returns what was asked for of an open file, if the kernel and the file system know it.
pub(crate) fn statx(fd: impl AsFd, what: StatxFlags) -> Option<Statx> {
    let facts = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, what).ok()?;
    (facts.stx_mask & what.bits() == what.bits()).then_some(facts)
}

/// Returns the logical block size of the device with that number.
fn logical_block_size(device: u64) -> Option<u32> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let folder = format!("/sys/dev/block/{major}:{minor}");
    // A partition's queue is that of the device it is a part of.
    ["queue", "../queue"].iter().find_map(|queue| {
        read_text(format!("{folder}/{queue}/logical_block_size"))?.trim().parse().ok()
    })
}

fn name_of_magic(magic: u64) -> String {
    let known = MAGIC.iter().find(|(number, _)| *number == magic);
    known.map_or_else(|| format!("{magic:#x}"), |(_, name)| (*name).to_owned())
}

/// A line of mountinfo; see proc_pid_mountinfo(5).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    id: u64,
    /// The device's, as in `8:1`.
    pub(crate) number: String,
    pub(crate) mount_point: PathBuf,
    file_system: String,
    pub(crate) source: String,
}

impl Mount {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ');
        let id = before.next()?.parse().ok()?;
        let number = before.nth(1)?.to_owned();
        let mount_point = PathBuf::from(unescape(before.nth(1)?));
        let mut after = after.split(' ');
        let file_system = after.next()?.to_owned();
        let source = unescape(after.next()?).to_string_lossy().into_owned();
        Some(Self { id, number, mount_point, file_system, source })
    }

    /// Returns what is mounted, where that is more than a word.
    fn device(&self) -> Option<String> {
        self.source.contains(['/', ':']).then(|| self.source.clone())
    }
}

/// Returns the mount that an open file lies on.
fn mount_of(path: &Path, fd: &OwnedFd) -> Option<Mount> {
    let mounts = read_text("/proc/self/mountinfo")?;
    let mut mounts = mounts.lines().filter_map(Mount::parse);
    if let Some(facts) = statx(fd, StatxFlags::MNT_ID) {
        return mounts.find(|mount| mount.id == facts.stx_mnt_id);
    }
    // Before Linux 5.8: the deepest mount above the path, and of several there the last.
    let path = std::fs::canonicalize(path).ok()?;
    mounts
        .filter(|mount| path.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.components().count())
}

/// Undoes the kernel's octal escapes of blanks and backslashes.
pub(crate) fn unescape(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let code = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(code) if byte == b'\\' => {
                bytes.push(code);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mountinfo_are_understood() {
        // The example of proc_pid_mountinfo(5), and one with a blank in the name.
        let line = "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = Mount::parse(line).unwrap();
        let expected = Mount {
            id: 36,
            number: "98:0".into(),
            mount_point: "/mnt2".into(),
            file_system: "ext3".into(),
            source: "/dev/root".into(),
        };
        assert_eq!(mount, expected);
        assert_eq!(mount.device().as_deref(), Some("/dev/root"));
        let line = "7 1 0:50 / /srv/my\\040disk rw shared:1 master:2 - nfs4 host:/a\\134b rw";
        let mount = Mount::parse(line).unwrap();
        assert_eq!(mount.mount_point, Path::new("/srv/my disk"));
        assert_eq!(mount.device().as_deref(), Some("host:/a\\b"));
        let line = "23 27 0:22 / /sys rw,relatime - sysfs sysfs rw";
        assert_eq!(Mount::parse(line).unwrap().device(), None);
        assert_eq!(Mount::parse("no mount"), None);
    }

    #[test]
    fn numbers_of_file_systems_have_names() {
        assert_eq!(name_of_magic(0x0102_1994), "tmpfs");
        assert_eq!(name_of_magic(0xabcd), "0xabcd");
    }
}

//! Which devices and files must not be written, as something stands on them: a mounted file system,
//! swap, a volume. Found in what the kernel tells, and held so that nothing comes to stand on them.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fmt::{self, Display};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use plimsoll_driver::DriverError;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::allowed_dirs::AllowedDirs;
use crate::facts::{self, Mount};
use crate::trouble;

/// A file or a device that was looked at and may be written. A device is claimed as long as the
/// value lives: nobody can mount it, swap to it or make it a part of a volume meanwhile.
#[derive(Debug)]
pub struct Held {
    identity: (u64, u64),
    claim: Option<OwnedFd>,
}

/// Makes sure that the device or the file that was found at a path may be written: no mounted file
/// system, no swap and no volume stands on it.
pub fn hold_for_writing(
    allowed: &AllowedDirs,
    path: &Path,
    found: impl AsFd,
) -> Result<Held, DriverError> {
    let failed = |errno| trouble::failed(format_args!("cannot open {}", path.display()), errno);
    let stat = rustix::fs::fstat(found).map_err(failed)?;
    if let Some(found) = Tree::read(Path::new("/")).use_of(path, &stat) {
        return Err(refused(path, &found));
    }
    let mut held = Held { identity: identity(&stat), claim: None };
    // For block devices, this flag asks the kernel for what a mount would ask it for. It also knows
    // of mounts in other namespaces, and of what shows up nowhere.
    let flags = if is_device(&stat) { OFlags::RDONLY | OFlags::EXCL } else { OFlags::PATH };
    match allowed.open(path, flags | OFlags::CLOEXEC, Mode::empty()) {
        Ok(opened) => {
            held.check(path, &opened)?;
            held.claim = is_device(&stat).then_some(opened);
            Ok(held)
        }
        Err(Errno::BUSY) => Err(refused(path, &"the kernel says that something has claimed it")),
        Err(errno) => Err(failed(errno)),
    }
}

impl Held {
    /// Refuses what was opened at the path and is not what was looked at.
    pub(crate) fn check(&self, path: &Path, opened: &OwnedFd) -> Result<(), DriverError> {
        let is_it = rustix::fs::fstat(opened).is_ok_and(|stat| identity(&stat) == self.identity);
        let other = || format!("{} is not what it was when the run began", path.display());
        if is_it { Ok(()) } else { Err(trouble::with_text(Errno::STALE, other())) }
    }
}

fn refused(path: &Path, why: &dyn Display) -> DriverError {
    let path = path.display();
    trouble::with_text(Errno::BUSY, format!("{path} is in use and is not written: {why}"))
}

/// The way from a device or file to what uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct InUse {
    steps: Vec<(Step, String)>,
    /// What uses the last of them; `None` where being a member of it is the use.
    user: Option<User>,
}

/// How a device has bytes in common with the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It is the same, by another name.
    Same,
    /// The next is a partition of it.
    Partition,
    /// It is a partition of the next.
    Disk,
    /// It is a member of the next, a volume.
    Volume,
    /// The next is a member of it.
    Member,
    /// The next is a loop device on it.
    Loop,
    /// It is a loop device on the next.
    Backing,
}

/// What uses a device.
#[derive(Clone, Debug, PartialEq, Eq)]
enum User {
    Mount(PathBuf),
    Swap,
    /// A file system on several devices, with its id, mounted where we cannot see it.
    Btrfs(String),
}

impl Display for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it ")?;
        for (index, (step, next)) in self.steps.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", which " })?;
            let how = match step {
                Step::Same => "is",
                Step::Partition => "holds the partition",
                Step::Disk => "is a partition of",
                Step::Volume => "is a member of",
                Step::Member => "lies on",
                Step::Loop => "backs the loop device",
                Step::Backing => "is a loop device on",
            };
            write!(f, "{how} {next}")?;
        }
        let which = if self.steps.is_empty() { "" } else { ", which " };
        match &self.user {
            Some(User::Mount(point)) => write!(f, "{which}is mounted at {}", point.display()),
            Some(User::Swap) => write!(f, "{which}is swapped to"),
            Some(User::Btrfs(id)) => write!(f, "{which}is a part of the mounted btrfs {id}"),
            None => Ok(()),
        }
    }
}

/// A block device as /sys tells of it.
#[derive(Debug, Default)]
struct Device {
    /// As in `8:1`.
    number: String,
    partitions: Vec<String>,
    /// Volumes that it is a member of.
    holders: Vec<String>,
    /// What a loop device stands on.
    backing: Option<PathBuf>,
    /// The name of a volume of the device mapper.
    volume: Option<String>,
}

impl Device {
    fn read(folder: &Path) -> Self {
        let text = |path: &str| {
            let text = facts::read_text(folder.join(path));
            text.map(|text| text.trim_end_matches('\n').to_owned())
        };
        let is_partition = |name: &String| folder.join(name).join("partition").exists();
        Self {
            number: text("dev").unwrap_or_default(),
            partitions: names_in(folder).into_iter().filter(is_partition).collect(),
            holders: names_in(&folder.join("holders")),
            backing: text("loop/backing_file").map(PathBuf::from),
            volume: text("dm/name"),
        }
    }
}

/// All block devices, and what uses them.
struct Tree {
    root: PathBuf,
    devices: BTreeMap<String, Device>,
    /// The first user of each device that has one.
    users: BTreeMap<String, User>,
    swap_files: Vec<PathBuf>,
}

/// What has bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// By its name in /sys.
    Device(String),
    /// By its path, with the numbers of its device and inode, as it may have many paths.
    File(PathBuf, (u64, u64)),
}

/// How a place was reached, which says what stands on it has bytes in common with the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    /// It is the start.
    Start,
    /// It stands on the start.
    Above,
    /// The start is a part of it; partitions and volumes beside the start are nobody's business.
    Disk,
    Member,
    /// The start is a loop device on it, of which nobody tells here how much it takes.
    Backing,
}

impl Tree {
    /// Reads what the kernel tells below `root`, which is `/` but in tests.
    fn read(root: &Path) -> Self {
        let blocks = root.join("sys/class/block");
        let devices = names_in(&blocks).into_iter().map(|name| {
            let device = Device::read(&blocks.join(&name));
            (name, device)
        });
        let mut tree = Self {
            root: root.to_owned(),
            devices: devices.collect(),
            users: BTreeMap::new(),
            swap_files: Vec::new(),
        };
        tree.read_mounts();
        tree.read_swaps();
        tree.read_btrfs();
        tree
    }

    fn read_mounts(&mut self) {
        let mounts = facts::read_text(self.root.join("proc/self/mountinfo")).unwrap_or_default();
        for mount in mounts.lines().filter_map(Mount::parse) {
            // Some file systems have numbers that are no device's, and name one instead.
            let source = Path::new(&mount.source);
            let name = self.by_number(&mount.number).or_else(|| self.device_at(source));
            if let Some(name) = name.map(str::to_owned) {
                self.users.entry(name).or_insert(User::Mount(mount.mount_point));
            }
        }
    }

    fn read_swaps(&mut self) {
        let swaps = facts::read_text(self.root.join("proc/swaps")).unwrap_or_default();
        for line in swaps.lines().skip(1) {
            let Some(path) = line.split_whitespace().next() else { continue };
            let path = PathBuf::from(facts::unescape(path));
            match self.device_at(&path).map(str::to_owned) {
                Some(name) => drop(self.users.entry(name).or_insert(User::Swap)),
                None => self.swap_files.push(path),
            }
        }
    }

    /// The kernel lists only one device of a btrfs as mounted.
    fn read_btrfs(&mut self) {
        let volumes = self.root.join("sys/fs/btrfs");
        for id in names_in(&volumes) {
            let members = names_in(&volumes.join(&id).join("devices"));
            let listed = members.iter().find_map(|name| self.users.get(name)).cloned();
            for name in members {
                let user = listed.clone().unwrap_or_else(|| User::Btrfs(id.clone()));
                self.users.entry(name).or_insert(user);
            }
        }
    }

    /// Returns how the device or file at a path is in use.
    fn use_of(&self, path: &Path, stat: &Stat) -> Option<InUse> {
        let place = match FileType::from_raw_mode(stat.st_mode) {
            FileType::BlockDevice => Place::Device(self.by_number(&number(stat))?.to_owned()),
            FileType::RegularFile => Place::File(path.to_owned(), identity(stat)),
            _ => return None,
        };
        let mut found = self.search(place.clone())?;
        let shown = self.shown(&place);
        if path != Path::new(&shown) {
            found.steps.insert(0, (Step::Same, shown));
        }
        Some(found)
    }

    /// Returns the shortest way from a place to what is mounted or swapped to, else to a volume.
    fn search(&self, start: Place) -> Option<InUse> {
        let mut seen = HashSet::from([start.clone()]);
        let mut ways = VecDeque::from([(start, Reached::Start, Vec::new())]);
        let mut member = None;
        while let Some((place, reached, steps)) = ways.pop_front() {
            if let Some(user) = self.user(&place) {
                return Some(InUse { steps, user: Some(user) });
            }
            for (step, next) in self.neighbours(&place, reached) {
                if !seen.insert(next.clone()) {
                    continue;
                }
                let mut steps = steps.clone();
                steps.push((step, self.shown(&next)));
                if step == Step::Volume && member.is_none() {
                    member = Some(InUse { steps: steps.clone(), user: None });
                }
                let reached = match step {
                    Step::Partition | Step::Volume | Step::Loop | Step::Same => Reached::Above,
                    Step::Disk => Reached::Disk,
                    Step::Member => Reached::Member,
                    Step::Backing => Reached::Backing,
                };
                ways.push_back((next, reached, steps));
            }
        }
        member
    }

    fn user(&self, place: &Place) -> Option<User> {
        match place {
            Place::Device(name) => self.users.get(name).cloned(),
            Place::File(_, id) => {
                let is_swap = self.swap_files.iter().any(|swap| self.identity(swap) == Some(*id));
                is_swap.then_some(User::Swap)
            }
        }
    }

    /// Returns what has bytes in common with a place, as far as they can be those of the start.
    fn neighbours(&self, place: &Place, reached: Reached) -> Vec<(Step, Place)> {
        let mut found = Vec::new();
        let mut add = |step, names: Vec<&String>| {
            found.extend(names.into_iter().map(|name| (step, Place::Device(name.clone()))));
        };
        if reached != Reached::Member {
            add(Step::Loop, self.loops_on(place));
        }
        let Place::Device(name) = place else { return found };
        let Some(device) = self.devices.get(name) else { return found };
        if !matches!(reached, Reached::Disk | Reached::Member) {
            add(Step::Partition, device.partitions.iter().collect());
        }
        if reached != Reached::Member {
            add(Step::Volume, device.holders.iter().collect());
        }
        if reached == Reached::Above {
            return found;
        }
        let disks = self.devices.iter().filter(|(_, disk)| disk.partitions.contains(name));
        add(Step::Disk, disks.map(|(disk, _)| disk).collect());
        let members = self.devices.iter().filter(|(_, member)| member.holders.contains(name));
        add(Step::Member, members.map(|(member, _)| member).collect());
        if let Some(backing) = &device.backing {
            found.extend(self.place(backing).map(|place| (Step::Backing, place)));
        }
        found
    }

    /// Returns the loop devices that stand on a place.
    fn loops_on(&self, place: &Place) -> Vec<&String> {
        let stands = |device: &Device| match (place, &device.backing) {
            (_, None) => false,
            (Place::Device(name), Some(backing)) => self.device_at(backing) == Some(name),
            (Place::File(_, id), Some(backing)) => self.identity(backing) == Some(*id),
        };
        self.devices.iter().filter(|(_, device)| stands(device)).map(|(name, _)| name).collect()
    }

    /// Returns what a path of the kernel's names.
    fn place(&self, path: &Path) -> Option<Place> {
        match self.device_at(path) {
            Some(name) => Some(Place::Device(name.to_owned())),
            None => Some(Place::File(path.to_owned(), self.identity(path)?)),
        }
    }

    /// Returns the name of the device with a number such as `8:1`.
    fn by_number(&self, number: &str) -> Option<&str> {
        let mut devices = self.devices.iter();
        devices.find(|(_, device)| device.number == number).map(|(name, _)| name.as_str())
    }

    /// Returns the name of the device that a path of the kernel's names, where it names one.
    fn device_at(&self, path: &Path) -> Option<&str> {
        // Elsewhere a look may hang, as on the file system of a server that is away.
        if !path.starts_with("/dev") {
            return None;
        }
        let path = self.below_root(path);
        if let Ok(stat) = rustix::fs::stat(&path)
            && is_device(&stat)
        {
            return self.by_number(&number(&stat));
        }
        let name = path.canonicalize().unwrap_or(path);
        let (name, _) = self.devices.get_key_value(name.file_name()?.to_str()?)?;
        Some(name)
    }

    /// Returns which file a path of the kernel's names.
    fn identity(&self, path: &Path) -> Option<(u64, u64)> {
        rustix::fs::stat(self.below_root(path)).ok().as_ref().map(identity)
    }

    fn below_root(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Returns a place as people know it.
    fn shown(&self, place: &Place) -> String {
        match place {
            Place::File(path, _) => path.display().to_string(),
            Place::Device(name) => {
                let volume = self.devices.get(name).and_then(|device| device.volume.as_ref());
                // The kernel has `!` for the `/` of some names.
                let node = || format!("/dev/{}", name.replace('!', "/"));
                volume.map_or_else(node, |volume| format!("/dev/mapper/{volume}"))
            }
        }
    }
}

/// Returns the names in a directory; none of one that is not there.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

fn is_device(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice
}

fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

fn number(stat: &Stat) -> String {
    format!("{}:{}", rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev))
}

#[cfg(test)]
mod tests;

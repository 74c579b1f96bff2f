//! The control groups of this process, versions 1 and 2: where they are, and what memory they
//! allow.

use std::fs;
use std::path::{Path, PathBuf};

/// Where control groups of version 2 are mounted by custom: alone, or beside version 1.
const MOUNTS_2: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// What a control group bounds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Controller {
    Processors,
    Memory,
}

impl Controller {
    /// Returns what version 1 calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Processors => "cpu",
            Self::Memory => "memory",
        }
    }

    /// Returns where its hierarchy of version 1 is mounted by custom.
    fn mounts_1(self) -> &'static [&'static str] {
        match self {
            Self::Processors => &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
            Self::Memory => &["/sys/fs/cgroup/memory"],
        }
    }
}

/// Returns the directories of all groups above this process, up to the root of what can be seen.
pub(super) fn groups(of: Controller) -> impl Iterator<Item = PathBuf> {
    let list = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut groups = Vec::new();
    for (mount, path) in places(&list, of) {
        // In a namespace of its own the path may be one that only the host sees; the mount is the
        // group itself then.
        let own = Path::new(mount).join(path.trim_start_matches('/'));
        let own = if own.is_dir() { own } else { PathBuf::from(mount) };
        let up = own.ancestors().take_while(|of| of.starts_with(mount));
        groups.extend(up.map(Path::to_path_buf));
    }
    groups.into_iter()
}

/// Returns the mounts and paths of the control groups that `/proc/self/cgroup` names.
fn places(list: &str, of: Controller) -> Vec<(&'static str, &str)> {
    let mut found = Vec::new();
    for line in list.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if controllers.is_empty() {
            found.extend(MOUNTS_2.iter().map(|mount| (*mount, path)));
        } else if controllers.split(',').any(|name| name == of.name()) {
            found.extend(of.mounts_1().iter().map(|mount| (*mount, path)));
        }
    }
    found
}

/// Returns how much memory the groups of this process allow; `None` where none sets a bound.
pub(super) fn memory_max() -> Option<u64> {
    let bound = |group: PathBuf| memory_bound(&|name| fs::read_to_string(group.join(name)).ok());
    groups(Controller::Memory).filter_map(bound).min()
}

/// Returns what one level allows.
fn memory_bound(read: &dyn Fn(&str) -> Option<String>) -> Option<u64> {
    let text = read("memory.max").or_else(|| read("memory.limit_in_bytes"))?;
    // `max` of version 2 is no number; version 1 says no bound by the largest page below 2^63.
    text.trim().parse().ok().filter(|bound| *bound < 1 << 62)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_are_found_in_either_version() {
        let hybrid = "8:pids:/\n4:cpu,cpuacct:/docker/a\n3:memory:/m\n0::/b\n";
        let [one, two] = Controller::Processors.mounts_1() else { panic!() };
        let unified = [(MOUNTS_2[0], "/b"), (MOUNTS_2[1], "/b")];
        let of_version_1 = [(*one, "/docker/a"), (*two, "/docker/a")];
        assert_eq!(places(hybrid, Controller::Processors), [of_version_1, unified].concat());
        let memory = [vec![("/sys/fs/cgroup/memory", "/m")], unified.to_vec()].concat();
        assert_eq!(places(hybrid, Controller::Memory), memory);
    }

    #[test]
    fn a_bound_on_memory_is_a_number_of_bytes() {
        let of = |name: &'static str, text: &'static str| {
            memory_bound(&move |asked: &str| (asked == name).then(|| text.to_owned()))
        };
        assert_eq!(of("memory.max", "536870912\n"), Some(512 << 20));
        assert_eq!(of("memory.max", "max\n"), None);
        assert_eq!(of("memory.limit_in_bytes", "1048576\n"), Some(1 << 20));
        assert_eq!(of("memory.limit_in_bytes", "9223372036854771712\n"), None);
        assert_eq!(of("other", "1"), None);
    }
}

//! Trees as /sys and /proc show them, and what is found in them.
#![allow(clippy::disallowed_methods)]

use std::fs;

use tempfile::TempDir;

use super::*;

/// A machine: a line for each fact. `disk sda 8:0`, `part sda sda1 8:1`, `holds sda1 dm-0`,
/// `volume dm-0 254:0 vg-root`, `loop loop0 7:0 /images/a.img`, `mount 8:1 / /dev/sda1`,
/// `swap /dev/sda2`, `btrfs ID sdb`, `file /images/a.img`, `link /dev/mapper/x ../dm-0`.
fn machine(facts: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (mut mounts, mut swaps) =
        (String::new(), "Filename\tType\tSize\tUsed\tPriority\n".to_owned());
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for line in facts.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["disk", name, number] => {
                write(&format!("sys/class/block/{name}/dev"), &format!("{number}\n"));
            }
            ["part", disk, name, number] => {
                write(&format!("sys/class/block/{disk}/{name}/partition"), "1\n");
                write(&format!("sys/class/block/{name}/partition"), "1\n");
                write(&format!("sys/class/block/{name}/dev"), &format!("{number}\n"));
            }
            ["holds", member, volume] => {
                write(&format!("sys/class/block/{member}/holders/{volume}"), "");
            }
            ["volume", name, number, title] => {
                write(&format!("sys/class/block/{name}/dev"), &format!("{number}\n"));
                write(&format!("sys/class/block/{name}/dm/name"), &format!("{title}\n"));
            }
            ["loop", name, number, backing] => {
                write(&format!("sys/class/block/{name}/dev"), &format!("{number}\n"));
                write(
                    &format!("sys/class/block/{name}/loop/backing_file"),
                    &format!("{backing}\n"),
                );
            }
            ["mount", number, point, source] => {
                let id = 20 + mounts.lines().count();
                let line = format!("{id} 1 {number} / {point} rw,relatime - fs {source} rw\n");
                mounts.push_str(&line);
            }
            ["swap", path] => swaps.push_str(&format!("{path}  partition 1048572 0 -2\n")),
            ["btrfs", id, name] => write(&format!("sys/fs/btrfs/{id}/devices/{name}"), ""),
            ["file", path] => write(&path[1..], "x"),
            ["link", path, to] => {
                write(&path[1..], "");
                fs::remove_file(root.join(&path[1..])).unwrap();
                write(&format!("dev/{}", to.trim_start_matches("../")), "");
                std::os::unix::fs::symlink(to, root.join(&path[1..])).unwrap();
            }
            _ => panic!("no fact: {line}"),
        }
    }
    write("proc/self/mountinfo", &mounts);
    write("proc/swaps", &swaps);
    folder
}

/// Checks what is said of each device, or of each path of a file; an empty text means that it may
/// be written.
#[track_caller]
fn check(facts: &str, expected: &[(&str, &str)]) {
    let machine = machine(facts);
    let tree = Tree::read(machine.path());
    for (name, text) in expected {
        let found = match name.strip_prefix('/') {
            Some(path) => {
                let path = machine.path().join(path);
                tree.use_of(&path, &rustix::fs::stat(&path).unwrap())
            }
            None => tree.search(Place::Device((*name).to_owned())),
        };
        let found = found.map(|found| {
            // A file's name is that of the fake machine.
            found.to_string().replace(&format!("it is {}/", machine.path().display()), "it is /")
        });
        assert_eq!(found.unwrap_or_default(), *text, "{name} in:{facts}");
    }
}

#[test]
fn disks_and_partitions() {
    check(
        "disk sda 8:0
        part sda sda1 8:1
        part sda sda2 8:2
        disk sdb 8:16
        disk sdc 8:32
        part sdc sdc1 8:33
        disk sdd 8:48
        mount 8:1 /srv/my\\040data /dev/sda1
        mount 8:16 /b /dev/sdb
        mount 8:32 /c /dev/sdc",
        &[
            ("sda1", "it is mounted at /srv/my data"),
            ("sda", "it holds the partition /dev/sda1, which is mounted at /srv/my data"),
            // A neighbour on the same disk has nothing to do with it.
            ("sda2", ""),
            ("sdb", "it is mounted at /b"),
            ("sdc1", "it is a partition of /dev/sdc, which is mounted at /c"),
            ("sdd", ""),
        ],
    );
}

#[test]
fn logical_volumes_and_what_lies_under_them() {
    check(
        "disk sda 8:0
        part sda sda1 8:1
        disk sdb 8:16
        volume dm-0 254:0 vg-root
        volume dm-1 254:1 vg-data
        volume dm-2 254:2 vault
        holds sda1 dm-0
        holds sda1 dm-1
        holds dm-1 dm-2
        disk sdc 8:32
        volume dm-3 254:3 idle
        holds sdc dm-3
        mount 254:0 / /dev/mapper/vg-root
        mount 0:44 /vault /dev/mapper/vault
        link /dev/mapper/vault ../dm-2",
        &[
            ("dm-0", "it is mounted at /"),
            ("sda1", "it is a member of /dev/mapper/vg-root, which is mounted at /"),
            (
                "sda",
                "it holds the partition /dev/sda1, which is a member of /dev/mapper/vg-root, \
                 which is mounted at /",
            ),
            // It has no number of its own in the list of mounts, but a name.
            ("dm-2", "it is mounted at /vault"),
            ("dm-1", "it is a member of /dev/mapper/vault, which is mounted at /vault"),
            ("sdb", ""),
            // Nothing is mounted, and yet a volume would be destroyed. The volume itself is free.
            ("sdc", "it is a member of /dev/mapper/idle"),
            ("dm-3", ""),
        ],
    );
}

#[test]
fn raid_swap_and_btrfs() {
    check(
        "disk sda 8:0
        disk sdb 8:16
        disk md0 9:0
        part md0 md0p1 259:0
        holds sda md0
        holds sdb md0
        mount 259:0 /raid /dev/md0p1
        disk nvme0n1 259:1
        part nvme0n1 nvme0n1p2 259:2
        swap /dev/nvme0n1p2
        disk sdc 8:32
        disk sdd 8:48
        disk sde 8:64
        btrfs 1111-22 sdc
        btrfs 1111-22 sdd
        btrfs 3333-44 sde
        mount 0:50 /many /dev/sdc
        disk cciss!c0d0 104:0
        mount 104:0 /old /dev/cciss/c0d0
        file /swap/file
        file /swap/other
        swap /swap/file",
        &[
            (
                "sdb",
                "it is a member of /dev/md0, which holds the partition /dev/md0p1, which is \
                 mounted at /raid",
            ),
            ("md0", "it holds the partition /dev/md0p1, which is mounted at /raid"),
            ("nvme0n1p2", "it is swapped to"),
            ("nvme0n1", "it holds the partition /dev/nvme0n1p2, which is swapped to"),
            ("sdc", "it is mounted at /many"),
            ("sdd", "it is mounted at /many"),
            ("sde", "it is a part of the mounted btrfs 3333-44"),
            ("cciss!c0d0", "it is mounted at /old"),
            ("/swap/file", "it is swapped to"),
            ("/swap/other", ""),
        ],
    );
}

#[test]
fn loop_devices_and_their_files() {
    check(
        "disk sda 8:0
        part sda sda1 8:1
        file /images/a.img
        file /images/b.img
        loop loop0 7:0 /images/a.img
        loop loop1 7:1 /images/a.img
        loop loop2 7:2 /images/b.img
        loop loop3 7:3 /dev/sda1
        loop loop4 7:4 /images/gone.img\\040(deleted)
        part loop0 loop0p1 259:0
        mount 259:0 /a /dev/loop0p1
        mount 7:3 /far /dev/loop3",
        &[
            (
                "/images/a.img",
                "it backs the loop device /dev/loop0, which holds the partition /dev/loop0p1, \
                 which is mounted at /a",
            ),
            ("/images/b.img", ""),
            ("loop0", "it holds the partition /dev/loop0p1, which is mounted at /a"),
            (
                "loop1",
                "it is a loop device on /images/a.img, which backs the loop device /dev/loop0, \
                 which holds the partition /dev/loop0p1, which is mounted at /a",
            ),
            ("loop2", ""),
            ("loop3", "it is mounted at /far"),
            ("loop4", ""),
            ("sda1", "it backs the loop device /dev/loop3, which is mounted at /far"),
            (
                "sda",
                "it holds the partition /dev/sda1, which backs the loop device /dev/loop3, which \
                 is mounted at /far",
            ),
        ],
    );
}

#[test]
fn one_way_of_several_to_a_disk() {
    check(
        "disk sda 8:0
        part sda sda1 8:1
        disk sdb 8:16
        volume dm-0 254:0 mpatha
        volume dm-1 254:1 mpatha-part1
        volume dm-2 254:2 mpatha-part2
        holds sda dm-0
        holds sdb dm-0
        holds dm-0 dm-1
        holds dm-0 dm-2
        mount 254:1 /boot /dev/mapper/mpatha-part1",
        &[
            (
                "sda1",
                "it is a partition of /dev/sda, which is a member of /dev/mapper/mpatha, which is \
                 a member of /dev/mapper/mpatha-part1, which is mounted at /boot",
            ),
            ("dm-0", "it is a member of /dev/mapper/mpatha-part1, which is mounted at /boot"),
            ("dm-2", ""),
        ],
    );
}

#[test]
fn a_machine_that_tells_nothing_has_nothing_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::read(folder.path());
    assert_eq!(tree.search(Place::Device("sda".to_owned())), None);
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    assert_eq!(tree.use_of(&file, &rustix::fs::stat(&file).unwrap()), None);
}

//! What is known of file systems and devices.

use std::os::unix::net::UnixListener;
use std::path::Path;

use plimsoll_driver_file::allowed_dirs::AllowedDirs;
use plimsoll_driver_file::caches::drop_files;
use plimsoll_driver_file::facts::probe;
use plimsoll_driver_file::work_dir::WorkDir;
use rustix::fs::{FileType, Mode};

use crate::{in_memory, on_disk};

#[test]
fn a_disk_is_known_by_its_mount() {
    let folder = on_disk();
    let facts = probe(folder.path()).unwrap();
    assert!(folder.path().canonicalize().unwrap().starts_with(facts.mount_point.as_ref().unwrap()));
    assert!(!facts.file_system.is_empty() && !facts.file_system.starts_with("0x"));
    assert!(0 < facts.free_bytes && facts.free_bytes < facts.size_bytes);
    assert!(facts.block_size.is_power_of_two());
    if let Some(direct) = facts.direct {
        assert!(direct.offset_align.is_power_of_two() && direct.mem_align.is_power_of_two());
    }
    let lines = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(lines.contains(&format!(" - {} ", facts.file_system)));
    // Nothing is left of the look, and what is not there yet lies where it would.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let away = probe(&folder.path().join("a/b")).unwrap();
    assert_eq!((away.file_system, away.mount_point), (facts.file_system, facts.mount_point));
}

#[test]
fn memory_is_known_as_such() {
    let Some(folder) = in_memory() else { return };
    let facts = probe(folder.path()).unwrap();
    if facts.file_system != "tmpfs" {
        return println!("skipped: /dev/shm is {}", facts.file_system);
    }
    assert!(facts.is_memory && !facts.is_network);
    assert_eq!((facts.direct, facts.device), (None, None));
    assert!(!probe(Path::new("/proc")).unwrap().is_memory);
}

#[test]
fn devices_are_told_from_files() {
    let folder = on_disk();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert!(
        !AllowedDirs::ANY.is_device(&file)
            && !AllowedDirs::ANY.is_device(&folder.path().join("away"))
    );
    assert!(
        !AllowedDirs::ANY.is_device(Path::new("/dev/null")),
        "a character device holds no blocks"
    );
    let facts = probe(folder.path()).unwrap();
    let device = facts.device.unwrap_or_default();
    let device = Path::new(&device);
    if !AllowedDirs::ANY.is_device(device) {
        return println!("skipped: {} is no device", device.display());
    }
    assert!(AllowedDirs::ANY.device_size(device).unwrap() >= facts.size_bytes);
}

#[test]
fn a_device_that_is_away_has_no_size() {
    let folder = on_disk();
    let error = AllowedDirs::ANY.device_size(&folder.path().join("away")).unwrap_err();
    assert!(error.message.starts_with("cannot get the size of "), "{error}");
}

#[test]
fn what_holds_no_blocks_is_not_opened() {
    let folder = on_disk();
    // Whoever opens a pipe waits for its other end.
    let pipe = folder.path().join("pipe");
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let expected = probe(folder.path()).unwrap();
    for path in [&*pipe, &*socket] {
        let facts = probe(path).unwrap();
        assert_eq!((facts.mount_point, facts.direct), (expected.mount_point.clone(), None));
        assert!(AllowedDirs::ANY.size_bytes(path).is_none() && !AllowedDirs::ANY.is_device(path));
        assert_eq!(drop_files(&AllowedDirs::ANY, [path]).fadvised_count, 0);
        assert!(WorkDir::make(&AllowedDirs::ANY, path, "run-1").is_err());
    }
}

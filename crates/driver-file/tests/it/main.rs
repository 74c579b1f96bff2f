//! Rings, work_dirs and facts on real files: on a disk and, where there is one, in memory.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "what is skipped is said")]
#![allow(clippy::disallowed_methods, reason = "tests look at the files beside the driver")]

mod facts;
mod ring;
mod work_dir;

use std::path::Path;

use plimsoll_model::Interface;
use tempfile::TempDir;

/// Returns a folder on the disk that the project is built on.
fn on_disk() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Returns a folder in memory where there is a place for one.
fn in_memory() -> Option<TempDir> {
    let folder = TempDir::new_in("/dev/shm").ok();
    if folder.is_none() {
        println!("skipped: /dev/shm may not be written to");
    }
    folder
}

/// Returns the interfaces that the kernel lets us use.
fn interfaces() -> Vec<Interface> {
    let mut interfaces = Interface::ALL.to_vec();
    interfaces.retain(|each| match plimsoll_driver_file::available(*each) {
        Ok(()) => true,
        Err(why) => {
            println!("skipped: {}: {why}", each.name());
            false
        }
    });
    interfaces
}

/// Calls with every interface and an empty folder, on disk and in memory.
fn everywhere(call: impl Fn(Interface, &Path)) {
    for interface in interfaces() {
        for folder in [Some(on_disk()), in_memory()].into_iter().flatten() {
            call(interface, folder.path());
        }
    }
}

//! Real files: blocks and names, put to the kernel by one of three interfaces, and all that goes
//! with files under test: the run's own directories, what is known of a file system, page caches.
//! What is asked of them, and how often, is not known here.

pub mod allowed_dirs;
mod block;
mod buffers;
pub mod caches;
pub mod facts;
pub mod in_use;
mod libaio;
mod names;
mod open;
mod psync;
mod ring;
mod trouble;
mod uring;
pub mod work_dir;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use plimsoll_driver::{DriverError, RingDriver};
use plimsoll_model::Interface;

use allowed_dirs::AllowedDirs;
use in_use::Held;
use open::OpenFiles;
pub use ring::{FilesRing, SLOTS_MAX};
use work_dir::WorkDir;

/// Makes rings on real files.
#[derive(Clone, Debug)]
pub struct FilesDriver {
    name: String,
    work_dirs: Vec<Arc<WorkDir>>,
    allowed: AllowedDirs,
    held: Arc<HashMap<PathBuf, Held>>,
}

impl FilesDriver {
    /// Returns a driver; reports call its target `name`.
    pub fn new(name: impl Into<String>) -> Self {
        let (work_dirs, held) = (Vec::new(), Arc::default());
        Self { name: name.into(), work_dirs, allowed: AllowedDirs::ANY, held }
    }

    /// Reaches what lies in these directories through them, whatever has taken their place by then,
    /// and follows no link there.
    #[must_use]
    pub fn within(mut self, work_dirs: Vec<Arc<WorkDir>>) -> Self {
        self.work_dirs = work_dirs;
        self
    }

    /// Opens nothing else but what lies in these directories.
    #[must_use]
    pub fn allowing(mut self, allowed: AllowedDirs) -> Self {
        self.allowed = allowed;
        self
    }

    /// Opens these paths only as long as they lead to what was looked at.
    #[must_use]
    pub fn holding(mut self, held: Arc<HashMap<PathBuf, Held>>) -> Self {
        self.held = held;
        self
    }
}

impl RingDriver for FilesDriver {
    type Ring = FilesRing;

    fn ring(
        &self,
        interface: Interface,
        slots: usize,
        buffer_bytes: usize,
    ) -> Result<FilesRing, DriverError> {
        own_descriptors();
        let (work_dirs, allowed) = (self.work_dirs.clone(), self.allowed.clone());
        let files = OpenFiles::within(work_dirs, allowed, Arc::clone(&self.held));
        FilesRing::new(interface, slots, buffer_bytes, files)
    }

    fn endpoints(&self) -> Vec<String> {
        vec![self.name.clone()]
    }
}

/// Gives the calling thread a table of file descriptors of its own, as a process has, where the
/// kernel allows it: with a shared one each call on a file counts references, and threads that open
/// files wait for each other. What is open stays open; what is opened from now on is this thread's.
fn own_descriptors() {
    leave_signals_to_others();
    // SAFETY: descriptors that the thread has keep their numbers, and a ring stays on its thread.
    if unsafe { libc::unshare(libc::CLONE_FILES) } == 0 {
        close_sockets();
    }
}

/// Has signals to the process go to its other threads: a handler commonly writes to a descriptor to
/// wake whoever waits for the signal, and in a table of one's own that number is something else, so
/// that the signal would be lost.
fn leave_signals_to_others() {
    /// What a fault of the thread itself raises.
    const FAULTS: [libc::c_int; 6] =
        [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];
    // SAFETY: the set is filled before it is read, and only this thread's mask is changed.
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut signals);
        FAULTS.iter().for_each(|fault| _ = libc::sigdelset(&raw mut signals, *fault));
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut());
    }
}

/// Closes the thread's copies of sockets: as long as one is there, whoever is at the other end does
/// not see that the connection was closed. Files stay, as they may be in use, and do no harm.
fn close_sockets() {
    // Where the kernel does not tell what is open, it stays so.
    let entries = std::fs::read_dir("/proc/thread-self/fd").into_iter().flatten().flatten();
    let open: Vec<libc::c_int> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in open {
        // SAFETY: all zeros are a valid stat, which the call fills.
        let is_socket = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            libc::fstat(number, &raw mut stat) == 0 && stat.st_mode & libc::S_IFMT == libc::S_IFSOCK
        };
        if is_socket {
            // SAFETY: the table is this thread's own since it was unshared, and a thread that
            // drives files has no use for a socket.
            unsafe { libc::close(number) };
        }
    }
}

/// Returns whether the kernel lets us use an interface, or in words why not.
pub fn available(interface: Interface) -> Result<(), String> {
    FilesRing::new(interface, 1, 4096, OpenFiles::default())
        .map(drop)
        .map_err(|error| error.message)
}

/// Returns the preferred interface among those that the kernel lets us use.
pub fn best() -> Interface {
    let is_available = |each: &Interface| available(*each).is_ok();
    Interface::ALL.into_iter().find(is_available).unwrap_or(Interface::Psync)
}

//! A filer: files under paths of one's own, by HTTP. Its directory is to a run what a bucket is.

mod admin;
mod config;
mod listing;
mod path;
mod session;
mod thread;
mod walk;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_driver::Driver;
use plimsoll_model::{SharedClock, SocketsSeen, WallTime};

pub use admin::FilerAdmin;
pub use config::{FilerConfig, PORT};
pub use path::PathError;
pub use session::FilerSession;

use thread::FilerThread;

/// Makes sessions for the filers of one cluster.
#[derive(Clone, Debug)]
pub struct FilerDriver {
    config: Arc<FilerConfig>,
    wall_epoch: WallTime,
    /// How many sessions were opened, so that each takes the next filer.
    opened: Arc<AtomicUsize>,
}

impl FilerDriver {
    /// Returns the driver; nobody is asked anything yet. `wall_epoch` is the wall time of the
    /// clock's epoch.
    pub fn new(config: FilerConfig, wall_epoch: WallTime) -> Self {
        assert!(!config.filers.is_empty(), "there is at least one filer");
        Self { config: Arc::new(config), wall_epoch, opened: Arc::default() }
    }

    /// Returns an admin of a directory, the driver's own where none is named, to be used on the
    /// calling thread.
    pub fn admin(
        &self,
        clock: &SharedClock,
        directory: Option<&str>,
    ) -> Result<FilerAdmin, PathError> {
        let directory = directory.unwrap_or(&self.config.directory);
        let config = Arc::new(self.config.in_directory(directory)?);
        Ok(FilerAdmin::new(|stall: Duration| {
            let thread = FilerThread::new(&config, clock, self.wall_epoch, Some(stall));
            FilerSession::new(Rc::new(thread), 0)
        }))
    }
}

impl Driver for FilerDriver {
    type Session = FilerSession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<FilerSession> {
        let thread = Rc::new(FilerThread::new(&self.config, clock, self.wall_epoch, None));
        let filers = self.config.filers.len();
        let first = self.opened.fetch_add(count, Ordering::Relaxed);
        let session = |number| FilerSession::new(Rc::clone(&thread), (first + number) % filers);
        (0..count).map(session).collect()
    }

    fn sockets_seen(&self) -> SocketsSeen {
        plimsoll_http::seen::take()
    }

    fn endpoints(&self) -> Vec<String> {
        let tls = self.config.tls.is_some();
        self.config.filers.iter().map(|filer| filer.label(tls)).collect()
    }

    fn connections_max(&self, sessions: u64, _threads: u64) -> u64 {
        sessions
    }
}

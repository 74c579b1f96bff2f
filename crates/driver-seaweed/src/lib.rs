//! The SeaweedFS driver: file ids from the master by gRPC, content to and from volume servers on
//! our own HTTP client; or files under paths of a filer, by HTTP alone.
//!
//! Knows nothing of sockets (crate `plimsoll-http`), of workloads or of what is recorded.

mod address;
mod admin;
mod answer;
mod batch;
mod calls;
mod cluster;
mod collection;
mod config;
mod error;
mod fid;
mod filer;
mod journal;
mod master;
mod masters;
mod messages;
mod news;
mod register;
mod request;
mod security;
mod session;
mod sum;
mod thread;
mod token;
mod topology;
mod wire;

use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_driver::{Driver, DriverError};
use plimsoll_http::Options;
use plimsoll_model::{ErrorClass, SharedClock, SocketsSeen, WallTime};

pub use address::{AddressError, ServerAddress};
pub use admin::SeaweedAdmin;
pub use config::{AssignBy, SeaweedConfig, SigningKeys, UploadBy, ttl_of};
pub use fid::{FileId, NoFileId};
pub use filer::{
    FilerAdmin, FilerConfig, FilerDriver, FilerSession, PORT as FILER_PORT, PathError,
};
pub use journal::{ListError, read_list};
pub use masters::{MastersError, masters_of};
pub use register::{RegisterSession, SeaweedRegisters};
pub use security::{Security, SecurityError};
pub use session::SeaweedSession;

use crate::calls::DirStatus;
use crate::cluster::Cluster;
use crate::journal::Journal;
use crate::master::Master;
use crate::news::News;
use crate::thread::{IDLE_SPARE, Thread};

/// Makes sessions for one cluster; clones share what is known of it.
#[derive(Clone, Debug)]
pub struct SeaweedDriver {
    config: Arc<SeaweedConfig>,
    cluster: Arc<Cluster>,
    wall_epoch: WallTime,
    version: Arc<str>,
    journal: Arc<Journal>,
    _news: Arc<News>,
}

impl SeaweedDriver {
    /// Finds the leader and the volume servers, and begins to follow what becomes of them.
    /// `wall_epoch` is the wall time of the clock's epoch.
    pub async fn open(
        config: SeaweedConfig,
        clock: &SharedClock,
        wall_epoch: WallTime,
    ) -> Result<Self, DriverError> {
        let leader = calls::find_leader(&config, clock).await?;
        let status: DirStatus = calls::read(&config, clock, &leader, "/dir/status").await?;
        let config = Arc::new(config);
        let cluster = Arc::new(Cluster::new(leader, &status.topology.servers()));
        let servers = cluster.servers();
        let allowed = config.allowed.check_all(servers.iter().map(|server| &server.http));
        allowed.map_err(|error| DriverError::new(ErrorClass::Client, error.to_string()))?;
        let _news = Arc::new(News::follow(Arc::clone(&config), &cluster).map_err(of_io)?);
        Ok(Self {
            config,
            cluster,
            wall_epoch,
            version: status.version.into(),
            journal: Arc::default(),
            _news,
        })
    }

    /// Returns an admin of a collection, the driver's own where none is named, to be used on the
    /// calling thread. What it sweeps is what stands in the file of names that are kept.
    pub fn admin(&self, clock: &SharedClock, collection: Option<&str>) -> SeaweedAdmin {
        let session = self.open_sessions(clock, 1).pop().expect("one session was asked for");
        SeaweedAdmin::new(session, collection)
    }

    /// Returns which SeaweedFS it is, as its master says.
    pub fn version(&self) -> &str {
        &self.version
    }
}

fn of_io(error: io::Error) -> DriverError {
    DriverError::new(ErrorClass::Io, error.to_string())
}

impl Driver for SeaweedDriver {
    type Session = SeaweedSession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<SeaweedSession> {
        let options = Options {
            connect_timeout: self.config.connect_timeout,
            tls: self.config.tls.clone(),
            transport: self.config.transport,
            allowed: self.config.allowed.clone(),
            ..Options::default()
        };
        let master = Master::new(Arc::clone(&self.config), Arc::clone(&self.cluster));
        let journal = Arc::clone(&self.journal);
        let mut thread = Thread::new(master, clock.clone(), self.wall_epoch, options, journal);
        thread.idle_max = count + IDLE_SPARE;
        let thread = Rc::new(thread);
        (0..count).map(|number| SeaweedSession::new(Rc::clone(&thread), number)).collect()
    }

    fn sockets_seen(&self) -> SocketsSeen {
        plimsoll_http::seen::take()
    }

    fn endpoints(&self) -> Vec<String> {
        self.cluster.endpoints(&self.config.masters)
    }

    fn connections_max(&self, sessions: u64, threads: u64) -> u64 {
        // Of each thread one to the leader and one to each server carry calls of gRPC; the news
        // have one of their own.
        let servers = self.cluster.endpoints(&self.config.masters).len() as u64;
        2 * sessions + threads * (servers + IDLE_SPARE as u64) + 1
    }

    fn keep_names(&self, path: &Path, file: File) {
        self.journal.keep_in(path, file);
    }
}

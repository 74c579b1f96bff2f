//! The SeaweedFS driver: file ids from the master by gRPC, content to and from volume servers on
//! our own HTTP client.
//!
//! Knows nothing of sockets (crate `plimsoll-http`), of workloads or of what is recorded.

mod address;
mod answer;
mod calls;
mod cluster;
mod config;
mod error;
mod fid;
mod master;
mod messages;
mod news;
mod request;
mod session;
mod thread;
mod token;

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_driver::{Driver, DriverError};
use plimsoll_http::Options;
use plimsoll_model::{ErrorClass, SharedClock, WallTime};

pub use address::{AddressError, ServerAddress};
pub use config::{AssignBy, SeaweedConfig, SigningKeys, UploadBy};
pub use fid::{FileId, NoFileId};
pub use session::SeaweedSession;

use crate::calls::DirStatus;
use crate::cluster::Cluster;
use crate::master::Master;
use crate::news::News;
use crate::thread::Thread;

/// Makes sessions for one cluster.
#[derive(Debug)]
pub struct SeaweedDriver {
    config: Arc<SeaweedConfig>,
    cluster: Arc<Cluster>,
    wall_epoch: WallTime,
    version: String,
    _news: News,
}

impl SeaweedDriver {
    /// Finds the leader and the volume servers, and begins to follow what becomes of them.
    /// `wall_epoch` is the wall time of the clock's epoch.
    pub fn open(
        config: SeaweedConfig,
        clock: &SharedClock,
        wall_epoch: WallTime,
    ) -> Result<Self, DriverError> {
        let config = Arc::new(config);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let (leader, status) = runtime.map_err(of_io)?.block_on(async {
            let leader = calls::find_leader(&config, clock).await?;
            let status: DirStatus = calls::read(&config, clock, &leader, "/dir/status").await?;
            Ok::<_, DriverError>((leader, status))
        })?;
        let cluster = Arc::new(Cluster::new(leader, &status.topology.servers()));
        let _news = News::follow(Arc::clone(&config), &cluster).map_err(of_io)?;
        Ok(Self { config, cluster, wall_epoch, version: status.version, _news })
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
            ..Options::default()
        };
        let master = Master::new(Arc::clone(&self.config), Arc::clone(&self.cluster));
        let thread = Rc::new(Thread::new(master, clock.clone(), self.wall_epoch, options));
        (0..count).map(|number| SeaweedSession::new(Rc::clone(&thread), number)).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        self.cluster.endpoints(&self.config.masters)
    }
}

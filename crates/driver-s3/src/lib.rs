//! The S3 driver: what an exchange with an S3 server means, on our own HTTP client.
//!
//! Renders and signs requests, reads answers and their errors, and administers buckets. Knows
//! nothing of sockets (crate `plimsoll-http`), of workloads or of what is recorded.

mod addressing;
mod admin;
mod answer;
mod checksum;
mod config;
mod connection;
mod digests;
mod encode;
mod error;
mod form;
pub mod fresh;
mod headers;
mod keys;
mod listing;
mod minio_admin;
mod options;
mod redaction;
mod request;
mod s3_request;
mod server_profile;
mod session;
mod sigv2;
mod sigv4;
mod upload;
mod xml;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::Driver;
use plimsoll_http::{Endpoint, HostChooser, Options};
use plimsoll_model::{SharedClock, SocketsSeen};

use crate::addressing::Target;
use crate::connection::Connections;

pub use admin::{AdminLimits, Feature, FoundUpload, FoundVersion, S3Admin};
pub use config::{ConfigError, S3Config};
pub use keys::{Credentials, Keys, SharedKeys, WeakKeys};
pub use options::{
    Checksum, Encryption, PART_SIZE_DEFAULT, PART_SIZE_MIN, PARTS_COUNT_MAX, RequestOptions,
    Signature,
};
pub use server_profile::{ProfileKinds, ServerProfile, ServerProfileError};
pub use session::S3Session;

/// Makes sessions for one bucket on one or several endpoints of an S3 server.
#[derive(Debug)]
pub struct S3Driver {
    config: Arc<S3Config>,
    target: Arc<Target>,
}

impl S3Driver {
    /// Returns a driver for `config` if it can work at all; nothing is connected yet.
    pub fn new(config: S3Config) -> Result<Self, ConfigError> {
        config.check()?;
        let target = Arc::new(Target::resolve(&config)?);
        Ok(Self { config: Arc::new(config), target })
    }

    /// Returns an admin of the bucket, to be used on the calling thread.
    pub fn admin(&self, clock: &SharedClock) -> S3Admin {
        self.admin_within(clock, AdminLimits::default())
    }

    /// Returns an admin that keeps to these limits.
    pub fn admin_within(&self, clock: &SharedClock, limits: AdminLimits) -> S3Admin {
        let mut sessions = self.open(clock, 1, Some(limits.stall_timeout), true);
        S3Admin::new(sessions.pop().expect("one session was asked for"), limits)
    }

    fn open(
        &self,
        clock: &SharedClock,
        count: usize,
        stall_timeout: Option<Duration>,
        bounds_whole: bool,
    ) -> Vec<S3Session> {
        let endpoints: Rc<[Endpoint]> =
            self.target.place.addresses.iter().map(|address| address.connect_to.clone()).collect();
        let options = Rc::new(Options {
            connect_timeout: self.config.connect_timeout,
            stall_timeout,
            bounds_whole,
            tls: self.config.tls.clone(),
            keep_alive: self.config.keep_alive,
            version: self.config.http_version,
            proxies: self.config.proxies.clone(),
            transport: self.config.transport,
            ..Options::default()
        });
        let chooser = Rc::new(HostChooser::new(self.config.host_select, endpoints.len()));
        let connections = Rc::new(Connections {
            config: self.config.clone(),
            target: self.target.clone(),
            places: RefCell::default(),
            endpoints,
            options,
            clock: clock.clone(),
        });
        (0..count).map(|_| S3Session::new(connections.clone(), chooser.clone())).collect()
    }
}

impl Driver for S3Driver {
    type Session = S3Session;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<S3Session> {
        // How long an operation may take in all is for the engine to say, connecting and all.
        self.open(clock, count, self.config.stall_timeout, false)
    }

    fn sockets_seen(&self) -> SocketsSeen {
        plimsoll_http::seen::take()
    }

    fn endpoints(&self) -> Vec<String> {
        let tls = self.config.tls.is_some();
        self.config.endpoints.iter().map(|endpoint| endpoint.label(tls)).collect()
    }
}

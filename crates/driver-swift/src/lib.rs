//! The Swift driver: signing in, objects and containers on our own HTTP client, large objects in
//! segments, administration.
//!
//! Knows nothing of sockets (crate `plimsoll-http`), of workloads or of what is recorded.

mod access;
mod admin;
mod answer;
mod config;
mod error;
mod fresh;
mod info;
mod large;
mod listing;
mod login;
mod request;
mod session;
mod sign_in;
mod wire;

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use plimsoll_driver::{Driver, DriverError};
use plimsoll_http::{Client, Options, TlsConfig};
use plimsoll_model::{ErrorClass, SharedClock, SocketsSeen};

pub use access::{Access, AccessError, SECRET_VARIABLES, Said, VARIABLES, Version};
pub use admin::SwiftAdmin;
pub use config::{Address, Manifest, Named, Service, SignIn, SwiftConfig, Who};
pub use session::SwiftSession;

use crate::login::Login;
use crate::wire::Wire;

/// What all sessions of a run share.
pub(crate) struct Shared {
    pub(crate) config: SwiftConfig,
    /// Where the account is.
    pub(crate) storage: Address,
    /// How it is spoken to over TLS, where it is.
    tls: Option<TlsConfig>,
    /// The account's host as requests name it.
    pub(crate) host: String,
    pub(crate) login: Login,
    /// What the ids of uploads begin with, so that no two of two processes are the same.
    pub(crate) entropy: String,
    pub(crate) uploads: AtomicU64,
}

impl Shared {
    /// Returns a way to the store that has no connection yet.
    fn wire(&self, clock: &SharedClock, stall: Option<Duration>) -> Wire {
        let options = Options {
            connect_timeout: self.config.connect_timeout,
            tls: self.tls.clone(),
            stall_timeout: stall,
            transport: self.config.transport,
            allowed: self.config.allowed.clone(),
            ..Options::default()
        };
        let endpoints = Rc::from([self.storage.endpoint.clone()]);
        Wire::new(Client::new(endpoints, Rc::new(options), clock.clone()))
    }
}

/// Makes sessions for one account; clones share its login.
#[derive(Clone)]
pub struct SwiftDriver {
    shared: Arc<Shared>,
}

impl fmt::Debug for SwiftDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SwiftDriver").field("storage", &self.shared.storage).finish()
    }
}

impl SwiftDriver {
    /// Signs in, where somebody has to, and finds the account.
    pub async fn open(config: SwiftConfig, clock: &SharedClock) -> Result<Self, DriverError> {
        config::check_container(&config.container)?;
        let (token, storage) = match &config.sign_in {
            SignIn::Known { token } => (token.clone(), None),
            _ => {
                let found = login::sign_in(&config, clock, &[]).await?;
                (Some(found.token), found.storage)
            }
        };
        let Some(storage) = config.storage.clone().or(storage) else {
            let why = "the account's address is missing: name its `storage_url`";
            return Err(DriverError::new(ErrorClass::Client, why));
        };
        let allowed = config.allowed.check(&storage.endpoint);
        allowed.map_err(|error| DriverError::new(ErrorClass::Client, error.to_string()))?;
        let tls = config.tls_for(&storage)?;
        let entropy = fresh::digits().map_err(of_io)?;
        let (host, login) = (storage.authority(), Login::new(token));
        let uploads = AtomicU64::new(0);
        let shared = Shared { config, storage, tls, host, login, entropy, uploads };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns an admin of a container, the driver's own where none is named, to be used on the
    /// calling thread.
    pub fn admin(
        &self,
        clock: &SharedClock,
        container: Option<&str>,
    ) -> Result<SwiftAdmin, DriverError> {
        let container = container.unwrap_or(&self.shared.config.container);
        config::check_container(container)?;
        Ok(SwiftAdmin::new(Arc::clone(&self.shared), clock.clone(), container.to_owned()))
    }

    /// Tells whether it is spoken to over TLS.
    pub fn speaks_tls(&self) -> bool {
        self.shared.storage.tls
    }
}

fn of_io(error: std::io::Error) -> DriverError {
    DriverError::new(ErrorClass::Io, error.to_string())
}

impl Driver for SwiftDriver {
    type Session = SwiftSession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<SwiftSession> {
        let stall = self.shared.config.stall_timeout;
        let session = |_| SwiftSession::new(Arc::clone(&self.shared), clock.clone(), stall);
        (0..count).map(session).collect()
    }

    fn sockets_seen(&self) -> SocketsSeen {
        plimsoll_http::seen::take()
    }

    fn endpoints(&self) -> Vec<String> {
        vec![self.shared.storage.endpoint.label(self.shared.storage.tls)]
    }

    fn connections_max(&self, sessions: u64, _threads: u64) -> u64 {
        // One more while somebody signs in again.
        sessions + 1
    }
}

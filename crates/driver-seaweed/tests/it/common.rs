//! Sessions with clusters of the real SeaweedFS.

use plimsoll_driver::{Completion, Operation};
use plimsoll_driver_seaweed::{SeaweedConfig, ServerAddress};
use plimsoll_testkit::{LiveKind, live};

use crate::support::Client;

impl Client {
    /// Opens one session with a live SeaweedFS, if there is one.
    pub(crate) fn live(
        kind: LiveKind,
        collection: &str,
        change: impl FnOnce(&mut SeaweedConfig),
    ) -> Option<Self> {
        let server = live(kind)?;
        Some(Self::of(server.host(), collection, change))
    }

    /// Opens one session with the real cluster of that master.
    pub(crate) fn of(
        master: &str,
        collection: &str,
        change: impl FnOnce(&mut SeaweedConfig),
    ) -> Self {
        let master: ServerAddress = master.parse().unwrap();
        let mut config = SeaweedConfig::new(vec![master], collection);
        config.creates_collection = true;
        change(&mut config);
        let client = Self::open(config);
        let version = client.driver.version();
        assert!(version.contains("4.48"), "{version}");
        client
    }

    pub(crate) fn stat(&mut self, name: &str) -> Completion {
        self.run(Operation::Stat { key: "", version: Some(name) })
    }

    pub(crate) fn delete(&mut self, name: &str) -> Completion {
        self.run(Operation::DeleteVersion { key: "", version: name })
    }
}

//! What the tests share: content, and one session of a driver with its runtime.

use std::sync::Arc;

use plimsoll_driver::{
    Admin as _, ByteRange, Completion, ContentSink, ContentSource, Driver as _, DriverError,
    EntrySink, MissingRoot, Operation, Session as _,
};
use plimsoll_driver_swift::{Address, SignIn, SwiftAdmin, SwiftConfig, SwiftDriver, SwiftSession};
use plimsoll_engine::RunClock;
use plimsoll_model::{Secret, SharedClock};
use plimsoll_testkit::{LiveKind, live};

/// Content that tells its place and its file.
pub(crate) struct Numbered {
    pub(crate) file: u64,
    pub(crate) size: u64,
}

impl Numbered {
    pub(crate) fn bytes(&self, offset: u64, len: u64) -> Vec<u8> {
        (offset..offset + len).map(|at| (at * 31 + self.file * 7 + at / 251) as u8).collect()
    }
}

impl ContentSource for Numbered {
    fn size(&self) -> u64 {
        self.size
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.bytes(offset, buffer.len() as u64));
    }
}

/// Keeps what it is given.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) bytes: Vec<u8>,
    pub(crate) entries: Vec<(String, u64)>,
}

impl ContentSink for Kept {
    fn restart(&mut self) {
        self.bytes.clear();
    }

    fn accept(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}

impl EntrySink for Kept {
    fn restart(&mut self) {
        self.entries.clear();
    }

    fn entry(&mut self, key: &str, size: u64) {
        self.entries.push((key.to_owned(), size));
    }
}

/// One session of a driver.
pub(crate) struct Client {
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) clock: SharedClock,
    pub(crate) driver: SwiftDriver,
    pub(crate) session: SwiftSession,
    pub(crate) admin: SwiftAdmin,
}

pub(crate) fn address(url: &str) -> Address {
    Address::parse(url).unwrap()
}

pub(crate) fn hidden(text: &str) -> Secret {
    text.to_owned().into()
}

pub(crate) fn clock() -> SharedClock {
    Arc::new(RunClock::start())
}

/// Returns the configuration of a live Swift, and of a container.
pub(crate) fn config(kind: LiveKind, container: &str) -> Option<SwiftConfig> {
    let server = live(kind)?;
    let auth = address(&format!("{}/auth/v1.0", server.url));
    let sign_in = SignIn::V1 { auth, user: server.access_key, key: hidden(&server.secret_key) };
    let missing_container = MissingRoot::CreateAndKeep;
    Some(SwiftConfig { missing_container, ..SwiftConfig::new(sign_in, container) })
}

impl Client {
    /// Opens a session with a live Swift, in an empty container.
    pub(crate) fn live(container: &str, change: impl FnOnce(&mut SwiftConfig)) -> Option<Self> {
        let mut config = config(LiveKind::Swift, container)?;
        change(&mut config);
        let mut client = Self::open(config).unwrap();
        client.runtime.block_on(client.admin.ensure_root()).unwrap();
        for found in client.runtime.block_on(client.admin.survey("", None, true)).unwrap() {
            client.runtime.block_on(client.admin.remove_mark(&found.key)).unwrap();
        }
        Some(client)
    }

    pub(crate) fn open(config: SwiftConfig) -> Result<Self, DriverError> {
        let clock = clock();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let driver = runtime.block_on(SwiftDriver::open(config, &clock))?;
        let session = driver.open_sessions(&clock, 1).pop().unwrap();
        let admin = driver.admin(&clock, None)?;
        Ok(Self { runtime, clock, driver, session, admin })
    }

    pub(crate) fn run(&mut self, operation: Operation<'_>) -> Completion {
        let before = self.clock.now();
        let done = self.runtime.block_on(self.session.execute(None, operation));
        assert!(before < done.end && done.end <= self.clock.now());
        let marks = [done.last_byte_sent, done.first_byte];
        assert!(marks.into_iter().flatten().all(|at| before < at && at <= done.end));
        done
    }

    pub(crate) fn put(&mut self, key: &str, file: u64, size: u64) -> Completion {
        self.run(Operation::Put { key, content: &mut Numbered { file, size } })
    }

    pub(crate) fn get(&mut self, key: &str, range: Option<ByteRange>) -> (Completion, Vec<u8>) {
        let mut sink = Kept::default();
        let done = self.run(Operation::Get { key, range, version: None, sink: &mut sink });
        (done, sink.bytes)
    }

    pub(crate) fn stat(&mut self, key: &str) -> Completion {
        self.run(Operation::Stat { key, version: None })
    }

    pub(crate) fn delete(&mut self, key: &str) -> Completion {
        self.run(Operation::Delete { keys: &[key.to_owned()] })
    }

    pub(crate) fn list(&mut self, prefix: &str, page_size: u32) -> (Completion, Kept) {
        let mut sink = Kept::default();
        let list = Operation::List { prefix, page_size, pages_max: None, sink: &mut sink };
        (self.run(list), sink)
    }

    /// Returns everything that lies in the container.
    pub(crate) fn keys(&mut self) -> Vec<String> {
        let found = self.runtime.block_on(self.admin.survey("", None, true)).unwrap();
        found.into_iter().map(|found| found.key).collect()
    }
}

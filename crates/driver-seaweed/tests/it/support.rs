//! What the tests share: content, and one session of a driver with its runtime.

use std::sync::Arc;

use plimsoll_driver::{
    ByteRange, Completion, ContentSink, ContentSource, Driver as _, DriverError, Operation,
    Session as _, Settled,
};
use plimsoll_driver_seaweed::{SeaweedConfig, SeaweedDriver, SeaweedSession};
use plimsoll_engine::RunClock;
use plimsoll_model::{ErrorClass, SharedClock};

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

#[derive(Default)]
pub(crate) struct Collected(pub(crate) Vec<u8>);

impl ContentSink for Collected {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn accept(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// One session of a driver.
pub(crate) struct Client {
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) clock: SharedClock,
    pub(crate) driver: SeaweedDriver,
    pub(crate) session: SeaweedSession,
}

impl Client {
    pub(crate) fn open(config: SeaweedConfig) -> Self {
        Self::try_open(config).unwrap()
    }

    pub(crate) fn try_open(config: SeaweedConfig) -> Result<Self, DriverError> {
        let clock = RunClock::start();
        let wall_epoch = clock.wall_epoch();
        let clock: SharedClock = Arc::new(clock);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let driver = runtime.block_on(SeaweedDriver::open(config, &clock, wall_epoch))?;
        let session = driver.open_sessions(&clock, 1).pop().unwrap();
        Ok(Self { runtime, clock, driver, session })
    }

    pub(crate) fn run(&mut self, operation: Operation<'_>) -> Completion {
        let before = self.clock.now();
        let done = self.runtime.block_on(self.session.execute(None, operation));
        assert!(before < done.end && done.end <= self.clock.now());
        let marks = [done.last_byte_sent, done.first_byte];
        assert!(marks.into_iter().flatten().all(|at| before < at && at <= done.end));
        done
    }

    /// Writes a file; where volumes are being made, after they are.
    pub(crate) fn put(&mut self, file: u64, size: u64) -> Box<str> {
        for _ in 0..100 {
            let content = &mut Numbered { file, size };
            let done = self.run(Operation::Put { key: "of no matter", content });
            match done.result {
                Err(error) if error.class == ErrorClass::Growing => {
                    assert_eq!(self.settle(), Settled::default());
                }
                result => {
                    assert_eq!(result, Ok(()));
                    assert_eq!((done.bytes, done.objects_count), (size, 1));
                    return done.server_name.unwrap();
                }
            }
        }
        panic!("volumes are made in less than two minutes");
    }

    pub(crate) fn settle(&mut self) -> Settled {
        self.runtime.block_on(self.session.settle())
    }

    pub(crate) fn get(&mut self, name: &str, range: Option<ByteRange>) -> (Completion, Vec<u8>) {
        let mut sink = Collected::default();
        let version = Some(name);
        let done = self.run(Operation::Get { key: "", range, version, sink: &mut sink });
        (done, sink.0)
    }
}

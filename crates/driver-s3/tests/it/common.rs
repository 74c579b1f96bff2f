//! What the tests share: a clock, content at both ends, and how a session is opened and driven.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_driver::{
    ByteRange, Completion, ContentSink, ContentSource, DriverError, EntrySink, MissingRoot,
    Operation, Session,
};
use plimsoll_driver_s3::{Credentials, S3Config, S3Session};
use plimsoll_http::{Endpoint, Transport};
use plimsoll_model::{Clock, ErrorClass, Moment, SharedClock, WallTime};

use super::TRANSPORT;

/// A clock that is a microsecond further on every time it is read.
#[derive(Debug, Default)]
struct TickingClock(AtomicU64);

impl Clock for TickingClock {
    fn now(&self) -> Moment {
        Moment::from_ns(self.0.fetch_add(1_000, Ordering::Relaxed))
    }
}

pub(crate) fn clock() -> SharedClock {
    Arc::new(TickingClock::default())
}

/// Returns a configuration for `127.0.0.1:port`.
pub(crate) fn config(port: u16) -> S3Config {
    // 2013-05-24T00:00:00Z.
    let wall_epoch = WallTime::from_unix_ns(1_369_353_600_000_000_000);
    S3Config {
        credentials: Credentials::keys("AKID", "secret", None),
        missing_bucket: MissingRoot::CreateAndKeep,
        // Sockets where this machine has nothing else.
        transport: TRANSPORT.direct(false, true).unwrap_or(Transport::Sockets),
        ..S3Config::new(vec![Endpoint::new("127.0.0.1", port)], "bucket", wall_epoch)
    }
}

/// Runs `work` on a runtime like an engine thread's.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Content whose byte at `i` is a function of `i`.
pub(crate) struct Pattern(pub(crate) u64);

pub(crate) fn pattern(range: std::ops::Range<u64>) -> Vec<u8> {
    range.map(|i| (i.wrapping_mul(31) >> 3) as u8).collect()
}

impl ContentSource for Pattern {
    fn size(&self) -> u64 {
        self.0
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        assert!(offset + buffer.len() as u64 <= self.0);
        buffer.copy_from_slice(&pattern(offset..offset + buffer.len() as u64));
    }
}

/// Keeps what it is given.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) restarts_count: u32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) entries: Vec<(String, u64)>,
}

impl ContentSink for Kept {
    fn restart(&mut self) {
        self.restarts_count += 1;
        self.bytes.clear();
    }

    fn accept(&mut self, bytes: &[u8]) {
        assert!(self.restarts_count > 0);
        self.bytes.extend_from_slice(bytes);
    }
}

impl EntrySink for Kept {
    fn restart(&mut self) {
        self.restarts_count += 1;
        self.entries.clear();
    }

    fn entry(&mut self, key: &str, size: u64) {
        assert!(self.restarts_count > 0);
        self.entries.push((key.to_owned(), size));
    }
}

pub(crate) async fn put(session: &mut S3Session, key: &str, size: u64) -> Completion {
    let content = &mut Pattern(size);
    checked(session.execute(None, Operation::Put { key, content }).await)
}

pub(crate) async fn get(
    session: &mut S3Session,
    key: &str,
    range: Option<(u64, u64)>,
) -> (Completion, Kept) {
    let mut kept = Kept::default();
    let range = range.map(|(offset, len)| ByteRange { offset, len });
    let operation = Operation::Get { key, range, version: None, sink: &mut kept };
    let completion = session.execute(None, operation).await;
    (checked(completion), kept)
}

pub(crate) async fn stat(session: &mut S3Session, key: &str) -> Completion {
    checked(session.execute(None, Operation::Stat { key, version: None }).await)
}

pub(crate) async fn delete(session: &mut S3Session, keys: &[&str]) -> Completion {
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    checked(session.execute(None, Operation::Delete { keys: &keys }).await)
}

pub(crate) async fn list(
    session: &mut S3Session,
    prefix: &str,
    page_size: u32,
) -> (Completion, Vec<(String, u64)>) {
    let mut kept = Kept::default();
    let completion = session
        .execute(None, Operation::List { prefix, page_size, pages_max: None, sink: &mut kept })
        .await;
    (checked(completion), kept.entries)
}

/// Returns a completion whose moments are in order.
fn checked(completion: Completion) -> Completion {
    let moments = [completion.last_byte_sent, completion.first_byte, Some(completion.end)];
    let known: Vec<Moment> = moments.into_iter().flatten().collect();
    assert!(known.is_sorted() || completion.result.is_err(), "{completion:?}");
    completion
}

/// Returns the error of a completion that failed with this class and status.
#[track_caller]
pub(crate) fn failed(
    completion: &Completion,
    class: ErrorClass,
    status: Option<u16>,
) -> &DriverError {
    let error = completion.result.as_ref().expect_err("it should have failed");
    assert_eq!((error.class, error.status), (class, status), "{error}");
    error
}

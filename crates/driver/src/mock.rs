//! A driver that does nothing, and takes its time or fails as it was told: a store that is not
//! there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use plimsoll_model::{EndpointId, ErrorClass, SharedClock};

use crate::null::{NullDriver, NullSession};
use crate::{Completion, Driver, DriverError, Operation, Session};

/// How a store that is not there behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mock {
    /// How long each operation takes at least.
    pub delay: Duration,
    /// The share of operations that fail, from 0 to 1.
    pub error_rate: f64,
    /// How many bytes a read of a whole object gives, whatever it should; and of a part, where
    /// nobody knows how many it should. 0: as many as it should.
    pub read_bytes: u64,
}

/// Succeeds or fails as it was told, without doing anything.
#[derive(Clone, Debug)]
pub struct MockDriver {
    mock: Mock,
    /// Sessions opened so far: each begins at another place of the row of failures.
    sessions_count: Arc<AtomicU32>,
}

impl MockDriver {
    /// Returns a driver that behaves in this way.
    pub fn new(mock: Mock) -> Self {
        Self { mock, sessions_count: Arc::default() }
    }
}

/// A session of [`MockDriver`].
pub struct MockSession {
    mock: Mock,
    null: NullSession,
    clock: SharedClock,
    /// What part of a failure is owed, in 2^-32: it comes when there is a whole one, so that
    /// failures lie evenly among the operations of a session.
    owed: u32,
}

/// The golden ratio in 2^-32: multiples of it lie apart.
const APART: u32 = 0x9e37_79b9;

impl Driver for MockDriver {
    type Session = MockSession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<MockSession> {
        let first = self.sessions_count.fetch_add(count as u32, Ordering::Relaxed);
        let session = |(null, number): (NullSession, u32)| MockSession {
            mock: self.mock,
            null,
            clock: clock.clone(),
            owed: number.wrapping_mul(APART),
        };
        NullDriver.open_sessions(clock, count).into_iter().zip(first..).map(session).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        NullDriver.endpoints()
    }
}

impl MockSession {
    /// Tells whether the next operation fails.
    fn fails(&mut self) -> bool {
        let share = (self.mock.error_rate * f64::from(u32::MAX)) as u32;
        let (owed, is_whole) = self.owed.overflowing_add(share);
        self.owed = owed;
        is_whole || share == u32::MAX
    }
}

impl Session for MockSession {
    async fn execute(&mut self, bucket: Option<&str>, operation: Operation<'_>) -> Completion {
        let is_read = matches!(operation, Operation::Get { .. });
        let is_whole = matches!(operation, Operation::Get { range: None, .. });
        if !self.mock.delay.is_zero() {
            // As one waits for an answer that takes that long.
            let answer = std::future::pending::<()>();
            let _ = tokio::time::timeout(self.mock.delay, answer).await;
        }
        let fails = self.fails();
        let mut done = self.null.execute(bucket, operation).await;
        if fails {
            let message = "the mock was told to fail so often".to_owned();
            done = Completion::bare(
                done.endpoint,
                self.clock.now(),
                Err(DriverError::new(ErrorClass::Server, message)),
            );
        } else if self.mock.read_bytes > 0 && (is_whole || is_read && done.bytes == 0) {
            done.bytes = self.mock.read_bytes;
        }
        done
    }

    fn endpoint(&self) -> EndpointId {
        self.null.endpoint()
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{Clock, Moment};

    use super::*;
    use crate::{ByteRange, ContentSink};

    struct Still;

    impl Clock for Still {
        fn now(&self) -> Moment {
            Moment::EPOCH
        }
    }

    /// Takes what is read; `.0` is how much there should be.
    struct Sink(u64);

    impl ContentSink for Sink {
        fn restart(&mut self) {}

        fn accept(&mut self, _: &[u8]) {}

        fn accept_unseen(&mut self) -> u64 {
            self.0
        }
    }

    fn sessions(mock: Mock, count: usize) -> Vec<MockSession> {
        let clock: SharedClock = Arc::new(Still);
        MockDriver::new(mock).open_sessions(&clock, count)
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap().block_on(future)
    }

    #[test]
    fn failures_come_as_often_as_they_were_asked_for() {
        for (rate, right) in [(0.0, 0), (0.05, 50), (0.5, 500), (1.0, 1_000)] {
            let mock = Mock { error_rate: rate, ..Mock::default() };
            for mut session in sessions(mock, 3) {
                let failed: usize = (0..1_000)
                    .filter(|_| {
                        let stat = Operation::Stat { key: "k", version: None };
                        run(session.execute(None, stat)).result.is_err()
                    })
                    .count();
                assert!(failed.abs_diff(right) <= 1, "{rate}: {failed}");
            }
        }
    }

    #[test]
    fn a_read_gives_what_was_said_and_a_part_what_is_known() {
        let part = Some(ByteRange { offset: 5, len: 9 });
        for (range, known, said, right) in [
            (None, 9, 64_000, 64_000),
            (None, 0, 64_000, 64_000),
            (None, 9, 0, 9),
            (part, 9, 64_000, 9),
            (part, 0, 64_000, 64_000),
        ] {
            let mock = Mock { read_bytes: said, ..Mock::default() };
            let mut sink = Sink(known);
            let get = Operation::Get { key: "k", range, version: None, sink: &mut sink };
            let done = run(sessions(mock, 1)[0].execute(None, get));
            assert_eq!(done.bytes, right, "{range:?} {known} {said}");
        }
    }

    #[test]
    fn an_operation_takes_as_long_as_was_said() {
        run(async {
            let mock = Mock { delay: Duration::from_millis(10), ..Mock::default() };
            let mut session = sessions(mock, 1).remove(0);
            for (ms, ends) in [(9, false), (12, true)] {
                let stat = Operation::Stat { key: "k", version: None };
                let done = session.execute(None, stat);
                let waited = tokio::time::timeout(Duration::from_millis(ms), done).await;
                assert_eq!(waited.is_ok(), ends, "{ms} ms");
            }
        });
    }
}

//! The wish to end a run, from whoever may have it: a signal, a key, a coordinator.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use plimsoll_engine::StopFlag;
use tokio::sync::watch;

/// Ends a run: the first request ends the step under way, what follows is up to the caller.
#[derive(Clone)]
pub struct Stop {
    flag: Arc<StopFlag>,
    /// Requests since the step began that another one ends at once.
    count: Arc<AtomicU32>,
    /// Requests in all, for whoever waits for one.
    total: watch::Sender<u32>,
}

/// The step was given up, as was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

impl Default for Stop {
    fn default() -> Self {
        Self { flag: Arc::default(), count: Arc::default(), total: watch::Sender::new(0) }
    }
}

impl Stop {
    /// The longest that anybody rests before it is looked whether somebody asks.
    pub(crate) const REST_MAX: Duration = Duration::from_millis(50);

    /// Asks for the step under way to end. Returns `false` if that was asked before, so that who
    /// asks may leave at once.
    pub fn request(&self) -> bool {
        let first = self.count.fetch_add(1, Ordering::SeqCst) == 0;
        if first {
            self.flag.set();
            self.total.send_modify(|total| *total += 1);
        }
        first
    }

    /// Begins a step that goes on although a request has ended what came before, such as cleaning:
    /// the next request gives it up.
    pub fn begin_step(&self) {
        self.count.store(0, Ordering::SeqCst);
    }

    /// Carries `work` out, which a request from now on gives up where it stands.
    pub fn unless_stopped<T>(
        &self,
        runtime: &tokio::runtime::Runtime,
        work: impl Future<Output = T>,
    ) -> Result<T, Stopped> {
        let mut total = self.total.subscribe();
        if self.is_step_stopped() {
            return Err(Stopped);
        }
        runtime.block_on(async {
            tokio::select! {
                biased;
                done = work => Ok(done),
                _ = total.changed() => Err(Stopped),
            }
        })
    }

    /// Rests for `time` at most, less when somebody may have asked to stop.
    pub fn rest(&self, time: Duration) {
        std::thread::park_timeout(time.min(Self::REST_MAX));
    }

    /// Ends the stage under way as a request does, without counting as one.
    pub fn stop_stage(&self) {
        self.flag.set();
    }

    /// Has the next stage begin, although the one before was ended early.
    pub fn begin_stage(&self) {
        self.flag.clear();
    }

    /// Returns the flag that ends the stage under way.
    pub fn flag(&self) -> &StopFlag {
        &self.flag
    }

    /// Tells whether a request came since the step began.
    pub fn is_step_stopped(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }
}

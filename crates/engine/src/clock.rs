//! The machine's clocks and waiting: the only place that reads or sleeps on them.
#![expect(clippy::disallowed_methods, reason = "this module owns the machine's clock")]

use std::time::{Duration, SystemTime};

use plimsoll_model::{Clock, Moment, WallTime};

/// The clock of one run: its epoch is when it was made.
#[derive(Debug)]
pub struct RunClock {
    clock: quanta::Clock,
    epoch: u64,
    wall_epoch: WallTime,
}

impl RunClock {
    /// Returns a clock whose epoch is now.
    pub fn start() -> Self {
        let clock = quanta::Clock::new();
        let epoch = clock.raw();
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let ns = since_1970.map_or(0, |since| since.as_nanos() as u64);
        Self { clock, epoch, wall_epoch: WallTime::from_unix_ns(ns) }
    }

    /// Returns the wall time at the epoch.
    pub fn wall_epoch(&self) -> WallTime {
        self.wall_epoch
    }

    /// Names the source of time for the record.
    pub fn describe(&self) -> &'static str {
        "processor time-stamp counter where it is invariant, else CLOCK_MONOTONIC"
    }
}

impl Clock for RunClock {
    fn now(&self) -> Moment {
        Moment::from_ns(self.clock.delta_as_nanos(self.epoch, self.clock.raw()))
    }
}

/// Blocks the thread for `duration`.
pub(crate) fn block_for(duration: Duration) {
    std::thread::sleep(duration);
}

/// Suspends the task for `duration`, rounded up to the timer's millisecond.
pub(crate) async fn suspend_for(duration: Duration) {
    tokio::time::sleep(duration).await;
}

/// Returns the processor time, user and system, that the calling thread has used so far.
pub fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

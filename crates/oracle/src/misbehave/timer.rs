//! The oracle's own monotonic clock, and waiting on it to a fraction of a millisecond.

use std::io;
use std::os::fd::OwnedFd;

use plimsoll_model::Moment;
use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

const NS_PER_S: u64 = 1_000_000_000;

/// Monotonic time since the oracle started.
#[derive(Clone, Copy, Debug)]
pub struct OracleClock {
    epoch_ns: u64,
}

impl OracleClock {
    /// Returns a clock whose epoch is now.
    pub fn start() -> Self {
        Self { epoch_ns: monotonic_ns() }
    }

    /// Returns the present moment.
    pub fn now(self) -> Moment {
        Moment::from_ns(monotonic_ns() - self.epoch_ns)
    }
}

/// A timer of the kernel that the runtime waits for as for a socket: the runtime's own rounds up to
/// a millisecond.
///
/// One task waits on it at a time.
#[derive(Debug)]
pub struct Timer {
    fd: AsyncFd<OwnedFd>,
    clock: OracleClock,
}

impl Timer {
    /// Returns a timer for the runtime that this is called in.
    pub fn new(clock: OracleClock) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: an `OwnedFd` owns its descriptor and keeps it as long as it lives.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        Ok(Self { fd, clock })
    }

    /// Waits until the clock has reached `moment`.
    pub async fn until(&self, moment: Moment) -> io::Result<()> {
        if self.clock.now() >= moment {
            return Ok(());
        }
        let at = timespec(self.clock.epoch_ns.saturating_add(moment.as_ns()));
        let once = Itimerspec { it_interval: timespec(0), it_value: at };
        // Setting it forgets what has expired before.
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::ABSTIME, &once)?;
        loop {
            let mut ready = self.fd.readable().await?;
            match rustix::io::read(self.fd.get_ref(), &mut [0_u8; 8]) {
                Ok(_) => return Ok(()),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}

fn timespec(ns: u64) -> Timespec {
    // Five centuries of nanoseconds fit both fields.
    Timespec { tv_sec: (ns / NS_PER_S) as i64, tv_nsec: (ns % NS_PER_S) as i64 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn a_timer_waits_no_shorter_than_asked_and_can_be_used_again() {
        let runtime = Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let clock = OracleClock::start();
            let timer = Timer::new(clock).unwrap();
            for step in [300, 0, 700] {
                let until = clock.now().after(Duration::from_micros(step));
                timer.until(until).await.unwrap();
                assert!(clock.now() >= until);
            }
            // The past is over at once; the timer is not even asked.
            timer.until(Moment::EPOCH).await.unwrap();
        });
    }

    #[test]
    fn a_wait_given_up_does_not_end_the_next_one() {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build().unwrap();
        runtime.block_on(async {
            let clock = OracleClock::start();
            let timer = Timer::new(clock).unwrap();
            let soon = clock.now().after(Duration::from_micros(500));
            // On a busy machine it may be over already.
            let _given_up = tokio::time::timeout(Duration::ZERO, timer.until(soon)).await;
            let later = clock.now().after(Duration::from_millis(3));
            timer.until(later).await.unwrap();
            assert!(clock.now() >= later);
        });
    }
}

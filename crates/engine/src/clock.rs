//! The machine's clocks and waiting: the only place that reads or sleeps on them.
#![expect(clippy::disallowed_methods, reason = "this module owns the machine's clock")]

use std::future::{Future, poll_fn};
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use std::{io, mem};

use plimsoll_model::{Clock, Moment, WallTime};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep};

use crate::virtual_time::VirtualTime;

/// Who waits looks whether to stop at least this often.
pub(crate) const STOP_CHECK: Duration = Duration::from_millis(50);

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
    pub const DESCRIPTION: &str =
        "processor time-stamp counter where it is invariant, else CLOCK_MONOTONIC";
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

/// Blocks the thread for `duration`, or until it is unparked.
pub(crate) fn park_for(duration: Duration) {
    std::thread::park_timeout(duration);
}

/// Blocks the thread until `clock` has reached `until`, to a few microseconds, or until it is
/// stopped.
pub(crate) fn block_until(clock: &dyn Clock, until: Moment, is_stopped: impl Fn() -> bool) {
    /// What sleeping may be late by is spent awake.
    const AWAKE: Duration = Duration::from_micros(200);
    const SLEEP_MAX: Duration = Duration::from_millis(50);
    while !is_stopped() {
        let left = until.since(clock.now());
        match left.checked_sub(AWAKE) {
            _ if left.is_zero() => break,
            Some(sleep) if !sleep.is_zero() => block_for(sleep.min(SLEEP_MAX)),
            _ => std::hint::spin_loop(),
        }
    }
}

/// How the tasks of a stage wait: on the machine's clock, or in virtual time.
#[derive(Clone, Debug)]
pub(crate) enum Waiting {
    Machine,
    Virtual(Arc<VirtualTime>),
}

impl Waiting {
    /// Suspends the task for `duration`; on the machine's clock rounded up to a millisecond.
    pub(crate) async fn suspend_for(&self, duration: Duration) {
        match self {
            Self::Machine => tokio::time::sleep(duration).await,
            Self::Virtual(time) => time.sleep_until(time.now().after(duration)).await,
        }
    }

    /// Keeps the processor busy until `at`, while other tasks go on, and returns what time it is
    /// then. Where time is virtual it passes at once.
    pub(crate) async fn spin(&self, clock: &dyn Clock, at: Moment) -> Moment {
        match self {
            Self::Machine if clock.now() < at => tokio::task::yield_now().await,
            Self::Machine => {}
            Self::Virtual(time) => time.sleep_until(at).await,
        }
        clock.now()
    }

    /// Suspends the task until it is woken, or for `at_most`.
    pub(crate) async fn park(&self, at_most: Duration) {
        let mut timer = pin!(self.suspend_for(at_most));
        let mut is_woken = false;
        poll_fn(|context| {
            if timer.as_mut().poll(context).is_ready() || mem::replace(&mut is_woken, true) {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }

    /// Returns a timer for one thread, made inside its runtime.
    pub(crate) fn timer(&self) -> io::Result<Timer> {
        match self {
            Self::Machine => PreciseTimer::new().map(Timer::Machine),
            Self::Virtual(time) => Ok(Timer::Virtual { time: Arc::clone(time), armed: None }),
        }
    }
}

/// Wakes a task some time from when it was set, to a millisecond.
#[derive(Debug, Default)]
pub(crate) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Sets it, in place of what it was set for.
    pub(crate) fn set(&mut self, after: Duration) {
        match &mut self.0 {
            Some(sleep) => sleep.as_mut().reset(Instant::now() + after),
            none => *none = Some(Box::pin(tokio::time::sleep(after))),
        }
    }

    /// Ready when it has rung, and when it was never set, however much the task has done before:
    /// what is to be ended may never let it rest.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let ring = |sleep: &mut Pin<Box<Sleep>>| pin!(unconstrained(sleep)).poll(context);
        self.0.as_mut().map_or(Poll::Ready(()), ring)
    }
}

/// A timer finer than a millisecond.
#[derive(Debug)]
pub(crate) enum Timer {
    Machine(PreciseTimer),
    Virtual {
        time: Arc<VirtualTime>,
        /// For which moment it is set.
        armed: Option<Moment>,
    },
}

impl Timer {
    /// Ready when `clock` has reached `at`.
    pub(crate) fn poll_until(
        &mut self,
        context: &mut Context<'_>,
        clock: &dyn Clock,
        at: Moment,
    ) -> Poll<()> {
        match self {
            Self::Machine(timer) => timer.poll_until(context, clock, at),
            Self::Virtual { time, .. } if time.now() >= at => Poll::Ready(()),
            Self::Virtual { time, armed } => {
                // One that was set for later and is not waited for any more wakes in vain.
                if armed.replace(at) != Some(at) {
                    time.wake_at(at, context.waker().clone());
                }
                Poll::Pending
            }
        }
    }
}

/// A timer of the kernel that the runtime waits for as for a socket: the runtime's own rounds up to
/// a millisecond, and a loop that looks at the clock would take a whole core.
#[derive(Debug)]
pub(crate) struct PreciseTimer {
    fd: AsyncFd<OwnedFd>,
    armed: Option<Moment>,
}

impl PreciseTimer {
    fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: an owned descriptor names the same open file for as long as it lives.
        let fd = unsafe { AsyncFd::register(fd) }?;
        Ok(Self { fd, armed: None })
    }

    fn arm(&mut self, after: Duration) {
        let value =
            Timespec { tv_sec: after.as_secs() as i64, tv_nsec: after.subsec_nanos().into() };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &once)
            .expect("the timer is open and the time is valid");
    }

    fn poll_until(&mut self, context: &mut Context<'_>, clock: &dyn Clock, at: Moment) -> Poll<()> {
        loop {
            let now = clock.now();
            if now >= at {
                return Poll::Ready(());
            }
            if self.armed != Some(at) {
                // Zero would switch it off.
                self.arm(at.since(now).max(Duration::from_nanos(1)));
                self.armed = Some(at);
            }
            let Poll::Ready(ready) = self.fd.poll_read_ready(context) else { return Poll::Pending };
            let Ok(mut ready) = ready else { return Poll::Ready(()) };
            // The count of expirations says nothing; an earlier setting may have left one.
            if rustix::io::read(self.fd.get_ref(), &mut [0u8; 8]).is_ok() {
                self.armed = None;
            }
            ready.clear_ready();
        }
    }
}

/// Returns the processor time, user and system, that the calling thread has used so far.
pub fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // By the C library, as Valgrind, which counts instructions, hides the kernel's page of clocks
    // that rustix would look for.
    // SAFETY: the pointer is to a live value of the right type.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "every thread has a clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

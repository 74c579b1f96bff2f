//! The time of a run: the machine's, or virtual.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_engine::{RunClock, StageContext, VirtualTime};
use plimsoll_model::{Moment, SharedClock, WallTime};

/// The time of a run.
#[derive(Clone)]
pub struct RunTime {
    /// What all moments of the run are read from.
    pub clock: SharedClock,
    /// The wall time at the clock's epoch.
    pub wall_epoch: WallTime,
    /// The same clock where time is virtual.
    pub virtual_time: Option<Arc<VirtualTime>>,
}

impl RunTime {
    /// Returns the machine's time, from now on.
    pub fn machine() -> Self {
        let clock = RunClock::start();
        Self { wall_epoch: clock.wall_epoch(), clock: Arc::new(clock), virtual_time: None }
    }

    /// Returns virtual time, which begins in 1970: nothing in it depends on when it was run.
    pub fn simulated() -> Self {
        let time = Arc::new(VirtualTime::new());
        let clock = Arc::clone(&time) as SharedClock;
        Self { clock, wall_epoch: WallTime::from_unix_ns(0), virtual_time: Some(time) }
    }

    /// Names the source of time for the record.
    pub fn describe(&self) -> &'static str {
        match self.virtual_time {
            Some(_) => "virtual: passes from event to event",
            None => RunClock::DESCRIPTION,
        }
    }
}

/// Lets time pass until `end`, in which nothing is done.
pub(crate) fn rest(context: &StageContext<'_>, end: Moment) {
    const LOOK: Duration = Duration::from_millis(50);
    if let Some(time) = context.virtual_time {
        return time.pass_until(end);
    }
    while context.clock.now() < end && !context.stop.is_set() {
        std::thread::park_timeout(end.since(context.clock.now()).min(LOOK));
    }
}

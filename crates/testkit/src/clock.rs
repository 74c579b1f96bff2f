//! A clock that moves only when a test moves it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_model::{Clock, Moment};

/// A clock that stands still until it is set or advanced. Starts at the epoch.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Returns a clock that stands at `moment`.
    pub fn at(moment: Moment) -> Self {
        Self(AtomicU64::new(moment.as_ns()))
    }

    /// Puts the clock to `moment`, which must not lie before the present one: the clock is
    /// monotonic.
    pub fn set(&self, moment: Moment) {
        let before = self.0.swap(moment.as_ns(), Ordering::SeqCst);
        assert!(before <= moment.as_ns(), "a monotonic clock was put back");
    }

    /// Moves the clock on by `by`.
    pub fn advance(&self, by: Duration) {
        let ns = u64::try_from(by.as_nanos()).expect("a test waits less than 584 years");
        self.0.fetch_add(ns, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Moment::from_ns(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_only_when_told() {
        let clock = ManualClock::default();
        assert_eq!(clock.now(), Moment::EPOCH);
        clock.advance(Duration::from_micros(3));
        assert_eq!(clock.now(), Moment::from_ns(3_000));
        clock.set(Moment::from_ns(5_000));
        clock.advance(Duration::from_nanos(1));
        assert_eq!(clock.now(), Moment::from_ns(5_001));
        assert_eq!(ManualClock::at(Moment::from_ns(7)).now(), Moment::from_ns(7));
    }
}

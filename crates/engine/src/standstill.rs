//! Notes when the whole process stood still: a thread that does nothing but wait for the next look
//! finds that it came late.
//!
//! A thread that mostly sleeps is put on a processor at once, also where the workers keep all of
//! them busy, so it comes late only if nobody of the process ran.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use plimsoll_model::{Clock, SharedClock, Standstill, StandstillsSeen};

use crate::clock::park_for;

/// How far apart looks are: what is noted begins up to this much after the process stopped.
const LOOK: Duration = Duration::from_millis(50);

/// A look that comes late by less is what a busy machine does; half of the shortest outage.
const LATE_MIN: Duration = Duration::from_millis(250);

/// The thread that looks; it ends with this value.
pub(crate) struct Watcher<'scope> {
    is_over: Arc<AtomicBool>,
    /// `None` where no thread could be made: then nothing is seen.
    thread: Option<ScopedJoinHandle<'scope, StandstillsSeen>>,
}

impl<'scope> Watcher<'scope> {
    /// Begins to look.
    pub(crate) fn begin(scope: &'scope Scope<'scope, '_>, clock: &SharedClock) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, clock) = (Arc::clone(&is_over), Arc::clone(clock));
        let look = move || watch(&*clock, || over.load(Ordering::Acquire), park_for);
        let thread = Builder::new().name("standstill".to_owned()).spawn_scoped(scope, look);
        Self { is_over, thread: thread.ok() }
    }

    /// Returns the times for which the process stood still since then.
    pub(crate) fn seen(mut self) -> StandstillsSeen {
        self.end();
        let thread = self.thread.take();
        thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
    }

    fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.thread.iter().for_each(|thread| thread.thread().unpark());
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

fn watch(
    clock: &dyn Clock,
    is_over: impl Fn() -> bool,
    wait: impl Fn(Duration),
) -> StandstillsSeen {
    let mut seen = StandstillsSeen::default();
    while !is_over() {
        let due = clock.now().after(LOOK);
        wait(LOOK);
        let length = clock.now().since(due);
        if length >= LATE_MIN {
            seen.add(Standstill { from: due, length });
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use plimsoll_model::Moment;

    use super::*;

    /// A clock that stands where it was put.
    #[derive(Default)]
    struct Hand(std::sync::atomic::AtomicU64);

    impl Clock for Hand {
        fn now(&self) -> Moment {
            Moment::from_ns(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn a_look_that_comes_late_is_a_standstill_from_when_it_was_due() {
        // How long each wait takes; the third one is asked for and lasts 3 s more.
        let waits_ms = [50, 51, 3_050, 299, 50, 300];
        let (hand, at) = (Hand::default(), Cell::new(0));
        let wait = |asked: Duration| {
            assert_eq!(asked, LOOK);
            hand.0.fetch_add(waits_ms[at.get()] * 1_000_000, Ordering::Relaxed);
            at.set(at.get() + 1);
        };
        let seen = watch(&hand, || at.get() == waits_ms.len(), wait);
        let of = |from: u64, length| Standstill {
            from: Moment::from_ns(from * 1_000_000),
            length: Duration::from_millis(length),
        };
        assert_eq!(seen.longest, [of(151, 3_000), of(3_550, 250)]);
        assert_eq!((seen.count, seen.total), (2, Duration::from_millis(3_250)));
    }

    #[test]
    fn a_wait_that_is_cut_short_is_none() {
        let hand = Hand::default();
        let looks = Cell::new(0);
        let seen = watch(&hand, || looks.replace(looks.get() + 1) == 3, |_| {});
        assert_eq!(seen, StandstillsSeen::default());
    }
}

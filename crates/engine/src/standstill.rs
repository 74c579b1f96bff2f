//! Notes when the whole process stood still, and when it was disturbed: a thread that does nothing
//! but wait for the next look finds that it came late, that workers waited for a processor, or that
//! a hypervisor took one.
//!
//! A thread that mostly sleeps is put on a processor at once, also where the workers keep all of
//! them busy, so it comes late only if nobody of the process ran.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use plimsoll_model::{Clock, DisturbedSeen, SharedClock, Standstill, StandstillsSeen};

use crate::clock::park_for;
use crate::thread_usage::{RunDelays, Steal};

/// How far apart looks are: what is noted begins up to this much after the process stopped.
const LOOK: Duration = Duration::from_millis(20);

/// A look that comes late by less is what a busy machine does; half of the shortest outage.
const LATE_MIN: Duration = Duration::from_millis(250);

/// A client is disturbed between two looks where the second comes late by this, or a worker waited
/// so long for a processor: a tenth of the time.
const DISTURBED_MIN: Duration = Duration::from_millis(2);

/// What is seen of one process.
type Seen = (StandstillsSeen, DisturbedSeen);

/// The thread that looks; it ends with this value.
pub(crate) struct Watcher<'scope> {
    is_over: Arc<AtomicBool>,
    /// `None` where no thread could be made: then nothing is seen.
    thread: Option<ScopedJoinHandle<'scope, Seen>>,
}

impl<'scope> Watcher<'scope> {
    /// Begins to look.
    pub(crate) fn begin(
        scope: &'scope Scope<'scope, '_>,
        clock: &SharedClock,
        delays: Arc<RunDelays>,
    ) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, clock) = (Arc::clone(&is_over), Arc::clone(clock));
        let look = move || {
            let mut hindered = hindered(&delays);
            watch(&*clock, || over.load(Ordering::Acquire), park_for, &mut hindered)
        };
        let thread = Builder::new().name("standstill".to_owned()).spawn_scoped(scope, look);
        Self { is_over, thread: thread.ok() }
    }

    /// Returns when the process stood still and was disturbed since then.
    pub(crate) fn seen(mut self) -> Seen {
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
    is_hindered: &mut dyn FnMut() -> bool,
) -> Seen {
    let (mut still, mut disturbed) = Seen::default();
    let mut from = clock.now();
    while !is_over() {
        let due = clock.now().after(LOOK);
        wait(LOOK);
        let now = clock.now();
        let late = now.since(due);
        if late >= LATE_MIN {
            still.add(Standstill { from: due, length: late });
        }
        // Asked each time, as it tells what came since it was asked before.
        if is_hindered() || late >= DISTURBED_MIN {
            disturbed.add(Standstill { from, length: now.since(from) });
        }
        from = now;
    }
    (still, disturbed)
}

/// Returns what tells whether workers waited for a processor, or a hypervisor took one, since it
/// was asked before.
fn hindered(delays: &RunDelays) -> impl FnMut() -> bool {
    let steal = Steal::open();
    let mut before = (delays.read(), steal.read());
    move || {
        let now = (delays.read(), steal.read());
        let mut grown = now.0.iter().zip(&before.0).map(|(now, old)| now.saturating_sub(*old));
        let is_hindered = grown.any(|delay| delay >= DISTURBED_MIN) || now.1 > before.1;
        before = now;
        is_hindered
    }
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
        let waits_ms = [20, 21, 3_020, 269, 20, 270];
        let (hand, at) = (Hand::default(), Cell::new(0));
        let wait = |asked: Duration| {
            assert_eq!(asked, LOOK);
            hand.0.fetch_add(waits_ms[at.get()] * 1_000_000, Ordering::Relaxed);
            at.set(at.get() + 1);
        };
        // At the fifth look workers have waited for a processor.
        let hindered = &mut || at.get() == 5;
        let (seen, disturbed) = watch(&hand, || at.get() == waits_ms.len(), wait, hindered);
        let of = |from: u64, length| Standstill {
            from: Moment::from_ns(from * 1_000_000),
            length: Duration::from_millis(length),
        };
        assert_eq!(seen.longest, [of(61, 3_000), of(3_370, 250)]);
        assert_eq!((seen.count, seen.total), (2, Duration::from_millis(3_250)));
        // From the look before on; the second was late by 1 ms alone.
        assert_eq!(disturbed.spans, [of(41, 3_020 + 269 + 20 + 270)]);
    }

    #[test]
    fn a_wait_that_is_cut_short_is_none() {
        let hand = Hand::default();
        let looks = Cell::new(0);
        let is_over = || looks.replace(looks.get() + 1) == 3;
        let seen = watch(&hand, is_over, |_| {}, &mut || false);
        assert_eq!(seen, Seen::default());
    }
}

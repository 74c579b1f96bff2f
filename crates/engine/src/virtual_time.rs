//! Virtual time: a clock that stands still while tasks run and jumps to the next timer when none
//! can.
//!
//! The pump of real runs is driven by it unchanged. Everything happens on one thread, in an order
//! that depends on nothing but the tasks, so two runs are alike to the bit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
#[cfg(test)]
use std::time::Duration;

use plimsoll_model::{Clock, Moment};

/// A clock whose time passes only by events.
#[derive(Debug, Default)]
pub struct VirtualTime {
    now_ns: AtomicU64,
    timers: Mutex<Timers>,
}

/// Who waits for what, the earliest first; those of one moment in the order in which they came.
#[derive(Debug, Default)]
struct Timers {
    waiting: BinaryHeap<Reverse<Timer>>,
    set_count: u64,
}

#[derive(Debug)]
struct Timer {
    at: Moment,
    number: u64,
    waker: Waker,
}

impl Timer {
    fn order(&self) -> (Moment, u64) {
        (self.at, self.number)
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl Clock for VirtualTime {
    fn now(&self) -> Moment {
        Moment::from_ns(self.now_ns.load(Relaxed))
    }
}

/// Notes that a task can go on.
#[derive(Debug, Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

impl VirtualTime {
    /// Returns a clock at its epoch.
    pub fn new() -> Self {
        Self::default()
    }

    fn timers(&self) -> MutexGuard<'_, Timers> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets time pass for a thread that waits without tasks; it is the only one there is.
    #[cfg(test)]
    pub(crate) fn pass(&self, duration: Duration) {
        self.now_ns.fetch_add(duration.as_nanos() as u64, Relaxed);
    }

    /// Has `waker` called at `at`.
    pub(crate) fn wake_at(&self, at: Moment, waker: Waker) {
        let mut timers = self.timers();
        timers.set_count += 1;
        let number = timers.set_count;
        timers.waiting.push(Reverse(Timer { at, number, waker }));
    }

    /// Lets time pass until `at`.
    pub fn pass_until(&self, at: Moment) {
        self.run(self.sleep_until(at), || ());
    }

    /// Waits until `at`.
    pub(crate) async fn sleep_until(&self, at: Moment) {
        let mut is_set = false;
        poll_fn(|context| {
            if self.now() >= at {
                return Poll::Ready(());
            }
            if !is_set {
                is_set = true;
                self.wake_at(at, context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Jumps to the earliest timer and wakes all of that moment; false when there is none.
    fn advance(&self) -> bool {
        let mut timers = self.timers();
        let Some(Reverse(first)) = timers.waiting.pop() else { return false };
        self.now_ns.fetch_max(first.at.as_ns(), Relaxed);
        first.waker.wake();
        while timers.waiting.peek().is_some_and(|next| next.0.at == first.at) {
            let next = timers.waiting.pop().expect("one was seen");
            next.0.waker.wake();
        }
        true
    }

    /// Runs `future` to its end. `between` is called whenever all that can be done at a moment has
    /// been done.
    pub(crate) fn run<F: Future>(&self, future: F, mut between: impl FnMut()) -> F::Output {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            between();
            while !woken.0.swap(false, Relaxed) {
                assert!(self.advance(), "tasks wait for something that is no timer");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures::stream::{FuturesUnordered, StreamExt};

    use super::*;

    #[test]
    fn time_jumps_from_timer_to_timer_in_order() {
        let time = VirtualTime::new();
        let seen = RefCell::new(Vec::new());
        let sleep = |name: &'static str, ns: u64| {
            let (time, seen) = (&time, &seen);
            async move {
                time.sleep_until(Moment::from_ns(ns)).await;
                seen.borrow_mut().push((name, time.now().as_ns()));
            }
        };
        let sleeps: FuturesUnordered<_> =
            [sleep("b", 7), sleep("a", 3_600_000_000_000), sleep("c", 7), sleep("d", 0)]
                .into_iter()
                .collect();
        time.run(sleeps.collect::<Vec<()>>(), || ());
        let expected = [("d", 0), ("b", 7), ("c", 7), ("a", 3_600_000_000_000)];
        assert_eq!(*seen.borrow(), expected);
    }
}

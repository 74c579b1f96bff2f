//! What is going on at this moment, for a display: counters that one thread writes and any thread
//! reads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use plimsoll_model::OpKind;

/// Asks every worker to end after the operation it has under way.
#[derive(Debug, Default)]
pub struct StopFlag(AtomicBool);

impl StopFlag {
    /// Asks.
    pub fn set(&self) {
        self.0.store(true, Relaxed);
    }

    /// Tells whether it was asked.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Counters of one kind of operation on one thread. Only that thread writes, so no
/// read-modify-write is needed.
#[derive(Debug, Default)]
struct KindCounters {
    ok: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    latency_ns: AtomicU64,
}

fn add(counter: &AtomicU64, value: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(value), Relaxed);
}

/// Counters of one thread, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ThreadCounters([KindCounters; OpKind::ALL.len()]);

impl ThreadCounters {
    pub(crate) fn count(&self, kind: OpKind, ok: bool, bytes: u64, latency: Duration) {
        let counters = &self.0[kind as usize];
        if ok {
            add(&counters.ok, 1);
            add(&counters.bytes, bytes);
            add(&counters.latency_ns, latency.as_nanos() as u64);
        } else {
            add(&counters.failed, 1);
        }
    }
}

/// The counters of all threads.
#[derive(Debug)]
pub struct Live {
    threads: Vec<ThreadCounters>,
}

/// What was counted so far of one kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveCounts {
    /// Successes.
    pub ok: u64,
    /// Failures.
    pub failed: u64,
    /// Content bytes of successes.
    pub bytes: u64,
    /// Sum of the latencies of successes.
    pub latency_ns: u64,
}

impl Live {
    /// Returns counters for `threads` threads, all zero.
    pub fn new(threads: usize) -> Self {
        Self { threads: (0..threads).map(|_| ThreadCounters::default()).collect() }
    }

    pub(crate) fn thread(&self, index: usize) -> &ThreadCounters {
        &self.threads[index]
    }

    /// Returns what was counted so far of `kind`.
    pub fn counts(&self, kind: OpKind) -> LiveCounts {
        let mut sum = LiveCounts::default();
        for thread in &self.threads {
            let counters = &thread.0[kind as usize];
            sum.ok += counters.ok.load(Relaxed);
            sum.failed += counters.failed.load(Relaxed);
            sum.bytes += counters.bytes.load(Relaxed);
            sum.latency_ns = sum.latency_ns.wrapping_add(counters.latency_ns.load(Relaxed));
        }
        sum
    }
}

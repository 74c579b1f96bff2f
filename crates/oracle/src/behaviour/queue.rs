//! Who must wait and who is turned away: servers before a queue, and the token bucket.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::script::{Collapse, RateCap};

/// Servers with one queue, first come first served. Moments are in ns.
#[derive(Clone, Debug)]
pub(super) struct Servers {
    /// When each server is free.
    free_at: BinaryHeap<Reverse<u64>>,
    queue_max: Option<usize>,
    /// When those begin that may still wait, in order; kept only if the queue has a limit.
    begins: VecDeque<u64>,
}

impl Servers {
    pub(super) fn new(count: u32, queue_max: Option<u32>) -> Self {
        Self {
            free_at: (0..count).map(|_| Reverse(0)).collect(),
            queue_max: queue_max.map(|max| max as usize),
            begins: VecDeque::new(),
        }
    }

    /// Tells whether one that arrives at `now` finds no server and no place in the queue.
    pub(super) fn is_full(&mut self, now: u64) -> bool {
        let Some(queue_max) = self.queue_max else { return false };
        while self.begins.front().is_some_and(|begin| *begin <= now) {
            self.begins.pop_front();
        }
        let all_busy = self.free_at.peek().is_some_and(|Reverse(at)| *at > now);
        all_busy && self.begins.len() >= queue_max
    }

    /// Takes the server that is free first and returns from when on it serves one that arrives at
    /// `now`.
    pub(super) fn take(&mut self, now: u64) -> u64 {
        let Reverse(free_at) = self.free_at.pop().expect("each server is given back at once");
        free_at.max(now)
    }

    /// Gives the server back that is busy from `started` to `done`.
    pub(super) fn give_back(&mut self, started: u64, done: u64) {
        self.free_at.push(Reverse(done));
        if self.queue_max.is_some() {
            self.begins.push_back(started);
        }
    }
}

/// Whether a store that collapses under load has done so. Moments are in ns.
#[derive(Clone, Debug)]
pub(super) struct Collapsing {
    of: Collapse,
    /// Since when, if it has, no operation has waited too long for it to be back.
    calm_since: Option<u64>,
}

impl Collapsing {
    pub(super) fn new(of: Collapse) -> Self {
        Self { of, calm_since: None }
    }

    /// Returns how many times as long serving takes for one that has come and waits until
    /// `started`.
    pub(super) fn factor(&mut self, now: u64, started: u64) -> f64 {
        let waited = started - now;
        if waited > self.of.above || (self.calm_since.is_some() && waited > self.of.calm) {
            self.calm_since = Some(started);
        }
        // In time without an operation none has waited.
        if self.calm_since.is_some_and(|since| started.saturating_sub(since) >= self.of.lasting) {
            self.calm_since = None;
        }
        if self.calm_since.is_some() { self.of.factor } else { 1.0 }
    }
}

/// Tokens that come at a fixed rate up to a fixed number; it is full at the beginning.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    cap: RateCap,
    tokens: f64,
    counted_at: u64,
}

impl Bucket {
    pub(super) fn new(cap: RateCap) -> Self {
        Self { cap, tokens: cap.burst, counted_at: 0 }
    }

    /// Takes a token at `now` if there is one.
    pub(super) fn lets_in(&mut self, now: u64) -> bool {
        let came = (now - self.counted_at) as f64 * self.cap.ops_per_ns;
        self.tokens = (self.tokens + came).min(self.cap.burst);
        self.counted_at = now;
        // Moments are whole ns, so who comes exactly at the rate may seem early by one.
        let is_there = self.tokens >= 1.0 - 2.0 * self.cap.ops_per_ns;
        if is_there {
            self.tokens -= 1.0;
        }
        is_there
    }
}

//! When a thread looked at what has ended on its ring, what it saw, and how late it may have been.
//!
//! An end is stamped when it is seen. So a thread that makes or checks content, or waits for its
//! recorder, stamps late what ended meanwhile, by at most the gap between two looks.

use std::collections::VecDeque;
use std::time::Duration;

use plimsoll_driver::{Reply, Ring};
use plimsoll_model::{Clock, Moment};

use crate::outcome::LooksOutcome;

/// An operation that was seen to have ended.
pub(super) struct Seen {
    pub(super) slot: usize,
    pub(super) reply: Reply,
    /// When it was seen.
    pub(super) end: Moment,
    /// Since when at the latest it may have been over.
    pub(super) gap: Duration,
}

/// The looks of one thread.
#[derive(Default)]
pub(super) struct Looks {
    /// The last one, or when the first operation went out of those that are waited for.
    last: Moment,
    /// Whether content was made or checked since.
    is_due: bool,
    /// Whether nothing was waited for but an operation that went out since.
    is_alone: bool,
    /// What was seen and has not been taken off its slot.
    seen: VecDeque<Seen>,
    replies: Vec<(usize, Reply)>,
    outcome: Option<LooksOutcome>,
}

impl Looks {
    /// Returns when the last one was.
    #[inline]
    pub(super) fn last(&self) -> Moment {
        self.last
    }

    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    #[inline]
    pub(super) fn has_seen(&self) -> bool {
        !self.seen.is_empty()
    }

    #[inline]
    pub(super) fn seen_count(&self) -> usize {
        self.seen.len()
    }

    #[inline]
    pub(super) fn next_seen(&mut self) -> Option<Seen> {
        self.seen.pop_front()
    }

    /// Returns what came of it; `None` if nothing was ever waited for.
    pub(super) fn outcome(&self) -> Option<LooksOutcome> {
        self.outcome
    }

    /// Takes note that content is made or checked now.
    #[inline]
    pub(super) fn note_content(&mut self) {
        self.is_due = true;
    }

    /// Takes note that an operation goes out at `start` and is the only one that is waited for.
    #[inline]
    pub(super) fn begin(&mut self, start: Moment) {
        self.last = start;
        (self.is_due, self.is_alone) = (false, true);
    }

    /// Looks, and returns what time it is. The gap counts where something is waited for.
    #[inline]
    pub(super) fn look<R: Ring>(
        &mut self,
        ring: &mut R,
        clock: &dyn Clock,
        is_waited_for: bool,
    ) -> Moment {
        if is_waited_for {
            ring.look(&mut self.replies);
        }
        let now = clock.now();
        if is_waited_for {
            // The call that sends an operation is part of its own time.
            let gap = if self.is_alone { Duration::ZERO } else { now.since(self.last) };
            let outcome = self.outcome.get_or_insert_default();
            outcome.gap_max = outcome.gap_max.max(gap);
            self.keep(now, gap);
        }
        (self.last, self.is_due, self.is_alone) = (now, false, false);
        now
    }

    /// Waits for what ends next, at most so long, and returns what time it is then. There was a
    /// look just before.
    #[inline]
    pub(super) fn wait<R: Ring>(
        &mut self,
        ring: &mut R,
        clock: &dyn Clock,
        wait: Duration,
    ) -> Moment {
        ring.reap(Some(wait), &mut self.replies);
        let now = clock.now();
        self.keep(now, Duration::ZERO);
        (self.last, self.is_alone) = (now, false);
        now
    }

    #[inline]
    fn keep(&mut self, end: Moment, gap: Duration) {
        let seen = self.replies.drain(..).map(|(slot, reply)| Seen { slot, reply, end, gap });
        self.seen.extend(seen);
    }

    /// Takes note of an operation that was seen to end, late by `gap` at most. One that went out in
    /// the gap did so at its end.
    #[inline]
    pub(super) fn note_end(&mut self, start: Moment, end: Moment, gap: Duration) {
        let took = end.since(start);
        if gap > took / 2 && gap <= took {
            self.outcome.get_or_insert_default().uncertain_count += 1;
        }
    }
}

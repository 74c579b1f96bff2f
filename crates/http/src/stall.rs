//! The limit on how long an exchange may go without moving a byte, and how long it may take in all.

use std::future::{Future, Pending, pending};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::coop::unconstrained;
use tokio::time::{Timeout, timeout};

/// How many times the limit an exchange may take in all: a server that lets a byte go now and then
/// is not waited for without end.
const WHOLE_FACTOR: u32 = 20;

type Timer = Pin<Box<Timeout<Pending<()>>>>;

/// Watches one exchange.
pub(crate) struct Stall {
    limit: Duration,
    bytes_moved: u64,
    idle: Timer,
    /// Without it the exchange may take as long as it moves bytes.
    whole: Option<Timer>,
}

/// How an exchange goes on too long.
pub(crate) enum Overdue {
    /// No byte went either way for this long.
    Idle(Duration),
    /// It has not ended for this long.
    Whole(Duration),
}

impl Stall {
    /// Begins to watch an exchange that begins now; `is_whole` has it end in time even if bytes
    /// move.
    pub(crate) fn new(limit: Duration, is_whole: bool) -> Self {
        let whole = is_whole.then(|| timer(limit.saturating_mul(WHOLE_FACTOR)));
        Self { limit, bytes_moved: 0, idle: timer(limit), whole }
    }

    /// Ready when the exchange, which has moved so many bytes and cannot go on at once, takes too
    /// long.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, bytes_moved: u64) -> Poll<Overdue> {
        if self.bytes_moved != bytes_moved {
            self.bytes_moved = bytes_moved;
            self.idle = timer(self.limit);
        }
        // However much the task has done before: the server may never let it rest.
        let mut is_over = |timer: &mut Timer| pin!(unconstrained(timer)).poll(cx).is_ready();
        if is_over(&mut self.idle) {
            return Poll::Ready(Overdue::Idle(self.limit));
        }
        if self.whole.as_mut().is_some_and(is_over) {
            return Poll::Ready(Overdue::Whole(self.limit.saturating_mul(WHOLE_FACTOR)));
        }
        Poll::Pending
    }
}

impl Overdue {
    /// Says so of a server that is at `place` of an exchange, going on after its address.
    pub(crate) fn text(&self, place: &str) -> String {
        match self {
            Self::Idle(limit) => format!(" did nothing for {limit:?}: {place}"),
            Self::Whole(limit) => format!(" did not come to an end within {limit:?}: {place}"),
        }
    }
}

fn timer(limit: Duration) -> Timer {
    Box::pin(timeout(limit, pending()))
}

//! The open loop of one thread: each operation is issued when the schedule wants it, on any free
//! session, whatever became of those before it.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use plimsoll_driver::Session;
use plimsoll_model::{Clock, Moment, StageKind, WorkerId};
use plimsoll_workload::{Arrivals, OpStream, OpenLoop, PlannedOp};

use crate::clock::Timer;
use crate::planner::EndReason;
use crate::pump::{STOP_CHECK, Shared};
use crate::watch::Stops;
use crate::worker::{Doer, Finished, Listed, StageFacts};

/// An operation that starts later than this after its intended moment is late.
pub(crate) const LATE_ABOVE: Duration = Duration::from_millis(1);

/// A worker's operations and when they are due.
struct Lane {
    worker: WorkerId,
    stream: OpStream,
    arrivals: Arrivals,
    issued_count: u64,
    /// Whether the stream has ended.
    is_done: bool,
}

/// A session with what it needs to do an operation.
struct Slot<'a, S> {
    session: S,
    doer: Doer<'a>,
}

/// An operation that has ended.
struct Ended<'a, S> {
    slot: Box<Slot<'a, S>>,
    lane: usize,
    op: PlannedOp,
    finished: Finished,
}

/// The lanes of a thread, ordered by what is due next.
struct Schedule {
    started: Moment,
    /// Nothing is due at or after this.
    deadline: Moment,
    lanes: Vec<Lane>,
    due: BinaryHeap<Reverse<(Moment, usize)>>,
}

impl Schedule {
    fn new(facts: &StageFacts, open: &OpenLoop, workers: &[WorkerId], started: Moment) -> Self {
        let workload = &facts.workload;
        let lane = |worker: &WorkerId| Lane {
            worker: *worker,
            stream: OpStream::new(workload, StageKind::Measure, *worker),
            arrivals: Arrivals::new(open, workload.seed.0, workload.concurrency.get(), *worker),
            issued_count: 0,
            is_done: false,
        };
        let lanes: Vec<Lane> = workers.iter().map(lane).collect();
        let deadline = started.after(workload.duration);
        let mut schedule = Self { started, deadline, lanes, due: BinaryHeap::new() };
        (0..schedule.lanes.len()).for_each(|lane| schedule.set_next(lane));
        schedule
    }

    /// Puts the next arrival of a lane among those that are due.
    fn set_next(&mut self, lane: usize) {
        let Some(since_start) = self.lanes[lane].arrivals.next() else { return };
        let at = self.started.after(since_start);
        if at < self.deadline {
            self.due.push(Reverse((at, lane)));
        }
    }

    /// Returns when the next operation is due.
    fn next_due(&self) -> Option<Moment> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the next operation that is due by `now`; a lane without operations falls out.
    fn take_due(&mut self, now: Moment) -> Option<(Moment, usize, PlannedOp)> {
        while self.next_due()? <= now {
            let Reverse((at, lane)) = self.due.pop()?;
            let Some(op) = self.lanes[lane].stream.next_op() else {
                self.lanes[lane].is_done = true;
                continue;
            };
            self.set_next(lane);
            self.lanes[lane].issued_count += 1;
            return Some((at, lane, op));
        }
        None
    }

    /// Counts what was due before `until` and not taken.
    fn count_skipped(mut self, until: Moment) -> u64 {
        let mut skipped = 0;
        while let Some(Reverse((at, lane))) = self.due.pop() {
            if at < until {
                skipped += 1;
                self.set_next(lane);
            }
        }
        skipped
    }
}

/// Runs the operations of `workers` until the time is up, nothing is left to do or the stage is
/// stopped, and waits for those under way.
pub(crate) async fn run_open<S: Session>(
    facts: &StageFacts,
    open: &OpenLoop,
    workers: &[WorkerId],
    sessions: Vec<S>,
    started: Moment,
    (timer, stops): (&mut Timer, Stops<'_>),
    shared: &RefCell<Shared<'_>>,
) -> EndReason {
    let clock: &dyn Clock = &*facts.clock;
    let listed = RefCell::new(Listed::default());
    // Boxed, as it moves with every operation.
    let slot = |session| Box::new(Slot { session, doer: Doer::new(facts, &listed) });
    // The session used last is used next: its connection is the least likely to be closed.
    let mut free: Vec<_> = sessions.into_iter().map(slot).collect();
    let mut schedule = Schedule::new(facts, open, workers, started);
    let mut under_way = FuturesUnordered::new();
    let reason = loop {
        if let Some(reason) = stops.reason() {
            break reason;
        }
        let now = clock.now();
        if now >= schedule.deadline {
            break EndReason::Duration;
        }
        while !free.is_empty()
            && let Some((at, lane, op)) = schedule.take_due(now)
        {
            let Lane { worker, issued_count, .. } = schedule.lanes[lane];
            shared.borrow_mut().note_planned(worker, issued_count, &op, Some(at.since(started)));
            let mut slot = free.pop().expect("one is free");
            under_way.push(async move {
                let Slot { session, doer } = &mut *slot;
                let finished = doer.run(session, worker, &op, Some(at)).await;
                Ended { slot, lane, op, finished }
            });
        }
        if under_way.is_empty() && schedule.lanes.iter().all(|lane| lane.is_done) {
            break EndReason::OutOfWork;
        }
        let due = schedule.next_due().filter(|_| !free.is_empty());
        let until = due.unwrap_or(schedule.deadline).min(now.after(STOP_CHECK));
        let event = poll_fn(|context| {
            if let Poll::Ready(Some(ended)) = under_way.poll_next_unpin(context) {
                return Poll::Ready(Some(ended));
            }
            timer.poll_until(context, clock, until).map(|()| None)
        });
        if let Some(Ended { slot, lane, op, finished }) = event.await {
            schedule.lanes[lane].stream.completed(&op, finished.record.outcome.is_ok());
            shared.borrow_mut().keep(finished);
            free.push(slot);
        }
    };
    let ended = clock.now().min(schedule.deadline);
    shared.borrow_mut().note_skipped(schedule.count_skipped(ended));
    while let Some(ended) = under_way.next().await {
        shared.borrow_mut().keep(ended.finished);
    }
    reason
}

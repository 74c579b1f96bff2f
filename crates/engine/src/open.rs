//! The open loop of one thread: each operation is issued when the schedule wants it, on any free
//! session, whatever became of those before it.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use plimsoll_driver::{Session, Settled};
use plimsoll_model::{Clock, Moment, StageKind, WorkerId};
use plimsoll_workload::{Arrivals, OpStream, OpenLoop, PlannedOp};

use crate::clock::Timer;
use crate::planner::EndReason;
use crate::pump::{STOP_CHECK, Shared, fingerprint};
use crate::server_names::VersionNames;
use crate::watch::Stops;
use crate::worker::{Executor, Finished, Listed, Names, Patience, StageFacts};

/// An operation that starts later than this after its intended moment is late.
pub(crate) const LATE_ABOVE: Duration = Duration::from_millis(1);

/// A worker's operations and when they are due.
struct Lane {
    worker: WorkerId,
    stream: OpStream,
    arrivals: Arrivals,
    issued_count: u64,
    /// What versions are called, where operations are about versions.
    versions: Option<VersionNames>,
    /// Whether the stream has ended.
    is_done: bool,
}

/// An operation on its way to a slot.
struct Job {
    lane: usize,
    worker: WorkerId,
    op: PlannedOp,
    /// What the version is called that it is about.
    version: Option<Box<str>>,
    at: Moment,
}

/// Where the schedule and the slots of a thread meet. A slot is a session with a task of its own,
/// which does one operation at a time.
#[derive(Default)]
struct Desk {
    /// By slot: what it is to do next, and how to tell it.
    jobs: Vec<(Option<Job>, Option<Waker>)>,
    /// Slots without anything to do. The one used last is used next: its connection is the least
    /// likely to be closed.
    free: Vec<usize>,
    /// What has ended since it was last looked at.
    ended: Vec<(Job, Finished)>,
    /// What was cleaned up behind failed operations since it was last looked at; there is a free
    /// slot since then.
    settled: Option<Settled>,
    under_way: usize,
}

impl Desk {
    /// Gives a free slot something to do.
    fn assign(&mut self, slot: usize, job: Job) {
        self.under_way += 1;
        let (next, waker) = &mut self.jobs[slot];
        *next = Some(job);
        if let Some(waker) = waker.take() {
            waker.wake();
        }
    }

    /// Tells whether nothing has ended since it was last looked at.
    fn has_no_news(&self) -> bool {
        self.ended.is_empty() && self.settled.is_none()
    }

    /// Ready when `slot` has something to do.
    fn poll_job(&mut self, context: &mut Context<'_>, slot: usize) -> Poll<Job> {
        let (job, waker) = &mut self.jobs[slot];
        let Some(job) = job.take() else {
            *waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        Poll::Ready(job)
    }
}

/// Does what `slot` is given, for as long as it is asked.
async fn serve<S: Session>(
    desk: &RefCell<Desk>,
    slot: usize,
    mut session: S,
    mut executor: Executor<'_>,
) -> Infallible {
    loop {
        let job = poll_fn(|context| desk.borrow_mut().poll_job(context, slot)).await;
        let names = Names::version(job.version.as_deref());
        let finished = executor.run(&mut session, job.worker, &job.op, names, Some(job.at)).await;
        let has_failed = finished.error.is_some();
        desk.borrow_mut().ended.push((job, finished));
        if has_failed {
            // The operation has ended, and nobody else is given this session meanwhile: what is due
            // goes out on another one.
            let settled = session.settle().await;
            desk.borrow_mut().settled.get_or_insert_default().add(settled);
        }
        let mut desk = desk.borrow_mut();
        desk.free.push(slot);
        desk.under_way -= 1;
    }
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
            versions: VersionNames::new(facts),
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
    fn take_due(&mut self, now: Moment) -> Option<Job> {
        while self.next_due()? <= now {
            let Reverse((at, lane)) = self.due.pop()?;
            let Some(op) = self.lanes[lane].stream.next_op() else {
                self.lanes[lane].is_done = true;
                continue;
            };
            self.set_next(lane);
            let Lane { worker, issued_count, versions, .. } = &mut self.lanes[lane];
            *issued_count += 1;
            let version = versions.as_ref().and_then(|versions| versions.of(&op)).map(Box::from);
            return Some(Job { lane, worker: *worker, op, version, at });
        }
        None
    }

    /// Tells whether a lane had something to do for its next arrival, which it then has not any
    /// more.
    fn has_work(&mut self, lane: usize) -> bool {
        let stream = &mut self.lanes[lane].stream;
        if !stream.may_end() {
            return true;
        }
        let op = stream.next_op();
        op.inspect(|op| stream.completed(op, true)).is_some()
    }

    /// Counts what was due before `until` and not taken.
    fn count_skipped(mut self, until: Moment) -> u64 {
        let mut skipped = 0;
        while let Some(Reverse((at, lane))) = self.due.pop() {
            if at < until && self.has_work(lane) {
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
    let (listed, desk) = (RefCell::<Listed>::default(), RefCell::<Desk>::default());
    let mut sessions = sessions.into_iter().enumerate();
    let mut slots = FuturesUnordered::new();
    let mut schedule = Schedule::new(facts, open, workers, started);
    let patience = Patience { stops, deadline: Some(schedule.deadline) };
    let reason = loop {
        if let Some(reason) = stops.reason() {
            break reason;
        }
        let now = clock.now();
        if now >= schedule.deadline {
            break EndReason::Duration;
        }
        let mut has_room = true;
        while schedule.next_due().is_some_and(|due| due <= now) {
            let free = desk.borrow_mut().free.pop();
            let free = free.or_else(|| {
                let (slot, session) = sessions.next()?;
                desk.borrow_mut().jobs.push((None, None));
                slots.push(serve(&desk, slot, session, Executor::new(facts, &listed, patience)));
                Some(slot)
            });
            has_room = free.is_some();
            let Some(slot) = free else { break };
            let Some(job) = schedule.take_due(now) else {
                desk.borrow_mut().free.push(slot);
                break;
            };
            let (hash, since_start) = (fingerprint(&job.op), Some(job.at.since(started)));
            let number = schedule.lanes[job.lane].issued_count;
            shared.borrow_mut().note_planned(job.worker, number, hash, since_start);
            desk.borrow_mut().assign(slot, job);
        }
        if desk.borrow().under_way == 0 && schedule.lanes.iter().all(|lane| lane.is_done) {
            break EndReason::OutOfWork;
        }
        let due = schedule.next_due().filter(|_| has_room);
        let until = due.unwrap_or(schedule.deadline).min(now.after(STOP_CHECK));
        poll_fn(|context| {
            // Slots never end; this lets those go on that can.
            let _ = slots.poll_next_unpin(context);
            if desk.borrow().has_no_news() {
                return timer.poll_until(context, clock, until);
            }
            Poll::Ready(())
        })
        .await;
        keep_ended(&desk, &mut schedule, shared);
    };
    let over = clock.now().min(schedule.deadline);
    poll_fn(|context| {
        let _ = slots.poll_next_unpin(context);
        if desk.borrow().under_way == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    keep_ended(&desk, &mut schedule, shared);
    shared.borrow_mut().note_skipped(schedule.count_skipped(over));
    reason
}

/// Keeps what has ended, and tells the streams what became of it.
fn keep_ended(desk: &RefCell<Desk>, schedule: &mut Schedule, shared: &RefCell<Shared<'_>>) {
    let mut desk = desk.borrow_mut();
    if let Some(settled) = desk.settled.take() {
        shared.borrow_mut().note_settled(settled);
    }
    for (job, mut finished) in desk.ended.drain(..) {
        let lane = &mut schedule.lanes[job.lane];
        lane.stream.completed(&job.op, finished.record.outcome.is_ok());
        if let Some(versions) = &mut lane.versions {
            versions.completed(&job.op, finished.server_name.take());
        }
        shared.borrow_mut().keep(finished);
    }
}

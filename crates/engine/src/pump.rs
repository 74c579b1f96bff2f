//! The async loop: sessions of one thread that ask a source for their operations, do them, and tell
//! it how they ended.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::mem;
use std::rc::Rc;
use std::task::Poll;

use futures::stream::{FuturesUnordered, StreamExt};
use plimsoll_driver::Settled;
use plimsoll_model::{Clock, EndReason, SharedClock};
use tokio::runtime::Runtime;

use crate::clock::{STOP_CHECK, Timer, Waiting};
use crate::source::{OpSource, Performed, Step};
use crate::sources::arrivals::Schedule;

/// Operations that never suspend are interrupted after this many, so that other workers get their
/// turn.
const BURST_MAX: u32 = 64;

/// Returns the runtime of one thread.
pub(crate) fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Does operations of one kind of source on one session.
pub(crate) trait Performer {
    /// An operation.
    type Op;
    /// What it comes to.
    type Done;

    /// Does an operation to its end.
    fn perform(&mut self, op: &Self::Op) -> impl Future<Output = Self::Done>;

    /// Cleans up behind an operation that failed.
    fn settle(&mut self) -> impl Future<Output = Settled>;
}

/// How a loop waits.
#[derive(Clone, Copy)]
pub(crate) struct LoopTime<'a> {
    pub(crate) clock: &'a SharedClock,
    pub(crate) waiting: &'a Waiting,
}

/// Does the operations of `source` on one session until it is over, and returns why it is.
/// `settled` is told what was cleaned up.
pub(crate) async fn serve<Q, P>(
    time: LoopTime<'_>,
    mut source: Q,
    mut performer: P,
    settled: impl Fn(Settled),
) -> EndReason
where
    Q: OpSource,
    P: Performer<Op = Q::Op, Done = Q::Done>,
{
    let LoopTime { clock, waiting } = time;
    let mut now = clock.now();
    let mut burst = 0;
    loop {
        let step = poll_fn(|context| Poll::Ready(source.next(now, context.waker()))).await;
        let op = match step {
            Step::Start(op) => op,
            Step::Done(reason) => return reason,
            Step::WaitUntil(at) => {
                waiting.suspend_for(at.since(now).min(STOP_CHECK)).await;
                now = clock.now();
                continue;
            }
            Step::SpinUntil(at) => {
                now = waiting.spin(&**clock, at).await;
                continue;
            }
            Step::Blocked => {
                waiting.park(STOP_CHECK).await;
                now = clock.now();
                continue;
            }
            Step::Idle => {
                until_woken().await;
                now = clock.now();
                continue;
            }
        };
        let mut done = performer.perform(&op).await;
        let has_failed = done.has_failed();
        now = done.end();
        source.ended(&op, &mut done);
        if has_failed {
            // The operation has ended and the next one has not started, so that this is in the time
            // of neither.
            settled(performer.settle().await);
            now = clock.now();
        }
        burst += 1;
        if burst == BURST_MAX {
            burst = 0;
            tokio::task::yield_now().await;
            now = clock.now();
        }
    }
}

async fn until_woken() {
    let mut is_woken = false;
    poll_fn(|_| if mem::replace(&mut is_woken, true) { Poll::Ready(()) } else { Poll::Pending })
        .await;
}

/// Carries the operations of a schedule on `sessions`, which are taken into use as they are needed,
/// until it is over and those under way have ended. `serve` runs one of them.
pub(crate) async fn carry<S, F: Future<Output = EndReason>>(
    clock: &dyn Clock,
    timer: &mut Timer,
    schedule: &Rc<RefCell<Schedule<'_, '_>>>,
    sessions: Vec<S>,
    serve: impl Fn(S) -> F,
) -> EndReason {
    let mut sessions = sessions.into_iter();
    let mut serving = FuturesUnordered::new();
    let mut look = clock.now().after(STOP_CHECK);
    let mut over = None;
    poll_fn(|context| {
        loop {
            // Lets those go on that can.
            while let Poll::Ready(Some(_)) = serving.poll_next_unpin(context) {}
            let now = clock.now();
            if over.is_none() {
                over = schedule.borrow().over(now).map(|reason| (reason, now));
            }
            if over.is_some() {
                if serving.is_empty() {
                    return Poll::Ready(());
                }
                if schedule.borrow_mut().wake_all() {
                    continue;
                }
                return Poll::Pending;
            }
            let mut until = schedule.borrow().deadline().unwrap_or(look);
            let due = schedule.borrow().next_due();
            if let Some(due) = due {
                if due > now {
                    until = until.min(due);
                } else if schedule.borrow_mut().wake_one() {
                    continue;
                } else if let Some(session) = sessions.next() {
                    serving.push(serve(session));
                    continue;
                }
            }
            if now >= look {
                look = now.after(STOP_CHECK);
            }
            if timer.poll_until(context, clock, until.min(look)).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
    let (reason, at) = over.expect("it was found to be over");
    let at = schedule.borrow().deadline().map_or(at, |deadline| deadline.min(at));
    schedule.borrow_mut().finish(at);
    reason
}

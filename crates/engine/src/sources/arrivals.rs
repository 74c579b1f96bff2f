//! The open loop's operations: each is issued when the schedule wants it, on any free session,
//! whatever became of those before it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::task::Waker;

use plimsoll_model::{EndReason, Moment, WorkerId};
use plimsoll_workload::objects::{ObjectSource, PlannedOp};

use super::{SourceContext, has_unknown_size};
use crate::pacing::{Pacer, Start, Turn};
use crate::records::Finished;
use crate::server_names::VersionNames;
use crate::source::{Issued, OpNames, OpSource, Step};

/// A worker's operations and when they are due.
struct ArrivalStream {
    number: WorkerId,
    stream: ObjectSource,
    pacer: Pacer,
    issued_count: u64,
    /// What versions are called, where operations are about versions.
    versions: VersionNames,
    /// Whether it has no work any more.
    is_done: bool,
}

impl ArrivalStream {
    /// Returns an operation of it as it is issued.
    fn issued(&self, op: PlannedOp, intended: Option<Moment>, stream: usize) -> Issued {
        let is_held = false;
        let name = self.versions.of(&op);
        let names = name.map_or(OpNames::None, |name| OpNames::Version(name.into()));
        Issued { number: self.number, op, names, intended, is_held, stream: stream as u32 }
    }
}

/// The arrivals of a thread's share of a job, for all of its sessions.
pub(crate) struct Schedule<'a, 'd> {
    context: SourceContext<'a, 'd>,
    started: Moment,
    /// Nothing is due at or after this.
    deadline: Option<Moment>,
    streams: Vec<ArrivalStream>,
    due: BinaryHeap<Reverse<(Moment, usize)>>,
    /// What was due before and had to wait for others.
    freed: VecDeque<Issued>,
    /// Sessions without anything to do. The one used last is used next: its connection is the least
    /// likely to be closed.
    idle: Vec<Waker>,
    under_way: usize,
}

impl<'a, 'd> Schedule<'a, 'd> {
    /// Returns the schedule of `workers` in a stage that begins at `started`.
    pub(crate) fn new(
        context: SourceContext<'a, 'd>,
        workers: Vec<(WorkerId, ObjectSource)>,
        started: Moment,
    ) -> Self {
        let facts = context.facts;
        let stream = |(worker, stream)| ArrivalStream {
            number: facts.number(worker),
            stream,
            pacer: facts.pacer(worker, started),
            issued_count: 0,
            versions: facts.version_names(),
            is_done: false,
        };
        let streams: Vec<ArrivalStream> = workers.into_iter().map(stream).collect();
        let deadlines: Option<Vec<Moment>> =
            streams.iter().map(|stream| stream.pacer.deadline()).collect();
        let deadline = deadlines.and_then(|deadlines| deadlines.into_iter().max());
        let (due, freed, idle) = (BinaryHeap::new(), VecDeque::new(), Vec::new());
        let under_way = 0;
        let mut schedule =
            Self { context, started, deadline, streams, due, freed, idle, under_way };
        (0..schedule.streams.len()).for_each(|stream| schedule.set_next(stream));
        schedule
    }

    /// Puts the next arrival of a stream among those that are due.
    fn set_next(&mut self, stream: usize) {
        if let Some(at) = self.streams[stream].pacer.next_due() {
            self.due.push(Reverse((at, stream)));
        } else if self.streams[stream].pacer.has_no_arrival() {
            self.streams[stream].is_done = true;
        }
    }

    /// Returns when the time of all is up, if a time says so.
    pub(crate) fn deadline(&self) -> Option<Moment> {
        self.deadline
    }

    /// Returns when the next operation is due.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        let freed = self.freed.front().and_then(|issued| issued.intended);
        freed.or_else(|| self.due.peek().map(|Reverse((at, _))| *at))
    }

    /// Returns why all is over, once it is.
    pub(crate) fn over(&self, now: Moment) -> Option<EndReason> {
        if let Some(reason) = self.context.facts.stops.reason() {
            return Some(reason);
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Some(EndReason::Duration);
        }
        let is_idle = self.under_way == 0 && self.freed.is_empty();
        let is_done = is_idle && self.streams.iter().all(|stream| stream.is_done);
        is_done.then_some(EndReason::OutOfWork)
    }

    /// Wakes a session that has nothing to do, if there is one.
    pub(crate) fn wake_one(&mut self) -> bool {
        let idle = self.idle.pop();
        idle.map(Waker::wake).is_some()
    }

    /// Wakes all that have nothing to do.
    pub(crate) fn wake_all(&mut self) -> bool {
        let any = !self.idle.is_empty();
        self.idle.drain(..).for_each(Waker::wake);
        any
    }

    /// Takes the next operation that is due by `now`; a stream without operations falls out.
    fn take_due(&mut self, now: Moment) -> Option<Issued> {
        if let Some(freed) = self.freed.pop_front() {
            return Some(freed);
        }
        while self.next_due()? <= now {
            let Reverse((_, at)) = self.due.pop()?;
            let stream = &mut self.streams[at];
            match stream.pacer.turn(now, 0) {
                Turn::Take => {}
                Turn::Over(reason) => {
                    stream.is_done = reason == EndReason::OutOfWork;
                    continue;
                }
                Turn::WaitUntil(until) | Turn::SpinUntil(until) => {
                    self.due.push(Reverse((until, at)));
                    continue;
                }
                Turn::WaitForEnd => unreachable!("a stream is never told what is in flight"),
            }
            // What is due takes the place of another operation: the load is what was asked for.
            let due = stream.stream.due(now);
            let Some(op) = due.or_else(|| stream.stream.next_op()) else {
                stream.is_done = true;
                continue;
            };
            let Start::Now { intended } = stream.pacer.start(&op, now) else {
                stream.stream.withdrawn(&op);
                stream.is_done = true;
                continue;
            };
            stream.issued_count += 1;
            let ArrivalStream { number, issued_count, .. } = *stream;
            let (job, since) = (self.context.facts.job, intended.map(|at| at.since(self.started)));
            let mut records = self.context.records.borrow_mut();
            let what = (op.kind, op.fingerprint());
            records.note_planned(job, number, issued_count, what, since);
            drop(records);
            let admitted = stream.stream.admit(op, intended.unwrap_or(now));
            let issued = admitted.map(|op| stream.issued(op, intended, at));
            self.set_next(at);
            if issued.is_some() {
                return issued;
            }
        }
        None
    }

    /// Hands in what is known at the end, and counts what was due before `over` and never issued,
    /// as far as there was work for it.
    pub(crate) fn finish(&mut self, over: Moment) {
        // A replay, which is all that holds operations back, is measured from its beginning on.
        let mut skipped = self.freed.len() as u64;
        let job = self.context.facts.job;
        for ArrivalStream { stream, pacer, is_done, .. } in &mut self.streams {
            // What is drawn from here on is never done.
            self.context.records.borrow_mut().note_changes(job, stream.changes());
            if *is_done {
                pacer.out_of_work();
            }
            let mut due = pacer.due_by(over);
            skipped += stream.held_count();
            if stream.may_end() {
                let mut take = || {
                    let op = stream.next_op();
                    op.inspect(|op| stream.completed(op, true, over)).is_some()
                };
                due = (0..due).take_while(|_| take()).count() as u64;
            }
            skipped += pacer.take_skipped(over, due);
            self.context.records.borrow_mut().note_offered(job, pacer.offered());
        }
        self.context.records.borrow_mut().note_skipped(job, skipped);
    }
}

impl OpSource for Schedule<'_, '_> {
    type Op = Issued;
    type Done = Finished;

    fn next(&mut self, now: Moment, waker: &Waker) -> Step<Issued> {
        if let Some(reason) = self.over(now) {
            return Step::Done(reason);
        }
        let Some(issued) = self.take_due(now) else {
            self.idle.push(waker.clone());
            return Step::Idle;
        };
        self.under_way += 1;
        // One session wakes the next where more than one operation is due.
        if self.next_due().is_some_and(|due| due <= now) {
            self.wake_one();
        }
        Step::Start(issued)
    }

    fn ended(&mut self, issued: &Issued, finished: &mut Finished) {
        self.under_way -= 1;
        let stream = &mut self.streams[issued.stream as usize];
        let (ok, end) = (finished.record.outcome.is_ok(), finished.record.end);
        stream.stream.completed(&issued.op, ok, end);
        if has_unknown_size(&issued.op) {
            stream.pacer.moved(finished.record.bytes);
        }
        let name = stream.versions.completed(&issued.op, finished.server_name.take());
        while let Some((op, due)) = stream.stream.take_freed() {
            let freed = stream.issued(op, Some(due), issued.stream as usize);
            self.freed.push_back(Issued { is_held: true, ..freed });
        }
        let mut records = self.context.records.borrow_mut();
        if let Some(name) = name {
            records.note_name(self.context.facts.job, name);
        }
        records.keep_held(finished, issued.is_held);
    }
}

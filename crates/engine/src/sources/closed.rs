//! The operations of one worker in a closed or capped loop.

use std::task::Waker;

use plimsoll_model::{EndReason, ErrorClass, Moment, OpKind, WorkerId};
use plimsoll_workload::objects::{ObjectSource, PlannedOp};

use super::{SourceContext, has_unknown_size, is_away};
use crate::pacing::{Pacer, Start, Turn};
use crate::records::Finished;
use crate::server_names::VersionNames;
use crate::source::{Issued, OpNames, OpSource, Step};

/// One worker's operations as they are planned, at the pace that is asked for.
pub(crate) struct PlannedOps<'a, 'd> {
    pub(crate) context: SourceContext<'a, 'd>,
    pub(crate) worker: WorkerId,
    /// Its number in the stage.
    number: WorkerId,
    stream: ObjectSource,
    pacer: Pacer,
    /// Drawn from the stream but not yet due.
    pending: Option<PlannedOp>,
    started_count: u64,
}

impl<'a, 'd> PlannedOps<'a, 'd> {
    /// Returns those of a worker in a stage that begins at `started`.
    pub(crate) fn new(
        context: SourceContext<'a, 'd>,
        (worker, stream): (WorkerId, ObjectSource),
        started: Moment,
    ) -> Self {
        let facts = context.facts;
        Self {
            context,
            worker,
            number: facts.number(worker),
            stream,
            pacer: facts.pacer(worker, started),
            pending: None,
            started_count: 0,
        }
    }

    /// Returns when the worker's time is up, if a time says so.
    pub(crate) fn deadline(&self) -> Option<Moment> {
        self.pacer.deadline()
    }

    /// Returns the next operation, or what to wait for. What is returned is as good as begun.
    #[inline]
    pub(super) fn next(&mut self, now: Moment) -> Step<PlannedOp> {
        if let Some(reason) = self.context.facts.stops.reason() {
            return Step::Done(reason);
        }
        match self.pacer.turn(now, 0) {
            Turn::Take => {}
            Turn::WaitUntil(at) => return Step::WaitUntil(at),
            Turn::SpinUntil(at) => return Step::SpinUntil(at),
            Turn::WaitForEnd => return Step::Blocked,
            Turn::Over(reason) => return Step::Done(reason),
        }
        if let Some(op) = self.stream.due(now) {
            // It is owed, and counts towards no limit.
            return self.begin(op);
        }
        let Some(op) = self.pending.take().or_else(|| self.stream.next_op()) else {
            return Step::Done(EndReason::OutOfWork);
        };
        match self.pacer.start(&op, now) {
            Start::Now { .. } => {}
            Start::At(at) => {
                self.pending = Some(op);
                return Step::WaitUntil(at);
            }
            Start::Never => {
                self.stream.withdrawn(&op);
                return Step::Done(EndReason::OutOfWork);
            }
        }
        self.begin(op)
    }

    #[inline]
    fn begin(&mut self, op: PlannedOp) -> Step<PlannedOp> {
        let mut records = self.context.records.borrow_mut();
        let job = self.context.facts.job;
        let what = (op.kind, op.fingerprint());
        records.note_planned(job, self.number, self.started_count, what, None);
        self.started_count += 1;
        Step::Start(op)
    }

    /// Takes note of how an operation ended, or that it did not come about.
    #[inline]
    pub(super) fn ended(&mut self, op: &PlannedOp, outcome: ErrorClass, bytes: u64, end: Moment) {
        self.stream.completed(op, outcome.is_ok(), end);
        // The stream leaves out the rest of an upload that failed.
        let same = |pending: &PlannedOp| pending.subject.object_id() == op.subject.object_id();
        if op.kind == OpKind::PutPart && !outcome.is_ok() && self.pending.as_ref().is_some_and(same)
        {
            self.pending = None;
        }
        if has_unknown_size(op) {
            self.pacer.moved(bytes);
        }
        if is_away(outcome) {
            self.pacer.backs_off(end);
        } else {
            self.pacer.went_on();
        }
    }
}

impl Drop for PlannedOps<'_, '_> {
    /// Says what the worker has changed about who is in its sets.
    fn drop(&mut self) {
        let facts = self.context.facts;
        if let Some(op) = self.pending.take() {
            self.stream.withdrawn(&op);
        }
        self.context.records.borrow_mut().note_changes(facts.job, self.stream.changes());
    }
}

/// A worker that does one operation after the other.
pub(crate) struct ClosedWorker<'a, 'd> {
    ops: PlannedOps<'a, 'd>,
    versions: VersionNames,
}

impl<'a, 'd> ClosedWorker<'a, 'd> {
    pub(crate) fn new(ops: PlannedOps<'a, 'd>) -> Self {
        let versions = ops.context.facts.version_names();
        Self { ops, versions }
    }
}

impl OpSource for ClosedWorker<'_, '_> {
    type Op = Issued;
    type Done = Finished;

    #[inline]
    fn next(&mut self, now: Moment, _: &Waker) -> Step<Issued> {
        let PlannedOps { number, .. } = self.ops;
        let step = self.ops.next(now);
        let versions = &self.versions;
        let stream = &mut self.ops.stream;
        step.map(|op| {
            // Whatever comes before it has ended.
            let op = stream.admit(op, now).unwrap_or(op);
            let names =
                versions.of(&op).map_or(OpNames::None, |name| OpNames::Version(name.into()));
            Issued { number, op, names, intended: None, is_held: false, stream: 0 }
        })
    }

    #[inline]
    fn ended(&mut self, issued: &Issued, finished: &mut Finished) {
        let context = self.ops.context;
        let mut records = context.records.borrow_mut();
        if let Some(name) = self.versions.completed(&issued.op, finished.server_name.take()) {
            records.note_name(context.facts.job, name);
        }
        let record = &finished.record;
        self.ops.ended(&issued.op, record.outcome, record.bytes, record.end);
        records.keep(finished);
    }
}

//! One object that all workers upload in parts together: whoever comes first begins it, whoever is
//! done last completes it.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use plimsoll_model::{EndReason, Moment, OpKind};
use plimsoll_workload::objects::{PlannedOp, UploadPlan};
use plimsoll_workload::plan::Work;

use super::closed::PlannedOps;
use super::uploads::{Parts, name_of};
use crate::job::JobFacts;
use crate::records::Finished;
use crate::source::{Issued, OpNames, OpSource, Step};

/// The upload that the workers of a job share, on whatever threads they are.
#[derive(Debug)]
pub(crate) struct SharedUpload(Mutex<Shared>);

#[derive(Debug)]
struct Shared {
    state: State,
    parts: Parts,
    /// Workers that still take part.
    left: u32,
    waiting: Vec<Waker>,
}

#[derive(Clone, Debug)]
enum State {
    NotBegun,
    Beginning,
    Open(Arc<str>),
    /// It is being completed.
    Ending(Arc<str>),
    /// It could not be completed, and is to be given up.
    Lost(Arc<str>),
    /// It is done or given up, or was never begun.
    Over,
}

impl SharedUpload {
    /// Returns the upload of a job; `None` where its workers upload no object together.
    pub(crate) fn new(facts: &JobFacts<'_>) -> Option<Self> {
        let (Some(UploadPlan::Together), Work::Fill { sets, .. }) =
            (facts.work.upload(), &facts.work.work)
        else {
            return None;
        };
        let object = facts.work.set(sets[0]).id(0);
        let parts = Parts::new(sets[0], object, facts.work.upload_of(sets[0], object));
        let left = facts.workers.len() as u32;
        let waiting = Vec::new();
        Some(Self(Mutex::new(Shared { state: State::NotBegun, parts, left, waiting })))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn set(&mut self, state: State) {
        self.state = state;
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

/// One worker's share of it.
pub(crate) struct UploadShare<'a, 'd> {
    ops: PlannedOps<'a, 'd>,
    upload: &'a SharedUpload,
    /// Why the worker takes part no longer, once that is so.
    over: Option<EndReason>,
}

impl<'a, 'd> UploadShare<'a, 'd> {
    pub(crate) fn new(ops: PlannedOps<'a, 'd>, upload: &'a SharedUpload) -> Self {
        Self { ops, upload, over: None }
    }

    fn step(&mut self, now: Moment, waker: &Waker) -> Step<(PlannedOp, OpNames)> {
        let mut shared = self.upload.lock();
        let stop = self.ops.context.facts.stops.reason();
        match (shared.state.clone(), self.over) {
            // It was the last one, and could not complete what it was to.
            (State::Lost(name), Some(_)) => {
                shared.set(State::Over);
                Step::Start((shared.parts.whole(OpKind::AbortUpload), OpNames::Upload(name)))
            }
            (_, Some(reason)) => Step::Done(reason),
            // Whoever was to begin may be gone, with the thread that it was on.
            (State::NotBegun | State::Beginning, None) if let Some(reason) = stop => {
                self.leave(&mut shared, reason)
            }
            (State::NotBegun, None) => {
                shared.state = State::Beginning;
                Step::Start((shared.parts.whole(OpKind::CreateUpload), OpNames::None))
            }
            (State::Beginning, None) => {
                shared.waiting.push(waker.clone());
                Step::Blocked
            }
            (State::Open(_), None) if shared.parts.is_failed => {
                self.leave(&mut shared, EndReason::OutOfWork)
            }
            (State::Open(name), None) => match self.ops.next(now) {
                Step::Start(part) => Step::Start((part, OpNames::Upload(name))),
                Step::Done(reason) => self.leave(&mut shared, reason),
                Step::WaitUntil(at) => Step::WaitUntil(at),
                Step::SpinUntil(at) => Step::SpinUntil(at),
                Step::Blocked | Step::Idle => Step::Blocked,
            },
            (State::Ending(_) | State::Lost(_) | State::Over, None) => {
                Step::Done(stop.unwrap_or_default())
            }
        }
    }

    /// Takes part no longer; who leaves last completes the upload, or gives it up.
    fn leave(&mut self, shared: &mut Shared, reason: EndReason) -> Step<(PlannedOp, OpNames)> {
        self.over = Some(reason);
        shared.left -= 1;
        let State::Open(name) = &shared.state else { return Step::Done(reason) };
        if shared.left > 0 {
            return Step::Done(reason);
        }
        let name = Arc::clone(name);
        let ending = shared.parts.ending(Arc::clone(&name));
        shared.state = match ending.0.kind {
            OpKind::CompleteUpload => State::Ending(name),
            _ => State::Over,
        };
        Step::Start(ending)
    }
}

impl OpSource for UploadShare<'_, '_> {
    type Op = Issued;
    type Done = Finished;

    fn next(&mut self, now: Moment, waker: &Waker) -> Step<Issued> {
        let worker = self.ops.worker;
        let number = self.ops.context.facts.number(worker);
        self.step(now, waker).map(|(op, names)| Issued {
            number,
            op,
            names,
            intended: None,
            is_held: false,
            stream: 0,
        })
    }

    fn ended(&mut self, issued: &Issued, finished: &mut Finished) {
        let server_name = name_of(finished);
        let record = finished.record;
        self.ops.context.records.borrow_mut().keep(finished);
        let mut shared = self.upload.lock();
        match issued.op.kind {
            OpKind::CreateUpload => {
                let state = server_name.map_or(State::Over, |name| State::Open(name.into()));
                shared.set(state);
            }
            OpKind::PutPart => shared.parts.written(&issued.op, server_name),
            OpKind::CompleteUpload => {
                if let State::Ending(name) = mem::replace(&mut shared.state, State::Over)
                    && !record.outcome.is_ok()
                {
                    shared.state = State::Lost(name);
                }
            }
            _ => {}
        }
        drop(shared);
        if issued.op.kind == OpKind::PutPart {
            self.ops.ended(&issued.op, record.outcome, record.bytes, record.end);
        }
    }
}

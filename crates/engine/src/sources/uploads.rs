//! Objects that are uploaded in parts, one after the other: begun, their parts written at the same
//! time, completed. Every request of it is an operation of its own. What cannot be completed is
//! given up.

use std::cell::RefCell;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use plimsoll_model::{EndReason, ErrorClass, Moment, ObjectId, OpKind, WorkerId};
use plimsoll_workload::objects::{ObjectRef, PlannedOp, Subject};
use plimsoll_workload::plan::SetIndex;

use super::closed::PlannedOps;
use crate::records::Finished;
use crate::source::{Issued, OpNames, OpSource, Step, UploadParts};

/// The parts that an upload has so far.
#[derive(Debug)]
pub(super) struct Parts {
    set: SetIndex,
    object: ObjectId,
    size: u64,
    /// By part: how the store names it. Empty for those that are not there.
    server_names: Vec<String>,
    pub(super) is_failed: bool,
}

impl Parts {
    /// Returns an upload of that size in so many parts, none of which is there.
    pub(super) fn new(set: SetIndex, object: ObjectId, (size, count): (u64, u64)) -> Self {
        let server_names = vec![String::new(); count as usize];
        Self { set, object, size, server_names, is_failed: false }
    }

    /// Returns an operation on the whole upload.
    pub(super) fn whole(&self, kind: OpKind) -> PlannedOp {
        let object = ObjectRef::newest(self.object, Some(self.size), 0);
        PlannedOp { kind, set: self.set, subject: Subject::Object(object, None) }
    }

    /// Takes note of a part that was written, under that name if it was.
    pub(super) fn written(&mut self, op: &PlannedOp, server_name: Option<Box<str>>) {
        let Subject::Part { number, .. } = op.subject else {
            unreachable!("only parts are written")
        };
        match server_name {
            Some(server_name) => self.server_names[number as usize - 1] = server_name.into(),
            None => self.is_failed = true,
        }
    }

    /// Returns what ends the upload: its completion where it has all its parts.
    pub(super) fn ending(&mut self, name: Arc<str>) -> (PlannedOp, OpNames) {
        if self.server_names.iter().any(String::is_empty) {
            return (self.whole(OpKind::AbortUpload), OpNames::Upload(name));
        }
        let of = UploadParts { upload: name, parts: self.server_names.clone().into() };
        (self.whole(OpKind::CompleteUpload), OpNames::Parts(of.into()))
    }
}

/// Returns how the store names what came of an operation, where it succeeded.
pub(super) fn name_of(finished: &mut Finished) -> Option<Box<str>> {
    finished.server_name.take().filter(|_| finished.record.outcome.is_ok())
}

/// Where an upload stands.
#[derive(Debug)]
enum State {
    /// There is none.
    None,
    /// It is being begun; this part comes first.
    Beginning { first: PlannedOp },
    Open {
        name: Arc<str>,
        /// Its first part, until a session takes it.
        first: Option<PlannedOp>,
        /// Parts that a session has taken.
        taken: usize,
        under_way: u32,
    },
    /// It is being completed.
    Ending(Arc<str>),
    /// It could not be completed, and is to be given up.
    Lost(Arc<str>),
    /// It is being given up.
    Aborting,
}

/// The uploads of one worker, shared by the sessions that write its parts.
pub(crate) struct Uploads<'a, 'd> {
    ops: PlannedOps<'a, 'd>,
    state: State,
    parts: Parts,
    /// Why no more parts come, once that is so.
    over: Option<EndReason>,
    waiting: Vec<Waker>,
}

/// One session of them.
pub(crate) struct PartSession<'a, 'd> {
    uploads: Rc<RefCell<Uploads<'a, 'd>>>,
    /// Its number in the stage.
    number: WorkerId,
}

impl<'a, 'd> Uploads<'a, 'd> {
    /// Returns the sessions that upload what is planned for a worker.
    pub(crate) fn sessions(ops: PlannedOps<'a, 'd>) -> Vec<PartSession<'a, 'd>> {
        let facts = ops.context.facts;
        let first = facts.number(ops.worker);
        let parts = Parts::new(SetIndex(0), ObjectId::new(ops.worker, 0), (0, 0));
        let uploads = Self { ops, state: State::None, parts, over: None, waiting: Vec::new() };
        let uploads = Rc::new(RefCell::new(uploads));
        let session =
            |index| PartSession { uploads: Rc::clone(&uploads), number: WorkerId(first.0 + index) };
        (0..facts.sessions_each()).map(session).collect()
    }

    fn next(&mut self, now: Moment, waker: &Waker) -> Step<(PlannedOp, OpNames)> {
        loop {
            match &mut self.state {
                State::None => {
                    if let Some(reason) = self.over {
                        return Step::Done(reason);
                    }
                    let first = match self.take_planned(now) {
                        Step::Start(first) => first,
                        Step::Done(reason) => return Step::Done(reason),
                        Step::WaitUntil(at) => return Step::WaitUntil(at),
                        Step::SpinUntil(at) => return Step::SpinUntil(at),
                        Step::Blocked | Step::Idle => return self.block(waker),
                    };
                    self.parts = self.new_parts(&first);
                    self.state = State::Beginning { first };
                    return Step::Start((self.parts.whole(OpKind::CreateUpload), OpNames::None));
                }
                State::Open { name, first, taken, under_way } => {
                    let all_taken = *taken == self.parts.server_names.len();
                    if self.parts.is_failed || self.over.is_some() || all_taken {
                        if *under_way > 0 {
                            return self.block(waker);
                        }
                        let name = Arc::clone(name);
                        let ending = self.parts.ending(Arc::clone(&name));
                        self.state = match ending.0.kind {
                            OpKind::CompleteUpload => State::Ending(name),
                            _ => State::Aborting,
                        };
                        return Step::Start(ending);
                    }
                    let name = OpNames::Upload(Arc::clone(name));
                    let first = first.take();
                    let part = match first.map_or_else(|| self.take_planned(now), Step::Start) {
                        Step::Start(part) => part,
                        Step::Done(_) => continue,
                        Step::WaitUntil(at) => return Step::WaitUntil(at),
                        Step::SpinUntil(at) => return Step::SpinUntil(at),
                        Step::Blocked | Step::Idle => return self.block(waker),
                    };
                    debug_assert_eq!(part.subject.object_id(), Some(self.parts.object));
                    if let State::Open { taken, under_way, .. } = &mut self.state {
                        (*taken, *under_way) = (*taken + 1, *under_way + 1);
                    }
                    return Step::Start((part, name));
                }
                State::Lost(name) => {
                    let name = OpNames::Upload(Arc::clone(name));
                    self.state = State::Aborting;
                    return Step::Start((self.parts.whole(OpKind::AbortUpload), name));
                }
                State::Beginning { .. } | State::Ending(_) | State::Aborting => {
                    return self.block(waker);
                }
            }
        }
    }

    /// Returns the next part that is planned, and keeps why there is none any more.
    fn take_planned(&mut self, now: Moment) -> Step<PlannedOp> {
        let step = self.ops.next(now);
        if let Step::Done(reason) = step {
            self.over = Some(reason);
        }
        step
    }

    fn new_parts(&self, first: &PlannedOp) -> Parts {
        let object = first.subject.object_id().expect("a part is of an object");
        let size = self.ops.context.facts.work.upload_of(first.set, object);
        Parts::new(first.set, object, size)
    }

    fn block<O>(&mut self, waker: &Waker) -> Step<O> {
        self.waiting.push(waker.clone());
        Step::Blocked
    }

    fn ended(&mut self, op: &PlannedOp, finished: &mut Finished) {
        let server_name = name_of(finished);
        let (outcome, end): (ErrorClass, Moment) = (finished.record.outcome, finished.record.end);
        self.ops.context.records.borrow_mut().keep(finished);
        self.state = match mem::replace(&mut self.state, State::None) {
            State::Beginning { first } => match server_name {
                Some(name) => {
                    State::Open { name: name.into(), first: Some(first), taken: 0, under_way: 0 }
                }
                None => {
                    self.ops.ended(&first, outcome, 0, end);
                    State::None
                }
            },
            State::Open { name, first, taken, under_way } => {
                // Parts of an upload that has failed already say nothing new.
                if !self.parts.is_failed {
                    self.ops.ended(op, outcome, 0, end);
                }
                self.parts.written(op, server_name);
                self.state = State::Open { name, first, taken, under_way: under_way - 1 };
                // Who ended this one goes on with whatever comes next.
                return;
            }
            State::Ending(name) if !outcome.is_ok() => {
                self.ops.ended(op, outcome, 0, end);
                State::Lost(name)
            }
            State::Ending(_) | State::Aborting => State::None,
            State::None | State::Lost(_) => unreachable!("nothing of an upload was under way"),
        };
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

impl OpSource for PartSession<'_, '_> {
    type Op = Issued;
    type Done = Finished;

    fn next(&mut self, now: Moment, waker: &Waker) -> Step<Issued> {
        let mut uploads = self.uploads.borrow_mut();
        let number = self.number;
        uploads.next(now, waker).map(|(op, names)| Issued {
            number,
            op,
            names,
            intended: None,
            is_held: false,
            stream: 0,
        })
    }

    fn ended(&mut self, issued: &Issued, finished: &mut Finished) {
        self.uploads.borrow_mut().ended(&issued.op, finished);
    }
}

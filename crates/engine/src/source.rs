//! The contract between what knows which operation is next and the loop that does it.
//!
//! A source is asked by a session that has nothing to do and told how each operation ended. It does
//! no IO and reads no clock, so that one worker, an open schedule, an upload in parts or a check
//! are driven by the same loop.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use plimsoll_model::{EndReason, Moment, WorkerId};
use plimsoll_workload::objects::PlannedOp;

/// What a session does next.
#[derive(Debug)]
pub(crate) enum Step<O> {
    /// Does this operation now.
    Start(O),
    /// Asks again at this moment.
    WaitUntil(Moment),
    /// Keeps the processor busy until then, and asks again.
    SpinUntil(Moment),
    /// Asks again when it is woken, or when it is time to look whether to stop.
    Blocked,
    /// Asks again when it is woken, which it is at the end as well.
    Idle,
    /// It is over.
    Done(EndReason),
}

impl<O> Step<O> {
    /// Returns the step with another operation.
    #[inline]
    pub(crate) fn map<P>(self, map: impl FnOnce(O) -> P) -> Step<P> {
        match self {
            Self::Start(op) => Step::Start(map(op)),
            Self::WaitUntil(at) => Step::WaitUntil(at),
            Self::SpinUntil(at) => Step::SpinUntil(at),
            Self::Blocked => Step::Blocked,
            Self::Idle => Step::Idle,
            Self::Done(reason) => Step::Done(reason),
        }
    }
}

/// Gives operations to sessions and takes note of what becomes of them.
pub(crate) trait OpSource {
    /// An operation.
    type Op;
    /// What an operation came to.
    type Done: Performed;

    /// Returns what a session does at `now`; `waker` wakes it where it has to wait for others.
    fn next(&mut self, now: Moment, waker: &Waker) -> Step<Self::Op>;

    /// Takes note of what became of an operation.
    fn ended(&mut self, op: &Self::Op, done: &mut Self::Done);
}

/// What an operation came to, as far as the loop goes.
pub(crate) trait Performed {
    /// Returns when it ended.
    fn end(&self) -> Moment;

    /// Tells whether something may be left behind it.
    fn has_failed(&self) -> bool;
}

impl<Q: OpSource> OpSource for Rc<RefCell<Q>> {
    type Op = Q::Op;
    type Done = Q::Done;

    fn next(&mut self, now: Moment, waker: &Waker) -> Step<Self::Op> {
        self.borrow_mut().next(now, waker)
    }

    fn ended(&mut self, op: &Self::Op, done: &mut Self::Done) {
        self.borrow_mut().ended(op, done);
    }
}

/// An operation of a workload that is to be done.
#[derive(Debug)]
pub(crate) struct Issued {
    /// Under which number of the stage it is recorded.
    pub(crate) number: WorkerId,
    pub(crate) op: PlannedOp,
    pub(crate) names: OpNames,
    /// When the schedule wanted it, where there is one.
    pub(crate) intended: Option<Moment>,
    /// Whether it had to wait for another on its object, which is none of the schedule's fault.
    pub(crate) is_held: bool,
    /// Which of the source's streams it is from.
    pub(crate) stream: u32,
}

/// What the store calls that which an operation is about.
#[derive(Clone, Debug, Default)]
pub(crate) enum OpNames {
    /// Nothing; the key says all.
    #[default]
    None,
    /// A version.
    Version(Box<str>),
    /// An upload.
    Upload(Arc<str>),
    /// An upload that is to be completed, and its parts.
    Parts(Box<UploadParts>),
}

impl OpNames {
    pub(crate) fn as_version(&self) -> Option<&str> {
        if let Self::Version(name) = self { Some(name) } else { None }
    }

    pub(crate) fn as_upload(&self) -> &str {
        match self {
            Self::Upload(name) => name,
            Self::Parts(of) => &of.upload,
            Self::None | Self::Version(_) => unreachable!("parts are of an upload"),
        }
    }
}

/// What the store calls an upload and its parts.
#[derive(Clone, Debug)]
pub(crate) struct UploadParts {
    pub(crate) upload: Arc<str>,
    /// Those of part 1, 2, ... in order.
    pub(crate) parts: Arc<[String]>,
}

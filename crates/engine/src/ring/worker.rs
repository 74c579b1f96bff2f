//! One worker on files: which of its operations comes next, and what becomes of them. No IO, no
//! clock.

use plimsoll_driver::Handle;
use plimsoll_model::{EndReason, EndpointId, JobId, Moment, WorkerId};
use plimsoll_workload::files::{FileOp, FileStream};

use crate::pacing::{Pacer, Start, Turn};

/// What a worker does next.
#[derive(Clone, Copy, Debug)]
pub(super) enum FileStep {
    /// Issue this operation now; `intended` is when the schedule wanted it, where there is one.
    Start { op: FileOp, intended: Option<Moment> },
    /// Ask again at this moment.
    WaitUntil(Moment),
    /// Keep the processor busy until then, and ask again.
    SpinUntil(Moment),
    /// Ask again when one of its own operations has ended.
    WaitForEnd,
    /// It is over.
    Done(EndReason),
}

/// One worker of one job.
pub(super) struct FileWorker {
    /// Its number in the stage.
    pub(super) number: WorkerId,
    pub(super) job: JobId,
    /// The address of its target, as records name it.
    pub(super) endpoint: EndpointId,
    pub(super) stream: FileStream,
    pub(super) pacer: Pacer,
    /// Its files by their index in the table, in that order.
    pub(super) files: Vec<(u32, Handle)>,
    /// The directory to which its names belong.
    pub(super) directory: Option<Handle>,
    /// Slots of the ring that are its own and have nothing under way.
    pub(super) free: Vec<usize>,
    pub(super) in_flight: usize,
    /// How many operations went out.
    pub(super) issued_count: u64,
    /// Drawn from the stream but not yet due.
    pub(super) pending: Option<FileOp>,
    /// Why nothing comes any more but what ends the job, once that is so.
    pub(super) over: Option<EndReason>,
    /// Operations that were due and never issued.
    pub(super) skipped_count: u64,
}

impl FileWorker {
    /// Returns the handle of a file of its own.
    #[inline]
    pub(super) fn handle(&self, file: u32) -> Handle {
        if let [(_, only)] = self.files[..] {
            return only;
        }
        let at = self.files.binary_search_by_key(&file, |(file, _)| *file);
        self.files[at.expect("a stream asks only for files of its own")].1
    }

    /// Returns what to do at `now`.
    #[inline]
    pub(super) fn next(&mut self, now: Moment) -> FileStep {
        match self.pacer.turn(now, self.in_flight) {
            Turn::Take => {}
            Turn::WaitUntil(at) => return FileStep::WaitUntil(at),
            Turn::SpinUntil(at) => return FileStep::SpinUntil(at),
            Turn::WaitForEnd => return FileStep::WaitForEnd,
            Turn::Over(reason) => return self.end(reason),
        }
        // What is to be put on the medium has to be written first.
        if self.in_flight > 0 && self.pending.is_none() && self.stream.must_drain() {
            return FileStep::WaitForEnd;
        }
        let Some(op) = self.pending.take().or_else(|| self.stream.next_op()) else {
            if self.stream.is_seeking() {
                return FileStep::WaitUntil(now);
            }
            self.pacer.out_of_work();
            return FileStep::Done(EndReason::OutOfWork);
        };
        match self.pacer.start(&op, now) {
            Start::Now { intended } => FileStep::Start { op, intended },
            Start::At(at) => {
                self.pending = Some(op);
                FileStep::WaitUntil(at)
            }
            Start::Never => {
                self.pending = Some(op);
                self.end(EndReason::OutOfWork)
            }
        }
    }

    /// Returns what is left to do when the worker is over: what ends the job.
    #[cold]
    fn end(&mut self, reason: EndReason) -> FileStep {
        if self.over.is_none() {
            match reason {
                EndReason::Duration => self.count_skipped(Moment::from_ns(u64::MAX)),
                _ => self.pacer.out_of_work(),
            }
            self.stream.end();
            if let Some(op) = self.pending.take() {
                self.stream.completed(&op, false);
            }
        }
        let reason = *self.over.get_or_insert(reason);
        if self.in_flight > 0 && self.stream.must_drain() {
            return FileStep::WaitForEnd;
        }
        match self.stream.next_op() {
            Some(op) => FileStep::Start { op, intended: None },
            None => FileStep::Done(reason),
        }
    }

    /// Takes note of how an operation ended at `now`. Blocks are not asked for at once after a
    /// failure; names that are not there are. On a schedule operations come as it says, and a pause
    /// would make what arrives in it late.
    #[inline]
    pub(super) fn completed(&mut self, op: &FileOp, ok: bool, now: Moment) {
        self.stream.completed(op, ok);
        if ok || matches!(op, FileOp::Name(_)) || self.pacer.is_open() {
            self.pacer.went_on();
        } else {
            self.pacer.backs_off(now);
        }
    }

    /// Returns from when to when its operations were due, once none is due any more.
    pub(super) fn offered(&self) -> Option<(Moment, Moment)> {
        self.pacer.offered()
    }

    /// Counts the operations that were due by `over`, or by the worker's own deadline, and never
    /// issued, as far as there was work for them.
    pub(super) fn count_skipped(&mut self, over: Moment) {
        let drawn = u64::from(self.pending.is_some());
        let left = drawn + self.stream.work_left(self.pacer.due_by(over));
        self.skipped_count += self.pacer.take_skipped(over, left);
    }
}

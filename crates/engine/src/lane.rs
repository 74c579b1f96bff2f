//! The operations of one clone in time: which comes next, when it may start, when all is over. No
//! IO, no clock.

use std::time::Duration;

use plimsoll_driver::Handle;
use plimsoll_model::{JobId, Moment, WorkerId};
use plimsoll_workload::files::{
    CapSpec, FileJobSpec, FileOp, FilePacingSpec, FileStream, SpanSpec, ThinkSpec,
};
use plimsoll_workload::{Arrivals, OpenLoop, Random};

use crate::planner::{EndReason, backoff, next_due};
use crate::stage::ScheduleOutcome;

const GAP_DOMAIN: u64 = 0x6761_7073;
const DELAY_DOMAIN: u64 = 0x6465_6c61;

/// Returns how long after its stage's start a worker of `job` begins. It is drawn from the job's
/// range by the seed, so that whoever reads the record knows it as well.
pub fn start_delay(job: &FileJobSpec, seed: u64, worker: WorkerId) -> Duration {
    let SpanSpec { min, max } = job.start_delay_ns;
    let mut draw = Random::new(seed, DELAY_DOMAIN, u64::from(worker.0));
    let delay = min + draw.below(max.saturating_sub(min).saturating_add(1));
    Duration::from_nanos(delay)
}

/// What a lane does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LaneStep {
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

/// A limit on how fast operations of one direction start.
struct Cap {
    limit: CapSpec,
    due: Moment,
}

/// When operations start.
enum Pacer {
    Closed,
    Capped {
        read: Option<Cap>,
        write: Option<Cap>,
        /// Draws the gaps where they are random.
        gaps: Option<Random>,
    },
    Open {
        arrivals: Arrivals,
        /// When the next operation is due.
        next: Option<Moment>,
        kept: ScheduleOutcome,
    },
}

/// Pauses after every so many operations.
struct Thinking {
    spec: ThinkSpec,
    left: u32,
    /// When the pause under way ends, and from when on it is spent computing.
    pause: Option<(Moment, Moment)>,
}

/// One clone of one job.
pub(crate) struct Lane {
    pub(crate) worker: WorkerId,
    pub(crate) job: JobId,
    pub(crate) stream: FileStream,
    /// Its files by their index in the table, in that order.
    pub(crate) files: Vec<(u32, Handle)>,
    /// The directory to which its names belong.
    pub(crate) directory: Option<Handle>,
    /// Slots of the ring that are its own and have nothing under way.
    pub(crate) free: Vec<usize>,
    pub(crate) in_flight: usize,
    /// How many operations went out.
    pub(crate) issued_count: u64,
    begins: Moment,
    deadline: Option<Moment>,
    pacer: Pacer,
    thinking: Option<Thinking>,
    /// Drawn from the stream but not yet due.
    pending: Option<FileOp>,
    /// After failures, when the next operation may start.
    not_before: Option<Moment>,
    failures_in_row: u32,
    /// Whether its time is up.
    is_over: bool,
}

impl Lane {
    /// Returns the lane of clone `clone` of `job`, for a stage that begins at the clock's epoch
    /// until [`Lane::begin`] says otherwise. `open` is its schedule where the job has one.
    pub(crate) fn new(
        (worker, job_id): (WorkerId, JobId),
        stream: FileStream,
        (job, clone, seed): (&FileJobSpec, u32, u64),
        open: Option<&OpenLoop>,
    ) -> Self {
        let begins = Moment::EPOCH.after(start_delay(job, seed, worker));
        let lasts = job.duration_ns.map(|ns| Duration::from_nanos(job.ramp_ns.saturating_add(ns)));
        let cap = |limit: &Option<CapSpec>| limit.map(|limit| Cap { limit, due: begins });
        let pacer = match (&job.pacing, open) {
            (FilePacingSpec::Open { .. }, Some(open)) => {
                let mut arrivals = Arrivals::new(open, seed, job.clones, WorkerId(clone));
                let next = arrivals.next().map(|at| begins.after(at));
                Pacer::Open { arrivals, next, kept: ScheduleOutcome::default() }
            }
            (FilePacingSpec::Capped { read, write, poisson }, _) => {
                let gaps = poisson.then(|| Random::new(seed, GAP_DOMAIN, u64::from(worker.0)));
                Pacer::Capped { read: cap(read), write: cap(write), gaps }
            }
            _ => Pacer::Closed,
        };
        let thinking =
            job.think.map(|spec| Thinking { spec, left: spec.every_ops.max(1), pause: None });
        Self {
            worker,
            job: job_id,
            stream,
            files: Vec::new(),
            directory: None,
            free: Vec::new(),
            in_flight: 0,
            issued_count: 0,
            begins,
            deadline: lasts.map(|lasts| begins.after(lasts)),
            pacer,
            thinking,
            pending: None,
            not_before: None,
            failures_in_row: 0,
            is_over: false,
        }
    }

    /// Has the stage begin at `started`.
    pub(crate) fn begin(&mut self, started: Moment) {
        let later = |at: Moment| at.after(Duration::from_nanos(started.as_ns()));
        self.begins = later(self.begins);
        self.deadline = self.deadline.map(later);
        match &mut self.pacer {
            Pacer::Closed => {}
            Pacer::Capped { read, write, .. } => {
                [read, write].into_iter().flatten().for_each(|cap| cap.due = later(cap.due));
            }
            Pacer::Open { next, .. } => *next = next.map(later),
        }
    }

    /// Returns the handle of a file of its own.
    #[inline]
    pub(crate) fn handle(&self, file: u32) -> Handle {
        if let [(_, only)] = self.files[..] {
            return only;
        }
        let at = self.files.binary_search_by_key(&file, |(file, _)| *file);
        self.files[at.expect("a stream asks only for files of its own")].1
    }

    /// Returns what to do at `now`.
    #[inline]
    pub(crate) fn next(&mut self, now: Moment) -> LaneStep {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return self.end();
        }
        let earliest = self.not_before.map_or(self.begins, |at| at.max(self.begins));
        if earliest > now {
            return LaneStep::WaitUntil(self.in_time(earliest));
        }
        if self.thinking.is_some()
            && let Some(step) = self.think(now)
        {
            return step;
        }
        // What is to be put on the medium has to be written first.
        if self.in_flight > 0 && self.pending.is_none() && self.stream.must_drain() {
            return LaneStep::WaitForEnd;
        }
        let Some(op) = self.pending.take().or_else(|| self.stream.next_op()) else {
            // What arrives from now on finds no work, so it is not offered.
            if let Pacer::Open { next, .. } = &mut self.pacer {
                *next = None;
            }
            return LaneStep::Done(EndReason::OutOfWork);
        };
        if matches!(self.pacer, Pacer::Closed) && self.thinking.is_none() {
            return LaneStep::Start { op, intended: None };
        }
        match self.due(&op) {
            Some(due) if due > now => {
                self.pending = Some(op);
                LaneStep::WaitUntil(self.in_time(due))
            }
            _ => self.start(op, now),
        }
    }

    /// Returns a moment to wait for, which no lane does beyond its deadline.
    fn in_time(&self, at: Moment) -> Moment {
        self.deadline.map_or(at, |deadline| deadline.min(at))
    }

    /// Returns what is left to do when the time is up: what ends the job.
    #[cold]
    fn end(&mut self) -> LaneStep {
        if !self.is_over {
            self.is_over = true;
            if let Some(deadline) = self.deadline {
                self.count_skipped(deadline);
            }
            self.stream.end();
            if let Some(op) = self.pending.take() {
                self.stream.completed(&op, false);
            }
        }
        if self.in_flight > 0 && self.stream.must_drain() {
            return LaneStep::WaitForEnd;
        }
        match self.stream.next_op() {
            Some(op) => LaneStep::Start { op, intended: None },
            None => LaneStep::Done(EndReason::Duration),
        }
    }

    /// Returns what the pause between operations asks for, if anything.
    fn think(&mut self, now: Moment) -> Option<LaneStep> {
        let thinking = self.thinking.as_mut()?;
        if let Some((until, spins_from)) = thinking.pause {
            if now >= until {
                thinking.pause = None;
                return None;
            }
            let sleeps = now < spins_from;
            return Some(if sleeps {
                LaneStep::WaitUntil(self.in_time(spins_from))
            } else {
                LaneStep::SpinUntil(self.in_time(until))
            });
        }
        if thinking.left > 0 {
            return None;
        }
        if self.in_flight > 0 {
            return Some(LaneStep::WaitForEnd);
        }
        thinking.left = thinking.spec.every_ops.max(1);
        let until = now.after(Duration::from_nanos(thinking.spec.pause_ns));
        let sleeps = thinking.spec.pause_ns.saturating_sub(thinking.spec.spin_ns);
        thinking.pause = Some((until, now.after(Duration::from_nanos(sleeps))));
        self.think(now)
    }

    /// Returns when an operation may start, where something says so.
    #[inline]
    fn due(&self, op: &FileOp) -> Option<Moment> {
        match (&self.pacer, op) {
            (Pacer::Closed, _) | (Pacer::Capped { .. }, FileOp::Sync { .. }) => None,
            (Pacer::Capped { read, write, .. }, op) => {
                let cap = if is_write(op) { write } else { read };
                cap.as_ref().map(|cap| cap.due)
            }
            // A stage without arrivals is over at its deadline.
            (Pacer::Open { next, .. }, _) => next.or(self.deadline),
        }
    }

    fn start(&mut self, op: FileOp, now: Moment) -> LaneStep {
        let mut intended = None;
        match &mut self.pacer {
            Pacer::Closed => {}
            Pacer::Capped { read, write, gaps } => {
                let cap = if is_write(&op) { write } else { read };
                if let (Some(cap), false) = (cap, matches!(op, FileOp::Sync { .. })) {
                    let mut gap = match cap.limit {
                        CapSpec::OpsPerSec(rate) => 1.0 / rate,
                        CapSpec::BytesPerSec(rate) => bytes_of(&op) as f64 / rate,
                    };
                    if let Some(random) = gaps {
                        gap *= -(1.0 - random.unit()).ln();
                    }
                    cap.due = next_due(now, cap.due, Duration::from_secs_f64(gap));
                }
            }
            Pacer::Open { arrivals, next, .. } => {
                intended = *next;
                *next = arrivals.next().map(|at| self.begins.after(at));
            }
        }
        if let Some(thinking) = &mut self.thinking {
            thinking.left -= 1;
        }
        LaneStep::Start { op, intended }
    }

    /// Takes note that an operation that was due at `intended` goes out at `start`.
    #[inline]
    pub(crate) fn note_start(&mut self, intended: Moment, start: Moment) {
        if let Pacer::Open { kept, .. } = &mut self.pacer {
            kept.note_start(intended, start);
        }
    }

    /// Returns how the schedule was kept, where there is one.
    pub(crate) fn schedule(&self) -> Option<ScheduleOutcome> {
        match &self.pacer {
            Pacer::Open { kept, .. } => Some(*kept),
            Pacer::Closed | Pacer::Capped { .. } => None,
        }
    }

    /// Takes note of how an operation ended at `now`. Failures without end would come by the
    /// hundred thousand, so blocks are not asked for at once after one; names that are not there
    /// are. On a schedule they come as it says, and a pause would make what arrives in it late.
    #[inline]
    pub(crate) fn completed(&mut self, op: &FileOp, ok: bool, now: Moment) {
        self.stream.completed(op, ok);
        if ok || matches!(op, FileOp::Name(_)) || matches!(self.pacer, Pacer::Open { .. }) {
            self.failures_in_row = 0;
            self.not_before = None;
            return;
        }
        self.not_before = Some(now.after(backoff(self.failures_in_row)));
        self.failures_in_row += 1;
    }

    /// Counts the operations that were due by `over` and never issued, as far as there was work for
    /// them.
    pub(crate) fn count_skipped(&mut self, over: Moment) {
        let Pacer::Open { arrivals, next, kept } = &mut self.pacer else { return };
        let over = self.deadline.map_or(over, |deadline| deadline.min(over));
        let mut due = 0;
        while next.is_some_and(|at| at < over) {
            due += 1;
            *next = arrivals.next().map(|at| self.begins.after(at));
        }
        let drawn = u64::from(self.pending.is_some());
        kept.note_skipped(due.min(drawn + self.stream.work_left(due)));
    }
}

fn is_write(op: &FileOp) -> bool {
    matches!(op, FileOp::Block(block) if block.write)
}

fn bytes_of(op: &FileOp) -> u64 {
    match op {
        FileOp::Block(block) => u64::from(block.len),
        FileOp::Name(name) => u64::from(name.bytes),
        FileOp::Sync { .. } => 0,
    }
}

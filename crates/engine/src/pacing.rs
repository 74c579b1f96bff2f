//! The pacing of one worker: when its next operation may start, and when all is over. The same for
//! objects and files, for the async loop and the ring loop. No IO, no clock.

use std::iter;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{EndReason, Moment, OpKind, StageId, WorkerId};
use plimsoll_workload::files::FileOp;
use plimsoll_workload::objects::{PlannedOp, Subject};
use plimsoll_workload::plan::{Cap, JobPacing, Think};
use plimsoll_workload::trace::TraceTimes;
use plimsoll_workload::{ArrivalLaw, Arrivals, Pacing, Random, mix64, start_delay};

use crate::timing::{JobTiming, MeasuredSpan, OpsLeft, share_of};

const GAP_DOMAIN: u64 = 0x6761_7073;

/// How far a capped worker may catch up after it was held up.
const CATCH_UP_MAX: Duration = Duration::from_secs(1);
/// The pause after the first failure that asks for one.
const BACKOFF_FIRST: Duration = Duration::from_millis(10);
/// The longest such pause; each failure in a row doubles it.
const BACKOFF_MAX: Duration = Duration::from_millis(100);

/// An operation as far as its pacing goes.
pub(crate) trait Paced {
    /// Tells whether a cap holds it back.
    fn is_capped(&self) -> bool;

    /// Tells whether the cap on writes is the one that does.
    fn is_write(&self) -> bool;

    /// Returns how many bytes it is to move, as far as the plan says.
    fn bytes(&self) -> u64;
}

impl Paced for PlannedOp {
    fn is_capped(&self) -> bool {
        true
    }

    fn is_write(&self) -> bool {
        !matches!(self.kind, OpKind::Get | OpKind::Stat | OpKind::List)
    }

    fn bytes(&self) -> u64 {
        match self.subject {
            _ if !self.kind.moves_bytes() => 0,
            Subject::Object(object, range) => {
                range.map_or(object.size.unwrap_or(0), |(_, len)| len)
            }
            Subject::Part { len, .. } => len,
            Subject::Member(object) | Subject::Copies(object) => object.size.unwrap_or(0),
            Subject::Batch { .. } | Subject::Listing { .. } | Subject::Archive(_) => 0,
        }
    }
}

impl Paced for FileOp {
    #[inline]
    fn is_capped(&self) -> bool {
        !matches!(self, Self::Sync { .. })
    }

    #[inline]
    fn is_write(&self) -> bool {
        matches!(self, Self::Block(block) if block.write)
    }

    #[inline]
    fn bytes(&self) -> u64 {
        match self {
            Self::Block(block) => u64::from(block.len),
            Self::Name(name) => u64::from(name.bytes),
            Self::Sync { .. } => 0,
        }
    }
}

/// Which worker of a job a pacing is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerPlace {
    /// Its number in the job.
    pub(crate) worker: WorkerId,
    /// How many workers the job has, whoever runs them.
    pub(crate) workers: NonZeroU32,
    /// Its number in the stage.
    pub(crate) number: WorkerId,
    pub(crate) seed: u64,
    /// Draws the arrivals, and the gaps of caps.
    pub(crate) arrivals_seed: u64,
}

/// Returns what arrivals of a stage are drawn by: stages that are alike but for their number, such
/// as probes of one rate after the other, are to be draws that know nothing of each other.
pub(crate) fn arrivals_seed(seed: u64, stage: StageId) -> u64 {
    match stage.0 {
        0 => seed,
        number => seed ^ mix64(u64::from(number)),
    }
}

/// What ends a stage whatever its jobs say, as far as pacing goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StageEnd<'a> {
    pub(crate) duration: Option<Duration>,
    pub(crate) ops_left: Option<&'a Arc<OpsLeft>>,
}

/// Whether a worker may take its next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It may.
    Take,
    /// Ask again at this moment.
    WaitUntil(Moment),
    /// Keep the processor busy until then, and ask again.
    SpinUntil(Moment),
    /// Ask again when one of its own operations has ended.
    WaitForEnd,
    /// It is over.
    Over(EndReason),
}

/// Whether an operation that was taken may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// It starts now; `intended` is when the schedule wanted it, where there is one.
    Now { intended: Option<Moment> },
    /// Not before this moment.
    At(Moment),
    /// It will not, as the stage has had all its operations.
    Never,
}

/// A limit on how fast operations start.
#[derive(Debug)]
struct CapState {
    limit: Cap,
    due: Moment,
}

impl CapState {
    /// Takes note of an operation that starts at `now`.
    fn start(&mut self, now: Moment, bytes: u64, gaps: Option<&mut Random>) {
        let mut gap = match self.limit {
            Cap::OpsPerSec(rate) => 1.0 / rate,
            Cap::BytesPerSec(rate) => bytes as f64 / rate,
        };
        if let Some(random) = gaps {
            gap *= -(1.0 - random.unit()).ln();
        }
        let behind = now.since(self.due).min(CATCH_UP_MAX);
        let from = Moment::from_ns(now.as_ns() - behind.as_nanos() as u64);
        self.due = from.after(Duration::from_secs_f64(gap));
    }
}

/// When operations start.
#[derive(Debug)]
enum Pace {
    Closed,
    /// One cap for all operations.
    Capped(CapState),
    /// A cap for each direction.
    CappedEach {
        read: Option<CapState>,
        write: Option<CapState>,
        /// Draws the gaps where they are random.
        gaps: Option<Random>,
    },
    Open {
        arrivals: Box<Arrivals>,
        /// When the next operation is due.
        next: Option<Moment>,
        /// When the last one was that was taken.
        last: Moment,
    },
}

/// Pauses after every so many operations.
#[derive(Debug)]
struct Thinking {
    think: Think,
    left: u32,
    /// When the pause under way ends, and from when on it is spent computing.
    pause: Option<(Moment, Moment)>,
}

/// The pacing of one worker.
#[derive(Debug)]
pub(crate) struct Pacer {
    begins: Moment,
    deadline: Option<Moment>,
    measured: MeasuredSpan,
    pace: Pace,
    /// Until when operations were due, once none is any more.
    offered_until: Option<Moment>,
    thinking: Option<Thinking>,
    /// After failures, when the next operation may start.
    not_before: Option<Moment>,
    failures_in_row: u32,
    /// What is left to the worker, and to the whole stage.
    ops_left: u64,
    bytes_left: u64,
    stage_left: Option<Arc<OpsLeft>>,
}

impl Pacer {
    /// Returns the pacing of a worker of a stage that begins at `started`.
    pub(crate) fn new(
        timing: &JobTiming,
        place: WorkerPlace,
        end: StageEnd<'_>,
        started: Moment,
    ) -> Self {
        let WorkerPlace { worker, workers, number, seed, .. } = place;
        let begins = started.after(start_delay(&timing.start_delay, seed, number));
        let duration = [timing.duration, end.duration].into_iter().flatten().min();
        let ramps = timing.ramp.saturating_add(timing.ramp_down);
        let lasts = duration.map(|duration| ramps.saturating_add(duration));
        let thinking =
            timing.think.map(|think| Thinking { think, left: think.every_ops.get(), pause: None });
        Self {
            begins,
            deadline: lasts.map(|lasts| begins.after(lasts)),
            measured: timing.measured_span(begins, end.duration),
            offered_until: None,
            pace: Pace::new(&timing.pacing, place, begins),
            thinking,
            not_before: None,
            failures_in_row: 0,
            ops_left: share_of(timing.ops_max, worker, workers),
            bytes_left: share_of(timing.bytes_max, worker, workers),
            stage_left: end.ops_left.map(Arc::clone),
        }
    }

    /// Has operations come at the instants of a trace.
    #[must_use]
    pub(crate) fn at_times(mut self, times: TraceTimes) -> Self {
        if let Pace::Open { arrivals, next, .. } = &mut self.pace {
            **arrivals = arrivals.as_ref().clone().at_times(times);
            *next = arrivals.next().map(|at| self.begins.after(at));
        }
        self
    }

    /// Tells whether its schedule has come to its end.
    pub(crate) fn has_no_arrival(&self) -> bool {
        matches!(self.pace, Pace::Open { next: None, .. })
    }

    /// Returns when its time is up, if a time says so.
    pub(crate) fn deadline(&self) -> Option<Moment> {
        self.deadline
    }

    /// Tells whether operations come on a schedule.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.pace, Pace::Open { .. })
    }

    /// Tells whether the worker may take an operation at `now`.
    #[inline]
    pub(crate) fn turn(&mut self, now: Moment, in_flight: usize) -> Turn {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Turn::Over(EndReason::Duration);
        }
        if self.ops_left == 0 || self.bytes_left == 0 {
            return Turn::Over(EndReason::OutOfWork);
        }
        let earliest = self.not_before.map_or(self.begins, |at| at.max(self.begins));
        if earliest > now {
            return Turn::WaitUntil(self.in_time(earliest));
        }
        if self.thinking.is_some()
            && let Some(turn) = self.think(now, in_flight)
        {
            return turn;
        }
        Turn::Take
    }

    /// Returns a moment to wait for, which nobody does beyond the deadline.
    fn in_time(&self, at: Moment) -> Moment {
        self.deadline.map_or(at, |deadline| deadline.min(at))
    }

    /// Returns what the pause between operations asks for, if anything.
    fn think(&mut self, now: Moment, in_flight: usize) -> Option<Turn> {
        let thinking = self.thinking.as_mut()?;
        if let Some((until, spins_from)) = thinking.pause {
            if now >= until {
                thinking.pause = None;
                return None;
            }
            return Some(if now < spins_from {
                Turn::WaitUntil(self.in_time(spins_from))
            } else {
                Turn::SpinUntil(self.in_time(until))
            });
        }
        if thinking.left > 0 {
            return None;
        }
        if in_flight > 0 {
            return Some(Turn::WaitForEnd);
        }
        let Think { pause, spin, every_ops } = thinking.think;
        thinking.left = every_ops.get();
        thinking.pause = Some((now.after(pause), now.after(pause.saturating_sub(spin))));
        self.think(now, in_flight)
    }

    /// Returns when the next operation is due, where operations come on a schedule.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        match &self.pace {
            Pace::Open { next, .. } => {
                next.filter(|at| self.deadline.is_none_or(|deadline| *at < deadline))
            }
            _ => None,
        }
    }

    /// Tells whether an operation that the worker has taken may start at `now`.
    #[inline]
    pub(crate) fn start<P: Paced>(&mut self, op: &P, now: Moment) -> Start {
        if !matches!(self.pace, Pace::Closed)
            && let Some(due) = self.due(op)
            && due > now
        {
            return Start::At(self.in_time(due));
        }
        if self.stage_left.as_ref().is_some_and(|left| !left.take()) {
            self.ops_left = 0;
            return Start::Never;
        }
        self.ops_left -= 1;
        self.bytes_left = self.bytes_left.saturating_sub(op.bytes());
        if let Some(thinking) = &mut self.thinking {
            thinking.left -= 1;
        }
        Start::Now { intended: self.advance(op, now) }
    }

    /// Returns when an operation may start, where something says so.
    fn due<P: Paced>(&self, op: &P) -> Option<Moment> {
        match &self.pace {
            Pace::Closed => None,
            Pace::Capped(cap) => op.is_capped().then_some(cap.due),
            Pace::CappedEach { read, write, .. } => {
                let cap = if op.is_write() { write } else { read };
                cap.as_ref().filter(|_| op.is_capped()).map(|cap| cap.due)
            }
            // A stage without arrivals is over at its deadline.
            Pace::Open { next, .. } => next.or(self.deadline),
        }
    }

    /// Takes note of an operation that starts at `now`, and returns when it was due where it has a
    /// schedule.
    #[inline]
    fn advance<P: Paced>(&mut self, op: &P, now: Moment) -> Option<Moment> {
        match &mut self.pace {
            Pace::Closed => {}
            Pace::Capped(cap) => {
                if op.is_capped() {
                    cap.start(now, op.bytes(), None);
                }
            }
            Pace::CappedEach { read, write, gaps } => {
                let cap = if op.is_write() { write } else { read };
                if let Some(cap) = cap.as_mut().filter(|_| op.is_capped()) {
                    cap.start(now, op.bytes(), gaps.as_mut());
                }
            }
            Pace::Open { arrivals, next, last } => {
                let intended = *next;
                *last = intended.unwrap_or(*last);
                *next = arrivals.next().map(|at| self.begins.after(at));
                return intended;
            }
        }
        None
    }

    /// Takes note that an operation ended without asking for a pause.
    #[inline]
    pub(crate) fn went_on(&mut self) {
        self.failures_in_row = 0;
        self.not_before = None;
    }

    /// Takes note that an operation failed at `now` in a way after which the next one waits:
    /// otherwise such failures would come by the hundred thousand.
    pub(crate) fn backs_off(&mut self, now: Moment) {
        let pause = BACKOFF_FIRST.saturating_mul(1 << self.failures_in_row.min(16));
        self.not_before = Some(now.after(pause.min(BACKOFF_MAX)));
        self.failures_in_row += 1;
    }

    /// Takes note of bytes that an operation moved of which the plan did not say how many.
    pub(crate) fn moved(&mut self, bytes: u64) {
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
    }

    /// Takes note that there is no work any more, so that what is due from now on is not offered.
    pub(crate) fn out_of_work(&mut self) {
        self.ops_left = 0;
        if let Pace::Open { next, last, .. } = &mut self.pace {
            // What would have been due next was not; a trace ends with its last operation.
            let until = next.take().unwrap_or(*last);
            self.offered_until.get_or_insert(until);
        }
    }

    /// Returns from when to when its operations were due in its measured span, once none is due any
    /// more.
    pub(crate) fn offered(&self) -> Option<(Moment, Moment)> {
        let MeasuredSpan { from, until } = self.measured;
        let ended = self.offered_until?;
        Some((from, until.map_or(ended, |until| until.min(ended)).max(from)))
    }

    /// Returns how many operations were due by `over`, and within the worker's limits, and have not
    /// started.
    pub(crate) fn due_by(&self, over: Moment) -> u64 {
        let over = self.in_time(over);
        let Pace::Open { arrivals, next: Some(next), .. } = &self.pace else { return 0 };
        let later = arrivals.clone().map(|at| self.begins.after(at));
        let due = iter::once(*next).chain(later).take_while(|at| *at < over);
        due.take(self.ops_left.try_into().unwrap_or(usize::MAX)).count() as u64
    }

    /// Takes those operations, the first `most` of them, for which there was work, and returns how
    /// many of them were due in the measured span. Nothing is due any more after that.
    pub(crate) fn take_skipped(&mut self, over: Moment, most: u64) -> u64 {
        let over = self.in_time(over);
        let mut measured = 0;
        let Pace::Open { arrivals, next, .. } = &mut self.pace else { return measured };
        for _ in 0..most.min(self.ops_left) {
            let Some(at) = next.filter(|at| *at < over) else { break };
            measured += u64::from(self.measured.holds(at));
            *next = arrivals.next().map(|at| self.begins.after(at));
        }
        let until = next.take().map_or(over, |at| at.min(over));
        self.offered_until.get_or_insert(until);
        measured
    }
}

impl Pace {
    fn new(pacing: &JobPacing, place: WorkerPlace, begins: Moment) -> Self {
        let WorkerPlace { worker, workers, number, arrivals_seed, .. } = place;
        match pacing {
            JobPacing::Shared(Pacing::Closed) => Self::Closed,
            JobPacing::Shared(Pacing::Capped { ops_per_sec }) => {
                let all = f64::from(workers.get());
                let period = Duration::from_secs_f64(all / *ops_per_sec);
                // The workers' first operations are spread evenly over one period.
                let due = begins.after(period.mul_f64(f64::from(worker.0) / all));
                Self::Capped(CapState { limit: Cap::OpsPerSec(*ops_per_sec / all), due })
            }
            JobPacing::Shared(Pacing::Open(open)) => {
                let workers = workers.get();
                let mut arrivals = Arrivals::new(open, arrivals_seed, workers, worker, number);
                let next = arrivals.next().map(|at| begins.after(at));
                Self::Open { arrivals: Box::new(arrivals), next, last: begins }
            }
            JobPacing::CappedEach { read, write, arrivals } => {
                let cap = |limit: &Option<Cap>| limit.map(|limit| CapState { limit, due: begins });
                let random = *arrivals == ArrivalLaw::Poisson;
                let gaps = random.then(|| Random::new(arrivals_seed, GAP_DOMAIN, number.0.into()));
                Self::CappedEach { read: cap(read), write: cap(write), gaps }
            }
        }
    }
}

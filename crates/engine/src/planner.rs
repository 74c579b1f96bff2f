//! The planner of one worker: the next operation, or until when to wait, or that it is over. No IO,
//! no clock.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{ErrorClass, Moment, OpKind, StageKind, WorkerId};
use plimsoll_workload::{OpStream, Pacing, PlannedOp, Workload};

/// How far a capped worker may catch up after it was held up.
const CATCH_UP_MAX: Duration = Duration::from_secs(1);
/// The pause after the first failure that the store had no part in.
const BACKOFF_FIRST: Duration = Duration::from_millis(10);
/// The longest such pause; each failure in a row doubles it.
const BACKOFF_MAX: Duration = Duration::from_millis(100);

/// Returns when a capped loop may start its next operation, which was due at `due` and starts now.
#[inline]
pub(crate) fn next_due(now: Moment, due: Moment, gap: Duration) -> Moment {
    let behind = now.since(due).min(CATCH_UP_MAX);
    Moment::from_ns(now.as_ns() - behind.as_nanos() as u64).after(gap)
}

/// Returns the pause before the next operation, after so many failures before this one.
pub(crate) fn backoff(failures_before: u32) -> Duration {
    BACKOFF_FIRST.saturating_mul(1 << failures_before.min(16)).min(BACKOFF_MAX)
}

/// What a worker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Issue this operation now. In a closed or capped loop nothing wanted it before.
    Start(PlannedOp),
    /// Ask again at this moment.
    WaitUntil(Moment),
    /// It is over.
    Done(EndReason),
}

/// Why a worker or a stage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndReason {
    /// Everything was done.
    OutOfWork,
    /// The time was up.
    Duration,
    /// The throughput was steady.
    Steady,
    /// The figures asked for were known well enough.
    Until,
    /// An operation failed where the first failure was to end it.
    Failure,
    /// It was asked to stop.
    Stopped,
}

impl EndReason {
    /// Returns the name used in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OutOfWork => "out-of-work",
            Self::Duration => "duration",
            Self::Steady => "steady",
            Self::Until => "until",
            Self::Failure => "failure",
            Self::Stopped => "stopped",
        }
    }
}

/// When a worker's operations start.
enum Pacer {
    Closed,
    /// One operation every `period`; `due` is when the next one may start.
    Capped {
        period: Duration,
        due: Moment,
    },
}

/// The planner of one worker of a closed or capped loop.
pub struct Planner {
    stream: OpStream,
    pacer: Pacer,
    deadline: Option<Moment>,
    /// Drawn from the stream but not yet due.
    pending: Option<PlannedOp>,
    /// After failures without the store's part, when the next operation may start.
    not_before: Option<Moment>,
    failures_in_row: u32,
}

impl Planner {
    /// Returns the planner of `worker` for a stage that begins at `started`.
    pub fn new(
        workload: &Arc<Workload>,
        stage: StageKind,
        worker: WorkerId,
        started: Moment,
    ) -> Self {
        let workers = workload.concurrency.get();
        let pacer = match (stage, &workload.pacing) {
            (StageKind::Measure, Pacing::Capped { ops_per_sec }) => {
                let period = Duration::from_secs_f64(f64::from(workers) / *ops_per_sec);
                // The workers' first operations are spread evenly over one period.
                let due = started.after(period.mul_f64(f64::from(worker.0) / f64::from(workers)));
                Pacer::Capped { period, due }
            }
            _ => Pacer::Closed,
        };
        Self {
            stream: OpStream::new(workload, stage, worker),
            pacer,
            deadline: (stage == StageKind::Measure).then(|| started.after(workload.duration)),
            pending: None,
            not_before: None,
            failures_in_row: 0,
        }
    }

    /// Returns what to do at `now`.
    pub fn next(&mut self, now: Moment) -> Step {
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Step::Done(EndReason::Duration);
        }
        let Some(op) = self.pending.take().or_else(|| self.stream.next_op()) else {
            return Step::Done(EndReason::OutOfWork);
        };
        let due = match self.pacer {
            Pacer::Closed => now,
            Pacer::Capped { due, .. } => due,
        };
        let earliest = self.not_before.map_or(due, |not_before| due.max(not_before));
        if earliest > now {
            self.pending = Some(op);
            let until = self.deadline.map_or(earliest, |deadline| deadline.min(earliest));
            return Step::WaitUntil(until);
        }
        if let Pacer::Capped { period, due } = &mut self.pacer {
            *due = next_due(now, *due, *period);
        }
        Step::Start(op)
    }

    /// Takes note of what became of an operation that ended at `now`.
    pub fn completed(&mut self, op: &PlannedOp, outcome: ErrorClass, now: Moment) {
        self.stream.completed(op, outcome.is_ok());
        // The stream leaves out the rest of an upload that failed.
        let same = |pending: &PlannedOp| pending.target.object_id() == op.target.object_id();
        if op.kind == OpKind::PutPart && !outcome.is_ok() && self.pending.as_ref().is_some_and(same)
        {
            self.pending = None;
        }
        if !matches!(outcome, ErrorClass::Connect | ErrorClass::Reset) {
            self.failures_in_row = 0;
            self.not_before = None;
            return;
        }
        // A store that is away answers at once: without a pause its failures would come by the
        // hundred thousand.
        self.not_before = Some(now.after(backoff(self.failures_in_row)));
        self.failures_in_row += 1;
    }
}

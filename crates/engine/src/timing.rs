//! When the operations of a job start and what ends it, as plain values for every kind of work, and
//! what ends a whole stage.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use plimsoll_model::{EndReason, ErrorClass, Moment, WorkerId};
use plimsoll_workload::plan::{self, Amount, JobPacing, Think};
use plimsoll_workload::{OpenLoop, Pacing, StopRule};

use crate::live::StopFlag;

/// When the operations of a job start and what ends it.
#[derive(Clone, Debug)]
pub struct JobTiming {
    /// When operations start.
    pub pacing: JobPacing,
    /// How long each worker lasts at most, after its ramp.
    pub duration: Option<Duration>,
    /// How long each worker runs before what is measured begins.
    pub ramp: Duration,
    /// How long each worker goes on after its duration; nothing of it is measured.
    pub ramp_down: Duration,
    /// How long after the stage's start each worker begins; drawn from the range.
    pub start_delay: RangeInclusive<Duration>,
    /// Pauses between operations.
    pub think: Option<Think>,
    /// After how many operations it ends. What all workers are given together is divided evenly, so
    /// that what each does is a function of its number.
    pub ops_max: Option<Amount>,
    /// After how many bytes it ends; divided alike.
    pub bytes_max: Option<Amount>,
}

impl Default for JobTiming {
    /// Returns that of a closed loop which ends when everything is done.
    fn default() -> Self {
        Self {
            pacing: JobPacing::Shared(Pacing::Closed),
            duration: None,
            ramp: Duration::ZERO,
            ramp_down: Duration::ZERO,
            start_delay: Duration::ZERO..=Duration::ZERO,
            think: None,
            ops_max: None,
            bytes_max: None,
        }
    }
}

/// When what a worker does counts: from the end of its ramp to the end of its duration, where it
/// goes on after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MeasuredSpan {
    pub(crate) from: Moment,
    pub(crate) until: Option<Moment>,
}

impl MeasuredSpan {
    /// Tells whether an operation counts that was due at `at`.
    pub(crate) fn holds(&self, at: Moment) -> bool {
        at >= self.from && self.until.is_none_or(|until| at < until)
    }
}

impl JobTiming {
    /// Returns when what a worker does counts that begins at `begins`.
    pub(crate) fn measured_span(
        &self,
        begins: Moment,
        stage_duration: Option<Duration>,
    ) -> MeasuredSpan {
        let from = begins.after(self.ramp);
        let duration = [self.duration, stage_duration].into_iter().flatten().min();
        let until = duration.filter(|_| !self.ramp_down.is_zero());
        MeasuredSpan { from, until: until.map(|duration| from.after(duration)) }
    }

    /// Returns that of a job of a plan, in a stage that lasts so long at most.
    pub fn of_job(job: &plan::Job, stage_duration: Option<Duration>) -> Self {
        Self {
            pacing: job.pacing.clone(),
            duration: [job.duration, stage_duration].into_iter().flatten().min(),
            ramp: job.ramp,
            ramp_down: job.ramp_down,
            start_delay: job.start_delay.clone(),
            think: job.think,
            ops_max: job.ops_max,
            bytes_max: job.bytes_max,
        }
    }

    /// Returns that of a job on files, but for how many operations and bytes it has: of these its
    /// streams give no more.
    pub fn of_files(job: &plan::Job, stage_duration: Option<Duration>) -> Self {
        Self { ops_max: None, bytes_max: None, ..Self::of_job(job, stage_duration) }
    }

    /// Returns the schedule, where operations have one.
    pub fn open_loop(&self) -> Option<&OpenLoop> {
        match &self.pacing {
            JobPacing::Shared(Pacing::Open(open)) => Some(open),
            _ => None,
        }
    }
}

/// Returns what one worker, the one of that number out of so many, is given of a limit.
pub(crate) fn share_of(amount: Option<Amount>, worker: WorkerId, workers: NonZeroU32) -> u64 {
    amount.map_or(u64::MAX, |amount| amount.share(worker.0, workers))
}

/// What ends a whole stage, whatever its jobs' own limits say.
#[derive(Clone, Debug, Default)]
pub struct StageLimits {
    /// How long the workers of each job last at most, after their ramp.
    pub duration: Option<Duration>,
    /// After how many operations of all jobs it ends.
    pub ops_max: Option<u64>,
    /// The first of these to hold ends it. They watch what is measured, not the ramps.
    pub stop_rules: Vec<StopRule>,
    /// Whether somebody else judges the rules, who sees more than this part of the stage; what they
    /// see here is then told by the counters.
    pub is_judged_elsewhere: bool,
    /// Whether the first failed operation ends it.
    pub end_on_failure: bool,
    /// Whether it ends where all operations fail alike from its first on.
    pub ends_if_alike: bool,
}

/// Watches whether all operations of a stage fail alike, from its first on, in a way that does not
/// pass by itself.
#[derive(Debug, Default)]
pub(crate) struct Alike {
    /// Whether one succeeded, or failed for another reason.
    is_over: AtomicBool,
    /// The reason of the first failure, and how many there were.
    failed: Mutex<Option<(ErrorClass, u64)>>,
}

impl Alike {
    /// So many operations, and for so long, have to fail.
    const OPS_MIN: u64 = 100;
    const TIME_MIN: Duration = Duration::from_secs(2);

    /// Takes note that an operation succeeded.
    pub(crate) fn succeeded(&self) {
        self.is_over.store(true, Relaxed);
    }

    /// Takes note that an operation failed so long after the start of the stage; returns how many
    /// did, where that is enough.
    pub(crate) fn failed(&self, class: ErrorClass, after: Duration) -> Option<u64> {
        if self.is_over.load(Relaxed) {
            return None;
        }
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, count) = failed.get_or_insert((class, 0));
        *count += 1;
        use ErrorClass::{Client, Connect, Denied, NotFound};
        let stays = matches!(class, Denied | NotFound | Connect | Client);
        if !stays || *first != class {
            self.is_over.store(true, Relaxed);
            return None;
        }
        (*count >= Self::OPS_MIN && after >= Self::TIME_MIN).then_some(*count)
    }
}

/// A rule that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) reason: EndReason,
    /// The same in words, with figures.
    pub(crate) because: String,
}

/// What can end the loop of a worker from outside.
#[derive(Clone, Copy)]
pub(crate) struct Stops<'a> {
    /// The user's.
    pub(crate) user: &'a StopFlag,
    /// The stage's own: set once, when a stop rule holds.
    pub(crate) rule: &'a OnceLock<Verdict>,
    pub(crate) end_on_failure: bool,
    /// What watches whether all operations fail alike, where that ends the stage.
    pub(crate) alike: Option<&'a Alike>,
}

impl Stops<'_> {
    /// Returns why to end, if there is a reason.
    #[inline]
    pub(crate) fn reason(&self) -> Option<EndReason> {
        if self.user.is_set() {
            return Some(EndReason::Stopped);
        }
        self.rule.get().map(|verdict| verdict.reason)
    }
}

/// The operations that all jobs of a stage may still start.
#[derive(Debug)]
pub(crate) struct OpsLeft(AtomicU64);

impl OpsLeft {
    pub(crate) fn new(count: u64) -> Self {
        Self(AtomicU64::new(count))
    }

    /// Takes one, if there is one left.
    pub(crate) fn take(&self) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_workers_are_given_is_divided_without_a_rest() {
        let workers = NonZeroU32::new(8).unwrap();
        let each = |worker| share_of(Some(Amount::All(27)), WorkerId(worker), workers);
        assert_eq!((0..8).map(each).collect::<Vec<_>>(), [4, 4, 4, 3, 3, 3, 3, 3]);
        assert_eq!(share_of(Some(Amount::Each(27)), WorkerId(3), workers), 27);
        assert_eq!(share_of(None, WorkerId(3), workers), u64::MAX);
    }

    #[test]
    fn no_more_operations_are_taken_than_there_are() {
        let left = OpsLeft::new(2);
        assert_eq!([left.take(), left.take(), left.take()], [true, true, false]);
    }
}

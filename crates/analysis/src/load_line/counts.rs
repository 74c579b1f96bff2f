//! What a probe has come to, counted as its operations are recorded.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{JobId, Moment, OpRecord};
use plimsoll_stats::{PROBE_PARTS, ProbeCounts, ProbeStretch};

use super::Slo;

/// The first of so many equal parts of a probe does not count: connections are made, queues fill.
const WARM_UP_PARTS: u128 = 10;

/// What is counted of a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeAsked {
    /// What is to be kept.
    pub slos: Arc<[Slo]>,
    /// The job whose rate is probed.
    pub job: JobId,
    /// For how long operations are due.
    pub lasts: Duration,
}

/// So many operations, or such a part of all, may be due in the last moment of a stage.
const SKIPPED_MIN: f64 = 10.0;
const SKIPPED_PART: f64 = 0.005;

/// Counts the operations of a probe by when they were due.
#[derive(Clone, Debug)]
pub struct ProbeCounter {
    asked: ProbeAsked,
    started: Moment,
    counts: ProbeCounts,
}

impl ProbeCounter {
    /// Begins to count a stage that begins at `started`.
    pub fn new(asked: ProbeAsked, started: Moment) -> Self {
        let counts = ProbeCounts::new(asked.slos.len());
        Self { asked, started, counts }
    }

    /// Returns the stretch of the probe in which a moment lies.
    fn stretch(&self, at: Moment) -> ProbeStretch {
        let (at, lasts) = (at.since(self.started).as_nanos(), self.asked.lasts.as_nanos());
        let warm_up = lasts / WARM_UP_PARTS;
        let Some(at) = at.checked_sub(warm_up) else { return ProbeStretch::WarmUp };
        match (at * PROBE_PARTS as u128).checked_div(lasts - warm_up) {
            Some(part) if part < PROBE_PARTS as u128 => ProbeStretch::Part(part as usize),
            _ => ProbeStretch::After,
        }
    }

    /// Returns the stretch that counts in which an operation was due, if it was in one.
    pub(super) fn counted_in(&self, op: &OpRecord) -> Option<usize> {
        match self.stretch(op.intended) {
            ProbeStretch::Part(part) if op.job == self.asked.job => Some(part),
            _ => None,
        }
    }

    /// Takes note of an operation that has ended.
    pub fn add(&mut self, op: &OpRecord) {
        if op.job != self.asked.job {
            return;
        }
        let due = self.stretch(op.intended);
        self.counts.note(due, self.stretch(op.end), op.outcome.is_ok());
        let ProbeStretch::Part(part) = due else { return };
        for (bound, slo) in self.asked.slos.iter().enumerate() {
            if slo.is_about(op) {
                self.counts.judge(bound, part, slo.is_missed_by(op));
            }
        }
    }

    /// Returns what was counted. `skipped` operations were due and never issued. A few were due in
    /// the last moment of the stage; more of them waited, as all that may be under way were, from
    /// some moment near its end on, and were not served.
    pub fn finish(mut self, skipped: u64) -> ProbeCounts {
        let few = (self.counts.due_count() as f64 * SKIPPED_PART).max(SKIPPED_MIN);
        if skipped as f64 > few {
            self.counts.skip(skipped);
        }
        self.counts
    }

    /// Returns how long the stretch is that counts.
    pub fn counted_for(lasts: Duration) -> Duration {
        lasts - lasts / WARM_UP_PARTS as u32
    }
}

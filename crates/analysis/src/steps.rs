//! What came of each step of a rate: operations by when they were due.

use std::time::Duration;

use plimsoll_model::{Moment, OpRate, OpRecord, StageId, per_sec};
use plimsoll_stats::Histogram;
use serde::Serialize;

use crate::figures::LATE_AFTER;
use crate::times::percentile;
use crate::{OpSource, ns, serial};

/// One in so many operations may be late or missing.
const MISSED_ONE_IN_MIN: f64 = 100.0;
/// Of Poisson arrivals as many are due as are to be, give or take so many standard deviations.
const OFF_DEVIATIONS: f64 = 6.0;

/// A stretch of a stage in which a rate was offered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepAsked {
    /// From the start of the stage to its own.
    pub from: Duration,
    /// From the start of the stage to its end.
    pub until: Duration,
    /// How many operations a second were to be due in it, on average.
    pub offered: OpRate,
    /// Whether they were to be due at even times, and not by chance.
    pub is_even: bool,
}

/// What came of a step of a rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepFigures {
    /// From the start of the stage to its own.
    #[serde(rename = "from_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub from: Duration,
    /// How long operations were due in it.
    #[serde(rename = "duration_ns", serialize_with = "serial::ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub length: Duration,
    /// How many operations a second were to be due in it, on average.
    #[serde(rename = "offered_ops_per_sec", serialize_with = "serial::op_rate")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub offered: OpRate,
    /// How many successes a second ended in it, whenever they were due.
    #[serde(rename = "achieved_ops_per_sec", serialize_with = "serial::op_rate")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub achieved: OpRate,
    /// How many operations that were due in it were issued.
    #[serde(rename = "ops_issued_count")]
    pub issued_count: u64,
    /// How many of these were issued more than 1 ms late.
    #[serde(rename = "ops_late_count")]
    pub late_count: u64,
    /// How many of these failed.
    #[serde(rename = "ops_failed_count")]
    pub failed_count: u64,
    /// The latency, from the intended start to the end, of those that succeeded: its median; null
    /// from too few.
    #[serde(rename = "latency_ns_p50")]
    pub latency_ns_p50: Option<u64>,
    /// Its 99th percentile.
    #[serde(rename = "latency_ns_p99")]
    pub latency_ns_p99: Option<u64>,
    /// Whether at most 1 % were late, and as many were issued as were to be due, give or take 1 %
    /// and, where they were due by chance, six standard deviations.
    #[serde(rename = "is_schedule_kept")]
    pub is_kept: bool,
}

/// A step while it is counted.
struct Counted {
    from: Moment,
    until: Moment,
    issued_count: u64,
    late_count: u64,
    failed_count: u64,
    ended_count: u64,
    latency: Histogram,
}

impl Counted {
    fn new(started: Moment, asked: &StepAsked) -> Self {
        Self {
            from: started.after(asked.from),
            until: started.after(asked.until),
            issued_count: 0,
            late_count: 0,
            failed_count: 0,
            ended_count: 0,
            latency: Histogram::default(),
        }
    }

    fn add(&mut self, op: &OpRecord) {
        // A stretch holds its end and not its start, as that of any rate does.
        let ended_in = self.from < op.end && op.end <= self.until;
        self.ended_count += u64::from(op.outcome.is_ok() && ended_in);
        if !self.holds(op.intended) {
            return;
        }
        self.issued_count += 1;
        self.late_count += u64::from(op.start.since(op.intended) > LATE_AFTER);
        match op.outcome.is_ok() {
            true => self.latency.record(ns(op.latency())),
            false => self.failed_count += 1,
        }
    }

    fn holds(&self, at: Moment) -> bool {
        self.from <= at && at < self.until
    }

    fn figures(&self, asked: &StepAsked) -> StepFigures {
        let length = asked.until.saturating_sub(asked.from);
        let due = asked.offered.0 * length.as_secs_f64();
        let by_chance = if asked.is_even { 0.0 } else { OFF_DEVIATIONS * due.sqrt() };
        let issued = self.issued_count as f64;
        let lacks = issued < due * (1.0 - 1.0 / MISSED_ONE_IN_MIN) - by_chance - 1.0;
        StepFigures {
            from: asked.from,
            length,
            offered: asked.offered,
            achieved: OpRate(per_sec(self.ended_count as f64, length).unwrap_or_default()),
            issued_count: self.issued_count,
            late_count: self.late_count,
            failed_count: self.failed_count,
            latency_ns_p50: percentile(&self.latency, 50.0).map(ns),
            latency_ns_p99: percentile(&self.latency, 99.0).map(ns),
            is_kept: self.late_count as f64 * MISSED_ONE_IN_MIN <= issued && !lacks,
        }
    }
}

/// Returns what came of each step of a stage that began then.
pub fn find_steps<S: OpSource + ?Sized>(
    source: &S,
    (stage, started): (StageId, Moment),
    asked: &[StepAsked],
) -> Result<Vec<StepFigures>, S::Error> {
    let mut counted: Vec<Counted> = asked.iter().map(|of| Counted::new(started, of)).collect();
    source.scan(&mut |op| {
        if op.stage == stage && op.is_measured {
            counted.iter_mut().for_each(|step| step.add(op));
        }
    })?;
    Ok(counted.iter().zip(asked).map(|(counted, asked)| counted.figures(asked)).collect())
}

#[cfg(test)]
mod tests {
    use plimsoll_model::ErrorClass;

    use super::*;
    use crate::tests::op;

    fn op_at(due_ms: u64, late_ms: u64, took_ms: u64) -> OpRecord {
        let start_ms = due_ms + late_ms;
        let intended = Moment::from_ns(due_ms * 1_000_000);
        OpRecord { intended, ..op(0, start_ms, start_ms + took_ms) }
    }

    #[test]
    fn operations_belong_to_the_step_in_which_they_were_due() {
        // 10 a second for 1 s, each 20 ms; then 20 a second, each issued 5 ms late and 100 ms long.
        let slow = (0..20).map(|at| op_at(1_000 + at * 50, 5, 100));
        let mut ops: Vec<_> = (0..10).map(|at| op_at(at * 100, 0, 20)).collect();
        ops.extend(slow);
        ops[3].outcome = ErrorClass::Timeout;
        let step = |from: u64, until: u64, rate: f64| StepAsked {
            from: Duration::from_secs(from),
            until: Duration::from_secs(until),
            offered: OpRate(rate),
            is_even: true,
        };
        let asked = [step(0, 1, 10.0), step(1, 2, 20.0), step(2, 3, 30.0)];
        let started = (ops[0].stage, Moment::EPOCH);
        let found = find_steps(&ops[..], started, &asked).unwrap();
        let [first, second, third] = &found[..] else { panic!("{found:?}") };
        assert_eq!((first.issued_count, first.failed_count, first.late_count), (10, 1, 0));
        assert_eq!(first.achieved, OpRate(9.0));
        assert!(first.is_kept);
        // Due until 1.95 s, so those from 1.90 s on end 105 ms later, in the third.
        assert_eq!((second.issued_count, second.late_count), (20, 20));
        assert_eq!(second.achieved, OpRate(18.0));
        assert!(!second.is_kept);
        assert_eq!((third.issued_count, third.achieved), (0, OpRate(2.0)));
        assert!(!third.is_kept);
    }
}

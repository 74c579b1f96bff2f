//! What came of a stage in one part, as it travels.

mod vet;

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_conduct::{Done, note_outcome};
use plimsoll_driver::Settled;
use plimsoll_engine::{
    ErrorSample, JobOutcome, LooksOutcome, ScheduleOutcome, StageOutcome, Unchecked,
};
use plimsoll_model::{
    DisturbedSeen, EndReason, EndpointId, ErrorClass, JobId, Moment, OpKind, SocketsSeen, StageId,
    StandstillsSeen, WrongKind,
};
use plimsoll_record::schema;
use plimsoll_stats::{Timeline, Totals};
use serde::{Deserialize, Serialize};

pub use self::vet::StageBounds;
pub(crate) use self::vet::are_bounded;
use super::ProbeCountsDoc;
use crate::offset::ClockLine;

/// As [`StageOutcome`] has it, by the agent's clock; the time line comes with the op log, and what
/// was changed beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeDoc {
    started_ns: u64,
    began_late_by_ns: u64,
    ended_ns: u64,
    ended_by: EndReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_because: Option<String>,
    jobs: Vec<JobDoc>,
    errors: Vec<ErrorDoc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    looks: Option<(u64, u64)>,
    uploads_given_up: u64,
    uploads_left: u64,
    wrong: BTreeMap<WrongKind, u64>,
    failed_statuses: BTreeMap<u16, u64>,
    recorder_waits: u64,
    recorder_wait_ns: u64,
    cpu_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    probe: Option<ProbeCountsDoc>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct JobDoc {
    job: u8,
    ops: u64,
    failed: u64,
    #[serde(default)]
    measured: u64,
    #[serde(default)]
    measured_failed: u64,
    #[serde(default)]
    measured_bytes: u64,
    bytes: u64,
    #[serde(default)]
    unchecked: u64,
    #[serde(default)]
    unchecked_bytes: u64,
    /// What of it is measured, since the start of the stage; absent where all is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    measured_ns: Option<(u64, Option<u64>)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schedule: Option<ScheduleDoc>,
    ended_by: EndReason,
    stream_hash: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ScheduleDoc {
    /// From when to when operations were due that are counted, since the start of the stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    span_ns: Option<(u64, u64)>,
    offered: u64,
    late: u64,
    skipped: u64,
    delay_max_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ErrorDoc {
    class: ErrorClass,
    job: u8,
    kind: OpKind,
    endpoint: u16,
    at_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    message: String,
}

/// The longest text of an error that is sent on.
const MESSAGE_CHARS_MAX: usize = 1_000;

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl ScheduleDoc {
    fn of(schedule: &ScheduleOutcome) -> Self {
        Self {
            span_ns: schedule.span.map(|(from, until)| (ns(from), ns(until))),
            offered: schedule.offered_count,
            late: schedule.late_count,
            skipped: schedule.skipped_count,
            delay_max_ns: ns(schedule.delay_max),
        }
    }

    fn schedule(&self) -> ScheduleOutcome {
        ScheduleOutcome {
            span: self.span_ns.map(|(from_ns, until_ns)| {
                (Duration::from_nanos(from_ns), Duration::from_nanos(until_ns))
            }),
            offered_count: self.offered,
            late_count: self.late,
            skipped_count: self.skipped,
            // Agents replay nothing.
            held_count: 0,
            delay_max: Duration::from_nanos(self.delay_max_ns),
        }
    }
}

impl JobDoc {
    fn of(job: &JobOutcome) -> Self {
        Self {
            job: job.job.0,
            ops: job.ops_count,
            failed: job.failed_count,
            measured: job.measured_count,
            measured_failed: job.measured_failed_count,
            measured_bytes: job.measured_bytes,
            bytes: job.bytes,
            unchecked: job.unchecked.count,
            unchecked_bytes: job.unchecked.bytes,
            measured_ns: job.measured.map(|(from, until)| (ns(from), until.map(ns))),
            schedule: job.schedule.as_ref().map(ScheduleDoc::of),
            ended_by: job.ended_by,
            stream_hash: job.stream_hash,
        }
    }

    fn job(&self) -> JobOutcome {
        JobOutcome {
            job: JobId(self.job),
            ops_count: self.ops,
            failed_count: self.failed,
            measured_count: self.measured,
            measured_failed_count: self.measured_failed,
            measured_bytes: self.measured_bytes,
            bytes: self.bytes,
            unchecked: Unchecked { count: self.unchecked, bytes: self.unchecked_bytes },
            measured: self
                .measured_ns
                .map(|(from, until)| (Duration::from_nanos(from), until.map(Duration::from_nanos))),
            schedule: self.schedule.as_ref().map(ScheduleDoc::schedule),
            ended_by: self.ended_by,
            stream_hash: self.stream_hash,
            server_names: None,
            changes: Vec::new(),
        }
    }
}

impl ErrorDoc {
    pub(super) fn of(error: &ErrorSample) -> Self {
        Self {
            class: error.class,
            job: error.job.0,
            kind: error.kind,
            endpoint: error.endpoint.0,
            at_ns: error.at.as_ns(),
            status: error.status,
            message: error.message.chars().take(MESSAGE_CHARS_MAX).collect(),
        }
    }

    /// Returns it by the agent's clock.
    pub(super) fn told(&self) -> ErrorSample {
        ErrorSample {
            class: self.class,
            job: JobId(self.job),
            kind: self.kind,
            endpoint: EndpointId(self.endpoint),
            at: Moment::from_ns(self.at_ns),
            status: self.status,
            message: self.message.chars().take(MESSAGE_CHARS_MAX).collect(),
        }
    }
}

impl OutcomeDoc {
    /// Returns what came of a stage, to be sent.
    pub fn of(outcome: &StageOutcome) -> Self {
        Self {
            started_ns: outcome.started.as_ns(),
            began_late_by_ns: ns(outcome.began_late_by),
            ended_ns: outcome.ended.as_ns(),
            ended_by: outcome.ended_by,
            ended_because: outcome.ended_because.clone(),
            jobs: outcome.jobs.iter().map(JobDoc::of).collect(),
            errors: outcome.errors.iter().map(ErrorDoc::of).collect(),
            looks: outcome.looks.map(|looks| (ns(looks.gap_max), looks.uncertain_count)),
            uploads_given_up: outcome.settled.given_up_count,
            uploads_left: outcome.settled.left_count,
            wrong: outcome.wrong.clone(),
            failed_statuses: outcome.failed_statuses.clone(),
            recorder_waits: outcome.recorder_waits,
            recorder_wait_ns: ns(outcome.recorder_wait),
            cpu_ns: ns(outcome.cpu_time),
            probe: outcome.probe.as_ref().map(ProbeCountsDoc::of),
        }
    }

    /// Returns what the record tells of a stage whose end nobody has told: its jobs, from the first
    /// start to the last end.
    pub fn of_record(
        (started, ended): (Moment, Moment),
        jobs: impl IntoIterator<Item = JobOutcome>,
    ) -> Self {
        Self {
            started_ns: started.as_ns(),
            ended_ns: ended.as_ns(),
            jobs: jobs.into_iter().map(|job| JobDoc::of(&job)).collect(),
            ended_by: EndReason::Stopped,
            ..Self::default()
        }
    }

    /// Returns how many operations ended.
    pub fn ops_count(&self) -> u64 {
        self.jobs.iter().fold(0, |sum, job| sum.saturating_add(job.ops))
    }

    /// Returns it by the coordinator's clock.
    pub fn outcome(&self, clock: ClockLine) -> StageOutcome {
        let at = |ns| clock.to_coordinator(Moment::from_ns(ns));
        let jobs: Vec<JobOutcome> = self.jobs.iter().map(JobDoc::job).collect();
        let errors = self.errors.iter().map(|error| {
            let told = error.told();
            ErrorSample { at: clock.to_coordinator(told.at), ..told }
        });
        StageOutcome {
            started: at(self.started_ns),
            began_late_by: Duration::from_nanos(self.began_late_by_ns),
            ended: at(self.ended_ns),
            ended_by: self.ended_by,
            ended_because: self.ended_because.clone(),
            timeline: Timeline::of_seconds(),
            kept: Totals::default(),
            errors: errors.collect(),
            ops_count: jobs.iter().map(|job| job.ops_count).sum(),
            failed_count: jobs.iter().map(|job| job.failed_count).sum(),
            schedule: jobs.iter().filter_map(|job| job.schedule).reduce(ScheduleOutcome::merge),
            looks: self.looks.map(|(gap_max_ns, uncertain_count)| LooksOutcome {
                gap_max: Duration::from_nanos(gap_max_ns),
                uncertain_count,
            }),
            stream_hash: jobs.iter().fold(0, |sum, job| sum.wrapping_add(job.stream_hash)),
            jobs,
            settled: Settled {
                given_up_count: self.uploads_given_up,
                left_count: self.uploads_left,
            },
            wrong: self.wrong.clone(),
            failed_statuses: self.failed_statuses.clone(),
            recorder_waits: self.recorder_waits,
            recorder_wait: Duration::from_nanos(self.recorder_wait_ns),
            cpu_time: Duration::from_nanos(self.cpu_ns),
            probe: self.probe.as_ref().map(ProbeCountsDoc::counts),
            // What was seen of an agent travels beside, as its record keeps it.
            threads: Vec::new(),
            sockets: SocketsSeen::default(),
            standstills: StandstillsSeen::default(),
            disturbed: DisturbedSeen::default(),
        }
    }
}

/// Why a stage ended in which agents were told to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageEndDoc {
    /// Which stage of the run, 0-based.
    stage: u8,
    ended_by: EndReason,
    because: String,
}

impl StageEndDoc {
    /// Returns it, to be sent.
    pub fn of(stage: StageId, reason: EndReason, because: String) -> Self {
        Self { stage: stage.0, ended_by: reason, because }
    }

    /// Notes it in what came of the stage and in its entry of the record, where it ended because
    /// that was asked.
    pub fn note(&self, done: &mut [Done], entries: &mut [schema::Stage]) {
        let stage = usize::from(self.stage);
        let (Some(done), Some(entry)) = (done.get_mut(stage), entries.get_mut(stage)) else {
            return;
        };
        if done.outcome.ended_by == EndReason::Stopped {
            ended_by(&mut done.outcome, self.ended_by, Some(self.because.clone()));
            note_outcome(entry, &done.outcome);
        }
    }
}

/// Has a stage, and the jobs in it that were told to stop, have ended for a reason.
pub(crate) fn ended_by(outcome: &mut StageOutcome, reason: EndReason, because: Option<String>) {
    outcome.ended_by = reason;
    outcome.ended_because = because;
    let stopped = outcome.jobs.iter_mut().filter(|job| job.ended_by == EndReason::Stopped);
    stopped.for_each(|job| job.ended_by = reason);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offset::Offset;

    #[test]
    fn what_came_of_a_stage_is_moved_to_the_coordinators_clock() {
        let text = r#"{
            "started_ns": 5000, "began_late_by_ns": 7, "ended_ns": 9000, "ended_by": "duration",
            "jobs": [{"job": 1, "ops": 10, "failed": 2, "bytes": 80, "ended_by": "duration",
                      "stream_hash": 18446744073709551615,
                      "schedule": {"offered": 12, "late": 3, "skipped": 2, "delay_max_ns": 4}}],
            "errors": [{"class": "throttled", "job": 1, "kind": "GET", "endpoint": 0,
                        "at_ns": 6000, "status": 503, "message": "slow down"}],
            "looks": [3, 4], "uploads_given_up": 1, "uploads_left": 2,
            "wrong": {"torn": 1}, "failed_statuses": {"503": 2},
            "recorder_waits": 1, "recorder_wait_ns": 9, "cpu_ns": 100}"#;
        let doc: OutcomeDoc = serde_json::from_str(text).unwrap();
        let offset = Offset { at: Moment::EPOCH, ns: 1_000, uncertainty_ns: 1 };
        let outcome = doc.outcome(offset.into());
        assert_eq!((outcome.started.as_ns(), outcome.ended.as_ns()), (4_000, 8_000));
        assert_eq!(outcome.errors[0].at.as_ns(), 5_000);
        assert_eq!((outcome.ops_count, outcome.failed_count), (10, 2));
        assert_eq!(outcome.schedule.unwrap().offered_count, 12);
        assert_eq!(outcome.stream_hash, u64::MAX);
        // By a clock that agrees it is sent as it came.
        let same = Offset { ns: 0, ..offset };
        assert_eq!(OutcomeDoc::of(&doc.outcome(same.into())), doc);
        let unknown = text.replace("duration", "boredom");
        assert!(serde_json::from_str::<OutcomeDoc>(&unknown).is_err());
    }
}

//! The record of a run under way: its directory, its manifest, and what is noted there as stages
//! end.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use plimsoll_engine::{EndReason, Live, OpSink, OpSinkError, ScheduleOutcome, StageOutcome};
use plimsoll_model::{JobId, Moment, PackedOp, SeriesKey, StageId, StageKind};
use plimsoll_record::schema::{self, Manifest, RunState};
use plimsoll_record::{OpLogTotals, OpLogWriter, RunDirectory};
use plimsoll_stats::Timeline;
use plimsoll_workload::data::WrongKind;

use crate::consent::Permit;
use crate::runner::RunTime;
use crate::signals::Interrupts;
use crate::telemetry::Telemetry;
use crate::ui::Ui;

/// The record of a run under way, and the user who waits for it.
pub(crate) struct RunRecord {
    /// Leave to change what the run changes.
    pub(crate) _permit: Permit,
    pub(crate) time: RunTime,
    pub(crate) directory: RunDirectory,
    pub(crate) manifest: Manifest,
    pub(crate) ui: Ui,
    pub(crate) interrupts: Interrupts,
    /// Who is told of the run while it runs.
    pub(crate) telemetry: Option<Telemetry>,
}

impl Drop for RunRecord {
    /// A panic is a defect of this program. The record says that it was one, and what to do.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let path = self.directory.path().display();
        let advice = format!("`plimsoll clean {path}` removes what the run left");
        self.ui.warn(&format!("the record in {path} is incomplete; {advice}"));
        self.manifest.state = RunState::Failed;
        self.manifest.state_reason = Some(format!("plimsoll itself failed (a panic); {advice}"));
        // There is nothing else left to tell whom.
        let _ = self.directory.write_manifest(&self.manifest);
    }
}

/// What the stages gave.
pub(crate) struct Recorded {
    /// Outcomes with their stages, in order.
    pub(crate) stages: Vec<(StageId, StageKind, StageOutcome)>,
    /// What the op log holds.
    pub(crate) totals: OpLogTotals,
}

impl Recorded {
    /// Returns the outcome of the stage of that kind.
    pub(crate) fn stage(&self, kind: StageKind) -> Option<(StageId, &StageOutcome)> {
        self.stages.iter().find(|(_, each, _)| *each == kind).map(|(id, _, outcome)| (*id, outcome))
    }
}

/// Hands operations to the op log.
pub(crate) struct LogSink(pub(crate) OpLogWriter);

impl OpSink for LogSink {
    fn append(&mut self, ops: &[PackedOp]) -> Result<(), OpSinkError> {
        self.0.append_packed(ops).map_err(|error| OpSinkError(Box::new(error)))
    }

    fn tick(&mut self, now: Moment) -> Result<(), OpSinkError> {
        self.0.tick(now).map_err(|error| OpSinkError(Box::new(error)))
    }
}

/// Notes how a schedule was kept.
fn note_kept(schedule: &mut schema::Schedule, kept: &ScheduleOutcome) {
    schedule.offered_count = Some(kept.offered_count);
    schedule.late_count = Some(kept.late_count);
    schedule.skipped_count = Some(kept.skipped_count);
    schedule.delay_max_ns = Some(kept.delay_max.as_nanos() as u64);
}

/// Notes how a stage kept its schedules, and how it stamped what ended.
pub(crate) fn note_outcome(stage: &mut schema::Stage, outcome: &StageOutcome) {
    if let (Some(schedule), Some(kept)) = (&mut stage.schedule, &outcome.schedule) {
        note_kept(schedule, kept);
    }
    let Some(files) = &mut stage.files else { return };
    for of in &mut files.schedules {
        let job = JobId(of.job_index as u8);
        if let Some((_, kept)) = outcome.job_schedules.iter().find(|(each, _)| *each == job) {
            note_kept(&mut of.schedule, kept);
        }
    }
    files.look_gap_max_ns = outcome.looks.map(|looks| looks.gap_max.as_nanos() as u64);
    files.uncertain_count = outcome.looks.map(|looks| looks.uncertain_count);
}

impl RunRecord {
    /// Returns counters for a stage that begins, and has those told of it who are to be told.
    pub(crate) fn begin_counting(&self, stage: &str, threads: usize) -> Arc<Live> {
        let live = Arc::new(Live::new(threads));
        if let Some(telemetry) = &self.telemetry {
            telemetry.stage(stage, Arc::clone(&live));
        }
        live
    }

    /// Has everything told a last time, with a summary of what was measured.
    fn end_telemetry(&mut self, recorded: &Recorded) {
        let Some(telemetry) = self.telemetry.take() else { return };
        let measured = recorded.stages.iter().filter(|(_, kind, _)| *kind == StageKind::Measure);
        let stages = &self.manifest.stages;
        let named = |(id, _, outcome): &(StageId, StageKind, StageOutcome)| {
            let name = stages.get(usize::from(id.0)).map(|stage| stage.name.clone());
            (name.unwrap_or_default(), outcome.timeline.clone())
        };
        telemetry.finish(measured.map(named).collect());
    }

    /// Notes what came of a stage.
    pub(crate) fn note_end(&mut self, index: u8, outcome: &StageOutcome) {
        let endpoints = &self.manifest.target.endpoints;
        let first_errors = outcome.errors.iter().map(|error| schema::FirstError {
            class: error.class.name().to_owned(),
            kind: error.kind.name().to_owned(),
            endpoint: endpoints.get(usize::from(error.endpoint.0)).cloned(),
            at_ns: Some(error.at.as_ns()),
            stage_index: Some(index),
            status: error.status,
            message: error.message.clone(),
        });
        self.manifest.first_errors.extend(first_errors);
        let stage = &mut self.manifest.stages[usize::from(index)];
        stage.started_ns = Some(outcome.started.as_ns());
        stage.ended_ns = Some(outcome.ended.as_ns());
        stage.ended_by = Some(outcome.ended_by.name().to_owned());
        stage.ended_because = outcome.ended_because.clone();
        stage.ops_count = Some(outcome.ops_count);
        stage.ops_failed_count = Some(outcome.failed_count);
        let cells = outcome.timeline.lanes().flat_map(|(_, lane)| lane.cells());
        stage.bytes = Some(cells.map(|cell| cell.bytes).sum());
        // In virtual time nothing that is written depends on the machine.
        let is_real = self.time.virtual_time.is_none();
        stage.cpu_ns = is_real.then_some(outcome.cpu_time.as_nanos() as u64);
        stage.stream_hash = Some(format!("{:016x}", outcome.stream_hash));
        stage.uploads_given_up_count = outcome.settled.given_up_count;
        stage.uploads_left_count = outcome.settled.left_count;
        note_outcome(stage, outcome);
        let count = |(kind, count): (&WrongKind, &u64)| schema::WrongCount {
            kind: kind.name().to_owned(),
            count: *count,
        };
        stage.wrong = outcome.wrong.iter().map(count).collect();
    }

    /// Writes the summary and the manifest with the state the run has come to.
    pub(crate) fn settle(
        &mut self,
        recorded: &Recorded,
        state: RunState,
        reason: Option<String>,
    ) -> Result<()> {
        let mut timeline: Timeline<SeriesKey> = Timeline::new(0, 1_000_000_000);
        let mut wait = Duration::ZERO;
        for (_, _, outcome) in &recorded.stages {
            timeline.merge(&outcome.timeline);
            wait += outcome.recorder_wait;
        }
        self.directory.write_summary(&mut timeline)?;
        self.manifest.recorder = Some(schema::Recorder {
            rows_count: recorded.totals.rows,
            parts_count: recorded.totals.parts,
            wait_ns: wait.as_nanos() as u64,
        });
        self.manifest.state = state;
        self.manifest.state_reason = reason;
        self.directory.write_manifest(&self.manifest)?;
        Ok(())
    }

    /// Settles a run that measured: complete, unless the user ended it early.
    pub(crate) fn settle_measured(&mut self, recorded: &Recorded) -> Result<()> {
        self.end_telemetry(recorded);
        let stopped =
            recorded.stages.iter().any(|(_, _, outcome)| outcome.ended_by == EndReason::Stopped);
        let (state, reason) = if stopped {
            (RunState::Interrupted, Some("stopped by the user before its time was up".to_owned()))
        } else {
            (RunState::Complete, None)
        };
        self.settle(recorded, state, reason)
    }

    /// Returns how long the run has lasted so far.
    pub(crate) fn now(&self) -> Moment {
        self.time.clock.now()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use plimsoll_model::RunId;
    use plimsoll_record::schema::Target;

    use super::*;
    use crate::manifest;

    #[test]
    fn a_panic_is_in_the_record_with_what_to_do() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("run");
        let time = RunTime::simulated();
        let id = RunId::new("test", time.wall_epoch, 1);
        let target = Target::bare("null", Vec::new());
        let manifest = manifest::of_workload(&id, (serde_json::Value::Null, 1), target, &time);
        let record = RunRecord {
            _permit: Permit::for_nothing_real(),
            directory: RunDirectory::create(&path, &manifest).unwrap(),
            manifest,
            time,
            ui: Ui::plain().silent(),
            interrupts: Interrupts::default(),
            telemetry: None,
        };
        let panicked = catch_unwind(AssertUnwindSafe(move || {
            let _record = record;
            panic!("a defect");
        }));
        assert!(panicked.is_err());
        let left = RunDirectory::open(&path).unwrap().read_manifest().unwrap();
        assert_eq!(left.state, RunState::Failed);
        let reason = left.state_reason.unwrap();
        assert!(reason.contains("panic") && reason.contains("plimsoll clean"), "{reason}");
    }
}

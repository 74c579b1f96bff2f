//! The report for programs: one JSON object, `plimsoll.phases/1`.
//!
//! Its description is `docs/formats/phases.schema.json`. Times are integers of nanoseconds, unknown
//! is null.

mod twin;

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_analysis::Failures;
use plimsoll_analysis::phases::{Done, KindFigures, RowFigures, Times, WindowCount};
use plimsoll_model::Interface;
use schemars::generate::SchemaSettings;

use super::{JobSchedule, PhaseReport, PhaseRow, PhasesReport, text};
use crate::fio::PERCENTILES;
use crate::{RunState, VerificationMode};

/// The name and version of the format; a field that changes its meaning gets a new one.
pub const SCHEMA: &str = "plimsoll.phases/1";

/// Returns the report as one JSON object.
pub fn render(report: &PhasesReport) -> serde_json::Value {
    serde_json::to_value(document(report)).expect("the document has text keys and finite numbers")
}

/// Returns the JSON Schema of the report, as it stands in `docs/formats/phases.schema.json`.
pub fn schema() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<twin::Document>().to_value()
}

fn document(report: &PhasesReport) -> twin::Document {
    twin::Document {
        schema: SCHEMA,
        tool_version: report.tool_version.clone(),
        run_id: report.run_id.as_ref().map(ToString::to_string),
        what: report.what.clone(),
        command: report.command.clone(),
        state: match report.state {
            RunState::Complete => "complete",
            RunState::Interrupted => "interrupted",
            RunState::Killed => "killed",
            RunState::Failed => "failed",
        },
        run_directory: report.run_directory.clone(),
        started: report.started.to_string(),
        target: twin::Target {
            directory: report.target.directory.clone(),
            file_system: report.target.file_system.clone(),
            device: report.target.device.clone(),
            free_bytes: report.target.free_bytes,
        },
        machine: report.machine.clone(),
        seed: report.seed.map(|seed| seed.0.to_string()),
        interface: report.interface.map(Interface::name),
        ops_failed_count: report.failed_count(),
        phases: report.phases.iter().map(phase).collect(),
        verification: report.verification.map(|verification| twin::Verification {
            mode: match verification.mode {
                VerificationMode::EveryByte => "every-byte",
                VerificationMode::Partial => "partial",
                VerificationMode::LengthOnly => "length-only",
                VerificationMode::Off => "off",
            },
            bytes: verification.bytes,
            unverified_bytes: verification.unverified_bytes,
        }),
        op_log: report
            .op_log
            .map(|check| twin::OpLog { rows_count: check.rows, ops_counted_count: check.counted }),
        recorder_wait_ns: ns(report.recorder_wait),
        cleanup: report.cleanup.clone(),
        warnings: text::warnings(report),
        notes: report.notes.clone(),
    }
}

fn phase(phase: &PhaseReport) -> twin::Phase {
    let errors = phase.errors.iter().map(|error| twin::Error {
        class: error.class.name(),
        kind: error.kind.name(),
        message: error.message.clone(),
    });
    let told = phase.schedules_told().into_iter();
    let schedules = phase.schedules.iter().zip(told);
    let schedules: Vec<_> = schedules.map(|(of, told)| schedule(of, told.warning)).collect();
    twin::Phase {
        name: phase.name.clone(),
        iteration_index: phase.iteration,
        is_result: phase.is_result,
        started_after_ns: ns(phase.started_after),
        duration_ns: ns(phase.took),
        window_ns: ns(phase.window),
        ops_ok_count: phase.ops_ok(),
        ops_failed_count: phase.failed_count(),
        client_cpu_ns: phase.cpu.map(ns),
        client_cpu_per_op_ns: phase.cpu_per_op().map(ns),
        rows: phase.rows.iter().map(row).collect(),
        errors: errors.collect(),
        wrong_by_kind: phase.wrong.iter().cloned().collect(),
        schedule: if let [only] = &schedules[..] { Some(only.clone()) } else { None },
        schedules,
        look_gap_ns_max: phase.look_gap_max.map(ns),
        ops_uncertain_count: phase.uncertain_count,
    }
}

fn schedule(
    JobSchedule { job, schedule: of, .. }: &JobSchedule,
    warning: Option<String>,
) -> twin::Schedule {
    twin::Schedule {
        job: job.clone(),
        rate: of.rate.clone(),
        arrivals: of.arrivals.clone(),
        in_flight_count_max: of.max_in_flight,
        duration_ns: of.lasted.map(ns),
        rate_offered_ops_per_sec: of.rate_offered().map(|rate| rate.0),
        offered_count: of.offered_count,
        late_count: of.late_count,
        skipped_count: of.skipped_count,
        delay_ns_max: of.delay_max.map(ns),
        kept: of.offered_count.map(|_| of.is_kept()),
        warning,
    }
}

fn row(row: &PhaseRow) -> twin::Row {
    let RowFigures { workers_count, workers_active, began, took, ref ramp, .. } = row.figures;
    twin::Row {
        name: row.name.clone(),
        work: row.work.clone(),
        block: row.block.clone(),
        workers_count: row.workers.max(workers_count),
        workers_active_count: workers_active,
        depth: row.depth,
        direct: row.direct,
        interface: row.interface.map(Interface::name),
        caches: row.caches.name(),
        files_count: row.files_count,
        file_size: row.file_size.clone(),
        duration_asked_ns: row.duration.map(ns),
        served_by: row.served_by.clone(),
        clients_count: row.figures.clients_count(),
        measured_from_ns: began.map(ns),
        measured_ns: took.map(ns),
        ramp_ops_ok_count: ramp.ops_ok,
        ramp_ops_failed_count: ramp.failed.count(),
        kinds: row.figures.kinds.iter().map(kind).collect(),
    }
}

fn kind(kind: &KindFigures) -> twin::Kind {
    twin::Kind {
        kind: kind.kind.name(),
        ops_ok_count: kind.ops_ok,
        ops_failed_count: kind.failed.count(),
        failed_by_class: by_class(&kind.failed),
        bytes: kind.bytes,
        ops_per_sec: kind.ops_per_sec,
        bytes_per_sec: kind.bytes_per_sec,
        latency_ns: times(&kind.latency),
        service_time_ns: times(&kind.service_time),
        first_done: kind.first_done.as_ref().map(done),
        last_done: kind.last_done.as_ref().map(done),
        windows: kind.windows.iter().map(window).collect(),
    }
}

fn by_class(failures: &Failures) -> BTreeMap<&'static str, u64> {
    failures.classes().map(|(class, count)| (class.name(), count)).collect()
}

fn times(times: &Times) -> twin::Times {
    let percentile = |percent: f64| (percent, times.percentile(percent).map(ns));
    twin::Times {
        samples_count: times.samples(),
        min: times.min().map(ns),
        mean: times.mean().map(ns),
        max: times.max().map(ns),
        std_dev: times.std_dev().map(ns),
        percentiles: PERCENTILES.map(percentile).to_vec(),
    }
}

fn done(done: &Done) -> twin::Done {
    twin::Done {
        after_ns: ns(done.after),
        ops_count: done.ops,
        bytes: done.bytes,
        ops_per_sec: done.ops_per_sec,
        bytes_per_sec: done.bytes_per_sec,
    }
}

fn window(window: &WindowCount) -> twin::Window {
    twin::Window {
        started_ns: ns(window.start),
        duration_ns: ns(window.length),
        ops_count: window.ops,
        bytes: window.bytes,
        latency_ns_mean: window.latency_mean.map(ns),
    }
}

/// Returns a duration in nanoseconds, at most what 64 bits hold.
fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;

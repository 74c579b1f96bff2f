//! The end of a run: its report, its warnings and its exit code.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use plimsoll_analysis::StageAnalysis;
use plimsoll_engine::StageOutcome;
use plimsoll_model::{OpKind, OpRate, RunId, StageKind, WallTime};
use plimsoll_record::schema::{Manifest, RunState as RecordedState};
use plimsoll_report::text::Look;
use plimsoll_report::{
    ErrorSample, LoopModel, OpLogCheck, RunReport, RunState, StageWork, Verification,
    VerificationMode, json, text,
};
use plimsoll_workload::{Activity, Pacing, Population, Verify, Workload};

use crate::args::OutputArgs;
use crate::commands::s3::Cleaned;
use crate::runner::Recorded;
use crate::ui::Ui;

/// Ran, but something about the result is not as it should be.
const EXIT_NOT_GOOD: u8 = 1;

/// Everything the end of a run is made from.
pub(crate) struct Presented<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) workload: &'a Workload,
    pub(crate) directory: &'a Path,
    pub(crate) recorded: &'a Recorded,
    pub(crate) outcome: &'a StageOutcome,
    pub(crate) analysis: StageAnalysis,
    pub(crate) cleaned: Option<Cleaned>,
    pub(crate) notes: Vec<String>,
    /// In percent.
    pub(crate) max_error_rate: f64,
}

/// Returns the advice of an analysis in words, for the manifest.
pub(crate) fn advice_texts(analysis: &StageAnalysis) -> Vec<String> {
    analysis.advice.iter().map(plimsoll_report::advice_text).collect()
}

/// Prints the report and returns the exit code.
pub(crate) fn print(presented: Presented<'_>, output: &OutputArgs, ui: &Ui) -> Result<ExitCode> {
    let error_percent = presented.analysis.error_rate().map(|rate| rate * 100.0);
    let limit = presented.max_error_rate;
    let left = presented.cleaned.as_ref().and_then(|cleaned| cleaned.left.clone());
    let report = input(presented)?;
    let rendered = if output.json {
        format!("{:#}\n", json::render(&report))
    } else {
        text::render(&report, &Look { width: ui.width, color: ui.color })
    };
    ui.result(&rendered)?;
    let mut good = left.is_none();
    match error_percent {
        None => {
            ui.warn("no operation ended while measuring, so there is no result");
            good = false;
        }
        Some(percent) if percent > limit => {
            ui.warn(&format!(
                "{percent:.2} % of the operations failed, more than --max-error-rate {limit}% allows"
            ));
            good = false;
        }
        Some(_) => {}
    }
    if report.op_log.is_some_and(|check| check.rows != check.counted) {
        ui.warn(
            "the op log and the counters differ: this is a fault of plimsoll; please report it",
        );
        good = false;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(EXIT_NOT_GOOD) })
}

fn input(presented: Presented<'_>) -> Result<RunReport> {
    let Presented { manifest, workload, outcome, recorded, .. } = presented;
    let target = &manifest.target;
    let bucket = target.bucket.as_ref().map_or(String::new(), |name| format!(", bucket {name}"));
    let threads = manifest.stages.last().map_or(0, |stage| stage.threads_count);
    let totals = &presented.analysis.total.stage;
    let rows = totals.ops_ok + totals.failed.count();
    let cleanup = presented.cleaned.as_ref().and_then(|cleaned| {
        let objects = cleaned.objects?;
        Some(StageWork { objects, bytes: 0, took: cleaned.took })
    });
    let verification = verification(workload, &presented.analysis);
    Ok(RunReport {
        tool_version: manifest.tool.version.clone(),
        run_id: RunId::parse(&manifest.run_id).context("the run's own id")?,
        what: workload.name.replacen('-', " ", 1),
        command: manifest.command_line.join(" "),
        target: format!("{}{bucket}", target.endpoints.join(", ")),
        endpoints: target.endpoints.clone(),
        started: WallTime::from_unix_ns(manifest.started_unix_ns + outcome.started.as_ns()),
        loop_model: match workload.pacing {
            Pacing::Closed => LoopModel::Closed,
            Pacing::Capped { ops_per_sec } => LoopModel::Capped { rate: OpRate(ops_per_sec) },
        },
        seed: workload.seed,
        concurrency: workload.concurrency.get(),
        threads,
        prepare: recorded.stage(StageKind::Prepare).map(|(_, prepare)| prepared(prepare)),
        cleanup,
        analysis: presented.analysis,
        errors: outcome
            .errors
            .iter()
            .map(|error| ErrorSample {
                class: error.class,
                kind: error.kind,
                endpoint: Some(error.endpoint),
                message: error.message.clone(),
            })
            .collect(),
        notes: presented.notes,
        run_directory: Some(presented.directory.display().to_string()),
        state: match manifest.state {
            RecordedState::Complete => RunState::Complete,
            RecordedState::Running | RecordedState::Interrupted | RecordedState::Failed => {
                RunState::Interrupted
            }
        },
        op_log: Some(OpLogCheck { rows, counted: outcome.ops_count }),
        verification,
        client_cpu: Some(outcome.cpu_time),
        recorder_waits: outcome.recorder_waits,
    })
}

fn prepared(prepare: &StageOutcome) -> StageWork {
    let cells = prepare.timeline.lanes().flat_map(|(_, lane)| lane.cells);
    let (objects, bytes) =
        cells.fold((0, 0), |(objects, bytes), cell| (objects + cell.ended[0], bytes + cell.bytes));
    StageWork { objects, bytes, took: prepare.ended.since(prepare.started) }
}

/// How downloads were checked; `None` when nothing was downloaded.
fn verification(workload: &Workload, analysis: &StageAnalysis) -> Option<Verification> {
    let get = analysis.kinds.iter().find(|kind| kind.kind == OpKind::Get)?;
    let mode = match workload.verify {
        Verify::EveryByte => VerificationMode::EveryByte,
        Verify::LengthOnly => VerificationMode::LengthOnly,
        Verify::Off => VerificationMode::Off,
    };
    Some(Verification { mode, bytes: get.figures.stage.bytes })
}

/// Returns remarks on what the figures mean that depend on the workload.
pub(crate) fn notes(workload: &Workload, manifest: &Manifest, embedded: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if embedded {
        notes.push(
            "embedded in-memory store on the same cores: this measures plimsoll and the machine, \
             not a store you would use"
                .to_owned(),
        );
    }
    if let Some(signing) = &manifest.target.payload_signing
        && !matches!(workload.activity, Activity::List { .. })
        && matches!(workload.population, Population::Uploaded(_))
    {
        notes.push(format!("payload of uploads: {signing}"));
    }
    notes
}

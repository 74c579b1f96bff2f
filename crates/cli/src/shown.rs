//! The report of a record as this machine shows it: in local time, with warnings and an exit code.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use jiff::{Timestamp, tz::TimeZone};
use plimsoll_conduct::Recording;
use plimsoll_model::WallTime;
use plimsoll_report::text::Look;
use plimsoll_report::{Report, json, text};
use plimsoll_results::{Asked, AskedFor, Record, ResultsError};

use crate::args::{AnalysisArgs, Form};
use crate::flags;
use crate::ui::Ui;

/// Ran, but something about the result is not as it should be.
const EXIT_NOT_GOOD: u8 = 1;
/// Ran, and what it measured is the client and not the store.
const EXIT_CLIENT_LIMIT: u8 = 3;

/// Returns the report of a record.
pub(crate) fn report(record: &Record, asked: &Asked) -> Result<Report, ResultsError> {
    let mut report = record.report(asked)?;
    if report.foreign.is_none() {
        report.utc_offset_seconds = local_offset(report.started);
    }
    Ok(report)
}

/// Returns the report of a run whose record has just been completed, and notes in the record what
/// it advises.
pub(crate) fn report_of_run(recording: &mut Recording, asked: &Asked) -> Result<Report> {
    let record = Record::of_run(&recording.directory);
    let record = record.context("cannot read the record back")?;
    let report = report(&record, asked)?;
    let rows = report.stages.iter().flat_map(|stage| &stage.rows);
    recording.manifest.advice =
        rows.flat_map(|row| &row.advice).map(|advice| advice.text.clone()).collect();
    recording.directory.write_manifest(&recording.manifest)?;
    Ok(report)
}

/// Returns what was asked for that a record does not have, by the flag that asked for it.
pub(crate) fn in_flags(error: ResultsError, asked: &AnalysisArgs) -> anyhow::Error {
    let ResultsError::Asked { field, reason } = &error else { return error.into() };
    let (flag, value) = match field {
        AskedFor::Stage => ("--stage", asked.stage.clone()),
        AskedFor::Job => ("--job", asked.job.clone()),
        AskedFor::Kind => ("--analyze.op", asked.op.as_ref().map(|kind| kind.to_uppercase())),
        AskedFor::Endpoint => ("--analyze.host", asked.host.clone()),
        AskedFor::Limit => ("--analyze.limit", None),
        AskedFor::Offset => ("--analyze.offset", None),
        AskedFor::Steady => ("--steady", None),
        AskedFor::Slo => ("--slo", None),
    };
    let value = value.map_or(String::new(), |value| format!(" {value}"));
    anyhow!("{flag}{value}: {reason}")
}

/// Returns a report as it is printed.
pub(crate) fn render(report: &Report, form: Form, ui: &Ui) -> String {
    match form {
        Form::Text => flags::in_flags(&in_text(report, ui)),
        Form::Json => json::text(report),
    }
}

/// Returns a report as text: at a glance, or with all figures where the details were asked for.
pub(crate) fn in_text(report: &Report, ui: &Ui) -> String {
    match report.is_detailed() {
        true => text::render(report, &look(ui)),
        false => text::brief(report, &look(ui)),
    }
}

/// Prints a report.
pub(crate) fn print(report: &Report, form: Form, ui: &Ui) -> Result<()> {
    ui.result(&render(report, form, ui))?;
    Ok(())
}

/// Returns how wide and how colourful text may be.
pub(crate) fn look(ui: &Ui) -> Look {
    Look { width: crate::ui::width(), color: ui.color }
}

/// Returns the exit code of a command that ran.
pub(crate) fn exit_code(good: bool) -> ExitCode {
    if good { ExitCode::SUCCESS } else { ExitCode::from(EXIT_NOT_GOOD) }
}

/// Returns the exit code of a run whose client was the limit, where that is not to pass.
pub(crate) fn client_limit() -> ExitCode {
    ExitCode::from(EXIT_CLIENT_LIMIT)
}

/// Returns how many seconds the local time of this machine was ahead of UTC at that moment.
fn local_offset(at: WallTime) -> Option<i32> {
    let at = Timestamp::from_nanosecond(i128::from(at.as_unix_ns())).ok()?;
    Some(TimeZone::system().to_offset(at).seconds())
}

//! `plimsoll file`: a benchmark of a file system from its flags to its report.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use plimsoll_driver_file::facts::{probe, size_bytes};
use plimsoll_record::OpLog;
use plimsoll_report::phases::{self, PhasesReport};
use plimsoll_report::text::Look;
use plimsoll_workload::files::FilesSpec;

use crate::args::file::FileCommand;
use crate::commands::s3::fresh_seed;
use crate::files::{self, FileSettings, FilesRan};
use crate::lower_files::{self, Ground};
use crate::machine;
use crate::present::{self, Form};
use crate::present_files::{self, Phase, Rows};
use crate::run_record::RunRecord;
use crate::runner::{LogSource, RunTime};
use crate::ui::Ui;

/// Runs one `file` command.
pub(crate) fn run(command: &FileCommand) -> Result<ExitCode> {
    let common = command.common();
    let seed = common.seed.unwrap_or_else(|| fresh_seed(RunTime::machine().wall_epoch));
    let spec = lower_files::workload(command, ground(command)?, seed)?;
    let ui = Ui::new(&common.output.print);
    if common.explain {
        ui.result(&spec.to_yaml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let settings = FileSettings {
        conduct: &common.conduct,
        output: &common.output,
        keeps_data: common.keep_data,
        null: false,
        notes: Vec::new(),
    };
    run_spec(&spec, &settings).map_err(lower_files::in_flags)
}

/// Runs a workload on files and prints our report on it.
pub(crate) fn run_spec(spec: &FilesSpec, settings: &FileSettings<'_>) -> Result<ExitCode> {
    let ran = files::run(spec, settings)?;
    let (report, _) = report(&ran.record, |_| Rows::Groups)?;
    let print = &settings.output.print;
    ran.record.ui.result(&render(&report, print.form(), &ran.record.ui))?;
    conclude(&ran, &report, settings)
}

/// Returns what is known of the first directory, or of the files that are there already.
fn ground(command: &FileCommand) -> Result<Ground> {
    let on = command.on();
    let path = on.first().or(command.common().dir.first()).map_or(Path::new("."), Path::new);
    let flag = if on.is_empty() { "--dir" } else { "--on" };
    let facts = probe(path).map_err(|error| anyhow::anyhow!("{flag}: {}", error.message))?;
    Ok(Ground {
        cores: machine::cores() as u32,
        free_bytes: Some(facts.free_bytes),
        direct_align: facts.direct.map(|direct| u64::from(direct.offset_align)),
        existing_bytes: on.iter().filter_map(|path| size_bytes(Path::new(path))).min(),
    })
}

/// Returns the report on a run, and the figures that it is made of once more where they are asked
/// for in other rows.
pub(crate) fn report(
    record: &RunRecord,
    rows: impl Fn(usize) -> Rows,
) -> Result<(PhasesReport, Vec<Phase>)> {
    let spec = present_files::spec_of(&record.manifest);
    let spec = spec.ok_or_else(|| anyhow::anyhow!("run.json holds no workload on files"))?;
    let source = LogSource(OpLog::open(&record.directory)?);
    let figures = present_files::analyse(&source, &record.manifest, &spec, |_| Rows::Groups)?;
    let others = present_files::analyse(&source, &record.manifest, &spec, rows)?;
    let path = record.directory.path();
    let report = present_files::of_run(&record.manifest, path, &spec, figures)?;
    Ok((report, others))
}

/// Returns a report as it is printed.
pub(crate) fn render(report: &PhasesReport, form: Form, ui: &Ui) -> String {
    match form {
        Form::Json => format!("{:#}\n", phases::json::render(report)),
        Form::Text => phases::text::render(report, &Look { width: ui.width, color: ui.color }),
    }
}

/// Warns of what is not as it should be and returns the exit code.
pub(crate) fn conclude(
    ran: &FilesRan,
    report: &PhasesReport,
    settings: &FileSettings<'_>,
) -> Result<ExitCode> {
    let flaws = present_files::flaws(report, settings.conduct.max_error_rate.0);
    flaws.iter().for_each(|flaw| ran.record.ui.warn(flaw));
    Ok(present::exit_code(flaws.is_empty() && ran.troubles.is_empty()))
}

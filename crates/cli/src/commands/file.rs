//! `plimsoll file`: a benchmark of a file system from its flags to its report.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use plimsoll_driver_file::facts::{probe, size_bytes};
use plimsoll_record::OpLog;
use plimsoll_report::phases::{self, PhasesReport};
use plimsoll_report::text::Look;

use crate::args::file::FileCommand;
use crate::conducted::{self, Settings, fresh_seed};
use crate::lower_files::{self, Ground};
use crate::present::Form;
use crate::present_files::{self, Phase};
use crate::recorded::Source;
use crate::ui::Ui;
use plimsoll_conduct::{Recording, RunTime, machine};
use plimsoll_results::{Clients, Rows};

/// Runs one `file` command.
pub(crate) fn run(command: &FileCommand) -> Result<ExitCode> {
    let common = command.common();
    let seed = common.seed.unwrap_or_else(|| fresh_seed(RunTime::machine().wall_epoch));
    let spec = lower_files::workload(command, ground(command)?, seed)?;
    let file = lower_files::as_plan(&spec).map_err(lower_files::in_flags)?;
    let ui = Ui::new(&common.output.print);
    if common.explain {
        ui.result(&file.to_yaml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let settings = Settings {
        files: Some(&common.conduct),
        keeps_data: common.keep_data,
        max_error_rate: common.conduct.max_error_rate.0,
        ..Settings::plain(&common.output, command.consent())
    };
    conducted::run(&file, &settings).map_err(lower_files::in_flags)
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

/// Returns the report on a run.
pub(crate) fn report(record: &Recording) -> Result<PhasesReport> {
    let figures = figures(record, |_| Rows::Jobs)?;
    present_files::of_run(
        &record.manifest,
        record.directory.path(),
        &Clients::of(&record.manifest),
        figures,
    )
}

/// Returns the figures of a run in rows as they are asked for.
pub(crate) fn figures(record: &Recording, rows: impl Fn(usize) -> Rows) -> Result<Vec<Phase>> {
    let source = Source::Log(OpLog::open(&record.directory)?);
    present_files::analyse(&source, &record.manifest, &Clients::of(&record.manifest), rows)
}

/// Returns a report as it is printed.
pub(crate) fn render(report: &PhasesReport, form: Form, ui: &Ui) -> String {
    match form {
        Form::Json => format!("{:#}\n", phases::json::render(report)),
        Form::Text => phases::text::render(report, &Look { width: ui.width, color: ui.color }),
    }
}

/// Warns of what is not as it should be, and tells whether all is.
pub(crate) fn conclude(ui: &Ui, report: &PhasesReport, max_error_rate: f64) -> bool {
    let flaws = present_files::flaws(report, max_error_rate);
    flaws.iter().for_each(|flaw| ui.warn(flaw));
    flaws.is_empty()
}

//! `plimsoll file`: a benchmark of a file system from its flags to its report.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use plimsoll_driver_file::facts::{probe, size_bytes};
use plimsoll_results::Asked;
use plimsoll_workload::files::FilesSpec;

use crate::args::file::FileCommand;
use crate::commands::s3::fresh_seed;
use crate::files::{self, FileSettings};
use crate::lower_files::{self, Ground};
use crate::shown;
use crate::ui::Ui;
use plimsoll_conduct::{RunTime, machine};

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
        consent: command.consent(),
        null: false,
        notes: Vec::new(),
    };
    run_spec(&spec, &settings).map_err(lower_files::in_flags)
}

/// Runs a workload on files and prints our report on it.
pub(crate) fn run_spec(spec: &FilesSpec, settings: &FileSettings<'_>) -> Result<ExitCode> {
    files::run(spec, settings, &|record, ui| {
        let report = shown::report_of_run(record, &Asked::default())?;
        shown::print(&report, settings.output.print.form(), ui)?;
        Ok(shown::is_good(&report, settings.conduct.max_error_rate.0, ui))
    })
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

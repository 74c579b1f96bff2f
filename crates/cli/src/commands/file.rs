//! `plimsoll file`: a benchmark of a file system from its flags to its report.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use plimsoll_conduct::{RunTime, machine};
use plimsoll_driver_file::facts::{probe, size_bytes};

use crate::args::file::FileCommand;
use crate::conducted::{self, Settings, fresh_seed};
use crate::lower_files::{self, TargetFacts};

/// Runs one `file` command.
pub(crate) fn run(command: &FileCommand) -> Result<ExitCode> {
    let common = command.common();
    let seed = common.seed.unwrap_or_else(|| fresh_seed(RunTime::machine().wall_epoch));
    let file = lower_files::workload(command, target_facts(command)?, seed);
    let file = file.map_err(lower_files::in_flags)?;
    let ui = common.output.print.ui();
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
fn target_facts(command: &FileCommand) -> Result<TargetFacts> {
    let on = command.on();
    let path = on.first().or(command.common().dir.first()).map_or(Path::new("."), Path::new);
    let flag = if on.is_empty() { "--dir" } else { "--on" };
    let facts = probe(path).map_err(|error| anyhow::anyhow!("{flag}: {}", error.message))?;
    Ok(TargetFacts {
        cores: machine::cores() as u32,
        free_bytes: Some(facts.free_bytes),
        direct_align: facts.direct.map(|direct| u64::from(direct.offset_align)),
        existing_bytes: on.iter().filter_map(|path| size_bytes(Path::new(path))).min(),
    })
}

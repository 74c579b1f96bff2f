//! `plimsoll file`: a benchmark of a file system from its flags to its report.

use std::cell::Cell;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use plimsoll_conduct::{RunTime, machine};
use plimsoll_driver_file::allowed_dirs::AllowedDirs;

use crate::args::file::FileCommand;
use crate::args::load_line::SearchArgs;
use crate::conducted::{self, Settings, fresh_seed};
use crate::fleet::{self, Mustered};
use crate::load_line::searched;
use crate::lower_files::{self, TargetFacts};

/// Runs one `file` command.
pub(crate) fn run(command: &FileCommand) -> Result<ExitCode> {
    searching(command, None)
}

/// The same, or looks for its load line.
pub(crate) fn searching(command: &FileCommand, search: Option<&SearchArgs>) -> Result<ExitCode> {
    let common = command.common();
    let seed = common.seed.unwrap_or_else(|| fresh_seed(RunTime::machine().wall_epoch));
    let ui = common.output.ui();
    // How much there is to do depends on the agents.
    let mustered = match common.output.fleet.is_asked()? {
        true => {
            fleet::check_absolute(&common.dir)?;
            fleet::check_absolute(command.on())?;
            Some(fleet::muster(&common.output.fleet, &looked_at(command), &ui)?)
        }
        false => None,
    };
    let facts = match &mustered {
        Some(mustered) => fleet_facts(mustered)?,
        None => target_facts(command)?,
    };
    let file = lower_files::workload(command, &facts, seed);
    let file = searched(file.map_err(lower_files::in_flags)?, search, None)?;
    if common.explain {
        ui.result(&file.to_yaml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let settings = Settings {
        files: Some(&common.conduct),
        keeps_data: common.keep_data,
        max_error_rate: common.conduct.max_error_rate.0,
        mustered: Cell::new(mustered),
        ..Settings::plain(&common.output, command.consent())
    };
    conducted::run(&file, &settings).map_err(lower_files::in_flags)
}

/// Returns the paths of which agents tell what lies there.
fn looked_at(command: &FileCommand) -> Vec<String> {
    match command.on() {
        [] => command.common().dir.iter().take(1).cloned().collect(),
        on => on.to_vec(),
    }
}

/// Returns what agents know of the places that they were asked for.
fn fleet_facts(mustered: &Mustered) -> Result<TargetFacts> {
    let places = mustered.places()?;
    let weights = mustered.weights();
    let each = || places.iter().filter_map(|places| places.first());
    let aligns: Option<Vec<u64>> = each().map(|place| place.direct_align).collect();
    Ok(TargetFacts {
        cores: weights.iter().fold(0, |sum: u32, weight| sum.saturating_add(*weight)).max(1),
        free_bytes: each().filter_map(|place| place.free_bytes).min(),
        direct_align: aligns.and_then(|aligns| aligns.into_iter().max()),
        existing_bytes: places.iter().flat_map(|of| of.iter()).filter_map(|p| p.size_bytes).min(),
        weights,
    })
}

/// Returns what is known of the first directory, or of the files that already exist.
fn target_facts(command: &FileCommand) -> Result<TargetFacts> {
    let on = command.on();
    let path = on.first().or(command.common().dir.first()).map_or(Path::new("."), Path::new);
    let flag = if on.is_empty() { "--dir" } else { "--on" };
    let facts = AllowedDirs::ANY
        .probe(path)
        .map_err(|error| anyhow::anyhow!("{flag}: {}", error.message))?;
    Ok(TargetFacts {
        cores: machine::cores() as u32,
        free_bytes: Some(facts.free_bytes),
        direct_align: facts.direct.map(|direct| u64::from(direct.offset_align)),
        existing_bytes: on
            .iter()
            .filter_map(|path| AllowedDirs::ANY.size_bytes(Path::new(path)))
            .min(),
        weights: vec![1],
    })
}

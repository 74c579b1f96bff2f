//! `plimsoll s3`: a benchmark of an S3 store from its flags to its report.

use std::process::ExitCode;

use anyhow::Result;
use plimsoll_conduct::{Consent, RunTime};

use crate::args::YES;
use crate::args::load_line::SearchArgs;
use crate::args::s3::S3Command;
use crate::conducted::{self, Settings, fresh_seed};
use crate::load_line::searched_on;
use crate::lower;

/// Runs one `s3` command.
pub(crate) fn run(command: &S3Command) -> Result<ExitCode> {
    searching(command, None)
}

/// The same, or looks for its load line.
pub(crate) fn searching(command: &S3Command, search: Option<&SearchArgs>) -> Result<ExitCode> {
    let common = command.common();
    let seed = common.load.seed.unwrap_or_else(|| fresh_seed(RunTime::machine().wall_epoch));
    let mut asked = lower::asked(command)?;
    if search.is_some() {
        // The search says when operations start, and has it itself.
        asked.max_in_flight = None;
    }
    let file = common.output.outages.added_to(asked.workload(seed)?)?;
    let file = searched_on(&common.store, file, search, common.load.max_in_flight)?;
    if common.explain {
        common.output.ui().result(&file.to_yaml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let consent = match command {
        S3Command::Delete(args) => Consent::by(YES, args.yes).touching(args.touched.touch.clone()),
        _ => Consent::by(YES, false),
    };
    let settings = Settings {
        store: Some(&common.store),
        serverprof: common.profile.serverprof.as_ref(),
        keeps_data: common.objects.noclear || common.objects.keep_data,
        ..Settings::plain(&common.output, consent).conducting(&common.load.conduct)
    };
    conducted::run(&file, &settings).map_err(|error| lower::in_our_words(error, Some(&asked)))
}

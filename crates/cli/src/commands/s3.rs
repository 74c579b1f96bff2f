//! `plimsoll s3`: a benchmark of an S3 store from its flags to its report.

use std::process::ExitCode;

use anyhow::Result;
use plimsoll_conduct::{Consent, RunTime, StandIn};

use super::load_line;
use super::run::refuse_host;
use crate::args::load_line::SearchArgs;
use crate::args::s3::S3Command;
use crate::args::{OutputArgs, YES};
use crate::conducted::{self, Settings, fresh_seed};
use crate::load_line::{BuiltIn, SEED_BUILT_IN, searched};
use crate::lower;

/// Runs one `s3` command.
pub(crate) fn run(command: &S3Command) -> Result<ExitCode> {
    searching(command, None)
}

/// The same, or looks for its load line.
pub(crate) fn searching(command: &S3Command, search: Option<&SearchArgs>) -> Result<ExitCode> {
    let common = command.common();
    let built_in = BuiltIn::of(&common.store, search);
    if built_in.is_some() {
        load_line::refuse_what_it_has_not(&common.output)?;
    }
    if built_in == Some(BuiltIn::Virtual) {
        refuse_host()?;
    }
    let of_built_in = built_in.zip(search).map(|(built_in, search)| built_in.search(search));
    let search = of_built_in.as_ref().or(search);
    let seed = common.load.seed.unwrap_or_else(|| match built_in {
        Some(_) => SEED_BUILT_IN,
        None => fresh_seed(RunTime::machine().wall_epoch),
    });
    let mut asked = lower::asked(command)?;
    if search.is_some() {
        // The search says when operations start, and has it itself.
        asked.max_in_flight = None;
    }
    if built_in.is_some() {
        BuiltIn::shrink(&mut asked);
    }
    let file = common.output.outages.added_to(asked.workload(seed)?)?;
    let mut file = searched(file, search, common.load.max_in_flight)?;
    if built_in.is_some() {
        BuiltIn::aim(&mut file);
    }
    if common.explain {
        common.output.ui().result(&file.to_yaml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let settings = settings(command, &common.output);
    let stand_in = StandIn::Virtual(None);
    let done = match built_in {
        Some(BuiltIn::Demonstrated) => {
            let outputs = load_line::outputs(&common.output, &file.name);
            let [first, second] = outputs.each_ref().map(|output| self::settings(command, output));
            load_line::demonstrate(&file, [Settings { stand_in, ..first }, second], &common.output)
        }
        Some(BuiltIn::Virtual) => conducted::run(&file, &Settings { stand_in, ..settings }),
        Some(BuiltIn::Real) | None => conducted::run(&file, &settings),
    };
    done.map_err(|error| lower::in_our_words(error, Some(&asked)))
}

/// Returns how a command is carried out, with this said of what is printed and kept.
fn settings<'a>(command: &'a S3Command, output: &'a OutputArgs) -> Settings<'a> {
    let common = command.common();
    let consent = match command {
        S3Command::Delete(args) => Consent::by(YES, args.yes).touching(args.touched.touch.clone()),
        _ => Consent::by(YES, false),
    };
    Settings {
        store: Some(&common.store),
        serverprof: common.profile.serverprof.as_ref(),
        keeps_data: common.objects.noclear || common.objects.keep_data,
        ..Settings::plain(output, consent).conducting(&common.load.conduct)
    }
}

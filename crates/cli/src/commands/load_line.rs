//! `plimsoll loadline`: a benchmark at one rate after the other, until the highest is found that a
//! store carries.

use std::process::ExitCode;

use anyhow::Result;

use super::{file, run, s3, weed};
use crate::args::load_line::{LoadLineArgs, LoadLineOf};

/// Looks for the load line of a benchmark.
pub(crate) fn run(args: &LoadLineArgs) -> Result<ExitCode> {
    let search = Some(&args.search);
    match &args.of {
        LoadLineOf::S3(command) => s3::searching(command, search),
        LoadLineOf::Weed(command) => weed::searching(command, search),
        LoadLineOf::File(command) => file::searching(command, search),
        LoadLineOf::Run(args) => run::searching(args, search),
    }
}

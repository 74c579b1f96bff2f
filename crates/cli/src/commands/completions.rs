//! `plimsoll completions`: a script by which a shell completes commands and flags.

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::help::{self, Depth};
use crate::ui::Ui;

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut script = Vec::new();
    // The arranged command has the benchmarks of `as warp`, too.
    let mut program = help::arranged(Cli::command(), Depth::Long);
    clap_complete::generate(args.shell, &mut program, "plimsoll", &mut script);
    Ui::plain().result(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}

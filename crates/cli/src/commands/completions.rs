//! `plimsoll completions`: a script by which a shell completes commands and flags.

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::ui::Ui;

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "plimsoll", &mut script);
    Ui::plain().result(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}

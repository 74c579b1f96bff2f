//! The `plimsoll` binary: parses the command line, runs the command, prints what went wrong, sets
//! the exit code.

mod args;
mod commands;
mod environment;
mod lower;
mod machine;
mod manifest;
mod present;
mod redact;
mod runner;
mod signals;
mod store;
mod ui;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

/// Something could not be run at all.
const EXIT_COULD_NOT_RUN: u8 = 2;

fn main() -> ExitCode {
    environment::accept_warp_names();
    let cli = Cli::parse();
    let done = match &cli.command {
        Command::S3(command) => commands::s3::run(command),
        Command::Oracle(args) => commands::oracle::run(args),
        Command::Clean(args) => commands::clean::run(args),
        Command::Null(args) => commands::null::run(args),
    };
    done.unwrap_or_else(|error| {
        ui::complain(&error);
        ExitCode::from(EXIT_COULD_NOT_RUN)
    })
}

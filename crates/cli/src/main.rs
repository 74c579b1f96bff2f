//! The `plimsoll` binary: parses the command line, runs the command, prints what went wrong, sets
//! the exit code.
#![cfg_attr(
    not(all(feature = "console", feature = "fleet")),
    allow(
        dead_code,
        reason = "what only the console or the fleet calls; the default build checks it"
    )
)]

mod access;
mod args;
mod built;
mod commands;
mod conducted;
mod environment;
mod flags;
#[cfg_attr(not(feature = "fleet"), path = "no_fleet.rs")]
mod fleet;
mod help;
mod hosts;
mod left_out;
mod load_line;
mod lower;
mod lower_files;
mod manifest;
mod pins;
mod said;
mod secret;
mod server_profile;
mod shown;
mod signals;
mod store;
mod store_url;
mod syncstart;
mod terminal;
mod ui;
mod warp_words;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use plimsoll_conduct::machine;

use crate::args::{AsCommand, Cli, Command, WarpCommand};
use crate::ui::Ui;

/// Something could not be run at all.
const EXIT_COULD_NOT_RUN: u8 = 2;
/// The commands that go on until they are ended.
const SERVERS: [&str; 4] = ["oracle", "agent", "fleet", "console"];

fn main() -> ExitCode {
    environment::accept_warp_names();
    machine::allow_open_files();
    signals::outlive_file_limit();
    let command = Cli::command();
    let words = load_line::with_benchmark(environment::words());
    let words = warp_words::in_our_form(&command, words);
    let matches = match parsed(&command, words) {
        Ok(matches) => matches,
        Err(error) => return refuse(&command, error),
    };
    said::keep(&command, &matches);
    flags::keep(&command, &matches);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let done = match &cli.command {
        Command::S3(command) => commands::s3::run(command),
        Command::Weed(command) => commands::weed::run(command),
        Command::File(command) => commands::file::run(command),
        Command::Loadline(args) => commands::load_line::run(args),
        Command::Run(args) => commands::run::run(args),
        Command::Replay(args) => commands::replay::run(args),
        Command::Fit(args) => commands::fit::run(args),
        Command::Analyze(args) => commands::analyze::run(args),
        Command::Compare(args) => commands::compare::run(args),
        Command::As(AsCommand::Warp(command)) => match command {
            WarpCommand::Analyze(args) => commands::warp_shown::analyze(args),
            WarpCommand::Cmp(args) => commands::compare::as_warp(args),
            WarpCommand::Merge(args) => commands::merge::as_warp(args),
            WarpCommand::Benchmark(words) => commands::warp::run(words),
        },
        Command::As(AsCommand::Fio(args)) => commands::fio::as_fio(args),
        Command::As(AsCommand::Mdtest(args)) => commands::mdtest::as_mdtest(args),
        Command::As(AsCommand::S3Benchmark(args)) => commands::s3_benchmark::as_s3_benchmark(args),
        Command::As(AsCommand::Cosbench(args)) => commands::cosbench::as_cosbench(args),
        Command::As(AsCommand::WeedBenchmark(args)) => {
            commands::weed_benchmark::as_weed_benchmark(args)
        }
        Command::Merge(args) => commands::merge::run(args),
        Command::Export(args) => commands::export::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Prove(args) => commands::prove::run(args),
        Command::Check(args) => commands::check::run(args),
        Command::Oracle(args) => commands::oracle::run(args),
        #[cfg(feature = "fleet")]
        Command::Fleet(command) => commands::fleet::run(command),
        #[cfg(feature = "fleet")]
        Command::Agent(args) => commands::agent::run(args),
        #[cfg(feature = "console")]
        Command::Console(args) => commands::console::run(args),
        Command::Clean(args) => commands::clean::run(args),
        Command::Completions(args) => commands::completions::run(args),
        Command::Man(args) => commands::man::run(args),
        Command::Null(args) => commands::null::run(args),
    };
    let code = done.unwrap_or_else(could_not_run);
    ui::restore_terminal();
    // A server is ended by a signal and by nothing else.
    let serves = matches.subcommand_name().is_some_and(|name| SERVERS.contains(&name));
    signals::exit_code().filter(|_| !serves).map_or(code, ExitCode::from)
}

/// Says why, and returns the exit code.
fn could_not_run(error: anyhow::Error) -> ExitCode {
    ui::complain(&error);
    ExitCode::from(EXIT_COULD_NOT_RUN)
}

/// Parses the command line; help, which clap has as an error, is the arranged one.
fn parsed(command: &clap::Command, words: Vec<OsString>) -> Result<ArgMatches, clap::Error> {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand};
    let shown = |words: &[OsString]| {
        help::arranged(command.clone(), help::depth_of(words)).try_get_matches_from(words)
    };
    if let Some(words) = help::of_warp(&words) {
        return shown(&words);
    }
    command.clone().try_get_matches_from(&words).or_else(|error| match error.kind() {
        DisplayHelp | DisplayHelpOnMissingArgumentOrSubcommand => shown(&words).and(Err(error)),
        _ => Err(error),
    })
}

/// Prints what clap says, as it would itself, in the flags of the command line.
fn refuse(command: &clap::Command, mut error: clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let text = error.render();
        let colored = std::io::stdout().is_terminal() && !environment::wants_no_color();
        let text = if colored { text.ansi().to_string() } else { text.to_string() };
        return Ui::plain().result(&text).map_or_else(could_not_run, |()| ExitCode::SUCCESS);
    }
    if let Some(refused) = left_out::command(&error) {
        return could_not_run(refused);
    }
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) {
        let shown = ContextValue::String(said::refused(value));
        error.insert(ContextKind::InvalidValue, shown);
    }
    help::point_elsewhere(&mut error);
    // Without colors: the message quotes the command line, so control characters are replaced, and
    // that would replace color codes as well.
    let text = error.render().to_string();
    ui::write_stderr(flags::in_any_flags(command, &text).trim_end());
    ExitCode::from(EXIT_COULD_NOT_RUN)
}

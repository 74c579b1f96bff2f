//! `plimsoll as warp`: warp's benchmarks with its flags and its report, on our engine and with our
//! safety.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;
use plimsoll_conduct::{Recording, input};
use plimsoll_dialects::warp::{self, WarpBenchmark, WarpCommand, WarpLine};

use crate::args::{AsCommand, Cli, Command, WarpCommand as FileCommand};
use crate::commands::{analyze, export, s3};
use crate::environment;
use crate::ui::Ui;

/// How the operations of a run are kept for warp's own report.
const RAW_FILE: &str = "operations.csv.zst";
const EXPLAIN: &str = "--explain";
/// Leave to remove what no run wrote, as warp's flags may be written.
const YES: [&str; 2] = ["--yes", "-yes"];

/// Carries out a command line of warp's; `words` begin with the command.
pub(crate) fn run(words: &[String]) -> Result<ExitCode> {
    let explains = words.iter().any(|word| word == EXPLAIN);
    let runs_file = words.first().is_some_and(|word| word == "run");
    let is_yes = |word: &String| runs_file && YES.contains(&&**word);
    let consents = words.iter().any(is_yes);
    let ours = |word: &&String| **word == EXPLAIN || is_yes(word);
    let words: Vec<String> = words.iter().filter(|word| !ours(word)).cloned().collect();
    let line = warp::from_args(&words, &environment::variable)?;
    let line = if line.command == WarpCommand::Run { of_file(&line, consents)? } else { line };
    let ui = Ui::plain();
    if explains {
        ui.result(&line.explain())?;
        return Ok(ExitCode::SUCCESS);
    }
    let WarpCommand::Benchmark(benchmark) = line.command else {
        bail!("put {} before its flags: plimsoll as warp {} ...", words[0], words[0]);
    };
    carry_out(benchmark, &line)
}

/// Returns what a file of `warp run` asks for.
///
/// Leave to remove what no run wrote is never taken from the file: it is given on the command line.
fn of_file(line: &WarpLine, consents: bool) -> Result<WarpLine> {
    let [path] = &line.operands[..] else { bail!("run takes one file") };
    let text = input::read_given(Path::new(path)).with_context(|| format!("cannot read {path}"))?;
    let mut asked = warp::from_yaml(&text, &line.variables, &environment::variable)
        .with_context(|| path.clone())?;
    asked.flags.retain(|(name, _)| name != YES[0]);
    asked.flags.extend(consents.then(|| (YES[0].to_owned(), None)));
    asked.notes.extend(line.notes.iter().cloned());
    asked.flags.extend(line.flags.iter().cloned());
    Ok(asked)
}

fn carry_out(benchmark: WarpBenchmark, line: &WarpLine) -> Result<ExitCode> {
    let Command::S3(command) = parsed(&["s3", benchmark.name()], &line.flags)?.command else {
        unreachable!("the words begin with it")
    };
    let print = &command.common().output.print;
    let ui = Ui::new(print);
    line.notes.iter().for_each(|note| ui.note(&format!("{}: {}", note.flag, note.what)));
    if print.json {
        return s3::run(&command);
    }
    let show = |recording: &mut Recording, ui: &Ui| show(recording.directory.path(), line, ui);
    s3::run_shown(&command, Some(&show))
}

/// Prints a run as warp does.
fn show(directory: &Path, line: &WarpLine, ui: &Ui) -> Result<()> {
    let raw = directory.join(RAW_FILE);
    export::to_warp(directory, &raw, ui)?;
    let raw = raw.display().to_string();
    let parsed = parsed(&["as", "warp", "analyze", &raw], &line.analysis)?;
    let Command::As(AsCommand::Warp(FileCommand::Analyze(args))) = parsed.command else {
        unreachable!("the words begin with it")
    };
    analyze::as_warp(&args).map(|_| ())
}

/// Returns flags as our own command line understands them.
fn parsed(words: &[&str], flags: &[(String, Option<String>)]) -> Result<Cli> {
    let flag = |(name, value): &(String, Option<String>)| match value {
        Some(value) => format!("{name}={value}"),
        None => name.clone(),
    };
    let words = ["plimsoll"].iter().chain(words).map(|word| (*word).to_owned());
    Cli::try_parse_from(words.chain(flags.iter().map(flag))).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        anyhow!("{}", first.strip_prefix("error: ").unwrap_or(first))
    })
}

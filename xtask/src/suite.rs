//! Runs the tests of the whole workspace, with the live servers beside them.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::servers::Servers;
use crate::{process, tools};

/// How long the tests may take: thrice what they take on two cores. The test that hangs was named
/// by the test runner after its first minute.
const TESTS_MAX: Duration = Duration::from_secs(40 * 60);

/// What the command line of `test` says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Options {
    no_live: bool,
    /// Words for `cargo test` itself.
    cargo_words: Vec<String>,
    /// Words for the test programs, those behind a second `--`.
    program_words: Vec<String>,
}

impl Options {
    /// Reads `[--no-live] [-- [CARGO TEST WORDS] [-- TEST PROGRAM WORDS]]`; `None` when it is not
    /// that.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let mut parts = words.splitn(3, |word| *word == "--");
        let no_live = match parts.next()? {
            [] => false,
            ["--no-live"] => true,
            _ => return None,
        };
        let mut owned = || -> Vec<String> {
            parts.next().unwrap_or_default().iter().map(|word| (*word).to_owned()).collect()
        };
        Some(Self { no_live, cargo_words: owned(), program_words: owned() })
    }

    /// Returns a `cargo test` command over what was asked for, the whole workspace by default.
    fn cargo_test(&self, more: &[&str]) -> Command {
        let mut command = process::cargo(&["test"]);
        let narrowed = self
            .cargo_words
            .iter()
            .any(|word| word.starts_with("-p") || word.starts_with("--package"));
        if !narrowed {
            command.arg("--workspace");
        }
        command.args(&self.cargo_words).args(more);
        command
    }
}

/// Builds what [`run`] runs.
pub(crate) fn build(options: &Options) -> Result<()> {
    process::check(&mut options.cargo_test(&["--no-run"]), "building the tests")
}

/// Builds and runs the tests; nothing is printed after the test runner's own summary.
pub(crate) fn run(options: &Options) -> Result<()> {
    build(options)?;
    if options.no_live {
        println!("live tier: not run (--no-live)");
        return run_tests(options, |command| {
            for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PLIMSOLL_TEST_"))
            {
                command.env_remove(name);
            }
            command.env("PLIMSOLL_NO_LIVE", "1");
        });
    }
    let servers =
        tools::install_all().and_then(|tools| Servers::start(&tools)).map_err(|error| {
            anyhow!(
                "the live tier cannot run: {error:#}; mend that, or give --no-live to go without it"
            )
        })?;
    let variables = servers.variables();
    run_tests(options, |command| {
        command
            .env_remove("PLIMSOLL_NO_LIVE")
            .envs(variables.iter().map(|(name, value)| (name, value)));
    })
}

fn run_tests(options: &Options, set_environment: impl Fn(&mut Command)) -> Result<()> {
    let mut parts = vec![vec![]];
    if options.cargo_words.is_empty() && options.program_words.is_empty() {
        // The examples in the docs go first, so that the run closes on the summaries that matter.
        parts = vec![vec!["--doc"], vec!["--tests", "--no-fail-fast"]];
    }
    for part in parts {
        let mut command = options.cargo_test(&part);
        if !options.program_words.is_empty() {
            command.arg("--").args(&options.program_words);
        }
        set_environment(&mut command);
        process::check_within(&mut command, "cargo test", TESTS_MAX)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_where_they_belong() {
        let owned =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(Options::parse(&[]), Some(Options::default()));
        assert_eq!(
            Options::parse(&["--no-live", "--", "-p", "x", "--", "name", "--", "y"]),
            Some(Options {
                no_live: true,
                cargo_words: owned(&["-p", "x"]),
                program_words: owned(&["name", "--", "y"]),
            })
        );
        assert_eq!(Options::parse(&["--live"]), None);
        assert_eq!(Options::parse(&["--no-live", "-p"]), None);
    }
}

//! Runs the tests of the whole workspace, with real servers beside them.
//!
//! There are two tiers. The gate runs all tests but those in modules called `nightly`, which take
//! long, and has one server of each kind; a test that needs another one does nothing there. Nightly
//! runs every test, with everything beside it that one of them needs.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::servers::Servers;
use crate::{process, tools};

/// How long the tests may take, thrice what a tier takes on two cores. A test that hangs has been
/// named by the test runner after its first minute.
const TESTS_MAX: Duration = Duration::from_secs(60 * 60);
/// The module whose tests the gate skips.
const NIGHTLY: &str = "nightly::";
/// What is said where a server can be neither installed nor started.
const NO_SERVERS: &str =
    "the servers of the tests cannot run: fix that, or leave them out with --no-live";

/// Which servers run beside the tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Beside {
    /// None.
    Nothing,
    /// One of each kind that a driver speaks to, for the tests of the gate.
    #[default]
    OneOfEach,
    /// All of them, a browser, Prometheus and packages of Python, for every test.
    All,
}

/// What the command line of `test` says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Options {
    beside: Beside,
    /// Words for `cargo test` itself.
    cargo_words: Vec<String>,
    /// Words for the test programs, those after a second `--`.
    program_words: Vec<String>,
    /// Whether clippy compiles the workspace, so that one build serves the lints and the tests.
    lints: bool,
}

impl Options {
    /// Reads `[--no-live | --all] [-- [CARGO TEST WORDS] [-- TEST PROGRAM WORDS]]`; `None` when it
    /// is not that.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let mut parts = words.splitn(3, |word| *word == "--");
        let beside = match parts.next()? {
            [] => Beside::default(),
            ["--no-live"] => Beside::Nothing,
            ["--all"] => Beside::All,
            _ => return None,
        };
        let mut owned = || -> Vec<String> {
            parts.next().unwrap_or_default().iter().map(|word| (*word).to_owned()).collect()
        };
        Some(Self { beside, cargo_words: owned(), program_words: owned(), lints: false })
    }

    /// The tests of the gate, compiled by clippy.
    pub(crate) fn of_the_gate() -> Self {
        Self { lints: true, ..Self::default() }
    }

    /// Every test: those of the gate, too, as many do more where all servers are there.
    pub(crate) fn nightly() -> Self {
        Self { beside: Beside::All, ..Self::default() }
    }

    /// Returns a `cargo test` command over what was asked for, the whole workspace by default.
    fn cargo_test(&self) -> Command {
        let mut command = process::cargo(&["test", "--no-fail-fast"]);
        let narrowed = self
            .cargo_words
            .iter()
            .any(|word| word.starts_with("-p") || word.starts_with("--package"));
        if !narrowed {
            command.args(["--workspace", "--tests"]);
        }
        if self.lints {
            // What `cargo clippy` sets, but for a build that is more than a check.
            command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
            command.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
            // Nobody builds again in that folder.
            command.env("CARGO_INCREMENTAL", "0");
        }
        command.args(&self.cargo_words);
        command
    }
}

/// Builds what [`run`] runs.
pub(crate) fn build(options: &Options) -> Result<()> {
    process::check(options.cargo_test().arg("--no-run"), "building the tests")
}

/// Builds and runs the tests; nothing is printed after the test runner's own summary.
pub(crate) fn run(options: &Options) -> Result<()> {
    // First, as it fails at once where Go, Python or the network is missing.
    let installed = match options.beside {
        Beside::Nothing => None,
        Beside::OneOfEach => Some(tools::install_servers()),
        Beside::All => Some(tools::install_all()),
    };
    let installed = installed.transpose().context(NO_SERVERS)?;
    build(options)?;
    let mut command = options.cargo_test();
    command.arg("--").args(&options.program_words);
    if options.beside != Beside::All {
        command.args(["--skip", NIGHTLY]);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PLIMSOLL_TEST_")) {
            command.env_remove(name);
        }
        // Tests that ask for any other server are not meant to run.
        command.env("PLIMSOLL_NO_LIVE", "1");
    } else {
        command.env_remove("PLIMSOLL_NO_LIVE");
    }
    let servers =
        installed.map(|installed| Servers::start(&installed)).transpose().context(NO_SERVERS)?;
    match &servers {
        Some(servers) => drop(command.envs(servers.variables())),
        None => println!("tests against real servers: not run (--no-live)"),
    }
    process::check_within(&mut command, "cargo test", TESTS_MAX)
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
                beside: Beside::Nothing,
                cargo_words: owned(&["-p", "x"]),
                program_words: owned(&["name", "--", "y"]),
                lints: false,
            })
        );
        assert_eq!(Options::parse(&["--all"]).unwrap().beside, Beside::All);
        assert_eq!(Options::parse(&["--live"]), None);
        assert_eq!(Options::parse(&["--no-live", "-p"]), None);
    }
}

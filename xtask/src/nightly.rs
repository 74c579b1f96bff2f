//! The checks that take too long for each change, step by step. A step that has passed on a commit
//! is not repeated on it, so a run that was ended goes on where it stood. A step that fails does
//! not keep the others from running.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::steps::Steps;
use crate::tidy::budgets::RELEASE_BYTES_MAX;
use crate::{chores, deploy, fuzz, process, recount, site, suite};

/// A step and what it checks.
struct Step {
    name: &'static str,
    run: fn() -> Result<()>,
}

/// All steps, in the order in which they run: what most often fails comes first.
const STEPS: [Step; 10] = [
    Step { name: "doc", run: chores::doc },
    Step { name: "deploy", run: deploy::run },
    Step { name: "package", run: chores::package },
    Step { name: "console", run: chores::console },
    Step { name: "lean", run: lean },
    Step { name: "tests", run: || suite::run(&suite::Options::nightly()) },
    Step { name: "site", run: site::run },
    Step { name: "fuzz", run: fuzz::warp_reader },
    Step { name: "proofs", run: proofs },
    Step { name: "recount", run: recount },
];

/// Runs the steps of these names, all by default, that have not passed on this commit yet.
pub(crate) fn run(names: &[&str]) -> Result<()> {
    let known = || STEPS.map(|step| step.name).join(", ");
    if let Some(name) = names.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        bail!("nightly has no step `{name}`; there are {}", known());
    }
    let passed = passed_folder()?;
    if passed.is_none() {
        println!("the tree has changes that are not committed: no step is remembered");
    }
    let (mut steps, mut failed) = (Steps::default(), Vec::new());
    for step in STEPS.iter().filter(|step| names.is_empty() || names.contains(&step.name)) {
        let mark = passed.as_ref().map(|folder| folder.join(step.name));
        if let Some(mark) = mark.as_ref().filter(|mark| mark.exists()) {
            println!("== {}: passed before ({})", step.name, mark.display());
            continue;
        }
        match steps.run(step.name, step.run) {
            Ok(()) => mark.map_or(Ok(()), |mark| fs::write(mark, ""))?,
            Err(error) if process::interrupted() => return Err(error),
            Err(error) => {
                eprintln!("error: {error:#}");
                failed.push(step.name);
            }
        }
    }
    print!("{}", steps.table());
    ensure!(failed.is_empty(), "these steps failed: {}", failed.join(", "));
    Ok(())
}

/// Returns where the steps leave a mark that have passed on this commit; `None` where the tree is
/// not that of a commit.
fn passed_folder() -> Result<Option<PathBuf>> {
    let git = |words: &[&str]| {
        process::printed(Command::new("git").current_dir(process::root()).args(words), "git")
    };
    if !git(&["status", "--porcelain"])?.is_empty() {
        return Ok(None);
    }
    let folder = process::root().join("target/nightly").join(git(&["rev-parse", "HEAD"])?.trim());
    fs::create_dir_all(&folder)?;
    Ok(Some(folder))
}

/// Checks and tests the program without what Cargo features add to it.
fn lean() -> Result<()> {
    let of_it = ["-p", "plimsoll", "--no-default-features"];
    let mut clippy = process::cargo(&["clippy", "--all-targets"]);
    process::check(clippy.args(of_it).args(["--", "-D", "warnings"]), "clippy of the lean build")?;
    process::check(process::cargo(&["test"]).args(of_it), "tests of the lean build")
}

/// Builds the program as people do.
fn release_program() -> Result<PathBuf> {
    process::check(&mut process::cargo(&["build", "--release"]), "building for release")?;
    Ok(process::root().join("target/release/plimsoll"))
}

/// Counts the figures of as many random plans again as each night does.
pub(crate) fn recount() -> Result<()> {
    recount_of(0, recount::NIGHTLY_PLANS)
}

/// Counts the figures of these random plans again.
pub(crate) fn recount_of(first: u32, count: u32) -> Result<()> {
    recount::run(&release_program()?, first, count)
}

/// Holds the program as people build it to its size, and to all of its proofs.
fn proofs() -> Result<()> {
    let program = release_program()?;
    let bytes = fs::metadata(&program)?.len();
    ensure!(
        bytes <= RELEASE_BYTES_MAX,
        "the release program has {bytes} bytes, the budget is {RELEASE_BYTES_MAX}"
    );
    let prove = |words: &[&str]| {
        let mut command = Command::new(&program);
        process::check(command.arg("prove").args(words), &format!("prove {}", words.join(" ")))
    };
    prove(&["--full"])?;
    prove(&["load-line", "--seeds", "100"])
}

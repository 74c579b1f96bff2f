//! The gate (`ci`) and the checks that are a call of Cargo.

use std::process::Command;

use anyhow::{Result, bail};

use crate::steps::Steps;
use crate::{process, recount, suite, tidy, tools};

/// Runs every check that a change must pass, the quick ones first, the tests last.
pub(crate) fn ci() -> Result<()> {
    let mut steps = Steps::default();
    steps.run("fmt", || {
        process::check(&mut process::cargo(&["fmt", "--all", "--check"]), "cargo fmt --check")
    })?;
    steps.run("tidy", tidy::run)?;
    let tests = suite::Options::of_the_gate();
    steps.run("build", || suite::build(&tests))?;
    let program = process::root().join("target/debug/plimsoll");
    steps.run("recount", || recount::run(&program, 0, recount::GATE_PLANS))?;
    steps.run("servers", || tools::install_servers().map(drop))?;
    print!("{}", steps.table());
    println!("== tests");
    suite::run(&tests)
}

/// Builds the documents of the code, and runs the examples in them.
pub(crate) fn doc() -> Result<()> {
    process::check(
        process::cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
        "cargo doc",
    )?;
    process::check(&mut process::cargo(&["test", "--workspace", "--doc"]), "cargo test --doc")
}

/// Makes the packages of all crates, without building them again.
pub(crate) fn package() -> Result<()> {
    let words = ["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"];
    process::check(&mut process::cargo(&words), "cargo package")
}

/// Tests the units of the console's pages, with the packages that their lock file pins.
pub(crate) fn console() -> Result<()> {
    let Some(npm) = process::on_path("npm") else {
        bail!("npm is not on the path; install Node 20 or newer with it");
    };
    for words in [&["ci", "--ignore-scripts", "--no-audit", "--no-fund"][..], &["run", "units"]] {
        let mut command = Command::new(&npm);
        command.current_dir(process::root().join("crates/console/web")).args(words);
        process::check(&mut command, &format!("npm {}", words.join(" ")))?;
    }
    Ok(())
}

/// Checks all dependencies against `deny.toml`, installing cargo-deny first when it is missing.
pub(crate) fn deny() -> Result<()> {
    let on_path = process::on_path("cargo-deny");
    let program = on_path.map_or_else(|| tools::install_crate(&tools::CARGO_DENY), Ok)?;
    let mut command = Command::new(program);
    command.current_dir(process::root()).args(["check", "licenses", "bans", "sources"]);
    process::check(&mut command, "cargo deny check")
}

//! The gate (`ci`) and the check of licences, sources and bans (`deny`).

use std::path::PathBuf;

use anyhow::Result;

use crate::{deploy, fuzz, process, suite, tidy, tools};

/// The version of cargo-deny that is installed when there is none.
const CARGO_DENY_VERSION: &str = "0.20.2";

/// Runs every check of the project, the quick ones first, the tests last.
pub(crate) fn ci() -> Result<()> {
    println!("== fmt");
    process::check(&mut process::cargo(&["fmt", "--all", "--check"]), "cargo fmt --check")?;
    println!("== tidy");
    tidy::run()?;
    println!("== clippy");
    process::check(
        &mut process::cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        "cargo clippy",
    )?;
    println!("== doc");
    process::check(
        process::cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
        "cargo doc",
    )?;
    println!("== deploy");
    deploy::run()?;
    println!("== fuzz");
    fuzz::warp_reader()?;
    println!("== test");
    suite::run(&suite::Options::default())
}

/// Checks all dependencies against `deny.toml`, installing cargo-deny first when it is missing.
pub(crate) fn deny() -> Result<()> {
    let program = cargo_deny()?;
    let mut command = std::process::Command::new(program);
    command.current_dir(process::root()).args(["check", "licenses", "bans", "sources"]);
    process::check(&mut command, "cargo deny check")
}

fn cargo_deny() -> Result<PathBuf> {
    if let Some(program) = process::on_path("cargo-deny") {
        return Ok(program);
    }
    let folder = tools::folder("cargo-deny", CARGO_DENY_VERSION);
    let program = folder.join("bin/cargo-deny");
    if !program.is_file() {
        let mut command = process::cargo(&["install", "cargo-deny", "--locked"]);
        command.args(["--version", CARGO_DENY_VERSION]).arg("--root").arg(&folder);
        process::check(&mut command, "installing cargo-deny")?;
    }
    Ok(program)
}

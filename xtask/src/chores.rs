//! The gate (`ci`) and the check of licences, sources and bans (`deny`).

use anyhow::Result;

use crate::{deploy, fuzz, process, site, suite, tidy, tools};

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
    println!("== package");
    process::check(
        // Without building them again, which would take as long as all of the above.
        &mut process::cargo(&["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"]),
        "cargo package",
    )?;
    println!("== build");
    let tests = suite::Options::default();
    suite::build(&tests)?;
    println!("== site");
    // The program that the tests try: built by itself, it has other features, and takes as long.
    site::with(&process::built("plimsoll")?)?;
    println!("== fuzz");
    fuzz::warp_reader()?;
    println!("== test");
    suite::run(&tests)
}

/// Checks all dependencies against `deny.toml`, installing cargo-deny first when it is missing.
pub(crate) fn deny() -> Result<()> {
    let on_path = process::on_path("cargo-deny");
    let program = on_path.map_or_else(|| tools::install_crate(&tools::CARGO_DENY), Ok)?;
    let mut command = std::process::Command::new(program);
    command.current_dir(process::root()).args(["check", "licenses", "bans", "sources"]);
    process::check(&mut command, "cargo deny check")
}

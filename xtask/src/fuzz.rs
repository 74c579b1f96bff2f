//! Fuzzing of what reads files of other tools, on the stable compiler.

use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

/// What cargo-fuzz would pass to the compiler, but for the sanitizers, which need a nightly one.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cdebug-assertions -Ccodegen-units=1 \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares";
/// Named, so that build scripts are compiled without the flags.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const SECONDS: u32 = 60;

/// Feeds the reader of warp's files for a minute; a finding is kept in `target/fuzz`.
pub(crate) fn warp_reader() -> Result<()> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        println!("fuzzing is set up for {TARGET} only: skipped");
        return Ok(());
    }
    let root = process::root();
    let (build, folder) = (root.join("target/fuzz-build"), root.join("target/fuzz"));
    let corpus = folder.join("corpus");
    std::fs::create_dir_all(&corpus).context("cannot make target/fuzz/corpus")?;
    let mut cargo = process::cargo(&["build", "--release", "--target", TARGET]);
    cargo.args(["--manifest-path", "crates/foreign/fuzz/Cargo.toml"]);
    cargo.env("RUSTFLAGS", FLAGS).env("CARGO_TARGET_DIR", &build);
    process::check(&mut cargo, "building the fuzz target")?;
    let mut fuzz = Command::new(build.join(TARGET).join("release/warp"));
    // New inputs go to the first folder; the seeds are only read.
    fuzz.arg(format!("-max_total_time={SECONDS}")).arg("-print_final_stats=1").arg("-verbosity=0");
    fuzz.arg(format!("-artifact_prefix={}/", folder.display()));
    fuzz.arg(&corpus).arg(root.join("crates/foreign/fuzz/seeds"));
    process::check(&mut fuzz, "fuzzing the reader of warp's files")
}

//! Installs the pinned servers of the live tests into `target/tools`, once.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// A program built by `go install`.
struct Tool {
    name: &'static str,
    package: &'static str,
    version: &'static str,
}

/// The last community version of MinIO that the Go module proxy offers; the project is archived.
const MINIO: Tool = Tool {
    name: "minio",
    package: "github.com/minio/minio",
    version: "v0.0.0-20260212201848-7aac2a2c5b7c",
};

const VERSITYGW: Tool = Tool {
    name: "versitygw",
    package: "github.com/versity/versitygw/cmd/versitygw",
    version: "v1.8.0",
};

/// Where the installed programs lie.
pub(crate) struct Installed {
    pub(crate) minio: PathBuf,
    pub(crate) versitygw: PathBuf,
}

/// Installs what is not there yet and returns where everything lies.
pub(crate) fn install_all() -> Result<Installed> {
    Ok(Installed { minio: install(&MINIO)?, versitygw: install(&VERSITYGW)? })
}

/// Returns the folder that holds one tool at one version.
pub(crate) fn folder(name: &str, version: &str) -> PathBuf {
    process::root().join("target/tools").join(format!("{name}-{version}"))
}

/// Returns the `go` command, made to use the Go that is installed and no other.
pub(crate) fn go() -> Result<Command> {
    let Some(program) = process::on_path("go") else {
        bail!("go is not on the path; install Go 1.26 or newer");
    };
    let mut command = Command::new(program);
    command.env("GOTOOLCHAIN", "local").current_dir(process::root());
    Ok(command)
}

fn install(tool: &Tool) -> Result<PathBuf> {
    let folder = folder(tool.name, tool.version);
    let program = folder.join("bin").join(tool.name);
    if program.is_file() {
        return Ok(program);
    }
    eprintln!("installing {} {} (once, this may take minutes)", tool.name, tool.version);
    // Built beside its place and then moved, so that a half-written program is never taken.
    let staging = folder.with_extension(format!("partial-{}", std::process::id()));
    let bin = staging.join("bin");
    std::fs::create_dir_all(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
    let wanted = format!("{}@{}", tool.package, tool.version);
    let built = process::check(
        go()?.env("GOBIN", &bin).env("GOFLAGS", "-mod=mod").args(["install", &wanted]),
        &format!("go install {wanted}"),
    );
    let moved = built.and_then(|()| {
        std::fs::rename(&staging, &folder)
            .with_context(|| format!("cannot move {} into place", staging.display()))
    });
    if moved.is_err() {
        // What matters is the first error; a leftover folder does no harm.
        let _ = std::fs::remove_dir_all(&staging);
    }
    // Another xtask may have installed it in the meantime.
    if !program.is_file() {
        moved?;
        bail!("go install {wanted} left no program {}", program.display());
    }
    Ok(program)
}

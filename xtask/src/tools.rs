//! Installs the pinned servers of the live tests into `target/tools`, once, and the browser that
//! looks at the HTML report.

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

/// The browser of the tests, by the name that it has on the path and as a Debian package. Tests
/// look for it there (`testkit::browser`); its version does not matter to them.
const CHROMIUM: &str = "chromium";

/// Where the installed programs lie.
pub(crate) struct Installed {
    pub(crate) minio: PathBuf,
    pub(crate) versitygw: PathBuf,
}

/// Installs what is not there yet and returns where everything lies.
pub(crate) fn install_all() -> Result<Installed> {
    ensure_chromium()?;
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

/// Installs Debian's Chromium when there is none on the path.
fn ensure_chromium() -> Result<()> {
    if process::on_path(CHROMIUM).is_some() {
        return Ok(());
    }
    let by_hand = format!("install it: apt-get install --no-install-recommends {CHROMIUM}");
    // SAFETY: geteuid only returns a number and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let Some(apt) = process::on_path("apt-get").filter(|_| is_root) else {
        bail!("{CHROMIUM} is not on the path; {by_hand}");
    };
    eprintln!("installing {CHROMIUM} (once, this may take minutes)");
    let run = |words: &[&str]| {
        let mut command = Command::new(&apt);
        command.env("DEBIAN_FRONTEND", "noninteractive").args(words);
        process::check(&mut command, &format!("apt-get {}", words.join(" ")))
    };
    let install = ["install", "-y", "--no-install-recommends", CHROMIUM];
    // A fresh machine has no package lists yet.
    run(&install).or_else(|_| run(&["update"]).and_then(|()| run(&install)))?;
    if process::on_path(CHROMIUM).is_none() {
        bail!("apt-get left no {CHROMIUM} on the path; {by_hand}");
    }
    Ok(())
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

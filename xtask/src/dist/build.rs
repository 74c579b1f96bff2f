//! Builds the program for systems with an old glibc, without a path of the builder in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::TARGET;
use crate::process::printed;
use crate::tidy::budgets::DIST_BYTES_MAX;
use crate::{process, tools};

/// The newest glibc that the program may ask for: that of RHEL 8 and all that came after it.
const GLIBC: (u32, u32) = (2, 28);
/// How long a build may take: several times what it takes on two cores.
const BUILD_MAX: Duration = Duration::from_secs(75 * 60);

/// Builds the program out of the sources in `folder` and returns where it lies.
pub(super) fn program(folder: &Path) -> Result<PathBuf> {
    let target_folder = folder.join("target/dist-build");
    let (major, minor) = GLIBC;
    let mut build = process::cargo(&["zigbuild", "--locked", "--profile", "dist"]);
    build.current_dir(folder).args(["-p", "plimsoll"]);
    build.arg("--target").arg(format!("{TARGET}.{major}.{minor}"));
    build.arg("--target-dir").arg(&target_folder);
    tools::dist_tools()?.give(&mut build)?;
    let places = places(folder);
    let renamed = |flag: &str, quote: &str, between: &str| {
        let each = places
            .iter()
            .map(|(place, name)| format!("{quote}{flag}{}={name}{quote}", place.display()));
        each.collect::<Vec<_>>().join(between)
    };
    // Folders may have spaces in their names: cargo splits here at a character that none has, and
    // the compiler's words are read as a shell would.
    build.env("CARGO_ENCODED_RUSTFLAGS", renamed("--remap-path-prefix=", "", "\x1f"));
    build.env("CFLAGS", renamed("-ffile-prefix-map=", "'", " ")).env("CC_SHELL_ESCAPED_FLAGS", "1");
    build.env("PLIMSOLL_COMMIT", commit(folder)?);
    process::check_within(&mut build, "cargo zigbuild", BUILD_MAX)?;
    Ok(target_folder.join(TARGET).join("dist/plimsoll"))
}

/// Returns the folders whose names must not be in the program, and what stands there instead.
fn places(folder: &Path) -> Vec<(PathBuf, &'static str)> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let given = |variable: &str, usual: &str| {
        std::env::var_os(variable).map_or_else(|| home.join(usual), PathBuf::from)
    };
    vec![
        (given("CARGO_HOME", ".cargo"), "cargo"),
        (given("RUSTUP_HOME", ".rustup"), "rustup"),
        (folder.to_owned(), "plimsoll"),
    ]
}

fn commit(folder: &Path) -> Result<String> {
    let mut git = Command::new("git");
    git.current_dir(folder).args(["describe", "--always", "--dirty", "--abbrev=12"]);
    Ok(printed(&mut git, "git describe")?.trim().to_owned())
}

/// Checks what users depend on: that it starts on old systems, how much it weighs, and that it
/// tells nothing of who built it.
pub(super) fn check(program: &Path) -> Result<()> {
    let (major, minor) = glibc_of(program)?;
    if (major, minor) > GLIBC {
        bail!("the program asks for glibc {major}.{minor}; {}.{} is the most", GLIBC.0, GLIBC.1);
    }
    let bytes = fs::read(program)?;
    if bytes.len() as u64 > DIST_BYTES_MAX {
        bail!("the program has {} bytes; {DIST_BYTES_MAX} are the most", bytes.len());
    }
    for (place, _) in places(&process::root()) {
        let place = place.display().to_string();
        if bytes.windows(place.len()).any(|part| part == place.as_bytes()) {
            bail!("the program holds the builder's path {place}");
        }
    }
    println!(
        "program: {} bytes, starts with glibc {major}.{minor} and newer, holds no path of here",
        bytes.len()
    );
    Ok(())
}

/// Tells whether a program starts on all systems that packages are for.
pub(super) fn asks_for_no_newer_glibc(program: &Path) -> Result<bool> {
    Ok(glibc_of(program)? <= GLIBC)
}

/// Returns the oldest glibc with which a program starts.
fn glibc_of(program: &Path) -> Result<(u32, u32)> {
    let mut objdump = Command::new("objdump");
    let symbols = printed(objdump.arg("-T").arg(program), "objdump -T")?;
    newest_glibc(&symbols).context("the program asks for no glibc")
}

/// Returns the newest glibc among the symbols that `objdump -T` lists.
fn newest_glibc(symbols: &str) -> Option<(u32, u32)> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let mut numbers = rest[..end].split('.').map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    versions.max()
}

/// Builds the commit that is checked out once more, in another folder, and compares.
pub(super) fn same_again(program: &Path, work: &Path) -> Result<()> {
    let folder = work.join("built again in a folder of another name");
    let mut git = Command::new("git");
    // By force: a trial that was ended left its folder registered.
    git.current_dir(process::root()).args(["worktree", "add", "--force", "--quiet", "--detach"]);
    process::check(git.arg(&folder).arg("HEAD"), "git worktree add")?;
    let compared = self::program(&folder).and_then(|again| {
        if fs::read(program)? != fs::read(&again)? {
            bail!("{} and {} differ", program.display(), again.display());
        }
        println!("program: a build in another folder is equal to it");
        Ok(())
    });
    let mut git = Command::new("git");
    git.current_dir(process::root()).args(["worktree", "remove", "--force"]);
    let removed = process::check(git.arg(&folder), "git worktree remove");
    compared.and(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_is_found() {
        let symbols = "0000000000000000      DF *UND*\t0 (GLIBC_2.2.5) free\n\
                       0000000000000000      DF *UND*\t0 (GLIBC_2.17) clock_gettime\n\
                       0000000000000000      DF *UND*\t0 GLIBC_2.9  x\n";
        assert_eq!(newest_glibc(symbols), Some((2, 17)));
        assert_eq!(newest_glibc("w   D  *UND*\t0  __cxa_finalize"), None);
    }
}

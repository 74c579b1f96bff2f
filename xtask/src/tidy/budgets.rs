//! What the build may weigh. A budget is raised only with its reason beside it.

use anyhow::Result;

use super::Tree;
use crate::process;

/// Crates that are linked into the program with its default features.
const CRATES_MAX: usize = 314;
/// Lines of the root manifest from its first profile on.
const PROFILE_LINES_MAX: usize = 40;
/// The program as `cargo build --release` makes it. It is 41.0 MB: 27 of code, 7 of tables that a
/// panic unwinds by. The aim is 36.
pub(crate) const RELEASE_BYTES_MAX: u64 = 41_500_000;
/// The program as packages hold it. It is 35.5 MB; the aim is 30.
pub(crate) const DIST_BYTES_MAX: u64 = 36_500_000;

/// Checks what can be told without a build; `nightly` and `dist` check the sizes.
pub(super) fn check(tree: &Tree) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let mut over = |what: &str, count: usize, max: usize| {
        if count > max {
            findings.push(format!("Cargo.toml: {count} {what}, the budget is {max}"));
        }
    };
    let manifest = tree.get("Cargo.toml").unwrap_or_default();
    over("lines of profiles", profile_lines(manifest), PROFILE_LINES_MAX);
    over("crates in the program", crates()?, CRATES_MAX);
    Ok(findings)
}

fn profile_lines(manifest: &str) -> usize {
    manifest.lines().skip_while(|line| !line.starts_with("[profile.")).count()
}

fn crates() -> Result<usize> {
    let words = ["tree", "--package", "plimsoll", "--edges", "normal", "--prefix", "none"];
    let listed = process::printed(&mut process::cargo(&words), "cargo tree")?;
    // A crate that was listed before has a mark behind its version.
    let name = |line: &str| line.split(' ').take(2).map(str::to_owned).collect::<Vec<_>>();
    let mut names: Vec<_> = listed.lines().map(name).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_counted_from_the_first_one_on() {
        assert_eq!(profile_lines("[workspace]\n\n[profile.dev]\na = 1\n\n[profile.x]\n"), 4);
        assert_eq!(profile_lines("[workspace]\n"), 0);
    }
}

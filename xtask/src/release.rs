//! Makes a release ready: puts what is unreleased of `CHANGELOG.md` and the fragments of
//! `changelog.d` under a version, and writes that version wherever it is named.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{self, printed};

/// Kinds of fragments in the order in which the changelog has them, and their headings.
pub(crate) const KINDS: [(&str, &str); 4] = [
    ("measurement", "Numbers that may move"),
    ("added", "Added"),
    ("changed", "Changed"),
    ("fixed", "Fixed"),
];

/// Files outside of Cargo's that name the version, and what stands before it there.
const NAMES: [(&str, &str); 9] = [
    ("action.yml", "default: \""),
    ("deploy/gitlab/plimsoll.gitlab-ci.yml", "PLIMSOLL_VERSION_WANTED: \""),
    ("deploy/kubernetes/agents-daemonset.yaml", "image: plimsoll:"),
    ("deploy/kubernetes/agents.yaml", "image: plimsoll:"),
    ("deploy/kubernetes/coordinator.yaml", "image: plimsoll:"),
    ("docs/deploy.md", "plimsoll:"),
    ("docs/install.md", "plimsoll-"),
    ("docs/install.md", "plimsoll_"),
    ("docs/install.md", "plimsoll:"),
];

const CHANGELOG: &str = "CHANGELOG.md";
/// Heading of what is not released yet; releases follow below.
const UNRELEASED: &str = "## Unreleased\n";
const VERSIONS: &str = "docs/reference/versions.md";
/// Below it a table has a row for each release, the newest first.
const ROWS: &str = "|---|---|---|\n";

/// A change of `changelog.d`.
struct Fragment {
    path: PathBuf,
    kind: &'static str,
    text: String,
}

/// Makes the release of that version ready, or prints what the changelog would say.
pub(crate) fn run(version: &str, is_only_shown: bool) -> Result<()> {
    let old = env!("CARGO_PKG_VERSION");
    if parsed(version)? < parsed(old)? {
        bail!("{version} is older than {old}");
    }
    let changelog = fs::read_to_string(process::root().join(CHANGELOG))?;
    let (_, unreleased, _) = parts(&changelog).context("CHANGELOG.md has no \"Unreleased\"")?;
    let fragments = fragments()?;
    if unreleased.is_empty() && fragments.is_empty() {
        bail!("{CHANGELOG} and changelog.d hold no change: there is nothing to release");
    }
    let date = printed(Command::new("date").args(["--utc", "+%Y-%m-%d"]), "date")?;
    let date = date.trim();
    let section = section(version, date, unreleased, &fragments);
    if is_only_shown {
        print!("{section}");
        return Ok(());
    }
    let mut git = Command::new("git");
    git.current_dir(process::root()).args(["status", "--porcelain"]);
    if !printed(&mut git, "git status")?.is_empty() {
        bail!("there are changes that no commit holds");
    }
    let moves = fragments.iter().any(|fragment| fragment.kind == "measurement");
    edit(CHANGELOG, |text| with_section(text, &section))?;
    edit(VERSIONS, |text| with_row(text, version, date, moves))?;
    for (path, before) in NAMES {
        edit(path, |text| renamed(text, before, old, version))?;
    }
    edit("Cargo.toml", |text| {
        let own = format!("version = \"{old}\"");
        text.contains(&own).then(|| text.replace(&own, &format!("version = \"{version}\"")))
    })?;
    fragments.iter().try_for_each(|fragment| fs::remove_file(&fragment.path))?;
    process::check(&mut process::cargo(&["update", "--workspace", "--offline"]), "cargo update")?;
    println!("{version} is ready. Look at `git diff`, run the gate, then\n");
    println!("  git commit --all --message 'Release {version}'");
    println!("  git tag --annotate v{version} --message 'Plimsoll {version}'");
    Ok(())
}

/// Reads a version of three numbers.
fn parsed(version: &str) -> Result<[u32; 3]> {
    let numbers: Option<Vec<u32>> = version.split('.').map(|part| part.parse().ok()).collect();
    let numbers = numbers.and_then(|numbers| <[u32; 3]>::try_from(numbers).ok());
    numbers.with_context(|| format!("{version} is no version: three numbers, such as 1.2.3"))
}

/// Reads the changes, by their names.
fn fragments() -> Result<Vec<Fragment>> {
    let folder = process::root().join("changelog.d");
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&folder).context("cannot list changelog.d")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "README.md" {
            continue;
        }
        let kind = name.strip_suffix(".md").and_then(|name| name.rsplit_once('.'));
        let known = KINDS.iter().find(|(known, _)| kind.is_some_and(|(_, kind)| kind == *known));
        let Some((kind, _)) = known else { bail!("changelog.d/{name} is of no known kind") };
        let text = fs::read_to_string(&path)?;
        found.insert(name, Fragment { path, kind, text });
    }
    Ok(found.into_values().collect())
}

/// Returns the changelog's section on a version.
fn section(version: &str, date: &str, unreleased: &str, fragments: &[Fragment]) -> String {
    let mut section = format!("## {version} ({date})\n");
    if !unreleased.is_empty() {
        section.push_str(&format!("\n{unreleased}\n"));
    }
    for (kind, heading) in KINDS {
        let of_it: Vec<&Fragment> = fragments.iter().filter(|change| change.kind == kind).collect();
        if of_it.is_empty() {
            continue;
        }
        section.push_str(&format!("\n### {heading}\n\n"));
        for Fragment { text, .. } in of_it {
            let lines: Vec<&str> = text.split_whitespace().collect();
            section.push_str(&format!("- {}\n", lines.join(" ")));
        }
    }
    section
}

/// Splits a changelog into its head, the text under "Unreleased", and the releases.
fn parts(changelog: &str) -> Option<(&str, &str, &str)> {
    let (head, after) = changelog.split_once(UNRELEASED)?;
    let (unreleased, releases) = after.split_at(after.find("\n## ").unwrap_or(after.len()));
    Some((head, unreleased.trim(), releases))
}

/// Replaces the text under "Unreleased" by the section of its version.
fn with_section(changelog: &str, section: &str) -> Option<String> {
    let (head, _, releases) = parts(changelog)?;
    Some(format!("{head}{UNRELEASED}\n{section}{releases}"))
}

/// Adds the row of a version: its figures are comparable since itself where numbers moved, and else
/// since the version that the row before it names.
fn with_row(table: &str, version: &str, date: &str, moves: bool) -> Option<String> {
    let (before, rows) = table.split_once(ROWS)?;
    let of_last = rows.lines().next().and_then(|row| row.split('|').nth(3));
    let since = match of_last.map(str::trim).filter(|since| !moves && !since.is_empty()) {
        Some(since) => since,
        None => version,
    };
    Some(format!("{before}{ROWS}| {version} | {date} | {since} |\n{rows}"))
}

/// Replaces a version wherever it stands behind that text.
fn renamed(text: &str, before: &str, old: &str, new: &str) -> Option<String> {
    let old = format!("{before}{old}");
    text.contains(&old).then(|| text.replace(&old, &format!("{before}{new}")))
}

fn edit(path: &str, change: impl Fn(&str) -> Option<String>) -> Result<()> {
    let file = process::root().join(path);
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {path}"))?;
    let changed = change(&text).with_context(|| format!("{path} does not have the usual form"))?;
    Ok(fs::write(file, changed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(kind: &'static str, text: &str) -> Fragment {
        Fragment { path: PathBuf::new(), kind, text: text.to_owned() }
    }

    #[test]
    fn a_release_takes_what_is_unreleased_then_fragments_by_kind() {
        let fragments =
            [fragment("fixed", "One\nis fixed.\n"), fragment("measurement", "Two is faster.\n")];
        let release = "\n## 1.1.0 (2026-12-01)\n\n- Zero.\n";
        let changelog = format!("# Changelog\n\n{UNRELEASED}\n### Files\n\n- Three.\n{release}");
        let (_, unreleased, _) = parts(&changelog).unwrap();
        let section = section("1.2.0", "2027-01-02", unreleased, &fragments);
        let expected = "## 1.2.0 (2027-01-02)\n\n### Files\n\n- Three.\n\n\
                        ### Numbers that may move\n\n- Two is faster.\n\n\
                        ### Fixed\n\n- One is fixed.\n";
        assert_eq!(section, expected);
        let whole = with_section(&changelog, &section).unwrap();
        assert_eq!(whole, format!("# Changelog\n\n{UNRELEASED}\n{expected}{release}"));
        assert_eq!(parts(&whole).unwrap().1, "");
        assert!(super::fragments().is_ok(), "every file of changelog.d is of a known kind");
    }

    #[test]
    fn figures_stay_comparable_until_numbers_move() {
        let table = format!("| a | b | c |\n{ROWS}");
        let first = with_row(&table, "1.0.0", "d", false).unwrap();
        assert_eq!(first, format!("| a | b | c |\n{ROWS}| 1.0.0 | d | 1.0.0 |\n"));
        let second = with_row(&first, "1.1.0", "e", false).unwrap();
        assert!(second.contains("| 1.1.0 | e | 1.0.0 |\n| 1.0.0 | d | 1.0.0 |\n"), "{second}");
        let third = with_row(&second, "1.2.0", "f", true).unwrap();
        assert!(third.contains("| 1.2.0 | f | 1.2.0 |\n| 1.1.0 |"), "{third}");
    }

    #[test]
    fn every_file_that_names_the_version_has_it_where_it_is_looked_for() {
        for (path, before) in NAMES {
            let text = fs::read_to_string(process::root().join(path)).unwrap();
            let changed = renamed(&text, before, env!("CARGO_PKG_VERSION"), "9.8.7");
            assert!(changed.is_some(), "{path} has another version behind {before:?}");
        }
        let changelog = fs::read_to_string(process::root().join(CHANGELOG)).unwrap();
        assert!(with_section(&changelog, "x").is_some());
        let versions = fs::read_to_string(process::root().join(VERSIONS)).unwrap();
        assert!(with_row(&versions, "9.8.7", "d", true).is_some());
    }

    #[test]
    fn versions_have_three_numbers() {
        assert!(parsed("0.10.0").unwrap() > parsed("0.9.9").unwrap());
        for wrong in ["1", "1.2", "1.2.3.4", "v1.2.3", "1.2.x", ""] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}

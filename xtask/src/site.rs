//! Builds the documents as a site by mdBook (`docs/SUMMARY.md` is its table of contents), with a
//! page for each command, and checks every link in it.

mod links;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{process, tools};

/// Where the site comes to lie, from the root.
const SITE: &str = "target/site";
/// The line of `docs/SUMMARY.md` below which the pages of commands are listed.
const COMMANDS_AT: &str = "- [Commands](reference/commands.md)\n";

/// Builds the program, and the site with it.
pub(crate) fn run() -> Result<()> {
    process::check(&mut process::cargo(&["build", "-p", "plimsoll"]), "building the program")?;
    with(&process::built("plimsoll")?)
}

/// Builds the site with the pages of that program, and checks it.
pub(crate) fn with(program: &Path) -> Result<()> {
    let root = process::root();
    let source = root.join("target/site-source");
    if source.exists() {
        fs::remove_dir_all(&source).context("cannot remove the last source of the site")?;
    }
    copy(&root.join("docs"), &source)?;
    add_commands(program, &source)?;
    let mut mdbook = Command::new(tools::install_crate(&tools::MDBOOK)?);
    let site = root.join(SITE);
    mdbook.arg("build").arg(&source).arg("--dest-dir").arg(&site);
    process::check(&mut mdbook, "mdbook build")?;
    let mut findings = links::of_site(&site)?;
    findings.extend(links::of_readme(&root)?);
    for finding in &findings {
        eprintln!("{finding}");
    }
    ensure!(findings.is_empty(), "site: {} broken links", findings.len());
    println!("site: {SITE}/index.html");
    Ok(())
}

/// Writes a page for each command, as the program itself has it, and lists them.
fn add_commands(program: &Path, source: &Path) -> Result<()> {
    let pages = source.join("reference/commands");
    fs::create_dir_all(&pages)?;
    let mut man = Command::new(program);
    man.args(["man", "--markdown", "--dir"]).arg(&pages);
    process::check(&mut man, "plimsoll man --markdown")?;
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(&pages)? {
        let path = entry?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort_unstable();
    let summary = source.join("SUMMARY.md");
    let text = fs::read_to_string(&summary)?;
    let Some((before, behind)) = text.split_once(COMMANDS_AT) else {
        bail!("docs/SUMMARY.md has no line `{}`", COMMANDS_AT.trim_end());
    };
    let mut listed = String::from(before) + COMMANDS_AT;
    let mut index = fs::read_to_string(source.join("reference/commands.md"))?;
    index.push('\n');
    for name in names {
        let page = fs::read_to_string(pages.join(format!("{name}.md")))?;
        let mut lines = page.lines().filter(|line| !line.is_empty());
        let title = lines.next().unwrap_or_default().trim_start_matches("# ");
        let about = lines.next().unwrap_or_default();
        writeln!(listed, "  - [{title}](reference/commands/{name}.md)")?;
        writeln!(index, "- [`{title}`](commands/{name}.md): {about}")?;
    }
    fs::write(source.join("reference/commands.md"), index)?;
    Ok(fs::write(summary, listed + behind)?)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let path = entry?.path();
        let target = to.join(path.file_name().context("an entry has a name")?);
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

/// Returns all files below a directory, in the order of their paths.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

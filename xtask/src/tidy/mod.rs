//! The rules of the house that no compiler knows. Also run as a test, so that `cargo test` holds
//! them.

mod allocations;
pub(crate) mod budgets;
pub(crate) mod count;
mod cycles;
mod docs;
mod file_owners;
mod graph;
mod mask;
mod outbound;
mod profiles;
mod source;
mod words;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process;

/// One tracked text file.
struct TextFile {
    /// Its path from the root, with `/` between the parts.
    path: String,
    text: String,
}

/// Every tracked text file of the repository, and new ones that git does not ignore.
struct Tree(Vec<TextFile>);

impl Tree {
    fn load() -> Result<Self> {
        Self::load_from(&process::root())
    }

    /// Reads the files of a checkout.
    fn load_from(root: &Path) -> Result<Self> {
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("cannot run git")?;
        if !listed.status.success() {
            bail!("git ls-files failed: {}", String::from_utf8_lossy(&listed.stderr));
        }
        let listed =
            String::from_utf8(listed.stdout).context("git lists a path that is not UTF-8")?;
        let mut files = Vec::new();
        for path in listed.split_terminator('\0') {
            // What is not text, or was removed but not yet committed, is passed over.
            if let Ok(text) = std::fs::read_to_string(root.join(path)) {
                files.push(TextFile { path: path.to_owned(), text });
            }
        }
        Ok(Self(files))
    }

    #[cfg(test)]
    fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| TextFile {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        Self(files.iter().map(file).collect())
    }

    fn get(&self, path: &str) -> Option<&str> {
        self.0.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    /// Returns the Rust files.
    fn rust(&self) -> impl Iterator<Item = &TextFile> {
        self.0.iter().filter(|file| file.path.ends_with(".rs"))
    }
}

/// Checks every rule and prints what breaks one.
pub(crate) fn run() -> Result<()> {
    let findings = check(&Tree::load()?)?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        count => bail!("tidy: {count} findings"),
    }
}

fn check(tree: &Tree) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    findings.extend(source::check(tree));
    findings.extend(allocations::check(tree));
    findings.extend(words::check(tree));
    findings.extend(graph::check(tree));
    findings.extend(cycles::check(tree));
    findings.extend(docs::check(tree));
    findings.extend(file_owners::check(tree));
    findings.extend(outbound::check(tree));
    findings.extend(profiles::check(tree));
    findings.extend(budgets::check(tree)?);
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        let findings = check(&Tree::load().unwrap()).unwrap();
        assert!(findings.is_empty(), "\n{}", findings.join("\n"));
    }
}

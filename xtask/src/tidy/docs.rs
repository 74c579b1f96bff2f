//! Rules on documents: names that must exist, paths that must not, how changelog fragments are
//! named.

use super::{Tree, mask};
use crate::release::KINDS;

/// Folders that exist on one machine only; in two pieces, since this file is checked as well.
const MACHINE_FOLDERS: [&str; 3] =
    [concat!("/", "root/"), concat!("/", "home/"), concat!("/", "work/")];

/// Checks all of it.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut findings = machine_paths(tree);
    findings.extend(fragments(tree));
    findings.extend(lost_names(tree));
    findings.extend(open_listeners(tree));
    findings
}

/// Finds command lines that, taken over from a document, have Prometheus listen to everybody.
fn open_listeners(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for file in tree.0.iter().filter(|file| file.path.ends_with(".md")) {
        for (number, line) in (1..).zip(file.text.lines()) {
            let is_closed = line.contains("--web.listen-address=127.0.0.1:");
            if line.trim_start().starts_with("prometheus --") && !is_closed {
                let path = &file.path;
                findings.push(format!("{path}:{number}: has no --web.listen-address=127.0.0.1:…"));
            }
        }
    }
    findings
}

fn machine_paths(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for file in &tree.0 {
        for (number, line) in (1..).zip(file.text.lines()) {
            for folder in MACHINE_FOLDERS {
                // Behind a word it is a part of some other path, or of an address.
                let absolute = |(at, _): (usize, &str)| {
                    !line[..at].ends_with(|c| mask::is_word(c) || "./-}~*)".contains(c))
                        && line[at + folder.len()..].starts_with(mask::is_word)
                };
                if line.match_indices(folder).any(absolute) {
                    findings
                        .push(format!("{}:{number}: a path of one machine: {folder}", file.path));
                }
            }
        }
    }
    findings
}

fn fragments(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for file in &tree.0 {
        let Some(name) = file.path.strip_prefix("changelog.d/") else { continue };
        if name == "README.md" {
            continue;
        }
        let is_slug = |slug: &str| {
            !slug.is_empty() && slug.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        let well_named = match name.split('.').collect::<Vec<_>>().as_slice() {
            [slug, kind, "md"] => is_slug(slug) && KINDS.iter().any(|(known, _)| known == kind),
            _ => false,
        };
        if !well_named {
            let kinds = KINDS.map(|(kind, _)| kind).join("|");
            findings.push(format!("{}: is not named SLUG.<{kinds}>.md", file.path));
        }
        if file.text.trim().is_empty() {
            findings.push(format!("{}: says nothing", file.path));
        }
    }
    findings
}

/// Finds `crate::name` in back-ticks in ARCHITECTURE.md where the crate no longer has that name.
fn lost_names(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(tree.get("ARCHITECTURE.md").unwrap_or_default().lines()) {
        for span in line.split('`').skip(1).step_by(2) {
            let Some((krate, name)) = crate_and_name(span) else { continue };
            let folder = format!("crates/{krate}/src/");
            let mut sources = tree.rust().filter(|file| file.path.starts_with(&folder)).peekable();
            // Names of other people's crates are not ours to check.
            if sources.peek().is_some()
                && !sources.any(|file| has_name(&file.path, &file.text, name))
            {
                findings.push(format!("ARCHITECTURE.md:{number}: `{span}` is not in {folder}"));
            }
        }
    }
    findings
}

/// Reads `crate::…::name`, also with `()`, `!` or `<…>` behind it.
fn crate_and_name(span: &str) -> Option<(&str, &str)> {
    let path = span.split(['(', '<', '!', '{']).next()?;
    let is_name =
        |part: &str| !part.is_empty() && part.chars().all(|c| mask::is_word(c) || c == '-');
    let (krate, rest) = path.split_once("::")?;
    let name = rest.rsplit("::").next()?;
    (is_name(krate) && is_name(name)).then_some((krate, name))
}

fn has_name(path: &str, text: &str, name: &str) -> bool {
    let is_module =
        path.ends_with(&format!("/{name}.rs")) || path.ends_with(&format!("/{name}/mod.rs"));
    let code = mask::split(text).code;
    is_module || code.split(|c| !mask::is_word(c)).any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_one_machine_are_found_and_addresses_are_not() {
        let [root, home, work] = MACHINE_FOLDERS;
        let text = format!("cd {root}x\nhttps://h{work}a\n\"{home}me\"\n{home}<you>\n../{work}b");
        let tree = Tree::of(&[("README.md", text.as_str())]);
        assert_eq!(
            machine_paths(&tree),
            [
                format!("README.md:1: a path of one machine: {root}"),
                format!("README.md:3: a path of one machine: {home}"),
            ]
        );
    }

    #[test]
    fn a_prometheus_that_everybody_reaches_is_found() {
        let text = "prometheus --a\nprometheus --b --web.listen-address=127.0.0.1:9090\n";
        let findings = open_listeners(&Tree::of(&[("docs/x.md", text)]));
        assert_eq!(findings, ["docs/x.md:1: has no --web.listen-address=127.0.0.1:…"]);
    }

    #[test]
    fn fragments_carry_their_kind() {
        let tree = Tree::of(&[
            ("changelog.d/README.md", "x"),
            ("changelog.d/s3-get.added.md", "x"),
            ("changelog.d/s3-get.new.md", "x"),
            ("changelog.d/note.md", "x"),
            ("changelog.d/a.fixed.md", " \n"),
        ]);
        let findings = fragments(&tree);
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert!(findings[2].starts_with("changelog.d/a.fixed.md: says nothing"));
    }

    #[test]
    fn a_name_that_is_gone_from_its_crate_is_found() {
        let map = "`a::Kept` `a::room::kept()` `a::room` `std::fs` `a::Gone` `a::Comment`";
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", map),
            ("crates/a/src/lib.rs", "//! A.\n// Comment\nstruct Kept;\n"),
            ("crates/a/src/room.rs", "//! Room.\nfn kept() {}\n"),
        ]);
        assert_eq!(
            lost_names(&tree),
            [
                "ARCHITECTURE.md:1: `a::Gone` is not in crates/a/src/",
                "ARCHITECTURE.md:1: `a::Comment` is not in crates/a/src/",
            ]
        );
    }
}

//! Words that the naming table (docs/terms.md) replaces by others, in code and in documents.

use super::{Tree, mask};

/// A word, what to say instead, and where it may stand: rooms that speak another tool's language.
struct Banned {
    word: &'static str,
    instead: &'static str,
    allowed_under: &'static [&'static str],
}

/// Those of the table that have no other honest meaning here; the rest is left to the reader.
const BANNED: [Banned; 8] = [
    Banned { word: "phase", instead: "stage", allowed_under: &["crates/dialects/", CLI] },
    Banned { word: "slave", instead: "agent", allowed_under: &[] },
    Banned { word: "stonewall", instead: "first done", allowed_under: &["crates/dialects/"] },
    Banned { word: "autoterm", instead: "steady state", allowed_under: &["crates/dialects/", CLI] },
    Banned { word: "iodepth", instead: "concurrency", allowed_under: &["crates/dialects/", CLI] },
    Banned { word: "bandwidth", instead: "throughput", allowed_under: &["crates/dialects/", CLI] },
    Banned { word: "scenario", instead: "workload", allowed_under: &["crates/dialects/"] },
    Banned {
        word: "transaction",
        instead: "operation",
        // SQL's own word.
        allowed_under: &["crates/dialects/", "crates/console/src/store"],
    },
];

const CLI: &str = "crates/cli/";
/// Defines the words, so it names the ones not to use.
const TERMS: &str = "docs/terms.md";
/// What programs printed, kept as it was.
const EXAMPLES: &str = "docs/examples/";

/// Checks identifiers, comments and prose; literals and everything in back-ticks may say anything.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for file in &tree.0 {
        let path = file.path.as_str();
        if path.ends_with(".rs") {
            let split = mask::split(&file.text);
            findings.extend(find(path, &split.code));
            findings.extend(find(path, &without_quoted(&split.comments)));
        } else if path.ends_with(".md") && path != TERMS && !path.starts_with(EXAMPLES) {
            findings.extend(find(path, &without_quoted(&file.text)));
        }
    }
    findings
}

fn find(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for word in words(line) {
            let singular = word.strip_suffix('s').unwrap_or(&word);
            for banned in BANNED.iter().filter(|banned| banned.word == singular) {
                if !banned.allowed_under.iter().any(|folder| path.starts_with(folder)) {
                    findings.push(format!("{path}:{number}: `{word}`: say {}", banned.instead));
                }
            }
        }
    }
    findings
}

/// Returns the words of a line in lower case, those of an identifier one by one.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in line.chars() {
        if !c.is_alphabetic() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if c.is_alphabetic() {
            words.last_mut().expect("it starts with one word").extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Blanks what stands between back-ticks, fences included, and keeps the lines.
fn without_quoted(text: &str) -> String {
    let blank = |(index, piece): (usize, &str)| match index % 2 {
        0 => piece.to_owned(),
        _ => piece.chars().filter(|&c| c == '\n').collect(),
    };
    let spans = |(index, piece): (usize, &str)| match index % 2 {
        0 => piece.split('`').enumerate().map(blank).collect(),
        _ => blank((index, piece)),
    };
    text.split("```").enumerate().map(spans).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banned_words_are_found_inside_identifiers_and_not_inside_quotes() {
        let code = "//! The phases, `phase`.\nfn twoPhases(is_slave: u8) { \"slave\"; phaser }\n";
        let tree = Tree::of(&[
            ("crates/a/src/x.rs", code),
            ("crates/cli/src/x.rs", "//! Bandwidth.\n"),
            ("README.md", "```\nslave\n```\na `slave`\nBandwidth\n"),
            ("docs/terms.md", "not phase"),
        ]);
        assert_eq!(
            check(&tree),
            [
                "crates/a/src/x.rs:2: `phases`: say stage",
                "crates/a/src/x.rs:2: `slave`: say agent",
                "crates/a/src/x.rs:1: `phases`: say stage",
                "README.md:5: `bandwidth`: say throughput",
            ]
        );
    }
}

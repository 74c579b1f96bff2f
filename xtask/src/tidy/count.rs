//! Counts the lines of Rust that hold code, in source and in tests, by crate.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::source::{before_tests, is_in_src, is_test};
use super::{TextFile, Tree, mask};

/// Lines that hold code: neither blank nor only a comment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Lines {
    source: usize,
    tests: usize,
}

/// Prints how many lines each crate of a checkout has, and all of them.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut all = Lines::default();
    println!("{:<20} {:>8} {:>8}", "", "source", "tests");
    for (name, lines) in by_crate(&Tree::load_from(root)?) {
        println!("{name:<20} {:>8} {:>8}", lines.source, lines.tests);
        all = Lines { source: all.source + lines.source, tests: all.tests + lines.tests };
    }
    println!("{:<20} {:>8} {:>8}", "total", all.source, all.tests);
    Ok(())
}

fn by_crate(tree: &Tree) -> BTreeMap<&str, Lines> {
    let mut crates = BTreeMap::new();
    for file in tree.rust() {
        let mut parts = file.path.split('/');
        let name = match parts.next() {
            Some("crates") => parts.next().unwrap_or_default(),
            first => first.unwrap_or_default(),
        };
        let of: &mut Lines = crates.entry(name).or_default();
        let lines = lines_of(file);
        (of.source, of.tests) = (of.source + lines.source, of.tests + lines.tests);
    }
    crates
}

/// The source is what lies in `src` before a closing `mod tests`; benches count as tests.
fn lines_of(file: &TextFile) -> Lines {
    let split = mask::split(&file.text);
    let before = match is_in_src(&file.path) && !is_test(&file.path) {
        true => before_tests(file, &split).lines().count(),
        false => 0,
    };
    let mut lines = Lines::default();
    for (at, (text, comment)) in file.text.lines().zip(split.comments.lines()).enumerate() {
        // A line of a literal holds code as well: only a comment and blanks do not.
        if text.trim() == comment.trim() {
            continue;
        }
        match at < before {
            true => lines.source += 1,
            false => lines.tests += 1,
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_comments_and_tests_are_not_source() {
        let code = "//! A.\n\nfn a() { // why\n    \"// text\n    more\"; /* b */\n    /* c\n\
                    d */\n}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        let tree = Tree::of(&[
            ("crates/a/src/a.rs", code),
            ("crates/a/src/a/b_tests.rs", "//! B.\nfn b() {}\n"),
            ("crates/a/tests/it/c.rs", "fn c() {}\n"),
            ("xtask/src/d.rs", "fn d() {}\n"),
        ]);
        let a = Lines { source: 4, tests: 6 };
        let of = by_crate(&tree);
        assert_eq!(of, BTreeMap::from([("a", a), ("xtask", Lines { source: 1, tests: 0 })]));
    }
}

//! Rules on Rust sources: the opening line, sizes, unfinished work, how tests may be written.

use super::mask::{self, Split};
use super::{TextFile, Tree};

const COLUMNS_MAX: usize = 100;
const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

/// What code never holds, and what to do about it.
const NEVER: [(&str, &str); 4] = [
    ("todo!", "write it, or leave it out"),
    ("unimplemented!", "write it, or leave it out"),
    ("#[ignore", "a test that does not run is no test"),
    ("should_panic", "check the error that is returned"),
];

/// Checks every Rust source.
pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        if is_in_src(&file.path) && !file.text.starts_with("//! ") {
            findings.push(format!("{}:1: does not open with a `//!` line", file.path));
        }
        for (number, line) in (1..).zip(file.text.lines()) {
            let columns = line.chars().count();
            // A literal on a line of its own reads better whole than broken.
            let is_literal = line.trim_start().starts_with('"');
            if columns > COLUMNS_MAX && !is_literal {
                findings.push(format!(
                    "{}:{number}: {columns} columns, {COLUMNS_MAX} are the most",
                    file.path
                ));
            }
        }
        let split = mask::split(&file.text);
        if !is_test(&file.path) {
            findings.extend(unexplained(file, &split));
        }
        for (number, (code, comment)) in (1..).zip(split.code.lines().zip(split.comments.lines())) {
            let place = format!("{}:{number}", file.path);
            for (text, advice) in NEVER {
                if code.contains(text) {
                    findings.push(format!("{place}: `{text}`: {advice}"));
                }
            }
            findings.extend(unfinished(comment).map(|what| format!("{place}: {what}")));
        }
        if file.path.starts_with("crates/") && is_in_src(&file.path) && !is_test(&file.path) {
            let lines = before_tests(file, &split).lines().count();
            findings.extend(strays(file, lines));
        }
    }
    findings
}

/// Returns what the first lines of a crate's file include of outside the crate: a package holds
/// only what lies in it, and a test is not built from there.
fn strays(file: &TextFile, lines: usize) -> impl Iterator<Item = String> {
    // From `crates/NAME/src/file.rs` one step up leads to the crate.
    let steps_max = file.path.split('/').count() - 3;
    let lines = (1..).zip(file.text.lines()).take(lines);
    let strays = lines.filter(move |(_, line)| {
        let (_, included) = line.split_once("include_").unwrap_or_default();
        included.matches("../").count() > steps_max
    });
    strays.map(|(number, _)| {
        format!("{}:{number}: includes what the package of its crate does not hold", file.path)
    })
}

/// Returns each long file and function whose comment gives no reason. The comment that opens a file
/// or stands above a function says `Long: ` and why reading it in parts would be harder.
fn unexplained(file: &TextFile, split: &Split) -> Vec<String> {
    let source = before_tests(file, split);
    let comments: Vec<&str> = split.comments.lines().map(str::trim).collect();
    let explains = |comment: &&str| comment.contains("Long: ");
    let path = &file.path;
    let advice = "split it where it divides, or say why it is long in a comment: `Long: ...`";
    let mut findings = Vec::new();
    let file_lines = source.lines().count();
    let opening = file.text.lines().take_while(|line| line.starts_with("//!")).count();
    if file_lines > FILE_LINES_MAX && !comments[..opening].iter().any(explains) {
        findings.push(format!("{path}:1: {file_lines} lines; {advice}"));
    }
    for Function { name, at_line, lines } in functions(source) {
        // Attributes may stand between the comment and the head.
        let above = file.text.lines().zip(&comments).take(at_line).collect::<Vec<_>>();
        let is_above = |(text, comment): &&(&str, &&str)| {
            !comment.is_empty() || text.trim_start().starts_with("#[")
        };
        let is_explained =
            above.iter().rev().take_while(is_above).any(|(_, comment)| explains(comment));
        if lines > FUNCTION_LINES_MAX && !is_explained {
            findings.push(format!("{path}:{}: `{name}` has {lines} lines; {advice}", at_line + 1));
        }
    }
    findings
}

pub(super) fn is_in_src(path: &str) -> bool {
    let mut parts = path.split('/');
    match parts.next() {
        Some("crates") => parts.nth(1) == Some("src"),
        Some("xtask") => parts.next() == Some("src"),
        _ => false,
    }
}

pub(super) fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.ends_with("_tests.rs") || path.contains("/tests/")
}

/// Returns the code up to a `mod tests` that closes the file.
pub(super) fn before_tests<'a>(file: &TextFile, split: &'a Split) -> &'a str {
    let end = file.text.rfind("\n#[cfg(test)]\n").filter(|end| {
        // Attributes may stand between.
        let (attributes, _) = file.text[*end..].split_once("\nmod tests {").unwrap_or(("x", ""));
        attributes.lines().all(|line| line.is_empty() || line.starts_with(['#', ' ', ')']))
    });
    // The reading keeps lines, not bytes.
    let lines = end.map_or(usize::MAX, |end| file.text[..end].lines().count());
    let bytes = split.code.split_inclusive('\n').take(lines).map(str::len).sum();
    &split.code[..bytes]
}

/// A function that has a body.
#[derive(Debug, PartialEq)]
struct Function {
    name: String,
    /// The line of its head, from 0.
    at_line: usize,
    lines: usize,
}

fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = code[from..].find("fn ").map(|at| from + at) {
        from = at + "fn ".len();
        if code[..at].ends_with(mask::is_word) {
            continue;
        }
        let name: String = code[from..].chars().take_while(|&c| mask::is_word(c)).collect();
        if !name.is_empty()
            && let Some(end) = body_end(&code[from..])
        {
            let at_line = code[..at].matches('\n').count();
            let lines = code[at..from + end].matches('\n').count() + 1;
            found.push(Function { name, at_line, lines });
        }
    }
    found
}

/// Returns where the body that belongs to a function's head ends; `None` when a `;` stands for it.
fn body_end(code: &str) -> Option<usize> {
    let (mut nested, mut braces) = (0_i32, 0_i32);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' if braces == 0 => nested += 1,
            ')' | ']' if braces == 0 => nested -= 1,
            ';' if braces == 0 && nested == 0 => return None,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces == 0 && nested == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns what a comment says about unfinished work that it may not say.
fn unfinished(comment: &str) -> Option<&'static str> {
    if comment.contains(concat!("FIX", "ME")) {
        return Some("put it right now, or file an issue");
    }
    let mark = concat!("TO", "DO");
    let named = |rest: &str| {
        let rest = rest.strip_prefix("(#").unwrap_or_default();
        rest.split_once(')').is_some_and(|(number, _)| number.parse::<u32>().is_ok())
    };
    let all_named = comment.split(mark).skip(1).all(named);
    (!all_named).then_some("names no issue, as in (#12)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opening_line_and_unfinished_work_are_seen() {
        let tree = Tree::of(&[
            ("crates/a/src/x.rs", "use b;\n"),
            ("crates/a/benches/x.rs", "use b;\n"),
            ("xtask/src/y.rs", "//! Holds y.\nfn f() { todo!() }\n// TODO(#7): more. TODO: what\n"),
            ("crates/a/src/z.rs", "//! Z.\n// TODO(#7)\nconst T: &str = \"TODO todo!\";\n"),
        ]);
        assert_eq!(
            check(&tree),
            [
                "crates/a/src/x.rs:1: does not open with a `//!` line",
                "xtask/src/y.rs:2: `todo!`: write it, or leave it out",
                "xtask/src/y.rs:3: names no issue, as in (#12)",
            ]
        );
    }

    #[test]
    fn what_is_included_lies_in_the_crate() {
        let of = |path: &str| format!("//! X.\nconst X: &str = include_str!(\"{path}\");\n");
        let (near, far) = (of("../../assets/x"), of("../../../../docs/x"));
        let in_tests = format!("//! X.\n#[cfg(test)]\nmod tests {{\n{far}}}\n");
        let tree = Tree::of(&[
            ("crates/a/src/b/near.rs", near.as_str()),
            ("crates/a/src/b/far.rs", far.as_str()),
            ("crates/a/src/b/in_tests.rs", in_tests.as_str()),
            ("crates/a/src/b/tests.rs", far.as_str()),
            ("xtask/src/b/far.rs", far.as_str()),
        ]);
        let what = "includes what the package of its crate does not hold";
        assert_eq!(check(&tree), [format!("crates/a/src/b/far.rs:2: {what}")]);
    }

    #[test]
    fn columns_are_characters() {
        let (fits, wide) = ("ü".repeat(96), "ü".repeat(97));
        let wide = format!("//! {fits}\n//! {wide}\n    \"{wide}\"\n");
        let findings = check(&Tree::of(&[("crates/a/src/e/tests.rs", wide.as_str())]));
        assert_eq!(findings, ["crates/a/src/e/tests.rs:2: 101 columns, 100 are the most"]);
    }

    #[test]
    fn functions_are_measured_from_head_to_closing_brace() {
        let code = "impl X {\n    fn short(a: [u8; 2]) -> fn(u8) {\n    }\n    fn head(&self);\n}\n\
                    pub fn long<T>(\n    t: T,\n) where\n    T: Fn(),\n{\n    if x {\n    }\n}\n";
        let of = |name: &str, at_line, lines| Function { name: name.to_owned(), at_line, lines };
        assert_eq!(functions(code), [of("short", 1, 2), of("long", 5, 8)]);
    }

    #[test]
    fn what_is_long_gives_its_reason() {
        let long = "x\n".repeat(600);
        let tests = format!("//! X.\nx\n\n#[cfg(test)]\nmod tests {{\n{long}}}\n");
        let body = format!("fn f() {{\n{}}}\n", "x\n".repeat(69));
        let tree = Tree::of(&[
            ("crates/a/src/a.rs", &format!("//! X.\n{long}")),
            ("crates/a/src/b.rs", &tests),
            ("crates/a/src/c.rs", &format!("//! X.\n\n/// F.\n#[inline]\n{body}")),
            ("crates/a/src/d.rs", &format!("//! Long: a table.\n{long}")),
            ("crates/a/src/e.rs", &format!("//! X.\n// Long: steps.\n#[inline]\n{body}")),
            ("crates/a/src/f.rs", &format!("//! X.\n// Long: g.\nfn g() {{}}\n{body}")),
            ("crates/a/tests/it/d.rs", &long),
            ("crates/a/src/e/tests.rs", &format!("//! X.\n{long}")),
        ]);
        let advice = "split it where it divides, or say why it is long in a comment: `Long: ...`";
        assert_eq!(
            check(&tree),
            [
                format!("crates/a/src/a.rs:1: 601 lines; {advice}"),
                format!("crates/a/src/c.rs:5: `f` has 71 lines; {advice}"),
                format!("crates/a/src/f.rs:4: `f` has 71 lines; {advice}"),
            ]
        );
    }
}

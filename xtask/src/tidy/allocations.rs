//! What reads files makes no room by a number of a file without a bound: each such place names what
//! bounds it in a comment, `Bound: ...`.

use super::mask::{self, is_word};
use super::source::{before_tests, is_test};
use super::{TextFile, Tree};

/// Where files are read, and where their numbers are counted with.
const READERS: [&str; 10] = [
    "crates/analysis/src/",
    "crates/console/src/",
    "crates/dialects/src/",
    "crates/fleet/src/",
    "crates/foreign/src/",
    "crates/record/src/",
    "crates/results/src/",
    "crates/stats/src/",
    "crates/telemetry/src/",
    "crates/workload/src/",
];

/// What makes room, with the place of the size among its arguments and what stands between these.
const CALLS: [(&str, usize, char); 8] = [
    ("with_capacity(", 0, ','),
    ("reserve(", 0, ','),
    ("reserve_exact(", 0, ','),
    ("resize(", 0, ','),
    ("resize_with(", 0, ','),
    ("repeat(", 0, ','),
    ("repeat_n(", 1, ','),
    ("vec![", 1, ';'),
];

/// Words of a size that make it no larger than what else is in it.
const HARMLESS: [&str; 9] =
    ["as", "usize", "u64", "Self", "size_of", "saturating_sub", "div_ceil", "max", "min"];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let is_reader = |file: &&TextFile| {
        READERS.iter().any(|place| file.path.starts_with(place)) && !is_test(&file.path)
    };
    tree.rust().filter(is_reader).flat_map(unbounded).collect()
}

/// Returns the places of a file that make room for more than is there already, and do not say what
/// bounds it: in their line, above it, or above places that stand together.
fn unbounded(file: &TextFile) -> Vec<String> {
    let split = mask::split(&file.text);
    let code = before_tests(file, &split);
    let comments: Vec<&str> = split.comments.lines().collect();
    let mut lines: Vec<usize> = CALLS.iter().flat_map(|call| calls(code, *call)).collect();
    lines.sort_unstable();
    lines.dedup();
    let mut findings = Vec::new();
    let mut bounded = None;
    for line in lines {
        let is_above = |at: &usize| {
            let is_comment = split.code.lines().nth(*at).is_some_and(|code| code.trim().is_empty());
            is_comment && !comments[*at].trim().is_empty()
        };
        let above = (0..line).rev().take_while(is_above);
        let said = above.chain([line]).any(|at| comments[at].contains("Bound: "));
        if said || (line > 0 && bounded == Some(line - 1)) {
            bounded = Some(line);
        } else {
            findings.push(format!(
                "{}:{}: makes room by a number: say what bounds it: `// Bound: ...`",
                file.path,
                line + 1
            ));
        }
    }
    findings
}

/// Returns the lines, from 0, where a call makes room by more than constants and lengths.
fn calls(code: &str, (call, place, between): (&str, usize, char)) -> Vec<usize> {
    let found = code.match_indices(call).filter(|(at, _)| !code[..*at].ends_with(is_word));
    let is_open = |at: usize| {
        size(&code[at + call.len()..], place, between).is_some_and(|size| !is_fixed(size))
    };
    let line = |at: usize| code[..at].matches('\n').count();
    found.filter(|(at, _)| is_open(*at)).map(|(at, _)| line(at)).collect()
}

/// Returns the argument at that place of those that `rest` begins with; `None` where there are
/// fewer.
fn size(rest: &str, place: usize, between: char) -> Option<&str> {
    let (mut depth, mut number, mut begin) = (0, 0, 0);
    for (at, c) in rest.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return (number == place).then(|| &rest[begin..at]),
            ')' | ']' | '}' => depth -= 1,
            _ if c != between || depth > 0 => {}
            _ if number == place => return Some(&rest[begin..at]),
            _ => (number, begin) = (number + 1, at + 1),
        }
    }
    None
}

/// Tells whether a size is made of constants, and of lengths of what is there.
fn is_fixed(size: &str) -> bool {
    let mut parts: Vec<&str> = size.split(".len()").collect();
    let last = parts.pop().unwrap_or_default();
    let of_length = |c: char| is_word(c) || c == '.' || c == ':';
    let before = parts.into_iter().map(|part| part.trim_end_matches(of_length));
    let mut words = before.chain([last]).flat_map(|part| part.split(|c| !is_word(c)));
    words.all(|word| {
        let is_constant = !word.contains(|c: char| c.is_ascii_lowercase());
        is_constant || word.starts_with(|c: char| c.is_ascii_digit()) || HARMLESS.contains(&word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> Vec<String> {
        check(&Tree::of(&[("crates/record/src/a.rs", text), ("crates/http/src/a.rs", text)]))
    }

    #[test]
    fn room_by_a_number_needs_a_bound() {
        for open in [
            "Vec::with_capacity(rows)",
            "all.resize(index + 1, None)",
            "vec![0; head.count as usize]",
            "vec![vec![0; 9]; of(a, b)]",
            "repeat_n(1, count)",
            "text.reserve_exact(\n    size)",
        ] {
            let expected =
                ["crates/record/src/a.rs:2: makes room by a number: say what bounds it: \
                  `// Bound: ...`"];
            assert_eq!(findings(&format!("fn f() {{\n{open};\n}}\n")), expected, "{open}");
            for said in ["// Bound: MAX.\n", "// Bound: what\n// is there.\n"] {
                assert_eq!(findings(&format!("fn f() {{\n{said}{open};\n}}\n")), [""; 0]);
            }
        }
        let together = "// Bound: MAX.\na.resize(n, 0);\nb.resize(n, 0);\n\nc.resize(n, 0);\n";
        assert_eq!(findings(together).len(), 1);
    }

    #[test]
    fn constants_and_lengths_need_none() {
        for fixed in [
            "Vec::with_capacity(1 << 16)",
            "Vec::with_capacity(Self::ROWS_MAX + 1)",
            "vec![0; trace.ops.len()]",
            "vec![count, other]",
            "out.resize(out.len() + 4, byte)",
            "\",\".repeat(names.len().saturating_sub(1))",
            "bytes.resize(size_of::<u64>(), 0)",
            "\"vec![0; count]\"",
        ] {
            assert_eq!(findings(&format!("{fixed};\n")), [""; 0], "{fixed}");
        }
    }
}

//! Small changes of a text that a strict model must refuse.

use std::ops::Range;

use super::{Node, refusal};

/// A change of a text, and what it makes of it.
#[derive(Clone, Debug)]
struct Mutation {
    /// What was done.
    what: &'static str,
    /// The line as it was.
    line: String,
    /// The whole text after it.
    text: String,
}

/// Returns how many changes a model was shown, and those that it accepts: missing, doubled, foreign
/// and exchanged lines, changed words and units, numbers of another form, other punctuation.
///
/// What is inside of one of the `free` texts stays as it is, such as a name or a path.
fn accepted_mutations(model: &[Node], text: &str, free: &[&str]) -> (usize, Vec<Mutation>) {
    let all = mutations(text, free);
    let count = all.len();
    let accepted = all.into_iter().filter(|one| refusal(model, &one.text).is_none());
    (count, accepted.collect())
}

fn mutations(text: &str, free: &[&str]) -> Vec<Mutation> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let mut with = |what, put: &[&str], taken: usize| {
            let mut other = lines.clone();
            other.splice(at..at + taken, put.iter().copied());
            let text = other.join("\n") + "\n";
            all.push(Mutation { what, line: (*line).to_owned(), text });
        };
        with("missing", &[], 1);
        with("doubled", &[line, line], 1);
        with("foreign line", &[line, "  foreign      : 1"], 1);
        with("something behind", &[&format!("{line} x")], 1);
        with("something before", &[&format!("x{line}")], 1);
        if let Some(next) = lines.get(at + 1).filter(|next| *next != line) {
            with("exchanged", &[next, line], 2);
        }
        for (what, changed) in changed_lines(line, free) {
            with(what, &[&changed], 1);
        }
    }
    all
}

fn changed_lines(line: &str, free: &[&str]) -> Vec<(&'static str, String)> {
    let mut changed = Vec::new();
    let is_free = |at: &Range<usize>| {
        free.iter().any(|free| {
            line.match_indices(free).any(|(from, _)| at.start < from + free.len() && from < at.end)
        })
    };
    let mut put = |what, at: Range<usize>, new: String| {
        if !is_free(&at) {
            changed.push((what, format!("{}{new}{}", &line[..at.start], &line[at.end..])));
        }
    };
    for at in runs(line, |c| c.is_ascii_alphabetic()) {
        put("word", at.clone(), format!("{}q", &line[at]));
    }
    for at in runs(line, |c| c.is_ascii_digit() || c == '.') {
        let number = line[at.clone()].trim_end_matches('.');
        let at = at.start..at.start + number.len();
        let other = match number.split_once('.') {
            None if number.is_empty() => continue,
            None => vec![format!("{number}.57")],
            Some((whole, rest)) => {
                vec![format!("{number}7"), format!("{whole}.{}", &rest[..rest.len() - 1])]
            }
        };
        for new in other.into_iter().chain([format!("-{number}"), format!("{number},")]) {
            put("number", at.clone(), new);
        }
    }
    for mark in [", ", ": ", "=", "%", "[", "]", "(", ")"] {
        for (from, _) in line.match_indices(mark) {
            put("mark", from..from + mark.len(), "#".to_owned());
        }
    }
    changed
}

/// Returns where runs of such letters are.
fn runs(line: &str, is_of: impl Fn(char) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, letter) in line.char_indices().filter(|(_, letter)| is_of(*letter)) {
        match runs.last_mut() {
            Some(last) if last.end == at => last.end = at + letter.len_utf8(),
            _ => runs.push(at..at + letter.len_utf8()),
        }
    }
    runs
}

/// Refuses a model that accepts a changed text, but for changes in `but`: what was done, and how
/// the line begins. Returns how many were refused.
#[track_caller]
pub fn refuse_mutations(model: &[Node], text: &str, free: &[&str], but: &[(&str, &str)]) -> usize {
    super::accept(model, text);
    let (count, accepted) = accepted_mutations(model, text, free);
    let is_known = |one: &&Mutation| {
        !but.iter().any(|(what, line)| one.what == *what && one.line.starts_with(line))
    };
    let wrong: Vec<_> = accepted.iter().filter(is_known).collect();
    let told: Vec<String> =
        wrong.iter().map(|one| format!("{}: {:?}", one.what, one.line)).collect();
    assert!(told.is_empty(), "accepted all the same: {told:#?}");
    count - accepted.len()
}

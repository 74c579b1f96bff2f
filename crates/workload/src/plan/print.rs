//! Prints a workload file: short lines, what belongs together on one of them.

use std::fmt::Write as _;

use super::full;
use super::spec::WorkloadFile;
use super::tree::Tree;

/// A map or list that fits is written on one line, up to this column.
const COLUMNS: usize = 100;

impl WorkloadFile {
    /// Returns the workload as YAML, what holds by default left out.
    pub fn to_yaml(&self) -> String {
        print(&self.to_tree())
    }

    /// Returns the workload as YAML with everything that holds by default.
    pub fn to_yaml_full(&self) -> String {
        print(&full::tree(self))
    }

    pub(super) fn to_tree(&self) -> Tree {
        Tree::of(self)
    }
}

pub(super) fn print(tree: &Tree) -> String {
    let mut out = String::new();
    let Tree::Map(fields) = tree else { return scalar(tree) + "\n" };
    for (name, value) in fields {
        // The lists of the file as a whole have a line for each entry at least.
        entry(&mut out, 0, name, value, true);
    }
    out
}

/// Writes `name: value`, over several lines where it is too long for one.
fn entry(out: &mut String, indent: usize, name: &str, value: &Tree, is_top: bool) {
    let _ = write!(out, "{:indent$}{}:", "", key(name));
    let is_list = matches!(value, Tree::List(items) if !items.is_empty());
    let is_open = is_top && (is_list || name == "sets");
    behind(out, indent, value, is_open);
}

/// Writes what stands behind a colon or a dash.
fn behind(out: &mut String, indent: usize, value: &Tree, is_open: bool) {
    let line = out.len() - out.rfind('\n').map_or(0, |at| at + 1);
    let short = flow(value);
    let is_scalar = !matches!(value, Tree::List(_) | Tree::Map(_));
    if is_scalar || (!is_open && line + 1 + short.len() <= COLUMNS) || short.len() <= 2 {
        let _ = writeln!(out, " {short}");
        return;
    }
    out.push('\n');
    match value {
        Tree::Map(fields) => {
            fields.iter().for_each(|(name, value)| entry(out, indent + 2, name, value, false));
        }
        Tree::List(items) => items.iter().for_each(|item| list_item(out, indent, item)),
        _ => unreachable!("scalars are short"),
    }
}

/// Writes `- item`.
fn list_item(out: &mut String, indent: usize, item: &Tree) {
    let short = flow(item);
    let is_long = indent + 2 + short.len() > COLUMNS;
    match item {
        Tree::Map(fields) if is_long && !fields.is_empty() => {
            let mut inner = String::new();
            fields.iter().for_each(|(name, value)| {
                entry(&mut inner, indent + 2, name, value, false);
            });
            // The dash stands in the first field's indentation.
            let _ = write!(out, "{:indent$}- {}", "", &inner[indent + 2..]);
        }
        _ => {
            let _ = writeln!(out, "{:indent$}- {short}", "");
        }
    }
}

/// Returns a value on one line.
fn flow(tree: &Tree) -> String {
    match tree {
        Tree::List(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Tree::Map(fields) => {
            let one = |(name, value): &(String, Tree)| format!("{}: {}", key(name), flow(value));
            format!("{{{}}}", fields.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        other => scalar(other),
    }
}

fn key(name: &str) -> String {
    match name {
        // They are words of YAML for something else, but not where a key is expected.
        "null" | "on" => name.to_owned(),
        name => text(name),
    }
}

fn scalar(tree: &Tree) -> String {
    match tree {
        Tree::Null => "null".to_owned(),
        Tree::Bool(value) => value.to_string(),
        Tree::Int(value) => value.to_string(),
        Tree::Float(value) if value.fract() == 0.0 && value.abs() < 1e15 => format!("{value:.1}"),
        Tree::Float(value) if value.is_nan() => ".nan".to_owned(),
        Tree::Float(value) if value.is_infinite() => {
            if *value > 0.0 { ".inf" } else { "-.inf" }.to_owned()
        }
        Tree::Float(value) => float(*value),
        Tree::Text(value) => text(value),
        Tree::List(_) | Tree::Map(_) => flow(tree),
    }
}

/// Returns the number with a point, as YAML reads one with an exponent only so.
fn float(value: f64) -> String {
    let short = format!("{value:?}");
    match short.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
        _ => short,
    }
}

/// Returns the text, in quotes where YAML could take it for something else.
fn text(value: &str) -> String {
    let plain = is_word(value) || is_measure(value);
    match plain {
        true => value.to_owned(),
        false if value.chars().any(|letter| letter.is_control() || !letter.is_ascii()) => {
            let mut quoted = String::from("\"");
            for letter in value.chars() {
                match letter {
                    '"' | '\\' => quoted.extend(['\\', letter]),
                    letter if letter.is_ascii_graphic() || letter == ' ' => quoted.push(letter),
                    letter => {
                        let _ = write!(quoted, "\\U{:08X}", u32::from(letter));
                    }
                }
            }
            quoted + "\""
        }
        false => format!("'{}'", value.replace('\'', "''")),
    }
}

/// Tells whether it is a word that YAML takes for nothing else.
fn is_word(value: &str) -> bool {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let mut letters = value.chars();
    let first = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '/');
    first
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "_./-".contains(letter))
        && !WORDS.contains(&value.to_ascii_lowercase().as_str())
}

/// Tells whether it is a number with a unit, or a range of them.
fn is_measure(value: &str) -> bool {
    let starts = value.starts_with(|letter: char| letter.is_ascii_digit());
    let units = ["B", "ns", "us", "ms", "s", "m", "h", "%", "/s"];
    let ends = units.iter().any(|unit| value.ends_with(unit));
    let inside =
        value.chars().all(|letter| letter.is_ascii_alphanumeric() || "./%".contains(letter));
    starts && ends && inside
}

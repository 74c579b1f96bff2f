//! The files of `warp run`: YAML whose keys are flags, some under names of their own.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::asked::{Asked, FlagValue};
use super::command::WarpCommand;
use super::flags::{self, Row};
use super::template;
use crate::command_line::{Kind, LineError, Note};
use crate::spelling::did_you_mean;

const ROOT: &str = "warp";
/// Sections whose keys are flags as they are.
const PLAIN_SECTIONS: [&str; 4] = ["io", "remote", "params", "advanced"];
/// Sections whose name, with a point, comes before their keys.
const NAMED_SECTIONS: [&str; 4] = ["analyze", "obj", "autoterm", "distribution"];
/// Keys that are called otherwise than their flags.
pub(super) const RENAMED: [(&str, &str); 18] = [
    ("sse-c-encrypt", "encrypt"),
    ("analyze.verbose", "analyze.v"),
    ("obj.part-size", "part.size"),
    ("analyze.skip-duration", "analyze.skip"),
    ("analyze.segment-duration", "analyze.dur"),
    ("analyze.filter-op", "analyze.op"),
    ("server-profile", "serverprof"),
    ("bench-data", "benchdata"),
    ("autoterm.enabled", "autoterm"),
    ("obj.versions", "versions"),
    ("obj.rand-size", "obj.randsize"),
    ("no-prefix", "noprefix"),
    ("no-clear", "noclear"),
    ("distribution.get", "get-distrib"),
    ("distribution.stat", "stat-distrib"),
    ("distribution.put", "put-distrib"),
    ("distribution.delete", "delete-distrib"),
    ("obj.parts", "parts"),
];
/// Flags whose values may be written as a list.
const LISTS: [&str; 3] = ["serverprof", "host", "warp-client"];

/// A value of YAML. Numbers keep no more than what they are.
enum Node {
    Null,
    Switch(bool),
    Number(u64),
    Fraction(f64),
    Text(String),
    List(Vec<Node>),
    Section(Section),
}

type Section = Vec<(Spanned<String>, Node)>;

/// Reads the whole file.
pub(super) fn read(text: &str, variables: &[(String, String)]) -> Result<Asked, LineError> {
    let mut notes = Vec::new();
    let filled = if variables.is_empty() {
        text.to_owned()
    } else {
        let unused = |name: &str| !text.contains(&format!(".{name}"));
        for (name, _) in variables.iter().filter(|(name, _)| unused(name)) {
            notes.push(Note::new(format!("`--var {name}`"), "the file has no such field"));
        }
        template::fill(text, variables)?
    };
    let options = serde_saphyr::options! { strict_booleans: true };
    let root: Node = serde_saphyr::from_str_with_options(&filled, options).map_err(|error| {
        let line = error.location().map(|at| at.line()).unwrap_or_default();
        let text = error.without_snippet().to_string();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        LineError::Form(format!("line {line}: {text}"))
    })?;
    let mut section = the_section(root)?;
    let api = take(&mut section, "api")?;
    if api != "v1" {
        return Err(LineError::Form(format!("`{ROOT}.api` is `{api}`; only `v1` is known")));
    }
    let command = benchmark(&take(&mut section, "benchmark")?)?;
    let mut reader = Reader { asked: Asked::new(command), lines: Vec::new() };
    reader.asked.notes = notes;
    reader.section(section, "", ROOT)?;
    Ok(reader.asked)
}

fn the_section(root: Node) -> Result<Section, LineError> {
    let missing = || LineError::Form(format!("the file has no section `{ROOT}`"));
    let Node::Section(entries) = root else { return Err(missing()) };
    let mut found = None;
    for (key, node) in entries {
        match node {
            Node::Section(section) if key.value == ROOT => found = Some(section),
            _ if key.value == ROOT => return Err(missing()),
            Node::Null => {}
            _ => {
                let text = format!("no key of `warp run`; the only one here is `{ROOT}`");
                return Err(LineError::value(place(&key, &key.value), text));
            }
        }
    }
    found.ok_or_else(missing)
}

/// Takes a text out of the section.
fn take(section: &mut Section, name: &str) -> Result<String, LineError> {
    let index = section.iter().position(|(key, _)| key.value == name);
    match index.map(|index| section.remove(index)) {
        Some((_, Node::Text(text))) => Ok(text),
        Some((key, _)) => {
            Err(LineError::value(place(&key, &format!("{ROOT}.{name}")), "it is not a string"))
        }
        None => Err(LineError::Form(format!("`{ROOT}.{name}` is missing"))),
    }
}

fn benchmark(name: &str) -> Result<WarpCommand, LineError> {
    match WarpCommand::of(name)? {
        command @ WarpCommand::Benchmark(_) => Ok(command),
        _ => Err(LineError::value(format!("`{ROOT}.benchmark: {name}`"), "it is no benchmark")),
    }
}

/// Returns where a key is, for people.
fn place(key: &Spanned<String>, path: &str) -> String {
    format!("line {}: `{path}`", key.referenced.line())
}

struct Reader {
    asked: Asked,
    /// Each flag that a key gave, and where.
    lines: Vec<(&'static str, String)>,
}

impl Reader {
    /// Reads a section; `prefix` comes before the names of its flags.
    fn section(&mut self, section: Section, prefix: &str, path: &str) -> Result<(), LineError> {
        for (key, node) in section {
            let path = format!("{path}.{}", key.value);
            let name = &*key.value;
            let named = NAMED_SECTIONS.contains(&name);
            match node {
                Node::Section(inner) if PLAIN_SECTIONS.contains(&name) => {
                    self.section(inner, prefix, &path)?;
                }
                Node::Section(inner) if named => {
                    self.section(inner, &format!("{prefix}{name}."), &path)?;
                }
                Node::Section(_) => {
                    let known = PLAIN_SECTIONS.into_iter().chain(NAMED_SECTIONS);
                    let hint = did_you_mean(name, known.map(|known| (known, known.to_owned())));
                    let why = format!("no section of `warp run`{hint}");
                    return Err(LineError::value(place(&key, &path), why));
                }
                // A section without keys.
                Node::Null if PLAIN_SECTIONS.contains(&name) || named => {}
                node => self.key(&key, node, prefix, &path)?,
            }
        }
        Ok(())
    }

    fn key(
        &mut self,
        key: &Spanned<String>,
        node: Node,
        prefix: &str,
        path: &str,
    ) -> Result<(), LineError> {
        let written = place(key, path);
        let full = format!("{prefix}{}", key.value);
        let name = RENAMED.iter().find(|(from, _)| *from == full).map_or(&*full, |(_, to)| to);
        // What is empty is not given, so that one file can list the keys of all benchmarks.
        if matches!(node, Node::Null) {
            if !flags::is_known(name) {
                self.asked.note(written, "no key of `warp run`; it is empty, so nothing is lost");
            }
            return Ok(());
        }
        let flag = flags::of(self.asked.command, name, &written)?;
        if let Some((_, other)) = self.lines.iter().find(|(known, _)| *known == flag.name) {
            let why = format!("the same as {other}; one of them must go");
            return Err(LineError::value(written, why));
        }
        self.lines.push((flag.name, written.clone()));
        let value = value(flag, node).map_err(|why| LineError::value(&written, why))?;
        self.asked.push(FlagValue::new(flag, &value, written)?);
        Ok(())
    }
}

/// Returns a value as it would stand on the command line.
fn value(flag: &Row, node: Node) -> Result<String, String> {
    let may_list = LISTS.contains(&flag.name);
    match (flag.kind, node) {
        (Kind::Texts, _) => Err("flags that can be given several times have no key".to_owned()),
        (Kind::Switch, Node::Switch(is_on)) => Ok(is_on.to_string()),
        (Kind::Switch, _) => Err("it is `true` or `false`, without quotes".to_owned()),
        (
            Kind::Number | Kind::Fraction | Kind::Rate | Kind::Size | Kind::Sizes,
            Node::Number(number),
        ) => Ok(number.to_string()),
        (Kind::Fraction | Kind::Rate, Node::Fraction(number)) => Ok(number.to_string()),
        (Kind::Number, _) => Err("it is a whole number from 0".to_owned()),
        (Kind::Fraction | Kind::Rate, _) => Err("it is a number".to_owned()),
        (_, Node::Text(text)) => Ok(text),
        (_, Node::List(nodes)) if may_list => {
            let text = |node| match node {
                Node::Text(text) => Ok(text),
                _ => Err("an entry is not a string; put it in quotes".to_owned()),
            };
            nodes.into_iter().map(text).collect::<Result<Vec<_>, _>>().map(|all| all.join(","))
        }
        (_, Node::List(_)) => Err("it is one value, no list".to_owned()),
        (Kind::Duration, _) => Err("it is a duration such as `5m`".to_owned()),
        _ => Err("it is not a string; put it in quotes".to_owned()),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        Deserialize::deserialize(deserializer)
    }

    fn visit_bool<E>(self, is_on: bool) -> Result<Node, E> {
        Ok(Node::Switch(is_on))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Number(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(u64::try_from(number).map_or(Node::Fraction(number as f64), Node::Number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Fraction(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = entries.next_element()? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut section = Section::new();
        while let Some(entry) = entries.next_entry()? {
            section.push(entry);
        }
        Ok(Node::Section(section))
    }
}

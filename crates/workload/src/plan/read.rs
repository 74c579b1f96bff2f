//! Reads a workload file from YAML; a refusal says file, line, column and the field's path.

use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

use super::path::{FieldPath, InvalidField, Segment};
use super::spec::{WORKLOAD_SCHEMA, WorkloadFile};
use super::tree::{Tree, TreeError};

/// Where in a text something stands, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl Position {
    /// Returns where what follows a text stands.
    pub fn behind(before: &str) -> Self {
        let line = before.matches('\n').count() as u64 + 1;
        let column = before.chars().rev().take_while(|letter| *letter != '\n').count() as u64 + 1;
        Self { line, column }
    }
}

/// A refusal of a workload file, with the place of the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// What the file is called.
    pub file: String,
    /// Where the field stands, or what it lies in where it is missing.
    pub position: Option<Position>,
    /// Which field it is, and what is wrong with it.
    pub invalid: InvalidField,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(Position { line, column }) => {
                write!(f, "{}:{line}:{column}: {}", self.file, self.invalid)
            }
            None => write!(f, "{}: {}", self.file, self.invalid),
        }
    }
}

impl std::error::Error for ReadError {}

/// The text that a workload was read from: says where its fields stand.
#[derive(Clone, Debug)]
pub struct Source {
    file: String,
    spans: Spans,
}

impl Source {
    /// Returns where a field stands; of one that is not written, where what it lies in stands.
    pub fn position(&self, path: &FieldPath) -> Option<Position> {
        let mut place = &self.spans;
        for segment in path.segments() {
            let inner = match (segment, &place.inside) {
                (Segment::Index(index), Inside::List(entries)) => entries.get(*index),
                (Segment::Field(name), Inside::Map(fields)) => {
                    fields.iter().find(|(key, _)| key == name).map(|(_, value)| value)
                }
                _ => None,
            };
            let Some(inner) = inner else { break };
            place = inner;
        }
        Some(place.position)
    }

    /// Returns the refusal with its place.
    pub fn locate(&self, invalid: InvalidField) -> ReadError {
        let position = self.position(&invalid.path);
        ReadError { file: self.file.clone(), position, invalid }
    }
}

impl WorkloadFile {
    /// Returns the JSON schema of the file, which editors complete it by.
    #[cfg(feature = "schema")]
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(Self)
    }

    /// Reads a workload file; `file` is what a refusal calls it.
    pub fn from_yaml(file: &str, text: &str) -> Result<Self, ReadError> {
        Self::read(file, text).map(|(workload, _)| workload)
    }

    /// Reads a workload file and keeps where its fields stand.
    pub fn read(file: &str, text: &str) -> Result<(Self, Source), ReadError> {
        let (tree, source) = read_tree(file, text)?;
        let schema = match tree.get("schema") {
            Some(Tree::Text(schema)) => schema.as_str(),
            _ => "",
        };
        if schema != WORKLOAD_SCHEMA {
            let path = FieldPath::root().field("schema");
            let reason = match schema {
                "" => format!("is missing; write `schema: {WORKLOAD_SCHEMA}`"),
                "plimsoll.workload/1" | "plimsoll.files/1" => {
                    format!("`{schema}` is no longer read; write the file in {WORKLOAD_SCHEMA}")
                }
                other => format!("`{other}` is unknown; this version reads {WORKLOAD_SCHEMA}"),
            };
            return Err(source.locate(path.refuse(reason)));
        }
        let file = Self::from_tree(tree).map_err(|error| source.locate(error.into_invalid()))?;
        Ok((file, source))
    }
}

/// Reads a value from YAML, whatever its language; `file` is what a refusal calls the text.
pub fn read_as<T: for<'de> Deserialize<'de>>(file: &str, text: &str) -> Result<T, ReadError> {
    let (tree, source) = read_tree(file, text)?;
    typed(tree, &source)
}

fn read_tree(file: &str, text: &str) -> Result<(Tree, Source), ReadError> {
    let source = Source { file: file.to_owned(), spans: parse(file, text)? };
    Ok((parse(file, text)?, source))
}

fn typed<T: for<'de> Deserialize<'de>>(tree: Tree, source: &Source) -> Result<T, ReadError> {
    T::deserialize(tree).map_err(|error: TreeError| source.locate(error.into_invalid()))
}

pub(super) fn parse<T: for<'de> Deserialize<'de>>(file: &str, text: &str) -> Result<T, ReadError> {
    // Of YAML 1.1's words for true and false only those are taken that YAML 1.2 knows, as `on` is a
    // field.
    let options = serde_saphyr::options! { strict_booleans: true };
    if let Some(invalid) = control_character(file, text) {
        return Err(invalid);
    }
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let found = error.location().filter(|location| location.line() > 0);
        let position =
            found.map(|location| Position { line: location.line(), column: location.column() });
        let reason = sentence(error.without_snippet());
        ReadError { file: file.to_owned(), position, invalid: FieldPath::root().refuse(reason) }
    })
}

/// Refuses a character that no text has.
fn control_character(file: &str, text: &str) -> Option<ReadError> {
    let is_odd = |letter: char| letter.is_control() && !"\t\n\r\u{85}".contains(letter);
    let at = text.find(is_odd)?;
    let (before, code) = (&text[..at], u32::from(text[at..].chars().next()?));
    let reason = format!("the control character U+{code:04X} is not allowed in text");
    let (position, invalid) = (Some(Position::behind(before)), FieldPath::root().refuse(reason));
    Some(ReadError { file: file.to_owned(), position, invalid })
}

/// Returns the sentence of an error, without the place, which is said before it.
fn sentence(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::Error as Of;
    use serde_saphyr::budget::BudgetBreach::Depth;
    const DEEP: &str = "maps and lists are nested too deeply";
    match error {
        Of::MultipleDocuments { .. } => {
            "a second document starts here, after a `---`; a file holds one".to_owned()
        }
        Of::NonFiniteFloat { value, .. } => format!("`{value}` is not a finite number"),
        Of::Budget { breach: Depth { .. }, .. } => DEEP.to_owned(),
        Of::Budget { .. }
        | Of::AliasReplayLimitExceeded { .. }
        | Of::AliasExpansionLimitExceeded { .. } => {
            "is too large, counting what aliases expand to".to_owned()
        }
        Of::AliasError { error, .. } => sentence(error),
        Of::UnknownAnchor { .. } => "the alias has no anchor before it".to_owned(),
        Of::DuplicateMappingKey { key: Some(key), .. } => format!("`{key}` appears twice"),
        other => match first_line(&other.to_string()) {
            line if line == "recursion limit exceeded" => DEEP.to_owned(),
            line => line,
        },
    }
}

/// Returns the first line of an error, without the place.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    match line.split_once(": ") {
        Some((place, rest)) if place.starts_with("line ") => rest.to_owned(),
        _ => line.split(" at line ").next().unwrap_or(line).to_owned(),
    }
}

/// The places of a value and of what is in it.
#[derive(Clone, Debug)]
struct Spans {
    position: Position,
    inside: Inside,
}

#[derive(Clone, Debug)]
enum Inside {
    Scalar,
    List(Vec<Spans>),
    Map(Vec<(String, Spans)>),
}

impl<'de> Deserialize<'de> for Spans {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let found = Spanned::<Inside>::deserialize(from)?;
        let (line, column) = (found.referenced.line(), found.referenced.column());
        Ok(Self { position: Position { line, column }, inside: found.value })
    }
}

impl<'de> Deserialize<'de> for Inside {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(InsideVisitor)
    }
}

struct InsideVisitor;

impl<'de> Visitor<'de> for InsideVisitor {
    type Value = Inside;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Inside, E> {
        Ok(Inside::Scalar)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Inside, E> {
        Ok(Inside::Scalar)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Inside, E> {
        Ok(Inside::Scalar)
    }

    fn visit_i128<E: Error>(self, _: i128) -> Result<Inside, E> {
        Ok(Inside::Scalar)
    }

    fn visit_u128<E: Error>(self, _: u128) -> Result<Inside, E> {
        Ok(Inside::Scalar)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Inside, E> {
        Ok(Inside::Scalar)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Inside, E> {
        Ok(Inside::Scalar)
    }

    fn visit_unit<E: Error>(self) -> Result<Inside, E> {
        Ok(Inside::Scalar)
    }

    fn visit_none<E: Error>(self) -> Result<Inside, E> {
        Ok(Inside::Scalar)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Inside, D::Error> {
        Inside::deserialize(from)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Inside, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element()? {
            entries.push(entry);
        }
        Ok(Inside::List(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Inside, A::Error> {
        let mut fields = Vec::new();
        while let Some(key) = map.next_key::<Tree>()? {
            let Tree::Text(name) = key else {
                map.next_value::<serde::de::IgnoredAny>()?;
                continue;
            };
            fields.push((name, map.next_value()?));
        }
        Ok(Inside::Map(fields))
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;

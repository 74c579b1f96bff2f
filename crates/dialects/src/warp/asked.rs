//! What was asked for, before it is known what becomes of it.

use super::command::WarpCommand;
use super::flags::Row;
use super::values;
use crate::command_line::{Kind, LineError, Note};

/// A flag with its value.
#[derive(Clone)]
pub(super) struct FlagValue {
    pub(super) flag: &'static Row,
    /// The value as [`values::read`] returns it.
    pub(super) value: String,
    /// Where it is from and how it was written, for people.
    pub(super) written: String,
}

/// All that was asked for.
pub(super) struct Asked {
    pub(super) command: WarpCommand,
    pub(super) given: Vec<FlagValue>,
    pub(super) operands: Vec<String>,
    pub(super) notes: Vec<Note>,
}

impl FlagValue {
    /// Returns a flag of the command line.
    pub(super) fn of_word(flag: &'static Row, value: Option<&str>) -> Result<Self, LineError> {
        let written = match value {
            None => format!("`--{}`", flag.name),
            Some(value) => format!("`--{}={}`", flag.name, flag.without_secret(value)),
        };
        Self::new(flag, value.unwrap_or("true"), written)
    }

    /// Returns a flag that comes from wherever `written` says.
    pub(super) fn new(flag: &'static Row, value: &str, written: String) -> Result<Self, LineError> {
        let value = values::read(flag.kind, value);
        let value = value.map_err(|why| LineError::value(&written, why))?;
        Ok(Self { flag, value, written })
    }

    /// Tells whether it asks for nothing: `--flag=false`, `--flag=`.
    pub(super) fn is_off(&self) -> bool {
        self.value.is_empty() || (self.flag.kind == Kind::Switch && self.value == "false")
    }

    /// Returns an error about the value.
    pub(super) fn wrong(&self, why: impl Into<String>) -> LineError {
        LineError::value(&self.written, why)
    }

    /// Returns an error that refuses it.
    pub(super) fn refused(&self, why: impl Into<String>) -> LineError {
        LineError::not_taken(&self.written, why)
    }
}

impl Asked {
    pub(super) fn new(command: WarpCommand) -> Self {
        Self { command, given: Vec::new(), operands: Vec::new(), notes: Vec::new() }
    }

    /// Takes in a flag; of several with the same name the last one counts, as in warp.
    pub(super) fn push(&mut self, given: FlagValue) {
        if given.flag.kind != Kind::Texts {
            self.given.retain(|other| other.flag.name != given.flag.name);
        }
        self.given.push(given);
    }

    /// Returns a flag that asks for something.
    pub(super) fn get(&self, name: &str) -> Option<&FlagValue> {
        self.given.iter().find(|given| given.flag.name == name && !given.is_off())
    }

    /// Takes a flag out and says why.
    pub(super) fn drop(&mut self, name: &str, why: &str) {
        if let Some(given) = self.get(name) {
            self.notes.push(Note::new(&given.written, why));
        }
        self.given.retain(|given| given.flag.name != name);
    }

    /// Gives a flag another value.
    pub(super) fn change(&mut self, name: &str, value: impl Into<String>) {
        if let Some(given) = self.given.iter_mut().find(|given| given.flag.name == name) {
            given.value = value.into();
        }
    }

    pub(super) fn note(&mut self, flag: impl Into<String>, what: impl Into<String>) {
        self.notes.push(Note::new(flag, what));
    }
}

//! The words of a command line, as warp's library takes them: `--flag value`, `--flag=value`, one
//! dash as well as two, and `--` before what is no flag.

use std::slice::Iter;

use super::HIDDEN;
use super::asked::{Asked, FlagValue};
use super::command::WarpCommand;
use super::error::WarpArgError;
use super::flags::{self, Flag};
use super::values::Kind;

/// Reads all words.
pub(super) fn read(args: &[String]) -> Result<Asked, WarpArgError> {
    let mut words = args.iter();
    let mut before = Vec::new();
    let command = loop {
        let Some(word) = words.next() else {
            let text = "which benchmark? its name is missing, such as `get`";
            return Err(WarpArgError::Form(text.to_owned()));
        };
        match split(word)? {
            Some((name, value)) => {
                let missing = || format!("`-{name}` is no flag that stands before a command");
                let flag = flags::global(name).ok_or_else(|| WarpArgError::Form(missing()))?;
                before.push(follow(flag, value, &mut words)?);
            }
            None => break WarpCommand::of(word)?,
        }
    };
    let mut asked = Asked::new(command);
    before.into_iter().for_each(|given| asked.push(given));
    while let Some(word) = words.next() {
        if word == "--" {
            asked.operands.extend(words.by_ref().cloned());
        } else if let Some((name, value)) = split(word)? {
            let flag = flags::of(command, name, &format!("`{}`", name_of(word)))?;
            asked.push(follow(flag, value, &mut words)?);
        } else {
            asked.operands.push(word.clone());
        }
    }
    operands_fit(&asked)?;
    Ok(asked)
}

/// Returns all words, with a stand-in for each value that is a secret.
pub(super) fn without_secrets(args: &[String]) -> Vec<String> {
    let mut words = args.iter();
    let mut command = None;
    let mut shown = Vec::new();
    while let Some(word) = words.next() {
        let Ok(Some((name, value))) = split(word) else {
            command = command.or_else(|| WarpCommand::of(word).ok());
            shown.push(word.clone());
            continue;
        };
        let flag = match command {
            None => flags::global(name),
            Some(command) => flags::of(command, name, "").ok(),
        };
        let hide = |value: &str| flag.map_or(HIDDEN.to_owned(), |flag| flag.without_secret(value));
        match value {
            Some(value) => shown.push(format!("{}={}", name_of(word), hide(value))),
            None => {
                shown.push(word.clone());
                let takes_word = flag.is_some_and(|flag| flag.kind != Kind::Switch);
                shown.extend(takes_word.then(|| words.next()).flatten().map(|value| hide(value)));
            }
        }
    }
    shown
}

/// Returns the name and the value of a word that is a flag.
fn split(word: &str) -> Result<Option<(&str, Option<&str>)>, WarpArgError> {
    let Some(text) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
        return Ok(None);
    };
    let text = text.strip_prefix('-').unwrap_or(text);
    if text.is_empty() || text.starts_with(['-', '=']) {
        return Err(WarpArgError::Form(format!("`{}` is not written as a flag", name_of(word))));
    }
    Ok(Some(match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    }))
}

/// Returns a flag without its value, which may be a secret.
fn name_of(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

fn follow(
    flag: &'static Flag,
    value: Option<&str>,
    words: &mut Iter<'_, String>,
) -> Result<FlagValue, WarpArgError> {
    if value.is_some() || flag.kind == Kind::Switch {
        return FlagValue::of_word(flag, value);
    }
    let Some(value) = words.next() else {
        let written = format!("`--{}`", flag.name);
        return Err(WarpArgError::Value { written, why: "its value is missing".to_owned() });
    };
    FlagValue::of_word(flag, Some(value))
}

fn operands_fit(asked: &Asked) -> Result<(), WarpArgError> {
    let name = asked.command.name();
    let text = match (asked.command, &*asked.operands) {
        (WarpCommand::Benchmark(_), [first, ..]) if ["true", "false"].contains(&&**first) => {
            format!("`{first}` belongs to no flag; a switch is written `--flag={first}`")
        }
        (WarpCommand::Benchmark(_), [first, ..]) => {
            format!("`{first}` belongs to no flag; `{name}` takes nothing else")
        }
        (WarpCommand::Run, [_]) | (WarpCommand::Cmp, [_, _]) => return Ok(()),
        (WarpCommand::Run, _) => "`run` takes one file".to_owned(),
        (WarpCommand::Cmp, _) => "`cmp` takes two files".to_owned(),
        (WarpCommand::Analyze | WarpCommand::Merge, []) => format!("`{name}` takes files"),
        _ => return Ok(()),
    };
    Err(WarpArgError::Form(text))
}

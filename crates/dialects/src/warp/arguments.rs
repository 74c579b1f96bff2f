//! The words of a command line, as warp's library takes them: flags as Go writes them among other
//! words, and `--` before what is no flag.

use plimsoll_model::REDACTED;

use super::asked::{Asked, FlagValue};
use super::command::WarpCommand;
use super::flags::{self, Row};
use crate::command_line::{self, Given, Grammar, Kind, LineError, Word, Words};

/// Reads all words.
pub(super) fn read(args: &[String]) -> Result<Asked, LineError> {
    let kind_of = |name: &str| flags::global(name).map(|flag| flag.kind);
    let mut words = Words::new(Grammar::Go, args, &kind_of);
    let mut before = Vec::new();
    let command = loop {
        match words.next() {
            Some(Word::Flag(given)) => {
                let Some(flag) = flags::global(given.name) else {
                    let text = format!("`-{}` is no flag that stands before a command", given.name);
                    return Err(LineError::Form(text));
                };
                before.push(follow(flag, &given)?);
            }
            Some(Word::Other(word)) => {
                check_form(word)?;
                break WarpCommand::of(word)?;
            }
            None => {
                let text = "which benchmark? its name is missing, such as `get`";
                return Err(LineError::form(text));
            }
        }
    };
    let mut asked = Asked::new(command);
    before.into_iter().for_each(|given| asked.push(given));
    let kind_of = |name: &str| flags::of_command(command, name).map(|flag| flag.kind);
    let mut words = Words::new(Grammar::Go, words.rest(), &kind_of);
    while let Some(word) = words.next() {
        match word {
            Word::Flag(given) => {
                let flag = flags::of(command, given.name, &given.quoted())?;
                asked.push(follow(flag, &given)?);
            }
            Word::Other("--") => {
                asked.operands.extend(words.rest().iter().cloned());
                break;
            }
            Word::Other(word) => {
                check_form(word)?;
                asked.operands.push(word.to_owned());
            }
        }
    }
    operands_fit(&asked)?;
    Ok(asked)
}

/// Refuses what begins as a flag and is none, without what may be a secret.
fn check_form(word: &str) -> Result<(), LineError> {
    if word.len() < 2 || !word.starts_with('-') {
        return Ok(());
    }
    let flag = word.split('=').next().unwrap_or_default();
    Err(LineError::Form(format!("`{flag}` is not written as a flag")))
}

/// Returns all words, with a stand-in for each value that is a secret.
pub(super) fn without_secrets(args: &[String]) -> Vec<String> {
    let kind_of = |name: &str| flags::global(name).map(|flag| flag.kind);
    let command = Words::new(Grammar::Go, args, &kind_of).find_map(|word| match word {
        Word::Other(word) => WarpCommand::of(word).ok(),
        Word::Flag(_) => None,
    });
    let flag_of = |name: &str| match command {
        None => flags::global(name),
        Some(command) => flags::of_command(command, name),
    };
    let shown = |name: &str, value: &str| match flag_of(name) {
        Some(flag) => flag.without_secret(value),
        None if name.is_empty() => value.to_owned(),
        None => REDACTED.to_owned(),
    };
    command_line::without_secrets(args, &|name| flag_of(name).map(|flag| flag.kind), &shown)
}

fn follow(flag: &'static Row, given: &Given<'_>) -> Result<FlagValue, LineError> {
    match given.value {
        None if flag.kind != Kind::Switch => Err(given.without_value()),
        value => FlagValue::of_word(flag, value),
    }
}

fn operands_fit(asked: &Asked) -> Result<(), LineError> {
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
    Err(LineError::Form(text))
}

//! The words of a command line: what stands before mdtest's name, and its flags.

use std::collections::BTreeMap;

use super::flags::{FLAGS, OF_LAUNCHERS, RANKS};
use super::written::Written;
use crate::command_line::{Deal, Given, Grammar, Kind, LineError, Word, Words, fill, find};
use crate::spelling::did_you_mean;

/// What starts programs under MPI.
const LAUNCHERS: [&str; 4] = ["mpiexec", "mpirun", "mpiexec.hydra", "orterun"];

/// Reads all words.
pub(super) fn read(args: &[String]) -> Result<Written, LineError> {
    let mut to = Written { ranks: 1, ..Written::default() };
    fill(FLAGS, &BTreeMap::new(), &mut to)?;
    let args = launched(args, &mut to)?;
    let kind_of = |name: &str| match name {
        RANKS => Some(Kind::Number),
        name => find(FLAGS, name).map(|flag| flag.kind),
    };
    for word in Words::new(Grammar::Getopt, args, &kind_of) {
        match word {
            Word::Flag(given) => follow(&given, &mut to)?,
            Word::Other(word) => {
                let text = format!("`{word}` belongs to no flag; the directory is said with `-d`");
                return Err(LineError::Form(text));
            }
        }
    }
    Ok(to)
}

/// Returns the words behind `mpiexec -np N mdtest`, or behind as much of it as is there.
fn launched<'a>(args: &'a [String], to: &mut Written) -> Result<&'a [String], LineError> {
    let is_mdtest = |word: &str| file_name(word) == "mdtest";
    let args = match args {
        [first, rest @ ..] if is_mdtest(first) => return Ok(rest),
        [first, rest @ ..] if LAUNCHERS.contains(&file_name(first)) => rest,
        args => return Ok(args),
    };
    let kind_of = |name: &str| find(OF_LAUNCHERS, name).map(|flag| flag.kind);
    let mut words = Words::new(Grammar::Go, args, &kind_of);
    while let Some(word) = words.next() {
        match word {
            Word::Other(word) if is_mdtest(word) => return Ok(words.rest()),
            Word::Other(word) => {
                return Err(LineError::Form(format!("`{word}` is started, not mdtest")));
            }
            Word::Flag(given) => launcher(&given, to)?,
        }
    }
    Err(LineError::form("mdtest's name is missing behind the launcher's"))
}

fn file_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Follows a flag of a launcher.
fn launcher(given: &Given<'_>, to: &mut Written) -> Result<(), LineError> {
    let Some(flag) = find(OF_LAUNCHERS, given.name) else {
        let why = "all ranks run in this program; of MPI's flags only `-np` has a meaning here";
        return Err(LineError::not_taken(given.quoted(), why));
    };
    if flag.kind == Kind::Number && given.value.is_none() {
        return Err(given.without_value());
    }
    let note = flag.apply(to, given)?;
    to.notes.extend(note);
    Ok(())
}

/// Follows a flag of mdtest.
fn follow(given: &Given<'_>, to: &mut Written) -> Result<(), LineError> {
    if given.name == RANKS {
        return launcher(given, to);
    }
    // A letter has one dash, a name two.
    let is_fit = given.flag.starts_with("--") == (given.name.chars().count() > 1);
    let Some(flag) = find(FLAGS, given.name).filter(|_| is_fit) else {
        let spelled = |name: &'static str| match name.len() {
            1 => (name, format!("-{name}")),
            _ => (name, format!("--{name}")),
        };
        let known = FLAGS.iter().flat_map(|flag| flag.names()).map(spelled);
        let hint = did_you_mean(given.name, known);
        return Err(LineError::unknown(given.quoted(), "no flag of mdtest", &hint));
    };
    match given.value {
        Some(_) if flag.kind == Kind::Switch => {
            return Err(LineError::value(given.quoted(), "it takes no value"));
        }
        None if flag.kind != Kind::Switch => return Err(given.without_value()),
        Some("") if flag.deal == Deal::Take => return Err(given.without_value()),
        _ => {}
    }
    let note = flag.apply(to, given)?;
    to.notes.extend(note);
    Ok(())
}

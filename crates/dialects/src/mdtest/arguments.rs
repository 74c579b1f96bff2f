//! The words of a command line: what stands before mdtest's name, and its flags.

use std::slice::Iter;

use super::error::MdtestError;
use super::flags::{self, Deal, FLAGS, Flag};
use super::written::{Written, number_from_1};
use crate::spelling;

/// What starts programs under MPI.
const LAUNCHERS: [&str; 4] = ["mpiexec", "mpirun", "mpiexec.hydra", "orterun"];
/// What launchers can be told that makes no difference for threads of one program, and whether a
/// value belongs to it.
const LAUNCHER_NOTED: [(&str, bool); 7] = [
    ("--allow-run-as-root", false),
    ("--oversubscribe", false),
    ("--use-hwthread-cpus", false),
    ("--map-by", true),
    ("--bind-to", true),
    ("-bind-to", true),
    ("--rank-by", true),
];

type Words<'a> = std::iter::Peekable<Iter<'a, String>>;

/// Reads all words.
pub(super) fn read(args: &[String]) -> Result<Written, MdtestError> {
    let mut to = Written::default();
    let mut words = args.iter().peekable();
    launcher(&mut words, &mut to)?;
    while let Some(word) = words.next() {
        if is_ranks(word) {
            to.ranks = ranks(word, &mut words)?;
        } else if let Some(text) = word.strip_prefix("--") {
            long(text, &mut words, &mut to)?;
        } else if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            cluster(letters, &mut words, &mut to)?;
        } else {
            let text = format!("`{word}` belongs to no flag; the directory is said with `-d`");
            return Err(MdtestError::Form(text));
        }
    }
    Ok(to)
}

/// Reads `mpiexec -np N mdtest`, or as much of it as is there.
fn launcher(words: &mut Words<'_>, to: &mut Written) -> Result<(), MdtestError> {
    let is_mdtest = |word: &&String| file_name(word) == "mdtest";
    if words.next_if(is_mdtest).is_some() {
        return Ok(());
    }
    if words.next_if(|word| LAUNCHERS.contains(&file_name(word))).is_none() {
        return Ok(());
    }
    while let Some(word) = words.next() {
        if is_mdtest(&word) {
            return Ok(());
        }
        let noted = LAUNCHER_NOTED.iter().find(|(name, _)| name == word);
        if is_ranks(word) || word == "-n" || word == "-c" {
            to.ranks = ranks(word, words)?;
        } else if let Some((_, has_value)) = noted {
            let value = has_value.then(|| words.next()).flatten();
            let flag = [Some(word), value].into_iter().flatten().cloned().collect::<Vec<_>>();
            to.note(flag.join(" "), "ranks are threads, which the kernel places");
        } else if word.starts_with('-') {
            let why = "all ranks run in this program; of MPI's flags only `-np` has a meaning here";
            let (written, why) = (word.clone(), why.to_owned());
            return Err(MdtestError::NotTaken { written, why });
        } else {
            return Err(MdtestError::Form(format!("`{word}` is started, not mdtest")));
        }
    }
    Err(MdtestError::Form("mdtest's name is missing behind the launcher's".to_owned()))
}

fn file_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn is_ranks(word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    ["-np", "--np"].contains(&name)
}

fn ranks(word: &str, words: &mut Words<'_>) -> Result<u32, MdtestError> {
    let (flag, value) = match word.split_once('=') {
        Some((flag, value)) => (flag, Some(value)),
        None => (word, words.next().map(String::as_str)),
    };
    let value = value.ok_or_else(|| no_value(flag))?;
    let written = format!("{flag} {value}");
    number_from_1(value).map_err(|why| MdtestError::Value { written, why })
}

/// Follows `--name`, `--name=value` or `--name value`.
fn long(text: &str, words: &mut Words<'_>, to: &mut Written) -> Result<(), MdtestError> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let Some(flag) = flags::by_name(name) else {
        let nearest = spelling::nearest(name, FLAGS.iter().filter_map(|flag| flag.long));
        let nearest = nearest.map(|name| format!("--{name}"));
        return Err(MdtestError::Unknown { flag: format!("--{name}"), nearest });
    };
    let written = format!("--{name}");
    match (flag.has_value(), value) {
        (false, Some(_)) => Err(needless_value(&written)),
        (false, None) => apply(flag, written, None, to),
        (true, value) => {
            let value = match value {
                Some(value) => value,
                None => next_value(&written, words)?,
            };
            apply(flag, format!("{written}={value}"), Some(value), to)
        }
    }
}

/// Follows letters behind one dash; the first that has a value takes what stands behind it.
fn cluster(letters: &str, words: &mut Words<'_>, to: &mut Written) -> Result<(), MdtestError> {
    let name = letters.split_once('=').map_or(letters, |(name, _)| name);
    if flags::by_name(name).is_some() {
        let nearest = Some(format!("--{name}"));
        return Err(MdtestError::Unknown { flag: format!("-{name}"), nearest });
    }
    let mut rest = letters.chars();
    while let Some(letter) = rest.next() {
        let written = format!("-{letter}");
        let Some(flag) = flags::short(letter) else {
            return Err(unknown(letter));
        };
        if !flag.has_value() {
            if rest.as_str().starts_with('=') {
                return Err(needless_value(&written));
            }
            apply(flag, written, None, to)?;
            continue;
        }
        let glued = rest.as_str();
        let value = match glued.strip_prefix('=').unwrap_or(glued) {
            "" if glued.is_empty() => next_value(&written, words)?,
            value => value,
        };
        return apply(flag, format!("{written} {value}"), Some(value), to);
    }
    Ok(())
}

fn unknown(letter: char) -> MdtestError {
    let other = match letter.is_lowercase() {
        true => letter.to_ascii_uppercase(),
        false => letter.to_ascii_lowercase(),
    };
    MdtestError::Unknown {
        flag: format!("-{letter}"),
        nearest: flags::short(other).map(Flag::name),
    }
}

fn next_value<'a>(written: &str, words: &mut Words<'a>) -> Result<&'a str, MdtestError> {
    words.next().map(String::as_str).ok_or_else(|| no_value(written))
}

fn no_value(written: &str) -> MdtestError {
    MdtestError::Value { written: written.to_owned(), why: "it has no value".to_owned() }
}

fn needless_value(written: &str) -> MdtestError {
    MdtestError::Value { written: written.to_owned(), why: "it takes no value".to_owned() }
}

fn apply(
    flag: &Flag,
    written: String,
    value: Option<&str>,
    to: &mut Written,
) -> Result<(), MdtestError> {
    match (&flag.deal, value) {
        (Deal::Switch(set), _) => set(to),
        (Deal::Value(set), value) => {
            let value = value.unwrap_or_default();
            if value.is_empty() {
                return Err(no_value(&flag.name()));
            }
            set(to, value).map_err(|why| MdtestError::Value { written, why })?;
        }
        (Deal::Note { what, .. }, _) => to.note(written, *what),
        (Deal::Refuse { why, .. }, _) => {
            return Err(MdtestError::NotTaken { written, why: (*why).to_owned() });
        }
    }
    Ok(())
}

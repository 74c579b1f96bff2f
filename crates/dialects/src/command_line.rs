//! Command lines of other tools: one reader of their words, one kind of table for their flags, and
//! one error.
//!
//! A dialect's table says what each flag is called, what its value is, what becomes of it here and
//! in which words. The reading, the tool's own help and the test of the documents go by it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::slice::Iter;

/// A longer value is cut off in a message.
const SHOWN_CHARS_MAX: usize = 80;

/// Why a command line of another tool is refused. No secret is in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum LineError {
    /// It asks for the tool's help.
    #[error("help is asked for, and nothing else beside it")]
    Help,
    /// It is not written as the tool's are, or flags of it do not go together.
    #[error("{0}")]
    Form(String),
    /// Neither the tool nor we have such a flag or command.
    #[error("{written} is {no}")]
    Unknown {
        /// The word.
        written: String,
        /// What it is not, and what was meant: `no flag of mdtest; did you mean ...`.
        no: String,
    },
    /// The tool has it and we do not follow it.
    #[error("{written} is not taken: {why}")]
    NotTaken {
        /// The flag with its value.
        written: String,
        /// Why, or what to do.
        why: String,
    },
    /// The value is missing, makes no sense, or is one that we do not follow.
    #[error("{written}: {why}")]
    Value {
        /// The flag with its value.
        written: String,
        /// Why, or what to write.
        why: String,
    },
}

impl LineError {
    pub(crate) fn form(text: impl Into<String>) -> Self {
        Self::Form(text.into())
    }

    /// Returns the error of an unknown word; `hint` is what was meant, or empty.
    pub(crate) fn unknown(written: impl Into<String>, no: &str, hint: &str) -> Self {
        Self::Unknown { written: written.into(), no: format!("{no}{hint}") }
    }

    pub(crate) fn not_taken(written: impl Into<String>, why: impl Into<String>) -> Self {
        Self::NotTaken { written: written.into(), why: why.into() }
    }

    pub(crate) fn value(written: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Value { written: written.into(), why: why.into() }
    }
}

/// What differs from another tool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// The flag, variable or key as it was written, secrets apart.
    pub flag: String,
    /// What differs.
    pub what: String,
}

impl Note {
    pub(crate) fn new(flag: impl Into<String>, what: impl Into<String>) -> Self {
        Self { flag: flag.into(), what: what.into() }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.flag, self.what)
    }
}

/// How a tool's flags are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grammar {
    /// As Go's `flag` reads them, and urfave/cli with it: `-x v`, `-x=v`, each also with two
    /// dashes; a switch is `-x` or `-x=false`.
    Go,
    /// As getopt reads them: letters share a dash, and values may touch theirs.
    Getopt,
    /// As fio reads them: names behind two dashes.
    Long,
}

/// What the value of a flag is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There is none: the flag stands by itself.
    Switch,
    /// A whole number.
    Number,
    /// A number that may have a fraction.
    Fraction,
    /// How much in a second; 0 is no limit.
    Rate,
    /// A duration.
    Duration,
    /// A size, such as `5MiB`.
    Size,
    /// Sizes of objects: one, a range or a histogram.
    Sizes,
    /// Any text.
    Text,
    /// Any text; the flag may be given several times.
    Texts,
}

/// What becomes of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deal {
    /// It is followed.
    Take,
    /// It changes no load, and what differs is said.
    Note,
    /// It is refused.
    Refuse,
}

/// A flag of another tool: a row of the tool's table.
pub(crate) struct Flag<X> {
    /// Its name, without dashes.
    pub(crate) name: &'static str,
    /// Its other names.
    pub(crate) others: &'static [&'static str],
    pub(crate) kind: Kind,
    pub(crate) deal: Deal,
    /// What it means, what differs, or why it is refused.
    pub(crate) says: &'static str,
    /// What it is where it is not given; empty: nothing.
    pub(crate) default: &'static str,
    /// What else a dialect knows of it.
    pub(crate) to: X,
}

/// Sets what a value says, or returns why it cannot.
pub(crate) type Set<T> = fn(&mut T, &str) -> Result<(), String>;

impl<X> Flag<X> {
    pub(crate) const fn new(
        name: &'static str,
        kind: Kind,
        deal: Deal,
        says: &'static str,
        to: X,
    ) -> Self {
        Self { name, others: &[], kind, deal, says, default: "", to }
    }

    pub(crate) const fn or(mut self, others: &'static [&'static str]) -> Self {
        self.others = others;
        self
    }

    pub(crate) const fn says(mut self, says: &'static str) -> Self {
        self.says = says;
        self
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.others.contains(&name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        [self.name].into_iter().chain(self.others.iter().copied())
    }
}

impl<T> Flag<Set<T>> {
    /// Does with a flag what becomes of it, and returns what is to be said of it.
    pub(crate) fn apply(&self, to: &mut T, given: &Given<'_>) -> Result<Option<Note>, LineError> {
        let written = given.written();
        match self.deal {
            Deal::Take => (self.to)(to, given.value.unwrap_or_default())
                .map_err(|why| LineError::value(written, why))
                .map(|()| None),
            Deal::Note => Ok(Some(Note::new(written, self.says))),
            Deal::Refuse => Err(LineError::not_taken(written, self.says)),
        }
    }
}

/// A flag that is followed.
pub(crate) const fn taken<T>(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    to: Set<T>,
) -> Flag<Set<T>> {
    Flag { default, ..Flag::new(name, kind, Deal::Take, "", to) }
}

/// A flag that changes no load.
pub(crate) const fn noted<T>(name: &'static str, kind: Kind, what: &'static str) -> Flag<Set<T>> {
    Flag::new(name, kind, Deal::Note, what, |_, _| Ok(()))
}

/// A flag that is refused.
pub(crate) const fn refused<T>(name: &'static str, kind: Kind, why: &'static str) -> Flag<Set<T>> {
    Flag::new(name, kind, Deal::Refuse, why, |_, _| Ok(()))
}

/// Returns the flag of this name.
pub(crate) fn find<X>(flags: &'static [Flag<X>], name: &str) -> Option<&'static Flag<X>> {
    flags.iter().find(|flag| flag.is_called(name))
}

/// Sets what values say, by the names of their flags, and the default of each flag without one.
pub(crate) fn fill<T>(
    flags: &[Flag<Set<T>>],
    values: &BTreeMap<&'static str, String>,
    to: &mut T,
) -> Result<(), LineError> {
    for flag in flags {
        let value = match values.get(flag.name) {
            Some(value) => value,
            None if flag.default.is_empty() => continue,
            None => flag.default,
        };
        (flag.to)(to, value).map_err(|why| {
            let shown: String = value.chars().take(SHOWN_CHARS_MAX).collect();
            LineError::value(format!("`-{}={shown}`", flag.name), why)
        })?;
    }
    Ok(())
}

/// Sets a value that was read.
pub(crate) fn set<V>(slot: &mut V, value: Result<V, String>) -> Result<(), String> {
    *slot = value?;
    Ok(())
}

/// Sets a text.
pub(crate) fn text(slot: &mut String, text: &str) -> Result<(), String> {
    set(slot, Ok(text.to_owned()))
}

/// Sets a switch.
pub(crate) fn on(slot: &mut bool) -> Result<(), String> {
    *slot = true;
    Ok(())
}

/// A word of a command line.
pub(crate) enum Word<'a> {
    Flag(Given<'a>),
    /// What is not written as a flag.
    Other(&'a str),
}

/// A flag as it is given, known or not.
pub(crate) struct Given<'a> {
    /// As it is written, without its value: `-n`, `--name`.
    pub(crate) flag: String,
    pub(crate) name: &'a str,
    /// What stands between both: nothing, `=`, or a blank for two words.
    between: &'static str,
    /// `None` also where one is missing.
    pub(crate) value: Option<&'a str>,
}

impl Given<'_> {
    /// Returns the flag with its value, for people.
    pub(crate) fn written(&self) -> String {
        format!("`{}{}{}`", self.flag, self.between, self.value.unwrap_or_default())
    }

    /// Returns the flag without its value, for people.
    pub(crate) fn quoted(&self) -> String {
        format!("`{}`", self.flag)
    }

    /// Returns the error that the value is missing.
    pub(crate) fn without_value(&self) -> LineError {
        LineError::value(self.quoted(), "it has no value")
    }
}

/// The words of a command line, read one after the other.
pub(crate) struct Words<'a, 'k> {
    grammar: Grammar,
    words: Iter<'a, String>,
    /// Letters that share the dash of those before.
    letters: &'a str,
    /// Returns what the value of a flag is, if there is such a flag.
    kind_of: &'k dyn Fn(&str) -> Option<Kind>,
}

impl<'a, 'k> Words<'a, 'k> {
    pub(crate) fn new(
        grammar: Grammar,
        args: &'a [String],
        kind_of: &'k dyn Fn(&str) -> Option<Kind>,
    ) -> Self {
        Self { grammar, words: args.iter(), letters: "", kind_of }
    }

    /// Returns the words that are not read yet.
    pub(crate) fn rest(&self) -> &'a [String] {
        self.words.as_slice()
    }

    fn takes_value(&self, name: &str) -> bool {
        (self.kind_of)(name).is_some_and(|kind| kind != Kind::Switch)
    }

    /// Returns a flag whose value, if it has one, is the next word unless it touches the flag.
    fn given(
        &mut self,
        flag: String,
        name: &'a str,
        value: Option<(&'static str, &'a str)>,
    ) -> Given<'a> {
        let (between, value) = match value {
            Some((between, value)) => (between, Some(value)),
            None if self.takes_value(name) => match self.words.next() {
                Some(word) => (" ", Some(&**word)),
                None => ("", None),
            },
            None => ("", None),
        };
        Given { flag, name, between, value }
    }

    /// Returns the first of the letters; a value takes what is left of them.
    fn letter(&mut self) -> Given<'a> {
        let end = self.letters.chars().next().map_or(0, char::len_utf8);
        let (name, rest) = self.letters.split_at(end);
        let value = match rest.strip_prefix('=') {
            Some(value) => Some(("=", value)),
            None => Some(("", rest)).filter(|_| !rest.is_empty() && self.takes_value(name)),
        };
        self.letters = if value.is_some() { "" } else { rest };
        self.given(format!("-{name}"), name, value)
    }
}

impl<'a> Iterator for Words<'a, '_> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        if !self.letters.is_empty() {
            return Some(Word::Flag(self.letter()));
        }
        let word = self.words.next()?;
        let text = match (word.strip_prefix("--"), word.strip_prefix('-'), self.grammar) {
            (Some(text), ..) | (None, Some(text), Grammar::Go) => text,
            (None, Some(text), Grammar::Getopt) => {
                let name = text.split('=').next().unwrap_or_default();
                if !text.is_empty() && (name.len() < 2 || (self.kind_of)(name).is_none()) {
                    self.letters = text;
                    return self.next();
                }
                text
            }
            _ => "",
        };
        if text.is_empty() || text.starts_with(['-', '=']) {
            return Some(Word::Other(word));
        }
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(("=", value))),
            None => (text, None),
        };
        let flag = word[..word.len() - text.len() + name.len()].to_owned();
        Some(Word::Flag(self.given(flag, name, value)))
    }
}

/// Returns all words, with `shown` of a flag's name and value in place of each value, and of an
/// empty name in place of what belongs to no flag.
pub(crate) fn without_secrets(
    args: &[String],
    kind_of: &dyn Fn(&str) -> Option<Kind>,
    shown: &dyn Fn(&str, &str) -> String,
) -> Vec<String> {
    let mut all = Vec::new();
    for word in Words::new(Grammar::Go, args, kind_of) {
        match word {
            Word::Other(word) => all.push(shown("", word)),
            Word::Flag(Given { flag, name, between, value }) => {
                let value = value.map(|value| shown(name, value));
                match (between, value) {
                    ("=", Some(value)) => all.push(format!("{flag}={value}")),
                    (_, value) => all.extend([flag].into_iter().chain(value)),
                }
            }
        }
    }
    all
}

/// Returns the values of a line of Go's flags by their names; the last of two wins. `other` judges
/// a flag that is not in the table, and `more` are such that the tool knows.
pub(crate) fn read_go<X>(
    args: &[String],
    tool: &str,
    (flags, more): (&'static [Flag<X>], &'static [Flag<X>]),
    mut other: impl FnMut(&Given<'_>) -> Result<(), LineError>,
) -> Result<BTreeMap<&'static str, String>, LineError> {
    let kind_of = |name: &str| find(flags, name).or(find(more, name)).map(|flag| flag.kind);
    let mut values = BTreeMap::new();
    for word in Words::new(Grammar::Go, args, &kind_of) {
        let given = match word {
            Word::Flag(given) => given,
            Word::Other(word) => {
                return Err(LineError::Form(format!(
                    "`{word}` is no flag; {tool} would pass over it and all that follows, so \
                     leave it out"
                )));
            }
        };
        match (kind_of(given.name), given.value) {
            (None, _) if ["h", "help"].contains(&given.name) => return Err(LineError::Help),
            (Some(kind), None) if kind != Kind::Switch => return Err(given.without_value()),
            _ => {}
        }
        match find(flags, given.name) {
            Some(flag) => {
                values.insert(flag.name, given.value.unwrap_or("true").to_owned());
            }
            None => other(&given)?,
        }
    }
    Ok(values)
}

/// Returns a tool's help in the layout of Go's flags.
pub(crate) fn go_help<X>(usage: &str, flags: &[Flag<X>]) -> String {
    let flag = |flag: &Flag<X>| {
        let Flag { name, says, default, .. } = flag;
        let (kind, default) = match (flag.kind, *default) {
            (Kind::Switch, "" | "false") => ("", String::new()),
            (Kind::Switch, default) => ("", format!(" (default {default})")),
            (Kind::Number, "") => (" int", String::new()),
            (Kind::Number, default) => (" int", format!(" (default {default})")),
            (_, "") => (" string", String::new()),
            (_, default) => (" string", format!(" (default {default:?})")),
        };
        format!("  -{name}{kind}\n    \t{says}{default}\n")
    };
    let flags: String = flags.iter().map(flag).collect();
    format!("{usage}\n{flags}")
}

/// Reads a number. Go reads `010` as 8 and `0x10` as 16, which hardly anybody means.
pub(crate) fn go_number<N: TryFrom<u64>>(
    text: &str,
    range: RangeInclusive<u64>,
) -> Result<N, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("it is a whole number in decimal digits".to_owned());
    }
    if text.len() > 1 && text.starts_with('0') {
        let why = "Go reads a number that begins with 0 as octal; write it without";
        return Err(why.to_owned());
    }
    let (min, max) = range.into_inner();
    match text.parse::<u64>() {
        Ok(number) if number < min => Err(format!("it is {min} at least")),
        number => number
            .ok()
            .filter(|number| *number <= max)
            .and_then(|number| N::try_from(number).ok())
            .ok_or_else(|| format!("it is {max} at most")),
    }
}

/// Reads a switch.
pub(crate) fn go_switch(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("it is a switch: true or false".to_owned()),
    }
}

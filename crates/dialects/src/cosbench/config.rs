//! Config strings, `key=value;key=value`: how they are read, joined and asked.

use super::error::{Notes, Place, Refused};

/// A config string with what it inherits in front of it.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Config {
    /// As it is joined.
    pub(super) text: String,
    /// Where the part of its own stands.
    pub(super) place: Place,
}

impl std::fmt::Debug for Config {
    /// Secrets may stand in it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Config").field(&super::storage::without_secrets(&self.text)).finish()
    }
}

impl Config {
    pub(super) fn new(text: &str, place: Place) -> Self {
        Self { text: text.to_owned(), place }
    }

    /// Returns this one's text behind that of another, from which it inherits.
    pub(super) fn below(&self, parent: &str) -> String {
        join(parent, &self.text)
    }

    /// Returns the value of a key: of several, that of the last.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        pairs(&self.text).filter(|(known, _)| *known == key).last().map(|(_, value)| value)
    }

    /// Returns the value of a key that must be there.
    pub(super) fn need(&self, key: &str) -> Result<&str, Refused> {
        self.get(key).ok_or_else(|| {
            let more = format!("the config needs `{key}=...`, here or above");
            Refused::worded(self.place, format!("no such key defined: {key}"), more)
        })
    }

    /// Returns a switch; `None` where the key is not there.
    pub(super) fn switch(&self, key: &str) -> Result<Option<bool>, Refused> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Ok(Some(true)),
            "false" | "no" | "off" => Ok(Some(false)),
            _ => Err(self.refuse(key, value, "write true or false")),
        }
    }

    /// Returns a number of at least 0.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, Refused> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => {
                let words = format!("For input string: \"{value}\"");
                let more = format!("`{key}={value}`: write a whole number");
                Err(Refused::worded(self.place, words, more))
            }
        }
    }

    /// Returns the refusal of a value.
    pub(super) fn refuse(&self, key: &str, value: &str, why: &str) -> Refused {
        Refused::new(self.place, format!("`{key}={value}`: {why}"))
    }
}

/// Returns two config strings joined; what inherits stands behind.
pub(super) fn join(parent: &str, child: &str) -> String {
    match (parent.is_empty(), child.is_empty()) {
        (true, _) => child.to_owned(),
        (_, true) => parent.to_owned(),
        (false, false) => format!("{parent};{child}"),
    }
}

/// Returns keys and values in their order.
pub(super) fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(';').filter_map(|piece| piece.split_once('=')).map(|(k, v)| (k.trim(), v.trim()))
}

/// Notes what of a config string is passed over: keys that `takes` does not take, and pieces that
/// are no pair.
pub(super) fn note(
    text: &str,
    (line, shown): (u32, Shown),
    takes: impl Fn(&str) -> Taken,
    notes: &mut Notes,
) {
    for piece in text.split(';').map(str::trim).filter(|piece| !piece.is_empty()) {
        let Some((key, _)) = piece.split_once('=') else {
            let piece: String = match shown {
                Shown::All => format!("`{}`", piece.chars().take(80).collect::<String>()),
                // It may be a part of a secret.
                Shown::Keys => "a piece of the config".to_owned(),
            };
            notes.add(Some(line), format!("{piece} has no `=` and is ignored, as there"));
            continue;
        };
        let key = key.trim();
        match takes(key) {
            Taken::Yes => {}
            // What is no name may be the rest of a secret with a `;` in it.
            Taken::No if shown == Shown::Keys && !is_name(key) => {
                notes.add(Some(line), "a key of the config is unknown and ignored");
            }
            Taken::No => notes.add(Some(line), format!("the key `{key}` is unknown and ignored")),
            Taken::But(what) => notes.add(Some(line), format!("`{key}` {what}")),
        }
    }
}

fn is_name(key: &str) -> bool {
    key.len() <= 32 && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// How much of a config may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    All,
    /// Only keys: values are secrets.
    Keys,
}

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    No,
    /// It says something else here, or nothing.
    But(&'static str),
}

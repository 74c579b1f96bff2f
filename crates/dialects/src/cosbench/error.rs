//! Why a workload of COSBench is refused: its own words first, since scripts look for them.

use std::fmt;

/// A place in the XML, both numbers 1-based.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The character in it.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A refusal. Its first line is what COSBench answers, where it answers in words; the second one
/// says where and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    /// What COSBench says; `None` where it has no words for it, or only a trace of its stack.
    pub words: Option<String>,
    /// What is wrong, or what to do.
    pub more: String,
    /// Where; `None` where the whole is meant.
    pub place: Option<Place>,
}

impl Refused {
    /// Returns a refusal for which COSBench has no words.
    pub(super) fn new(place: impl Into<Option<Place>>, more: impl Into<String>) -> Self {
        Self { words: None, more: more.into(), place: place.into() }
    }

    /// Returns a refusal that COSBench words so.
    pub(super) fn worded(
        place: impl Into<Option<Place>>,
        words: impl Into<String>,
        more: impl Into<String>,
    ) -> Self {
        Self { words: Some(words.into()), ..Self::new(place, more) }
    }

    /// Returns a refusal of what COSBench's parser refuses while it reads.
    pub(super) fn parsing(
        place: impl Into<Option<Place>>,
        why: &str,
        more: impl Into<String>,
    ) -> Self {
        let words = format!("cannot parse the xml configuration from <stream>, due to {why}");
        Self::worded(place, words, more)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(words) = &self.words {
            writeln!(f, "{words}")?;
        }
        if let Some(place) = self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.more)
    }
}

/// What is passed over, or means something else here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The line; `None` where no single one is meant.
    pub line: Option<u32>,
    /// What it means.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Notes in the order in which they are made, each once, and not without end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Notes {
    notes: Vec<Note>,
    left_out: usize,
}

impl Notes {
    /// So many are told; the others are counted.
    const MAX: usize = 500;

    pub(super) fn add(&mut self, line: Option<u32>, text: impl Into<String>) {
        let note = Note { line, text: text.into() };
        if self.notes.contains(&note) {
            return;
        }
        match self.notes.len() < Self::MAX {
            true => self.notes.push(note),
            false => self.left_out += 1,
        }
    }

    pub(super) fn list(&self) -> Vec<Note> {
        let more = (self.left_out > 0)
            .then(|| Note { line: None, text: format!("{} more notes", self.left_out) });
        self.notes.iter().cloned().chain(more).collect()
    }
}

//! The list of all file ids that a run was given, one on each line as `weed benchmark` writes them.
//!
//! An id stands in it before its upload begins, so that whatever a run stored can be removed, also
//! when its process was killed. (What the machine itself loses by a power cut may be missing.)

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::FileId;

/// Goes before the name of a collection that the run makes.
const MADE: &str = "# made collection ";

/// A journal, which is kept from some moment on.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    file: OnceLock<(PathBuf, File)>,
}

impl Journal {
    /// Keeps the journal in that file from now on, behind what it holds. It is never opened again
    /// by its path, which may have come to mean another file.
    pub(crate) fn keep_in(&self, path: &Path, file: File) {
        let is_first = self.file.set((path.to_owned(), file)).is_ok();
        assert!(is_first, "a driver serves one run");
    }

    /// Returns where it is kept, if it is.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.get().map(|(path, _)| path.as_path())
    }

    /// Returns what it holds.
    pub(crate) fn read(&self) -> io::Result<String> {
        let Some((_, file)) = self.file.get() else { return Ok(String::new()) };
        // What is written goes to the end wherever this has got to.
        let (mut file, mut text) = (file, String::new());
        file.rewind()?;
        file.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Notes that the run makes a collection.
    pub(crate) fn note_made(&self, collection: &str) -> io::Result<()> {
        self.write(&format!("{MADE}{collection}\n"))
    }

    /// Notes an id that was given.
    pub(crate) fn note(&self, id: FileId) -> io::Result<()> {
        self.write(&format!("{id}\n"))
    }

    /// Adds a line by one write, which other threads' do not part.
    fn write(&self, line: &str) -> io::Result<()> {
        let Some((_, file)) = self.file.get() else { return Ok(()) };
        let mut file = file;
        file.write_all(line.as_bytes())
    }
}

/// Returns the collections that a journal says were made by its run.
pub(crate) fn made_collection(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix(MADE))
}

/// Reads such a list: empty lines, and those that begin with `#`, are passed over. A last line
/// without an end was cut off by whatever ended the run, before its upload began.
pub fn read_list(text: &str) -> Result<Vec<FileId>, ListError> {
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let mut ids = Vec::new();
    for (index, line) in whole.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        ids.push(line.parse().map_err(|_| ListError { line: index + 1 })?);
    }
    Ok(ids)
}

/// A line of a list that is no file id. What it says instead is not shown: a record that somebody
/// else made may have put another file in the list's place.
#[derive(Debug, thiserror::Error)]
#[error("line {line} is not a file id such as 3,01637037d6")]
pub struct ListError {
    /// Which, from 1 on.
    pub line: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("ids");
        let journal = Journal::default();
        let first: FileId = "3,fe637037d6".parse().unwrap();
        journal.note(first).unwrap();
        let file = File::options().read(true).append(true).create(true).open(&path).unwrap();
        journal.keep_in(&path, file);
        (0..3).for_each(|more| journal.note(first.plus(more).unwrap()).unwrap());
        journal.note("4,01000000ff".parse().unwrap()).unwrap();
        let text = journal.read().unwrap();
        assert_eq!(text, "3,fe637037d6\n3,ff637037d6\n3,0100637037d6\n4,01000000ff\n");
        assert_eq!(read_list(&text).unwrap().len(), 4);
    }

    #[test]
    fn lists_made_by_hand_are_read_and_half_lines_left_out() {
        let text = "# mine\r\n\r\n 3,01637037d6 \r\n3/02637037d6\n4,0163";
        let ids: Vec<String> = read_list(text).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(ids, ["3,01637037d6", "3,02637037d6"]);
        let error = read_list("3,01637037d6\nnonsense\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2 is not a file id such as 3,01637037d6");
        assert_eq!(read_list("").unwrap(), []);
    }
}

//! Files that the user names and that are read whole: bounded, and nothing but files.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use plimsoll_workload::plan::Position;

/// Returns what a file holds, which must be at most `bytes_max`.
///
/// A directory, a pipe or a device is refused: what has no end would be read without end, and who
/// opens a pipe waits for somebody to write to it.
pub fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    // With this flag opening a pipe returns at once, so that it can be told from a file.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut content = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut content)?;
    match content.len() as u64 > bytes_max {
        true => Err(io::Error::other(format!("it is larger than {bytes_max} bytes"))),
        false => Ok(content),
    }
}

/// The largest description of a workload, a script, a job file or a list of sizes that is read.
pub const TEXT_BYTES_MAX: u64 = 64 << 20;

/// The largest list of names that is read.
pub(crate) const LIST_BYTES_MAX: u64 = 4 << 30;

/// Returns the text at a place that the user names, which may also be a pipe, such as of `<(...)`;
/// `-` is the standard input. At most [`TEXT_BYTES_MAX`] are read.
pub fn read_given(path: &Path) -> io::Result<String> {
    text_of(read_given_bytes(path, TEXT_BYTES_MAX)?)
}

/// Returns what is there in whichever encoding, at most so much.
pub fn read_given_bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let stream: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(OpenOptions::new().read(true).open(path)?),
    };
    let mut content = Vec::new();
    stream.take(bytes_max + 1).read_to_end(&mut content)?;
    match content.len() as u64 > bytes_max {
        true => Err(io::Error::other(format!("it is larger than {bytes_max} bytes"))),
        false => Ok(content),
    }
}

/// Returns a reader of what is there, however much that is: a file, or a pipe such as of `<(...)`;
/// `-` is the standard input.
pub(crate) fn open_given(path: &Path) -> io::Result<Box<dyn Read>> {
    match path.to_str() {
        Some("-") => Ok(Box::new(io::stdin().lock())),
        _ => Ok(Box::new(OpenOptions::new().read(true).open(path)?)),
    }
}

/// Returns the text that a file holds.
fn text_of(content: Vec<u8>) -> io::Result<String> {
    String::from_utf8(content).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let Position { line, column } = Position::behind(&String::from_utf8_lossy(before));
        let place = format!("line {line}, column {column}");
        io::Error::other(format!("it is not UTF-8 text ({place})"))
    })
}

/// Returns the text of such a file.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    text_of(read_bounded(path, bytes_max)?)
}

/// Returns the names of what is in a directory, in order; one that is not a string is left out.
pub fn names_in(path: &Path) -> io::Result<Vec<String>> {
    let entries = std::fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
    let names = entries.into_iter().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "makes the files that are read")]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_an_end_is_refused() {
        let error = read_given(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "it is larger than 67108864 bytes");
        assert_eq!(read_given(Path::new("/dev/null")).unwrap(), "");
    }

    #[test]
    fn only_files_that_are_not_too_large_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_text(&path, 5).unwrap(), "12345");
        let said = |path: &Path, most| read_bounded(path, most).unwrap_err().to_string();
        assert_eq!(said(&path, 4), "it is larger than 4 bytes");
        assert_eq!(said(Path::new("/dev/zero"), 4), "it is not a regular file");
        assert_eq!(said(folder.path(), 4), "it is not a regular file");
        let pipe = folder.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert_eq!(said(&pipe, 4), "it is not a regular file", "and no writer was waited for");
        let missing = read_bounded(&folder.path().join("missing"), 4).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        std::fs::write(&path, [0xff]).unwrap();
        let not_text = read_text(&path, 5).unwrap_err().to_string();
        assert_eq!(not_text, "it is not UTF-8 text (line 1, column 1)");
        std::fs::write(&path, b"a: 1\nb: \xc3\xa9\xe9\n").unwrap();
        let not_text = read_given(&path).unwrap_err().to_string();
        assert_eq!(not_text, "it is not UTF-8 text (line 2, column 5)");
    }
}

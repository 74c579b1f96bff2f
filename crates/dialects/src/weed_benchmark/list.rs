//! The list of file ids: one on each line, in the order in which they were written, without a
//! heading.

use std::fmt::Display;

/// The digits of the number in an id that was not to be guessed.
const COOKIE_DIGITS: usize = 8;
/// The most digits of the file's own number before it.
const KEY_DIGITS_MAX: usize = 16;

/// Returns the list of these ids as it is kept.
pub fn write(ids: impl IntoIterator<Item = impl Display>) -> String {
    ids.into_iter().map(|id| format!("{id}\n")).collect()
}

/// A line of a list that is no file id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: `{text}` is not a file id such as 3,01637037d6")]
pub struct ListError {
    /// Which, from 1 on.
    pub line: usize,
    /// The line, or its beginning.
    pub text: String,
}

/// Reads a list, also one that was made by hand: empty lines, and those that begin with `#`, are
/// passed over, and the last one need not end.
pub fn read(text: &str) -> Result<Vec<&str>, ListError> {
    let mut ids = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if !is_id(line) {
            let text = line.chars().take(80).collect();
            return Err(ListError { line: index + 1, text });
        }
        ids.push(line);
    }
    Ok(ids)
}

/// Tells whether a text is a file id: `3,01637037d6`, also with `/` in it or `_N` behind it.
fn is_id(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some((volume, file)) = text.split_once([',', '/']) else { return false };
    let (file, is_more_sound) = match file.split_once('_') {
        Some((file, more)) => (file, is_number(more)),
        None => (file, true),
    };
    let digits = COOKIE_DIGITS..=COOKIE_DIGITS + KEY_DIGITS_MAX;
    is_number(volume)
        && is_more_sound
        && digits.contains(&file.len())
        && file.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let ids = ["3,01637037d6", "17,0100000000ff"];
        let text = write(ids);
        assert_eq!(text, "3,01637037d6\n17,0100000000ff\n");
        assert_eq!(read(&text).unwrap(), ids);
        assert_eq!(write([""; 0]), "");
        assert_eq!(read("").unwrap(), [""; 0]);
    }

    #[test]
    fn lists_made_by_hand_are_read() {
        let text = "# mine\r\n\r\n 3,01637037d6 \r\n3/02637037d6\n3,01637037d6_7\n9,0000000b";
        let ids = ["3,01637037d6", "3/02637037d6", "3,01637037d6_7", "9,0000000b"];
        assert_eq!(read(text).unwrap(), ids);
    }

    #[test]
    fn what_is_no_id_is_refused_by_its_line() {
        for line in [
            "notafid",
            "3",
            "3,",
            "3,637037d",
            "x,01637037d6",
            "3,01637037dg",
            "3,01637037d6_",
            "3,01637037d6_x",
            "3,0123456789012345678901234",
            "3,é1637037d6",
        ] {
            let said = read(&format!("# a\n3,01637037d6\n{line}\n")).unwrap_err().to_string();
            let expected = format!("line 3: `{line}` is not a file id such as 3,01637037d6");
            assert_eq!(said, expected);
        }
    }
}

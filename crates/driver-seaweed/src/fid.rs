//! File ids: which volume, which file in it, and the number that proves that it was not guessed.

use std::fmt;
use std::str::FromStr;

/// The name of a file: `3,01637037d6` is file 1 of volume 3 with cookie 637037d6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// The volume.
    pub volume: u32,
    /// The file in it.
    pub key: u64,
    /// Drawn by the master; a request with another one is refused.
    pub cookie: u32,
}

/// A text that is no file id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a file id such as 3,01637037d6")]
pub struct NoFileId(String);

/// The digits of a cookie.
const COOKIE_DIGITS: usize = 8;

impl FileId {
    /// Returns the id of the file so many after it, of those that were assigned together.
    pub fn plus(self, count: u64) -> Option<Self> {
        Some(Self { key: self.key.checked_add(count)?, ..self })
    }
}

impl fmt::Display for FileId {
    /// Writes the key with leading bytes of zero left out, as SeaweedFS does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { volume, key, cookie } = *self;
        match 2 * (u64::BITS - key.leading_zeros()).div_ceil(8) as usize {
            0 => write!(f, "{volume},{cookie:08x}"),
            digits => write!(f, "{volume},{key:0digits$x}{cookie:08x}"),
        }
    }
}

impl FromStr for FileId {
    type Err = NoFileId;

    /// Reads `volume,key cookie`, the same with `/` between them, and `_N` behind it.
    fn from_str(text: &str) -> Result<Self, NoFileId> {
        read(text).ok_or_else(|| NoFileId(text.chars().take(80).collect()))
    }
}

fn read(text: &str) -> Option<FileId> {
    let (volume, rest) = text.split_once([',', '/'])?;
    let (rest, more) = match rest.split_once('_') {
        Some((rest, more)) => (rest, digits(more, 10)?),
        None => (rest, 0),
    };
    let split = rest.len().checked_sub(COOKIE_DIGITS).filter(|_| rest.is_ascii())?;
    let (key, cookie) = rest.split_at(split);
    // The file with key 0 has no digits of it left.
    let key = if key.is_empty() { 0 } else { digits(key, 16)? };
    let volume = u32::try_from(digits(volume, 10)?).ok()?;
    FileId { volume, key, cookie: digits(cookie, 16)? as u32 }.plus(more)
}

/// Reads digits and nothing else: no sign, no blank.
fn digits(text: &str, radix: u32) -> Option<u64> {
    let is_number = !text.is_empty() && text.chars().all(|digit| digit.is_digit(radix));
    is_number.then(|| u64::from_str_radix(text, radix).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_and_written_as_seaweedfs_does() {
        for (text, volume, key, cookie) in [
            ("3,01637037d6", 3, 1, 0x6370_37d6),
            ("17,0100000000ff", 17, 0x100, 0xff),
            ("1,ffffffffffffffff00000001", 1, u64::MAX, 1),
            ("9,0a0000000b", 9, 10, 11),
            ("9,0000000b", 9, 0, 11),
        ] {
            let id = FileId { volume, key, cookie };
            assert_eq!(text.parse(), Ok(id), "{text}");
            assert_eq!(id.to_string(), text);
        }
        assert_eq!("3/01637037d6".parse::<FileId>(), "3,01637037d6".parse());
        assert_eq!("3,01637037d6_254".parse::<FileId>().unwrap().to_string(), "3,ff637037d6");
        assert_eq!("3,01637037d6_255".parse::<FileId>().unwrap().to_string(), "3,0100637037d6");
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in [
            "",
            "3",
            "3,",
            "3,637037d",
            "x,01637037d6",
            "-3,01637037d6",
            "3,+1637037d6",
            "3,01637037dg",
            "3,01637037d6_",
            "3,01637037d6_x",
            "4294967296,01637037d6",
            "3,0fffffffffffffffff00000001",
            "3,ffffffffffffffff00000001_1",
            "3,é1637037d6",
        ] {
            assert!(text.parse::<FileId>().is_err(), "{text}");
        }
    }
}

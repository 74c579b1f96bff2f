//! File ids, as the stand-in reads and writes them; a client has its own way.

use std::fmt;

/// A volume, a file in it, and the number that proves that it was not guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fid {
    pub(crate) volume: u32,
    pub(crate) key: u64,
    pub(crate) cookie: u32,
}

impl fmt::Display for Fid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: String =
            self.key.to_be_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        // Leading bytes of zero are left out, not leading digits.
        let zeros = self.key.leading_zeros() as usize / 8;
        write!(f, "{},{}{:08x}", self.volume, &bytes[zeros * 2..], self.cookie)
    }
}

impl Fid {
    /// Reads a path without its leading `/`: `3,0163…`, `3/0163…`, either with `_N`, `.ext` or
    /// `/name` behind it.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let (volume, rest) = path.split_once([',', '/'])?;
        let rest = rest.split(['/', '.']).next()?;
        let (hex, more) = rest.split_once('_').unwrap_or((rest, "0"));
        let at = hex.len().checked_sub(8).filter(|_| hex.bytes().all(|c| c.is_ascii_hexdigit()))?;
        let key = if at == 0 { 0 } else { u64::from_str_radix(&hex[..at], 16).ok()? };
        Some(Self {
            volume: volume.parse().ok()?,
            key: key.checked_add(more.parse().ok()?)?,
            cookie: u32::from_str_radix(&hex[at..], 16).ok()?,
        })
    }
}

/// Returns what a token must name to let do something about the file of a path: its id as it is
/// written, but for `_N`, so that one token is good for all ids that were given together.
pub(crate) fn named_by_tokens(path: &str) -> String {
    let written = path.replacen('/', ",", 1);
    let end = written.find(['_', '.', '/']).unwrap_or(written.len());
    written[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_the_protocol() {
        for (path, text) in [
            ("3,01637037d6", "3,01637037d6"),
            ("3/01637037d6/name.txt", "3,01637037d6"),
            ("3,01637037d6_254", "3,ff637037d6"),
            ("3,01637037d6_255", "3,0100637037d6"),
            ("3,01637037d6.jpg", "3,01637037d6"),
            ("9,0000000b", "9,0000000b"),
        ] {
            assert_eq!(Fid::of_path(path).unwrap().to_string(), text, "{path}");
        }
        for path in ["", "3", "x,01637037d6", "3,637037d", "3,zz637037d6", "3,01637037d6_x"] {
            assert_eq!(Fid::of_path(path), None, "{path}");
        }
        assert_eq!(named_by_tokens("3/01637037d6_7"), "3,01637037d6");
        assert_eq!(named_by_tokens("3,01637037d6"), "3,01637037d6");
    }
}

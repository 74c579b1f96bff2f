//! Bytes to text: as their mark or the XML declaration says, otherwise UTF-8.

use std::borrow::Cow;

use super::error::{Place, Refused};

/// What bytes 0x80 to 0x9f are in windows-1252.
const WINDOWS_1252: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}\
    ‘’“”•–—˜™š›œ\u{9d}žŸ";

/// Returns the text of a document.
pub(super) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, Refused> {
    if let Some(rest) = bytes.strip_prefix(&[0xff, 0xfe]) {
        return utf_16(rest, u16::from_le_bytes);
    }
    if let Some(rest) = bytes.strip_prefix(&[0xfe, 0xff]) {
        return utf_16(rest, u16::from_be_bytes);
    }
    match bytes {
        [b'<', 0, ..] => return utf_16(bytes, u16::from_le_bytes),
        [0, b'<', ..] => return utf_16(bytes, u16::from_be_bytes),
        _ => {}
    }
    let bytes = bytes.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(bytes);
    let declared = declared(bytes);
    match declared.as_deref() {
        Some("iso-8859-1" | "latin1" | "iso8859-1" | "iso_8859-1") => {
            Ok(bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into())
        }
        Some("windows-1252" | "cp1252") => {
            let high: Vec<char> = WINDOWS_1252.chars().collect();
            let letter = |byte: &u8| match byte {
                0x80..=0x9f => high[usize::from(byte - 0x80)],
                byte => char::from(*byte),
            };
            Ok(bytes.iter().map(letter).collect::<String>().into())
        }
        _ => str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| {
            let place = place(&bytes[..error.valid_up_to()]);
            let byte = bytes[error.valid_up_to()];
            let as_declared = match declared.as_deref() {
                None | Some("utf-8" | "utf8" | "us-ascii") => String::new(),
                Some(name) => format!(" (`{}`, as it is declared, is not read)", name),
            };
            let more = format!("save the file in UTF-8, and write encoding=\"UTF-8\"{as_declared}");
            let why = format!("Invalid byte 0x{byte:02x} of a UTF-8 sequence.");
            Refused::parsing(place, &why, more)
        }),
    }
}

fn place(before: &[u8]) -> Place {
    let line = before.iter().filter(|byte| **byte == b'\n').count();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let column = before[start..].iter().filter(|byte| (**byte as i8) >= -0x40).count();
    Place { line: line as u32 + 1, column: column as u32 + 1 }
}

/// Returns the encoding that the XML declaration names, in small letters.
fn declared(bytes: &[u8]) -> Option<String> {
    let head = &bytes[..bytes.len().min(200)];
    let end = head.windows(2).position(|two| two == b"?>")?;
    let head: String = head[..end].iter().map(|byte| char::from(*byte)).collect();
    let rest = head.strip_prefix("<?xml")?.split_once("encoding")?.1;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    let name = rest[1..].split(quote).next()?;
    Some(name.to_ascii_lowercase())
}

fn utf_16<'a>(bytes: &[u8], of: fn([u8; 2]) -> u16) -> Result<Cow<'a, str>, Refused> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| of(*pair));
    let text: Result<String, _> = char::decode_utf16(units).collect();
    let text = text.ok().filter(|_| rest.is_empty());
    text.map(Cow::Owned)
        .ok_or_else(|| Refused::parsing(None, "Invalid UTF-16.", "save the file in UTF-8"))
}

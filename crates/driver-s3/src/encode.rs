//! Percent-encoding as SigV4 wants it, decoding as listings need it, text as XML, and the texts of
//! digests.

use std::io::Write as _;

use base64::prelude::{BASE64_STANDARD, Engine as _};

/// The digits of percent-encoding (RFC 3986 asks for upper case).
const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// What may stand as it is in a query value: RFC 3986's unreserved characters.
const KEPT_IN_QUERY: [bool; 256] = kept(false);
/// What may stand as it is in a path: the same and `/`.
const KEPT_IN_PATH: [bool; 256] = kept(true);

const fn kept(slash: bool) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        table[byte] = b.is_ascii_alphanumeric()
            || matches!(b, b'-' | b'.' | b'_' | b'~')
            || (slash && b == b'/');
        byte += 1;
    }
    table
}

/// Appends a key as it stands in a path: once encoded, `/` kept, nothing normalised.
pub(crate) fn push_path(out: &mut Vec<u8>, key: &str) {
    push_encoded(out, key, &KEPT_IN_PATH);
}

/// Appends a query value.
pub(crate) fn push_query(out: &mut Vec<u8>, value: &str) {
    push_encoded(out, value, &KEPT_IN_QUERY);
}

fn push_encoded(out: &mut Vec<u8>, text: &str, kept: &[bool; 256]) {
    let mut rest = text.as_bytes();
    loop {
        let len = rest.iter().take_while(|byte| kept[usize::from(**byte)]).count();
        let (as_it_is, others) = rest.split_at(len);
        out.extend_from_slice(as_it_is);
        let Some((&byte, after)) = others.split_first() else { return };
        let digits = [HEX_UPPER[usize::from(byte >> 4)], HEX_UPPER[usize::from(byte & 15)]];
        out.extend_from_slice(&[b'%', digits[0], digits[1]]);
        rest = after;
    }
}

/// Decodes a key of a listing (`%XX`, and `+` for a blank) into `out`; `None` if it is no encoding
/// of UTF-8.
pub(crate) fn decode_listed<'a>(encoded: &str, out: &'a mut Vec<u8>) -> Option<&'a str> {
    out.clear();
    let mut bytes = encoded.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => hex_value(bytes.next()?)? << 4 | hex_value(bytes.next()?)?,
            plain => plain,
        });
    }
    std::str::from_utf8(out).ok()
}

/// Appends what a query value means.
pub(crate) fn push_decoded(out: &mut Vec<u8>, encoded: &[u8]) {
    let mut rest = encoded;
    while let [first, after @ ..] = rest {
        let pair = match after {
            [high, low, ..] if *first == b'%' => hex_value(*high).zip(hex_value(*low)),
            _ => None,
        };
        out.push(pair.map_or(*first, |(high, low)| high << 4 | low));
        rest = if pair.is_some() { &after[2..] } else { after };
    }
}

/// Appends text as XML, control characters as references so that no parser normalises them. (Those
/// that XML 1.0 cannot hold in any form make strict servers refuse the request.)
pub(crate) fn push_xml_text(out: &mut Vec<u8>, text: &str) {
    for &byte in text.as_bytes() {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            0..0x20 | 0x7f => {
                write!(out, "&#x{byte:X};").expect("writing to memory does not fail");
            }
            _ => out.push(byte),
        }
    }
}

fn hex_value(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

/// Returns a SHA-256 as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> [u8; 64] {
    assert_eq!(bytes.len(), 32, "a SHA-256 has 32 bytes");
    let mut out = [0; 64];
    for (digits, four) in out.as_chunks_mut().0.iter_mut().zip(bytes.as_chunks().0) {
        *digits = hex_of_four(*four);
    }
    out
}

/// Returns four bytes as lower-case hexadecimal digits, which SigV4 asks for; all eight at once.
const fn hex_of_four(bytes: [u8; 4]) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Each half of a byte comes to lie in a byte of its own.
    let mut digits = u32::from_be_bytes(bytes) as u64;
    digits = (digits | digits << 16) & 0x0000_ffff_0000_ffff;
    digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff;
    digits = (digits | digits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // From ten on they are letters, which do not follow the digits.
    let letters = ((digits + 6 * ONES) >> 4) & ONES;
    let ascii = digits + b'0' as u64 * ONES + letters * (b'a' - b'0' - 10) as u64;
    ascii.to_be_bytes()
}

/// Returns an MD5 in base 64 (RFC 1864).
pub(crate) fn base64_md5(md5: &[u8; 16]) -> [u8; 24] {
    let mut out = [0; 24];
    let written = BASE64_STANDARD.encode_slice(md5, &mut out);
    assert_eq!(written, Ok(out.len()), "16 bytes are 24 digits");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(key: &str) -> String {
        let mut out = Vec::new();
        push_path(&mut out, key);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn keys_are_encoded_once_and_slashes_stay() {
        for (key, encoded) in [
            ("plain/Key-1_2.3~4", "plain/Key-1_2.3~4"),
            ("a b+c", "a%20b%2Bc"),
            ("100%", "100%25"),
            ("%2F", "%252F"),
            ("//a/./../b/", "//a/./../b/"),
            ("é€😀", "%C3%A9%E2%82%AC%F0%9F%98%80"),
            ("?&=#'\"*!()$@:;,", "%3F%26%3D%23%27%22%2A%21%28%29%24%40%3A%3B%2C"),
            ("\u{1}\u{7f}", "%01%7F"),
        ] {
            assert_eq!(path(key), encoded);
        }
        let mut query = Vec::new();
        push_query(&mut query, "a/b c");
        assert_eq!(query, b"a%2Fb%20c");
    }

    #[test]
    fn listed_keys_are_decoded_or_refused() {
        let mut out = Vec::new();
        assert_eq!(decode_listed("a+b%2Bc%20d/%E2%82%AC", &mut out), Some("a b+c d/€"));
        for broken in ["%", "%4", "%zz", "%ff", "a%+1"] {
            assert_eq!(decode_listed(broken, &mut out), None, "{broken}");
        }
    }

    #[test]
    fn digests_as_text() {
        // RFC 1864, section 2.
        assert_eq!(&base64_md5(b"Check Integrity!"), b"Q2hlY2sgSW50ZWdyaXR5IQ==");
        let all: Vec<u8> = (0..=255).collect();
        for bytes in all.chunks(32) {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(&hex(bytes), digits.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(key in any::<String>()) {
            let mut out = Vec::new();
            prop_assert_eq!(decode_listed(&path(&key), &mut out), Some(key.as_str()));
        }
    }
}

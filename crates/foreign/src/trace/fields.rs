//! Numbers, instants and names as traces write them.

use crate::warp::raw::time::Timestamps;

/// The latest instant that is read, in seconds since 1970 or since the trace's beginning.
const SECONDS_MAX: f64 = 18_000_000_000.0;
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Returns a field as it is shown in a sentence.
pub(super) fn shown(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(field);
    let short: String = text.chars().take(40).flat_map(char::escape_default).collect();
    if text.chars().count() > 40 { format!("`{short}...`") } else { format!("`{short}`") }
}

/// Returns a whole number.
pub(super) fn number(field: &[u8], what: &str) -> Result<u64, String> {
    let digits = str::from_utf8(field).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    let number = digits.and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| format!("{what} {} is not a whole number", shown(field)))
}

/// Returns a whole number, or nothing for `-` and an empty field.
pub(super) fn maybe(field: &[u8], what: &str) -> Result<Option<u64>, String> {
    match field {
        b"" | b"-" => Ok(None),
        field => number(field, what).map(Some),
    }
}

/// Returns an instant that is a number of units, each of so many nanoseconds.
pub(super) fn instant(field: &[u8], unit_ns: u64) -> Result<u64, String> {
    let refuse = || format!("{} is not a time", shown(field));
    if let Ok(whole) = number(field, "") {
        return whole.checked_mul(unit_ns).ok_or_else(refuse);
    }
    let text = str::from_utf8(field).map_err(|_| refuse())?;
    let seconds = text.parse::<f64>().map_err(|_| refuse())? * (unit_ns as f64 / 1e9);
    match (0.0..=SECONDS_MAX).contains(&seconds) {
        true => Ok((seconds * 1e9).round() as u64),
        false => Err(refuse()),
    }
}

/// Returns an instant such as `2024-05-16T12:04:13.123Z`; a blank may stand for the `T`, and a zone
/// may lack its colon or be left out.
pub(super) fn civil(field: &[u8]) -> Result<u64, String> {
    let refuse = || format!("{} is not a time", shown(field));
    let mut text = field.to_vec();
    if text.get(10) == Some(&b' ') {
        text[10] = b'T';
    }
    with_colon(&mut text);
    let has_zone = text.iter().skip(11).any(|byte| matches!(byte, b'Z' | b'z' | b'+' | b'-'));
    if !has_zone {
        text.push(b'Z');
    }
    Timestamps::new().parse(&text).map(|time| time.unix_ns).ok_or_else(refuse)
}

/// Returns an instant such as `06/Feb/2019:00:00:38 +0000`, with a fraction or without.
pub(super) fn of_access_log(field: &[u8]) -> Result<u64, String> {
    let refuse = || format!("{} is not a time", shown(field));
    let (day, rest) = field.split_at_checked(2).ok_or_else(refuse)?;
    let (month, rest) = rest.split_at_checked(5).ok_or_else(refuse)?;
    let (year, rest) = rest.split_at_checked(4).ok_or_else(refuse)?;
    let month = month.strip_prefix(b"/").and_then(|month| month.strip_suffix(b"/"));
    let month = MONTHS.iter().position(|name| Some(&name[..]) == month).ok_or_else(refuse)? + 1;
    let rest = rest.strip_prefix(b":").ok_or_else(refuse)?;
    let blank = rest.iter().position(|byte| *byte == b' ').ok_or_else(refuse)?;
    let mut text = Vec::with_capacity(32);
    text.extend_from_slice(year);
    text.extend_from_slice(format!("-{month:02}-").as_bytes());
    text.extend_from_slice(day);
    text.push(b'T');
    text.extend_from_slice(&rest[..blank]);
    text.extend_from_slice(&rest[blank + 1..]);
    with_colon(&mut text);
    Timestamps::new().parse(&text).map(|time| time.unix_ns).ok_or_else(refuse)
}

/// Makes `+0100` at the end `+01:00`.
fn with_colon(text: &mut Vec<u8>) {
    let at = text.len().saturating_sub(5);
    let is_bare = text.len() > 15
        && matches!(text[at], b'+' | b'-')
        && text[at + 1..].iter().all(u8::is_ascii_digit);
    if is_bare {
        text.insert(at + 3, b':');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_in_all_their_forms() {
        // Seconds checked with `date -u -d TEXT +%s`.
        let second = 1_549_411_238_000_000_000;
        assert_eq!(of_access_log(b"06/Feb/2019:00:00:38 +0000"), Ok(second));
        assert_eq!(of_access_log(b"06/Feb/2019:01:00:38.250 +0100"), Ok(second + 250_000_000));
        for text in ["2019-02-06T00:00:38Z", "2019-02-06 00:00:38", "2019-02-06T01:00:38+0100"] {
            assert_eq!(civil(text.as_bytes()), Ok(second), "{text}");
        }
        assert_eq!(instant(b"1.5", 1_000_000), Ok(1_500_000));
        assert_eq!(instant(b"18446744073709551615", 1), Ok(u64::MAX));
        for wrong in ["-1", "NaN", "inf", "1e300", "18446744073709551616", "", "x"] {
            let said = instant(wrong.as_bytes(), 1_000_000_000);
            assert_eq!(said, Err(format!("`{wrong}` is not a time")));
        }
        for wrong in ["", "06/Foo/2019:00:00:38 +0000", "06/Feb/2019:00:00:38", "31/Feb/2019:1 Z"] {
            assert!(of_access_log(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}

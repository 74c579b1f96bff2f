//! RFC 3339 times to nanoseconds since 1970 and back.

use plimsoll_model::WallTime;

/// `YYYY-MM-DDTHH:MM:`, the part of a time that neighbouring rows share.
const MINUTE_BYTES: usize = 17;
const NS_PER_SECOND: u64 = 1_000_000_000;

/// Reads times, and remembers the last minute it has worked out.
pub(crate) struct Timestamps {
    minute: [u8; MINUTE_BYTES],
    minute_seconds: i64,
}

/// A time as read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timestamp {
    pub(crate) unix_ns: u64,
    /// How far the clock it was written by is ahead of UTC.
    pub(crate) offset_seconds: i32,
}

impl Timestamps {
    /// Returns a reader that knows one minute: the first of 1970.
    pub(crate) fn new() -> Self {
        Self { minute: *b"1970-01-01T00:00:", minute_seconds: 0 }
    }

    /// Returns the time that `text` names, if it is from 1970 to 2554 and well formed.
    pub(crate) fn parse(&mut self, text: &[u8]) -> Option<Timestamp> {
        let (minute, rest) = text.split_first_chunk::<MINUTE_BYTES>()?;
        if *minute != self.minute {
            self.minute_seconds = seconds_of_minute(minute)?;
            self.minute = *minute;
        }
        let (second, rest) = two_digits(rest)?;
        let (fraction_ns, zone) = fraction(rest)?;
        let offset_seconds = offset(zone)?;
        if second > 59 {
            return None;
        }
        let seconds = self.minute_seconds + i64::from(second) - i64::from(offset_seconds);
        let whole_ns = u64::try_from(seconds).ok()?.checked_mul(NS_PER_SECOND)?;
        Some(Timestamp { unix_ns: whole_ns.checked_add(u64::from(fraction_ns))?, offset_seconds })
    }
}

fn digit(byte: u8) -> Option<u32> {
    let value = byte.wrapping_sub(b'0');
    (value < 10).then_some(u32::from(value))
}

fn two_digits(text: &[u8]) -> Option<(u32, &[u8])> {
    let ([tens, ones], rest) = text.split_first_chunk()?;
    Some((digit(*tens)? * 10 + digit(*ones)?, rest))
}

/// Returns the nanoseconds of `.123`, or 0 if no fraction is there, and what follows.
fn fraction(text: &[u8]) -> Option<(u32, &[u8])> {
    let Some((b'.', digits)) = text.split_first() else { return Some((0, text)) };
    let (mut ns, mut count) = (0, 0);
    while let Some(value) = digits.get(count).copied().and_then(digit) {
        if count == 9 {
            return None;
        }
        ns = ns * 10 + value;
        count += 1;
    }
    const SCALE: [u32; 10] =
        [0, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];
    (count > 0).then(|| (ns * SCALE[count], &digits[count..]))
}

/// Returns the seconds that `Z`, `+01:00` or the like stands for.
fn offset(zone: &[u8]) -> Option<i32> {
    match zone {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), rest @ ..] => {
            let (hours, rest) = two_digits(rest)?;
            let (minutes, rest) = two_digits(rest.strip_prefix(b":")?)?;
            if hours > 23 || minutes > 59 || !rest.is_empty() {
                return None;
            }
            let seconds = (hours * 3_600 + minutes * 60) as i32;
            Some(if *sign == b'+' { seconds } else { -seconds })
        }
        _ => None,
    }
}

/// Returns the seconds from 1970 to `YYYY-MM-DDTHH:MM:`.
fn seconds_of_minute(text: &[u8; MINUTE_BYTES]) -> Option<i64> {
    let (century, rest) = two_digits(text)?;
    let (year, rest) = two_digits(rest)?;
    let (month, rest) = two_digits(rest.strip_prefix(b"-")?)?;
    let (day, rest) = two_digits(rest.strip_prefix(b"-")?)?;
    let rest = rest.strip_prefix(b"T").or_else(|| rest.strip_prefix(b"t"))?;
    let (hour, rest) = two_digits(rest)?;
    let (minute, rest) = two_digits(rest.strip_prefix(b":")?)?;
    let year = century * 100 + year;
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let days_of_month = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if day == 0 || day > days_of_month || hour > 23 || minute > 59 || rest != b":" {
        return None;
    }
    Some(days_since_1970(year, month, day) * 86_400 + i64::from(hour * 3_600 + minute * 60))
}

/// Returns the days from 1970-01-01 to a date (Howard Hinnant's `days_from_civil`).
fn days_since_1970(year: u32, month: u32, day: u32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Adds a time in UTC, without the trailing zeros of its fraction.
pub(crate) fn push(text: &mut Vec<u8>, unix_ns: u64) {
    let (year, month, day, hour, minute, second) = WallTime::from_unix_ns(unix_ns).civil();
    // A `u64` of nanoseconds ends in the year 2554.
    push_digits(text, year as u32, 4);
    for (before, value) in
        [(b'-', month), (b'-', day), (b'T', hour), (b':', minute), (b':', second)]
    {
        text.push(before);
        push_digits(text, value, 2);
    }
    let fraction_ns = (unix_ns % NS_PER_SECOND) as u32;
    if fraction_ns > 0 {
        text.push(b'.');
        push_digits(text, fraction_ns, 9);
        while text.last() == Some(&b'0') {
            text.pop();
        }
    }
    text.push(b'Z');
}

fn push_digits(text: &mut Vec<u8>, value: u32, count: u32) {
    text.extend((0..count).rev().map(|place| b'0' + (value / 10u32.pow(place) % 10) as u8));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<(u64, i32)> {
        let read = Timestamps::new().parse(text.as_bytes())?;
        Some((read.unix_ns, read.offset_seconds))
    }

    #[test]
    fn times_of_any_offset_and_fraction_are_read() {
        // Seconds checked with `date -u -d TEXT +%s`.
        let cases = [
            ("1970-01-01T00:00:00Z", 0, 0),
            ("1970-01-01T01:00:00+01:00", 0, 3_600),
            ("2019-11-13T17:07:06.3173431+01:00", 1_573_661_226_317_343_100, 3_600),
            ("2026-11-20T20:53:04.377041977Z", 1_795_207_984_377_041_977, 0),
            ("2026-11-20T15:23:04.5-05:30", 1_795_207_984_500_000_000, -19_800),
            ("2000-02-29T23:59:59.9z", 951_868_799_900_000_000, 0),
            ("2554-07-21T23:34:33.709551615Z", u64::MAX, 0),
        ];
        for (text, ns, offset) in cases {
            assert_eq!(parse(text), Some((ns, offset)), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "0001-01-01T00:00:00Z",
            "1969-12-31T23:59:59.999999999Z",
            "1970-01-01T00:00:00+00:01",
            "2554-07-21T23:34:33.709551616Z",
            "2026-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-11-20T24:00:00Z",
            "2026-11-20T20:60:00Z",
            "2026-11-20T20:53:60Z",
            "2026-11-20T20:53:04",
            "2026-11-20T20:53:04.Z",
            "2026-11-20T20:53:04.1234567890Z",
            "2026-11-20T20:53:04+0100",
            "2026-11-20T20:53:04+24:00",
            "2026-11-20T20:53:04Zz",
            "2026-11-20 20:53:04Z",
            "2026-11-20T20:53:0:Z",
            "NaN",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_remembered_minute_is_not_taken_for_another() {
        let mut times = Timestamps::new();
        let seconds = |times: &mut Timestamps, text: &str| {
            times.parse(text.as_bytes()).map(|time| time.unix_ns / NS_PER_SECOND)
        };
        assert_eq!(seconds(&mut times, "1970-01-01T00:01:05Z"), Some(65));
        assert_eq!(seconds(&mut times, "1970-01-01T00:0x:05Z"), None);
        assert_eq!(seconds(&mut times, "1970-01-01T00:01:06Z"), Some(66));
        assert_eq!(seconds(&mut times, "1970-01-01T00:00:06Z"), Some(6));
    }

    #[test]
    fn times_are_written_without_trailing_zeros() {
        for (ns, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1, "1970-01-01T00:00:00.000000001Z"),
            (951_868_799_900_000_000, "2000-02-29T23:59:59.9Z"),
            (1_795_207_984_377_041_977, "2026-11-20T20:53:04.377041977Z"),
            (u64::MAX, "2554-07-21T23:34:33.709551615Z"),
        ] {
            let mut written = Vec::new();
            push(&mut written, ns);
            assert_eq!(String::from_utf8_lossy(&written), text);
        }
    }
}

//! Sizes, rates and durations as people write them: KB is 1000, KiB is 1024, and a bare `k`, `m`,
//! `g` is binary, as in every other storage tool. Other tools' command lines have their own rules.

use std::fmt;
use std::time::Duration;

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct ByteRate(pub f64);

/// Operations per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct OpRate(pub f64);

/// Returns `count` per second of `span`; `None` for an empty span. Reported rates are computed
/// here, from the span that is reported with them.
pub fn per_sec(count: f64, span: Duration) -> Option<f64> {
    let seconds = span.as_secs_f64();
    (seconds > 0.0).then(|| count / seconds)
}

/// Why a text is no size or duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitError {
    /// There is no number at its start.
    NoNumber(String),
    /// Nothing follows the number of a duration.
    NoUnit(String),
    /// What follows the number is no unit.
    UnknownUnit {
        /// What was given.
        text: String,
        /// The units that would do.
        known: &'static str,
    },
    /// It is more than 64 bits hold.
    TooLarge(String),
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNumber(text) => write!(f, "`{text}` does not start with a number"),
            Self::NoUnit(text) => {
                write!(f, "`{text}` has no unit; write `{text}s` ({DURATION_UNITS})")
            }
            Self::UnknownUnit { text, known } => write!(f, "`{text}` has no unit of {known}"),
            Self::TooLarge(text) => write!(f, "`{text}` is too large"),
        }
    }
}

impl std::error::Error for UnitError {}

const SIZE_UNITS: &str =
    "B, KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB, k, m, g, t (powers of 1024)";
const DURATION_UNITS: &str = "ns, us, ms, s, m, h, d";

/// A number as it is written; floating point would lose digits beyond 2^53.
#[derive(Clone, Copy)]
struct Decimal {
    whole: u64,
    /// Billionths of billionths: what has more digits is cut.
    fraction: u64,
}

impl Decimal {
    const ONE: u128 = 1_000_000_000_000_000_000;

    /// Splits `text` into its leading number and the rest.
    fn split(text: &str) -> Result<(Self, &str), UnitError> {
        let digits = text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let (number, rest) = text.split_at(digits);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.len() + fraction.len() == 0 || fraction.contains('.') {
            return Err(UnitError::NoNumber(text.to_owned()));
        }
        let whole = match whole {
            "" => 0,
            _ => whole.parse().map_err(|_| UnitError::TooLarge(text.to_owned()))?,
        };
        let places = fraction.bytes().map(|digit| u64::from(digit - b'0'));
        let places = places.chain(std::iter::repeat(0)).take(18);
        Ok((Self { whole, fraction: places.fold(0, |sum, digit| sum * 10 + digit) }, rest))
    }

    /// Returns the number times `factor`, rounded to the nearest; nothing if 64 bits are too few.
    fn times(self, factor: u64) -> Option<u64> {
        let factor = u128::from(factor);
        let fraction = (u128::from(self.fraction) * factor + Self::ONE / 2) / Self::ONE;
        u64::try_from(u128::from(self.whole) * factor + fraction).ok()
    }
}

impl Bytes {
    /// Returns the size that `text` names: `4096`, `4k`, `1KiB`, `1.5MB`; letters of either case.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let text = text.trim();
        let (number, unit) = Decimal::split(text)?;
        let factor: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            "pb" => 1_000_000_000_000_000,
            "k" | "ki" | "kib" => 1 << 10,
            "m" | "mi" | "mib" => 1 << 20,
            "g" | "gi" | "gib" => 1 << 30,
            "t" | "ti" | "tib" => 1 << 40,
            "p" | "pi" | "pib" => 1 << 50,
            _ => {
                let text = text.to_owned();
                return Err(UnitError::UnknownUnit { text, known: SIZE_UNITS });
            }
        };
        number.times(factor).map(Self).ok_or_else(|| UnitError::TooLarge(text.to_owned()))
    }
}

impl fmt::Display for Bytes {
    /// Writes the size with the largest binary unit that divides it: `10MiB`, `1000B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (shift, unit) in [(50, "PiB"), (40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if self.0 >= 1 << shift && self.0.is_multiple_of(1 << shift) {
                return write!(f, "{}{unit}", self.0 >> shift);
            }
        }
        write!(f, "{}B", self.0)
    }
}

/// Returns the duration that `text` names: `10s`, `1m30s`, `500ms`, `1.5h`; a bare `0` is zero.
///
/// It is exact to the nanosecond and below 2^64 of them, which are 584 years.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let text = text.trim();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = Some(0u64);
    while !rest.is_empty() || rest.len() == text.len() {
        let (number, tail) = Decimal::split(rest)?;
        let unit_len = tail.bytes().take_while(|b| !b.is_ascii_digit()).count();
        let (unit, next) = tail.split_at(unit_len);
        let ns = match unit.trim() {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            "" => return Err(UnitError::NoUnit(text.to_owned())),
            _ => {
                let text = text.to_owned();
                return Err(UnitError::UnknownUnit { text, known: DURATION_UNITS });
            }
        };
        let part = number.times(ns);
        total = total.and_then(|total| total.checked_add(part?));
        rest = next;
    }
    total.map(Duration::from_nanos).ok_or_else(|| UnitError::TooLarge(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kb_is_1000_and_kib_and_a_bare_k_are_1024() {
        let cases = [
            ("0", 0),
            ("4096", 4096),
            ("1KB", 1_000),
            ("4k", 4_096),
            ("4K", 4_096),
            ("1m", 1 << 20),
            ("1.5M", 3 << 19),
            ("2g", 2 << 30),
            ("1T", 1 << 40),
            ("1p", 1 << 50),
            ("1kb", 1_000),
            ("1KiB", 1_024),
            ("1Ki", 1_024),
            ("10MiB", 10 << 20),
            ("1.5MB", 1_500_000),
            ("2 GiB", 2 << 30),
            ("5tb", 5_000_000_000_000),
        ];
        for (text, bytes) in cases {
            assert_eq!(Bytes::parse(text), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_its_reason() {
        for (text, reason) in [
            ("", "`` does not start with a number"),
            ("MiB", "`MiB` does not start with a number"),
            ("-1", "`-1` does not start with a number"),
            ("99999999PB", "`99999999PB` is too large"),
        ] {
            assert_eq!(Bytes::parse(text).map_err(|e| e.to_string()), Err(reason.to_owned()));
        }
        let unknown = Bytes::parse("5 bananas").map_err(|e| e.to_string());
        assert!(unknown.is_err_and(|text| text.contains("KiB, MiB")));
    }

    #[test]
    fn sizes_print_without_loss() {
        for (bytes, text) in [(0, "0B"), (1000, "1000B"), (1024, "1KiB"), (10 << 20, "10MiB")] {
            assert_eq!(Bytes(bytes).to_string(), text);
            assert_eq!(Bytes::parse(text), Ok(Bytes(bytes)));
        }
    }

    #[test]
    fn no_digit_is_lost() {
        for (text, bytes) in [
            ("15001048746992975KiB", 15_001_048_746_992_975 << 10),
            ("18446744073709551615B", u64::MAX),
            ("9007199254740993", (1 << 53) + 1),
            ("0.1PB", 100_000_000_000_000),
            ("1.0000000000000005PB", 1_000_000_000_000_001),
            (".5KiB", 512),
            ("1.KB", 1_000),
        ] {
            assert_eq!(Bytes::parse(text), Ok(Bytes(bytes)), "{text}");
        }
        for (text, ns) in [
            ("18446744073709551615ns", u64::MAX),
            ("106751d23h47m16s854775807ns", i64::MAX as u64),
            ("1.000000001s", 1_000_000_001),
            ("0.1us", 100),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_nanos(ns)), "{text}");
        }
        for text in ["18446744073709551616B", "16384PiB", "18446744073709551615.5B"] {
            assert_eq!(Bytes::parse(text), Err(UnitError::TooLarge(text.to_owned())));
        }
        for text in ["213504d", "18446744073s1s", "99999999999999999999d"] {
            assert!(matches!(parse_duration(text), Err(UnitError::TooLarge(_))), "{text}");
        }
        for text in [".", "1..5KB", "1.2.3B", ".B"] {
            assert!(matches!(Bytes::parse(text), Err(UnitError::NoNumber(_))), "{text}");
        }
    }

    #[test]
    fn durations_take_go_and_plain_forms() {
        for (text, ms) in
            [("0", 0), ("10s", 10_000), ("1m30s", 90_000), ("500ms", 500), ("1.5h", 5_400_000)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "5", "5 parsecs", "s", "-1s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        let said = |text| parse_duration(text).map_err(|error| error.to_string());
        let units = "ns, us, ms, s, m, h, d";
        assert_eq!(said("10"), Err(format!("`10` has no unit; write `10s` ({units})")));
        assert_eq!(said("1m30"), Err(format!("`1m30` has no unit; write `1m30s` ({units})")));
    }
}

//! Sizes, times, rates and shares as people write them in a workload file.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use plimsoll_model::{Bytes, parse_duration};

use crate::RateProfile;
use crate::pacing::{in_units, parse_rate};

/// Makes a type one that is written as text: by `Display`, `FromStr` and the form that a refusal
/// names. `numbers` says what a bare number means, where it means something.
macro_rules! written {
    ($type:ty, $form:literal, $example:literal $(, numbers: $number:expr)?) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                use $crate::plan::tree::Tree;
                let refuse = |found: &dyn std::fmt::Display, why: &str| {
                    let reason = format!("`{found}` is not {}{why}", $form);
                    Err(serde::de::Error::custom(reason))
                };
                match Tree::deserialize(from)? {
                    Tree::Text(text) => match text.parse() {
                        Ok(value) => Ok(value),
                        Err(why) => refuse(&text, &format!(": {why}")),
                    },
                    $(
                        Tree::Int(number) if u64::try_from(number).is_ok() => {
                            let make: fn(f64, u64) -> Self = $number;
                            Ok(make(number as f64, number as u64))
                        }
                        Tree::Float(number) if number >= 0.0 && number.is_finite() => {
                            let text = number.to_string();
                            text.parse().or_else(|_| refuse(&text, ""))
                        }
                    )?
                    Tree::Int(number) => refuse(&number, ""),
                    Tree::Float(number) => refuse(&number, ""),
                    Tree::Bool(value) => refuse(&value, ""),
                    Tree::Null => refuse(&"null", ""),
                    Tree::List(_) => refuse(&"[...]", ""),
                    Tree::Map(_) => refuse(&"{...}", ""),
                }
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": $crate::plan::units::written!(@types $($number)?),
                    "examples": [$example],
                })
            }
        }
    };
    (@types $number:expr) => { ["string", "number"] };
    (@types) => { "string" };
}
pub(super) use written;

/// A number of bytes: `64KiB`, `1MB`, `4096`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

/// A length of time: `5m`, `1m30s`, `250ms`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub Duration);

/// Operations a second: `1000/s`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(pub f64);

/// From one rate to another: `50/s..20000/s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateRange {
    /// The lowest, in operations a second.
    pub from: f64,
    /// The highest, in operations a second.
    pub to: f64,
}

/// What one worker does at most in a second: `100/s` operations or `5MiB/s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cap {
    /// Operations.
    OpsPerSec(f64),
    /// Bytes.
    BytesPerSec(f64),
}

/// A share: `20%`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

/// From the smallest to the largest size; both belong to it: `4KiB..1MiB`. A lone size is both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeRange {
    /// The smallest, in bytes.
    pub min: u64,
    /// The largest, in bytes.
    pub max: u64,
}

/// From the shortest to the longest time; both belong to it: `0s..5s`. A lone time is both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
}

/// From the first to the last number; both belong to it: `1..50`. A lone number is both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberRange {
    /// The first.
    pub from: u64,
    /// The last.
    pub to: u64,
}

written!(Size, "a size such as 64KiB", "64KiB", numbers: |_, bytes| Self(bytes));
written!(Time, "a duration such as 5m or 1m30s", "1m30s");
written!(Rate, "a rate such as 1000/s", "1000/s");
written!(RateRange, "a range of rates such as 50/s..20000/s", "50/s..20000/s");
written!(RateProfile, "a rate such as 1000/s or 100/s..2000/s over 2m", "100/s..2000/s over 2m");
written!(Cap, "a cap such as 100/s or 5MiB/s", "5MiB/s");
written!(Percent, "a share such as 20%", "20%", numbers: |number, _| Self(number));
written!(
    SizeRange,
    "a range of sizes such as 4KiB..1MiB",
    "4KiB..1MiB",
    numbers: |_, bytes| Self { min: bytes, max: bytes }
);
written!(TimeRange, "a duration or range such as 0s..5s", "0s..5s");
written!(
    NumberRange,
    "a range of numbers such as 1..50",
    "1..50",
    numbers: |_, number| Self { from: number, to: number }
);

fn size(text: &str) -> Result<u64, String> {
    Bytes::parse(text).map(|bytes| bytes.0).map_err(|error| error.to_string())
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// Reads `A..B` or `A`.
fn range<T: Copy + PartialOrd>(
    text: &str,
    one: impl Fn(&str) -> Result<T, String>,
) -> Result<(T, T), String> {
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    let (min, max) = (one(min.trim())?, one(max.trim())?);
    match min <= max {
        true => Ok((min, max)),
        false => Err("the first is above the second".to_owned()),
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        size(text).map(Self)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytes(self.0).fmt(f)
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        time(text).map(Self)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.is_zero() {
            true => f.write_str("0s"),
            false => f.write_str(&in_units(self.0)),
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_rate(text).map(Self)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

impl FromStr for RateRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").ok_or("it has no `..`")?;
        let (from, to) = (parse_rate(from)?, parse_rate(to)?);
        match from < to {
            true => Ok(Self { from, to }),
            false => Err("the first is not below the second".to_owned()),
        }
    }
}

impl fmt::Display for RateRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s..{}/s", self.from, self.to)
    }
}

impl FromStr for Cap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(rate) = parse_rate(text) {
            return Ok(Self::OpsPerSec(rate));
        }
        let bytes = text.trim().strip_suffix("/s").ok_or("it does not end with `/s`")?.trim();
        let exact = bytes.strip_suffix('B').and_then(|number| number.parse::<f64>().ok());
        let rate = exact.map_or_else(|| size(bytes).map(|size| size as f64), Ok)?;
        match rate > 0.0 && rate.is_finite() {
            true => Ok(Self::BytesPerSec(rate)),
            false => Err("it must be above 0".to_owned()),
        }
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OpsPerSec(rate) => write!(f, "{rate}/s"),
            Self::BytesPerSec(rate) if rate.fract() == 0.0 && rate < 9e15 => {
                write!(f, "{}/s", Bytes(rate as u64))
            }
            Self::BytesPerSec(rate) => write!(f, "{rate}B/s"),
        }
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().trim_end_matches('%').trim_end();
        match number.parse::<f64>() {
            Ok(percent) if percent >= 0.0 && percent.is_finite() => Ok(Self(percent)),
            _ => Err("it is not a number of at least 0 with a `%`".to_owned()),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl FromStr for SizeRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        range(text, size).map(|(min, max)| Self { min, max })
    }
}

impl fmt::Display for SizeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.min == self.max {
            true => Bytes(self.min).fmt(f),
            false => write!(f, "{}..{}", Bytes(self.min), Bytes(self.max)),
        }
    }
}

impl FromStr for TimeRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        range(text, time).map(|(min, max)| Self { min, max })
    }
}

impl fmt::Display for TimeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.min == self.max {
            true => Time(self.min).fmt(f),
            false => write!(f, "{}..{}", Time(self.min), Time(self.max)),
        }
    }
}

impl FromStr for NumberRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one = |text: &str| text.parse().map_err(|_| format!("`{text}` is not a whole number"));
        range(text, one).map(|(from, to)| Self { from, to })
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from == self.to {
            true => write!(f, "{}", self.from),
            false => write!(f, "{}..{}", self.from, self.to),
        }
    }
}

impl SizeRange {
    /// Returns the range of one size.
    pub const fn of(size: u64) -> Self {
        Self { min: size, max: size }
    }
}

impl TimeRange {
    pub(super) fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;

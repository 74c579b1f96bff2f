//! Values on the command line with a form of their own.

use std::fmt;
use std::str::FromStr;

use clap::builder::{RangedI64ValueParser, RangedU64ValueParser};
use plimsoll_model::{Bytes, UnitError, parse_duration};
use serde::{Deserialize, Serialize};

/// The most threads that may drive the load; more than this is a slip of the pen.
const THREADS_MAX: u64 = 4_096;
/// How often an operation may be tried again: the attempts of a record fit into a byte.
const RETRIES_MAX: i64 = 254;
/// How often stages may be repeated; a run has no more stages.
const ITERATIONS_MAX: i64 = 256;

/// Reads how many threads are asked for.
pub(crate) fn threads() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=THREADS_MAX)
}

/// Reads how often a failed operation is tried again.
pub(crate) fn retries() -> RangedI64ValueParser<u8> {
    RangedI64ValueParser::new().range(0..=RETRIES_MAX)
}

/// Reads how often stages are repeated.
pub(crate) fn iterations() -> RangedI64ValueParser<u32> {
    RangedI64ValueParser::new().range(0..=ITERATIONS_MAX)
}

/// A size: `10MiB` (1024), `10MB` (1000).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ByteSize(pub(crate) u64);

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        Bytes::parse(text).map(|bytes| Self(bytes.0))
    }
}

/// A duration: `10s`, `1m30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Duration(pub(crate) std::time::Duration);

impl FromStr for Duration {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_duration(text).map(Self)
    }
}

/// Reads how long something may take, which is not no time at all.
pub(crate) fn timeout(text: &str) -> Result<Duration, String> {
    let parsed: Duration = text.parse().map_err(|error: UnitError| error.to_string())?;
    match parsed.0.is_zero() {
        true => Err("no operation ends in no time; give one such as `30s`".to_owned()),
        false => Ok(parsed),
    }
}

/// A duration of days or less: `1d`, `12h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) std::time::Duration);

impl FromStr for Age {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const DAY_S: u64 = 86_400;
        match text.strip_suffix('d').map(str::parse::<u32>) {
            Some(Ok(days)) => Ok(Self(std::time::Duration::from_secs(u64::from(days) * DAY_S))),
            _ => parse_duration(text).map(Self).map_err(|error| error.to_string()),
        }
    }
}

/// A part of a hundred: `1%`, `0.5`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Percent(pub(crate) f64);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().trim_end_matches('%').trim_end();
        let percent: f64 = number.parse().map_err(|_| "not a number of percent".to_owned())?;
        if !(0.0..=100.0).contains(&percent) {
            return Err("not between 0 and 100 percent".to_owned());
        }
        Ok(Self(percent))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

/// A time of day, `hh:mm` or `hh:mm:ss`, in the machine's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeOfDay(pub(crate) jiff::civil::Time);

impl FromStr for TimeOfDay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let whole =
            if text.matches(':').count() == 1 { format!("{text}:00") } else { text.to_owned() };
        let time = whole.parse().map_err(|_| "not a time of day such as 14:30".to_owned())?;
        Ok(Self(time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_and_times_of_day() {
        assert_eq!("1%".parse(), Ok(Percent(1.0)));
        assert_eq!("0.5".parse(), Ok(Percent(0.5)));
        assert!("101%".parse::<Percent>().is_err());
        assert!("many".parse::<Percent>().is_err());
        assert_eq!("14:30".parse(), Ok(TimeOfDay(jiff::civil::time(14, 30, 0, 0))));
        assert_eq!("04:05:06".parse(), Ok(TimeOfDay(jiff::civil::time(4, 5, 6, 0))));
        assert!("25:00".parse::<TimeOfDay>().is_err());
    }
}

//! Figures as text, each with its unit: counts, rates, sizes, times; unknown is an en dash.

use std::borrow::Cow;
use std::time::Duration;

use plimsoll_model::{ByteRate, EndpointId, OpRate};

/// What stands for an unknown figure.
pub const UNKNOWN: &str = "–";

/// Returns a text as the cell of a table for spreadsheets, which take one that begins with `=`,
/// `+`, `-`, `@`, a tab or a line's end for a formula: such a text gets an apostrophe before it.
///
/// For texts only; a negative number is no formula. Source: OWASP, *CSV Injection*.
pub fn inert_cell(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns a count with its noun: `1 worker`, `1,200 workers`.
pub fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Returns hosts in few words: the first of many. Hosts that may come later are none.
pub fn hosts(endpoints: &[String]) -> String {
    let known: Vec<&String> = known_hosts(endpoints).collect();
    match known.as_slice() {
        [] => UNKNOWN.to_owned(),
        [one] => (*one).clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    }
}

/// Returns those of the hosts that were there when a run began.
pub fn known_hosts(endpoints: &[String]) -> impl Iterator<Item = &String> {
    endpoints.iter().filter(|host| *host != EndpointId::LATER_HOSTS)
}

/// Returns a count with thousands separators: `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number that is not negative with three significant digits, whole from 100 on:
/// `0.0123`, `45.6`, `12,345`.
pub fn number(value: f64) -> String {
    if value >= 99.95 {
        return count(value.round() as u64);
    }
    if value < 1e-6 {
        return "0".to_owned();
    }
    // Rounded in scientific notation first, as 9.996 has one decimal less than 9.994.
    let scientific = format!("{value:.2e}");
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok());
    let decimals = usize::try_from(2 - exponent.unwrap_or(0)).unwrap_or(0);
    format!("{value:.decimals$}")
}

/// Returns operations per second: `1,665 ops/s`.
pub fn op_rate(rate: OpRate) -> String {
    format!("{} ops/s", number(rate.0))
}

/// Returns objects per second: `1,665 obj/s`.
pub fn object_rate(rate: OpRate) -> String {
    format!("{} obj/s", number(rate.0))
}

/// Returns throughput in units of 1,048,576 bytes per second: `26.0 MiB/s`.
pub fn byte_rate(rate: ByteRate) -> String {
    format!("{} MiB/s", number(rate.0 / (1 << 20) as f64))
}

/// Returns a size with the binary unit that leaves three digits: `24.4 GiB`, `512 B`.
pub fn bytes(bytes: u64) -> String {
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for next in units {
        if value < 999.5 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    format!("{} {unit}", number(value))
}

/// Returns a time with the unit that leaves three digits: `850 ns`, `33.0 ms`, `1.25 s`, `20.8
/// min`.
pub fn duration(duration: Duration) -> String {
    let ns = duration.as_nanos();
    if ns == 0 {
        return "0 s".to_owned();
    }
    if ns < 1_000 {
        return format!("{ns} ns");
    }
    let ns = ns as f64;
    // Above a thousand seconds minutes read better, above a thousand minutes hours do.
    let units = [(1e3, "µs"), (1e6, "ms"), (1e9, "s"), (60e9, "min")];
    let fitting = units.into_iter().find(|(size, _)| ns / size < 999.5);
    let (size, unit) = fitting.unwrap_or((3_600e9, "h"));
    format!("{} {unit}", number(ns / size))
}

/// Returns a part of 100: `0 %`, `0.0500 %`, `45.1 %`.
pub fn percent(percent: f64) -> String {
    format!("{} %", number(percent))
}

/// Returns `value` as text, or the sign for unknown.
pub fn known<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_thousands_separators() {
        for (value, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (123_456, "123,456"),
            (1_234_567_890, "1,234,567,890"),
        ] {
            assert_eq!(count(value), text);
        }
    }

    #[test]
    fn numbers_have_three_digits_also_where_they_round_up() {
        for (value, text) in [
            (0.0, "0"),
            (0.001_234, "0.00123"),
            (0.587_4, "0.587"),
            (0.999_6, "1.00"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (99.94, "99.9"),
            (99.96, "100"),
            (1_665.2, "1,665"),
        ] {
            assert_eq!(number(value), text, "{value}");
        }
    }

    #[test]
    fn times_take_the_unit_that_fits() {
        for (ns, text) in [
            (0, "0 s"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (33_040_000, "33.0 ms"),
            (999_500_000, "1.00 s"),
            (59_000_000_000, "59.0 s"),
            (999_000_000_000, "999 s"),
            (1_250_000_000_000, "20.8 min"),
            (90_000_000_000_000, "25.0 h"),
        ] {
            assert_eq!(duration(Duration::from_nanos(ns)), text);
        }
    }

    #[test]
    fn sizes_are_binary_and_rates_say_so() {
        for (size, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "0.977 KiB"),
            (1 << 20, "1.00 MiB"),
            (10 << 20, "10.0 MiB"),
            (1_023 << 20, "0.999 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(bytes(size), text);
        }
        assert_eq!(byte_rate(ByteRate(27_262_976.0)), "26.0 MiB/s");
        assert_eq!(op_rate(OpRate(58.66)), "58.7 ops/s");
        assert_eq!(percent(0.05), "0.0500 %");
        assert_eq!(known(None, duration), "–");
    }
}

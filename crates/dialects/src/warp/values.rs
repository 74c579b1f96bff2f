//! Values as warp reads them, in the form in which our own flags take them.

use plimsoll_model::{Bytes, parse_duration};

use crate::command_line::{Kind, go_switch};

/// Returns a value as we take it: switches as `true` and `false`, numbers in digits.
pub(super) fn read(kind: Kind, text: &str) -> Result<String, String> {
    match kind {
        Kind::Switch => go_switch(text).map(|is_on| is_on.to_string()),
        // What is not given is written as nothing.
        Kind::Size | Kind::Sizes if text.is_empty() => Ok(String::new()),
        Kind::Number => number(text).map(|number| number.to_string()),
        Kind::Fraction => fraction(text),
        Kind::Rate => fraction(text).map(|number| match &*number {
            "0" => String::new(),
            _ => format!("{number}/s"),
        }),
        Kind::Duration => {
            let text = text.strip_prefix('+').unwrap_or(text).replace('μ', "µ");
            parse_duration(&text).map(|_| text).map_err(|error| error.to_string())
        }
        Kind::Size => match Bytes::parse(&decimal(text)).map_err(|error| error.to_string())? {
            Bytes(0) => Err("it must be at least 1".to_owned()),
            _ => Ok(decimal(text)),
        },
        Kind::Sizes => Ok(decimal(text)),
        Kind::Text | Kind::Texts => Ok(text.to_owned()),
    }
}

/// Writes `4M` as `4MB`: a bare unit is a power of 1000 there (warp reads sizes by go-humanize),
/// and one of 1024 here.
fn decimal(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 4);
    let mut letters = text.chars().peekable();
    let mut is_number = false;
    while let Some(letter) = letters.next() {
        written.push(letter);
        let ends = letters.peek().is_none_or(|next| !next.is_ascii_alphanumeric());
        if is_number && ends && matches!(letter.to_ascii_lowercase(), 'k' | 'm' | 'g' | 't' | 'p') {
            written.push('B');
        }
        is_number = letter.is_ascii_digit() || (is_number && matches!(letter, '.' | ' '));
    }
    written
}

/// Reads a number as Go's flags do: `0x10`, `0b11`, `0o17`, `017` and `1_000` too.
fn number(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a whole number from 0");
    let (radix, digits) = match text.strip_prefix('+').unwrap_or(text) {
        plain if !plain.starts_with('0') || plain == "0" => (10, plain),
        marked => match marked.get(..2).map(str::to_ascii_lowercase).as_deref() {
            Some("0x") => (16, &marked[2..]),
            Some("0b") => (2, &marked[2..]),
            Some("0o") => (8, &marked[2..]),
            _ => (8, &marked[1..]),
        },
    };
    let is_spaced = digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    if is_spaced || digits.starts_with(['+', '-']) {
        return Err(wrong());
    }
    u64::from_str_radix(&digits.replace('_', ""), radix).map_err(|_| wrong())
}

fn fraction(text: &str) -> Result<String, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number.to_string()),
        _ => Err(format!("`{text}` is not a number from 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_go_reads_them() {
        for (kind, text, expected) in [
            (Kind::Switch, "T", Some("true")),
            (Kind::Switch, "0", Some("false")),
            (Kind::Switch, "yes", None),
            (Kind::Switch, "", None),
            (Kind::Number, "1_000", Some("1000")),
            (Kind::Number, "0x10", Some("16")),
            (Kind::Number, "010", Some("8")),
            (Kind::Number, "0b11", Some("3")),
            (Kind::Number, "0", Some("0")),
            (Kind::Number, "-5", None),
            (Kind::Number, "1k", None),
            (Kind::Number, "", None),
            (Kind::Number, "1__0", None),
            (Kind::Number, "09", None),
            (Kind::Fraction, "1e3", Some("1000")),
            (Kind::Fraction, "7.5", Some("7.5")),
            (Kind::Fraction, "inf", None),
            (Kind::Rate, "12.5", Some("12.5/s")),
            (Kind::Rate, "0", Some("")),
            (Kind::Rate, "5/s", None),
            (Kind::Duration, "1h15m30.5s", Some("1h15m30.5s")),
            (Kind::Duration, "+5s", Some("5s")),
            (Kind::Duration, "-5s", None),
            (Kind::Duration, "5", None),
            (Kind::Size, "5MiB", Some("5MiB")),
            (Kind::Size, "5M", Some("5MB")),
            (Kind::Size, "1.5 k", Some("1.5 kB")),
            (Kind::Size, "5Mi", Some("5Mi")),
            (Kind::Sizes, "1k,5M", Some("1kB,5MB")),
            (Kind::Sizes, "4k:10,1MiB:5,7G:1", Some("4kB:10,1MiB:5,7GB:1")),
            (Kind::Sizes, "10", Some("10")),
            (Kind::Size, "0", None),
            (Kind::Size, "many", None),
            (Kind::Size, "", Some("")),
        ] {
            assert_eq!(read(kind, text).ok().as_deref(), expected, "{kind:?} {text}");
        }
    }
}

//! Numbers, sizes and times as fio writes them, read strictly or as fio reads them.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::job::{Amount, Directions, Span};
use super::{Units, sums};

/// Which powers `k`, `m` and so on stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KbBase {
    /// Powers of 1024, and then `kib` stands for powers of 1000.
    Binary,
    /// Powers of 1000, and then `kib` stands for powers of 1024.
    Decimal,
}

/// What a time without a suffix is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bare {
    Seconds,
    Micros,
}

/// The value of an option, and how it is to be read.
pub(super) struct Value<'t> {
    /// `None` for a bare word.
    pub(super) text: Option<&'t str>,
    pub(super) units: Units,
    pub(super) kb_base: KbBase,
    /// What was read as fio reads it, though it may look like something else.
    pub(super) notes: Vec<String>,
}

/// A number and what follows it, in lower case.
struct Parts {
    whole: u64,
    /// The digits behind the point.
    fraction: Option<String>,
    suffix: String,
}

impl<'t> Value<'t> {
    /// Returns the text, which must not be empty.
    pub(super) fn word(&self) -> Result<&'t str, String> {
        self.text.filter(|text| !text.is_empty()).ok_or_else(|| "it has no value".to_owned())
    }

    /// Returns what a flag says, which is on by being there.
    pub(super) fn flag(&self) -> Result<bool, String> {
        if self.text.is_none() { Ok(true) } else { self.switch() }
    }

    /// Returns what a switch says.
    pub(super) fn switch(&self) -> Result<bool, String> {
        match self.word()? {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err("it is 0 or 1".to_owned()),
        }
    }

    /// Returns a count within `range`.
    pub(super) fn count(&mut self, range: RangeInclusive<u32>) -> Result<u32, String> {
        let number = self.number(self.word()?)?;
        let number = u32::try_from(number).map_err(|_| too_large())?;
        match (range.start(), range.end()) {
            _ if range.contains(&number) => Ok(number),
            (least, &u32::MAX) => Err(format!("{least} is the least")),
            (least, most) => Err(format!("it is a number from {least} to {most}")),
        }
    }

    /// Returns a number of things that are no bytes.
    pub(super) fn number(&mut self, text: &str) -> Result<u64, String> {
        let number = self.size(text)?;
        let is_plain = text.starts_with('(') || Parts::of(text)?.suffix.is_empty();
        if self.units == Units::Strict && !is_plain {
            return Err(format!(
                "fio reads this as {}; write that without a suffix",
                digits(number)
            ));
        }
        Ok(number)
    }

    /// Returns a number of bytes.
    pub(super) fn size(&mut self, text: &str) -> Result<u64, String> {
        match self.amount(text)? {
            Amount::Bytes(bytes) => Ok(bytes),
            Amount::Percent(_) => Err("a share in percent is unexpected here".to_owned()),
        }
    }

    /// Returns a number of bytes or a share in percent.
    pub(super) fn amount(&mut self, text: &str) -> Result<Amount, String> {
        if text.starts_with('(') {
            let bytes = sums::evaluate(text, self.units == Units::Strict, &mut |text| {
                self.size(text).map(i128::from)
            })?;
            return u64::try_from(bytes)
                .map(Amount::Bytes)
                .map_err(|_| format!("{bytes} is not a number of bytes"));
        }
        let parts = Parts::of(text)?;
        if parts.suffix == "%" && parts.fraction.is_none() {
            let percent = u32::try_from(parts.whole).ok().filter(|p| (1..=100).contains(p));
            return percent
                .map(Amount::Percent)
                .ok_or_else(|| "a share is from 1% to 100%".to_owned());
        }
        let bytes = match self.units {
            Units::Fio => parts.size_of_fio(self.kb_base)?,
            Units::Strict => self.strict_size(text, &parts)?,
        };
        Ok(Amount::Bytes(bytes))
    }

    fn strict_size(&mut self, text: &str, parts: &Parts) -> Result<u64, String> {
        let factor = plain_factor(&parts.suffix, self.kb_base);
        if let Some(fraction) = &parts.fraction {
            let read = digits(parts.whole);
            let meant = factor.and_then(|factor| meant(parts.whole, fraction, factor));
            return Err(match meant {
                Some(meant) => format!("fio stops at the point and reads {read}; write {meant}"),
                None => format!("fio stops at the point and reads {read}; write a whole number"),
            });
        }
        let bytes = parts.size_of_fio(self.kb_base)?;
        let Some(factor) = factor else {
            let letter = &parts.suffix[..1];
            let read = digits(bytes);
            return Err(format!(
                "fio reads every suffix with `{letter}` in front alike, this as {read} bytes; \
                write `{}{letter}`",
                parts.whole
            ));
        };
        let plain = parts.whole.checked_mul(factor).ok_or_else(too_large)?;
        if plain != bytes {
            let (whole, letter) = (parts.whole, parts.suffix[..1].to_uppercase());
            let write = match self.kb_base {
                KbBase::Binary => format!("{whole}{letter}i"),
                KbBase::Decimal => format!("{whole}{letter}iB"),
            };
            return Err(format!(
                "fio reads this as {} bytes, not {}; write `{write}` or the number of bytes, or \
                give `--fio-units` to have what fio reads",
                digits(bytes),
                digits(plain)
            ));
        }
        if self.kb_base == KbBase::Binary && parts.suffix.ends_with('b') && parts.suffix != "b" {
            self.notes.push(format!("`{text}` is read as {} bytes, as fio does", digits(bytes)));
        }
        Ok(bytes)
    }

    /// Returns a time; without a suffix it is counted in `bare`.
    pub(super) fn time(&mut self, text: &str, bare: Bare) -> Result<Duration, String> {
        let micros = if text.starts_with('(') {
            let sum = sums::evaluate(text, self.units == Units::Strict, &mut |text| {
                self.micros(text, Bare::Micros).map(i128::from)
            })?;
            let sum = u64::try_from(sum).map_err(|_| format!("{sum} is no time"))?;
            // One suffix makes it a sum of microseconds; without any it is bare as a whole.
            let has_suffix = text.contains(|c: char| c.is_ascii_alphabetic());
            scaled(sum, if has_suffix { 1 } else { bare.micros() })?
        } else {
            self.micros(text, bare)?
        };
        Ok(Duration::from_micros(micros))
    }

    fn micros(&self, text: &str, bare: Bare) -> Result<u64, String> {
        let parts = Parts::of(text)?;
        let bare_suffix = bare.suffix();
        if let Some(fraction) = &parts.fraction {
            if self.units == Units::Fio {
                return scaled(parts.whole, bare.micros());
            }
            let suffix = if parts.suffix.is_empty() { bare_suffix } else { &parts.suffix };
            let meant = time_factor(suffix).and_then(|f| meant(parts.whole, fraction, f));
            let read = format!("{} {bare_suffix}", parts.whole);
            return Err(match meant {
                Some(meant) if meant % 1_000 == 0 => {
                    format!("fio stops at the point and reads {read}; write {}ms", meant / 1_000)
                }
                Some(meant) => {
                    format!("fio stops at the point and reads {read}; write {meant}us")
                }
                None => format!("fio stops at the point and reads {read}; write a whole number"),
            });
        }
        let suffix = if parts.suffix.is_empty() { bare_suffix } else { &parts.suffix };
        match (time_factor(suffix), self.units) {
            (Some(factor), _) => scaled(parts.whole, factor),
            (None, Units::Fio) if suffix.starts_with("ms") => scaled(parts.whole, 1_000),
            (None, Units::Fio) => Ok(parts.whole),
            (None, Units::Strict) => {
                let read = if suffix.starts_with("ms") { "ms" } else { "us" };
                let write = match suffix {
                    "sec" | "secs" | "second" | "seconds" => format!("`{}s`", parts.whole),
                    "min" | "mins" | "minute" | "minutes" => format!("`{}m`", parts.whole),
                    "hr" | "hrs" | "hour" | "hours" => format!("`{}h`", parts.whole),
                    "day" | "days" => format!("`{}d`", parts.whole),
                    _ => "one of us, ms, s, m, h, d".to_owned(),
                };
                Err(format!("fio reads this as {}{read}; write {write}", parts.whole))
            }
        }
    }

    /// Returns a list `READ,WRITE,TRIM`: one that is missing is as the one before, an empty one is
    /// left as it was.
    pub(super) fn directions<T: Clone>(
        &mut self,
        mut item: impl FnMut(&mut Self, &str) -> Result<T, String>,
    ) -> Result<Directions<Option<T>>, String> {
        let items: Vec<&str> = self.word()?.split(',').map(str::trim).collect();
        if items.len() > 3 {
            return Err("it is a list of three at most: read, write, trim".to_owned());
        }
        let mut read = |index: usize| match items.get(index) {
            Some(&"") => Ok(None),
            Some(text) => item(self, text).map(Some),
            None => Ok(None),
        };
        let first = read(0)?;
        let second = if items.len() > 1 { read(1)? } else { first.clone() };
        read(2)?;
        Ok(Directions { read: first, write: second })
    }

    /// Returns a range `LOW-HIGH` or `LOW:HIGH`, in whatever order, or a single value.
    pub(super) fn span<T: Copy + PartialOrd>(
        &mut self,
        text: &str,
        mut item: impl FnMut(&mut Self, &str) -> Result<T, String>,
    ) -> Result<Span<T>, String> {
        let mut depth = 0_i32;
        let is_split = |c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0 && (c == '-' || c == ':')
        };
        let (low, high) = match text.find(is_split) {
            Some(at) => (text[..at].trim(), text[at + 1..].trim()),
            None => (text, text),
        };
        let (low, high) = (item(self, low)?, item(self, high)?);
        Ok(if low <= high { Span { min: low, max: high } } else { Span { min: high, max: low } })
    }
}

impl Bare {
    fn suffix(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Micros => "us",
        }
    }

    fn micros(self) -> u64 {
        time_factor(self.suffix()).expect("it is one of the suffixes")
    }
}

impl Parts {
    fn of(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.starts_with('-') {
            return Err("it is less than nothing".to_owned());
        }
        let plain = text.strip_prefix('+').unwrap_or(text);
        let hex = plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X"));
        let (radix, rest) = hex.map_or((10, plain), |hex| (16, hex));
        let length = rest.find(|c: char| !c.is_digit(radix)).unwrap_or(rest.len());
        let (number, rest) = rest.split_at(length);
        if number.is_empty() {
            return Err(format!("`{text}` does not start with a number"));
        }
        let whole = u64::from_str_radix(number, radix).map_err(|_| too_large())?;
        let (fraction, suffix) = match rest.strip_prefix('.') {
            None => (None, rest),
            Some(rest) => {
                let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                let (fraction, suffix) = rest.split_at(length);
                (Some(fraction.to_owned()), suffix)
            }
        };
        Ok(Self { whole, fraction, suffix: suffix.trim().to_ascii_lowercase() })
    }

    /// Returns the bytes that fio reads: nothing behind a point counts.
    fn size_of_fio(&self, kb_base: KbBase) -> Result<u64, String> {
        if self.fraction.is_some() {
            return Ok(self.whole);
        }
        let Some(factor) = fio_factor(&self.suffix, kb_base) else {
            return Err(format!(
                "`{}` is no unit of size; those are k, m, g, t, p and Ki, Mi, Gi, Ti, Pi",
                self.suffix
            ));
        };
        self.whole.checked_mul(factor).ok_or_else(too_large)
    }
}

/// Returns the power that the letter in front of a suffix stands for.
fn power(suffix: &str) -> Option<u32> {
    let place = "kmgtp".find(suffix.chars().next()?)?;
    Some(place as u32 + 1)
}

/// Returns the factor that fio takes: by the first letter, and other powers for `kib` and the like.
fn fio_factor(suffix: &str, kb_base: KbBase) -> Option<u64> {
    if matches!(suffix, "" | "b") {
        return Some(1);
    }
    let is_long = suffix.get(1..3) == Some("ib");
    let base: u64 = match (kb_base, is_long) {
        (KbBase::Binary, false) | (KbBase::Decimal, true) => 1_024,
        (KbBase::Decimal, false) | (KbBase::Binary, true) => 1_000,
    };
    power(suffix).map(|power| base.pow(power))
}

/// Returns the factor that a suffix says to a reader: `ki` is always 1024, `k` what the file's
/// `kb_base` makes it.
fn plain_factor(suffix: &str, kb_base: KbBase) -> Option<u64> {
    if matches!(suffix, "" | "b") {
        return Some(1);
    }
    let power = power(suffix)?;
    match (&suffix[1..], kb_base) {
        ("i" | "ib", _) | ("" | "b", KbBase::Binary) => Some(1_024_u64.pow(power)),
        ("" | "b", KbBase::Decimal) => Some(1_000_u64.pow(power)),
        _ => None,
    }
}

fn time_factor(suffix: &str) -> Option<u64> {
    match suffix {
        "us" | "usec" => Some(1),
        "ms" | "msec" => Some(1_000),
        "s" => Some(1_000_000),
        "m" => Some(60_000_000),
        "h" => Some(3_600_000_000),
        "d" => Some(86_400_000_000),
        _ => None,
    }
}

/// Returns what a number with a fraction comes to, where that is whole.
fn meant(whole: u64, fraction: &str, factor: u64) -> Option<u64> {
    let places = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let parts = fraction.parse::<u64>().unwrap_or(0).checked_mul(factor)?;
    if parts % places != 0 {
        return None;
    }
    whole.checked_mul(factor)?.checked_add(parts / places)
}

fn scaled(number: u64, factor: u64) -> Result<u64, String> {
    number.checked_mul(factor).ok_or_else(too_large)
}

fn too_large() -> String {
    "it is too large".to_owned()
}

/// Writes a number with a comma at each thousand.
pub(super) fn digits(number: u64) -> String {
    let plain = number.to_string();
    let mut text = String::new();
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

//! Names by pattern: `c{1..32}` names 32 buckets, `img{001..500}.jpg` 500 objects.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use super::units::written;
use crate::keys::push_digits;

/// More names than this are a slip of the pen.
const NAMES_MAX: u64 = 1 << 40;

/// No number has more digits of its own.
const DIGITS_MAX: usize = 20;

/// Texts that differ in numbers. `{1..32}` stands for each of these numbers, `{001..500}` for them
/// with leading zeros; `{{` and `}}` are braces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Part {
    Text(String),
    Numbers { from: u64, to: u64, digits: usize },
}

written!(Pattern, "a name or pattern such as c{1..32}", "c{1..32}");

impl Pattern {
    /// Returns the pattern of that one name.
    pub fn literal(name: &str) -> Self {
        Self { parts: vec![Part::Text(name.to_owned())] }
    }

    /// Returns how many names there are, at least 1.
    pub fn count(&self) -> u64 {
        self.parts.iter().map(Part::count).product()
    }

    /// Returns name `index`, 0-based, the last numbers counting up first.
    pub fn name(&self, index: u64) -> String {
        let mut name = String::new();
        self.write(index, &mut name);
        name
    }

    /// Appends name `index` to a text; it stands on the path of operations.
    pub(crate) fn write(&self, index: u64, text: &mut String) {
        let mut left = self.count();
        assert!(index < left, "the pattern has no name {index}");
        for part in &self.parts {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Numbers { from, digits, .. } => {
                    left /= part.count();
                    let number = from + index / left % part.count();
                    (DIGITS_MAX..*digits).for_each(|_| text.push('0'));
                    push_digits(text, number, (*digits).clamp(1, DIGITS_MAX));
                }
            }
        }
    }

    /// Tells whether no name of one is a name of the other, as far as the patterns show it: texts
    /// are the same and some numbers have nothing in common.
    pub fn is_apart_from(&self, other: &Self) -> bool {
        let alike = self.parts.len() == other.parts.len();
        let pairs = || self.parts.iter().zip(&other.parts);
        let same_form = alike
            && pairs().all(|pair| match pair {
                (Part::Text(a), Part::Text(b)) => a == b,
                (Part::Numbers { digits: a, .. }, Part::Numbers { digits: b, .. }) => a == b,
                _ => false,
            });
        let apart = |pair: (&Part, &Part)| match pair {
            (
                Part::Numbers { from: a, to: a_last, .. },
                Part::Numbers { from: b, to: b_last, .. },
            ) => a_last < b || b_last < a,
            _ => false,
        };
        match (&*self.parts, &*other.parts) {
            ([Part::Text(a)], [Part::Text(b)]) => a != b,
            ([Part::Text(a), ..], [Part::Text(b), ..])
                if !a.starts_with(&**b) && !b.starts_with(&**a) =>
            {
                true
            }
            _ => same_form && pairs().any(apart),
        }
    }

    /// Tells whether all names of the other are names of this one, as far as the patterns show it:
    /// texts are the same, and numbers lie within numbers.
    pub fn covers(&self, other: &Self) -> bool {
        let covers = |pair: (&Part, &Part)| match pair {
            (Part::Text(a), Part::Text(b)) => a == b,
            (
                Part::Numbers { from: a, to: a_last, digits: a_digits },
                Part::Numbers { from: b, to: b_last, digits: b_digits },
            ) => a <= b && b_last <= a_last && a_digits == b_digits,
            _ => false,
        };
        self.parts.len() == other.parts.len() && self.parts.iter().zip(&other.parts).all(covers)
    }
}

impl Part {
    fn count(&self) -> u64 {
        match self {
            Self::Text(_) => 1,
            Self::Numbers { from, to, .. } => to - from + 1,
        }
    }
}

/// Reads `1..32` or `001..500`.
fn numbers(text: &str) -> Result<Part, String> {
    let refuse = || format!("`{{{text}}}` is not a range such as {{1..32}}");
    let (first, last) = text.split_once("..").ok_or_else(refuse)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| refuse());
    let (from, to) = (number(first)?, number(last)?);
    if from > to {
        return Err(format!("`{{{text}}}`: the first number is above the last"));
    }
    let padded = first.len() > 1 && first.starts_with('0');
    Ok(Part::Numbers { from, to, digits: if padded { first.len() } else { 1 } })
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            let (inside, after) = match brace {
                "{" => rest.split_once('}').ok_or("a `{` is not closed")?,
                _ => return Err("a `}` closes nothing; write `}}` for a brace".to_owned()),
            };
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(numbers(inside)?);
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        if parts.is_empty() {
            return Err("it is empty".to_owned());
        }
        let mut count: u64 = 1;
        for part in &parts {
            let more = match part {
                Part::Text(_) => 1,
                Part::Numbers { from, to, .. } => (to - from).saturating_add(1),
            };
            count = count.saturating_mul(more);
        }
        match count <= NAMES_MAX {
            true => Ok(Self { parts }),
            false => Err(format!("it expands to more than {NAMES_MAX} names")),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Numbers { from, to, digits } => {
                    write!(f, "{{{from:0digits$}..{to}}}", digits = *digits)?;
                }
                Part::Text(text) => {
                    for letter in text.chars() {
                        match letter {
                            '{' => f.write_str("{{")?,
                            '}' => f.write_str("}}")?,
                            other => f.write_char(other)?,
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn names_are_counted_made_and_written() {
        let buckets = pattern("c{1..32}");
        assert_eq!(
            (buckets.count(), buckets.name(0), buckets.name(31)),
            (32, "c1".into(), "c32".into())
        );
        let both = pattern("d{08..10}/o{1..2}.jpg");
        let names: Vec<String> = (0..both.count()).map(|index| both.name(index)).collect();
        assert_eq!(names[..3], ["d08/o1.jpg", "d08/o2.jpg", "d09/o1.jpg"]);
        assert_eq!(names[5], "d10/o2.jpg");
        for text in ["c{1..32}", "d{08..10}/o{1..2}.jpg", "plain", "a{{b}}{0..0}"] {
            assert_eq!(pattern(text).to_string(), text);
        }
        assert_eq!(pattern("a{{b}}{0..0}").name(0), "a{b}0");
        let long = "0".repeat(24);
        assert_eq!(pattern(&format!("{{{long}7..{long}9}}")).name(1), format!("{long}8"));
        assert_eq!(pattern("{18446744073709551615..18446744073709551615}").name(0).len(), 20);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for (text, reason) in [
            ("", "it is empty"),
            ("a{1..2", "a `{` is not closed"),
            ("a}", "a `}` closes nothing; write `}}` for a brace"),
            ("a{1...4}", "`{1...4}` is not a range such as {1..32}"),
            ("a{9..1}", "`{9..1}`: the first number is above the last"),
            ("a{0..18446744073709551615}", "it expands to more than 1099511627776 names"),
        ] {
            assert_eq!(text.parse::<Pattern>(), Err(reason.to_owned()), "{text}");
        }
    }

    #[test]
    fn patterns_are_apart_where_their_numbers_are() {
        for (a, b, apart) in [
            ("o{1..50}", "o{51..100}", true),
            ("o{1..50}", "o{50..100}", false),
            ("o{1..50}", "p{1..50}", true),
            ("o{1..50}", "o1{1..50}", false),
            ("a", "b", true),
            ("a", "a", false),
            ("b{1..2}o{1..9}", "b{3..4}o{1..9}", true),
        ] {
            assert_eq!(pattern(a).is_apart_from(&pattern(b)), apart, "{a} {b}");
        }
    }
}

//! Selectors, by which numbers of containers and objects and sizes are chosen: `c(1)`, `u(1,32)`,
//! `r(1,32)`, `s(1,32)`, `h(1|100|60,101|500|40)KB`.

use super::error::{Place, Refused};

/// The largest number that COSBench has.
const NUMBER_MAX: u64 = i32::MAX as u64;
/// More buckets of a histogram are a slip of the pen.
const BUCKETS_MAX: usize = 10_000;

/// How a number is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selector {
    /// `c(n)`: always that one.
    Constant(u64),
    /// `u(a,b)`: any of them.
    Uniform(Span),
    /// `r(a,b)` or `a-b`: one after the other.
    Range(Span),
    /// `s(a,b)`: one after the other for all workers, whatever the division.
    Sequential(Span),
    /// `h(a|b|w,...)`: a bucket by weight, then any of it.
    Histogram(Vec<Bucket>),
    /// `r(0,0)`: none, in scans.
    Nothing,
}

/// From one number to another; both belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Span {
    pub(super) from: u64,
    pub(super) to: u64,
}

/// A bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    pub(super) span: Span,
    pub(super) weight: u64,
}

impl Span {
    pub(super) const fn count(self) -> u64 {
        self.to - self.from + 1
    }

    pub(super) const fn covers(self, other: Self) -> bool {
        self.from <= other.from && other.to <= self.to
    }

    pub(super) const fn meets(self, other: Self) -> bool {
        self.from <= other.to && other.from <= self.to
    }

    pub(super) fn hull(self, other: Self) -> Self {
        Self { from: self.from.min(other.from), to: self.to.max(other.to) }
    }
}

impl Selector {
    /// Returns the numbers that it can come to; `None` where it is none.
    pub(super) fn span(&self) -> Option<Span> {
        match self {
            Self::Nothing => None,
            Self::Constant(number) => Some(Span { from: *number, to: *number }),
            Self::Uniform(span) | Self::Range(span) | Self::Sequential(span) => Some(*span),
            Self::Histogram(buckets) => buckets.iter().map(|of| of.span).reduce(Span::hull),
        }
    }

    /// Reads a selector of containers or objects of normal work.
    pub(super) fn parse(text: &str, key: &str, place: Place) -> Result<Self, Refused> {
        let at = At { text, key, place };
        if let Some(span) = at.dashed()? {
            return at.counted(span, false);
        }
        let (letter, inside) = at.parts()?;
        at.read(letter, inside)
    }

    /// Reads a selector of containers or objects of a scan: only ranges are taken.
    pub(super) fn parse_scan(text: &str, key: &str, place: Place) -> Result<Self, Refused> {
        let at = At { text, key, place };
        if let Some(span) = at.dashed()? {
            return at.counted(span, true);
        }
        match at.parts() {
            Ok(('r', inside)) => at.counted(at.two("iteration", inside)?, true),
            _ => {
                let words = format!("unrecognized range expression: {text}");
                let more = format!(
                    "`{key}={text}`: init, prepare, cleanup and dispose go through a range once; \
                     write r(1,{})",
                    32
                );
                Err(Refused::worded(place, words, more))
            }
        }
    }
}

/// Sizes: a selector of numbers of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) selector: Selector,
    /// How many bytes the unit has.
    pub(super) unit: u64,
    /// Whether the unit is one that COSBench takes for bytes.
    pub(super) is_binary: bool,
}

impl Sizes {
    /// Tells whether any of them is more than nothing.
    pub(super) fn moves_bytes(&self) -> bool {
        !matches!(self.selector, Selector::Constant(0) | Selector::Nothing)
    }

    /// Reads `c(64)KB`.
    pub(super) fn parse(text: &str, place: Place) -> Result<Self, Refused> {
        const UNITS: [(&str, u64, bool); 7] = [
            ("GiB", 1 << 30, true),
            ("MiB", 1 << 20, true),
            ("KiB", 1 << 10, true),
            ("GB", 1_000_000_000, false),
            ("MB", 1_000_000, false),
            ("KB", 1_000, false),
            ("B", 1, false),
        ];
        // COSBench looks only at the last letters, and takes 4TB for 4 bytes.
        let is_unit = |text: &str, name: &str| {
            text.strip_suffix(name).is_some_and(|selector| !selector.ends_with(char::is_alphabetic))
        };
        let found = UNITS.iter().find(|(name, _, _)| is_unit(text, name));
        let Some((name, unit, is_binary)) = found else {
            let words = format!("unrecognized size unit: {text}");
            let more = format!("`sizes={text}`: units are B, KB, MB and GB, in capitals");
            return Err(Refused::worded(place, words, more));
        };
        let selector = &text[..text.len() - name.len()];
        let at = At { text: selector, key: "sizes", place };
        let (letter, inside) = at.parts()?;
        let selector = match letter {
            // Sizes may begin with 0 only where they are always 0.
            'c' => Selector::Constant(at.number("constant", first(inside))?),
            letter => at.read(letter, inside)?,
        };
        let largest = selector.span().map_or(0, |span| span.to);
        if largest.checked_mul(*unit).is_none() {
            return Err(at.refuse("it is larger than any object"));
        }
        Ok(Self { selector, unit: *unit, is_binary: *is_binary })
    }

    /// Returns the smallest and the largest size in bytes.
    pub(super) fn bytes(&self) -> Span {
        let span = self.selector.span().unwrap_or(Span { from: 0, to: 0 });
        Span { from: span.from * self.unit, to: span.to * self.unit }
    }
}

fn first(inside: &str) -> &str {
    inside.split(',').next().unwrap_or_default()
}

/// A selector as it is written, and where.
struct At<'a> {
    text: &'a str,
    key: &'a str,
    place: Place,
}

impl<'a> At<'a> {
    fn worded(&self, words: &str, why: &str) -> Refused {
        let Self { text, key, place } = *self;
        Refused::worded(place, format!("{words}: {text}"), format!("`{key}={text}`: {why}"))
    }

    fn refuse(&self, why: &str) -> Refused {
        Refused::new(self.place, format!("`{}={}`: {why}", self.key, self.text))
    }

    /// Returns the letter, and what stands between the brackets.
    fn parts(&self) -> Result<(char, &'a str), Refused> {
        let why = if self.text.contains(char::is_whitespace) {
            "selectors have no blanks: u(1,10)"
        } else {
            "write c(n), u(a,b), r(a,b), s(a,b) or h(a|b|weight,...)"
        };
        let unknown = || self.worded("unrecognized distribution", why);
        let letter = self.text.chars().next().filter(|letter| "curshCURSH".contains(*letter));
        let letter = letter.filter(char::is_ascii_lowercase).ok_or_else(unknown)?;
        let rest = self.text[1..].strip_prefix('(').ok_or_else(unknown)?;
        let inside = rest.strip_suffix(')').ok_or_else(unknown)?;
        Ok((letter, inside))
    }

    fn read(&self, letter: char, inside: &str) -> Result<Selector, Refused> {
        match letter {
            'c' => self.number("constant", first(inside)).map(Selector::Constant),
            'u' => {
                let open = inside.split_once(',').is_none_or(|(_, last)| last.is_empty());
                let span = match open {
                    true => Span {
                        from: self.number("uniform", inside.trim_end_matches(','))?,
                        to: NUMBER_MAX,
                    },
                    false => self.two("uniform", inside)?,
                };
                self.ordered("uniform", span).map(Selector::Uniform)
            }
            'r' => self.counted(self.two("iteration", inside)?, false),
            's' => {
                let span = self.two("sequential", inside)?;
                self.ordered("sequential", span).map(Selector::Sequential)
            }
            _ => self.histogram(inside),
        }
    }

    /// Returns `a-b`, where it is written so.
    fn dashed(&self) -> Result<Option<Span>, Refused> {
        let is_dashed = self.text.starts_with(|first: char| first.is_ascii_digit());
        match self.text.split_once('-').filter(|_| is_dashed) {
            None => Ok(None),
            Some((from, to)) => Ok(Some(Span {
                from: self.number("iteration", from)?,
                to: self.number("iteration", to)?,
            })),
        }
    }

    fn counted(&self, span: Span, is_scan: bool) -> Result<Selector, Refused> {
        match span {
            Span { from: 0, to: 0 } if is_scan => Ok(Selector::Nothing),
            span => self.ordered("iteration", span).map(Selector::Range),
        }
    }

    fn two(&self, law: &str, inside: &str) -> Result<Span, Refused> {
        let (from, to) = inside
            .split_once(',')
            .ok_or_else(|| self.illegal(law, "two numbers with a comma between them are needed"))?;
        Ok(Span { from: self.number(law, from)?, to: self.number(law, to)? })
    }

    fn illegal(&self, law: &str, why: &str) -> Refused {
        self.worded(&format!("illegal {law} distribution pattern"), why)
    }

    fn number(&self, law: &str, text: &str) -> Result<u64, Refused> {
        let is_digits = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        let number = text.parse().ok().filter(|number| is_digits && *number <= NUMBER_MAX);
        number.ok_or_else(|| {
            let shown: String = text.chars().take(40).collect();
            self.illegal(law, &format!("`{shown}` is not a whole number from 0 to {NUMBER_MAX}"))
        })
    }

    fn ordered(&self, law: &str, span: Span) -> Result<Span, Refused> {
        match (span.from, span.from <= span.to) {
            (0, _) => Err(self.illegal(law, "numbers begin at 1")),
            (_, false) => Err(self.illegal(law, "the first number is above the last")),
            (_, true) => Ok(span),
        }
    }

    fn histogram(&self, inside: &str) -> Result<Selector, Refused> {
        let law = "histogram";
        let mut buckets = Vec::new();
        for bucket in inside.split(',') {
            let form = || self.illegal(law, "a bucket is first|last|weight");
            let parts: Vec<&str> = bucket.split('|').collect();
            let &[from, to, weight] = &*parts else { return Err(form()) };
            let to = if to.is_empty() { NUMBER_MAX } else { self.number(law, to)? };
            let span = self.ordered(law, Span { from: self.number(law, from)?, to })?;
            let weight = self.number(law, weight)?;
            if weight == 0 {
                return Err(self.illegal(law, "a weight is at least 1"));
            }
            buckets.push(Bucket { span, weight });
            if buckets.len() > BUCKETS_MAX {
                return Err(self.illegal(law, "there are too many buckets"));
            }
        }
        buckets.sort_by_key(|bucket| bucket.span);
        Ok(Selector::Histogram(buckets))
    }
}

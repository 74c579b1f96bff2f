//! How many operations a second are wanted over the course of a stage: steps and ramps.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use plimsoll_model::parse_duration;

/// A rate over time: steps and ramps that follow one another. After the last of them its final
/// rate holds for ever.
///
/// Written `1000/s`, `100/s..5000/s over 2m` or `100/s for 30s, 200/s for 30s, 400/s`.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub struct RateProfile {
    /// At least one; only the last may lack a length.
    segments: Vec<Segment>,
}

/// A stretch in which the rate holds, or changes evenly.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Segment {
    /// Operations per second at its start.
    from: f64,
    /// Operations per second at its end.
    to: f64,
    /// `None`: for ever.
    length: Option<Duration>,
}

impl Segment {
    /// Returns how many operations the first `seconds` of it amount to: the area under a line,
    /// from · s + (to − from) / (2 · length) · s².
    fn count(&self, seconds: f64) -> f64 {
        self.from * seconds + self.bend() * seconds * seconds
    }

    /// Returns after how many seconds it has amounted to `count` operations.
    ///
    /// The positive root of bend · s² + from · s − count = 0, in the form 2c / (b + √(b² + 4ac)),
    /// which holds for a bend of 0 too and loses no digits where the bend is slight (W. H. Press
    /// et al., *Numerical Recipes*, 3rd ed. 2007, section 5.6). Down to the end of a falling ramp
    /// the root is real, because b² + 4ac is there the square of the final rate.
    fn seconds(&self, count: f64) -> f64 {
        let under_root = self.from * self.from + 4.0 * self.bend() * count;
        2.0 * count / (self.from + under_root.max(0.0).sqrt())
    }

    /// Returns half of what the rate gains in a second.
    fn bend(&self) -> f64 {
        self.length.map_or(0.0, |length| (self.to - self.from) / (2.0 * length.as_secs_f64()))
    }
}

impl RateProfile {
    /// The highest rate, in operations per second. More than a machine can issue is a slip of the
    /// pen.
    pub const MAX: f64 = 1e7;

    /// Returns a rate that does not change, in operations per second.
    pub fn constant(rate: f64) -> Result<Self, String> {
        let rate = possible(&format_args!("{rate}/s"), rate)?;
        Ok(Self { segments: vec![Segment { from: rate, to: rate, length: None }] })
    }

    /// Returns the operations per second at `at` after the start.
    pub fn rate_at(&self, at: Duration) -> f64 {
        let mut left = at;
        for segment in &self.segments {
            let Some(length) = segment.length.filter(|length| left >= *length) else {
                return segment.from + 2.0 * segment.bend() * left.as_secs_f64();
            };
            left -= length;
        }
        self.last().to
    }

    /// Returns its steps and ramps: from when on each goes, and how long; the last may go on for
    /// ever.
    pub fn steps(&self) -> impl Iterator<Item = (Duration, Option<Duration>)> {
        self.segments.iter().scan(Duration::ZERO, |start, segment| {
            let from = *start;
            *start = from.saturating_add(segment.length.unwrap_or(Duration::MAX));
            Some((from, segment.length))
        })
    }

    /// Returns the highest rate, in operations per second.
    pub fn peak(&self) -> f64 {
        self.segments.iter().fold(0.0, |peak, segment| segment.from.max(segment.to).max(peak))
    }

    /// Returns how many operations the rate amounts to within `time` of the start (Λ).
    pub fn count_within(&self, time: Duration) -> f64 {
        let (mut left, mut count) = (time, 0.0);
        for segment in &self.segments {
            let Some(length) = segment.length.filter(|length| left >= *length) else {
                return count + segment.count(left.as_secs_f64());
            };
            count += segment.count(length.as_secs_f64());
            left -= length;
        }
        count + self.last().to * left.as_secs_f64()
    }

    /// Returns when the rate has amounted to `count` operations (the inverse of Λ). What lies
    /// beyond all time is [`Duration::MAX`].
    pub fn time_of(&self, count: f64) -> Duration {
        let (mut left, mut start) = (count, Duration::ZERO);
        for segment in &self.segments {
            let whole = segment.length.map(|length| (length, segment.count(length.as_secs_f64())));
            let Some((length, whole)) = whole.filter(|(_, whole)| left >= *whole) else {
                return after(start, segment.seconds(left));
            };
            left -= whole;
            start = start.saturating_add(length);
        }
        after(start, left / self.last().to)
    }

    fn last(&self) -> &Segment {
        self.segments.last().expect("a profile has a segment")
    }
}

fn after(start: Duration, seconds: f64) -> Duration {
    start.saturating_add(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

impl FromStr for RateProfile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let segments: Vec<Segment> = text.split(',').map(segment).collect::<Result<_, _>>()?;
        let (_, before) = segments.split_last().expect("splitting gives at least one part");
        if let Some(at) = before.iter().position(|segment| segment.length.is_none()) {
            let endless = text.split(',').nth(at).expect("it was read from there").trim();
            return Err(format!(
                "`{endless}` lacks a time such as `for 30s`, and only the last rate may"
            ));
        }
        Ok(Self { segments })
    }
}

/// Reads `A/s`, `A/s for D` or `A/s..B/s over D`.
fn segment(text: &str) -> Result<Segment, String> {
    let text = text.trim();
    let (rates, length) = match split_word(text, " over ") {
        Some((rates, length)) => (rates, Some(("over", length))),
        None => match split_word(text, " for ") {
            Some((rate, length)) => (rate, Some(("for", length))),
            None => (text, None),
        },
    };
    let ramp = rates.split_once("..");
    match (ramp.is_some(), length) {
        (true, Some(("over", _))) | (false, None | Some(("for", _))) => {}
        (true, _) => return Err(format!("`{text}`: a ramp needs a time such as `over 2m`")),
        (false, _) => {
            return Err(format!("`{text}`: `over` is for ramps such as 1/s..9/s over 2m"));
        }
    }
    let (from, to) = ramp.unwrap_or((rates, rates));
    let length = length.map(|(_, time)| match parse_duration(time) {
        Ok(Duration::ZERO) => Err(format!("`{text}`: the time must be above 0")),
        Ok(length) => Ok(length),
        Err(error) => Err(format!("`{text}`: {error}")),
    });
    Ok(Segment { from: rate(from)?, to: rate(to)?, length: length.transpose()? })
}

fn split_word<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    text.split_once(word).map(|(left, right)| (left.trim(), right.trim()))
}

/// Reads `1000/s`, `2.5/s` or `1k/s`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let Some(number) = text.strip_suffix("/s") else {
        let instead = text.parse::<f64>().map_or(String::new(), |_| format!("; write `{text}/s`"));
        return Err(format!("`{text}` is not a rate such as 1000/s{instead}"));
    };
    let (number, thousands) = match number.strip_suffix('k') {
        Some(number) => (number, 1e3),
        None => (number, 1.0),
    };
    let Ok(rate) = number.parse::<f64>().map(|number| number * thousands) else {
        return Err(format!("`{text}` is not a rate such as 1000/s"));
    };
    possible(&text, rate)
}

/// Refuses a rate that no schedule may have.
fn possible(text: &dyn fmt::Display, rate: f64) -> Result<f64, String> {
    if rate.is_nan() || rate <= 0.0 {
        return Err(format!("`{text}`: a rate must be above 0"));
    }
    if rate > RateProfile::MAX {
        return Err(format!("`{text}`: a rate must be at most {}/s", RateProfile::MAX));
    }
    Ok(rate)
}

impl fmt::Display for RateProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Segment { from, to, length }) in self.segments.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            match length {
                None => write!(f, "{from}/s")?,
                Some(length) if from == to => write!(f, "{from}/s for {}", in_units(*length))?,
                Some(length) => write!(f, "{from}/s..{to}/s over {}", in_units(*length))?,
            }
        }
        Ok(())
    }
}

/// Writes a time in the largest unit that it is a whole number of.
pub(crate) fn in_units(time: Duration) -> String {
    const UNITS: [(&str, u128); 6] = [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    let ns = time.as_nanos();
    let (unit, length) = UNITS
        .into_iter()
        .find(|(_, length)| ns.is_multiple_of(*length))
        .expect("all are whole in ns");
    format!("{}{unit}", ns / length)
}

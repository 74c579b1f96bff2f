//! Rules as they are written: when a stage may end, and what a search asks for.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use plimsoll_model::{OpKind, parse_duration};

use super::units::{Percent, Time, written};
use crate::Precision;

/// warp's window and share, where a rule says none.
const STEADY_DEFAULT: (Duration, f64) = (Duration::from_secs(15), 7.5);

/// Ends a stage before its time is up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UntilSpec {
    /// `steady(15s, 7.5%)`: of the time so far cut into 25 equal parts, the last 7 together are
    /// longer than the window, and their throughput differs from that of the last by no more than
    /// the share.
    Steady {
        /// The window.
        window: Duration,
        /// The share, in percent.
        percent: f64,
    },
    /// `ci(p99)<=5%`: the half width of the figure's 95 % confidence interval is at most that share
    /// of it.
    Known(Precision),
}

/// What a search asks of each probe: `p99<=20ms`, `errors<=0.1%`, `get.p99.9<=1s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SloSpec {
    /// Which operations it is about; `None`: all.
    pub kind: Option<OpKind>,
    /// What may be missed by how many of them.
    pub of: SloOf,
}

/// What a condition is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SloOf {
    /// So much of the latency's distribution is at most that.
    Latency {
        /// The percentile.
        percent: f64,
        /// The most that it may be.
        most: Duration,
    },
    /// So many operations may fail.
    Errors {
        /// Out of a hundred.
        percent: f64,
    },
}

written!(UntilSpec, "a rule such as ci(p99)<=5%, steady or steady(15s, 7.5%)", "ci(p99)<=5%");
written!(SloSpec, "a condition such as p99<=20ms or errors<=0.1%", "p99<=20ms");

impl FromStr for UntilSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(rest) = text.trim().strip_prefix("steady") else {
            return text.parse().map(Self::Known);
        };
        let (window, percent) = STEADY_DEFAULT;
        if rest.trim().is_empty() {
            return Ok(Self::Steady { window, percent });
        }
        let inside = rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let inside = inside.ok_or("its window and share stand in brackets")?;
        let (window, percent) = inside.split_once(',').ok_or("it needs a window and a share")?;
        let window: Time = window.parse()?;
        let percent: Percent = percent.parse()?;
        if window.0.is_zero() || percent.0 <= 0.0 {
            return Err("its window and share must be above 0".to_owned());
        }
        Ok(Self::Steady { window: window.0, percent: percent.0 })
    }
}

impl fmt::Display for UntilSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steady { window, percent } if (*window, *percent) == STEADY_DEFAULT => {
                f.write_str("steady")
            }
            Self::Steady { window, percent } => {
                write!(f, "steady({}, {}%)", Time(*window), percent)
            }
            Self::Known(precision) => precision.fmt(f),
        }
    }
}

/// The highest percentile that a condition may be about: what lies above it is to be seen.
const PERCENTILE_MAX: f64 = 99.999;

impl SloSpec {
    /// Returns the share of operations that may miss it, above 0 and below 1.
    pub fn share_max(&self) -> f64 {
        match self.of {
            SloOf::Latency { percent, .. } => 1.0 - percent / 100.0,
            SloOf::Errors { percent } => percent / 100.0,
        }
    }
}

impl FromStr for SloSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (figure, most) = text.split_once("<=").ok_or("it has no `<=`")?;
        let (figure, most) = (figure.trim(), most.trim());
        let is_figure = |name: &str| name == "errors" || percentile(name).is_some();
        // `p99.9` has a dot of its own.
        let (kind, figure) = match figure.split_once('.') {
            Some((kind, of_kind)) if !is_figure(figure) => (Some(kind), of_kind),
            _ => (None, figure),
        };
        if figure == "mean" {
            return Err(
                "a mean does not show how many operations were slow; use a percentile such \
            as p99"
                    .to_owned(),
            );
        }
        if !is_figure(figure) {
            return Err(format!(
                "unknown figure `{figure}`; use a percentile of the latency, such as p99 or \
                p99.9, or errors"
            ));
        }
        let kind = kind.map(|kind| {
            let unknown = || format!("unknown operation `{kind}`; use one such as get or put");
            OpKind::from_name(&kind.to_ascii_uppercase()).ok_or_else(unknown)
        });
        let kind = kind.transpose()?;
        let Some(percent) = percentile(figure) else {
            let share: Percent = most.parse()?;
            return match most.ends_with('%') && share.0 > 0.0 && share.0 < 100.0 {
                true => Ok(Self { kind, of: SloOf::Errors { percent: share.0 } }),
                false => {
                    Err("the share of errors must be above 0% and below 100%, such as 0.1%"
                        .to_owned())
                }
            };
        };
        parse_duration(most).map_err(|error| error.to_string())?;
        let most: Time = most.parse()?;
        match most.0.is_zero() {
            true => Err("the time must be above 0".to_owned()),
            false => Ok(Self { kind, of: SloOf::Latency { percent, most: most.0 } }),
        }
    }
}

/// Returns the percentile that is called `p99` or `p99.9`.
fn percentile(name: &str) -> Option<f64> {
    let digits = name.strip_prefix('p')?;
    let is_plain = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let percent: f64 = digits.parse().ok().filter(|_| is_plain)?;
    (percent > 0.0 && percent <= PERCENTILE_MAX).then_some(percent)
}

impl fmt::Display for SloSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = self.kind {
            write!(f, "{}.", kind.name().to_ascii_lowercase())?;
        }
        match self.of {
            SloOf::Latency { percent, most } => write!(f, "p{percent}<={}", Time(most)),
            SloOf::Errors { percent } => write!(f, "errors<={percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_and_written() {
        for text in ["steady", "steady(10s, 5%)", "ci(p99)<=5%", "ci(rate)<=0.5%"] {
            assert_eq!(text.parse::<UntilSpec>().unwrap().to_string(), text);
        }
        assert_eq!("steady(15s,7.5%)".parse::<UntilSpec>().unwrap().to_string(), "steady");
        for text in
            ["p99<=20ms", "errors<=0.1%", "p99.9<=1s", "get.p99.99<=250us", "put.errors<=1%"]
        {
            assert_eq!(text.parse::<SloSpec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in ["steady(", "steady(0s, 5%)", "steady(5s)", "p99<=5%", ""] {
            assert!(text.parse::<UntilSpec>().is_err(), "{text}");
        }
        let slos = [
            "p99",
            "rate<=5ms",
            "p99<=0",
            "errors<=5",
            "errors<=200%",
            "p99<=x",
            "mean<=250us",
            "p100<=1s",
            "p0<=1s",
            "p-1<=1s",
            "p1e1<=1s",
            "pNaN<=1s",
            "errors<=0%",
            "errors<=nan%",
            "fetch.p99<=1s",
            "get.mean<=1s",
            ".p99<=1s",
            "p99<=-1s",
        ];
        for text in slos {
            assert!(text.parse::<SloSpec>().is_err(), "{text}");
        }
    }
}

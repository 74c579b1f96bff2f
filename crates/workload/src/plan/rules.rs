//! Rules as they are written: when a stage may end, and what a search asks for.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use plimsoll_model::parse_duration;

use super::units::{Percent, Time, written};
use crate::{Metric, Precision};

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

/// What a search asks of each probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SloSpec {
    /// `p99<=20ms`: a figure of the latency is at most that.
    Latency {
        /// The figure: the mean or a percentile.
        metric: Metric,
        /// The most that it may be.
        most: Duration,
    },
    /// `errors<=0.1%`: so many operations may fail.
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

impl SloSpec {
    const METRICS: [Metric; 5] =
        [Metric::Mean, Metric::P50, Metric::P90, Metric::P99, Metric::P99_9];
}

impl FromStr for SloSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (figure, most) = text.split_once("<=").ok_or("it has no `<=`")?;
        let (figure, most) = (figure.trim(), most.trim());
        if figure == "errors" {
            let share: Percent = most.parse()?;
            return match most.ends_with('%') && share.0 <= 100.0 {
                true => Ok(Self::Errors { percent: share.0 }),
                false => Err("the share of errors is at most 100%".to_owned()),
            };
        }
        let Some(metric) = Self::METRICS.into_iter().find(|metric| metric.name() == figure) else {
            let names = Self::METRICS.map(Metric::name).join(", ");
            return Err(format!("there is no figure `{figure}`; there are {names} and errors"));
        };
        parse_duration(most).map_err(|error| error.to_string())?;
        let most: Time = most.parse()?;
        match most.0.is_zero() {
            true => Err("the time must be above 0".to_owned()),
            false => Ok(Self::Latency { metric, most: most.0 }),
        }
    }
}

impl fmt::Display for SloSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latency { metric, most } => write!(f, "{}<={}", metric.name(), Time(*most)),
            Self::Errors { percent } => write!(f, "errors<={percent}%"),
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
        for text in ["p99<=20ms", "errors<=0.1%", "p99.9<=1s", "mean<=250us"] {
            assert_eq!(text.parse::<SloSpec>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in ["steady(", "steady(0s, 5%)", "steady(5s)", "p99<=5%", ""] {
            assert!(text.parse::<UntilSpec>().is_err(), "{text}");
        }
        for text in ["p99", "rate<=5ms", "p99<=0", "errors<=5", "errors<=200%", "p99<=x"] {
            assert!(text.parse::<SloSpec>().is_err(), "{text}");
        }
    }
}

//! Rules that end the measured stage before its time is up.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Ends the measured stage when it holds.
#[derive(Clone, Debug, PartialEq)]
pub enum StopRule {
    /// The throughput is steady: the range so far cut into 25 equal parts, the last 7 are alike.
    Steady {
        /// The last 7 parts together must be longer than this.
        window: Duration,
        /// By how much of the last part, in percent, the six before it may differ from it.
        percent: f64,
    },
    /// All of these figures are known well enough.
    Until(Vec<Precision>),
}

/// A figure of the run and how well it is to be known, written `ci(p99)<=5%`: the half width of its
/// 95 % confidence interval is at most 5 % of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// The figure.
    pub metric: Metric,
    /// The half width allowed, in percent of the figure.
    pub percent: f64,
}

/// A figure that a stop rule can ask for. Latencies are those of the successes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Successful operations per second.
    Rate,
    /// Bytes per second.
    Throughput,
    /// The mean latency.
    Mean,
    /// The median latency.
    P50,
    /// The 90th percentile.
    P90,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P99_9,
}

impl Metric {
    /// Every metric.
    pub const ALL: [Self; 7] =
        [Self::Rate, Self::Throughput, Self::Mean, Self::P50, Self::P90, Self::P99, Self::P99_9];

    /// Returns the name it has in a rule.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Throughput => "throughput",
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P99_9 => "p99.9",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ci({})<={}%", self.metric.name(), self.percent)
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let parts = compact
            .strip_prefix("ci(")
            .and_then(|rest| rest.split_once(")<="))
            .and_then(|(name, rest)| Some((name, rest.strip_suffix('%')?)));
        let Some((name, number)) = parts else {
            return Err(format!("`{text}` is not a rule such as ci(p99)<=5%"));
        };
        let Some(metric) = Metric::from_name(name) else {
            let names = Metric::ALL.map(Metric::name).join(", ");
            return Err(format!("`{text}`: unknown metric `{name}`; the metrics are {names}"));
        };
        match number.parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Self { metric, percent }),
            _ => Err(format!("`{text}`: `{number}` is not above 0 and at most 100 percent")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_read_and_written() {
        for metric in Metric::ALL {
            let rule = Precision { metric, percent: 2.5 };
            assert_eq!(rule.to_string().parse(), Ok(rule));
        }
        let rule: Precision = " ci( p99.9 ) <= 5% ".parse().unwrap();
        assert_eq!(rule, Precision { metric: Metric::P99_9, percent: 5.0 });
        assert_eq!(rule.to_string(), "ci(p99.9)<=5%");
    }

    #[test]
    fn a_refusal_says_what_there_is() {
        for (text, part) in [
            ("p99<=5%", "`p99<=5%` is not a rule such as ci(p99)<=5%"),
            ("ci(p99)<5%", "is not a rule"),
            ("ci(p99)<=5", "is not a rule"),
            (
                "ci(foo)<=5%",
                "unknown metric `foo`; the metrics are rate, throughput, mean, p50, p90, p99, p99.9",
            ),
            ("ci(p99)<=0%", "`0` is not above 0"),
            ("ci(p99)<=-1%", "`-1` is not above 0"),
            ("ci(p99)<=nan%", "`nan` is not above 0"),
            ("ci(p99)<=101%", "at most 100"),
        ] {
            let refused = text.parse::<Precision>().unwrap_err();
            assert!(refused.contains(part), "{refused}");
        }
    }
}

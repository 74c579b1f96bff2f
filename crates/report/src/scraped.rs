//! What a report shows of a store's own metrics, which were read while the run lasted.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Report;
use crate::format::{count, plural};
use crate::table::{Paint, Tone, elided, harmless, paragraph};

/// How much of a metric's name and labels stands in a line of text.
const NAME_CHARS_MAX: usize = 100;

/// What the store told of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScrapedReport {
    /// The pages that were read.
    pub pages: Vec<ScrapedPageReport>,
    /// Those metrics that are shown: of which something moved while the stages lasted.
    pub metrics: Vec<ScrapedMetric>,
    /// How many series moved that are not shown, as there are too many.
    pub series_moved_not_shown_count: u64,
    /// How many series stood still.
    pub series_still_count: u64,
}

/// A page that was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScrapedPageReport {
    /// Its address, without secrets.
    pub url: String,
    /// How often it was to be read.
    pub interval_ns: u64,
    /// How often it was read or tried to be.
    pub scrapes_count: u64,
    /// How often it could not be read.
    pub failed_count: u64,
    /// Why, the first time; null where it could always be read.
    pub first_failure: Option<String>,
    /// How many series of it were kept.
    pub series_count: u64,
    /// How many were left out of a reading at most, as there were too many.
    pub left_out_count: u64,
}

/// A metric with those of its series that are shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScrapedMetric {
    /// Its name.
    pub name: String,
    /// Whether values are what a counter grew by per second, and not what was read.
    pub is_rate: bool,
    /// Its series, the highest mean first.
    pub series: Vec<ScrapedValues>,
    /// How many of its series moved that are not shown.
    pub series_not_shown_count: u64,
}

/// What one series was while the stages lasted.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScrapedValues {
    /// The page, an index into `pages`.
    pub page_index: u16,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The least of its values.
    pub min: f64,
    /// Their mean: of a counter what it grew by in all per second, of a gauge that of its readings.
    pub mean: f64,
    /// The greatest.
    pub max: f64,
    /// Seconds since the first stage began, and what the value was then: halfway between request
    /// and answer, and a rate halfway between two readings.
    #[serde(skip)]
    pub points: Vec<(f64, Option<f64>)>,
}

impl ScrapedPageReport {
    /// Returns what came of it in one line.
    pub fn line(&self) -> String {
        let mut line = format!(
            "{}, read {}, {} kept",
            self.url,
            plural(self.scrapes_count, "time"),
            match self.series_count {
                1 => "1 series".to_owned(),
                n => format!("{} series", count(n)),
            }
        );
        if self.left_out_count > 0 {
            line += &format!(", {} left out", count(self.left_out_count));
        }
        if let Some(failure) = &self.first_failure {
            line += &format!(", {} failed: {failure}", count(self.failed_count));
        }
        line
    }
}

impl ScrapedMetric {
    /// Returns what its series are told apart by: the labels in which they differ.
    pub fn labels(&self, of: &ScrapedValues, pages: &[ScrapedPageReport]) -> String {
        let differs = |label: &String| {
            self.series.iter().any(|other| other.labels.get(label) != of.labels.get(label))
        };
        let labels = of.labels.iter().filter(|(label, _)| differs(label));
        let mut labels: Vec<String> =
            labels.map(|(name, value)| format!("{name}={value}")).collect();
        if self.series.iter().any(|other| other.page_index != of.page_index)
            && let Some(page) = pages.get(usize::from(of.page_index))
        {
            labels.push(page.url.clone());
        }
        labels.join(", ")
    }
}

impl ScrapedReport {
    /// Says what is not shown; `None` where everything is.
    pub fn left_out(&self) -> Option<String> {
        let [moved, still] = [self.series_moved_not_shown_count, self.series_still_count];
        let moved = (moved > 0).then(|| format!("{} more series moved", count(moved)));
        let still = (still > 0).then(|| format!("{} series stood still", count(still)));
        let all: Vec<String> = moved.into_iter().chain(still).collect();
        (!all.is_empty()).then(|| format!("{}: scraped.jsonl has them", all.join(", ")))
    }
}

/// Returns what the store told of itself as text: a line for each series that is shown.
pub(crate) fn text(report: &Report, width: usize, paint: Paint) -> String {
    let Some(scraped) = &report.scraped else { return String::new() };
    let mut out = format!("\n{}\n", paint.apply(Tone::Bold, "the store's own metrics"));
    for metric in &scraped.metrics {
        let unit = if metric.is_rate { "/s" } else { "" };
        for of in &metric.series {
            let labels = metric.labels(of, &scraped.pages);
            let labels = if labels.is_empty() { labels } else { format!("{{{labels}}}") };
            let name = elided(&harmless(&format!("{}{labels}", metric.name)), NAME_CHARS_MAX);
            let [min, mean, max] = [of.min, of.mean, of.max].map(figure);
            out += &format!("  {name}: mean {mean}{unit}, {min} to {max}{unit}\n");
        }
    }
    let pages = scraped.pages.iter().map(ScrapedPageReport::line);
    for line in pages.chain(scraped.left_out()) {
        paragraph("  ", &harmless(&line), width, &mut out);
    }
    out
}

/// Returns a number in the digits that matter.
fn figure(value: f64) -> String {
    match value.abs() {
        of if (100.0..1e15).contains(&of) => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", count(of.round() as u64))
        }
        of if (1.0..100.0).contains(&of) || of == 0.0 => format!("{value:.2}"),
        of if (1e-9..1.0).contains(&of) => {
            let decimals = 2 - of.log10().floor() as i32;
            format!("{value:.*}", decimals.unsigned_abs() as usize)
        }
        _ => format!("{value:.3e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::figure;

    #[test]
    fn figures_are_plain_numbers() {
        for (value, shown) in [
            (0.0, "0.00"),
            (0.75, "0.750"),
            (-0.75, "-0.750"),
            (0.000_123_4, "0.000123"),
            (1.5, "1.50"),
            (-1234.4, "-1,234"),
            (1e-12, "1.000e-12"),
            (1.8e18, "1.800e18"),
        ] {
            assert_eq!(figure(value), shown);
        }
    }
}

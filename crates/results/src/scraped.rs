//! What a store told of itself while a run lasted: which of it is shown, and its values over the
//! time of the stages.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_record::Scraped;
use plimsoll_record::schema::Manifest;
use plimsoll_report::{
    ScrapedMetric, ScrapedPageReport, ScrapedReport, ScrapedValues, StageReport,
};

use crate::open::{Origin, Record};

/// Metrics that are shown.
const METRICS_MAX: usize = 12;
/// Series of a metric that are shown.
const SERIES_MAX: usize = 6;
/// Metrics with one of these words in their name tell what a store does; they are shown first.
const OF_THE_WORK: [&str; 12] = [
    "request",
    "requests",
    "error",
    "errors",
    "traffic",
    "ttfb",
    "latency",
    "queue",
    "waiting",
    "inflight",
    "throttled",
    "retries",
];
/// Those with one of these are about the process that was asked; they are shown where there is
/// room.
const OF_THE_PROCESS: [&str; 9] =
    ["go", "process", "promhttp", "prometheus", "scrape", "memory", "descriptor", "fds", "gc"];

impl Record {
    /// Returns what the store told of itself, and what is wrong with the record of that.
    pub(crate) fn scraped(
        &self,
        manifest: &Manifest,
        stages: &[StageReport],
        first_ns: u64,
    ) -> (Option<ScrapedReport>, Option<String>) {
        let Origin::Run { directory, .. } = &self.origin else { return (None, None) };
        if manifest.scraped.is_empty() {
            return (None, None);
        }
        let (read, lost) = match directory.read_scraped() {
            Ok(Some(read)) => (Some(read), None),
            Ok(None) => (None, Some("scraped.jsonl is missing".to_owned())),
            Err(error) => (None, Some(error.to_string())),
        };
        (Some(scraped(manifest, read.as_ref(), stages, first_ns)), lost)
    }
}

/// Returns what is shown of it.
fn scraped(
    manifest: &Manifest,
    scraped: Option<&Scraped>,
    stages: &[StageReport],
    first_ns: u64,
) -> ScrapedReport {
    let nothing = Scraped::default();
    let scraped = scraped.unwrap_or(&nothing);
    let until = stages.iter().map(|stage| stage.started_after + stage.took).max();
    let from = stages.iter().map(|stage| stage.started_after).min();
    let window = (from.unwrap_or_default(), until.unwrap_or_default());
    Read { scraped, first_ns, window }.shown(pages(manifest, scraped))
}

fn pages(manifest: &Manifest, scraped: &Scraped) -> Vec<ScrapedPageReport> {
    let page = |(index, page): (usize, &plimsoll_record::schema::ScrapedPage)| {
        let of_page = || scraped.scrapes.iter().filter(|of| usize::from(of.source) == index);
        let failed = || of_page().filter_map(|of| of.failure.as_ref());
        let series = scraped.series.iter().filter(|of| usize::from(of.source) == index);
        ScrapedPageReport {
            url: page.url.clone(),
            interval_ns: page.interval_ns,
            scrapes_count: of_page().count() as u64,
            failed_count: failed().count() as u64,
            first_failure: failed().next().cloned(),
            series_count: series.count() as u64,
            left_out_count: of_page().map(|of| of.left_out_count).max().unwrap_or_default(),
        }
    };
    manifest.scraped.iter().enumerate().map(page).collect()
}

/// Returns how late a metric is shown by its name.
fn rank(name: &str) -> u8 {
    let has = |words: &[&str]| name.split('_').any(|word| words.contains(&word));
    match (has(&OF_THE_WORK), has(&OF_THE_PROCESS)) {
        (true, _) => 0,
        (false, false) => 1,
        (false, true) => 2,
    }
}

/// By series: in which readings its value changed, and to what.
type Changes = Vec<Vec<(usize, Option<f64>)>>;

fn changes(scraped: &Scraped) -> Changes {
    let mut changes: Changes = vec![Vec::new(); scraped.series.len()];
    for (at, scrape) in scraped.scrapes.iter().enumerate() {
        for (series, value) in &scrape.values {
            changes[*series as usize].push((at, *value));
        }
    }
    changes
}

/// A series that moved while the stages lasted.
struct Moving {
    series: u32,
    min: f64,
    mean: f64,
    max: f64,
    /// In how many tenths of the readings it moved.
    tenths_moved: u8,
}

/// What was read, and which time is looked at.
#[derive(Clone, Copy)]
struct Read<'a> {
    scraped: &'a Scraped,
    /// When the first stage began, since the run's epoch.
    first_ns: u64,
    /// From the start of the first stage.
    window: (Duration, Duration),
}

impl Read<'_> {
    /// Returns what is shown of it: of the metrics that moved those that tell most.
    fn shown(&self, pages: Vec<ScrapedPageReport>) -> ScrapedReport {
        let changes = changes(self.scraped);
        let (mut metrics, mut still) = (BTreeMap::<&str, Vec<Moving>>::new(), 0);
        for (series, changes) in self.scraped.series.iter().zip(&changes) {
            match self.moving(series.series, changes) {
                Some(moving) => metrics.entry(&series.name).or_default().push(moving),
                None => still += 1,
            }
        }
        let moved: usize = metrics.values().map(Vec::len).sum();
        let mut metrics: Vec<(&str, Vec<Moving>)> = metrics.into_iter().collect();
        // Those that move all the time tell more than those that moved once.
        let busiest = |series: &[Moving]| series.iter().map(|of| of.tenths_moved).max();
        metrics.sort_by_key(|(name, series)| (rank(name), Reverse(busiest(series)), *name));
        metrics.truncate(METRICS_MAX);
        let metric = |(name, all)| self.metric(name, all, &changes);
        let metrics: Vec<ScrapedMetric> = metrics.into_iter().map(metric).collect();
        let shown: usize = metrics.iter().map(|metric| metric.series.len()).sum();
        ScrapedReport {
            pages,
            metrics,
            series_moved_not_shown_count: (moved - shown) as u64,
            series_still_count: still,
        }
    }

    /// Returns a metric with the highest of its series.
    fn metric(&self, name: &str, mut all: Vec<Moving>, changes: &Changes) -> ScrapedMetric {
        all.sort_by(|a, b| b.mean.total_cmp(&a.mean).then(a.series.cmp(&b.series)));
        let count = all.len();
        all.truncate(SERIES_MAX);
        let is_counter = |of: &Moving| self.scraped.series[of.series as usize].is_counter;
        ScrapedMetric {
            name: name.to_owned(),
            is_rate: all.first().is_some_and(is_counter),
            series_not_shown_count: (count - all.len()) as u64,
            series: all.iter().map(|of| self.values(of, &changes[of.series as usize])).collect(),
        }
    }

    /// Calls `visit` with every point of a series: seconds since the first stage began, the value,
    /// of a counter what it grew by per second, `None` where that is not known, and how much of the
    /// mean it is: of a counter the seconds in which it grew by that, so that readings in haste do
    /// not count more than they tell.
    fn points(
        &self,
        series: u32,
        changes: &[(usize, Option<f64>)],
        mut visit: impl FnMut(f64, Option<f64>, f64),
    ) {
        let of = &self.scraped.series[series as usize];
        let (mut changes, mut now) = (changes.iter().peekable(), None);
        let mut before: Option<(f64, f64)> = None;
        let scrapes = self.scraped.scrapes.iter().enumerate();
        for (index, scrape) in scrapes.filter(|(_, scrape)| scrape.source == of.source) {
            if let Some((_, value)) = changes.next_if(|(at, _)| *at == index) {
                now = *value;
            }
            // The store read its counters some time between request and answer.
            let middle = scrape.start_ns as f64 / 2.0 + scrape.end_ns as f64 / 2.0;
            let at = (middle - self.first_ns as f64) / 1e9;
            let value = now.filter(|_| scrape.failure.is_none());
            if !of.is_counter {
                visit(at, value, 1.0);
                continue;
            }
            match (before, value) {
                // One that has become less was begun anew.
                (Some((then, old)), Some(new)) if at > then => {
                    let rate = (new >= old).then(|| (new - old) / (at - then));
                    visit(then + (at - then) / 2.0, rate, at - then);
                }
                (Some(_), None) => visit(at, None, 0.0),
                _ => {}
            }
            before = value.map(|value| (at, value));
        }
    }

    fn is_inside(&self, at: f64) -> bool {
        (self.window.0.as_secs_f64()..=self.window.1.as_secs_f64()).contains(&at)
    }

    /// Returns how a series moved; `None` where it did not, or where too little of it is known.
    fn moving(&self, series: u32, changes: &[(usize, Option<f64>)]) -> Option<Moving> {
        let is_counter = self.scraped.series[series as usize].is_counter;
        let (mut count, mut moved, mut sum, mut weights) = (0_u64, 0_u64, 0.0, 0.0);
        let (mut min, mut max, mut last) = (f64::INFINITY, f64::NEG_INFINITY, None);
        self.points(series, changes, |at, value, weight| {
            let Some(value) = value.filter(|_| self.is_inside(at)) else { return };
            let has_moved = match is_counter {
                true => value > 0.0,
                false => last.is_some_and(|last: f64| last != value),
            };
            last = Some(value);
            (count, moved) = (count + 1, moved + u64::from(has_moved));
            (sum, weights) = (sum + value * weight, weights + weight);
            (min, max) = (min.min(value), max.max(value));
        });
        let mean = sum / weights;
        let tenths_moved = (moved * 10).checked_div(count)? as u8;
        (moved > 0 && mean.is_finite()).then_some(Moving { series, min, mean, max, tenths_moved })
    }

    fn values(&self, of: &Moving, changes: &[(usize, Option<f64>)]) -> ScrapedValues {
        let mut points = Vec::new();
        self.points(of.series, changes, |at, value, _| {
            if self.is_inside(at) {
                points.push((at, value));
            }
        });
        let series = &self.scraped.series[of.series as usize];
        ScrapedValues {
            page_index: series.source,
            labels: series.labels.clone(),
            min: of.min,
            mean: of.mean,
            max: of.max,
            points,
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_record::{ScrapeRead, ScrapedSeries};

    use super::*;

    fn series(series: u32, name: &str, is_counter: bool) -> ScrapedSeries {
        ScrapedSeries {
            series,
            source: 0,
            name: name.to_owned(),
            labels: BTreeMap::new(),
            is_counter,
        }
    }

    /// A reading at a second that took 200 ms; `None` is one that failed.
    fn scrape(second: u64, values: Option<Vec<(u32, Option<f64>)>>) -> ScrapeRead {
        ScrapeRead {
            source: 0,
            start_ns: second * 1_000_000_000 - 100_000_000,
            end_ns: second * 1_000_000_000 + 100_000_000,
            failure: values.is_none().then(|| "it hung".to_owned()),
            values: values.unwrap_or_default(),
            left_out_count: 0,
            lines_unread_count: 0,
        }
    }

    fn points(scraped: &Scraped, number: u32) -> Vec<(f64, Option<f64>)> {
        let window = (Duration::ZERO, Duration::from_secs(100));
        let read = Read { scraped, first_ns: 1_000_000_000, window };
        let mut points = Vec::new();
        read.points(number, &changes(scraped)[number as usize], |at, value, _| {
            points.push((at, value));
        });
        points
    }

    #[test]
    fn a_counter_is_a_rate_between_readings_and_a_gauge_what_was_read() {
        let scraped = Scraped {
            series: vec![series(0, "a_total", true), series(1, "b", false)],
            scrapes: vec![
                scrape(2, Some(vec![(0, Some(10.0)), (1, Some(5.0))])),
                scrape(4, Some(vec![(0, Some(30.0))])),
                scrape(6, None),
                // Begun anew while it could not be asked.
                scrape(8, Some(vec![(0, Some(4.0)), (1, None)])),
                scrape(10, Some(vec![(0, Some(1.0)), (1, Some(7.0))])),
                scrape(12, Some(vec![(0, Some(2.0))])),
            ],
            lines_unread_count: 0,
        };
        // Since the first stage began, a second after the epoch.
        let rates = [(2.0, Some(10.0)), (5.0, None), (8.0, None), (10.0, Some(0.5))];
        assert_eq!(points(&scraped, 0), rates);
        let gauge = [1.0, 3.0, 5.0, 7.0, 9.0, 11.0].into_iter();
        let gauge = gauge.zip([Some(5.0), Some(5.0), None, None, Some(7.0), Some(7.0)]);
        assert_eq!(points(&scraped, 1), gauge.collect::<Vec<_>>());
    }

    #[test]
    fn a_mean_rate_is_growth_over_time_however_the_readings_lie() {
        let readings = [(2, 0.0), (12, 100.0), (13, 200.0)];
        let scrapes = readings.map(|(second, value)| scrape(second, Some(vec![(0, Some(value))])));
        let scraped = Scraped {
            series: vec![series(0, "a_total", true)],
            scrapes: scrapes.to_vec(),
            lines_unread_count: 0,
        };
        let window = (Duration::ZERO, Duration::from_secs(100));
        let read = Read { scraped: &scraped, first_ns: 0, window };
        let moving = read.moving(0, &changes(&scraped)[0]).unwrap();
        assert!((moving.mean - 200.0 / 11.0).abs() < 1e-9, "{}", moving.mean);
        assert_eq!((moving.min, moving.max), (10.0, 100.0));
    }

    #[test]
    fn what_moved_most_is_shown_and_the_rest_counted() {
        let names: Vec<String> = (0..20).map(|n| format!("m{n:02}")).collect();
        let mut all: Vec<ScrapedSeries> =
            (0..).zip(&names).map(|(number, name)| series(number, name, false)).collect();
        let more = [(20, "go_x"), (21, "still"), (22, "m_requests")];
        all.extend(more.map(|(number, name)| series(number, name, false)));
        let values = |step: u32| {
            let often = (0..23).filter(|n| *n != 21 || step == 0);
            // The last moves in every reading, the others in the second alone.
            let value = |n: u32| f64::from(if n == 19 { step } else { n + step.min(1) });
            Some(often.map(|n| (n, Some(value(n)))).collect())
        };
        let scraped = Scraped {
            series: all,
            scrapes: (0..4).map(|step| scrape(u64::from(step) + 2, values(step))).collect(),
            lines_unread_count: 0,
        };
        let window = (Duration::ZERO, Duration::from_secs(9));
        let read = Read { scraped: &scraped, first_ns: 0, window };
        let changes = changes(&scraped);
        let moving = |n: u32| read.moving(n, &changes[n as usize]);
        assert!(moving(21).is_none());
        assert_eq!(moving(19).map(|of| (of.min, of.max, of.tenths_moved)), Some((0.0, 3.0, 7)));
        assert_eq!(moving(3).map(|of| (of.min, of.max, of.tenths_moved)), Some((3.0, 4.0, 2)));
        let shown = read.shown(Vec::new());
        let expected = |n: usize| format!("m{n:02}");
        assert_eq!(shown.series_still_count, 1);
        assert_eq!(shown.series_moved_not_shown_count, 22 - METRICS_MAX as u64);
        let shown: Vec<String> = shown.metrics.into_iter().map(|metric| metric.name).collect();
        // The one that tells of the work, the one that moved most, and the others by name.
        assert_eq!(shown[..3], ["m_requests".to_owned(), expected(19), expected(0)]);
        assert!(!shown.contains(&"go_x".to_owned()) && shown.len() == METRICS_MAX);
        let outside = Read { window: (Duration::ZERO, Duration::from_secs(1)), ..read };
        assert!(outside.moving(19, &changes[19]).is_none(), "no stage ran then");
    }
}

//! Keeps what pages said: of each series the values that changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use plimsoll_foreign::prometheus::{PageSample, SeriesKind, read};
use plimsoll_model::{Glob, Moment};
use plimsoll_record::{ScrapeRead, ScrapedLine, ScrapedSeries, ScrapedWriter};

use crate::Tell;

/// Series that are kept of all pages together.
pub(super) const SERIES_MAX: usize = 2_000;
/// How long the name of a series or a label may be, and all labels of it together.
const TEXT_BYTES_MAX: usize = 2_000;

/// What a series is told apart by: its page, its name and its labels.
type Key = (u16, String, Vec<(String, String)>);

/// What is kept of all pages.
pub(super) struct Kept {
    writer: ScrapedWriter,
    matching: Vec<Glob>,
    tell: Tell,
    /// Numbers of series.
    numbers: HashMap<Key, u32>,
    /// Of each series the page and the value that it had last.
    last: Vec<(u16, Option<f64>)>,
    /// Pages of which a failure was told, and of which it was told that they tell too much.
    warned: BTreeSet<(u16, &'static str)>,
    /// Whether nothing more can be written.
    is_full: bool,
}

impl Kept {
    pub(super) fn new(writer: ScrapedWriter, matching: Vec<Glob>, tell: Tell) -> Self {
        Self {
            writer,
            matching,
            tell,
            numbers: HashMap::new(),
            last: Vec::new(),
            warned: BTreeSet::new(),
            is_full: false,
        }
    }

    /// Keeps what was read of a page, or why it was not read.
    pub(super) fn keep(
        &mut self,
        source: u16,
        shown: &str,
        (start, end): (Moment, Moment),
        read: Result<String, String>,
    ) {
        if self.is_full {
            return;
        }
        let mut scrape = ScrapeRead {
            source,
            start_ns: start.as_ns(),
            end_ns: end.as_ns(),
            values: Vec::new(),
            left_out_count: 0,
            lines_unread_count: 0,
            failure: None,
        };
        let mut lines = Vec::new();
        match read.and_then(|text| self.page(source, &text, &mut scrape, &mut lines)) {
            Ok(()) => {}
            Err(reason) => {
                self.warn(source, "failure", &format!("{shown}: {reason}"));
                scrape.failure = Some(reason);
            }
        }
        if scrape.left_out_count > 0 {
            let told = format!(
                "{shown}: more than {SERIES_MAX} series are told of, the rest is not kept; choose \
                 by --scrape-match"
            );
            self.warn(source, "too many", &told);
        }
        lines.push(ScrapedLine::Scrape(scrape));
        let reason = match self.writer.write(&lines) {
            Ok(true) => return,
            Ok(false) => "what is kept has grown too long".to_owned(),
            Err(error) => format!("it cannot be kept: {error}"),
        };
        self.is_full = true;
        self.warn(source, "full", &format!("{shown}: {reason}; nothing more is kept"));
    }

    fn page(
        &mut self,
        source: u16,
        text: &str,
        scrape: &mut ScrapeRead,
        lines: &mut Vec<ScrapedLine>,
    ) -> Result<(), String> {
        // MinIO calls the buckets of its distributions gauges: their label tells.
        let is_bucket = |name: &str, labels: &[(String, String)]| {
            name.ends_with("_bucket") || labels.iter().any(|(label, _)| label == "le")
        };
        let is_wanted = |name: &str, labels: &[(String, String)]| match self.matching.is_empty() {
            true => !is_bucket(name, labels),
            false => self.matching.iter().any(|glob| glob.matches(name)),
        };
        let page = read(text, SERIES_MAX, is_wanted);
        if page.samples.is_empty() && page.lines_unread_count > 0 {
            return Err("its answer holds no metrics in Prometheus's text".to_owned());
        }
        scrape.left_out_count = page.samples_left_out_count;
        scrape.lines_unread_count = page.lines_unread_count;
        let mut values = BTreeMap::new();
        for sample in page.samples {
            let value = Some(sample.value).filter(|value| value.is_finite());
            match self.number(source, sample, lines) {
                Some(number) => drop(values.insert(number, value)),
                None => scrape.left_out_count += 1,
            }
        }
        let of_source = self.last.iter_mut().enumerate().filter(|(_, (of, _))| *of == source);
        for (number, (_, last)) in of_source {
            let value = values.get(&(number as u32)).copied().flatten();
            if *last != value {
                scrape.values.push((number as u32, value));
                *last = value;
            }
        }
        Ok(())
    }

    /// Returns the number of a series, which is written down where it is new; `None` where there
    /// are too many, or its name is too long.
    fn number(
        &mut self,
        source: u16,
        sample: PageSample,
        lines: &mut Vec<ScrapedLine>,
    ) -> Option<u32> {
        let PageSample { name, labels, kind, .. } = sample;
        let length = |(name, value): &(String, String)| name.len() + value.len();
        if name.len() + labels.iter().map(length).sum::<usize>() > TEXT_BYTES_MAX {
            return None;
        }
        let key = (source, name, labels);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        if self.last.len() == SERIES_MAX {
            return None;
        }
        let number = self.last.len() as u32;
        let (_, name, labels) = key.clone();
        lines.push(ScrapedLine::Series(ScrapedSeries {
            series: number,
            source,
            name,
            labels: labels.into_iter().collect(),
            is_counter: kind != SeriesKind::Gauge,
        }));
        self.last.push((source, None));
        self.numbers.insert(key, number);
        Some(number)
    }

    /// Warns once for each page of the same.
    fn warn(&mut self, source: u16, what: &'static str, told: &str) {
        if self.warned.insert((source, what)) {
            let rest = "the run is not affected, and further failures are not reported";
            (self.tell)(&format!("--scrape: {told}; {rest}"));
        }
    }
}

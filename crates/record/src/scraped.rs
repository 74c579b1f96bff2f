//! What a store told of itself in Prometheus's text while a run lasted: a file of JSON lines beside
//! the op log, `docs/formats/scraped.md`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};

use serde::{Deserialize, Serialize};

use crate::{RecordError, RunDirectory};

/// What the file is called.
pub(crate) const SCRAPED_NAME: &str = "scraped.jsonl";
/// What its first line says it is.
const SCHEMA: &str = "plimsoll/scraped/1";
/// How long the file may grow; a run of a store that tells more goes on without.
const SCRAPED_BYTES_MAX: u64 = 128 << 20;

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum ScrapedLine {
    /// The first.
    Head {
        /// The version of this file: `plimsoll/scraped/1`.
        schema: String,
    },
    /// A series, before its first value.
    Series(ScrapedSeries),
    /// One reading of a page, or the failure to read it.
    Scrape(ScrapeRead),
}

/// A series that a store tells of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScrapedSeries {
    /// Its number, by which lines below name it: they are counted from 0.
    pub series: u32,
    /// The page it is from: an index into `scraped` of `run.json`.
    pub source: u16,
    /// The name of the metric.
    pub name: String,
    /// Its labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whether its values only grow, but for restarts.
    pub is_counter: bool,
}

/// One reading of a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScrapeRead {
    /// The page: an index into `scraped` of `run.json`.
    pub source: u16,
    /// When the request was begun, nanoseconds since the run's epoch. The store read its counters
    /// some time between this and `end_ns`.
    pub start_ns: u64,
    /// When the answer had come whole, or was given up.
    pub end_ns: u64,
    /// Numbers of series with their values, of those alone that differ from the reading before;
    /// null where a series was absent, or its value was infinite or no number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<(u32, Option<f64>)>,
    /// How many series were left out, as there were too many.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub left_out_count: u64,
    /// How many lines of the page could not be read.
    #[serde(default, skip_serializing_if = "crate::schema::is_zero")]
    pub lines_unread_count: u64,
    /// Why the page was not read; absent where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Writes the file while the run lasts.
#[derive(Debug)]
pub struct ScrapedWriter {
    file: BufWriter<File>,
    bytes_left: u64,
}

impl ScrapedWriter {
    /// Writes lines and hands them to the system together, so that a run which is killed keeps
    /// them; returns false where the file would grow too long, which then stays as it is.
    pub fn write(&mut self, lines: &[ScrapedLine]) -> io::Result<bool> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        let Some(left) = self.bytes_left.checked_sub(text.len() as u64) else {
            self.bytes_left = 0;
            return Ok(false);
        };
        self.bytes_left = left;
        self.file.write_all(&text)?;
        self.file.flush()?;
        Ok(true)
    }
}

/// What was read of the pages of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scraped {
    /// The series by their numbers.
    pub series: Vec<ScrapedSeries>,
    /// The readings in the order in which they ended.
    pub scrapes: Vec<ScrapeRead>,
    /// How many lines could not be made sense of; the last of a run that was killed may be one.
    pub lines_unread_count: u64,
}

impl RunDirectory {
    /// Begins the file of what a store tells of itself.
    pub fn begin_scraped(&self) -> Result<ScrapedWriter, RecordError> {
        let failed =
            |source| RecordError::io("write", &self.folder().path_of(SCRAPED_NAME), source);
        let file = self.folder().create(SCRAPED_NAME).map_err(failed)?;
        let mut writer =
            ScrapedWriter { file: BufWriter::new(file), bytes_left: SCRAPED_BYTES_MAX };
        writer.write(&[ScrapedLine::Head { schema: SCHEMA.to_owned() }]).map_err(failed)?;
        Ok(writer)
    }

    /// Returns what a store told of itself; `None` where it was not asked.
    pub fn read_scraped(&self) -> Result<Option<Scraped>, RecordError> {
        let content = match self.folder().read(SCRAPED_NAME, SCRAPED_BYTES_MAX) {
            Ok(content) => content,
            Err(RecordError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let path = self.folder().path_of(SCRAPED_NAME);
        let (mut scraped, mut lines) = (Scraped::default(), content.split(|byte| *byte == b'\n'));
        let first = serde_json::from_slice(lines.next().unwrap_or_default());
        match first {
            Ok(ScrapedLine::Head { schema }) if schema == SCHEMA => {}
            Ok(ScrapedLine::Head { schema }) => {
                return Err(RecordError::Version { path, found: schema, supported: SCHEMA });
            }
            _ => return Err(RecordError::damaged(&path, "its first line does not say what it is")),
        }
        for line in lines.filter(|line| !line.is_empty()) {
            let known = match serde_json::from_slice(line) {
                // Numbers are given out one after the other.
                Ok(ScrapedLine::Series(of)) if of.series as usize == scraped.series.len() => {
                    scraped.series.push(of);
                    true
                }
                Ok(ScrapedLine::Scrape(of)) if scraped.is_sound(&of) => {
                    scraped.scrapes.push(of);
                    true
                }
                _ => false,
            };
            scraped.lines_unread_count += u64::from(!known);
        }
        Ok(Some(scraped))
    }
}

impl Scraped {
    fn is_sound(&self, of: &ScrapeRead) -> bool {
        let is_known = |(series, _): &(u32, Option<f64>)| {
            self.series.get(*series as usize).is_some_and(|series| series.source == of.source)
        };
        of.start_ns <= of.end_ns && of.values.iter().all(is_known)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes and damages files of a run")]
mod tests {
    use std::fs;

    use super::*;

    fn bare(place: &std::path::Path) -> RunDirectory {
        fs::write(place.join("run.json"), "{}").unwrap();
        RunDirectory::open(place).unwrap()
    }

    fn lines() -> Vec<ScrapedLine> {
        let series = ScrapedSeries {
            series: 0,
            source: 1,
            name: "a_total".to_owned(),
            labels: BTreeMap::from([("x".to_owned(), "\"\n".to_owned())]),
            is_counter: true,
        };
        let read = ScrapeRead {
            source: 1,
            start_ns: 5,
            end_ns: 7,
            values: vec![(0, Some(1.5))],
            left_out_count: 0,
            lines_unread_count: 2,
            failure: None,
        };
        vec![ScrapedLine::Series(series), ScrapedLine::Scrape(read)]
    }

    #[test]
    fn what_was_written_is_read_and_a_torn_line_costs_itself() {
        let place = tempfile::tempdir().unwrap();
        let directory = bare(place.path());
        assert_eq!(directory.read_scraped().unwrap(), None);
        let mut writer = directory.begin_scraped().unwrap();
        assert!(writer.write(&lines()).unwrap());
        assert!(directory.begin_scraped().is_err(), "nothing is written over");
        let path = place.path().join(SCRAPED_NAME);
        let whole = fs::read_to_string(&path).unwrap();
        let bad = [
            r#"{"line":"series","series":7,"source":0,"name":"b","is_counter":false}"#,
            r#"{"line":"scrape","source":1,"start_ns":9,"end_ns":8}"#,
            r#"{"line":"scrape","source":0,"start_ns":8,"end_ns":9,"values":[[0,1]]}"#,
            r#"{"line":"scrape","source":1,"start_ns":8,"end_ns":9,"values":[[4,1]]}"#,
            r#"{"line":"else"}"#,
            r#"{"line":"scr"#,
        ];
        fs::write(&path, format!("{whole}{}", bad.join("\n"))).unwrap();
        let scraped = directory.read_scraped().unwrap().unwrap();
        let back: Vec<ScrapedLine> = (scraped.series.into_iter().map(ScrapedLine::Series))
            .chain(scraped.scrapes.into_iter().map(ScrapedLine::Scrape))
            .collect();
        assert_eq!((back, scraped.lines_unread_count), (lines(), bad.len() as u64));
        fs::write(&path, "{\"line\":\"head\",\"schema\":\"plimsoll/scraped/9\"}\n").unwrap();
        let refused = directory.read_scraped().unwrap_err();
        assert!(refused.to_string().contains("plimsoll/scraped/9"), "{refused}");
        fs::write(&path, "").unwrap();
        assert!(directory.read_scraped().is_err());
    }

    #[test]
    fn a_file_that_would_grow_too_long_stays_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let directory = bare(place.path());
        let mut writer = directory.begin_scraped().unwrap();
        writer.bytes_left = 20;
        assert!(!writer.write(&lines()).unwrap());
        assert!(!writer.write(&[]).unwrap() || writer.bytes_left == 0);
        assert_eq!(directory.read_scraped().unwrap(), Some(Scraped::default()));
    }
}

//! A run of s3-benchmark's tests: its lines, the lines of its `benchmark.log`, and what it leaves
//! out below them.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_model::{ErrorClass, SeriesKey, WallTime};
use plimsoll_report::table::{Cell, Table, Tone, harmless};
use plimsoll_stats::{Histogram, Totals};

use super::Benchmark;
use crate::figures::{self, Sums};

/// The first line that s3-benchmark prints; it is in no log.
pub const GREETING: &str = "Wasabi benchmark program v2.0";

/// The answers that count as slowdowns.
const SLOWDOWNS: [u16; 2] = [429, 503];
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// One of the five tests of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Writes objects.
    Put,
    /// Reads them.
    Get,
    /// Lists them.
    List2,
    /// Lists their versions.
    ListVer,
    /// Deletes them.
    Delete,
}

/// What one test of one loop came to.
#[derive(Clone, Debug, PartialEq)]
pub struct TestResult {
    /// The number of the loop, from 1 on.
    pub loop_number: u32,
    /// The test.
    pub test: Test,
    /// `None` where the store does not offer what it does.
    pub figures: Option<TestFigures>,
}

/// The figures of one test of one loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestFigures {
    /// From the start to the end of the last operation.
    pub took: Duration,
    /// Operations that succeeded.
    pub ops_ok: u64,
    /// Content bytes that these moved.
    pub bytes: u64,
    /// Entries that these listed.
    pub rows: u64,
    /// Answers 503 and 429; they are among the failed operations.
    pub slowdowns: u64,
    /// Operations that failed, by class, without zeros.
    pub failed: Vec<(ErrorClass, u64)>,
    /// Latencies of the operations that succeeded, in nanoseconds.
    pub latency: Histogram,
}

impl Test {
    /// Returns the loop, from 1 on, and the test that a stage of the workload is.
    pub fn at(stage: usize) -> (u32, Self) {
        let tests = Self::ALL.len();
        ((stage / tests) as u32 + 1, Self::ALL[stage % tests])
    }

    /// Every test, in the order of a loop.
    pub const ALL: [Self; 5] = [Self::Put, Self::Get, Self::List2, Self::ListVer, Self::Delete];

    /// Returns the name in the lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "PUT",
            Self::Get => "GET",
            Self::List2 => "LIST2",
            Self::ListVer => "LISTver",
            Self::Delete => "DELETE",
        }
    }
}

impl TestFigures {
    /// Returns those of a stage; `statuses` says how often which status came with a failure.
    pub fn of(totals: &Totals<SeriesKey>, took: Duration, statuses: &BTreeMap<u16, u64>) -> Self {
        let Sums { ops_ok, bytes, rows, failed, latency } = Sums::of(totals, |_| true);
        let slowdowns = SLOWDOWNS.iter().filter_map(|status| statuses.get(status)).sum();
        Self { took, ops_ok, bytes, rows, slowdowns, failed, latency }
    }

    /// Returns how many operations failed.
    pub fn failed_count(&self) -> u64 {
        figures::failed_count(&self.failed)
    }

    /// Returns so many of something per second; 0 in no time, as in s3-benchmark.
    fn per_second(&self, count: u64) -> f64 {
        if self.took.is_zero() { 0.0 } else { count as f64 / self.took.as_secs_f64() }
    }
}

/// Returns the line that says what was asked for.
pub fn parameters_line(of: &Benchmark) -> String {
    let Benchmark { url, bucket, region, duration_s, threads, loops, size, .. } = of;
    format!(
        "Parameters: url={}, bucket={}, region={}, duration={duration_s}, threads={threads}, \
         loops={loops}, size={}",
        harmless(url),
        harmless(bucket),
        harmless(region),
        harmless(size)
    )
}

/// Returns the line of a test.
pub fn line(of: &TestResult) -> String {
    let (number, name) = (of.loop_number, of.test.name());
    let Some(figures) = &of.figures else {
        return format!("Loop {number}: {name} not offered");
    };
    let TestFigures { ops_ok, slowdowns, .. } = figures;
    let took = figures.took.as_secs_f64();
    let ops_rate = figures.per_second(*ops_ok);
    let middle = match of.test {
        Test::Put | Test::Get => {
            let speed = size(figures.per_second(figures.bytes) as u64);
            format!("objects = {ops_ok}, speed = {speed}B/sec, {ops_rate:.1} operations/sec")
        }
        Test::List2 | Test::ListVer => {
            let rows_rate = figures.per_second(figures.rows);
            format!("ops = {ops_ok}, speed = {rows_rate:.1} rows/sec, {ops_rate:.1} operations/sec")
        }
        Test::Delete => format!("{ops_rate:.1} deletes/sec"),
    };
    format!("Loop {number}: {name} time {took:.1} secs, {middle}. Slowdowns = {slowdowns}")
}

/// Returns a line as it stands in `benchmark.log`, with a line feed: behind its date (RFC 1123).
pub fn log_line(at: WallTime, line: &str) -> String {
    let (year, month, day, hour, minute, second) = at.civil();
    let weekday = WEEKDAYS[(at.as_unix_ns() / 86_400_000_000_000 % 7) as usize];
    let month = MONTHS[month as usize - 1];
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT: {line}\n")
}

/// Returns a size in s3-benchmark's units, the largest power of 1024 that fits with at most one
/// decimal: `1005K`, `2.5M`, `512B`.
fn size(bytes: u64) -> String {
    let units = ["B", "K", "M", "G", "T", "P", "E"];
    let power = bytes.checked_ilog2().unwrap_or(0) as usize / 10;
    let value = bytes as f64 / (1u64 << (10 * power)) as f64;
    let text = format!("{value:.1}");
    format!("{}{}", text.strip_suffix(".0").unwrap_or(&text), units[power])
}

/// Returns what s3-benchmark leaves out: the latencies of each test and what failed.
pub fn below(results: &[TestResult]) -> String {
    let mut table =
        Table::new(&["latency", "ops", "failed", "slowdowns", "p50", "p90", "p99", "p99.9", "max"]);
    let mut failed = String::new();
    for result in results {
        let label = format!("loop {} {}", result.loop_number, result.test.name());
        let Some(figures) = &result.figures else {
            table.row(&label, Tone::Plain, [Cell::from("not offered by the store")]);
            continue;
        };
        let counts = [figures.ops_ok, figures.failed_count(), figures.slowdowns];
        table.row(&label, Tone::Plain, figures::cells(&counts, &figures.latency));
        failed.push_str(&figures::failed_line(&label, &figures.failed));
    }
    figures::below(&table, &failed)
}

#[cfg(test)]
mod tests;

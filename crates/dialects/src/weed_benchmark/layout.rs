//! A run of `weed benchmark`: its lines while it goes on, its report of each stage, and what it
//! leaves out below them.

use std::fmt::Write as _;
use std::time::Duration;

use plimsoll_model::{ErrorClass, OpKind, SeriesKey};
use plimsoll_report::table::{Table, Tone, harmless};
use plimsoll_stats::{Histogram, Percentile, Totals};

use crate::figures::{self, Sums};

/// The percentiles of its report, in percent.
const PERCENTS: [f64; 9] = [50.0, 66.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0, 100.0];
const KIB: f64 = 1_024.0;
const MIB: f64 = 1_048_576.0;

/// A stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Files are written.
    Write,
    /// Some of them are removed.
    Delete,
    /// Files are read.
    Read {
        /// Whether each is read once instead of drawn.
        is_sequential: bool,
    },
}

impl Stage {
    /// Returns what its stage is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Read { .. } => "read",
        }
    }

    /// Returns what stands above its lines, with an empty line before it; `None` for one that weed
    /// benchmark does not report by itself.
    pub fn title(self) -> Option<String> {
        let what = match self {
            Self::Write => "Writing",
            Self::Delete => return None,
            Self::Read { is_sequential: false } => "Randomly Reading",
            Self::Read { is_sequential: true } => "Sequentially Reading",
        };
        Some(format!("\n------------ {what} Benchmark ----------\n"))
    }
}

/// How the label of completed requests is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Labels {
    /// As today: `Completed requests:`, one column too wide.
    #[default]
    New,
    /// As versions of before did: `Complete requests:`.
    Old,
}

/// What a stage came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageFigures {
    /// From the start to the end of the last operation.
    pub took: Duration,
    /// Operations that succeeded.
    pub ops_ok: u64,
    /// Content bytes that these moved.
    pub bytes: u64,
    /// Operations that failed, by class, without zeros.
    pub failed: Vec<(ErrorClass, u64)>,
    /// Latencies of the operations that succeeded, in nanoseconds.
    pub latency: Histogram,
}

impl StageFigures {
    /// Returns those of a stage without its deletions, and those of its deletions where there are
    /// any.
    pub fn of(totals: &Totals<SeriesKey>, took: Duration) -> (Self, Option<Self>) {
        let of = |takes: fn(OpKind) -> bool| {
            let Sums { ops_ok, bytes, failed, latency, .. } = Sums::of(totals, takes);
            Self { took, ops_ok, bytes, failed, latency }
        };
        let deletions = of(|kind| kind == OpKind::Delete);
        let any = deletions.ops_ok + deletions.failed_count() > 0;
        (of(|kind| kind != OpKind::Delete), any.then_some(deletions))
    }

    /// Adds what another stage came to.
    pub fn add(&mut self, other: &Self) {
        self.took += other.took;
        self.ops_ok += other.ops_ok;
        self.bytes += other.bytes;
        self.latency.merge(&other.latency);
        for &(class, count) in &other.failed {
            match self.failed.iter_mut().find(|(known, _)| *known == class) {
                Some((_, known)) => *known += count,
                None => self.failed.push((class, count)),
            }
        }
    }

    /// Returns how many operations failed.
    pub fn failed_count(&self) -> u64 {
        figures::failed_count(&self.failed)
    }

    /// Returns so much per second; 0 in no time, as in weed benchmark.
    fn per_second(&self, amount: f64) -> f64 {
        if self.took.is_zero() { 0.0 } else { amount / self.took.as_secs_f64() }
    }

    /// Returns latencies in milliseconds; `None` where there are none.
    fn times(&self) -> Times {
        let ms = |ns: u64| ns as f64 / 1e6;
        let percentile = |percent: f64| match Percentile::new(percent) {
            // The largest is known exactly.
            Some(_) if percent == 100.0 => self.latency.max(),
            Some(percentile) => self.latency.percentile(percentile),
            None => None,
        };
        Times {
            min: self.latency.min().map(ms),
            mean: self.latency.mean().map(|ns| ns / 1e6),
            max: self.latency.max().map(ms),
            std_dev: self.std_dev_ms(),
            percentiles: PERCENTS.map(|percent| percentile(percent).map(ms)),
        }
    }

    /// Returns the standard deviation of these very latencies, as weed benchmark takes it: 0 for a
    /// single one.
    fn std_dev_ms(&self) -> Option<f64> {
        let samples = self.latency.count() as f64;
        match self.latency.std_dev() {
            Some(of_sample) => Some(of_sample * ((samples - 1.0) / samples).sqrt() / 1e6),
            None => (!self.latency.is_empty()).then_some(0.0),
        }
    }
}

/// Latencies in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Times {
    min: Option<f64>,
    mean: Option<f64>,
    max: Option<f64>,
    std_dev: Option<f64>,
    percentiles: [Option<f64>; PERCENTS.len()],
}

/// Returns the line at the start, which names the version of the cluster, and the machine as Go
/// does.
pub fn start_line(version: &str, os: &str, arch: &str) -> String {
    let arch = match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        arch => arch,
    };
    format!("This is SeaweedFS version {} {os} {arch}\n", harmless(version))
}

/// How far a stage is, and what its last second came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Operations that succeeded.
    pub done: u64,
    /// Of how many.
    pub total: u64,
    /// Of these in the last second.
    pub ops_per_sec: f64,
    /// Their content bytes in the last second.
    pub bytes_per_sec: f64,
}

/// Returns the line that is printed once a second.
pub fn progress_line(of: &Progress) -> String {
    let Progress { done, total, ops_per_sec, bytes_per_sec } = of;
    let percent = *done as f64 * 100.0 / (*total).max(1) as f64;
    format!(
        "Completed {done} of {total} requests, {percent:.1}% {ops_per_sec:.1}/s {:.1}MB/s\n",
        bytes_per_sec / MIB
    )
}

/// Returns the report of a stage, with an empty line before it.
pub fn report(concurrency: u32, of: &StageFigures, labels: Labels) -> String {
    report_of(concurrency, of, &of.times(), labels)
}

fn report_of(concurrency: u32, of: &StageFigures, times: &Times, labels: Labels) -> String {
    let completed = match labels {
        Labels::New => "Completed requests:",
        Labels::Old => "Complete requests:",
    };
    let StageFigures { took, ops_ok, bytes, .. } = of;
    let mut out = format!(
        "\nConcurrency Level:      {concurrency}\n\
         Time taken for tests:   {:.3} seconds\n\
         {completed}      {ops_ok}\n\
         Failed requests:        {}\n\
         Total transferred:      {bytes} bytes\n\
         Requests per second:    {:.2} [#/sec]\n\
         Transfer rate:          {:.2} [Kbytes/sec]\n\n\
         Connection Times (ms)\n              min      avg        max      std\n",
        took.as_secs_f64(),
        of.failed_count(),
        of.per_second(*ops_ok as f64),
        of.per_second(*bytes as f64) / KIB,
    );
    // Nothing of a string is an error.
    let _ = writeln!(
        out,
        "Total:        {}      {}       {}      {}\n\n\
         Percentage of the requests served within a certain time (ms)",
        ms(times.min, 2),
        ms(times.mean, 3),
        ms(times.max, 3),
        ms(times.std_dev, 3),
    );
    for (percent, time) in PERCENTS.iter().zip(times.percentiles) {
        let _ = writeln!(out, "  {percent:3.0}%    {} ms", ms(time, 5));
    }
    out
}

/// Returns a time with one decimal, at least so wide.
fn ms(time: Option<f64>, width: usize) -> String {
    match time {
        Some(ms) => format!("{ms:width$.1}"),
        None => format!("{:>width$}", "–"),
    }
}

/// Returns what weed benchmark leaves out: latencies as fine as they are known, deletions, and what
/// failed.
pub fn below(stages: &[(Stage, StageFigures)]) -> String {
    let mut table = Table::new(&["latency", "ops", "failed", "p50", "p90", "p99", "p99.9", "max"]);
    let mut failed = String::new();
    for (stage, figures) in stages {
        let label = stage.name();
        let counts = [figures.ops_ok, figures.failed_count()];
        table.row(label, Tone::Plain, figures::cells(&counts, &figures.latency));
        failed.push_str(&figures::failed_line(label, &figures.failed));
    }
    figures::below(&table, &failed)
}

#[cfg(test)]
mod tests;

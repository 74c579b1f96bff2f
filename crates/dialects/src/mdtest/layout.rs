//! A run of mdtest's steps: as mdtest's own table with what it leaves out below, and as JSON.

pub mod json;
mod run;
pub mod text;

#[cfg(test)]
mod tests;

use std::time::Duration;

use plimsoll_stats::Histogram;

pub use run::RunFacts;

use super::TableOptions;

/// A run that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct MdtestReport {
    /// The version of the program.
    pub tool_version: String,
    /// The run's id.
    pub run_id: Option<String>,
    /// When the run began, in words: `11/20/2026 21:14:33`.
    pub started: String,
    /// When it had ended.
    pub ended: String,
    /// The words of the command line.
    pub command: Vec<String>,
    /// How many ranks there were.
    pub ranks: u32,
    /// The clients that they ran on, by name.
    pub clients: Vec<String>,
    /// How many ranks of the step where it is most worked on entries that their own client had in
    /// the step before; `None` where that is not known.
    pub kept: Option<u32>,
    /// Where the entries were.
    pub path: String,
    /// The file system there, as it was before the run.
    pub file_system: Option<FileSystem>,
    /// By how many ranks each step was moved on (`-N`).
    pub shift: u32,
    /// How many entries each iteration made: `20000 files/directories`.
    pub entries: String,
    /// How often everything was done.
    pub iterations: u32,
    /// What the tables show.
    pub shows: TableOptions,
    /// The rows, in the table's order.
    pub rows: Vec<MdtestRow>,
    /// What differs from mdtest, and other remarks.
    pub notes: Vec<String>,
}

/// How full a file system is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Its size.
    pub size_bytes: u64,
    /// What is free of it.
    pub free_bytes: u64,
    /// How many inodes it has.
    pub inodes_count: u64,
    /// How many of them are free.
    pub inodes_free_count: u64,
}

/// One row: a step in all iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct MdtestRow {
    /// mdtest's label: `File creation`.
    pub label: String,
    /// The name of its stages: `file-creation`.
    pub name: String,
    /// Rank r worked on what rank r + shift made, counted round.
    pub shift: u32,
    /// Whether it worked on entries that another step made.
    pub looks_back: bool,
    /// The clients that did it, by name.
    pub clients: Vec<String>,
    /// The iterations in order.
    pub iterations: Vec<MdtestStep>,
}

/// One step of one iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct MdtestStep {
    /// Operations that succeeded, over all ranks.
    pub ops_ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// From the moment at which the first rank began to the end of the last operation of any rank.
    pub took: Option<Duration>,
    /// Latencies of the operations that succeeded, in nanoseconds.
    pub latency: Histogram,
    /// From the stage's start to when the first rank had no operation left.
    pub first_done: Option<Duration>,
    /// From the stage's start to when the last rank had none left.
    pub last_done: Option<Duration>,
    /// What each rank reached for itself, in operations per second; empty where that is not asked
    /// for.
    pub rank_rates: Vec<Option<f64>>,
}

impl MdtestStep {
    /// Returns successes per second.
    pub fn rate(&self) -> Option<f64> {
        let took = self.took.filter(|took| !took.is_zero())?;
        Some(self.ops_ok as f64 / took.as_secs_f64())
    }
}

impl MdtestRow {
    fn rates(&self) -> Option<Summary> {
        Summary::of(self.iterations.iter().filter_map(MdtestStep::rate))
    }

    /// In seconds.
    fn times(&self) -> Option<Summary> {
        Summary::of(self.iterations.iter().filter_map(|step| Some(step.took?.as_secs_f64())))
    }

    fn rank_rates(&self) -> Option<Summary> {
        let rates = self.iterations.iter().flat_map(|step| &step.rank_rates);
        Summary::of(rates.copied().flatten())
    }
}

impl MdtestReport {
    /// Returns how many operations failed.
    pub fn failed_count(&self) -> u64 {
        self.rows.iter().flat_map(|row| &row.iterations).map(|step| step.failed).sum()
    }

    /// Returns whether it is excluded that what a client kept of the entries answered instead of
    /// the store, and why; `None` where no step worked on what another had made, or where it is not
    /// known.
    fn caching(&self) -> Option<(bool, String)> {
        if !self.rows.iter().any(|row| row.looks_back) {
            return None;
        }
        match (self.clients.len(), self.kept) {
            (0 | 1, _) => Some((
                false,
                "is not excluded: one client made the entries and worked on them, so what it kept \
                 of them may have answered"
                    .to_owned(),
            )),
            (_, None) => None,
            (_, Some(0)) => Some((
                true,
                "is excluded: each step worked on entries that another client had in the step \
                 before"
                    .to_owned(),
            )),
            (_, Some(kept)) => Some((
                false,
                format!(
                    "is not excluded: {kept} of {} ranks worked on entries that their own client \
                     had in the step before; shift by as many ranks as a client has (-N)",
                    self.ranks
                ),
            )),
        }
    }
}

/// Figures over iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Summary {
    max: f64,
    min: f64,
    mean: f64,
    /// Of the sample (n − 1); 0 of one value, as in mdtest.
    std_dev: f64,
}

impl Summary {
    /// Returns `None` without a value.
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.collect();
        if values.is_empty() {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self {
            max: values.iter().copied().fold(f64::MIN, f64::max),
            min: values.iter().copied().fold(f64::MAX, f64::min),
            mean,
            std_dev: if values.len() == 1 { 0.0 } else { (squares / (count - 1.0)).sqrt() },
        })
    }
}

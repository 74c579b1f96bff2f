//! The result of a run on files in fio's own layouts, so that what reads fio's output reads ours:
//! normal text, JSON, JSON+ and lines of logs.
//!
//! The layouts are those of fio 3.33 (Debian). On purpose some figures are not:
//!
//! - Minimum and maximum of `bw` and `iops` are those of the whole row, window by window. fio adds
//!   up the minima of its clones, and the maxima, which is neither.
//! - `runtime` of a row of clones is what the caller measured, and all rates follow from it.
//! - Percentiles are good to 0.1 % and never above the maximum; fio's are good to 0.8 % and may be.
//!   Times above 17 s keep their value.
//! - `bins` of JSON+ are named by the smallest time that falls into them, and are finer than fio's.
//! - Shares of depths add up to 100 %: fio counts syncs on top, and so has 106 %.
//! - Shares of latency in JSON are exact; fio lifts tiny ones to 0.01. In the text tiny ones are
//!   lifted as in fio, so that seldom does not look like never. A time within 0.1 % of the end of
//!   a cell may count in the one below.
//! - How many operations one call handed over or completed is known of engines that wait for each
//!   operation only; of others those lines and fields are left out, and `slat` is not told apart.
//! - What `verify` reads back is in the row of its job, as in fio; its time is added to the row's.
//! - `eta` is 0, `Disk stats` and `disk_util` are left out, as fio does with `disk_util=0`.
//! - Where clients ran the jobs, each group of each stage has an "All clients" of its own, with
//!   percentiles. fio has one over all groups, which adds up what ran at different times. Its
//!   `hostname` has all clients, its `port` is 0, and its description the sections. What clients
//!   used of their machines is known for all of them together only.
//! - Failed operations are always counted in `errors`, `total_err` and `first_error`, once there
//!   are any; fio has them with `continue_on_error` only.

mod checked;
mod figures;
mod json;
mod log;
mod queue;
mod run;
mod text;

#[cfg(test)]
mod client_tests;
#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use plimsoll_stats::Histogram;

use super::{Client, OutputFormat};

pub use json::{json, json_plus};
pub use log::{FioLog, FioLogKind, FioLogOp};
pub use queue::{FioLevels, FioQueues};
pub use run::{CloneLogs, RATE_WINDOW, Ran, RanByClients, Writing};
pub use text::normal;

/// Returns a run in each of the formats, one after the other; none stands for `normal`.
pub fn render(run: &FioRun<'_>, formats: &[OutputFormat]) -> String {
    let formats = if formats.is_empty() { &[OutputFormat::Normal] } else { formats };
    let one = |format: &OutputFormat| match format {
        OutputFormat::Normal => normal(run),
        OutputFormat::Json => json(run),
        OutputFormat::JsonPlus => json_plus(run),
    };
    formats.iter().map(one).collect()
}

/// A run as fio tells it. What fio has no word for, such as an unknown figure, is 0.
#[derive(Clone, Debug)]
pub struct FioRun<'a> {
    /// Which program wrote it, such as `plimsoll-0.1.0`. Readers of fio's output pass it on or look
    /// whether it is there; fio's own begins with `fio-`.
    pub version: String,
    /// When it was written, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// The same as C's `ctime` has it: `Fri Nov 20 21:24:56 2026`.
    pub time: String,
    /// The options of the global sections, as written.
    pub global_options: Vec<(String, String)>,
    /// The sections of the job file.
    pub sections: Vec<FioSection>,
    /// Who ran the jobs, each of them all; empty where one machine did.
    pub clients: &'a [Client],
    /// The rows, those of a group one after the other, and those of a client.
    pub records: Vec<FioRecord<'a>>,
}

/// One section of the job file, for the lines at the top of the text.
#[derive(Clone, Debug, PartialEq)]
pub struct FioSection {
    /// What the job is called.
    pub name: String,
    /// The group that it is in.
    pub group: u32,
    /// How many clones it has.
    pub clones: u32,
    /// `read`, `randrw` and so on.
    pub rw: String,
    /// The smallest and the largest block that is read, written or trimmed.
    pub block_bytes: [(u64, u64); 3],
    /// `psync` and so on.
    pub engine: String,
    /// How many operations each clone keeps in flight.
    pub depth: u32,
}

/// Whose clones a row is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FioWhose {
    /// Those of the one machine.
    #[default]
    Alone,
    /// Those of the client of that number.
    Client(usize),
    /// Those of all clients.
    All,
}

/// A row of the result: one clone, or all jobs of a group.
#[derive(Clone, Debug)]
pub struct FioRecord<'a> {
    /// What it is called.
    pub name: String,
    /// Whose clones it is of.
    pub whose: FioWhose,
    /// The group that it is in.
    pub group: u32,
    /// How many clones it has.
    pub clones: u32,
    /// What the job file says about it.
    pub description: Option<String>,
    /// The options of its section, as written.
    pub options: Vec<(String, String)>,
    /// The number of the process.
    pub pid: u32,
    /// The system's number of the first failure, 0 for none.
    pub error: i32,
    /// How many operations failed.
    pub errors_count: u64,
    /// How long the whole run took until its end.
    pub elapsed_s: u64,
    /// How long its clones ran, added up.
    pub job_runtime_ms: u64,
    /// Reads.
    pub read: FioDirection<'a>,
    /// Writes.
    pub write: FioDirection<'a>,
    /// How long each sync took; `None` where there was none.
    pub sync: Option<&'a Histogram>,
    /// Time on a CPU, kernel and context switches.
    pub cpu: FioCpu,
    /// How many operations each clone keeps in flight; 0 of rows that fio says it not of.
    pub depth: u32,
    /// How full the queue was.
    pub depths: FioDepths,
    /// Which percentiles are printed.
    pub percentiles: Vec<f64>,
    /// Of which times.
    pub percentiles_of: FioPercentilesOf,
}

/// Reads or writes of a row.
#[derive(Clone, Debug, Default)]
pub struct FioDirection<'a> {
    /// Bytes read or written.
    pub bytes: u64,
    /// How long, from the first clone's start to the last one's end.
    pub runtime_ms: u64,
    /// Operations that ended, successes.
    pub ops: u64,
    /// Operations that moved less than was asked for.
    pub short_ops: u64,
    /// Operations that were never made.
    pub dropped_ops: u64,
    /// From the decision to issue until it was handed over, in ns; `None` where that is not known.
    pub slat: Option<Cow<'a, Histogram>>,
    /// From handing over to completion, in ns.
    pub clat: Option<Cow<'a, Histogram>>,
    /// Both together, in ns.
    pub lat: Option<Cow<'a, Histogram>>,
    /// The rate in each whole window of the row, in KiB/s.
    pub bw_kib_per_sec: Vec<f64>,
    /// The operations per second in each.
    pub iops: Vec<f64>,
}

/// What a row cost the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FioCpu {
    /// Of the clones' time, how much was spent on a CPU in the program, in percent.
    pub user_percent: f64,
    /// How much in the kernel.
    pub system_percent: f64,
    /// Context switches.
    pub context_switches: u64,
    /// Page faults that had to read.
    pub major_faults: u64,
    /// Page faults that had not.
    pub minor_faults: u64,
}

/// How often the queue was how full: counts, of which shares are printed; `None` where that is not
/// known, which leaves it out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FioDepths {
    /// In flight when one was issued: 1, up to 3, 7, 15, 31, 63, more.
    pub level: Option<[u64; 7]>,
    /// Handed over in one call: 0, up to 4, 8, 16, 32, 64, more.
    pub submit: Option<[u64; 7]>,
    /// Completed by one call: 0, up to 4, 8, 16, 32, 64, more.
    pub complete: Option<[u64; 7]>,
}

/// Of which times percentiles are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FioPercentilesOf {
    /// Of `slat`.
    pub slat: bool,
    /// Of `clat`.
    pub clat: bool,
    /// Of `lat`.
    pub lat: bool,
}

impl Default for FioPercentilesOf {
    fn default() -> Self {
        Self { slat: false, clat: true, lat: false }
    }
}

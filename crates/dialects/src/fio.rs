//! fio's job files and command lines: how they are written, and what each option asks for.
//!
//! An option is taken, or taken with a [`Note`] of what differs, or refused by name; none is
//! passed over. The table of `docs/coming-from-fio.md` lists them one by one.

pub(crate) mod arguments;
mod clients;
mod error;
mod job;
pub mod layout;
mod lines;
mod lower;
pub(crate) mod options;
mod resolve;
mod sums;
mod values;

use std::collections::HashSet;
use std::hash::Hash;

use lines::Reader;

pub use arguments::{CommandLine, Output, OutputFormat, from_args};
pub use clients::Client;
pub use error::{FioError, Place, Problem};
pub use job::{
    Amount, BlockShare, Blocks, DEFAULT_PERCENTILES, Direction, Directions, Distribution, Engine,
    Files, Flow, Job, JobFile, Logs, Order, Pattern, Queue, RateProcess, Rates, Reporting, Span,
    SyncMode, Thinktime, Timing, Verify,
};
pub use lower::{Lowered, LoweredStage, Machine, lower, paths_asked};

pub use crate::command_line::Note;

/// How sizes are read, for people.
pub const SIZES: &str = "4M is 4,194,304 bytes, as in fio; with kb_base=1000 it is 4,000,000";

/// The options that stand for fields of a workload.
pub const WORDS: [(&str, &str); 19] = [
    ("workers", "`numjobs`"),
    ("depth", "`iodepth`"),
    ("duration", "`runtime`"),
    ("ramp", "`ramp_time`"),
    ("start_delay", "`startdelay`"),
    ("think", "`thinktime`"),
    ("ops", "`number_ios`"),
    ("bytes", "`io_size`"),
    ("block", "`bs`"),
    ("read", "`bs`"),
    ("write", "`bs`"),
    ("order", "`random_distribution`"),
    ("fsync_every", "`fsync`"),
    ("fdatasync_every", "`fdatasync`"),
    ("pacing", "`rate_iops`"),
    ("files", "`nrfiles`"),
    ("paths", "`filename`"),
    ("size", "`size`"),
    ("directory", "`directory`"),
];

/// How numbers with a suffix are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Units {
    /// A number that fio reads otherwise than it looks is refused, with the reason.
    #[default]
    Strict,
    /// Every number is what fio makes of it.
    Fio,
}

/// What `$ncpus`, `$mb_memory` and `$pagesize` stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Processors.
    pub cpus_count: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Bytes of a page.
    pub page_size_bytes: u64,
}

/// How job files are read, and what they may look at.
#[derive(Clone)]
pub struct Options<'a> {
    /// How numbers with a suffix are read.
    pub units: Units,
    /// Returns the text of a file: one that is included, or a job file of a command line.
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
    /// Returns the value of a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The machine that the jobs are meant for.
    pub host: Host,
    /// The only sections to take; all of them where it is empty.
    pub sections: Vec<String>,
}

/// Tells whether a text is a job file: the first line that says anything is a section.
pub fn is_job_file(text: &str) -> bool {
    let says = |line: &&str| !line.is_empty() && !line.starts_with(['#', ';']);
    text.lines().map(str::trim).find(says).is_some_and(|line| line.starts_with('['))
}

/// Returns the jobs of the job file `name`, whose text is `text`.
pub fn parse(text: &str, name: &str, options: &Options<'_>) -> Result<JobFile, FioError> {
    let mut reader = Reader::new(options);
    reader.file(text, name)?;
    resolve::resolve(name, reader.sections, options)
}

#[cfg(test)]
mod tests;

/// Returns each of them once, where it comes first.
fn each_once<T: Eq + Hash>(all: Vec<T>) -> Vec<T> {
    let mut seen = HashSet::with_capacity(all.len());
    let is_new: Vec<bool> = all.iter().map(|of| seen.insert(of)).collect();
    all.into_iter().zip(is_new).filter_map(|(of, is_new)| is_new.then_some(of)).collect()
}

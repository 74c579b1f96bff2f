//! The command lines of SeaweedFS's `weed benchmark`: what its flags ask for, the workload that
//! they come to, its list of file ids, and each of its mistakes that is corrected.
//!
//! The tables of `docs/coming-from-weed-benchmark.md` list flags and corrections one by one.

mod corrections;
pub(crate) mod flags;
pub mod layout;
pub mod list;
mod lower;

pub use corrections::CORRECTIONS;

pub use crate::command_line::Note;
pub use crate::correction::Correction;
pub use lower::{Asked, Listed, WORDS};

use crate::command_line::{LineError, go_help};

/// How sizes are read, for people.
pub const SIZES: &str = "-size counts bytes, as in weed benchmark: 4M is not a number there";

/// The list of file ids where `-list` names no other, in the directory for temporary files.
pub const LIST_NAME: &str = "benchmark_list.txt";
/// By how many bytes a file is larger than `-size` at most.
pub const SIZE_MORE_MAX: u64 = 63;

/// What a command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Benchmark {
    /// `-master`: the addresses, at least one.
    pub masters: Vec<String>,
    /// `-c`, workers of each stage.
    pub concurrency: u32,
    /// `-n`: files in all, and how many are read where each read draws one.
    pub files: u64,
    /// `-size`, to which up to [`SIZE_MORE_MAX`] bytes are added.
    pub size_bytes: u64,
    /// `-list`; `None` is [`LIST_NAME`] in the directory for temporary files.
    pub list: Option<String>,
    /// `-writeOnly` and `-readOnly`.
    pub scope: Scope,
    /// `-readSequentially`.
    pub is_sequential: bool,
    /// `-deletePercent`, 0 to 100.
    pub delete_percent: u32,
    /// `-collection`; empty is the one without a name.
    pub collection: String,
    /// `-replication`, three digits.
    pub replication: String,
    /// `-disk`; empty is `hdd`.
    pub disk: String,
    /// `-fsync`.
    pub fsync: bool,
    /// `-maxCpu`; `None`: all there are.
    pub cpus_max: Option<u32>,
    /// What was given and changes nothing here.
    pub passed_over: Vec<Note>,
}

/// What is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Files are written, then read.
    #[default]
    Both,
    /// `-writeOnly`.
    Write,
    /// `-readOnly`: those of the list are read.
    Read,
}

impl Scope {
    /// Tells whether files are written.
    pub const fn writes(self) -> bool {
        matches!(self, Self::Both | Self::Write)
    }

    /// Tells whether files are read.
    pub const fn reads(self) -> bool {
        matches!(self, Self::Both | Self::Read)
    }
}

/// Reads a file that the command line names, and says why it cannot.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Returns what a command line asks for. `args` begin behind the name of the program, `weed`, or
/// behind that of the command, `benchmark`; `read` reads a file of options.
pub fn from_args(args: &[String], read: ReadFile<'_>) -> Result<Benchmark, LineError> {
    flags::read(args, read)
}

/// Returns what `weed benchmark -h` tells: each flag, what it means here, and its default.
pub fn help() -> String {
    go_help("Usage: weed benchmark -master=localhost:9333 -c=16 -n=1048576", &flags::FLAGS)
}

#[cfg(test)]
mod tests;

//! mdtest's command lines: what each flag asks for, as stages of a run on files.
//!
//! A flag is taken, or taken with a [`Note`] of what differs, or refused by name; none is passed
//! over. The table of `docs/coming-from-mdtest.md` lists them one by one.

mod arguments;
pub(crate) mod flags;
pub mod layout;
mod lower;
mod plan;
mod written;

pub use plan::{MdtestPlan, PlannedRow, TableOptions};

pub use crate::command_line::Note;

use crate::command_line::LineError;

/// How sizes are read, for people.
pub const SIZES: &str = "4M is 4,194,304 bytes, as in mdtest";

/// The flags that stand for fields of a workload.
pub const WORDS: [(&str, &str); 9] = [
    ("workers", "`-np`"),
    ("shift", "`-N`"),
    ("depth", "`-z`"),
    ("branching", "`-b`"),
    ("entries", "`-n`"),
    ("create", "`-w`"),
    ("open", "`-e`"),
    ("directory", "`-d`"),
    ("stages", "`-i`"),
];

/// Returns what a command line asks for; `args` begin behind mdtest's name, or with the
/// `mpiexec -np N mdtest` before it.
pub fn from_args(args: &[String]) -> Result<MdtestPlan, LineError> {
    lower::lower(arguments::read(args)?)
}

#[cfg(test)]
mod tests;

//! What a command line comes to.

use plimsoll_workload::plan::WorkloadFile;

use crate::command_line::Note;

/// A command line of mdtest as a run.
#[derive(Clone, Debug, PartialEq)]
pub struct MdtestPlan {
    /// The run: for each iteration a stage for each of mdtest's steps, in mdtest's order. A stage
    /// is called as its row of the table is, such as `file-creation`. It has a seed only where the
    /// command line gives one.
    pub workload: WorkloadFile,
    /// How many ranks there are; each is a clone.
    pub ranks: u32,
    /// How often everything is done.
    pub iterations: u32,
    /// Where it is done.
    pub directories: Vec<String>,
    /// How many entries are made in each iteration, in mdtest's words: `20000 files/directories`.
    pub entries: String,
    /// By how many ranks each step is moved on: `-N`.
    pub shift: u32,
    /// The rows of mdtest's table, in its order.
    pub rows: Vec<PlannedRow>,
    /// What the table shows.
    pub table: TableOptions,
    /// What differs from mdtest.
    pub notes: Vec<Note>,
}

/// A row of mdtest's table, and where its figures come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedRow {
    /// The row's label, such as `File creation`.
    pub label: &'static str,
    /// For each iteration the stage of it, as an index into the stages of the run.
    pub stages: Vec<usize>,
    /// Operations of each iteration, over all ranks.
    pub ops_count: u64,
    /// Rank r works on what rank r + shift made, counted round.
    pub shift: u32,
    /// Whether it works on entries that another step made.
    pub looks_back: bool,
}

/// What the table shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// Operations per second.
    pub rates: bool,
    /// Times.
    pub times: bool,
    /// Each iteration in a line of its own as well (`-v`).
    pub each_iteration: bool,
    /// What the ranks reached each for itself (`--showRankStatistics`).
    pub rank_statistics: bool,
}

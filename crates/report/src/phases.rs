//! The report of a run on files: each stage that was measured by itself, never two in one row.
//!
//! What it says is given to it as values; how it looks stands in the modules below.

pub mod csv;

pub mod json;
pub mod text;
pub mod weka;

pub(crate) mod words;

#[cfg(test)]
pub(crate) mod fixture;

use std::time::Duration;

use plimsoll_analysis::phases::{KindFigures, RowFigures};
use plimsoll_model::{Interface, OpKind, OpRate, RunId, Seed, WallTime};

use crate::schedule::Observed;
use crate::{ErrorSample, OpLogCheck, RunState, ScheduleReport, Verification};

/// Where the files lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilesTarget {
    /// The directory, or several.
    pub directory: String,
    /// Its file system, such as `ext4`.
    pub file_system: Option<String>,
    /// What it lies on, such as `/dev/nvme0n1p1`.
    pub device: Option<String>,
    /// How much was free before the run.
    pub free_bytes: Option<u64>,
}

/// Everything a report says about a run on files.
#[derive(Clone, Debug, PartialEq)]
pub struct PhasesReport {
    /// The version of plimsoll that made the run.
    pub tool_version: Option<String>,
    /// The run's id.
    pub run_id: Option<RunId>,
    /// What ran, as the command names it: `file suite`.
    pub what: String,
    /// The command line with secrets removed.
    pub command: String,
    /// Where the files lie.
    pub target: FilesTarget,
    /// The machine in one line.
    pub machine: Option<String>,
    /// When the first stage began.
    pub started: WallTime,
    /// How many seconds the local time is ahead of UTC; `None` when only UTC is to be shown.
    pub utc_offset_seconds: Option<i32>,
    /// Whether the run came to its own end.
    pub state: RunState,
    /// The seed of all choices.
    pub seed: Option<Seed>,
    /// How operations reached the kernel, where all rows did alike.
    pub interface: Option<Interface>,
    /// What keeps the figures from being trusted, a sentence each.
    pub warnings: Vec<String>,
    /// Remarks that are no warnings.
    pub notes: Vec<String>,
    /// The stages in order.
    pub phases: Vec<PhaseReport>,
    /// How read content was checked; `None` when nothing is read.
    pub verification: Option<Verification>,
    /// The op log held against the counters; `None` when no log was kept.
    pub op_log: Option<OpLogCheck>,
    /// How long workers waited for the recorder, all added up.
    pub recorder_wait: Duration,
    /// What was removed at the end, or left, in one line.
    pub cleanup: Option<String>,
    /// Where the run directory lies; `None` when nothing was kept.
    pub run_directory: Option<String>,
}

impl PhasesReport {
    /// Returns how many operations failed, over all stages, those in ramps included.
    pub fn failed_count(&self) -> u64 {
        self.phases.iter().map(PhaseReport::failed_count).sum()
    }

    /// Returns the stages that are results.
    pub(crate) fn results(&self) -> impl Iterator<Item = &PhaseReport> {
        self.phases.iter().filter(|phase| phase.is_result)
    }
}

/// One stage: jobs that ran at once.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseReport {
    /// What it is called, such as `read-iops`; of repeated ones the same each time.
    pub name: String,
    /// Which repetition it is, 0-based.
    pub iteration: u32,
    /// Whether it is a result, and not only makes what others need.
    pub is_result: bool,
    /// From the start of the first stage to its own.
    pub started_after: Duration,
    /// From its start to the end of its last worker.
    pub took: Duration,
    /// The length of a window of its rows' figures.
    pub window: Duration,
    /// What ran at once, each job or group by itself.
    pub rows: Vec<PhaseRow>,
    /// User and system CPU time of this program while it ran.
    pub cpu: Option<Duration>,
    /// First errors, a few of each class.
    pub errors: Vec<ErrorSample>,
    /// How many contents that were read were wrong, by the name of what was wrong with them.
    pub wrong: Vec<(String, u64)>,
    /// The schedules of its jobs that have one.
    pub schedules: Vec<JobSchedule>,
    /// The longest time in which a thread with operations under way did not look at what had ended;
    /// `None` where nothing was waited for, or where it is not known.
    pub look_gap_max: Option<Duration>,
    /// How many operations were seen to end after such a gap of more than half of their service
    /// time.
    pub uncertain_count: Option<u64>,
}

/// How one job kept its schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSchedule {
    /// What the job is called.
    pub job: String,
    /// The row it is in.
    pub row: usize,
    /// Whether that row holds no other job.
    pub is_alone: bool,
    /// Its schedule, and what came of it.
    pub schedule: ScheduleReport,
}

impl PhaseReport {
    /// Returns how many operations failed, those in ramps included.
    pub fn failed_count(&self) -> u64 {
        self.rows.iter().map(PhaseRow::failed_count).sum()
    }

    /// Returns how many operations succeeded, without those in ramps.
    pub fn ops_ok(&self) -> u64 {
        self.kinds().map(|(_, kind)| kind.ops_ok).sum()
    }

    /// Returns each kind in each row.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&PhaseRow, &KindFigures)> {
        self.rows.iter().flat_map(|row| row.figures.kinds.iter().map(move |kind| (row, kind)))
    }

    /// Returns how many operations ended, those in ramps included.
    pub(crate) fn ended_count(&self) -> u64 {
        let ramps: u64 = self.rows.iter().map(|row| row.figures.ramp.ops_ok).sum();
        self.ops_ok() + ramps + self.failed_count()
    }

    /// Returns the CPU time for each operation that ended, those in ramps included.
    pub(crate) fn cpu_per_op(&self) -> Option<Duration> {
        let ended = self.ended_count();
        let each = (ended > 0).then(|| self.cpu.map(|cpu| cpu.as_nanos() as f64 / ended as f64));
        each.flatten().map(|ns| Duration::from_nanos(ns.round() as u64))
    }

    /// Returns how well each schedule was kept.
    pub(crate) fn schedules_told(&self) -> Vec<ScheduleTold> {
        let named = self.rows.len() > 1 || self.schedules.len() > 1;
        self.schedules.iter().map(|of| self.schedule_told(of, named)).collect()
    }

    fn schedule_told(&self, of: &JobSchedule, named: bool) -> ScheduleTold {
        // An `fsync` comes with the writes and not by the schedule.
        let row = self.rows.get(of.row);
        let kinds = || row.into_iter().flat_map(|row| &row.figures.kinds);
        let kinds = || kinds().filter(|kind| kind.kind != OpKind::Sync);
        let samples: u64 = kinds().map(|kind| kind.service_time.samples()).sum();
        let sum: u128 = kinds().map(|kind| kind.service_time.histogram().sum()).sum();
        let mean = (samples > 0).then(|| Duration::from_nanos((sum / u128::from(samples)) as u64));
        let observed = Observed {
            service_mean: mean,
            service_max: kinds().filter_map(|kind| kind.service_time.max()).max(),
            failed_count: row.map_or(0, PhaseRow::failed_count),
            full_load: row
                .filter(|_| of.is_alone)
                .and_then(|row| row.figures.in_flight.full_load(of.schedule.max_in_flight)),
            cpu_share: None,
        };
        let rates: Option<Vec<f64>> = kinds().map(|kind| kind.ops_per_sec).collect();
        let achieved = rates.map(|rates| OpRate(rates.iter().sum()));
        let lead = if named { format!("{}: ", of.job) } else { String::new() };
        // Jobs that share a row are not told apart in its rate.
        let facts = of.schedule.facts(of.is_alone.then_some(achieved));
        ScheduleTold {
            facts: facts.into_iter().map(|(name, text)| (name, format!("{lead}{text}"))).collect(),
            warning: of.schedule.warning(&observed).map(|text| format!("{lead}{text}")),
        }
    }
}

/// How well a schedule was kept, in words.
pub(crate) struct ScheduleTold {
    /// A name and a text each.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// By how much it was not kept, and what to change; `None` if it was.
    pub(crate) warning: Option<String>,
}

/// What lay between the operations and the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheState {
    /// The stage's own files were dropped from caches before it.
    Dropped,
    /// All that the machine had cached was dropped before the stage.
    DroppedMachine,
    /// The page cache was passed by (`O_DIRECT`).
    Bypassed,
    /// What was cached before may have been used.
    Cached,
    /// Not known.
    NotKnown,
}

impl CacheState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Dropped, Self::DroppedMachine, Self::Bypassed, Self::Cached, Self::NotKnown];

    /// Returns the name used in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::DroppedMachine => "dropped-machine",
            Self::Bypassed => "bypassed",
            Self::Cached => "cached",
            Self::NotKnown => "not-known",
        }
    }
}

/// A job, or a group of jobs, and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseRow {
    /// What the job or the group is called.
    pub name: String,
    /// What was done, such as `randread` or `create`.
    pub work: String,
    /// Bytes of one operation, such as `4 KiB` or `4 KiB–64 KiB`; `None` where none are moved, or
    /// where clients differ in it.
    pub block: Option<String>,
    /// How many workers did it.
    pub workers: u32,
    /// How many operations each kept in flight; `None` where clients differ in it.
    pub depth: Option<u32>,
    /// Whether the page cache was passed by.
    pub direct: bool,
    /// How operations reached the kernel.
    pub interface: Option<Interface>,
    /// What lay between the operations and the medium.
    pub caches: CacheState,
    /// How many files or names there were, of all workers.
    pub files_count: Option<u64>,
    /// How large a file was, such as `4 GiB`.
    pub file_size: Option<String>,
    /// How long it was to last; `None` where it ended when all was done.
    pub duration: Option<Duration>,
    /// The clients that served it.
    pub served_by: Vec<String>,
    /// What came of it.
    pub figures: RowFigures,
}

impl PhaseRow {
    /// Returns how many operations failed, those in ramps included.
    pub(crate) fn failed_count(&self) -> u64 {
        let kinds = self.figures.kinds.iter().map(|kind| kind.failed.count());
        kinds.sum::<u64>() + self.figures.ramp.failed.count()
    }
}

/// Tells whether operations of a kind are on blocks of open files, and not on names.
fn is_on_blocks(kind: OpKind) -> bool {
    matches!(kind, OpKind::Read | OpKind::Write | OpKind::Sync)
}

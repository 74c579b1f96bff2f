//! A workload file of COSBench's: what it comes to, and what its record is in COSBench's terms.

use std::time::Duration;

use anyhow::Result;
use jiff::{Timestamp, tz::TimeZone};
use plimsoll_dialects::cosbench::layout::{self, Archive, Ran, WorkloadState};
use plimsoll_dialects::cosbench::{self, Lowered, Options, Refused, Workload};
use plimsoll_model::WallTime;
use plimsoll_results::{Asked, Record, Rows};

/// How COSBench writes a moment.
const MOMENT: &str = "%Y-%m-%d %H:%M:%S";
/// How long an interval of a time line is where no work says it.
const INTERVAL_S: u32 = 5;

/// A workload file that was read.
pub(crate) struct Understood {
    /// As COSBench understands it.
    pub(crate) workload: Workload,
    /// As it is run.
    pub(crate) lowered: Lowered,
}

/// When and as what a workload was run.
#[derive(Clone, Copy)]
pub(crate) struct When<'a> {
    /// Its id: `w3`.
    pub(crate) id: &'a str,
    /// When it was handed in.
    pub(crate) submitted: WallTime,
    /// When it was over.
    pub(crate) stopped: Option<WallTime>,
    /// How it ended, where that is known better than its record says.
    pub(crate) state: Option<WorkloadState>,
}

impl Understood {
    /// Returns what a file holds.
    pub(crate) fn read(text: &[u8], options: &Options) -> Result<Self, Refused> {
        let workload = cosbench::read(text)?;
        let lowered = cosbench::lower(&workload, options)?;
        Ok(Self { workload, lowered })
    }

    /// Returns the workload as it is run, with what changed on the way as comments.
    pub(crate) fn explained(&self) -> String {
        let Lowered { file, notes, corrections, .. } = &self.lowered;
        let corrections = corrections.iter().map(ToString::to_string);
        let comment = |line: String| format!("# {}\n", line.replace('\n', " "));
        let comments: String = notes.iter().cloned().chain(corrections).map(comment).collect();
        format!("{comments}{}", file.to_yaml())
    }

    /// Returns what is archived of a run of it.
    pub(crate) fn archive(&self, record: &Record, when: &When<'_>) -> Result<Archive> {
        let works = self.workload.stages.iter().flat_map(|stage| &stage.works);
        let interval_s = works.map(|work| work.interval_s).min().unwrap_or(INTERVAL_S);
        let asked = |rows| Asked {
            segment: Some(Duration::from_secs(interval_s.into())),
            rows,
            distributions: true,
            details: true,
            ..Asked::default()
        };
        let report = record.report(&asked(Rows::Jobs))?;
        let by_worker = record.report(&asked(Rows::Workers))?;
        let results = layout::Results {
            workload: &self.workload,
            lowered: &self.lowered,
            report: &report,
            by_worker: Some(&by_worker),
        };
        let When { id, submitted, stopped, state } = *when;
        Ok(layout::from_results(&results, &Ran { id, submitted, stopped, state, local: &local }))
    }
}

/// Returns a moment in local time as COSBench writes it.
pub(crate) fn local(at: WallTime) -> String {
    let at = Timestamp::from_nanosecond(i128::from(at.as_unix_ns())).unwrap_or_default();
    at.to_zoned(TimeZone::system()).strftime(MOMENT).to_string()
}

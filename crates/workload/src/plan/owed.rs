//! What a plan comes to before it runs.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::mem::discriminant;
use std::time::Duration;

use super::check::STAGES_MAX;
use super::checked::{Job, Members, Plan, SetIndex, Stage};
use super::work::Work;
use crate::files::NameAct;

/// What a plan comes to before it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Owed {
    /// The longest time that all stages take together, ramps included; `None` where one of them has
    /// no time of its own.
    pub duration_max: Option<Duration>,
    /// How many members all fills make, versions included.
    pub members_filled: u64,
    /// How many bytes these hold; of sizes that are drawn, the expected sum.
    pub bytes_filled: f64,
    /// How many bytes the files may come to that other work writes: each file of their sets whole.
    pub bytes_written_to_files: f64,
    /// How many operations are asked for by stages and jobs that say a number.
    pub ops_asked: u64,
    /// The most workers that one stage has.
    pub workers_max: u32,
    /// How many rows of figures a report of it may have: one for each kind of operation of each job
    /// of each stage, in a search of each probe.
    pub rows_max: u64,
}

impl Job {
    /// Returns how much memory its blocks under way may take; the content of objects is made as it
    /// is sent.
    pub(super) fn blocks_bytes_max(&self) -> u64 {
        let block = match &self.work {
            Work::Blocks(of) => of.largest(),
            Work::Fill { block_bytes, .. } if self.needs_files() => (*block_bytes).into(),
            Work::Names { act, .. } => act.bytes().into(),
            _ => 0,
        };
        self.in_flight_max().saturating_mul(block)
    }
}

impl Stage {
    /// Returns how much memory the blocks of files take that it may have under way.
    pub fn blocks_bytes_max(&self) -> u64 {
        self.jobs.iter().map(Job::blocks_bytes_max).fold(0, u64::saturating_add)
    }

    fn rows_max(&self) -> u64 {
        // Each probe of a search is a stage of the record.
        let times = if self.search.is_some() { STAGES_MAX as u64 } else { 1 };
        times * self.jobs.iter().map(|job| job.work.kinds_max()).sum::<u64>()
    }
}

impl Work {
    /// Returns how many kinds of operations it has at most.
    fn kinds_max(&self) -> u64 {
        let kinds = match self {
            Self::Objects(ops) => {
                ops.iter().map(|op| discriminant(&op.act)).collect::<HashSet<_>>().len()
            }
            // Such as reads, writes and syncs.
            _ => 3,
        };
        kinds as u64
    }
}

impl Plan {
    /// Returns what it comes to before it runs.
    pub fn owed(&self) -> Owed {
        let times: Option<Vec<Duration>> = self.stages.iter().map(Stage::duration_max).collect();
        let mut owed = Owed {
            duration_max: times.map(|times| times.into_iter().sum()),
            workers_max: self.stages.iter().map(Stage::workers).max().unwrap_or(0),
            rows_max: self.stages.iter().map(Stage::rows_max).sum(),
            ..Owed::default()
        };
        let (mut filled, mut written) = (BTreeSet::<SetIndex>::new(), BTreeMap::new());
        for stage in &self.stages {
            let of_jobs: u64 = stage
                .jobs
                .iter()
                .filter_map(|job| job.ops_max.map(|ops| ops.total(job.workers)))
                .fold(0, u64::saturating_add);
            owed.ops_asked = owed.ops_asked.saturating_add(stage.ops_max.unwrap_or(of_jobs));
            for job in &stage.jobs {
                if let Work::Fill { sets, .. } = &job.work {
                    for &set in sets {
                        let (members, bytes) = self.set(set).members.amount();
                        owed.members_filled = owed.members_filled.saturating_add(members);
                        owed.bytes_filled += bytes;
                    }
                    filled.extend(sets);
                } else if let Some((set, bytes)) = self.written_to_files(job) {
                    let of_set = written.entry(set).or_insert(0.0_f64);
                    *of_set = of_set.max(bytes);
                }
            }
        }
        written.retain(|set, _| !filled.contains(set));
        owed.bytes_written_to_files = written.values().sum();
        owed
    }

    /// Returns the set of files that a job writes to, and how many bytes these may come to.
    fn written_to_files(&self, job: &Job) -> Option<(SetIndex, f64)> {
        match &job.work {
            Work::Blocks(of) if of.read_percent < 100 => {
                let Members::Files(files) = &self.set(of.set).members else { return None };
                // Those that are there may grow to the size that the set names.
                Some((of.set, files.count() as f64 * files.size.max as f64))
            }
            Work::Names { set, act: act @ NameAct::Create { .. }, .. } => {
                let Members::Tree(tree) = &self.set(*set).members else { return None };
                let entries = tree.shape.entries_count().unwrap_or(u64::MAX) as f64;
                let workers = f64::from(job.workers.get());
                Some((*set, entries * workers * f64::from(act.bytes())))
            }
            _ => None,
        }
    }
}

//! What a plan comes to before it runs.

use std::collections::BTreeMap;
use std::time::Duration;

use super::checked::{Job, Members, Plan, SetIndex, Stage};
use super::spec::TreeOf;
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
}

impl Plan {
    /// Returns what it comes to before it runs.
    pub fn owed(&self) -> Owed {
        let times: Option<Vec<Duration>> = self.stages.iter().map(Stage::duration_max).collect();
        let mut owed = Owed {
            duration_max: times.map(|times| times.into_iter().sum()),
            workers_max: self.stages.iter().map(Stage::workers).max().unwrap_or(0),
            ..Owed::default()
        };
        let filled = |set: &SetIndex| {
            let fills =
                |job: &Job| matches!(&job.work, Work::Fill { sets, .. } if sets.contains(set));
            self.stages.iter().flat_map(|stage| &stage.jobs).any(fills)
        };
        let mut written = BTreeMap::new();
        for stage in &self.stages {
            for job in &stage.jobs {
                let (set, bytes) = match &job.work {
                    Work::Blocks(of) if of.read_percent < 100 && !filled(&of.set) => {
                        let bytes = match &self.set(of.set).members {
                            // Those that are there may grow to the size that the set names.
                            Members::Files(files) => files.count() as f64 * files.size.max as f64,
                            of => of.amount().1,
                        };
                        (of.set, bytes)
                    }
                    Work::Names { set, act: act @ NameAct::Create { .. }, .. } => {
                        let Members::Tree(tree) = &self.set(*set).members else { continue };
                        let TreeOf { depth, branching, entries, .. } = tree.shape;
                        // As many directories as the levels hold, at most.
                        let level = |level| f64::from(branching).powi(level as i32);
                        let directories: f64 = (0..=depth).map(level).sum();
                        let each = directories * entries as f64 * f64::from(act.bytes());
                        (*set, each * f64::from(job.workers.get()))
                    }
                    _ => continue,
                };
                let of_set = written.entry(set).or_insert(0.0_f64);
                *of_set = of_set.max(bytes);
            }
        }
        owed.bytes_written_to_files = written.values().sum();
        for stage in &self.stages {
            let of_jobs: u64 = stage
                .jobs
                .iter()
                .filter_map(|job| job.ops_max.map(|ops| ops.total(job.workers)))
                .fold(0, u64::saturating_add);
            owed.ops_asked = owed.ops_asked.saturating_add(stage.ops_max.unwrap_or(of_jobs));
            for job in &stage.jobs {
                let Work::Fill { sets, .. } = &job.work else { continue };
                for &set in sets {
                    let (members, bytes) = self.set(set).members.amount();
                    owed.members_filled = owed.members_filled.saturating_add(members);
                    owed.bytes_filled += bytes;
                }
            }
        }
        owed
    }
}

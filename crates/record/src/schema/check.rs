//! What no manifest can say, whoever wrote it.

use std::iter;

use plimsoll_model::{EndpointId, ObjectId};

use super::{Manifest, Target};

/// How many stages a run may have: their numbers have eight bits.
pub(crate) const STAGES_MAX: usize = 256;
/// The op log numbers the jobs of a stage by a byte.
const JOBS_MAX: usize = 1 << 8;
/// How many runs may be merged: the numbers of clients have sixteen bits.
const MERGED_MAX: usize = 65_535;
/// The latest moment, since the epoch of a run or of Unix: the sum of two such fits into 64 bits.
const MOMENT_NS_MAX: u64 = i64::MAX as u64;

impl Manifest {
    /// Returns what cannot be in it: moments that do not fit together into 64 bits, and more
    /// stages, runs or workers than there are numbers for.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_names()?;
        let of_stages =
            self.stages.iter().flat_map(|stage| [stage.started_ns, stage.ended_ns]).flatten();
        let merged = self.merged.iter().flat_map(|run| &run.stages);
        let of_merged = merged.flat_map(|stage| [stage.started_ns, stage.ended_ns]).flatten();
        let moments = of_stages
            .chain(of_merged)
            .chain(self.first_errors.iter().filter_map(|error| error.at_ns))
            .chain(self.merged.iter().map(|run| run.started_unix_ns))
            .chain([self.started_unix_ns]);
        if let Some(late) = moments.max().filter(|late| *late > MOMENT_NS_MAX) {
            return Err(format!("it names the moment {late} ns, and no clock reaches it"));
        }
        let jobs_count = self.stages.iter().map(|stage| stage.jobs.len()).max().unwrap_or_default();
        for (what, count, limit) in [
            ("stages", self.stages.len(), STAGES_MAX),
            ("jobs in a stage", jobs_count, JOBS_MAX),
            ("merged runs", self.merged.len(), MERGED_MAX),
            ("hosts", self.endpoints().count(), EndpointId::COUNT_MAX),
        ] {
            if count > limit {
                return Err(format!("it has {count} {what}, and there can be {limit}"));
            }
        }
        let jobs = self.stages.iter().flat_map(|stage| &stage.jobs);
        let ends = jobs.map(|job| u64::from(job.worker_first) + u64::from(job.workers_count));
        let of_merged = self.merged.iter().flat_map(|run| {
            let jobs = run.stages.iter().flat_map(|stage| &stage.jobs);
            let ends = jobs.map(|job| u64::from(job.worker_first) + u64::from(job.workers_count));
            let own = ends.chain([run.workers_count.into()]);
            own.map(|end| u64::from(run.worker_index_first) + end)
        });
        let last = ends.chain(of_merged).max().unwrap_or_default();
        if last > u64::from(ObjectId::OWNER_MAX) {
            return Err(format!("a worker of it has number {last}, and there can be no such"));
        }
        let workers: u64 = self.merged.iter().map(|run| u64::from(run.workers_count)).sum();
        let limit = u64::from(ObjectId::OWNER_MAX);
        match workers > limit {
            true => {
                Err(format!("its merged runs have {workers} workers, and there can be {limit}"))
            }
            false => Ok(()),
        }
    }

    /// Refuses names that would break lines of messages and reports.
    fn check_names(&self) -> Result<(), String> {
        let of_target = |target: &'_ Target| {
            let Target { endpoints, bucket, prefix, .. } = target.clone();
            endpoints.into_iter().chain(bucket).chain(prefix)
        };
        let of_targets = iter::once(&self.target).chain(&self.more_targets).flat_map(of_target);
        let run_ids = iter::once(&self.run_id).chain(self.merged.iter().map(|run| &run.run_id));
        let breaks = |name: &String| name.chars().any(char::is_control);
        match run_ids.cloned().chain(of_targets).find(breaks) {
            Some(name) => Err(format!("`{name}` holds control characters, and no name does")),
            None => Ok(()),
        }
    }
}

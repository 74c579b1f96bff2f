//! What agents can have done in a run: what they hand in beyond that is not taken.

use std::io::{self, Write};
use std::num::NonZeroU32;
use std::sync::Arc;

use plimsoll_conduct::Stop;
use plimsoll_model::{JobWork, OpRecord};
use plimsoll_record::schema::{LoopModel, Manifest, Stage, StageJob};
use plimsoll_workload::Share;
use plimsoll_workload::plan::Job;

/// More bytes than any operation moves: no object of any store is so large.
const BYTES_MAX: u64 = 1 << 46;
/// So much earlier or later than its stage an operation may be: an agent that was lost in it goes
/// on for a while.
const SLACK_NS: u64 = 600_000_000_000;
/// The longest operation in a stage without a recorded end: a week.
const TOOK_NS_MAX: u64 = 604_800_000_000_000;

/// What agents can have done in a run.
pub(super) struct Doable {
    /// By agent as the record has them.
    shares: Vec<Share>,
    /// By stage and job: the numbers of its workers, where operations are told by them.
    stages: Vec<Vec<Option<Workers>>>,
    /// By stage: from when to when it went on.
    times: Vec<(u64, u64)>,
    endpoints: usize,
}

/// The workers of a job.
struct Workers {
    first: u32,
    count: NonZeroU32,
    /// How much of them each agent has, where not as much as of all.
    weights: Option<Arc<[u32]>>,
}

impl Workers {
    fn of(job: &StageJob, planned: Option<&Job>) -> Option<Self> {
        // In an open loop it is sessions that are told, as many as there were to be.
        let is_plain = job.work == Some(JobWork::Objects) && job.loop_model != LoopModel::Open;
        let count = NonZeroU32::new(job.workers_count).filter(|_| is_plain)?;
        let weights = planned.and_then(|job| job.weights.clone());
        Some(Self { first: job.worker_first, count, weights })
    }
}

impl Doable {
    /// Returns what the agents can have done in the run of a record.
    pub(super) fn of(manifest: &Manifest) -> Self {
        let weights: Vec<u32> = manifest.agents.iter().map(|agent| agent.weight).collect();
        let plan = manifest.plan();
        let workers = |stage: &Stage| {
            let planned =
                plan.as_ref().and_then(|plan| plan.stages.get(usize::from(stage.planned()?)));
            let job = |(at, job)| Workers::of(job, planned.and_then(|stage| stage.jobs.get(at)));
            stage.jobs.iter().enumerate().map(job).collect()
        };
        Self {
            shares: Share::by_weight(&weights).unwrap_or_default(),
            stages: manifest.stages.iter().map(workers).collect(),
            times: manifest.stages.iter().map(times).collect(),
            endpoints: manifest.endpoints().count(),
        }
    }

    /// Returns why the agent of a number cannot have done an operation, whose moments are by the
    /// run's clock.
    pub(super) fn why_strange(&self, agent: usize, op: &OpRecord) -> Option<String> {
        let (stage, job, endpoint) = (op.stage.0, op.job.0, op.endpoint.0);
        let Some(jobs) = self.stages.get(usize::from(stage)) else {
            return Some(format!("there is no stage {stage}"));
        };
        let Some(workers) = jobs.get(usize::from(job)) else {
            return Some(format!("stage {stage} has no job {job}"));
        };
        if usize::from(endpoint) >= self.endpoints.max(1) {
            return Some(format!("there is no address {endpoint}"));
        }
        let (from, to) = self.times.get(usize::from(stage)).copied().unwrap_or_default();
        let (intended, end) = (op.intended.as_ns(), op.end.as_ns());
        if intended < from || end > to || end.saturating_sub(intended) > TOOK_NS_MAX {
            return Some(format!("it took place at another time than stage {stage}"));
        }
        if op.bytes > BYTES_MAX {
            return Some(format!("it has moved {} B", op.bytes));
        }
        let (share, workers) = self.shares.get(agent).zip(workers.as_ref())?;
        let worker = op.worker.0.checked_sub(workers.first);
        let own = share.among(workers.weights.as_deref()).of_workers(workers.count);
        let is_own = worker.is_some_and(|worker| own.contains(&worker));
        let worker = op.worker.0;
        (!is_own).then(|| format!("worker {worker} of stage {stage} is not its own"))
    }
}

fn times(stage: &Stage) -> (u64, u64) {
    let from = stage.started_ns.unwrap_or(0).saturating_sub(SLACK_NS);
    (from, stage.ended_ns.map_or(u64::MAX, |to| to.saturating_add(SLACK_NS)))
}

/// Takes no more than was said that there is, and nothing once somebody wants it to stop.
pub(super) struct UpTo<'a> {
    pub(super) to: &'a mut dyn Write,
    pub(super) left: u64,
    pub(super) stop: &'a Stop,
}

impl Write for UpTo<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stop.is_step_stopped() {
            return Err(io::Error::other("the run was told to end"));
        }
        let left = self.left.checked_sub(bytes.len() as u64);
        self.left = left.ok_or_else(|| io::Error::other("it is longer than was said"))?;
        self.to.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

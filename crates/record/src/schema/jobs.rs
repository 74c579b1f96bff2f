//! What the manifest says of the jobs of a stage.

use plimsoll_model::{Interface, JobWork};
use plimsoll_workload::files::NameAct;
use plimsoll_workload::plan::spec::{BlockOrder, TargetSpec};
use plimsoll_workload::plan::{self, JobPacing, Members, OpAct, Plan, Work};
use plimsoll_workload::{OpenLoop, Pacing};
use serde::{Deserialize, Serialize};

use super::{LoopModel, Manifest, Schedule, Stage, sum_known};

/// One of the jobs of a stage, which run at once. What is not known is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageJob {
    /// Its name.
    pub name: String,
    /// What it does.
    pub work: Option<JobWork>,
    /// The percentage of reads where it reads and writes blocks (`rw`, `randrw`); else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_percent: Option<u8>,
    /// Jobs of one group are reported in one row; null: it has a row of its own.
    pub group: Option<u32>,
    /// The number of its first worker in the stage. In a merged run each client has its own, under
    /// `merged`.
    pub worker_first: u32,
    /// How many workers it has, of all clients.
    pub workers_count: u32,
    /// What decides when its operations start.
    pub loop_model: LoopModel,
    /// From when on what was due counts, since the start of the stage: from the end of the first
    /// worker's ramp. Absent where all counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_from_ns: Option<u64>,
    /// Until when, since the start of the stage: to the end of the last worker's duration. Absent
    /// where no worker goes on after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_until_ns: Option<u64>,
    /// Until when it was to last, since the start of the stage: to the end of the last worker's
    /// duration, without its `ramp_down`. Absent where it has none, and where a closed or capped
    /// job may be done before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_until_ns: Option<u64>,
    /// How it kept its schedule; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Whether it works on files, also where a target stands in for them.
    pub is_on_files: bool,
    /// How its operations on files reached the kernel; null where none did, where clients differ in
    /// it, and where it is not known.
    pub interface: Option<Interface>,
    /// How what it read was checked; absent where it reads nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Bytes that it read and that could not be checked, as the run never wrote them; null where
    /// they are not known of the job by itself.
    pub unverified_bytes: Option<u64>,
    /// How many of its reads could not be checked, as what they should hold is unknown; absent for
    /// none.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub unchecked_count: u64,
    /// How many of its operations ended, failed ones included.
    pub ops_count: Option<u64>,
    /// How many of them failed.
    pub ops_failed_count: Option<u64>,
    /// Bytes moved by its successes.
    pub bytes: Option<u64>,
    /// The first of the addresses of its target, an index into all of them.
    pub endpoint_first: u16,
    /// How many addresses its target has.
    pub endpoints_count: u16,
}

/// How read content was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verification {
    /// Every byte of every read.
    EveryByte,
    /// Every byte of what the run wrote; others were read as well.
    Partial,
    /// Whole reads against the checksum that the target states for what it holds, as the content is
    /// not known or was not to be compared.
    Checksum,
    /// The length only, as the content is not known.
    LengthOnly,
    /// Switched off; the length is still checked.
    Off,
}

/// The workers that one of the merged runs gave a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MergedJob {
    /// The number of its first worker in that run's stage.
    pub worker_first: u32,
    /// How many it had.
    pub workers_count: u32,
}

impl StageJob {
    /// Returns a job of which nothing has happened yet, with so many workers from number 0 on.
    pub fn of(name: &str, workers_count: u32, loop_model: LoopModel) -> Self {
        Self {
            name: name.to_owned(),
            work: None,
            read_percent: None,
            group: None,
            worker_first: 0,
            workers_count,
            loop_model,
            measured_from_ns: None,
            measured_until_ns: None,
            planned_until_ns: None,
            schedule: None,
            is_on_files: false,
            interface: None,
            verification: None,
            unverified_bytes: None,
            unchecked_count: 0,
            ops_count: None,
            ops_failed_count: None,
            bytes: None,
            endpoint_first: 0,
            endpoints_count: 0,
        }
    }

    /// Returns what a job is to be.
    fn planned(plan: &Plan, job: &plan::Job) -> Self {
        let (loop_model, schedule) = match &job.pacing {
            JobPacing::Shared(Pacing::Closed) => (LoopModel::Closed, None),
            JobPacing::Shared(Pacing::Open(open)) => (LoopModel::Open, Some(Schedule::of(open))),
            JobPacing::Shared(Pacing::Capped { .. }) | JobPacing::CappedEach { .. } => {
                (LoopModel::Capped, None)
            }
        };
        let mut planned = Self::of(&job.name, job.workers.get(), loop_model);
        planned.describe(plan, job);
        Self {
            group: job.group,
            worker_first: job.worker_first,
            schedule,
            interface: job.interface,
            ..planned
        }
    }

    /// Adds what only the plan says of it.
    fn describe(&mut self, plan: &Plan, job: &plan::Job) {
        self.work = Some(work_of(&job.work));
        self.is_on_files = job.is_on_files(plan);
        self.read_percent = match &job.work {
            Work::Blocks(blocks) => match blocks.read_percent {
                0 | 100 => None,
                percent => u8::try_from(percent).ok(),
            },
            _ => None,
        };
        let is_there = job.work.sets().iter().any(|set| match &plan.set(*set).members {
            Members::Existing(_) => true,
            Members::Files(files) => files.are_there(),
            Members::Named(_) | Members::Objects(_) | Members::Tree(_) => false,
        });
        // A target that moves nothing gives nothing to check.
        let is_null = matches!(plan.targets[job.target.0].spec, Some(TargetSpec::Null(_)));
        let checks = reads(&job.work) && !is_null;
        let target = plan.target(job.target);
        self.verification = checks.then_some(match (job.verify, is_there) {
            (true, true) if target.states_sums() => Verification::Checksum,
            // Volume servers state one that costs next to nothing to compare.
            (false, _) if target.names_members() => Verification::Checksum,
            (false, _) => Verification::Off,
            (true, true) => Verification::LengthOnly,
            (true, false) => Verification::EveryByte,
        });
    }

    /// Returns the sums of the jobs of several runs, in the order of the jobs.
    pub(crate) fn sums(all: &[&[Self]]) -> Vec<Self> {
        let most = all.iter().max_by_key(|jobs| jobs.len()).map_or(0, |jobs| jobs.len());
        (0..most).filter_map(|at| Self::sum(all, at)).collect()
    }

    fn sum(all: &[&[Self]], at: usize) -> Option<Self> {
        let own = || all.iter().filter_map(|jobs| jobs.get(at));
        let first = own().next()?;
        let sum = |of: fn(&Self) -> Option<u64>| sum_known(own().map(of));
        let alike = own().all(|each| each.verification == first.verification);
        Some(Self {
            workers_count: own().fold(0, |sum, each| sum.saturating_add(each.workers_count)),
            measured_from_ns: own().map(|each| each.measured_from_ns).min().flatten(),
            measured_until_ns: own().map(|each| each.measured_until_ns).max().flatten(),
            planned_until_ns: own()
                .map(|each| each.planned_until_ns)
                .reduce(|all, each| Some(all?.max(each?)))
                .flatten(),
            schedule: Schedule::sum(own().filter_map(|each| each.schedule.as_ref())),
            interface: first
                .interface
                .filter(|interface| own().all(|each| each.interface == Some(*interface))),
            verification: match alike {
                true => first.verification,
                false if own().any(|each| each.verification == Some(Verification::Off)) => {
                    Some(Verification::Off)
                }
                false => Some(Verification::Partial),
            },
            unverified_bytes: sum(|each| each.unverified_bytes),
            unchecked_count: own().fold(0, |sum, each| sum.saturating_add(each.unchecked_count)),
            ops_count: sum(|each| each.ops_count),
            ops_failed_count: sum(|each| each.ops_failed_count),
            bytes: sum(|each| each.bytes),
            ..first.clone()
        })
    }

    /// Returns all counts that are added to those of other runs.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        let of_schedule = self.schedule.iter().flat_map(Schedule::counts);
        let own = [self.unverified_bytes, self.ops_count, self.ops_failed_count, self.bytes];
        of_schedule.chain(own.into_iter().flatten()).chain([self.unchecked_count])
    }

    /// Tells whether a job of another run is the same one.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.name, self.group) == (&other.name, other.group)
            && (self.work.is_none()
                || other.work.is_none()
                || (self.work, self.read_percent) == (other.work, other.read_percent))
    }
}

impl Schedule {
    /// Returns the schedule of an open loop that has not begun.
    pub fn of(open: &OpenLoop) -> Self {
        Self {
            rates: vec![open.profile.clone()],
            arrivals: vec![open.arrivals],
            max_in_flight: open.max_in_flight.get(),
            offered_from_ns: None,
            offered_until_ns: None,
            offered_count: None,
            late_count: None,
            skipped_count: None,
            held_count: 0,
            delay_max_ns: None,
        }
    }
}

impl Stage {
    /// Returns the stage of the workload that it carried out, a search for a probe.
    pub fn planned(&self) -> Option<u16> {
        let probed = self.probe.as_ref().map(|probe| probe.search_index.into());
        probed.or(self.planned_index)
    }

    /// Tells whether its jobs make or remove buckets, so that it has no operations.
    pub fn is_on_buckets(&self) -> bool {
        let is_on_buckets = |job: &StageJob| {
            matches!(job.work, Some(JobWork::MakeBuckets | JobWork::RemoveBuckets))
        };
        !self.jobs.is_empty() && self.jobs.iter().all(is_on_buckets)
    }

    /// Tells whether its jobs read back what earlier ones wrote.
    pub fn is_read_back(&self) -> bool {
        let is_read_back = |job: &StageJob| job.work == Some(JobWork::ReadBack);
        !self.jobs.is_empty() && self.jobs.iter().all(is_read_back)
    }

    /// Adds what the plan says of its jobs; their number stays as it is, unless there is none yet.
    pub fn describe(&mut self, plan: Option<&Plan>) {
        let planned =
            plan.and_then(|plan| Some((plan, plan.stages.get(usize::from(self.planned()?))?)));
        if let Some((plan, stage)) = planned.filter(|_| self.jobs.is_empty()) {
            self.jobs = stage.jobs.iter().map(|job| StageJob::planned(plan, job)).collect();
        } else if let Some((plan, stage)) = planned {
            self.jobs.iter_mut().zip(&stage.jobs).for_each(|(job, of)| job.describe(plan, of));
        }
        if self.jobs.is_empty() {
            self.jobs.push(StageJob::of(&self.name, self.workers_count, self.loop_model));
        }
    }

    /// Notes how many bytes its jobs read that could not be checked.
    pub fn note_unverified(&mut self, bytes: Option<u64>) {
        let mut readers = self.jobs.iter_mut().filter(|job| job.verification.is_some());
        let (Some(reader), None) = (readers.next(), readers.next()) else { return };
        reader.unverified_bytes = bytes;
        // Files that were there may have been written by the run before it read them.
        match (reader.verification, bytes) {
            (Some(Verification::EveryByte), Some(1..))
            | (Some(Verification::LengthOnly), Some(_)) => {
                reader.verification = Some(Verification::Partial);
            }
            _ => {}
        }
    }
}

impl Manifest {
    /// Returns what the workload means, with jobs on the agents that they name.
    pub fn plan(&self) -> Option<Plan> {
        let mut plan = self.workload.plan()?;
        let agents = self.agents.iter().map(|agent| (&*agent.name, agent.weight));
        // A run that nobody is left for has not begun.
        let _ = plan.pin(&agents.collect::<Vec<_>>());
        Some(plan)
    }
}

impl From<&StageJob> for MergedJob {
    fn from(job: &StageJob) -> Self {
        Self { worker_first: job.worker_first, workers_count: job.workers_count }
    }
}

/// Tells whether work reads content.
fn reads(work: &Work) -> bool {
    match work {
        Work::Objects(ops) => ops.iter().any(|op| matches!(op.act, OpAct::Get { .. })),
        Work::GetPart { .. } | Work::GetFromZip { .. } | Work::Replay { .. } => true,
        Work::Blocks(blocks) => blocks.read_percent > 0,
        Work::Names { act, .. } => matches!(act, NameAct::Open { bytes: 1.. }),
        _ => false,
    }
}

/// Returns what work does.
fn work_of(work: &Work) -> JobWork {
    match work {
        Work::Objects(_) => JobWork::Objects,
        Work::PutParts { .. } => JobWork::PutParts,
        Work::GetPart { .. } => JobWork::GetPart,
        Work::Append { .. } => JobWork::Append,
        Work::GetFromZip { .. } => JobWork::GetFromZip,
        Work::PutTar { .. } => JobWork::PutTar,
        Work::Fanout { .. } => JobWork::Fanout,
        Work::Retention { .. } => JobWork::Retention,
        Work::Blocks(blocks) => {
            let random = blocks.order != BlockOrder::Sequential;
            match (blocks.read_percent, random) {
                (100, false) => JobWork::Read,
                (100, true) => JobWork::RandRead,
                (0, false) => JobWork::Write,
                (0, true) => JobWork::RandWrite,
                (_, false) => JobWork::ReadWrite,
                (_, true) => JobWork::RandReadWrite,
            }
        }
        Work::Names { act, .. } => match act {
            NameAct::MakeTree => JobWork::MakeTree,
            NameAct::Create { .. } => JobWork::Create,
            NameAct::Stat => JobWork::Stat,
            NameAct::Open { .. } => JobWork::OpenReadClose,
            NameAct::Rename => JobWork::Rename,
            NameAct::Remove => JobWork::Remove,
            NameAct::RemoveTree => JobWork::RemoveTree,
        },
        Work::Fill { .. } => JobWork::Fill,
        Work::Remove { .. } => JobWork::Remove,
        Work::ReadBack(_) => JobWork::ReadBack,
        Work::MakeBuckets(_) => JobWork::MakeBuckets,
        Work::RemoveBuckets(_) => JobWork::RemoveBuckets,
        Work::Replay { .. } => JobWork::Replay,
    }
}

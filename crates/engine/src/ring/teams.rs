//! Which thread drives which workers on files.

use std::ops::Range;

use plimsoll_model::{EndpointId, Interface, JobId, WorkerId};
use plimsoll_workload::files::FilePlan;
use plimsoll_workload::plan::{Job, Work};

use crate::timing::JobTiming;

/// How the engine drives jobs on files.
#[derive(Clone, Copy, Debug)]
pub struct RingConfig {
    /// Threads that drive workers through an interface that does not block.
    pub threads: usize,
    /// The interface of jobs that name none.
    pub interface: Interface,
}

/// A job on files.
#[derive(Clone, Debug)]
pub struct FilesJob {
    /// Which job of the stage it is.
    pub id: JobId,
    /// When its operations start and what ends it; its streams give no more operations and bytes
    /// than the plan says.
    pub timing: JobTiming,
    /// Those of its workers that run here; the plan says how many there are in all.
    pub workers: Range<u32>,
    /// The number in the record that the address of its target has.
    pub endpoint: EndpointId,
}

impl FilesJob {
    /// Returns the jobs of a stage of a plan with all their workers.
    pub fn all(plan: &FilePlan, stage: usize) -> Vec<Self> {
        let lasts = plan.plan.stages[stage].duration;
        let job = |(index, (job, _)): (usize, (&Job, Option<Interface>))| Self {
            id: JobId(index as u8),
            timing: JobTiming::of_files(job, lasts),
            workers: 0..job.workers.get(),
            endpoint: EndpointId(0),
        };
        plan.jobs(stage).enumerate().map(job).collect()
    }
}

/// The workers that one thread drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Team {
    pub(crate) interface: Interface,
    /// Each with how many operations it may have under way.
    pub(crate) workers: Vec<(WorkerId, usize)>,
}

/// Returns how operations of a job reach the kernel. Those on names block, whatever it says.
fn interface_of(job: &Job, asked: Option<Interface>, config: &RingConfig) -> Interface {
    match job.work {
        Work::Names { .. } => Interface::Psync,
        _ => asked.unwrap_or(config.interface),
    }
}

/// Returns how many operations a worker may have under way.
fn depth_of(job: &Job, timing: &JobTiming, interface: Interface) -> usize {
    let depth = match timing.open_loop() {
        _ if interface == Interface::Psync => 1,
        Some(open) => open.max_in_flight.get().div_ceil(job.workers.get()),
        None => job.depth.get(),
    };
    depth as usize
}

/// Returns the workers of a stage that run here, by interface.
fn by_interface(
    plan: &FilePlan,
    stage: usize,
    jobs: &[FilesJob],
    config: &RingConfig,
) -> Vec<Team> {
    let team = |interface| Team { interface, workers: Vec::new() };
    let mut teams: Vec<Team> = Interface::ALL.into_iter().map(team).collect();
    let mut first = 0;
    for ((of, asked), job) in plan.jobs(stage).zip(jobs) {
        let interface = interface_of(of, asked, config);
        let depth = depth_of(of, &job.timing, interface);
        let workers = job.workers.clone().map(|worker| (WorkerId(first + worker), depth));
        let team = teams.iter_mut().find(|team| team.interface == interface);
        team.expect("every interface has one").workers.extend(workers);
        first += of.workers.get();
    }
    teams.retain(|team| !team.workers.is_empty());
    teams
}

/// Returns which thread drives which workers. What blocks its thread has one of its own.
pub(crate) fn teams(
    plan: &FilePlan,
    stage: usize,
    jobs: &[FilesJob],
    config: &RingConfig,
) -> Vec<Team> {
    let mut teams = by_interface(plan, stage, jobs, config);
    teams.sort_by_key(|team| team.interface != Interface::Psync);
    let deal = |team: Team| {
        let Team { interface, workers } = team;
        let threads = match interface {
            Interface::Psync => workers.len(),
            _ => config.threads.clamp(1, workers.len()),
        };
        let deal = move |thread| {
            let workers = workers.iter().skip(thread).step_by(threads).copied().collect();
            Team { interface, workers }
        };
        (0..threads).map(deal)
    };
    teams.into_iter().flat_map(deal).collect()
}

/// Returns the teams in virtual time, where nothing blocks: one for each interface.
pub(crate) fn virtual_teams(
    plan: &FilePlan,
    stage: usize,
    jobs: &[FilesJob],
    config: &RingConfig,
) -> Vec<Team> {
    by_interface(plan, stage, jobs, config)
}

/// Returns how many threads a stage of a plan takes.
pub fn ring_threads(plan: &FilePlan, stage: usize, config: &RingConfig) -> usize {
    teams(plan, stage, &FilesJob::all(plan, stage), config).len()
}

/// Returns how many operations one thread of a stage may have under way at most.
pub fn ring_slots(plan: &FilePlan, stage: usize, config: &RingConfig) -> u64 {
    let of_team = |team: &Team| team.workers.iter().map(|(_, depth)| *depth as u64).sum();
    let teams = teams(plan, stage, &FilesJob::all(plan, stage), config);
    teams.iter().map(of_team).max().unwrap_or_default()
}

//! The clients of a run: one, or of a merged run several, each with a workload, workers and
//! beginnings of its own; and how the workers of a stage are put into rows.

use std::num::NonZeroU32;
use std::time::Duration;

use plimsoll_analysis::WorkerRow;
use plimsoll_model::{Moment, WorkerId};
use plimsoll_record::schema::{self, Manifest, MergedJob, MergedRun};
use plimsoll_workload::plan::{self, Plan};
use plimsoll_workload::{Share, start_delay};

/// How the workers of a stage are put into rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// One for each job; jobs on files of one group share theirs.
    #[default]
    Jobs,
    /// One for each worker of each job.
    Workers,
    /// As [`Rows::Jobs`] for each agent that carried the run out.
    Agents,
}

/// What a row of a stage holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowJobs {
    /// The jobs by their index in the stage.
    pub jobs: Vec<usize>,
    /// The number of the worker in its job, where a row is one.
    pub worker: Option<u32>,
    /// The number of the agent whose workers they are, where a row is of one.
    pub agent: Option<u16>,
}

/// The clients of a run.
#[derive(Debug)]
pub struct Clients(Vec<Client>);

#[derive(Debug)]
struct Client {
    plan: Option<Plan>,
    seed: u64,
    /// Its first worker, as numbered in the run.
    worker_first: u32,
    workers_count: u32,
    /// By the stages of the run its own, where it has them.
    stages: Vec<Option<OwnStage>>,
}

#[derive(Clone, Debug)]
struct OwnStage {
    /// Which stage of its own workload it is.
    planned_index: Option<u16>,
    started: Option<Moment>,
    jobs: Vec<MergedJob>,
}

/// What a client does in a stage.
#[derive(Clone, Copy, Debug)]
pub struct ClientStage<'a> {
    /// The plan of the client with the stage of it, where that is known.
    pub planned: Option<(&'a Plan, &'a plan::Stage)>,
    seed: u64,
    worker_first: u32,
    started: Option<Moment>,
    jobs: &'a [MergedJob],
}

impl Clients {
    /// Returns the clients of a run.
    pub fn of(manifest: &Manifest) -> Self {
        if manifest.merged.is_empty() {
            return Self(vec![Client::alone(manifest)]);
        }
        Self(manifest.merged.iter().map(|run| Client::of(manifest, run)).collect())
    }

    /// Returns the plan of the first of which it is known.
    pub fn plan(&self) -> Option<&Plan> {
        self.0.iter().find_map(|client| client.plan.as_ref())
    }

    /// Returns what each client does that has the stage; their jobs are the same but for what each
    /// is given to do.
    pub fn at(&self, index: usize) -> Vec<ClientStage<'_>> {
        self.0.iter().filter_map(|client| client.at(index)).collect()
    }

    /// Returns the client of each worker by its number; empty where there is but one.
    pub fn of_workers(&self) -> Vec<u16> {
        if self.0.len() < 2 {
            return Vec::new();
        }
        let clients = self.0.iter().zip(0u16..);
        let numbers = clients
            // Bound: `ObjectId::OWNER_MAX` workers together, which reading a manifest holds.
            .map(|(client, number)| std::iter::repeat_n(number, client.workers_count as usize));
        numbers.flatten().collect()
    }
}

/// Returns by stage the agent of each worker by its number; nothing where there is but one.
pub(crate) fn agents_of_workers(manifest: &Manifest) -> Vec<Vec<u16>> {
    let weights: Vec<u32> = manifest.agents.iter().map(|agent| agent.weight).collect();
    let shares = Share::by_weight(&weights).filter(|shares| shares.len() > 1);
    let Some(shares) = shares else { return Vec::new() };
    let plan = manifest.plan();
    let of_stage = |stage: &schema::Stage| {
        let planned = plan.as_ref().and_then(|plan| plan.stages.get(usize::from(stage.planned()?)));
        let mut agents = Vec::new();
        for (at, job) in stage.jobs.iter().enumerate() {
            let of_plan = planned.and_then(|stage| stage.jobs.get(at));
            let workers = of_plan.map(|job| job.workers);
            let workers = workers.or_else(|| NonZeroU32::new(job.workers_count));
            let Some(workers) = workers else { continue };
            // Where each worker has several sessions, each session has a number.
            let each = (job.workers_count / workers).max(1);
            for (share, agent) in shares.iter().zip(0_u16..) {
                let own =
                    of_plan.map_or_else(|| share.of_workers(workers), |job| job.workers_of(*share));
                let own = job.worker_first + own.start * each..job.worker_first + own.end * each;
                if agents.len() < own.end as usize {
                    // Bound: `ObjectId::OWNER_MAX`, which reading a manifest holds.
                    agents.resize(own.end as usize, 0);
                }
                agents[own.start as usize..own.end as usize].fill(agent);
            }
        }
        agents
    };
    manifest.stages.iter().map(of_stage).collect()
}

impl Client {
    fn alone(manifest: &Manifest) -> Self {
        let stages = manifest.stages.iter().map(|stage| {
            let started = stage.started_ns.map(Moment::from_ns);
            Some(OwnStage {
                planned_index: stage.planned(),
                started,
                jobs: stage.jobs.iter().map(MergedJob::from).collect(),
            })
        });
        Self {
            plan: manifest.plan(),
            seed: manifest.seed,
            worker_first: 0,
            workers_count: 0,
            stages: stages.collect(),
        }
    }

    fn of(manifest: &Manifest, run: &MergedRun) -> Self {
        let mut stages = vec![None; manifest.stages.len()];
        for of in &run.stages {
            let own = OwnStage {
                planned_index: of.planned_index,
                started: of.started_ns.map(Moment::from_ns),
                jobs: of.jobs.clone(),
            };
            if let Some(stage) = stages.get_mut(usize::from(of.index)) {
                *stage = Some(own);
            }
        }
        Self {
            plan: run.workload.as_ref().unwrap_or(&manifest.workload).plan(),
            // Where it has no workload of its own that of the whole is its own but for the seed.
            seed: run.seed.unwrap_or(manifest.seed),
            worker_first: run.worker_index_first,
            workers_count: run.workers_count,
            stages,
        }
    }

    fn at(&self, index: usize) -> Option<ClientStage<'_>> {
        let own = self.stages.get(index)?.as_ref()?;
        let plan = self.plan.as_ref();
        Some(ClientStage {
            planned: plan
                .and_then(|plan| Some((plan, plan.stages.get(usize::from(own.planned_index?))?))),
            seed: self.seed,
            worker_first: self.worker_first,
            started: own.started,
            jobs: &own.jobs,
        })
    }
}

impl ClientStage<'_> {
    /// Tells whether what workers of a job do counts from their beginning on.
    pub(crate) fn counts_at_once(&self, job: usize) -> bool {
        let planned = self.planned.and_then(|(_, stage)| stage.jobs.get(job));
        let is_plain = |job: &plan::Job| job.ramp.is_zero() && job.ramp_down.is_zero();
        planned.is_none_or(|job| is_plain(job) && job.start_delay.end().is_zero())
    }

    /// Tells whether workers of a job may begin after the stage does.
    pub(crate) fn is_delayed(&self, job: usize) -> bool {
        let planned = self.planned.and_then(|(_, stage)| stage.jobs.get(job));
        planned.is_some_and(|job| !job.start_delay.end().is_zero())
    }

    /// Returns when what a worker of a job does begins to count, by its number among its own;
    /// `None` where the client never began.
    fn measured_from(&self, job: usize, own: MergedJob, worker: u32) -> Option<(Moment, Moment)> {
        let started = self.started?;
        let planned = self.planned.and_then(|(_, stage)| stage.jobs.get(job));
        let from = planned.map_or(started, |job| {
            // Where each worker has several sessions with numbers, they begin together.
            let each = (own.workers_count / job.workers).max(1);
            // The delay was drawn for the number that it had in its own run.
            let number = WorkerId(own.worker_first + worker / each * each);
            let delay = start_delay(&job.start_delay, self.seed, number);
            started.after(delay).after(job.ramp)
        });
        Some((started, from))
    }

    /// Returns how long after that it counts, where the worker goes on after it.
    fn measured_for(&self, job: usize) -> Option<Duration> {
        let (_, stage) = self.planned?;
        let job = stage.jobs.get(job).filter(|job| !job.ramp_down.is_zero())?;
        [job.duration, stage.duration].into_iter().flatten().min()
    }

    /// Returns from when to when a job was measured, workers' own spans joined: the record says it
    /// of a schedule, and the plan when the others were to end; `None` where neither is known.
    pub(crate) fn measured_span(
        &self,
        job: usize,
        schedule: Option<&schema::Schedule>,
    ) -> Option<(Moment, Moment)> {
        let started = self.started?;
        let after = |ns| started.after(Duration::from_nanos(ns));
        if let Some((from, until)) = schedule.and_then(schema::Schedule::offered_span) {
            return Some((after(from), after(until)));
        }
        let (from, until) = self.planned_span(job)?;
        Some((started.after(from), started.after(until)))
    }

    /// Returns from when to when the plan has a job measured, since the client began the stage.
    pub(crate) fn planned_span(&self, job: usize) -> Option<(Duration, Duration)> {
        let (_, stage) = self.planned?;
        let job = stage.jobs.get(job)?;
        let duration = [job.duration, stage.duration].into_iter().flatten().min()?;
        let from = |delay: &Duration| delay.saturating_add(job.ramp);
        let until = from(job.start_delay.end()).saturating_add(duration);
        Some((from(job.start_delay.start()), until))
    }

    /// Tells whether a job may be done before its time is up.
    pub(crate) fn may_end_early(&self, job: usize) -> bool {
        let planned = self.planned.and_then(|(_, stage)| Some((stage, stage.jobs.get(job)?)));
        planned.is_some_and(|(stage, job)| stage.may_end_early(job))
    }
}

/// What makes jobs share a row, and of which agent.
#[derive(Clone, Copy, PartialEq)]
struct Key {
    shared: Shared,
    agent: Option<u16>,
}

#[derive(Clone, Copy, PartialEq)]
enum Shared {
    Job(usize),
    Group(bool, u32),
    Worker(usize, u32),
}

/// Returns the rows of a stage, and to which each worker belongs and from when on it counts, as
/// `change` has it: it is handed when the worker's client began the stage. `agents` has the agent
/// of each worker by its number, where there are some.
pub fn lay_out(
    stage: &schema::Stage,
    clients: &[ClientStage<'_>],
    rows: Rows,
    agents: &[u16],
    change: impl Fn(Moment, &mut WorkerRow),
) -> (Vec<RowJobs>, Vec<Option<WorkerRow>>) {
    let mut laid: Vec<(Key, RowJobs)> = Vec::new();
    let mut workers = Vec::new();
    for client in clients {
        for (index, job) in stage.jobs.iter().enumerate() {
            let own = client.jobs.get(index).copied();
            let own = own.unwrap_or_else(|| MergedJob::from(job));
            for worker in 0..own.workers_count {
                let number = own.worker_first + worker;
                let from = client.measured_from(index, own, worker);
                // Of a client that did not begin the stage there is nothing to count.
                let Some((started, measured_from)) = from else { continue };
                let shared = match (rows, job.group) {
                    (Rows::Workers, _) => Shared::Worker(index, worker),
                    // Figures of objects and of files do not add up.
                    (_, Some(group)) => Shared::Group(job.is_on_files, group),
                    (_, None) => Shared::Job(index),
                };
                let agent = agents.get(number as usize).copied().filter(|_| rows != Rows::Jobs);
                let key = Key { shared, agent };
                // Workers of one number are of another machine in each client.
                let is_new_row = rows == Rows::Workers;
                let row = row_of(&mut laid, key, index, is_new_row);
                let lasts = client.measured_for(index);
                let measured_until = lasts.map(|lasts| measured_from.after(lasts));
                let mut row = WorkerRow { row: row as u32, measured_from, measured_until };
                change(started, &mut row);
                let at = (client.worker_first + number) as usize;
                if workers.len() <= at {
                    // Bound: `ObjectId::OWNER_MAX`, which reading a manifest holds.
                    workers.resize(at + 1, None);
                }
                workers[at] = Some(row);
            }
        }
    }
    (laid.into_iter().map(|(_, row)| row).collect(), workers)
}

/// Returns the row of a job, which is added where it is not there yet.
fn row_of(laid: &mut Vec<(Key, RowJobs)>, key: Key, job: usize, is_new: bool) -> usize {
    let same = laid.iter().position(|(known, _)| *known == key).filter(|_| !is_new);
    if let Some(row) = same {
        let jobs = &mut laid[row].1.jobs;
        if !jobs.contains(&job) {
            jobs.push(job);
        }
        return row;
    }
    let worker = if let Shared::Worker(_, worker) = key.shared { Some(worker) } else { None };
    laid.push((key, RowJobs { jobs: vec![job], worker, agent: key.agent }));
    laid.len() - 1
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;

//! The clients of a run on files: one, or of a merged run several, each with a workload, workers
//! and beginnings of its own.

use std::time::Duration;

use plimsoll_analysis::phases::WorkerRow;
use plimsoll_engine::{JobTiming, start_delay};
use plimsoll_model::{Moment, WorkerId};
use plimsoll_record::MergeJob;
use plimsoll_record::schema::{Manifest, MergedRun};
use plimsoll_workload::files::{FILES_SCHEMA, FileJobSpec, FileStageSpec, FilesSpec};
use serde_json::Value;

use super::rows::described;
use super::{RowJobs, Rows};

/// The clients of a run on files.
pub(crate) struct FileClients(Vec<FileClient>);

struct FileClient {
    spec: FilesSpec,
    /// Its first worker, as numbered in the run.
    worker_first: u32,
    /// By the stages of the run its own, where it has them.
    stages: Vec<Option<OwnStage>>,
}

#[derive(Clone, Copy)]
struct OwnStage {
    /// Which one of its workload it is.
    index: usize,
    started: Option<Moment>,
}

/// What a client does in a stage.
#[derive(Clone, Copy)]
pub(super) struct ClientStage<'a> {
    pub(super) stage: &'a FileStageSpec,
    seed: u64,
    worker_first: u32,
    started: Option<Moment>,
}

impl FileClients {
    /// Returns the clients of a run; `None` where it is not on files.
    pub(crate) fn of(manifest: &Manifest) -> Option<Self> {
        if manifest.merged.is_empty() {
            return Some(Self::alone(spec_of(manifest.workload.clone())?, manifest));
        }
        let clients = manifest.merged.iter().map(|run| FileClient::of(manifest, run));
        clients.collect::<Option<_>>().map(Self)
    }

    /// Returns the one client of a run.
    pub(super) fn alone(spec: FilesSpec, manifest: &Manifest) -> Self {
        let stages = manifest.stages.iter().enumerate().map(|(index, stage)| {
            Some(OwnStage { index, started: stage.started_ns.map(Moment::from_ns) })
        });
        let stages = stages.collect();
        Self(vec![FileClient { spec, worker_first: 0, stages }])
    }

    /// Returns the workload of the first, whose name is that of all.
    pub(super) fn first(&self) -> &FilesSpec {
        &self.0[0].spec
    }

    /// Tells whether all check what they read.
    pub(super) fn all_verify(&self) -> bool {
        self.0.iter().all(|client| client.spec.verify)
    }

    /// Returns all jobs of all clients.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &FileJobSpec> {
        let stages = self.0.iter().flat_map(|client| &client.spec.stages);
        stages.flat_map(|stage| &stage.jobs)
    }

    /// Returns what each client does that has the stage; their jobs are the same but for what each
    /// is given to do.
    pub(super) fn at(&self, stage: usize) -> Vec<ClientStage<'_>> {
        let of_client = |client| FileClient::at(client, stage);
        self.0.iter().filter_map(of_client).collect()
    }

    /// Returns what must be alike of the jobs of each stage for runs to be merged.
    pub(crate) fn jobs_to_merge(&self, stages_count: usize) -> Vec<Vec<MergeJob>> {
        let job = |job: &FileJobSpec| MergeJob {
            name: job.name.clone(),
            work: described(job).work,
            group: job.group,
        };
        let of_stage = |stage: usize| {
            let first = self.at(stage).into_iter().next();
            first.map_or(Vec::new(), |of| of.stage.jobs.iter().map(job).collect())
        };
        (0..stages_count).map(of_stage).collect()
    }
}

impl FileClient {
    fn of(manifest: &Manifest, run: &MergedRun) -> Option<Self> {
        let workload = run.workload.as_ref().unwrap_or(&manifest.workload);
        let mut spec = spec_of(workload.clone())?;
        // Where it has no workload of its own that of the whole is its own but for the seed.
        spec.seed = run.seed.unwrap_or(spec.seed);
        let mut stages = vec![None; manifest.stages.len()];
        for of in &run.stages {
            let own = OwnStage {
                index: usize::from(of.own_index),
                started: of.started_ns.map(Moment::from_ns),
            };
            *stages.get_mut(usize::from(of.index))? = Some(own);
        }
        Some(Self { spec, worker_first: run.worker_index_first, stages })
    }

    fn at(&self, stage: usize) -> Option<ClientStage<'_>> {
        let OwnStage { index, started } = (*self.stages.get(stage)?)?;
        Some(ClientStage {
            stage: self.spec.stages.get(index)?,
            seed: self.spec.seed,
            worker_first: self.worker_first,
            started,
        })
    }
}

/// Returns a workload on files; `None` where it is another.
fn spec_of(workload: Value) -> Option<FilesSpec> {
    let is_ours = workload["schema"].as_str() == Some(FILES_SCHEMA);
    is_ours.then(|| serde_json::from_value(workload).ok()).flatten()
}

/// Returns the rows of a stage, and to which each worker belongs and from when on it counts, as
/// `change` has it: it is handed when the worker's client began the stage.
pub(super) fn lay_out(
    clients: &[ClientStage<'_>],
    rows: Rows,
    change: impl Fn(Moment, &mut WorkerRow),
) -> (Vec<RowJobs>, Vec<Option<WorkerRow>>) {
    let mut laid: Vec<(u32, RowJobs)> = Vec::new();
    let mut workers = Vec::new();
    for client in clients {
        // Of a client that did not begin the stage there is nothing to count.
        let Some(started) = client.started else { continue };
        let mut number = client.worker_first;
        for (index, job) in client.stage.jobs.iter().enumerate() {
            let range = JobTiming::of_files(job).start_delay;
            for clone in 0..job.clones {
                let row = row_of(&mut laid, rows, (index, job), clone);
                // The delay was drawn for the number that the worker had in its own run.
                let own = WorkerId(number - client.worker_first);
                let began = started.after(start_delay(&range, client.seed, own));
                let measured_from = began.after(Duration::from_nanos(job.ramp_ns));
                let mut worker = WorkerRow { row: row as u32, measured_from };
                change(started, &mut worker);
                let at = number as usize;
                if workers.len() <= at {
                    workers.resize(at + 1, None);
                }
                workers[at] = Some(worker);
                number += 1;
            }
        }
    }
    (laid.into_iter().map(|(_, row)| row).collect(), workers)
}

/// Returns the row of a clone of a job, which is added where it is not there yet.
fn row_of(
    laid: &mut Vec<(u32, RowJobs)>,
    rows: Rows,
    (index, job): (usize, &FileJobSpec),
    clone: u32,
) -> usize {
    let same = laid.iter().position(|(group, _)| *group == job.group);
    if let (Rows::Groups, Some(row)) = (rows, same) {
        let jobs = &mut laid[row].1.jobs;
        if !jobs.contains(&index) {
            jobs.push(index);
        }
        return row;
    }
    let clone = (rows == Rows::Clones).then_some(clone);
    laid.push((job.group, RowJobs { jobs: vec![index], clone }));
    laid.len() - 1
}

//! The jobs on files of a plan, laid out.

use std::time::Duration;

use plimsoll_model::Seed;

use super::Placing;
use crate::files::{
    BlocksSpec, CapSpec, FILES_SCHEMA, FileJobSpec, FilePacingSpec, FilePlan, FileStageSpec,
    FileWorkSpec, FilesSpec, FillFilesSpec, FillSpec, JobLayout, NamesSpec, SpanSpec, ThinkSpec,
};
use crate::plan::checked::{Amount, Files, Job, JobPacing, Members, Plan, SetIndex, Stage};
use crate::plan::path::InvalidField;
use crate::plan::units::Cap;
use crate::plan::work::{Blocks, Work};
use crate::{ArrivalLaw, Pacing};

/// Lays the jobs on files out; `None` where there is none. Stages have the numbers of the plan's.
pub(super) fn place(plan: &Plan, placing: &Placing<'_>) -> Result<Option<FilePlan>, InvalidField> {
    let on_files = |stage: &Stage| -> Vec<usize> {
        let jobs = stage.jobs.iter().enumerate();
        jobs.filter(|(_, job)| job.is_on_files(plan)).map(|(index, _)| index).collect()
    };
    let by_stage: Vec<Vec<usize>> = plan.stages.iter().map(on_files).collect();
    if by_stage.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    let (mut stages, mut layouts) = (Vec::new(), Vec::new());
    for (stage, indices) in plan.stages.iter().zip(&by_stage) {
        let jobs = || indices.iter().map(|&index| &stage.jobs[index]);
        stages.push(FileStageSpec {
            name: stage.name.clone(),
            iteration: stage.iteration,
            prepares: stage.kind == plimsoll_model::StageKind::Prepare,
            drop_caches: stage.drop_caches,
            end_on_failure: stage.end_on_failure,
            jobs: jobs().map(|job| job_spec(plan, stage, job)).collect(),
        });
        layouts.push(jobs().map(|job| layout(plan, job)).collect());
    }
    let Seed(seed) = placing.seed;
    let verify = plan.jobs().any(|job| job.is_on_files(plan) && job.verify);
    let schema = FILES_SCHEMA.to_owned();
    let spec = FilesSpec { schema, name: plan.name.clone(), seed, verify, stages };
    let laid = spec.lay_out(placing.run, layouts);
    laid.map(Some).map_err(|refused| {
        let (stage, job) = numbers(&refused.field);
        let job = by_stage.get(stage).and_then(|jobs| jobs.get(job));
        let path = match job {
            Some(&job) => plan.stages[stage].jobs[job].path.field("work"),
            None => plan.stages.first().expect("a plan has stages").path.clone(),
        };
        path.refuse(refused.reason)
    })
}

/// Returns the numbers in `stages[1].jobs[0]...`.
fn numbers(field: &str) -> (usize, usize) {
    let after = |word: &str| {
        let rest = field.split_once(word).map_or("", |(_, rest)| rest);
        let digits = rest.split(']').next().unwrap_or_default();
        digits.parse().unwrap_or(usize::MAX)
    };
    (after("stages["), after("jobs["))
}

fn files(plan: &Plan, set: SetIndex) -> &Files {
    match &plan.set(set).members {
        Members::Files(files) => files,
        _ => unreachable!("it was checked that work on blocks has sets of files"),
    }
}

/// Returns what the spec of a job does not say of it.
fn layout(plan: &Plan, job: &Job) -> JobLayout {
    let in_all = |amount: Option<Amount>| match amount {
        Some(Amount::All(all)) => Some(all),
        _ => None,
    };
    let files_of = match &job.work {
        Work::Blocks(blocks) => {
            let Files { job, workers, .. } = files(plan, blocks.set);
            Some((job.clone(), *workers))
        }
        _ => None,
    };
    let (ops_in_all, bytes_in_all) = (in_all(job.ops_max), in_all(job.bytes_max));
    JobLayout { files_of, verify: job.verify, ops_in_all, bytes_in_all }
}

fn job_spec(plan: &Plan, stage: &Stage, job: &Job) -> FileJobSpec {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let each = |amount: Option<Amount>| match amount {
        Some(Amount::Each(each)) => Some(each),
        _ => None,
    };
    let lasts = [job.duration, stage.duration].into_iter().flatten().min();
    FileJobSpec {
        name: job.name.clone(),
        group: job.group.unwrap_or_default(),
        clones: job.workers.get(),
        depth: job.depth.get(),
        interface: job.interface,
        start_delay_ns: SpanSpec {
            min: ns(*job.start_delay.start()),
            max: ns(*job.start_delay.end()),
        },
        ramp_ns: ns(job.ramp),
        duration_ns: lasts.map(ns),
        ops_max: each(job.ops_max),
        bytes_max: each(job.bytes_max),
        pacing: pacing(job),
        think: job.think.map(|think| ThinkSpec {
            pause_ns: ns(think.pause),
            spin_ns: ns(think.spin),
            every_ops: think.every_ops.get(),
        }),
        work: work(plan, job),
    }
}

fn pacing(job: &Job) -> FilePacingSpec {
    let cap = |cap: Cap| match cap {
        Cap::OpsPerSec(rate) => CapSpec::OpsPerSec(rate),
        Cap::BytesPerSec(rate) => CapSpec::BytesPerSec(rate),
    };
    match &job.pacing {
        JobPacing::Shared(Pacing::Closed) => FilePacingSpec::Closed,
        // Alike for all workers, so that together they come to the cap.
        JobPacing::Shared(Pacing::Capped { ops_per_sec }) => {
            let each = CapSpec::OpsPerSec(ops_per_sec / f64::from(job.workers.get()));
            FilePacingSpec::Capped { read: Some(each), write: Some(each), poisson: false }
        }
        JobPacing::Shared(Pacing::Open(open)) => FilePacingSpec::Open {
            rate: open.profile.to_string(),
            arrivals: open.arrivals.to_string(),
            max_in_flight: open.max_in_flight.get(),
        },
        JobPacing::CappedEach { read, write, arrivals } => FilePacingSpec::Capped {
            read: read.map(cap),
            write: write.map(cap),
            poisson: *arrivals == ArrivalLaw::Poisson,
        },
    }
}

fn work(plan: &Plan, job: &Job) -> FileWorkSpec {
    match &job.work {
        Work::Fill { sets, block_bytes, direct } => {
            let of = |set: &SetIndex| {
                let Files { job, workers, spec } = files(plan, *set).clone();
                FillFilesSpec { job, clones: workers, files: spec }
            };
            let files = sets.iter().map(of).collect();
            FileWorkSpec::Fill(FillSpec { files, block_bytes: *block_bytes, direct: *direct })
        }
        Work::Blocks(blocks) => {
            let Blocks { read_percent, read, write, order, repeats, seed, direct, .. } = &**blocks;
            let Blocks { sync, fsync_every, fdatasync_every, end_fsync, invalidates, .. } =
                **blocks;
            FileWorkSpec::Blocks(BlocksSpec {
                files: files(plan, blocks.set).spec.clone(),
                read_percent: *read_percent,
                read_blocks: read.clone(),
                write_blocks: write.clone(),
                order: *order,
                repeats: *repeats,
                seed: *seed,
                direct: *direct,
                sync,
                fsync_every,
                fdatasync_every,
                end_fsync,
                invalidates,
            })
        }
        Work::Names { set, act, shuffled } => {
            let Members::Tree(tree) = &plan.set(*set).members else {
                unreachable!("it was checked that work on names has a tree")
            };
            FileWorkSpec::Names(NamesSpec {
                tree: tree.clone(),
                act: *act,
                shift: job.deal.shift,
                shuffled: *shuffled,
            })
        }
        other => unreachable!("{other:?} is no work on files"),
    }
}

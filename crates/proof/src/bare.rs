//! The engine alone, with all operations of its measured stage kept: against a store that does
//! nothing, or one whose answers are known.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_conduct::RunTime;
use plimsoll_driver::Driver;
use plimsoll_driver::null::NullDriver;
use plimsoll_engine::{
    EngineConfig, JobTiming, KeptOps, Live, ObjectsJob, StageContext, StageOutcome, StageWork,
    StopFlag, run_stage,
};
use plimsoll_model::{OpRecord, Seed, StageId, StageKind};
use plimsoll_workload::data::Generator;
use plimsoll_workload::objects::Members;
use plimsoll_workload::plan::{Placing, Plan, WorkloadFile};

use crate::error::{Context, Result};
use crate::seed_of;

/// Runs the measured stage of a workload on one thread, against nothing, and returns every
/// operation.
pub(crate) fn run(file: &WorkloadFile, time: &RunTime) -> Result<(StageOutcome, Vec<OpRecord>)> {
    run_on(file.check()?, seed_of(file), &NullDriver, time)
}

/// The same against a store.
pub(crate) fn run_on<D: Driver>(
    plan: Plan,
    seed: Seed,
    driver: &D,
    time: &RunTime,
) -> Result<(StageOutcome, Vec<OpRecord>)> {
    let plan = Arc::new(plan);
    let placing =
        Placing { run: "proof", seed, buckets: &[String::new()], found: &BTreeMap::new() };
    let placed = plan.place(&placing)?;
    let index = plan.stages.iter().position(|stage| stage.kind == StageKind::Measure);
    let index = index.context("nothing is measured")?;
    let there = placed.sets.iter().map(|_| Members::all()).collect();
    let work = Arc::new(placed.stages[index].objects[0].work.with_members(there));
    let stage = &plan.stages[index];
    let generator = Arc::new(Generator::new(seed.0));
    let generators = [Arc::clone(&generator)].into();
    let live = Live::new(1);
    let context = StageContext {
        clock: &time.clock,
        virtual_time: time.virtual_time.as_ref(),
        stop: &StopFlag::default(),
        live: &live,
        generator: &generator,
        wall_epoch: time.wall_epoch,
        begins_at: None,
    };
    let config = EngineConfig { threads: 1, op_timeout: Duration::from_secs(10), retries: 0 };
    let mut kept = KeptOps::default();
    let timing = JobTiming::of_job(&stage.jobs[0], stage.duration);
    let job = ObjectsJob { timing, ..ObjectsJob::alone(driver, &work, &generators) };
    let work = StageWork::of_objects(StageId(0), job);
    let outcome = run_stage(&work, &config, &context, &mut kept)
        .map_err(plimsoll_conduct::ConductError::from)?;
    Ok((outcome, kept.0))
}

//! The engine alone, against a store that does nothing.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use plimsoll_driver::null::NullDriver;
use plimsoll_engine::{
    EngineConfig, Live, ObjectsJob, OpSink, OpSinkError, StageContext, StageOutcome, StageWork,
    StopFlag, run_stage,
};
use plimsoll_model::{Moment, OpRecord, PackedOp, StageId, StageKind};
use plimsoll_workload::data::Generator;
use plimsoll_workload::{Workload, WorkloadSpec};

use plimsoll_conduct::RunTime;

/// Keeps what was issued.
#[derive(Default)]
struct Kept(Vec<OpRecord>);

impl OpSink for Kept {
    fn append(&mut self, ops: &[PackedOp]) -> Result<(), OpSinkError> {
        self.0.extend(ops.iter().map(OpRecord::from));
        Ok(())
    }

    fn tick(&mut self, _: Moment) -> Result<(), OpSinkError> {
        Ok(())
    }
}

/// Runs the measured stage of a workload on one thread and returns every operation.
pub(super) fn run(spec: &WorkloadSpec, time: &RunTime) -> Result<(StageOutcome, Vec<OpRecord>)> {
    let workload: Arc<Workload> = Arc::new(spec.validate("proof", None)?);
    let (live, generator) = (Live::new(1), Arc::new(Generator::new(spec.seed)));
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
    let mut kept = Kept::default();
    let job = ObjectsJob::alone(&NullDriver, &workload, StageKind::Measure);
    let work = StageWork::of_objects(StageId(0), job);
    let outcome = run_stage(&work, &config, &context, &mut kept)?;
    Ok((outcome, kept.0))
}

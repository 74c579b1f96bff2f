//! When a stage of real threads ends.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::NullRings;
use plimsoll_driver::null::NullDriver;
use plimsoll_model::{Interface, Moment, OpRecord, PackedOp, SharedClock, StageId, StageKind};
use plimsoll_workload::data::Generator;

use crate::instrument_tests::workload;
use crate::ring_tests::{FILL, stages};
use crate::testing::files_of;
use crate::{
    EngineConfig, FilesJobs, Live, OpSink, OpSinkError, PastSink, RingConfig, RunClock,
    StageContext, StageWork, StopFlag, run_stage,
};

/// Keeps the end of the last operation, and the moment of the last tick, which comes when all
/// threads have ended and nothing is left to be taken.
#[derive(Default)]
struct Last {
    op: Moment,
    tick: Moment,
}

impl OpSink for Last {
    fn append(&mut self, ops: &[PackedOp]) -> Result<(), OpSinkError> {
        let ends = ops.iter().map(|op| OpRecord::from(op).end);
        self.op = ends.fold(self.op, Moment::max);
        Ok(())
    }

    fn tick(&mut self, now: Moment) -> Result<(), OpSinkError> {
        self.tick = now;
        Ok(())
    }

    fn past(&mut self) -> Option<&mut dyn PastSink> {
        None
    }
}

#[test]
fn a_stage_ends_with_its_last_worker_and_not_with_the_recorder() {
    let clock: SharedClock = Arc::new(RunClock::start());
    let (live, generator) = (Live::new(2), Arc::new(Generator::new(1)));
    let context = StageContext {
        clock: &clock,
        virtual_time: None,
        stop: &StopFlag::default(),
        live: &live,
        generator: &generator,
        wall_epoch: plimsoll_model::WallTime::from_unix_ns(0),
        begins_at: None,
    };
    let workload = workload("get", 2, "closed");
    let config = EngineConfig { threads: 2, op_timeout: Duration::from_secs(60), retries: 0 };
    let mut last = Last::default();
    let job = workload.alone(&NullDriver, StageKind::Prepare);
    let work = StageWork::of_objects(StageId(0), job);
    let ran = run_stage(&work, &config, &context, &mut last).unwrap();
    assert!(ran.started < last.op && last.op <= ran.ended && ran.ended <= last.tick);

    let plan = files_of(&stages(&[FILL]));
    let rings = RingConfig { threads: 2, interface: Interface::Psync };
    let mut last = Last::default();
    let files = FilesJobs::alone(&NullRings, &plan, 0, rings);
    let work = StageWork::of_files(StageId(0), files);
    let ran = run_stage(&work, &config, &context, &mut last).unwrap();
    assert!(ran.started < last.op && last.op <= ran.ended && ran.ended <= last.tick);
}

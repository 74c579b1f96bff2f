//! A job on objects as its workers see it.

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{
    EndpointId, JobId, Moment, SharedClock, StageId, StageKind, WallTime, WorkerId,
};
use plimsoll_workload::data::Generator;
use plimsoll_workload::{Activity, Workload};

use crate::clock::Waiting;
use crate::pacing::{Pacer, StageEnd, WorkerPlace};
use crate::server_names::{ServerNames, VersionNames};
use crate::timing::{JobTiming, OpsLeft, Stops};

/// What all workers of a job share.
pub(crate) struct JobFacts<'a> {
    pub(crate) workload: Arc<Workload>,
    pub(crate) generator: Arc<Generator>,
    pub(crate) stage: StageId,
    pub(crate) job: JobId,
    pub(crate) kind: StageKind,
    pub(crate) timing: JobTiming,
    /// Those of its workers that run here.
    pub(crate) workers: Range<u32>,
    /// The number in the stage of the first worker of all.
    pub(crate) number_first: u32,
    /// The number of its target's first address.
    pub(crate) endpoint_first: u16,
    pub(crate) op_timeout: Duration,
    pub(crate) retries: u8,
    pub(crate) clock: SharedClock,
    /// The wall time at the clock's epoch.
    pub(crate) wall_epoch: WallTime,
    pub(crate) waiting: Waiting,
    /// What the store calls that which earlier stages wrote.
    pub(crate) server_names: Option<Arc<ServerNames>>,
    /// Whether operations are about what the store gave a name to, and what it calls that which is
    /// written is kept for later stages.
    pub(crate) uses_names: bool,
    pub(crate) stops: Stops<'a>,
    pub(crate) stage_duration: Option<Duration>,
    pub(crate) stage_ops_left: Option<Arc<OpsLeft>>,
}

impl JobFacts<'_> {
    /// Tells whether each worker uploads objects in parts.
    pub(crate) fn uploads(&self) -> bool {
        let in_parts = matches!(self.workload.activity, Activity::MultipartPut { .. });
        self.kind == StageKind::Measure && in_parts
    }

    /// Returns how many sessions each worker has of its own, and numbers in the stage.
    pub(crate) fn sessions_each(&self) -> u32 {
        sessions_each(&self.workload, self.kind)
    }

    /// Returns the number in the stage of a worker, or of its first session.
    pub(crate) fn number(&self, worker: WorkerId) -> WorkerId {
        WorkerId(self.number_first + worker.0 * self.sessions_each())
    }

    /// Returns the names that a worker needs, `None` where operations are about none; what prepares
    /// is written in order, and is about none yet.
    pub(crate) fn version_names(&self) -> Option<VersionNames> {
        let uses = self.uses_names && self.kind == StageKind::Measure;
        uses.then(|| VersionNames::new(self.server_names.as_ref()))
    }

    /// Returns the pacing of a worker of a stage that begins at `started`.
    pub(crate) fn pacer(&self, worker: WorkerId, started: Moment) -> Pacer {
        let workers: NonZeroU32 = self.workload.concurrency;
        let (number, seed) = (self.number(worker), self.workload.seed.0);
        let place = WorkerPlace { worker, workers, number, seed };
        let duration = self.stage_duration;
        let end = StageEnd { duration, ops_left: self.stage_ops_left.as_ref() };
        Pacer::new(&self.timing, place, end, started)
    }

    /// Returns the number in the record of an address of the job's target.
    pub(crate) fn endpoint(&self, endpoint: EndpointId) -> EndpointId {
        EndpointId(self.endpoint_first + endpoint.0)
    }
}

/// Returns how many sessions each worker of a stage has of its own: of each upload in parts there
/// are several.
pub(crate) fn sessions_each(workload: &Workload, kind: StageKind) -> u32 {
    match (kind, &workload.activity) {
        (StageKind::Measure, Activity::MultipartPut { part_concurrency, .. }) => {
            part_concurrency.get()
        }
        _ => 1,
    }
}

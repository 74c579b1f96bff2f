//! A job on objects as its workers see it.

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{EndpointId, JobId, Moment, SharedClock, StageId, WallTime, WorkerId};
use plimsoll_workload::PrefixHash;
use plimsoll_workload::data::Generator;
use plimsoll_workload::objects::{ObjectsJob, UploadPlan};
use plimsoll_workload::plan::SetIndex;

use crate::clock::Waiting;
use crate::pacing::{Pacer, StageEnd, WorkerPlace, arrivals_seed};
use crate::server_names::{ServerNames, VersionNames};
use crate::timing::{JobTiming, OpsLeft, Stops};

/// What all workers of a job share.
pub(crate) struct JobFacts<'a> {
    pub(crate) work: Arc<ObjectsJob>,
    /// By set: what hashes its keys.
    pub(crate) key_hashes: Vec<PrefixHash>,
    /// By set: what its content is made by.
    pub(crate) generators: Arc<[Arc<Generator>]>,
    pub(crate) stage: StageId,
    pub(crate) job: JobId,
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
    /// What the store calls that which earlier stages wrote, where operations are about it.
    pub(crate) server_names: Option<Arc<ServerNames>>,
    pub(crate) stops: Stops<'a>,
    pub(crate) stage_duration: Option<Duration>,
    pub(crate) stage_ops_left: Option<Arc<OpsLeft>>,
}

impl JobFacts<'_> {
    /// Tells whether each worker uploads objects in parts.
    pub(crate) fn uploads(&self) -> bool {
        matches!(self.work.upload(), Some(UploadPlan::Each { .. }))
    }

    /// Returns how many sessions each worker has of its own, and numbers in the stage.
    pub(crate) fn sessions_each(&self) -> u32 {
        sessions_each(&self.work)
    }

    /// Returns the number in the stage of a worker, or of its first session.
    pub(crate) fn number(&self, worker: WorkerId) -> WorkerId {
        WorkerId(self.number_first + worker.0 * self.sessions_each())
    }

    /// Returns the pacing of a worker of a stage that begins at `started`.
    pub(crate) fn pacer(&self, worker: WorkerId, started: Moment) -> Pacer {
        let workers: NonZeroU32 = self.work.workers;
        let (number, seed) = (self.number(worker), self.work.seed.0);
        let arrivals_seed = arrivals_seed(seed, self.stage);
        let place = WorkerPlace { worker, workers, number, seed, arrivals_seed };
        let duration = self.stage_duration;
        let end = StageEnd { duration, ops_left: self.stage_ops_left.as_ref() };
        let pacer = Pacer::new(&self.timing, place, end, started);
        match self.work.times(worker).filter(|_| pacer.is_open()) {
            Some(times) => pacer.at_times(times),
            None => pacer,
        }
    }

    /// Returns what versions are called, for a worker.
    pub(crate) fn version_names(&self) -> VersionNames {
        VersionNames::new(Arc::clone(&self.work), self.server_names.clone())
    }

    /// Returns what the content of a set is made by.
    pub(crate) fn generator(&self, set: SetIndex) -> &Arc<Generator> {
        &self.generators[set.0]
    }

    /// Returns the number in the record of an address of the job's target.
    pub(crate) fn endpoint(&self, endpoint: EndpointId) -> EndpointId {
        EndpointId(self.endpoint_first + endpoint.0)
    }
}

/// Returns how many sessions each worker of a stage has of its own: of each upload in parts there
/// are several.
pub(crate) fn sessions_each(work: &ObjectsJob) -> u32 {
    match work.upload() {
        Some(UploadPlan::Each { at_once }) => at_once.get(),
        Some(UploadPlan::Together) | None => 1,
    }
}

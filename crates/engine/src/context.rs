//! What a stage runs with: how the engine drives it, and the run around it.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{Moment, SharedClock, WallTime};
use plimsoll_workload::data::Generator;

use crate::live::{Live, StopFlag};
use crate::virtual_time::VirtualTime;

/// How the engine drives the jobs on objects of a stage.
#[derive(Clone, Copy, Debug)]
pub struct EngineConfig {
    /// Threads that drive workers; never more than there are workers.
    pub threads: usize,
    /// An operation that takes longer is given up and counted as `timeout`.
    pub op_timeout: Duration,
    /// Further attempts after a transient failure, at most 254; their time is inside the latency.
    pub retries: u8,
}

/// What a stage runs with.
#[derive(Clone, Copy)]
pub struct StageContext<'a> {
    /// The run's clock.
    pub clock: &'a SharedClock,
    /// The same clock where time is virtual: then everything runs on the calling thread.
    pub virtual_time: Option<&'a Arc<VirtualTime>>,
    /// Ends the stage early.
    pub stop: &'a StopFlag,
    /// Where to count for a display; made for at least as many threads as the stage has.
    pub live: &'a Live,
    /// The run's content generator.
    pub generator: &'a Arc<Generator>,
    /// The wall time at the clock's epoch.
    pub wall_epoch: WallTime,
    /// When the stage begins: threads make themselves ready and wait for it. `None`: as soon as all
    /// are ready.
    pub begins_at: Option<Moment>,
}

//! What a check does, what it runs with and what comes of it.

use std::time::Duration;

use plimsoll_driver::DriverError;
use plimsoll_model::{Moment, SharedClock};

use crate::live::{Live, StopFlag};

/// What a check does.
#[derive(Clone, Debug)]
pub struct CheckConfig {
    /// All keys begin with it.
    pub prefix: String,
    /// Loops that do one operation at a time, at most `ValueId::WRITERS_MAX`.
    pub workers: u32,
    /// Threads that drive them.
    pub threads: usize,
    /// How many keys are in use at one time.
    pub keys: u32,
    /// Whether keys are listed.
    pub lists: bool,
    /// Fixes what each worker asks for, but not what comes first.
    pub seed: u64,
    /// Tells the content of this run from that of others.
    pub salt: u64,
    /// When to end.
    pub duration: Option<Duration>,
    /// After how many operations to end.
    pub ops_max: Option<u64>,
    /// An operation that takes longer is given up; a write may then take effect at any time.
    pub op_timeout: Duration,
}

/// What a check runs with.
pub struct CheckContext<'a> {
    /// The run's clock.
    pub clock: &'a SharedClock,
    /// Ends the check early.
    pub stop: &'a StopFlag,
    /// Where to count for a display; made for at least as many threads as the configuration has.
    pub live: &'a Live,
}

/// What was done, whatever it told.
#[derive(Clone, Debug)]
pub struct CheckOutcome {
    /// When the first worker began.
    pub started: Moment,
    /// When the last worker had ended.
    pub ended: Moment,
    /// Operations begun; all of them have ended.
    pub ops_count: u64,
    /// Keys used: those at the beginning, and one for each that was given up because too many of
    /// its writes had an unknown outcome.
    pub keys_count: u32,
    /// The first failure of each class.
    pub errors: Vec<DriverError>,
}

//! Doing it: who is next, who waits, when to stop, whether the answer was right.
//!
//! The planner is a core without IO; the pump carries its operations to sessions on one thread per
//! core. No concrete driver, no disk format and no terminal is known here.

mod check;
mod clock;
mod context;
mod executor;
mod job;
mod live;
mod objects;
mod outcome;
mod pacing;
mod past;
mod pump;
mod records;
mod ring;
mod seen;
mod server_names;
mod source;
mod sources;
mod stage;
mod standstill;
mod thread_usage;
mod threads;
mod timing;
mod verify;
mod virtual_time;
mod watch;

#[cfg(test)]
mod activity_tests;
#[cfg(test)]
mod instrument_tests;
#[cfg(test)]
mod open_tests;
#[cfg(test)]
mod replay_tests;
#[cfg(test)]
mod ring_look_tests;
#[cfg(test)]
mod ring_schedule_tests;
#[cfg(test)]
mod ring_tests;
#[cfg(test)]
mod settle_tests;
#[cfg(test)]
mod stage_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod threads_tests;
#[cfg(test)]
mod upload_tests;

pub use check::{CheckConfig, CheckContext, CheckOutcome, run_check};
pub use clock::{RunClock, thread_cpu_time};
pub use context::{EngineConfig, StageContext};
pub use live::{
    COARSE_CELLS, LATENCY_CELLS, LIVE_HOSTS_MAX, LIVE_JOBS_MAX, Live, LiveCounts, LiveDetail,
    LivePart, PartState, StopFlag, coarse_cell, coarse_cell_end_ns, latency_cell_end_ns,
};
pub use outcome::{
    EngineError, ErrorSample, JobOutcome, KeptOps, LooksOutcome, OpSink, OpSinkError, PastSink,
    ScheduleOutcome, StageOutcome, Unchecked,
};
pub use ring::{FilesJob, RingConfig, ring_slots, ring_threads};
pub use seen::{JobSeen, PartSeen, RuleSeen};
pub use server_names::ServerNames;
pub use stage::{FilesJobs, ObjectsJob, StageWork, run_stage, stage_threads};
pub use timing::{JobTiming, StageLimits};
pub use virtual_time::VirtualTime;
pub use watch::{StageRules, stop_time_min};

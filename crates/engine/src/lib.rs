//! Doing it: who is next, who waits, when to stop, whether the answer was right.
//!
//! The planner is a core without IO; the pump carries its operations to sessions on one thread per
//! core. No concrete driver, no disk format and no terminal is known here.

mod clock;
mod live;
mod planner;
mod pump;
mod stage;
mod verify;
mod watch;
mod worker;

#[cfg(test)]
mod instrument_tests;

pub use clock::{RunClock, thread_cpu_time};
pub use live::{Live, LiveCounts, StopFlag};
pub use planner::{EndReason, Planner, Step};
pub use stage::{
    EngineConfig, EngineError, ErrorSample, OpSink, OpSinkError, StageContext, StageOutcome,
    run_stage,
};
pub use watch::stop_time_min;

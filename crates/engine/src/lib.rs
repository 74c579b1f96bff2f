//! Doing it: who is next, who waits, when to stop, whether the answer was right.
//!
//! The planner is a core without IO; the pump carries its operations to sessions on one thread per
//! core. No concrete driver, no disk format and no terminal is known here.

mod check;
mod clock;
mod crew;
mod lane;
mod live;
mod open;
mod planner;
mod pump;
mod ring;
mod server_names;
mod stage;
mod uploads;
mod verify;
mod virtual_time;
mod watch;
mod worker;

#[cfg(test)]
mod activity_tests;
#[cfg(test)]
mod crew_tests;
#[cfg(test)]
mod instrument_tests;
#[cfg(test)]
mod open_tests;
#[cfg(test)]
mod ring_look_tests;
#[cfg(test)]
mod ring_schedule_tests;
#[cfg(test)]
mod ring_tests;
#[cfg(test)]
mod settle_tests;

pub use check::{CheckConfig, CheckContext, CheckOutcome, run_check};
pub use clock::{RunClock, thread_cpu_time};
pub use lane::start_delay;
pub use live::{LATENCY_CELLS, Live, LiveCounts, LiveDetail, StopFlag, latency_cell_end_ns};
pub use planner::{EndReason, Planner, Step};
pub use ring::{RingConfig, ring_slots, ring_threads, run_ring_stage};
pub use server_names::ServerNames;
pub use stage::{
    EngineConfig, EngineError, ErrorSample, LooksOutcome, OpSink, OpSinkError, ScheduleOutcome,
    StageContext, StageOutcome, run_stage,
};
pub use virtual_time::VirtualTime;
pub use watch::stop_time_min;

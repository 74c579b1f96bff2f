//! What the tests of several crates share: the live servers, and a clock that stands still.
//!
//! A dev-dependency only; nothing that ships may know it.

mod clock;
mod live;

pub use clock::ManualClock;
pub use live::{LiveKind, LiveServer, live};

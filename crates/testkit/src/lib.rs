//! What the tests of several crates share: live servers, a clock that stands still, a count of the
//! memory that is held, the committed formats.
//!
//! A dev-dependency only; nothing that ships may know it.

pub mod browser;
pub mod documents;
pub mod golden;
pub mod held;
pub mod weed;

mod clock;
mod formats;
mod live;

pub use clock::ManualClock;
pub use formats::{check_format, property_names};
pub use live::{
    LiveKind, LiveServer, TokenKeys, live, nats_server, prometheus_folder, python_site,
};

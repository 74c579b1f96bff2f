//! The wall clock that dates objects; nothing else in this crate reads a clock.

#![expect(
    clippy::disallowed_methods,
    reason = "Last-Modified is wall time, and this is its one reader"
)]

use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_model::WallTime;

/// Returns the wall time now; a clock set before 1970 reads as 1970.
pub fn wall_time() -> WallTime {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::from_unix_ns(0).after(since_epoch)
}

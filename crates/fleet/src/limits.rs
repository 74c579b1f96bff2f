//! How long anybody waits for anybody, and what there is room for.

use std::path::Path;
use std::time::Duration;

/// Returns how much is free on the disk of a directory; `u64::MAX` where that cannot be told.
pub(crate) fn free_bytes(directory: &Path) -> u64 {
    let facts = rustix::fs::statvfs(directory);
    facts.map_or(u64::MAX, |of| of.f_bavail.saturating_mul(of.f_frsize))
}

/// How long coordinator and agents wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// After so long without an answer a coordinator asks again, and an agent tells how far it is.
    pub say_every: Duration,
    /// An agent that was not responding for so long is called silent.
    pub silent_after: Duration,
    /// An agent that was not responding for so long is lost, and so is a coordinator.
    pub lost_after: Duration,
    /// An agent that works without progress is lost this long after at least as many others are
    /// done, or after ten times as long as they took, whichever is longer. A warning names it after
    /// a tenth of that.
    pub lag_max: Duration,
    /// An agent that does not end its step is lost this long after the stop order.
    pub end_max: Duration,
}

impl Limits {
    /// Those of a fleet where nobody says otherwise.
    pub const DEFAULT: Self = Self {
        say_every: Duration::from_millis(500),
        silent_after: Duration::from_secs(2),
        lost_after: Duration::from_secs(10),
        lag_max: Duration::from_secs(300),
        end_max: Duration::from_secs(10),
    };
}

impl Limits {
    /// The same limits where one operation may take this long: agents finish what is in flight.
    pub fn with_operations_of(self, longest: Duration) -> Self {
        let (lag_max, end_max) = (self.lag_max + longest, self.end_max + longest);
        Self { lag_max, end_max, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

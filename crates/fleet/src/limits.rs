//! How long anybody waits for anybody.

use std::time::Duration;

/// How long coordinator and agents wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// After so long without an answer a coordinator asks again, and an agent tells how far it is.
    pub say_every: Duration,
    /// An agent that was not responding for so long is called silent.
    pub silent_after: Duration,
    /// An agent that was not responding for so long is lost, and so is a coordinator.
    pub lost_after: Duration,
}

impl Limits {
    /// Those of a fleet where nobody says otherwise.
    pub const DEFAULT: Self = Self {
        say_every: Duration::from_millis(500),
        silent_after: Duration::from_secs(2),
        lost_after: Duration::from_secs(10),
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

//! How much of what one sender says is taken: whoever floods is not heard, and the others are.

use std::collections::HashMap;
use tokio::time::Instant;

use crate::protocol::{AgentId, MESSAGE_BYTES_MAX};

/// So many messages of a sender are taken at once; an agent says two a second and answers probes.
const MESSAGES_MAX: f64 = 4_096.0;
const MESSAGES_PER_SEC: f64 = 1_024.0;
/// So many bytes of a sender are taken at once.
const BYTES_MAX: f64 = (32 << 20) as f64;
const BYTES_PER_SEC: f64 = (8 << 20) as f64;
/// So many senders are told apart; others are one. A fleet has no more agents.
const SENDERS_MAX: usize = 1 << 16;

/// What one sender may still say.
#[derive(Debug)]
struct Budget {
    messages: f64,
    bytes: f64,
    at: Instant,
}

impl Budget {
    fn spend(&mut self, size: usize, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        self.messages = (self.messages + since * MESSAGES_PER_SEC).min(MESSAGES_MAX);
        self.bytes = (self.bytes + since * BYTES_PER_SEC).min(BYTES_MAX);
        let size = size as f64;
        let is_enough = self.messages >= 1.0 && self.bytes >= size;
        if is_enough {
            self.messages -= 1.0;
            self.bytes -= size;
        }
        is_enough
    }
}

/// What each sender may still say.
#[derive(Debug, Default)]
pub(super) struct Budgets(HashMap<Option<AgentId>, Budget>);

impl Budgets {
    /// Tells whether a message of so many bytes is taken, which then counts.
    pub(super) fn spend(&mut self, from: Option<&AgentId>, size: usize, now: Instant) -> bool {
        if size > MESSAGE_BYTES_MAX {
            return false;
        }
        let is_known = self.0.len() < SENDERS_MAX || self.0.contains_key(&from.cloned());
        let sender = from.filter(|_| is_known).cloned();
        let new = || Budget { messages: MESSAGES_MAX, bytes: BYTES_MAX, at: now };
        self.0.entry(sender).or_insert_with(new).spend(size, now)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_floods_is_not_heard_and_others_are() {
        let [loud, quiet] = ["loud", "quiet"].map(|id| AgentId::new(id).unwrap());
        let begun = Instant::now();
        let mut budgets = Budgets::default();
        let taken = (0..100_000).filter(|_| budgets.spend(Some(&loud), 100, begun)).count();
        assert_eq!(taken, 4_096);
        assert!(budgets.spend(Some(&quiet), 100, begun));
        let later = begun + Duration::from_secs(1);
        let taken = (0..100_000).filter(|_| budgets.spend(Some(&loud), 100, later)).count();
        assert_eq!(taken, 1_024);
        // Large ones count by their size, and none is larger than messages are.
        let taken = (0..1_000).filter(|_| budgets.spend(Some(&quiet), 1 << 19, later)).count();
        assert_eq!(taken, 64);
        assert!(!budgets.spend(None, MESSAGE_BYTES_MAX + 1, later));
    }
}

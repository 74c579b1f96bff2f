//! What carries messages and larger contents between a coordinator and its agents.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::protocol::{AgentId, NAME_BYTES_MAX};

/// To whom a message goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// All agents.
    Agents,
    /// One agent.
    Agent(AgentId),
    /// All coordinators, from this agent; each knows what concerns it.
    Coordinators(AgentId),
}

/// Where a content is kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Coordinators write it, and all agents may read it.
    Shared,
    /// An agent's own, which coordinators may read and clear.
    Of(AgentId),
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared => f.write_str("the coordinator"),
            Self::Of(agent) => write!(f, "agent {}", agent.as_str()),
        }
    }
}

/// Describes a content that a fabric keeps. Its owner sends this in a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// What it is called.
    pub name: String,
    /// Ends the subject under which it is kept; nobody can guess it.
    pub word: String,
    /// How long it is.
    pub size_bytes: u64,
    /// The SHA-256 of it, in base64.
    pub sha256: String,
}

/// What a fabric brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A message.
    Message {
        /// Which agent sent it, where it comes from one and the fabric knows.
        from: Option<AgentId>,
        /// What it says.
        bytes: Vec<u8>,
    },
    /// The connection of an agent's process has ended.
    Disconnected {
        /// Whose.
        agent: AgentId,
        /// Of which process.
        incarnation: u64,
    },
}

/// How many bytes of messages may wait; what comes beyond is dropped, as messages may be. While the
/// targets of a run are opened, none is taken for minutes.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// What a message takes besides its bytes.
const ARRIVAL_BYTES: usize = 256;

/// What has arrived and waits to be taken.
#[derive(Debug)]
pub struct Arrivals {
    queue: Receiver<Arrival>,
    waiting: Arc<AtomicUsize>,
}

/// Hands over what arrives.
#[derive(Clone, Debug)]
pub struct Deliver {
    queue: Sender<Arrival>,
    waiting: Arc<AtomicUsize>,
}

/// Returns a queue of what arrives.
pub fn arrivals() -> (Deliver, Arrivals) {
    let ((to, queue), waiting) = (channel(), Arc::<AtomicUsize>::default());
    (Deliver { queue: to, waiting: Arc::clone(&waiting) }, Arrivals { queue, waiting })
}

impl Arrival {
    fn size(&self) -> usize {
        ARRIVAL_BYTES
            + match self {
                Self::Message { bytes, .. } => bytes.len(),
                Self::Disconnected { .. } => 0,
            }
    }
}

impl Deliver {
    /// Hands it over if there is room; returns whether anybody is left who takes it.
    pub fn deliver(&self, arrival: Arrival) -> bool {
        let size = arrival.size();
        if self.waiting.fetch_add(size, Ordering::AcqRel) + size > WAITING_BYTES_MAX {
            self.waiting.fetch_sub(size, Ordering::AcqRel);
            return true;
        }
        self.queue.send(arrival).is_ok()
    }
}

impl Arrivals {
    /// Takes the next one; waits for it for so long.
    pub fn recv_timeout(&self, longest: Duration) -> Result<Arrival, RecvTimeoutError> {
        let arrival = self.queue.recv_timeout(longest)?;
        self.waiting.fetch_sub(arrival.size(), Ordering::AcqRel);
        Ok(arrival)
    }
}

/// Tells whether a text may be the part of a name that nobody guesses.
pub(crate) fn is_word(text: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric();
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_good)
}

/// Carries messages, which may be lost, come twice or late, and contents, which are there or not.
///
/// What arrives is handed to whoever made the connection.
pub trait Fabric: Send + Sync {
    /// Sends a message, and does not wait for anybody.
    fn post(&self, to: &Address, message: Vec<u8>) -> Result<(), FabricError>;

    /// Makes the shared space, if it is not there, and that of each of these agents, which keeps
    /// what lies below a word that nobody else knows: whatever another has a server answer does not
    /// take its room. Each has the same part of the room that there is.
    fn make(&self, agents: &[(AgentId, String)]) -> Result<(), FabricError>;

    /// Keeps a content under a name, in place of what was there, until it is removed. When this
    /// returns, it is kept. A name is a path of `/` and no empty names.
    fn put(&self, of: &Space, name: &str, content: &mut dyn Read) -> Result<Kept, FabricError>;

    /// Fetches a content, and checks that it is what was put there.
    fn get(&self, of: &Space, kept: &Kept, to: &mut dyn Write) -> Result<u64, FabricError>;

    /// Removes all contents whose names lie below a path.
    fn remove(&self, of: &Space, path: &str) -> Result<(), FabricError>;
}

/// Why a fabric did not do what it was asked.
#[derive(Debug, Error)]
pub enum FabricError {
    /// There is no such content.
    #[error("there is no `{name}` of {of}")]
    Missing {
        /// Whose.
        of: Space,
        /// What it is called.
        name: String,
    },
    /// It came to an end on the way.
    #[error("{what}")]
    Failed {
        /// What could not be done.
        what: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_takes_is_dropped_before_it_fills_the_memory() {
        let (to, arrivals) = arrivals();
        let message = |size| Arrival::Message { from: None, bytes: vec![0; size] };
        let large = WAITING_BYTES_MAX / 4;
        (0..9).for_each(|_| assert!(to.deliver(message(large))));
        assert!(to.deliver(message(7)));
        let taken = || arrivals.recv_timeout(Duration::ZERO).ok();
        let sizes: Vec<usize> = std::iter::from_fn(taken).map(|of| of.size()).collect();
        assert_eq!(sizes, [large, large, large, 7].map(|size| size + ARRIVAL_BYTES));
        assert!(to.deliver(message(9)));
        assert_eq!(taken(), Some(message(9)), "there is room again");
        drop(arrivals);
        assert!(!to.deliver(message(1)));
    }
}

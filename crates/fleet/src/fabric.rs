//! What carries messages and larger contents between a coordinator and its agents.

use std::io::{Read, Write};

use thiserror::Error;

use crate::protocol::AgentId;

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

/// Carries messages, which may be lost, come twice or late, and contents, which are there or not.
///
/// What arrives is handed to whoever made the connection.
pub trait Fabric: Send + Sync {
    /// Sends a message, and does not wait for anybody.
    fn post(&self, to: &Address, message: Vec<u8>) -> Result<(), FabricError>;

    /// Keeps a content under a name that belongs to an agent, in place of what was there, until it
    /// is removed. When this returns, it is kept.
    fn put(&self, of: &AgentId, name: &str, content: &mut dyn Read) -> Result<(), FabricError>;

    /// Fetches a content, and checks that it is what was put there.
    fn get(&self, of: &AgentId, name: &str, to: &mut dyn Write) -> Result<u64, FabricError>;

    /// Removes all contents of an agent whose names begin so.
    fn remove(&self, of: &AgentId, prefix: &str) -> Result<(), FabricError>;
}

/// Why a fabric did not do what it was asked.
#[derive(Debug, Error)]
pub enum FabricError {
    /// There is no such content.
    #[error("there is no `{name}` of agent {}", of.as_str())]
    Missing {
        /// Whose.
        of: AgentId,
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

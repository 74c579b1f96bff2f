//! What carries messages and larger contents between a coordinator and its agents.

use std::fmt;
use std::io::{Read, Write};

use serde::{Deserialize, Serialize};
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

/// Carries messages, which may be lost, come twice or late, and contents, which are there or not.
///
/// What arrives is handed to whoever made the connection.
pub trait Fabric: Send + Sync {
    /// Sends a message, and does not wait for anybody.
    fn post(&self, to: &Address, message: Vec<u8>) -> Result<(), FabricError>;

    /// Makes a space, if it is not there, so that contents can be kept in it.
    fn make(&self, of: &Space) -> Result<(), FabricError>;

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

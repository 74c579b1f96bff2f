//! A fabric inside one process.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fabric::{
    Address, Arrival, Arrivals, Deliver, Fabric, FabricError, Kept, Space, arrivals,
};
use crate::protocol::AgentId;
use crate::simulated::{Contents, failed, read_whole};

#[derive(Debug, Default)]
struct Ways {
    agents: HashMap<AgentId, Deliver>,
    coordinators: Vec<Deliver>,
    contents: Contents,
}

/// A fabric inside one process, over which every message arrives once, in order.
#[derive(Clone, Debug, Default)]
pub struct Local(Arc<Mutex<Ways>>);

impl Local {
    fn ways(&self) -> MutexGuard<'_, Ways> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins an agent, and returns what arrives for it.
    pub fn join_agent(&self, agent: &AgentId) -> Arrivals {
        let (sender, receiver) = arrivals();
        self.ways().agents.insert(agent.clone(), sender);
        receiver
    }

    /// Joins a coordinator, and returns what arrives for it.
    pub fn join_coordinator(&self) -> Arrivals {
        let (sender, receiver) = arrivals();
        self.ways().coordinators.push(sender);
        receiver
    }
}

impl Fabric for Local {
    fn make(&self, _: &[(AgentId, String)]) -> Result<(), FabricError> {
        Ok(())
    }

    fn post(&self, to: &Address, bytes: Vec<u8>) -> Result<(), FabricError> {
        let ways = self.ways();
        let message =
            |from: Option<&AgentId>| Arrival::Message { from: from.cloned(), bytes: bytes.clone() };
        // Whoever has gone hears nothing more.
        match to {
            Address::Agents => ways.agents.values().for_each(|way| {
                way.deliver(message(None));
            }),
            Address::Agent(agent) => {
                if let Some(way) = ways.agents.get(agent) {
                    way.deliver(message(None));
                }
            }
            Address::Coordinators(from) => {
                for way in &ways.coordinators {
                    way.deliver(message(Some(from)));
                }
            }
        }
        Ok(())
    }

    fn put(&self, of: &Space, name: &str, content: &mut dyn Read) -> Result<Kept, FabricError> {
        let bytes = read_whole(name, content)?;
        Ok(self.ways().contents.put(of, name, bytes))
    }

    fn get(&self, of: &Space, kept: &Kept, to: &mut dyn Write) -> Result<u64, FabricError> {
        let bytes = self.ways().contents.get(of, kept)?;
        let written = to.write_all(&bytes).map(|()| bytes.len() as u64);
        written.map_err(|source| failed(format!("cannot keep {}", kept.name), source))
    }

    fn remove(&self, of: &Space, path: &str) -> Result<(), FabricError> {
        self.ways().contents.remove(of, path);
        Ok(())
    }
}

//! A fabric that loses, repeats, delays and cuts off, as a seed says, in a time of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::content::sum_of;
use crate::fabric::{Address, Fabric, FabricError, Kept, Space};
use crate::protocol::AgentId;

/// How bad the way is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weather {
    /// How many messages of a million are lost.
    pub lost_ppm: u32,
    /// How many of a million come twice.
    pub twice_ppm: u32,
    /// The longest time on the way; each message takes its own, so that one overtakes another.
    pub delay_ns_max: u64,
}

/// A message on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When it arrives.
    pub at_ns: u64,
    /// To whom.
    pub to: Address,
    /// Who sent it.
    pub from: Option<AgentId>,
    /// What it says.
    pub bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct Way {
    now_ns: u64,
    state: u64,
    cut: BTreeSet<AgentId>,
    /// By moment and order of sending.
    on_way: BTreeMap<(u64, u64), Delivery>,
    sent: u64,
    contents: Contents,
}

/// A simulated fabric.
#[derive(Debug)]
pub struct Simulated {
    weather: Weather,
    way: Mutex<Way>,
}

impl Way {
    /// Returns the next number of SplitMix64 (Steele, Lea and Flood, 2014).
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn happens(&mut self, ppm: u32) -> bool {
        self.random() % 1_000_000 < u64::from(ppm)
    }

    fn send(&mut self, weather: &Weather, to: &Address, bytes: &[u8]) {
        let from = match to {
            Address::Coordinators(agent) => Some(agent.clone()),
            Address::Agents | Address::Agent(_) => None,
        };
        let end = match to {
            Address::Agent(agent) | Address::Coordinators(agent) => Some(agent),
            Address::Agents => None,
        };
        if end.is_some_and(|agent| self.cut.contains(agent)) || self.happens(weather.lost_ppm) {
            return;
        }
        let at_ns = self.now_ns + self.random() % (weather.delay_ns_max + 1);
        self.sent += 1;
        let delivery = Delivery { at_ns, to: to.clone(), from, bytes: bytes.to_vec() };
        self.on_way.insert((at_ns, self.sent), delivery);
    }
}

impl Simulated {
    /// Returns a fabric whose misfortunes a seed fixes.
    pub fn new(seed: u64, weather: Weather) -> Self {
        Self { weather, way: Mutex::new(Way { state: seed, ..Way::default() }) }
    }

    fn way(&self) -> MutexGuard<'_, Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the next message arrives.
    pub fn next_ns(&self) -> Option<u64> {
        self.way().on_way.keys().next().map(|(at, _)| *at)
    }

    /// Lets time go on to that moment, and returns what arrives until then, in order.
    pub fn advance(&self, now_ns: u64) -> Vec<Delivery> {
        let mut way = self.way();
        way.now_ns = now_ns;
        let later = way.on_way.split_off(&(now_ns + 1, 0));
        let arrived = std::mem::replace(&mut way.on_way, later);
        let is_open = |each: &Delivery| match &each.to {
            Address::Agent(agent) | Address::Coordinators(agent) => !way.cut.contains(agent),
            Address::Agents => true,
        };
        arrived.into_values().filter(is_open).collect()
    }

    /// Cuts an agent off, or joins it again.
    pub fn cut(&self, agent: &AgentId, is_cut: bool) {
        let mut way = self.way();
        match is_cut {
            true => way.cut.insert(agent.clone()),
            false => way.cut.remove(agent),
        };
    }

    /// Tells whether an agent is cut off.
    pub fn is_cut(&self, agent: &AgentId) -> bool {
        self.way().cut.contains(agent)
    }
}

impl Fabric for Simulated {
    fn make(&self, _: &[(AgentId, String)]) -> Result<(), FabricError> {
        Ok(())
    }

    fn post(&self, to: &Address, message: Vec<u8>) -> Result<(), FabricError> {
        let mut way = self.way();
        way.send(&self.weather, to, &message);
        if way.happens(self.weather.twice_ppm) {
            way.send(&self.weather, to, &message);
        }
        Ok(())
    }

    fn put(&self, of: &Space, name: &str, content: &mut dyn Read) -> Result<Kept, FabricError> {
        let bytes = read_whole(name, content)?;
        Ok(self.way().contents.put(of, name, bytes))
    }

    fn get(&self, of: &Space, kept: &Kept, to: &mut dyn Write) -> Result<u64, FabricError> {
        let bytes = self.way().contents.get(of, kept)?;
        let written = to.write_all(&bytes).map(|()| bytes.len() as u64);
        written.map_err(|source| failed(format!("cannot keep {}", kept.name), source))
    }

    fn remove(&self, of: &Space, path: &str) -> Result<(), FabricError> {
        self.way().contents.remove(of, path);
        Ok(())
    }
}

/// The contents that a fabric in memory keeps, by space and name.
#[derive(Debug, Default)]
pub(crate) struct Contents(BTreeMap<(Space, String), Vec<u8>>);

impl Contents {
    /// Keeps a content in place of what was there. In memory a name suffices to find it.
    pub(crate) fn put(&mut self, of: &Space, name: &str, bytes: Vec<u8>) -> Kept {
        let (word, sha256, size_bytes) = (String::new(), sum_of(&bytes), bytes.len() as u64);
        self.0.insert((of.clone(), name.to_owned()), bytes);
        Kept { name: name.to_owned(), word, size_bytes, sha256 }
    }

    /// Returns a content.
    pub(crate) fn get(&self, of: &Space, kept: &Kept) -> Result<Vec<u8>, FabricError> {
        let key = (of.clone(), kept.name.clone());
        let found = self.0.get(&key).cloned();
        found.ok_or_else(|| FabricError::Missing { of: key.0, name: key.1 })
    }

    /// Removes all contents below a path.
    pub(crate) fn remove(&mut self, of: &Space, path: &str) {
        let path = format!("{path}/");
        self.0.retain(|(space, name), _| space != of || !name.starts_with(&path));
    }
}

/// Reads all of a content that is handed over.
pub(crate) fn read_whole(name: &str, content: &mut dyn Read) -> Result<Vec<u8>, FabricError> {
    let mut bytes = Vec::new();
    let read = content.read_to_end(&mut bytes);
    read.map_err(|source| failed(format!("cannot read {name}"), source))?;
    Ok(bytes)
}

pub(crate) fn failed(
    what: String,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> FabricError {
    FabricError::Failed { what, source: source.into() }
}

//! The names in a raw file, each kept once and numbered in the order of appearance.

use std::collections::HashMap;

use plimsoll_model::{EndpointId, ObjectId, WorkerId};

use crate::warp::WarpError;

/// How many endpoints and how many clients are told apart.
pub const NAMES_MAX: usize = 65_535;
/// How many workers, of all clients together, are told apart.
pub const WORKERS_MAX: usize = 1 << 20;
/// How long the name of an endpoint or client may be.
pub const NAME_BYTES_MAX: usize = 1_024;

/// A worker as the file names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ForeignWorker {
    /// The client it belongs to, by its position in `Names::clients`.
    pub client: u16,
    /// Its number there.
    pub thread: u32,
}

/// The names in one or several raw files, in the order of appearance.
///
/// Given to several scans, the same name keeps the same number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Endpoints; `EndpointId` is the position.
    pub endpoints: Vec<String>,
    /// Clients; one empty name where the file does not tell them.
    pub clients: Vec<String>,
    /// Workers; `WorkerId` is the position.
    pub workers: Vec<ForeignWorker>,
}

/// Finds the numbers of names during a scan.
pub(super) struct Interner<'n> {
    endpoints: Texts<'n>,
    clients: Texts<'n>,
    workers: &'n mut Vec<ForeignWorker>,
    worker_numbers: HashMap<ForeignWorker, u32>,
}

impl<'n> Interner<'n> {
    pub(super) fn new(names: &'n mut Names) -> Self {
        let numbered = |(worker, number): (&ForeignWorker, u32)| (*worker, number);
        Self {
            endpoints: Texts::new("endpoints", &mut names.endpoints),
            clients: Texts::new("clients", &mut names.clients),
            worker_numbers: names.workers.iter().zip(0..).map(numbered).collect(),
            workers: &mut names.workers,
        }
    }

    /// Returns the number of an endpoint.
    pub(super) fn endpoint(&mut self, name: &str) -> Result<EndpointId, WarpError> {
        self.endpoints.number(name).map(EndpointId)
    }

    /// Returns the number of a worker.
    pub(super) fn worker(&mut self, client: &str, thread: u32) -> Result<WorkerId, WarpError> {
        let worker = ForeignWorker { client: self.clients.number(client)?, thread };
        if let Some(number) = self.worker_numbers.get(&worker) {
            return Ok(WorkerId(*number));
        }
        if self.workers.len() >= WORKERS_MAX {
            return Err(WarpError::TooManyNames { what: "workers", max: WORKERS_MAX });
        }
        let number = self.workers.len() as u32;
        self.workers.push(worker);
        self.worker_numbers.insert(worker, number);
        Ok(WorkerId(number))
    }
}

/// Texts of one sort, numbered.
struct Texts<'n> {
    what: &'static str,
    texts: &'n mut Vec<String>,
    numbers: HashMap<String, u16>,
    /// The number given last: neighbouring rows mostly name the same.
    last: usize,
}

impl<'n> Texts<'n> {
    fn new(what: &'static str, texts: &'n mut Vec<String>) -> Self {
        let numbers = texts.iter().cloned().zip(0..).collect();
        Self { what, texts, numbers, last: 0 }
    }

    fn number(&mut self, text: &str) -> Result<u16, WarpError> {
        // Comparing no bytes at the address of no text costs 0.1 µs on some processors.
        let is_same = |last: &String| (last.is_empty() && text.is_empty()) || last == text;
        if self.texts.get(self.last).is_some_and(is_same) {
            return Ok(self.last as u16);
        }
        if let Some(number) = self.numbers.get(text) {
            self.last = usize::from(*number);
            return Ok(*number);
        }
        if self.texts.len() >= NAMES_MAX {
            return Err(WarpError::TooManyNames { what: self.what, max: NAMES_MAX });
        }
        let number = self.texts.len() as u16;
        self.last = self.texts.len();
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        Ok(number)
    }
}

/// Returns the id that stands for an object's name: a hash of it, as the names themselves are not
/// kept. `None` for an empty name.
///
/// Among 10^7 names the chance that any two share an id is about 1 in 370,000.
pub fn object_id(name: &[u8]) -> Option<ObjectId> {
    const ID_END: u64 = (ObjectId::OWNER_MAX as u64) << 40;
    if name.is_empty() {
        return None;
    }
    // Each step is a bijection of the hash so far; the length tells apart what zeros fill up.
    let mut hash = mix64(name.len() as u64 ^ 0x9e37_79b9_7f4a_7c15);
    let (words, rest) = name.as_chunks::<8>();
    for word in words {
        hash = mix64(hash ^ u64::from_le_bytes(*word)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    hash = mix64(hash ^ u64::from_le_bytes(last));
    ObjectId::from_u64(((u128::from(hash) * u128::from(ID_END)) >> 64) as u64)
}

/// Mixes 64 bits: the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
const fn mix64(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

//! How fast what agents recorded comes to the coordinator.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use plimsoll_fleet::broker::join;
use plimsoll_fleet::fabric::{Fabric, Kept, Space};
use plimsoll_fleet::nats::{Nats, Side};
use plimsoll_fleet::pki::NewKey;
use plimsoll_fleet::protocol::AgentId;

use crate::Plan;
use crate::crew::{Fleet, own_cpu};
use crate::table::{Row, Target};

const AGENTS: usize = 50;
/// How large a file of a record is: about a million operations.
const FILE_BYTES: u64 = 10_000_000;
/// Of so many agents the parts are fetched at once.
const AT_ONCE: usize = 4;

/// How long what contents are made of is; a prime, so that no two places in it look alike.
const BLOCK_BYTES: usize = 1_048_583;

/// Returns what contents are made of (Marsaglia's xorshift).
fn block() -> Arc<[u8]> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let byte = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..BLOCK_BYTES).map(byte).collect()
}

/// The content of a file, which no other one has: the block again and again, from another place
/// in it on. Making it costs no more than a copy.
struct Content {
    block: Arc<[u8]>,
    at: usize,
    rest: u64,
}

impl Content {
    fn of(block: &Arc<[u8]>, agent: usize, file: usize) -> Self {
        let at = (agent * 100 + file) * 199 % BLOCK_BYTES;
        Self { block: Arc::clone(block), at, rest: FILE_BYTES }
    }

    /// Returns some of the next bytes, at most so many.
    fn next(&mut self, bytes_max: usize) -> &[u8] {
        let until = BLOCK_BYTES.min(self.at + bytes_max.min(self.rest as usize));
        let from = std::mem::replace(&mut self.at, until % BLOCK_BYTES);
        self.rest -= (until - from) as u64;
        &self.block[from..until]
    }
}

impl Read for Content {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let made = self.next(bytes.len());
        bytes[..made.len()].copy_from_slice(made);
        Ok(made.len())
    }
}

/// Keeps what comes in a file, as a coordinator does, and holds it against what was put.
struct Checked {
    expected: Content,
    file: BufWriter<File>,
    is_good: bool,
}

impl Write for Checked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let expected = self.expected.next(bytes.len());
        // More than there is to be is a difference, too.
        let taken = if expected.is_empty() { bytes.len() } else { expected.len() };
        self.is_good &= *expected == bytes[..taken];
        self.file.write_all(&bytes[..taken])?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

struct Agent {
    id: AgentId,
    nats: Nats,
}

fn name(file: usize) -> String {
    format!("run/ops-{file}")
}

/// Has all agents hand their files over at once; returns where those of each are kept.
fn hand_over(block: &Arc<[u8]>, agents: &[Agent], files: usize) -> Vec<Vec<Kept>> {
    std::thread::scope(|scope| {
        let handing = agents.iter().enumerate().map(|(index, Agent { id, nats })| {
            scope.spawn(move || {
                let space = Space::Of(id.clone());
                let put =
                    |file| nats.put(&space, &name(file), &mut Content::of(block, index, file));
                (0..files).map(|file| put(file).unwrap()).collect()
            })
        });
        let handing: Vec<_> = handing.collect();
        handing.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Fetches all files; returns how many are there and as they were.
fn fetch(
    lead: &Nats,
    block: &Arc<[u8]>,
    agents: &[Agent],
    kept: &[Vec<Kept>],
    place: &Path,
) -> usize {
    let next = AtomicUsize::new(0);
    let good = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(agent) = agents.get(index) else { return };
                    let space = Space::Of(agent.id.clone());
                    for (file, kept) in kept[index].iter().enumerate() {
                        let path = place.join(format!("{index}-{file}"));
                        let written =
                            BufWriter::with_capacity(1 << 18, File::create(path).unwrap());
                        let expected = Content::of(block, index, file);
                        let mut to = Checked { expected, file: written, is_good: true };
                        let size = lead.get(&space, kept, &mut to).unwrap();
                        to.flush().unwrap();
                        let is_good = to.is_good && size == FILE_BYTES;
                        *good.lock().unwrap() += usize::from(is_good);
                    }
                    lead.remove(&space, "run").unwrap();
                }
            });
        }
    });
    good.into_inner().unwrap()
}

/// Measures from when agents begin to hand their files over until all of them are the
/// coordinator's, in files of its own.
pub(crate) fn collect(plan: &Plan) -> Vec<Row> {
    let fleet = Fleet::start(AGENTS as u32);
    let token = fleet.token();
    let agents: Vec<Agent> = (0..AGENTS)
        .map(|index| {
            let (id, config) =
                join(&token, &format!("node{index:02}"), &NewKey::make().unwrap()).unwrap();
            let nats = Nats::join_with(&config, Side::Agent(&id, 7), |_| true).unwrap();
            Agent { id, nats }
        })
        .collect();
    let lead = fleet.coordinator();
    let owners = agents.iter().map(|agent| (agent.id.clone(), "run".to_owned()));
    lead.make(&owners.collect::<Vec<_>>()).unwrap();
    let files = plan.files();
    let megabytes = (AGENTS * files) as f64 * FILE_BYTES as f64 / 1e6;
    let block = block();
    let (mut all, mut puts, mut gets, mut lost) = (vec![], vec![], vec![], vec![]);
    let (mut own, mut servers) = (vec![], vec![]);
    for _ in 0..plan.rounds().min(3) {
        let place = fleet.place.path().join("fetched");
        std::fs::create_dir_all(&place).unwrap();
        let begun = Instant::now();
        let cpu = (own_cpu().as_secs_f64(), fleet.server_cpu());
        let kept = hand_over(&block, &agents, files);
        let handed = begun.elapsed().as_secs_f64();
        let good = fetch(&lead, &block, &agents, &kept, &place);
        let took = begun.elapsed().as_secs_f64();
        own.push((own_cpu().as_secs_f64() - cpu.0) * 1e3 / megabytes);
        servers.push((fleet.server_cpu() - cpu.1) * 1e3 / megabytes);
        all.push(megabytes / took);
        puts.push(megabytes / handed);
        gets.push(megabytes / (took - handed));
        lost.push((AGENTS * files - good) as f64);
        std::fs::remove_dir_all(&place).unwrap();
    }
    let size = files as u64 * FILE_BYTES / 1_000_000;
    vec![
        Row::new(format!("collecting {AGENTS} × {size} MB"), "MB/s", all, Target::Least(200.0)),
        Row::new("– agents hand them over, all at once", "MB/s", puts, Target::None),
        Row::new("– the coordinator fetches them", "MB/s", gets, Target::None),
        Row::new("– CPU per MB, agents and coordinator", "ms", own, Target::None),
        Row::new("– CPU per MB, nats-server", "ms", servers, Target::None),
        Row::new("– files lost or wrong", "", lost, Target::Most(0.0)),
    ]
}

//! Scripted files in virtual time, in one process with who uses them.
//!
//! They keep real bytes, unless they are told not to. A request says at once when it will have
//! ended ([`Ring::next_end`]); who waits for it lets the time pass until then. Requests must come
//! in order of time. Nothing blocks: operations on names end later as well.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use foldhash::fast::FixedState;
use plimsoll_driver::Request as Asked;
use plimsoll_driver::{DriverError, Handle, OpenMode, Place, Reply, Ring, RingDriver};
use plimsoll_model::{ErrorClass, Interface, Moment, OpKind, SharedClock};

use crate::behaviour::{Act, Behaviour, Request, Verdict, spoil};
use crate::ledger::Ledger;

/// `ENOENT` and `EIO`, as Linux numbers them.
const NOT_FOUND: u16 = 2;
const IO: u16 = 5;

/// Files that behave as a script says; a clone is the same files.
#[derive(Clone)]
pub struct ScriptedFiles {
    files: Arc<Mutex<Files>>,
    clock: SharedClock,
}

/// A ring of [`ScriptedFiles`].
pub struct ScriptedRing {
    files: Arc<Mutex<Files>>,
    clock: SharedClock,
    buffers: Vec<Vec<u8>>,
    /// By slot: what came of the request under way.
    replies: Vec<Option<Reply>>,
    /// What is under way by its end; what ends at one moment in the order in which it came.
    ends: BinaryHeap<Reverse<(Moment, u64, usize)>>,
    submitted_count: u64,
}

struct Files {
    behaviour: Behaviour,
    keeps_content: bool,
    /// By handle: what was opened.
    opened: Vec<Opened>,
    /// By path: the handle of a file that was opened.
    handles: HashMap<PathBuf, u32, FixedState>,
    /// Names that were made, with the content of files.
    names: HashMap<PathBuf, Vec<u8>, FixedState>,
}

/// A file or directory that was opened.
#[derive(Default)]
struct Opened {
    path: PathBuf,
    content: Vec<u8>,
    /// The content before the last write of each place, where lies need it.
    before: Vec<u8>,
}

impl ScriptedFiles {
    /// Returns files that behave so, of which none is there. Where no content is kept, what is
    /// read is not what was written.
    pub fn new(behaviour: Behaviour, clock: SharedClock, keeps_content: bool) -> Self {
        let files = Files {
            behaviour,
            keeps_content,
            opened: Vec::new(),
            handles: HashMap::default(),
            names: HashMap::default(),
        };
        Self { files: Arc::new(Mutex::new(files)), clock }
    }

    /// Begins with the script; see [`Behaviour::resting`].
    pub fn begin(&self, now: Moment) {
        lock(&self.files).behaviour.begin(now);
    }

    /// Returns what was truly done so far.
    pub fn ledger(&self) -> Ledger {
        lock(&self.files).behaviour.ledger().clone()
    }
}

fn lock(files: &Mutex<Files>) -> MutexGuard<'_, Files> {
    files.lock().expect("nobody panics while holding the scripted files")
}

impl RingDriver for ScriptedFiles {
    type Ring = ScriptedRing;

    fn ring(
        &self,
        _interface: Interface,
        slots: usize,
        buffer_bytes: usize,
    ) -> Result<ScriptedRing, DriverError> {
        Ok(ScriptedRing {
            files: Arc::clone(&self.files),
            clock: Arc::clone(&self.clock),
            buffers: vec![vec![0; buffer_bytes]; slots],
            replies: (0..slots).map(|_| None).collect(),
            ends: BinaryHeap::new(),
            submitted_count: 0,
        })
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["scripted".to_owned()]
    }
}

impl Ring for ScriptedRing {
    fn open_file(&mut self, path: &Path, _: OpenMode) -> Result<Handle, DriverError> {
        Ok(lock(&self.files).open(path))
    }

    fn open_directory(&mut self, path: &Path) -> Result<Handle, DriverError> {
        Ok(lock(&self.files).open(path))
    }

    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        &mut self.buffers[slot]
    }

    fn submit(&mut self, slot: usize, request: &Asked<'_>) -> Option<Reply> {
        let (end, reply) =
            lock(&self.files).answer(self.clock.now(), request, &mut self.buffers[slot]);
        self.replies[slot] = Some(reply);
        self.ends.push(Reverse((end, self.submitted_count, slot)));
        self.submitted_count += 1;
        None
    }

    fn reap(&mut self, _wait: Option<Duration>, replies: &mut Vec<(usize, Reply)>) {
        self.look(replies);
    }

    fn look(&mut self, replies: &mut Vec<(usize, Reply)>) {
        let now = self.clock.now();
        while let Some(Reverse((end, _, slot))) = self.ends.peek().copied() {
            if end > now {
                return;
            }
            self.ends.pop();
            let reply = self.replies[slot].take();
            replies.push((slot, reply.expect("what is under way has a reply")));
        }
    }

    fn next_end(&self) -> Option<Moment> {
        self.ends.peek().map(|Reverse((end, ..))| *end)
    }
}

impl Files {
    fn open(&mut self, path: &Path) -> Handle {
        if let Some(handle) = self.handles.get(path) {
            return Handle(*handle);
        }
        let handle = self.opened.len() as u32;
        self.opened.push(Opened { path: path.to_owned(), ..Opened::default() });
        self.handles.insert(path.to_owned(), handle);
        Handle(handle)
    }

    /// Returns when a request that comes at `now` ends, and what comes of it.
    fn answer(&mut self, now: Moment, asked: &Asked<'_>, buffer: &mut [u8]) -> (Moment, Reply) {
        match *asked {
            Asked::Read { file, offset, len } => {
                self.read(now, file, offset, &mut buffer[..len as usize])
            }
            Asked::Write { file, offset, len } => {
                self.write(now, file, offset, &buffer[..len as usize])
            }
            Asked::Sync { .. } => {
                let (verdict, failure) = self.decide(now, OpKind::Sync, 0, ErrorClass::Ok);
                (verdict.done, failure.map_or(Ok(0), Err))
            }
            ref named => self.name(now, named, buffer),
        }
    }

    /// Decides about a request that can only be served or fail.
    fn decide(
        &mut self,
        now: Moment,
        kind: OpKind,
        content_bytes: u64,
        honest: ErrorClass,
    ) -> (Verdict, Option<DriverError>) {
        let request = Request { kind, key: "", content_bytes, honest };
        let verdict = self.behaviour.decide(now, &request, &mut |_, _| None);
        settled(verdict)
    }

    fn read(
        &mut self,
        now: Moment,
        file: Handle,
        offset: u64,
        buffer: &mut [u8],
    ) -> (Moment, Reply) {
        let len = buffer.len() as u64;
        let request =
            Request { kind: OpKind::Read, key: "", content_bytes: len, honest: ErrorClass::Ok };
        let Self { behaviour, opened, keeps_content, .. } = self;
        let mut told = None;
        let verdict = behaviour.decide(now, &request, &mut |lie, salt| {
            let Opened { content, before, .. } = &opened[file.0 as usize];
            let offset = usize::try_from(offset).ok()?;
            let len = buffer.len().min(content.len().checked_sub(offset)?);
            let others = opened.iter().enumerate().filter(|(at, _)| *at != file.0 as usize);
            let other = others.map(|(_, other)| &other.content[..]);
            let other = other.into_iter().find(|other| other.len() >= offset + len);
            let older = (before.len() == content.len()).then_some(&before[..]);
            told = spoil::spoil(
                lie,
                salt,
                &spoil::Source { object: content, offset, len, older, other },
            );
            told.is_some().then_some(ErrorClass::Corrupt)
        });
        let (verdict, failure) = settled(verdict);
        if let Some(error) = failure {
            return (verdict.done, Err(error));
        }
        if let Some(wrong) = told.filter(|_| matches!(verdict.act, Act::Lie(_))) {
            buffer[..wrong.len()].copy_from_slice(&wrong);
        } else if *keeps_content {
            let content = &opened[file.0 as usize].content;
            let from = usize::try_from(offset).map_or(content.len(), |at| at.min(content.len()));
            let there = buffer.len().min(content.len() - from);
            buffer[..there].copy_from_slice(&content[from..from + there]);
            // What was never written is a hole.
            buffer[there..].fill(0);
        }
        let moved = if verdict.act == Act::HalfBody { len / 2 } else { len };
        (verdict.done, Ok(moved))
    }

    fn write(&mut self, now: Moment, file: Handle, offset: u64, bytes: &[u8]) -> (Moment, Reply) {
        let len = bytes.len() as u64;
        let (verdict, failure) = self.decide(now, OpKind::Write, len, ErrorClass::Ok);
        if let Some(error) = failure {
            return (verdict.done, Err(error));
        }
        if self.keeps_content {
            let remembers = self.behaviour.tells_lies();
            let Opened { content, before, .. } = &mut self.opened[file.0 as usize];
            let from = usize::try_from(offset).expect("what is kept fits into memory");
            let until = from + bytes.len();
            content.resize(content.len().max(until), 0);
            if remembers {
                before.resize(content.len(), 0);
                before[from..until].copy_from_slice(&content[from..until]);
            }
            content[from..until].copy_from_slice(bytes);
        }
        (verdict.done, Ok(len))
    }

    /// Does a request on a name.
    fn name(&mut self, now: Moment, asked: &Asked<'_>, buffer: &mut [u8]) -> (Moment, Reply) {
        let (kind, place, len) = match asked {
            Asked::Create { place, len, .. } => (OpKind::Create, place, *len),
            Asked::Open { place, len } => (OpKind::Open, place, *len),
            Asked::Stat { place } => (OpKind::Stat, place, 0),
            Asked::Unlink { place } => (OpKind::Unlink, place, 0),
            Asked::Rename { from, .. } => (OpKind::Rename, from, 0),
            Asked::Mkdir { place } => (OpKind::Mkdir, place, 0),
            Asked::Rmdir { place } => (OpKind::Rmdir, place, 0),
            Asked::Read { .. } | Asked::Write { .. } | Asked::Sync { .. } => {
                unreachable!("these are about no name")
            }
        };
        let path = self.path(place);
        let is_new = matches!(kind, OpKind::Create | OpKind::Mkdir);
        let is_there = is_new || self.names.contains_key(&path);
        let honest = if is_there { ErrorClass::Ok } else { ErrorClass::NotFound };
        let (verdict, failure) = self.decide(now, kind, u64::from(len), honest);
        if let Some(error) = failure {
            return (verdict.done, Err(error));
        }
        if !is_there {
            let text = format!("`{}` is not there", path.display());
            let error = DriverError::with_status(ErrorClass::NotFound, NOT_FOUND, text);
            return (verdict.done, Err(error));
        }
        let mut moved = u64::from(len);
        match asked {
            Asked::Create { .. } => {
                let content = if self.keeps_content { &buffer[..len as usize] } else { &[] };
                self.names.insert(path, content.to_vec());
            }
            Asked::Mkdir { .. } => {
                self.names.insert(path, Vec::new());
            }
            Asked::Unlink { .. } | Asked::Rmdir { .. } => {
                self.names.remove(&path);
            }
            Asked::Rename { to, .. } => {
                let content = self.names.remove(&path).unwrap_or_default();
                let to = self.path(to);
                self.names.insert(to, content);
            }
            Asked::Open { .. } if self.keeps_content => {
                let content = &self.names[&path];
                let there = content.len().min(len as usize);
                buffer[..there].copy_from_slice(&content[..there]);
                moved = there as u64;
            }
            Asked::Stat { .. } => moved = self.names[&path].len() as u64,
            _ => {}
        }
        (verdict.done, Ok(moved))
    }

    fn path(&self, place: &Place<'_>) -> PathBuf {
        let name = place.name.to_string_lossy();
        self.opened[place.directory.0 as usize].path.join(&*name)
    }
}

/// Returns the failure that a verdict is, if it is one. Files know no time limit, so what is never
/// answered fails when it would have been served.
fn settled(verdict: Verdict) -> (Verdict, Option<DriverError>) {
    let failed =
        |class, status, text: &str| DriverError { class, status, message: text.to_owned() };
    let act = verdict.act;
    let failure = match act {
        Act::Serve | Act::Lie(_) | Act::HalfBody => None,
        Act::Status { code, .. } => Some(failed(act.fault_class(), None, code)),
        _ => Some(failed(ErrorClass::Io, Some(IO), "the medium fails, as the script says")),
    };
    let done = if act == Act::Silence { verdict.first_byte } else { verdict.done };
    (Verdict { done, ..verdict }, failure)
}

#[cfg(test)]
mod tests;

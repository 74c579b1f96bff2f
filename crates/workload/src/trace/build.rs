//! Makes a trace of its entries: in order of time, with what has to be there before, the sizes that
//! entries tell of each other's objects, and a count of all that it does not tell.

use std::collections::HashMap;
use std::time::Duration;

use plimsoll_model::OpKind;

use super::intern::Interner;
use super::{NO_OBJECT, Trace, TraceFacts, TraceOp};
use crate::files::greatest_common;
use crate::sizes::PUT_BYTES_MAX;

/// What is not known, while a trace is put together.
const UNKNOWN: u64 = u64::MAX;
/// The size of objects of which nothing is known where nothing is known of any.
const SIZE_DEFAULT: u64 = 64 << 10;
const SECOND_NS: u64 = 1_000_000_000;
/// So many operations a trace has at most: their places are 32 bits.
const OPS_MAX: usize = u32::MAX as usize - 1;

/// What an entry of a trace says.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// When the operation began, since any instant; `None` where the trace has no instants.
    pub at_ns: Option<u64>,
    /// What it does. Parts of uploads are put together.
    pub kind: OpKind,
    /// The name of its object or file, with its bucket; empty for a listing.
    pub name: &'a [u8],
    /// How many bytes were read or written, where that is told.
    pub bytes: Option<u64>,
    /// How large the object was, where that is told.
    pub object_bytes: Option<u64>,
    /// Where what was read or written begins and how long it is, where a part is meant.
    pub range: Option<(u64, u64)>,
}

/// How a trace is to be understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// Up to which instant since its beginning it is replayed.
    pub until: Option<Duration>,
    /// How large objects are whose sizes it does not tell; `None`: as the median of those that it
    /// tells.
    pub size_unknown: Option<u64>,
}

/// Takes the entries of a trace.
#[derive(Debug, Default)]
pub struct TraceBuilder {
    names: Interner,
    ops: Vec<TraceOp>,
    /// Of uploads that go on, by object: parts, and bytes as far as all of them tell.
    uploads: HashMap<u32, (u64, Option<u64>)>,
    has_instants: bool,
    on_files: u64,
    /// What the form of the trace counts instants in, as far as it says that; zero: nanoseconds.
    pub tick: Duration,
    /// What is to be known of it.
    pub facts: TraceFacts,
}

impl TraceBuilder {
    /// Returns how many operations there are so far.
    pub fn ops_count(&self) -> u64 {
        self.ops.len() as u64
    }

    /// Adds an entry; an error says why it cannot be.
    pub fn add(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        let Seen { at_ns, mut kind, name, mut bytes, object_bytes, range } = *seen;
        if self.ops.len() >= OPS_MAX {
            return Err(format!("a trace has at most {OPS_MAX} operations"));
        }
        if let Some((offset, len)) = range
            && offset.checked_add(len).is_none_or(|end| end == UNKNOWN)
        {
            return Err(format!("{len} bytes from {offset} on are no part of anything"));
        }
        let object = match kind {
            OpKind::List => NO_OBJECT,
            _ => self.names.number(name).ok_or("the trace is about too many objects")?,
        };
        match kind {
            OpKind::CreateUpload | OpKind::AbortUpload => {
                let left = self.uploads.remove(&object);
                self.facts.parts_left_count += left.map_or(0, |(parts, _)| parts);
                return Ok(());
            }
            OpKind::PutPart => {
                let (parts, sum) = self.uploads.entry(object).or_insert((0, Some(0)));
                *parts += 1;
                *sum = sum.zip(bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
                return Ok(());
            }
            OpKind::CompleteUpload => {
                let parts = self.uploads.remove(&object);
                self.facts.uploads_count += 1;
                bytes = object_bytes.or(parts.and_then(|(_, sum)| sum));
                kind = OpKind::Put;
            }
            OpKind::Post => kind = OpKind::Put,
            OpKind::Read | OpKind::Write | OpKind::Sync => self.on_files += 1,
            _ => {}
        }
        self.has_instants |= at_ns.is_some();
        let (offset, len) = match (kind, range) {
            (OpKind::Get | OpKind::Read | OpKind::Write, Some(range)) => range,
            (OpKind::Get, None) => (0, bytes.or(object_bytes).unwrap_or(UNKNOWN)),
            (OpKind::Put, _) => (0, bytes.or(object_bytes).unwrap_or(UNKNOWN)),
            _ => (0, 0),
        };
        let (at_ns, object_bytes) = (at_ns.unwrap_or(0), object_bytes.unwrap_or(UNKNOWN));
        let is_range = range.is_some();
        self.ops.push(TraceOp { at_ns, offset, len, object_bytes, object, kind, is_range });
        Ok(())
    }

    /// Returns the trace; an error says why it is none.
    pub fn finish(mut self, options: TraceOptions) -> Result<Trace, String> {
        if self.ops.is_empty() {
            return Err("it holds no operation that can be replayed".to_owned());
        }
        let is_on_files = self.on_files > 0;
        if is_on_files && self.on_files != self.ops.len() as u64 {
            return Err("it is about objects and blocks of files at once".to_owned());
        }
        self.facts.parts_left_count += self.uploads.values().map(|(parts, _)| parts).sum::<u64>();
        self.put_in_order();
        self.cut(options.until);
        let made_first = match is_on_files {
            true => self.size_files(),
            false => self.size_objects(options.size_unknown),
        };
        if self.ops.is_empty() {
            return Err("no operation of it can be replayed".to_owned());
        }
        let first = self.ops[0].at_ns;
        self.ops.iter_mut().for_each(|op| op.at_ns -= first);
        let is_timed = self.has_instants
            && (self.ops.len() == 1 || self.ops.last().is_some_and(|op| op.at_ns > 0));
        Ok(Trace {
            objects: self.names.count(),
            ops: self.ops,
            made_first,
            is_on_files,
            is_timed,
            facts: self.facts,
        })
    }

    /// Puts the operations in order of time, and those of one second evenly into it where nothing
    /// finer is known.
    fn put_in_order(&mut self) {
        let mut latest = 0;
        for op in &self.ops {
            self.facts.out_of_order_count += u64::from(op.at_ns < latest);
            latest = latest.max(op.at_ns);
        }
        if self.facts.out_of_order_count > 0 {
            self.ops.sort_by_key(|op| op.at_ns);
        }
        // A form of whole seconds may be written in fractions. One that counts in less is as fine
        // as it says, though all of its instants be whole seconds: then those are bursts.
        let tick = self.tick.as_nanos().max(1) as u64;
        let tick = self.ops.iter().fold(tick, |tick, op| greatest_common(tick, op.at_ns));
        self.facts.tick = Duration::from_nanos(tick);
        if tick < SECOND_NS || self.ops.iter().all(|op| op.at_ns == 0) {
            return;
        }
        for of_second in self.ops.chunk_by_mut(|a, b| a.at_ns == b.at_ns) {
            let count = of_second.len() as u64;
            if count > 1 {
                self.facts.spread_count += count;
            }
            for (at, op) in of_second.iter_mut().enumerate() {
                op.at_ns += (u128::from(SECOND_NS) * at as u128 / u128::from(count)) as u64;
            }
        }
    }

    /// Leaves out what comes later than that.
    fn cut(&mut self, until: Option<Duration>) {
        let Some(until) = until else { return };
        let end = self.ops[0].at_ns.saturating_add(until.as_nanos() as u64);
        let kept = self.ops.partition_point(|op| op.at_ns < end);
        let later = self.ops.len() - kept;
        self.facts.until = Some((until, later as u64));
        self.ops.truncate(kept);
    }

    /// Returns the sizes of the files, which all have to be there.
    fn size_files(&mut self) -> Vec<u64> {
        // Bound: the names that the trace holds, which are in memory.
        let mut sizes = vec![1; self.names.count() as usize];
        for op in &self.ops {
            let size = &mut sizes[op.object as usize];
            *size = (*size).max(op.offset + op.len);
        }
        sizes
    }

    /// Finds out how large objects are and which have to be there before, and gives those the first
    /// numbers. Returns their sizes.
    fn size_objects(&mut self, size_unknown: Option<u64>) -> Vec<u64> {
        let mut lives = Lives::new(self.names.count() as usize);
        let is_there: Vec<bool> =
            (0..self.ops.len()).map(|at| lives.observe(&mut self.ops, at)).collect();
        self.facts.gone_count = lives.gone_count;
        let mut is_there = is_there.into_iter();
        self.ops.retain(|_| is_there.next() == Some(true));
        let assumed = size_unknown.unwrap_or_else(|| lives.median(&self.ops));
        self.facts.size_assumed = assumed;
        let mut sizes = std::mem::take(&mut lives.first_sizes);
        for (size, _) in sizes.iter_mut().zip(&lives.is_made).filter(|(_, is_made)| **is_made) {
            self.facts.size_unknown_count += u64::from(*size == UNKNOWN);
            *size = if *size == UNKNOWN { assumed } else { (*size).min(PUT_BYTES_MAX) };
        }
        self.settle(assumed, &sizes);
        self.renumber(&lives.is_made, &sizes)
    }

    /// Fills in what was not known, now that all entries were seen.
    fn settle(&mut self, assumed: u64, first_sizes: &[u64]) {
        let facts = &mut self.facts;
        let mut sizes = first_sizes.to_vec();
        self.ops.retain_mut(|op| {
            let Some(size) = sizes.get_mut(op.object as usize) else { return true };
            match op.kind {
                OpKind::Put => {
                    facts.size_unknown_count += u64::from(op.len == UNKNOWN);
                    let len = if op.len == UNKNOWN { assumed } else { op.len };
                    facts.capped_count += u64::from(len > PUT_BYTES_MAX);
                    op.len = len.min(PUT_BYTES_MAX);
                    *size = op.len;
                }
                OpKind::Get if !op.is_range => op.len = *size,
                OpKind::Get if op.offset >= *size => {
                    facts.beyond_count += 1;
                    return false;
                }
                OpKind::Get if op.len > *size - op.offset => {
                    facts.clipped_count += 1;
                    op.len = *size - op.offset;
                }
                _ => {}
            }
            op.object_bytes = *size;
            true
        });
    }

    /// Gives the objects that have to be there before the first numbers, and returns their sizes.
    fn renumber(&mut self, is_made: &[bool], sizes: &[u64]) -> Vec<u64> {
        let made_count = is_made.iter().filter(|is_made| **is_made).count() as u32;
        let (mut made, mut others) = (0, made_count);
        let number = |is_made: &bool| {
            let next = if *is_made { &mut made } else { &mut others };
            *next += 1;
            *next - 1
        };
        let numbers: Vec<u32> = is_made.iter().map(number).collect();
        for op in &mut self.ops {
            op.object = numbers.get(op.object as usize).copied().unwrap_or(NO_OBJECT);
        }
        let made = sizes.iter().zip(is_made).filter(|(_, is_made)| **is_made);
        made.map(|(size, _)| *size).collect()
    }
}

/// The life of an object that was there before the trace.
const FIRST: u32 = u32::MAX;
/// Of an object that was removed.
const REMOVED: u32 = u32::MAX - 1;

/// What becomes of each object in the course of a trace.
struct Lives {
    /// By object: the put that gave it what it holds, [`FIRST`] or [`REMOVED`].
    now: Vec<u32>,
    is_seen: Vec<bool>,
    /// By object: whether it has to be there before.
    is_made: Vec<bool>,
    /// By object: its size before the trace, as far as that is known.
    first_sizes: Vec<u64>,
    gone_count: u64,
}

impl Lives {
    fn new(objects: usize) -> Self {
        Self {
            // Bound: names that the trace's entries have.
            now: vec![FIRST; objects],
            is_seen: vec![false; objects],
            is_made: vec![false; objects],
            first_sizes: vec![UNKNOWN; objects],
            gone_count: 0,
        }
    }

    /// Takes note of the operation at a place; what entries tell of a size holds for the put before
    /// them, unless that said it itself. Returns whether its object is there: the trace itself may
    /// have removed it.
    fn observe(&mut self, ops: &mut [TraceOp], at: usize) -> bool {
        let op = ops[at];
        let object = op.object as usize;
        if op.object == NO_OBJECT {
            return true;
        }
        let is_first = !std::mem::replace(&mut self.is_seen[object], true);
        if op.kind == OpKind::Put {
            // What entries tell of an object that is written without a size is kept beside it.
            ops[at].object_bytes = op.len;
            self.now[object] = at as u32;
            return true;
        }
        self.is_made[object] |= is_first;
        if self.now[object] == REMOVED {
            self.gone_count += 1;
            return false;
        }
        let told = match (op.object_bytes, op.kind) {
            (UNKNOWN, OpKind::Get) if op.is_range => op.offset + op.len,
            (UNKNOWN, OpKind::Get) => op.len,
            (told, _) => told,
        };
        let is_told = told != UNKNOWN;
        match self.now[object] {
            FIRST if is_told => {
                let size = &mut self.first_sizes[object];
                *size = if *size == UNKNOWN { told } else { (*size).max(told) };
            }
            FIRST => {}
            put if is_told => {
                let put = &mut ops[put as usize];
                if put.object_bytes == UNKNOWN {
                    put.len = if put.len == UNKNOWN { told } else { put.len.max(told) };
                }
            }
            _ => {}
        }
        if op.kind == OpKind::Delete {
            self.now[object] = REMOVED;
        }
        true
    }

    /// Returns the median of all sizes that are known.
    fn median(&self, ops: &[TraceOp]) -> u64 {
        let puts = ops.iter().filter(|op| op.kind == OpKind::Put).map(|op| op.len);
        let mut sizes: Vec<u64> =
            self.first_sizes.iter().copied().chain(puts).filter(|size| *size != UNKNOWN).collect();
        if sizes.is_empty() {
            return SIZE_DEFAULT;
        }
        let middle = (sizes.len() - 1) / 2;
        *sizes.select_nth_unstable(middle).1
    }
}

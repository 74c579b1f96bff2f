//! A trace as it is replayed: what was asked of a store or of files, when, and of which of them.
//! Names are gone; what is left is which operations are about the same object.

mod build;
mod facts;
mod intern;

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{OpKind, WorkerId};

pub use build::{Seen, TraceBuilder, TraceOptions};
pub use facts::TraceFacts;

/// What stands for the object of an operation that is about none.
pub const NO_OBJECT: u32 = u32::MAX;

/// One operation of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOp {
    /// When it began, since the first operation of the trace.
    pub at_ns: u64,
    /// Where what is read or written begins.
    pub offset: u64,
    /// How many bytes are read or written; 0 where none are.
    pub len: u64,
    /// How large the object is that a read finds, as far as the trace tells.
    pub object_bytes: u64,
    /// Which object or file it is about; [`NO_OBJECT`] for a listing.
    pub object: u32,
    /// What it does.
    pub kind: OpKind,
    /// Whether it reads a part that is stated.
    pub is_range: bool,
}

// A trace of millions of operations lies in memory.
const _: () = assert!(size_of::<TraceOp>() <= 40);

/// A trace, ready to be replayed.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// In order of time; of one moment in the order of the trace.
    ops: Vec<TraceOp>,
    objects: u32,
    /// The sizes of the objects, or files, that have to be there before; they have the first
    /// numbers.
    made_first: Vec<u64>,
    is_on_files: bool,
    is_timed: bool,
    /// What is to be known of it.
    pub facts: TraceFacts,
}

impl Trace {
    /// Returns the operations, in order of time.
    pub fn ops(&self) -> &[TraceOp] {
        &self.ops
    }

    /// Returns how many objects or files it is about.
    pub fn objects_count(&self) -> u32 {
        self.objects
    }

    /// Returns the sizes of those that have to be there before its first operation.
    pub fn made_first(&self) -> &[u64] {
        &self.made_first
    }

    /// Tells whether it is about blocks of files.
    pub fn is_on_files(&self) -> bool {
        self.is_on_files
    }

    /// Tells whether it says when operations began.
    pub fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Returns the time from the beginning of its first operation to that of its last.
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.ops.last().map_or(0, |op| op.at_ns))
    }

    /// Returns the operations a second over that time; `None` where it takes none.
    pub fn ops_per_sec(&self) -> Option<f64> {
        let seconds = self.duration().as_secs_f64();
        (seconds > 0.0).then(|| self.ops.len() as f64 / seconds)
    }

    /// Returns the kinds of its operations, each once.
    pub fn kinds(&self) -> Vec<OpKind> {
        let mut kinds = Vec::new();
        for op in &self.ops {
            if !kinds.contains(&op.kind) {
                kinds.push(op.kind);
            }
        }
        kinds.sort_unstable();
        kinds
    }

    /// Returns the largest number of bytes that one operation reads or writes.
    pub fn largest(&self) -> u64 {
        self.ops.iter().map(|op| op.len).max().unwrap_or(0)
    }
}

/// The operations of a trace dealt to the workers of a job: each has all that are about its
/// objects, so that what is asked of one object keeps its order. Listings are dealt in turn.
///
/// Dealt once for all workers, before they begin: for each by itself it would be a pass through
/// millions of operations, while others already wait for theirs.
#[derive(Debug)]
pub struct TraceDeal {
    trace: Arc<Trace>,
    /// The places of operations in the trace: those of the first worker, then of the next.
    places: Vec<u32>,
    /// Where those of each worker begin, and where the last one's end.
    begins: Vec<usize>,
}

impl TraceDeal {
    /// Deals the operations of a trace to so many workers.
    pub fn new(trace: Arc<Trace>, workers: NonZeroU32) -> Arc<Self> {
        let worker_of = |(at, op): (usize, &TraceOp)| {
            let dealt_by = if op.object == NO_OBJECT { at as u32 } else { op.object };
            (dealt_by % workers) as usize
        };
        // Bound: the workers of a job, a million at most.
        let mut begins = vec![0; workers.get() as usize + 1];
        trace.ops.iter().enumerate().for_each(|op| begins[worker_of(op) + 1] += 1);
        for worker in 1..begins.len() {
            begins[worker] += begins[worker - 1];
        }
        let (mut next, mut places) = (begins.clone(), vec![0; trace.ops.len()]);
        for (at, op) in trace.ops.iter().enumerate() {
            let place = &mut next[worker_of((at, op))];
            places[*place] = at as u32;
            *place += 1;
        }
        Arc::new(Self { trace, places, begins })
    }

    /// Returns the trace.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the places in the trace of one worker's operations, in order.
    pub fn places(self: &Arc<Self>, worker: WorkerId) -> TracePlaces {
        let at = worker.0 as usize;
        TracePlaces { deal: Arc::clone(self), left: self.begins[at]..self.begins[at + 1] }
    }
}

/// The places in a trace of one worker's operations, in order.
#[derive(Clone, Debug)]
pub struct TracePlaces {
    deal: Arc<TraceDeal>,
    left: Range<usize>,
}

impl TracePlaces {
    /// Returns the trace.
    pub(crate) fn trace(&self) -> &Trace {
        &self.deal.trace
    }
}

impl Iterator for TracePlaces {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        Some(self.deal.places[self.left.next()?])
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl ExactSizeIterator for TracePlaces {}

/// When the operations of one worker are wanted, at a speed.
#[derive(Clone, Debug)]
pub struct TraceTimes {
    places: TracePlaces,
    speed: f64,
}

impl TraceTimes {
    /// Returns the times of a worker's operations.
    pub fn new(places: TracePlaces, speed: f64) -> Self {
        Self { places, speed }
    }
}

impl Iterator for TraceTimes {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let at = self.places.next()?;
        let ns = self.places.trace().ops[at as usize].at_ns;
        // Whole nanoseconds, not a sum of gaps: nothing adds up over an hour.
        let ns = if self.speed == 1.0 { ns } else { (ns as f64 / self.speed) as u64 };
        Some(Duration::from_nanos(ns))
    }
}

#[cfg(test)]
mod tests;

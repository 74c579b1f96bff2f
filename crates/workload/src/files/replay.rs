//! The operations on files that one worker has of a trace, in its order.

use super::blocks::Planned;
use super::greatest_common;
use crate::trace::{Trace, TraceOp, TracePlaces};
use plimsoll_model::OpKind;

/// The operations of one worker.
pub(super) struct Replay {
    /// The places of its operations in the trace.
    places: TracePlaces,
    /// Its files by their numbers in the table.
    files: Vec<u32>,
    workers: u32,
}

/// What comes next of a trace.
pub(super) enum Traced {
    /// A block.
    Block(Planned),
    /// Has what was written to a file put on the medium.
    Sync { file: u32, data_only: bool },
}

impl Replay {
    /// Returns the operations at these places, on these files.
    pub(super) fn new(places: TracePlaces, files: &[u32], workers: u32) -> Self {
        Self { places, files: files.to_vec(), workers }
    }

    pub(super) fn next(&mut self) -> Option<Traced> {
        let at = self.places.next()? as usize;
        let TraceOp { offset, len, object, kind, is_range, .. } = self.places.trace().ops()[at];
        let file = self.files[(object / self.workers) as usize];
        Some(match kind {
            OpKind::Sync => Traced::Sync { file, data_only: is_range },
            kind => {
                let write = kind == OpKind::Write;
                Traced::Block(Planned { write, file, offset, len: len as u32 })
            }
        })
    }

    pub(super) fn left(&self) -> u64 {
        self.places.len() as u64
    }
}

/// Returns what offsets and lengths of all blocks are multiples of.
pub(super) fn common(trace: &Trace) -> u64 {
    let both = |common, op: &TraceOp| greatest_common(greatest_common(common, op.offset), op.len);
    trace.ops().iter().fold(0, both)
}

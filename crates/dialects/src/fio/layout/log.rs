//! Lines of fio's logs: milliseconds, value, direction, size of the block, priority.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::num::NonZeroU64;

/// What a log is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FioLogKind {
    /// `_bw`: KiB/s.
    Throughput,
    /// `_iops`: operations per second; 1 where each has a line of its own.
    Iops,
    /// `_lat`, `_clat` or `_slat`: ns.
    Time,
}

/// An operation as a log needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FioLogOp {
    /// When it ended, from the start of its job.
    pub ended_ms: u64,
    /// Whether it wrote; else it read.
    pub write: bool,
    /// How many bytes it moved.
    pub bytes: u64,
    /// How long it took: what a log of times is of, and what a rate of one operation is over.
    pub ns: u64,
}

/// What ended in one window on one side.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    ops: u64,
    bytes: u64,
    ns: u128,
}

/// A log that is being written.
///
/// Windows are whole multiples of their length since the job's start, and a line bears the end of
/// its window. As in fio a window without an operation has no line, and the last one, if it is not
/// whole, has one in logs of times only.
#[derive(Clone, Debug)]
pub struct FioLog {
    kind: FioLogKind,
    window_ms: Option<NonZeroU64>,
    windows: BTreeMap<(u64, bool), Window>,
}

impl FioLog {
    /// Returns an empty log; without a window each operation gets a line.
    pub fn new(kind: FioLogKind, window_ms: Option<NonZeroU64>) -> Self {
        Self { kind, window_ms, windows: BTreeMap::new() }
    }

    /// Adds an operation, and the line to `text` where each has one. With a window, operations may
    /// come in any order.
    pub fn add(&mut self, op: &FioLogOp, text: &mut String) {
        let Some(window_ms) = self.window_ms else {
            let value = match self.kind {
                FioLogKind::Throughput => rate(op.bytes, op.ns.max(1)),
                FioLogKind::Iops => 1,
                FioLogKind::Time => op.ns,
            };
            line(text, op.ended_ms, value, op.write, op.bytes);
            return;
        };
        let window = self.windows.entry((op.ended_ms / window_ms, op.write)).or_default();
        window.ops += 1;
        window.bytes += op.bytes;
        window.ns += u128::from(op.ns);
    }

    /// Adds the lines of the windows to `text`; the job ended at `ended_ms`.
    pub fn finish(self, ended_ms: u64, text: &mut String) {
        let Some(window_ms) = self.window_ms.map(NonZeroU64::get) else { return };
        for ((index, write), window) in self.windows {
            let end = (index + 1) * window_ms;
            let whole = end <= ended_ms;
            let value = match self.kind {
                FioLogKind::Time => u64::try_from(window.ns / u128::from(window.ops)).ok(),
                FioLogKind::Throughput => whole.then(|| rate(window.bytes, window_ms * 1_000_000)),
                FioLogKind::Iops => whole.then(|| window.ops * 1000 / window_ms),
            };
            if let Some(value) = value {
                line(text, end.min(ended_ms.max(index * window_ms)), value, write, 0);
            }
        }
    }
}

/// Returns KiB per second.
fn rate(bytes: u64, ns: u64) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / 1024 / u128::from(ns);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

fn line(text: &mut String, ms: u64, value: u64, write: bool, block_bytes: u64) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{ms}, {value}, {}, {block_bytes}, 0", u8::from(write));
}

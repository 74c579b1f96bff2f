//! Which stretch of time counts.

use std::collections::HashMap;

use super::WarpOp;

/// What is left out at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discard {
    /// All until every worker has ended one operation, and all from the first worker's last start.
    AllThreads,
    /// The first operation to start, and those that end after the last has started.
    Single,
}

/// A stretch of time in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Span {
    /// Returns the span of operations sorted by start; `None` if the rule leaves nothing.
    pub(super) fn of(ops: &[WarpOp<'_>], discard: Discard) -> Option<Self> {
        let span = match discard {
            Discard::AllThreads => Self::all_threads(ops)?,
            Discard::Single => Self::single(ops)?,
        };
        (span.start <= span.end).then_some(span)
    }

    fn all_threads(ops: &[WarpOp<'_>]) -> Option<Self> {
        // First end and last start of each worker.
        let mut workers: HashMap<u32, (u64, u64)> = HashMap::new();
        for op in ops {
            let worker = workers.entry(op.worker.thread).or_insert((op.end(), op.start()));
            *worker = (worker.0.min(op.end()), worker.1.max(op.start()));
        }
        let start = workers.values().map(|worker| worker.0).max()?;
        let end = workers.values().map(|worker| worker.1).min()?;
        Some(Self { start, end })
    }

    /// If no operation is left, the first start and the end of the last to start stand in: so few
    /// operations as the four good ones of a run that failed throughout still have a span.
    fn single(ops: &[WarpOp<'_>]) -> Option<Self> {
        let (first, last) = (ops.first()?, ops.last()?);
        let start = ops.iter().map(WarpOp::start).find(|start| *start > first.start());
        let before_last = |end: &u64| *end < last.start();
        let end = ops.iter().map(WarpOp::end).filter(before_last).max();
        Some(Self { start: start.unwrap_or(first.start()), end: end.unwrap_or(last.end()) })
    }

    /// Tells whether an operation lies wholly inside.
    pub(super) fn holds(&self, op: &WarpOp<'_>) -> bool {
        op.start() >= self.start && op.end() <= self.end
    }

    pub(super) fn length(&self) -> u64 {
        self.end - self.start
    }
}

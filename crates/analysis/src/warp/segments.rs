//! Shares of operations in stretches of time, and the fastest, median and slowest stretch.

use std::time::Duration;

use plimsoll_model::Moment;

use super::span::Span;
use super::{WarpOp, ns, rank};

/// What fell into a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WarpShares {
    /// Bytes, by time share, each share rounded down.
    pub bytes: u64,
    /// Objects, by time share.
    pub objects: f64,
    /// Successes that lie wholly inside.
    pub full_ops: u64,
    /// Operations that began before or ended after.
    pub partial_ops: u64,
    /// Operations that began inside.
    pub ops_started: u64,
    /// Operations that ended inside.
    pub ops_ended: u64,
    /// Failures that ended inside.
    pub errors: u64,
    /// Successes that ended inside.
    pub ended_ok: u64,
    /// The sum of their durations in milliseconds, added up in the order of their starts.
    pub ended_ok_ms: f64,
}

impl WarpShares {
    /// Returns the shares of `[from, to)`. What ends just at `from` is outside.
    pub(super) fn of(ops: &[WarpOp<'_>], from: u64, to: u64) -> Self {
        let mut shares = Self::default();
        for op in ops.iter().filter(|op| op.start() < to && op.end() > from) {
            shares.add(op, from, to);
        }
        shares
    }

    /// Adds an operation that starts before `to` and does not end before `from`.
    fn add(&mut self, op: &WarpOp<'_>, from: u64, to: u64) {
        let (start, end, record) = (op.start(), op.end(), op.record);
        let (began, ended) = (start >= from, end < to);
        if began && ended {
            if !op.ok() {
                self.errors += 1;
                return;
            }
            self.bytes += record.bytes;
            self.objects += f64::from(record.objects_count);
            self.full_ops += 1;
            self.ops_started += 1;
            self.ops_ended += 1;
            self.add_duration(op);
            return;
        }
        self.partial_ops += 1;
        if began {
            self.ops_started += 1;
            if !op.ok() {
                return;
            }
        }
        if ended {
            self.ops_ended += 1;
            if !op.ok() {
                self.errors += 1;
                return;
            }
            self.add_duration(op);
        }
        let inside = end.min(to).saturating_sub(start.max(from));
        if let Some(duration) = std::num::NonZeroU64::new(op.duration()) {
            let bytes = u128::from(record.bytes) * u128::from(inside) / u128::from(duration.get());
            self.bytes += bytes as u64;
            let share = inside as f64 / duration.get() as f64;
            self.objects += f64::from(record.objects_count) * share;
        }
    }

    fn add_duration(&mut self, op: &WarpOp<'_>) {
        self.ended_ok += 1;
        self.ended_ok_ms += op.duration() as f64 / 1e6;
    }
}

/// One segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarpSegment {
    /// When it begins.
    pub start: Moment,
    /// Its length.
    pub length: Duration,
    /// What fell into it.
    pub shares: WarpShares,
}

impl WarpSegment {
    /// Returns bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        self.shares.bytes as f64 / self.length.as_secs_f64()
    }

    /// Returns MiB per second.
    pub fn mib_per_second(&self) -> f64 {
        self.shares.bytes as f64 / f64::from(1 << 20) / self.length.as_secs_f64()
    }

    /// Returns objects per second.
    pub fn objects_per_second(&self) -> f64 {
        self.shares.objects / self.length.as_secs_f64()
    }

    /// Returns ended operations per second.
    pub fn ops_ended_per_second(&self) -> f64 {
        self.shares.ops_ended as f64 / self.length.as_secs_f64()
    }

    /// Returns the mean duration of the successes that ended inside, in milliseconds.
    pub fn mean_millis(&self) -> Option<f64> {
        let n = self.shares.ended_ok;
        (n > 0).then(|| self.shares.ended_ok_ms / n as f64)
    }
}

/// The segments of a span, at least two.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpSegments {
    /// The length of each.
    pub length: Duration,
    /// The slowest first.
    pub by_rate: Vec<WarpSegment>,
}

impl WarpSegments {
    /// Puts segments in order by bytes if any has some, else by objects, else by operations.
    pub(super) fn ranked(mut segments: Vec<WarpSegment>) -> Option<Self> {
        let length = segments.first().filter(|_| segments.len() > 1)?.length;
        let bytes = segments.iter().any(|segment| segment.shares.bytes > 0);
        let objects = segments.iter().any(|segment| segment.shares.objects > 0.0);
        segments.sort_by(|a, b| {
            let (a, b) = (&a.shares, &b.shares);
            match (bytes, objects) {
                (true, _) => a.bytes.cmp(&b.bytes),
                (false, true) => a.objects.total_cmp(&b.objects),
                (false, false) => a.ops_ended.cmp(&b.ops_ended),
            }
        });
        Some(Self { length, by_rate: segments })
    }

    /// Returns the fastest, the upper median and the slowest.
    pub fn picked(&self) -> [&WarpSegment; 3] {
        [100, 50, 0].map(|percent| &self.by_rate[rank(self.by_rate.len(), percent)])
    }
}

/// How many segments there are at most when the length is left open.
const SEGMENTS_AUTO_MAX: u64 = 400;
/// How many segments there are at most in any case; a length that gives more is lengthened.
const SEGMENTS_MAX: u64 = 1_000_000;

/// Returns the length of a segment in nanoseconds.
pub(super) fn length(span: Span, asked: Option<Duration>) -> u64 {
    const LENGTHS_SECONDS: [u64; 8] = [1, 5, 15, 60, 300, 900, 3_600, 10_800];
    let lengths = LENGTHS_SECONDS.map(|seconds| seconds * 1_000_000_000);
    let few = |length: &u64| span.length() / length <= SEGMENTS_AUTO_MAX;
    let auto = || lengths.into_iter().find(few).unwrap_or(lengths[lengths.len() - 1]);
    asked.map_or_else(auto, |asked| ns(asked).max(1)).max(span.length() / SEGMENTS_MAX)
}

/// Cuts a span into segments; the last whole one is dropped if it ends with the span.
///
/// What ends just where a segment begins is not in it, with one exception: an operation that ends
/// where the span begins counts if none ended earlier, which is so with one worker number. Both
/// follow from tables that warp printed.
pub(super) fn cut(ops: &[WarpOp<'_>], span: Span, length: u64) -> Vec<WarpSegment> {
    let count = span.length().saturating_sub(1) / length;
    // Bound: `SEGMENTS_MAX`, by `length`.
    let mut shares = vec![WarpShares::default(); count as usize];
    let earliest = ops.iter().map(WarpOp::end).min() == Some(span.start);
    let since = if earliest { span.start } else { span.start + 1 };
    for op in ops.iter().filter(|op| op.end() >= since) {
        let first = op.start().saturating_sub(span.start) / length;
        let after = (op.end() - span.start).max(1).div_ceil(length);
        for index in first..after.min(count) {
            let from = span.start + index * length;
            shares[index as usize].add(op, from, from + length);
        }
    }
    let segment = |(index, shares): (usize, WarpShares)| WarpSegment {
        start: Moment::from_ns(span.start + index as u64 * length),
        length: Duration::from_nanos(length),
        shares,
    };
    shares.into_iter().enumerate().map(segment).collect()
}

//! What warp keeps of a run unless it is told to keep every operation: sums over whole seconds of
//! the wall clock, and the times of requests in windows of ten seconds.
//!
//! Failed operations are counted, and are in no rate and in no time, where warp has them in both.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_model::{EndpointId, Moment, OpKind};

use super::requests::{WarpAccess, WarpSizeClass, multi_size};
use super::{Op, Recording, WarpKind, WarpQuestion, WarpSizes, loaded};

const NS: u64 = 1_000_000_000;

/// How many seconds are left out at each end.
pub const SECONDS_CUT: usize = 2;
/// How many seconds all parts of a summary may have together, 128 MB: enough for two days of a run
/// in 20 parts. A client whose clock was not set lies decades before the others.
const SECONDS_MAX: u64 = 4_000_000;
/// How many seconds one window of requests is long.
pub const WINDOW_SECONDS: u64 = 10;

/// The sums of a recording: of all of it, and of its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpSummary {
    /// All operations.
    pub total: WarpSums,
    /// Those of each kind.
    pub kinds: BTreeMap<OpKind, WarpSums>,
    /// Those that went to each endpoint.
    pub endpoints: BTreeMap<EndpointId, WarpSums>,
    /// Those of each client.
    pub clients: BTreeMap<u16, WarpSums>,
    /// Those of each size class: by how many bits the number of bytes has; empty ones are left out.
    pub sizes: BTreeMap<u32, WarpSums>,
}

/// The sums of some operations.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpSums {
    /// What was moved from the first start to the last end.
    pub moved: WarpMoved,
    /// How many worker numbers there were.
    pub concurrency: usize,
    /// What the first failures said, at most [`WarpKind::ERRORS_MAX`].
    pub first_errors: Vec<String>,
    /// What was moved in each second, without those at the ends; `None` where nothing is left, and
    /// of what would be more than [`SECONDS_MAX`] together with the parts before it.
    pub seconds: Option<WarpSeconds>,
    /// What each endpoint moved.
    pub endpoints: BTreeMap<EndpointId, WarpMoved>,
    /// What each client moved.
    pub clients: BTreeMap<u16, WarpMoved>,
    /// The requests of each client, in the order of time; windows without a success are left out.
    pub windows: BTreeMap<u16, Vec<WarpWindow>>,
}

/// What was moved in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarpMoved {
    /// The first start.
    pub started: Moment,
    /// The last end.
    pub ended: Moment,
    /// The operations, failed ones too.
    pub requests: u64,
    /// Those that failed.
    pub errors: u64,
    /// The objects of those that did not.
    pub objects: u64,
    /// The bytes of those that did not.
    pub bytes: u64,
}

/// Whole seconds, one after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpSeconds {
    /// When the first begins.
    pub start: Moment,
    /// Each of them.
    pub all: Vec<WarpSecond>,
}

/// One second; an operation gives each second that it touches a share by time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WarpSecond {
    /// The operations that started in it and did not fail.
    pub started: u64,
    /// Those that started in it and failed.
    pub errors: u64,
    /// Objects.
    pub objects: f64,
    /// Bytes.
    pub bytes: f64,
}

/// The requests that ended within a window, failed ones left out.
#[derive(Clone, Debug, PartialEq)]
pub struct WarpWindow {
    /// When it begins.
    pub start: Moment,
    /// How many there are.
    pub requests: usize,
    /// What is told of them.
    pub sizes: WarpWindowSizes,
}

/// What is told about the requests of a window: it depends on whether all are of one size.
#[derive(Clone, Debug, PartialEq)]
pub enum WarpWindowSizes {
    /// All moved the same number of bytes.
    Single {
        /// That number.
        bytes: u64,
        /// Their times.
        times: WarpAccess,
    },
    /// They did not.
    Multi {
        /// The mean size.
        bytes_mean: u64,
        /// The classes that hold at least a twentieth of the requests.
        classes: Vec<WarpSizeClass>,
    },
}

/// Returns the sums of a recording; `None` where there is no operation. Of the question only
/// offset and limit count, as in warp.
pub fn sums(recording: &Recording<'_>, question: &WarpQuestion) -> Option<WarpSummary> {
    let ops = loaded(recording, question);
    let mut seconds_left = SECONDS_MAX;
    let mut of = |ops: &[Op<'_>]| WarpSums::of(ops, recording, &mut seconds_left);
    let bits = |op: &Op<'_>| u64::BITS - op.record.bytes.leading_zeros();
    let sized: Vec<Op<'_>> = ops.iter().filter(|op| op.record.bytes > 0).copied().collect();
    Some(WarpSummary {
        total: of(&ops)?,
        kinds: each(&ops, |op| op.record.kind, &mut of),
        endpoints: each(&ops, |op| op.record.endpoint, &mut of),
        clients: each(&ops, |op| op.worker.client, &mut of),
        sizes: each(&sized, bits, &mut of),
    })
}

/// Returns what `of` makes of the operations of each key.
fn each<'a, K: Ord, T>(
    ops: &[Op<'a>],
    key: impl Fn(&Op<'a>) -> K,
    mut of: impl FnMut(&[Op<'a>]) -> Option<T>,
) -> BTreeMap<K, T> {
    let mut parts: BTreeMap<K, Vec<Op<'a>>> = BTreeMap::new();
    ops.iter().for_each(|op| parts.entry(key(op)).or_default().push(*op));
    parts.into_iter().filter_map(|(key, ops)| Some((key, of(&ops)?))).collect()
}

impl WarpSums {
    fn of(ops: &[Op<'_>], recording: &Recording<'_>, seconds_left: &mut u64) -> Option<Self> {
        let failed = ops.iter().filter(|op| !op.ok()).take(WarpKind::ERRORS_MAX);
        let text = |op: &Op<'_>| recording.error_texts.get(&op.index).cloned().unwrap_or_default();
        let client = |op: &Op<'_>| op.worker.client;
        Some(Self {
            moved: WarpMoved::of(ops)?,
            concurrency: ops.iter().map(|op| op.worker.thread).collect::<BTreeSet<_>>().len(),
            first_errors: failed.map(text).collect(),
            seconds: WarpSeconds::of(ops, seconds_left),
            endpoints: each(ops, |op| op.record.endpoint, WarpMoved::of),
            clients: each(ops, client, WarpMoved::of),
            windows: each(ops, client, |ops| Some(windows(ops))),
        })
    }
}

impl WarpMoved {
    fn of(ops: &[Op<'_>]) -> Option<Self> {
        let good = || ops.iter().filter(|op| op.ok());
        Some(Self {
            started: ops.iter().map(|op| op.record.start).min()?,
            ended: ops.iter().map(|op| op.record.end).max()?,
            requests: ops.len() as u64,
            errors: (ops.len() - good().count()) as u64,
            objects: good().map(|op| u64::from(op.record.objects_count)).sum(),
            bytes: good().map(|op| op.record.bytes).sum(),
        })
    }
}

impl WarpSeconds {
    /// Returns the seconds of operations that are in the order of their starts, if they are no more
    /// than may be.
    fn of(ops: &[Op<'_>], left: &mut u64) -> Option<Self> {
        let first = ops.first()?.start() / NS;
        let last = ops.iter().map(Op::end).max()? / NS;
        let count = last - first + 1;
        *left = left.checked_sub(count)?;
        // Bound: SECONDS_MAX, by what is left.
        let mut all = vec![WarpSecond::default(); usize::try_from(count).ok()?];
        ops.iter().for_each(|op| spread(op, first, &mut all));
        all.truncate(all.len().saturating_sub(SECONDS_CUT));
        all.drain(..SECONDS_CUT.min(all.len()));
        let start = Moment::from_ns((first + SECONDS_CUT as u64) * NS);
        (!all.is_empty()).then_some(Self { start, all })
    }

    /// Returns the sums of all.
    pub fn sum(&self) -> WarpSecond {
        let add = |sum: WarpSecond, second: &WarpSecond| WarpSecond {
            started: sum.started + second.started,
            errors: sum.errors + second.errors,
            objects: sum.objects + second.objects,
            bytes: sum.bytes + second.bytes,
        };
        self.all.iter().fold(WarpSecond::default(), add)
    }
}

/// Gives each second that an operation touches its share.
fn spread(op: &Op<'_>, first: u64, seconds: &mut [WarpSecond]) {
    let (from, to) = ((op.start() / NS - first) as usize, (op.end() / NS - first) as usize);
    if !op.ok() {
        seconds[from].errors += 1;
        return;
    }
    seconds[from].started += 1;
    for (at, second) in seconds.iter_mut().enumerate().take(to + 1).skip(from) {
        let start = (first + at as u64) * NS;
        let inside = op.end().min(start + NS).saturating_sub(op.start().max(start));
        let share = if from == to { 1.0 } else { inside as f64 / op.duration() as f64 };
        second.objects += f64::from(op.record.objects_count) * share;
        second.bytes += op.record.bytes as f64 * share;
    }
}

/// Returns the windows of operations that are in the order of their starts. The first begins at the
/// second in which the first operation ended; what ends before its window stays in it.
fn windows(ops: &[Op<'_>]) -> Vec<WarpWindow> {
    let good: Vec<Op<'_>> = ops.iter().filter(|op| op.ok()).copied().collect();
    let Some(first) = good.first() else { return Vec::new() };
    let (second, size) = (first.end() / NS, first.record.bytes);
    let is_single = good.iter().all(|op| op.record.bytes == size);
    let (mut parts, mut number) = (BTreeMap::<u64, Vec<Op<'_>>>::new(), 0);
    for op in &good {
        number = number.max((op.end() / NS).saturating_sub(second) / WINDOW_SECONDS);
        parts.entry(number).or_default().push(*op);
    }
    let window = |(number, ops): (u64, Vec<Op<'_>>)| {
        let sizes = match is_single {
            true => WarpWindowSizes::Single { bytes: size, times: WarpAccess::of(ops.iter())? },
            false => match multi_size(&ops) {
                WarpSizes::Multi { bytes_mean, classes } => {
                    WarpWindowSizes::Multi { bytes_mean, classes }
                }
                WarpSizes::Single(_) => return None,
            },
        };
        let start = Moment::from_ns((second + number * WINDOW_SECONDS) * NS);
        Some(WarpWindow { start, requests: ops.len(), sizes })
    };
    parts.into_iter().filter_map(window).collect()
}

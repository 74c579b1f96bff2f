//! What is going on at this moment, for a display: counters that one thread writes and any thread
//! reads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_model::{ErrorClass, OpKind};
use plimsoll_stats::Sample;

use crate::seen::PartSeen;

/// Asks every worker to end after the operation it has under way.
#[derive(Debug, Default)]
pub struct StopFlag(AtomicBool);

impl StopFlag {
    /// Asks.
    pub fn set(&self) {
        self.0.store(true, Relaxed);
    }

    /// Takes the wish back: whoever had it meant the stage that has ended.
    pub fn clear(&self) {
        self.0.store(false, Relaxed);
    }

    /// Tells whether it was asked.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Latencies up to this power of two of nanoseconds (1,024 ns) are in the first cell.
const LATENCY_LOG2_MIN: u32 = 10;
/// Latencies above this power of two of nanoseconds (137 s) are in the last cell.
const LATENCY_LOG2_MAX: u32 = 37;
/// Each power of two is cut into eight equal cells: a cell is at most an eighth wider than it is
/// high.
const CELLS_PER_OCTAVE_LOG2: u32 = 3;

/// How many cells latencies are counted in.
pub const LATENCY_CELLS: usize =
    (((LATENCY_LOG2_MAX - LATENCY_LOG2_MIN) << CELLS_PER_OCTAVE_LOG2) + 2) as usize;

/// Returns the longest latency of a cell in nanoseconds; `None` for the last, which has no end.
pub fn latency_cell_end_ns(cell: usize) -> Option<u64> {
    if cell + 1 >= LATENCY_CELLS {
        return None;
    }
    let Some(above) = cell.checked_sub(1) else { return Some(1 << LATENCY_LOG2_MIN) };
    let per_octave = 1 << CELLS_PER_OCTAVE_LOG2;
    let (octave, part) = (above / per_octave, above % per_octave);
    let shift = octave as u32 + LATENCY_LOG2_MIN - CELLS_PER_OCTAVE_LOG2;
    Some(((per_octave + part + 1) as u64) << shift)
}

/// Returns the cell of a latency.
fn latency_cell(ns: u64) -> usize {
    // One less, so that the end of a cell belongs to it.
    let inside = ns.saturating_sub(1).max(1);
    let log2 = inside.ilog2();
    if log2 < LATENCY_LOG2_MIN {
        return 0;
    }
    let eighths = inside >> (log2 - CELLS_PER_OCTAVE_LOG2);
    let part = eighths as usize - (1 << CELLS_PER_OCTAVE_LOG2);
    let octave = (log2 - LATENCY_LOG2_MIN) as usize;
    (1 + (octave << CELLS_PER_OCTAVE_LOG2) + part).min(LATENCY_CELLS - 1)
}

/// Counters of one kind of operation on one thread. Only that thread writes, so no
/// read-modify-write is needed.
#[derive(Debug)]
struct KindCounters {
    bytes: AtomicU64,
    objects: AtomicU64,
    latency_ns: AtomicU64,
    ttfb_ns: AtomicU64,
    /// Operations ended, by class; the first is success.
    ended: [AtomicU64; ErrorClass::ALL.len()],
    /// Successes by latency.
    cells: [AtomicU64; LATENCY_CELLS],
}

impl Default for KindCounters {
    fn default() -> Self {
        Self {
            bytes: AtomicU64::new(0),
            objects: AtomicU64::new(0),
            latency_ns: AtomicU64::new(0),
            ttfb_ns: AtomicU64::new(0),
            ended: [const { AtomicU64::new(0) }; ErrorClass::ALL.len()],
            cells: [const { AtomicU64::new(0) }; LATENCY_CELLS],
        }
    }
}

impl KindCounters {
    fn ok(&self) -> u64 {
        self.ended[ErrorClass::Ok as usize].load(Relaxed)
    }

    fn failed(&self) -> u64 {
        self.ended[1..].iter().map(|count| count.load(Relaxed)).sum()
    }

    fn counts(&self) -> LiveCounts {
        LiveCounts {
            ok: self.ok(),
            failed: self.failed(),
            bytes: self.bytes.load(Relaxed),
            latency_ns: self.latency_ns.load(Relaxed),
        }
    }
}

fn add(counter: &AtomicU64, value: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(value), Relaxed);
}

/// Counters of one thread, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ThreadCounters([KindCounters; OpKind::ALL.len()]);

impl ThreadCounters {
    pub(crate) fn count(&self, kind: OpKind, op: &Sample) {
        let counters = &self.0[kind as usize];
        add(&counters.ended[usize::from(op.outcome)], 1);
        if op.outcome != ErrorClass::Ok as u8 {
            return;
        }
        add(&counters.bytes, op.bytes);
        add(&counters.objects, op.objects);
        add(&counters.latency_ns, op.latency_ns);
        add(&counters.ttfb_ns, op.ttfb_ns.unwrap_or(0));
        add(&counters.cells[latency_cell(op.latency_ns)], 1);
    }
}

/// The counters of all threads.
#[derive(Debug)]
pub struct Live {
    threads: Vec<ThreadCounters>,
    /// What stop rules have seen here, for who judges them.
    seen: Mutex<Option<Arc<PartSeen>>>,
    /// Who else carries the stage out, where others do.
    parts: Mutex<Vec<LivePart>>,
}

/// Somebody else who carries out a part of the stage. The counters of the first are those of slot
/// 0, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePart {
    /// What people call it.
    pub name: String,
    /// How it stands.
    pub state: PartState,
}

/// How somebody stands who carries out a part of the stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartState {
    /// It works.
    Works,
    /// It has ended its part.
    Done,
    /// It has not been heard of for a while.
    Silent,
    /// It is given up.
    Lost,
}

/// What was counted so far of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveCounts {
    /// Successes.
    pub ok: u64,
    /// Failures.
    pub failed: u64,
    /// Content bytes of successes.
    pub bytes: u64,
    /// Sum of the latencies of successes.
    pub latency_ns: u64,
}

impl LiveCounts {
    /// Returns what both have counted.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            ok: self.ok + other.ok,
            failed: self.failed + other.failed,
            bytes: self.bytes + other.bytes,
            latency_ns: self.latency_ns.wrapping_add(other.latency_ns),
        }
    }
}

/// All that was counted so far of one kind of operation. The numbers are read one after the other
/// while operations end, so they agree with each other only when the stage is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveDetail {
    /// Operations ended, indexed by [`ErrorClass`]; the first counts the successes.
    pub ended: [u64; ErrorClass::ALL.len()],
    /// Content bytes of successes.
    pub bytes: u64,
    /// Objects handled by successes.
    pub objects: u64,
    /// Sum of the latencies of successes.
    pub latency_ns: u64,
    /// Sum of the times to first byte of those successes that had one.
    pub ttfb_ns: u64,
    /// Successes by latency; [`latency_cell_end_ns`] tells up to which.
    pub latency_cells: Box<[u64; LATENCY_CELLS]>,
}

impl LiveDetail {
    /// Returns how many operations ended.
    pub fn ended_count(&self) -> u64 {
        self.ended.iter().sum()
    }

    /// Returns how many operations failed.
    pub fn failed_count(&self) -> u64 {
        self.ended[1..].iter().sum()
    }
}

impl Live {
    /// Returns counters for `threads` threads, all zero.
    pub fn new(threads: usize) -> Self {
        let threads = (0..threads).map(|_| ThreadCounters::default()).collect();
        Self { threads, seen: Mutex::default(), parts: Mutex::default() }
    }

    pub(crate) fn thread(&self, index: usize) -> &ThreadCounters {
        &self.threads[index]
    }

    /// Says who else carries the stage out, and how each stands.
    pub fn show_parts(&self, parts: Vec<LivePart>) {
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = parts;
    }

    /// Returns who else carries the stage out, where others do.
    pub fn parts(&self) -> Vec<LivePart> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns what stop rules have seen here that somebody else judges, the newest.
    pub fn seen(&self) -> Option<Arc<PartSeen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn tell(&self, seen: PartSeen) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(seen));
    }

    /// Has a slot show what somebody else has counted so far of `kind`, in place of what it showed.
    pub fn show(&self, slot: usize, kind: OpKind, counted: &LiveDetail) {
        let counters = &self.threads[slot].0[kind as usize];
        let set = |counter: &AtomicU64, value: u64| counter.store(value, Relaxed);
        set(&counters.bytes, counted.bytes);
        set(&counters.objects, counted.objects);
        set(&counters.latency_ns, counted.latency_ns);
        set(&counters.ttfb_ns, counted.ttfb_ns);
        counters.ended.iter().zip(&counted.ended).for_each(|(of, value)| set(of, *value));
        counters.cells.iter().zip(&*counted.latency_cells).for_each(|(of, value)| set(of, *value));
    }

    /// Returns what was counted so far of `kind`.
    pub fn counts(&self, kind: OpKind) -> LiveCounts {
        let of_threads = self.threads.iter().map(|thread| thread.0[kind as usize].counts());
        of_threads.fold(LiveCounts::default(), LiveCounts::plus)
    }

    /// Returns what was counted so far in a slot, of all kinds.
    pub fn counts_of(&self, slot: usize) -> LiveCounts {
        let kinds = self.threads.get(slot).into_iter().flat_map(|thread| &thread.0);
        kinds.map(KindCounters::counts).fold(LiveCounts::default(), LiveCounts::plus)
    }

    /// Returns all that was counted so far of `kind`; `None` if no such operation has ended.
    pub fn detail(&self, kind: OpKind) -> Option<LiveDetail> {
        let mut sum = LiveDetail {
            ended: [0; ErrorClass::ALL.len()],
            bytes: 0,
            objects: 0,
            latency_ns: 0,
            ttfb_ns: 0,
            latency_cells: Box::new([0; LATENCY_CELLS]),
        };
        for thread in &self.threads {
            let counters = &thread.0[kind as usize];
            for (sum, counter) in sum.ended.iter_mut().zip(&counters.ended) {
                *sum += counter.load(Relaxed);
            }
            sum.bytes = sum.bytes.wrapping_add(counters.bytes.load(Relaxed));
            sum.objects = sum.objects.wrapping_add(counters.objects.load(Relaxed));
            sum.latency_ns = sum.latency_ns.wrapping_add(counters.latency_ns.load(Relaxed));
            sum.ttfb_ns = sum.ttfb_ns.wrapping_add(counters.ttfb_ns.load(Relaxed));
            for (sum, counter) in sum.latency_cells.iter_mut().zip(&counters.cells) {
                *sum += counter.load(Relaxed);
            }
        }
        (sum.ended_count() > 0).then_some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(latency_ns: u64, outcome: ErrorClass) -> Sample {
        let ttfb_ns = Some(latency_ns / 2);
        let outcome = outcome as u8;
        Sample {
            start_ns: 0,
            end_ns: latency_ns,
            latency_ns,
            ttfb_ns,
            bytes: 7,
            objects: 3,
            outcome,
        }
    }

    #[test]
    fn the_end_of_a_cell_belongs_to_it_and_cells_follow_one_another() {
        let mut cell_before = None;
        for cell in 0..LATENCY_CELLS - 1 {
            let end = latency_cell_end_ns(cell).unwrap();
            assert_eq!((latency_cell(end), latency_cell(end + 1)), (cell, cell + 1), "{end}");
            if let Some(before) = cell_before {
                let width: u64 = end - before;
                assert!(cell == 0 || width * 8 <= before, "{before} to {end} is too wide");
            }
            cell_before = Some(end);
        }
        // 1,024 ns, an eighth more, and 2^37 ns.
        assert_eq!(latency_cell_end_ns(0), Some(1_024));
        assert_eq!(latency_cell_end_ns(1), Some(1_152));
        assert_eq!(latency_cell_end_ns(LATENCY_CELLS - 2), Some(137_438_953_472));
        assert_eq!(latency_cell_end_ns(LATENCY_CELLS - 1), None);
        assert_eq!((latency_cell(0), latency_cell(u64::MAX)), (0, LATENCY_CELLS - 1));
    }

    #[test]
    fn threads_add_up_and_failures_add_nothing_but_their_class() {
        let live = Live::new(2);
        live.thread(0).count(OpKind::Get, &sample(1_000, ErrorClass::Ok));
        live.thread(1).count(OpKind::Get, &sample(1_100, ErrorClass::Ok));
        live.thread(1).count(OpKind::Get, &sample(9_999, ErrorClass::Throttled));
        assert_eq!(live.detail(OpKind::Put), None);
        let detail = live.detail(OpKind::Get).unwrap();
        assert_eq!((detail.ended_count(), detail.failed_count()), (3, 1));
        assert_eq!(detail.ended[ErrorClass::Throttled as usize], 1);
        assert_eq!((detail.bytes, detail.objects), (14, 6));
        assert_eq!((detail.latency_ns, detail.ttfb_ns), (2_100, 1_050));
        assert_eq!(detail.latency_cells[..3], [1, 1, 0]);
        assert_eq!(detail.latency_cells.iter().sum::<u64>(), 2);
        let counts = live.counts(OpKind::Get);
        assert_eq!((counts.ok, counts.failed, counts.bytes), (2, 1, 14));
        let elsewhere = Live::new(2);
        elsewhere.show(1, OpKind::Get, &detail);
        elsewhere.show(1, OpKind::Get, &detail);
        assert_eq!(elsewhere.detail(OpKind::Get), Some(detail));
    }
}

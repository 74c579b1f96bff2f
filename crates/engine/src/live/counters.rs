//! The counters behind a display: cells of latencies, and what one thread counts.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use plimsoll_model::{ErrorClass, JobId, OpKind, SeriesKey};
use plimsoll_stats::Sample;

use super::failures::LastFailures;
use super::{LiveCounts, LiveDetail};

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

/// How many coarse cells there are: one for each power of two that [`LATENCY_CELLS`] cuts into
/// eight, and the first and the last of these.
pub const COARSE_CELLS: usize = (LATENCY_LOG2_MAX - LATENCY_LOG2_MIN + 2) as usize;

/// Returns the longest time of a coarse cell in nanoseconds, a power of two; `None` for the last,
/// which has no end.
pub fn coarse_cell_end_ns(cell: usize) -> Option<u64> {
    (cell + 1 < COARSE_CELLS).then(|| 1 << (LATENCY_LOG2_MIN as usize + cell))
}

/// Returns the coarse cell that a cell of latencies lies in.
pub fn coarse_cell(cell: usize) -> usize {
    cell.div_ceil(1 << CELLS_PER_OCTAVE_LOG2).min(COARSE_CELLS - 1)
}

/// Returns the coarse cell of a time.
fn coarse_cell_of(ns: u64) -> usize {
    // One less, so that the end of a cell belongs to it.
    let log2 = ns.saturating_sub(1).max(1).ilog2();
    ((log2 + 1).saturating_sub(LATENCY_LOG2_MIN) as usize).min(COARSE_CELLS - 1)
}

/// Returns the cell of a latency.
pub(super) fn latency_cell(ns: u64) -> usize {
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

/// Counters of operations on one thread, on cache lines of their own. Only that thread writes, so
/// no read-modify-write is needed.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct OpCounters {
    bytes: AtomicU64,
    objects: AtomicU64,
    latency_ns: AtomicU64,
    ttfb_ns: AtomicU64,
    delay_ns: AtomicU64,
    /// Operations ended, by class; the first is success.
    ended: [AtomicU64; ErrorClass::ALL.len()],
    /// Successes by latency.
    cells: [AtomicU64; LATENCY_CELLS],
    /// Successes that had a first byte, by the time to it.
    ttfb_cells: [AtomicU64; COARSE_CELLS],
    /// Successes by the delay of their start.
    delay_cells: [AtomicU64; COARSE_CELLS],
}

impl Default for OpCounters {
    fn default() -> Self {
        Self {
            bytes: AtomicU64::new(0),
            objects: AtomicU64::new(0),
            latency_ns: AtomicU64::new(0),
            ttfb_ns: AtomicU64::new(0),
            delay_ns: AtomicU64::new(0),
            ended: [const { AtomicU64::new(0) }; ErrorClass::ALL.len()],
            cells: [const { AtomicU64::new(0) }; LATENCY_CELLS],
            ttfb_cells: [const { AtomicU64::new(0) }; COARSE_CELLS],
            delay_cells: [const { AtomicU64::new(0) }; COARSE_CELLS],
        }
    }
}

impl OpCounters {
    fn ok(&self) -> u64 {
        self.ended[ErrorClass::Ok as usize].load(Relaxed)
    }

    fn failed(&self) -> u64 {
        self.ended[1..].iter().map(|count| count.load(Relaxed)).sum()
    }

    pub(super) fn counts(&self) -> LiveCounts {
        LiveCounts {
            ok: self.ok(),
            failed: self.failed(),
            bytes: self.bytes.load(Relaxed),
            latency_ns: self.latency_ns.load(Relaxed),
        }
    }

    fn count(&self, op: &Sample) {
        add(&self.ended[usize::from(op.outcome)], 1);
        if op.outcome != ErrorClass::Ok as u8 {
            return;
        }
        add(&self.bytes, op.bytes);
        add(&self.objects, op.objects);
        add(&self.latency_ns, op.latency_ns);
        add(&self.cells[latency_cell(op.latency_ns)], 1);
        if let Some(ttfb_ns) = op.ttfb_ns {
            add(&self.ttfb_ns, ttfb_ns);
            add(&self.ttfb_cells[coarse_cell_of(ttfb_ns)], 1);
        }
        // Latency begins at the intended start.
        let delay_ns = op.latency_ns.saturating_sub(op.end_ns.saturating_sub(op.start_ns));
        add(&self.delay_ns, delay_ns);
        add(&self.delay_cells[coarse_cell_of(delay_ns)], 1);
    }

    /// Shows what somebody else has counted.
    pub(super) fn set(&self, counted: &LiveDetail) {
        let set = |counter: &AtomicU64, value: u64| counter.store(value, Relaxed);
        set(&self.bytes, counted.bytes);
        set(&self.objects, counted.objects);
        set(&self.latency_ns, counted.latency_ns);
        set(&self.ttfb_ns, counted.ttfb_ns);
        set(&self.delay_ns, counted.delay_ns);
        self.ended.iter().zip(&counted.ended).for_each(|(of, value)| set(of, *value));
        self.cells.iter().zip(&*counted.latency_cells).for_each(|(of, value)| set(of, *value));
        self.ttfb_cells.iter().zip(&counted.ttfb_cells).for_each(|(of, value)| set(of, *value));
        self.delay_cells.iter().zip(&counted.delay_cells).for_each(|(of, value)| set(of, *value));
    }

    /// Adds what was counted so far.
    pub(super) fn add_to(&self, sum: &mut LiveDetail) {
        for (sum, counter) in sum.ended.iter_mut().zip(&self.ended) {
            *sum += counter.load(Relaxed);
        }
        sum.bytes = sum.bytes.wrapping_add(self.bytes.load(Relaxed));
        sum.objects = sum.objects.wrapping_add(self.objects.load(Relaxed));
        sum.latency_ns = sum.latency_ns.wrapping_add(self.latency_ns.load(Relaxed));
        sum.ttfb_ns = sum.ttfb_ns.wrapping_add(self.ttfb_ns.load(Relaxed));
        sum.delay_ns = sum.delay_ns.wrapping_add(self.delay_ns.load(Relaxed));
        add_cells(&mut *sum.latency_cells, &self.cells);
        add_cells(&mut sum.ttfb_cells, &self.ttfb_cells);
        add_cells(&mut sum.delay_cells, &self.delay_cells);
    }
}

fn add_cells(sums: &mut [u64], counters: &[AtomicU64]) {
    for (sum, counter) in sums.iter_mut().zip(counters) {
        *sum += counter.load(Relaxed);
    }
}

fn add(counter: &AtomicU64, value: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(value), Relaxed);
}

/// Counters that are made when the first operation is counted: most kinds of operations never
/// occur.
#[derive(Debug, Default)]
pub(super) struct LazyCounters(OnceLock<Box<OpCounters>>);

impl LazyCounters {
    #[inline]
    pub(super) fn make(&self) -> &OpCounters {
        self.0.get_or_init(Box::default)
    }

    pub(super) fn get(&self) -> Option<&OpCounters> {
        self.0.get().map(|counters| &**counters)
    }
}

/// What one thread does for one job.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Lane {
    /// By kind: operations under way.
    pub(super) in_flight: [AtomicU64; OpKind::ALL.len()],
    pub(super) kinds: [LazyCounters; OpKind::ALL.len()],
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            in_flight: [const { AtomicU64::new(0) }; OpKind::ALL.len()],
            kinds: Default::default(),
        }
    }
}

/// Counters of one thread.
#[derive(Debug)]
pub(crate) struct ThreadCounters {
    /// By job, where jobs are told apart; the last one is that of all others.
    pub(super) lanes: Vec<Lane>,
    /// By address, where there are several.
    pub(super) hosts: Vec<LazyCounters>,
    pub(crate) failures: LastFailures,
}

impl ThreadCounters {
    pub(super) fn new(jobs: usize, hosts: usize) -> Self {
        Self {
            lanes: (0..=jobs).map(|_| Lane::default()).collect(),
            hosts: (0..hosts).map(|_| LazyCounters::default()).collect(),
            failures: LastFailures::default(),
        }
    }

    #[inline]
    fn lane(&self, job: JobId) -> &Lane {
        &self.lanes[usize::from(job.0).min(self.lanes.len() - 1)]
    }

    /// Takes note that an operation of a job begins.
    #[inline]
    pub(crate) fn begin(&self, job: JobId, kind: OpKind) {
        add(&self.lane(job).in_flight[kind as usize], 1);
    }

    /// Counts an operation of a job that has ended.
    #[inline]
    pub(crate) fn end(&self, job: JobId, series: SeriesKey, op: &Sample) {
        let lane = self.lane(job);
        // Nobody takes note when a request begins that only opens or completes an upload.
        let in_flight = &lane.in_flight[series.kind as usize];
        in_flight.store(in_flight.load(Relaxed).saturating_sub(1), Relaxed);
        lane.kinds[series.kind as usize].make().count(op);
        if let Some(host) = self.hosts.get(usize::from(series.endpoint.0)) {
            host.make().count(op);
        }
    }

    /// Counts an operation of whom nobody took note when it began.
    pub(crate) fn count(&self, kind: OpKind, op: &Sample) {
        self.lanes[0].kinds[kind as usize].make().count(op);
    }
}

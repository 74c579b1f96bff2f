//! What is counted of the rows of a stage while the record is read, and the figures it makes.

use std::collections::BTreeSet;
use std::time::Duration;

use plimsoll_model::{EndpointId, Moment, OpKind, OpRecord};
use plimsoll_stats::Histogram;

use super::{
    Done, KindFigures, PhaseQuestion, RampCounts, RowFigures, Times, WindowCount, rounded, stage_ns,
};
use crate::{Failures, InFlight, ns};

/// Into how many parts a stage is cut to know how far a row was when its first worker was done.
const TICKS: usize = 1_024;

/// Where the windows and ticks of a stage lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    started: u64,
    pub(super) window_ns: u64,
    windows: usize,
    tick_ns: u64,
}

impl Clock {
    pub(super) fn new(question: &PhaseQuestion<'_>) -> Self {
        let length = stage_ns(question);
        let shortest = length.div_ceil(PhaseQuestion::WINDOWS_MAX);
        let window_ns = ns(question.window).max(shortest).max(1);
        Self {
            started: question.started.as_ns(),
            window_ns,
            windows: length.div_ceil(window_ns).max(1) as usize,
            tick_ns: length.div_ceil(TICKS as u64).max(1),
        }
    }

    /// Returns the window in which an operation ended; a window holds its end and not its start.
    fn window(&self, end: u64) -> usize {
        let before = (end - self.started.min(end)).saturating_sub(1) / self.window_ns;
        (before as usize).min(self.windows - 1)
    }

    fn tick(&self, end: u64) -> usize {
        let before = (end - self.started.min(end)).saturating_sub(1) / self.tick_ns;
        (before as usize).min(TICKS - 1)
    }
}

/// What the workers of a row did by themselves.
#[derive(Clone, Debug, Default)]
pub(super) struct Workers {
    active: u32,
    first_done: Option<u64>,
    took_max: u64,
    took_sum: Duration,
    clients: BTreeSet<u16>,
}

impl Workers {
    /// Counts a worker that ended an operation.
    pub(super) fn add(&mut self, measured_from: u64, end: u64, client: u16) {
        self.active += 1;
        self.first_done = Some(self.first_done.map_or(end, |first| first.min(end)));
        self.took_max = self.took_max.max(end - measured_from);
        self.took_sum += Duration::from_nanos(end - measured_from);
        self.clients.insert(client);
    }
}

/// Everything counted of one row.
#[derive(Debug)]
pub(super) struct RowLane {
    pub(super) workers_count: u32,
    /// The earliest `measured_from` of its workers.
    pub(super) began_ns: u64,
    last_end: Option<u64>,
    ramp: RampCounts,
    endpoints: BTreeSet<EndpointId>,
    /// The latest of them.
    endpoint_last: Option<EndpointId>,
    kinds: [Option<Box<KindLane>>; OpKind::ALL.len()],
    pub(super) in_flight: InFlight,
}

impl RowLane {
    pub(super) fn new(started: Moment) -> Self {
        Self {
            workers_count: 0,
            began_ns: u64::MAX,
            last_end: None,
            ramp: RampCounts::default(),
            endpoints: BTreeSet::new(),
            endpoint_last: None,
            kinds: Default::default(),
            in_flight: InFlight::new(started),
        }
    }

    pub(super) fn add_ramp(&mut self, op: &OpRecord) {
        if op.outcome.is_ok() {
            self.ramp.ops_ok += 1;
        } else {
            self.ramp.failed.add(op.outcome);
        }
    }

    pub(super) fn add(&mut self, clock: &Clock, op: &OpRecord, end: u64) {
        self.last_end = self.last_end.max(Some(end));
        if self.endpoint_last != Some(op.endpoint) {
            self.endpoint_last = Some(op.endpoint);
            self.endpoints.insert(op.endpoint);
        }
        let lane = self.kinds[op.kind as usize].get_or_insert_default();
        if op.outcome.is_ok() {
            lane.add(clock, op, end);
        } else {
            lane.failed.add(op.outcome);
        }
    }

    pub(super) fn figures(self, clock: &Clock, started: u64, workers: Workers) -> RowFigures {
        let ended = self.last_end;
        let frame = ended.zip(workers.first_done).map(|(ended, first_done)| Frame {
            clock,
            started,
            began: self.began_ns,
            first_done,
            ended,
        });
        let kinds = OpKind::ALL.into_iter().zip(self.kinds);
        let kinds = kinds.filter_map(|(kind, lane)| Some(lane?.figures(kind, &frame?)));
        RowFigures {
            workers_count: self.workers_count,
            workers_active: workers.active,
            began: frame.map(|frame| frame.after(frame.began)),
            took: frame.map(|frame| frame.took(frame.ended)),
            worker_took_max: frame.map(|_| Duration::from_nanos(workers.took_max)),
            worker_took_sum: workers.took_sum,
            ramp: self.ramp,
            endpoints: self.endpoints.into_iter().collect(),
            clients: workers.clients.into_iter().collect(),
            kinds: kinds.collect(),
            in_flight: self.in_flight,
        }
    }
}

/// The moments of a row in which something counted, in nanoseconds of the run.
#[derive(Clone, Copy, Debug)]
struct Frame<'a> {
    clock: &'a Clock,
    /// The stage's start.
    started: u64,
    began: u64,
    first_done: u64,
    ended: u64,
}

impl Frame<'_> {
    fn after(&self, at: u64) -> Duration {
        Duration::from_nanos(at.saturating_sub(self.started))
    }

    fn took(&self, until: u64) -> Duration {
        Duration::from_nanos(until.saturating_sub(self.began))
    }

    fn per_sec(&self, amount: u64, until: u64) -> Option<f64> {
        let seconds = self.took(until).as_secs_f64();
        (seconds > 0.0).then(|| amount as f64 / seconds)
    }
}

/// What ended in one window.
#[derive(Clone, Copy, Debug, Default)]
struct WindowLane {
    ops: u64,
    bytes: u64,
    latency_sum_ns: u64,
}

/// What ended in one tick: how much, and when the first and the last of it.
#[derive(Clone, Copy, Debug)]
struct Tick {
    ops: u64,
    bytes: u64,
    first_end: u64,
    last_end: u64,
}

impl Tick {
    const EMPTY: Self = Self { ops: 0, bytes: 0, first_end: u64::MAX, last_end: 0 };

    /// Returns what of it had ended at a moment, as if the ends lay evenly; exactly so where none
    /// or all had.
    fn until(&self, at: u64) -> (u64, u64) {
        if self.ops == 0 || self.last_end <= at {
            return (self.ops, self.bytes);
        }
        if at < self.first_end {
            return (0, 0);
        }
        let (passed, whole) = (at - self.first_end, self.last_end - self.first_end);
        let part = |of: u64| (u128::from(of) * u128::from(passed) / u128::from(whole)) as u64;
        (part(self.ops).max(1), part(self.bytes))
    }
}

/// The successes of one kind in one row, and how many failed.
#[derive(Debug, Default)]
struct KindLane {
    ops_ok: u64,
    failed: Failures,
    bytes: u64,
    latency: Histogram,
    /// Kept only once a service time differed from its latency; until then they are the same.
    service_time: Option<Histogram>,
    windows: Vec<WindowLane>,
    ticks: Vec<Tick>,
}

impl KindLane {
    fn add(&mut self, clock: &Clock, op: &OpRecord, end: u64) {
        let latency = ns(op.latency());
        self.ops_ok += 1;
        self.bytes += op.bytes;
        if op.start != op.intended && self.service_time.is_none() {
            self.service_time = Some(self.latency.clone());
        }
        if let Some(service_time) = &mut self.service_time {
            service_time.record(ns(op.service_time()));
        }
        self.latency.record(latency);
        let window = clock.window(end);
        if window >= self.windows.len() {
            self.windows.resize(window + 1, WindowLane::default());
        }
        let window = &mut self.windows[window];
        window.ops += 1;
        window.bytes += op.bytes;
        window.latency_sum_ns = window.latency_sum_ns.saturating_add(latency);
        let tick = clock.tick(end);
        if tick >= self.ticks.len() {
            self.ticks.resize(tick + 1, Tick::EMPTY);
        }
        let tick = &mut self.ticks[tick];
        tick.ops += 1;
        tick.bytes += op.bytes;
        tick.first_end = tick.first_end.min(end);
        tick.last_end = tick.last_end.max(end);
    }

    fn figures(self, kind: OpKind, frame: &Frame<'_>) -> KindFigures {
        let done = |ops: u64, bytes: u64, at: u64| Done {
            after: frame.after(at),
            ops,
            bytes,
            ops_per_sec: frame.per_sec(ops, at),
            bytes_per_sec: frame.per_sec(bytes, at).filter(|_| kind.moves_bytes()),
        };
        let (ops, bytes) = self.done_by(frame.clock, frame.first_done);
        let last_done = done(self.ops_ok, self.bytes, frame.ended);
        KindFigures {
            kind,
            ops_ok: self.ops_ok,
            failed: self.failed,
            bytes: self.bytes,
            took: frame.took(frame.ended),
            ops_per_sec: last_done.ops_per_sec,
            bytes_per_sec: last_done.bytes_per_sec,
            first_done: Some(done(ops, bytes, frame.first_done)),
            last_done: Some(last_done),
            windows: self.windows(frame),
            service_time: Times(self.service_time.unwrap_or_else(|| self.latency.clone())),
            latency: Times(self.latency),
        }
    }

    /// Returns operations that had ended at a moment, and the bytes they moved.
    fn done_by(&self, clock: &Clock, at: u64) -> (u64, u64) {
        let ticks = self.ticks.iter().take(clock.tick(at) + 1);
        let done = ticks.map(|tick| tick.until(at));
        done.fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
    }

    fn windows(&self, frame: &Frame<'_>) -> Vec<WindowCount> {
        let clock = frame.clock;
        // The measuring may begin on a border: then with the window that begins there.
        let first = clock.window(frame.began + 1).min(clock.window(frame.ended));
        let count = |index: usize| {
            let start = index as u64 * clock.window_ns;
            let from = (frame.started + start).max(frame.began);
            let until = (frame.started + start + clock.window_ns).min(frame.ended);
            let lane = self.windows.get(index).copied().unwrap_or_default();
            let mean = (lane.ops > 0).then(|| lane.latency_sum_ns as f64 / lane.ops as f64);
            WindowCount {
                start: Duration::from_nanos(start),
                length: Duration::from_nanos(until.saturating_sub(from)),
                ops: lane.ops,
                bytes: lane.bytes,
                latency_mean: mean.map(rounded),
            }
        };
        (first..=clock.window(frame.ended)).map(count).collect()
    }
}

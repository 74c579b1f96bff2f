//! Figures of a run on files: of each stage, each row of it and each kind of operation, from one
//! pass over the record.
//!
//! What is kept while reading does not grow with the number of operations. The definitions stand in
//! `docs/measuring.md`.

mod compared;
mod lane;

#[cfg(test)]
mod tests;

use std::time::Duration;

use plimsoll_model::{EndpointId, Moment, OpKind, OpRecord, StageId};
use plimsoll_stats::Histogram;

use crate::{Failures, InFlight, OpSource, detail, ns};
pub use compared::compared;
use lane::{Clock, RowLane};

/// What is asked about one stage.
#[derive(Clone, Copy, Debug)]
pub struct PhaseQuestion<'a> {
    /// The stage.
    pub stage: StageId,
    /// When it began.
    pub started: Moment,
    /// When its last operation had ended.
    pub ended: Moment,
    /// Its workers by their number; records of others are passed over. Where several clients served
    /// a stage, each has numbers for as many workers as its largest stage has, so that there are
    /// numbers of nobody.
    pub workers: &'a [Option<WorkerRow>],
    /// How many rows there are; each has an answer, also if nothing was done.
    pub rows_count: usize,
    /// The length of a window.
    pub window: Duration,
    /// Which client each worker belongs to, by the worker's number; empty when there is but one.
    pub client_of: &'a [u16],
}

impl PhaseQuestion<'_> {
    /// The usual length of a window.
    pub const WINDOW: Duration = Duration::from_millis(500);
    /// How many windows a stage has at most; a length that gives more is lengthened.
    pub const WINDOWS_MAX: u64 = 100_000;
}

/// Where a worker's operations belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerRow {
    /// The row.
    pub row: u32,
    /// The first moment at which an operation may start that counts: the end of the worker's ramp;
    /// without one, the moment at which the worker began.
    pub measured_from: Moment,
}

/// The figures of one stage.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseAnalysis {
    /// The stage.
    pub stage: StageId,
    /// The length of a window.
    pub window: Duration,
    /// The rows, by their number.
    pub rows: Vec<RowFigures>,
}

/// The figures of the workers of one row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowFigures {
    /// How many workers the row has.
    pub workers_count: u32,
    /// How many of them ended an operation that counts.
    pub workers_active: u32,
    /// From the stage's start to the earliest `measured_from` of the row's workers; `None` without
    /// an operation that counts.
    pub began: Option<Duration>,
    /// From there to the end of the row's last operation that counts, failed ones included.
    pub took: Option<Duration>,
    /// The longest that one worker took: from its own `measured_from` to the end of its last
    /// operation.
    pub worker_took_max: Option<Duration>,
    /// What the workers took, each by itself, all added up.
    pub worker_took_sum: Duration,
    /// What was done before the measuring began and is in no other figure.
    pub ramp: RampCounts,
    /// Where its operations went.
    pub endpoints: Vec<EndpointId>,
    /// The clients whose workers ended operations that count, in order; client 0 where there is
    /// only one.
    pub clients: Vec<u16>,
    /// Each kind that occurred, in the order of [`OpKind::ALL`].
    pub kinds: Vec<KindFigures>,
    /// Operations in flight over time, those in ramps included.
    pub in_flight: InFlight,
}

impl RowFigures {
    /// Returns how many clients served the row.
    pub fn clients_count(&self) -> u32 {
        self.clients.len() as u32
    }

    /// Returns the figures of one kind.
    pub fn kind(&self, kind: OpKind) -> Option<&KindFigures> {
        self.kinds.iter().find(|figures| figures.kind == kind)
    }
}

/// Operations that started before the measuring of their worker began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RampCounts {
    /// How many did what was asked.
    pub ops_ok: u64,
    /// How many failed.
    pub failed: Failures,
}

/// The figures of one kind of operation in one row. But for `failed`, all are of successes.
#[derive(Clone, Debug, PartialEq)]
pub struct KindFigures {
    /// The kind.
    pub kind: OpKind,
    /// How many did what was asked.
    pub ops_ok: u64,
    /// How many failed.
    pub failed: Failures,
    /// Bytes moved.
    pub bytes: u64,
    /// The time that rates are taken over: that of the whole row.
    pub took: Duration,
    /// Operations / `took`; `None` where that is no time at all.
    pub ops_per_sec: Option<f64>,
    /// Bytes / `took`; `None` also for kinds that move none.
    pub bytes_per_sec: Option<f64>,
    /// Intended start to end.
    pub latency: Times,
    /// Start to end.
    pub service_time: Times,
    /// How far it was when the first of the row's workers had ended its last operation.
    pub first_done: Option<Done>,
    /// How far it was when the last of them had: all of it.
    pub last_done: Option<Done>,
    /// What was done over time, from the window in which the measuring began to that in which the
    /// row's last operation ended.
    pub windows: Vec<WindowCount>,
}

impl KindFigures {
    /// Returns how an amount of the windows scatters, per second, over the whole ones; `None`
    /// without such a window.
    pub fn spread(&self, window: Duration, of: impl Fn(&WindowCount) -> u64) -> Option<RateSpread> {
        let seconds = window.as_secs_f64();
        let whole = self.windows.iter().filter(|each| each.length == window);
        let rates: Vec<f64> = whole.map(|each| of(each) as f64 / seconds).collect();
        Some(RateSpread {
            samples: rates.len() as u64,
            min: rates.iter().copied().reduce(f64::min)?,
            max: rates.iter().copied().reduce(f64::max)?,
            mean: plimsoll_stats::mean(&rates)?,
            std_dev: plimsoll_stats::std_dev(&rates),
        })
    }
}

/// The distribution of a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times(Histogram);

impl Times {
    /// Returns all of it, in nanoseconds.
    pub fn histogram(&self) -> &Histogram {
        &self.0
    }

    /// Returns how many operations it is taken from.
    pub fn samples(&self) -> u64 {
        self.0.count()
    }

    /// Returns the smallest, exactly.
    pub fn min(&self) -> Option<Duration> {
        self.0.min().map(Duration::from_nanos)
    }

    /// Returns the largest, exactly.
    pub fn max(&self) -> Option<Duration> {
        self.0.max().map(Duration::from_nanos)
    }

    /// Returns the mean, to the nanosecond.
    pub fn mean(&self) -> Option<Duration> {
        self.0.mean().map(rounded)
    }

    /// Returns the sample standard deviation (n − 1), from 2 samples on.
    pub fn std_dev(&self) -> Option<Duration> {
        self.0.std_dev().map(rounded)
    }

    /// Returns the time that so many percent do not exceed; `None` for want of samples, as at least
    /// one has to lie above it, or below it before the median.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        detail::percentile(&self.0, percent)
    }
}

/// How far the row was at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done {
    /// From the stage's start to that moment.
    pub after: Duration,
    /// Operations that had ended by then.
    pub ops: u64,
    /// Bytes that they had moved.
    pub bytes: u64,
    /// Operations by then, over the time from the beginning of the row's measuring to then.
    pub ops_per_sec: Option<f64>,
    /// Bytes over the same; `None` also for kinds that move none.
    pub bytes_per_sec: Option<f64>,
}

/// What ended in one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowCount {
    /// From the stage's start to where it begins.
    pub start: Duration,
    /// How much of it lies between the beginning of the row's measuring and its last end: for all
    /// but the first and the last the whole window.
    pub length: Duration,
    /// Operations.
    pub ops: u64,
    /// Bytes moved by them.
    pub bytes: u64,
    /// Their mean latency.
    pub latency_mean: Option<Duration>,
}

/// How rates of windows scatter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSpread {
    /// How many windows there are.
    pub samples: u64,
    /// The lowest.
    pub min: f64,
    /// The highest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The sample standard deviation (n − 1), from 2 windows on.
    pub std_dev: Option<f64>,
}

/// Returns the answer to each question; reads the source once.
pub fn phases<S: OpSource + ?Sized>(
    source: &S,
    questions: &[PhaseQuestion<'_>],
) -> Result<Vec<PhaseAnalysis>, S::Error> {
    let mut asked: Vec<Asked<'_>> = questions.iter().map(Asked::new).collect();
    let mut by_stage = [None; 256];
    for (index, question) in questions.iter().enumerate() {
        let place = &mut by_stage[usize::from(question.stage.0)];
        debug_assert!(place.is_none(), "a stage is asked about once");
        *place = Some(index);
    }
    source.scan(&mut |op| {
        if let Some(index) = by_stage[usize::from(op.stage.0)] {
            asked[index].add(op);
        }
    })?;
    Ok(asked.into_iter().map(Asked::answer).collect())
}

/// A question on its way to the answer.
struct Asked<'a> {
    question: &'a PhaseQuestion<'a>,
    clock: Clock,
    rows: Vec<RowLane>,
    /// When each worker ended its last operation, in nanoseconds of the run; `None` before it ended
    /// one.
    ends: Vec<Option<u64>>,
}

impl<'a> Asked<'a> {
    fn new(question: &'a PhaseQuestion<'a>) -> Self {
        let mut rows: Vec<RowLane> = Vec::new();
        rows.resize_with(question.rows_count, || RowLane::new(question.started));
        for worker in question.workers.iter().flatten() {
            let row = &mut rows[worker.row as usize];
            row.workers_count += 1;
            row.began_ns = row.began_ns.min(worker.measured_from.as_ns());
        }
        let ends = vec![None; question.workers.len()];
        Self { question, clock: Clock::new(question), rows, ends }
    }

    fn add(&mut self, op: &OpRecord) {
        let number = op.worker.0 as usize;
        let Some(Some(worker)) = self.question.workers.get(number) else { return };
        let row = &mut self.rows[worker.row as usize];
        // An `fsync` comes with the writes and not by the schedule.
        if op.kind != OpKind::Sync {
            row.in_flight.add(op);
        }
        if op.start < worker.measured_from {
            row.add_ramp(op);
            return;
        }
        let end = op.end.max(op.start).as_ns();
        self.ends[number] = self.ends[number].max(Some(end));
        row.add(&self.clock, op, end);
    }

    fn answer(self) -> PhaseAnalysis {
        let started = self.question.started.as_ns();
        let mut of_workers = vec![lane::Workers::default(); self.rows.len()];
        for (number, (worker, end)) in self.question.workers.iter().zip(&self.ends).enumerate() {
            let (Some(worker), Some(end)) = (worker, *end) else { continue };
            let client = self.question.client_of.get(number).copied().unwrap_or(0);
            let row = &mut of_workers[worker.row as usize];
            row.add(worker.measured_from.as_ns(), end, client);
        }
        let rows = self.rows.into_iter().zip(of_workers);
        let rows = rows.map(|(row, workers)| row.figures(&self.clock, started, workers));
        PhaseAnalysis {
            stage: self.question.stage,
            window: Duration::from_nanos(self.clock.window_ns),
            rows: rows.collect(),
        }
    }
}

/// Returns a number of nanoseconds as a duration.
fn rounded(ns: f64) -> Duration {
    Duration::from_nanos(ns.round() as u64)
}

/// Returns the time from the stage's start, in nanoseconds.
fn stage_ns(question: &PhaseQuestion<'_>) -> u64 {
    ns(question.ended.since(question.started))
}

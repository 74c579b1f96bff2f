//! What is going on at this moment, for a display: counters that one thread writes and any thread
//! reads.

mod counters;
mod failures;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use plimsoll_model::{ErrorClass, Moment, OpKind};
use plimsoll_stats::Percentile;

pub(crate) use self::counters::ThreadCounters;
pub use self::counters::{
    COARSE_CELLS, LATENCY_CELLS, coarse_cell, coarse_cell_end_ns, latency_cell_end_ns,
};
use self::counters::{Lane, OpCounters};
use crate::outcome::ErrorSample;
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

/// The counters of all threads.
#[derive(Debug)]
pub struct Live {
    threads: Vec<ThreadCounters>,
    /// What stop rules have seen here, for who judges them.
    seen: Mutex<Option<Arc<PartSeen>>>,
    /// Who else carries the stage out, where others do.
    parts: Mutex<Vec<LivePart>>,
    /// When the stage began.
    begun: OnceLock<Moment>,
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
    /// It has not responded for a while.
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
            ok: self.ok.saturating_add(other.ok),
            failed: self.failed.saturating_add(other.failed),
            bytes: self.bytes.saturating_add(other.bytes),
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
    /// Sum of the schedule delays of successes: from the intended start to the real one. 0 in a
    /// closed loop.
    pub delay_ns: u64,
    /// Successes by latency; [`latency_cell_end_ns`] tells up to which.
    pub latency_cells: Box<[u64; LATENCY_CELLS]>,
    /// Successes that had a first byte, by the time to it; [`coarse_cell_end_ns`] tells up to
    /// which.
    pub ttfb_cells: [u64; COARSE_CELLS],
    /// Successes by schedule delay; [`coarse_cell_end_ns`] tells up to which.
    pub delay_cells: [u64; COARSE_CELLS],
}

impl Default for LiveDetail {
    fn default() -> Self {
        Self {
            ended: [0; ErrorClass::ALL.len()],
            bytes: 0,
            objects: 0,
            latency_ns: 0,
            ttfb_ns: 0,
            delay_ns: 0,
            latency_cells: Box::new([0; LATENCY_CELLS]),
            ttfb_cells: [0; COARSE_CELLS],
            delay_cells: [0; COARSE_CELLS],
        }
    }
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

    /// Returns how many succeeded.
    pub fn ok_count(&self) -> u64 {
        self.ended[ErrorClass::Ok as usize]
    }

    /// Returns what both have counted.
    #[must_use]
    pub fn plus(mut self, other: Self) -> Self {
        self.ended.iter_mut().zip(other.ended).for_each(|(sum, more)| *sum += more);
        let add = |sum: &mut [u64], more: &[u64]| {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        };
        add(&mut *self.latency_cells, &*other.latency_cells);
        add(&mut self.ttfb_cells, &other.ttfb_cells);
        add(&mut self.delay_cells, &other.delay_cells);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.objects = self.objects.wrapping_add(other.objects);
        self.latency_ns = self.latency_ns.wrapping_add(other.latency_ns);
        self.ttfb_ns = self.ttfb_ns.wrapping_add(other.ttfb_ns);
        self.delay_ns = self.delay_ns.wrapping_add(other.delay_ns);
        self
    }

    /// Returns what has come since an earlier reading.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut since = self.clone();
        // Of what is counted elsewhere less may be told of again.
        let less = |now: &mut u64, before: &u64| *now = now.saturating_sub(*before);
        since.ended.iter_mut().zip(&before.ended).for_each(|(now, before)| less(now, before));
        let each = |now: &mut [u64], before: &[u64]| {
            now.iter_mut().zip(before).for_each(|(now, before)| less(now, before));
        };
        each(&mut *since.latency_cells, &*before.latency_cells);
        each(&mut since.ttfb_cells, &before.ttfb_cells);
        each(&mut since.delay_cells, &before.delay_cells);
        less(&mut since.bytes, &before.bytes);
        less(&mut since.objects, &before.objects);
        since.latency_ns = self.latency_ns.wrapping_sub(before.latency_ns);
        since.ttfb_ns = self.ttfb_ns.wrapping_sub(before.ttfb_ns);
        since.delay_ns = self.delay_ns.wrapping_sub(before.delay_ns);
        since
    }

    /// Returns the latency that so many of the successes did not exceed, by nearest rank, as the
    /// end of its cell: at most an eighth too long. `None` without a success, and where it is
    /// longer than cells have an end.
    pub fn latency(&self, percentile: Percentile) -> Option<Duration> {
        let rank = percentile.rank(self.latency_cells.iter().sum());
        let mut sum = 0;
        let cell = self.latency_cells.iter().position(|of_cell| {
            sum += of_cell;
            sum >= rank
        })?;
        latency_cell_end_ns(cell).map(Duration::from_nanos)
    }
}

/// More jobs of a stage are not told apart while it goes on.
pub const LIVE_JOBS_MAX: usize = 16;
/// More addresses are not told apart while a stage goes on.
pub const LIVE_HOSTS_MAX: usize = 32;

impl Live {
    /// Returns counters for `threads` threads, all zero.
    pub fn new(threads: usize) -> Self {
        Self::telling(threads, 1, 1)
    }

    /// Returns counters that tell so many jobs and addresses apart, where there are several of them
    /// and not too many.
    pub fn telling(threads: usize, jobs: usize, hosts: usize) -> Self {
        let several = |count: usize, max: usize| if (2..=max).contains(&count) { count } else { 0 };
        let (jobs, hosts) = (several(jobs, LIVE_JOBS_MAX), several(hosts, LIVE_HOSTS_MAX));
        let threads = (0..threads).map(|_| ThreadCounters::new(jobs, hosts)).collect();
        let (seen, parts, begun) = (Mutex::default(), Mutex::default(), OnceLock::new());
        Self { threads, seen, parts, begun }
    }

    /// Says when the stage begins, or began: the moment that its record has as its start.
    pub fn begin(&self, at: Moment) {
        // Only the first word counts.
        let _ = self.begun.set(at);
    }

    /// Returns when the stage begins, or began; `None` while its threads make themselves ready.
    pub fn begun(&self) -> Option<Moment> {
        self.begun.get().copied()
    }

    pub(crate) fn thread(&self, index: usize) -> &ThreadCounters {
        &self.threads[index]
    }

    /// Returns how many jobs are told apart; 0 where none are.
    pub fn jobs_count(&self) -> usize {
        self.threads.first().map_or(0, |thread| thread.lanes.len() - 1)
    }

    /// Returns how many addresses are told apart; 0 where none are.
    pub fn hosts_count(&self) -> usize {
        self.threads.first().map_or(0, |thread| thread.hosts.len())
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

    /// Has a slot show what somebody else has counted so far of `kind`, in place of what it showed;
    /// of a job where it tells jobs apart.
    pub fn show(&self, slot: usize, job: Option<usize>, kind: OpKind, counted: &LiveDetail) {
        if let Some(lane) = self.lane_of(slot, job) {
            lane.kinds[kind as usize].make().set(counted);
        }
    }

    /// Has a slot show how many operations of `kind` somebody else has under way.
    pub fn show_in_flight(&self, slot: usize, job: Option<usize>, kind: OpKind, count: u64) {
        if let Some(lane) = self.lane_of(slot, job) {
            lane.in_flight[kind as usize].store(count, Relaxed);
        }
    }

    /// Has a slot show what somebody else has counted so far of an address.
    pub fn show_host(&self, slot: usize, host: usize, counted: &LiveDetail) {
        let host = self.threads.get(slot).and_then(|thread| thread.hosts.get(host));
        host.into_iter().for_each(|host| host.make().set(counted));
    }

    /// Has a slot show the last failures that somebody else has seen, one of each class.
    pub fn show_failures(&self, slot: usize, failures: Vec<ErrorSample>) {
        if let Some(thread) = self.threads.get(slot) {
            thread.failures.set(failures);
        }
    }

    /// Returns the last failure of each class with the slot it comes from, in the order of classes.
    /// Of failures within 250 ms of each other it may be any, and those of agents are compared by
    /// their own clocks.
    pub fn last_failures(&self) -> Vec<(usize, ErrorSample)> {
        let slots = self.threads.iter().enumerate();
        let of_slot = |(slot, thread): (usize, &ThreadCounters)| {
            thread.failures.read().into_iter().map(move |failure| (slot, failure))
        };
        let mut all: Vec<(usize, ErrorSample)> = slots.flat_map(of_slot).collect();
        all.sort_by_key(|(_, failure)| (failure.class, std::cmp::Reverse(failure.at)));
        all.dedup_by_key(|(_, failure)| failure.class);
        all
    }

    fn lane_of(&self, slot: usize, job: Option<usize>) -> Option<&Lane> {
        let lanes = &self.threads.get(slot)?.lanes;
        let last = lanes.len() - 1;
        lanes.get(job.map_or(last, |job| job.min(last)))
    }

    /// Returns what was counted so far of `kind`.
    pub fn counts(&self, kind: OpKind) -> LiveCounts {
        let lanes = self.threads.iter().flat_map(|thread| &thread.lanes);
        let counters = lanes.filter_map(|lane| lane.kinds[kind as usize].get());
        counters.map(OpCounters::counts).fold(LiveCounts::default(), LiveCounts::plus)
    }

    /// Returns what was counted so far in a slot, of all kinds.
    pub fn counts_of(&self, slot: usize) -> LiveCounts {
        let counters = self.counters_of(slot).map(OpCounters::counts);
        counters.fold(LiveCounts::default(), LiveCounts::plus)
    }

    fn counters_of(&self, slot: usize) -> impl Iterator<Item = &OpCounters> {
        let lanes = self.threads.get(slot).into_iter().flat_map(|thread| &thread.lanes);
        lanes.flat_map(|lane| &lane.kinds).filter_map(counters::LazyCounters::get)
    }

    /// Returns all that was counted so far of `kind`; `None` if no such operation has ended.
    pub fn detail(&self, kind: OpKind) -> Option<LiveDetail> {
        let lanes = self.threads.iter().flat_map(|thread| &thread.lanes);
        sum(lanes.filter_map(|lane| lane.kinds[kind as usize].get()))
    }

    /// Returns the same of one job; of `None`, what was counted for none that is told apart.
    pub fn job_detail(&self, job: Option<usize>, kind: OpKind) -> Option<LiveDetail> {
        let lanes = (0..self.threads.len()).filter_map(|slot| self.lane_of(slot, job));
        sum(lanes.filter_map(|lane| lane.kinds[kind as usize].get()))
    }

    /// Returns the same of one address, of all kinds, where addresses are told apart.
    pub fn host_detail(&self, host: usize) -> Option<LiveDetail> {
        let hosts = self.threads.iter().filter_map(|thread| thread.hosts.get(host)?.get());
        sum(hosts)
    }

    /// Returns the same of one slot, of all kinds.
    pub fn slot_detail(&self, slot: usize) -> Option<LiveDetail> {
        sum(self.counters_of(slot))
    }

    /// Returns how many operations of `kind` are under way.
    pub fn in_flight(&self, kind: OpKind) -> u64 {
        let lanes = self.threads.iter().flat_map(|thread| &thread.lanes);
        lanes.map(|lane| lane.in_flight[kind as usize].load(Relaxed)).sum()
    }

    /// Returns the same of one job; of `None`, of none that is told apart.
    pub fn job_in_flight(&self, job: Option<usize>, kind: OpKind) -> u64 {
        let lanes = (0..self.threads.len()).filter_map(|slot| self.lane_of(slot, job));
        lanes.map(|lane| lane.in_flight[kind as usize].load(Relaxed)).sum()
    }

    /// Returns the same of one slot, of all kinds.
    pub fn slot_in_flight(&self, slot: usize) -> u64 {
        let lanes = self.threads.get(slot).into_iter().flat_map(|thread| &thread.lanes);
        lanes.flat_map(|lane| &lane.in_flight).map(|count| count.load(Relaxed)).sum()
    }
}

fn sum<'a>(counters: impl Iterator<Item = &'a OpCounters>) -> Option<LiveDetail> {
    let mut sum = LiveDetail::default();
    counters.for_each(|counters| counters.add_to(&mut sum));
    (sum.ended_count() > 0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{EndpointId, JobId, SeriesKey, StageId};
    use plimsoll_stats::Sample;

    use super::counters::latency_cell;
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
    fn a_coarse_cell_holds_the_cells_between_two_powers_of_two() {
        for cell in 0..LATENCY_CELLS {
            let coarse = coarse_cell(cell);
            let end = latency_cell_end_ns(cell).unwrap_or(u64::MAX);
            assert!(coarse_cell_end_ns(coarse).is_none_or(|of| end <= of), "{cell}");
            let below = coarse.checked_sub(1).and_then(coarse_cell_end_ns);
            assert!(below.is_none_or(|of| of < end), "{cell}");
        }
        let ends: Vec<u64> = (0..).map_while(coarse_cell_end_ns).collect();
        assert_eq!((ends.len(), ends[0], ends[1]), (COARSE_CELLS - 1, 1_024, 2_048));
        assert_eq!(ends.last(), Some(&(1 << 37)));
    }

    #[test]
    fn schedule_delay_is_the_latency_before_the_real_start() {
        let live = Live::new(1);
        // Due at 0, begun after 3 us, ended after 5 us; the first byte came 1 us after the start.
        let late =
            Sample { start_ns: 3_000, ttfb_ns: Some(1_000), ..sample(5_000, ErrorClass::Ok) };
        live.thread(0).count(OpKind::Get, &late);
        live.thread(0).count(OpKind::Get, &Sample { ttfb_ns: None, ..sample(9, ErrorClass::Ok) });
        let detail = live.detail(OpKind::Get).unwrap();
        assert_eq!((detail.delay_ns, detail.ttfb_ns), (3_000, 1_000));
        assert_eq!(detail.delay_cells[..3], [1, 0, 1], "0 ns, and 3 us between 2,048 and 4,096 ns");
        assert_eq!(detail.ttfb_cells[..2], [1, 0], "one had no first byte");
        assert_eq!(detail.ttfb_cells.iter().sum::<u64>(), 1);
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
        elsewhere.show(1, None, OpKind::Get, &detail);
        elsewhere.show(1, None, OpKind::Get, &detail);
        assert_eq!(elsewhere.detail(OpKind::Get), Some(detail));
    }

    #[test]
    fn jobs_and_addresses_are_told_apart_where_there_are_several_and_not_too_many() {
        let live = Live::telling(2, 2, 3);
        assert_eq!((live.jobs_count(), live.hosts_count()), (2, 3));
        let end = |thread: usize, job, kind, endpoint| {
            let series = SeriesKey { stage: StageId(0), kind, endpoint: EndpointId(endpoint) };
            live.thread(thread).begin(JobId(job), kind);
            live.thread(thread).end(JobId(job), series, &sample(1_000, ErrorClass::Ok));
        };
        end(0, 0, OpKind::Get, 2);
        end(1, 1, OpKind::Get, 2);
        end(1, 1, OpKind::Put, 0);
        live.thread(1).begin(JobId(1), OpKind::Put);
        let ok = |detail: Option<LiveDetail>| detail.map_or(0, |detail| detail.ended[0]);
        assert_eq!(ok(live.detail(OpKind::Get)), 2);
        assert_eq!(ok(live.job_detail(Some(1), OpKind::Get)), 1);
        assert_eq!(ok(live.job_detail(None, OpKind::Get)), 0);
        assert_eq!([0, 1, 2].map(|host| ok(live.host_detail(host))), [1, 0, 2]);
        assert_eq!((ok(live.slot_detail(1)), live.counts_of(0).ok), (2, 1));
        let in_flight = |job, kind| live.job_in_flight(Some(job), kind);
        assert_eq!((in_flight(0, OpKind::Get), in_flight(1, OpKind::Put)), (0, 1));
        assert_eq!((live.in_flight(OpKind::Put), live.in_flight(OpKind::Get)), (1, 0));
        assert_eq!((live.slot_in_flight(0), live.slot_in_flight(1)), (0, 1));
        let unplanned =
            SeriesKey { stage: StageId(0), kind: OpKind::PutPart, endpoint: EndpointId(0) };
        live.thread(0).end(JobId(0), unplanned, &sample(1_000, ErrorClass::Ok));
        assert_eq!(live.slot_in_flight(0), 0, "it was never begun");
        for (jobs, hosts) in [(0, 0), (1, 1), (LIVE_JOBS_MAX + 1, LIVE_HOSTS_MAX + 1)] {
            let live = Live::telling(1, jobs, hosts);
            assert_eq!((live.jobs_count(), live.hosts_count()), (0, 0));
            let series =
                SeriesKey { stage: StageId(0), kind: OpKind::Get, endpoint: EndpointId(9) };
            live.thread(0).begin(JobId(40), OpKind::Get);
            live.thread(0).end(JobId(40), series, &sample(1_000, ErrorClass::Ok));
            assert_eq!(ok(live.job_detail(None, OpKind::Get)), 1);
            assert_eq!(live.in_flight(OpKind::Get), 0);
        }
    }

    #[test]
    fn the_last_failure_of_each_class_is_kept_and_the_newest_of_all_threads_shown() {
        let live = Live::new(2);
        let failure = |class, ms: u64| {
            let at = Moment::from_ns(ms * 1_000_000);
            let (job, kind, endpoint) = (JobId(0), OpKind::Get, EndpointId(0));
            let message = format!("at {ms} ms");
            ErrorSample { class, job, kind, endpoint, at, status: None, message }
        };
        let note = |thread: usize, class, ms| {
            let made = failure(class, ms);
            live.thread(thread).failures.note(class, made.at, || made.clone());
        };
        let shown = || {
            let shown = live.last_failures().into_iter();
            shown.map(|(slot, of)| (slot, of.class, of.message)).collect::<Vec<_>>()
        };
        assert_eq!(shown(), []);
        note(0, ErrorClass::Connect, 1_000);
        note(0, ErrorClass::Connect, 1_249);
        note(1, ErrorClass::Throttled, 400);
        let connect = |slot, ms| (slot, ErrorClass::Connect, format!("at {ms} ms"));
        let throttled = (1, ErrorClass::Throttled, "at 400 ms".to_owned());
        assert_eq!(shown(), [throttled.clone(), connect(0, 1_000)]);
        note(1, ErrorClass::Connect, 1_100);
        note(0, ErrorClass::Connect, 1_250);
        assert_eq!(shown(), [throttled, connect(0, 1_250)]);
        live.show_failures(1, vec![failure(ErrorClass::Connect, 2_000)]);
        assert_eq!(shown(), [connect(1, 2_000)]);
    }

    #[test]
    fn what_has_come_since_has_percentiles_that_are_ends_of_cells() {
        let live = Live::new(1);
        let count = |ns| live.thread(0).count(OpKind::Get, &sample(ns, ErrorClass::Ok));
        (0..10).for_each(|_| count(1_000_000));
        let before = live.detail(OpKind::Get).unwrap();
        (0..98).for_each(|_| count(2_000));
        (0..2).for_each(|_| count(1_000_000));
        live.thread(0).count(OpKind::Get, &sample(9, ErrorClass::Timeout));
        let since = live.detail(OpKind::Get).unwrap().since(&before);
        assert_eq!((since.ok_count(), since.failed_count(), since.bytes), (100, 1, 700));
        // Eighths between 1,024 and 2,048 ns are 128 ns wide; 1 ms lies between 983,040 (15/8 of
        // 2^19) and 1,048,576 (2^20).
        let ns = |percent: f64| {
            let percentile = Percentile::new(percent).unwrap();
            since.latency(percentile).map(|latency| latency.as_nanos())
        };
        assert_eq!([50.0, 98.0, 99.0].map(ns), [Some(2_048), Some(2_048), Some(1_048_576)]);
        assert_eq!(since.since(&since).latency(Percentile::P50), None);
    }
}

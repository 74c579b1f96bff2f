//! The threads of a stage and the one that records what they do: begun at one moment, drained until
//! the last has ended.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{self, ScopedJoinHandle, Thread};
use std::time::Duration;

use plimsoll_model::{
    DisturbedSeen, JobId, Moment, PackedOp, SharedClock, StandstillsSeen, ThreadUsage,
};
use rtrb::{Consumer, RingBuffer};

use crate::clock::{block_until, park_for, thread_cpu_time};
use crate::live::{Live, StopFlag};
use crate::outcome::{
    EngineError, JobOutcome, LooksOutcome, OpSink, OpSinkError, ScheduleOutcome, StageOutcome,
    keep_first_errors,
};
use crate::past::Past;
use crate::records::{JobTally, Outlet, ThreadOutcome};
use crate::standstill::Watcher;
use crate::thread_usage::{self, RunDelays};
use crate::timing::{Stops, Verdict};
use crate::watch::Watch;

/// Records that one thread can be ahead of the recorder: 1 MiB. Larger ones are touched for the
/// first time over minutes, which looks like a leak.
pub(crate) const BUFFER_OPS: usize = 1 << 14;
/// Records that all threads together can be ahead, as long as each has [`BUFFER_OPS_MIN`].
const BUFFERS_OPS: usize = 1 << 18;
const BUFFER_OPS_MIN: usize = 1 << 8;

/// What a thread comes to, with its processor time and what it used since the stage began.
type Ended = Result<(ThreadOutcome, Duration, ThreadUsage), EngineError>;
type Handle<'scope> = ScopedJoinHandle<'scope, Ended>;

/// What one thread does: it makes itself ready, calls [`Gate::wait`] and works.
pub(crate) type Body<'a> =
    Box<dyn FnOnce(Outlet<'a>, &Gate) -> Result<ThreadOutcome, EngineError> + Send + 'a>;

/// The threads of a stage, whose records the calling one takes.
pub(crate) struct StageThreads<'a> {
    pub(crate) clock: &'a SharedClock,
    pub(crate) stop: &'a StopFlag,
    /// When the stage is to begin; as soon as all are ready where nothing is said.
    pub(crate) begins_at: Option<Moment>,
    pub(crate) stops: Stops<'a>,
    /// Who is told what stop rules see, where somebody else judges them.
    pub(crate) tells: Option<&'a Live>,
    pub(crate) sink: &'a mut dyn OpSink,
    pub(crate) past: Past,
    pub(crate) jobs: &'a [RunJob],
}

/// When a stage began.
#[derive(Clone, Copy)]
pub(crate) struct Begun {
    pub(crate) at: Moment,
    pub(crate) late_by: Duration,
}

impl Begun {
    /// Returns the beginning of a stage that is ready at `now`.
    pub(crate) fn from(begins_at: Option<Moment>, now: Moment) -> Self {
        let at = begins_at.unwrap_or(now);
        Self { at: at.max(now), late_by: now.since(at) }
    }
}

impl<'a> StageThreads<'a> {
    /// Runs a thread for each body to its end; the calling one records.
    pub(crate) fn run(
        self,
        bodies: Vec<Body<'a>>,
        watch: impl FnOnce(Moment) -> Option<Watch>,
    ) -> Result<StageOutcome, EngineError> {
        let Self { clock, stop, begins_at, stops, tells, sink, past, jobs } = self;
        let gate = Gate::new(clock, begins_at);
        let recorder_cpu = thread_cpu_time();
        let threads = bodies.len();
        let buffer_ops = (BUFFERS_OPS / threads.max(1)).clamp(BUFFER_OPS_MIN, BUFFER_OPS);
        let recorder = thread::current();
        thread::scope(|scope| {
            let (gate, recorder) = (&gate, &recorder);
            let delays = Arc::new(RunDelays::default());
            let mut consumers = Vec::new();
            let mut handles = Vec::new();
            for (index, body) in bodies.into_iter().enumerate() {
                let (producer, consumer) = RingBuffer::new(buffer_ops);
                consumers.push(consumer);
                let own = Arc::clone(&delays);
                let body = move || {
                    own.join();
                    let _end = End { stop, recorder };
                    // The others must not go on without this one.
                    let outcome = body(Outlet::Ring(producer, recorder.clone()), gate);
                    let outcome = outcome.inspect_err(|_| stop.set());
                    outcome.map(|outcome| (outcome, thread_cpu_time(), thread_usage::used()))
                };
                let name = format!("worker-{index}");
                match thread::Builder::new().name(name).spawn_scoped(scope, body) {
                    Ok(handle) => handles.push(handle),
                    Err(error) => {
                        // The threads that are there wait at the gate; they must see the flag and
                        // go home.
                        stop.set();
                        gate.open(0, &handles);
                        return Err(EngineError::Thread(error));
                    }
                }
            }
            let begun = gate.open(threads, &handles);
            let watch = watch(begun.at);
            sink.begun(begun.at);
            let watcher = Watcher::begin(scope, clock, delays);
            let rule = stops.rule;
            let mut recorder = Recorder { clock, stop, sink, past, watch, tells, rule };
            let drained = recorder.drain(&mut consumers);
            // Threads whose records nobody takes any more must not wait for room.
            drop(consumers);
            let joined: Result<Vec<_>, _> = handles
                .into_iter()
                .map(|handle| {
                    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect();
            let joined = joined?;
            let usage = joined.iter().map(|(_, _, usage)| *usage).collect();
            let ended = joined.into_iter().map(|(thread, cpu, _)| (thread, cpu));
            let mut outcome = sum(stops, jobs, begun, ended, recorder.past);
            outcome.threads = usage;
            (outcome.standstills, outcome.disturbed) = watcher.seen();
            outcome.cpu_time += thread_cpu_time() - recorder_cpu;
            drained?;
            Ok(outcome)
        })
    }
}

/// A job as far as the sum over its threads goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunJob {
    pub(crate) id: JobId,
    /// Whether its operations come on a schedule.
    pub(crate) is_open: bool,
    /// What of it is measured, as [`JobOutcome::measured`].
    pub(crate) measured: Option<(Duration, Option<Duration>)>,
}

/// Adds up what the threads of a stage hand in.
pub(crate) fn sum(
    stops: Stops<'_>,
    jobs: &[RunJob],
    begun: Begun,
    threads: impl IntoIterator<Item = (ThreadOutcome, Duration)>,
    past: Past,
) -> StageOutcome {
    let (timeline, kept) = past.finish();
    let mut all = ThreadOutcome { timeline, ..ThreadOutcome::default() };
    let mut cpu_time = Duration::ZERO;
    for (mut thread, cpu) in threads {
        all.timeline.merge(&thread.timeline);
        all.errors.append(&mut thread.errors);
        all.ended = all.ended.max(thread.ended);
        let missing = thread.jobs.len().saturating_sub(all.jobs.len());
        all.jobs.extend(std::iter::repeat_with(JobTally::default).take(missing));
        all.jobs.iter_mut().zip(thread.jobs).for_each(|(sum, tally)| sum.add(tally));
        all.looks = [all.looks, thread.looks].into_iter().flatten().reduce(LooksOutcome::merge);
        all.settled.add(thread.settled);
        thread.wrong.iter().for_each(|(kind, n)| *all.wrong.entry(*kind).or_default() += n);
        for (status, n) in &thread.failed_statuses {
            *all.failed_statuses.entry(*status).or_default() += n;
        }
        all.recorder_waits += thread.recorder_waits;
        all.recorder_wait += thread.recorder_wait;
        all.sockets.merge(thread.sockets);
        cpu_time += cpu;
    }
    // Where a part of a run has no worker, nobody handed anything in.
    let tallies = jobs.iter().map(|job| usize::from(job.id.0) + 1).max().unwrap_or(0);
    all.jobs.resize_with(tallies.max(all.jobs.len()), JobTally::default);
    let mut jobs: Vec<JobOutcome> = jobs
        .iter()
        .map(|job| job_outcome(job, std::mem::take(&mut all.jobs[usize::from(job.id.0)])))
        .collect();
    jobs.sort_by_key(|job| job.job);
    let ended_by = jobs.iter().map(|job| job.ended_by).max().unwrap_or_default();
    // A rule may hold in the moment in which the time is up, or the user has had enough.
    let held = stops.rule.get().filter(|rule| rule.reason == ended_by);
    keep_first_errors(&mut all.errors);
    StageOutcome {
        started: begun.at,
        began_late_by: begun.late_by,
        ended: all.ended.max(begun.at),
        ended_by,
        ended_because: held.map(|rule| rule.because.clone()),
        timeline: all.timeline,
        kept,
        errors: all.errors,
        ops_count: jobs.iter().map(|job| job.ops_count).sum(),
        failed_count: jobs.iter().map(|job| job.failed_count).sum(),
        // Beside a job with a schedule there may be others without.
        schedule: jobs.iter().filter_map(|job| job.schedule).reduce(ScheduleOutcome::merge),
        looks: all.looks,
        stream_hash: jobs.iter().fold(0, |sum, job| sum.wrapping_add(job.stream_hash)),
        jobs,
        settled: all.settled,
        wrong: all.wrong,
        failed_statuses: all.failed_statuses,
        recorder_waits: all.recorder_waits,
        recorder_wait: all.recorder_wait,
        cpu_time,
        probe: None,
        threads: Vec::new(),
        sockets: all.sockets,
        standstills: StandstillsSeen::default(),
        disturbed: DisturbedSeen::default(),
    }
}

fn job_outcome(job: &RunJob, tally: JobTally) -> JobOutcome {
    let JobTally { ops_count, failed_count, bytes, kept, .. } = tally;
    let offered_count = kept.offered_count + kept.skipped_count;
    let names = (!tally.server_names.is_empty()).then_some(tally.server_names);
    JobOutcome {
        job: job.id,
        ops_count,
        failed_count,
        measured_count: kept.offered_count,
        measured_failed_count: tally.measured_failed_count,
        measured_bytes: tally.measured_bytes,
        bytes,
        unchecked: tally.unchecked,
        measured: job.measured,
        schedule: job.is_open.then_some(ScheduleOutcome { offered_count, ..kept }),
        ended_by: tally.ended_by,
        stream_hash: tally.stream_hash,
        server_names: names.map(Arc::new),
        changes: tally.changes,
    }
}

/// The end of a thread, which the recorder is told of. Where it panics, it ends the stage: the
/// others may wait for what that thread was to do, and the panic is handed on only when all have
/// ended.
struct End<'a> {
    stop: &'a StopFlag,
    recorder: &'a Thread,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.stop.set();
        }
        self.recorder.unpark();
    }
}

/// Lets all threads begin at one moment.
pub(crate) struct Gate {
    clock: SharedClock,
    /// When the stage is to begin; as soon as all are ready where nothing is said.
    begins_at: Option<Moment>,
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    ready: usize,
    started: Option<Moment>,
}

impl Gate {
    /// A thread that dies before it is ready is noticed after at most this long.
    const LOOK: Duration = Duration::from_millis(100);

    fn new(clock: &SharedClock, begins_at: Option<Moment>) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self { clock: Arc::clone(clock), begins_at, state, changed }
    }

    /// Waits, as a thread that is ready, for the stage to begin; no longer than to a stop.
    pub(crate) fn wait(&self, stop: &StopFlag) -> Moment {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ready += 1;
        self.changed.notify_all();
        let started = loop {
            if let Some(started) = state.started {
                break started;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        block_until(&*self.clock, started, || stop.is_set());
        thread_usage::begin();
        started
    }

    /// Waits until `threads` threads are ready, or one has died, and lets them go.
    fn open(&self, threads: usize, handles: &[Handle<'_>]) -> Begun {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.ready < threads && !handles.iter().any(ScopedJoinHandle::is_finished) {
            let waited = self.changed.wait_timeout(state, Self::LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let begun = Begun::from(self.begins_at, self.clock.now());
        state.started = Some(begun.at);
        self.changed.notify_all();
        begun
    }
}

/// How long the recorder rests between two looks: the longer, the less had come in when it last
/// did. A look takes a processor and its caches from those who work, and of hundreds a second most
/// would find a few operations or none.
struct Rests {
    length: Duration,
    has_rested: bool,
}

impl Default for Rests {
    fn default() -> Self {
        Self { length: Self::MIN, has_rested: false }
    }
}

impl Rests {
    const MIN: Duration = Duration::from_millis(2);
    /// In this time a million operations a second fill the largest buffer. Whoever finds it full
    /// ends the rest.
    const MAX: Duration = Duration::from_millis(16);

    /// Returns for how long to rest when at most `most` records were found in a buffer of `room`.
    fn next(&mut self, most: usize, room: usize) -> Option<Duration> {
        let is_much = most >= room / 16;
        if self.has_rested && is_much {
            self.length = (self.length / 2).max(Self::MIN);
        } else if self.has_rested && most < room / 64 {
            self.length = (self.length * 2).min(Self::MAX);
        }
        self.has_rested = !is_much;
        self.has_rested.then_some(self.length)
    }
}

/// Takes the records off the threads, and watches them for a rule that ends the stage.
pub(crate) struct Recorder<'a> {
    pub(crate) clock: &'a SharedClock,
    pub(crate) stop: &'a StopFlag,
    pub(crate) sink: &'a mut dyn OpSink,
    pub(crate) past: Past,
    pub(crate) watch: Option<Watch>,
    /// Who is told what the rules see, where somebody else judges them.
    pub(crate) tells: Option<&'a Live>,
    pub(crate) rule: &'a OnceLock<Verdict>,
}

impl Recorder<'_> {
    /// Hands records to the sink until no thread gives more and nothing is left.
    fn drain(&mut self, consumers: &mut [Consumer<PackedOp>]) -> Result<(), OpSinkError> {
        let room = consumers.first().map_or(0, |consumer| consumer.buffer().capacity());
        let mut rests = Rests::default();
        loop {
            let all_ended = consumers.iter().all(Consumer::is_abandoned);
            let mut most = 0;
            for consumer in consumers.iter_mut() {
                let chunk = consumer.read_chunk(consumer.slots()).expect("these slots are filled");
                most = most.max(chunk.len());
                let (first, second) = chunk.as_slices();
                self.take(first, second)?;
                chunk.commit_all();
            }
            self.tick()?;
            self.hand_past_on()?;
            self.check_rules();
            if all_ended && most == 0 {
                return Ok(());
            }
            if let Some(rest) = rests.next(most, room).filter(|_| !all_ended) {
                park_for(rest);
            }
        }
    }

    /// Hands records to the sink; one that cannot take them ends the stage.
    pub(crate) fn take(
        &mut self,
        first: &[PackedOp],
        second: &[PackedOp],
    ) -> Result<(), OpSinkError> {
        if let Some(watch) = &mut self.watch {
            watch.observe(first);
            watch.observe(second);
        }
        let appended = self.sink.append(first).and_then(|()| self.sink.append(second));
        appended.inspect_err(|_| self.stop.set())
    }

    /// Lets the sink do what is due by time.
    fn tick(&mut self) -> Result<(), OpSinkError> {
        let ticked = self.sink.tick(self.clock.now());
        ticked.inspect_err(|_| self.stop.set())
    }

    /// Hands on what has come of the past of the time line.
    pub(crate) fn hand_past_on(&mut self) -> Result<(), OpSinkError> {
        let handed = self.past.hand_on(self.sink);
        handed.inspect_err(|_| self.stop.set())
    }

    /// Ends the stage when a rule holds.
    pub(crate) fn check_rules(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        if let Some(live) = self.tells {
            if let Some(seen) = watch.tell(self.clock.now()) {
                live.tell(seen);
            }
            return;
        }
        if let Some(verdict) = watch.check(self.clock.now()) {
            self.rule.get_or_init(|| verdict);
            self.watch = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorder_rests_longer_the_less_comes_in() {
        let mut rests = Rests::default();
        let mut next = |most| rests.next(most, 1 << 14).map(|rest| rest.as_millis());
        // A quiet store: each rest is longer than the one before, up to the longest.
        assert_eq!([2, 4, 8, 16, 16].map(Some), [0, 10, 40, 80, 160].map(&mut next));
        // What comes in between is the length that fits.
        assert_eq!(next(500), Some(16));
        // Much: it looks again at once, finds little, as it has not rested, and rests for less.
        assert_eq!([None, Some(8), None, Some(4)], [1_024, 3, 2_000, 3].map(&mut next));
        assert_eq!([None, Some(2), None, None, Some(2)], [9_000, 3, 9_000, 1_024, 3].map(next));
    }

    #[test]
    fn small_buffers_are_looked_at_as_often() {
        let mut rests = Rests::default();
        let most = [3, 3, 3, 3, 16, 3].map(|most| rests.next(most, BUFFER_OPS_MIN));
        assert_eq!(
            most.map(|rest| rest.map(|rest| rest.as_millis())),
            [Some(2), Some(4), Some(8), Some(16), None, Some(8)]
        );
    }
}

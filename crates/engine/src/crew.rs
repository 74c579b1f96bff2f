//! The threads of a stage and the one that records what they do: begun at one moment, drained until
//! the last has ended.

use std::io;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use plimsoll_model::{ErrorClass, Moment, PackedOp, SharedClock};
use rtrb::{Consumer, RingBuffer};

use crate::clock::{block_for, thread_cpu_time};
use crate::live::StopFlag;
use crate::planner::EndReason;
use crate::pump::{ERRORS_KEPT_PER_CLASS, Outlet, ThreadOutcome};
use crate::server_names::ServerNames;
use crate::stage::{
    EngineError, ErrorSample, LooksOutcome, OpSink, OpSinkError, ScheduleOutcome, StageContext,
    StageOutcome,
};
use crate::watch::{Stops, Verdict, Watch};

/// Records that one thread can be ahead of the recorder: 1 MiB. Larger ones are touched for the
/// first time over minutes, which looks like a leak.
pub(crate) const BUFFER_OPS: usize = 1 << 14;
/// Records that all threads together can be ahead, as long as each has [`BUFFER_OPS_MIN`].
const BUFFERS_OPS: usize = 1 << 18;
const BUFFER_OPS_MIN: usize = 1 << 8;
/// How long the recorder rests when little has come in.
const RECORDER_REST: Duration = Duration::from_millis(2);
/// Below this many records a round the recorder rests.
const RECORDER_BATCH_MIN: usize = 1_024;

/// What a thread comes to, with its processor time.
type Ended = Result<(ThreadOutcome, Duration), EngineError>;
type Handle<'scope> = ScopedJoinHandle<'scope, Ended>;

/// The recorder of a stage, with what it needs to run the stage's threads.
pub(crate) struct Crew<'a> {
    pub(crate) context: &'a StageContext<'a>,
    pub(crate) stops: Stops<'a>,
    pub(crate) sink: &'a mut dyn OpSink,
    /// Whether all operations come on one schedule.
    pub(crate) is_open: bool,
}

impl<'a> Crew<'a> {
    /// Runs `threads` threads, each with the body that `body` gives for its index; the calling
    /// thread records. A body calls [`Gate::wait`] when it is ready.
    pub(crate) fn run<B>(
        self,
        threads: usize,
        body: impl Fn(usize, Outlet<'a>) -> io::Result<B>,
        watch: impl FnOnce(Moment) -> Option<Watch>,
    ) -> Result<StageOutcome, EngineError>
    where
        B: FnOnce(&Gate) -> Result<ThreadOutcome, EngineError> + Send + 'a,
    {
        let Self { context, stops, sink, is_open } = self;
        let gate = Gate::default();
        let recorder_cpu = thread_cpu_time();
        let buffer_ops = (BUFFERS_OPS / threads.max(1)).clamp(BUFFER_OPS_MIN, BUFFER_OPS);
        std::thread::scope(|scope| {
            let gate = &gate;
            let mut consumers = Vec::new();
            let mut handles = Vec::new();
            for index in 0..threads {
                let (producer, consumer) = RingBuffer::new(buffer_ops);
                consumers.push(consumer);
                let spawned = body(index, Outlet::Ring(producer)).and_then(|body| {
                    let body = move || {
                        let _ended = StopOnPanic(context.stop);
                        body(gate).map(|outcome| (outcome, thread_cpu_time()))
                    };
                    let name = format!("worker-{index}");
                    std::thread::Builder::new().name(name).spawn_scoped(scope, body)
                });
                match spawned {
                    Ok(handle) => handles.push(handle),
                    Err(error) => {
                        // The threads that are there wait at the gate; they must see the flag and
                        // go home.
                        context.stop.set();
                        gate.open(0, &handles, context.clock);
                        return Err(EngineError::Thread(error));
                    }
                }
            }
            let started = gate.open(threads, &handles, context.clock);
            let mut recorder = Recorder { context, sink, watch: watch(started), rule: stops.rule };
            let drained = recorder.drain(&mut consumers, &handles);
            // Threads whose records nobody takes any more must not wait for room.
            drop(consumers);
            let joined: Result<Vec<_>, _> = handles
                .into_iter()
                .map(|handle| {
                    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect();
            let mut outcome = sum(stops, is_open, started, joined?);
            outcome.cpu_time += thread_cpu_time() - recorder_cpu;
            drained?;
            Ok(outcome)
        })
    }
}

/// Adds up what the threads of a stage hand in.
pub(crate) fn sum(
    stops: Stops<'_>,
    is_open: bool,
    started: Moment,
    threads: impl IntoIterator<Item = (ThreadOutcome, Duration)>,
) -> StageOutcome {
    let mut all = ThreadOutcome::default();
    let mut cpu_time = Duration::ZERO;
    let (mut recorder_waits, mut recorder_wait) = (0, Duration::ZERO);
    for (mut thread, cpu) in threads {
        all.timeline.merge(&thread.timeline);
        all.errors.append(&mut thread.errors);
        all.server_names.append(&mut thread.server_names);
        all.reasons.append(&mut thread.reasons);
        all.ops_count += thread.ops_count;
        all.failed_count += thread.failed_count;
        all.late_count += thread.late_count;
        all.skipped_count += thread.skipped_count;
        all.delay_max = all.delay_max.max(thread.delay_max);
        all.ended = all.ended.max(thread.ended);
        for (job, kept) in thread.job_schedules {
            let of_job = all.job_schedules.entry(job).or_default();
            *of_job = of_job.merge(kept);
        }
        all.looks = [all.looks, thread.looks].into_iter().flatten().reduce(LooksOutcome::merge);
        all.stream_hash = all.stream_hash.wrapping_add(thread.stream_hash);
        all.settled.add(thread.settled);
        thread.wrong.iter().for_each(|(kind, n)| *all.wrong.entry(*kind).or_default() += n);
        recorder_waits += thread.recorder_waits;
        recorder_wait += thread.recorder_wait;
        cpu_time += cpu;
    }
    let ended_by = all.reasons.into_iter().fold(EndReason::OutOfWork, EndReason::max);
    // A rule may hold in the moment in which the time is up, or the user has had enough.
    let held = stops.rule.get().filter(|rule| rule.reason == ended_by);
    keep_first_errors(&mut all.errors);
    let whole = is_open.then(|| ScheduleOutcome {
        offered_count: all.ops_count + all.skipped_count,
        late_count: all.late_count,
        skipped_count: all.skipped_count,
        delay_max: all.delay_max,
    });
    // Beside a job with a schedule there may be others without.
    let of_jobs = all.job_schedules.values().copied().reduce(ScheduleOutcome::merge);
    StageOutcome {
        started,
        ended: all.ended.max(started),
        ended_by,
        ended_because: held.map(|rule| rule.because.clone()),
        timeline: all.timeline,
        errors: all.errors,
        ops_count: all.ops_count,
        failed_count: all.failed_count,
        schedule: whole.or(of_jobs),
        job_schedules: all.job_schedules.into_iter().collect(),
        looks: all.looks,
        stream_hash: all.stream_hash,
        settled: all.settled,
        wrong: all.wrong,
        server_names: (!all.server_names.is_empty())
            .then(|| Arc::new(ServerNames::new(all.server_names))),
        recorder_waits,
        recorder_wait,
        cpu_time,
    }
}

/// Ends the stage when its thread panics: the others may wait for what that thread was to do, and
/// the panic is handed on only when all have ended.
struct StopOnPanic<'a>(&'a StopFlag);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.set();
        }
    }
}

/// Lets all threads begin at one moment.
#[derive(Default)]
pub(crate) struct Gate {
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

    /// Waits, as a thread that is ready, for the stage to begin.
    pub(crate) fn wait(&self) -> Moment {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.ready += 1;
        self.changed.notify_all();
        loop {
            if let Some(started) = state.started {
                return started;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until `threads` threads are ready, or one has died, and lets them go.
    fn open(&self, threads: usize, handles: &[Handle<'_>], clock: &SharedClock) -> Moment {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.ready < threads && !handles.iter().any(ScopedJoinHandle::is_finished) {
            let waited = self.changed.wait_timeout(state, Self::LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let started = clock.now();
        state.started = Some(started);
        self.changed.notify_all();
        started
    }
}

/// Takes the records off the threads, and watches them for a rule that ends the stage.
pub(crate) struct Recorder<'a> {
    pub(crate) context: &'a StageContext<'a>,
    pub(crate) sink: &'a mut dyn OpSink,
    pub(crate) watch: Option<Watch>,
    pub(crate) rule: &'a OnceLock<Verdict>,
}

impl Recorder<'_> {
    /// Hands records to the sink until all threads have ended and nothing is left.
    fn drain(
        &mut self,
        consumers: &mut [Consumer<PackedOp>],
        handles: &[Handle<'_>],
    ) -> Result<(), OpSinkError> {
        loop {
            let all_ended = handles.iter().all(ScopedJoinHandle::is_finished);
            let mut taken = 0;
            for consumer in consumers.iter_mut() {
                let chunk = consumer.read_chunk(consumer.slots()).expect("these slots are filled");
                taken += chunk.len();
                let (first, second) = chunk.as_slices();
                self.take(first, second)?;
                chunk.commit_all();
            }
            self.tick()?;
            self.check_rules();
            if all_ended && taken == 0 {
                return Ok(());
            }
            if !all_ended && taken < RECORDER_BATCH_MIN {
                block_for(RECORDER_REST);
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
        appended.inspect_err(|_| self.context.stop.set())
    }

    /// Lets the sink do what is due by time.
    fn tick(&mut self) -> Result<(), OpSinkError> {
        let ticked = self.sink.tick(self.context.clock.now());
        ticked.inspect_err(|_| self.context.stop.set())
    }

    /// Ends the stage when a rule holds.
    pub(crate) fn check_rules(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        if let Some(verdict) = watch.check(self.context.clock.now()) {
            self.rule.get_or_init(|| verdict);
            self.watch = None;
        }
    }
}

/// Sorts by time and keeps the first few of each class.
fn keep_first_errors(errors: &mut Vec<ErrorSample>) {
    errors.sort_by_key(|error| error.at);
    let mut kept = [0; ErrorClass::ALL.len()];
    errors.retain(|error| {
        kept[error.class as usize] += 1;
        kept[error.class as usize] <= ERRORS_KEPT_PER_CLASS
    });
}

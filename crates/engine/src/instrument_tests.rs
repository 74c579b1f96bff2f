//! The instrument is measured: a scripted driver on tokio's paused time, so that the answers are
//! exact.
#![expect(clippy::disallowed_methods, reason = "drives tokio's paused time")]

use std::cell::Cell;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use plimsoll_driver::{Completion, Driver, DriverError, Operation, Session};
use plimsoll_model::{
    Clock, EndpointId, ErrorClass, Moment, OpKind, OpRecord, PackedOp, SharedClock, StageId,
    StageKind, WorkerId,
};
use plimsoll_workload::data::Generator;
use plimsoll_workload::{
    KeysSpec, MeasureSpec, ObjectsSpec, OpWeightSpec, PacingSpec, SPEC_SCHEMA, SizeSpec, Workload,
    WorkloadSpec,
};
use rtrb::{Consumer, RingBuffer};

use crate::live::{Live, StopFlag};
use crate::planner::EndReason;
use crate::pump::{ThreadOutcome, ThreadPlan, run_thread};
use crate::watch::{Stops, Verdict, Watch};
use crate::worker::StageFacts;

pub(crate) const MS: u64 = 1_000_000;

/// Reads tokio's own time, which a paused runtime moves by itself.
pub(crate) struct PausedClock(tokio::time::Instant);

impl Clock for PausedClock {
    fn now(&self) -> Moment {
        Moment::from_ns(self.0.elapsed().as_nanos() as u64)
    }
}

/// What the scripted store does with one operation.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    Right,
    Fail(ErrorClass),
    WrongByte,
    ShortBody,
    Never,
}

/// Decides how long an operation takes and what it gives, by the operation's number on the session.
pub(crate) type Script = fn(u64) -> (Duration, Answer);

struct Scripted {
    script: Script,
    generator: Arc<Generator>,
}

struct ScriptedSession {
    script: Script,
    generator: Arc<Generator>,
    clock: SharedClock,
    number: Cell<u64>,
}

impl Driver for Scripted {
    type Session = ScriptedSession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<ScriptedSession> {
        let session = || ScriptedSession {
            script: self.script,
            generator: Arc::clone(&self.generator),
            clock: Arc::clone(clock),
            number: Cell::new(0),
        };
        (0..count).map(|_| session()).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["scripted".to_owned()]
    }
}

impl Session for ScriptedSession {
    async fn execute(&mut self, operation: Operation<'_>) -> Completion {
        let (takes, answer) = (self.script)(self.number.replace(self.number.get() + 1));
        tokio::time::sleep(takes).await;
        let mut bytes = 0;
        match operation {
            Operation::Get { key, sink, .. } => {
                let mut body = vec![0; 1_000];
                self.generator.content(plimsoll_workload::hash_text(key), 0).fill(0, &mut body);
                match answer {
                    Answer::WrongByte => body[500] ^= 1,
                    Answer::ShortBody => body.truncate(999),
                    Answer::Right | Answer::Fail(_) => {}
                    Answer::Never => std::future::pending().await,
                }
                sink.restart();
                sink.accept(&body);
                bytes = body.len() as u64;
            }
            Operation::Put { content, .. } => bytes = content.size(),
            Operation::Stat { .. } | Operation::Delete { .. } | Operation::List { .. } => {}
        }
        let result = match answer {
            Answer::Fail(class) => Err(DriverError::new(class, "scripted")),
            _ => Ok(()),
        };
        Completion {
            endpoint: EndpointId(0),
            first_byte: None,
            last_byte_sent: None,
            end: self.clock.now(),
            bytes,
            objects_count: 1,
            object_size: None,
            result,
        }
    }

    fn endpoint(&self) -> EndpointId {
        EndpointId(0)
    }
}

pub(crate) fn spec(operations: &[(&str, u32)], workers: u32, pacing: PacingSpec) -> WorkloadSpec {
    WorkloadSpec {
        schema: SPEC_SCHEMA.to_owned(),
        name: "test".to_owned(),
        seed: 7,
        concurrency: workers,
        keys: KeysSpec { prefix: String::new(), per_worker: true },
        objects: ObjectsSpec {
            count: u64::from(workers) * 8,
            size: SizeSpec::FixedBytes(1_000),
            existing: None,
        },
        measure: MeasureSpec {
            operations: operations
                .iter()
                .map(|&(op, weight)| OpWeightSpec { op: op.to_owned(), weight })
                .collect(),
            range: None,
            delete_batch: None,
            list_page_size: None,
            duration_ns: 1_000 * MS,
            steady: None,
            until: Vec::new(),
        },
        pacing,
        verify: true,
    }
}

fn workload(operation: &str, workers: u32, pacing: PacingSpec) -> Arc<Workload> {
    Arc::new(spec(&[(operation, 1)], workers, pacing).validate("run", None).unwrap())
}

/// What takes records off one thread's hands, as the recorder does.
struct Recorder {
    consumer: Consumer<PackedOp>,
    records: Vec<PackedOp>,
    watch: Option<Watch>,
    rule: Arc<OnceLock<Verdict>>,
}

impl Recorder {
    /// How often the recorder looks in paused time.
    const LOOK: Duration = Duration::from_millis(5);

    fn take(&mut self, now: Moment) {
        let before = self.records.len();
        while let Ok(packed) = self.consumer.pop() {
            self.records.push(packed);
        }
        let Some(watch) = &mut self.watch else { return };
        watch.observe(&self.records[before..]);
        if let Some(verdict) = watch.check(now) {
            self.rule.get_or_init(|| verdict);
            self.watch = None;
        }
    }
}

/// Runs one stage on one thread in paused time, and returns its outcome and records.
fn run(
    workload: &Arc<Workload>,
    kind: StageKind,
    script: Script,
    retries: u8,
    stop_at: Option<Duration>,
) -> (ThreadOutcome, Vec<OpRecord>) {
    let (outcome, records, _) = run_watched(workload, kind, script, retries, stop_at);
    (outcome, records)
}

/// The same with the stop rule that held.
pub(crate) fn run_watched(
    workload: &Arc<Workload>,
    kind: StageKind,
    script: Script,
    retries: u8,
    stop_at: Option<Duration>,
) -> (ThreadOutcome, Vec<OpRecord>, Option<Verdict>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.unwrap();
    let clock: SharedClock = {
        let _entered = runtime.enter();
        Arc::new(PausedClock(tokio::time::Instant::now()))
    };
    let generator = Arc::new(Generator::new(workload.seed.0));
    let facts = StageFacts {
        workload: Arc::clone(workload),
        generator: Arc::clone(&generator),
        stage: StageId(1),
        op_timeout: Duration::from_millis(300),
        retries,
        clock: Arc::clone(&clock),
    };
    let driver = Scripted { script, generator };
    let (producer, consumer) = RingBuffer::new(1 << 16);
    let live = Live::new(1);
    let stop = StopFlag::default();
    if stop_at == Some(Duration::ZERO) {
        stop.set();
    }
    let rule = Arc::new(OnceLock::new());
    let watch = Watch::new(workload, kind, Moment::EPOCH);
    let looks = watch.is_some();
    let recorder = Recorder { consumer, records: Vec::new(), watch, rule: Arc::clone(&rule) };
    let recorder = Arc::new(Mutex::new(recorder));
    let plan = ThreadPlan {
        driver: &driver,
        facts: &facts,
        kind,
        workers: (0..workload.concurrency.get()).map(WorkerId).collect(),
        producer,
        counters: live.thread(0),
        stops: Stops { user: &stop, rule: &rule },
    };
    let outcome = run_thread(runtime, plan, || {
        let (recorder, clock) = (Arc::clone(&recorder), Arc::clone(&clock));
        if looks {
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(Recorder::LOOK).await;
                    recorder.lock().unwrap().take(clock.now());
                }
            });
        }
        Moment::EPOCH
    });
    let mut recorder = recorder.lock().unwrap();
    recorder.watch = None;
    recorder.take(Moment::EPOCH);
    let records: Vec<OpRecord> = recorder.records.iter().map(OpRecord::from).collect();
    let counted: u64 =
        OpKind::ALL.iter().map(|&kind| live.counts(kind)).map(|c| c.ok + c.failed).sum();
    assert_eq!(counted, records.len() as u64);
    assert_eq!(outcome.ops_count, records.len() as u64);
    (outcome, records, rule.get().cloned())
}

fn measure(workload: &Arc<Workload>, script: Script) -> (ThreadOutcome, Vec<OpRecord>) {
    run(workload, StageKind::Measure, script, 0, None)
}

fn ok_in_10_ms(_: u64) -> (Duration, Answer) {
    (Duration::from_millis(10), Answer::Right)
}

#[test]
fn eight_workers_at_10_ms_do_800_operations_a_second() {
    let workload = workload("GET", 8, PacingSpec::Closed);
    let (outcome, records) = measure(&workload, ok_in_10_ms);
    assert_eq!(records.len(), 800);
    assert!(records.iter().all(|op| op.outcome.is_ok() && op.intended == op.start));
    assert!(records.iter().all(|op| op.latency() == Duration::from_millis(10)));
    assert_eq!(outcome.reasons, [EndReason::Duration; 8]);
    let cells: Vec<_> = outcome.timeline.lanes().next().unwrap().1.cells.to_vec();
    // The last eight end exactly at the border, which belongs to the second interval; their bytes
    // do not.
    assert_eq!((cells[0].ended[0], cells[1].ended[0]), (792, 8));
    assert_eq!((cells[0].bytes, cells[1].bytes), (800_000, 0));
}

#[test]
fn a_cap_holds_and_its_waiting_is_no_latency() {
    let workload = workload("GET", 4, PacingSpec::Capped { ops_per_sec: 100.0 });
    let (_, records) = measure(&workload, ok_in_10_ms);
    // Each worker may start every 40 ms; the timer's millisecond may cost a start, never add one.
    assert!((96..=100).contains(&records.len()), "{}", records.len());
    assert!(records.iter().all(|op| op.latency() == Duration::from_millis(10)));
}

#[test]
fn a_capped_worker_catches_up_after_a_stall() {
    let workload = workload("GET", 1, PacingSpec::Capped { ops_per_sec: 50.0 });
    let (_, records) = measure(&workload, |number| {
        let takes = if number == 0 { 250 } else { 2 };
        (Duration::from_millis(takes), Answer::Right)
    });
    // 50 a second for one second although a quarter of it was lost.
    assert!((48..=50).contains(&records.len()), "{}", records.len());
}

#[test]
fn wrong_and_short_content_have_classes_of_their_own() {
    let workload = workload("GET", 2, PacingSpec::Closed);
    let (outcome, records) = measure(&workload, |number| {
        let answer = match number % 10 {
            3 => Answer::WrongByte,
            7 => Answer::ShortBody,
            _ => Answer::Right,
        };
        (Duration::from_millis(10), answer)
    });
    let count = |class| records.iter().filter(|op| op.outcome == class).count();
    assert_eq!(count(ErrorClass::Ok), 160);
    assert_eq!(count(ErrorClass::Corrupt), 20);
    assert_eq!(count(ErrorClass::Truncated), 20);
    let first = |class| outcome.errors.iter().find(|error| error.class == class).unwrap();
    assert!(first(ErrorClass::Corrupt).message.contains("byte 500 of `plimsoll/run/"));
    assert!(first(ErrorClass::Truncated).message.contains("gave 999 bytes instead of 1000"));
    let kept = outcome.errors.iter().filter(|error| error.class == ErrorClass::Corrupt).count();
    assert_eq!(kept, 10);
    let latencies: u64 =
        outcome.timeline.lanes().flat_map(|(_, lane)| lane.times).map(|t| t.latency.count()).sum();
    assert_eq!(latencies, 160);
}

#[test]
fn an_operation_without_an_answer_times_out() {
    let workload = workload("GET", 1, PacingSpec::Closed);
    let (_, records) = measure(&workload, |number| {
        (Duration::from_millis(10), if number == 5 { Answer::Never } else { Answer::Right })
    });
    let timed_out: Vec<_> = records.iter().filter(|op| op.outcome == ErrorClass::Timeout).collect();
    assert_eq!(timed_out.len(), 1);
    assert_eq!(timed_out[0].start, Moment::from_ns(50 * MS));
    assert_eq!(timed_out[0].latency(), Duration::from_millis(300));
    assert_eq!(records.len(), 5 + 1 + 65);
}

#[test]
fn a_store_that_is_away_is_asked_with_growing_pauses() {
    let workload = workload("GET", 1, PacingSpec::Closed);
    let (outcome, records) =
        measure(&workload, |_| (Duration::ZERO, Answer::Fail(ErrorClass::Connect)));
    // Pauses of 10, 20, 40, 80 ms, then 100 ms each until the second is over.
    let starts: Vec<u64> = records.iter().map(|op| op.start.as_ns() / MS).collect();
    assert_eq!(starts, [0, 10, 30, 70, 150, 250, 350, 450, 550, 650, 750, 850, 950]);
    assert_eq!(outcome.failed_count, 13);
    let refused =
        measure(&workload, |_| (Duration::from_millis(1), Answer::Fail(ErrorClass::Server)));
    assert_eq!(refused.1.len(), 1_000);
}

#[test]
fn retries_are_visible_and_inside_the_latency() {
    let workload = workload("GET", 1, PacingSpec::Closed);
    let script: Script = |number| {
        let answer = if number < 2 { Answer::Fail(ErrorClass::Throttled) } else { Answer::Right };
        (Duration::from_millis(10), answer)
    };
    let (_, records) = run(&workload, StageKind::Measure, script, 3, None);
    // 10 ms, a pause of 100 ms, 10 ms, a pause of 200 ms, 10 ms.
    assert_eq!((records[0].attempts, records[0].outcome), (3, ErrorClass::Ok));
    assert_eq!(records[0].latency(), Duration::from_millis(330));
    assert_eq!(records[1].attempts, 1);
    let (_, records) = run(&workload, StageKind::Measure, script, 0, None);
    assert_eq!((records[0].attempts, records[0].outcome), (1, ErrorClass::Throttled));
}

#[test]
fn prepare_ends_when_everything_is_uploaded_and_a_stop_ends_at_once() {
    let workload = workload("GET", 3, PacingSpec::Closed);
    let (outcome, records) = run(&workload, StageKind::Prepare, ok_in_10_ms, 0, None);
    assert_eq!((records.len(), outcome.reasons), (24, vec![EndReason::OutOfWork; 3]));
    let stopped = run(&workload, StageKind::Measure, ok_in_10_ms, 0, Some(Duration::ZERO));
    assert_eq!((stopped.1.len(), stopped.0.reasons), (0, vec![EndReason::Stopped; 3]));
}

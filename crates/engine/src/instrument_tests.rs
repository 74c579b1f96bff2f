//! The instrument is measured: a scripted driver in virtual time, so that the answers are exact.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::{Completion, Driver, DriverError, Operation, Session};
use plimsoll_model::{
    EndReason, EndpointId, ErrorClass, Moment, OpKind, OpRecord, SharedClock, StageId, StageKind,
};
use plimsoll_workload::data::Generator;

use crate::testing::Laid;
use crate::{
    EngineConfig, KeptOps, Live, StageContext, StageOutcome, StopFlag, VirtualTime, run_stage,
};

pub(crate) const MS: u64 = 1_000_000;

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

/// A store that does what a script says.
pub(crate) struct Scripted {
    pub(crate) script: Script,
    pub(crate) generator: Arc<Generator>,
}

pub(crate) struct ScriptedSession {
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
    async fn execute(&mut self, _: Option<&str>, operation: Operation<'_>) -> Completion {
        let (takes, answer) = (self.script)(self.number.replace(self.number.get() + 1));
        let mut end = self.clock.now().after(takes);
        let mut bytes = 0;
        match operation {
            Operation::Get { key, sink, .. } => {
                let mut body = vec![0; 1_000];
                self.generator.content(plimsoll_workload::hash_text(key), 0).fill(0, &mut body);
                match answer {
                    Answer::WrongByte => body[500] ^= 1,
                    Answer::ShortBody => body.truncate(999),
                    Answer::Right | Answer::Fail(_) => {}
                    Answer::Never => end = Moment::from_ns(u64::MAX),
                }
                sink.restart();
                sink.accept(&body);
                bytes = body.len() as u64;
            }
            Operation::Put { content, .. } => bytes = content.size(),
            _ => {}
        }
        let result = match answer {
            Answer::Fail(class) => Err(DriverError::new(class, "scripted")),
            _ => Ok(()),
        };
        Completion {
            endpoint: EndpointId(0),
            first_byte: None,
            assigned: None,
            last_byte_sent: None,
            end,
            bytes,
            objects_count: 1,
            object_size: None,
            server_name: None,
            is_unchecked: false,
            resent_count: 0,
            result,
        }
    }

    fn endpoint(&self) -> EndpointId {
        EndpointId(0)
    }
}

/// Lays out an operation for a second, with eight objects of 1,000 bytes for each worker.
pub(crate) fn workload(operation: &str, workers: u32, pacing: &str) -> Arc<Laid> {
    let set = format!("count: {}, size: 1000", 8 * workers);
    let job = format!("pacing: {pacing}, work: {{objects: [{{{operation}: o}}]}}");
    Laid::of(&set, workers, &job, "duration: 1s")
}

/// Runs one stage against a scripted store in virtual time and returns its outcome and records.
pub(crate) fn run(
    workload: &Laid,
    kind: StageKind,
    script: Script,
    retries: u8,
    stop: &StopFlag,
) -> (StageOutcome, Vec<OpRecord>) {
    let generator = Arc::new(Generator::new(workload.seed.0));
    run_with(
        &Scripted { script, generator },
        workload,
        kind,
        (Duration::from_millis(300), retries),
        stop,
    )
}

/// Runs one stage in virtual time.
pub(crate) fn run_with<D: Driver>(
    driver: &D,
    workload: &Laid,
    kind: StageKind,
    (op_timeout, retries): (Duration, u8),
    stop: &StopFlag,
) -> (StageOutcome, Vec<OpRecord>) {
    run_at(&Arc::new(VirtualTime::new()), driver, workload, kind, (op_timeout, retries), stop)
}

/// The same in a time that the driver knows.
pub(crate) fn run_at<D: Driver>(
    time: &Arc<VirtualTime>,
    driver: &D,
    workload: &Laid,
    kind: StageKind,
    (op_timeout, retries): (Duration, u8),
    stop: &StopFlag,
) -> (StageOutcome, Vec<OpRecord>) {
    let clock: SharedClock = Arc::clone(time) as SharedClock;
    let (live, generator) = (Live::new(1), Arc::new(Generator::new(workload.seed.0)));
    let context = StageContext {
        clock: &clock,
        virtual_time: Some(time),
        stop,
        live: &live,
        generator: &generator,
        wall_epoch: plimsoll_model::WallTime::from_unix_ns(0),
        begins_at: None,
    };
    let config = EngineConfig { threads: 1, op_timeout, retries };
    let mut kept = KeptOps::default();
    let job = workload.alone(driver, kind);
    let work = workload.stage_of(StageId(1), kind, job);
    let outcome = run_stage(&work, &config, &context, &mut kept).unwrap();
    let counted: u64 =
        OpKind::ALL.iter().map(|&kind| live.counts(kind)).map(|c| c.ok + c.failed).sum();
    assert_eq!(counted, kept.0.len() as u64);
    assert_eq!(outcome.ops_count, counted);
    (outcome, kept.0)
}

fn measure(workload: &Laid, script: Script) -> (StageOutcome, Vec<OpRecord>) {
    run(workload, StageKind::Measure, script, 0, &StopFlag::default())
}

fn ok_in_10_ms(_: u64) -> (Duration, Answer) {
    (Duration::from_millis(10), Answer::Right)
}

#[test]
fn eight_workers_at_10_ms_do_800_operations_a_second() {
    let workload = workload("get", 8, "closed");
    let (outcome, records) = measure(&workload, ok_in_10_ms);
    assert_eq!(records.len(), 800);
    assert!(records.iter().all(|op| op.outcome.is_ok() && op.intended == op.start));
    assert!(records.iter().all(|op| op.latency() == Duration::from_millis(10)));
    assert_eq!(outcome.ended_by, EndReason::Duration);
    let cells: Vec<_> = outcome.timeline.series().next().unwrap().1.cells().collect();
    // The last eight end exactly at the border, which belongs to the second interval; their bytes
    // do not.
    let cells: Vec<_> = cells.iter().map(|(at, cell)| (*at, cell.ended[0], cell.bytes)).collect();
    assert_eq!(cells, [(0, 792, 800_000), (1, 8, 0)]);
}

#[test]
fn a_cap_holds_and_its_waiting_is_no_latency() {
    let workload = workload("get", 4, "{capped: 100/s}");
    let (_, records) = measure(&workload, ok_in_10_ms);
    // Each worker may start every 40 ms; the timer's millisecond may cost a start, never add one.
    assert!((96..=100).contains(&records.len()), "{}", records.len());
    assert!(records.iter().all(|op| op.latency() == Duration::from_millis(10)));
}

#[test]
fn a_capped_worker_catches_up_after_a_stall() {
    let workload = workload("get", 1, "{capped: 50/s}");
    let (_, records) = measure(&workload, |number| {
        let takes = if number == 0 { 250 } else { 2 };
        (Duration::from_millis(takes), Answer::Right)
    });
    // 50 a second for one second although a quarter of it was lost.
    assert!((48..=50).contains(&records.len()), "{}", records.len());
}

#[test]
fn wrong_and_short_content_have_classes_of_their_own() {
    let workload = workload("get", 2, "closed");
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
    let latencies: u64 = outcome
        .timeline
        .series()
        .flat_map(|(_, lane)| lane.times())
        .map(|(_, times)| times.latency.count())
        .sum();
    assert_eq!(latencies, 160);
}

#[test]
fn an_operation_without_an_answer_times_out() {
    let workload = workload("get", 1, "closed");
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
    let workload = workload("get", 1, "closed");
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
    let workload = workload("get", 1, "closed");
    let script: Script = |number| {
        let answer = if number < 2 { Answer::Fail(ErrorClass::Throttled) } else { Answer::Right };
        (Duration::from_millis(10), answer)
    };
    let (_, records) = run(&workload, StageKind::Measure, script, 3, &StopFlag::default());
    // 10 ms, a pause of 100 ms, 10 ms, a pause of 200 ms, 10 ms.
    assert_eq!((records[0].attempts, records[0].outcome), (3, ErrorClass::Ok));
    assert_eq!(records[0].latency(), Duration::from_millis(330));
    assert_eq!(records[1].attempts, 1);
    let (_, records) = run(&workload, StageKind::Measure, script, 0, &StopFlag::default());
    assert_eq!((records[0].attempts, records[0].outcome), (1, ErrorClass::Throttled));
}

#[test]
fn prepare_ends_when_everything_is_uploaded_and_a_stop_ends_at_once() {
    let workload = workload("get", 3, "closed");
    let stop = StopFlag::default();
    let (outcome, records) = run(&workload, StageKind::Prepare, ok_in_10_ms, 0, &stop);
    assert_eq!((records.len(), outcome.ended_by), (24, EndReason::OutOfWork));
    stop.set();
    let (outcome, records) = run(&workload, StageKind::Measure, ok_in_10_ms, 0, &stop);
    assert_eq!((records.len(), outcome.ended_by), (0, EndReason::Stopped));
}

/// Sheds every operation, and has the stage stopped while it does the second one.
struct Stopping<'a>(&'a StopFlag);

struct StoppingSession<'a>(&'a StopFlag, SharedClock, u64);

impl<'a> Driver for Stopping<'a> {
    type Session = StoppingSession<'a>;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<StoppingSession<'a>> {
        (0..count).map(|_| StoppingSession(self.0, Arc::clone(clock), 0)).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["stopping".to_owned()]
    }
}

impl Session for StoppingSession<'_> {
    async fn execute(&mut self, _: Option<&str>, _: Operation<'_>) -> Completion {
        self.2 += 1;
        if self.2 == 2 {
            self.0.set();
        }
        let end = self.1.now().after(Duration::from_millis(10));
        let error = DriverError::new(ErrorClass::Throttled, "slow down");
        Completion::bare(EndpointId(0), end, Err(error))
    }

    fn endpoint(&self) -> EndpointId {
        EndpointId(0)
    }
}

#[test]
fn nothing_is_tried_again_when_the_stage_is_stopped_or_over() {
    let workload = workload("get", 1, "closed");
    let stop = StopFlag::default();
    let (stage, limits) = (StageKind::Measure, (Duration::from_secs(60), 5));
    let (outcome, records) = run_with(&Stopping(&stop), &workload, stage, limits, &stop);
    let attempts: Vec<u8> = records.iter().map(|op| op.attempts).collect();
    assert_eq!((attempts, outcome.ended_by), (vec![2], EndReason::Stopped));
    assert_eq!(outcome.ended, Moment::from_ns(120 * MS));
    // Tried at 0, 110, 320 and 730 ms; the next would be at 1,540 ms, and the stage lasts a second.
    let shed: Script = |_| (Duration::from_millis(10), Answer::Fail(ErrorClass::Throttled));
    let (_, records) = run(&workload, stage, shed, 255, &StopFlag::default());
    let tried: Vec<_> = records.iter().map(|op| (op.start.as_ns() / MS, op.attempts)).collect();
    assert_eq!(tried, [(0, 4), (740, 2), (860, 2), (980, 1), (990, 1)]);
}

#[test]
fn the_most_retries_there_are_come_to_an_end() {
    let workload = workload("get", 1, "closed");
    let shed: Script = |_| (Duration::from_millis(10), Answer::Fail(ErrorClass::Throttled));
    let (_, records) = run(&workload, StageKind::Prepare, shed, 255, &StopFlag::default());
    assert_eq!(records.len(), 8);
    assert!(records.iter().all(|op| op.attempts == 255));
}

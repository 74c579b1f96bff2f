//! The open loop against stores whose answers are known.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::null::NullDriver;
use plimsoll_driver::{Completion, Driver, Operation, Session};
use plimsoll_model::{
    EndReason, EndpointId, Moment, OpRecord, SharedClock, StageId, StageKind, WorkerId,
};
use plimsoll_workload::data::Generator;

use crate::instrument_tests::{MS, run_with};
use crate::testing::Laid;
use crate::{
    EngineConfig, KeptOps, Live, RunClock, StageContext, StageOutcome, StageWork, StopFlag,
    run_stage,
};

const SECOND: u64 = 1_000 * MS;

/// Serves in 2 ms, and stands still for the first second of every ten.
#[derive(Clone, Copy)]
struct Stalling;

struct StallingSession(SharedClock);

impl Driver for Stalling {
    type Session = StallingSession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<StallingSession> {
        (0..count).map(|_| StallingSession(Arc::clone(clock))).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["stalling".to_owned()]
    }
}

/// When something that comes at `now` has been served.
fn served(now: u64) -> u64 {
    let thawed = now.max(now / (10 * SECOND) * 10 * SECOND + SECOND);
    // The last 2 ms before the next freeze are cut in two.
    let freeze = (now / (10 * SECOND) + 1) * 10 * SECOND;
    let end = thawed + 2 * MS;
    if end > freeze { end + SECOND } else { end }
}

impl Session for StallingSession {
    async fn execute(&mut self, _: Option<&str>, _: Operation<'_>) -> Completion {
        let end = Moment::from_ns(served(self.0.now().as_ns()));
        Completion { objects_count: 1, ..Completion::bare(EndpointId(0), end, Ok(())) }
    }

    fn endpoint(&self) -> EndpointId {
        EndpointId(0)
    }
}

/// Lays out an operation at a rate.
fn paced(set: &str, workers: u32, op: &str, pacing: &str, stage: &str) -> Arc<Laid> {
    let job = format!("pacing: {{open: {{{pacing}}}}}, work: {{objects: [{{{op}}}]}}");
    Laid::of(set, workers, &job, stage)
}

/// Runs STATs for 20 s in virtual time.
fn measure(pacing: &str) -> (StageOutcome, Vec<OpRecord>) {
    let workload = paced("count: 64, size: 1000", 8, "stat: o", pacing, "duration: 20s");
    let stage = StageKind::Measure;
    run_with(&Stalling, &workload, stage, (Duration::from_secs(60), 0), &StopFlag::default())
}

#[test]
fn every_operation_goes_out_when_the_schedule_wants_it_whatever_the_store_does() {
    let (outcome, mut records) = measure("rate: 1000/s, max_in_flight: 2000");
    records.sort_by_key(|op| op.intended);
    let intended: Vec<u64> = records.iter().map(|op| op.intended.as_ns()).collect();
    let expected: Vec<u64> = (0..20_000).map(|k| k * MS).collect();
    assert_eq!(intended, expected);
    assert!(records.iter().all(|op| op.start == op.intended));
    assert!(records.iter().all(|op| op.end.as_ns() == served(op.start.as_ns())));
    let kept = outcome.schedule.unwrap();
    assert_eq!((kept.offered_count, kept.late_count, kept.skipped_count), (20_000, 0, 0));
    assert_eq!((kept.delay_max, outcome.ended_by), (Duration::ZERO, EndReason::Duration));
}

#[test]
fn what_cannot_be_sent_in_time_is_late_or_skipped_and_its_wait_is_latency() {
    // Two at a time and 2 ms each are 1,000 a second while nothing stalls; 500 are asked for.
    let (outcome, records) = measure("rate: 500/s, max_in_flight: 2");
    let kept = outcome.schedule.unwrap();
    // Each freeze holds 500 back, of which two were sent; 500 a second to spare clear the queue in
    // the second after, in which 500 more are due.
    let late = records.iter().filter(|op| op.start.since(op.intended) > Duration::from_millis(1));
    assert_eq!(kept.late_count, late.count() as u64);
    assert!((1_990..=2_000).contains(&kept.late_count), "{kept:?}");
    assert_eq!((kept.offered_count, kept.skipped_count), (10_000, 0));
    // The first two end at 1.002 s, so the third, due at 4 ms, starts then.
    let third = records.iter().find(|op| op.intended.as_ns() == 4 * MS).unwrap();
    assert_eq!(third.start.as_ns(), 1_002 * MS);
    assert_eq!(third.latency(), Duration::from_millis(1_000));
    assert_eq!(third.service_time(), Duration::from_millis(2));

    // 2,000 a second are twice what two in flight can do.
    let (outcome, records) = measure("rate: 2000/s, max_in_flight: 2");
    let kept = outcome.schedule.unwrap();
    assert_eq!(kept.offered_count, 40_000);
    assert_eq!(kept.skipped_count, 40_000 - records.len() as u64);
    assert!((17_990..=18_010).contains(&records.len()), "{}", records.len());
}

#[test]
fn arrivals_of_a_poisson_process_are_the_same_every_time_and_a_stop_ends_them() {
    let poisson = || measure("rate: 300/s, arrivals: poisson, max_in_flight: 1000");
    let ((one, records), (two, again)) = (poisson(), poisson());
    assert_eq!((one.stream_hash, &records), (two.stream_hash, &again));
    // 6,000 ± 4 standard deviations.
    assert!((5_690..=6_310).contains(&records.len()), "{}", records.len());
    let (other, _) = measure("rate: 301/s, arrivals: poisson, max_in_flight: 1000");
    assert_ne!(one.stream_hash, other.stream_hash);
}

#[test]
fn what_there_was_no_work_for_is_not_skipped() {
    // 60 batches in all, and two at a time at 2 ms each, after a second in which nothing ends: in
    // 1.01 s ten are done or under way, and 50 could still have been asked for.
    let (op, pacing) = ("delete: o, batch: 10", "rate: 1000/s, max_in_flight: 2");
    let workload = paced("count: 600, size: 1000", 6, op, pacing, "duration: 1010ms");
    let limits = (Duration::from_secs(60), 0);
    let stop = StopFlag::default();
    let (outcome, records) = run_with(&Stalling, &workload, StageKind::Measure, limits, &stop);
    let kept = outcome.schedule.unwrap();
    assert_eq!(records.len(), 10);
    assert_eq!((kept.offered_count, kept.skipped_count), (60, 50));
    // Of each of six workers ten were due, and the next one of the last of them at 65 ms.
    assert_eq!(kept.span, Some((Duration::ZERO, Duration::from_millis(65))));
}

/// Serves in 2 ms, but for 40 s what comes at a whole second, and has the stage stopped at 5 s.
struct Interrupted<'a>(&'a StopFlag);

struct InterruptedSession<'a>(&'a StopFlag, SharedClock);

impl<'a> Driver for Interrupted<'a> {
    type Session = InterruptedSession<'a>;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<InterruptedSession<'a>> {
        (0..count).map(|_| InterruptedSession(self.0, Arc::clone(clock))).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["interrupted".to_owned()]
    }
}

impl Session for InterruptedSession<'_> {
    async fn execute(&mut self, _: Option<&str>, _: Operation<'_>) -> Completion {
        let now = self.1.now();
        if now.as_ns() >= 5 * SECOND {
            self.0.set();
        }
        let took_ns = if now.as_ns().is_multiple_of(SECOND) { 40 * SECOND } else { 2 * MS };
        let end = now.after(Duration::from_nanos(took_ns));
        Completion { objects_count: 1, ..Completion::bare(EndpointId(0), end, Ok(())) }
    }

    fn endpoint(&self) -> EndpointId {
        EndpointId(0)
    }
}

#[test]
fn a_schedule_that_is_interrupted_offered_what_was_due_until_then() {
    let (pacing, stop) = ("rate: 100/s, max_in_flight: 100", StopFlag::default());
    let workload = paced("count: 64, size: 1000", 8, "stat: o", pacing, "duration: 20s");
    let limits = (Duration::from_secs(60), 0);
    let (outcome, records) =
        run_with(&Interrupted(&stop), &workload, StageKind::Measure, limits, &stop);
    assert_eq!((outcome.ended_by, records.len()), (EndReason::Stopped, 501));
    // It waited for what was under way, in which nothing was due.
    assert_eq!(outcome.ended.as_ns(), 45 * SECOND);
    let kept = outcome.schedule.unwrap();
    let (from, until) = kept.span.unwrap();
    assert_eq!((kept.offered_count, from), (501, Duration::ZERO));
    assert!((5_000..=5_010).contains(&until.as_millis()), "{until:?}");
}

/// Deletes everything at a rate, on real threads, and returns the hash of what was planned.
fn hash_of_deletes(threads: usize) -> u64 {
    let pacing = "rate: 100k/s, arrivals: poisson, max_in_flight: 30";
    let op = "delete: o, batch: 10";
    let workload = paced("count: 6000, size: 1000", 6, op, pacing, "duration: 10m");
    let clock: SharedClock = Arc::new(RunClock::start());
    let (live, generator) = (Live::new(threads), Arc::new(Generator::new(1)));
    let context = StageContext {
        clock: &clock,
        virtual_time: None,
        stop: &StopFlag::default(),
        live: &live,
        generator: &generator,
        wall_epoch: plimsoll_model::WallTime::from_unix_ns(0),
        begins_at: None,
    };
    let config = EngineConfig { threads, op_timeout: Duration::from_secs(60), retries: 0 };
    let mut kept = KeptOps::default();
    let job = workload.alone(&NullDriver, StageKind::Measure);
    let work = StageWork::of_objects(StageId(0), job);
    let outcome = run_stage(&work, &config, &context, &mut kept).unwrap();
    assert_eq!((kept.0.len(), outcome.ended_by), (600, EndReason::OutOfWork));
    let mut workers: Vec<WorkerId> = kept.0.iter().map(|op| op.worker).collect();
    workers.sort();
    workers.dedup();
    assert_eq!(workers.len(), 6);
    outcome.stream_hash
}

#[test]
fn the_stream_does_not_depend_on_the_threads() {
    let hash = hash_of_deletes(1);
    assert_eq!(hash, hash_of_deletes(2));
    assert_eq!(hash, hash_of_deletes(5));
}

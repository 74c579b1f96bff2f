//! What is cleaned up behind a failed operation is in the time of no operation.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::{Completion, Driver, DriverError, Operation, Session, Settled};
use plimsoll_model::{Clock, EndpointId, ErrorClass, Moment, OpRecord, SharedClock, StageKind};

use crate::instrument_tests::run_at;
use crate::testing::Laid;
use crate::{StageOutcome, StopFlag, VirtualTime};

const MS: u64 = 1_000_000;
/// How long an operation takes, and how long giving up what the first one left.
const SERVICE: Duration = Duration::from_millis(10);
const SETTLING: Duration = Duration::from_secs(3);

/// Fails the operation that begins with the stage, and leaves something to be given up.
struct Leaving(Arc<VirtualTime>);

struct LeavingSession {
    time: Arc<VirtualTime>,
    left: bool,
}

impl Driver for Leaving {
    type Session = LeavingSession;

    fn open_sessions(&self, _: &SharedClock, count: usize) -> Vec<LeavingSession> {
        let session = || LeavingSession { time: Arc::clone(&self.0), left: false };
        (0..count).map(|_| session()).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["leaving".to_owned()]
    }
}

impl Session for LeavingSession {
    async fn execute(&mut self, _: Option<&str>, _: Operation<'_>) -> Completion {
        assert!(!self.left, "it was given up before the next operation");
        let now = self.time.now();
        self.left = now == Moment::EPOCH;
        let result = match self.left {
            true => Err(DriverError::new(ErrorClass::Server, "scripted")),
            false => Ok(()),
        };
        Completion::bare(EndpointId(0), now.after(SERVICE), result)
    }

    fn endpoint(&self) -> EndpointId {
        EndpointId(0)
    }

    async fn settle(&mut self) -> Settled {
        assert!(std::mem::take(&mut self.left), "only failed operations leave something");
        self.time.sleep_until(self.time.now().after(SETTLING)).await;
        Settled { given_up_count: 1, left_count: 0 }
    }
}

/// Runs STATs of one worker or stream for 5 s.
fn measure(pacing: &str) -> (StageOutcome, Vec<OpRecord>) {
    let job = format!("pacing: {pacing}, work: {{objects: [{{stat: o}}]}}");
    let workload = Laid::of("count: 8, size: 1000", 1, &job, "duration: 5s");
    let time = Arc::new(VirtualTime::new());
    let (driver, limits) = (Leaving(Arc::clone(&time)), (Duration::from_secs(60), 0));
    let stop = StopFlag::default();
    let (outcome, mut records) =
        run_at(&time, &driver, &workload, StageKind::Measure, limits, &stop);
    records.sort_by_key(|op| op.intended);
    assert_eq!(outcome.settled, Settled { given_up_count: 1, left_count: 0 });
    assert!(records.iter().all(|op| op.service_time() == SERVICE));
    (outcome, records)
}

#[test]
fn a_closed_loop_goes_on_when_the_session_has_settled() {
    let (outcome, records) = measure("closed");
    assert_eq!((outcome.failed_count, records[0].outcome), (1, ErrorClass::Server));
    assert_eq!(records[0].end.as_ns(), 10 * MS);
    assert!(records[1].start.as_ns() >= 3_010 * MS, "{:?}", records[1]);
    assert_eq!(records[1].intended, records[1].start);
    assert_eq!(records[1].latency(), SERVICE);
}

#[test]
fn an_open_loop_goes_on_with_other_sessions() {
    let (outcome, records) = measure("{open: {rate: 100/s, max_in_flight: 3}}");
    assert_eq!(records.len(), 500);
    assert!(records.iter().all(|op| op.start == op.intended), "nobody waited for it");
    assert_eq!(outcome.schedule.unwrap().late_count, 0);
    // With that one session there is nothing to go out on, as while any operation is under way:
    // what is due meanwhile goes out late, and at once when the session is free.
    let (outcome, records) = measure("{open: {rate: 100/s, max_in_flight: 1}}");
    assert_eq!((records[1].intended.as_ns(), records[1].start.as_ns()), (10 * MS, 3_010 * MS));
    assert!(outcome.schedule.unwrap().late_count > 0);
}

//! What is recorded of an upload in parts that is one operation.

use std::cell::Cell;
use std::time::Duration;

use plimsoll_driver::{Completion, Driver, DriverError, Operation, Session};
use plimsoll_model::{EndpointId, ErrorClass, Moment, OpRecord, SharedClock, StageKind};

use crate::StopFlag;
use crate::instrument_tests::run_with;
use crate::testing::Laid;

/// Request n has sent its body 10 ns after 100 n, if it has one, is answered from 50 ns on and ends
/// after 90 ns. Part `fails` is refused.
struct Timed {
    fails: Option<u32>,
}

struct TimedSession {
    fails: Option<u32>,
    asked: Cell<u64>,
}

impl Driver for Timed {
    type Session = TimedSession;

    fn open_sessions(&self, _: &SharedClock, count: usize) -> Vec<TimedSession> {
        (0..count).map(|_| TimedSession { fails: self.fails, asked: Cell::new(0) }).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["timed".to_owned()]
    }
}

impl Session for TimedSession {
    async fn execute(&mut self, _: Option<&str>, operation: Operation<'_>) -> Completion {
        let begun = 100 * self.asked.replace(self.asked.get() + 1);
        let at = |ns| Moment::from_ns(begun + ns);
        // As of S3: the request that lists the parts has a body, too.
        let has_body =
            matches!(operation, Operation::PutPart { .. } | Operation::CompleteUpload { .. });
        let result = match operation {
            Operation::PutPart { number, .. } if self.fails == Some(number) => {
                Err(DriverError::new(ErrorClass::Server, "scripted"))
            }
            _ => Ok(()),
        };
        Completion {
            last_byte_sent: has_body.then(|| at(10)),
            first_byte: Some(at(50)),
            server_name: Some("a name".into()),
            ..Completion::bare(EndpointId(0), at(90), result)
        }
    }

    fn endpoint(&self) -> EndpointId {
        EndpointId(0)
    }
}

/// Uploads one object in three parts.
fn uploaded(fails: Option<u32>) -> OpRecord {
    let set = "named: {key: 'o{1..1}'}, size: 11MiB, part: 5MiB, touch: true, shared: true";
    let laid = Laid::of(set, 1, "ops: 1, work: {objects: [{put: o}]}", "duration: 1h");
    let (driver, stop) = (Timed { fails }, StopFlag::default());
    let limits = (Duration::from_secs(1), 0);
    let (_, records) = run_with(&driver, &laid, StageKind::Measure, limits, &stop);
    let [whole] = records[..] else { panic!("it is one operation: {records:?}") };
    whole
}

#[test]
fn the_first_byte_of_an_upload_in_parts_is_waited_for_from_its_last_byte_of_content_on() {
    let whole = uploaded(None);
    let [sent, first, end] = [310, 450, 490].map(Moment::from_ns);
    assert_eq!((whole.last_byte_sent, whole.first_byte, whole.end), (Some(sent), Some(first), end));
    assert_eq!(whole.ttfb(), Some(Duration::from_nanos(140)));
}

#[test]
fn an_upload_in_parts_that_fails_had_no_first_byte() {
    let whole = uploaded(Some(2));
    let [sent, end] = [210, 290].map(Moment::from_ns);
    assert_eq!((whole.last_byte_sent, whole.first_byte, whole.end), (Some(sent), None, end));
    assert_eq!((whole.outcome, whole.ttfb()), (ErrorClass::Server, None));
}

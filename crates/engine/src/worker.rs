//! One operation from plan to record: the key, the content, the attempts, the check of what came
//! back.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_driver::{ByteRange, Completion, DriverError, Operation, Session};
use plimsoll_model::{
    Clock, ErrorClass, JobId, Moment, OpKind, OpRecord, SharedClock, StageId, WorkerId,
};
use plimsoll_workload::data::{Content, Generator, Wrong, WrongKind};
use plimsoll_workload::{
    Keys, ObjectRef, Permutation, PlannedOp, PrefixHash, Target, Verify, Workload, delete_order,
};

use crate::clock::Waiting;
use crate::verify::{EntrySet, Given, Taken};

/// The pause before the second attempt; it doubles up to [`RETRY_PAUSE_MAX`].
const RETRY_PAUSE_FIRST: Duration = Duration::from_millis(100);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);

/// What all workers of a stage share.
pub(crate) struct StageFacts {
    pub(crate) workload: Arc<Workload>,
    pub(crate) generator: Arc<Generator>,
    pub(crate) stage: StageId,
    pub(crate) op_timeout: Duration,
    pub(crate) retries: u8,
    pub(crate) clock: SharedClock,
    pub(crate) waiting: Waiting,
}

/// Turns planned operations into finished ones. Keeps the buffers that each operation needs.
pub(crate) struct Doer<'a> {
    facts: &'a StageFacts,
    keys: Keys,
    key: String,
    key_hash: PrefixHash,
    batch: Vec<String>,
    delete_order: Permutation,
    listed: &'a RefCell<Listed>,
    /// What the content was that the last attempt read, if it was wrong.
    wrong: Option<WrongKind>,
}

/// What a listing of each worker's prefix must hold; worked out once a thread.
pub(crate) type Listed = HashMap<WorkerId, EntrySet>;

/// A finished operation with the error it ended in, if it did.
pub(crate) struct Finished {
    pub(crate) record: OpRecord,
    pub(crate) error: Option<DriverError>,
    /// What wrong content that was read is.
    pub(crate) wrong: Option<WrongKind>,
}

impl<'a> Doer<'a> {
    pub(crate) fn new(facts: &'a StageFacts, listed: &'a RefCell<Listed>) -> Self {
        Self {
            facts,
            keys: facts.workload.keys(),
            key: String::new(),
            key_hash: PrefixHash::new(&facts.workload.layout.base),
            batch: Vec::new(),
            delete_order: delete_order(&facts.workload),
            listed,
            wrong: None,
        }
    }

    /// Does `op` of `worker`, with visible retries, and returns its record.
    pub(crate) async fn run<S: Session>(
        &mut self,
        session: &mut S,
        worker: WorkerId,
        op: &PlannedOp,
        intended: Option<Moment>,
    ) -> Finished {
        let now = self.facts.clock.now();
        let intended = intended.unwrap_or(now);
        let start = now.max(intended);
        let mut attempts: u8 = 1;
        loop {
            self.wrong = None;
            let mut completion = self.attempt(session, worker, op, start).await;
            completion.end = completion.end.max(start);
            let class = completion.result.as_ref().map_or_else(|e| e.class, |()| ErrorClass::Ok);
            if !class.is_transient() || attempts > self.facts.retries {
                let times = (intended, start);
                let record = self.record(worker, op, times, &completion, attempts, class);
                return Finished { record, error: completion.result.err(), wrong: self.wrong };
            }
            let pause = RETRY_PAUSE_FIRST.saturating_mul(1 << (attempts - 1).min(4));
            self.facts.waiting.suspend_for(pause.min(RETRY_PAUSE_MAX)).await;
            attempts += 1;
        }
    }

    fn record(
        &self,
        worker: WorkerId,
        op: &PlannedOp,
        (intended, start): (Moment, Moment),
        completion: &Completion,
        attempts: u8,
        outcome: ErrorClass,
    ) -> OpRecord {
        let object = match op.target {
            Target::Object(object, _) => Some(object.id),
            Target::Batch { .. } | Target::Listing => None,
        };
        OpRecord {
            stage: self.facts.stage,
            job: JobId::default(),
            worker,
            kind: op.kind,
            endpoint: completion.endpoint,
            object,
            objects_count: completion.objects_count,
            bytes: completion.bytes,
            intended,
            start,
            first_byte: completion.first_byte.map(|at| at.clamp(start, completion.end)),
            last_byte_sent: completion.last_byte_sent.map(|at| at.clamp(start, completion.end)),
            end: completion.end,
            outcome,
            attempts,
        }
    }

    async fn attempt<S: Session>(
        &mut self,
        session: &mut S,
        worker: WorkerId,
        op: &PlannedOp,
        start: Moment,
    ) -> Completion {
        match (op.kind, op.target) {
            (OpKind::Put, Target::Object(object, _)) => {
                self.keys.write(object.id, &mut self.key);
                let content = self.content(object.version);
                let mut given = Given { content, size: object.size };
                let put = Operation::Put { key: &self.key, content: &mut given };
                bounded(self.facts, session, put, start).await
            }
            (OpKind::Get, Target::Object(object, range)) => {
                self.keys.write(object.id, &mut self.key);
                self.get(session, object, range, start).await
            }
            (OpKind::Stat, Target::Object(object, _)) => {
                self.keys.write(object.id, &mut self.key);
                let stat = Operation::Stat { key: &self.key, version: None };
                let done = bounded(self.facts, session, stat, start).await;
                expect_size(done, object.size)
            }
            (OpKind::Delete, Target::Object(object, _)) => {
                self.batch.resize_with(1, String::new);
                self.keys.write(object.id, &mut self.batch[0]);
                bounded(self.facts, session, Operation::Delete { keys: &self.batch }, start).await
            }
            (OpKind::Delete, Target::Batch { from, count }) => {
                self.batch.resize_with(count as usize, String::new);
                for (position, key) in (from..).zip(&mut self.batch) {
                    let id = self.facts.workload.population_id(self.delete_order.at(position));
                    self.keys.write(id, key);
                }
                bounded(self.facts, session, Operation::Delete { keys: &self.batch }, start).await
            }
            (OpKind::List, _) => self.list(session, worker, start).await,
            (kind, target) => unreachable!("{} of {target:?} is never planned", kind.name()),
        }
    }

    async fn get<S: Session>(
        &mut self,
        session: &mut S,
        object: ObjectRef,
        range: Option<(u64, u64)>,
        start: Moment,
    ) -> Completion {
        let check = self.facts.workload.verify == Verify::EveryByte;
        let (offset, len) = range.unwrap_or((0, object.size));
        let mut taken = Taken::new(check.then(|| self.content(object.version)), offset);
        let range = range.map(|(offset, len)| ByteRange { offset, len });
        let get = Operation::Get { key: &self.key, range, version: None, sink: &mut taken };
        let mut done = bounded(self.facts, session, get, start).await;
        match &done.result {
            Ok(()) if taken.is_error_document() => {
                let message = format!("the success of reading `{}` holds an error", self.key);
                done.result = Err(DriverError::new(ErrorClass::Protocol, message));
            }
            Ok(()) => {
                if let Some(wrong) = taken.judge(&self.key, len) {
                    self.wrong = Some(wrong.kind);
                    done.result = Err(in_class(wrong));
                }
            }
            // The driver knew before we did.
            Err(error) if error.class == ErrorClass::Truncated => {
                let wrong = taken.judge(&self.key, len);
                self.wrong = wrong.map(|wrong| wrong.kind).filter(|kind| kind.is_length());
            }
            Err(_) => {}
        }
        done
    }

    /// Returns what `version` of the object under the present key holds.
    fn content(&self, version: u32) -> Content<'a> {
        self.facts.generator.content(self.key_hash.hash(&self.key), version)
    }

    async fn list<S: Session>(
        &mut self,
        session: &mut S,
        worker: WorkerId,
        start: Moment,
    ) -> Completion {
        let own_prefix = self.keys.prefix_of(worker);
        let expected = *self.listed.borrow_mut().entry(worker).or_insert_with(|| {
            expected_entries(&self.facts.workload, &self.keys, worker, &own_prefix)
        });
        let plimsoll_workload::Activity::List { page_size } = self.facts.workload.activity else {
            unreachable!("listings come from a list workload")
        };
        let mut found = EntrySet::default();
        let list = Operation::List { prefix: &own_prefix, page_size, sink: &mut found };
        let mut done = bounded(self.facts, session, list, start).await;
        if done.result.is_ok() && found != expected {
            let message = if found.count == expected.count {
                format!("the listing of `{own_prefix}` holds other keys than were written")
            } else {
                let (got, want) = (found.count, expected.count);
                format!("the listing of `{own_prefix}` holds {got} entries instead of {want}")
            };
            done.result = Err(DriverError::new(ErrorClass::Corrupt, message));
        }
        done
    }
}

pub(crate) fn in_class(wrong: Wrong) -> DriverError {
    let class = if wrong.kind.is_length() { ErrorClass::Truncated } else { ErrorClass::Corrupt };
    DriverError::new(class, wrong.text)
}

/// The entries below the worker's prefix: its own share, or everything where the prefix is common
/// to all.
fn expected_entries(
    workload: &Workload,
    keys: &Keys,
    worker: WorkerId,
    own_prefix: &str,
) -> EntrySet {
    let mut set = EntrySet::default();
    let mut key = String::new();
    let common = keys.prefix_of(WorkerId(worker.0 ^ 1)) == own_prefix;
    let count = if common { workload.population_count() } else { workload.share_of(worker) };
    for number in 0..count {
        let id =
            if common { workload.population_id(number) } else { workload.share_id(worker, number) };
        keys.write(id, &mut key);
        set.add(&key);
    }
    set
}

fn expect_size(mut done: Completion, size: u64) -> Completion {
    if let (Ok(()), Some(stated)) = (&done.result, done.object_size)
        && stated != size
    {
        let message = format!("the store states {stated} bytes for an object of {size}");
        done.result = Err(DriverError::new(ErrorClass::Corrupt, message));
    }
    done
}

/// Executes `operation`, giving it up when it takes longer than the stage allows.
async fn bounded<S: Session>(
    facts: &StageFacts,
    session: &mut S,
    operation: Operation<'_>,
    start: Moment,
) -> Completion {
    let given_up = match &facts.waiting {
        Waiting::Machine => {
            let executing = session.execute(operation);
            match tokio::time::timeout(facts.op_timeout, executing).await {
                Ok(completion) => return completion,
                Err(_) => facts.clock.now(),
            }
        }
        Waiting::Virtual(time) => {
            let latest = time.now().after(facts.op_timeout);
            // A virtual driver answers at once and says when that will have been.
            let completion = session.execute(operation).await;
            time.sleep_until(completion.end.min(latest)).await;
            if completion.end <= latest {
                return completion;
            }
            latest
        }
    };
    let message = format!("no answer within {} s", facts.op_timeout.as_secs_f64());
    let error = DriverError::new(ErrorClass::Timeout, message);
    Completion::bare(session.endpoint(), given_up.max(start), Err(error))
}

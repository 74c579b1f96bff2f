//! One operation from plan to record: the key, the content, the attempts, the check of what came
//! back.

/// Executes an operation in the bucket that it is to go to.
macro_rules! in_bucket {
    ($executor:ident, $session:ident, $operation:expr, $start:ident) => {{
        let bucket = $executor.bucket();
        let timer = &mut $executor.timer;
        bounded($executor.facts, timer, $session, bucket, $operation, $start).await
    }};
}

mod archives;
mod bounded;
mod built;
mod shared;

use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_driver::{ByteRange, Completion, DriverError, Operation, Session};
use plimsoll_model::{ErrorClass, Moment, ObjectId, OpKind, OpRecord, WorkerId, WrongKind};
use plimsoll_workload::data::{Content, VERSIONS};
use plimsoll_workload::objects::{Below, ObjectRef, ObjectSet, PlannedOp, RemovalOrder, Subject};
use plimsoll_workload::plan::{OpAct, SetIndex, Work};
use plimsoll_workload::{Verify, hash_text};

use self::bounded::{OpTimer, bounded};
use self::built::Built;
use crate::clock::STOP_CHECK;
use crate::job::JobFacts;
use crate::records::Finished;
use crate::source::{Issued, OpNames, UploadParts};
use crate::verify::{CheckingSink, Expected, FoundEntries, SourceContent, in_class};

/// The pause before the second attempt; it doubles up to [`RETRY_PAUSE_MAX`].
const RETRY_PAUSE_FIRST: Duration = Duration::from_millis(100);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Turns planned operations into finished ones. Keeps the buffers that each operation needs.
pub(crate) struct Executor<'a> {
    facts: &'a JobFacts<'a>,
    /// When the worker's time is up, if a time says so: nothing is tried again after it.
    deadline: Option<Moment>,
    timer: OpTimer,
    key: String,
    /// The set that the present operation is about, and the bucket, 0-based among those of the set.
    place: (SetIndex, u32),
    /// The member that it is about, where it is about one.
    member: ObjectId,
    batch: Vec<String>,
    /// The members of the batch, bucket by bucket.
    batch_members: Vec<(u32, ObjectId)>,
    /// The order in which a set is removed, of the set that it was last asked of.
    removal: Option<(SetIndex, RemovalOrder)>,
    listings: &'a RefCell<Listings>,
    /// What the content was that the last attempt read, if it was wrong.
    wrong: Option<WrongKind>,
    /// Whether the last attempt read what could not be checked.
    is_unchecked: bool,
    /// The archive that the present operation writes.
    archive: Option<Built>,
}

/// What an operation that lists must find below each prefix in each bucket, `None` where that is
/// not known; worked out once a thread.
pub(crate) type Listings = HashMap<(u16, Below, u32), Option<Rc<Expected>>>;

impl<'a> Executor<'a> {
    pub(crate) fn new(
        facts: &'a JobFacts<'a>,
        listings: &'a RefCell<Listings>,
        deadline: Option<Moment>,
    ) -> Self {
        Self {
            facts,
            deadline,
            timer: OpTimer::default(),
            key: String::new(),
            place: (SetIndex(0), 0),
            member: ObjectId::new(WorkerId(0), 0),
            batch: Vec::new(),
            batch_members: Vec::new(),
            removal: None,
            listings,
            wrong: None,
            is_unchecked: false,
            archive: None,
        }
    }

    /// Does an operation, with visible retries, and returns its record. Nothing is tried again when
    /// the stage is over or stopped.
    pub(crate) async fn run<S: Session>(&mut self, session: &mut S, issued: &Issued) -> Finished {
        self.place = (issued.op.set, 0);
        if let Subject::Archive(id) = issued.op.subject {
            self.build_archive(id);
        }
        let now = self.facts.clock.now();
        let intended = issued.intended.unwrap_or(now);
        let start = now.max(intended);
        let attempts_max = self.facts.retries.saturating_add(1);
        let (mut attempts, mut resent): (u8, u8) = (1, 0);
        loop {
            (self.wrong, self.is_unchecked) = (None, false);
            self.timer.begin(if attempts == 1 { start } else { self.facts.clock.now() });
            let mut completion = self.attempt(session, issued, start).await;
            completion.end = completion.end.max(start);
            resent = resent.saturating_add(completion.resent_count);
            let class = completion.result.as_ref().map_or_else(|e| e.class, |()| ErrorClass::Ok);
            let is_last = !class.is_transient() || attempts == attempts_max;
            if is_last || !self.rests_before_retry(attempts).await {
                let times = (intended, start);
                let sent = attempts.saturating_add(resent);
                let record = self.record(issued, times, &completion, sent, class);
                let Completion { server_name, result, .. } = completion;
                let Self { wrong, is_unchecked, .. } = *self;
                return Finished { record, error: result.err(), wrong, is_unchecked, server_name };
            }
            attempts += 1;
        }
    }

    /// Pauses after so many attempts; returns false where the stage is over before the next.
    async fn rests_before_retry(&self, attempts: u8) -> bool {
        let facts = self.facts;
        let pause = RETRY_PAUSE_FIRST.saturating_mul(1 << (attempts - 1).min(4));
        let until = facts.clock.now().after(pause.min(RETRY_PAUSE_MAX));
        if self.deadline.is_some_and(|deadline| until >= deadline) {
            return false;
        }
        loop {
            let now = facts.clock.now();
            if facts.stops.reason().is_some() {
                return false;
            }
            if now >= until {
                return true;
            }
            facts.waiting.suspend_for(until.since(now).min(STOP_CHECK)).await;
        }
    }

    fn record(
        &self,
        issued: &Issued,
        (intended, start): (Moment, Moment),
        completion: &Completion,
        attempts: u8,
        outcome: ErrorClass,
    ) -> OpRecord {
        let (objects_count, bytes) = match &self.archive {
            // What the store is to make of it counts, not what it takes to say so.
            Some(archive) if outcome.is_ok() => archive.counts(&self.facts.work.work),
            _ => (completion.objects_count, completion.bytes),
        };
        OpRecord {
            stage: self.facts.stage,
            job: self.facts.job,
            worker: issued.number,
            kind: issued.op.kind,
            endpoint: self.facts.endpoint(completion.endpoint),
            object: issued.op.subject.object_id(),
            objects_count,
            bytes,
            intended,
            start,
            assigned: completion.assigned.map(|at| at.clamp(start, completion.end)),
            first_byte: completion.first_byte.map(|at| at.clamp(start, completion.end)),
            last_byte_sent: completion.last_byte_sent.map(|at| at.clamp(start, completion.end)),
            end: completion.end,
            outcome,
            attempts,
            is_measured: true,
        }
    }

    async fn attempt<S: Session>(
        &mut self,
        session: &mut S,
        issued: &Issued,
        start: Moment,
    ) -> Completion {
        let Issued { op, names, .. } = issued;
        match (op.kind, op.subject) {
            (OpKind::List, _) => self.list(session, op, start).await,
            (OpKind::Delete, Subject::Batch { from, count }) => {
                self.fill_batch(from, count);
                self.delete_batch(session, start).await
            }
            (kind, Subject::Object(object, range)) => {
                self.go_to(object.id);
                self.whole(session, (kind, object, range), names, start).await
            }
            (kind, Subject::Part { object, number, offset, len }) => {
                self.go_to(object);
                self.part(session, (kind, number, offset, len), names, start).await
            }
            (_, Subject::Member(object)) => self.member(session, object, start).await,
            (_, Subject::Archive(id)) => self.put_archive(session, id, start).await,
            (_, Subject::Copies(object)) => self.fan_out(session, object, start).await,
            (kind, subject) => unreachable!("{} of {subject:?} is never planned", kind.name()),
        }
    }

    /// Returns the set that the present operation is about.
    fn set(&self) -> &'a ObjectSet {
        let facts: &'a JobFacts<'a> = self.facts;
        facts.work.set(self.place.0)
    }

    /// Returns the bucket that the present operation goes to, where it is not the target's own.
    fn bucket(&self) -> Option<&'a str> {
        self.set().buckets.name(self.place.1)
    }

    /// Makes a member's key the present one, and its bucket.
    fn go_to(&mut self, id: ObjectId) {
        let set = self.set();
        set.keys.write(id, &mut self.key);
        self.place.1 = set.bucket_of(id);
        self.member = id;
    }

    /// Fills the batch with the keys at these positions of the order in which the set is removed;
    /// with the names that the target gave, where it knows members by those. What has no name was
    /// never written.
    fn fill_batch(&mut self, from: u64, count: u32) {
        let (facts, index) = (self.facts, self.place.0);
        let order = match self.removal {
            Some((of, order)) if of == index => order,
            _ => facts.work.removal_order(index),
        };
        self.removal = Some((index, order));
        let set = self.set();
        self.batch_members.clear();
        let ids = (from..).take(count as usize).map(|at| facts.work.removed(index, &order, at));
        self.batch_members.extend(ids.map(|id| (set.bucket_of(id), id)));
        let name = |id| facts.server_names.as_ref()?.get(index, id, 0);
        if set.is_named {
            self.batch_members.retain(|(_, id)| name(*id).is_some());
        }
        self.batch_members.sort_by_key(|(bucket, _)| *bucket);
        self.batch.resize_with(self.batch_members.len(), String::new);
        for ((_, id), key) in self.batch_members.iter().zip(&mut self.batch) {
            match name(*id).filter(|_| set.is_named) {
                Some(name) => name.clone_into(key),
                None => set.keys.write(*id, key),
            }
        }
    }

    /// Deletes the batch, with a request for each bucket that it lies in: a request that deletes
    /// is about one. It is as a whole what the first failure makes of it.
    async fn delete_batch<S: Session>(&mut self, session: &mut S, start: Moment) -> Completion {
        let (mut begin, mut whole) = (0, None);
        while let Some(&(bucket, _)) = self.batch_members.get(begin) {
            let len = self.batch_members[begin..].partition_point(|(of, _)| *of == bucket);
            self.place.1 = bucket;
            let keys = &self.batch[begin..begin + len];
            let done = in_bucket!(self, session, Operation::Delete { keys }, start);
            whole = Some(match whole {
                None => done,
                Some(before) => together(before, done),
            });
            begin += len;
        }
        // Of members that were never written none is there to be removed.
        whole
            .unwrap_or_else(|| Completion::bare(session.endpoint(), self.facts.clock.now(), Ok(())))
    }

    /// Does an operation on the object under the present key, or on a range of it.
    async fn whole<S: Session>(
        &mut self,
        session: &mut S,
        (kind, object, range): (OpKind, ObjectRef, Option<(u64, u64)>),
        names: &OpNames,
        start: Moment,
    ) -> Completion {
        let (facts, key) = (self.facts, &self.key);
        let (offset, size) = range.unwrap_or((0, object.size.unwrap_or(0)));
        // Only who writes needs to know what it holds, which takes a hash of the key.
        let mut given;
        let operation = match kind {
            OpKind::Get => {
                let version = names.as_version();
                return self.get(session, (object, version), range, start).await;
            }
            OpKind::Put | OpKind::Post | OpKind::Append => {
                let (content, guard) = (self.content(object.version), self.guard(size));
                given = SourceContent { content, offset, size, guard };
                if kind == OpKind::Put && self.parts_of(size).is_some() {
                    return self.put_in_parts(session, given, start).await;
                }
                writing(kind, key, offset, &mut given)
            }
            OpKind::Delete if names.as_version().is_none() => {
                self.batch.resize_with(1, String::new);
                self.batch[0].clone_from(&self.key);
                Operation::Delete { keys: &self.batch }
            }
            OpKind::Stat => Operation::Stat { key, version: names.as_version() },
            OpKind::Delete => {
                let version = names.as_version().expect("the other deletes came before");
                Operation::DeleteVersion { key, version }
            }
            OpKind::Retention => {
                let Work::Retention { hold, .. } = facts.work.work else {
                    unreachable!("objects are held by work on retention")
                };
                let until = facts.wall_epoch.after(start.since(Moment::EPOCH)).after(hold);
                Operation::Retain { key, version: names.as_version(), until }
            }
            OpKind::CreateUpload => Operation::CreateUpload { key },
            OpKind::AbortUpload => Operation::AbortUpload { key, upload: names.as_upload() },
            OpKind::CompleteUpload => {
                let OpNames::Parts(of) = names else {
                    unreachable!("an upload is completed by its name")
                };
                let UploadParts { upload, parts } = &**of;
                Operation::CompleteUpload { key, upload, parts }
            }
            _ => unreachable!("{} of an object is never planned", kind.name()),
        };
        let mut done = in_bucket!(self, session, operation, start);
        match kind {
            OpKind::Stat => expect_size(&mut done, object.size),
            OpKind::Put if facts.work.is_versioned(self.place.0) => {
                let what = match self.set().is_named {
                    true => "name of the file",
                    false => "name of the version; versioning must be on for the bucket",
                };
                expect_name(&mut done, &self.key, what);
            }
            OpKind::CreateUpload => expect_name(&mut done, &self.key, "name of the upload"),
            _ => {}
        }
        done
    }

    /// Writes or reads one part of the object under the present key.
    async fn part<S: Session>(
        &mut self,
        session: &mut S,
        (kind, number, offset, bytes): (OpKind, u32, u64, u64),
        names: &OpNames,
        start: Moment,
    ) -> Completion {
        if kind == OpKind::PutPart {
            let content = self.content(0);
            let mut given = SourceContent { content, offset, size: bytes, guard: None };
            let (key, upload) = (&self.key, names.as_upload());
            let put = Operation::PutPart { key, upload, number, content: &mut given };
            let mut done = in_bucket!(self, session, put, start);
            expect_name(&mut done, &self.key, "name of the part");
            return done;
        }
        let mut taken = CheckingSink::new(self.checked_content(0), offset, Some(bytes));
        let get = Operation::GetPart { key: &self.key, number, sink: &mut taken };
        let mut done = in_bucket!(self, session, get, start);
        self.judge(&mut done, &taken);
        done
    }

    async fn get<S: Session>(
        &mut self,
        session: &mut S,
        (object, version): (ObjectRef, Option<&str>),
        range: Option<(u64, u64)>,
        start: Moment,
    ) -> Completion {
        let shared = self.set().shared.as_ref();
        let verify = self.facts.work.verify(self.place.0);
        if let Some(shared) = shared.filter(|_| verify != Verify::Nothing) {
            let is_certain = verify == Verify::EveryByte;
            return self.get_shared(session, (shared, is_certain), range, start).await;
        }
        let (offset, len) = match range {
            // How large a member is may not be known, then it may end before the range does.
            Some((offset, len)) => (offset, Some(len).filter(|_| shared.is_none())),
            None => (0, object.size),
        };
        let content = self.checked_content(object.version).filter(|_| !object.is_doubtful());
        let is_known = content.is_some();
        let mut taken = CheckingSink::new(content, offset, len);
        let range = range.map(|(offset, len)| ByteRange { offset, len });
        let get = Operation::Get { key: &self.key, range, version, sink: &mut taken };
        let mut done = in_bucket!(self, session, get, start);
        self.is_unchecked = object.is_doubtful() || done.is_unchecked && !is_known;
        self.judge(&mut done, &taken);
        done
    }

    fn error_document(&self) -> DriverError {
        let message = format!("the success of reading `{}` holds an error", self.key);
        DriverError::new(ErrorClass::Protocol, message)
    }

    /// Fails the completion of reading what is under the present key where the bytes that came were
    /// wrong.
    fn judge(&mut self, done: &mut Completion, taken: &CheckingSink<'_>) {
        match &done.result {
            Ok(()) if taken.is_error_document() => done.result = Err(self.error_document()),
            Ok(()) => {
                if let Some(wrong) = taken.judge(&self.key) {
                    self.wrong = Some(wrong.kind);
                    done.result = Err(in_class(wrong));
                }
            }
            // The driver knew before we did.
            Err(error) if error.class == ErrorClass::Truncated => {
                let wrong = taken.judge(&self.key);
                self.wrong = wrong.map(|wrong| wrong.kind).filter(|kind| kind.is_length());
            }
            Err(_) => {}
        }
    }

    /// Returns what a read of `version` under the present key is checked against, if it is.
    fn checked_content(&self, version: u32) -> Option<Content<'a>> {
        let check = self.facts.work.verify(self.place.0) == Verify::EveryByte;
        check.then(|| self.content(version))
    }

    /// Returns what `version` of the object under the present key holds.
    fn content(&self, version: u32) -> Content<'a> {
        let facts: &'a JobFacts<'a> = self.facts;
        let index = self.place.0;
        if let Some(start) = self.set().file_start(self.member) {
            return facts.generator(index).content_from(start);
        }
        let mut hash = facts.key_hashes[index.0].hash(&self.key);
        if let Some(bucket) = self.set().bucket_of_content(self.place.1) {
            hash ^= hash_text(bucket).rotate_left(1);
        }
        facts.generator(index).content(hash, version % VERSIONS)
    }

    async fn list<S: Session>(
        &mut self,
        session: &mut S,
        op: &PlannedOp,
        start: Moment,
    ) -> Completion {
        let Subject::Listing { below, bucket, op: number } = op.subject else {
            unreachable!("a listing is of a prefix")
        };
        let at = usize::from(number);
        let Listing { page, pages, versions, account } =
            Listing::of(&self.facts.work.work, at).expect("the operation is a listing");
        self.place.1 = bucket;
        let expected = {
            let mut listings = self.listings.borrow_mut();
            let expected = listings.entry((number, below, bucket)).or_insert_with(|| {
                let listed = self.facts.work.listed_below(op.set, at, (below, bucket))?;
                Some(Rc::new(Expected::new(self.set(), &listed)))
            });
            expected.clone()
        };
        let mut found = FoundEntries::new(expected.as_deref());
        let prefix = self.facts.work.listed_prefix(op.set, at, below);
        let (prefix, page_size, sink) = (&*prefix, page.get(), &mut found);
        let list = match versions {
            false => Operation::List { prefix, page_size, pages_max: pages, sink },
            true => Operation::ListVersions { prefix, page_size, pages_max: pages, sink },
        };
        let bucket = if account { Some("") } else { self.bucket() };
        let timer = &mut self.timer;
        let mut done = bounded(self.facts, timer, session, bucket, list, start).await;
        let most = pages.map_or(u64::MAX, |pages| u64::from(pages.get()) * u64::from(page.get()));
        if let (Ok(()), Some(wrong)) = (&done.result, found.judge(prefix, most)) {
            done.result = Err(wrong);
        }
        done
    }
}

/// Returns the operation of that kind which writes content at an offset.
fn writing<'o>(
    kind: OpKind,
    key: &'o str,
    offset: u64,
    content: &'o mut SourceContent<'_>,
) -> Operation<'o> {
    match kind {
        OpKind::Put => Operation::Put { key, content },
        OpKind::Post => Operation::Post { key, content },
        _ => Operation::Append { key, offset, content },
    }
}

/// How a listing is read.
struct Listing {
    page: NonZeroU32,
    pages: Option<NonZeroU32>,
    versions: bool,
    account: bool,
}

impl Listing {
    /// Returns how operation `at` of some work lists, where it does.
    fn of(work: &Work, at: usize) -> Option<Self> {
        match work {
            Work::Objects(ops) => match ops[at].act {
                OpAct::List { page, pages, versions, account, .. } => {
                    Some(Self { page, pages, versions, account })
                }
                _ => None,
            },
            // A trace does not tell what was listed.
            Work::Replay { .. } => Some(Self {
                page: NonZeroU32::new(1_000)?,
                pages: Some(NonZeroU32::MIN),
                versions: false,
                account: false,
            }),
            _ => None,
        }
    }
}

/// Returns two requests of one operation as one. Both moments are those of the first: between one
/// of each no time would lie, or one that nobody waited.
fn together(before: Completion, after: Completion) -> Completion {
    Completion {
        first_byte: before.first_byte,
        last_byte_sent: before.last_byte_sent,
        bytes: before.bytes + after.bytes,
        objects_count: before.objects_count + after.objects_count,
        resent_count: before.resent_count.saturating_add(after.resent_count),
        result: before.result.and(after.result),
        ..after
    }
}

/// Fails a look at an object whose size is another.
fn expect_size(done: &mut Completion, size: Option<u64>) {
    if let (Ok(()), Some(stated), Some(size)) = (&done.result, done.object_size, size)
        && stated != size
    {
        let message = format!("the store states {stated} bytes for an object of {size}");
        done.result = Err(DriverError::new(ErrorClass::Corrupt, message));
    }
}

/// Fails a write that the store gave no name to, as nothing can be done with what came of it.
fn expect_name(done: &mut Completion, key: &str, what: &str) {
    if done.result.is_ok()
        && done.server_name.as_ref().is_none_or(|server_name| server_name.is_empty())
    {
        let message = format!("writing `{key}` gave no {what}");
        done.result = Err(DriverError::new(ErrorClass::Protocol, message));
    }
}

#[cfg(test)]
#[path = "executor_tests.rs"]
mod tests;

//! A scripted store in virtual time, in one process with who uses it.
//!
//! It keeps real bytes. Every call returns at once with a [`Completion`] whose moments lie in the
//! future of the clock; who calls waits until then. Calls must come in order of time.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use plimsoll_driver::{
    ByteRange, Completion, ContentSink, ContentSource, Driver, DriverError, EntrySink, Operation,
    Session,
};
use plimsoll_model::{Ability, EndpointId, ErrorClass, Moment, OpKind, SharedClock, WallTime};
use s3s::dto::Range;

use crate::behaviour::{Act, Behaviour, Lie, Request, Verdict, WRONG_LENGTH_EXTRA};
use crate::digests::Tag;
use crate::extent::Extent;
use crate::ledger::Ledger;
use crate::listing::ListQuery;
use crate::misbehave::{Found, Wanted, class_of_page, told_page};
use crate::store::{Condition, Object, Store, VersionId};

const ENDPOINT: EndpointId = EndpointId(0);

/// The bucket that all objects lie in; keys of other buckets begin with their names.
const BUCKET: &str = "";

/// When everything was written: the driver tells nobody.
const THEN: WallTime = WallTime::from_unix_ns(0);

/// A scripted store in virtual time; a clone is the same store.
#[derive(Clone)]
pub struct ScriptedDriver {
    behaviour: Arc<Mutex<Behaviour>>,
    store: Arc<Store>,
}

/// A session of [`ScriptedDriver`].
pub struct ScriptedSession {
    driver: ScriptedDriver,
    clock: SharedClock,
}

impl ScriptedDriver {
    /// What it can do.
    const ABILITIES: [Ability; 8] = [
        Ability::Get,
        Ability::Ranges,
        Ability::Put,
        Ability::Stat,
        Ability::Delete,
        Ability::DeleteMany,
        Ability::List,
        Ability::Buckets,
    ];

    /// Returns an empty store that behaves so.
    pub fn new(behaviour: Behaviour) -> Self {
        let store = Store::new(u64::MAX, behaviour.tells_lies());
        store.create_bucket(BUCKET, THEN, false).expect("the store is empty");
        Self { behaviour: Arc::new(Mutex::new(behaviour)), store: Arc::new(store) }
    }

    /// Returns another way to the same objects, with a behaviour of its own: for who has a clock of
    /// his own, as calls must come in order of time. Neither may tell lies.
    #[must_use]
    pub fn beside(&self, behaviour: Behaviour) -> Self {
        Self { behaviour: Arc::new(Mutex::new(behaviour)), store: Arc::clone(&self.store) }
    }

    /// Begins with the script; see [`Behaviour::resting`].
    pub fn begin(&self, now: Moment) {
        self.behaviour().begin(now);
    }

    /// Returns what was truly done so far.
    pub fn ledger(&self) -> Ledger {
        self.behaviour().ledger().clone()
    }

    fn behaviour(&self) -> MutexGuard<'_, Behaviour> {
        self.behaviour.lock().expect("nobody panics while asking the script")
    }
}

/// Returns a key as the store keeps it.
fn in_bucket<'k>(bucket: Option<&str>, key: &'k str) -> Cow<'k, str> {
    bucket.map_or(Cow::Borrowed(key), |bucket| format!("{bucket}/{key}").into())
}

impl Driver for ScriptedDriver {
    type Session = ScriptedSession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<ScriptedSession> {
        let session = || ScriptedSession { driver: self.clone(), clock: Arc::clone(clock) };
        (0..count).map(|_| session()).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["scripted".to_owned()]
    }

    fn offers(&self) -> Option<&'static [Ability]> {
        Some(&Self::ABILITIES)
    }
}

impl Session for ScriptedSession {
    async fn execute(&mut self, bucket: Option<&str>, operation: Operation<'_>) -> Completion {
        let now = self.clock.now();
        let store = &self.driver;
        let whole = |key| in_bucket(bucket, key);
        match operation {
            Operation::Put { key, content } => {
                let done = store.put(now, &whole(key), content);
                // It stands in for stores that name what is written, too; its names are the keys.
                let server_name = done.result.is_ok().then(|| key.into());
                Completion { server_name, ..done }
            }
            Operation::Get { key, range, sink, .. } => store.get(now, &whole(key), range, sink),
            Operation::Stat { key, .. } => store.stat(now, &whole(key)),
            Operation::DeleteVersion { key, .. } => store.delete(now, &[whole(key).into_owned()]),
            Operation::Delete { keys } if bucket.is_none() => store.delete(now, keys),
            Operation::Delete { keys } => {
                let keys: Vec<String> = keys.iter().map(|key| whole(key).into_owned()).collect();
                store.delete(now, &keys)
            }
            Operation::List { prefix, page_size, pages_max, sink } => {
                let cut = bucket.map_or(0, |name| name.len() + 1);
                let entries_max =
                    pages_max.map_or(usize::MAX, |pages| page_size as usize * pages.get() as usize);
                store.list(now, (&whole(prefix), cut, entries_max), sink)
            }
            _ => Completion::bare(ENDPOINT, now, Err(DriverError::unsupported())),
        }
    }

    fn endpoint(&self) -> EndpointId {
        ENDPOINT
    }
}

impl ScriptedDriver {
    fn put(&self, now: Moment, key: &str, content: &mut dyn ContentSource) -> Completion {
        let size = content.size();
        let len = usize::try_from(size).expect("what is written fits into memory");
        let mut bytes = vec![0; len];
        content.fill(0, &mut bytes);
        let bytes = Bytes::from(bytes);
        let honest = ErrorClass::Ok;
        let request = Request { kind: OpKind::Put, key, content_bytes: size, honest };
        let verdict = self.behaviour().decide(now, &request, &mut |lie, _| {
            let held = || self.store.get(BUCKET, key);
            let changes = || held().map_or(true, |held| held.content.whole() != bytes);
            (lie == Lie::LostWrite && changes()).then_some(ErrorClass::Ok)
        });
        match verdict.act {
            Act::Serve => self.keep(key, bytes),
            Act::Lie(_) => self.store.lose_write(BUCKET, key),
            _ => {}
        }
        let sent = Some(now.min(verdict.done));
        let done = Completion { bytes: size, ..completed(&verdict, fault(verdict.act)) };
        Completion { last_byte_sent: sent, ..done }
    }

    fn keep(&self, key: &str, content: Bytes) {
        let room = self.store.reserve(key, content.len() as u64, None);
        // No client of this driver sees a tag, so it costs no pass over the content.
        let tag = Tag::Crc64 { crc: [0; 8], size_bytes: content.len() as u64 };
        let object = Object {
            content: content.into(),
            tag,
            modified: THEN,
            attributes: None,
            part_ends: None,
            version: VersionId::NULL,
        };
        let kept =
            room.and_then(|room| self.store.put(BUCKET, key, object, Condition::Always, room));
        kept.expect("the bucket is there, and has room for all");
    }

    /// Asks the script about a read, and returns its verdict with the object that the client sees.
    fn read(&self, now: Moment, kind: OpKind, wanted: &Wanted<'_>) -> (Verdict, Found) {
        let found = self.store.get(BUCKET, wanted.key);
        let mut told = None;
        let request = wanted.request(kind, &found);
        let verdict = self.behaviour().decide(now, &request, &mut |lie, salt| {
            let (tale, class) = wanted.tale(kind, &found, lie, salt)?;
            told = Some(tale);
            Some(class)
        });
        match verdict.act {
            Act::Lie(_) => (verdict, told.expect("a lie is told only after it was made ready")),
            _ => (verdict, found),
        }
    }

    fn wanted<'a>(&'a self, key: &'a str, extent: Extent) -> Wanted<'a> {
        Wanted { store: &self.store, bucket: BUCKET, key, version: None, extent }
    }

    fn get(
        &self,
        now: Moment,
        key: &str,
        range: Option<ByteRange>,
        sink: &mut dyn ContentSink,
    ) -> Completion {
        let wanted = self.wanted(key, range.map_or(Extent::Whole, extent));
        let (verdict, found) = self.read(now, OpKind::Get, &wanted);
        let span = found.as_ref().ok().and_then(|object| wanted.span_of(object));
        let whole = found.as_ref().map_or_else(|_| Bytes::new(), |object| object.content.whole());
        let part = &whole[span.clone().unwrap_or_default()];
        match verdict.act {
            Act::Serve | Act::Lie(_) => match (found, span) {
                (Ok(_), Some(_)) => give(&verdict, sink, part, whole.len()),
                (Ok(_), None) => completed(&verdict, Err(beyond_the_end())),
                (Err(_), _) => completed(&verdict, Err(not_there(key))),
            },
            Act::HalfBody => {
                let given = give(&verdict, sink, &part[..part.len() / 2], whole.len());
                Completion { objects_count: 0, result: fault(verdict.act), ..given }
            }
            Act::WrongLength => {
                let mut long = part.to_vec();
                let extra = 1 + verdict.salt % WRONG_LENGTH_EXTRA;
                long.extend(verdict.salt.to_le_bytes().iter().cycle().take(extra as usize));
                let given = give(&verdict, sink, &long, long.len());
                Completion { objects_count: 0, result: fault(verdict.act), ..given }
            }
            act => completed(&verdict, fault(act)),
        }
    }

    fn stat(&self, now: Moment, key: &str) -> Completion {
        let (verdict, found) = self.read(now, OpKind::Stat, &self.wanted(key, Extent::Whole));
        match (verdict.act, found) {
            (Act::Serve | Act::Lie(_), Ok(object)) => {
                let object_size = Some(object.content.len() as u64);
                Completion { object_size, ..completed(&verdict, Ok(())) }
            }
            (Act::Serve | Act::Lie(_), Err(_)) => completed(&verdict, Err(not_there(key))),
            (act, _) => completed(&verdict, fault(act)),
        }
    }

    fn delete(&self, now: Moment, keys: &[String]) -> Completion {
        let key = keys.first().map_or("", String::as_str);
        let honest = ErrorClass::Ok;
        let request = Request { kind: OpKind::Delete, key, content_bytes: 0, honest };
        let verdict = self.behaviour().decide(now, &request, &mut |_, _| {
            let is_there = |key: &String| self.store.get(BUCKET, key).is_ok();
            keys.iter().any(is_there).then_some(ErrorClass::Ok)
        });
        if verdict.act == Act::Serve {
            for key in keys {
                let deleted = self.store.delete(BUCKET, key, Condition::Always, THEN);
                deleted.expect("the bucket is there, and keeps no versions");
            }
        }
        let done = completed(&verdict, fault(verdict.act));
        let objects_count = if done.result.is_ok() { keys.len() as u32 } else { 0 };
        Completion { objects_count, ..done }
    }

    /// Lists the first `limit` objects below `prefix`, without the first `cut` bytes of each key. A
    /// lie is about one of these.
    fn list(
        &self,
        now: Moment,
        (prefix, cut, limit): (&str, usize, usize),
        sink: &mut dyn EntrySink,
    ) -> Completion {
        let query = ListQuery { prefix, delimiter: "", from: "", limit };
        let page = self.store.list(BUCKET, &query).expect("the bucket is there");
        let honest = ErrorClass::Ok;
        let request = Request { kind: OpKind::List, key: prefix, content_bytes: 0, honest };
        let verdict =
            self.behaviour().decide(now, &request, &mut |lie, _| class_of_page(Some(&page), lie));
        let told = match verdict.act {
            Act::Serve => page,
            Act::Lie(lie) => told_page(&self.store, BUCKET, &query, page, (lie, verdict.salt))
                .expect("the bucket is there"),
            act => {
                sink.restart();
                return completed(&verdict, fault(act));
            }
        };
        sink.restart();
        for (key, object) in &told.objects {
            sink.entry(&key[cut..], object.content.len() as u64);
        }
        let objects_count = told.objects.len() as u32;
        Completion { objects_count, ..completed(&verdict, Ok(())) }
    }
}

fn extent(range: ByteRange) -> Extent {
    let ByteRange { offset: first, len } = range;
    Extent::Range(Range::Int { first, last: Some(first.saturating_add(len - 1)) })
}

fn completed(verdict: &Verdict, result: Result<(), DriverError>) -> Completion {
    let is_ok = result.is_ok();
    // Of an answer that breaks off or never comes, no first byte is known.
    let silent = matches!(verdict.act, Act::Silence | Act::ResetBefore);
    Completion {
        first_byte: (!silent).then_some(verdict.first_byte),
        objects_count: u32::from(is_ok),
        ..Completion::bare(ENDPOINT, verdict.done, result)
    }
}

fn give(verdict: &Verdict, sink: &mut dyn ContentSink, content: &[u8], size: usize) -> Completion {
    sink.restart();
    sink.accept(content);
    let done = completed(verdict, Ok(()));
    Completion { bytes: content.len() as u64, object_size: Some(size as u64), ..done }
}

/// Returns the error that an act is to its client.
fn fault(act: Act) -> Result<(), DriverError> {
    let class = act.fault_class();
    match act {
        Act::Serve | Act::Lie(_) => Ok(()),
        Act::Status { status, code } => Err(DriverError::with_status(class, status, code)),
        Act::ResetBefore => Err(DriverError::new(class, "the connection was reset")),
        Act::HalfBody => Err(DriverError::new(class, "the connection ended within the content")),
        Act::WrongLength => Err(DriverError::new(class, "the answer is longer than the object")),
        Act::ErrorInSuccess => {
            Err(DriverError::with_status(class, 200, "the answer 200 holds an error"))
        }
        Act::Silence => Err(DriverError::new(class, "no answer ever comes")),
        Act::Io => unreachable!("objects have no medium of their own"),
    }
}

fn not_there(key: &str) -> DriverError {
    DriverError::with_status(ErrorClass::NotFound, 404, format!("no object `{key}`"))
}

fn beyond_the_end() -> DriverError {
    DriverError::with_status(ErrorClass::Client, 416, "the range is beyond the object")
}

#[cfg(test)]
mod tests;

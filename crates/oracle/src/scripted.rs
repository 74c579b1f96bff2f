//! A scripted store in virtual time, in one process with who uses it.
//!
//! It keeps real bytes. Every call returns at once with a [`Completion`] whose moments lie in the
//! future of the clock; who calls waits until then. Calls must come in order of time.

mod objects;

use std::borrow::Cow;
use std::iter;
use std::sync::{Arc, Mutex, MutexGuard};

use plimsoll_driver::{
    ByteRange, Completion, ContentSink, ContentSource, Driver, DriverError, EntrySink, Operation,
    Session,
};
use plimsoll_model::{Ability, EndpointId, ErrorClass, Moment, OpKind, SharedClock};

use self::objects::{Bytes, Objects};
use crate::behaviour::{Act, Behaviour, Lie, Request, Verdict, WRONG_LENGTH_EXTRA, spoil};
use crate::ledger::Ledger;

const ENDPOINT: EndpointId = EndpointId(0);

/// A scripted store in virtual time; a clone is the same store.
#[derive(Clone, Debug)]
pub struct ScriptedDriver {
    store: Arc<Mutex<Store>>,
}

/// A session of [`ScriptedDriver`].
pub struct ScriptedSession {
    store: Arc<Mutex<Store>>,
    clock: SharedClock,
}

#[derive(Debug)]
struct Store {
    behaviour: Behaviour,
    objects: Arc<Mutex<Objects>>,
}

/// What a lie will say, made ready while it is decided whether it is told.
enum Reply {
    Nothing,
    Content(Vec<u8>),
    /// The state before the last write.
    Before(Option<Bytes>),
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
        let objects = Arc::new(Mutex::new(Objects::new(behaviour.tells_lies())));
        Self { store: Arc::new(Mutex::new(Store { behaviour, objects })) }
    }

    /// Returns another way to the same objects, with a behaviour of its own: for who has a clock of
    /// his own, as calls must come in order of time. Neither may tell lies.
    #[must_use]
    pub fn beside(&self, behaviour: Behaviour) -> Self {
        let objects = Arc::clone(&lock(&self.store).objects);
        Self { store: Arc::new(Mutex::new(Store { behaviour, objects })) }
    }

    /// Begins with the script; see [`Behaviour::resting`].
    pub fn begin(&self, now: Moment) {
        lock(&self.store).behaviour.begin(now);
    }

    /// Returns what was truly done so far.
    pub fn ledger(&self) -> Ledger {
        lock(&self.store).behaviour.ledger().clone()
    }
}

/// Returns a key as the store keeps it.
fn in_bucket<'k>(bucket: Option<&str>, key: &'k str) -> Cow<'k, str> {
    bucket.map_or(Cow::Borrowed(key), |bucket| format!("{bucket}/{key}").into())
}

fn lock<T>(store: &Mutex<T>) -> MutexGuard<'_, T> {
    store.lock().expect("nobody panics while holding the scripted store")
}

impl Driver for ScriptedDriver {
    type Session = ScriptedSession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<ScriptedSession> {
        let session =
            || ScriptedSession { store: Arc::clone(&self.store), clock: Arc::clone(clock) };
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
        let mut store = lock(&self.store);
        // Keys of other buckets begin with these.
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

impl Store {
    fn put(&mut self, now: Moment, key: &str, content: &mut dyn ContentSource) -> Completion {
        let size = content.size();
        let Self { behaviour, objects } = self;
        let objects = &mut *lock(objects);
        let len = usize::try_from(size).expect("what is written fits into memory");
        let mut bytes: Bytes = iter::repeat_n(0, len).collect();
        content.fill(0, Arc::get_mut(&mut bytes).expect("nobody else has it yet"));
        let honest = ErrorClass::Ok;
        let request = Request { kind: OpKind::Put, key, content_bytes: size, honest };
        let verdict = behaviour.decide(now, &request, &mut |lie, _| {
            let changes = objects.current(key) != Some(&bytes);
            (lie == Lie::LostWrite && changes).then_some(ErrorClass::Ok)
        });
        match verdict.act {
            Act::Serve => objects.write(key, Some(bytes)),
            Act::Lie(_) => objects.lose_write(key),
            _ => {}
        }
        let sent = Some(now.min(verdict.done));
        let done = Completion { bytes: size, ..completed(&verdict, fault(verdict.act)) };
        Completion { last_byte_sent: sent, ..done }
    }

    fn get(
        &mut self,
        now: Moment,
        key: &str,
        range: Option<ByteRange>,
        sink: &mut dyn ContentSink,
    ) -> Completion {
        let Self { behaviour, objects } = self;
        let objects = &mut *lock(objects);
        let found = objects.look_up(key);
        let object = found.map(|(object, _)| &object[..]);
        let part = object.and_then(|object| part_of(object.len(), range));
        let honest = match (found, part) {
            (None, _) => ErrorClass::NotFound,
            (Some(_), None) => ErrorClass::Client,
            // A write that was acknowledged and lost shows as soon as the object is read.
            (Some((_, lost_write)), _) if lost_write => ErrorClass::Corrupt,
            _ => ErrorClass::Ok,
        };
        let (from, until) = part.unwrap_or((0, 0));
        let content_bytes = (until - from) as u64;
        let request = Request { kind: OpKind::Get, key, content_bytes, honest };
        let mut told = Reply::Nothing;
        let verdict = behaviour.decide(now, &request, &mut |lie, salt| {
            let class;
            (told, class) = objects.prepare_get(lie, salt, key, (from, until), range)?;
            Some(class)
        });
        match verdict.act {
            Act::Serve => match (object, part) {
                (Some(object), Some((from, until))) => {
                    give(&verdict, sink, &object[from..until], object.len())
                }
                (Some(_), None) => completed(&verdict, Err(beyond_the_end())),
                (None, _) => completed(&verdict, Err(not_there(key))),
            },
            Act::HalfBody => {
                let half = &object.unwrap_or_default()[from..from + (until - from) / 2];
                let given = give(&verdict, sink, half, object.map_or(0, <[u8]>::len));
                Completion { objects_count: 0, result: fault(verdict.act), ..given }
            }
            Act::WrongLength => {
                let mut long = object.unwrap_or_default()[from..until].to_vec();
                let extra = 1 + verdict.salt % WRONG_LENGTH_EXTRA;
                long.extend(verdict.salt.to_le_bytes().iter().cycle().take(extra as usize));
                let given = give(&verdict, sink, &long, long.len());
                Completion { objects_count: 0, result: fault(verdict.act), ..given }
            }
            Act::Lie(_) => match told {
                Reply::Content(bytes) => {
                    give(&verdict, sink, &bytes, object.map_or(0, <[u8]>::len))
                }
                Reply::Before(Some(before)) => match part_of(before.len(), range) {
                    Some((from, until)) => give(&verdict, sink, &before[from..until], before.len()),
                    None => completed(&verdict, Err(beyond_the_end())),
                },
                _ => completed(&verdict, Err(not_there(key))),
            },
            act => completed(&verdict, fault(act)),
        }
    }

    fn stat(&mut self, now: Moment, key: &str) -> Completion {
        let Self { behaviour, objects } = self;
        let objects = &mut *lock(objects);
        let size = objects.current(key).map(|object| object.len() as u64);
        let honest = if size.is_some() { ErrorClass::Ok } else { ErrorClass::NotFound };
        let request = Request { kind: OpKind::Stat, key, content_bytes: 0, honest };
        let mut told = None;
        let verdict = behaviour.decide(now, &request, &mut |_, _| {
            let before = objects.before(key)?.map(|before| before.len() as u64);
            told = before;
            match before {
                _ if before == size => None,
                None => Some(ErrorClass::NotFound),
                Some(_) if size.is_none() => Some(ErrorClass::Ok),
                // The size is not the one that was written.
                Some(_) => Some(ErrorClass::Corrupt),
            }
        });
        let stated = match verdict.act {
            Act::Serve => size,
            Act::Lie(_) => told,
            act => return completed(&verdict, fault(act)),
        };
        match stated {
            Some(_) => Completion { object_size: stated, ..completed(&verdict, Ok(())) },
            None => completed(&verdict, Err(not_there(key))),
        }
    }

    fn delete(&mut self, now: Moment, keys: &[String]) -> Completion {
        let Self { behaviour, objects } = self;
        let objects = &mut *lock(objects);
        let key = keys.first().map_or("", String::as_str);
        let honest = ErrorClass::Ok;
        let request = Request { kind: OpKind::Delete, key, content_bytes: 0, honest };
        let verdict = behaviour.decide(now, &request, &mut |_, _| {
            keys.iter().any(|key| objects.current(key).is_some()).then_some(ErrorClass::Ok)
        });
        if verdict.act == Act::Serve {
            keys.iter().for_each(|key| objects.write(key, None));
        }
        let done = completed(&verdict, fault(verdict.act));
        let objects_count = if done.result.is_ok() { keys.len() as u32 } else { 0 };
        Completion { objects_count, ..done }
    }

    /// Lists the first `max` objects below `prefix`, without the first `cut` bytes of each key. A
    /// lie is about one of these.
    fn list(
        &mut self,
        now: Moment,
        (prefix, cut, max): (&str, usize, usize),
        sink: &mut dyn EntrySink,
    ) -> Completion {
        let Self { behaviour, objects } = self;
        let objects = &mut *lock(objects);
        let honest = ErrorClass::Ok;
        let request = Request { kind: OpKind::List, key: prefix, content_bytes: 0, honest };
        let (mut omitted, mut ghost) = (None, None);
        let verdict = behaviour.decide(now, &request, &mut |lie, salt| {
            match lie {
                Lie::ListOmission => {
                    omitted =
                        Some(salt.checked_rem(objects.below(prefix).take(max).count() as u64)?);
                }
                _ => ghost = Some(objects.ghost(prefix, salt)),
            }
            Some(ErrorClass::Corrupt)
        });
        sink.restart();
        if !matches!(verdict.act, Act::Serve | Act::Lie(_)) {
            return completed(&verdict, fault(verdict.act));
        }
        let mut given = 0;
        for (number, (key, size)) in (0..).zip(objects.below(prefix).take(max)) {
            if let Some(ghost) = ghost.take_if(|ghost| ghost.as_str() < key) {
                sink.entry(&ghost[cut..], 0);
                given += 1;
            }
            if Some(number) != omitted {
                sink.entry(&key[cut..], size);
                given += 1;
            }
        }
        if let Some(ghost) = ghost {
            sink.entry(&ghost[cut..], 0);
            given += 1;
        }
        Completion { objects_count: given, ..completed(&verdict, Ok(())) }
    }
}

impl Objects {
    /// Returns what a lie about a read of `[from, until)` will say and what a right client then
    /// sees; `None` if it cannot be told or would be the truth.
    fn prepare_get(
        &self,
        lie: Lie,
        salt: u64,
        key: &str,
        (from, until): (usize, usize),
        range: Option<ByteRange>,
    ) -> Option<(Reply, ErrorClass)> {
        let current = self.current(key);
        if lie == Lie::StaleRead {
            let before = self.before(key)?;
            let class = match (before, current) {
                (None, None) => return None,
                (None, Some(_)) => ErrorClass::NotFound,
                (Some(before), _) if part_of(before.len(), range).is_none() => ErrorClass::Client,
                (Some(_), None) => ErrorClass::Ok,
                (Some(before), Some(current)) => {
                    let (from, until) = part_of(before.len(), range)?;
                    let here = part_of(current.len(), range).map(|(a, b)| &current[a..b]);
                    spoil::class_of_content(&before[from..until], here?)?
                }
            };
            return Some((Reply::Before(before.cloned()), class));
        }
        let object = &current?[..];
        let other = match lie {
            Lie::OtherKey | Lie::Torn => self.other(key, until),
            _ => None,
        };
        let older = self.before(key).flatten().map(|before| &before[..]);
        let source = spoil::Source { object, offset: from, len: until - from, older, other };
        Some((Reply::Content(spoil::spoil(lie, salt, &source)?), ErrorClass::Corrupt))
    }
}

/// Returns first byte and end of what is asked for of `size` bytes, `None` if it is beyond them.
fn part_of(size: usize, range: Option<ByteRange>) -> Option<(usize, usize)> {
    let Some(ByteRange { offset, len }) = range else { return Some((0, size)) };
    let from = usize::try_from(offset).ok().filter(|from| *from < size)?;
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    Some((from, from.saturating_add(len).min(size)))
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

//! A driver that keeps everything in memory: the reference that the conformance suite is tried on
//! first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_model::{EndpointId, ErrorClass, SharedClock};

use crate::{Completion, ContentSource, Driver, DriverError, Operation, Session};

type Objects = BTreeMap<String, Vec<u8>>;

/// Objects in memory, shared by all sessions.
#[derive(Clone, Debug, Default)]
pub struct MemoryDriver {
    objects: Arc<Mutex<Objects>>,
}

/// A session of [`MemoryDriver`].
pub struct MemorySession {
    objects: Arc<Mutex<Objects>>,
    clock: SharedClock,
}

impl Driver for MemoryDriver {
    type Session = MemorySession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<MemorySession> {
        let session =
            || MemorySession { objects: Arc::clone(&self.objects), clock: Arc::clone(clock) };
        (0..count).map(|_| session()).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["memory".to_owned()]
    }
}

/// What an operation came to: bytes moved, objects handled, the object's size.
type Done = Result<(u64, u32, Option<u64>), DriverError>;

fn read_all(content: &mut dyn ContentSource) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(content.size()).unwrap_or(usize::MAX)];
    content.fill(0, &mut bytes);
    bytes
}

fn find<'a>(objects: &'a Objects, key: &str) -> Result<&'a Vec<u8>, DriverError> {
    let missing = || DriverError::new(ErrorClass::NotFound, format!("no object `{key}`"));
    objects.get(key).ok_or_else(missing)
}

fn apply(objects: &mut Objects, operation: Operation<'_>) -> Done {
    match operation {
        Operation::Put { key, content } => {
            let bytes = read_all(content);
            let len = bytes.len() as u64;
            objects.insert(key.to_owned(), bytes);
            Ok((len, 1, None))
        }
        Operation::Get { key, range, sink, .. } => {
            sink.restart();
            let whole = find(objects, key)?;
            let size = whole.len() as u64;
            let (from, len) = range.map_or((0, size), |range| (range.offset, range.len));
            if range.is_some() && from >= size {
                return Err(DriverError::new(ErrorClass::Client, "the range is beyond the object"));
            }
            let until = from.saturating_add(len).min(size);
            sink.accept(&whole[from as usize..until as usize]);
            Ok((until - from, 1, Some(size)))
        }
        Operation::Stat { key, .. } => Ok((0, 1, Some(find(objects, key)?.len() as u64))),
        Operation::Delete { keys } => {
            keys.iter().for_each(|key| drop(objects.remove(key)));
            Ok((0, keys.len() as u32, None))
        }
        Operation::List { prefix, sink, .. } => {
            sink.restart();
            let below = objects.range(prefix.to_owned()..);
            let mut count = 0;
            for (key, bytes) in below.take_while(|(key, _)| key.starts_with(prefix)) {
                sink.entry(key, bytes.len() as u64);
                count += 1;
            }
            Ok((0, count, None))
        }
        _ => Err(DriverError::unsupported()),
    }
}

impl Session for MemorySession {
    async fn execute(&mut self, operation: Operation<'_>) -> Completion {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let done = apply(&mut objects, operation);
        let end = self.clock.now();
        let (bytes, objects_count, object_size) = *done.as_ref().unwrap_or(&(0, 0, None));
        Completion {
            endpoint: EndpointId(0),
            first_byte: None,
            last_byte_sent: None,
            end,
            bytes,
            objects_count,
            object_size,
            tag: None,
            result: done.map(|_| ()),
        }
    }

    fn endpoint(&self) -> EndpointId {
        EndpointId(0)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::{Clock, Moment};

    use super::*;
    use crate::conformance;

    struct Still;

    impl Clock for Still {
        fn now(&self) -> Moment {
            Moment::EPOCH
        }
    }

    #[test]
    fn the_memory_driver_conforms() {
        let clock: SharedClock = Arc::new(Still);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(conformance::check(&MemoryDriver::default(), &clock, "base/"));
    }
}

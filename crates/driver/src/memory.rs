//! A driver that keeps everything in memory: the reference that the conformance suite is tried on
//! first, and that the engine's tests run against.

mod archives;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_model::{EndpointId, ErrorClass, SharedClock, WallTime};

use crate::{ByteRange, Completion, ContentSink, ContentSource, Driver, DriverError, EntrySink};
use crate::{Operation, Session};

/// What is kept under one key at one time; a mark of deletion has no content.
struct Version {
    name: String,
    content: Option<Vec<u8>>,
    /// The sizes of its parts, where it was uploaded in parts.
    parts: Vec<usize>,
    held_until: Option<WallTime>,
}

/// An upload in parts that is under way.
struct Upload {
    key: String,
    parts: BTreeMap<u32, Vec<u8>>,
}

/// Says which operations fail.
type Refusal = Box<dyn FnMut(&Operation<'_>) -> bool + Send>;

#[derive(Default)]
struct World {
    /// Whether a write keeps what was there before.
    keeps_versions: bool,
    /// By key: the latest version last.
    objects: BTreeMap<String, Vec<Version>>,
    uploads: BTreeMap<String, Upload>,
    names_count: u64,
    refusal: Option<Refusal>,
    /// Buckets that operations have named.
    buckets: BTreeMap<String, World>,
}

/// Objects in memory, shared by all sessions.
#[derive(Clone, Default)]
pub struct MemoryDriver {
    world: Arc<Mutex<World>>,
}

/// A session of [`MemoryDriver`].
pub struct MemorySession {
    world: Arc<Mutex<World>>,
    clock: SharedClock,
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryDriver {
    /// Returns a driver that keeps every version of an object.
    pub fn versioned() -> Self {
        let driver = Self::default();
        lock(&driver.world).keeps_versions = true;
        driver
    }

    /// Has every operation fail of which `which` says so.
    pub fn refuse(&self, which: impl FnMut(&Operation<'_>) -> bool + Send + 'static) {
        lock(&self.world).refusal = Some(Box::new(which));
    }

    /// Changes what is kept, behind the back of whoever wrote it: `change` gets every key, the
    /// version's position and its content.
    pub fn spoil(&self, mut change: impl FnMut(&str, usize, &mut Vec<u8>)) {
        for (key, versions) in &mut lock(&self.world).objects {
            for (position, version) in versions.iter_mut().enumerate() {
                if let Some(content) = &mut version.content {
                    change(key, position, content);
                }
            }
        }
    }

    /// Returns how many versions with content there are.
    pub fn versions_count(&self) -> usize {
        let world = lock(&self.world);
        world.objects.values().flatten().filter(|version| version.content.is_some()).count()
    }

    /// Returns until when each version is held that is.
    pub fn held(&self) -> Vec<WallTime> {
        let world = lock(&self.world);
        world.objects.values().flatten().filter_map(|version| version.held_until).collect()
    }

    /// Returns how many uploads in parts have neither been completed nor given up.
    pub fn uploads_count(&self) -> usize {
        lock(&self.world).uploads.len()
    }
}

impl Driver for MemoryDriver {
    type Session = MemorySession;

    fn open_sessions(&self, clock: &SharedClock, count: usize) -> Vec<MemorySession> {
        let session = || MemorySession { world: Arc::clone(&self.world), clock: Arc::clone(clock) };
        (0..count).map(|_| session()).collect()
    }

    fn endpoints(&self) -> Vec<String> {
        vec!["memory".to_owned()]
    }
}

/// What an operation came to.
#[derive(Default)]
struct Done {
    bytes: u64,
    objects_count: u32,
    object_size: Option<u64>,
    tag: Option<String>,
}

impl Done {
    fn one(bytes: usize) -> Self {
        Self { bytes: bytes as u64, objects_count: 1, ..Self::default() }
    }

    fn named(self, tag: String) -> Self {
        Self { tag: Some(tag), ..self }
    }
}

fn failed(class: ErrorClass, message: impl Into<String>) -> DriverError {
    DriverError::new(class, message)
}

fn read_all(content: &mut dyn ContentSource) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(content.size()).unwrap_or(usize::MAX)];
    content.fill(0, &mut bytes);
    bytes
}

impl World {
    /// Returns the bucket of that name, this one where none is named.
    fn bucket(&mut self, name: Option<&str>) -> &mut Self {
        let Some(name) = name else { return self };
        let keeps_versions = self.keeps_versions;
        let new = || Self { keeps_versions, ..Self::default() };
        self.buckets.entry(name.to_owned()).or_insert_with(new)
    }

    fn name(&mut self, what: &str) -> String {
        self.names_count += 1;
        format!("{what}-{:08}", self.names_count)
    }

    /// Writes a version and returns its name where versions are kept.
    fn put(&mut self, key: &str, content: Option<Vec<u8>>, parts: Vec<usize>) -> Option<String> {
        let name = self.name("version");
        let versions = self.objects.entry(key.to_owned()).or_default();
        if !self.keeps_versions {
            versions.clear();
        }
        versions.push(Version { name: name.clone(), content, parts, held_until: None });
        self.keeps_versions.then_some(name)
    }

    fn find(&mut self, key: &str, name: Option<&str>) -> Result<&mut Version, DriverError> {
        let versions = self.objects.get_mut(key).map(|versions| versions.iter_mut());
        let found = match (versions, name) {
            (None, _) => None,
            (Some(mut versions), None) => versions.next_back(),
            (Some(mut versions), Some(name)) => versions.find(|version| version.name == name),
        };
        found.ok_or_else(|| failed(ErrorClass::NotFound, format!("no object `{key}`")))
    }

    fn content(&mut self, key: &str, name: Option<&str>) -> Result<&Vec<u8>, DriverError> {
        let content = self.find(key, name)?.content.as_ref();
        content.ok_or_else(|| failed(ErrorClass::NotFound, format!("`{key}` was deleted")))
    }

    fn get(
        &mut self,
        key: &str,
        version: Option<&str>,
        range: Option<ByteRange>,
        sink: &mut dyn ContentSink,
    ) -> Result<Done, DriverError> {
        sink.restart();
        let whole = self.content(key, version)?;
        let size = whole.len() as u64;
        let (from, len) = range.map_or((0, size), |range| (range.offset, range.len));
        if range.is_some() && from >= size {
            return Err(failed(ErrorClass::Client, "the range is beyond the object"));
        }
        let part = &whole[from as usize..from.saturating_add(len).min(size) as usize];
        sink.accept(part);
        Ok(Done { object_size: Some(size), ..Done::one(part.len()) })
    }

    fn get_part(
        &mut self,
        key: &str,
        number: u32,
        sink: &mut dyn ContentSink,
    ) -> Result<Done, DriverError> {
        sink.restart();
        let version = self.find(key, None)?;
        let before = (number as usize).checked_sub(1);
        let Some(&len) = before.and_then(|before| version.parts.get(before)) else {
            return Err(failed(ErrorClass::Client, format!("`{key}` has no part {number}")));
        };
        let from: usize = version.parts[..number as usize - 1].iter().sum();
        let content = version.content.as_deref().unwrap_or_default();
        sink.accept(content.get(from..from + len).unwrap_or_default());
        Ok(Done::one(len))
    }

    fn delete(&mut self, keys: &[String]) -> Done {
        for key in keys {
            if self.keeps_versions {
                self.put(key, None, Vec::new());
            } else {
                self.objects.remove(key);
            }
        }
        Done { objects_count: keys.len() as u32, ..Done::default() }
    }

    fn list(&self, prefix: &str, all_versions: bool, sink: &mut dyn EntrySink) -> Done {
        sink.restart();
        let mut done = Done::default();
        let below = self.objects.range(prefix.to_owned()..);
        for (key, versions) in below.take_while(|(key, _)| key.starts_with(prefix)) {
            let first = if all_versions { 0 } else { versions.len().saturating_sub(1) };
            for version in &versions[first..] {
                if all_versions || version.content.is_some() {
                    sink.entry(key, version.content.as_ref().map_or(0, Vec::len) as u64);
                    done.objects_count += 1;
                }
            }
        }
        done
    }

    fn upload(&mut self, key: &str, upload: &str) -> Result<&mut Upload, DriverError> {
        let found = self.uploads.get_mut(upload).filter(|upload| upload.key == key);
        found.ok_or_else(|| failed(ErrorClass::NotFound, format!("no upload `{upload}`")))
    }

    fn complete(&mut self, key: &str, upload: &str, tags: &[String]) -> Result<Done, DriverError> {
        let parts = &self.upload(key, upload)?.parts;
        let right = (1..).zip(tags).all(|(number, tag)| {
            parts.get(&number).is_some_and(|content| *tag == part_tag(number, content))
        });
        if !right || parts.len() != tags.len() {
            return Err(failed(ErrorClass::Client, "the parts are not those of the upload"));
        }
        let upload = self.uploads.remove(upload).expect("it was found");
        let sizes = upload.parts.values().map(Vec::len).collect();
        let content = upload.parts.into_values().collect::<Vec<_>>().concat();
        self.put(key, Some(content), sizes);
        Ok(Done { objects_count: 1, ..Done::default() })
    }

    fn append(
        &mut self,
        key: &str,
        offset: u64,
        content: &mut dyn ContentSource,
    ) -> Result<Done, DriverError> {
        let added = read_all(content);
        let version = self.find(key, None)?;
        let whole = version.content.get_or_insert_default();
        if whole.len() as u64 != offset {
            let message = format!("`{key}` has {} bytes, not {offset}", whole.len());
            return Err(failed(ErrorClass::Precondition, message));
        }
        whole.extend_from_slice(&added);
        Ok(Done::one(added.len()))
    }

    fn put_archive(
        &mut self,
        archive: &mut dyn ContentSource,
        members: u32,
    ) -> Result<Done, DriverError> {
        let bytes = read_all(archive);
        let found = archives::tar_members(&bytes)?;
        if found.len() != members as usize {
            return Err(failed(ErrorClass::Client, "the archive has other members"));
        }
        for (name, content) in found {
            self.put(&name, Some(content.to_vec()), Vec::new());
        }
        Ok(Done { objects_count: members, ..Done::one(bytes.len()) })
    }

    fn apply(&mut self, operation: Operation<'_>) -> Result<Done, DriverError> {
        let plain = |count| Done { objects_count: count, ..Done::default() };
        match operation {
            Operation::Put { key, content } | Operation::Post { key, content } => {
                let bytes = read_all(content);
                let done = Done::one(bytes.len());
                let tag = self.put(key, Some(bytes), Vec::new());
                Ok(Done { tag, ..done })
            }
            Operation::Get { key, range, version, sink } => self.get(key, version, range, sink),
            Operation::Stat { key, version } => {
                let size = self.content(key, version)?.len() as u64;
                Ok(Done { object_size: Some(size), ..plain(1) })
            }
            Operation::Delete { keys } => Ok(self.delete(keys)),
            Operation::List { prefix, sink, .. } => Ok(self.list(prefix, false, sink)),
            Operation::ListVersions { prefix, sink, .. } => Ok(self.list(prefix, true, sink)),
            Operation::DeleteVersion { key, version } => {
                self.find(key, Some(version))?;
                let versions = self.objects.get_mut(key).expect("it was found");
                versions.retain(|each| each.name != version);
                Ok(plain(1))
            }
            Operation::GetPart { key, number, sink } => self.get_part(key, number, sink),
            Operation::GetMember { key, member, sink } => {
                sink.restart();
                let content = archives::zip_member(self.content(key, None)?, member)?;
                sink.accept(content);
                Ok(Done::one(content.len()))
            }
            Operation::Retain { key, version, until } => {
                self.find(key, version)?.held_until = Some(until);
                Ok(plain(1))
            }
            Operation::CreateUpload { key } => {
                let name = self.name("upload");
                let upload = Upload { key: key.to_owned(), parts: BTreeMap::new() };
                self.uploads.insert(name.clone(), upload);
                Ok(plain(1).named(name))
            }
            Operation::PutPart { key, upload, number, content } => {
                let bytes = read_all(content);
                let done = Done::one(bytes.len()).named(part_tag(number, &bytes));
                self.upload(key, upload)?.parts.insert(number, bytes);
                Ok(done)
            }
            Operation::CompleteUpload { key, upload, parts } => self.complete(key, upload, parts),
            Operation::AbortUpload { key, upload } => {
                self.upload(key, upload)?;
                self.uploads.remove(upload);
                Ok(plain(1))
            }
            Operation::Append { key, offset, content } => self.append(key, offset, content),
            Operation::PutArchive { archive, members, .. } => self.put_archive(archive, members),
            Operation::Fanout { keys, content } => {
                let bytes = read_all(content);
                for key in keys {
                    self.put(key, Some(bytes.clone()), Vec::new());
                }
                Ok(Done { objects_count: keys.len() as u32, ..Done::one(bytes.len()) })
            }
        }
    }
}

fn part_tag(number: u32, content: &[u8]) -> String {
    format!("part-{number}-{}", content.len())
}

impl Session for MemorySession {
    async fn execute(&mut self, bucket: Option<&str>, operation: Operation<'_>) -> Completion {
        let mut world = lock(&self.world);
        let is_refused = world.refusal.as_mut().is_some_and(|which| which(&operation));
        let done = match is_refused {
            true => Err(failed(ErrorClass::Server, "refused")),
            false => world.bucket(bucket).apply(operation),
        };
        let (done, result) = match done {
            Ok(done) => (done, Ok(())),
            Err(error) => (Done::default(), Err(error)),
        };
        let Done { bytes, objects_count, object_size, tag } = done;
        Completion {
            bytes,
            objects_count,
            object_size,
            server_name: tag.map(Into::into),
            ..Completion::bare(EndpointId(0), self.clock.now(), result)
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
        for driver in [MemoryDriver::default(), MemoryDriver::versioned()] {
            runtime.block_on(conformance::check(&driver, &clock, "base/"));
            runtime.block_on(conformance::check_buckets(&driver, &clock));
        }
    }
}

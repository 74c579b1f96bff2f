//! Operations that write or read many objects at once: archives and their members, and one content
//! under several names.

use plimsoll_driver::{Completion, ContentSource, Operation, Session};
use plimsoll_model::{Moment, ObjectId};
use plimsoll_workload::archive::{Archive, ArchiveMember};
use plimsoll_workload::data::Generator;
use plimsoll_workload::objects::{ObjectRef, ObjectSet};
use plimsoll_workload::plan::Work;

use super::{Executor, bounded};
use crate::verify::{Given, Taken};

/// zstd's fastest regular level.
const COMPRESS_LEVEL: i32 = 1;
/// Content is compressed in pieces of this size.
const COMPRESS_PIECE: usize = 128 << 10;

/// An archive that is about to be written, made before the time of the operation begins.
pub(super) struct Built {
    id: ObjectId,
    archive: Archive,
    /// What goes over the wire where it is compressed.
    compressed: Option<Vec<u8>>,
    members_count: u32,
    members_bytes: u64,
}

impl Built {
    /// Returns how many objects and bytes count for writing it.
    pub(super) fn counts(&self, work: &Work) -> (u32, u64) {
        match work {
            Work::PutTar { .. } => (self.members_count, self.members_bytes),
            _ => (1, self.archive.size()),
        }
    }
}

/// Gives an archive.
struct GivenArchive<'a> {
    built: &'a Built,
    generator: &'a Generator,
}

impl ContentSource for GivenArchive<'_> {
    fn size(&self) -> u64 {
        let compressed = self.built.compressed.as_ref().map(|bytes| bytes.len() as u64);
        compressed.unwrap_or_else(|| self.built.archive.size())
    }

    fn fill(&mut self, offset: u64, buffer: &mut [u8]) {
        match &self.built.compressed {
            Some(bytes) => buffer.copy_from_slice(&bytes[offset as usize..][..buffer.len()]),
            None => self.built.archive.fill(self.generator, offset, buffer),
        }
    }
}

/// Returns the archive as a zstd stream.
fn compress(archive: &Archive, generator: &Generator) -> Vec<u8> {
    use std::io::Write;
    const INTO_MEMORY: &str = "writing into memory does not fail";
    let mut encoder = zstd::Encoder::new(Vec::new(), COMPRESS_LEVEL).expect(INTO_MEMORY);
    let mut piece = vec![0; COMPRESS_PIECE];
    let mut at = 0;
    while at < archive.size() {
        let len = piece.len().min((archive.size() - at) as usize);
        archive.fill(generator, at, &mut piece[..len]);
        encoder.write_all(&piece[..len]).expect(INTO_MEMORY);
        at += len as u64;
    }
    encoder.finish().expect(INTO_MEMORY)
}

impl Executor<'_> {
    /// Makes archive `id`, unless it is there from the attempt before.
    pub(super) fn build_archive(&mut self, id: ObjectId) {
        if self.archive.as_ref().is_some_and(|built| built.id == id) {
            return;
        }
        let (facts, index) = (self.facts, self.place.0);
        let generator = facts.generator(index);
        let set = self.set();
        let (members, archive, compressed) = match facts.work.work {
            Work::PutTar { members, compress: packs, .. } => {
                set.keys.write(id, &mut self.key);
                let members = tar_members(set, id, &self.key, members.get());
                let now = facts.clock.now().since(Moment::EPOCH);
                let now_ns = facts.wall_epoch.after(now).as_unix_ns();
                let archive = Archive::tar(&members, now_ns / 1_000_000_000);
                let compressed = packs.then(|| compress(&archive, generator));
                (members, archive, compressed)
            }
            _ => {
                let members: Vec<ArchiveMember> =
                    (0..set.count).map(|index| self.zip_member(set.id(index))).collect();
                let archive = Archive::zip(&members, generator);
                (members, archive, None)
            }
        };
        self.archive = Some(Built {
            id,
            archive,
            compressed,
            members_count: members.len() as u32,
            members_bytes: members.iter().map(|member| member.size).sum(),
        });
    }

    /// Writes an archive: one that is read file by file, or one that the store takes apart.
    pub(super) async fn put_archive<S: Session>(
        &mut self,
        session: &mut S,
        id: ObjectId,
        start: Moment,
    ) -> Completion {
        let takes_apart = matches!(self.facts.work.work, Work::PutTar { .. });
        if takes_apart {
            self.go_to(id);
        } else {
            self.write_zip_key();
        }
        let built = self.archive.as_ref().expect("it is built before the operation begins");
        let generator = self.facts.generator(self.place.0);
        let mut archive = GivenArchive { built, generator };
        let key = &self.key;
        let put = if takes_apart {
            let members = built.members_count;
            Operation::PutArchive { key, archive: &mut archive, members }
        } else {
            Operation::Put { key, content: &mut archive }
        };
        in_bucket!(self, session, put, start)
    }

    /// Reads one file of the zip archive.
    pub(super) async fn member<S: Session>(
        &mut self,
        session: &mut S,
        object: ObjectRef,
        start: Moment,
    ) -> Completion {
        let member = self.zip_member(object.id);
        self.key.clone_from(&member.key);
        let mut taken = Taken::new(self.checked_content(0), 0);
        self.write_zip_key();
        let (key, sink) = (&self.key, &mut taken);
        let get = Operation::GetMember { key, member: &member.name, sink };
        let done = in_bucket!(self, session, get, start);
        self.key.clone_from(&member.key);
        let len = object.size.unwrap_or(done.bytes);
        self.judged(done, &taken, len)
    }

    /// Writes one content under several names below that of the object.
    pub(super) async fn fan_out<S: Session>(
        &mut self,
        session: &mut S,
        object: ObjectRef,
        start: Moment,
    ) -> Completion {
        let Work::Fanout { copies, .. } = self.facts.work.work else {
            unreachable!("copies are written by a fanout")
        };
        let copies = copies.get();
        let size = object.size.expect("it was checked that the set has sizes");
        self.go_to(object.id);
        let name = |copy| format!("{}/copy-{copy}.rnd", self.key);
        self.batch = (0..copies).map(name).collect();
        let mut given = Given { content: self.content(0), offset: 0, size };
        let fanout = Operation::Fanout { keys: &self.batch, content: &mut given };
        let mut done = in_bucket!(self, session, fanout, start);
        if done.result.is_ok() {
            // What the store is to write counts; it is sent once.
            (done.objects_count, done.bytes) = (copies, size * u64::from(copies));
        }
        done
    }

    /// Replaces the present key by that of the zip archive, which servers know by its ending.
    fn write_zip_key(&mut self) {
        self.go_to(self.facts.work.archive_id(self.place.0));
        let stem = self.key.trim_end_matches(".rnd").len();
        self.key.truncate(stem);
        self.key.push_str(".zip");
    }

    /// Returns file `id` of the zip archive; its name is the key below the run's own prefix.
    fn zip_member(&self, id: ObjectId) -> ArchiveMember {
        let mut key = String::new();
        let set = self.set();
        set.keys.write(id, &mut key);
        let name = key.strip_prefix(set.keys.base()).unwrap_or(&key).to_owned();
        let size = set.size_of(id).expect("it was checked that the set has sizes");
        ArchiveMember { name, size, key }
    }
}

/// Returns the files of tar archive `id`, which become objects below its key.
fn tar_members(set: &ObjectSet, id: ObjectId, key: &str, count: u32) -> Vec<ArchiveMember> {
    let sizes = set.laws[0].as_ref().expect("it was checked that the set has sizes");
    let member = |number: u32| {
        let name = format!("{key}/{number}.obj");
        // Every member of every archive has a number of its own, from which its size comes.
        let position = id.number() * u64::from(count) + u64::from(number);
        let size = sizes.size(set.seed, ObjectId::new(id.owner(), position));
        ArchiveMember { key: name.clone(), name, size }
    };
    (0..count).map(member).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_archive_is_the_plain_one() {
        let generator = Generator::new(5);
        let member = |number: u32| ArchiveMember {
            name: number.to_string(),
            key: number.to_string(),
            size: 100_000,
        };
        let archive = Archive::tar(&[member(0), member(1), member(2)], 0);
        let mut plain = vec![0; archive.size() as usize];
        archive.fill(&generator, 0, &mut plain);
        let packed = compress(&archive, &generator);
        assert_eq!(zstd::decode_all(&*packed).unwrap(), plain);
    }
}

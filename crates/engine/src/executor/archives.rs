//! Operations that write or read many objects at once: archives and their members, and one content
//! under several names.

use plimsoll_driver::{Completion, Operation, Session};
use plimsoll_model::{Moment, ObjectId};
use plimsoll_workload::archive::{Archive, ArchiveMember};
use plimsoll_workload::objects::{ObjectRef, ObjectSet};
use plimsoll_workload::plan::Work;

use super::built::{Built, GivenArchive, compress};
use super::{Executor, bounded};
use crate::verify::{CheckingSink, SourceContent};

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
        let mut taken = CheckingSink::new(self.checked_content(0), 0, object.size);
        self.write_zip_key();
        let (key, sink) = (&self.key, &mut taken);
        let get = Operation::GetMember { key, member: &member.name, sink };
        let mut done = in_bucket!(self, session, get, start);
        self.key.clone_from(&member.key);
        self.judge(&mut done, &taken);
        done
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
        let content = self.content(0);
        let mut given = SourceContent { content, offset: 0, size, guard: None };
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

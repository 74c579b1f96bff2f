//! Operations that write or read many objects at once: archives and their members, and one content
//! under several names.

use std::sync::Arc;

use plimsoll_driver::{Completion, Operation, Session};
use plimsoll_model::{Moment, ObjectId};
use plimsoll_workload::archive::{Archive, ArchiveMember};
use plimsoll_workload::{Activity, ObjectRef, Workload};

use super::built::{Built, GivenArchive, compress};
use super::{Executor, bounded};
use crate::verify::{Given, Taken};

impl Executor<'_> {
    /// Makes archive `id`, unless it is there from the attempt before.
    pub(super) fn build_archive(&mut self, id: ObjectId) {
        if self.archive.as_ref().is_some_and(|built| built.id == id) {
            return;
        }
        let (workload, generator) = (&self.facts.workload, &self.facts.generator);
        let (members, archive, compressed) = match workload.activity {
            Activity::Snowball { members, compress: packs } => {
                self.keys.write(id, &mut self.key);
                let members = tar_members(workload, id, &self.key, members.get());
                let now = self.facts.clock.now().since(Moment::EPOCH);
                let now_ns = self.facts.wall_epoch.after(now).as_unix_ns();
                let archive = Archive::tar(&members, now_ns / 1_000_000_000);
                let compressed = packs.then(|| compress(&archive, generator));
                (members, archive, compressed)
            }
            _ => {
                let members: Vec<ArchiveMember> = (0..workload.population_count())
                    .map(|index| self.zip_member(workload.population_id(index)))
                    .collect();
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
        let takes_apart = matches!(self.facts.workload.activity, Activity::Snowball { .. });
        if takes_apart {
            self.keys.write(id, &mut self.key);
        } else {
            self.write_zip_key();
        }
        let built = self.archive.as_ref().expect("it is built before the operation begins");
        let mut archive = GivenArchive { built, generator: &self.facts.generator };
        let key = &self.key;
        let put = if takes_apart {
            let members = built.members_count;
            Operation::PutArchive { key, archive: &mut archive, members }
        } else {
            Operation::Put { key, content: &mut archive }
        };
        bounded(self.facts, session, put, start).await
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
        let done = bounded(self.facts, session, get, start).await;
        self.key.clone_from(&member.key);
        self.judged(done, &taken, object.size)
    }

    /// Writes one content under several names below that of the object.
    pub(super) async fn fan_out<S: Session>(
        &mut self,
        session: &mut S,
        object: ObjectRef,
        start: Moment,
    ) -> Completion {
        let Activity::Fanout { copies } = self.facts.workload.activity else {
            unreachable!("copies are written in a fanout workload")
        };
        let copies = copies.get();
        self.keys.write(object.id, &mut self.key);
        let name = |copy| format!("{}/copy-{copy}.rnd", self.key);
        self.batch = (0..copies).map(name).collect();
        let mut given = Given { content: self.content(0), offset: 0, size: object.size };
        let fanout = Operation::Fanout { keys: &self.batch, content: &mut given };
        let mut done = bounded(self.facts, session, fanout, start).await;
        if done.result.is_ok() {
            // What the store is to write counts; it is sent once.
            (done.objects_count, done.bytes) = (copies, object.size * u64::from(copies));
        }
        done
    }

    /// Replaces the present key by that of the zip archive, which servers know by its ending.
    fn write_zip_key(&mut self) {
        self.keys.write(self.facts.workload.whole_id(), &mut self.key);
        let stem = self.key.trim_end_matches(".rnd").len();
        self.key.truncate(stem);
        self.key.push_str(".zip");
    }

    /// Returns file `id` of the zip archive; its name is the key below the run's own prefix.
    fn zip_member(&self, id: ObjectId) -> ArchiveMember {
        let mut key = String::new();
        self.keys.write(id, &mut key);
        let workload: &Arc<Workload> = &self.facts.workload;
        let name = key.strip_prefix(&workload.layout.base).unwrap_or(&key).to_owned();
        ArchiveMember { name, size: workload.size_of(id), key }
    }
}

/// Returns the files of tar archive `id`, which become objects below its key.
fn tar_members(workload: &Workload, id: ObjectId, key: &str, count: u32) -> Vec<ArchiveMember> {
    let member = |number: u32| {
        let name = format!("{key}/{number}.obj");
        // Every member of every archive has a number of its own, from which its size comes.
        let position = id.number() * u64::from(count) + u64::from(number);
        let size = workload.sizes.size(workload.seed.0, ObjectId::new(id.owner(), position));
        ArchiveMember { key: name.clone(), name, size }
    };
    (0..count).map(member).collect()
}

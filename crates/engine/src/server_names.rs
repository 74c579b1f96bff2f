//! Names that the store gave to what was written, by object and version, handed from stage to
//! stage for the operations that are about them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plimsoll_model::{ObjectId, OpKind, WorkerId};
use plimsoll_workload::{PlannedOp, Target};

/// The names of one worker's versions in the order in which it wrote them, as one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnerNames {
    text: String,
    ends: Vec<u32>,
}

impl OwnerNames {
    /// Adds the next name; none where the store gave none.
    pub(crate) fn push(&mut self, server_name: Option<&str>) {
        self.text.push_str(server_name.unwrap_or_default());
        self.ends.push(u32::try_from(self.text.len()).expect("names come to less than 4 GiB"));
    }

    fn get(&self, index: u64) -> Option<&str> {
        let index = usize::try_from(index).ok()?;
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.text[start as usize..end as usize]).filter(|server_name| !server_name.is_empty())
    }
}

/// What the store called what one job of one stage wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WrittenNames {
    /// Of a population that was written in order, by the worker that owns it.
    in_order: BTreeMap<WorkerId, OwnerNames>,
    /// Of all else by object and version.
    others: HashMap<(ObjectId, u32), Box<str>>,
}

impl WrittenNames {
    /// Adds the name of what `worker` wrote next; none where the store gave none.
    pub(crate) fn push(&mut self, worker: WorkerId, server_name: Option<&str>) {
        self.in_order.entry(worker).or_default().push(server_name);
    }

    /// Adds what other workers wrote.
    pub(crate) fn add(&mut self, mut other: Self) {
        self.in_order.append(&mut other.in_order);
        if self.others.is_empty() {
            self.others = other.others;
        } else {
            self.others.extend(other.others);
        }
    }

    fn count(&self) -> usize {
        self.in_order.values().map(|owner| owner.ends.len()).sum::<usize>() + self.others.len()
    }
}

/// The names that the store gave in the stages so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerNames {
    /// Those of the last stage that wrote anything.
    written: WrittenNames,
    /// How many versions of each object were written in order.
    versions: u32,
    /// Those of the stages before.
    earlier: Option<Arc<ServerNames>>,
}

impl ServerNames {
    /// Returns the names after a stage that wrote these, each object in so many versions where it
    /// did so in order. Where it wrote nothing they are those of the stages before.
    pub(crate) fn after(
        earlier: Option<&Arc<Self>>,
        written: WrittenNames,
        versions: u32,
    ) -> Option<Arc<Self>> {
        let earlier = earlier.map(Arc::clone);
        if written.count() == 0 {
            return earlier;
        }
        Some(Arc::new(Self { written, versions, earlier }))
    }

    /// Returns what the store calls a version of an object, as it was named last.
    pub fn get(&self, id: ObjectId, version: u32) -> Option<&str> {
        let WrittenNames { in_order, others } = &self.written;
        if let Some(server_name) = others.get(&(id, version)) {
            return Some(server_name);
        }
        let index = id.number() * u64::from(self.versions) + u64::from(version);
        let of_owner = in_order.get(&id.owner()).filter(|_| version < self.versions);
        let server_name = of_owner.and_then(|owner| owner.get(index));
        server_name.or_else(|| self.earlier.as_ref()?.get(id, version))
    }

    /// Returns how many names there are; one that was given anew counts again.
    pub fn count(&self) -> usize {
        self.written.count() + self.earlier.as_ref().map_or(0, |earlier| earlier.count())
    }
}

/// The names of versions that one worker's operations are about.
pub(crate) struct VersionNames {
    earlier: Option<Arc<ServerNames>>,
    /// Those of versions that the worker has written since, and that are there still.
    own: HashMap<(ObjectId, u32), Box<str>>,
}

impl VersionNames {
    /// Returns the names that a worker needs, after the stages that gave these.
    pub(crate) fn new(earlier: Option<&Arc<ServerNames>>) -> Self {
        Self { earlier: earlier.map(Arc::clone), own: HashMap::new() }
    }

    /// Returns the name of the version that `op` is about; a PUT is about none that has one.
    pub(crate) fn of(&self, op: &PlannedOp) -> Option<&str> {
        let Target::Object(object, _) = op.target else { return None };
        if op.kind == OpKind::Put {
            return None;
        }
        let own = self.own.get(&(object.id, object.version));
        own.map(|server_name| &**server_name)
            .or_else(|| self.earlier.as_ref()?.get(object.id, object.version))
    }

    /// Takes note of what became of an operation.
    pub(crate) fn completed(&mut self, op: &PlannedOp, server_name: Option<Box<str>>) {
        let Target::Object(object, _) = op.target else { return };
        match (op.kind, server_name) {
            (OpKind::Put, Some(server_name)) => {
                self.own.insert((object.id, object.version), server_name);
            }
            (OpKind::Delete, _) => {
                self.own.remove(&(object.id, object.version));
            }
            _ => {}
        }
    }

    /// Takes the names that the worker's own operations were given.
    pub(crate) fn take_written(&mut self) -> WrittenNames {
        let others = std::mem::take(&mut self.own);
        WrittenNames { in_order: BTreeMap::new(), others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(owner: u32, number: u64) -> ObjectId {
        ObjectId::new(WorkerId(owner), number)
    }

    fn in_order() -> WrittenNames {
        let mut written = WrittenNames::default();
        for server_name in [Some("a0"), Some("a1"), None, Some("b1-long"), Some("")] {
            written.push(WorkerId(3), server_name);
        }
        written
    }

    #[test]
    fn names_are_found_by_object_and_version() {
        let server_names = ServerNames::after(None, in_order(), 2).unwrap();
        let get = |owner, number, version| server_names.get(id(owner, number), version);
        assert_eq!([get(3, 0, 0), get(3, 0, 1)], [Some("a0"), Some("a1")]);
        assert_eq!([get(3, 1, 0), get(3, 1, 1)], [None, Some("b1-long")]);
        assert_eq!([get(3, 2, 0), get(3, 0, 2), get(3, 9, 0), get(0, 0, 0)], [None; 4]);
        assert_eq!(server_names.count(), 5);
    }

    #[test]
    fn every_stage_adds_to_the_names_of_those_before() {
        let first = ServerNames::after(None, in_order(), 2);
        let others = [((id(3, 0), 1), "newer".into()), ((id(3, 0), 2), "third".into())];
        let written = WrittenNames { others: others.into(), ..WrittenNames::default() };
        let second = ServerNames::after(first.as_ref(), written, 2);
        let nothing = ServerNames::after(second.as_ref(), WrittenNames::default(), 2);
        let mut more = WrittenNames::default();
        more.push(WorkerId(8), Some("c0"));
        let third = ServerNames::after(nothing.as_ref(), more, 1).unwrap();
        let get = |owner, number, version| third.get(id(owner, number), version);
        assert_eq!(
            [get(3, 0, 0), get(3, 0, 1), get(3, 0, 2)].map(Option::unwrap),
            ["a0", "newer", "third"]
        );
        assert_eq!([get(3, 1, 1), get(8, 0, 0), get(8, 0, 1)], [Some("b1-long"), Some("c0"), None]);
        assert_eq!(
            (third.count(), ServerNames::after(None, WrittenNames::default(), 1)),
            (8, None)
        );
    }
}

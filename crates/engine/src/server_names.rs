//! Names that the store gave: versions of objects and parts of uploads, kept for the operations
//! that are about them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plimsoll_model::{ObjectId, OpKind, WorkerId};
use plimsoll_workload::{PlannedOp, Target};

use crate::job::JobFacts;

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

/// The names that the store gave to what one stage wrote, for the stages after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerNames {
    owners: BTreeMap<WorkerId, OwnerNames>,
}

impl ServerNames {
    pub(crate) fn new(owners: BTreeMap<WorkerId, OwnerNames>) -> Self {
        Self { owners }
    }

    /// Returns what the store called version `version` of `versions` of object `id`.
    fn get(&self, id: ObjectId, version: u32, versions: u32) -> Option<&str> {
        let index = id.number() * u64::from(versions) + u64::from(version);
        self.owners.get(&id.owner())?.get(index).filter(|_| version < versions)
    }

    /// Returns how many names there are.
    pub fn count(&self) -> usize {
        self.owners.values().map(|owner| owner.ends.len()).sum()
    }
}

/// The names of versions that one worker's operations are about.
pub(crate) struct VersionNames {
    prepared: Arc<ServerNames>,
    /// How many versions of each object were prepared.
    versions: u32,
    /// Those of versions that the worker has written since, and that are there still.
    own: HashMap<(ObjectId, u32), Box<str>>,
}

impl VersionNames {
    /// Returns the names that a worker needs, `None` where operations are about no versions.
    pub(crate) fn new(facts: &JobFacts<'_>) -> Option<Self> {
        let prepared = Arc::clone(facts.server_names.as_ref()?);
        Some(Self { prepared, versions: facts.workload.versions, own: HashMap::new() })
    }

    /// Returns the name of the version that `op` is about; a PUT is about none that has one.
    pub(crate) fn of(&self, op: &PlannedOp) -> Option<&str> {
        let Target::Object(object, _) = op.target else { return None };
        if op.kind == OpKind::Put {
            return None;
        }
        let own = self.own.get(&(object.id, object.version));
        own.map(|server_name| &**server_name)
            .or_else(|| self.prepared.get(object.id, object.version, self.versions))
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_object_and_version() {
        let mut first = OwnerNames::default();
        for server_name in [Some("a0"), Some("a1"), None, Some("b1-long"), Some("")] {
            first.push(server_name);
        }
        let server_names = ServerNames::new(BTreeMap::from([(WorkerId(3), first)]));
        let get = |owner, number, version| {
            server_names.get(ObjectId::new(WorkerId(owner), number), version, 2)
        };
        assert_eq!([get(3, 0, 0), get(3, 0, 1)], [Some("a0"), Some("a1")]);
        assert_eq!([get(3, 1, 0), get(3, 1, 1)], [None, Some("b1-long")]);
        assert_eq!([get(3, 2, 0), get(3, 0, 2), get(3, 9, 0), get(0, 0, 0)], [None; 4]);
        assert_eq!(server_names.count(), 5);
    }
}

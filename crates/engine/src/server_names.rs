//! Names that the store gave to versions of objects, handed from the stage that wrote them to those
//! whose operations are about them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plimsoll_model::{ObjectId, OpKind, WorkerId};
use plimsoll_workload::objects::{ObjectRef, ObjectsJob, PlannedOp, Subject};
use plimsoll_workload::plan::{SetIndex, Work};

/// So many names in a row may be missing, where writing failed, until those that follow are kept
/// one by one.
const GAP_MAX: usize = 64;

/// A version of an object with the name that the store gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedVersion {
    pub(crate) set: SetIndex,
    pub(crate) id: ObjectId,
    pub(crate) version: u32,
    /// How many versions of each object a fill of the set makes.
    pub(crate) versions: u32,
    pub(crate) name: Box<str>,
}

/// The names of one owner's versions. Those that a fill wrote, one after the other, take four bytes
/// beside their text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OwnerNames {
    text: String,
    ends: Vec<u32>,
    versions: u32,
    others: HashMap<(u64, u32), Box<str>>,
}

impl OwnerNames {
    fn add(&mut self, number: u64, version: u32, versions: u32, name: Box<str>) {
        if self.ends.is_empty() {
            self.versions = versions;
        }
        let place = self.place(number, version);
        let next = self.ends.len();
        match place.filter(|place| (next..=next + GAP_MAX).contains(place)) {
            Some(place) if self.text.len() + name.len() <= u32::MAX as usize => {
                self.ends.resize(place, self.text.len() as u32);
                self.text.push_str(&name);
                self.ends.push(self.text.len() as u32);
            }
            _ => {
                self.others.insert((number, version), name);
            }
        }
    }

    fn place(&self, number: u64, version: u32) -> Option<usize> {
        let place = number.checked_mul(u64::from(self.versions))? + u64::from(version);
        usize::try_from(place).ok().filter(|_| version < self.versions)
    }

    fn get(&self, number: u64, version: u32) -> Option<&str> {
        if let Some(name) = self.others.get(&(number, version)) {
            return Some(name);
        }
        self.at(self.place(number, version)?)
    }

    fn at(&self, place: usize) -> Option<&str> {
        let end = *self.ends.get(place)?;
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.text[start as usize..end as usize]).filter(|name| !name.is_empty())
    }
}

/// The names that the store gave to what stages wrote, for those after them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerNames {
    owners: BTreeMap<(SetIndex, u32), OwnerNames>,
}

impl ServerNames {
    pub(crate) fn add(&mut self, version: NamedVersion) {
        let NamedVersion { set, id, version, versions, name } = version;
        let owner = self.owners.entry((set, id.owner().0)).or_default();
        owner.add(id.number(), version, versions, name);
    }

    /// Adds the name of a version of an object; a fill of its set makes `versions` of each.
    pub fn note(&mut self, set: SetIndex, id: ObjectId, version: u32, versions: u32, name: &str) {
        self.add(NamedVersion { set, id, version, versions, name: name.into() });
    }

    /// Hands over each name as [`Self::note`] takes it, by set and owner.
    pub fn each(&self, mut take: impl FnMut(SetIndex, ObjectId, u32, u32, &str)) {
        for ((set, owner), names) in &self.owners {
            let versions = names.versions.max(1);
            let mut hand = |number: u64, version, name: &str| {
                let id = ObjectId::new(WorkerId(*owner), number);
                take(*set, id, version, versions, name);
            };
            for place in 0..names.ends.len() {
                if let Some(name) = names.at(place) {
                    let version = (place % versions as usize) as u32;
                    hand(place as u64 / u64::from(versions), version, name);
                }
            }
            let others: BTreeMap<_, _> = names.others.iter().collect();
            for ((number, version), name) in others {
                hand(*number, *version, name);
            }
        }
    }

    /// Adds those that others were given.
    pub fn append(&mut self, other: Self) {
        for (of, names) in other.owners {
            match self.owners.get_mut(&of) {
                None => {
                    self.owners.insert(of, names);
                }
                Some(own) => {
                    let versions = names.versions.max(1);
                    for place in 0..names.ends.len() {
                        let number = place as u64 / u64::from(versions);
                        let version = (place % versions as usize) as u32;
                        if let Some(name) = names.get(number, version) {
                            own.add(number, version, versions, name.into());
                        }
                    }
                    own.others.extend(names.others);
                }
            }
        }
    }

    /// Returns what the store called a version of an object.
    pub fn get(&self, set: SetIndex, id: ObjectId, version: u32) -> Option<&str> {
        self.owners.get(&(set, id.owner().0))?.get(id.number(), version)
    }

    /// Returns the names of the members of a set, those of each owner in the order of their
    /// numbers.
    pub fn of_set(&self, set: SetIndex) -> impl Iterator<Item = &str> {
        let of_set = self.owners.range((set, 0)..=(set, u32::MAX));
        of_set.flat_map(|(_, owner)| {
            let others: BTreeMap<_, _> = owner.others.iter().collect();
            let in_order = (0..owner.ends.len()).filter_map(|place| owner.at(place));
            in_order.chain(others.into_values().map(|name| &**name))
        })
    }

    /// Returns the sets of whose members there are names, of each once or more.
    pub fn sets(&self) -> impl Iterator<Item = SetIndex> {
        self.owners.keys().map(|(set, _)| *set)
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Returns how many names there are.
    pub fn count(&self) -> usize {
        let of_owner = |owner: &OwnerNames| {
            let starts = std::iter::once(0).chain(owner.ends.iter().copied());
            let named = starts.zip(&owner.ends).filter(|(start, end)| start < *end);
            named.count() + owner.others.len()
        };
        self.owners.values().map(of_owner).sum()
    }
}

/// The names of versions that one worker's operations are about.
pub(crate) struct VersionNames {
    work: Arc<ObjectsJob>,
    before: Option<Arc<ServerNames>>,
    /// Those of versions that the worker has written since, and that are there still.
    own: HashMap<(SetIndex, ObjectId, u32), Box<str>>,
}

impl VersionNames {
    /// Returns the names that a worker needs, with those that earlier stages were given.
    pub(crate) fn new(work: Arc<ObjectsJob>, before: Option<Arc<ServerNames>>) -> Self {
        Self { work, before, own: HashMap::new() }
    }

    /// Returns the name of the version that `op` is about, where it is about one.
    pub(crate) fn of(&self, op: &PlannedOp) -> Option<&str> {
        let Subject::Object(object, _) = op.subject else { return None };
        if !object.is_by_name && !self.work.set(op.set).is_named {
            return None;
        }
        let own = self.own.get(&(op.set, object.id, object.version));
        let before = || self.before.as_ref()?.get(op.set, object.id, object.version);
        own.map(|name| &**name).or_else(before)
    }

    /// Takes note of what became of an operation, and returns the version with its name where it
    /// wrote one that others may be about.
    pub(crate) fn completed(
        &mut self,
        op: &PlannedOp,
        name: Option<Box<str>>,
    ) -> Option<NamedVersion> {
        let Subject::Object(ObjectRef { id, version, .. }, _) = op.subject else { return None };
        let set = op.set;
        match op.kind {
            OpKind::Put if self.work.versioned[set.0] => {
                let name = name?;
                if !matches!(self.work.work, Work::Fill { .. }) {
                    self.own.insert((set, id, version), name.clone());
                }
                let versions = self.work.set(set).versions;
                Some(NamedVersion { set, id, version, versions, name })
            }
            OpKind::Delete => {
                self.own.remove(&(set, id, version));
                None
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(owner: u32, number: u64) -> ObjectId {
        ObjectId::new(WorkerId(owner), number)
    }

    fn named(owner: u32, number: u64, version: u32, name: &str) -> NamedVersion {
        let (set, id) = (SetIndex(1), id(owner, number));
        NamedVersion { set, id, version, versions: 2, name: name.into() }
    }

    #[test]
    fn names_are_found_by_set_object_and_version() {
        let mut names = ServerNames::default();
        // The first version of object 1 was not written; the third of object 0 came later.
        for (number, version, name) in
            [(0, 0, "a0"), (0, 1, "a1"), (1, 1, "b1-long"), (0, 2, "a2"), (900, 0, "far")]
        {
            names.add(named(3, number, version, name));
        }
        let mut more = ServerNames::default();
        more.add(named(3, 2, 0, "c0"));
        more.add(named(4, 0, 0, "d0"));
        names.append(more);
        let get = |owner, number, version| names.get(SetIndex(1), id(owner, number), version);
        assert_eq!(
            [get(3, 0, 0), get(3, 0, 1), get(3, 0, 2)],
            [Some("a0"), Some("a1"), Some("a2")]
        );
        assert_eq!([get(3, 1, 0), get(3, 1, 1)], [None, Some("b1-long")]);
        assert_eq!(
            [get(3, 2, 0), get(4, 0, 0), get(3, 900, 0)],
            [Some("c0"), Some("d0"), Some("far")]
        );
        assert_eq!([get(3, 2, 1), get(3, 0, 3), get(3, 901, 0), get(0, 0, 0)], [None; 4]);
        assert_eq!(names.get(SetIndex(0), id(3, 0), 0), None);
        assert_eq!(names.count(), 7);
        let of_set: Vec<&str> = names.of_set(SetIndex(1)).collect();
        assert_eq!(of_set, ["a0", "a1", "b1-long", "c0", "a2", "far", "d0"]);
        assert_eq!(names.of_set(SetIndex(0)).count(), 0);
        let mut copied = ServerNames::default();
        names
            .each(|set, id, version, versions, name| copied.note(set, id, version, versions, name));
        assert_eq!(copied, names);
    }

    #[test]
    fn what_a_fill_wrote_takes_four_bytes_beside_its_text() {
        let mut names = ServerNames::default();
        for number in 0..1 << 12 {
            for version in 0..2 {
                names.add(named(0, number, version, "0123456789"));
            }
        }
        let owner = &names.owners[&(SetIndex(1), 0)];
        assert_eq!((owner.ends.len(), owner.text.len()), (1 << 13, 10 << 13));
        assert!(owner.others.is_empty());
    }
}
